"""What linear classifiers share: reading matrices and labels, and the way from scores to posteriors.

score_c = bias_c + Σ_j x_j weight_cj           log p(c | x) = score_c − log Σ_d exp(score_d)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from foreword.arrays import Array, Doubles, Ints, Logs, Longs
from foreword.classify import kernels_linear as kernels
from foreword.errors import InputError
from foreword.features.estimator import Estimator, EstimatorNotFittedError
from foreword.protocols import Counts, Json

Labels: TypeAlias = Any  # an array (documents,) or (classes,); the protocol, which others fill too, says Sequence[str]

WIDEST = 2**31 - 1


class DataError(InputError, ValueError):
    """A matrix or labels that nothing can be learnt from; scikit-learn's machines look for a ValueError."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A matrix as the kernels read it; none of them needs to look twice.

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

    _counts_only = False  # whether negative numbers make no sense to it
    _presence = False  # whether it is the same to it how often a feature is there

    classes_: Labels
    bias_: Doubles
    n_features_in_: int
    _table: Doubles  # (features, classes): the weights as the kernels want them

    @property
    def weights_(self) -> Doubles:
        """(classes, features): what one occurrence adds to the score of a class."""
        if not hasattr(self, "_table"):
            raise EstimatorNotFittedError(self, "X, y")
        return self._table.T

    def predict(self, X: Counts) -> Labels:
        best = self.predict_joint_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_joint_log_proba(self, X: Counts) -> Doubles:
        """(documents, classes): the scores."""
        return self._scores(self._rows_to_judge(X))

    def predict_log_proba(self, X: Counts) -> Logs:
        """(documents, classes): the posteriors' natural logs."""
        return log_softmax(self.predict_joint_log_proba(X), self._indifferent())

    def predict_proba(self, X: Counts) -> Logs:
        return np.exp(self.predict_log_proba(X))

    def score(self, X: Counts, y: Sequence[Any]) -> float:
        """The share of labels that are right; one that was never seen in training is wrong."""
        truth = np.asarray(y).ravel().tolist()
        said = self.predict(X).tolist()
        if len(truth) != len(said):
            raise DataError(f"{len(said)} documents and {len(truth)} labels: expected a label for each document")
        if not said:
            raise DataError("there are no documents to score")
        return float(np.mean([ours == theirs for ours, theirs in zip(said, truth, strict=True)]))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, TargetTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags()
        tags.target_tags = TargetTags(required=True)
        tags.input_tags = InputTags(sparse=True)
        return tags

    def _take(self, classes: Labels, table: Doubles, bias: Doubles) -> None:
        self.classes_ = classes
        self._table = table
        self.bias_ = bias
        self.n_features_in_ = len(table)

    def _rows_to_judge(self, X: Counts) -> Rows:
        if not hasattr(self, "_table"):
            raise EstimatorNotFittedError(self, "X, y")
        rows = rows_of(X, self, counts=self._counts_only, distinct=self._presence)
        self._check_width(rows)
        return rows

    def _check_width(self, rows: Rows) -> None:
        if rows.width != self.n_features_in_:
            raise DataError(
                f"X has {rows.width} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input"
            )

    def _scores(self, rows: Rows) -> Doubles:
        scores = np.tile(self.bias_, (len(rows), 1))
        kernels.add_scores(rows.starts, rows.columns, rows.values, self._presence, self._table, scores)
        return scores

    def _indifferent(self) -> Doubles:
        """(classes,): the log-posteriors of a document that no class could have had."""
        return np.full(len(self.classes_), -np.log(len(self.classes_)))


def rows_of(X: Counts, reader: object, *, counts: bool = False, distinct: bool = True) -> Rows:
    """The matrix, all of it finite. Dense ones are taken too.

    counts: refuse negative numbers. distinct: entries of the same place, which sparse matrices may have, are added up
    beforehand; to sums over a row it makes no difference.
    """
    matrix = _csr(X)
    rows = Rows(
        matrix.indptr.astype(np.int64, copy=False),
        matrix.indices.astype(np.int32, copy=False),
        _values(matrix.data),
        int(matrix.shape[1]),
    )
    faults = kernels.faults(rows.starts, rows.columns, rows.values, rows.width)
    if faults & kernels.MISSHAPEN:
        raise DataError("the sparse matrix is broken: an index lies outside of it")
    if faults & kernels.INFINITE:
        raise DataError("the matrix holds NaN or infinity")
    if counts and faults & kernels.NEGATIVE:
        raise DataError(f"Negative values in data passed to {type(reader).__name__}: expected counts")
    if distinct and _has_repeats(rows):
        matrix = sparse.csr_array(matrix, copy=True)
        matrix.has_canonical_format = False  # it may say otherwise
        matrix.sum_duplicates()
        return rows_of(matrix, reader, counts=counts)
    return rows


