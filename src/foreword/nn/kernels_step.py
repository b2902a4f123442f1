"""One step of a recurrent model for n texts, without torch: products with every weight once, then the gates.

At one word a step nothing is computed twice with a weight, so the time is that of reading the weights from memory. They
are read as they lie, one row after the other, which memory delivers twice as fast as four rows side by side; all texts
use a row while it is near. In int16 there is half as much to read, a row of weights being whole numbers and one scale;
in int8 a quarter, and a text's numbers are made whole for it too.

All arrays are flat. weights (rows, columns), x (n, columns), out (n, rows).
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Doubles, Floats, Ints, Shorts, SignedBytes
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch
from foreword.native.simd import (
    LANES,
    WIDTH,
    add_products,
    broadcast,
    exponential,
    load,
    load_bytes,
    load_part,
    load_shorts,
    load_whole,
    multiply,
    multiply_add,
    no_totals,
    plus,
    positive,
    sigmoid,
    store_part,
    store_sums,
    subtract,
    tanh,
    total,
    zeros,
)

_FOUR = 4 * LANES

TOGETHER, SMALL_STEP = 2, 2 * WIDTH
"""To multiples of these the rows and columns of matrices in int8 are padded with zeros."""

_AHEAD = 4096
"""Bytes between asking for weights in int8 and using them."""

_SUMMED = 16 * LANES
"""Exponentials that are added up in float32 before their sum goes into a float64."""


@kernel
def multiply_rows(
    weights: Floats, bias: Floats, x: Floats, texts: int, rows: int, columns: int, out: Floats
) -> None:  # fmt: skip
    """``out = x W' + bias``."""
    whole = columns - columns % _FOUR
    for row in range(rows):
        first = row * columns
        for text in range(texts):
            base = text * columns
            a, b, c, d = zeros(), zeros(), zeros(), zeros()
            for j in range(0, whole, _FOUR):
                a = multiply_add(load(weights, first + j), load(x, base + j), a)
                b = multiply_add(load(weights, first + j + 16), load(x, base + j + 16), b)
                c = multiply_add(load(weights, first + j + 32), load(x, base + j + 32), c)
                d = multiply_add(load(weights, first + j + 48), load(x, base + j + 48), d)
            for j in range(whole, columns, LANES):
                few = columns - j
                a = multiply_add(load_part(weights, first + j, few), load_part(x, base + j, few), a)
            out[text * rows + row] = total(plus(plus(a, b), plus(c, d))) + bias[row]


@kernel
def multiply_short_rows(
    weights: Shorts, scales: Floats, bias: Floats, x: Floats, texts: int, rows: int, padded: int, out: Floats
) -> None:  # fmt: skip
    """The same with weights in int16, a scale for each row; they and x have columns up to a multiple of 16."""
    whole = padded - padded % _FOUR
    for row in range(rows):
        first = row * padded
        for text in range(texts):
            base = text * padded
            a, b, c, d = zeros(), zeros(), zeros(), zeros()
            for j in range(0, whole, _FOUR):
                a = multiply_add(load_whole(weights, first + j), load(x, base + j), a)
                b = multiply_add(load_whole(weights, first + j + 16), load(x, base + j + 16), b)
                c = multiply_add(load_whole(weights, first + j + 32), load(x, base + j + 32), c)
                d = multiply_add(load_whole(weights, first + j + 48), load(x, base + j + 48), d)
            for j in range(whole, padded, LANES):
                a = multiply_add(load_whole(weights, first + j), load(x, base + j), a)
            out[text * rows + row] = total(plus(plus(a, b), plus(c, d))) * scales[row] + bias[row]


@kernel
def round_rows(x: Floats, texts: int, columns: int, limit: int, rounded: Shorts, padded: int, scales: Floats) -> None:
    """Each text's numbers as whole ones up to ``limit`` in size; rounded (n, padded) times scales (n,) is about x."""
    for text in range(texts):
        size = np.float32(0)
        for j in range(columns):
            size = max(size, abs(x[text * columns + j]))
        scales[text] = size / np.float32(limit)
        by = np.float32(limit) / size if size > 0 else np.float32(0)
        for j in range(columns):
            rounded[text * padded + j] = np.int16(np.rint(x[text * columns + j] * by))
        for j in range(columns, padded):
            rounded[text * padded + j] = 0


