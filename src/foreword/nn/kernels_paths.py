"""Kernels that sum over paths: the tags of a sentence (CRF), and the alignments of labels with frames (CTC).

For a linear chain of tags, the best path

    best_t(j) = e_t(j) + max_i [best_(t−1)(i) + moves(i, j)],    best_1(j) = start(j) + e_1(j)

and ``end`` is added at the last word; the sum over all paths, and the share of each tag in it, are computed of the
scores' exponentials, scaled at every word to sum to one, as for a hidden Markov model.
Shapes: B sentences, T words of the longest, K tags.

For CTC, log p(labels) over all alignments, and each frame's posteriors. Blanks stand between, before and after the L
labels, so that a text is a chain of 2L + 1 symbols z. Each frame stays, moves to the next symbol, or skips a blank
between two different labels:

    α_t(s) = log p_t(z_s) + log [ exp α_(t−1)(s) + exp α_(t−1)(s−1) + (z_s ≠ blank, z_s ≠ z_(s−2)) exp α_(t−1)(s−2) ]

and the backward pass alike; log p(text) = log [ exp α_T(2L) + exp α_T(2L − 1) ], counting symbols from 0.
Shapes: T frames, B texts, V symbols with the blank, S labels of the longest text.
"""

from __future__ import annotations

import math

import numpy as np

from foreword.arrays import Doubles, Floats, Ints, Longs
from foreword.native.jit import inlined, kernel
from foreword.native.simd import LANES, broadcast, load, load_part, maximum, plus, store

# The linear chain


@kernel
def viterbi(
    emissions: Floats,
    lengths: Longs,
    longest: int,
    start: Floats,
    moves: Floats,
    end: Floats,
    best: Floats,
    tags: Ints,
    scores: Floats,
) -> None:
    """Fill ``tags`` (B, T) up to each sentence's length with the best path, and ``scores`` (B,) with its score.

    emissions: (B · T · K,); moves: (K · W,), K rows padded to W, a multiple of 16; best: (T · W,), workspace of one
    sentence. Forward only maxima are computed, K² per word, sixteen at a time; the origin of one tag per word is found
    on the way back.
    """
    kinds = len(start)
    width = len(moves) // kinds
    for sentence in range(len(lengths)):
        length = lengths[sentence]
        if length == 0:
            scores[sentence] = 0
            continue
        first = sentence * longest * kinds
        for tag in range(kinds):
            best[tag] = start[tag] + emissions[first + tag]
        for word in range(1, length):
            _step(best, word * width, width, moves, kinds, emissions, first + word * kinds)
        row = (length - 1) * width
        last, highest = 0, best[row] + end[0]
        for tag in range(1, kinds):
            score = best[row + tag] + end[tag]
            if score > highest:
                last, highest = tag, score
        scores[sentence] = highest
        for word in range(length - 1, 0, -1):
            tags[sentence, word] = last
            row -= width
            last = _origin(best, row, width, moves, kinds, last)
        tags[sentence, 0] = last


@inlined
def _step(best: Floats, row: int, width: int, moves: Floats, kinds: int, emissions: Floats, at: int) -> None:
    """Advance one word: best[row + j] = e(j) + max_i best[row − width + i] + moves[i, j]."""
    before = row - width
    for tag in range(0, kinds, LANES):
        highest = plus(broadcast(best[before]), load(moves, tag))
        for origin in range(1, kinds):
            through = plus(broadcast(best[before + origin]), load(moves, origin * width + tag))
            highest = maximum(through, highest)
        store(best, row + tag, plus(highest, load_part(emissions, at + tag, kinds - tag)))


@inlined
def _origin(best: Floats, row: int, width: int, moves: Floats, kinds: int, tag: int) -> int:
    """Return the tag from which the best path came to ``tag``; of equals the lowest."""
    origin, highest = 0, best[row] + moves[tag]
    for other in range(1, kinds):
        score = best[row + other] + moves[other * width + tag]
        if score > highest:
            origin, highest = other, score
    return origin


