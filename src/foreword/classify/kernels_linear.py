"""Rows of a sparse matrix against a table with a row for each feature and a column for each class.

starts: int64 (rows + 1,), columns: int32 (entries,), values: (entries,), the parts of a CSR matrix
table: float64 (features, classes): the classes of a feature lie side by side, so an entry touches one place only
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Array, Doubles, Ints, Longs
from foreword.native.jit import kernel
from foreword.native.memory import prefetch

MISSHAPEN, INFINITE, NEGATIVE = 1, 2, 4

AHEAD = 16
"""Entries between asking for a row of the table and using it."""


@kernel
def faults(starts: Longs, columns: Ints, values: Array, width: int) -> int:
    """What is wrong with a matrix: a sum of MISSHAPEN, INFINITE (or not a number) and NEGATIVE; 0 if nothing is."""
    entries = len(columns)
    if starts[0] != 0 or starts[-1] != entries or len(values) != entries:
        return MISSHAPEN
    for row in range(len(starts) - 1):
        if starts[row] > starts[row + 1]:
            return MISSHAPEN
    lowest, highest = 0, -1
    for entry in range(entries):
        lowest = min(lowest, columns[entry])
        highest = max(highest, columns[entry])
    if lowest < 0 or highest >= width:
        return MISSHAPEN
    infinite, negative = 0, 0
    for entry in range(entries):
        infinite |= values[entry] - values[entry] != 0
        negative |= values[entry] < 0
    return INFINITE * infinite + NEGATIVE * negative


@kernel
def is_sorted(starts: Longs, columns: Ints) -> bool:
    """Whether columns rise from entry to entry in every row."""
    for row in range(len(starts) - 1):
        for entry in range(starts[row] + 1, starts[row + 1]):
            if columns[entry - 1] >= columns[entry]:
                return False
    return True


@kernel
def has_repeats(starts: Longs, columns: Ints, seen: Ints) -> bool:
    """Whether a row has a column twice. seen: zeros, one for each column."""
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            if seen[columns[entry]] == row + 1:
                return True
            seen[columns[entry]] = row + 1
    return False


@kernel
def add_up(starts: Longs, columns: Ints, values: Array, labels: Ints, presence: bool, table: Doubles) -> None:
    """``table[feature, class] +=`` what the rows of the class hold of the feature; with ``presence`` how many do."""
    for row in range(len(starts) - 1):
        label = labels[row]
        for entry in range(starts[row], starts[row + 1]):
            value = values[entry]
            if presence:
                table[columns[entry], label] += value != 0
            else:
                table[columns[entry], label] += value


@kernel
def add_scores(starts: Longs, columns: Ints, values: Array, presence: bool, table: Doubles, scores: Doubles) -> None:
    """``scores[row] += Σ value · table[feature]``; a stored zero adds nothing, not even where the table is infinite."""
    entries, classes = len(columns), table.shape[1]
    for row in range(len(starts) - 1):
        first, second = 0.0, 0.0  # two classes stay in registers, which makes them twice as fast
        for entry in range(starts[row], starts[row + 1]):
            if entry + AHEAD < entries:
                prefetch(table, np.int64(columns[entry + AHEAD]) * classes)
            value = values[entry]
            if value != 0:
                weight = 1.0 if presence else float(value)
                feature = columns[entry]
                if classes == 2:
                    first += weight * table[feature, 0]
                    second += weight * table[feature, 1]
                else:
                    for label in range(classes):
                        scores[row, label] += weight * table[feature, label]
        if classes == 2:
            scores[row, 0] += first
            scores[row, 1] += second


@kernel
def square_ratios(counts: Doubles, logs: Doubles, shift: Doubles, floor: float) -> None:
    """``floor + (log(count + α) − log(count elsewhere + α) − shift)²`` in the place of counts (features, classes).

    counts: whole numbers, the sum of a row below ``len(logs)``; logs: log(n + α) of the number n.
    """
    classes = counts.shape[1]
    for feature in range(len(counts)):
        everywhere = 0.0
        for label in range(classes):
            everywhere += counts[feature, label]
        for label in range(classes):
            inside = int(counts[feature, label])
            ratio = logs[inside] - logs[int(everywhere) - inside] - shift[label]
            counts[feature, label] = floor + ratio * ratio
