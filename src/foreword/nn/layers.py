"""Recurrent layers in PyTorch: functions of tensors, one layer through time, time first.

T steps, B texts side by side, I inputs, H hidden units. Inputs x (T, B, I), states h and c (B, H), outputs (T, B, H)
and the state after the last step. Weights come as torch orders them, [W_x (gates · H, I), W_h (gates · H, H),
b_x (gates · H,), b_h (gates · H,)], so that a weight may be anything that was computed: masked, tied, converted.

``cells.py`` has the same mathematics a step at a time in NumPy, to be read.

L. Feng et al., "Were RNNs all we needed?" (2024) for the minimal GRU; G. Blelloch, "Prefix sums and their applications"
(1990) for the scan.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import linear

from foreword.errors import SettingError
from foreword.nn.fused import fused_gru, fused_rnn
from foreword.nn.fused_lstm import fused_lstm
from foreword.nn.padding import is_worth_padding, padded
from foreword.nn.reading import only_read, read_words

Weights = Sequence[Tensor]
Layer = Callable[[Tensor], Tensor]


LARGE = 600
"""Units from which on an LSTM that is trained on a CPU runs by our kernels: as fast as oneDNN, in less than half the
memory. Below it is slower by up to a tenth, and there is little to save.
"""


def rnn(x: Tensor, h: Tensor, weights: Weights, activation: str = "tanh") -> tuple[Tensor, Tensor]:
    """Elman's network: ``h = f(W_x x + b_x + W_h h + b_h)``, f tanh or ReLU."""
    if activation not in ("tanh", "relu"):
        raise SettingError(f"activation={activation!r}: expected 'tanh' or 'relu'")
    if _ours(x, h, weights):
        out = fused_rnn(x, h, *weights, relu=activation == "relu")
        return out, out[-1]
    layer = torch._VF.rnn_tanh if activation == "tanh" else torch._VF.rnn_relu
    return _by_torch(layer, x, h, weights)


