"""Dual coordinate ascent for logistic regression: the inner loops of ``classify/dual.py``, which says what they do.

Rows are visited in a given order. Each visit reads the weights of the row's features, finds the best dual variables of
this row while all others stay, and moves the weights by the difference: gather, settle, scatter.

    starts, columns, values: the rows; columns are numbered so that frequent features come first and lie close together,
        and features that only one row has are left out
    own: (rows, classes or 1), Σ scale² x² over the features left out, whose weights follow from the row alone
    squares: (rows, classes or 1), the same over all features
    sums: what a pass found, see GAP and the others
"""

from __future__ import annotations

import math

import numpy as np

from foreword.arrays import Array, Doubles, Floats, Ints, Longs
from foreword.native import simd
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch

GAP, OBJECTIVE = 0, 1
"""Places in ``sums``: the duality gap and the objective, each row's share as it was when the row was visited."""

ROUNDS, CLOSE, ENOUGH = 50, 1e-5, 1e-3
"""A row's own problem is solved to this change of a logit, or with many classes of a probability. Newton's steps are
quadratic, and the row is looked at again in the next pass anyway.
"""

FAR = 20.0
"""A Newton's step this long is not taken."""

LOWEST = -700.0
"""The exponential of less is zero."""

AHEAD = 8
"""Entries between asking for weights and using them."""


# Numbering


@kernel
def count_columns(columns: Ints, counts: Ints) -> None:
    for entry in range(len(columns)):
        counts[columns[entry]] += 1


@kernel
def rank_columns(counts: Ints, places: Longs, ranks: Ints) -> int:
    """Number the columns that two rows or more have, the most frequent first; −1 for others. How many there are.

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
    lonely_starts: Longs,
    lonely: Longs,
) -> None:
    """The rows with columns by rank, values times the columns' ``roots`` if there are any; and where the entries were
    that got no rank, row by row.
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
                lonely[left_out] = entry
                left_out += 1
        new_starts[row + 1] = written
        lonely_starts[row + 1] = left_out


@kernel
def add_squares(starts: Longs, columns: Ints, values: Array, scales: Array, width: int, squares: Doubles) -> None:
    """``squares[row, class] += Σ scale · value²``. scales: flat, ``width`` a feature; if empty, 1 throughout."""
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
    """log(1 + exp(x))"""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@inlined
def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x > LOWEST else 0.0


