"""What linear classifiers share: reading matrices, and the way from scores to posteriors.

score_c = bias_c + Σ_j x_j weight_cj           log p(c | x) = score_c − log Σ_d exp(score_d)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from foreword.arrays import Array, Doubles, Ints, Logs, Longs
from foreword.classify import kernels
from foreword.classify.labels import DataError, Labels, check_lengths
from foreword.features.estimator import Estimator, EstimatorNotFittedError, without_frame
from foreword.protocols import Counts

WIDEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SparseRows:
    """A checked matrix in the form that the kernels read.

    starts: int64 (rows + 1,), columns: int32 and values: (entries,), no column twice in a row.
    """

    starts: Longs
    columns: Ints
    values: Array
    width: int

    def __len__(self) -> int:
        return len(self.starts) - 1


class LinearModel(Estimator):
    """A classifier whose scores are ``X @ weights_.T + bias_``.

    After fit: ``classes_`` (classes,), sorted; ``weights_`` float64 (classes, features); ``bias_`` float64 (classes,).
    """

    _counts_only = False  # whether negative numbers are refused
    _presence = False  # whether only the presence of a feature matters, not its value

    classes_: Labels
    bias_: Doubles
    n_features_in_: int
    _table: Doubles  # (features, classes): the weights as the kernels want them

    @property
    def weights_(self) -> Doubles:
        """float64 (classes, features): what one occurrence adds to the score of a class."""
        if not hasattr(self, "_table"):
            raise EstimatorNotFittedError(self, "X, y")
        return self._table.T

    def predict(self, X: Counts) -> Labels:
        """Return the likeliest class of each document."""
        best = self.predict_joint_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_joint_log_proba(self, X: Counts) -> Doubles:
        """Return the scores, (documents, classes)."""
        return self._scores(self._read(X))

    def predict_log_proba(self, X: Counts) -> Logs:
        """Return the natural logs of the posteriors, (documents, classes)."""
        return log_softmax(self.predict_joint_log_proba(X), self._uninformed())

    def predict_proba(self, X: Counts) -> Logs:
        """Return the posteriors, (documents, classes)."""
        return np.exp(self.predict_log_proba(X))

    def score(self, X: Counts, y: Sequence[Any]) -> float:
        """Return the accuracy; a label that was never seen in training counts as wrong."""
        truth = np.asarray(y).ravel().tolist()
        predicted = self.predict(X).tolist()
        check_lengths(len(predicted), len(truth))
        if not predicted:
            raise DataError("there are no documents to score")
        return float(np.mean([ours == theirs for ours, theirs in zip(predicted, truth, strict=True)]))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, TargetTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags()
        tags.target_tags = TargetTags(required=True)
        tags.input_tags = InputTags(sparse=True)
        return tags

    def _set_weights(self, classes: Labels, table: Doubles, bias: Doubles) -> None:
        self.classes_ = classes
        self._table = table
        self.bias_ = bias
        self.n_features_in_ = len(table)

    def _read(self, X: Counts) -> SparseRows:
        if not hasattr(self, "_table"):
            raise EstimatorNotFittedError(self, "X, y")
        rows = rows_of(X, self, counts=self._counts_only, distinct=self._presence)
        self._check_width(rows)
        return rows

    def _check_width(self, rows: SparseRows) -> None:
        if rows.width != self.n_features_in_:
            raise DataError(
                f"X has {rows.width} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input"
            )

    def _scores(self, rows: SparseRows) -> Doubles:
        scores = np.tile(self.bias_, (len(rows), 1))
        kernels.add_scores(rows.starts, rows.columns, rows.values, self._presence, self._table, scores)
        return scores

    def _uninformed(self) -> Doubles:
        """Return the log-posteriors (classes,) of a document that is impossible in every class."""
        return np.full(len(self.classes_), -np.log(len(self.classes_)))


def rows_of(X: Counts, reader: object, *, counts: bool = False, distinct: bool = True) -> SparseRows:
    """Read a sparse or dense matrix; raise a DataError unless all of it is finite.

    counts: refuse negative numbers. distinct: duplicate entries, which sparse matrices may have, are added up
    beforehand; to sums over a row it makes no difference.
    """
    matrix = _csr(X)
    rows = SparseRows(
        matrix.indptr.astype(np.int64, copy=False),
        matrix.indices.astype(np.int32, copy=False),
        _values(matrix.data),
        int(matrix.shape[1]),
    )
    faults = kernels.faults(rows.starts, rows.columns, rows.values, rows.width)
    if faults & kernels.MISSHAPEN:
        raise DataError("the sparse matrix is broken: an index lies outside of it")
    if faults & kernels.INFINITE:
        raise DataError("the matrix contains NaN or infinity")
    if counts and faults & kernels.NEGATIVE:
        raise DataError(f"Negative values in data passed to {type(reader).__name__}: expected counts")
    if distinct and _has_repeats(rows):
        matrix = sparse.csr_array(matrix, copy=True)
        matrix.has_canonical_format = False  # it may claim otherwise
        matrix.sum_duplicates()
        return rows_of(matrix, reader, counts=counts)
    return rows


def _has_repeats(rows: SparseRows) -> bool:
    """Return whether a row has a column twice. SciPy would sort to find out, which takes ten times as long."""
    return not kernels.is_sorted(rows.starts, rows.columns) and bool(
        kernels.has_repeats(rows.starts, rows.columns, np.zeros(rows.width, np.int32))
    )


def _csr(X: Counts) -> Counts:
    """Convert a matrix to CSR; raise a DataError unless it holds real numbers."""
    X = without_frame(X)
    if not sparse.issparse(X):
        X = np.asarray(X)
        if X.ndim != 2:
            raise DataError(f"expected a matrix (documents, features), not {X.ndim} dimensions. Reshape your data")
        if X.dtype == object:
            X = X.astype(np.float64)
    if X.dtype.kind not in "biuf":
        what = "Complex data not supported" if X.dtype.kind == "c" else f"a matrix of {X.dtype}"
        raise DataError(f"{what}: expected numbers")
    if X.shape[1] == 0:
        raise DataError(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.shape[1] > WIDEST:
        raise DataError(f"the matrix has {X.shape[1]} columns: expected at most {WIDEST}")
    return X if sparse.issparse(X) and X.format == "csr" else sparse.csr_array(X)


def _values(data: Array) -> Array:
    """Convert values to float64 unless the kernels are compiled for their type."""
    return data if data.dtype in (np.float64, np.int64, np.int32) and data.dtype.isnative else data.astype(np.float64)


def log_softmax(scores: Doubles, uninformed: Doubles) -> Doubles:
    """Return ``score − log Σ exp(score)`` row by row, never NaN.

    Where no class is possible, all −∞, a row becomes ``uninformed``; classes whose score is +∞ share everything.
    """
    top = scores.max(axis=1, keepdims=True, initial=-np.inf)
    above = np.isposinf(top)
    if above.any():
        scores = np.where(above, np.where(np.isposinf(scores), 0.0, -np.inf), scores)
        top = np.where(above, 0.0, top)
    none = np.isneginf(top)
    shifted: Doubles = scores - np.where(none, 0.0, top)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Doubles = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return np.where(none, uninformed, logs)


def check_array(array: Array, name: str, shape: tuple[int, ...]) -> Doubles:
    """Check that a saved array is float64 of this shape without NaN; −1 stands for any length above zero."""
    fits = len(array.shape) == len(shape) and all(
        have == want or (want == -1 and have > 0) for have, want in zip(array.shape, shape, strict=True)
    )
    if array.dtype != np.float64 or not fits:
        raise ValueError(f"{name} is {array.dtype} {array.shape}, not float64 {shape}")
    if np.isnan(array).any():
        raise ValueError(f"{name} contains NaN")
    return np.ascontiguousarray(array)
