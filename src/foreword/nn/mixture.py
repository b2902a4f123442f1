"""A mixture of softmaxes, and its loss without all of its logits.

    p(v | h) = Σ_k π_k(h) softmax(W z_k + b)_v,    z_k = tanh(L_k h + l_k),    π(h) = softmax(P h)

With one softmax the log-probabilities are a matrix of rank at most D + 1, whatever the contexts; a mixture is not so
limited. It costs K times the products with the vocabulary. Of each softmax the loss needs only the target, and with

    r_k = π_k p_k(y) / Σ_j π_j p_j(y),        ∂loss/∂logits_k = r_k (p_k − onehot(y)) / N,    ∂loss/∂log π_k = −r_k / N

the gradient is known as soon as the logits of a row's K softmaxes are: a block of rows at a time, as in ``softmax.py``.
A temperature divides the logits of every softmax; the shares stay as they are.

Z. Yang et al., "Breaking the softmax bottleneck: a high-rank RNN language model" (2018).
Shapes: N words to predict, K softmaxes, D units, V words in the vocabulary.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import linear

from foreword.nn.softmax import tempered_losses
from foreword.nn.softmax_gpu import can_fuse, mixture_loss_and_gradients, repeated

LOGITS, LOGITS_ON_CPU = 1 << 26, 1 << 23
"""Logits stored at once: of some rows, all their softmaxes."""


def mixture_logs(z: Tensor, log_shares: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return log-probabilities (N, V) in the type of ``log_shares``, for z (N, K, D) and log π (N, K)."""
    logs = torch.log_softmax(linear(z, weight, bias).to(log_shares.dtype), 2)
    return torch.logsumexp(logs + log_shares[:, :, None], 1)


def mixture_cross_entropy(
    z: Tensor,
    log_shares: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    *,
    rows: int | None = None,
    scale: float = 1.0,
) -> Tensor:
    """Return the mean loss times ``scale``, in float32.

    z (N, K, D), log_shares (N, K) in float32, weight (V, D), bias (V,), targets (N,). rows: words in a block.
    """
    rows = rows or _rows(z, weight)
    return cast(Tensor, _InBlocks.apply(z, log_shares, weight, bias, targets, rows, scale))  # type: ignore[no-untyped-call]


def mixture_word_logs(z: Tensor, log_shares: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Return log-probabilities of given words (N,), some rows of logits at a time; no gradient."""
    pieces = (torch.split(part, _rows(z, weight)) for part in (z, log_shares, targets))
    found = [_joint(some, shares, weight, bias, wanted)[1] for some, shares, wanted in zip(*pieces, strict=True)]
    return torch.logsumexp(torch.cat(found), 1)


def tempered_mixture_losses(
    z: Tensor, log_shares: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, temperatures: Tensor
) -> Tensor:
    """Return float32 (temperatures, N): minus the logs of given words where each softmax's logits are divided by τ."""
    each = tempered_losses(z.flatten(0, 1), weight, bias, repeated(targets, z.shape[1]), temperatures)
    return -torch.logsumexp(log_shares - each.view(len(each), *log_shares.shape), 2)


def _rows(z: Tensor, weight: Tensor) -> int:
    return max(1, (LOGITS_ON_CPU if z.device.type == "cpu" else LOGITS) // (z.shape[1] * len(weight)))


def _joint(z: Tensor, log_shares: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return each softmax's log-probabilities (n, K, V), and log π_k p_k(y) (n, K)."""
    logs = torch.log_softmax(linear(z, weight, bias), 2, dtype=torch.float32)
    wanted = targets[:, None, None].expand(-1, z.shape[1], 1)
    return logs, log_shares + logs.gather(2, wanted)[:, :, 0]


class _InBlocks(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        log_shares: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        rows: int,
        scale: float,
    ) -> Tensor:
        """Return the loss; the gradients are computed at once, while the logits are there."""
        if can_fuse(z):
            loss, *gradients = mixture_loss_and_gradients(z, log_shares, weight, bias, targets, rows, scale)
            ctx.save_for_backward(*gradients)
            return loss
        factor = scale / len(targets)
        d_z, d_weight, d_shares = torch.empty_like(z), torch.zeros_like(weight), torch.empty_like(log_shares)
        d_bias = torch.zeros_like(bias, dtype=torch.float32)
        loss = torch.zeros((), dtype=torch.float32, device=z.device)
        for start in range(0, len(targets), rows):
            here = slice(start, start + rows)
            logs, joint = _joint(z[here], log_shares[here], weight, bias, targets[here])
            together = torch.logsumexp(joint, 1, keepdim=True)
            loss -= together.sum()
            taken = torch.exp(joint - together).mul_(factor)
            d_shares[here] = -taken
            d_logits = logs.exp_().mul_(taken[:, :, None])
            wanted = targets[here, None, None].expand(-1, z.shape[1], 1)
            d_logits.scatter_add_(2, wanted, -taken[:, :, None])
            flat = d_logits.flatten(0, 1)
            d_bias += flat.sum(0)
            small = flat.to(z.dtype)
            d_z[here] = torch.mm(small, weight).view_as(z[here])
            d_weight.addmm_(small.t(), z[here].flatten(0, 1))
        ctx.save_for_backward(d_z, d_shares, d_weight, d_bias.to(bias.dtype))
        return loss * factor

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        """Return the stored gradients, scaled."""
        (d_loss,) = grads
        d_z, d_shares, d_weight, d_bias = ctx.saved_tensors
        one = d_loss.to(d_z.dtype)
        return d_z * one, d_shares * d_loss, d_weight * one, d_bias * one, None, None, None
