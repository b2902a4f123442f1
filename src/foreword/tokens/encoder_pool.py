"""Encoders of a tokenizer that several threads share: each has buffers of its own and serves one block at a time."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import ClassVar, Generic, TypeVar

from foreword.text.block import Block
from foreword.tokens.corpus import EncodesBlocks

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
