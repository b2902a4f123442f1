"""Checksums of large files, computed in a thread while the model is already in use.

A file of many gigabytes is mapped and ready at once, but to read it whole takes seconds. A thread of low priority does
so, once for each file and process. Answers given before it has found damage may be wrong; a command that has not ended
by then ends with one line.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

NICE = 10


class BackgroundChecks:
    """The files of this process that were checked, or are being checked.

    wanted: False in a process whose parent checks the same files. report: called with a line for each damaged file.
    """

    def __init__(self) -> None:
        self.wanted = True
        self.report: Callable[[str], None] = warn
        self._threads: dict[tuple[int, int, int, int], threading.Thread | None] = {}

    def begin(self, path: Path, damage: Callable[[str], str | None]) -> None:
        """Checksum a file in a thread, unless that was done. damage: returns a line about the file if its SHA-256,
        which it is given, is not the right one.
        """
        key = _key(path)
        if self.wanted and key not in self._threads:
            thread = threading.Thread(target=self._check, args=(path, damage), name="foreword-checking", daemon=True)
            self._threads[key] = thread
            thread.start()

    def is_done(self, path: Path) -> None:
        """Remember that a file was checked."""
        self._threads[_key(path)] = None

    def wait(self) -> None:
        """Wait until every file is checked."""
        for thread in filter(None, list(self._threads.values())):
            thread.join()

    def _check(self, path: Path, damage: Callable[[str], str | None]) -> None:
        with suppress(OSError):
            if sys.platform == "linux":  # elsewhere the priority is that of the whole process
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        with suppress(OSError):  # deleted meanwhile
            line = damage(sha256_of(path))
            if line is not None:
                self.report(line)


def warn(line: str) -> None:
    """Report a damaged file as a warning."""
    warnings.warn(line, RuntimeWarning, stacklevel=1)


def end_process(line: str) -> None:
    """Report a damaged file and end the process, a command, with status 1."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os.write(2, f"foreword: {line}\n".encode())
    os._exit(1)


CHECKS = BackgroundChecks()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _key(path: Path) -> tuple[int, int, int, int]:
    facts = path.stat()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns
