"""Segments of files, which several workers read: whole files, or the lines of a long one between two offsets.

A line belongs to the segment in which it begins, so that the segments of a file hold each of its lines once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from foreword.errors import InputError
from foreword.text.block import Block
from foreword.text.compression import is_compressed
from foreword.text.files import STANDARD_INPUT, Reader, SourceFile, find_files, opened
from foreword.text.sources import Reading, blocks_from

SEGMENT_BYTES = 64 << 20

NO_LIMIT = 1 << 62
"""For lines of any length."""


@dataclass(frozen=True, slots=True)
class FileSegment:
    """The lines of a file that begin from byte ``start`` to ``stop``; ``stop`` None is the whole file.

    number: the position among all segments of the text.
    """

    number: int
    name: str
    start: int = 0
    stop: int | None = None


def segments_of(names: Sequence[str], reading: Reading, size: int = SEGMENT_BYTES) -> list[FileSegment]:
    """Cut a text into segments, in its order. Long plain files whose documents are lines are cut, others are whole."""
    found: list[tuple[str, int, int | None]] = []
    for file in find_files(names):
        if file.name == STANDARD_INPUT:
            raise InputError("standard input cannot be read by several workers: put it into a file")
        by_line = reading.format_of(file.name) == "jsonl" or (
            reading.format_of(file.name) == "text" and reading.document == "line"
        )
        cuts = cut_points(file, size) if by_line else [0]
        found += [(file.name, *pair) for pair in itertools.pairwise(cuts)] or [(file.name, 0, None)]
    return [FileSegment(number, *each) for number, each in enumerate(found)]


def cut_points(file: SourceFile, size: int) -> list[int]:
    """Return the offsets at which a file of lines is cut, its end included; 0 alone if it must be read whole."""
    total = file.size or 0
    if total <= size or not Path(file.name).is_file() or _is_compressed(file):
        return [0]
    return [*range(0, total, size), total]


def _is_compressed(file: SourceFile) -> bool:
    with opened(file) as reader:
        return is_compressed(reader.read(16), file.name)


def read_segment(segment: FileSegment, reading: Reading) -> Iterator[Block]:
    """Yield the documents of a segment. Errors name the line and byte of the whole file."""
    (file,) = find_files(segment.name)
    with opened(file) as reader:
        if segment.stop is None:
            yield from blocks_from(reader, reading)
            return
        # The end of the line before is read too: a blank line is no document, and what looks like a byte order mark
        # or the mark of a compressed file is one only where a file begins.
        part, _ = lines_between(reader, segment.start, segment.stop, before=1)
        try:
            yield from blocks_from(part, reading)
        except InputError:
            if segment.start == 0:
                raise
            with opened(file) as whole:  # lines and bytes are counted from the beginning of a file
                for _ in blocks_from(whole, reading):
                    pass
            raise


@contextmanager
def segment_opened(name: str, start: int, stop: int, longest: int) -> Iterator[tuple[Reader, int]]:
    """Open the lines that begin from ``start`` to ``stop``, and give the offset of the first; ``stop`` 0 is all."""
    (file,) = find_files(name)
    with opened(file) as reader:
        yield lines_between(reader, start, stop, longest) if stop else (reader, 0)


def lines_between(
    reader: Reader, start: int, stop: int, longest: int = NO_LIMIT, before: int = 0
) -> tuple[Reader, int]:
    """Return a reader of the lines that begin from ``start`` to ``stop``, and where they begin.

    before: how many bytes in front of them are read too.
    """
    first, last = (line_start(reader, offset, longest) for offset in (start, stop))
    first = max(0, first - before)
    window = cast(BinaryIO, _Window(reader.stream, first, last))
    part = SourceFile(reader.name, None if before else last - first, lambda: nullcontext(window), reader.troubles)
    return Reader(part, window), first


def count_lines_before(name: str, start: int, longest: int) -> int:
    """Count the lines of a file before the first that begins at ``start`` or later."""
    (file,) = find_files(name)
    with opened(file) as reader:
        left, lines = line_start(reader, start, longest), 0
        reader.stream.seek(0)
        while left and (data := reader.read(min(left, 1 << 20))):
            lines += data.count(b"\n")
            left -= len(data)
    return lines


def line_start(reader: Reader, offset: int, longest: int) -> int:
    """Return where the first line begins that begins at ``offset`` or later; the end of the file if there is none."""
    if offset == 0:
        return 0
    reader.stream.seek(offset - 1)
    at = offset - 1
    while data := reader.read(64 << 10):
        found = data.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(data)
        if at - offset > longest:
            raise InputError(
                f"{reader.name}: the line around byte {offset} has more than {longest:,} bytes; --longest allows more"
            )
    return at


class _Window:
    """A range of an open file as a stream of its own."""

    def __init__(self, stream: BinaryIO, start: int, stop: int) -> None:
        self._stream, self._left = stream, max(0, stop - start)
        stream.seek(start)

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes."""
        data = self._stream.read(min(size, self._left))
        self._left -= len(data)
        return data

    def readinto(self, into: memoryview) -> int:
        """Fill a buffer, and return how many bytes were read."""
        length: int = self._stream.readinto(into[: self._left])  # type: ignore[attr-defined]
        self._left -= length
        return length
