"""BM25: the ranking that search engines begin with.

    score(q, d) = Σ_{t in q} idf(t) · saturation(tf(t, d), |d|)

A word counts for more the fewer documents contain it (idf), a second occurrence in a document for less than the first
(saturation), and an occurrence in a long document for less than in a short one. With N documents, df of them containing
the term, L = 1 − b + b · |d| / average length, and c = tf / L:

    variant      idf                                    saturation
    lucene       ln(1 + (N − df + ½) / (df + ½))        tf / (tf + k1 · L)
    robertson    max(0, ln((N − df + ½) / (df + ½)))    tf / (tf + k1 · L)
    atire        ln(N / df)                             (k1 + 1) · tf / (tf + k1 · L)
    bm25l        ln((N + 1) / (df + ½))                 (k1 + 1) · (c + δ) / (c + δ + k1)
    bm25+        ln((N + 1) / df)                       (k1 + 1) · tf / (tf + k1 · L) + δ

In the last two a term adds something to a document that does not contain it, the same to each: it is left out of the
index and added to the scores at the end. A word that occurs twice in a query counts twice.

S. Robertson, S. Walker, S. Jones, M. Hancock-Beaulieu, M. Gatford, "Okapi at TREC-3" (1994). The variants as in C.
Kamphuis, A. de Vries, L. Boytsov, J. Lin, "Which BM25 do you mean?" (ECIR 2020), and as the package bm25s has them (X.
H. Lù, 2024), whose idea it is to compute every (term, document) score when the index is built.

One formula covers all five: with c as above, weight = idf · gain · (c + shift) / (c + shift + k1), where gain is 1 or
k1 + 1 and shift is 0 or δ.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from foreword.arrays import Doubles, Longs
from foreword.checks import check_choice, check_numbers
from foreword.protocols import Json
from foreword.search.inverted import IndexedRanker, Weighing
from foreword.search.kernels import SATURATED

Variant = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]


class BM25(IndexedRanker):
    """BM25 ranking of the documents of a corpus, for queries over the same vocabulary.

    k1: how slowly repeating a word stops mattering; 0 is at once. b: length normalisation, from 0 (none) to 1 (full).
    delta: raises the weight of terms in long documents, for bm25l and bm25+ only.

    ``<unk>`` is no term: it lengthens a document but cannot be searched for. Under robertson neither can a term that
    half of the documents contain, since its idf is zero.
    """

    def __init__(self, variant: Variant = "lucene", *, k1: float = 1.5, b: float = 0.75, delta: float = 0.5) -> None:
        self.variant = variant
        self.k1 = k1
        self.b = b
        self.delta = delta
        check_choice(self, "variant", get_args(Variant))
        check_numbers(self, "k1", "delta")
        check_numbers(self, "b", most=1)

    # The equations

    def _weigh(self, frequencies: Longs, lengths: Longs) -> Weighing:
        idf = np.zeros(len(frequencies), np.float32)
        found = frequencies > 0
        idf[found] = self._idf(frequencies[found].astype(np.float64), len(lengths))
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
    def _absent(self) -> float:  # type: ignore[override]
        """Saturation of a term that a document does not contain; it is not in the index."""
        if self.variant == "bm25+":
            return float(self.delta)
        return self._gain * self._shift / (self._shift + self.k1) if self._shift else 0.0

    def _settings(self) -> dict[str, Json]:
        return {"variant": self.variant, "k1": self.k1, "b": self.b, "delta": self.delta}
