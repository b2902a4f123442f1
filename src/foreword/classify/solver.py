"""How the weights of logistic regression are found: dual coordinate ascent, then Newton's method if that is slow.

    minimise   F(W, b) = Σ_i −C_i log p(y_i | x_i)  +  ½ Σ_fc (W_fc / s_fc)²            p = softmax(W x + b)

s are scales, all 1 in plain logistic regression; C_i is the same for all documents unless their classes have weights;
b is not penalised. At the minimum

    W_fc = s_fc² Σ_i a_ic x_if          a_ic = C_i (1[y_i = c] − p̃_ic)          p̃_i = p(· | x_i)          Σ_i a_i = 0

and every p̃_i in the simplex gives a lower bound of F. So p̃ and W are kept together, and the documents are visited one
by one in an order drawn again for each pass: with all others fixed, the best p̃_i solves a small problem of its own,
log p̃_c + L_c p̃_c = u_c − ν, with L_c = C_i Σ_f (s_fc x_f)². The first pass begins at p̃_i = y_i, where W = 0. Each visit
touches the weights of one document only, which are still in the cache when they are written, so a pass takes little
longer than computing all scores once, and no vectors as long as W are added. To a millionth of the objective TF-IDF of
20 Newsgroups takes eight passes, raw counts of IMDB's words and pairs sixty.

b would need all documents at once. It gets a weak penalty towards its last value, ‖b − b₀‖² / 2ρ, which makes it a
feature like the others, and after every pass b₀ moves on: the method of multipliers. ρ grows while b lags behind.

The gap between F and the bound is Σ_i C_i KL(p̃_i ‖ p(· | x_i)), known from the pass itself, each document's share as it
was when visited, which is outdated and so an overestimate. What b still contributes is an estimate: its gradient Σ_i
a_i falls like a geometric series, so b has ρ Σ_i a_i / (1 − q) still to go, and at least a Newton step.

Dual ascent is slow where documents are many, features few or large, and C is large: each document alone can change
little. There the minimum of F is found in the weights themselves. A step of Newton's method within a trust region
solves H d = −∇F by conjugate gradients, which need only products of H and a vector, two passes over the matrix:

    H v = v / s² + Xᵀ D X v          D: for each document C_i (diag(p) − p pᵀ)

Close to the minimum each step doubles the digits, and the dual ascent has brought us close.

H. Yu, F. Huang and C. Lin, "Dual coordinate descent methods for logistic regression and maximum entropy models",
Machine Learning 85 (2011). S. Shalev-Shwartz and T. Zhang, "Stochastic dual coordinate ascent", JMLR 14 (2013).
Ours: many classes at a visit, by a Newton's method that cannot overshoot; the multipliers for b; and features that only
one document has cost nothing, for their weights follow from its p̃ alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from foreword.arrays import Array, Doubles, Ints, Longs
from foreword.classify import kernels
from foreword.classify.linear import SparseRows, log_softmax
from foreword.native.simd import LANES
from foreword.protocols import Meter

SINGLE_PRECISION = 1e-6
"""From this tolerance on, single precision is sufficient for the weights while they are found."""

LARGE = 1e12
"""Values this large are not trusted to single precision."""

RHO, RHO_GROWTH, LARGEST_RHO = 0.1, 4.0, 1e4
"""C ρ: its first value, the factor by which it grows, and its largest value."""

PATIENCE, LOOK_BACK = 100, 10
"""Expected remaining passes beyond which Newton's method takes over, more where features outnumber documents, since
that method then has more to do; and passes that their number is estimated from.
"""

TINY = 1e-300


class Problem(NamedTuple):
    """What to minimise. strengths: C_i, float64 (documents,). scales: float64 (features, classes), s²; None for 1."""

    rows: SparseRows
    labels: Ints
    classes: int
    strengths: Doubles
    scales: Doubles | None = None

    @property
    def strength(self) -> float:
        """The mean of C_i."""
        return float(self.strengths.mean())


class Search(NamedTuple):
    """How far to go. tolerance: the gap, as a share of the objective. passes: the most to make."""

    tolerance: float
    passes: int
    seed: int
    meter: Meter | None = None


class Solution(NamedTuple):
    """Weights and bias. table: float64 (features, classes). gap: how far above its minimum F may be, as a share."""

    table: Doubles
    bias: Doubles
    passes: int
    gap: float


def solve(problem: Problem, search: Search) -> Solution:
    """Minimise F, within ``search.passes`` passes."""
    ascent: _Ascent = (_TwoClasses if problem.classes == 2 else _ManyClasses)(problem, search.tolerance)
    random = np.random.default_rng(search.seed)
    rho = RHO / problem.strength
    gaps: list[float] = []
    lagging = np.inf
    patience = PATIENCE * max(1.0, problem.rows.width / len(problem.rows))
    for number in range(1, search.passes + 1):
        totals, sums = np.zeros((2, len(ascent.bias))), np.zeros(2)
        ascent.visit(random.permutation(len(problem.rows)), number == 1, rho, totals, sums)
        bias = ascent.bias.copy()
        if search.meter:
            search.meter("fitting", number, None)
        lagged, lagging = lagging, float(np.linalg.norm(totals[0]))
        ahead = rho / max(1 - lagging / max(lagged, TINY), 1 / LOOK_BACK)  # ρ times what is left of the series
        still_in_bias = float((totals[0] ** 2 * np.maximum(ahead, 0.5 / np.maximum(totals[1], TINY))).sum())
        gap = float((sums[kernels.GAP] + still_in_bias) / max(sums[kernels.OBJECTIVE], TINY))
        gaps.append(gap)
        if gap <= search.tolerance or is_slow(gaps, search.tolerance, patience):
            break
        if still_in_bias > sums[kernels.GAP]:
            rho = min(RHO_GROWTH * rho, LARGEST_RHO / problem.strength)
        ascent.bias += rho * totals[0]
    table, bias = ascent.table(), np.concatenate((-bias / 2, bias / 2)) if len(bias) == 1 else bias
    if gap > search.tolerance and number < search.passes:
        table, bias, steps, gap = polish(problem, table, bias, search.tolerance, search.passes - number, search.meter)
        number += steps
    return Solution(table, bias, number, gap)


def is_slow(gaps: Sequence[float], tolerance: float, patience: float) -> bool:
    """Return whether, at the pace of the last passes, more than ``patience`` remain."""
    if len(gaps) <= 2 * LOOK_BACK:
        return False
    earlier, later = min(gaps[:-LOOK_BACK]), min(gaps[-LOOK_BACK:])
    pace = math.log(earlier / later) / LOOK_BACK if later < earlier else 0.0
    return math.log(later / tolerance) > patience * pace


class _Ascent(Protocol):
    """bias: (classes,), or (1,) for the difference of two."""

    bias: Doubles

    def visit(self, order: Longs, first: bool, rho: float, totals: Doubles, sums: Doubles) -> None:
        """Make a pass. rho: ρ. totals: (2, classes or 1), to which Σ_i a_i and the curvature of F in b are added. sums:
        (2,), to which the gap and the objective are added.
        """

    def table(self) -> Doubles:
        """Return the weights that belong to p̃, (features, classes)."""


class _TwoClasses:
    """Two classes: W₀ = −s₀² v and W₁ = s₁² v, so w = W₁ − W₀ suffices: 2 F = 2C Σ loss + ½ Σ (w / g)², with
    g² = (s₀² + s₁²) / 2. Values are multiplied by g beforehand, and one number per document determines p̃: the log-odds
    of the wrong class.
    """

    def __init__(self, problem: Problem, tolerance: float) -> None:
        self.problem = problem
        self.roots = None if problem.scales is None else np.sqrt(problem.scales.mean(axis=1))
        self.rows = _ranked(problem.rows, _precision(problem, tolerance), self.roots)
        self.own, self.squares = self.rows.squares()
        self.signs = np.where(problem.labels == 1, 1.0, -1.0)
        self.weights = np.zeros(len(self.rows.kept), self.rows.values.dtype)
        self.bias = np.zeros(1)
        self.logits = np.empty(len(problem.rows))

    def visit(self, order: Longs, first: bool, rho: float, totals: Doubles, sums: Doubles) -> None:
        """Visit documents in order and update weights and p̃."""
        rows = self.rows
        kernels.pass_over_two(
            rows.starts, rows.columns, rows.values, self.signs, self.own, self.squares, 2 * self.problem.strengths,
            rho, order, first, self.weights, self.bias, self.logits, totals[:, 0], sums,
        )  # fmt: skip

    def table(self) -> Doubles:
        """Return the weights that belong to p̃, (features, classes)."""
        strengths, scales = self.problem.strengths, self.problem.scales
        table = np.zeros((self.rows.features, 1))
        table[self.rows.kept, 0] = self.weights / 2
        duals = strengths * self.signs * np.exp(-np.logaddexp(0, -self.logits))
        self.rows.add_single_weights(duals[:, None], table)
        if scales is not None and self.roots is not None:
            table = table * np.divide(scales, self.roots[:, None], out=np.zeros_like(scales), where=scales > 0)
        both: Doubles = table * np.array([-1.0, 1.0])
        return both


class _ManyClasses:
    """Many classes: p̃ as logs, one row per document. In single precision a feature's weights are padded to whole
    registers.
    """

    def __init__(self, problem: Problem, tolerance: float) -> None:
        classes, precision = problem.classes, _precision(problem, tolerance)
        self.problem = problem
        self.rows = _ranked(problem.rows, precision)
        self.single = precision is np.float32
        self.width = -(-classes // LANES) * LANES if self.single else classes
        kept = len(self.rows.kept)
        padded = np.zeros((0 if problem.scales is None else kept, self.width), precision)
        if problem.scales is not None:
            padded[:, :classes] = problem.scales[self.rows.kept]
        self.scales: Array = padded.ravel()
        self.own, self.squares = self.rows.squares(self.scales, self.width, problem.scales)
        self.weights: Array = np.zeros(kept * self.width, precision)
        self.bias = np.zeros(classes)
        self.logs = np.empty((len(problem.rows), classes))
        self.workspace = np.empty((4, classes))

    def visit(self, order: Longs, first: bool, rho: float, totals: Doubles, sums: Doubles) -> None:
        """Visit documents in order and update weights and p̃."""
        rows, problem = self.rows, self.problem
        if self.single:
            kernels.pass_over_many_wide(
                rows.starts, rows.columns, rows.values, problem.labels, self.own, self.squares, self.scales,
                problem.strengths, rho, order, first, self.weights, self.bias, self.logs, self.workspace,
                np.zeros(self.width, np.float32), totals, sums,
            )  # fmt: skip
        else:
            kernels.pass_over_many(
                rows.starts, rows.columns, rows.values, problem.labels, self.own, self.squares, self.scales,
                problem.strengths, rho, order, first, self.weights, self.bias, self.logs, self.workspace, totals, sums,
            )  # fmt: skip

    def table(self) -> Doubles:
        """Return the weights that belong to p̃, (features, classes)."""
        classes, strengths = self.problem.classes, self.problem.strengths
        table = np.zeros((self.rows.features, classes))
        table[self.rows.kept] = self.weights.reshape(-1, self.width)[:, :classes]
        duals = -strengths[:, None] * np.exp(self.logs)
        duals[np.arange(len(duals)), self.problem.labels] += strengths
        self.rows.add_single_weights(duals, table, self.problem.scales)
        return table


def _precision(problem: Problem, tolerance: float) -> type[np.float32 | np.float64]:
    values = problem.rows.values
    large = max(values.max(initial=0), -values.min(initial=0)) > LARGE
    return np.float64 if large or tolerance < SINGLE_PRECISION else np.float32


@dataclass(frozen=True, slots=True)
class _RankedRows:
    """Rows with features renumbered by frequency, so that frequent ones lie close together in memory.

    kept: the features that got a number, in that order. singles: the features that only one row has, one entry each,
    row by row as given by ``single_starts``.
    """

    features: int
    starts: Longs
    columns: Ints
    values: Array
    kept: Longs
    single_starts: Longs
    singles: Ints
    single_values: Doubles

    def squares(
        self, ranked_scales: Array | None = None, width: int = 1, scales: Doubles | None = None
    ) -> tuple[Doubles, Doubles]:
        """Return Σ s² x² over the single features, and over all: (rows, classes), or (rows, 1) without scales."""
        own = np.zeros((len(self.starts) - 1, 1 if scales is None else scales.shape[1]))
        none = np.empty(0)
        kernels.add_squares(
            self.single_starts, self.singles, self.single_values, none if scales is None else scales.ravel(),
            own.shape[1], own,
        )  # fmt: skip
        squares = own.copy()
        ranked = none if scales is None or ranked_scales is None else ranked_scales
        kernels.add_squares(self.starts, self.columns, self.values, ranked, width, squares)
        return own, squares

    def add_single_weights(self, duals: Doubles, table: Doubles, scales: Doubles | None = None) -> None:
        """Add the weights of the single features to a table (features, columns of duals)."""
        flat = np.empty(0) if scales is None else scales.ravel()
        kernels.weigh(self.single_starts, self.singles, self.single_values, duals, flat, table)


def _ranked(rows: SparseRows, precision: type[np.float32 | np.float64], roots: Doubles | None = None) -> _RankedRows:
    """Renumber the features of rows. roots: (features,), factors of the values."""
    counts, ranks = np.zeros(rows.width, np.int32), np.empty(rows.width, np.int32)
    kernels.count_columns(rows.columns, counts)
    kept = np.empty(kernels.rank_columns(counts, np.zeros(max(int(counts.max()), 1) + 1, np.int64), ranks), np.int64)
    ranked = np.flatnonzero(ranks >= 0)
    kept[ranks[ranked]] = ranked
    entries = int(counts[ranked].sum())
    starts, single_starts = np.zeros(len(rows) + 1, np.int64), np.zeros(len(rows) + 1, np.int64)
    columns, values = np.empty(entries, np.int32), np.empty(entries, precision)
    singles = np.empty(len(rows.columns) - entries, np.int64)
    kernels.renumber(
        rows.starts, rows.columns, rows.values, ranks, np.empty(0) if roots is None else roots,
        starts, columns, values, single_starts, singles,
    )  # fmt: skip
    single_columns, single_values = rows.columns[singles], rows.values[singles]
    if roots is not None:
        single_values *= roots[single_columns]
    return _RankedRows(rows.width, starts, columns, values, kept, single_starts, single_columns, single_values)


# Newton's method


class Objective:
    """F, its gradient and its Hessian in flat variables y: W_fc = s_fc u_f y_fc, followed by b_c = u y_c.

    The units u make the mean curvature of a feature's variables one where the search begins. They are the same for all
    classes, so that adding a number to all weights of a feature, which changes no posterior, is a direction of its own
    in which neither gradients nor steps have a component. For b a penalty ½ (Σ b)² does the same.
    """

    def __init__(self, problem: Problem, table: Doubles, bias: Doubles) -> None:
        self.rows, self.labels, self.classes, self.strengths, squares = problem
        self.shape = table.shape
        scales = np.ones(self.shape) if squares is None else np.sqrt(squares)
        shares = self._shares(table, bias)
        spread = self.strengths[:, None] * shares * (1 - shares)
        curvature = 1 + (scales**2 * self._weighed(spread, self.rows.values**2)).mean(axis=1)
        self.features_unit = np.repeat(curvature**-0.5, self.classes)
        bias_unit = np.full(self.classes, (1 + spread.sum() / self.classes) ** -0.5)
        self.unit = np.concatenate((scales.ravel() * self.features_unit, bias_unit))
        self.start = np.divide(self._flat(table, bias), self.unit, out=np.zeros_like(self.unit), where=self.unit > 0)
        self.seen = np.empty(0)

    def split(self, y: Doubles) -> tuple[Doubles, Doubles]:
        """Return the table and the bias."""
        both = y * self.unit
        return both[: -self.classes].reshape(self.shape), both[-self.classes :]

    def value_and_gradient(self, y: Doubles) -> tuple[float, Doubles]:
        """Return F and its gradient."""
        shares, bias, penalised = self._shares_at(y), self.split(y)[1], self._penalised(y)
        here = np.arange(len(self.labels))
        with np.errstate(divide="ignore"):
            loss = -float(np.vdot(self.strengths, np.maximum(np.log(shares[here, self.labels]), -1e3)))
        value = loss + 0.5 * float(np.vdot(y, penalised)) + 0.5 * float(bias.sum()) ** 2
        wrong = self.strengths[:, None] * shares
        wrong[here, self.labels] -= self.strengths
        gradient = self._flat(self._weighed(wrong, self.rows.values), wrong.sum(axis=0) + bias.sum())
        return value, gradient * self.unit + penalised

    def hessian_times(self, y: Doubles, vector: Doubles) -> Doubles:
        """Return the product of the Hessian and a vector."""
        table, bias = self.split(vector)
        shares = self._shares_at(y)
        moved = shares * self._scores(table, bias)
        moved -= shares * moved.sum(axis=1, keepdims=True)
        moved *= self.strengths[:, None]
        product = self._flat(self._weighed(moved, self.rows.values), moved.sum(axis=0) + bias.sum())
        times: Doubles = product * self.unit + self._penalised(vector)
        return times

    def _penalised(self, y: Doubles) -> Doubles:
        """Return the gradient of ½ Σ (W / s)²."""
        return np.concatenate((self.features_unit**2 * y[: -self.classes], np.zeros(self.classes)))

    def _shares_at(self, y: Doubles) -> Doubles:
        """Return the posteriors, (documents, classes), cached for the last y."""
        if not np.array_equal(self.seen, y):
            self.seen, self.cached = y.copy(), self._shares(*self.split(y))
        return self.cached

    def _shares(self, table: Doubles, bias: Doubles) -> Doubles:
        return np.exp(log_softmax(self._scores(table, bias), np.zeros(self.classes)))

    def _scores(self, table: Doubles, bias: Doubles) -> Doubles:
        scores = np.tile(bias, (len(self.rows), 1))
        kernels.add_scores(self.rows.starts, self.rows.columns, self.rows.values, False, table, scores)
        return scores

    def _weighed(self, duals: Doubles, values: Doubles) -> Doubles:
        table = np.zeros(self.shape)
        kernels.weigh(self.rows.starts, self.rows.columns, values, duals, np.empty(0), table)
        return table

    @staticmethod
    def _flat(table: Doubles, bias: Doubles) -> Doubles:
        return np.concatenate((table.ravel(), bias))


def polish(
    problem: Problem, table: Doubles, bias: Doubles, tolerance: float, steps: int, meter: Meter | None = None
) -> tuple[Doubles, Doubles, int, float]:
    """Return better weights and bias, the steps taken, and an estimate of the share by which F exceeds its minimum."""
    from scipy.optimize import minimize

    objective = Objective(problem, table, bias - bias.mean())
    taken = 0

    def report(_: Doubles) -> None:
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
        callback=report,
        options={"gtol": float(np.sqrt(tolerance * value)), "maxiter": steps, "max_trust_radius": 1e6},
    )
    value, gradient = objective.value_and_gradient(found.x)
    return *objective.split(found.x), taken, 0.5 * float(np.vdot(gradient, gradient)) / max(value, 1e-300)
