"""Two tables that teaching texts give in words, filled by measurement: GloVe against fastText, static against
contextual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from foreword.arrays import Doubles, Reals
from foreword.errors import InputError
from foreword.protocols import Sentences
from foreword.vectors.rows import unit
from foreword.vectors.wordvectors import WordVectors

Embedder = Callable[[Sentences], list[Reals]]
"""Sentences, lists of words, to a matrix each: (words, d), a row for each word where it stands."""


@dataclass(frozen=True, slots=True)
class Row:
    """One feature, and what was measured of either side, as numbers and as a person would write them."""

    feature: str
    left: float
    right: float
    left_text: str
    right_text: str


def glove_against_fasttext(glove: WordVectors, fasttext: WordVectors, unseen: Sequence[str]) -> list[Row]:
    """Table 01: what either stores, and which of some unseen words it has a vector for.

    unseen: words, or misspelt ones, that stand in neither vocabulary.
    """
    seen = [word for word in unseen if word in glove or word in fasttext]
    if seen:
        raise InputError(f"{seen[0]!r} is no unseen word: it has a vector of its own")
    sides = (glove, fasttext)
    rows = [_row("words", *(len(side) for side in sides))]
    rows.append(_row("rows for parts of words", *(_part_rows(side) for side in sides)))
    rows.append(_row("bytes", *(_bytes(side) for side in sides)))
    rows.append(_row("bytes for each word", *(_bytes(side) / max(1, len(side)) for side in sides)))
    made = [sum(_has_vector(side, word) for word in unseen) for side in sides]
    texts = [f"{count} of {len(unseen)}" for count in made]
    rows.append(Row("unseen words with a vector", made[0], made[1], texts[0], texts[1]))
    return rows


def static_against_contextual(
    static: Embedder, contextual: Embedder, word: str, senses: Sequence[Sentences]
) -> list[Row]:
    """Table 02: what either makes of one word in sentences of several senses.

    senses: for each sense, sentences that hold the word in it.
    """
    if len(senses) < 2 or not all(len(sentences) >= 2 for sentences in senses):
        raise InputError("expected two senses of the word, and two sentences of each")
    sides = [_occurrences(embed, word, senses) for embed in (static, contextual)]
    rows = [_row(f"occurrences of {word!r}", *(sum(map(len, side)) for side in sides))]
    rows.append(_row("different vectors", *(len(np.unique(np.concatenate(side), axis=0)) for side in sides)))
    rows.append(_row("cosine within a sense", *(_within(side) for side in sides)))
    rows.append(_row("cosine across senses", *(_across(side) for side in sides)))
    return rows


def static_embedder(vectors: WordVectors) -> Embedder:
    """Word vectors as an embedder: the neighbours of a word change nothing."""
    return lambda sentences: [vectors.rows_of(sentence) for sentence in sentences]


def _row(feature: str, left: float, right: float) -> Row:
    return Row(feature, left, right, _shown(left), _shown(right))


def _shown(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:,.3f}"


def _part_rows(vectors: WordVectors) -> int:
    return 0 if vectors.subwords is None else len(vectors.subwords.matrix)


def _bytes(vectors: WordVectors) -> int:
    parts = 0 if vectors.subwords is None else int(vectors.subwords.matrix.nbytes)
    return vectors.rows.nbytes + parts + int(vectors.data.nbytes + vectors.offsets.nbytes)


def _has_vector(vectors: WordVectors, word: str) -> bool:
    try:
        return bool(vectors.with_missing("error")[word].any())
    except KeyError:
        return False


def _occurrences(embed: Embedder, word: str, senses: Sequence[Sentences]) -> list[Doubles]:
    """For each sense, the vectors of the word where it first stands in each sentence, of length one."""
    found = []
    for sentences in senses:
        for sentence in sentences:
            if word not in sentence:
                raise InputError(f"{word!r} does not stand in {' '.join(sentence)!r}")
        rows = [
            matrix[list(sentence).index(word)] for sentence, matrix in zip(sentences, embed(sentences), strict=True)
        ]
        found.append(unit(np.array(rows, np.float32)).astype(np.float64))
    return found


def _within(senses: list[Doubles]) -> float:
    pairs = [float(one @ other) for rows in senses for one, other in combinations(rows, 2)]
    return float(np.mean(pairs))


def _across(senses: list[Doubles]) -> float:
    pairs = [float(one @ other) for a, b in combinations(senses, 2) for one in a for other in b]
    return float(np.mean(pairs))
