"""RNN and GRU layers through time: gates and their gradients, and for a few texts the recurrent product too.

All arrays are flat float32 and hold rows of T steps and B texts: states (T + 1, B, H), the first of them the state that
is given; from_x (T, B, gates · H), the products with the input, biases included. ``nn/layers.py`` has the equations and
makes the arrays. With many texts the product ``W_h h`` of a step is a matrix product that a library does well; with a
few it is one that waits for the weights, and a library's call costs more than the work: then ``…_through`` does all
steps in one go.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foreword.kernels.jit import inlined, kernel
from foreword.kernels.simd import LANES, load, multiply_add, scaled_add, sigmoid, store, subtract, zeros
from foreword.kernels.simd_gates import load_part, multiply, one_minus, plus, positive, store_part, tanh

Floats = NDArray[np.float32]

_EIGHT = 8 * LANES


@inlined
def add_product(v: Floats, v_at: int, matrix: Floats, rows: int, columns: int, out: Floats, at: int) -> None:
    """``out[at:at + columns] += v[v_at:v_at + rows] @ matrix``, the matrix (rows, columns) row after row.

    Eight sixteens of the sum are held in registers while the rows go by.
    """
    column = 0
    while column + _EIGHT <= columns:
        a, b, c, d = zeros(), zeros(), zeros(), zeros()
        e, f, g, h = zeros(), zeros(), zeros(), zeros()
        place = column
        for row in range(rows):
            x = v[v_at + row]
            a = scaled_add(x, load(matrix, place), a)
            b = scaled_add(x, load(matrix, place + 16), b)
            c = scaled_add(x, load(matrix, place + 32), c)
            d = scaled_add(x, load(matrix, place + 48), d)
            e = scaled_add(x, load(matrix, place + 64), e)
            f = scaled_add(x, load(matrix, place + 80), f)
            g = scaled_add(x, load(matrix, place + 96), g)
            h = scaled_add(x, load(matrix, place + 112), h)
            place += columns
        to = at + column
        store(out, to, plus(load(out, to), a))
        store(out, to + 16, plus(load(out, to + 16), b))
        store(out, to + 32, plus(load(out, to + 32), c))
        store(out, to + 48, plus(load(out, to + 48), d))
        store(out, to + 64, plus(load(out, to + 64), e))
        store(out, to + 80, plus(load(out, to + 80), f))
        store(out, to + 96, plus(load(out, to + 96), g))
        store(out, to + 112, plus(load(out, to + 112), h))
        column += _EIGHT
    while column < columns:
        a, b, c, d = zeros(), zeros(), zeros(), zeros()
        left = columns - column
        place = column
        for row in range(rows):
            x = v[v_at + row]
            a = scaled_add(x, load_part(matrix, place, left), a)
            b = scaled_add(x, load_part(matrix, place + 16, left - 16), b)
            c = scaled_add(x, load_part(matrix, place + 32, left - 32), c)
            d = scaled_add(x, load_part(matrix, place + 48, left - 48), d)
            place += columns
        to = at + column
        store_part(out, to, plus(load_part(out, to, left), a), left)
        store_part(out, to + 16, plus(load_part(out, to + 16, left - 16), b), left - 16)
        store_part(out, to + 32, plus(load_part(out, to + 32, left - 32), c), left - 32)
        store_part(out, to + 48, plus(load_part(out, to + 48, left - 48), d), left - 48)
        column += 4 * LANES


# The GRU. kept: (T, B, 4H), the gates r, z, n and the product that r works on. d_kept: (T, B, 4H), the gradients of
# what goes into n from the input, into r, into z, and into n from the state, in this order: the first three are those
# of W_x x, the last three those of W_h h.


@inlined
def _gru_row(
    from_x: Floats, x_at: int, from_h: Floats, h_at: int, bias: Floats, states: Floats, at: int, after: int,
    kept: Floats, k_at: int, hidden: int,
) -> None:  # fmt: skip
    """One text, one step. bias (H,): the candidate's inner one."""
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
        store_part(kept, k_at + j, r, few)
        store_part(kept, k_at + second, z, few)
        store_part(kept, k_at + third, n, few)
        store_part(kept, k_at + 3 * hidden + j, inner, few)


@inlined
def _gru_row_back(
    d_out: Floats, carry: Floats, c_at: int, states: Floats, at: int, kept: Floats, d_kept: Floats, k_at: int,
    hidden: int,
) -> None:  # fmt: skip
    """One text, one step back. carry (B, H): in, the gradient from the step after; out, that part of the gradient of
    the state before which does not go through W_h.
    """
    for j in range(0, hidden, LANES):
        few = hidden - j
        second, third, fourth = hidden + j, 2 * hidden + j, 3 * hidden + j
        r, z = load_part(kept, k_at + j, few), load_part(kept, k_at + second, few)
        n, inner = load_part(kept, k_at + third, few), load_part(kept, k_at + fourth, few)
        d = plus(load_part(d_out, at + j, few), load_part(carry, c_at + j, few))
        store_part(carry, c_at + j, multiply(d, z), few)
        rest = one_minus(z)
        d_n = multiply(multiply(d, rest), one_minus(multiply(n, n)))
        d_z = multiply(multiply(d, subtract(load_part(states, at + j, few), n)), multiply(z, rest))
        d_r = multiply(multiply(d_n, inner), multiply(r, one_minus(r)))
        store_part(d_kept, k_at + j, d_n, few)
        store_part(d_kept, k_at + second, d_r, few)
        store_part(d_kept, k_at + third, d_z, few)
        store_part(d_kept, k_at + fourth, multiply(d_n, r), few)


