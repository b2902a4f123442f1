"""Kernels that run recurrent models without gradients: one step with every weight read once, or all steps of a layer.

At one word per step nothing is computed twice with a weight, so the time is that of reading the weights from memory.
They are read one row after the other, which memory delivers twice as fast as four rows in parallel; all texts use a row
while it is in cache. In int16 there is half as much to read, a row of weights being integers and one scale; in int8 a
quarter, and a text's numbers are rounded to integers too.

All arrays are flat. weights (rows, columns), x (n, columns), out (n, rows). ``neural/streaming.py``,
``translate/greedy.py`` and ``nn/fused.py`` call them.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Doubles, Floats, Ints, Longs, Shorts, SignedBytes
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
from foreword.nn.kernels_recurrent import add_product

_FOUR = 4 * LANES

ROWS_AT_ONCE, SMALL_STEP = 2, 2 * WIDTH
"""Rows and columns of int8 matrices are padded with zeros to multiples of these."""

_AHEAD = 4096
"""Bytes between prefetching int8 weights and using them."""

_SUMMED = 16 * LANES
"""Exponentials that are summed in float32 before their sum is added to a float64."""


@kernel
def multiply_rows(
    weights: Floats, bias: Floats, x: Floats, texts: int, rows: int, columns: int, out: Floats
) -> None:  # fmt: skip
    """Compute ``out = x W' + bias``."""
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
    """Compute ``out = x W' + bias`` with int16 weights, one scale per row; columns are padded to a multiple of 16."""
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
    """Round each text's numbers to integers of at most ``limit``; rounded (n, padded) times scales (n,) is about x."""
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
    padded: int, sums: Ints, out: Floats,
) -> None:  # fmt: skip
    """Compute ``out = x W' + bias`` with int8 weights, one scale per row: rows padded to an even number, columns to a
    multiple of 64. sums: workspace of four numbers.
    """
    for row in range(0, rows, ROWS_AT_ONCE):
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
            store_sums(sums, 0, a, b, c, d)
            to, by = text * rows + row, x_scales[text]
            out[to] = np.float32(sums[0] + sums[1]) * scales[row] * by + bias[row]
            if row + 1 < rows:
                out[to + 1] = np.float32(sums[2] + sums[3]) * scales[row + 1] * by + bias[row + 1]


# The gates. from_x and from_h (n, gates · H), biases included; h and c (n, H) are updated in place.


@kernel
def rnn_gates(from_x: Floats, from_h: Floats, h: Floats, texts: int, hidden: int, relu: bool) -> None:
    """Update the state of an Elman network."""
    for at in range(0, texts * hidden, LANES):
        few = texts * hidden - at
        a = plus(load_part(from_x, at, few), load_part(from_h, at, few))
        store_part(h, at, positive(a, a) if relu else tanh(a), few)


@kernel
def lstm_gates(from_x: Floats, from_h: Floats, h: Floats, c: Floats, texts: int, hidden: int) -> None:
    """Update the state and the cell of an LSTM."""
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
    """Update the state of a GRU."""
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
    """Update the state of a minimal GRU."""
    for text in range(texts):
        base, to = 2 * text * hidden, text * hidden
        for j in range(0, hidden, LANES):
            few = hidden - j
            z = sigmoid(load_part(from_x, base + j, few))
            n = load_part(from_x, base + hidden + j, few)
            before = load_part(h, to + j, few)
            store_part(h, to + j, multiply_add(z, subtract(n, before), before), few)


@inlined
def _summed(from_x, from_h, at, few):  # type: ignore[no-untyped-def]  # sixteen floats have no type in Python
    return plus(load_part(from_x, at, few), load_part(from_h, at, few))


