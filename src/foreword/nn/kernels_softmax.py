"""Kernels of the softmax over a vocabulary: its loss and gradient, its denominators alone, and its likeliest word.

For a row of scores s (V,) and the word y that came::

    loss = log Σ exp(s_v) − s_y        ∂loss/∂s = exp(s) / Σ exp(s_v) − onehot(y)

``to_gradient`` turns a block of scores into its own gradient, in three passes over a row that stays in cache: the
largest score, the exponentials and their sum, the shares.

``log_sums`` needs no gradient and stores no scores: they are made for 64 states and 64 words at a time and reduced to
two numbers per state, the largest score so far and the sum of exponentials below it. States are lanes of registers and
words are iterated over, so that the matrix of all words is read in order and nothing is summed across a register.

``best_words`` finds the likeliest word from products of rounded numbers, computing exactly only what may be the best. A
row of the table and a text's numbers are integers times a scale, each off by at most half a scale. So

    | x · w − s_x s_w (q_x · q_w) |  ≤  s_x / 2 · Σ|w| + s_w / 2 · Σ|s_x q_x|

and a word whose upper bound is below another's lower bound cannot be the best.

All arrays are flat. Shapes: N states or n texts, V words, D units.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Floats, Ints, Longs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch
from foreword.native.simd import (
    LANES,
    broadcast,
    exponential,
    largest,
    load,
    maximum,
    multiply_add,
    plus,
    scaled,
    scaled_add,
    store,
    subtract,
    total,
    zeros,
)
from foreword.nn.kernels_recurrent import BLOCK, add_product

WORDS = 64
"""Words that are scored together."""

HALF = BLOCK // 2
_LEAST = np.float32(-1e30)


# The loss and its gradient


@kernel
def to_gradient(
    scores: Floats, bias: Floats, targets: Longs, factor: np.float32, d_bias: Floats, rows: int, words: int
) -> float:
    """Turn scores (rows, V) without their bias into ``factor · ∂loss/∂scores``, add it to d_bias (V,), return the loss.

    The loss is the sum over the rows. All arrays are flat; targets must be from 0 to V − 1.
    """
    loss = 0.0
    for row in range(rows):
        base = row * words
        top = _with_bias(scores, base, bias, words)
        wanted = scores[base + targets[row]]
        sum_of_powers = _powers(scores, base, words, top)
        loss += np.log(sum_of_powers) + top - wanted
        _shares(scores, base, words, np.float32(factor / sum_of_powers), d_bias)
        scores[base + targets[row]] -= factor
        d_bias[targets[row]] -= factor
    return loss


@kernel
def _with_bias(scores: Floats, base: int, bias: Floats, words: int) -> np.float32:
    """Add the bias; return the largest score."""
    whole = words - words % LANES
    top = scores[base] + bias[0]
    if whole:
        highest = plus(load(scores, base), load(bias, 0))
        store(scores, base, highest)
        for v in range(LANES, whole, LANES):
            score = plus(load(scores, base + v), load(bias, v))
            store(scores, base + v, score)
            highest = maximum(highest, score)
        top = largest(highest)
    for v in range(whole, words):
        scores[base + v] += bias[v]
        top = max(top, scores[base + v])
    return top


@kernel
def _powers(scores: Floats, base: int, words: int, top: np.float32) -> np.float32:
    """Compute exp(s − top) in place; return their sum."""
    whole = words - words % LANES
    shift = broadcast(top)
    one, other = zeros(), zeros()
    for v in range(0, whole - LANES, 2 * LANES):
        first = exponential(subtract(load(scores, base + v), shift))
        second = exponential(subtract(load(scores, base + v + LANES), shift))
        store(scores, base + v, first)
        store(scores, base + v + LANES, second)
        one, other = plus(one, first), plus(other, second)
    if whole % (2 * LANES):
        first = exponential(subtract(load(scores, base + whole - LANES), shift))
        store(scores, base + whole - LANES, first)
        one = plus(one, first)
    powers = total(plus(one, other))
    for v in range(whole, words):
        scores[base + v] = np.float32(np.exp(scores[base + v] - top))
        powers += scores[base + v]
    return powers


@kernel
def _shares(scores: Floats, base: int, words: int, share: np.float32, d_bias: Floats) -> None:
    whole = words - words % LANES
    for v in range(0, whole, LANES):
        part = scaled(share, load(scores, base + v))
        store(scores, base + v, part)
        store(d_bias, v, plus(load(d_bias, v), part))
    for v in range(whole, words):
        scores[base + v] *= share
        d_bias[v] += scores[base + v]


# The denominators. weight (V, D), bias (V,), packed: the states transposed, (D, N), as ``packed`` of ``nn/fused.py``
# stores them.


@kernel
def log_sums(
    weight: Floats, bias: Floats, packed: Floats, first: int, last: int, states: int, units: int, words: int,
    scores: Floats, tops: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Fill ``tops`` and ``sums`` for the blocks ``first`` to ``last`` of 64 states; log Σ exp is tops + log sums.

    tops, sums: (N,) padded to a multiple of 64; scores: workspace of 64 · 64 numbers. Of a block with 32 states or
    fewer only 32 are computed.
    """
    for block in range(first, last):
        at, at_packed = block * BLOCK, block * BLOCK * units
        wide = HALF if states - at <= HALF else BLOCK
        for j in range(at, at + wide, LANES):
            store(tops, j, broadcast(_LEAST))
            store(sums, j, zeros())
        for word in range(0, words, WORDS):
            count = min(WORDS, words - word)
            _fill_with_bias(bias, word, count, wide, scores)
            if wide == BLOCK:
                add_product(weight, word * units, units, count, packed[at_packed:], units, BLOCK, scores)
            else:
                _add_half(weight, word * units, units, count, packed, at_packed, scores)
            for j in range(0, wide, LANES):
                _add_exponentials(scores, j, count, wide, tops, sums, at + j)


