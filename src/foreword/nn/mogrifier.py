"""The Mogrifier: an input and the previous state gate each other, in turn, before the cell sees either.

    x ← 2 σ(Q₁ h) · x,    h ← 2 σ(R₂ x) · h,    x ← 2 σ(Q₃ h) · x,    …

An ordinary cell reads a word the same way in every context; here the context modulates the word, and the word what is
remembered of the context. Gates of σ(0) = ½ change nothing, so the network begins as an ordinary one. Every step waits
for the state before it, so no product with the inputs can be computed ahead of time, and the kernels that run a layer
through all its steps at once cannot be used: it is several times as slow as ``layers.lstm``.

G. Melis, T. Kočiský and P. Blunsom, "Mogrifier LSTM" (2020). Here the matrices are full, where theirs are of low rank.
Shapes: T steps, B texts, I inputs, H units.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import linear

Weights = Sequence[Tensor]


def mogrify(x: Tensor, h: Tensor, rounds: Weights) -> tuple[Tensor, Tensor]:
    """Gate an input (B, I) and the state before it (B, H); rounds: [Q (I, H), R (H, I), Q, …], any number of them."""
    for number, weight in enumerate(rounds):
        if number % 2 == 0:
            x = 2 * torch.sigmoid(linear(h, weight)) * x
        else:
            h = 2 * torch.sigmoid(linear(x, weight)) * h
    return x, h


def mogrifier_lstm(
    x: Tensor, h: Tensor, c: Tensor, weights: Weights, rounds: Weights
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Run a Mogrifier LSTM: every state (T, B, H), and h and c after the last step, as ``layers.lstm``."""
    outputs = []
    for step in x:
        gated, before = mogrify(step, h, rounds)
        h, c = torch.lstm_cell(gated, (before, c), *weights)
        outputs.append(h)
    return torch.stack(outputs), h, c


def round_shapes(inputs: int, units: int, rounds: int) -> list[tuple[int, int]]:
    """Return the shape of each round's matrix."""
    return [(inputs, units) if number % 2 == 0 else (units, inputs) for number in range(rounds)]
