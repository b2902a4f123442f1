"""An LSTM layer through time: products with the state, gates, and their gradients, all steps in one go.

All arrays are flat float32. states, cells (T + 1, B, H): the first of each is given. gates (T, B, 4H): in, the products
with the input, biases included; out, i, f, g and o. ``nn/fused_lstm.py`` makes them, ``nn/layers.py`` has equations.
"""

from __future__ import annotations

from foreword.arrays import Floats
from foreword.native.jit import inlined, kernel
from foreword.native.simd import LANES, load_part, multiply, multiply_add, one_minus, plus, sigmoid, store_part, tanh
from foreword.nn.kernels_recurrent import add_product


@inlined
def _row(
    gates: Floats, g_at: int, from_h: Floats, h_at: int, states: Floats, cells: Floats, at: int, after: int, hidden: int
) -> None:
    """One text, one step."""
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
def _row_back(
    d_out: Floats, carry: Floats, carry_c: Floats, c_at: int, cells: Floats, at: int, after: int, gates: Floats,
    d_gates: Floats, g_at: int, hidden: int,
) -> None:  # fmt: skip
    """One text, one step back. carry, carry_c (B, H): the gradients of h and c from the step after; carry_c goes on."""
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
    """All steps. packed: W_h with rows and columns exchanged, (H, 4H); from_h (B, 4H): room for a step's product."""
    wide = 4 * hidden
    for t in range(steps):
        from_h[: texts * wide] = 0
        first = t * texts * hidden
        add_product(states, first, hidden, texts, packed, hidden, wide, from_h)
        for b in range(texts):
            at = first + b * hidden
            _row(gates, 4 * at, from_h, b * wide, states, cells, at, at + texts * hidden, hidden)


@kernel
def lstm_through_back(
    steps: int, d_out: Floats, carry: Floats, carry_c: Floats, cells: Floats, gates: Floats, d_gates: Floats,
    texts: int, hidden: int, packed: Floats,
) -> None:  # fmt: skip
    """All steps, from the last; packed: W_h (4H, H). d_gates may be gates themselves, which are then gone."""
    size = texts * hidden
    for t in range(steps - 1, -1, -1):
        first = t * size
        for b in range(texts):
            at = first + b * hidden
            _row_back(d_out, carry, carry_c, b * hidden, cells, at, at + size, gates, d_gates, 4 * at, hidden)
        carry[:size] = 0
        add_product(d_gates, 4 * first, 4 * hidden, texts, packed, 4 * hidden, hidden, carry)