@kernel
def gru_step(
    t: int, from_x: Floats, from_h: Floats, bias: Floats, states: Floats, kept: Floats, texts: int, hidden: int
) -> None:
    """Step t of all texts. from_h (B, 3H): W_h h of this step, without a bias."""
    for b in range(texts):
        row = t * texts + b
        at = row * hidden
        _gru_row(
            from_x, 3 * at, from_h, 3 * b * hidden, bias, states, at, at + texts * hidden, kept, 4 * at, hidden
        )  # fmt: skip


@kernel
def gru_through(
    steps: int, from_x: Floats, from_h: Floats, bias: Floats, states: Floats, kept: Floats, texts: int, hidden: int,
    turned: Floats,
) -> None:  # fmt: skip
    """All steps. turned (H, 3H): W_h with rows and columns exchanged; from_h (3H,): room for one product."""
    for t in range(steps):
        for b in range(texts):
            at = (t * texts + b) * hidden
            from_h[: 3 * hidden] = 0
            add_product(states, at, turned, hidden, 3 * hidden, from_h, 0)
            _gru_row(from_x, 3 * at, from_h, 0, bias, states, at, at + texts * hidden, kept, 4 * at, hidden)


@kernel
def gru_step_back(
    t: int, d_out: Floats, carry: Floats, states: Floats, kept: Floats, d_kept: Floats, texts: int, hidden: int
) -> None:
    for b in range(texts):
        at = (t * texts + b) * hidden
        _gru_row_back(d_out, carry, b * hidden, states, at, kept, d_kept, 4 * at, hidden)


@kernel
def gru_through_back(
    steps: int, d_out: Floats, carry: Floats, states: Floats, kept: Floats, d_kept: Floats, texts: int, hidden: int,
    w_h: Floats,
) -> None:  # fmt: skip
    """All steps, from the last; w_h (3H, H)."""
    for t in range(steps - 1, -1, -1):
        for b in range(texts):
            at = (t * texts + b) * hidden
            _gru_row_back(d_out, carry, b * hidden, states, at, kept, d_kept, 4 * at, hidden)
            add_product(d_kept, 4 * at + hidden, w_h, 3 * hidden, hidden, carry, b * hidden)


# The plain RNN. What comes in and what goes out share their room: the states after are first the products before.


@inlined
def _rnn_row(from_x: Floats, states: Floats, after: int, at: int, hidden: int, relu: bool) -> None:
    for j in range(0, hidden, LANES):
        few = hidden - j
        a = plus(load_part(from_x, at + j, few), load_part(states, after + j, few))
        store_part(states, after + j, positive(a, a) if relu else tanh(a), few)


@inlined
def _rnn_row_back(
    d_out: Floats, carry: Floats, c_at: int, states: Floats, after: int, d_a: Floats, at: int, hidden: int, relu: bool
) -> None:
    for j in range(0, hidden, LANES):
        few = hidden - j
        d = plus(load_part(d_out, at + j, few), load_part(carry, c_at + j, few))
        h = load_part(states, after + j, few)
        slope = positive(d, h) if relu else multiply(d, one_minus(multiply(h, h)))
        store_part(d_a, at + j, slope, few)


@kernel
def rnn_step(t: int, from_x: Floats, states: Floats, texts: int, hidden: int, relu: bool) -> None:
    """Step t of all texts; states[t + 1] holds W_h h and becomes the state."""
    for b in range(texts):
        at = (t * texts + b) * hidden
        _rnn_row(from_x, states, at + texts * hidden, at, hidden, relu)


@kernel
def rnn_through(
    steps: int, from_x: Floats, states: Floats, texts: int, hidden: int, relu: bool, turned: Floats
) -> None:
    """All steps. turned (H, H): W_h with rows and columns exchanged."""
    for t in range(steps):
        for b in range(texts):
            at = (t * texts + b) * hidden
            after = at + texts * hidden
            states[after : after + hidden] = 0
            add_product(states, at, turned, hidden, hidden, states, after)
            _rnn_row(from_x, states, after, at, hidden, relu)


@kernel
def rnn_step_back(
    t: int, d_out: Floats, carry: Floats, states: Floats, d_a: Floats, texts: int, hidden: int, relu: bool
) -> None:
    for b in range(texts):
        at = (t * texts + b) * hidden
        _rnn_row_back(d_out, carry, b * hidden, states, at + texts * hidden, d_a, at, hidden, relu)


@kernel
def rnn_through_back(
    steps: int, d_out: Floats, carry: Floats, states: Floats, d_a: Floats, texts: int, hidden: int, relu: bool,
    w_h: Floats,
) -> None:  # fmt: skip
    """All steps, from the last; w_h (H, H)."""
    for t in range(steps - 1, -1, -1):
        for b in range(texts):
            at = (t * texts + b) * hidden
            _rnn_row_back(d_out, carry, b * hidden, states, at + texts * hidden, d_a, at, hidden, relu)
            carry[b * hidden : (b + 1) * hidden] = 0
            add_product(d_a, at, w_h, hidden, hidden, carry, b * hidden)
