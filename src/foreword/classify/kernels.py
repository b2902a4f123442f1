"""Linear classifiers: rows of a sparse matrix against a table with one row per feature and one column per class.

    starts: int64 (rows + 1,), columns: int32 (entries,), values: (entries,), the parts of a CSR matrix
    table: float64 (features, classes): the classes of a feature are adjacent, so an entry touches one place only

The second half is the inner loop of dual coordinate ascent for logistic regression, which ``solver.py`` explains. Rows
are visited in a given order. Each visit reads the weights of the row's features, finds the best dual variables of this
row with all others fixed, and updates the weights by the difference: gather, solve, scatter. There

    columns are numbered so that frequent features come first and lie close together, without those of only one row
    own: (rows, classes or 1), Σ scale² x² over the features left out, whose weights follow from the row alone
    squares: (rows, classes or 1), the same over all features
    rho: the looseness ρ of the bias; sums: the gap and the objective, see GAP and OBJECTIVE
"""

from __future__ import annotations

import math

import numpy as np

from foreword.arrays import Array, Doubles, Floats, Ints, Longs
from foreword.native import simd
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch

MISSHAPEN, INFINITE, NEGATIVE = 1, 2, 4

AHEAD = 16
"""Entries between prefetching a row of the table and using it."""

AHEAD_IN_ROW = 8
"""The same where the weights of one row are read."""

GAP, OBJECTIVE = 0, 1
"""Indices of ``sums``: the duality gap and the objective, each row's share as it was when the row was visited."""

ROUNDS, CLOSE, ENOUGH = 50, 1e-5, 1e-3
"""A row's own problem is solved to this change of a logit, or with many classes of a probability. Newton's method
converges quadratically, and the row is visited again in the next pass anyway.
"""

FAR = 20.0
"""A Newton step this long is not taken."""

LOWEST = -700.0
"""The exponential of less is zero."""


@kernel
def faults(starts: Longs, columns: Ints, values: Array, width: int) -> int:
    """Return what is wrong with a matrix: a sum of MISSHAPEN, INFINITE (or NaN) and NEGATIVE; 0 if nothing is."""
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
    """Return whether columns rise from entry to entry in every row."""
    for row in range(len(starts) - 1):
        for entry in range(starts[row] + 1, starts[row + 1]):
            if columns[entry - 1] >= columns[entry]:
                return False
    return True


@kernel
def has_repeats(starts: Longs, columns: Ints, seen: Ints) -> bool:
    """Return whether a row has a column twice. seen: zeros, one for each column."""
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            if seen[columns[entry]] == row + 1:
                return True
            seen[columns[entry]] = row + 1
    return False


