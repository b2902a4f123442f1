"""Logistic regression: the log-odds are linear in the words, and the weights make the labels as likely as possible.

    p(c | x) = exp(b_c + W_c · x) / Σ_d exp(b_d + W_d · x)

    minimise    C Σ_i −log p(y_i | x_i) + ½ ‖W‖²           two classes: W₁ = −W₀ = w/2, and ½ ‖w‖² in its place

The intercept b is not penalised. This is scikit-learn's ``LogisticRegression`` with its default penalty, and the same
minimum; how it is found is told in ``dual.py``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from foreword.classify.dual import Problem, Search, Solution, solve
from foreword.classify.linear import (
    LinearModel,
    Rows,
    check_array,
    loaded_classes,
    read_labels,
    rows_of,
    saved_classes,
)
from foreword.errors import SettingError
from foreword.protocols import Counts, Json, Meter, Parts


class NotConvergedWarning(UserWarning):
    """The weights are not as good as the tolerance asked for."""


class LogisticRegression(LinearModel):
    """Logistic regression over a sparse matrix (documents, features); two classes or many.

    C: how much the labels count against the size of the weights. tolerance: stop when the objective is at most this
    share above its minimum. max_iterations: passes over the documents. seed: of the order in which they are visited.

    After fit, besides ``weights_`` and ``bias_``: ``n_iter_``, passes made; ``gap_``, how far above its minimum the
    objective may be, as a share.
    """

    n_iter_: int
    gap_: float

    def __init__(self, C: float = 1.0, *, tolerance: float = 1e-4, max_iterations: int = 200, seed: int = 0) -> None:
        self.C = C
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.seed = seed

    def fit(self, X: Counts, y: Sequence[Any], *, meter: Meter | None = None) -> Self:
        self._check_settings()
        rows = real_rows(X, self)
        classes, labels = read_labels(y, len(rows))
        halves = 2 if len(classes) == 2 else 1  # ½ ‖w‖² is twice ½ ‖W‖²
        problem = Problem(rows, labels, len(classes), self.C / halves)
        solution = solve(problem, Search(self.tolerance, self.max_iterations, self.seed, meter))
        self._take(classes, solution.table, solution.bias)
        self.n_iter_, self.gap_ = solution.passes, solution.gap
        warn_unless_converged(self, solution)
        return self

    def to_parts(self) -> Parts:
        return linear_parts(self, {"C": float(self.C)})

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        model: Self = linear_model(cls, parts)
        return model

    def _check_settings(self) -> None:
        check_search(self)


def real_rows(X: Counts, reader: object) -> Rows:
    rows = rows_of(X, reader)
    return replace(rows, values=rows.values.astype(np.float64, copy=False))


def warn_unless_converged(model: Any, solution: Solution) -> None:
    if solution.gap > model.tolerance:
        warnings.warn(
            f"{type(model).__name__} did not converge: after {solution.passes} passes the objective may be "
            f"{solution.gap:.2%} above its minimum, and tolerance={model.tolerance:g}; allow more max_iterations, "
            "scale the features down, or set a smaller C",
            NotConvergedWarning,
            stacklevel=3,
        )


def check_search(model: Any) -> None:
    """The settings that every search for weights has."""
    for name in ("C", "tolerance"):
        value = getattr(model, name)
        if isinstance(value, bool) or not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
            raise SettingError(f"{name}={value} must be a positive number")
    for name, least in (("max_iterations", 1), ("seed", 0)):
        value = getattr(model, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise SettingError(f"{name}={value} must be a whole number, at least {least}")


def linear_parts(model: Any, own: dict[str, Json]) -> Parts:
    settings: dict[str, Json] = {
        **own,
        "tolerance": float(model.tolerance),
        "max_iterations": int(model.max_iterations),
        "seed": int(model.seed),
        "classes": saved_classes(model.classes_) if hasattr(model, "classes_") else [],
    }
    return Parts(settings, {"weights": model.weights_.T, "bias": model.bias_})


def linear_model(kind: Any, parts: Parts) -> Any:
    settings: dict[str, Any] = dict(parts.settings)
    classes = loaded_classes(settings.pop("classes"))
    model = kind(**settings)
    model._check_settings()
    table = check_array(parts.arrays["weights"], "weights", (-1, len(classes)))
    model._take(classes, table, check_array(parts.arrays["bias"], "bias", (len(classes),)))
    return model
