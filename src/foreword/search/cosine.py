"""Search by the cosine between TF-IDF vectors: the vector space model.

    w(t, d) = tf(t, d) · idf(t) / |d|      idf(t) = ln((1 + N) / (1 + df)) + 1      score(q, d) = Σ_t w(t, q) · w(t, d)

where |d| makes the squares of a document's weights sum to one. Query and document are treated alike, so the score is
the cosine of the angle between the two: 1 for the same words in the same proportions, 0 where none is shared. The
numbers are those of scikit-learn's ``TfidfVectorizer`` and ``linear_kernel``. ``smooth=False`` is idf = ln(N / df) + 1,
``sublinear=True`` takes 1 + ln tf in place of tf.

G. Salton, A. Wong, C. S. Yang, "A vector space model for automatic indexing" (1975).
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Longs
from foreword.errors import SettingError
from foreword.protocols import Json
from foreword.search.inverted import IndexedRanker, QueryBatch, Weighing
from foreword.search.kernels import COSINE, LOG_COSINE
from foreword.tokens.corpus import Corpus


class CosineSearch(IndexedRanker):
    """Ranking of the documents of a corpus by their angle to a query over the same vocabulary.

    smooth: smooth idf, as if one more document contained every word. sublinear: replace tf by 1 + ln(tf).

    A query's own length is measured over the words that are in the index, as scikit-learn does.
    """

    def __init__(self, *, smooth: bool = True, sublinear: bool = False) -> None:
        if not isinstance(smooth, bool) or not isinstance(sublinear, bool):
            raise SettingError(f"smooth={smooth!r}, sublinear={sublinear!r}: expected true or false")
        self.smooth = smooth
        self.sublinear = sublinear

    def _batch(self, queries: Corpus) -> QueryBatch:
        """Scale each query to a vector of length one."""
        counted = self.index_.batch(queries)
        counts = counted.factors.astype(np.float64)
        if self.sublinear:
            counts[counts > 0] = 1 + np.log(counts[counts > 0])
        weights = counts * self.index_.idf[counted.terms]
        lengths = np.repeat(np.sqrt(counted.sums(weights**2)), np.diff(counted.starts))
        factors = np.divide(weights, lengths, out=weights, where=lengths > 0).astype(np.float32)
        return QueryBatch(counted.terms, factors, counted.starts, counted.ends)

    def _weigh(self, frequencies: Longs, lengths: Longs) -> Weighing:
        found = frequencies > 0
        idf = np.zeros(len(frequencies), np.float32)
        idf[found] = np.log((self.smooth + len(lengths)) / (self.smooth + frequencies[found])) + 1
        return Weighing(idf, LOG_COSINE if self.sublinear else COSINE, np.ones(len(lengths)))

    def _settings(self) -> dict[str, Json]:
        return {"smooth": self.smooth, "sublinear": self.sublinear}
