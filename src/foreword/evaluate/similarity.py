"""Word similarity: do the cosines of vectors rank pairs of words as people do?

Spearman's ρ between the cosine of each pair and what people said of it: the correlation of the two ranks, equals
sharing the mean of theirs (C. Spearman, "The proof and measurement of association between two things", 1904).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foreword.arrays import Doubles, Floats, Reals
from foreword.errors import InputError
from foreword.evaluate.folding import KnownWords
from foreword.protocols import Json
from foreword.text.sources import read_lines
from foreword.vectors.wordvectors import WordVectors

Pair = tuple[str, str, float]


@dataclass(frozen=True, slots=True)
class SimilarityMeasures:
    """spearman, pearson: NaN where fewer than two pairs are known, or all are alike.

    pairs: how many were compared; oov: how many more have a word without a vector.
    """

    name: str
    spearman: float
    pearson: float
    pairs: int
    oov: int

    def to_json(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "spearman": None if np.isnan(self.spearman) else self.spearman,
            "pearson": None if np.isnan(self.pearson) else self.pearson,
            "pairs": self.pairs,
            "oov": self.oov,
        }


def read_pairs(path: str | Path) -> list[Pair]:
    """Two words and a number a line, divided by tabs or blanks; lines that begin with # are remarks."""
    pairs: list[Pair] = []
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if not fields or line.startswith("#"):
            continue
        try:
            first, second, score = fields
            pairs.append((first, second, float(score)))
        except ValueError:
            raise InputError(f"{path}: line {number}: expected two words and a number, found {line[:60]!r}") from None
    return pairs


def measure_similarity(
    vectors: WordVectors,
    pairs: Sequence[Pair],
    *,
    name: str = "",
    vocabulary: int | None = None,
    ignore_case: bool = True,
    compose: bool = False,
) -> SimilarityMeasures:
    """Compare the cosines of all pairs that have vectors with what people said.

    vocabulary: only so many words, the first, count as known. compose: vectors that make one for any word out of its
    parts may do so; otherwise such words are unknown.
    """
    known = KnownWords(vectors, vocabulary, ignore_case=ignore_case)
    cosines, judged = [], []
    for first, second, score in pairs:
        one, other = (_direction(vectors, known, word, compose) for word in (first, second))
        if one is not None and other is not None:
            cosines.append(float(one @ other))
            judged.append(score)
    found = np.array(cosines), np.array(judged)
    return SimilarityMeasures(name, spearman(*found), pearson(*found), len(judged), len(pairs) - len(judged))


def _direction(vectors: WordVectors, known: KnownWords, word: str, compose: bool) -> Floats | None:
    place = known.places([word])[0]
    if place is not None:
        row: Floats = vectors.directions(np.array([place]))[0]
        return row
    made = vectors.subwords.vector(word) if compose and vectors.subwords is not None else None
    return None if made is None else (made / max(float(np.linalg.norm(made)), 1e-30)).astype(np.float32)


def spearman(one: Reals, other: Reals) -> float:
    """The rank correlation ρ, from −1 to 1."""
    return pearson(ranks(one), ranks(other))


def ranks(values: Reals) -> Doubles:
    """1 for the least; equals have the mean of the ranks that they take up together."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: Doubles = (ends - (counts - 1) / 2)[inverse]
    return means


def pearson(one: Reals, other: Reals) -> float:
    """The correlation r; NaN where it says nothing."""
    if len(one) < 2:
        return float("nan")
    a, b = one - one.mean(), other - other.mean()
    spread = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum() / spread) if spread > 0 else float("nan")
