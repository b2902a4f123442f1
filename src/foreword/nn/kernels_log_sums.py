"""The denominators of many softmaxes at once: log Σ_v exp(h · w_v + b_v) for each state h, without the scores.

Scores are made for 64 states and 64 words at a time, which stay in the nearest cache, and go into two numbers for each
state: the largest score so far, and the sum of exponentials below it. The states lie side by side in registers and the
words go by, so that the matrix of all words is read as it lies, and nothing is summed across a register.

All arrays are flat float32. weight (V, D), bias (V,), packed: the states with rows and columns exchanged, (D, N), as
``packed`` of ``nn/fused.py`` lays them out.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Floats
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch
from foreword.native.simd import (
    LANES,
    broadcast,
    exponential,
    load,
    maximum,
    multiply_add,
    plus,
    scaled_add,
    store,
    subtract,
    zeros,
)
from foreword.nn.kernels_recurrent import BLOCK, add_product

WORDS = 64
"""Scored together."""

HALF = BLOCK // 2
_LEAST = np.float32(-1e30)


@kernel
def log_sums(
    weight: Floats, bias: Floats, packed: Floats, first: int, last: int, states: int, units: int, words: int,
    room: Floats, tops: Floats, sums: Floats,
) -> None:  # fmt: skip
    """For the blocks of 64 states from ``first`` to ``last``: log Σ exp is tops + log sums, both (N up to a multiple of
    64,). room: 64 · 64 numbers. Where a block has 32 states or fewer, only 32 are computed.
    """
    for block in range(first, last):
        at, place = block * BLOCK, block * BLOCK * units
        wide = HALF if states - at <= HALF else BLOCK
        for j in range(at, at + wide, LANES):
            store(tops, j, broadcast(_LEAST))
            store(sums, j, zeros())
        for word in range(0, words, WORDS):
            count = min(WORDS, words - word)
            _fill(bias, word, count, wide, room)
            if wide == BLOCK:
                add_product(weight, word * units, units, count, packed[place:], units, BLOCK, room)
            else:
                _add_half(weight, word * units, units, count, packed, place, room)
            for j in range(0, wide, LANES):
                _take(room, j, count, wide, tops, sums, at + j)


@inlined
def _fill(bias: Floats, word: int, count: int, wide: int, room: Floats) -> None:
    """Scores begin with their bias."""
    for v in range(count):
        held = broadcast(bias[word + v])
        for j in range(0, wide, LANES):
            store(room, v * wide + j, held)


@inlined
def _take(room: Floats, j: int, count: int, wide: int, tops: Floats, sums: Floats, at: int) -> None:
    """The scores of some words for sixteen states: exp of each, less the largest that there has been, to the sum."""
    before = load(tops, at)
    top = before
    for v in range(count):
        top = maximum(top, load(room, v * wide + j))
    one, other = zeros(), zeros()
    for v in range(0, count - 1, 2):
        one = plus(one, exponential(subtract(load(room, v * wide + j), top)))
        other = plus(other, exponential(subtract(load(room, (v + 1) * wide + j), top)))
    if count % 2:
        one = plus(one, exponential(subtract(load(room, (count - 1) * wide + j), top)))
    shrunk = exponential(subtract(before, top))
    store(sums, at, multiply_add(load(sums, at), shrunk, plus(one, other)))
    store(tops, at, top)


# Half a block: eight words by 32 states in registers, where ``add_product`` has four by 64.


@inlined
def _add_half(v: Floats, v_at: int, stride: int, words: int, packed: Floats, place: int, out: Floats) -> None:
    """``out += v @ block`` for the first 32 columns of a block; out (words, 32)."""
    whole = words - words % 8
    for word in range(0, whole, 8):
        _eight(v, v_at + word * stride, stride, packed, place, out, word * HALF)
    for word in range(whole, words):
        a, b, at = zeros(), zeros(), place
        for row in range(stride):
            x = v[v_at + word * stride + row]
            a, b = scaled_add(x, load(packed, at), a), scaled_add(x, load(packed, at + LANES), b)
            at += BLOCK
        _put(out, word * HALF, a, b)


@inlined
def _eight(v: Floats, first: int, stride: int, packed: Floats, place: int, out: Floats, to: int) -> None:
    a0, a1, a2, a3, a4, a5, a6, a7 = zeros(), zeros(), zeros(), zeros(), zeros(), zeros(), zeros(), zeros()
    b0, b1, b2, b3, b4, b5, b6, b7 = zeros(), zeros(), zeros(), zeros(), zeros(), zeros(), zeros(), zeros()
    second, third, fourth = first + stride, first + 2 * stride, first + 3 * stride
    fifth, sixth, seventh, eighth = first + 4 * stride, first + 5 * stride, first + 6 * stride, first + 7 * stride
    for row in range(stride):
        a, b = load(packed, place), load(packed, place + LANES)
        place += BLOCK
        prefetch(v, first + 8 * (stride + row))  # the next eight words: they come from far
        a0, b0 = scaled_add(v[first + row], a, a0), scaled_add(v[first + row], b, b0)
        a1, b1 = scaled_add(v[second + row], a, a1), scaled_add(v[second + row], b, b1)
        a2, b2 = scaled_add(v[third + row], a, a2), scaled_add(v[third + row], b, b2)
        a3, b3 = scaled_add(v[fourth + row], a, a3), scaled_add(v[fourth + row], b, b3)
        a4, b4 = scaled_add(v[fifth + row], a, a4), scaled_add(v[fifth + row], b, b4)
        a5, b5 = scaled_add(v[sixth + row], a, a5), scaled_add(v[sixth + row], b, b5)
        a6, b6 = scaled_add(v[seventh + row], a, a6), scaled_add(v[seventh + row], b, b6)
        a7, b7 = scaled_add(v[eighth + row], a, a7), scaled_add(v[eighth + row], b, b7)
    _put(out, to, a0, b0)
    _put(out, to + HALF, a1, b1)
    _put(out, to + 2 * HALF, a2, b2)
    _put(out, to + 3 * HALF, a3, b3)
    _put(out, to + 4 * HALF, a4, b4)
    _put(out, to + 5 * HALF, a5, b5)
    _put(out, to + 6 * HALF, a6, b6)
    _put(out, to + 7 * HALF, a7, b7)


@inlined
def _put(out, to, a, b):  # type: ignore[no-untyped-def]  # sixteen floats have no type in Python
    store(out, to, plus(load(out, to), a))
    store(out, to + LANES, plus(load(out, to + LANES), b))
