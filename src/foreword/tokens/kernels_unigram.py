"""Kernels that learn a unigram tokenizer from counted words: frequent substrings, expectation and pruning.

All words lie one after another as code points (``points``); a position is an index there. An arc is a piece that begins
at a position: those of position i are ``pieces[starts[i]:starts[i + 1]]``, with their lengths in ``lengths``.
"""

from __future__ import annotations

import math

import numpy as np

from foreword.arrays import Bytes, Doubles, Ints, Longs
from foreword.native.hashing import EMPTY, find_slot, pair_key
from foreword.native.jit import inlined, kernel

UNKNOWN_POINT = -1
"""A character that is too rare to be learnt."""


@kernel
def extend(
    length: int, points: Ints, left: Ints, words: Ints, counts: Longs, scripts: Ints, script: Ints, before: Ints,
    table: Longs, nodes: Ints, totals: Longs, firsts: Ints, parents: Ints,
) -> int:  # fmt: skip
    """Extend the substrings of ``length - 1`` characters at every position by one; return how many distinct there are.

    left: characters from each position to the end of its word. before: (positions,), the substring of ``length - 1``
    characters at each, -1 for none; nodes: the same for ``length``, out. scripts: of each position, 0 for any, and a
    blank has -1; script: of the substring that begins there, in and out. table: scratch, empty.
    totals, firsts, parents: of each substring how often it comes, where it came first, and the one it extends.
    """
    size = 0
    for index in range(len(points)):
        nodes[index] = -1
        if before[index] < 0 or left[index] < length:
            continue
        last = index + length - 1
        own = scripts[last]
        if points[last] == UNKNOWN_POINT or own < 0 or (own > 0 and script[index] > 0 and own != script[index]):
            continue
        if own > 0:
            script[index] = own
        key = pair_key(before[index], points[last])
        at = find_slot(table, key)
        if table[at] == EMPTY:
            table[at] = key
            table[at + 1] = size
            totals[size] = 0
            firsts[size] = index
            parents[size] = before[index]
            size += 1
        nodes[index] = table[at + 1]
        totals[nodes[index]] += counts[words[index]]
    return size


@kernel
def write_arcs(
    level: int, nodes: Ints, chosen: Ints, fills: Longs, pieces: Ints, lengths: Bytes, counting: bool
) -> None:
    """Write, or only count, the arcs of one length: the piece of every substring that was chosen."""
    for index in range(len(nodes)):
        if nodes[index] >= 0 and chosen[nodes[index]] >= 0:
            if not counting:
                pieces[fills[index]] = chosen[nodes[index]]
                lengths[fills[index]] = level
            fills[index] += 1


@kernel
def keep_arcs(starts: Longs, pieces: Ints, lengths: Bytes, renumbered: Ints) -> None:
    """Remove the arcs of pieces that are gone, in place. renumbered: the new number of each piece, -1 if it is gone."""
    used = first = np.int64(0)
    for index in range(len(starts) - 1):
        last = starts[index + 1]
        for arc in range(first, last):
            piece = renumbered[pieces[arc]]
            if piece >= 0:
                pieces[used] = piece
                lengths[used] = lengths[arc]
                used += 1
        first = last
        starts[index + 1] = used


