"""The last layer and the loss in one: logits of a few rows at a time, each turned into its own gradient in place.

    loss = −1/N Σ log softmax(h_n W' + b)[y_n]
    ∂loss/∂logits = (softmax − onehot(y)) / N

The plain way writes N × V logits, their log-softmax and their gradient. But the gradient is known as soon as the logits
are, so a block of rows can be computed, scored, turned into its gradient, multiplied into those of h, W and b, and
forgotten: at no time are there more logits than one block's. Backward then only scales what is there already.

Shapes: N words to predict, D units, V words in the vocabulary.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from scipy.linalg.blas import sgemm
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from foreword.nn.kernels_softmax import to_gradient
from foreword.nn.softmax_gpu import can_fuse, loss_and_gradients

ROWS = 1024
"""Words in a block: enough to keep a matrix product busy, 40 MB of float32 logits at a vocabulary of 10,000."""

ROWS_ON_CPU, LOGITS_ON_CPU = 128, 1 << 22
"""There a block that fits the last cache is worth more: so many logits, but never fewer words than that. Twice as many
words would save a twentieth of the time, and double what a step takes beside the gradient at large vocabularies.
"""


def plain_linear_cross_entropy(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """The mean loss, written out; what the fused one must equal."""
    return cross_entropy(linear(hidden, weight, bias).float(), targets)


def linear_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    *,
    rows: int | None = None,
    scale: float = 1.0,
    room: Tensor | None = None,
) -> Tensor:
    """The mean loss times ``scale``, in float32; hidden (N, D), weight (V, D), bias (V,), targets (N,).

    rows: words in a block. scale: of the loss and so of every gradient; gradients in float16 vanish without one.
    room (V, D): where the weight's gradient is made, overwriting what is there, instead of being handed to autograd; it
    saves one that large. Only where ``takes_room`` says so.
    """
    on_cpu = hidden.device.type == "cpu"
    rows = rows or (max(ROWS_ON_CPU, LOGITS_ON_CPU // len(weight)) if on_cpu else ROWS)
    rows = -(-len(targets) // -(-len(targets) // rows)) if len(targets) else rows  # blocks of about one size
    parts = [hidden, weight, bias]
    if len(targets) and takes_room(*parts):
        if int(targets.min()) < 0 or int(targets.max()) >= len(weight):
            raise IndexError(f"a target lies outside of 0 to {len(weight) - 1}")
        return cast(Tensor, _OnCPU.apply(*parts, targets, rows, scale, room))  # type: ignore[no-untyped-call]
    if room is not None:
        raise ValueError("room is for float32 on a CPU, and for some words")
    return cast(Tensor, _LinearCrossEntropy.apply(*parts, targets, rows, scale))  # type: ignore[no-untyped-call]


def takes_room(hidden: Tensor, weight: Tensor, bias: Tensor) -> bool:
    """Whether our kernels take it: float32 on the CPU, row after row."""
    return all(
        part.device.type == "cpu" and part.dtype == torch.float32 and part.is_contiguous()
        for part in (hidden, weight, bias)
    )


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, rows: int, scale: float
    ) -> Tensor:
        if can_fuse(hidden):
            loss, *gradients = loss_and_gradients(hidden, weight, bias, targets, rows, scale)
            ctx.save_for_backward(*gradients)
            return loss
        factor = scale / len(targets)
        d_hidden, d_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        d_bias = torch.zeros_like(bias, dtype=torch.float32)
        loss = torch.zeros((), dtype=torch.float32, device=hidden.device)
        for start in range(0, len(targets), rows):
            block, wanted = hidden[start : start + rows], targets[start : start + rows, None]
            logs = torch.log_softmax(torch.addmm(bias, block, weight.t()), 1, dtype=torch.float32)
            loss -= logs.gather(1, wanted).sum()
            d_logits = logs.exp_()
            d_logits.scatter_add_(1, wanted, torch.full_like(wanted, -1, dtype=torch.float32))
            d_logits.mul_(factor)
            d_bias += d_logits.sum(0)
            small = d_logits.to(hidden.dtype)
            torch.mm(small, weight, out=d_hidden[start : start + rows])
            d_weight.addmm_(small.t(), block)
        ctx.save_for_backward(d_hidden, d_weight, d_bias.to(bias.dtype))
        return loss * factor

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        (d_loss,) = grads
        d_hidden, d_weight, d_bias = ctx.saved_tensors
        one = d_loss.to(d_hidden.dtype)
        return d_hidden * one, d_weight * one, d_bias * one, None, None, None


class _OnCPU(torch.autograd.Function):
    """The same with a kernel between the products, and these by SciPy's BLAS: twice as fast as torch's at the shape of
    a vocabulary, and it adds to what is there. BLAS counts columns first, so every matrix is given turned.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        rows: int,
        scale: float,
        room: Tensor | None,
    ) -> Tensor:
        words, factor = len(weight), scale / len(targets)
        h, w, b = (part.detach().numpy() for part in (hidden, weight, bias))
        wanted = targets.numpy().astype(np.int64, copy=False)
        d_h, d_b = np.empty_like(h), np.zeros_like(b)
        d_w = np.empty_like(w) if room is None else room.detach().numpy()
        if d_w.dtype != w.dtype or d_w.shape != w.shape or not d_w.flags.c_contiguous:
            raise ValueError(f"room is {d_w.dtype} {d_w.shape}: expected {w.dtype} {w.shape}, row after row")
        loss, block = 0.0, np.empty((min(rows, len(h)), words), np.float32)
        for start in range(0, len(h), rows):
            few = h[start : start + rows]
            scores = block[: len(few)]
            sgemm(1.0, w.T, few.T, 0.0, scores.T, trans_a=True, overwrite_c=True)
            aims = np.ascontiguousarray(wanted[start : start + rows])
            loss += to_gradient(scores.reshape(-1), b, aims, np.float32(factor), d_b, len(few), words)
            sgemm(1.0, w.T, scores.T, 0.0, d_h[start : start + rows].T, overwrite_c=True)
            sgemm(1.0, few.T, scores.T, 0.0 if start == 0 else 1.0, d_w.T, trans_b=True, overwrite_c=True)
        ctx.save_for_backward(*map(torch.from_numpy, (d_h, d_b)))
        ctx.d_weight, ctx.handed_over = torch.from_numpy(d_w), room is None
        return torch.tensor(loss * factor)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        (d_loss,) = grads
        d_hidden, d_bias = ctx.saved_tensors
        d_weight, one = ctx.d_weight, float(d_loss)
        ctx.d_weight = None
        if one != 1.0:  # spare the gradient of the whole vocabulary a walk that changes nothing
            d_hidden, d_weight, d_bias = d_hidden * one, d_weight.mul_(one), d_bias * one
        return d_hidden, d_weight if ctx.handed_over else None, d_bias, None, None, None, None
