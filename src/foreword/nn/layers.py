"""Recurrent layers in PyTorch: functions of tensors, one layer through time, time first.

T steps, a batch of B texts, I inputs, H hidden units. Inputs x (T, B, I), states h and c (B, H), outputs (T, B, H)
and the state after the last step. Weights come as torch orders them, [W_x (gates · H, I), W_h (gates · H, H),
b_x (gates · H,), b_h (gates · H,)], so that a weight may be anything that was computed: masked, tied, converted.

``cells.py`` has the same mathematics one step at a time in NumPy, to be read; ``fused.py`` runs our kernels on a CPU.

cuDNN has sizes that it likes. In half precision it keeps the weights of a layer on the chip for the whole sequence, if
its inputs and units are multiples of 128 and at most 1024, and its texts a multiple of 8; other sizes take several
times as long. Layers too large for that still want multiples of 64, for the matrix units. So a layer of 650 units is
run as one of 768, and one of 1150 as 1152: the added units have no weights, are zero at every step, and get no
gradient.

The Mogrifier, an LSTM whose input and previous state gate each other, in turn, before the cell sees either,

    x ← 2 σ(Q₁ h) · x,    h ← 2 σ(R₂ x) · h,    x ← 2 σ(Q₃ h) · x,    …

lets the context modulate the word, and the word what is remembered of the context. Gates of σ(0) = ½ change nothing, so
the network begins as an ordinary one. Every step waits for the state before it, so no product with the inputs can be
computed ahead of time, and cuDNN's kernels, which run a layer through all its steps at once, cannot be used. Where
Triton runs, ``nn/mogrifier_gpu.py`` has kernels of its own; here the loop is written out.

L. Feng et al., "Were RNNs all we needed?" (2024) for the minimal GRU; G. Blelloch, "Prefix sums and their applications"
(1990) for the scan; G. Melis, T. Kočiský and P. Blunsom, "Mogrifier LSTM" (2020).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from foreword.errors import SettingError
from foreword.nn.fused import fused_gru, fused_lstm, fused_rnn, only_read, read_words
from foreword.nn.persistent_gpu import persistent_lstm, runs_persistent

Weights = Sequence[Tensor]
Layer = Callable[[Tensor], Tensor]

LARGE = 600
"""Units from which on an LSTM that is trained on a CPU runs by our kernels: as fast as oneDNN, in less than half the
memory. Below it is slower by up to a tenth, and there is little to save.
"""

SMALL_MULTIPLE, LARGE_MULTIPLE, TEXTS_MULTIPLE, LARGEST_ON_CHIP = 128, 64, 8, 1024
"""Sizes that cuDNN runs fast."""


def rnn(x: Tensor, h: Tensor, weights: Weights, activation: str = "tanh") -> tuple[Tensor, Tensor]:
    """Run Elman's network: ``h = f(W_x x + b_x + W_h h + b_h)``, f tanh or ReLU."""
    if activation not in ("tanh", "relu"):
        raise SettingError(f"activation={activation!r}: expected 'tanh' or 'relu'")
    if _fused_applies(x, h, weights):
        out = fused_rnn(x, h, *weights, relu=activation == "relu")
        return out, out[-1]
    layer = torch._VF.rnn_tanh if activation == "tanh" else torch._VF.rnn_relu
    return _by_torch(layer, x, h, weights)


