"""GloVe's steps: weighted least squares by AdaGrad (Pennington et al. 2014).

Each pair of words {i, j} with X_ij = X_ji = x is one record that stands for both orders. For each of them::

    e = w_i·w̃_j + b_i + b̃_j − log x        γ = rate · f(x) · e
    w_i: G += (γ w̃_j)²,  w_i −= γ w̃_j / √G        w̃_j: the same with w_i;    b_i, b̃_j: the same with 1

All that belongs to a word lies in one row of ``4 * width`` floats, so that a record touches two places in memory::

    [ w b 1 0… | w̃ 1 b̃ 0… | G of the first | G of the second ]

The ones and the order in which they stand make e one dot product. G is infinite behind them, so they never move; what
pads a row is zero, and its gradient too.

Records are trained block by block. A block has all records of some words, drawn anew in every epoch; it is shuffled,
and while it is trained the rows of its own words stay in the cache.
"""

from __future__ import annotations

import math

import numpy as np

from foreword.arrays import Doubles, Floats, Ints, Longs, ULongs
from foreword.native import simd
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch
from foreword.vectors.kernels_skipgram import below, next_random

RECORD = 4
"""Numbers of a record: two words, log x and f(x)."""

_AHEAD = 3
"""Rows are asked for so many records before they are needed."""


@kernel
def gather_block(
    words: Ints, offsets: Longs, columns: Ints, counts: Floats, x_max: float, alpha: float,
    random: ULongs, records: Ints, values: Floats,
) -> int:  # fmt: skip
    """The records of some words, shuffled; how many.

    records: int32 (room * 4,), out; values: the same memory as float32.
    """
    size = 0
    limit = math.log(x_max)
    for number in range(len(words)):
        row = np.int64(words[number])
        for place in range(offsets[row], offsets[row + 1]):
            # Each record goes to a random place among those before it, and what was there to the end.
            at, end = RECORD * below(next_random(random), size + 1), RECORD * size
            for part in range(RECORD):
                records[end + part] = records[at + part]
            log = math.log(counts[place])
            records[at] = row
            records[at + 1] = columns[place]
            values[at + 2] = log
            values[at + 3] = math.exp(min(0.0, alpha * (log - limit)))
            size += 1
    return size


@inlined
def one_step(rows: Floats, left: int, right: int, squares: int, width: int, log: np.float32, weight: np.float32,
             rate: np.float32) -> np.float32:  # fmt: skip
    """Train one order of a pair. left, right: where w_i and w̃_j lie; their G are ``squares`` on. Gives e."""
    total = simd.zeros()
    for k in range(0, width, 16):
        total = simd.multiply_add(simd.load(rows, left + k), simd.load(rows, right + k), total)
    error = simd.total(total) - log
    step = rate * weight * error
    for k in range(0, width, 16):
        one, other = simd.load(rows, left + k), simd.load(rows, right + k)
        change = simd.scaled(step, other)
        square = simd.multiply_add(change, change, simd.load(rows, left + squares + k))
        simd.store(rows, left + squares + k, square)
        simd.store(rows, left + k, simd.subtract(one, simd.over_root(change, square)))
        change = simd.scaled(step, one)
        square = simd.multiply_add(change, change, simd.load(rows, right + squares + k))
        simd.store(rows, right + squares + k, square)
        simd.store(rows, right + k, simd.subtract(other, simd.over_root(change, square)))
    return error


@kernel
def train_block(
    records: Ints, values: Floats, size: int, rows: Floats, width: int, rate: np.float32, report: Doubles
) -> None:
    """Train on ``size`` records; ``report`` gets added the sum of f(x) e² / 2 before each step, and how many steps."""
    stride = 4 * width
    loss, steps = 0.0, 0
    for number in range(size):
        at = RECORD * number
        ahead = min(number + _AHEAD, size - 1) * RECORD
        row = np.int64(records[ahead + 1]) * stride
        for part in range(0, stride, 16):
            prefetch(rows, row + part)
        one, other = np.int64(records[at]) * stride, np.int64(records[at + 1]) * stride
        log, weight = values[at + 2], values[at + 3]
        error = one_step(rows, one, other + width, 2 * width, width, log, weight, rate)
        squares = error * error
        steps += 1
        if one != other:
            error = one_step(rows, other, one + width, 2 * width, width, log, weight, rate)
            squares += error * error
            steps += 1
        loss += np.float64(weight * squares) * 0.5
    report[0] += loss
    report[1] += steps


@kernel
def residual_sums(
    rows: Floats, width: int, offsets: Longs, columns: Ints, counts: Floats, x_max: float, alpha: float, least: float,
    sums: Doubles,
) -> None:  # fmt: skip
    """Over both orders of all pairs with x ≥ least, add to ``sums``: how many there are, e², f(x) and f(x) e²."""
    stride = 4 * width
    for row in range(len(offsets) - 1):
        for place in range(offsets[row], offsets[row + 1]):
            x = np.float64(counts[place])
            if x < least:
                continue
            column = np.int64(columns[place])
            weight = min(1.0, (x / x_max) ** alpha)
            for order in range(1 if row == column else 2):
                left, right = (row, column) if order == 0 else (column, row)
                total = simd.zeros()
                for k in range(0, width, 16):
                    one, other = simd.load(rows, left * stride + k), simd.load(rows, right * stride + width + k)
                    total = simd.multiply_add(one, other, total)
                error = np.float64(simd.total(total)) - math.log(x)
                sums[0] += 1.0
                sums[1] += error * error
                sums[2] += weight
                sums[3] += weight * error * error
