"""Weights of recurrent layers converted to and from PyTorch's modules and Keras' layers.

Ours are named ``layer{l}.input`` (gates · H, I), ``layer{l}.recurrent`` (gates · H, H), and both again with ``_bias``;
``nn/layers.py`` has the equations. The same numbers elsewhere::

                 matrices                      gates, LSTM    gates, GRU                biases
    ours, torch  (gates · H, I), rows          i, f, g, o     r, z, n; z keeps          two, added
    Keras        (I, gates · H), columns       i, f, c, o     z, r, h; z keeps          LSTM one; GRU (2, 3H)

There are two GRUs. "gru" applies the reset gate after the product, r·(W_h h + b): PyTorch, cuDNN and Keras with
``reset_after=True``, its default. "gru-before" applies it before, W_h (r·h) + b: the paper, and Keras with
``reset_after=False``, whose bias is one (3H,). No order and no sign of weights makes one of the other, so "gru-before"
has no weights for PyTorch. In either, where z = 1 replaces the old state and does not keep it, ``flip_update_gate``
makes the same function of the other sense: σ(−a) = 1 − σ(a).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from foreword.arrays import Reals
from foreword.errors import InputError

Named = dict[str, Reals]

PARTS = ("input", "recurrent", "input_bias", "recurrent_bias")
"""The parts of a layer, in the order in which ``nn/layers.py`` takes them."""

_CELL = ("W_x", "W_h", "b", "b_h")
_TORCH = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")

_GATES = {"rnn": 1, "gru": 3, "gru-before": 3, "lstm": 4}
_KERAS_ORDER = {"rnn": (0,), "gru": (1, 0, 2), "gru-before": (1, 0, 2), "lstm": (0, 1, 2, 3)}
"""The index of our gate at each position in Keras; each order is its own inverse."""


def layer_count(weights: Mapping[str, Any]) -> int:
    """Count the recurrent layers among the weights."""
    count = 0
    while f"layer{count}.recurrent" in weights:
        count += 1
    return count


def flip_update_gate(weights: Mapping[str, Reals]) -> Named:
    """Return the weights of a GRU that is the same function with the other sense of z: those of z negated.

    weights: of ``GRUCell`` or of layers as above, reset before or after; further weights are returned as they are.
    """
    named = {name: np.asarray(part) for name, part in weights.items()}
    for name, part in named.items():
        if name in _CELL or name.partition(".")[2] in PARTS:
            if len(part) % 3:
                raise InputError(f"{name} has {len(part)} rows: expected the three gates of a GRU")
            units = len(part) // 3
            named[name] = np.concatenate((part[:units], -part[units : 2 * units], part[2 * units :]))
    return named


def to_torch(weights: Mapping[str, Reals], cell: str = "") -> Named:
    """Return the state dictionary of an nn.RNN, nn.GRU or nn.LSTM of as many layers; other weights are left out.

    cell: raises an InputError for one that PyTorch does not have.
    """
    if cell and (cell not in _GATES or cell == "gru-before"):
        raise InputError(
            f"PyTorch has no {cell}: expected rnn, gru or lstm; no weights of those make the same function"
        )
    if not layer_count(weights):
        raise InputError("there is no recurrent layer among the weights: expected 'layer0.recurrent'")
    return {
        f"{theirs}_l{layer}": np.asarray(weights[f"layer{layer}.{ours}"])
        for layer in range(layer_count(weights))
        for ours, theirs in zip(PARTS, _TORCH, strict=True)
    }


def from_torch(state: Mapping[str, Any]) -> Named:
    """Return our weights from a module's ``state_dict()``, arrays or tensors; one without biases gets zeros.

    A bidirectional or projected module is refused: it has weights that a layer of one direction does not.
    """
    found = {name: np.asarray(part) for name, part in state.items()}
    layers = sum(name.startswith("weight_hh_l") and name[11:].isdigit() for name in found)
    known = {f"{theirs}_l{layer}" for layer in range(layers) for theirs in _TORCH}
    if not layers or set(found) - known:
        odd = next(iter(sorted(set(found) - known)), "nothing")
        raise InputError(f"a module of one direction has weight_ih_l0, weight_hh_l0, …: found {odd}")
    named: Named = {}
    for layer in range(layers):
        for ours, theirs in zip(PARTS, _TORCH, strict=True):
            part = found.get(f"{theirs}_l{layer}")
            if part is None and not theirs.startswith("bias"):
                raise InputError(f"the module's {theirs}_l{layer} is missing")
            wide = len(found[f"weight_hh_l{layer}"])
            named[f"layer{layer}.{ours}"] = np.zeros(wide, np.float32) if part is None else part
    return named


def to_keras(weights: Mapping[str, Reals], cell: str, layer: int = 0) -> list[Reals]:
    """Return [kernel, recurrent_kernel, bias] for ``set_weights`` of SimpleRNN, GRU or LSTM.

    cell: "gru" for GRU(reset_after=True), "gru-before" for GRU(reset_after=False).
    """
    w_x, w_h, b_x, b_h = (np.asarray(weights[f"layer{layer}.{name}"]) for name in PARTS)
    w_x, w_h, b_x, b_h = (_reordered(part, cell) for part in (w_x, w_h, b_x, b_h))
    bias = np.stack((b_x, b_h)) if cell == "gru" else b_x + b_h
    return [w_x.T.copy(), w_h.T.copy(), bias]


def from_keras(parts: Sequence[Reals], cell: str, layer: int = 0) -> Named:
    """Return our weights from a Keras layer's ``get_weights()``; one made with use_bias=False gives two parts."""
    if cell not in _GATES or not 2 <= len(parts) <= 3:
        raise InputError(f"{len(parts)} arrays of a {cell!r}: expected a kernel, a recurrent kernel, perhaps a bias")
    kernel, recurrent, *rest = (np.asarray(part) for part in parts)
    wide = _GATES[cell] * len(recurrent)
    bias = rest[0] if rest else np.zeros((2, wide) if cell == "gru" else wide, kernel.dtype)
    expected = (2, wide) if cell == "gru" else (wide,)
    if kernel.shape[1:] != (wide,) or recurrent.shape[1:] != (wide,) or bias.shape != expected:
        shapes = f"kernels {kernel.shape} and {recurrent.shape}, bias {bias.shape}"
        also = "; one made with reset_after=False is a gru-before" if cell == "gru" else ""
        raise InputError(f"{shapes} of a {cell}: expected (I, {wide}), ({len(recurrent)}, {wide}) and {expected}{also}")
    two = bias if cell == "gru" else (bias, np.zeros_like(bias))
    ours = (_reordered(part, cell) for part in (kernel.T, recurrent.T, *two))
    return {f"layer{layer}.{name}": part for name, part in zip(PARTS, ours, strict=True)}


def _reordered(part: Reals, cell: str) -> Reals:
    """Reorder gates along the first axis, from our order to Keras' or back."""
    if cell not in _GATES or len(part) % _GATES[cell]:
        raise InputError(f"an array of {len(part)} rows for a {cell!r}: expected {', '.join(_GATES)}, in whole gates")
    gates = np.split(part, _GATES[cell])
    return np.concatenate([gates[gate] for gate in _KERAS_ORDER[cell]])
