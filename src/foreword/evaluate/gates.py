"""What the gates of a trained network do at each token.

An LSTM decides at every step how much of its cell it keeps (f), how much of the new it writes (i) and how much it shows
(o); a GRU what of the old state it reads (r) and keeps (z). Each is a number between 0 and 1 for each unit, and the
traces here are those numbers as the model reads a text, from its first token on. A model is read through ``Layers``:
its recurrent layers as the NumPy cells of ``nn/cells.py``, so that nothing here needs PyTorch.

A. Karpathy, J. Johnson and L. Fei-Fei, "Visualizing and understanding recurrent networks" (2015). Shapes: T steps, B
texts in a batch, H hidden units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreword.arrays import Doubles, Ids, Reals
from foreword.errors import InputError
from foreword.nn.cells import Cell, GRUCell, Kept, LSTMCell, MinGRUCell, RNNCell, run

EMBEDDING, OUTPUT, BIAS = "embedding", "output", "bias"
"""Names of weights in the recurrent language models; those of layers are ``layer0.input`` and so on."""

NAMES = {"lstm": ("input", "forget", "output"), "gru": ("reset", "update"), "min-gru": ("update",), "rnn": ()}
"""The gates of a kind of cell. At 1 a GRU's update gate keeps the old state, a minimal GRU's replaces it."""

_INDICES = {
    "lstm": {"input": 3, "forget": 4, "output": 6},
    "gru": {"reset": 2, "update": 3},
    "min-gru": {"update": 2},
    "rnn": {},
}
"""The index of each gate in what a cell caches of a step."""


@dataclass(frozen=True, slots=True)
class Layers:
    """The parts of a recurrent language model: the embedding (V, D), stacked cells, and the output layer.

    kind: "rnn", "gru", "lstm" or "min-gru". output: (V, H of the last layer), the embedding itself where the two are
    tied. bias: (V,).
    """

    kind: str
    embedding: Reals
    cells: list[Cell]
    output: Reals
    bias: Reals

    @classmethod
    def of(cls, model: Any) -> Layers:
        """Read any model whose ``weights_`` have the usual names; its ``cell`` tells IRNN from RNN, and two GRUs."""
        if not has_layers(model):
            raise InputError(f"{type(model).__name__} has no recurrent layers: expected an RNN, GRU or LSTM")
        cell = getattr(model, "cell", "")
        weights = {name: np.asarray(weight, np.float64) for name, weight in _on_host(model.weights_).items()}
        count = sum(f"{layer_name(layer)}.input" in weights for layer in range(len(weights)))
        made = [_cell_of(weights, layer, cell) for layer in range(count)]
        output = weights.get(OUTPUT, weights[EMBEDDING])
        return cls(made[0][0], weights[EMBEDDING], [cell for _, cell in made], output, weights[BIAS])

    def read(self, ids: Ids) -> tuple[list[Reals], list[list[Kept]]]:
        """Read ids (T, B) from a state of zeros; return the outputs (T, B, H) and the cached steps of each layer."""
        x = self.embedding[np.asarray(ids)]
        outputs, caches = [], []
        for cell in self.cells:
            x, _, steps = run(cell, x)
            outputs.append(x)
            caches.append(steps)
        return outputs, caches

    def scores(self, hidden: Reals) -> Reals:
        """Return the scores of the next token (n, V), before the softmax, from outputs of the last layer (n, H)."""
        scores: Reals = hidden @ self.output.T + self.bias
        return scores


def has_layers(model: Any) -> bool:
    """Return whether ``Layers.of`` can read a model."""
    weights = getattr(model, "weights_", None)
    if not isinstance(weights, Mapping):
        return False
    other = (
        getattr(model, "mogrify", 0) or getattr(model, "softmaxes", 1) > 1 or not getattr(model, "PLAIN_CELLS", True)
    )
    if other:  # of which the cells here know nothing
        return False
    cell = getattr(model, "cell", "") or "lstm"
    known = cell in ("rnn", "irnn", "lstm", "gru", "gru-before")
    return cell == "min-gru" or (known and f"{layer_name(0)}.recurrent" in weights)


@dataclass(frozen=True, slots=True)
class Traces:
    """The gates of one layer at every token of a text. gates: name → (T, H), between 0 and 1."""

    tokens: list[str]
    layer: int
    gates: dict[str, Doubles]

    def means(self) -> dict[str, Doubles]:
        """Return the mean over all units, (T,), of each gate."""
        return {name: values.mean(axis=1) for name, values in self.gates.items()}


def gate_traces(layers: Layers, ids: Ids, tokens: Sequence[str], layer: int = -1) -> Traces:
    """Read ``ids`` (T,), spelled ``tokens``, and return the gates of one layer, the last by default."""
    if len(ids) != len(tokens):
        raise InputError(f"{len(ids)} ids but {len(tokens)} tokens")
    if not NAMES[layers.kind]:
        raise InputError("a plain RNN has no gates: expected a GRU or an LSTM")
    _, caches = layers.read(np.asarray(ids)[:, None])
    chosen = range(len(caches))[layer]
    return Traces(list(tokens), chosen, gates_of(layers.kind, caches[chosen], text=0))


def gates_of(kind: str, kept: Sequence[Kept], text: int | slice = slice(None)) -> dict[str, Doubles]:
    """Return every gate of a run: (T, B, H), or (T, H) for one text."""
    return {name: np.array([step[index][text] for step in kept]) for name, index in _INDICES[kind].items()}


def kept_shares(kind: str, kept: Sequence[Kept]) -> Doubles:
    """Return the share of the old memory each unit keeps at each step (T, B, H): f, z, or 1 − z where z replaces."""
    if kind == "rnn":
        raise InputError("a plain RNN has no gate that keeps: expected a GRU or an LSTM")
    found = gates_of(kind, kept)
    return found["forget"] if kind == "lstm" else found["update"] if kind == "gru" else 1 - found["update"]


def layer_name(layer: int) -> str:
    """Return the prefix of a layer's weights."""
    return f"layer{layer}"