@kernel
def add_up(starts: Longs, columns: Ints, values: Array, labels: Ints, presence: bool, table: Doubles) -> None:
    """Add the values of each feature to ``table[feature, class of the row]``; with ``presence``, one for each row."""
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
    """Add Σ value · table[feature] to ``scores[row]``; a stored zero adds nothing, even where the table is infinite."""
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
    """Replace counts (features, classes) by ``floor + (log(count + α) − log(count elsewhere + α) − shift)²``.

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


# Renumbering features


@kernel
def count_columns(columns: Ints, counts: Ints) -> None:
    """Count the entries of each column."""
    for entry in range(len(columns)):
        counts[columns[entry]] += 1


@kernel
def rank_columns(counts: Ints, places: Longs, ranks: Ints) -> int:
    """Number the columns that two rows or more have, the most frequent first, −1 for others; return how many there are.

    places: zeros, one more than the largest count.
    """
    for column in range(len(counts)):
        places[counts[column]] += 1
    kept = 0
    for count in range(len(places) - 1, 1, -1):
        here = places[count]
        places[count] = kept
        kept += here
    for column in range(len(counts)):
        count = counts[column]
        ranks[column] = -1
        if count > 1:
            ranks[column] = places[count]
            places[count] += 1
    return kept


@kernel
def renumber(
    starts: Longs,
    columns: Ints,
    values: Doubles,
    ranks: Ints,
    roots: Doubles,
    new_starts: Longs,
    new_columns: Ints,
    new_values: Array,
    single_starts: Longs,
    singles: Longs,
) -> None:
    """Write the rows with columns by rank, values times the columns' ``roots`` if there are any, and row by row the
    indices of the entries whose columns have no rank, ``singles``.
    """
    written, left_out = 0, 0
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            rank = ranks[columns[entry]]
            if rank >= 0:
                new_columns[written] = rank
                new_values[written] = values[entry] * roots[columns[entry]] if len(roots) else values[entry]
                written += 1
            else:
                singles[left_out] = entry
                left_out += 1
        new_starts[row + 1] = written
        single_starts[row + 1] = left_out


@kernel
def add_squares(starts: Longs, columns: Ints, values: Array, scales: Array, width: int, squares: Doubles) -> None:
    """Add Σ scale · value² to ``squares[row, class]``. scales: flat, ``width`` per feature; if empty, all are 1."""
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            square = float(values[entry]) * float(values[entry])
            if len(scales):
                at = np.int64(columns[entry]) * width
                for label in range(squares.shape[1]):
                    squares[row, label] += square * scales[at + label]
            else:
                squares[row, 0] += square


# Two classes


@inlined
def _softplus(x: float) -> float:
    """Return log(1 + exp(x))"""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@inlined
def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x > LOWEST else 0.0


@inlined
def _solve_two(margin: float, length: float, old: float, guess: float) -> float:
    """Return the root q of q + margin + length · (σ(q) − old) by Newton steps between bounds that close in.

    The curve has its inflection at zero. From the wrong side of it Newton's method would oscillate, so the bounds
    exclude that side.
    """
    low, high = -margin - length * (1 - old), -margin + length * old
    if margin + length * (0.5 - old) > 0:
        high = min(high, 0.0)
    else:
        low = max(low, 0.0)
    logit = min(max(guess, low), high)
    for _ in range(ROUNDS):
        chance = _sigmoid(logit)
        excess = logit + margin + length * (chance - old)
        step = excess / (1 + length * chance * (1 - chance))
        if abs(step) <= CLOSE * (1 + abs(logit)):
            return logit - step
        if excess > 0:
            high = logit
        else:
            low = logit
        moved = logit - step
        logit = moved if low < moved < high else 0.5 * (low + high)
    return logit


@kernel
def pass_over_two(
    starts: Longs,
    columns: Ints,
    values: Array,
    signs: Doubles,
    own: Doubles,
    squares: Doubles,
    strengths: Doubles,
    rho: float,
    order: Longs,
    first: bool,
    weights: Array,
    bias: Doubles,
    logits: Doubles,
    totals: Doubles,
    sums: Doubles,
) -> None:
    """Visit each row once.

    strengths: (rows,), 2 C of each row; logits: (rows,), the log-odds of each row's wrong class; totals: (2,), Σ a and
    the curvature of bias.
    """
    offset = bias[0]
    for turn in range(len(order)):
        row = order[turn]
        sign, strength = signs[row], strengths[row]
        old = 0.0 if first else _sigmoid(logits[row])
        score = offset + strength * sign * old * own[row, 0]
        for entry in range(starts[row], starts[row + 1]):
            score += values[entry] * weights[columns[entry]]
        margin = sign * score
        before = LOWEST if first else logits[row]
        loss = _softplus(-margin)
        sums[GAP] += strength * (loss - _softplus(before) + old * (margin + before))
        sums[OBJECTIVE] += strength * (loss + 0.5 * old * sign * (score - offset))
        logit = _solve_two(margin, strength * (squares[row, 0] + rho), old, -margin if first else before)
        logits[row] = logit
        chance = _sigmoid(logit)
        step = strength * sign * (chance - old)
        totals[0] += strength * sign * chance
        totals[1] += strength * chance * (1 - chance)
        offset += rho * step
        for entry in range(starts[row], starts[row + 1]):
            weights[columns[entry]] += step * values[entry]
    bias[0] = offset


# Many classes


@inlined
def _begin_visit(
    row: int, scores: Doubles, label: int, own: Doubles, squares: Doubles, strength: float, rho: float, first: bool,
    bias: Doubles, logs: Doubles, chances: Doubles, lengths: Doubles, steps: Doubles, sums: Doubles,
) -> None:  # fmt: skip
    """Turn the scores of a row into the u of its own problem, set ``lengths`` to L and ``steps`` to the old p, and add
    the row's share of the gap and the objective to ``sums``.
    """
    classes, spread = len(steps), own.shape[1] > 1
    top = -np.inf
    for c in range(classes):
        at = c if spread else 0
        old = (1.0 if c == label else 0.0) if first else math.exp(logs[row, c])
        steps[c] = old
        scores[c] += bias[c] + strength * ((1.0 if c == label else 0.0) - old) * own[row, at]
        lengths[c] = strength * (squares[row, at] + rho)
        top = max(top, scores[c])
    total = 0.0
    for c in range(classes):
        total += math.exp(scores[c] - top)
    top += math.log(total)
    gap, energy = top, 0.0
    for c in range(classes):
        old = steps[c]
        gap += old * ((0.0 if first else logs[row, c]) - scores[c])
        energy += ((1.0 if c == label else 0.0) - old) * (scores[c] - bias[c])
        if first:
            logs[row, c] = max(scores[c] - top, LOWEST)
    sums[GAP] += strength * gap
    sums[OBJECTIVE] += strength * (top - scores[label] + 0.5 * energy)
    for c in range(classes):
        chances[c] = math.exp(logs[row, c])
        scores[c] += lengths[c] * steps[c]


@inlined
def _solve_many(row: int, scores: Doubles, logs: Doubles, chances: Doubles, lengths: Doubles) -> None:
    """Solve log p_c + L_c p_c = u_c − ν with Σ p = 1, from ``logs[row]`` on; u: ``scores``, p: ``chances``.

    The Newton step for log p_c and ν together is taken in log p where it falls and in p where it rises: for a fixed ν
    neither ever overshoots. Where p has to rise from almost nothing it is set to a lower bound instead, for Newton's
    method would take long: L p ≥ y − log y with y = u − ν + log L.
    """
    classes = len(scores)
    for _ in range(ROUNDS):
        above, below, total = 0.0, 0.0, 0.0
        for c in range(classes):
            share = chances[c] / (1 + lengths[c] * chances[c])
            above += share * (scores[c] - logs[row, c] - lengths[c] * chances[c])
            below += share
            total += chances[c]
        level = (above + total - 1) / below
        change = 0.0
        for c in range(classes):
            chance = chances[c]
            move = (scores[c] - logs[row, c] - lengths[c] * chance - level) / (1 + lengths[c] * chance)
            change = max(change, abs(move) * chance, move - 1)
            if move > FAR:
                reach = scores[c] - level + math.log(lengths[c])
                reach = math.log(reach - math.log(reach)) if reach > 1 else reach
                move = reach - math.log(lengths[c]) - logs[row, c]
            elif move > 0:
                move = math.log1p(move)
            logs[row, c] = max(logs[row, c] + move, LOWEST)
            chances[c] = math.exp(logs[row, c])
        if change < ENOUGH:
            break


@inlined
def _visit(
    row: int, scores: Doubles, label: int, own: Doubles, squares: Doubles, strength: float, rho: float, first: bool,
    bias: Doubles, logs: Doubles, chances: Doubles, lengths: Doubles, steps: Doubles, totals: Doubles, sums: Doubles,
) -> None:  # fmt: skip
    """Compute a row's new dual variables, ``logs[row]``, and the change of its weights, ``steps``, from its scores."""
    _begin_visit(row, scores, label, own, squares, strength, rho, first, bias, logs, chances, lengths, steps, sums)
    _solve_many(row, scores, logs, chances, lengths)
    total = 0.0
    for c in range(len(steps)):
        total += chances[c]
    shift = math.log(total)
    for c in range(len(steps)):
        chance = chances[c] / total
        logs[row, c] = max(logs[row, c] - shift, LOWEST)
        steps[c] = strength * (steps[c] - chance)
        totals[0, c] += strength * ((1.0 if c == label else 0.0) - chance)
        totals[1, c] += strength * chance * (1 - chance)
        bias[c] += rho * steps[c]