def _has_repeats(rows: Rows) -> bool:
    """Whether a row has a column twice. scipy would sort to find out, which takes ten times as long."""
    return not kernels.is_sorted(rows.starts, rows.columns) and bool(
        kernels.has_repeats(rows.starts, rows.columns, np.zeros(rows.width, np.int32))
    )


def _csr(X: Counts) -> Counts:
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
        raise DataError(f"the matrix has {X.shape[1]} columns: at most {WIDEST} can be told apart")
    return X if sparse.issparse(X) and X.format == "csr" else sparse.csr_array(X)


def _values(data: Array) -> Array:
    """As they are where a kernel is likely to have been compiled for them."""
    return data if data.dtype in (np.float64, np.int64, np.int32) and data.dtype.isnative else data.astype(np.float64)


def read_labels(y: Any, documents: int) -> tuple[Labels, Ints]:
    """The classes, sorted, and the number of each document's; strings stay Python's strings."""
    if y is None or isinstance(y, str):
        raise DataError(f"y should be a 1d array of labels, got {y!r}")
    labels = list_of_labels(y)
    if len(labels) != documents:
        raise DataError(f"{documents} documents and {len(labels)} labels: expected a label for each document")
    if documents == 0:
        raise DataError("Found array with 0 sample(s) while a minimum of 1 is required: there is nothing to learn from")
    classes = classes_of(labels)
    if len(classes) == 1:
        raise DataError(f"all documents have the label {labels[0]!r}: more than one class is needed, not 1 class")
    return classes, numbers_of(labels, classes)


def list_of_labels(y: Any) -> list[Any]:
    if isinstance(y, list) and all(type(label) is str for label in y):
        return y
    array = np.array(list(y), dtype=object) if isinstance(y, list | tuple) and _is_flat(y) else np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"y should be a 1d array of labels, got an array of shape {array.shape}")
    labels = [label.item() if isinstance(label, np.generic) else label for label in array.tolist()]
    if not all(label.is_integer() for label in labels if isinstance(label, float)):
        raise DataError("Unknown label type: numbers that are not whole. Expected classes, not measurements")
    return labels


def _is_flat(y: Sequence[Any]) -> bool:
    return all(isinstance(label, str) or np.ndim(label) == 0 for label in y)


def classes_of(labels: Sequence[Any]) -> Labels:
    found = set(labels)
    kinds = {str if isinstance(label, str) else type(label) for label in found}
    if kinds == {str}:
        return np.array(sorted(map(str, found)), dtype=object)
    if len(kinds) > 1 or not kinds <= {int, float, bool}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(f"Unknown label type: expected strings or whole numbers, got {names}")
    return np.array(sorted(found))


def numbers_of(labels: Sequence[Any], classes: Labels) -> Ints:
    number = {label: place for place, label in enumerate(classes.tolist())}
    try:
        return np.fromiter(map(number.__getitem__, labels), np.int32, len(labels))
    except KeyError as error:
        raise DataError(f"the label {error.args[0]!r} is not among the classes {_few(classes)}") from None


def log_softmax(scores: Doubles, indifferent: Doubles) -> Doubles:
    """Row by row, ``score − log Σ exp(score)``, and never NaN.

    Where no class is possible, all −∞, a row becomes ``indifferent``; classes whose score is +∞ share everything.
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
    return np.where(none, indifferent, logs)


# In a folder


def saved_classes(classes: Labels) -> list[Json]:
    labels: list[Json] = classes.tolist()
    return labels


def loaded_classes(saved: Any) -> Labels:
    if not isinstance(saved, list) or not saved:
        raise ValueError("'classes' must be a list of labels")
    classes = classes_of(saved)
    if classes.tolist() != saved:
        raise ValueError("the classes are not sorted, or one comes twice")
    return classes


def check_array(array: Array, name: str, shape: tuple[int, ...]) -> Doubles:
    """float64 of this shape without NaN; −1 stands for any length above zero."""
    fits = len(array.shape) == len(shape) and all(
        have == want or (want == -1 and have > 0) for have, want in zip(array.shape, shape, strict=True)
    )
    if array.dtype != np.float64 or not fits:
        raise ValueError(f"{name} is {array.dtype} {array.shape}, not float64 {shape}")
    if np.isnan(array).any():
        raise ValueError(f"{name} holds a number that is none")
    return np.ascontiguousarray(array)


def _few(classes: Labels) -> str:
    names = [str(label) for label in classes[:10].tolist()]
    return ", ".join(names) + (" …" if len(classes) > 10 else "")
