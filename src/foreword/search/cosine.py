"""Search by the cosine between TF-IDF vectors: the vector space model.

    w(t, d) = tf(t, d) · idf(t) / |d|      idf(t) = ln((1 + N) / (1 + df)) + 1      score(q, d) = Σ_t w(t, q) · w(t, d)

where |d| makes the squares of a document's weights sum to one. Query and document are treated alike, so the score is
the cosine of the angle between the two: 1 for the same words in the same proportions, 0 where none is shared. The
numbers are those of scikit-learn's ``TfidfVectorizer`` and ``linear_kernel``. ``smooth=False`` is idf = ln(N / df) + 1,
``sublinear=True`` takes 1 + ln tf in place of tf.

G. Salton, A. Wong, C. S. Yang, "A vector space model for automatic indexing" (1975).
"""

from __future__ import annotations

from typing import Self

import numpy as np

from foreword.arrays import Floats, Ids, Longs
from foreword.errors import ForewordError, SettingError
from foreword.protocols import Json, Meter, Parts
from foreword.search.inverted import Found, InvertedIndex, Questions, Weighing
from foreword.search.kernels_postings import COSINE, LOG_COSINE
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab


class CosineSearch:
    """Ranks the documents of a corpus by their angle to a query over the same vocabulary.

    smooth: as if one more document held every word. sublinear: repeats count by their logarithm.
    index_: the weights, and the idf.

    A query's own length is measured over the words that the index knows, as scikit-learn does.
    """

    def __init__(self, *, smooth: bool = True, sublinear: bool = False) -> None:
        if not isinstance(smooth, bool) or not isinstance(sublinear, bool):
            raise SettingError(f"smooth={smooth!r}, sublinear={sublinear!r}: expected true or false")
        self.smooth = smooth
        self.sublinear = sublinear
        self._index: InvertedIndex | None = None

    def __repr__(self) -> str:
        return f"CosineSearch(smooth={self.smooth!r}, sublinear={self.sublinear!r})"

    def __len__(self) -> int:
        """How many documents can be found."""
        return self.index_.documents

    @property
    def index_(self) -> InvertedIndex:
        if self._index is None:
            raise ForewordError("this CosineSearch has no index yet: call fit(corpus) first")
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
        return self.index_.best(self._questions(queries), k, threads=threads)

    def scores(self, query: Ids) -> Floats:
        """(N,): the cosine of every document with one query of ids."""
        return self.index_.scores(self._questions(Corpus.from_ids([query], self.vocab)))

    def contributions(self, query: Ids, document: int) -> dict[str, float]:
        """What each term of the query adds to the score of a document."""
        return self.index_.contributions(self._questions(Corpus.from_ids([query], self.vocab)), document)

    def _questions(self, queries: Corpus) -> Questions:
        """Each query as a vector of length one."""
        counted = self.index_.questions(queries)
        counts = counted.factors.astype(np.float64)
        if self.sublinear:
            counts[counts > 0] = 1 + np.log(counts[counts > 0])
        weights = counts * self.index_.idf[counted.terms]
        lengths = np.repeat(np.sqrt(counted.sums(weights**2)), np.diff(counted.starts))
        factors = np.divide(weights, lengths, out=weights, where=lengths > 0).astype(np.float32)
        return Questions(counted.terms, factors, counted.starts, counted.ends)

    def _weigh(self, frequencies: Longs, lengths: Longs) -> Weighing:
        held = frequencies > 0
        idf = np.zeros(len(frequencies), np.float32)
        idf[held] = np.log((self.smooth + len(lengths)) / (self.smooth + frequencies[held])) + 1
        return Weighing(idf, LOG_COSINE if self.sublinear else COSINE, np.ones(len(lengths)))

    def to_parts(self) -> Parts:
        settings: dict[str, Json] = {"smooth": self.smooth, "sublinear": self.sublinear}
        return Parts(settings, self.index_.arrays(), self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        model = cls(**parts.settings)  # type: ignore[arg-type]
        model._index = InvertedIndex.from_parts(parts)
        return model
