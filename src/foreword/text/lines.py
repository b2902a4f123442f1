"""Whole lines of a file with their numbers: for formats in which a line is a row, and an error has to name it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from foreword.arrays import Bools, Bytes, Longs
from foreword.text.chunk import Chunk
from foreword.text.documents import line_spans
from foreword.text.whitespace import blank

_NEWLINE = 10


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of a file, without their ends.

    data: uint8 (bytes,); starts, stops: int64 (lines,), where each lies in it; numbers: int64 (lines,), from 1.
    """

    data: Bytes
    starts: Longs
    stops: Longs
    numbers: Longs

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, rows: Bools | Longs | slice) -> Lines:
        return Lines(self.data, self.starts[rows], self.stops[rows], self.numbers[rows])

    def __iter__(self) -> Iterator[bytes]:
        view = np.ascontiguousarray(self.data).data
        for start, stop in zip(self.starts.tolist(), self.stops.tolist(), strict=True):
            yield bytes(view[start:stop])

    def without_blank(self) -> Lines:
        return self[~blank(self.data, self.starts, self.stops)]


def whole_lines(chunks: Iterable[Chunk]) -> Iterator[Lines]:
    """The lines of chunks of text, many at a time; one longer than a chunk is joined when its end has come."""
    held: list[Bytes] = []
    number = 1
    for chunk in chunks:
        if not (chunk.data == _NEWLINE).any():
            held.append(chunk.data)
            continue
        data = (chunk.after(np.concatenate(held)) if held else chunk).data
        starts, stops, after = line_spans(data, False)
        yield Lines(data, starts, stops, np.arange(number, number + len(starts)))
        number += len(starts)
        held = [data[after:]]
    data = np.concatenate(held) if held else np.empty(0, np.uint8)
    if len(data):
        starts, stops, _ = line_spans(data, True)
        yield Lines(data, starts, stops, np.arange(number, number + len(starts)))