@kernel
def multiply_small_rows(
    weights: SignedBytes, scales: Floats, bias: Floats, rounded: Shorts, x_scales: Floats, texts: int, rows: int,
    padded: int, room: Ints, out: Floats,
) -> None:  # fmt: skip
    """The same with weights in int8, a scale for each row: an even number of rows, columns up to a multiple of 64.

    room: four numbers.
    """
    for row in range(0, rows, TOGETHER):
        first = row * padded
        second = first + padded
        for text in range(texts):
            base = text * padded
            a, b, c, d = no_totals(), no_totals(), no_totals(), no_totals()
            for j in range(0, padded, SMALL_STEP):
                prefetch(weights, first + j + _AHEAD)
                x, y = load_shorts(rounded, base + j), load_shorts(rounded, base + j + WIDTH)
                a = add_products(load_bytes(weights, first + j), x, a)
                b = add_products(load_bytes(weights, first + j + WIDTH), y, b)
            for j in range(0, padded, SMALL_STEP):
                prefetch(weights, second + j + _AHEAD)
                x, y = load_shorts(rounded, base + j), load_shorts(rounded, base + j + WIDTH)
                c = add_products(load_bytes(weights, second + j), x, c)
                d = add_products(load_bytes(weights, second + j + WIDTH), y, d)
            store_sums(room, 0, a, b, c, d)
            to, by = text * rows + row, x_scales[text]
            out[to] = np.float32(room[0] + room[1]) * scales[row] * by + bias[row]
            if row + 1 < rows:
                out[to + 1] = np.float32(room[2] + room[3]) * scales[row + 1] * by + bias[row + 1]


# The gates. from_x and from_h (n, gates · H), biases included; h and c (n, H) become the new ones in place.


@kernel
def rnn_gates(from_x: Floats, from_h: Floats, h: Floats, texts: int, hidden: int, relu: bool) -> None:
    for place in range(0, texts * hidden, LANES):
        few = texts * hidden - place
        a = plus(load_part(from_x, place, few), load_part(from_h, place, few))
        store_part(h, place, positive(a, a) if relu else tanh(a), few)


@kernel
def lstm_gates(from_x: Floats, from_h: Floats, h: Floats, c: Floats, texts: int, hidden: int) -> None:
    for text in range(texts):
        base, to = 4 * text * hidden, text * hidden
        for j in range(0, hidden, LANES):
            few = hidden - j
            i = sigmoid(_summed(from_x, from_h, base + j, few))
            f = sigmoid(_summed(from_x, from_h, base + hidden + j, few))
            g = tanh(_summed(from_x, from_h, base + 2 * hidden + j, few))
            o = sigmoid(_summed(from_x, from_h, base + 3 * hidden + j, few))
            cell = multiply_add(f, load_part(c, to + j, few), multiply(i, g))
            store_part(c, to + j, cell, few)
            store_part(h, to + j, multiply(o, tanh(cell)), few)


@kernel
def gru_gates(from_x: Floats, from_h: Floats, h: Floats, texts: int, hidden: int) -> None:
    for text in range(texts):
        base, to = 3 * text * hidden, text * hidden
        for j in range(0, hidden, LANES):
            few = hidden - j
            r = sigmoid(_summed(from_x, from_h, base + j, few))
            z = sigmoid(_summed(from_x, from_h, base + hidden + j, few))
            inner = load_part(from_h, base + 2 * hidden + j, few)
            n = tanh(multiply_add(r, inner, load_part(from_x, base + 2 * hidden + j, few)))
            store_part(h, to + j, multiply_add(z, subtract(load_part(h, to + j, few), n), n), few)


@kernel
def min_gru_gates(from_x: Floats, h: Floats, texts: int, hidden: int) -> None:
    for text in range(texts):
        base, to = 2 * text * hidden, text * hidden
        for j in range(0, hidden, LANES):
            few = hidden - j
            z = sigmoid(load_part(from_x, base + j, few))
            n = load_part(from_x, base + hidden + j, few)
            before = load_part(h, to + j, few)
            store_part(h, to + j, multiply_add(z, subtract(n, before), before), few)


@inlined
def _summed(from_x, from_h, place, few):  # type: ignore[no-untyped-def]  # sixteen floats have no type in Python
    return plus(load_part(from_x, place, few), load_part(from_h, place, few))


@kernel
def log_softmax(scores: Floats, texts: int, words: int, out: Doubles) -> None:
    """Log-probabilities (n, V), in float64 so that a row sums to one to the last digits of float32. scores: float32."""
    for text in range(texts):
        base = text * words
        top = scores[base]
        for v in range(1, words):
            top = max(top, scores[base + v])
        powers, shift = 0.0, broadcast(top)
        for begin in range(0, words, _SUMMED):
            held = zeros()
            for v in range(begin, min(begin + _SUMMED, words) - LANES + 1, LANES):
                held = plus(held, exponential(subtract(load(scores, base + v), shift)))
            powers += total(held)
        for v in range(words - words % LANES, words):
            powers += np.exp(np.float64(scores[base + v] - top))
        away = np.float64(top) + np.log(powers)
        for v in range(words):
            out[base + v] = np.float64(scores[base + v]) - away
