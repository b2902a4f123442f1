"""A stretch of a file with room in front.

Where a chunk ends is chance: a character or a line may be broken off there, and its beginning has to come before the
next chunk. Each chunk is read behind some free bytes, so that this beginning is put there and nothing else is moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foreword.arrays import Bytes

ROOM = 64 << 10
"""Longer than nearly every line. Joining by a copy instead brought reading by lines from 1.1 GB/s down to 0.7."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The bytes ``buffer[start:]``. What is before ``start`` is free for whoever holds the chunk."""

    buffer: Bytes
    start: int

    def __len__(self) -> int:
        return len(self.buffer) - self.start

    @property
    def data(self) -> Bytes:
        return self.buffer[self.start :]

    def after(self, rest: Bytes) -> Chunk:
        """The chunk with ``rest`` in front of it. The old one must not be used any more."""
        start = self.start - len(rest)
        if start < 0:
            return Chunk(np.concatenate((rest, self.data)), 0)
        self.buffer[start : self.start] = rest
        return Chunk(self.buffer, start)

    def since(self, length: int) -> Chunk:
        """All but the first ``length`` bytes."""
        return Chunk(self.buffer, self.start + length)

    def until(self, length: int) -> Chunk:
        """The first ``length`` bytes."""
        return Chunk(self.buffer[: self.start + length], self.start)


def chunk_of(data: bytes, room: int = ROOM) -> Chunk:
    """A chunk that holds a copy of ``data``."""
    buffer = np.empty(room + len(data), np.uint8)
    buffer[room:] = np.frombuffer(data, np.uint8)
    return Chunk(buffer, room)
