"""A text in stretches that tasks read: whole files, or so many bytes of a long one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from foreword.errors import InputError
from foreword.filtering.shards import Window, is_compressed, line_start
from foreword.text.block import Block
from foreword.text.files import Reader, SourceFile, find_files, opened
from foreword.text.sources import Reading, blocks_from, format_by_name

STRETCH_BYTES = 64 << 20

_NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some documents: those of a file, or its lines that begin from byte ``start`` to ``stop``.

    number: which of all stretches it is, in the order of the text.
    """

    number: int
    name: str
    start: int = 0
    stop: int | None = None


def stretches_of(names: Sequence[str], reading: Reading, size: int = STRETCH_BYTES) -> list[Stretch]:
    """The text in its order. Long plain files whose documents are lines are cut, all others are whole."""
    cut: list[tuple[str, int, int | None]] = []
    for file in find_files(names):
        if file.name == "standard input":
            raise InputError("standard input cannot be read by several: put it into a file")
        if not _is_lines(file, reading) or (file.size or 0) <= size:
            cut.append((file.name, 0, None))
            continue
        ends = [*range(0, file.size or 0, size), file.size or 0]
        cut += [(file.name, *pair) for pair in itertools.pairwise(ends)]
    return [Stretch(number, *each) for number, each in enumerate(cut)]


def _is_lines(file: SourceFile, reading: Reading) -> bool:
    format = reading.format or format_by_name(file.name)
    by_line = format == "jsonl" or (format == "text" and reading.document == "line")
    return by_line and Path(file.name).is_file() and not is_compressed(file)


def read_stretch(stretch: Stretch, reading: Reading) -> Iterator[Block]:
    """Its documents. What is wrong with a stretch is told as a reader of the whole file would."""
    (file,) = find_files(stretch.name)
    with opened(file) as reader:
        if stretch.stop is None:
            yield from blocks_from(reader, reading)
            return
        start, stop = (line_start(reader, place, _NO_LIMIT) for place in (stretch.start, stretch.stop))
        # The end of the line before comes too: a blank line is no document, and what looks like the mark of a byte
        # order or of a compressed file is one only where a file begins.
        window = cast(BinaryIO, Window(reader.stream, max(0, start - 1), stop))
        part = SourceFile(stretch.name, None, lambda: nullcontext(window), file.troubles)
        try:
            yield from blocks_from(Reader(part, window), reading)
        except InputError:
            if stretch.start == 0:
                raise
            for _ in _whole(file, reading):  # lines and bytes are counted from the beginning of a file
                pass
            raise


def _whole(file: SourceFile, reading: Reading) -> Iterator[Block]:
    with opened(file) as reader:
        yield from blocks_from(reader, reading)
