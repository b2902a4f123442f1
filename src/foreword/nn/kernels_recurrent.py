"""Kernels that train recurrent layers: products with the state, gates, and their gradients, all steps in one call.

All arrays are flat float32 with rows of T steps and B texts: states (T + 1, B, H), the first of them given; from_x
(T, B, gates · H), the products with the input, biases included. ``nn/fused.py`` makes them, ``nn/layers.py`` has the
equations, and ``nn/cells.py`` the gradients to be read.
"""

from __future__ import annotations

from foreword.arrays import Floats
from foreword.native.jit import inlined, kernel
from foreword.native.simd import (
    LANES,
    load,
    load_part,
    multiply,
    multiply_add,
    one_minus,
    plus,
    positive,
    scaled_add,
    sigmoid,
    store_part,
    subtract,
    tanh,
    zeros,
)

BLOCK = 4 * LANES
"""Columns of a matrix that are multiplied together; a packed matrix holds such blocks contiguously."""


@inlined
def add_product(
    v: Floats, v_at: int, stride: int, texts: int, packed: Floats, rows: int, columns: int, out: Floats
) -> None:  # fmt: skip
    """Compute ``out += v @ matrix`` for v (texts, rows), rows ``stride`` apart from ``v_at`` on, out (texts, columns).

    packed: the matrix (rows, columns) as (columns / 64, rows, 64), padded with zeros. Sixteen vectors of sums, four
    texts by 64 columns, stay in registers over all rows.
    """
    whole = texts - texts % 4
    for block in range(0, columns, BLOCK):
        left = columns - block
        for text in range(0, whole, 4):
            to = text * columns + block
            _four_texts(v, v_at + text * stride, stride, packed, block * rows, rows, out, to, columns, left)
        for text in range(whole, texts):
            _one_text(v, v_at + text * stride, packed, block * rows, rows, out, text * columns + block, left)


@inlined
def _one_text(v: Floats, v_at: int, packed: Floats, at: int, rows: int, out: Floats, to: int, left: int) -> None:
    a, b, c, d = zeros(), zeros(), zeros(), zeros()
    for row in range(rows):
        x = v[v_at + row]
        a = scaled_add(x, load(packed, at), a)
        b = scaled_add(x, load(packed, at + 16), b)
        c = scaled_add(x, load(packed, at + 32), c)
        d = scaled_add(x, load(packed, at + 48), d)
        at += BLOCK
    _add(out, to, a, b, c, d, left)


@inlined
def _four_texts(
    v: Floats, v_at: int, stride: int, packed: Floats, at: int, rows: int, out: Floats, to: int, columns: int,
    left: int,
) -> None:  # fmt: skip
    a0, b0, c0, d0 = zeros(), zeros(), zeros(), zeros()
    a1, b1, c1, d1 = zeros(), zeros(), zeros(), zeros()
    a2, b2, c2, d2 = zeros(), zeros(), zeros(), zeros()
    a3, b3, c3, d3 = zeros(), zeros(), zeros(), zeros()
    second, third, fourth = v_at + stride, v_at + 2 * stride, v_at + 3 * stride
    for row in range(rows):
        a, b = load(packed, at), load(packed, at + 16)
        c, d = load(packed, at + 32), load(packed, at + 48)
        at += BLOCK
        x = v[v_at + row]
        a0, b0, c0, d0 = scaled_add(x, a, a0), scaled_add(x, b, b0), scaled_add(x, c, c0), scaled_add(x, d, d0)
        x = v[second + row]
        a1, b1, c1, d1 = scaled_add(x, a, a1), scaled_add(x, b, b1), scaled_add(x, c, c1), scaled_add(x, d, d1)
        x = v[third + row]
        a2, b2, c2, d2 = scaled_add(x, a, a2), scaled_add(x, b, b2), scaled_add(x, c, c2), scaled_add(x, d, d2)
        x = v[fourth + row]
        a3, b3, c3, d3 = scaled_add(x, a, a3), scaled_add(x, b, b3), scaled_add(x, c, c3), scaled_add(x, d, d3)
    _add(out, to, a0, b0, c0, d0, left)
    _add(out, to + columns, a1, b1, c1, d1, left)
    _add(out, to + 2 * columns, a2, b2, c2, d2, left)
    _add(out, to + 3 * columns, a3, b3, c3, d3, left)


@inlined
def _add(out, to, a, b, c, d, left):  # type: ignore[no-untyped-def]  # sixteen floats have no type in Python
    """Add the sums of 64 columns to ``out``, or of as many as are ``left``."""
    store_part(out, to, plus(load_part(out, to, left), a), left)
    store_part(out, to + 16, plus(load_part(out, to + 16, left - 16), b), left - 16)
    store_part(out, to + 32, plus(load_part(out, to + 32, left - 32), c), left - 32)
    store_part(out, to + 48, plus(load_part(out, to + 48, left - 48), d), left - 48)


# The GRU. saved (T, B, 4H): the gates r, z, n and the product that r multiplies. d_saved (T, B, 4H): the gradients of
# what enters n from the input, r, z, and n from the state, in this order: the first three are those of W_x x, the last
# three those of W_h h.