@kernel
def pass_over_many(
    starts: Longs,
    columns: Ints,
    values: Doubles,
    labels: Ints,
    own: Doubles,
    squares: Doubles,
    scales: Doubles,
    strengths: Doubles,
    rho: float,
    order: Longs,
    first: bool,
    weights: Doubles,
    bias: Doubles,
    logs: Doubles,
    workspace: Doubles,
    totals: Doubles,
    sums: Doubles,
) -> None:
    """Visit each row once, in double precision. weights, scales: flat, the classes of a feature adjacent.

    strengths: (rows,), C of each row; logs: (rows, classes), the dual variables; workspace: (4, classes); totals:
    (2, classes), Σ a and the curvature of bias.
    """
    scores, chances, lengths, steps = workspace[0], workspace[1], workspace[2], workspace[3]
    classes = len(scores)
    for turn in range(len(order)):
        row = order[turn]
        for c in range(classes):
            scores[c] = 0.0
        for entry in range(starts[row], starts[row + 1]):
            value, at = values[entry], np.int64(columns[entry]) * classes
            for c in range(classes):
                scores[c] += value * weights[at + c]
        _visit(
            row, scores, labels[row], own, squares, strengths[row], rho, first, bias, logs, chances, lengths, steps,
            totals, sums,
        )  # fmt: skip
        for entry in range(starts[row], starts[row + 1]):
            value, at = values[entry], np.int64(columns[entry]) * classes
            for c in range(classes):
                scale = scales[at + c] if len(scales) else 1.0
                weights[at + c] += value * scale * steps[c]


