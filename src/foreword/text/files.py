"""Finding and opening what the user named: files, folders, globs, standard input, addresses.

Finding comes first and is done at once, so that a misspelt name is told before any work begins. Each ``SourceFile``
then knows how to open itself; nobody downstream asks whether it lies on this disk or in a bucket.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from stat import S_ISDIR, S_ISREG
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from foreword.errors import ForewordError, InputError, MissingExtraError
from foreword.text.chunk import ROOM, Chunk, chunk_of

Source: TypeAlias = str | Path | Sequence[str | Path]
"""A file, a folder, a glob, ``-`` for standard input, an address such as ``s3://bucket/folder``, or several of them."""

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z0-9+.-]+)*://")

LEAST_CHUNK = 4096
"""Read even where a file should have ended: it may have grown, and some systems say 0 of files that are not empty."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file to read.

    name: what messages call it, as the user wrote it.
    size: in bytes as it is stored; None where that is not known before reading.
    open: gives the stream; leaving the context closes it, except standard input.
    troubles: what reading it may raise beside programming errors. A file system behind an address raises whatever
    its network library does.
    """

    name: str
    size: int | None
    open: Callable[[], AbstractContextManager[BinaryIO]] = field(repr=False, compare=False)
    troubles: type[Exception] = OSError


class Reader:
    """An open ``SourceFile``: reads, counts what it has read, and says in one line what goes wrong."""

    def __init__(self, file: SourceFile, stream: BinaryIO) -> None:
        self.name = file.name
        self.size = file.size
        self.stream = stream
        self.taken = 0
        self._troubles = file.troubles

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; none at the end."""
        with explained(self.name, self._troubles):
            data = self.stream.read(size)
        self.taken += len(data)
        return data

    def read_chunk(self, size: int, room: int = ROOM) -> Chunk:
        """The same as a chunk with room in front, without a copy where the stream can do that."""
        read_into = getattr(self.stream, "readinto", None)
        if read_into is None:
            return chunk_of(self.read(size), room)
        # A folder may hold a million small files: none of them should be given a whole block to lie in.
        left = size if self.size is None else max(self.size - self.taken, LEAST_CHUNK)
        buffer = np.empty(room + min(size, left), np.uint8)
        with explained(self.name, self._troubles):
            length = read_into(buffer[room:].data)
        self.taken += length
        return Chunk(buffer[: room + length], room)

    def check_all_taken(self) -> None:
        """At the end of a file that was read from front to back: it must not have ended before its size."""
        if self.size is not None and self.taken < self.size:
            raise InputError(
                f"{self.name}: became shorter while it was read: {self.taken:,} bytes, not {self.size:,} as it had"
            )


@contextmanager
def opened(file: SourceFile) -> Iterator[Reader]:
    with ExitStack() as stack:
        with explained(file.name, file.troubles):
            stream = stack.enter_context(file.open())
        yield Reader(file, stream)


def find_files(source: Source) -> list[SourceFile]:
    """What will be read, in order: sources as given, the files of a folder or glob sorted by name.

    Folders are searched to any depth; hidden files and folders are skipped. A path that exists is never taken for a
    glob, so ``notes[1].txt`` can be read.
    """
    names = names_of(source)
    if not names:
        raise InputError("nothing to read: no file was named")
    return [file for name in names for file in _find(name)]


def names_of(source: Source) -> list[str]:
    """The sources as the user wrote them."""
    return [str(name) for name in ([source] if isinstance(source, str | Path) else source)]


@contextmanager
def explained(name: str, troubles: type[Exception] = OSError) -> Iterator[None]:
    """Turn what goes wrong with a file into one line that names it."""
    try:
        yield
    except (ForewordError, MemoryError):
        raise
    except troubles as error:
        raise InputError(_explanation(name, error)) from error


def _explanation(name: str, error: Exception) -> str:
    match error:
        case FileNotFoundError():
            return f"no such file: {name}"
        case PermissionError():
            return f"no permission to read {name}"
        case OSError(strerror=str(reason)):
            return f"{name}: {reason}"
    lines = str(error).splitlines() or [type(error).__name__]
    return f"{name}: {lines[0]}"


def _find(name: str) -> list[SourceFile]:
    if name == "-":
        return [SourceFile("standard input", None, lambda: nullcontext(sys.stdin.buffer))]
    if ADDRESS.match(name):
        return _find_at_address(name)
    with explained(name):
        return _find_on_disk(name)


def _find_on_disk(name: str) -> list[SourceFile]:
    if not name or "\0" in name:
        raise InputError(f"no such file: {name!r}")
    try:
        file = _on_disk(name)
    except FileNotFoundError:
        if glob.has_magic(name):
            return _matching(name)
        raise
    return [file] if file else _in_folder(name)


def _on_disk(name: str) -> SourceFile | None:
    """The file of that name; None for a folder."""
    path = Path(name)
    status = path.stat()
    if S_ISDIR(status.st_mode):
        return None
    # A pipe or a device has no size worth the name.
    return SourceFile(name, status.st_size if S_ISREG(status.st_mode) else None, lambda: path.open("rb"))


def _matching(pattern: str) -> list[SourceFile]:
    # Path.glob takes no absolute pattern and would rewrite the names.
    found = _regular(glob.glob(pattern, recursive=True))  # noqa: PTH207
    if not found:
        raise InputError(f"no file matches {pattern}")
    return found


def _in_folder(name: str) -> list[SourceFile]:
    names: list[str] = []
    for folder, inner, files in os.walk(name, onerror=_raise):
        inner[:] = [each for each in inner if not each.startswith(".")]
        # Path would drop a leading "./".
        names += [os.path.join(folder, each) for each in files if not each.startswith(".")]  # noqa: PTH118
    found = _regular(names)
    if not found:
        raise InputError(f"{name}: no text in it (a folder without files)")
    return found


def _regular(names: list[str]) -> list[SourceFile]:
    """Files only: folders, sockets and pipes that happen to lie there are not meant."""
    found: list[SourceFile] = []
    for name in sorted(names):
        with explained(name):
            file = _on_disk(name)
        if file and file.size is not None:
            found.append(file)
    return found


def _raise(error: OSError) -> None:
    raise InputError(_explanation(str(error.filename), error)) from error


def _find_at_address(address: str) -> list[SourceFile]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError("fsspec", "data", f"reading {address}") from None
    with explained(address, Exception):
        system, path = url_to_fs(address)
        found = _infos_at(system, path, address)
    if not found:
        raise InputError(f"{address}: no file there")
    return [
        SourceFile(name, info.get("size"), partial(system.open, info["name"], "rb"), Exception)
        for name, info in sorted(found.items())
    ]


def _infos_at(system: Any, path: str, address: str) -> dict[str, Mapping[str, Any]]:
    """What fsspec knows of each file there, by the name that messages will use."""
    try:
        info = system.info(path)
    except FileNotFoundError:
        if not glob.has_magic(path):
            raise
        matches = system.glob(path, detail=True)
        return {system.unstrip_protocol(each): info for each, info in matches.items() if info["type"] == "file"}
    if info["type"] != "directory":
        return {address: info}
    inside = {str(PurePosixPath(each).relative_to(path)): info for each, info in system.find(path, detail=True).items()}
    return {f"{address.rstrip('/')}/{each}": info for each, info in inside.items() if not _hidden(each)}


def _hidden(path: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(path).parts)