@inlined
def _gru_row(
    from_x: Floats, x_at: int, from_h: Floats, h_at: int, bias: Floats, states: Floats, at: int, after: int,
    saved: Floats, s_at: int, hidden: int,
) -> None:  # fmt: skip
    """Compute one step of one text. bias (H,): that of the candidate's inner product."""
    for j in range(0, hidden, LANES):
        few = hidden - j
        r = sigmoid(plus(load_part(from_x, x_at + j, few), load_part(from_h, h_at + j, few)))
        second = hidden + j
        z = sigmoid(plus(load_part(from_x, x_at + second, few), load_part(from_h, h_at + second, few)))
        third = 2 * hidden + j
        inner = plus(load_part(from_h, h_at + third, few), load_part(bias, j, few))
        n = tanh(multiply_add(r, inner, load_part(from_x, x_at + third, few)))
        before = load_part(states, at + j, few)
        store_part(states, after + j, multiply_add(z, subtract(before, n), n), few)
        store_part(saved, s_at + j, r, few)
        store_part(saved, s_at + second, z, few)
        store_part(saved, s_at + third, n, few)
        store_part(saved, s_at + 3 * hidden + j, inner, few)


@inlined
def _gru_row_back(
    d_out: Floats, carry: Floats, c_at: int, states: Floats, at: int, saved: Floats, d_saved: Floats, s_at: int,
    hidden: int,
) -> None:  # fmt: skip
    """Backpropagate one step of one text. carry (B, H): in, the gradient from the step after; out, that part of the
    gradient of the state before which does not go through W_h.
    """
    for j in range(0, hidden, LANES):
        few = hidden - j
        second, third, fourth = hidden + j, 2 * hidden + j, 3 * hidden + j
        r, z = load_part(saved, s_at + j, few), load_part(saved, s_at + second, few)
        n, inner = load_part(saved, s_at + third, few), load_part(saved, s_at + fourth, few)
        d = plus(load_part(d_out, at + j, few), load_part(carry, c_at + j, few))
        store_part(carry, c_at + j, multiply(d, z), few)
        rest = one_minus(z)
        d_n = multiply(multiply(d, rest), one_minus(multiply(n, n)))
        d_z = multiply(multiply(d, subtract(load_part(states, at + j, few), n)), multiply(z, rest))
        d_r = multiply(multiply(d_n, inner), multiply(r, one_minus(r)))
        store_part(d_saved, s_at + j, d_n, few)
        store_part(d_saved, s_at + second, d_r, few)
        store_part(d_saved, s_at + third, d_z, few)
        store_part(d_saved, s_at + fourth, multiply(d_n, r), few)


@kernel
def gru_through(
    steps: int, from_x: Floats, from_h: Floats, bias: Floats, states: Floats, saved: Floats, texts: int, hidden: int,
    packed: Floats,
) -> None:  # fmt: skip
    """Run all steps of a GRU. packed: W_h transposed, (H, 3H); from_h (B, 3H): workspace for one step's product."""
    wide = 3 * hidden
    for t in range(steps):
        from_h[: texts * wide] = 0
        first = t * texts * hidden
        add_product(states, first, hidden, texts, packed, hidden, wide, from_h)
        for b in range(texts):
            at = first + b * hidden
            _gru_row(from_x, 3 * at, from_h, b * wide, bias, states, at, at + texts * hidden, saved, 4 * at, hidden)


@kernel
def gru_through_back(
    steps: int, d_out: Floats, carry: Floats, states: Floats, saved: Floats, d_saved: Floats, texts: int, hidden: int,
    packed: Floats,
) -> None:  # fmt: skip
    """Backpropagate through all steps of a GRU, from the last; packed: W_h (3H, H)."""
    for t in range(steps - 1, -1, -1):
        first = t * texts * hidden
        for b in range(texts):
            at = first + b * hidden
            _gru_row_back(d_out, carry, b * hidden, states, at, saved, d_saved, 4 * at, hidden)
        add_product(d_saved, 4 * first + hidden, 4 * hidden, texts, packed, 3 * hidden, hidden, carry)


# The Elman network: all texts of a step are contiguous, and are one row.


@kernel
def rnn_through(
    steps: int, from_x: Floats, states: Floats, from_h: Floats, texts: int, hidden: int, relu: bool, packed: Floats
) -> None:
    """Run all steps of an Elman network. packed: W_h transposed; from_h (B, H): workspace for one step's product."""
    size = texts * hidden
    for t in range(steps):
        from_h[:size] = 0
        add_product(states, t * size, hidden, texts, packed, hidden, hidden, from_h)
        for j in range(0, size, LANES):
            few = size - j
            a = plus(load_part(from_x, t * size + j, few), load_part(from_h, j, few))
            store_part(states, (t + 1) * size + j, positive(a, a) if relu else tanh(a), few)


