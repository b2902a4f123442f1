"""Gated cells in PyTorch, most of which neither cuDNN nor oneDNN has: one layer through time, step by step, to be read.

With ``a = W_x x + b_x + W_h h + b_h``, one part of it for each gate, σ of the gates and tanh of g and n:

    cifg        f, g, o         c = f·c + (1 − f)·g                                      h = o·tanh(c)
    peephole    i, f, g, o      i, f = σ(a + p·c),  c = f·c + i·g,  o = σ(a + p·c)       h = o·tanh(c)
    ln-lstm     i, f, g, o      a = N(W_x x) + N(W_h h) + b,  c = f·c + i·g              h = o·tanh(N(c))
    slstm       i, f, g, o      i = eᵃ,  c = f·c + i·g,  n = f·n + i                     h = o·c / n
    gru-before  r, z, n         n = tanh(W_x x + W_h (r·h) + b)                          h = (1 − z)·n + z·h
    gru         r, z, n         n = tanh(W_x x + b_x + r·(W_h h + b_h))                  h = (1 − z)·n + z·h

N subtracts the mean over the units of all gates, divides by the standard deviation, and multiplies by a gain per unit;
that of c has a bias too. An sLSTM keeps e⁻ᵐ c and e⁻ᵐ n with m the largest exponent so far, so that nothing overflows;
m cancels in c / n, and no gradient goes through it. A state with n = 0 has seen nothing, so that its largest exponent
is −∞ whatever its m: its first step keeps nothing, and sets n = 1. The GRU whose reset gate comes after the product is
cuDNN's, which runs it faster: ``layers.gru`` calls that, and our kernel runs where cuDNN is switched off.

``nn/gated_gpu.py`` has the same in Triton kernels. K. Greff et al., "LSTM: a search space odyssey" (2017); F. Gers and
J. Schmidhuber, "Recurrent nets that time and count" (2000); J. Ba, J. Kiros and G. Hinton, "Layer normalization"
(2016); M. Beck et al., "xLSTM: extended long short-term memory" (2024); K. Cho et al., "Learning phrase representations
using RNN encoder-decoder" (2014).

Shapes: T steps, B texts, I inputs, H units, G gates. x (T, B, I), states (B, H), weights [W_x (G·H, I), W_h (G·H, H),
b_x (G·H,), b_h (G·H,), extra (rows, H) where a cell has one].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear, logsigmoid, pad

States = tuple[Tensor, ...]
Step = Callable[[Tensor, States, Tensor, Tensor], States]

EPSILON = 1e-5
"""Added to a variance before its root is taken."""


@dataclass(frozen=True, slots=True)
class GatedCell:
    """One cell. states: how many it carries, h first. forget: which gate forgets, None where none does.

    extra: the name and the rows of its further weight. step: from what comes of x, states, W_h and extra to states.
    """

    gates: int
    states: int
    forget: int | None
    step: Step
    extra: tuple[str, int] | None = None


def run_gated(cell: str, x: Tensor, states: States, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Run one layer: every h (T, B, H), then the states after the last step.

    States other than h may be float32 where x has half precision, and then remain so.
    """
    from_x, w_h, extra = from_inputs(cell, x, weights)
    outputs = []
    for step in from_x:
        h, *others = GATED[cell].step(step, states, w_h, extra)
        states = h.to(x.dtype), *others
        outputs.append(states[0])
    return torch.stack(outputs), *states


def from_inputs(cell: str, x: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return what all steps need of the inputs (T, B, G·H), W_h, and the cell's further weight, W_h if it has none."""
    w_x, w_h, *_ = weights
    bias, extra = bias_and_extra(cell, weights)
    products = linear(x, w_x)
    if cell == "ln-lstm":
        products = normalised(products) * weights[4][:4].flatten()
    return products + bias, w_h, w_h if extra is None else extra


def bias_and_extra(cell: str, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor | None]:
    """Return the bias of what comes of the inputs (G·H,), and the cell's further weight (rows, H) if it has one.

    That of a GRU that resets after the product is the candidate's part of b_h (1, H), which the reset gate multiplies.
    """
    _, w_h, b_x, b_h, *others = weights
    if cell == "gru":
        units = w_h.shape[1]
        return b_x + pad(b_h[: 2 * units], (0, units)), b_h[None, 2 * units :]
    return b_x + b_h, others[0] if others else None


def normalised(values: Tensor) -> Tensor:
    """Return values of mean 0 and variance 1 in every row."""
    return layer_norm(values, values.shape[-1:], eps=EPSILON)


def _cifg(from_x: Tensor, states: States, w_h: Tensor, _: Tensor) -> States:
    h, c = states
    f, g, o = (from_x + linear(h, w_h)).chunk(3, 1)
    f = torch.sigmoid(f)
    c = f * c + (1 - f) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def _peephole(from_x: Tensor, states: States, w_h: Tensor, seen: Tensor) -> States:
    h, c = states
    i, f, g, o = (from_x + linear(h, w_h)).chunk(4, 1)
    new = torch.sigmoid(f + seen[1] * c) * c + torch.sigmoid(i + seen[0] * c) * torch.tanh(g)
    return torch.sigmoid(o + seen[2] * new) * torch.tanh(new), new


def _ln_lstm(from_x: Tensor, states: States, w_h: Tensor, norm: Tensor) -> States:
    h, c = states
    i, f, g, o = (from_x + normalised(linear(h, w_h)) * norm[4:8].flatten()).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(normalised(c) * norm[8] + norm[9]), c


def _slstm(from_x: Tensor, states: States, w_h: Tensor, _: Tensor) -> States:
    h, c, n, m = states
    i, f, g, o = (from_x + linear(h, w_h)).chunk(4, 1)
    log_keep = (logsigmoid(f) + m.detach()).masked_fill(n == 0, -torch.inf)
    largest = torch.maximum(log_keep, i).detach()
    keep, write = torch.exp(log_keep - largest), torch.exp(i - largest)
    c, n = keep * c + write * torch.tanh(g), keep * n + write
    return torch.sigmoid(o) * c / n, c, n, largest


def _gru_before(from_x: Tensor, states: States, w_h: Tensor, _: Tensor) -> States:
    (h,) = states
    units = h.shape[1]
    r, z = torch.sigmoid(from_x[:, : 2 * units] + linear(h, w_h[: 2 * units])).chunk(2, 1)
    n = torch.tanh(from_x[:, 2 * units :] + linear(r * h, w_h[2 * units :]))
    return ((1 - z) * n + z * h,)


def _gru(from_x: Tensor, states: States, w_h: Tensor, bias: Tensor) -> States:
    (h,) = states
    units = h.shape[1]
    from_h = linear(h, w_h)
    r, z = torch.sigmoid(from_x[:, : 2 * units] + from_h[:, : 2 * units]).chunk(2, 1)
    n = torch.tanh(from_x[:, 2 * units :] + r * (from_h[:, 2 * units :] + bias))
    return ((1 - z) * n + z * h,)


GATED = {
    "cifg": GatedCell(3, 2, 0, _cifg),
    "peephole": GatedCell(4, 2, 1, _peephole, ("peephole", 3)),
    "ln-lstm": GatedCell(4, 2, 1, _ln_lstm, ("norm", 10)),
    "slstm": GatedCell(4, 4, 1, _slstm),
    "gru-before": GatedCell(3, 1, None, _gru_before),
    "gru": GatedCell(3, 1, None, _gru),
}