def _cell_of(weights: Mapping[str, Reals], layer: int, kind: str) -> tuple[str, Cell]:
    """Return one layer's cell and its kind, which follows from the number of gates in its recurrent weight."""
    name = layer_name(layer)
    w_x, b_x = weights[f"{name}.input"], weights[f"{name}.input_bias"]
    if kind == "min-gru":
        bare = MinGRUCell(w_x.shape[1], len(b_x) // 2)
        bare.weights = {"W_x": w_x, "b": b_x}
        return "min-gru", bare
    w_h, b_h = weights[f"{name}.recurrent"], weights[f"{name}.recurrent_bias"]
    inputs, units = w_x.shape[1], w_h.shape[1]
    made: RNNCell | GRUCell | LSTMCell
    if len(w_h) == units:
        found, made = "rnn", RNNCell(inputs, units, activation="relu" if kind == "irnn" else "tanh")
    elif len(w_h) == 3 * units:
        found, made = "gru", GRUCell(inputs, units, reset="before" if kind == "gru-before" else "after")
    elif len(w_h) == 4 * units:
        found, made = "lstm", LSTMCell(inputs, units)
    else:
        raise InputError(f"{name}.recurrent has shape {w_h.shape}: expected 1, 3 or 4 gates of {units} units")
    made.weights = {"W_x": w_x, "W_h": w_h} | ({"b": b_x, "b_h": b_h} if found == "gru" else {"b": b_x + b_h})
    return found, made


def _on_host(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Return PyTorch's tensors, on whatever device, as arrays; arrays as they are."""
    return {
        name: weight.detach().cpu().numpy() if hasattr(weight, "detach") else weight for name, weight in weights.items()
    }
