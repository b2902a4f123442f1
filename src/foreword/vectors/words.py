"""The words of word vectors, as bytes in one buffer, and where each of them stands.

A million words open without making a million strings. One word is looked for by its length and its bytes, in
milliseconds; only whoever asks for many pays for a table of them all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from foreword.kernels.table import StringTable
from foreword.vectors.subwords import ESCAPE

Scalar = TypeVar("Scalar", bound=np.generic)

FEW = 64
"""So many lookups are done without a table: it costs as much as two hundred of them."""

SMALL = 10_000
"""So few words get a table at once."""


class Words:
    """data, offsets: word i is ``data[offsets[i]:offsets[i + 1]]``. A word that stands twice is at its first place."""

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.data = data
        self.offsets = offsets
        self._asked = 0

    @classmethod
    def of(cls, words: Iterable[str | bytes]) -> Self:
        return cls(*joined([as_bytes(word) for word in words]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def word(self, place: int) -> str:
        return bytes(self.data[self.offsets[place] : self.offsets[place + 1]]).decode("utf-8", ESCAPE)

    @cached_property
    def all(self) -> list[str]:
        blob, ends = self.data.tobytes(), self.offsets.tolist()
        return [blob[start:stop].decode("utf-8", ESCAPE) for start, stop in itertools.pairwise(ends)]

    def places(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The first place of each word, -1 where there is none."""
        encoded = [as_bytes(word) for word in words]
        self._asked += len(encoded)
        if "_table" not in self.__dict__ and self._asked <= FEW and len(self) > SMALL:
            return np.array([self._search(word) for word in encoded], np.int64)
        ids = self._table.ids_of(*joined(encoded))
        found = np.where(ids >= 0, self._table.firsts[np.maximum(ids, 0)], -1)
        for number, word in enumerate(encoded):
            if not word:
                found[number] = self._search(word)
        return found

    def _search(self, word: bytes) -> int:
        """By length, then byte after byte, each of which leaves fewer."""
        left = np.flatnonzero(np.diff(self.offsets) == len(word))
        for place, byte in enumerate(word):
            left = left[self.data[self.offsets[left] + place] == byte]
        return int(left[0]) if len(left) else -1

    @cached_property
    def _table(self) -> StringTable:
        """All words, each with its first place; the empty string is the table's own and has none here."""
        table = StringTable()
        places = np.arange(len(self), dtype=np.int64)
        table.add(frozen(self.data), self.offsets.copy(), np.ones(len(self), np.int64), places)
        return table


def as_bytes(word: str | bytes) -> bytes:
    """UTF-8, or the very bytes that a word was read from where those are not."""
    if isinstance(word, bytes):
        return word
    try:
        return word.encode("utf-8", ESCAPE)
    except UnicodeEncodeError:  # half of a surrogate pair, which no file holds
        return word.encode("utf-8", "surrogatepass")


def joined(words: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Words one after another, and where each begins."""
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in words], out=offsets[1:])
    return np.frombuffer(b"".join(words), np.uint8), offsets


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A view that cannot be written to, as a mapped array is: kernels are compiled once for all of them."""
    view = array.view()
    view.flags.writeable = False
    return view
