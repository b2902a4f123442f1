"""BM25: the ranking that search engines begin with.

    score(q, d) = Σ_{t in q} idf(t) · saturation(tf(t, d), |d|)

A word counts for more the fewer documents hold it (idf), a second occurrence in a document for less than the first
(saturation), and an occurrence in a long document for less than in a short one. With N documents, df of them holding
the term, L = 1 − b + b · |d| / average length, and c = tf / L:

    variant      idf                                    saturation
    lucene       ln(1 + (N − df + ½) / (df + ½))        tf / (tf + k1 · L)
    robertson    max(0, ln((N − df + ½) / (df + ½)))    tf / (tf + k1 · L)
    atire        ln(N / df)                             (k1 + 1) · tf / (tf + k1 · L)
    bm25l        ln((N + 1) / (df + ½))                 (k1 + 1) · (c + δ) / (c + δ + k1)
    bm25+        ln((N + 1) / df)                       (k1 + 1) · tf / (tf + k1 · L) + δ

In the last two a term gives something to a document that does not hold it, the same to each: it is left out of the
index and added to the scores at the end. A word that a query says twice counts twice.

S. Robertson, S. Walker, S. Jones, M. Hancock-Beaulieu, M. Gatford, "Okapi at TREC-3" (1994). The variants as in C.
Kamphuis, A. de Vries, L. Boytsov, J. Lin, "Which BM25 do you mean?" (ECIR 2020), and as the package bm25s has them (X.
H. Lù, 2024), whose idea it is to compute every (term, document) score when the index is built.

One formula covers all five: with c as above, weight = idf · gain · (c + shift) / (c + shift + k1), where gain is 1 or
k1 + 1 and shift is 0 or δ.
"""

from __future__ import annotations

import math
from typing import Literal, Self, get_args

import numpy as np

from foreword.arrays import Doubles, Floats, Ids, Longs
from foreword.errors import ForewordError, SettingError
from foreword.protocols import Json, Meter, Parts
from foreword.search.inverted import Found, InvertedIndex, Questions, Weighing
from foreword.search.kernels_postings import SATURATED
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

Variant = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]


class BM25:
    """Ranks the documents of a corpus for queries over the same vocabulary.

    k1: how slowly repeating a word stops to matter; 0 is at once. b: how much length matters, 0 not at all to 1.
    delta: for bm25l and bm25+ only, what keeps long documents from being overlooked.
    index_: the weights, and the idf.

    ``<unk>`` is no term: it lengthens a document but cannot be searched for. Under robertson neither can a term that
    half of the documents hold, since its idf is zero.
    """

    def __init__(self, variant: Variant = "lucene", *, k1: float = 1.5, b: float = 0.75, delta: float = 0.5) -> None:
        if variant not in get_args(Variant):
            raise SettingError(f"variant={variant!r}: expected {', '.join(get_args(Variant))}")
        if not (math.isfinite(k1) and k1 >= 0):
            raise SettingError(f"k1={k1}: expected zero or a positive number")
        if not 0 <= b <= 1:
            raise SettingError(f"b={b}: expected a number from 0 to 1")
        if not (math.isfinite(delta) and delta >= 0):
            raise SettingError(f"delta={delta}: expected zero or a positive number")
        self.variant = variant
        self.k1 = k1
        self.b = b
        self.delta = delta
        self._index: InvertedIndex | None = None

    def __repr__(self) -> str:
        return f"BM25({self.variant!r}, k1={self.k1!r}, b={self.b!r}, delta={self.delta!r})"

    def __len__(self) -> int:
        """How many documents can be found."""
        return self.index_.documents

    @property
    def index_(self) -> InvertedIndex:
        if self._index is None:
            raise ForewordError("this BM25 has no index yet: call fit(corpus) first")
        return self._index

    @property
    def vocab(self) -> Vocab:
        return self.index_.vocab

    def fit(self, corpus: Corpus, *, threads: int | None = 1, meter: Meter | None = None) -> Self:
        """Index the documents of a corpus."""
        self._index = InvertedIndex.build(corpus, self._weigh, threads=threads, meter=meter)
        return self

    def search(self, queries: Corpus, k: int = 10, *, threads: int | None = 1) -> Found:
        """The k best of the documents that hold a word of the query, for each query."""
        questions = self.index_.questions(queries)
        found = self.index_.best(questions, k, threads=threads)
        if self._absent:
            found.scores[...] += np.where(found.documents >= 0, self._given_to_all(questions)[:, None], np.float32(0))
        return found

    def scores(self, query: Ids) -> Floats:
        """(N,): the score of every document, for one query of ids."""
        questions = self.index_.questions(Corpus.from_ids([query], self.vocab))
        return self.index_.scores(questions) + self._given_to_all(questions)

    def contributions(self, query: Ids, document: int) -> dict[str, float]:
        """What each term of the query adds to the score of a document."""
        questions = self.index_.questions(Corpus.from_ids([query], self.vocab))
        return self.index_.contributions(questions, document, self._absent)

    def _given_to_all(self, questions: Questions) -> Floats:
        """(queries,): what bm25l and bm25+ give to every document, whether it holds the terms or not."""
        idf = self.index_.idf[questions.terms].astype(np.float64)
        return questions.sums(self._absent * idf * questions.factors).astype(np.float32)

    # The equations

    def _weigh(self, frequencies: Longs, lengths: Longs) -> Weighing:
        idf = np.zeros(len(frequencies), np.float32)
        held = frequencies > 0
        idf[held] = self._idf(frequencies[held].astype(np.float64), len(lengths))
        average = lengths.mean() or 1.0
        long = np.maximum(1 - self.b + self.b * lengths / average, 1e-9)  # zero only for an empty document
        return Weighing(idf, SATURATED, 1 / long, self.k1, self._gain, self._shift)

    def _idf(self, df: Doubles, documents: int) -> Doubles:
        odds = (documents - df + 0.5) / (df + 0.5)
        match self.variant:
            case "lucene":
                return np.log1p(odds)
            case "robertson":
                return np.log(np.maximum(odds, 1))
            case "atire":
                return np.log(documents / df)
            case "bm25l":
                return np.log((documents + 1) / (df + 0.5))
            case "bm25+":
                return np.log((documents + 1) / df)

    @property
    def _gain(self) -> float:
        return 1.0 if self.variant in ("lucene", "robertson") else self.k1 + 1

    @property
    def _shift(self) -> float:
        return float(self.delta) if self.variant == "bm25l" else 0.0

    @property
    def _absent(self) -> float:
        """The saturation of a term that a document does not hold; it is not in the index."""
        if self.variant == "bm25+":
            return float(self.delta)
        return self._gain * self._shift / (self._shift + self.k1) if self._shift else 0.0

    # Saving

    def to_parts(self) -> Parts:
        settings: dict[str, Json] = {"variant": self.variant, "k1": self.k1, "b": self.b, "delta": self.delta}
        return Parts(settings, self.index_.arrays(), self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        model = cls(**parts.settings)  # type: ignore[arg-type]
        model._index = InvertedIndex.from_parts(parts)
        return model
