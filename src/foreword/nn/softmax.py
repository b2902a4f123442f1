"""The softmax layer over a vocabulary: its loss, log-probabilities of given words, and the likeliest word.

    loss = −1/N Σ log softmax(h_n W' + b)[y_n]        ∂loss/∂logits = (softmax − onehot(y)) / N
    log p(y) = h · w_y + b_y − log Σ_v exp(h · w_v + b_v)
    likeliest = argmax_v (h · w_v + b_v)

The plain way (``plain.py``) writes N × V logits, their log-softmax and their gradient. But the gradient is known as
soon as the logits are, so a block of rows can be computed, scored, turned into its gradient, multiplied into those of
h, W and b, and discarded: there are never more logits than one block's. Backward then only scales the result. Where no
gradient is needed our kernel makes the denominators without storing the scores, in less than half the time; and the
likeliest word is found from products of int8, six times as fast, with only the few candidates multiplied exactly.

Shapes: N words to predict, D units, V words in the vocabulary.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from llvmlite.binding import get_host_cpu_features
from scipy.linalg.blas import sgemm
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from foreword.arrays import Array, Floats, Longs
from foreword.native.parallel import in_threads
from foreword.nn.fused import flat, packed
from foreword.nn.kernels_recurrent import BLOCK
from foreword.nn.kernels_softmax import WORDS, best_words, log_sums, to_gradient
from foreword.nn.softmax_gpu import can_fuse, loss_and_gradients, losses_at

ROWS = 1024
"""Words in a block: enough to keep a matrix product busy, 40 MB of float32 logits at a vocabulary of 10,000."""

ROWS_ON_CPU, LOGITS_ON_CPU = 128, 1 << 22
"""On the CPU a block should fit the last cache: 2²² logits, but never fewer than 128 words. Twice as many words would
save a twentieth of the time, and double the workspace of a step at large vocabularies.
"""

LOGITS_ON_GPU = 1 << 26
"""Logits of a block on a GPU in half precision: fewer blocks pass over the weight's gradient less often."""

LOGITS_AT_ONCE = 1 << 22
"""Logits that are stored to score words where our kernel does not apply: 400 words at a vocabulary of 10,000."""

SCORES_PER_THREAD = 1 << 21
"""Scores that are worth a thread of their own."""

INT8_LIMIT = 127


# The loss