@kernel
def sum_paths(
    powers: Doubles,
    lengths: Longs,
    start: Doubles,
    moves: Doubles,
    end: Doubles,
    forward: Doubles,
    scales: Doubles,
    log_z: Doubles,
) -> None:
    """Fill ``log_z`` (B,) with log Σ over all paths, −∞ where no path is left; all scores come as exponentials.

    powers: (B, T, K), of the emissions; start, end: (K,), moves: (K, K). Stored for the backward pass: forward
    (B, T, K), the shares of paths up to a word, each row summing to one; scales (B, T), what they were divided by.
    """
    kinds = len(start)
    for sentence in range(len(lengths)):
        total = 0.0
        for word in range(lengths[sentence]):
            now = forward[sentence, word]
            for tag in range(kinds):
                now[tag] = start[tag] if word == 0 else 0.0
            for origin in range(kinds if word > 0 else 0):
                share = forward[sentence, word - 1, origin]
                for tag in range(kinds):
                    now[tag] += share * moves[origin, tag]
            scale = 0.0
            for tag in range(kinds):
                now[tag] *= powers[sentence, word, tag]
                scale += now[tag]
            scales[sentence, word] = scale
            total += np.log(scale) if scale > 0 else -np.inf
            for tag in range(kinds):
                now[tag] = now[tag] / scale if scale > 0 else 0.0
        if lengths[sentence] > 0:
            last = 0.0
            for tag in range(kinds):
                last += forward[sentence, lengths[sentence] - 1, tag] * end[tag]
            total += np.log(last) if last > 0 else -np.inf
        log_z[sentence] = total


@kernel
def share_paths(
    powers: Doubles,
    lengths: Longs,
    moves: Doubles,
    end: Doubles,
    forward: Doubles,
    scales: Doubles,
    weights: Doubles,
    later: Doubles,
    arriving: Doubles,
    shares: Doubles,
    pairs: Doubles,
) -> None:
    """Run the backward pass after ``sum_paths``: fill ``shares`` (B, T, K), zero before, with weight · p(y_t = k), and
    add weight · p(y_(t−1) = i, y_t = j) / moves(i, j) to ``pairs`` (K, K); weights: (B,).

    later, arriving: (K,), workspace: what follows a word, and that times the word's own score over its scale.
    """
    kinds = len(end)
    for sentence in range(len(lengths)):
        length, weight = lengths[sentence], weights[sentence]
        whole = 0.0
        for tag in range(kinds):
            whole += forward[sentence, length - 1, tag] * end[tag] if length > 0 else 0.0
        for tag in range(kinds):
            later[tag] = end[tag] / whole if whole > 0 else 0.0
        for word in range(length - 1, -1, -1):
            scale = scales[sentence, word]
            for tag in range(kinds):
                shares[sentence, word, tag] = weight * forward[sentence, word, tag] * later[tag]
                arriving[tag] = powers[sentence, word, tag] * later[tag] / scale
            if word == 0:
                break
            before = forward[sentence, word - 1]
            for origin in range(kinds):
                way, share = 0.0, weight * before[origin]
                for tag in range(kinds):
                    way += moves[origin, tag] * arriving[tag]
                    pairs[origin, tag] += share * arriving[tag]
                later[origin] = way


# Connectionist temporal classification


@inlined
def _log_add(a: float, b: float) -> float:
    """Return log(exp a + exp b)."""
    high, low = (a, b) if a > b else (b, a)
    if high == -math.inf:
        return high
    return high if low < high - 40 else high + math.log(1 + math.exp(low - high))  # e^−40 is below the precision of 1


@inlined
def _symbol(labels: Longs, text: int, at: int, blank: int) -> int:
    return labels[text, at >> 1] if at & 1 else blank


