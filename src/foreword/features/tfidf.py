"""TF-IDF: counts weighted by how rare a term is.

    x[j]  =  tf(j) · idf(j), divided by the length of the row

tf is how often term j occurs in the text, or with ``sublinear`` 1 + ln of that. idf falls with the number df of the N
documents that contain it:

    "smooth"    ln((1 + N) / (1 + df)) + 1      scikit-learn's; as if one more document contained every term
    "plain"     ln(N / df)                      zero for a term that all contain
    "plain+1"   ln(N / df) + 1                  scikit-learn's with smooth_idf=False

K. Spärck Jones, "A statistical interpretation of term specificity and its application in retrieval", Journal of
Documentation 28, 1972.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, Unpack, get_args

import numpy as np

from foreword.arrays import Doubles
from foreword.checks import check_choice
from foreword.errors import SettingError
from foreword.features.bag import BagOfWords, BagSettings
from foreword.features.counting import canonical
from foreword.features.kernels_bag import weigh
from foreword.protocols import Counts

Idf: TypeAlias = Literal["smooth", "plain", "plain+1"]
Norm: TypeAlias = Literal["l1", "l2"]


class TfIdf(BagOfWords):
    """``BagOfWords`` with weights, float (documents, terms); with the same settings scikit-learn's TfidfVectorizer.

    idf: "smooth", "plain", "plain+1", or None for none; sublinear: tf is 1 + ln(count).
    norm: divide each row by the sum of its absolute values ("l1"), or by its Euclidean length ("l2"), or not at all.
    bag: the settings of ``BagOfWords``.

    ``partial_fit`` adds up document frequencies, so that idf is that of all texts so far: earlier rows are not weighted
    again. After fit: ``idf_`` float64 (terms,), and all that ``BagOfWords`` has.
    """

    def __init__(
        self,
        *,
        idf: Idf | None = "smooth",
        sublinear: bool = False,
        norm: Norm | None = "l2",
        dtype: Any = "float64",
        **bag: Unpack[BagSettings],
    ) -> None:
        super().__init__(**bag, dtype=dtype)
        self.idf = idf
        self.sublinear = sublinear
        self.norm = norm

    @property
    def idf_(self) -> Doubles:
        """float64 (terms,); an unused hashed column counts as if one document had used it."""
        documents, seen = self.document_counts_, self.documents_
        if self.idf is None:
            return np.ones(len(documents))
        if self.idf == "smooth":
            return np.log((1 + seen) / (1 + documents)) + 1
        return np.log(max(seen, 1) / np.maximum(documents, 1)) + (self.idf == "plain+1")

    def _weighted(self, rows: Counts) -> Counts:
        if self.binary:
            rows.data.fill(1)
        weights = self.idf_ if self.idf is not None else np.ones(0)
        norm = {None: 0, "l1": 1, "l2": 2}[self.norm]
        data = rows.data.view(np.float64)  # the same memory: 64 bits either way
        weigh(rows.indptr, rows.indices, rows.data, weights, self.sublinear, norm, data)
        return canonical(data.astype(self.dtype, copy=False), rows.indices, rows.indptr, rows.shape[1])

    def _needs_fit(self) -> bool:
        return self.idf is not None

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice(self, "idf", (None, *get_args(Idf)))
        check_choice(self, "norm", (None, *get_args(Norm)))
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise SettingError(f"dtype={self.dtype!r}: expected float64 or float32")
