"""Logistic regression, plain and weighted by naive Bayes.

The log-odds are linear in the words, and the weights make the labels as likely as possible:

    p(c | x) = exp(b_c + W_c · x) / Σ_d exp(b_d + W_d · x)

    minimise    C Σ_i −log p(y_i | x_i) + ½ ‖W‖²           two classes: W₁ = −W₀ = w/2, and ½ ‖w‖² in its place

The intercept b is not penalised. This is scikit-learn's ``LogisticRegression`` with its default penalty, and the same
minimum; ``solver.py`` explains how it is found. With weights of classes, a document's loss is multiplied by that of its
class; "balanced" gives all classes the same total: documents / (classes · documents of the class) each.

``NBLogistic`` believes the counts unless the labels object. For each class c, naive Bayes against all the other classes
gives every feature f a log-count ratio

    r_fc = log (p_fc / Σ_f p_fc) − log (q_fc / Σ_f q_fc)        p_fc = α + documents of c that have f
                                                                q_fc = α + documents of other classes that have f

and the weights are found by logistic regression in which a weight may be the larger, the larger its ratio:

    minimise    C Σ_i −log p(y_i | x_i) + ½ Σ_fc W_fc² / (floor + r_fc²)              p = softmax(W x + b)

This is the same as multiplying every feature by √(floor + r²) beforehand. With floor = 0 and features that are 0 or 1,
it is the model of Wang and Manning, with logistic regression in the place of their support vector machine and all
classes decided together. With floor = 1 a feature that is uninformative on its own may still get a weight, which was
better by cross-validation on five of six training sets and as good on the sixth (docs/classify.md). Its C is meant for
documents whose squared length is one, as TF-IDF makes them; it is divided by the mean squared length, so that counts
are not taken for more certain than weights.

S. Wang and C. Manning, "Baselines and bigrams: simple, good sentiment and topic classification", ACL 2012.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from foreword.arrays import Doubles, Ints
from foreword.checks import check_numbers
from foreword.classify import kernels
from foreword.classify.labels import (
    ClassWeight,
    Labels,
    loaded_class_weight,
    loaded_classes,
    read_labels,
    saved_class_weight,
    saved_classes,
    weights_of_classes,
)
from foreword.classify.linear import LinearModel, SparseRows, check_array, rows_of
from foreword.classify.solver import Problem, Search, solve
from foreword.errors import SettingError
from foreword.protocols import Counts, Json, Meter, Parts


class NotConvergedWarning(UserWarning):
    """The weights are not as good as the tolerance asked for."""


class LogisticRegression(LinearModel):
    """Logistic regression over a sparse matrix (documents, features); two classes or many.

    C: inverse regularisation strength. tolerance: stop when the objective is at most this fraction above its minimum.
    max_iterations: maximum number of passes over the documents. seed: random seed of the order of documents.
    class_weight: None, "balanced", or a weight for each class by its label, 1 for classes that are not named.

    After fit, besides ``weights_`` and ``bias_``: ``n_iter_``, the number of passes; ``gap_``, an upper bound on how
    far the objective is above its minimum, as a fraction.
    """

    n_iter_: int
    gap_: float

    def __init__(
        self,
        C: float = 1.0,
        *,
        tolerance: float = 1e-4,
        max_iterations: int = 200,
        seed: int = 0,
        class_weight: ClassWeight = None,
    ) -> None:
        self.C = C
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.seed = seed
        self.class_weight = class_weight

    def fit(self, X: Counts, y: Sequence[Any], *, meter: Meter | None = None) -> Self:
        """Find the weights for a matrix and its labels."""
        self._check_settings()
        rows = _real_rows(X, self)
        classes, labels = read_labels(y, len(rows))
        halves = 2 if len(classes) == 2 else 1  # ½ ‖w‖² is twice ½ ‖W‖²
        strengths = self._strengths(labels, classes, self.C / halves)
        self._solve(Problem(rows, labels, len(classes), strengths), classes, meter)
        return self

    def _strengths(self, labels: Ints, classes: Labels, strength: float) -> Doubles:
        """Return C_i: the strength of each document, float64 (documents,)."""
        strengths: Doubles = strength * weights_of_classes(self.class_weight, classes, labels)[labels]
        return strengths

    def _solve(self, problem: Problem, classes: Any, meter: Meter | None) -> None:
        """Find the weights of a problem, and warn unless they are as good as asked for."""
        solution = solve(problem, Search(self.tolerance, self.max_iterations, self.seed, meter))
        self._set_weights(classes, solution.table, solution.bias)
        self.n_iter_, self.gap_ = solution.passes, solution.gap
        if solution.gap > self.tolerance:
            warnings.warn(
                f"{type(self).__name__} did not converge: after {solution.passes} passes the objective may be "
                f"{solution.gap:.2%} above its minimum, and tolerance={self.tolerance:g}; allow more max_iterations, "
                "scale the features down, or set a smaller C",
                NotConvergedWarning,
                stacklevel=3,
            )

    def to_parts(self) -> Parts:
        """Return settings and weights for a model folder."""
        settings: dict[str, Json] = {
            name: int(value) if name in ("max_iterations", "seed") else float(value)
            for name, value in self.get_params().items()
            if name != "class_weight"
        }
        settings["class_weight"] = saved_class_weight(self.class_weight)
        settings["classes"] = saved_classes(self.classes_) if hasattr(self, "classes_") else []
        return Parts(settings, {"weights": self.weights_.T, "bias": self.bias_})

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a classifier from a model folder."""
        settings: dict[str, Any] = dict(parts.settings)
        classes = loaded_classes(settings.pop("classes"))
        settings["class_weight"] = loaded_class_weight(settings.get("class_weight"))
        model = cls(**settings)
        model._check_settings()
        table = check_array(parts.arrays["weights"], "weights", (-1, len(classes)))
        model._set_weights(classes, table, check_array(parts.arrays["bias"], "bias", (len(classes),)))
        return model

    def _check_settings(self) -> None:
        check_numbers(self, "C", "tolerance", above=0)
        check_numbers(self, "max_iterations", whole=True, least=1)
        check_numbers(self, "seed", whole=True)