@inlined
def _jumps(labels: Longs, text: int, at: int) -> bool:
    """Return whether symbol ``at`` may follow the one two before it: both are labels, and they differ."""
    return at > 1 and at & 1 and labels[text, at >> 1] != labels[text, (at >> 1) - 1]


@inlined
def _first(time: int, last: int, symbols: int) -> int:
    """Return the first symbol from which the end can be reached: each frame advances by at most two."""
    return max(symbols - 2 - 2 * (last - time), 0)


@inlined
def _beyond(time: int, symbols: int) -> int:
    """Return one more than the last symbol that can have been reached."""
    return min(2 * time + 2, symbols)


@kernel
def align(
    logs: Doubles,
    labels: Longs,
    frames: Longs,
    sizes: Longs,
    blank: int,
    alpha: Doubles,
    later: Doubles,
    earlier: Doubles,
    found: Doubles,
    shares: Doubles,
) -> None:
    """Fill ``found`` (B,) with log p(labels), and add p(symbol at t | labels) to ``shares`` (T, B, V), zeros before.

    logs: (T, B, V); labels: (B, S); frames, sizes: (B,), lengths of both; alpha: (T, 2S + 1), later and earlier:
    (2S + 1,), workspace. With empty ``shares`` the backward pass is skipped.
    """
    for text in range(len(found)):
        last = frames[text] - 1
        symbols = 2 * sizes[text] + 1
        if last < 0:
            found[text] = 0.0 if symbols == 1 else -math.inf
            continue
        _forward(logs, labels, text, last, symbols, blank, alpha)
        total = alpha[last, symbols - 1]
        if symbols > 1:
            total = _log_add(total, alpha[last, symbols - 2])
        found[text] = total
        if len(shares) and total > -math.inf:
            _add_posteriors(logs, labels, text, last, symbols, blank, alpha, later, earlier, total, shares)


@inlined
def _forward(logs: Doubles, labels: Longs, text: int, last: int, symbols: int, blank: int, alpha: Doubles) -> None:
    """Fill ``alpha``."""
    for at in range(symbols):
        alpha[0, at] = logs[0, text, _symbol(labels, text, at, blank)] if at < 2 else -math.inf
    for time in range(1, last + 1):
        alpha[time, :symbols] = -math.inf
        for at in range(_first(time, last, symbols), _beyond(time, symbols)):
            total = alpha[time - 1, at]
            if at > 0:
                total = _log_add(total, alpha[time - 1, at - 1])
            if _jumps(labels, text, at):
                total = _log_add(total, alpha[time - 1, at - 2])
            alpha[time, at] = total + logs[time, text, _symbol(labels, text, at, blank)]


@inlined
def _add_posteriors(
    logs: Doubles, labels: Longs, text: int, last: int, symbols: int, blank: int,
    alpha: Doubles, later: Doubles, earlier: Doubles, total: float, shares: Doubles,
) -> None:  # fmt: skip
    """Add posteriors by β_t(s): the log-sum over all ways from symbol s at frame t to the end, that frame excluded."""
    for at in range(symbols):
        later[at] = 0.0 if at >= symbols - 2 else -math.inf
    for time in range(last, -1, -1):
        if time < last:
            earlier[:symbols] = -math.inf
            for at in range(_first(time, last, symbols), _beyond(time, symbols)):
                way = later[at] + logs[time + 1, text, _symbol(labels, text, at, blank)]
                if at + 1 < symbols:
                    on = _symbol(labels, text, at + 1, blank)
                    way = _log_add(way, later[at + 1] + logs[time + 1, text, on])
                if at + 2 < symbols and _jumps(labels, text, at + 2):
                    on = _symbol(labels, text, at + 2, blank)
                    way = _log_add(way, later[at + 2] + logs[time + 1, text, on])
                earlier[at] = way
            later, earlier = earlier, later
        for at in range(_first(time, last, symbols), _beyond(time, symbols)):
            share = math.exp(alpha[time, at] + later[at] - total)
            shares[time, text, _symbol(labels, text, at, blank)] += share
