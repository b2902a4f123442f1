"""Experiments on word vectors: dimension, polysemy, and the tables of teaching texts filled by measurement.

An embedding should be one-to-one, and by the manifold hypothesis its points need fewer dimensions than they have. The
two nearest neighbours of each point say how many: the ratio of their distances, μ = r₂ / r₁, has P(μ > m) = m^−d where
points lie evenly in d dimensions (E. Facco et al., "Estimating the intrinsic dimension of datasets by a minimal
neighborhood information", 2017).

Polysemy: nobody knows how much of *bank* is river and how much is money. So a pseudo-word is made: some occurrences of
*river*, and some of *money*, become *river|money*. It has two senses, whose true vectors are learnt in the same run
from the other occurrences (H. Schütze, 1992; here for what the sources call "a sort of average").

Two tables: GloVe against fastText, static against contextual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from foreword.arrays import Doubles, Ids, Reals
from foreword.errors import InputError, SettingError
from foreword.protocols import Sentences
from foreword.tokens.corpus import Corpus, id_type
from foreword.tokens.vocab import Vocab
from foreword.vectors.plain import character_ngrams
from foreword.vectors.rows import unit
from foreword.vectors.wordvectors import WordVectors


def distinct_vectors(vectors: WordVectors) -> int:
    """Count the different vectors: as many as words, if the mapping is one-to-one."""
    rows = np.ascontiguousarray(vectors.matrix)
    return len(np.unique(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))))


def intrinsic_dimension(points: Reals, *, discard: float = 0.1) -> float:
    """Estimate the dimension d of a set of points (n, D), from the distances of each to its two nearest.

    A straight line through the origin is fitted to −log(1 − F(μ)) against log μ; its slope is d. The largest ratios,
    a tenth of them, are the least certain and are left out. Duplicate points count once.
    """
    if not 0 <= discard < 1:
        raise SettingError(f"discard={discard}: expected a share from 0 to less than 1")
    ratios = np.sort(_neighbour_ratios(np.unique(points.astype(np.float64), axis=0)))
    count = int(len(ratios) * (1 - discard))
    x = np.log(ratios[:count])
    y = -np.log1p(-np.arange(1, count + 1) / (len(ratios) + 1))
    return float((x * y).sum() / (x * x).sum())


def _neighbour_ratios(points: Doubles) -> Doubles:
    """Return r₂ / r₁ of each point."""
    if len(points) < 10:
        raise InputError(f"{len(points)} different points: expected at least ten")
    squares = (points**2).sum(axis=1)
    ratios = np.empty(len(points))
    for begin in range(0, len(points), 512):
        block = points[begin : begin + 512]
        distances = squares[begin : begin + 512, None] + squares - 2 * block @ points.T
        distances[np.arange(len(block)), begin + np.arange(len(block))] = np.inf
        nearest = np.sqrt(np.maximum(np.partition(distances, 1, axis=1)[:, :2], 1e-300))
        ratios[begin : begin + len(block)] = nearest[:, 1] / nearest[:, 0]
    return ratios


def shared_ngrams(one: str, other: str, least: int = 3, most: int = 6) -> float:
    """Return the Jaccard similarity of two words' character n-grams."""
    a, b = (set(character_ngrams(word, least, most)) for word in (one, other))
    return len(a & b) / len(a | b) if a | b else 0.0


