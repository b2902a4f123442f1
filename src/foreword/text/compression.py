"""Compressed files, recognised by their first bytes: the content decides, and the name must not contradict it.

Output is asked for in bounded amounts, since a few kilobytes of bzip2 can hold gigabytes of text. Members that were
concatenated (``cat a.gz b.gz``) are read through in all four formats.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

import numpy as np

from foreword.errors import InputError, MissingExtraError
from foreword.text.files import Chunk, PromptStream, Reader, chunk_of

HEAD_BYTES = 10
"""Enough for the longest mark, bzip2's."""

GZIP_MARK = b"\x1f\x8b\x08"
XZ_MARK = b"\xfd7zXZ\0"
BZIP2_MARK = b"BZh"
ZSTANDARD_MARK = b"\x28\xb5\x2f\xfd"

ZSTANDARD_BITE = 512
"""Compressed bytes given to Zstandard at a time. Its decompressor takes no limit on output, but four bytes yield at
most one block of 128 KiB, so a bite yields at most 16 MiB. Measured: 0.81 GB/s; bites of 64 KiB give 0.92."""


XZ_MEMORY, ZSTANDARD_WINDOW = 192 << 20, 128 << 20
"""Most memory of a decompressor. The formats allow windows of gigabytes; ``xz -9`` has one of 64 MB, and 128 MB is what
``zstd`` opens without ``--long``."""


class Decompressor(Protocol):
    """What decompresses one member of a file, with the interface of ``bz2.BZ2Decompressor``."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Decompress at most about ``max_length`` bytes."""

    @property
    def eof(self) -> bool:
        """Return whether the member has ended."""

    @property
    def needs_input(self) -> bool:
        """Return whether more can be decompressed only with more input."""

    @property
    def unused_data(self) -> bytes:
        """Return the input after the end of the member."""


class GzipDecompressor:
    """zlib's decompressor, which buffers the input that it could not consume yet."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)  # 31: a gzip header, the largest window
        self._filled = False

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Decompress at most ``max_length`` bytes."""
        text = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self._filled = len(text) == max_length  # then more may wait inside, though all input is consumed
        return text

    @property
    def eof(self) -> bool:
        """Whether the end of the stream was reached."""
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        """Whether more output needs more input."""
        return not self._filled and not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        """Bytes after the end of the stream."""
        return self._inner.unused_data


def _xz_decompressor() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=XZ_MEMORY)


