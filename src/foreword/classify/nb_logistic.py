"""Logistic regression on words weighted by naive Bayes: what the counts say is believed, unless the labels object.

For each class c, naive Bayes against all the other classes gives every feature f a log-count ratio

    r_fc = log (p_fc / Σ_f p_fc) − log (q_fc / Σ_f q_fc)        p_fc = α + documents of c that have f
                                                                q_fc = α + documents of other classes that have f

and the weights are found by logistic regression in which they may be the larger, the more the ratio says:

    minimise    C Σ_i −log p(y_i | x_i) + ½ Σ_fc W_fc² / (floor + r_fc²)              p = softmax(W x + b)

This is the same as multiplying every feature by √(floor + r²) beforehand. With floor = 0 and features that are 0 or 1,
it is the model of Wang and Manning, with logistic regression in the place of their support vector machine and all
classes decided together. With floor = 1 a feature that tells nothing on its own may still get a weight, which was
better by cross-validation on five of six training sets and as good on the sixth (docs/classify.md).

C is meant for documents whose squared length is one, as TF-IDF makes them; it is divided by the mean squared length, so
that counts are not taken for more certain than weights.

S. Wang and C. Manning, "Baselines and bigrams: simple, good sentiment and topic classification", ACL 2012.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from foreword.arrays import Doubles
from foreword.classify import kernels_linear as kernels
from foreword.classify.dual import Problem, Search, solve
from foreword.classify.linear import LinearModel, Rows, read_labels
from foreword.classify.logistic import (
    check_search,
    linear_model,
    linear_parts,
    real_rows,
    warn_unless_converged,
)
from foreword.errors import SettingError
from foreword.protocols import Counts, Meter, Parts


class NBLogistic(LinearModel):
    """Logistic regression weighted by naive Bayes, over a sparse matrix (documents, features).

    C: how much the labels count against the size of the weights. alpha: added to all counts. floor: see above.
    beta: 1 takes the weights as they are found, 0 those of naive Bayes at the same mean size, and in between both.
    tolerance, max_iterations, seed: as for ``LogisticRegression``.

    After fit ``weights_`` hold everything, so that the scores are ``X @ weights_.T + bias_``; also ``n_iter_`` and
    ``gap_``.
    """

    n_iter_: int
    gap_: float

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
    ) -> None:
        self.C = C
        self.alpha = alpha
        self.floor = floor
        self.beta = beta
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.seed = seed

    def fit(self, X: Counts, y: Sequence[Any], *, meter: Meter | None = None) -> Self:
        self._check_settings()
        rows = real_rows(X, self)
        classes, labels = read_labels(y, len(rows))
        scales = squared_ratios(presence_counts(rows, labels, len(classes)), self.alpha, self.floor, len(rows))
        problem = Problem(rows, labels, len(classes), self.C / mean_squared_length(rows), scales)
        solution = solve(problem, Search(self.tolerance, self.max_iterations, self.seed, meter))
        table = solution.table
        if self.beta < 1:
            ratios = log_count_ratios(presence_counts(rows, labels, len(classes)), self.alpha)
            table = _towards_naive_bayes(table, scales, ratios, self.beta)
        self._take(classes, table, solution.bias)
        self.n_iter_, self.gap_ = solution.passes, solution.gap
        warn_unless_converged(self, solution)
        return self

    def to_parts(self) -> Parts:
        own = {name: float(getattr(self, name)) for name in ("C", "alpha", "floor", "beta")}
        return linear_parts(self, {**own})

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        model: Self = linear_model(cls, parts)
        return model

    def _check_settings(self) -> None:
        check_search(self)
        for name, least in (("alpha", 0.0), ("floor", 0.0)):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value) and value >= least):
                raise SettingError(f"{name}={value} must be zero or a positive number")
        if self.alpha == 0:
            raise SettingError("alpha=0 makes the ratio of a word that one class only has infinite: expected alpha > 0")
        if not (isinstance(self.beta, int | float) and 0 <= self.beta <= 1):
            raise SettingError(f"beta={self.beta} must lie between 0 and 1")


def presence_counts(rows: Rows, labels: Any, classes: int) -> Doubles:
    """(features, classes): how many documents of each class have each feature."""
    counts = np.zeros((rows.width, classes))
    kernels.add_up(rows.starts, rows.columns, rows.values, labels, True, counts)
    return counts


def log_count_ratios(counts: Doubles, alpha: float) -> Doubles:
    """(features, classes): r, from how many documents of each class have each feature."""
    inside = counts + alpha
    outside = counts.sum(axis=1, keepdims=True) - counts + alpha
    ratios: Doubles = np.log(inside / inside.sum(axis=0)) - np.log(outside / outside.sum(axis=0))
    return ratios


def squared_ratios(counts: Doubles, alpha: float, floor: float, documents: int) -> Doubles:
    """(features, classes): floor + r², in the place of the counts. Logs are taken of every number of documents once."""
    features = len(counts)
    totals = counts.sum(axis=0)
    shift = np.log(totals + alpha * features) - np.log(totals.sum() - totals + alpha * features)
    kernels.square_ratios(counts, np.log(np.arange(documents + 1) + alpha), shift, floor)
    return counts


def mean_squared_length(rows: Rows) -> float:
    """Of the documents that are not empty; 1 if all are."""
    squares, filled = float(np.vdot(rows.values, rows.values)), int((np.diff(rows.starts) > 0).sum())
    return squares / filled if squares > 0 else 1.0


def _towards_naive_bayes(table: Doubles, scales: Doubles, ratios: Doubles, beta: float) -> Doubles:
    """β W + (1 − β) w̄ r, where w̄ is the mean size of W / √scales, class by class."""
    sizes = np.divide(np.abs(table), np.sqrt(scales), out=np.zeros_like(table), where=scales > 0).mean(axis=0)
    mixed: Doubles = beta * table + (1 - beta) * sizes * ratios
    return mixed