@kernel
def expect(
    begins: Longs, counts: Longs, starts: Longs, pieces: Ints, lengths: Bytes, weights: Doubles, scale: float,
    forward: Doubles, backward: Doubles, expected: Doubles,
) -> float:  # fmt: skip
    """Add how often each piece is expected in all words; return the log-likelihood of the words.

    With p the probability of a piece, the sum over all ways to cut a word before and after it:
    forward(j) = sum of forward(i) p(i, j), backward(i) = sum of p(i, j) backward(j), and
    expected(p) = sum of count * forward(i) p(i, j) backward(j) / forward(end).
    weights: probabilities times e^(scale * length), which keeps sums near one; forward, backward: (longest word + 1,).
    """
    likelihood = 0.0
    for word in range(len(counts)):
        begin, size = begins[word], begins[word + 1] - begins[word]
        for index in range(size + 1):
            forward[index] = backward[index] = 0.0
        forward[0] = 1.0
        backward[size] = 1.0
        for index in range(size):
            here = forward[index]
            for arc in range(starts[begin + index], starts[begin + index + 1]):
                forward[index + lengths[arc]] += here * weights[pieces[arc]]
        total = forward[size]
        if not total > 0.0:
            continue
        likelihood += counts[word] * (math.log(total) - scale * size)
        factor = counts[word] / total
        for index in range(size - 1, -1, -1):
            here = forward[index] * factor
            rest = 0.0
            for arc in range(starts[begin + index], starts[begin + index + 1]):
                way = weights[pieces[arc]] * backward[index + lengths[arc]]
                rest += way
                expected[pieces[arc]] += here * way
            backward[index] = rest
    return likelihood


@inlined
def best_ways(
    begin: int, size: int, whole: int, starts: Longs, pieces: Ints, lengths: Bytes, scores: Doubles,
    best: Doubles, arcs: Longs,
) -> None:  # fmt: skip
    """Find the best path over ``size`` characters from ``begin`` on, not by the arc of the piece ``whole`` alone."""
    for index in range(1, size + 1):
        best[index] = -np.inf
    best[0] = 0.0
    for index in range(size):
        here = best[index]
        for arc in range(starts[begin + index], starts[begin + index + 1]):
            end = index + np.int64(lengths[arc])
            if end > size or (index == 0 and pieces[arc] == whole):
                continue
            score = here + scores[pieces[arc]]
            if score > best[end]:
                best[end] = score
                arcs[2 * end], arcs[2 * end + 1] = arc, index


@kernel
def count_best(
    begins: Longs, counts: Longs, starts: Longs, pieces: Ints, lengths: Bytes, scores: Doubles,
    best: Doubles, arcs: Longs, found: Doubles,
) -> None:  # fmt: skip
    """Add how often each piece is on the best paths of all words. best, arcs: (longest word + 1,) and twice that."""
    for word in range(len(counts)):
        size = begins[word + 1] - begins[word]
        best_ways(begins[word], size, -1, starts, pieces, lengths, scores, best, arcs)
        index = size
        while index > 0:
            found[pieces[arcs[2 * index]]] += counts[word]
            index = arcs[2 * index + 1]


@kernel
def losses(
    firsts: Ints, sizes: Ints, starts: Longs, pieces: Ints, lengths: Bytes, scores: Doubles, found: Doubles,
    best: Doubles, arcs: Longs, loss: Doubles,
) -> None:  # fmt: skip
    """Set what the log-likelihood loses without each piece, whose place its second best path takes.

    -inf for a piece that is on no best path, inf for one that nothing can replace. firsts, sizes: where each piece
    stands, and its characters. found: how often each is on a best path.
    """
    total = 0.0
    for piece in range(len(found)):
        total += found[piece]
    for piece in range(len(firsts)):
        size = sizes[piece]
        if size == 1:
            loss[piece] = np.inf
            continue
        loss[piece] = -np.inf
        if found[piece] <= 0.0:
            continue
        best_ways(firsts[piece], size, piece, starts, pieces, lengths, scores, best, arcs)
        if best[size] == -np.inf:
            loss[piece] = np.inf
            continue
        if best[size] > scores[piece]:
            continue
        parts = 0
        alternative = 0.0
        index = np.int64(size)
        while index > 0:
            alternative += math.log(found[pieces[arcs[2 * index]]] + found[piece])
            parts += 1
            index = arcs[2 * index + 1]
        alternative -= parts * math.log(total + found[piece] * (parts - 1))
        loss[piece] = found[piece] / total * (math.log(found[piece]) - math.log(total) - alternative)