@kernel
def log_softmax(scores: Floats, texts: int, words: int, out: Doubles) -> None:
    """Fill ``out`` (n, V) with log-probabilities, in float64 so that a row sums to one to the precision of float32."""
    for text in range(texts):
        base = text * words
        top = scores[base]
        for v in range(1, words):
            top = max(top, scores[base + v])
        powers, shift = 0.0, broadcast(top)
        for begin in range(0, words, _SUMMED):
            sums = zeros()
            for v in range(begin, min(begin + _SUMMED, words) - LANES + 1, LANES):
                sums = plus(sums, exponential(subtract(load(scores, base + v), shift)))
            powers += total(sums)
        for v in range(words - words % LANES, words):
            powers += np.exp(np.float64(scores[base + v] - top))
        away = np.float64(top) + np.log(powers)
        for v in range(words):
            out[base + v] = np.float64(scores[base + v]) - away


# An LSTM layer that only reads: all steps of some texts in one call, storing nothing that only a gradient would need.
# What the input contributes to a step, biases included, is a row of a table, and ``words`` are its row numbers: a word
# that is frequent is multiplied once. Texts are sorted, the longest first, so that at every step those that still have
# a word are the first ``count``, and no step is computed for padding. table (D, 4H), words (T, B), h and c (B, H), out
# (T, B, H).


@inlined
def _lstm_row(gates: Floats, at: int, h: Floats, c: Floats, own: int, out: Floats, to: int, hidden: int) -> None:
    """Compute one step of one text: h and c are updated in place, and h is written to out as well."""
    for j in range(0, hidden, LANES):
        few = hidden - j
        i = sigmoid(load_part(gates, at + j, few))
        f = sigmoid(load_part(gates, at + hidden + j, few))
        g = tanh(load_part(gates, at + 2 * hidden + j, few))
        o = sigmoid(load_part(gates, at + 3 * hidden + j, few))
        cell = multiply_add(f, load_part(c, own + j, few), multiply(i, g))
        state = multiply(o, tanh(cell))
        store_part(c, own + j, cell, few)
        store_part(h, own + j, state, few)
        store_part(out, to + j, state, few)


@kernel
def read_many(
    table: Floats, words: Longs, counts: Longs, packed: Floats, gates: Floats, h: Floats, c: Floats, out: Floats,
    texts: int, first: int, last: int, hidden: int,
) -> None:  # fmt: skip
    """Run all steps of the texts ``first`` to ``last``. counts (T,): texts that still have a word, never increasing.

    packed: W_h transposed, (H, 4H), as ``add_product`` reads it; gates (last − first, 4H): workspace for one step.
    h and c become those after each text's last word.
    """
    wide = 4 * hidden
    for step in range(len(counts)):
        count, begin = min(counts[step], last) - first, step * texts + first
        for text in range(count):
            at, to = words[begin + text] * wide, text * wide
            for j in range(0, wide, LANES):
                store_part(gates, to + j, load_part(table, at + j, wide - j), wide - j)
        add_product(h, first * hidden, hidden, max(count, 0), packed, hidden, wide, gates)
        for text in range(count):
            _lstm_row(gates, text * wide, h, c, (first + text) * hidden, out, (begin + text) * hidden, hidden)


@kernel
def read_few(
    table: Floats, words: Longs, counts: Longs, recurrent: Floats, no_bias: Floats, gates: Floats, h: Floats, c: Floats,
    out: Floats, texts: int, hidden: int,
) -> None:  # fmt: skip
    """Run all steps of texts so few that W_h (4H, H) is read row by row: transposing it would cost more than it saves.

    no_bias (4H,): zeros.
    """
    wide = 4 * hidden
    for step in range(len(counts)):
        count, begin = counts[step], step * texts
        multiply_rows(recurrent, no_bias, h, count, wide, hidden, gates)
        for text in range(count):
            at, to = words[begin + text] * wide, text * wide
            for j in range(0, wide, LANES):
                few = wide - j
                store_part(gates, to + j, plus(load_part(gates, to + j, few), load_part(table, at + j, few)), few)
            _lstm_row(gates, to, h, c, text * hidden, out, (begin + text) * hidden, hidden)
