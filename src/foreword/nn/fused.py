"""Recurrent layers on the CPU in float32 by our own kernels: with gradients written out, or reading without any.

torch runs an RNN and a GRU as a chain of small operations for each step, and an LSTM by oneDNN, which copies the
weights and their gradients into another layout at every call: fast, but backward a layer of 650 units takes 57 MB for
it. Here the products with the input are one matrix product before the first step, those of the weights' gradients one
after the last, and what is between them is a kernel (``kernels_recurrent.py``; without gradients
``kernels_inference.py``). ``layers.py`` has the equations and chooses between torch and this file; ``cells.py`` has the
gradients to be read.

Shapes: T steps, B texts, I inputs, H units; N words in all, D distinct words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from scipy.linalg.blas import sgemm
from torch import Tensor
from torch.autograd.function import once_differentiable

from foreword.arrays import Floats, Longs
from foreword.native.parallel import in_threads
from foreword.nn.kernels_inference import lstm_gates, read_few, read_many
from foreword.nn.kernels_recurrent import (
    BLOCK,
    gru_through,
    gru_through_back,
    lstm_through,
    lstm_through_back,
    rnn_through,
    rnn_through_back,
)

MANY_TEXTS, MANY_WORDS = 4, 24
"""Sentences, and words in all, from which on it pays to transpose the recurrent weights for products of many states."""

TEXTS_PER_THREAD = 16
"""With fewer each thread would read the weights for little."""


# Training


def fused_rnn(
    x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor, *, relu: bool = False
) -> Tensor:
    """Return every state (T, B, H) of an Elman network."""
    return cast(Tensor, _RNN.apply(x, h, w_x, w_h, b_x, b_h, relu))  # type: ignore[no-untyped-call]


def fused_gru(x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor) -> Tensor:
    """Return every state (T, B, H) of a GRU."""
    return cast(Tensor, _GRU.apply(x, h, w_x, w_h, b_x, b_h))  # type: ignore[no-untyped-call]


def fused_lstm(
    x: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor
) -> tuple[Tensor, Tensor]:
    """Return every state (T, B, H) of an LSTM, and the last cell (B, H)."""
    return cast(tuple[Tensor, Tensor], _LSTM.apply(x, h, c, w_x, w_h, b_x, b_h))  # type: ignore[no-untyped-call]


class _RNN(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor, relu: bool
    ) -> Tensor:
        """Return every state."""
        steps, texts, hidden = len(x), *h.shape
        from_x = torch.addmm(b_x + b_h, x.flatten(0, 1), w_x.t())
        states = _states_from(steps, h)
        arrays = flat(from_x), flat(states), flat(torch.empty_like(h))
        rnn_through(steps, *arrays, texts, hidden, relu, packed(w_h.t()))
        ctx.relu = relu
        ctx.save_for_backward(x, w_x, w_h, states)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        """Return the gradients of the input, the first state and the weights."""
        (d_out,) = grads
        x, w_x, w_h, states = ctx.saved_tensors
        steps, texts, hidden = d_out.shape
        d_a, carry = x.new_empty(steps, texts, hidden), d_out.new_zeros(texts, hidden)
        arrays = flat(d_out), flat(carry), flat(states), flat(d_a)
        rnn_through_back(steps, *arrays, texts, hidden, ctx.relu, packed(w_h))
        rows, before = d_a.flatten(0, 1), states[:-1].flatten(0, 1)
        d_x = torch.mm(rows, w_x).view_as(x) if ctx.needs_input_grad[0] else None
        bias = rows.sum(0)
        return d_x, carry, torch.mm(rows.t(), x.flatten(0, 1)), torch.mm(rows.t(), before), bias, bias, None


class _GRU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor) -> Tensor:
        """Return every state."""
        steps, texts, hidden = len(x), *h.shape
        bias = b_x.clone()
        bias[: 2 * hidden] += b_h[: 2 * hidden]
        from_x = torch.addmm(bias, x.flatten(0, 1), w_x.t())
        states, saved = _states_from(steps, h), x.new_empty(steps, texts, 4 * hidden)
        from_h = x.new_empty(texts, 3 * hidden)
        arrays = flat(from_x), flat(from_h), flat(b_h[2 * hidden :]), flat(states), flat(saved)
        gru_through(steps, *arrays, texts, hidden, packed(w_h.t()))
        ctx.save_for_backward(x, w_x, w_h, states, saved)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        """Return the gradients of the input, the first state and the weights."""
        (d_out,) = grads
        x, w_x, w_h, states, saved = ctx.saved_tensors
        steps, texts, hidden = d_out.shape
        d_saved, carry = torch.empty_like(saved), d_out.new_zeros(texts, hidden)
        arrays = flat(d_out), flat(carry), flat(states), flat(saved), flat(d_saved)
        gru_through_back(steps, *arrays, texts, hidden, packed(w_h))
        rows, before = d_saved.flatten(0, 1), states[:-1].flatten(0, 1)
        d_n, d_gates, d_inner = rows[:, :hidden], rows[:, hidden : 3 * hidden], rows[:, hidden:]
        d_w_x, d_x = torch.empty_like(w_x), None
        torch.mm(d_gates.t(), x.flatten(0, 1), out=d_w_x[: 2 * hidden])
        torch.mm(d_n.t(), x.flatten(0, 1), out=d_w_x[2 * hidden :])
        if ctx.needs_input_grad[0]:
            d_x = torch.mm(d_gates, w_x[: 2 * hidden]).addmm_(d_n, w_x[2 * hidden :]).view_as(x)
        sums = rows.sum(0)
        d_b_x = torch.cat((sums[hidden : 3 * hidden], sums[:hidden]))
        return d_x, carry, d_w_x, torch.mm(d_inner.t(), before), d_b_x, sums[hidden:]


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return every state, and the last cell."""
        states, cells, gates = _run_lstm(x, h, c, w_x, w_h, b_x + b_h)
        ctx.save_for_backward(x, w_x, w_h, b_x, b_h, states, cells)
        ctx.gates = gates if any(ctx.needs_input_grad) else None
        return states[1:], cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        """Return the gradients of the input, the first states and the weights."""
        d_out, d_last = grads
        x, w_x, w_h, b_x, b_h, states, cells = ctx.saved_tensors
        steps, texts, hidden = d_out.shape
        rows, ctx.gates = ctx.gates, None
        if rows is None:  # a second pass through the same graph: the first has overwritten the gates with gradients
            rows = _run_lstm(x, states[0], cells[0], w_x, w_h, b_x + b_h)[2]
        carry, carry_c = d_out.new_zeros(texts, hidden), d_last.clone()
        gates = rows.reshape(-1)
        arrays = flat(d_out), flat(carry), flat(carry_c), flat(cells), gates, gates
        lstm_through_back(steps, *arrays, texts, hidden, packed(w_h))
        d_x = None
        if ctx.needs_input_grad[0]:
            d_x = torch.empty(x.shape)
            sgemm(1.0, _rows(w_x).T, rows.T, 0.0, d_x.view(len(rows), -1).numpy().T, overwrite_c=True)
        d_w_x = _weights_gradient(rows, flat(x).reshape(len(rows), -1))
        d_w_h = _weights_gradient(rows, flat(states[:-1]).reshape(len(rows), hidden))
        d_bias = torch.from_numpy(rows).sum(0)
        return d_x, carry, carry_c, d_w_x, d_w_h, d_bias, d_bias.clone()