def linear_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    *,
    rows: int | None = None,
    scale: float = 1.0,
    weight_gradient: Tensor | None = None,
) -> Tensor:
    """Return the mean loss times ``scale``, in float32; hidden (N, D), weight (V, D), bias (V,), targets (N,).

    rows: words in a block. scale: of the loss and so of every gradient; gradients in float16 vanish without one.
    weight_gradient (V, D): buffer that the weight's gradient overwrites, instead of being returned to autograd, which
    saves one that large. Only where ``takes_gradient_buffer`` says so.
    """
    on_cpu = hidden.device.type == "cpu"
    rows = rows or (max(ROWS_ON_CPU, LOGITS_ON_CPU // len(weight)) if on_cpu else _rows_on_gpu(hidden, weight))
    rows = -(-len(targets) // -(-len(targets) // rows)) if len(targets) else rows  # blocks of about one size
    parts = [hidden, weight, bias]
    if len(targets) and takes_gradient_buffer(*parts):
        if int(targets.min()) < 0 or int(targets.max()) >= len(weight):
            raise IndexError(f"a target lies outside of 0 to {len(weight) - 1}")
        return cast(Tensor, _OnCPU.apply(*parts, targets, rows, scale, weight_gradient))  # type: ignore[no-untyped-call]
    if weight_gradient is not None:
        raise ValueError("weight_gradient is for contiguous float32 on a CPU, and at least one word")
    return cast(Tensor, _LinearCrossEntropy.apply(*parts, targets, rows, scale))  # type: ignore[no-untyped-call]


def _rows_on_gpu(hidden: Tensor, weight: Tensor) -> int:
    """Return the rows of a block: all of an update's where their logits in half precision take at most 128 MB."""
    return max(ROWS, LOGITS_ON_GPU // len(weight)) if can_fuse(hidden) else ROWS


def takes_gradient_buffer(hidden: Tensor, weight: Tensor, bias: Tensor) -> bool:
    """Return whether our kernels apply: contiguous float32 on the CPU."""
    return all(
        part.device.type == "cpu" and part.dtype == torch.float32 and part.is_contiguous()
        for part in (hidden, weight, bias)
    )


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, rows: int, scale: float
    ) -> Tensor:
        """Return the loss; the gradients are computed at once, while the logits are there."""
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
        """Return the stored gradients, scaled."""
        (d_loss,) = grads
        d_hidden, d_weight, d_bias = ctx.saved_tensors
        one = d_loss.to(d_hidden.dtype)
        return d_hidden * one, d_weight * one, d_bias * one, None, None, None


class _OnCPU(torch.autograd.Function):
    """The same with a kernel between the products, and these by SciPy's BLAS: twice as fast as torch's at the shape of
    a vocabulary, and it can add to its output. BLAS is column-major, so every matrix is passed transposed.
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
        weight_gradient: Tensor | None,
    ) -> Tensor:
        """Return the loss; the gradients are computed at once, while the logits are there."""
        words, factor = len(weight), scale / len(targets)
        h, w, b = (part.detach().numpy() for part in (hidden, weight, bias))
        wanted = targets.numpy().astype(np.int64, copy=False)
        d_h, d_b = np.empty_like(h), np.zeros_like(b)
        d_w = np.empty_like(w) if weight_gradient is None else weight_gradient.detach().numpy()
        if d_w.dtype != w.dtype or d_w.shape != w.shape or not d_w.flags.c_contiguous:
            raise ValueError(f"weight_gradient is {d_w.dtype} {d_w.shape}: expected contiguous {w.dtype} {w.shape}")
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
        ctx.d_weight, ctx.returned = torch.from_numpy(d_w), weight_gradient is None
        return torch.tensor(loss * factor)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        """Return the stored gradients, scaled."""
        (d_loss,) = grads
        d_hidden, d_bias = ctx.saved_tensors
        d_weight, one = ctx.d_weight, float(d_loss)
        ctx.d_weight = None
        if one != 1.0:  # spare a pass over the gradient of the whole vocabulary that would change nothing
            d_hidden, d_weight, d_bias = d_hidden * one, d_weight.mul_(one), d_bias * one
        return d_hidden, d_weight if ctx.returned else None, d_bias, None, None, None, None


# Log-probabilities of given words


def linear_word_logs(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Return log-probabilities of given words (N,), in float32; arguments as of ``linear_cross_entropy``."""
    parts = (hidden, weight, bias)
    learning = torch.is_grad_enabled() and any(part.requires_grad for part in parts)
    usual = all(part.dtype == torch.float32 and part.device.type == "cpu" for part in parts)
    if learning or not usual or not len(targets):
        return _word_logs_in_blocks(*parts, targets)
    wanted = (hidden * weight[targets]).sum(1) + bias[targets]
    # Rounding of the two sums may put a probability near one above it.
    return (wanted - _log_sums(*parts)).clamp_(max=0)


def tempered_losses(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, temperatures: Tensor) -> Tensor:
    """Return float32 (K, N): −log softmax((h W' + b) / τ) of each target, for each of K temperatures."""
    blocks = []
    for start in range(0, len(targets), ROWS):
        logits = torch.addmm(bias, hidden[start : start + ROWS], weight.t())
        wanted = targets[start : start + ROWS]
        if can_fuse(hidden):
            blocks.append(losses_at(logits, wanted, temperatures))
        else:
            blocks.append(
                torch.stack([cross_entropy(logits.float() / t, wanted, reduction="none") for t in temperatures])
            )
    return torch.cat(blocks, 1)


def _word_logs_in_blocks(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Return the same by torch, some rows of scores at a time: on any device, with gradients."""
    rows = max(1, LOGITS_AT_ONCE // len(bias))
    blocks = zip(torch.split(hidden, rows), torch.split(targets, rows), strict=True)
    return torch.cat([-cross_entropy(linear(part, weight, bias), aims, reduction="none") for part, aims in blocks])


def _log_sums(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return log Σ_v exp(h · w_v + b_v) for each state, (N,)."""
    (states, units), words = hidden.shape, len(bias)
    blocks = -(-states // BLOCK)
    tops, sums = np.empty((2, blocks * BLOCK), np.float32)
    given = flat(weight), flat(bias), packed(hidden.t())

    def work(first: int, last: int) -> None:
        scores = np.empty(WORDS * BLOCK, np.float32)
        log_sums(*given, first, last, states, units, words, scores, tops, sums)

    in_threads(work, blocks, min(torch.get_num_threads(), blocks, states * words // SCORES_PER_THREAD))
    return torch.from_numpy(tops[:states] + np.log(sums[:states]))


# The likeliest word


class Likeliest:
    """The likeliest word of each text, argmax_v (x · w_v + b_v), on a CPU: most of the work of a greedy decoder.

    Where the processor multiplies bytes (VNNI) the products are of int8 first, and only the few words that may be the
    best by the bounds of ``kernels_softmax.py`` are multiplied in float32: the same word, but for a tie to the last
    digit. table (V, D), bias (V,): float32. rounded: False for float32 products, None for the faster of the two.
    """

    def __init__(self, table: Tensor, bias: Tensor, *, rounded: bool | None = None) -> None:
        self._table, self._bias = table.contiguous(), bias.contiguous()
        self.rounded = multiplies_bytes() if rounded is None else rounded
        if self.rounded:
            self._scales, self._small = _rounded(self._table)
            self._sums = self._table.abs().sum(1)
            self._small = self._small.t()

    def __call__(self, x: Tensor) -> Longs:
        """Return the words (n,) for x (n, D)."""
        if not self.rounded or len(x) == 0:
            whole: Floats = torch.addmm(self._bias, x, self._table.t()).numpy()
            return np.asarray(whole.argmax(1), np.int64)
        scales, small = _rounded(x)
        products = torch._int_mm(small, self._small)
        best = np.empty(len(x), np.int64)
        sums = small.abs().sum(1, dtype=torch.float32) * scales
        words, units = self._table.shape
        best_words(
            _flat(products), _flat(self._scales), _flat(self._sums), _flat(self._bias), _flat(self._table), _flat(x),
            _flat(scales), _flat(sums), len(x), words, units, best,
        )  # fmt: skip
        return best


def multiplies_bytes() -> bool:
    """Return whether the processor multiplies int8 fast and this torch knows how.

    ``_int_mm`` is torch's only product of int8, and not a public name: without it the float32 products are used.
    """
    features = get_host_cpu_features()
    vnni = features.get("avx512vnni", False) or features.get("avxvnni", False)
    fused = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(vnni and fused) and hasattr(torch, "_int_mm")


def _rounded(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return scales (n,) and int8 (n, D) whose products are about x."""
    scales = x.abs().amax(1) / INT8_LIMIT
    by = torch.where(scales > 0, 1 / scales, 0.0)
    return scales, (x * by[:, None]).round_().to(torch.int8)


def _flat(part: Tensor) -> Array:
    """Return the numbers of a tensor of any type as a flat array."""
    return part.contiguous().view(-1).numpy()
