"""An LSTM layer that only reads: all steps of some texts in one go, nothing kept that only a gradient would need.

What the input brings to a step, biases included, is a row of a table, and ``words`` says which: a word that comes often
is multiplied once. Texts lie side by side, the longest first, so that at every step those that still have a word are
the first few, and no step is computed for padding.

All arrays are flat. table (D, 4H), words (T, B), h and c (B, H), out (T, B, H). ``nn/reading.py`` makes them.
"""

from __future__ import annotations

from foreword.arrays import Floats, Longs
from foreword.native.jit import inlined, kernel
from foreword.native.simd import LANES, load_part, multiply, multiply_add, plus, sigmoid, store_part, tanh
from foreword.nn.kernels_recurrent import add_product
from foreword.nn.kernels_step import multiply_rows


@inlined
def _gates(gates: Floats, at: int, h: Floats, c: Floats, own: int, out: Floats, to: int, hidden: int) -> None:
    """One text, one step: h and c become the new ones, and h is written to out as well."""
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
def read_together(
    table: Floats, words: Longs, counts: Longs, packed: Floats, gates: Floats, h: Floats, c: Floats, out: Floats,
    texts: int, first: int, last: int, hidden: int,
) -> None:  # fmt: skip
    """All steps of the texts from ``first`` to ``last``. counts (T,): texts that still have a word, which never rise.
    packed: W_h with rows and columns exchanged, (H, 4H), as ``add_product`` reads it; gates (last − first, 4H): room
    for one step. h and c become those after each text's last word.
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
            _gates(gates, text * wide, h, c, (first + text) * hidden, out, (begin + text) * hidden, hidden)


@kernel
def read_few(
    table: Floats, words: Longs, counts: Longs, recurrent: Floats, none: Floats, gates: Floats, h: Floats, c: Floats,
    out: Floats, texts: int, hidden: int,
) -> None:  # fmt: skip
    """The same for so few texts that W_h (4H, H) is read as it lies: to exchange its rows and columns would take longer
    than it saves. none (4H,): zeros.
    """
    wide = 4 * hidden
    for step in range(len(counts)):
        count, begin = counts[step], step * texts
        multiply_rows(recurrent, none, h, count, wide, hidden, gates)
        for text in range(count):
            at, to = words[begin + text] * wide, text * wide
            for j in range(0, wide, LANES):
                few = wide - j
                store_part(gates, to + j, plus(load_part(gates, to + j, few), load_part(table, at + j, few)), few)
            _gates(gates, to, h, c, text * hidden, out, (begin + text) * hidden, hidden)
