"""What a neural tagger knows a word by: its row in a table that is learnt, its letters, its row in vectors from before.

The row that is learnt is that of the word in small letters with every digit a 0, so that ``1996`` and ``2014``, ``The``
and ``the`` are one; the letters tell them apart again. A word that was not seen has row 0. Letters stand between a mark
for the beginning and one for the end; of a very long word the middle is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from foreword.arrays import Array, Floats, Longs
from foreword.vectors.wordvectors import WordVectors

UNSEEN = 0
NO_LETTER, UNSEEN_LETTER, BEGINS, ENDS = range(4)
MARKS = 4
"""Rows of letters that are none."""

HEAD, TAIL = 24, 16
"""Letters of a long word that are kept, from its beginning and from its end."""

_DIGIT = re.compile(r"\d")


def folded(word: str) -> str:
    return _DIGIT.sub("0", word.lower())


class Words:
    """The words of a training text, by frequency, and perhaps vectors that were there before.

    counts: how often each was seen; folds: the rows that are learnt, by folded word; letters: by character.
    vectors: (n + 1, d), the last row zero, and the names of the n others.
    """

    def __init__(
        self, words: Sequence[str], counts: Longs, vectors: Floats | None = None, vector_names: Sequence[str] = ()
    ) -> None:
        self.words, self.counts = list(words), counts
        self.folds: dict[str, int] = {}
        for word in words:
            self.folds.setdefault(folded(word), len(self.folds) + 1)
        self.fold_counts = np.zeros(len(self.folds) + 1, np.int64)
        np.add.at(self.fold_counts, [self.folds[folded(word)] for word in words], counts)
        self.letters = {letter: row for row, letter in enumerate(sorted(set("".join(words))), MARKS)}
        self.vectors, self.vector_names = vectors, list(vector_names)
        self._seen = set(words)
        self._places = {name: place for place, name in reversed(list(enumerate(self.vector_names)))}

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]], vectors: WordVectors | None = None) -> Words:
        counted = Counter(word for words in sentences for word in words).most_common()
        words, counts = [word for word, _ in counted], np.array([count for _, count in counted], np.int64)
        if vectors is None:
            return cls(words, counts)
        names = vectors.words
        table = vectors.rows_of(names)
        table = table / max(float(table.std()), 1e-12)  # so that vectors of any origin come in the same size
        return cls(words, counts, np.concatenate((table, np.zeros_like(table[:1]))).astype(np.float32), names)

    def __contains__(self, word: object) -> bool:
        return word in self._seen

    @property
    def rows(self) -> int:
        """Of the table that is learnt."""
        return len(self.folds) + 1

    @property
    def alphabet(self) -> int:
        return MARKS + len(self.letters)

    def row(self, word: str) -> int:
        return self.folds.get(folded(word), UNSEEN)

    def vector_place(self, word: str) -> int:
        """As it is written, else in small letters, else with digits as zeros; else the row that is zero."""
        for form in (word, word.lower(), folded(word)):
            if form in self._places:
                return self._places[form]
        return len(self.vector_names)

    def spelled(self, word: str) -> list[int]:
        if len(word) > HEAD + TAIL:
            word = word[:HEAD] + word[-TAIL:]
        return [BEGINS, *(self.letters.get(letter, UNSEEN_LETTER) for letter in word), ENDS]

    # Saving

    def to_arrays(self) -> dict[str, Array]:
        arrays: dict[str, Array] = {**packed("names", self.words), "counts": self.counts}
        if self.vectors is not None:
            arrays |= {**packed("vector_names", self.vector_names), "vectors": self.vectors}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], dimensions: int | None) -> Words:
        """dimensions: of the vectors that must be there, or None where there must be none."""
        words, counts = unpacked("names", arrays), arrays["counts"]
        if counts.dtype != np.int64 or counts.shape != (len(words),) or not words or counts.min() < 1:
            raise ValueError(f"counts are {counts.dtype} {counts.shape}, not one of at least 1 for {len(words)} words")
        if len(set(words)) != len(words):
            raise ValueError("a word stands twice")
        if dimensions is None:
            return cls(words, counts)
        names, vectors = unpacked("vector_names", arrays), arrays["vectors"]
        if vectors.dtype != np.float32 or vectors.shape != (len(names) + 1, dimensions):
            raise ValueError(f"vectors are {vectors.dtype} {vectors.shape}, not float32 {(len(names) + 1, dimensions)}")
        return cls(words, counts, vectors, names)


def packed(name: str, strings: Sequence[str]) -> dict[str, Array]:
    """Strings as two arrays: their bytes, and where each begins."""
    spelled = [string.encode(errors="surrogatepass") for string in strings]
    return {
        name: np.frombuffer(b"".join(spelled), np.uint8),
        f"{name}_offsets": np.cumsum([0, *map(len, spelled)], dtype=np.int64),
    }


def unpacked(name: str, arrays: dict[str, Array]) -> list[str]:
    data, offsets = arrays[name], arrays[f"{name}_offsets"]
    if data.dtype != np.uint8 or offsets.dtype != np.int64 or data.ndim != 1 or offsets.ndim != 1:
        raise ValueError(f"{name} are {data.dtype} {data.shape} and {offsets.dtype} {offsets.shape}, not bytes")
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
        raise ValueError(f"the offsets of {name} do not fit its bytes")
    blob = data.tobytes()
    return [blob[start:stop].decode(errors="surrogatepass") for start, stop in pairwise(offsets.tolist())]
