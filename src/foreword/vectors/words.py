"""The words of word vectors, as bytes in one buffer, and where each of them stands.

A million words open without making a million strings. Saved vectors bring a table of their words, mapped as they are.
Where there is none, one word is looked for by its length and its bytes, in milliseconds; only whoever asks for many
pays for a table of them all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Bytes, Ints, Longs
from foreword.vectors.kernels_words import fill_table, find_words, rows_for
from foreword.vectors.subwords import ESCAPE

Scalar = TypeVar("Scalar", bound=np.generic)

FEW = 64
"""So many lookups are done without a table: it costs as much as two hundred of them."""

SMALL = 10_000
"""So few words get a table at once."""


class Words:
    """data, offsets: word i is ``data[offsets[i]:offsets[i + 1]]``. A word that stands twice is at its first place.

    table: what ``vectors/kernels_words.py`` makes of them, if it was kept.
    """

    def __init__(self, data: Bytes, offsets: Longs, table: Ints | None = None) -> None:
        self.data = data
        self.offsets = offsets
        self._asked = 0
        if table is not None:
            self.__dict__["table"] = table

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

    def places(self, words: Sequence[str]) -> Longs:
        """The first place of each word, -1 where there is none."""
        encoded = [as_bytes(word) for word in words]
        self._asked += len(encoded)
        if not self.has_table and self._asked <= FEW and len(self) > SMALL:
            return np.array([self._search(word) for word in encoded], np.int64)
        asked, ends = joined(encoded)
        found = np.empty(len(encoded), np.int64)
        find_words(frozen(asked), frozen(ends), frozen(self.data), frozen(self.offsets), frozen(self.table), found)
        return found

    @property
    def has_table(self) -> bool:
        return "table" in self.__dict__

    def _search(self, word: bytes) -> int:
        """By length, then byte after byte, each of which leaves fewer."""
        left = np.flatnonzero(np.diff(self.offsets) == len(word))
        for place, byte in enumerate(word):
            left = left[self.data[self.offsets[left] + place] == byte]
        return int(left[0]) if len(left) else -1

    @cached_property
    def table(self) -> Ints:
        """Which word each row has, + 1."""
        table = np.zeros(rows_for(len(self)), np.int32)
        fill_table(frozen(self.data), frozen(self.offsets), table)
        return table


def as_bytes(word: str | bytes) -> bytes:
    """UTF-8, or the very bytes that a word was read from where those are not."""
    if isinstance(word, bytes):
        return word
    try:
        return word.encode("utf-8", ESCAPE)
    except UnicodeEncodeError:  # half of a surrogate pair, which no file holds
        return word.encode("utf-8", "surrogatepass")


def joined(words: Sequence[bytes]) -> tuple[Bytes, Longs]:
    """Words one after another, and where each begins."""
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in words], out=offsets[1:])
    return np.frombuffer(b"".join(words), np.uint8), offsets


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A view that cannot be written to, as a mapped array is: kernels are compiled once for all of them."""
    view = array.view()
    view.flags.writeable = False
    return view
