"""Loss of connectionist temporal classification: training on labels whose positions in the input are not known.

    loss = −log p(labels) = −log Σ over all alignments Π_t p_t(symbol_t)

An alignment has one symbol per frame, a label or the blank; with repetitions, then blanks, removed it reads as the
labels. The gradient of the loss is minus the probability of symbol k at frame t given the labels. Computed on the CPU,
in double precision.

A. Graves, S. Fernández, F. Gomez and J. Schmidhuber, "Connectionist temporal classification" (2006). ``speech/``
finds labels. Shapes: T frames, B texts, V symbols with the blank, S labels of the longest text.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from foreword.arrays import Array
from foreword.errors import InputError, SettingError
from foreword.nn.kernels_paths import align


def ctc_loss(logs: Tensor, labels: Tensor, frames: Tensor, sizes: Tensor, *, blank: int = 0) -> Tensor:
    """Return −log p(labels) of each text, (B,); infinite, without gradient, where there are too few frames.

    logs: (T, B, V), log-probabilities; labels: (B, S), integers; frames and sizes: (B,), how many of the T frames
    and of the S labels each text has.
    """
    _check(logs, labels, frames, sizes, blank)
    return cast(Tensor, _Loss.apply(logs, labels, frames, sizes, blank))  # type: ignore[no-untyped-call]


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logs: Tensor, labels: Tensor, frames: Tensor, sizes: Tensor, blank: int) -> Tensor:
        """Compute the losses, and their gradient if it will be needed."""
        scores = _array(logs, np.float64)
        marks, times, counts = (_array(part, np.int64) for part in (labels, frames, sizes))
        symbols = 2 * labels.shape[1] + 1
        found = np.empty(logs.shape[1])
        shares = np.zeros(scores.shape if logs.requires_grad else (0, 0, 0))
        workspace = np.empty((max(len(scores), 1), symbols)), np.empty(symbols), np.empty(symbols)
        align(scores, marks, times, counts, blank, *workspace, found, shares)
        ctx.shares = torch.from_numpy(shares).to(logs)
        return -torch.from_numpy(found).to(logs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None, None, None]:
        """Return the gradient with respect to the log-probabilities."""
        # Zero where there is no alignment, even if the infinite loss has an infinite gradient.
        weighted = ctx.shares * -grads[0][:, None]
        return weighted.where(ctx.shares > 0, 0), None, None, None, None


def _check(logs: Tensor, labels: Tensor, frames: Tensor, sizes: Tensor, blank: int) -> None:
    if logs.dim() != 3:
        raise InputError(f"log-probabilities have the shape {tuple(logs.shape)}, not (frames, texts, symbols)")
    times, texts, symbols = logs.shape
    if not 0 <= blank < symbols:
        raise SettingError(f"blank={blank} must be one of the symbols 0 to {symbols - 1}")
    if labels.dim() != 2 or len(labels) != texts or labels.is_floating_point():
        raise InputError(f"labels have the shape {tuple(labels.shape)}: expected a row of numbers for {texts} texts")
    for name, counts, most in (("frames", frames, times), ("sizes", sizes, labels.shape[1])):
        if tuple(counts.shape) != (texts,) or counts.is_floating_point():
            raise InputError(f"{name} have the shape {tuple(counts.shape)}: expected a whole number for {texts} texts")
        if texts and not 0 <= int(counts.min()) <= int(counts.max()) <= most:
            raise InputError(f"{name} are {int(counts.min())} to {int(counts.max())}, not between 0 and {most}")
    real = torch.arange(labels.shape[1], device=labels.device) < sizes.to(labels.device)[:, None]
    wrong = real & ((labels < 0) | (labels >= symbols) | (labels == blank))
    if wrong.any():
        text, at = wrong.nonzero()[0].tolist()
        label = int(labels[text, at])
        raise InputError(f"text {text}, label {at} is {label}: expected a symbol of 0 to {symbols - 1}, not the blank")
    if torch.isnan(logs).any():
        raise InputError("the log-probabilities hold NaN")


def _array(tensor: Tensor, dtype: Any) -> Array:
    return np.ascontiguousarray(tensor.detach().cpu().to(torch.from_numpy(np.empty(0, dtype)).dtype).numpy())
