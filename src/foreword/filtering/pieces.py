"""Parts of blocks: documents on one line, in pieces of limited length, in batches of limited size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from foreword.arrays import Bools, Bytes, Longs
from foreword.text.block import Block
from foreword.text.unicode import IS_ASCII_WHITE, character_start


def one_line(texts: Block) -> Block:
    """Return the same texts, each on one line, as fastText reads them."""
    from foreword.text.kernels import on_one_line

    if not len(texts):
        return texts
    first, last = int(texts.starts[0]), int(texts.stops.max())
    data = texts.data[first:last].copy()
    on_one_line(data)
    return Block(data, texts.starts - first, texts.stops - first)


def cut(texts: Block, limit: int) -> tuple[Block, Longs | None]:
    """Cut documents longer than ``limit`` bytes; return the pieces and the document of each, None if none was cut."""
    if not len(texts) or int((texts.stops - texts.starts).max()) <= limit:
        return texts, None
    pieces: list[tuple[int, int, int]] = []
    for owner, (start, stop) in enumerate(zip(texts.starts.tolist(), texts.stops.tolist(), strict=True)):
        while stop - start > limit:
            end = _cut_before(texts.data, start, start + limit)
            pieces.append((start, end, owner))
            start = end
        pieces.append((start, stop, owner))
    starts, stops, owners = np.array(pieces, np.int64).T.copy()
    return Block(texts.data, starts, stops), owners


def _cut_before(data: Bytes, start: int, stop: int) -> int:
    """Return the offset after the last ASCII white space, or before the last character where there is none."""
    white = np.flatnonzero(IS_ASCII_WHITE[data[start:stop]])
    if len(white):
        return start + int(white[-1]) + 1
    end = character_start(data, stop)
    return end if end > start else stop


def batches_of(texts: Block, size: int) -> Iterator[Block]:
    """Yield consecutive documents of about ``size`` bytes together; at least one block, even if it is empty."""
    ends = np.cumsum(texts.stops - texts.starts)
    first = 0
    while True:
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + size, "right")))
        yield some(texts, slice(first, last))
        first = last
        if first >= len(texts):
            return


def some(texts: Block, which: slice | Bools) -> Block:
    """Return some of the documents."""
    return Block(texts.data, texts.starts[which], texts.stops[which])
