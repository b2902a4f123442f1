"""What is written: plain or compressed as the input is, the same bytes every time, and told in one line if it fails."""

from __future__ import annotations

import bz2
import lzma
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from foreword.errors import InputError, MissingExtraError


class WriteError(InputError):
    """The disk refuses: no fault of a shard, so that nothing is gained by leaving it out."""


class Compressor(Protocol):
    def compress(self, data: Any, /) -> bytes: ...
    def flush(self) -> bytes: ...


def compressor_for(name: str) -> Compressor | None:
    """By the end of the name, which must not contradict the content; None for a plain file."""
    match name.lower().rpartition(".")[2]:
        case "gz":
            return zlib.compressobj(6, zlib.DEFLATED, 31)  # 31: a gzip header, without a name and a time
        case "bz2":
            return bz2.BZ2Compressor()
        case "xz":
            return lzma.LZMACompressor()
        case "zst":
            try:
                import zstandard
            except ImportError:
                raise MissingExtraError("zstandard", "data", f"writing {name}") from None
            return zstandard.ZstdCompressor().compressobj()
    return None


class Output:
    """A file that is being written; an error of the disk names what it should have become."""

    def __init__(self, stream: BinaryIO, name: str, compressor: Compressor | None) -> None:
        self._stream, self._compressor, self.name = stream, compressor, name

    def write(self, data: Any) -> None:
        self._stream.write(data if self._compressor is None else self._compressor.compress(data))

    def finish(self) -> None:
        if self._compressor is not None:
            self._stream.write(self._compressor.flush())


@contextmanager
def written(path: Path, name: str) -> Iterator[BinaryIO]:
    """Write ``path`` by way of a sibling: it is there whole and on the disk, or not at all. name: for messages."""
    # A name of its own: on a cluster a task may be done again elsewhere while the first one, cut off, still writes.
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    with telling(name):
        try:
            with new.open("wb", buffering=1 << 20) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)


@contextmanager
def telling(name: str) -> Iterator[None]:
    """An OSError as one line about what was to be written. Readers tell theirs themselves."""
    try:
        yield
    except OSError as error:
        raise WriteError(f"cannot write {name}: {error.strerror or error}") from error


def sync_folder(folder: Path) -> None:
    """Put what a folder lists, which a rename has changed, on the disk."""
    if os.name != "nt":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def joined(parts: list[Path], into: BinaryIO) -> None:
    """Copy files one after another, by the kernel where it can."""
    into.flush()
    for part in parts:
        with part.open("rb") as source:
            left = os.fstat(source.fileno()).st_size
            while left:
                left -= _copied(source.fileno(), into.fileno(), left)


def _copied(source: int, into: int, left: int) -> int:
    if hasattr(os, "sendfile"):
        return os.sendfile(into, source, None, min(left, 1 << 30))
    data = os.read(source, 1 << 20)
    os.write(into, data)
    return len(data)