@inlined
def _fill_with_bias(bias: Floats, word: int, count: int, wide: int, scores: Floats) -> None:
    """Initialise scores with their bias."""
    for v in range(count):
        filled = broadcast(bias[word + v])
        for j in range(0, wide, LANES):
            store(scores, v * wide + j, filled)


@inlined
def _add_exponentials(scores: Floats, j: int, count: int, wide: int, tops: Floats, sums: Floats, at: int) -> None:
    """Add exp(score − largest so far) of some words to the sums of sixteen states."""
    before = load(tops, at)
    top = before
    for v in range(count):
        top = maximum(top, load(scores, v * wide + j))
    one, other = zeros(), zeros()
    for v in range(0, count - 1, 2):
        one = plus(one, exponential(subtract(load(scores, v * wide + j), top)))
        other = plus(other, exponential(subtract(load(scores, (v + 1) * wide + j), top)))
    if count % 2:
        one = plus(one, exponential(subtract(load(scores, (count - 1) * wide + j), top)))
    shrunk = exponential(subtract(before, top))
    store(sums, at, multiply_add(load(sums, at), shrunk, plus(one, other)))
    store(tops, at, top)


# Half a block: eight words by 32 states in registers, where ``add_product`` has four texts by 64 columns.


@inlined
def _add_half(v: Floats, v_at: int, stride: int, words: int, packed: Floats, at_packed: int, out: Floats) -> None:
    """Compute ``out += v @ block`` for the first 32 columns of a block; out (words, 32)."""
    whole = words - words % 8
    for word in range(0, whole, 8):
        _add_eight_words(v, v_at + word * stride, stride, packed, at_packed, out, word * HALF)
    for word in range(whole, words):
        a, b, at = zeros(), zeros(), at_packed
        for row in range(stride):
            x = v[v_at + word * stride + row]
            a, b = scaled_add(x, load(packed, at), a), scaled_add(x, load(packed, at + LANES), b)
            at += BLOCK
        _store_sums(out, word * HALF, a, b)


