"""The last layer and the loss on a GPU in half precision: one kernel between the matrix products.

torch's operations in ``softmax.py`` pass over a block of logits seven times. Here one program per row passes over it
twice: for the highest logit and the sum, and to replace each logit by its gradient. A mixture of softmaxes
(``mixture.py``) needs two kernels, since the gradient of one softmax depends on the others' log-probabilities of the
target. Vocabularies are padded to a multiple of 64, as matrix units need; the words added have a logit of −∞ and get no
gradient.

Shapes: N words to predict, K softmaxes, D units, V words in the vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from foreword.nn.gpu import jit, tl, triton

WORDS = 64
"""Vocabularies are padded to a multiple of it."""

BLOCK = 4096
"""Logits that a program loads at once."""


def can_fuse(hidden: Tensor) -> bool:
    """Return whether the kernel applies: half precision on a GPU, with Triton installed."""
    return triton is not None and hidden.is_cuda and hidden.dtype in (torch.float16, torch.bfloat16)


def loss_and_gradients(
    hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, rows: int, scale: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the mean loss times ``scale``, in float32, and its gradients in hidden, weight and bias."""
    words, factor = len(weight), scale / len(targets)
    wide, wide_bias = _padded(weight, bias)
    d_hidden, d_wide = torch.empty_like(hidden), torch.empty_like(wide)
    d_bias = torch.zeros_like(wide_bias, dtype=torch.float32)
    losses = torch.empty(len(targets), device=hidden.device)
    for start in range(0, len(targets), rows):
        block = hidden[start : start + rows]
        logits = torch.addmm(wide_bias, block, wide.t())
        _to_gradient(logits, targets[start : start + rows], losses[start : start + rows], factor)
        d_bias += logits.sum(0, dtype=torch.float32)
        torch.mm(logits, wide, out=d_hidden[start : start + rows])
        if start == 0:
            torch.mm(logits.t(), block, out=d_wide)
        else:
            d_wide.addmm_(logits.t(), block)
    return losses.sum() * factor, d_hidden, d_wide[:words], d_bias[:words].to(bias.dtype)


