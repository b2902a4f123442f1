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

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from foreword.nn.softmax_gpu import can_fuse, loss_and_gradients

ROWS = 1024
"""Words in a block: enough to keep a matrix product busy, 40 MB of float32 logits at a vocabulary of 10,000."""


def plain_linear_cross_entropy(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """The mean loss, written out; what the fused one must equal."""
    return cross_entropy(linear(hidden, weight, bias).float(), targets)


def linear_cross_entropy(
    hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, *, rows: int = ROWS, scale: float = 1.0
) -> Tensor:
    """The mean loss times ``scale``, in float32; hidden (N, D), weight (V, D), bias (V,), targets (N,).

    scale: of the loss and so of every gradient; gradients in float16 vanish without one.
    """
    return cast(Tensor, _LinearCrossEntropy.apply(hidden, weight, bias, targets, rows, scale))  # type: ignore[no-untyped-call]


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