def _run_lstm(
    x: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Floats]:  # fmt: skip
    """Return states and cells (T + 1, B, H), and gates (T · B, 4H)."""
    steps, texts, hidden = len(x), *h.shape
    gates = np.empty((steps * texts, 4 * hidden), np.float32)
    gates[:] = flat(bias)
    # BLAS is column-major, so every matrix is passed transposed.
    sgemm(1.0, _rows(w_x).T, flat(x).reshape(len(gates), -1).T, 1.0, gates.T, trans_a=True, overwrite_c=True)
    states, cells = _states_from(steps, h), _states_from(steps, c)
    from_h = np.empty(texts * 4 * hidden, np.float32)
    lstm_through(steps, gates.reshape(-1), from_h, flat(states), flat(cells), texts, hidden, packed(w_h.t()))
    return states, cells, gates


def _weights_gradient(rows: Floats, inputs: Floats) -> Tensor:
    """Return (4H, I): rows' · inputs, for rows (T · B, 4H) and inputs (T · B, I)."""
    out = np.empty((rows.shape[1], inputs.shape[1]), np.float32)
    sgemm(1.0, inputs.T, rows.T, 0.0, out.T, trans_b=True, overwrite_c=True)
    return torch.from_numpy(out)


def _states_from(steps: int, first: Tensor) -> Tensor:
    states = first.new_empty(steps + 1, *first.shape)
    states[0] = first
    return states


# Reading: sentences of many lengths without a step for padding. They are sorted, the longest first, so that at every
# step those that still have a word are the first few.


def only_read(x: Tensor, h: Tensor, c: Tensor, weights: Sequence[Tensor]) -> bool:
    """Return whether ``read_words`` applies: float32 on the CPU, at least one step of one sentence, and no gradients.

    x: (…, inputs).
    """
    parts = (x, h, c, *weights)
    if torch.is_grad_enabled() and any(part.requires_grad for part in parts):
        return False
    usual = all(part.dtype == torch.float32 and part.device.type == "cpu" for part in parts)
    return usual and x.numel() > 0 and h.shape == c.shape == (len(h), weights[1].shape[1]) and len(h) > 0


