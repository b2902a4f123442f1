"""Kernels that estimate probabilities and back-off weights from tables of n-grams, and prune them (``estimate.py``)."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Doubles, Ints
from foreword.native.jit import kernel
from foreword.native.memory import prefetch
from foreword.ngram.kernels_count import COUNT, PARENT


@kernel
def look_up_lower(suffixes: Ints, first: int, last: int, lower: Doubles, out: Doubles) -> None:
    """Set out[i] to the probability of suffix i, for suffixes from ``first`` up to ``last``.

    lower: float64 (last - first,).
    """
    size = len(suffixes)
    for index in range(size):
        ahead = np.int64(suffixes[min(index + 32, size - 1)])
        if first <= ahead < last:
            prefetch(lower, ahead - first)
        suffix = np.int64(suffixes[index])
        if first <= suffix < last:
            out[index] = lower[suffix - first]


@kernel
def weigh_contexts(
    grams: Ints, kept: Bytes, first_context: int, discounts: Doubles, per_type: float, extra: float,
    totals: Doubles, weights: Doubles,
) -> None:  # fmt: skip
    """Compute N(c) and b(c), see ``share_out``, of contexts from ``first_context`` on; grams: all their extensions.

    kept: zero for n-grams that are pruned, which give all they have to b(c); empty if none are. A context without
    extensions has the weight one.
    """
    totals[:] = 0.0
    weights[:] = 0.0
    for index in range(len(grams)):
        context = grams[index, PARENT] - first_context
        count = grams[index, COUNT]
        totals[context] += count + per_type
        is_pruned = len(kept) > 0 and kept[index] == 0
        weights[context] += count + per_type if is_pruned else discounts[min(count, 3)] + per_type
    for context in range(len(totals)):
        if totals[context] > 0.0:
            totals[context] += extra
            weights[context] = (weights[context] + extra) / totals[context]
        else:
            weights[context] = 1.0


@kernel
def share_out(
    grams: Ints, first_context: int, discounts: Doubles, interpolated: bool, totals: Doubles, weights: Doubles,
    lower: Doubles, probabilities: Doubles,
) -> None:  # fmt: skip
    """Compute the probabilities of n-grams.

        p(w | c) = (n(c w) - D(n)) / N(c) + b(c) p(w | c without its first word)

    N(c) is the sum of counts, ``per_type`` for each different word, and ``extra``; b(c) is what is left over. With
    ``interpolated`` false the last term is left out. lower: the last factor, for each n-gram.
    """
    for index in range(len(grams)):
        context = grams[index, PARENT] - first_context
        count = grams[index, COUNT]
        share = (count - discounts[min(count, 3)]) / totals[context]
        probabilities[index] = share + weights[context] * lower[index] if interpolated else share


@kernel
def mark_frequent(grams: Ints, limit: int, kept: Bytes) -> None:
    """Set kept[i] = 1 where n-gram i was seen more than ``limit`` times."""
    for index in range(len(grams)):
        kept[index] = grams[index, COUNT] > limit


@kernel
def drop_rare(grams: Ints, kept: Bytes, renumbered_below: Ints, renumbered: Ints) -> int:
    """Remove n-grams that are not kept, in place; return how many are kept. Their parents are kept too.

    renumbered_below: int32, the new numbers of the order below, empty if they are the old ones; renumbered: int32 (n,),
    out, the same for this order.
    """
    size = 0
    for index in range(len(grams)):
        renumbered[index] = size
        if kept[index]:
            for column in range(4):
                grams[size, column] = grams[index, column]
            if len(renumbered_below):
                grams[size, PARENT] = renumbered_below[grams[size, PARENT]]
            size += 1
    return size