@inlined
def _settle_two(margin: float, length: float, old: float, guess: float) -> float:
    """The root q of q + margin + length · (σ(q) − old): Newton's steps, kept between bounds that close in.

    The curve bends at zero. From the wrong side of it Newton's steps would swing to and fro for ever, so the bounds
    leave that side out.
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
    strength: float,
    loose: float,
    order: Longs,
    first: bool,
    weights: Array,
    bias: Doubles,
    logits: Doubles,
    totals: Doubles,
    sums: Doubles,
) -> None:
    """One visit to each row.

    logits: (rows,), the log-odds of each row's wrong class; totals: (2,), Σ a and the curvature of bias.
    """
    offset = bias[0]
    for turn in range(len(order)):
        row = order[turn]
        sign = signs[row]
        old = 0.0 if first else _sigmoid(logits[row])
        score = offset + strength * sign * old * own[row, 0]
        for entry in range(starts[row], starts[row + 1]):
            score += values[entry] * weights[columns[entry]]
        margin = sign * score
        before = LOWEST if first else logits[row]
        loss = _softplus(-margin)
        sums[GAP] += strength * (loss - _softplus(before) + old * (margin + before))
        sums[OBJECTIVE] += strength * (loss + 0.5 * old * sign * (score - offset))
        logit = _settle_two(margin, strength * (squares[row, 0] + loose), old, -margin if first else before)
        logits[row] = logit
        chance = _sigmoid(logit)
        step = strength * sign * (chance - old)
        totals[0] += strength * sign * chance
        totals[1] += strength * chance * (1 - chance)
        offset += loose * step
        for entry in range(starts[row], starts[row + 1]):
            weights[columns[entry]] += step * values[entry]
    bias[0] = offset


# Many classes


@inlined
def _settle_many(
    row: int,
    scores: Doubles,
    label: int,
    own: Doubles,
    squares: Doubles,
    strength: float,
    loose: float,
    first: bool,
    bias: Doubles,
    logs: Doubles,
    chances: Doubles,
    lengths: Doubles,
    steps: Doubles,
    totals: Doubles,
    sums: Doubles,
) -> None:
    """From the scores of a row to its new dual variables, ``logs[row]``, and what they move, ``steps``.

    The new p solves log p_c + L_c p_c = u_c − ν with Σ p = 1. Newton's step for log p_c and ν together is taken in
    log p where it falls and in p where it rises: for a fixed ν neither ever jumps over the solution. Where p has to
    rise from almost nothing it is set to a bound from below instead, for Newton's steps would take long:
    L p ≥ y − log y with y = u − ν + log L.
    """
    classes, spread = len(steps), own.shape[1] > 1
    top = -np.inf
    for c in range(classes):
        at = c if spread else 0
        old = (1.0 if c == label else 0.0) if first else math.exp(logs[row, c])
        steps[c] = old
        scores[c] += bias[c] + strength * ((1.0 if c == label else 0.0) - old) * own[row, at]
        lengths[c] = strength * (squares[row, at] + loose)
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
    total = 0.0
    for c in range(classes):
        total += chances[c]
    shift = math.log(total)
    for c in range(classes):
        chance = chances[c] / total
        logs[row, c] = max(logs[row, c] - shift, LOWEST)
        steps[c] = strength * (steps[c] - chance)
        totals[0, c] += strength * ((1.0 if c == label else 0.0) - chance)
        totals[1, c] += strength * chance * (1 - chance)
        bias[c] += loose * steps[c]


@kernel
def pass_over_many(
    starts: Longs,
    columns: Ints,
    values: Doubles,
    labels: Ints,
    own: Doubles,
    squares: Doubles,
    scales: Doubles,
    strength: float,
    loose: float,
    order: Longs,
    first: bool,
    weights: Doubles,
    bias: Doubles,
    logs: Doubles,
    room: Doubles,
    totals: Doubles,
    sums: Doubles,
) -> None:
    """One visit to each row, in double precision. weights, scales: flat, the classes of a feature side by side.

    logs: (rows, classes), the dual variables; room: (4, classes); totals: (2, classes), Σ a and the curvature of bias.
    """
    scores, chances, lengths, steps = room[0], room[1], room[2], room[3]
    classes = len(scores)
    for turn in range(len(order)):
        row = order[turn]
        for c in range(classes):
            scores[c] = 0.0
        for entry in range(starts[row], starts[row + 1]):
            value, at = values[entry], np.int64(columns[entry]) * classes
            for c in range(classes):
                scores[c] += value * weights[at + c]
        _settle_many(
            row, scores, labels[row], own, squares, strength, loose, first, bias, logs, chances, lengths, steps,
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
    strength: float,
    loose: float,
    order: Longs,
    first: bool,
    weights: Floats,
    bias: Doubles,
    logs: Doubles,
    room: Doubles,
    lanes: Floats,
    totals: Doubles,
    sums: Doubles,
) -> None:
    """The same with weights in single precision, sixteen classes at once.

    weights, scales: flat, the classes of a feature padded to a multiple of sixteen. lanes: as many zeros.
    """
    scores, chances, lengths, steps = room[0], room[1], room[2], room[3]
    classes, width = len(scores), len(lanes)
    for turn in range(len(order)):
        row = order[turn]
        begin, end = starts[row], starts[row + 1]
        for block in range(0, width, simd.LANES):
            held = simd.zeros()
            for entry in range(begin, end):
                if entry + AHEAD < end:
                    prefetch(weights, np.int64(columns[entry + AHEAD]) * width + block)
                held = simd.scaled_add(
                    values[entry], simd.load(weights, np.int64(columns[entry]) * width + block), held
                )
            simd.store(lanes, block, held)
        for c in range(classes):
            scores[c] = lanes[c]
        _settle_many(
            row, scores, labels[row], own, squares, strength, loose, first, bias, logs, chances, lengths, steps,
            totals, sums,
        )  # fmt: skip
        for c in range(classes):
            lanes[c] = steps[c]
        for c in range(classes, width):
            lanes[c] = 0.0
        for block in range(0, width, simd.LANES):
            held = simd.load(lanes, block)
            for entry in range(begin, end):
                at = np.int64(columns[entry]) * width + block
                step = simd.scaled(values[entry], held)
                if len(scales):
                    if entry + AHEAD < end:
                        prefetch(scales, np.int64(columns[entry + AHEAD]) * width + block)
                    simd.store(weights, at, simd.multiply_add(step, simd.load(scales, at), simd.load(weights, at)))
                else:
                    simd.store(weights, at, simd.add(step, simd.load(weights, at)))


# The weights that the dual variables stand for


@kernel
def weigh(starts: Longs, columns: Ints, values: Doubles, duals: Doubles, scales: Doubles, table: Doubles) -> None:
    """``table[feature] += Σ scale · value · duals[row]``, (features, classes) and (rows, classes).

    scales: flat, (features · classes,); if empty, 1 throughout.
    """
    classes = table.shape[1]
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            value, feature = values[entry], columns[entry]
            for c in range(classes):
                scale = scales[np.int64(feature) * classes + c] if len(scales) else 1.0
                table[feature, c] += value * scale * duals[row, c]