def read_words(
    vectors: Tensor, words: Tensor, h: Tensor, c: Tensor, weights: Sequence[Tensor], lengths: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Run an LSTM layer over words (T, B), rows of vectors (D, inputs): every state (T, B, H), the last state and cell.

    weights: as in ``layers.py``. lengths (B,): of the sentences, the longest first. Behind a sentence's end its states
    are zero, and its last state is that after its last word.
    """
    w_x, w_h, b_x, b_h = weights
    (steps, texts), units = words.shape, h.shape[1]
    table = torch.addmm(b_x + b_h, vectors, w_x.t())
    out = h.new_empty(steps, texts, units) if lengths is None else h.new_zeros(steps, texts, units)
    h, c = h.clone(memory_format=torch.contiguous_format), c.clone(memory_format=torch.contiguous_format)
    rows: Longs = words.contiguous().view(-1).numpy()
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(table):
        raise IndexError(f"a word is not among the {len(table)} that were given")
    inputs = flat_view(table), rows, _texts_per_step(steps, texts, lengths)
    outputs = flat_view(h), flat_view(c), flat_view(out)
    if texts < MANY_TEXTS or steps * texts < MANY_WORDS:
        gates, no_bias = np.empty(4 * texts * units, np.float32), np.zeros(4 * units, np.float32)
        read_few(*inputs, flat(w_h), no_bias, gates, *outputs, texts, units)
        return out, h, c
    transposed = packed(w_h.t())

    def work(first: int, last: int) -> None:
        gates = np.empty(4 * (last - first) * units, np.float32)
        read_many(*inputs, transposed, gates, *outputs, texts, first, last, units)

    in_threads(work, texts, min(torch.get_num_threads(), texts // TEXTS_PER_THREAD))
    return out, h, c


def _texts_per_step(steps: int, texts: int, lengths: Tensor | None) -> Longs:
    """Return (T,): how many sentences have a word at each step."""
    if lengths is None:
        return np.full(steps, texts, np.int64)
    sizes = lengths.numpy()
    if sizes.shape != (texts,) or (np.diff(sizes) > 0).any():
        raise ValueError(f"expected {texts} lengths, the longest first")
    counts: Longs = np.searchsorted(-sizes, -np.arange(steps), side="left").astype(np.int64)
    return counts


def read_lstm(
    table: Tensor, words: Tensor | None, counts: list[int], recurrent: Tensor, out: Tensor, *, from_end: bool
) -> None:
    """Run an LSTM layer in one direction: fill ``out`` (N, H) with its states, step by step, the longest text first.

    table: (D, 4H) and words: (N,) rows of it, or (N, 4H) in order and None; counts: sentences at each step.
    """
    most, units = counts[0], out.shape[1]
    h, c = torch.zeros(most, units), torch.zeros(most, units)
    from_x, from_h = torch.empty(most, 4 * units), torch.empty(most, 4 * units)
    states, cells, x_gates, h_gates = (flat_view(each) for each in (h, c, from_x, from_h))
    ends = np.cumsum(counts).tolist()
    transposed = recurrent.t()
    steps = range(len(counts))
    for step in reversed(steps) if from_end else steps:
        count, end = counts[step], ends[step]
        begin = end - count
        if words is None:
            x_gates = flat_view(table[begin:end])
        else:
            torch.index_select(table, 0, words[begin:end], out=from_x[:count])
        torch.mm(h[:count], transposed, out=from_h[:count])
        lstm_gates(x_gates, h_gates, states, cells, count, units)
        out[begin:end] = h[:count]


# Tensors as the kernels take them


def packed(matrix: Tensor) -> Floats:
    """Return (rows, columns) as (columns / 64, rows, 64), flat: as ``add_product`` reads it, once for all steps."""
    rows, columns = matrix.shape
    whole = columns // BLOCK
    out = matrix.new_empty(-(-columns // BLOCK), rows, BLOCK)
    with torch.no_grad():
        out[:whole] = matrix[:, : whole * BLOCK].view(rows, whole, BLOCK).transpose(0, 1)
        if whole < len(out):
            out[whole].zero_()[:, : columns - whole * BLOCK] = matrix[:, whole * BLOCK :]
    return flat(out)


def flat(tensor: Tensor) -> Floats:
    """Return the tensor's numbers as a flat array, a copy only where they are not contiguous."""
    numbers: Floats = tensor.detach().contiguous().view(-1).numpy()
    return numbers


def flat_view(tensor: Tensor) -> Floats:
    """Return the memory of a contiguous tensor as a flat array."""
    numbers: Floats = tensor.view(-1).numpy()
    return numbers


def _rows(weight: Tensor) -> Floats:
    return flat(weight).reshape(weight.shape)
