"""Which words of some vectors a test may use: the most frequent ones, whatever their case."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foreword.arrays import Longs
from foreword.vectors.wordvectors import WordVectors


class KnownWords:
    """The first ``count`` words; of words that differ only in case the first stands for all, if ``ignore_case``.

    groups: int64 (count,), the place of the word that stands for each.
    """

    def __init__(self, vectors: WordVectors, count: int | None, *, ignore_case: bool) -> None:
        self._fold = str.casefold if ignore_case else str
        words = [self._fold(word) for word in (vectors if count is None else vectors.first(count)).words]
        self._places: dict[str, int] = {}
        for place, word in enumerate(words):
            self._places.setdefault(word, place)
        self.groups: Longs = np.array([self._places[word] for word in words], np.int64)

    def __len__(self) -> int:
        return len(self.groups)

    def places(self, words: Sequence[str]) -> list[int | None]:
        return [self._places.get(self._fold(word)) for word in words]