def gru(x: Tensor, h: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    """Run a GRU: r, z = σ(…), n = tanh(W_x x + b_x + r·(W_h h + b_h)), h = (1 − z)·n + z·h; weights in this order.

    As in torch z keeps the old memory, and r is applied after the product.
    """
    if _fused_applies(x, h, weights):
        out = fused_gru(x, h, *weights)
        return out, out[-1]
    return _by_torch(torch._VF.gru, x, h, weights)


def torch_runs_gru(x: Tensor) -> bool:
    """Return whether ``gru`` is the fast path: on a CPU, and on a GPU unless cuDNN is switched off."""
    return not x.is_cuda or torch.backends.cudnn.enabled


def lstm(
    x: Tensor, h: Tensor, c: Tensor, weights: Weights, lengths: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Run an LSTM: i, f, o = σ(…), g = tanh(…), c = f·c + i·g, h = o·tanh(c); weights in the order i, f, g, o.

    On a CPU by our kernels without gradients, and for large layers in training; on a Hopper GPU by ours where
    ``nn/persistent_gpu.py`` has them; else by torch's own.
    lengths (B,): of the texts, the longest first, where what comes behind their ends does not matter: our kernels spend
    no time on it.
    c may be float32 where x has half precision, and is returned as float32; torch's own kernels round it.
    """
    if x.dim() == 3 and only_read(x, h, c, weights):
        rows = torch.arange(x.shape[0] * x.shape[1]).view(x.shape[:2])
        return read_words(x.flatten(0, 1), rows, h, c, weights, lengths)
    if h.shape[-1] >= LARGE and torch.is_grad_enabled() and _trained(weights) and _fused_applies(x, h, weights):
        out, last_c = fused_lstm(x, h, c, *weights)
        return out, out[-1], last_c
    if runs_persistent(x, h.shape[-1]):
        return persistent_lstm(x, h, c, weights)
    if is_worth_padding(x, h):
        texts, units = h.shape
        wide = lstm(*padded(x, h, c, weights))
        out, last_h, last_c = wide[0][:, :texts, :units], wide[1][:texts, :units], wide[2][:texts, :units]
        return out, last_h, last_c
    with _weights_in_pieces():
        out, last_h, last_c = torch._VF.lstm(
            x, (h[None], c[None].to(x.dtype)), list(weights), True, 1, 0.0, _trained(weights), False, False
        )
    return out, last_h[0], last_c[0].to(c.dtype)


def min_gru(x: Tensor, h: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    """Run a minimal GRU, whose gate and candidate see only the input, so that all steps can be computed at once::

        z = σ(W_z x + b_z)    n = W_n x + b_n    h = (1 − z)·h + z·n

    weights: [W (2H, I), b (2H,)], those of z before those of n. Here z replaces, as in the paper.
    """
    w_x, bias = weights
    z, n = linear(x, w_x, bias).chunk(2, -1)
    # 1 − σ(a) = σ(−a), which loses nothing where σ(a) is near 1.
    out = scan(torch.sigmoid(-z), torch.sigmoid(z) * n, h)
    return out, out[-1]


Round = Tensor | tuple[Tensor, Tensor]
"""The matrix of a round: W, or two thin ones whose product it is, W = left · right."""


def mogrify(x: Tensor, h: Tensor, rounds: Sequence[Round], biases: Weights = ()) -> tuple[Tensor, Tensor]:
    """Gate an input (B, I) and the state before it (B, H); rounds: [Q (I, H), R (H, I), Q, …], any number of them.

    biases: [(I,), (H,), …], or none.
    """
    for number, weight in enumerate(rounds):
        bias = biases[number] if biases else None
        if number % 2 == 0:
            x = 2 * torch.sigmoid(_product(h, weight, bias)) * x
        else:
            h = 2 * torch.sigmoid(_product(x, weight, bias)) * h
    return x, h


def _product(x: Tensor, weight: Round, bias: Tensor | None) -> Tensor:
    if isinstance(weight, tuple):
        left, right = weight
        return linear(linear(x, right), left, bias)
    return linear(x, weight, bias)


def mogrifier_lstm(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weights: Weights,
    rounds: Sequence[Round],
    biases: Weights = (),
    *,
    capped: bool = False,
    state_mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run a Mogrifier LSTM: every state (T, B, H), and h and c after the last step, as ``layers.lstm``.

    capped: the input gate is at most 1 − f, so that |c| ≤ 1. state_mask (B, H): multiplies h on its way to the next
    step. c may be float32 where x has half precision, as in ``layers.lstm``. ``nn/mogrifier_gpu.py`` has the same in
    fused kernels. Layers without rounds run by ``nn/persistent_gpu.py`` where GPU and sizes allow it.
    """
    if not rounds and runs_persistent(x, h.shape[-1]):
        return persistent_lstm(x, h, c, weights, state_mask, capped=capped)
    outputs, kind, c = [], c.dtype, c.to(x.dtype)
    for step in x:
        gated, before = mogrify(step, h if state_mask is None else h * state_mask, rounds, biases)
        h, c = capped_cell(gated, before, c, weights) if capped else torch.lstm_cell(gated, (before, c), *weights)
        outputs.append(h)
    return torch.stack(outputs), h, c.to(kind)


def capped_cell(x: Tensor, h: Tensor, c: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    """Run one step of an LSTM with ``c = f·c + min(1 − f, i)·g``: h and c."""
    w_x, w_h, b_x, b_h = weights
    i, f, g, o = (linear(x, w_x, b_x) + linear(h, w_h, b_h)).chunk(4, 1)
    f = torch.sigmoid(f)
    c = f * c + torch.minimum(1 - f, torch.sigmoid(i)) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def round_shapes(inputs: int, units: int, rounds: int) -> list[tuple[int, int]]:
    """Return the shape of each round's matrix."""
    return [(inputs, units) if number % 2 == 0 else (units, inputs) for number in range(rounds)]


def both_ways(ahead: Layer, behind: Layer, x: Tensor) -> Tensor:
    """Run a bidirectional layer (T, B, 2H): each step's output next to that of a second layer that reads backwards.

    ahead, behind: x (T, B, I) to outputs (T, B, H), each with weights and a state of its own.
    """
    return torch.cat((ahead(x), behind(x.flip(0)).flip(0)), -1)


def reversing(lengths: Tensor, longest: int) -> Tensor:
    """Return (T, B): the position of the t-th word when each text is read from its own end; padding stays in place."""
    steps = torch.arange(longest, device=lengths.device)[:, None]
    return torch.where(steps < lengths, lengths - 1 - steps, steps)


def turned(x: Tensor, back: Tensor) -> Tensor:
    """Reverse every text of (T, B, I) by ``reversing``; twice is the identity."""
    return x.gather(0, back[:, :, None].expand_as(x))


def scan(keep: Tensor, add: Tensor, h: Tensor) -> Tensor:
    """Return ``h_t = keep_t · h_(t−1) + add_t`` for all t, in about 2 log₂ T operations; keep and add (T, …), h (…).

    Two steps are one step: ``keep = k₂ k₁``, ``add = k₂ a₁ + a₂``. So neighbours are joined, the sequence of half the
    length is solved the same way, and the steps between are filled in. Nothing is divided: where the keeps are at most
    1, no number grows. The gradient is a scan too, from the end.
    """
    return cast(Tensor, _Scan.apply(keep, add, h))  # type: ignore[no-untyped-call]


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, keep: Tensor, add: Tensor, h: Tensor) -> Tensor:
        """Return every state."""
        first = add[:1] + keep[:1] * h
        out = _scanned(keep, torch.cat((first, add[1:])))
        ctx.save_for_backward(keep, h, out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients: a scan from the end."""
        (d_out,) = grads
        keep, h, out = ctx.saved_tensors
        # What reaches step t directly, and through step t + 1: d_t = d_out_t + keep_(t+1) · d_(t+1).
        later = torch.cat((keep[1:], torch.zeros_like(keep[:1])))
        d_add = _scanned(later.flip(0), d_out.flip(0)).flip(0)
        before = torch.cat((h[None], out[:-1]))
        return d_add * before, d_add, d_add[0] * keep[0]


def _scanned(keep: Tensor, add: Tensor) -> Tensor:
    """Scan from zero; the first of ``keep`` is not used."""
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


def _fused_applies(x: Tensor, h: Tensor, weights: Weights) -> bool:
    """Return whether our kernels apply: float32 on the CPU, and at least one step of one text."""
    usual = all(part.dtype == torch.float32 and part.device.type == "cpu" for part in (x, h, *weights))
    return usual and x.dim() == 3 and x.numel() > 0 and h.shape == (x.shape[1], weights[1].shape[1])


def _by_torch(layer: Any, x: Tensor, h: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    with _weights_in_pieces():
        out, last = layer(x, h[None], list(weights), True, 1, 0.0, _trained(weights), False, False)
    return out, last[0]


def _trained(weights: Weights) -> bool:
    return any(weight.requires_grad for weight in weights)


class _weights_in_pieces(warnings.catch_warnings):  # noqa: N801
    """Silence cuDNN's warning that the weights are not contiguous; the copy takes a hundredth of the layer's time."""

    def __enter__(self) -> Any:
        entered = super().__enter__()
        warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk")
        return entered


def is_worth_padding(x: Tensor, h: Tensor) -> bool:
    """Return whether cuDNN would run the layer faster with padded sizes."""
    if not (x.is_cuda and x.dtype == torch.float16):
        return False
    multiple = _multiple(x.shape[2], h.shape[1])
    return h.shape[1] % multiple > 0 or x.shape[2] % multiple > 0 or x.shape[1] % TEXTS_MULTIPLE > 0


def padded(x: Tensor, h: Tensor, c: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """Return the arguments of an LSTM, padded with texts, inputs and units of zero."""
    units, inputs, gates = h.shape[1], x.shape[2], 4
    multiple = _multiple(inputs, units)
    more, more_inputs, more_texts = -units % multiple, -inputs % multiple, -len(h) % TEXTS_MULTIPLE
    w_x, w_h, b_x, b_h = weights
    tables = [
        pad(weight.view(gates, units, -1), (0, columns, 0, more)).flatten(0, 1)
        for weight, columns in ((w_x, more_inputs), (w_h, more))
    ]
    biases = [pad(bias.view(gates, units), (0, more)).flatten() for bias in (b_x, b_h)]
    h, c = (pad(part, (0, more, 0, more_texts)) for part in (h, c))
    return pad(x, (0, more_inputs, 0, more_texts)), h, c, tables + biases


def _multiple(inputs: int, units: int) -> int:
    return SMALL_MULTIPLE if max(inputs, units) <= LARGEST_ON_CHIP else LARGE_MULTIPLE
