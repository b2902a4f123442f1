"""The LSTM on the CPU, in float32: forward and backward by our own kernels, gradients written out.

torch runs this one by oneDNN, which lays the weights and their gradients out anew at every call: fast, but backward a
layer of 650 units takes 57 MB for it. Here products with the input are one matrix product before the first step, those
of the gradients one after the last, by SciPy's BLAS, and what is between them is a kernel (``kernels_lstm.py``), which
puts the gates' gradients where the gates were. ``layers.py`` says where which of the two is taken, ``cells.py`` has the
gradients to be read.
Shapes: T steps, B texts, I inputs, H units.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from scipy.linalg.blas import sgemm
from torch import Tensor
from torch.autograd.function import once_differentiable

from foreword.arrays import Floats
from foreword.nn.fused import flat, packed, states_from
from foreword.nn.kernels_lstm import lstm_through, lstm_through_back


def fused_lstm(
    x: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Every state (T, B, H), and the last cell (B, H)."""
    return cast(tuple[Tensor, Tensor], _LSTM.apply(x, h, c, w_x, w_h, b_x, b_h))  # type: ignore[no-untyped-call]


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        states, cells, gates = _run(x, h, c, w_x, w_h, b_x + b_h)
        ctx.save_for_backward(x, w_x, w_h, b_x, b_h, states, cells)
        ctx.gates = gates if any(ctx.needs_input_grad) else None
        return states[1:], cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        d_out, d_last = grads
        x, w_x, w_h, b_x, b_h, states, cells = ctx.saved_tensors
        steps, texts, hidden = d_out.shape
        rows, ctx.gates = ctx.gates, None
        if rows is None:  # a second time through the same graph: the first has put gradients in their place
            rows = _run(x, states[0], cells[0], w_x, w_h, b_x + b_h)[2]
        carry, carry_c = d_out.new_zeros(texts, hidden), d_last.clone()
        gates = rows.reshape(-1)
        held = flat(d_out), flat(carry), flat(carry_c), flat(cells), gates, gates
        lstm_through_back(steps, *held, texts, hidden, packed(w_h))
        d_x = None
        if ctx.needs_input_grad[0]:
            d_x = torch.empty(x.shape)
            sgemm(1.0, _rows(w_x).T, rows.T, 0.0, d_x.view(len(rows), -1).numpy().T, overwrite_c=True)
        d_w_x = _weights_gradient(rows, flat(x).reshape(len(rows), -1))
        d_w_h = _weights_gradient(rows, flat(states[:-1]).reshape(len(rows), hidden))
        d_bias = torch.from_numpy(rows).sum(0)
        return d_x, carry, carry_c, d_w_x, d_w_h, d_bias, d_bias.clone()


def _run(x: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Floats]:
    """States and cells (T + 1, B, H), and gates (T · B, 4H)."""
    steps, texts, hidden = len(x), *h.shape
    gates = np.empty((steps * texts, 4 * hidden), np.float32)
    gates[:] = flat(bias)
    sgemm(1.0, _rows(w_x).T, flat(x).reshape(len(gates), -1).T, 1.0, gates.T, trans_a=True, overwrite_c=True)
    states, cells = states_from(steps, h), states_from(steps, c)
    room = np.empty(texts * 4 * hidden, np.float32)
    lstm_through(steps, gates.reshape(-1), room, flat(states), flat(cells), texts, hidden, packed(w_h.t()))
    return states, cells, gates


def _weights_gradient(rows: Floats, inputs: Floats) -> Tensor:
    """(4H, I): rows' · inputs, for rows (T · B, 4H) and inputs (T · B, I)."""
    out = np.empty((rows.shape[1], inputs.shape[1]), np.float32)
    sgemm(1.0, inputs.T, rows.T, 0.0, out.T, trans_b=True, overwrite_c=True)
    return torch.from_numpy(out)


def _rows(weight: Tensor) -> Floats:
    return flat(weight).reshape(weight.shape)
