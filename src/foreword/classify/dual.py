"""How the weights of logistic regression are found: dual coordinate ascent.

    minimise   F(W, b) = C Σ_i −log p(y_i | x_i)  +  ½ Σ_fc (W_fc / s_fc)²            p = softmax(W x + b)

s are scales, all 1 in plain logistic regression; b is not penalised. At the minimum

    W_fc = s_fc² Σ_i a_ic x_if          a_ic = C (1[y_i = c] − p̃_ic)          p̃_i = p(· | x_i)          Σ_i a_i = 0

and every p̃_i in the simplex gives a lower bound of F. So we keep p̃ and W together, and visit the documents one by one
in an order drawn anew for each pass: with all others fixed, the best p̃_i solves a little problem of its own, log p̃_c +
L_c p̃_c = u_c − ν, with L_c = C Σ_f (s_fc x_f)². The first pass begins at p̃_i = y_i, where W = 0. Each visit touches the
weights of one document only, which the cache still holds when they are written, so a pass takes little longer than
computing all scores once, and there are no vectors as long as W to add. To a millionth of
the objective TF-IDF of 20 Newsgroups takes eight passes, raw counts of IMDB's words and pairs sixty.

b would need all documents at once. It gets a weak penalty towards where it stood, ‖b − b₀‖² / 2ρ, which makes it a
feature like the others, and after every pass b₀ moves on: the method of multipliers. ρ grows while b lags behind.

The gap between F and the bound is C Σ_i KL(p̃_i ‖ p(· | x_i)), known from the pass itself, each document's share as it
stood when it was visited, which is late and so more than is left. What b is still worth is an estimate: its gradient
Σ_i a_i falls like a geometric series, so b has ρ Σ_i a_i / (1 − q) still to go, and at least a Newton's step.

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
from foreword.classify import kernels_logistic as logistic
from foreword.classify.linear import Rows
from foreword.classify.newton import polish
from foreword.native.simd import LANES
from foreword.protocols import Meter

SINGLE_IS_ENOUGH = 1e-6
"""From this tolerance on, single precision is precise enough for the weights while they are found."""

LARGE = 1e12
"""Values this large are not trusted to single precision."""

LOOSE, LOOSER, LOOSEST = 0.1, 4.0, 1e4
"""C ρ: where it begins, how it grows, and where it ends."""

PATIENCE, LOOK_BACK = 100, 10
"""Passes that may still be ahead before Newton's method takes over, more where features outnumber documents, for that
method then has more to do; and passes that their number is guessed from.
"""

TINY = 1e-300


class Problem(NamedTuple):
    """strength: C. scales: float64 (features, classes), squared; None if all are 1."""

    rows: Rows
    labels: Ints
    classes: int
    strength: float
    scales: Doubles | None = None


class Search(NamedTuple):
    """tolerance: the gap, as a share of the objective. passes: how many at most."""

    tolerance: float
    passes: int
    seed: int
    meter: Meter | None = None


class Solution(NamedTuple):
    """table: float64 (features, classes). gap: how far above its minimum F may still be, as a share."""

    table: Doubles
    bias: Doubles
    passes: int
    gap: float


def solve(problem: Problem, search: Search) -> Solution:
    """The minimum of F, or where ``search.passes`` got."""
    ascent: _Ascent = (_TwoClasses if problem.classes == 2 else _ManyClasses)(problem, search.tolerance)
    random = np.random.default_rng(search.seed)
    loose = LOOSE / problem.strength
    gaps: list[float] = []
    lagging = np.inf
    patience = PATIENCE * max(1.0, problem.rows.width / len(problem.rows))
    for number in range(1, search.passes + 1):
        totals, sums = np.zeros((2, len(ascent.bias))), np.zeros(2)
        ascent.visit(random.permutation(len(problem.rows)), number == 1, loose, totals, sums)
        bias = ascent.bias.copy()
        if search.meter:
            search.meter("fitting", number, None)
        lagged, lagging = lagging, float(np.linalg.norm(totals[0]))
        ahead = loose / max(1 - lagging / max(lagged, TINY), 1 / LOOK_BACK)  # ρ times what is left of the series
        still_in_bias = float((totals[0] ** 2 * np.maximum(ahead, 0.5 / np.maximum(totals[1], TINY))).sum())
        gap = float((sums[logistic.GAP] + still_in_bias) / max(sums[logistic.OBJECTIVE], TINY))
        gaps.append(gap)
        if gap <= search.tolerance or is_slow(gaps, search.tolerance, patience):
            break
        if still_in_bias > sums[logistic.GAP]:
            loose = min(LOOSER * loose, LOOSEST / problem.strength)
        ascent.bias += loose * totals[0]
    table, bias = ascent.table(), np.concatenate((-bias / 2, bias / 2)) if len(bias) == 1 else bias
    if gap > search.tolerance and number < search.passes:
        table, bias, steps, gap = polish(problem, table, bias, search.tolerance, search.passes - number, search.meter)
        number += steps
    return Solution(table, bias, number, gap)


def is_slow(gaps: Sequence[float], tolerance: float, patience: float) -> bool:
    """Whether, at the pace of the last passes, more than ``patience`` are to come."""
    if len(gaps) <= 2 * LOOK_BACK:
        return False
    earlier, later = min(gaps[:-LOOK_BACK]), min(gaps[-LOOK_BACK:])
    pace = math.log(earlier / later) / LOOK_BACK if later < earlier else 0.0
    return math.log(later / tolerance) > patience * pace


class _Ascent(Protocol):
    """bias: (classes,), or (1,) for the difference of two."""

    bias: Doubles

    def visit(self, order: Longs, first: bool, loose: float, totals: Doubles, sums: Doubles) -> None:
        """A pass. loose: ρ. totals: (2, classes or 1), takes Σ_i a_i and the curvature of F in b. sums: (2,), takes
        the gap and the objective.
        """

    def table(self) -> Doubles:
        """(features, classes): the weights that p̃ stands for."""


class _TwoClasses:
    """W₀ = −s₀² v and W₁ = s₁² v, so w = W₁ − W₀ is enough: 2 F = 2C Σ loss + ½ Σ (w / g)², g² = (s₀² + s₁²) / 2.
    Values are multiplied by g beforehand, and one number for a document says all of p̃: the log-odds of the wrong class.
    """

    def __init__(self, problem: Problem, tolerance: float) -> None:
        self.problem = problem
        self.roots = None if problem.scales is None else np.sqrt(problem.scales.mean(axis=1))
        self.rows = _numbered(problem.rows, _precision(problem, tolerance), self.roots)
        self.own, self.squares = self.rows.squares()
        self.signs = np.where(problem.labels == 1, 1.0, -1.0)
        self.weights = np.zeros(len(self.rows.kept), self.rows.values.dtype)
        self.bias = np.zeros(1)
        self.logits = np.empty(len(problem.rows))

    def visit(self, order: Longs, first: bool, loose: float, totals: Doubles, sums: Doubles) -> None:
        rows = self.rows
        logistic.pass_over_two(
            rows.starts, rows.columns, rows.values, self.signs, self.own, self.squares, 2 * self.problem.strength,
            loose, order, first, self.weights, self.bias, self.logits, totals[:, 0], sums,
        )  # fmt: skip

    def table(self) -> Doubles:
        strength, scales = self.problem.strength, self.problem.scales
        table = np.zeros((self.rows.features, 1))
        table[self.rows.kept, 0] = self.weights / 2
        duals = strength * self.signs * np.exp(-np.logaddexp(0, -self.logits))
        self.rows.weigh_lonely(duals[:, None], table)
        if scales is not None and self.roots is not None:
            table = table * np.divide(scales, self.roots[:, None], out=np.zeros_like(scales), where=scales > 0)
        both: Doubles = table * np.array([-1.0, 1.0])
        return both


class _ManyClasses:
    """p̃ as logs, a row a document. In single precision the weights of a feature are padded to whole registers."""

    def __init__(self, problem: Problem, tolerance: float) -> None:
        classes, precision = problem.classes, _precision(problem, tolerance)
        self.problem = problem
        self.rows = _numbered(problem.rows, precision)
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
        self.room = np.empty((4, classes))

    def visit(self, order: Longs, first: bool, loose: float, totals: Doubles, sums: Doubles) -> None:
        rows, problem = self.rows, self.problem
        if self.single:
            logistic.pass_over_many_wide(
                rows.starts, rows.columns, rows.values, problem.labels, self.own, self.squares, self.scales,
                problem.strength, loose, order, first, self.weights, self.bias, self.logs, self.room,
                np.zeros(self.width, np.float32), totals, sums,
            )  # fmt: skip
        else:
            logistic.pass_over_many(
                rows.starts, rows.columns, rows.values, problem.labels, self.own, self.squares, self.scales,
                problem.strength, loose, order, first, self.weights, self.bias, self.logs, self.room, totals, sums,
            )  # fmt: skip

    def table(self) -> Doubles:
        classes, strength = self.problem.classes, self.problem.strength
        table = np.zeros((self.rows.features, classes))
        table[self.rows.kept] = self.weights.reshape(-1, self.width)[:, :classes]
        duals = -strength * np.exp(self.logs)
        duals[np.arange(len(duals)), self.problem.labels] += strength
        self.rows.weigh_lonely(duals, table, self.problem.scales)
        return table


def _precision(problem: Problem, tolerance: float) -> type[np.float32 | np.float64]:
    values = problem.rows.values
    large = max(values.max(initial=0), -values.min(initial=0)) > LARGE
    return np.float64 if large or tolerance < SINGLE_IS_ENOUGH else np.float32


@dataclass(frozen=True, slots=True)
class _Numbered:
    """Rows as a pass wants them: frequent features first, close together, and those that one row only has apart.

    kept: the features that got a number, in that order. lonely: those that did not, an entry each, row by row as
    ``lonely_starts`` says.
    """

    features: int
    starts: Longs
    columns: Ints
    values: Array
    kept: Longs
    lonely_starts: Longs
    lonely: Ints
    lonely_values: Doubles

    def squares(
        self, ranked_scales: Array | None = None, width: int = 1, scales: Doubles | None = None
    ) -> tuple[Doubles, Doubles]:
        """(rows, classes), or (rows, 1) without scales: Σ s² x² over the lonely features, and over all."""
        own = np.zeros((len(self.starts) - 1, 1 if scales is None else scales.shape[1]))
        none = np.empty(0)
        logistic.add_squares(
            self.lonely_starts, self.lonely, self.lonely_values, none if scales is None else scales.ravel(),
            own.shape[1], own,
        )  # fmt: skip
        squares = own.copy()
        ranked = none if scales is None or ranked_scales is None else ranked_scales
        logistic.add_squares(self.starts, self.columns, self.values, ranked, width, squares)
        return own, squares

    def weigh_lonely(self, duals: Doubles, table: Doubles, scales: Doubles | None = None) -> None:
        """Put the weights of the features that one row only has into a table (features, columns of duals)."""
        flat = np.empty(0) if scales is None else scales.ravel()
        logistic.weigh(self.lonely_starts, self.lonely, self.lonely_values, duals, flat, table)


def _numbered(rows: Rows, precision: type[np.float32 | np.float64], roots: Doubles | None = None) -> _Numbered:
    """roots: (features,), what to multiply values by."""
    counts, ranks = np.zeros(rows.width, np.int32), np.empty(rows.width, np.int32)
    logistic.count_columns(rows.columns, counts)
    kept = np.empty(logistic.rank_columns(counts, np.zeros(max(int(counts.max()), 1) + 1, np.int64), ranks), np.int64)
    ranked = np.flatnonzero(ranks >= 0)
    kept[ranks[ranked]] = ranked
    entries = int(counts[ranked].sum())
    starts, lonely_starts = np.zeros(len(rows) + 1, np.int64), np.zeros(len(rows) + 1, np.int64)
    columns, values = np.empty(entries, np.int32), np.empty(entries, precision)
    lonely = np.empty(len(rows.columns) - entries, np.int64)
    logistic.renumber(
        rows.starts, rows.columns, rows.values, ranks, np.empty(0) if roots is None else roots,
        starts, columns, values, lonely_starts, lonely,
    )  # fmt: skip
    lonely_columns, lonely_values = rows.columns[lonely], rows.values[lonely]
    if roots is not None:
        lonely_values *= roots[lonely_columns]
    return _Numbered(rows.width, starts, columns, values, kept, lonely_starts, lonely_columns, lonely_values)
