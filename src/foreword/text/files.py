"""Find and open what the user named: files, folders, globs, standard input, addresses.

Finding comes first and is done at once, so that a misspelt name is reported before any work begins. Each
``SourceFile`` then knows how to open itself; no later stage asks whether it is on this disk or in a bucket.

Files are read in chunks with free bytes in front. Where a chunk ends is chance: it may cut a character or a line, and
the part before the cut belongs in front of the next chunk, where it is put without moving anything else.
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
from importlib.util import find_spec
from pathlib import Path, PurePath, PurePosixPath
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast

import numpy as np

from foreword.arrays import Bytes
from foreword.errors import ForewordError, InputError, MissingExtraError, SettingError, reason_of

if TYPE_CHECKING:
    from io import BufferedReader

Source: TypeAlias = str | Path | Sequence[str | Path]
"""A file, a folder, a glob, ``-`` for standard input, an address such as ``s3://bucket/folder``, or several of them."""

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z0-9+.-]+)*://")

STANDARD_INPUT = "standard input"
"""The name of ``-`` in messages."""

LEAST_CHUNK = 4096
"""Bytes asked for even where a file should have ended: it may have grown, and some systems report 0 for files that are
not empty."""


HEADROOM = 64 << 10
"""Free bytes in front of a chunk, more than nearly every line has. Joining by a copy instead slowed reading by lines
from 1.1 to 0.7 GB/s."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The bytes ``buffer[start:]``. The bytes before ``start`` are free to be overwritten."""

    buffer: Bytes
    start: int

    def __len__(self) -> int:
        return len(self.buffer) - self.start

    @property
    def data(self) -> Bytes:
        """Return the bytes of the chunk."""
        return self.buffer[self.start :]

    def after(self, rest: Bytes) -> Chunk:
        """Return the chunk with ``rest`` in front of it. The old chunk must not be used any more."""
        start = self.start - len(rest)
        if start < 0:
            return Chunk(np.concatenate((rest, self.data)), 0)
        self.buffer[start : self.start] = rest
        return Chunk(self.buffer, start)

    def since(self, length: int) -> Chunk:
        """Return all but the first ``length`` bytes."""
        return Chunk(self.buffer, self.start + length)

    def until(self, length: int) -> Chunk:
        """Return the first ``length`` bytes."""
        return Chunk(self.buffer[: self.start + length], self.start)


def chunk_of(data: bytes, headroom: int = HEADROOM) -> Chunk:
    """Copy ``data`` into a chunk."""
    buffer = np.empty(headroom + len(data), np.uint8)
    buffer[headroom:] = np.frombuffer(data, np.uint8)
    return Chunk(buffer, headroom)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file to read.

    name: as the user wrote it, for messages.
    size: in bytes as stored; None where it is not known before reading.
    open: returns the stream; leaving the context closes it, except standard input.
    troubles: what reading may raise besides programming errors. A file system behind an address raises whatever its
    network library does.
    """

    name: str
    size: int | None
    open: Callable[[], AbstractContextManager[BinaryIO]] = field(repr=False, compare=False)
    troubles: type[Exception] = OSError


class Reader:
    """An open ``SourceFile``: reads, counts the bytes read, and reports errors in one line that names the file."""

    def __init__(self, file: SourceFile, stream: BinaryIO) -> None:
        self.name = file.name
        self.size = file.size
        self.stream = stream
        self.taken = 0
        self.troubles = file.troubles

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes; none at the end of the file."""
        with read_errors(self.name, self.troubles):
            data = self.stream.read(size)
        self.taken += len(data)
        return data

    def read_chunk(self, size: int, headroom: int = HEADROOM) -> Chunk:
        """Read up to ``size`` bytes as a chunk, without a copy where the stream has ``readinto``."""
        read_into = getattr(self.stream, "readinto", None)
        if read_into is None:
            return chunk_of(self.read(size), headroom)
        # A folder may hold a million small files: none of them should be given the buffer of a whole block.
        left = size if self.size is None else max(self.size - self.taken, LEAST_CHUNK)
        buffer = np.empty(headroom + min(size, left), np.uint8)
        with read_errors(self.name, self.troubles):
            length = read_into(buffer[headroom:].data)
        self.taken += length
        return Chunk(buffer[: headroom + length], headroom)

    def check_all_taken(self) -> None:
        """Raise an error if the file, read from front to back, ended before its size."""
        if self.size is not None and self.taken < self.size:
            raise InputError(
                f"{self.name}: became shorter while it was read: {self.taken:,} bytes, not {self.size:,} as it had"
            )


