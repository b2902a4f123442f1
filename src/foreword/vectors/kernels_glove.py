"""GloVe's kernels: pairs of words within a window, counted row by row; and weighted least squares by AdaGrad
(Pennington et al. 2014).

Counting. The text is one array of word ids in which words without a vector are left out and -1 ends a document. Its
positions are sorted by word. Then, one word after another, all windows around its occurrences are added up in one array
with one number per word, which is the word's row. No pair is hashed or sorted, and of the text's pairs only the sums
are stored. Sums are whole numbers, multiples of a unit, so they do not depend on the order of addition. A row has the
words up to its own, for the other half of the matrix is the same. A bit for each word marks the non-zero numbers of the
array, and a bit for each 64 of those bits the non-zero words.

Training. Each pair of words {i, j} with X_ij = X_ji = x is one record that stands for both orders. For each of them::

    e = w_i·w̃_j + b_i + b̃_j − log x        γ = rate · f(x) · e
    w_i: G += (γ w̃_j)²,  w_i −= γ w̃_j / √G        w̃_j: the same with w_i;    b_i, b̃_j: the same with 1

All numbers of a word are in one row of ``4 * width`` floats, so that a record touches two places in memory::

    [ w b 1 0… | w̃ 1 b̃ 0… | G of the first | G of the second ]

The ones and their order make e one dot product. Their G is infinite, so they never move; the padding of a row is zero,
and its gradient too. Records are trained block by block. A block has all records of some words, drawn again in every
epoch; it is shuffled, and while it is trained the rows of its own words stay in the cache.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Doubles, Floats, Ints, Longs, ULongs
from foreword.native import simd
from foreword.native.jit import inlined, kernel
from foreword.native.memory import lowest_one, prefetch
from foreword.vectors.kernels_training import below, next_random

RECORD = 4
"""Numbers of a record: two words, log x and f(x)."""

_AHEAD = 3
"""Records between prefetching rows and using them."""


@kernel
def gather_block(
    words: Ints, offsets: Longs, columns: Ints, counts: Floats, x_max: float, alpha: float,
    random: ULongs, records: Ints, values: Floats,
) -> int:  # fmt: skip
    """Write the records of some words, shuffled, and return how many.

    records: int32 (capacity * 4,), out; values: the same memory as float32.
    """
    size = 0
    limit = math.log(x_max)
    for number in range(len(words)):
        row = np.int64(words[number])
        for place in range(offsets[row], offsets[row + 1]):
            # Each record goes to a random position among those before it, and the one there to the end.
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
    """Train one order of a pair. left, right: offsets of w_i and w̃_j; their G are ``squares`` further. Return e."""
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
    """Train on ``size`` records; add the sum of f(x) e² / 2 before each step and the number of steps to ``report``."""
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
    """Over both orders of all pairs with x ≥ least, add their number, e², f(x) and f(x) e² to ``sums``."""
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


# Counting pairs

END = -1

_OCCURRENCES_AHEAD = 12
"""Occurrences of a word, scattered over the text, between prefetching and using them."""

_ONE = np.uint64(1)
_LOW = np.uint64(63)


class Sums(NamedTuple):
    """The sums of a row (V,), zeros between two rows, and the bits of those that are not zero."""

    sums: Longs
    used: ULongs
    used_words: ULongs


def make_sums(words: int) -> Sums:
    """Allocate the sums of a row."""
    bits = (words >> 6) + 1
    return Sums(np.zeros(words, np.int64), np.zeros(bits, np.uint64), np.zeros((bits >> 6) + 1, np.uint64))


@kernel
def write_text(
    ids: NDArray[np.integer], begin: int, stop: int, end: int, unknown: int, text: Ints, written: int
) -> int:
    """Write ``ids[begin:stop]`` to ``text[written:]`` as described above, and return how much is written then.

    unknown: the id that is left out; -1 if there is none.
    """
    for place in range(begin, stop):
        word = np.int64(ids[place])
        text[written] = END if word == end else word
        written += word != unknown
    return written


@kernel
def reach_back(ids: NDArray[np.integer], begin: int, end: int, unknown: int, window: int) -> int:
    """Return the first position to read for ``window`` words of the document before ``begin``, or all there are."""
    found = 0
    while begin > 0 and found < window:
        word = np.int64(ids[begin - 1])
        if word == end:
            break
        found += word != unknown
        begin -= 1
    return begin


@kernel
def reach_on(ids: NDArray[np.integer], stop: int, end: int, unknown: int, window: int) -> int:
    """Return the end of what to read for ``window`` words of the same document after ``stop``, or all there are."""
    found = 0
    while stop < len(ids) and found < window:
        word = np.int64(ids[stop])
        if word == end:
            break
        found += word != unknown
        stop += 1
    return stop


@kernel
def sort_positions(text: Ints, begin: int, stop: int, starts: Longs, positions: Ints) -> None:
    """Write the positions of each word in ``text[begin:stop]``; word w has ``positions[starts[w]:starts[w + 1]]``.

    starts: int64 (V + 2,), out; the last number is scratch.
    """
    starts[:] = 0
    for place in range(begin, stop):
        word = np.int64(text[place])
        if word >= 0:
            starts[word + 2] += 1
    for word in range(2, len(starts)):
        starts[word] += starts[word - 1]
    for place in range(begin, stop):
        word = np.int64(text[place])
        if word >= 0:
            positions[starts[word + 1]] = place
            starts[word + 1] += 1


@inlined
def _add(sums_of: Sums, word: int, weight: int) -> None:
    sums_of.sums[word] += weight
    bit = word >> 6
    sums_of.used[bit] |= _ONE << (np.uint64(word) & _LOW)
    sums_of.used_words[bit >> 6] |= _ONE << (np.uint64(bit) & _LOW)


@inlined
def _write_row(sums_of: Sums, row: int, columns: Ints, sums: Longs, written: int) -> int:
    """Write the sums of the words up to ``row``, in their order, reset all to zero, and return how much is written."""
    for upper in range(len(sums_of.used_words)):
        groups = sums_of.used_words[upper]
        sums_of.used_words[upper] = np.uint64(0)
        while groups != np.uint64(0):
            bit = (upper << 6) + lowest_one(groups)
            groups &= groups - _ONE
            bits = sums_of.used[bit]
            sums_of.used[bit] = np.uint64(0)
            while bits != np.uint64(0):
                word = (bit << 6) + lowest_one(bits)
                bits &= bits - _ONE
                if word <= row:
                    columns[written] = word
                    sums[written] = sums_of.sums[word]
                    written += 1
                sums_of.sums[word] = 0
    return written


@kernel
def count_rows(
    text: Ints, positions: Ints, starts: Longs, first: int, last: int, weights: Longs, sums_of: Sums,
    columns: Ints, sums: Longs, ends: Longs,
) -> int:  # fmt: skip
    """Write rows ``first`` to ``last`` - 1, the words to ``columns`` and their sums to ``sums``; return how many in
    all.

    text: ``END`` comes before and after all of it. weights: int64 (window + 1,), what a pair counts at each distance.
    columns, sums: there must be sums_of. ends: int64 (last - first,), out: where each row ends.
    """
    window = len(weights) - 1
    written = 0
    for row in range(first, last):
        stop = starts[row + 1]
        for occurrence in range(starts[row], stop):
            place = np.int64(positions[occurrence])
            if occurrence + _OCCURRENCES_AHEAD < len(positions):
                prefetch(text, np.int64(positions[occurrence + _OCCURRENCES_AHEAD]))
            for distance in range(1, window + 1):
                word = np.int64(text[place - distance])
                if word < 0:
                    break
                _add(sums_of, word, weights[distance])
            for distance in range(1, window + 1):
                word = np.int64(text[place + distance])
                if word < 0:
                    break
                _add(sums_of, word, weights[distance])
        written = _write_row(sums_of, row, columns, sums, written)
        ends[row - first] = written
    return written


@kernel
def merge_rows(
    run_columns: Ints, run_sums: Longs, offsets: Longs, first: int, last: int, sums_of: Sums,
    columns: Ints, sums: Longs, ends: Longs,
) -> int:  # fmt: skip
    """Add up rows of several runs, each a part of the text counted separately.

    offsets: int64 (runs, V + 1); row w of run r is ``run_columns[offsets[r, w]:offsets[r, w + 1]]``, and so its sums.
    """
    written = 0
    for row in range(first, last):
        for run in range(len(offsets)):
            for place in range(offsets[run, row], offsets[run, row + 1]):
                _add(sums_of, np.int64(run_columns[place]), run_sums[place])
        written = _write_row(sums_of, row, columns, sums, written)
        ends[row - first] = written
    return written


@kernel
def rows_are_sound(offsets: Longs, columns: Ints, counts: Floats) -> bool:
    """Return whether each row's columns rise up to the row itself at most, and its counts are positive and finite."""
    for row in range(len(offsets) - 1):
        before = np.int64(-1)
        for place in range(offsets[row], offsets[row + 1]):
            column = np.int64(columns[place])
            if column <= before or column > row or not np.float32(0.0) < counts[place] < np.float32(np.inf):
                return False
            before = column
    return True


@kernel
def add_up(offsets: Longs, columns: Ints, counts: Floats, sums: Doubles) -> None:
    """Add to ``sums`` (V,) the total of each word's row, both halves of the matrix counted."""
    for row in range(len(offsets) - 1):
        for place in range(offsets[row], offsets[row + 1]):
            column, count = np.int64(columns[place]), np.float64(counts[place])
            sums[row] += count
            if column != row:
                sums[column] += count