def gru(x: Tensor, h: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    """r, z = σ(…), n = tanh(W_x x + b_x + r·(W_h h + b_h)), h = (1 − z)·n + z·h; the weights are in this order.

    As in torch z keeps the old memory, and r works after the product.
    """
    if _ours(x, h, weights):
        out = fused_gru(x, h, *weights)
        return out, out[-1]
    return _by_torch(torch._VF.gru, x, h, weights)


def lstm(
    x: Tensor, h: Tensor, c: Tensor, weights: Weights, lengths: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """i, f, o = σ(…), g = tanh(…), c = f·c + i·g, h = o·tanh(c); the weights are in the order i, f, g, o.

    On a CPU by our kernels where it only reads, and for large layers in training; else by torch's own.
    lengths (B,): of the texts, the longest first, where what comes behind their ends does not matter: no time is spent
    on it where our kernels read.
    """
    if x.dim() == 3 and only_read(x, h, c, weights):
        places = torch.arange(x.shape[0] * x.shape[1]).view(x.shape[:2])
        return read_words(x.flatten(0, 1), places, h, c, weights, lengths)
    if h.shape[-1] >= LARGE and torch.is_grad_enabled() and _trained(weights) and _ours(x, h, weights):
        out, last_c = fused_lstm(x, h, c, *weights)
        return out, out[-1], last_c
    if is_worth_padding(x, h):
        texts, units = h.shape
        wide = lstm(*padded(x, h, c, weights))
        out, last_h, last_c = wide[0][:, :texts, :units], wide[1][:texts, :units], wide[2][:texts, :units]
        return out, last_h, last_c
    with _weights_in_pieces():
        out, last_h, last_c = torch._VF.lstm(
            x, (h[None], c[None]), list(weights), True, 1, 0.0, _trained(weights), False, False
        )
    return out, last_h[0], last_c[0]


def min_gru(x: Tensor, h: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    """A GRU whose gate and candidate see only the input, so that all steps can be computed at once::

        z = σ(W_z x + b_z)    n = W_n x + b_n    h = (1 − z)·h + z·n

    weights: [W (2H, I), b (2H,)], those of z before those of n. Here z replaces, as in the paper.
    """
    w_x, bias = weights
    z, n = linear(x, w_x, bias).chunk(2, -1)
    # 1 − σ(a) = σ(−a), which loses nothing where σ(a) is near 1.
    out = scan(torch.sigmoid(-z), torch.sigmoid(z) * n, h)
    return out, out[-1]


def both_ways(ahead: Layer, behind: Layer, x: Tensor) -> Tensor:
    """A bidirectional layer (T, B, 2H): each step beside what a second layer knows from reading the text backwards.

    ahead, behind: x (T, B, I) to outputs (T, B, H), each with weights and a state of its own.
    """
    return torch.cat((ahead(x), behind(x.flip(0)).flip(0)), -1)


def reversing(lengths: Tensor, longest: int) -> Tensor:
    """(T, B): which place comes t-th when each text is read from its own end; behind it every place is its own."""
    places = torch.arange(longest, device=lengths.device)[:, None]
    return torch.where(places < lengths, lengths - 1 - places, places)


def turned(x: Tensor, back: Tensor) -> Tensor:
    """(T, B, I) with every text the other way round; twice is as before."""
    return x.gather(0, back[:, :, None].expand_as(x))


def scan(keep: Tensor, add: Tensor, h: Tensor) -> Tensor:
    """``h_t = keep_t · h_(t−1) + add_t`` for all t, in about 2 log₂ T operations; keep and add (T, …), h (…).

    Two steps are one step: ``keep = k₂ k₁``, ``add = k₂ a₁ + a₂``. So neighbours are joined, the half as long sequence
    is solved the same way, and the steps between are filled in. Nothing is divided: where the keeps are at most 1, no
    number grows. The gradient is a scan too, from the end.
    """
    return cast(Tensor, _Scan.apply(keep, add, h))  # type: ignore[no-untyped-call]


def plain_scan(keep: Tensor, add: Tensor, h: Tensor) -> Tensor:
    """The same one step after the other; what ``scan`` must equal."""
    out = []
    for k, a in zip(keep, add, strict=True):
        h = k * h + a
        out.append(h)
    return torch.stack(out)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, keep: Tensor, add: Tensor, h: Tensor) -> Tensor:
        first = add[:1] + keep[:1] * h
        out = _scanned(keep, torch.cat((first, add[1:])))
        ctx.save_for_backward(keep, h, out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, Tensor]:
        (d_out,) = grads
        keep, h, out = ctx.saved_tensors
        # What reaches step t directly, and through step t + 1: d_t = d_out_t + keep_(t+1) · d_(t+1).
        later = torch.cat((keep[1:], torch.zeros_like(keep[:1])))
        d_add = _scanned(later.flip(0), d_out.flip(0)).flip(0)
        before = torch.cat((h[None], out[:-1]))
        return d_add * before, d_add, d_add[0] * keep[0]


def _scanned(keep: Tensor, add: Tensor) -> Tensor:
    """The scan from zero; the first of ``keep`` is not used."""
    if len(add) == 1:
        return add
    pairs = len(add) // 2
    evens, odds = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    joined = _scanned(keep[odds] * keep[evens], torch.addcmul(add[odds], keep[odds], add[evens]))
    out = torch.empty_like(add)
    out[0] = add[0]
    out[1 : 2 * pairs : 2] = joined
    out[2::2] = torch.addcmul(add[2::2], keep[2::2], joined[: (len(add) - 1) // 2])
    return out


def _ours(x: Tensor, h: Tensor, weights: Weights) -> bool:
    """Whether our kernels take it: float32 on the CPU, and at least one step of one text."""
    usual = all(part.dtype == torch.float32 and part.device.type == "cpu" for part in (x, h, *weights))
    return usual and x.dim() == 3 and x.numel() > 0 and h.shape == (x.shape[1], weights[1].shape[1])


def _by_torch(layer: Any, x: Tensor, h: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    with _weights_in_pieces():
        out, last = layer(x, h[None], list(weights), True, 1, 0.0, _trained(weights), False, False)
    return out, last[0]


def _trained(weights: Weights) -> bool:
    return any(weight.requires_grad for weight in weights)


class _weights_in_pieces(warnings.catch_warnings):  # noqa: N801
    """cuDNN wants the four weights in one piece and says so; the copy takes a hundredth of the layer's time."""

    def __enter__(self) -> Any:
        entered = super().__enter__()
        warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk")
        return entered