@kernel
def rnn_through_back(
    steps: int, d_out: Floats, carry: Floats, states: Floats, d_a: Floats, texts: int, hidden: int, relu: bool,
    packed: Floats,
) -> None:  # fmt: skip
    """Backpropagate through all steps; packed: W_h (H, H). carry (B, H): in and out, the gradient of the state."""
    size = texts * hidden
    for t in range(steps - 1, -1, -1):
        for j in range(0, size, LANES):
            few = size - j
            d = plus(load_part(d_out, t * size + j, few), load_part(carry, j, few))
            h = load_part(states, (t + 1) * size + j, few)
            slope = positive(d, h) if relu else multiply(d, one_minus(multiply(h, h)))
            store_part(d_a, t * size + j, slope, few)
        carry[:size] = 0
        add_product(d_a, t * size, hidden, texts, packed, hidden, hidden, carry)


# The LSTM. states, cells (T + 1, B, H): the first of each is given. gates (T, B, 4H): in, the products with the input,
# biases included; out, i, f, g and o.


@inlined
def _lstm_row(
    gates: Floats, g_at: int, from_h: Floats, h_at: int, states: Floats, cells: Floats, at: int, after: int, hidden: int
) -> None:
    """Compute one step of one text; the gates' inputs become the gates."""
    for j in range(0, hidden, LANES):
        few = hidden - j
        second, third, fourth = hidden + j, 2 * hidden + j, 3 * hidden + j
        i = sigmoid(plus(load_part(gates, g_at + j, few), load_part(from_h, h_at + j, few)))
        f = sigmoid(plus(load_part(gates, g_at + second, few), load_part(from_h, h_at + second, few)))
        g = tanh(plus(load_part(gates, g_at + third, few), load_part(from_h, h_at + third, few)))
        o = sigmoid(plus(load_part(gates, g_at + fourth, few), load_part(from_h, h_at + fourth, few)))
        c = multiply_add(f, load_part(cells, at + j, few), multiply(i, g))
        store_part(cells, after + j, c, few)
        store_part(states, after + j, multiply(o, tanh(c)), few)
        store_part(gates, g_at + j, i, few)
        store_part(gates, g_at + second, f, few)
        store_part(gates, g_at + third, g, few)
        store_part(gates, g_at + fourth, o, few)


@inlined
def _lstm_row_back(
    d_out: Floats, carry: Floats, carry_c: Floats, c_at: int, cells: Floats, at: int, after: int, gates: Floats,
    d_gates: Floats, g_at: int, hidden: int,
) -> None:  # fmt: skip
    """Backpropagate one step of one text. carry, carry_c (B, H): the gradients of h and c; carry_c is updated."""
    for j in range(0, hidden, LANES):
        few = hidden - j
        second, third, fourth = hidden + j, 2 * hidden + j, 3 * hidden + j
        i, f = load_part(gates, g_at + j, few), load_part(gates, g_at + second, few)
        g, o = load_part(gates, g_at + third, few), load_part(gates, g_at + fourth, few)
        shown = tanh(load_part(cells, after + j, few))
        d = plus(load_part(d_out, at + j, few), load_part(carry, c_at + j, few))
        through = multiply(multiply(d, o), one_minus(multiply(shown, shown)))
        d_c = plus(load_part(carry_c, c_at + j, few), through)
        d_f = multiply(multiply(d_c, load_part(cells, at + j, few)), multiply(f, one_minus(f)))
        store_part(carry_c, c_at + j, multiply(d_c, f), few)
        store_part(d_gates, g_at + j, multiply(multiply(d_c, g), multiply(i, one_minus(i))), few)
        store_part(d_gates, g_at + second, d_f, few)
        store_part(d_gates, g_at + third, multiply(multiply(d_c, i), one_minus(multiply(g, g))), few)
        store_part(d_gates, g_at + fourth, multiply(multiply(d, shown), multiply(o, one_minus(o))), few)


@kernel
def lstm_through(
    steps: int, gates: Floats, from_h: Floats, states: Floats, cells: Floats, texts: int, hidden: int, packed: Floats
) -> None:
    """Run all steps of an LSTM. packed: W_h transposed, (H, 4H); from_h (B, 4H): workspace for one step's product."""
    wide = 4 * hidden
    for t in range(steps):
        from_h[: texts * wide] = 0
        first = t * texts * hidden
        add_product(states, first, hidden, texts, packed, hidden, wide, from_h)
        for b in range(texts):
            at = first + b * hidden
            _lstm_row(gates, 4 * at, from_h, b * wide, states, cells, at, at + texts * hidden, hidden)


@kernel
def lstm_through_back(
    steps: int, d_out: Floats, carry: Floats, carry_c: Floats, cells: Floats, gates: Floats, d_gates: Floats,
    texts: int, hidden: int, packed: Floats,
) -> None:  # fmt: skip
    """Backpropagate through all steps of an LSTM; packed: W_h (4H, H). d_gates may be gates, which are overwritten."""
    size = texts * hidden
    for t in range(steps - 1, -1, -1):
        first = t * size
        for b in range(texts):
            at = first + b * hidden
            _lstm_row_back(d_out, carry, carry_c, b * hidden, cells, at, at + size, gates, d_gates, 4 * at, hidden)
        carry[:size] = 0
        add_product(d_gates, 4 * first, 4 * hidden, texts, packed, 4 * hidden, hidden, carry)
