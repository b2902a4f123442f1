"""Encoders of a tokenizer that several threads share: each has buffers of its own and serves one block at a time."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import ClassVar, Generic, TypeVar

import numpy as np

from foreword.arrays import Ints, Longs
from foreword.text.block import Block
from foreword.tokens.corpus import Encoded, EncodesBlocks
from foreword.tokens.strings import BATCH, empty_rows, longer, rehash

E = TypeVar("E")


class EncoderPool(EncodesBlocks, Generic[E]):
    """A tokenizer with encoders that are reused. CACHED: names of attributes that are derived from the learnt ones."""

    CACHED: ClassVar[tuple[str, ...]] = ()
    _encoders: SimpleQueue[E]

    def new_encoder(self, block: Block) -> E:
        """Make an encoder; block: the first that it will encode."""
        raise NotImplementedError

    def take_encoder(self, block: Block) -> E:
        """Return an encoder that no other thread is using; ``give_back`` it afterwards."""
        try:
            return self._encoders.get_nowait()
        except Empty:
            return self.new_encoder(block)

    def give_back(self, encoder: E) -> None:
        """Make an encoder available to other threads."""
        self._encoders.put(encoder)

    def drop_derived(self) -> None:
        """Drop the encoders and all that is derived from the learnt attributes, which have changed."""
        self._encoders = SimpleQueue()
        for name in self.CACHED:
            self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, object]:
        """Return the state for a copy in another process, which makes encoders of its own."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_encoders", *self.CACHED)}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._encoders = SimpleQueue()


class CachingEncoder:
    """The encoder of one thread: a cache of encoded strings, and buffers.

    capacity: strings that the cache has space for at first; reserved: bytes of them beyond 16 each. The table of
    strings is that of ``strings.py``; ``memo`` holds their ids, ``records`` where those of a string are.
    LARGEST: strings cached at most. GROWTH: factor by which a full cache grows. RECORD, IDS: numbers of ``records`` and
    ids of ``memo`` for each string.
    """

    LARGEST: ClassVar[int] = 1 << 20
    GROWTH: ClassVar[int] = 2
    RECORD: ClassVar[int] = 1
    IDS: ClassVar[int] = 8

    def __init__(self, capacity: int, reserved: int = 0) -> None:
        self.capacity, self.reserved = capacity, reserved
        self._forget()
        self._scratch(256)
        self.batch, self.keys = np.empty(BATCH * 4, np.int64), np.empty(BATCH * 4, np.uint64)

    def _scratch(self, length: int) -> None:
        """Allocate the buffers for strings of this length."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Empty the cache."""
        capacity = self.capacity
        self.slots, self.arena = empty_rows(2 * capacity), np.empty(16 * capacity + self.reserved, np.uint8)
        self.starts, self.records = np.zeros(capacity + 2, np.int64), np.zeros(self.RECORD * (capacity + 2), np.int64)
        self.memo = np.empty(self.IDS * capacity, np.int32)
        self.size = 1  # number 0 is a document's end, which is not looked up

    def _grow(self) -> None:
        """Enlarge the cache, or empty it at the limit: what is frequent is soon cached again."""
        if self.capacity >= self.LARGEST:
            self._forget()
            return
        self.capacity = capacity = self.GROWTH * self.capacity
        slots = empty_rows(2 * capacity)
        rehash(self.slots, slots)
        self.slots, self.arena = slots, longer(self.arena, 16 * capacity + self.reserved)
        self.starts = longer(self.starts, capacity + 2)
        self.records = longer(self.records, self.RECORD * (capacity + 2))
        self.memo = longer(self.memo, self.IDS * capacity)

    def _finish(self, block: Block, out: Ints, ends: Longs, position: Longs) -> Encoded:
        """Return what a kernel has encoded; position: [document, offset, ids, strings cached, whether to grow, …]."""
        self.size = int(position[3])
        if position[4]:
            self._grow()
        return Encoded(out[: position[2]].copy(), ends[: len(ends) - block.open])
