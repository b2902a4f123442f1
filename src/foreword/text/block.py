"""Blocks of documents in one buffer: what readers pass to tokenizers.

The fast path never holds text as a list of Python strings. A reader fills a buffer with UTF-8 and records where each
document starts and stops; tokenizers scan that buffer. A document longer than a block comes in pieces: all but its last
piece end a block that is marked ``open``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

import numpy as np

from foreword.arrays import Bytes, Longs, frozen
from foreword.checks import check_not_string, check_text

BLOCK_BYTES = 4 << 20
"""How much text a reader gathers before it emits a block: large enough that Python's overhead vanishes, small enough
that a dozen blocks in flight take little memory."""


@dataclass(frozen=True, slots=True)
class Block:
    """Documents as UTF-8 in one buffer.

    data: uint8 (bytes,), read-only, valid UTF-8 between each start and stop; what lies outside is never read.
    starts, stops: int64 (documents,), rising; document i is ``data[starts[i]:stops[i]]``.
    open: the first document of the next block continues the last document of this one.
    """

    data: Bytes
    starts: Longs
    stops: Longs
    open: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", frozen(self.data))

    def __len__(self) -> int:
        return len(self.starts)

    def text_bytes(self) -> int:
        """Return the number of bytes in the documents."""
        return int((self.stops - self.starts).sum())

    def strings(self) -> Iterator[str]:
        """Yield each document (or piece of one) as a string."""
        view = np.ascontiguousarray(self.data).data
        for start, stop in zip(self.starts.tolist(), self.stops.tolist(), strict=True):
            yield str(view[start:stop], "utf-8")

    @classmethod
    def from_texts(cls, texts: Sequence[str | bytes], *, open: bool = False) -> Self:
        """Pack texts, one document each, empty ones included."""
        pieces = [text.encode() if isinstance(text, str) else text for text in texts]
        try:
            borders = np.array([*accumulate(map(len, pieces), initial=0)], np.int64)
            joined = b"".join(pieces)
        except TypeError:
            for text in texts:
                check_text(text)
            raise
        return cls(np.frombuffer(joined, np.uint8), borders[:-1], borders[1:], open)


def blocks_of(texts: Iterable[str | bytes], size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Gather texts, one document each, into blocks of about ``size`` bytes."""
    batch: list[str | bytes] = []
    gathered = 0
    for text in check_not_string(texts):
        check_text(text)
        batch.append(text)
        gathered += len(text)
        if gathered >= size:
            yield Block.from_texts(batch)
            batch, gathered = [], 0
    if batch:
        yield Block.from_texts(batch)
