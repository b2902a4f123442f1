"""Atomic writes: a file or folder appears under its name when it is complete, and not before.

Everything is written to a hidden sibling, synced to the disk, and then renamed. A process that is killed on the way
leaves the old version as it was; at worst a hidden sibling remains next to it, which the next writer deletes: its name
contains the process that made it.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import secrets
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foreword.errors import InputError, explained, reason_of

MODEL_JSON = "model.json"
MODEL_MARK = b'"format": "foreword"'
MARK_WITHIN = 1 << 16
"""Bytes of a ``model.json`` that contain its mark: only the short entry of its files precedes it."""

DISK_REFUSES = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def atomic_folder(target: str | Path) -> Iterator[Path]:
    """Yield an empty folder to write into, which becomes ``target`` at the end unless there was an exception.

    An existing target is replaced as a whole if it is empty or a saved model; a file or any other folder is refused.
    """
    real = Path(os.path.realpath(target))
    with explained(f"cannot write {target}"):
        check_replaceable(target)
        make_folders(real.parent)
        clear_abandoned(real)
        new = _hidden_sibling(real, "new")
        new.mkdir()
    try:
        with _refusal_explained(target, new):
            yield new
        with explained(f"cannot write {target}"):
            _sync_folder(new)
            _replace(new, real)
    finally:
        shutil.rmtree(new, ignore_errors=True)  # after success it no longer exists


@contextmanager
def atomic_file(target: str | Path) -> Iterator[Path]:
    """Yield a path to write to, which becomes ``target`` at the end unless there was an exception."""
    real = Path(os.path.realpath(target))
    with explained(f"cannot write {target}"):
        if real.exists() and not real.is_file():  # a folder, or a device such as /dev/null, which root could replace
            raise InputError(f"cannot write {target}: it is not a plain file")
        make_folders(real.parent)
        clear_abandoned(real)
        new = _hidden_sibling(real, "new")
        new.touch(exist_ok=False)
    try:
        with _refusal_explained(target, new):
            yield new
        with explained(f"cannot write {target}"):
            _sync(new, os.O_RDWR)
            new.replace(real)
            sync_entries(real.parent)
    finally:
        new.unlink(missing_ok=True)


def make_folders(folder: Path) -> None:
    """Create a folder and its parents, which exist on the disk when this returns."""
    if not folder.is_dir():
        make_folders(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_entries(folder.parent)


def sync_entries(folder: Path) -> None:
    """Sync the entries of a folder, which a new file or a rename changes."""
    if os.name != "nt":  # Windows neither can nor needs to
        _sync(folder, os.O_RDONLY)


def is_model_json(path: Path) -> bool:
    """Return whether a file is Foreword's description of a model, and not another tool's file of the same name."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return MODEL_MARK in file.read(MARK_WITHIN)


def left_aside(target: Path) -> Path | None:
    """Return the old version of a missing folder, left by a process that was killed between two renames, if any."""
    if target.exists() or not target.parent.is_dir():
        return None
    asides = (path for path in target.parent.iterdir() if path.name.startswith(f".{target.name}.old-"))
    return next(asides, None)


def check_replaceable(target: str | Path) -> None:
    """Raise an InputError for a target that ``atomic_folder`` would refuse, before hours of work."""
    real = Path(os.path.realpath(target))
    if not real.exists():
        return
    if not real.is_dir():
        raise InputError(f"cannot write {target}: a file of that name is already there")
    if real == Path.cwd():
        # Another folder would replace it, and the user would be left in a deleted one.
        raise InputError(f"cannot write {target}: it is the current folder; name another")
    if any(real.iterdir()) and not is_model_json(real / MODEL_JSON):
        raise InputError(f"cannot write {target}: the folder is not empty and holds no Foreword model")


def nearest_existing(target: str | Path) -> Path:
    """Return the nearest path above the target that exists: a folder, unless the target cannot be written."""
    return next(path for path in Path(os.path.realpath(target)).parents if path.exists())


def clear_abandoned(target: Path) -> None:
    """Delete what processes that were killed while they wrote ``target`` left next to it.

    An old version stays as long as ``target`` does not exist. So does what another machine wrote: on a shared disk it
    is not known here whether its process is running.
    """
    name = re.compile(rf"\.{re.escape(target.name)}\.(new|old)-{_machine()}-([0-9]+)-[0-9a-f]{{8}}")
    for path in list(target.parent.iterdir()):
        found = name.fullmatch(path.name)
        if found is None or is_running(int(found[2])) or (found[1] == "old" and not target.exists()):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    """Return whether a process is running; True where the system cannot say."""
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _machine() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _hidden_sibling(target: Path, role: str) -> Path:
    return target.with_name(f".{target.name}.{role}-{_machine()}-{os.getpid()}-{secrets.token_hex(4)}")


def _replace(new: Path, target: Path) -> None:
    """Exchange the new folder and the old one; where the system cannot do that in one step, rename both, keeping the
    old one until the new one is in place.
    """
    if _exchanged(new, target):  # the caller deletes the old one, which is ``new`` now
        sync_entries(target.parent)
        return
    old = _hidden_sibling(target, "old")
    try:
        if target.exists():
            target.rename(old)
        new.rename(target)
        sync_entries(target.parent)
    finally:  # also when the user presses Ctrl-C between the two
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        elif old.exists():
            old.rename(target)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders atomically; return False if the second does not exist or the system cannot do it.

    Python has no function for it.
    """
    if os.name != "posix":
        return False
    import ctypes

    library: Any = ctypes.CDLL(None)
    if hasattr(library, "renameat2"):  # Linux; -100 is the current folder, 2 RENAME_EXCHANGE
        return bool(library.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) == 0)
    if hasattr(library, "renamex_np"):  # macOS; 2 is RENAME_SWAP
        return bool(library.renamex_np(os.fsencode(one), os.fsencode(other), 2) == 0)
    return False


def _sync_folder(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            _sync_folder(path)
        else:
            _sync(path, os.O_RDWR)
    sync_entries(folder)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _refusal_explained(target: str | Path, written: Path) -> Iterator[None]:
    """Turn an OSError of the caller's code into one line about the target, if the disk refused to write it.

    Such an error names no file, as a failed write does, or one within what is being written.
    """
    try:
        yield
    except OSError as error:
        of_another_file = error.filename is not None and not Path(str(error.filename)).is_relative_to(written)
        if error.errno not in DISK_REFUSES or of_another_file:
            raise
        raise InputError(f"cannot write {target}: {reason_of(error)}") from error
