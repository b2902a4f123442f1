"""TF-IDF: counts weighed by how rare a term is.

    x[j]  =  tf(j) · idf(j), divided by the length of the row

tf is how often term j stands in the text, or with ``sublinear`` 1 + ln of that. idf says in how few of the N documents
it stands (df of them):

    "smooth"    ln((1 + N) / (1 + df)) + 1      scikit-learn's; as if one more document had every term
    "plain"     ln(N / df)                      zero for what stands in all of them
    "plain+1"   ln(N / df) + 1                  scikit-learn's with smooth_idf=False

K. Spärck Jones, "A statistical interpretation of term specificity and its application in retrieval", Journal of
Documentation 28, 1972.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from foreword.arrays import Doubles
from foreword.errors import SettingError
from foreword.features.bag import BagOfWords, with_data
from foreword.features.kernels_bag import weigh
from foreword.features.plain import Split
from foreword.protocols import Counts

Idf: TypeAlias = Literal["smooth", "plain", "plain+1"]
Norm: TypeAlias = Literal["l1", "l2"]


class TfIdf(BagOfWords):
    """``BagOfWords`` with weights, float (documents, terms); scikit-learn's TfidfVectorizer under the same settings.

    idf: "smooth", "plain", "plain+1", or None for none; sublinear: tf is 1 + ln(count).
    norm: divide each row by the sum of its absolute values ("l1"), or by its length ("l2"), or not at all.

    ``partial_fit`` adds up document frequencies, so that idf is that of all texts so far: rows made before are not
    weighed again. After fit: ``idf_`` float64 (terms,), and all that ``BagOfWords`` has.
    """

    def __init__(
        self,
        *,
        split: Split = "words",
        lowercase: bool = True,
        ngrams: tuple[int, int] = (1, 1),
        min_documents: int | float = 1,
        max_documents: int | float = 1.0,
        max_size: int | None = None,
        binary: bool = False,
        columns: int | None = None,
        signed: bool = False,
        idf: Idf | None = "smooth",
        sublinear: bool = False,
        norm: Norm | None = "l2",
        dtype: Any = "float64",
    ) -> None:
        super().__init__(
            split=split, lowercase=lowercase, ngrams=ngrams, min_documents=min_documents, max_documents=max_documents,
            max_size=max_size, binary=binary, columns=columns, signed=signed, dtype=dtype,
        )  # fmt: skip
        self.idf = idf
        self.sublinear = sublinear
        self.norm = norm

    @property
    def idf_(self) -> Doubles:
        """(terms,); with hashed columns, a column that nothing stood in counts as if one document had."""
        documents, seen = self.document_counts_, self.documents_
        if self.idf is None:
            return np.ones(len(documents))
        if self.idf == "smooth":
            return np.log((1 + seen) / (1 + documents)) + 1
        return np.log(max(seen, 1) / np.maximum(documents, 1)) + (self.idf == "plain+1")

    def _weighed(self, rows: Counts) -> Counts:
        if self.binary:
            rows.data.fill(1)
        weights = self.idf_ if self.idf is not None else np.ones(0)
        norm = {None: 0, "l1": 1, "l2": 2}[self.norm]
        data = rows.data.view(np.float64)  # the same memory: 64 bits either way
        weigh(rows.indptr, rows.indices, rows.data, weights, self.sublinear, norm, data)
        return with_data(rows, data.astype(self.dtype, copy=False))

    def _needs_fit(self) -> bool:
        return self.idf is not None

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.idf not in (None, *get_args(Idf)):
            raise SettingError(f"idf={self.idf!r}: expected one of {', '.join(get_args(Idf))}, or None")
        if self.norm not in (None, *get_args(Norm)):
            raise SettingError(f"norm={self.norm!r}: expected l1, l2 or None")
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise SettingError(f"dtype={self.dtype!r}: expected float64 or float32")
