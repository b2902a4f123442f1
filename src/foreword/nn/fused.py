"""The RNN and the GRU on the CPU, in float32: forward and backward by our own kernels, gradients written out.

torch runs these two as a chain of small operations for each step. Here all products with the input are one matrix
product before the first step, those of the weights' gradients one after the last, and what is between them a kernel
(``nn/kernels_recurrent.py``). ``layers.py`` has the equations, ``cells.py`` the gradients to be read.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from foreword.arrays import Floats
from foreword.nn.kernels_recurrent import BLOCK, gru_through, gru_through_back, rnn_through, rnn_through_back


def fused_gru(x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor) -> Tensor:
    """Every state (T, B, H)."""
    return cast(Tensor, _GRU.apply(x, h, w_x, w_h, b_x, b_h))  # type: ignore[no-untyped-call]


def fused_rnn(
    x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor, *, relu: bool = False
) -> Tensor:
    """Every state (T, B, H)."""
    return cast(Tensor, _RNN.apply(x, h, w_x, w_h, b_x, b_h, relu))  # type: ignore[no-untyped-call]


class _GRU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor
    ) -> Tensor:  # fmt: skip
        steps, texts, hidden = len(x), *h.shape
        bias = b_x.clone()
        bias[: 2 * hidden] += b_h[: 2 * hidden]
        from_x = torch.addmm(bias, x.flatten(0, 1), w_x.t())
        states, kept = states_from(steps, h), x.new_empty(steps, texts, 4 * hidden)
        from_h = x.new_empty(texts, 3 * hidden)
        held = flat(from_x), flat(from_h), flat(b_h[2 * hidden :]), flat(states), flat(kept)
        gru_through(steps, *held, texts, hidden, packed(w_h.t()))
        ctx.save_for_backward(x, w_x, w_h, states, kept)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        (d_out,) = grads
        x, w_x, w_h, states, kept = ctx.saved_tensors
        steps, texts, hidden = d_out.shape
        d_kept, carry = torch.empty_like(kept), d_out.new_zeros(texts, hidden)
        held = flat(d_out), flat(carry), flat(states), flat(kept), flat(d_kept)
        gru_through_back(steps, *held, texts, hidden, packed(w_h))
        rows, before = d_kept.flatten(0, 1), states[:-1].flatten(0, 1)
        d_n, d_gates, d_inner = rows[:, :hidden], rows[:, hidden : 3 * hidden], rows[:, hidden:]
        d_w_x, d_x = torch.empty_like(w_x), None
        torch.mm(d_gates.t(), x.flatten(0, 1), out=d_w_x[: 2 * hidden])
        torch.mm(d_n.t(), x.flatten(0, 1), out=d_w_x[2 * hidden :])
        if ctx.needs_input_grad[0]:
            d_x = torch.mm(d_gates, w_x[: 2 * hidden]).addmm_(d_n, w_x[2 * hidden :]).view_as(x)
        sums = rows.sum(0)
        d_b_x = torch.cat((sums[hidden : 3 * hidden], sums[:hidden]))
        return d_x, carry, d_w_x, torch.mm(d_inner.t(), before), d_b_x, sums[hidden:]


class _RNN(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor, relu: bool
    ) -> Tensor:
        steps, texts, hidden = len(x), *h.shape
        from_x = torch.addmm(b_x + b_h, x.flatten(0, 1), w_x.t())
        states = states_from(steps, h)
        held = flat(from_x), flat(states), flat(torch.empty_like(h))
        rnn_through(steps, *held, texts, hidden, relu, packed(w_h.t()))
        ctx.relu = relu
        ctx.save_for_backward(x, w_x, w_h, states)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        (d_out,) = grads
        x, w_x, w_h, states = ctx.saved_tensors
        steps, texts, hidden = d_out.shape
        d_a, carry = x.new_empty(steps, texts, hidden), d_out.new_zeros(texts, hidden)
        held = flat(d_out), flat(carry), flat(states), flat(d_a)
        rnn_through_back(steps, *held, texts, hidden, ctx.relu, packed(w_h))
        rows, before = d_a.flatten(0, 1), states[:-1].flatten(0, 1)
        d_x = torch.mm(rows, w_x).view_as(x) if ctx.needs_input_grad[0] else None
        bias = rows.sum(0)
        return d_x, carry, torch.mm(rows.t(), x.flatten(0, 1)), torch.mm(rows.t(), before), bias, bias, None


def states_from(steps: int, first: Tensor) -> Tensor:
    states = first.new_empty(steps + 1, *first.shape)
    states[0] = first
    return states


def packed(matrix: Tensor) -> Floats:
    """(rows, columns) as (columns / 64, rows, 64), flat: as ``add_product`` reads it. Once a call, for all steps."""
    rows, columns = matrix.shape
    whole = columns // BLOCK
    out = matrix.new_empty(-(-columns // BLOCK), rows, BLOCK)
    with torch.no_grad():
        out[:whole] = matrix[:, : whole * BLOCK].view(rows, whole, BLOCK).transpose(0, 1)
        if whole < len(out):
            out[whole].zero_()[:, : columns - whole * BLOCK] = matrix[:, whole * BLOCK :]
    return flat(out)


def flat(tensor: Tensor) -> Floats:
    """The tensor's numbers as the kernels take them; a copy only where they do not lie in a row."""
    flat: Floats = tensor.detach().contiguous().view(-1).numpy()
    return flat