@inlined
def _add_eight_words(v: Floats, first: int, stride: int, packed: Floats, at_packed: int, out: Floats, to: int) -> None:
    a0, a1, a2, a3, a4, a5, a6, a7 = zeros(), zeros(), zeros(), zeros(), zeros(), zeros(), zeros(), zeros()
    b0, b1, b2, b3, b4, b5, b6, b7 = zeros(), zeros(), zeros(), zeros(), zeros(), zeros(), zeros(), zeros()
    second, third, fourth = first + stride, first + 2 * stride, first + 3 * stride
    fifth, sixth, seventh, eighth = first + 4 * stride, first + 5 * stride, first + 6 * stride, first + 7 * stride
    for row in range(stride):
        a, b = load(packed, at_packed), load(packed, at_packed + LANES)
        at_packed += BLOCK
        prefetch(v, first + 8 * (stride + row))  # the next eight words, not in cache yet
        a0, b0 = scaled_add(v[first + row], a, a0), scaled_add(v[first + row], b, b0)
        a1, b1 = scaled_add(v[second + row], a, a1), scaled_add(v[second + row], b, b1)
        a2, b2 = scaled_add(v[third + row], a, a2), scaled_add(v[third + row], b, b2)
        a3, b3 = scaled_add(v[fourth + row], a, a3), scaled_add(v[fourth + row], b, b3)
        a4, b4 = scaled_add(v[fifth + row], a, a4), scaled_add(v[fifth + row], b, b4)
        a5, b5 = scaled_add(v[sixth + row], a, a5), scaled_add(v[sixth + row], b, b5)
        a6, b6 = scaled_add(v[seventh + row], a, a6), scaled_add(v[seventh + row], b, b6)
        a7, b7 = scaled_add(v[eighth + row], a, a7), scaled_add(v[eighth + row], b, b7)
    _store_sums(out, to, a0, b0)
    _store_sums(out, to + HALF, a1, b1)
    _store_sums(out, to + 2 * HALF, a2, b2)
    _store_sums(out, to + 3 * HALF, a3, b3)
    _store_sums(out, to + 4 * HALF, a4, b4)
    _store_sums(out, to + 5 * HALF, a5, b5)
    _store_sums(out, to + 6 * HALF, a6, b6)
    _store_sums(out, to + 7 * HALF, a7, b7)


@inlined
def _store_sums(out, to, a, b):  # type: ignore[no-untyped-def]  # sixteen floats have no type in Python
    store(out, to, plus(load(out, to), a))
    store(out, to + LANES, plus(load(out, to + LANES), b))


# The likeliest word


@kernel
def best_words(
    products: Ints, scales: Floats, sums: Floats, bias: Floats, table: Floats, x: Floats, x_scales: Floats,
    x_sums: Floats, texts: int, words: int, units: int, best: Longs,
) -> None:  # fmt: skip
    """Fill ``best`` (n,) with the word v of the largest x · table_v + bias_v, the lowest of equals.

    products (n, V): of integers. scales, sums (V,): s_w and Σ|w|. x_scales, x_sums (n,): s_x and Σ|s_x q_x|.
    """
    for text in range(texts):
        first, scale = text * words, x_scales[text]
        # A little more than half, for what the sums lose in float32.
        by_sum, by_scale = np.float32(0.501) * scale, np.float32(0.501) * x_sums[text]
        floor = np.float32(-3e38)
        for v in range(words):
            about = np.float32(products[first + v]) * scales[v] * scale + bias[v]
            floor = max(floor, about - (by_sum * sums[v] + by_scale * scales[v]))
        found, highest = 0, np.float32(-3.4e38)
        for v in range(words):
            about = np.float32(products[first + v]) * scales[v] * scale + bias[v]
            if about + (by_sum * sums[v] + by_scale * scales[v]) >= floor:
                score = np.float32(0)
                for j in range(units):
                    score += x[text * units + j] * table[v * units + j]
                score += bias[v]
                if score > highest:
                    found, highest = v, score
        best[text] = found