@contextmanager
def opened(file: SourceFile) -> Iterator[Reader]:
    """Open a file for reading."""
    with ExitStack() as stack:
        with read_errors(file.name, file.troubles):
            stream = stack.enter_context(file.open())
        yield Reader(file, stream)


def find_files(source: Source, *, prompt: bool = False) -> list[SourceFile]:
    """Return the files to read, in order: sources as given, the files of a folder or glob sorted by name.

    Folders are searched to any depth; hidden files and folders are skipped. A path that exists is never taken for a
    glob, so ``notes[1].txt`` can be read. prompt: whether standard input is read as soon as a line is there.
    """
    names = names_of(source)
    if not names:
        raise InputError("nothing to read: no file was named")
    found = [file for name in names for file in _find(name, prompt)]
    for file in found:
        check_packages(file.name)
    return found


PACKAGES = {".zst": "zstandard", ".zstd": "zstandard", ".parquet": "pyarrow"}
"""Packages that files need, by the end of their names."""


def check_packages(name: str) -> None:
    """Raise a MissingExtraError, before any work begins, if a file by its name needs a package that is missing."""
    package = PACKAGES.get(PurePath(name).suffix.lower())
    if package is not None and find_spec(package) is None:
        raise MissingExtraError(package, "data", f"reading {name}")


def names_of(source: Source) -> list[str]:
    """Return the sources as the user wrote them."""
    return [str(name) for name in ([source] if isinstance(source, str | Path) else source)]


class PromptStream:
    """Standard input that returns what is there, instead of waiting until all that was asked for has arrived."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes, at least one unless the stream has ended."""
        return self._stream.read1(size)

    def peek(self) -> bytes:
        """Return the first bytes that are there without consuming them."""
        return self._stream.peek(1) if hasattr(self._stream, "peek") else b""


SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text: str) -> int:
    """Return the bytes that ``512M``, ``1.5G`` or ``16MiB`` stands for."""
    short = text.strip().upper().removesuffix("B").removesuffix("I")
    number = short.rstrip("KMGT")
    try:
        return int(float(number) * SIZE_UNITS[short[len(number) :]])
    except (ValueError, KeyError, OverflowError):
        raise SettingError(f"{text!r} is not a size such as 512M or 2G") from None


@contextmanager
def read_errors(name: str, troubles: type[Exception] = OSError) -> Iterator[None]:
    """Turn an error of a file into an ``InputError`` of one line that names the file."""
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
    return f"{name}: {reason_of(error)}"


def _find(name: str, prompt: bool) -> list[SourceFile]:
    if name == "-":
        stdin: Any = PromptStream(cast("BufferedReader", sys.stdin.buffer)) if prompt else sys.stdin.buffer
        return [SourceFile(STANDARD_INPUT, None, lambda: nullcontext(stdin))]
    if ADDRESS.match(name):
        return _find_at_address(name)
    with read_errors(name):
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
    """Return the file of that name; None for a folder."""
    path = Path(name)
    status = path.stat()
    if S_ISDIR(status.st_mode):
        return None
    # The size of a pipe or a device means nothing.
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
    """Return the regular files among the names: folders, sockets and pipes are skipped."""
    found: list[SourceFile] = []
    for name in sorted(names):
        with read_errors(name):
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
    with read_errors(address, Exception):
        system, path = url_to_fs(address)
        found = _infos_at(system, path, address)
    if not found:
        raise InputError(f"{address}: no file there")
    return [
        SourceFile(name, info.get("size"), partial(system.open, info["name"], "rb"), Exception)
        for name, info in sorted(found.items())
    ]


def _infos_at(system: Any, path: str, address: str) -> dict[str, Mapping[str, Any]]:
    """Return what fsspec knows of each file there, by the name that messages will use."""
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
