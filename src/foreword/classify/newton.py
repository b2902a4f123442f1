"""The weights of logistic regression by Newton's method, where dual coordinate ascent would take too long.

Dual ascent (``dual.py``) is slow where documents are many, features few or large, and C is large: each document alone
can move little. There the minimum of F is found in the weights themselves. A step of Newton's method within a trust
region solves H d = −∇F by conjugate gradients. They need H only times a vector, which is two passes over the matrix:

    H v = v / s² + C Xᵀ D X v          D: for each document diag(p) − p pᵀ

Close to the minimum each step doubles the digits, and close is where the dual ascent has brought us.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foreword.arrays import Doubles
from foreword.classify import kernels_linear as linear
from foreword.classify import kernels_logistic as logistic
from foreword.classify.linear import log_softmax
from foreword.protocols import Meter


class Objective:
    """F, its gradient and its Hessian in variables y, flat: W_fc = s_fc u_f y_fc, and behind them b_c = u y_c.

    The units u make the mean curvature of a feature's variables one where the search begins. They are the same for all
    classes, so that a number added to all weights of a feature, which changes no posterior, stays apart from all else:
    neither gradients nor steps ever go there. For b a penalty ½ (Σ b)² does the same.
    """

    def __init__(self, problem: Any, table: Doubles, bias: Doubles) -> None:
        self.rows, self.labels, self.classes, self.strength, squares = problem
        self.shape = table.shape
        scales = np.ones(self.shape) if squares is None else np.sqrt(squares)
        shares = self._shares(table, bias)
        spread = shares * (1 - shares)
        curvature = 1 + self.strength * (scales**2 * self._weighed(spread, self.rows.values**2)).mean(axis=1)
        self.features_unit = np.repeat(curvature**-0.5, self.classes)
        bias_unit = np.full(self.classes, (1 + self.strength * spread.sum() / self.classes) ** -0.5)
        self.unit = np.concatenate((scales.ravel() * self.features_unit, bias_unit))
        self.start = np.divide(self._flat(table, bias), self.unit, out=np.zeros_like(self.unit), where=self.unit > 0)
        self.seen = np.empty(0)

    def split(self, y: Doubles) -> tuple[Doubles, Doubles]:
        """The table and the bias."""
        both = y * self.unit
        return both[: -self.classes].reshape(self.shape), both[-self.classes :]

    def value_and_gradient(self, y: Doubles) -> tuple[float, Doubles]:
        shares, bias, penalised = self._shares_at(y), self.split(y)[1], self._penalised(y)
        here = np.arange(len(self.labels))
        with np.errstate(divide="ignore"):
            loss = -float(np.maximum(np.log(shares[here, self.labels]), -1e3).sum())
        value = self.strength * loss + 0.5 * float(np.vdot(y, penalised)) + 0.5 * float(bias.sum()) ** 2
        wrong = self.strength * shares
        wrong[here, self.labels] -= self.strength
        gradient = self._flat(self._weighed(wrong, self.rows.values), wrong.sum(axis=0) + bias.sum())
        return value, gradient * self.unit + penalised

    def hessian_times(self, y: Doubles, vector: Doubles) -> Doubles:
        table, bias = self.split(vector)
        shares = self._shares_at(y)
        moved = shares * self._scores(table, bias)
        moved -= shares * moved.sum(axis=1, keepdims=True)
        moved *= self.strength
        product = self._flat(self._weighed(moved, self.rows.values), moved.sum(axis=0) + bias.sum())
        times: Doubles = product * self.unit + self._penalised(vector)
        return times

    def _penalised(self, y: Doubles) -> Doubles:
        """The gradient of ½ Σ (W / s)²."""
        return np.concatenate((self.features_unit**2 * y[: -self.classes], np.zeros(self.classes)))

    def _shares_at(self, y: Doubles) -> Doubles:
        """(documents, classes): the posteriors, remembered from the last time."""
        if not np.array_equal(self.seen, y):
            self.seen, self.remembered = y.copy(), self._shares(*self.split(y))
        return self.remembered

    def _shares(self, table: Doubles, bias: Doubles) -> Doubles:
        return np.exp(log_softmax(self._scores(table, bias), np.zeros(self.classes)))

    def _scores(self, table: Doubles, bias: Doubles) -> Doubles:
        scores = np.tile(bias, (len(self.rows), 1))
        linear.add_scores(self.rows.starts, self.rows.columns, self.rows.values, False, table, scores)
        return scores

    def _weighed(self, duals: Doubles, values: Doubles) -> Doubles:
        table = np.zeros(self.shape)
        logistic.weigh(self.rows.starts, self.rows.columns, values, duals, np.empty(0), table)
        return table

    @staticmethod
    def _flat(table: Doubles, bias: Doubles) -> Doubles:
        return np.concatenate((table.ravel(), bias))


def polish(
    problem: Any, table: Doubles, bias: Doubles, tolerance: float, steps: int, meter: Meter | None = None
) -> tuple[Doubles, Doubles, int, float]:
    """Better weights and bias, the steps it took, and an estimate of how far F is above its minimum, as a share."""
    from scipy.optimize import minimize

    objective = Objective(problem, table, bias - bias.mean())
    taken = 0

    def told(_: Doubles) -> None:
        nonlocal taken
        taken += 1
        if meter:
            meter("fitting by Newton's method", taken, None)

    value, _ = objective.value_and_gradient(objective.start)
    found = minimize(
        objective.value_and_gradient,
        objective.start,
        jac=True,
        hessp=objective.hessian_times,
        method="trust-ncg",
        callback=told,
        options={"gtol": float(np.sqrt(tolerance * value)), "maxiter": steps, "max_trust_radius": 1e6},
    )
    value, gradient = objective.value_and_gradient(found.x)
    return *objective.split(found.x), taken, 0.5 * float(np.vdot(gradient, gradient)) / max(value, 1e-300)