def with_pseudo_word(corpus: Corpus, one: str, other: str, *, share: float = 0.5, seed: int = 0) -> tuple[Corpus, str]:
    """Return the corpus with a share of both words' occurrences replaced by a new word, and that word.

    As many occurrences of each are replaced, so that neither sense prevails.
    """
    if not 0 < share < 1:
        raise SettingError(f"share={share}: expected a number between 0 and 1")
    vocab = corpus.vocab
    missing = [word for word in (one, other) if word not in vocab]
    if missing or one == other:
        raise InputError(f"no such two words in the corpus: {one!r} and {other!r}")
    name = f"{one}|{other}"
    rng = np.random.default_rng(seed)
    positions = [np.flatnonzero(corpus.ids == vocab.id(word)) for word in (one, other)]
    taken = int(min(len(each) for each in positions) * share)
    counts = np.bincount(corpus.ids, minlength=len(vocab) + 1)
    ids: Ids = corpus.ids.astype(id_type(len(vocab) + 1))
    for word, each in zip((one, other), positions, strict=True):
        ids[rng.choice(each, taken, replace=False)] = len(vocab)
        counts[vocab.id(word)] -= taken
    counts[len(vocab)] = 2 * taken
    unknown = None if vocab.unknown is None else vocab[vocab.unknown]
    longer = Vocab([*vocab, name], counts, unknown=unknown, end=vocab[vocab.end])
    return Corpus(ids, corpus.offsets, corpus.byte_offsets, longer), name


@dataclass(frozen=True, slots=True)
class Between:
    """Cosines: of the merged word with either sense, with the mean of the two, and of the senses with each other.

    usual: of the merged word with all words, on average.
    """

    one: float
    other: float
    middle: float
    senses: float
    usual: float


def between(vectors: WordVectors, merged: str, one: str, other: str) -> Between:
    """Compare the vector of a merged word with those of its senses."""
    rows = vectors.places([merged, one, other])
    if (rows < 0).any():
        raise InputError(f"no vectors for all of {merged!r}, {one!r} and {other!r}")
    m, a, b = vectors.directions(rows).astype(np.float64)
    middle = (a + b) / np.linalg.norm(a + b)
    usual = float((vectors.directions() @ m.astype(np.float32)).mean())
    return Between(float(m @ a), float(m @ b), float(m @ middle), float(a @ b), usual)


Embedder = Callable[[Sentences], list[Reals]]
"""Sentences, lists of words, to a matrix each: (words, d), one row per word."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One feature, and the measurement of either side, as numbers and as a person would write them."""

    feature: str
    left: float
    right: float
    left_text: str
    right_text: str


def glove_against_fasttext(glove: WordVectors, fasttext: WordVectors, unseen: Sequence[str]) -> list[TableRow]:
    """Fill table 01: what either stores, and how many of some unseen words it has a vector for.

    unseen: words, or misspelt ones, that are in neither vocabulary.
    """
    seen = [word for word in unseen if word in glove or word in fasttext]
    if seen:
        raise InputError(f"{seen[0]!r} is not an unseen word: it has a vector of its own")
    sides = (glove, fasttext)
    rows = [_row("words", *(len(side) for side in sides))]
    rows.append(_row("rows for parts of words", *(_part_rows(side) for side in sides)))
    rows.append(_row("bytes", *(_bytes(side) for side in sides)))
    rows.append(_row("bytes for each word", *(_bytes(side) / max(1, len(side)) for side in sides)))
    made = [sum(_has_vector(side, word) for word in unseen) for side in sides]
    texts = [f"{count} of {len(unseen)}" for count in made]
    rows.append(TableRow("unseen words with a vector", made[0], made[1], texts[0], texts[1]))
    return rows


def static_against_contextual(
    static: Embedder, contextual: Embedder, word: str, senses: Sequence[Sentences]
) -> list[TableRow]:
    """Fill table 02: the vectors of one word in sentences of several senses.

    senses: for each sense, sentences that contain the word in it.
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
    """Return word vectors as an embedder: a word's vector does not depend on its neighbours."""
    return lambda sentences: [vectors.rows_of(sentence) for sentence in sentences]


def _row(feature: str, left: float, right: float) -> TableRow:
    return TableRow(feature, left, right, _shown(left), _shown(right))


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
    """Return, for each sense, the unit vectors of the word's first occurrence in each sentence."""
    found = []
    for sentences in senses:
        for sentence in sentences:
            if word not in sentence:
                raise InputError(f"{word!r} is not in {' '.join(sentence)!r}")
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