@kernel
def pass_over_many_wide(
    starts: Longs,
    columns: Ints,
    values: Floats,
    labels: Ints,
    own: Doubles,
    squares: Doubles,
    scales: Floats,
    strengths: Doubles,
    rho: float,
    order: Longs,
    first: bool,
    weights: Floats,
    bias: Doubles,
    logs: Doubles,
    workspace: Doubles,
    lanes: Floats,
    totals: Doubles,
    sums: Doubles,
) -> None:
    """Visit each row once, with weights in single precision, sixteen classes at once.

    weights, scales: flat, the classes of a feature padded to a multiple of sixteen. lanes: as many zeros.
    """
    scores, chances, lengths, steps = workspace[0], workspace[1], workspace[2], workspace[3]
    classes, width = len(scores), len(lanes)
    for turn in range(len(order)):
        row = order[turn]
        begin, end = starts[row], starts[row + 1]
        for block in range(0, width, simd.LANES):
            lane = simd.zeros()
            for entry in range(begin, end):
                if entry + AHEAD_IN_ROW < end:
                    prefetch(weights, np.int64(columns[entry + AHEAD_IN_ROW]) * width + block)
                lane = simd.scaled_add(
                    values[entry], simd.load(weights, np.int64(columns[entry]) * width + block), lane
                )
            simd.store(lanes, block, lane)
        for c in range(classes):
            scores[c] = lanes[c]
        _visit(
            row, scores, labels[row], own, squares, strengths[row], rho, first, bias, logs, chances, lengths, steps,
            totals, sums,
        )  # fmt: skip
        for c in range(classes):
            lanes[c] = steps[c]
        for c in range(classes, width):
            lanes[c] = 0.0
        for block in range(0, width, simd.LANES):
            lane = simd.load(lanes, block)
            for entry in range(begin, end):
                at = np.int64(columns[entry]) * width + block
                step = simd.scaled(values[entry], lane)
                if len(scales):
                    if entry + AHEAD_IN_ROW < end:
                        prefetch(scales, np.int64(columns[entry + AHEAD_IN_ROW]) * width + block)
                    simd.store(weights, at, simd.multiply_add(step, simd.load(scales, at), simd.load(weights, at)))
                else:
                    simd.store(weights, at, simd.add(step, simd.load(weights, at)))


# From dual variables to weights


@kernel
def weigh(starts: Longs, columns: Ints, values: Doubles, duals: Doubles, scales: Doubles, table: Doubles) -> None:
    """Add Σ scale · value · duals[row] to ``table[feature]``; (features, classes) and (rows, classes).

    scales: flat, (features · classes,); if empty, all are 1.
    """
    classes = table.shape[1]
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            value, feature = values[entry], columns[entry]
            for c in range(classes):
                scale = scales[np.int64(feature) * classes + c] if len(scales) else 1.0
                table[feature, c] += value * scale * duals[row, c]


# Pooling: many states of a text become one vector, each state looked at once. All arrays are flat float32.


@kernel
def last_sum_max(states: Floats, lengths: Longs, texts: int, units: int, out: Floats) -> None:
    """Write to out (B, 3H) the last state of each text, the sum of its states, and the maximum of each unit.

    states (T, B, H); lengths (B,), from 1 to T.
    """
    step = texts * units
    for text in range(texts):
        length, to = lengths[text], 3 * text * units
        for j in range(0, units, simd.LANES):
            few, at = units - j, text * units + j
            state = simd.load_part(states, at, few)
            top, sums = state, simd.zeros()
            for _ in range(length):
                state = simd.load_part(states, at, few)
                top, sums = simd.maximum(state, top), simd.plus(sums, state)
                at += step
            simd.store_part(out, to + j, state, few)
            simd.store_part(out, to + units + j, sums, few)
            simd.store_part(out, to + 2 * units + j, top, few)