class ZstandardDecompressor:
    """Zstandard, a few bytes at a time. Its stream reader takes a truncated file for a complete one."""

    def __init__(self) -> None:
        import zstandard

        self._inner = zstandard.ZstdDecompressor(max_window_size=ZSTANDARD_WINDOW).decompressobj()
        self._waiting = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Decompress at most ``max_length`` bytes."""
        waiting, at = self._waiting + data, 0
        pieces: list[bytes] = []
        size = 0
        while at < len(waiting) and size < max_length and not self._inner.eof:
            pieces.append(self._inner.decompress(waiting[at : at + ZSTANDARD_BITE]))
            size += len(pieces[-1])
            at += ZSTANDARD_BITE
        self._waiting = waiting[at:]
        return b"".join(pieces)

    @property
    def eof(self) -> bool:
        """Whether the end of the stream was reached."""
        return bool(self._inner.eof)

    @property
    def needs_input(self) -> bool:
        """Whether more output needs more input."""
        return not self._waiting

    @property
    def unused_data(self) -> bytes:
        """Bytes after the end of the stream."""
        return bytes(self._inner.unused_data) + self._waiting


@dataclass(frozen=True, slots=True)
class Compression:
    """A format: its name with an article, the suffix and the first bytes of its files, and a decompressor."""

    title: str
    suffix: str
    mark: bytes
    marked: Callable[[bytes], bool]
    start: Callable[[], Decompressor]


def _bzip2_marked(head: bytes) -> bool:
    # "BZh9" alone might begin a text: the number that opens a block, or the one that ends an empty file, must follow.
    return head.startswith(BZIP2_MARK) and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90")


def _zstandard_marked(head: bytes) -> bool:
    # Parallel compressors begin with a frame to be skipped.
    return head.startswith(ZSTANDARD_MARK) or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5)


COMPRESSIONS = (
    Compression("a gzip", ".gz", GZIP_MARK, lambda head: head.startswith(GZIP_MARK), GzipDecompressor),
    Compression("an xz", ".xz", XZ_MARK, lambda head: head.startswith(XZ_MARK), _xz_decompressor),
    Compression("a bzip2", ".bz2", BZIP2_MARK, _bzip2_marked, bz2.BZ2Decompressor),
    Compression("a Zstandard", ".zst", ZSTANDARD_MARK, _zstandard_marked, ZstandardDecompressor),
)


def without_suffix(name: str) -> str:
    """Drop the suffix of a compression: ``corpus.jsonl.gz`` becomes ``corpus.jsonl``."""
    named = _by_suffix(name)
    return name[: -len(named.suffix)] if named else name


def is_compressed(head: bytes, name: str = "") -> bool:
    """Return whether a file is compressed, by its first bytes or its name."""
    return any(each.marked(head) for each in COMPRESSIONS) or _by_suffix(name) is not None


def decompressed(reader: Reader, size: int) -> Iterator[Chunk]:
    """Yield the content of a file, decompressed, in chunks of about ``size`` bytes."""
    if isinstance(reader.stream, PromptStream) and not is_compressed(reader.stream.peek()):
        return _as_it_comes(reader, size)
    head = _read_head(reader)
    compression = next((each for each in COMPRESSIONS if each.marked(head)), None)
    named = _by_suffix(reader.name)
    if named and named is not compression:
        if len(head) < HEAD_BYTES and (named.mark.startswith(head) or head.startswith(named.mark)):
            raise _truncated(reader.name)
        raise InputError(f"{reader.name} is not {named.title} file")
    if not compression:
        return _plain(reader, head, size)
    return (chunk_of(text) for text in _decompress(_pieces(reader, head, size), compression, reader.name, size))


def _by_suffix(name: str) -> Compression | None:
    suffix = PurePath(name).suffix.lower()
    return next((each for each in COMPRESSIONS if each.suffix == suffix), None)


def _read_head(reader: Reader) -> bytes:
    head = b""
    while len(head) < HEAD_BYTES and (more := reader.read(HEAD_BYTES - len(head))):
        head += more
    return head


def _as_it_comes(reader: Reader, size: int) -> Iterator[Chunk]:
    """Yield chunks without waiting for the first ten bytes: the first line, whose answer is awaited, may be shorter."""
    while len(chunk := reader.read_chunk(size)):
        yield chunk


def _plain(reader: Reader, head: bytes, size: int) -> Iterator[Chunk]:
    chunk = reader.read_chunk(size, headroom=len(head)).after(np.frombuffer(head, np.uint8))
    while len(chunk):
        yield chunk
        chunk = reader.read_chunk(size)
    reader.check_all_taken()


def _pieces(reader: Reader, head: bytes, size: int) -> Iterator[bytes]:
    yield head
    while piece := reader.read(size):
        yield piece
    reader.check_all_taken()


def _decompress(pieces: Iterator[bytes], compression: Compression, name: str, size: int) -> Iterator[bytes]:
    decompressor: Decompressor | None = None
    for piece in pieces:
        data = piece
        while True:
            if decompressor is None:
                data = data.lstrip(b"\0")  # tapes and xz pad with zeros between and after members
                if not data:
                    break
                decompressor = _start(compression, name)
            try:
                text = decompressor.decompress(data, size)
            except MemoryError:
                raise
            except Exception as error:  # each library raises its own, and Zstandard may not be installed
                raise _unreadable(name, error) from error
            if text:
                yield text
            data = b""
            if decompressor.eof:
                data, decompressor = decompressor.unused_data, None
            elif decompressor.needs_input:
                break
    if decompressor is not None:
        raise _truncated(name)


def _start(compression: Compression, name: str) -> Decompressor:
    try:
        return compression.start()
    except ImportError:
        raise MissingExtraError("zstandard", "data", f"reading {name}") from None


def _unreadable(name: str, error: Exception) -> InputError:
    # Neither library has an error code for Python.
    if "limit exceeded" in str(error) or "too much memory" in str(error):
        most = (XZ_MEMORY if isinstance(error, lzma.LZMAError) else ZSTANDARD_WINDOW) >> 20
        return InputError(f"{name}: decompressing it takes more than {most} MB of memory: compress it with less")
    return InputError(f"{name}: corrupt data ({error})")


def _truncated(name: str) -> InputError:
    return InputError(f"{name}: the file is truncated")
