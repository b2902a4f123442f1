"""A block of logits becomes its own gradient, in place.

For a row of scores s (V,) and the word y that came::

    loss = log Σ exp(s_v) − s_y        ∂loss/∂s = exp(s) / Σ exp(s_v) − onehot(y)

Three walks over a row, which stays near the processor: the largest score, the exponentials and their sum, the shares.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Floats, Longs
from foreword.native.jit import kernel
from foreword.native.simd import (
    LANES,
    broadcast,
    exponential,
    largest,
    load,
    maximum,
    plus,
    scaled,
    store,
    subtract,
    total,
    zeros,
)


@kernel
def to_gradient(
    scores: Floats, bias: Floats, targets: Longs, factor: np.float32, d_bias: Floats, rows: int, words: int
) -> float:
    """Scores (rows, V) without their bias become ``factor · ∂loss/∂scores``; the same is added to d_bias (V,).

    The sum of the rows' losses comes back. All arrays are flat; targets must lie within 0 and V.
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
    """Add the bias; the largest score."""
    whole = words - words % LANES
    top = scores[base] + bias[0]
    if whole:
        held = plus(load(scores, base), load(bias, 0))
        store(scores, base, held)
        for v in range(LANES, whole, LANES):
            score = plus(load(scores, base + v), load(bias, v))
            store(scores, base + v, score)
            held = maximum(held, score)
        top = largest(held)
    for v in range(whole, words):
        scores[base + v] += bias[v]
        top = max(top, scores[base + v])
    return top


@kernel
def _powers(scores: Floats, base: int, words: int, top: np.float32) -> np.float32:
    """exp(s − top) in place; their sum."""
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