class NBLogistic(LogisticRegression):
    """Logistic regression weighted by naive Bayes, over a sparse matrix (documents, features).

    C: inverse regularisation strength, divided by the mean squared length of the documents. alpha: added to all counts.
    floor: added to the squared log-count ratio r² in the penalty W² / (floor + r²); at 0, features with r = 0 get no
    weight. beta: interpolation between the learnt weights (1) and those of naive Bayes scaled to the same mean (0).
    tolerance: stop when the objective is at most this fraction above its minimum. max_iterations: maximum number of
    passes over the documents. seed: random seed of the order of documents. class_weight: None, "balanced", or a weight
    for each class by its label, 1 for classes that are not named.

    After fit ``weights_`` include everything, so that the scores are ``X @ weights_.T + bias_``; also ``n_iter_`` and
    ``gap_``.
    """

    def __init__(
        self,
        C: float = 30.0,
        *,
        alpha: float = 1.0,
        floor: float = 1.0,
        beta: float = 1.0,
        tolerance: float = 1e-2,
        max_iterations: int = 200,
        seed: int = 0,
        class_weight: ClassWeight = None,
    ) -> None:
        super().__init__(C, tolerance=tolerance, max_iterations=max_iterations, seed=seed, class_weight=class_weight)
        self.alpha = alpha
        self.floor = floor
        self.beta = beta

    def fit(self, X: Counts, y: Sequence[Any], *, meter: Meter | None = None) -> Self:
        """Find the weights for a matrix and its labels."""
        self._check_settings()
        rows = _real_rows(X, self)
        classes, labels = read_labels(y, len(rows))
        scales = squared_ratios(presence_counts(rows, labels, len(classes)), self.alpha, self.floor, len(rows))
        strengths = self._strengths(labels, classes, self.C / _mean_squared_length(rows))
        self._solve(Problem(rows, labels, len(classes), strengths, scales), classes, meter)
        if self.beta < 1:
            ratios = log_count_ratios(presence_counts(rows, labels, len(classes)), self.alpha)
            self._set_weights(classes, _towards_naive_bayes(self._table, scales, ratios, self.beta), self.bias_)
        return self

    def _check_settings(self) -> None:
        super()._check_settings()
        check_numbers(self, "alpha", "floor")
        check_numbers(self, "beta", most=1)
        if self.alpha == 0:
            raise SettingError("alpha=0 makes the ratio of a word that only one class has infinite: expected alpha > 0")


def _real_rows(X: Counts, reader: object) -> SparseRows:
    """Read a matrix as float64."""
    rows = rows_of(X, reader)
    return replace(rows, values=rows.values.astype(np.float64, copy=False))


def presence_counts(rows: SparseRows, labels: Any, classes: int) -> Doubles:
    """Count the documents of each class that have each feature, (features, classes)."""
    counts = np.zeros((rows.width, classes))
    kernels.add_up(rows.starts, rows.columns, rows.values, labels, True, counts)
    return counts


def log_count_ratios(counts: Doubles, alpha: float) -> Doubles:
    """Return r, (features, classes), from the number of documents of each class that have each feature."""
    inside = counts + alpha
    outside = counts.sum(axis=1, keepdims=True) - counts + alpha
    ratios: Doubles = np.log(inside / inside.sum(axis=0)) - np.log(outside / outside.sum(axis=0))
    return ratios


def squared_ratios(counts: Doubles, alpha: float, floor: float, documents: int) -> Doubles:
    """Replace counts (features, classes) by floor + r²; the log of each number of documents is taken once."""
    features = len(counts)
    totals = counts.sum(axis=0)
    shift = np.log(totals + alpha * features) - np.log(totals.sum() - totals + alpha * features)
    kernels.square_ratios(counts, np.log(np.arange(documents + 1) + alpha), shift, floor)
    return counts


def _mean_squared_length(rows: SparseRows) -> float:
    """Return the mean squared length of the documents that are not empty; 1 if all are."""
    squares, filled = float(np.vdot(rows.values, rows.values)), int((np.diff(rows.starts) > 0).sum())
    return squares / filled if squares > 0 else 1.0


def _towards_naive_bayes(table: Doubles, scales: Doubles, ratios: Doubles, beta: float) -> Doubles:
    """Return β W + (1 − β) w̄ r, where w̄ is the mean size of W / √scales, class by class."""
    sizes = np.divide(np.abs(table), np.sqrt(scales), out=np.zeros_like(table), where=scales > 0).mean(axis=0)
    mixed: Doubles = beta * table + (1 - beta) * sizes * ratios
    return mixed