def mixture_loss_and_gradients(
    z: Tensor, log_shares: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, rows: int, scale: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the mean loss of a mixture times ``scale``, in float32, and its gradients in z, log π, weight and bias.

    z (N, K, D), log_shares (N, K) in float32. rows: words in a block, each of which has K rows of logits.
    """
    (_, mixed, units), factor = z.shape, scale / len(targets)
    wide, wide_bias = _padded(weight, bias)
    d_z, d_wide, d_shares = torch.empty_like(z), torch.zeros_like(wide), torch.empty_like(log_shares)
    d_bias = torch.zeros_like(wide_bias, dtype=torch.float32)
    losses = torch.empty(len(targets), device=z.device)
    for start in range(0, len(targets), rows):
        here = slice(start, start + rows)
        block = z[here].reshape(-1, units)
        wanted = repeated(targets[here], mixed)
        logits = torch.addmm(wide_bias, block, wide.t())
        levels, logs = _levels(logits, wanted)
        joint = log_shares[here] + logs.view(-1, mixed)
        together = torch.logsumexp(joint, 1, keepdim=True)
        taken = torch.exp(joint - together) * factor
        losses[here], d_shares[here] = -together[:, 0], -taken
        _to_gradient_at(logits, wanted, levels, taken.view(-1))
        d_bias += logits.sum(0, dtype=torch.float32)
        d_z[here] = torch.mm(logits, wide).view(-1, mixed, units)
        d_wide.addmm_(logits.t(), block)
    words = len(weight)
    return losses.sum() * factor, d_z, d_shares, d_wide[:words], d_bias[:words].to(bias.dtype)


def repeated(targets: Tensor, times: int) -> Tensor:
    """Return (N · times,) targets; of a single one too in memory of their own, as kernels read them."""
    return targets[:, None].expand(-1, times).reshape(-1).contiguous()


def _padded(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Return weight and bias of a vocabulary whose length is a multiple of ``WORDS``."""
    more = -len(weight) % WORDS
    return pad(weight, (0, 0, 0, more)), pad(bias, (0, more), value=-torch.inf)


def _levels(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log of each row's sum of exponentials, and the log-probability of its target, both float32."""
    levels, logs = torch.empty(2, len(logits), device=logits.device)
    _level_of_row[(len(logits),)](logits, targets, levels, logs, logits.shape[1], BLOCK=BLOCK, num_warps=8)
    return levels, logs


def _to_gradient_at(logits: Tensor, targets: Tensor, levels: Tensor, factors: Tensor) -> None:
    """Replace ``logits`` by (softmax − onehot) times each row's factor, given the logs of the rows' sums."""
    rows, width = logits.shape
    grid = (rows, -(-width // BLOCK))
    _gradient_at_level[grid](logits, targets, levels, factors, width, BLOCK=BLOCK, num_warps=8)


def _to_gradient(logits: Tensor, targets: Tensor, losses: Tensor, factor: float) -> None:
    """Replace ``logits`` by (softmax − onehot) · factor, and fill ``losses`` with −log softmax of the targets."""
    _gradient_of_row[(len(logits),)](logits, targets, losses, factor, logits.shape[1], BLOCK=BLOCK, num_warps=8)


def losses_at(logits: Tensor, targets: Tensor, temperatures: Tensor) -> Tensor:
    """Return (K, N): −log softmax(logits / τ) of the targets for each of K temperatures τ."""
    losses = torch.empty(len(temperatures), len(targets), device=logits.device)
    _tempered_row[(len(targets),)](
        logits, targets, temperatures, losses, len(targets), len(temperatures), WIDTH=logits.shape[1], BLOCK=4 * BLOCK,
        num_warps=8,
    )  # fmt: skip
    return losses


@jit()
def _log_sum(base, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return the log of a row's sum of exponentials, in one pass: the sum is rescaled when a higher logit is met."""
    highest = -float("inf")
    total = 0.0
    for begin in range(0, width, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        scores = tl.load(base + at, mask=at < width, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(scores, 0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(scores - higher), 0)
        highest = higher
    return highest + tl.log(total)


@jit()
def _gradient_of_row(logits, targets, losses, factor, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Process one row. The target's logit is read first: the reductions that follow keep it from being read after its
    own gradient has been written.
    """
    row = tl.program_id(0).to(tl.int64)
    base = logits + row * width
    target = tl.load(targets + row)
    wanted = tl.load(base + target).to(tl.float32)
    level = _log_sum(base, width, BLOCK)
    tl.store(losses + row, level - wanted)
    for begin in range(0, width, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        scores = tl.load(base + at, mask=at < width, other=-float("inf")).to(tl.float32)
        share = tl.exp(scores - level)
        share = tl.where(at == target, share - 1.0, share) * factor
        tl.store(base + at, share.to(logits.dtype.element_ty), mask=at < width)


@jit()
def _level_of_row(logits, targets, levels, logs, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Process one row."""
    row = tl.program_id(0).to(tl.int64)
    base = logits + row * width
    wanted = tl.load(base + tl.load(targets + row)).to(tl.float32)
    level = _log_sum(base, width, BLOCK)
    tl.store(levels + row, level)
    tl.store(logs + row, wanted - level)


@jit()
def _gradient_at_level(logits, targets, levels, factors, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Process a block of one row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    where = logits + row * width + at
    scores = tl.load(where, mask=at < width, other=-float("inf")).to(tl.float32)
    share = tl.exp(scores - tl.load(levels + row))
    share = tl.where(at == tl.load(targets + row), share - 1.0, share) * tl.load(factors + row)
    tl.store(where, share.to(logits.dtype.element_ty), mask=at < width)


@jit()
def _tempered_row(logits, targets, temperatures, losses, rows, count, WIDTH: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Process one row: the highest logit, then one sum for each temperature."""
    row = tl.program_id(0).to(tl.int64)
    base = logits + row * WIDTH
    wanted = tl.load(base + tl.load(targets + row)).to(tl.float32)
    highest = -float("inf")
    for begin in range(0, WIDTH, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        scores = tl.load(base + at, mask=at < WIDTH, other=-float("inf")).to(tl.float32)
        highest = tl.maximum(highest, tl.max(scores, 0))
    number = 0
    while number < count:
        sharper = 1 / tl.load(temperatures + number)
        total = 0.0
        for begin in range(0, WIDTH, BLOCK):
            at = begin + tl.arange(0, BLOCK)
            scores = tl.load(base + at, mask=at < WIDTH, other=-float("inf")).to(tl.float32)
            total += tl.sum(tl.exp((scores - highest) * sharper), 0)
        tl.store(losses + number * rows + row, tl.log(total) - (wanted - highest) * sharper)
        number += 1
