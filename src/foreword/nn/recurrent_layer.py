"""One recurrent layer of any cell: what language models, taggers, classifiers and translators share.

Shapes: T steps, a batch of B texts, I inputs, H units of the layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from foreword.nn.gated import GATED
from foreword.nn.gated_gpu import gated_layer
from foreword.nn.layers import gru, lstm, min_gru, rnn, torch_runs_gru
from foreword.nn.network import State, Weights
from foreword.nn.weights import PARTS

GATES = {"rnn": 1, "irnn": 1, "lstm": 4, "gru": 3, "min-gru": 2} | {name: cell.gates for name, cell in GATED.items()}
"""The cells, and how many rows of W_x each unit has; ``irnn`` is a ReLU network initialised with W_h = IDENTITY · 1."""

IDENTITY = 0.1
"""Factor of the identity that an ``irnn`` begins with. Q. Le, N. Jaitly and G. Hinton, "A simple way to initialize
recurrent networks of rectified linear units" (2015), scale it down for tasks that need less memory. A language model
carries its state from chunk to chunk of the text: with 1 the state adds up what it has read and training diverges
within twenty updates at any rate; after four epochs of 90,000 words 0.9 leaves perplexity 240, 0.5 140 and 0.1 120."""

CELLS = tuple(GATES)

CellName = Literal["rnn", "irnn", "lstm", "gru", "min-gru", "cifg", "peephole", "ln-lstm", "slstm", "gru-before"]
"""The same names, for type checkers."""


def layer_shapes(cell: str, inputs: int, units: int, prefix: str = "") -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of a layer's weights, in the order in which ``run_layer`` takes them."""
    rows = GATES[cell] * units
    shapes = dict(zip(PARTS, ((rows, inputs), (rows, units), (rows,), (rows,)), strict=True))
    if cell == "min-gru":  # its gates do not see the state
        del shapes["recurrent"], shapes["recurrent_bias"]
    extra = GATED[cell].extra if cell in GATED else None
    if extra is not None:
        shapes[extra[0]] = (extra[1], units)
    return {f"{prefix}{part}": shape for part, shape in shapes.items()}


def layer_weights(cell: str, weights: Weights, name: str) -> list[Tensor]:
    """Return the weights of a layer as ``run_layer`` takes them."""
    return [weights[part] for part in layer_shapes(cell, 1, 1, f"{name}.")]


def states_of(cell: str) -> int:
    """Return how many states a layer carries, h first."""
    return GATED[cell].states if cell in GATED else 2 if cell == "lstm" else 1


def initialise_cell(cell: str, weights: Weights, name: str, forget_bias: float | None) -> None:
    """Set the weights of a layer that are not drawn; forget_bias: of the forget gate, None to leave what was drawn."""
    b_x, b_h = f"{name}.input_bias", f"{name}.recurrent_bias"
    units = len(weights[b_x]) // GATES[cell]
    if cell == "irnn":
        weights[f"{name}.recurrent"].copy_(IDENTITY * torch.eye(units))
        weights[b_x].zero_()
        weights[b_h].zero_()
    forget = GATED[cell].forget if cell in GATED else 1 if cell == "lstm" else None
    if forget is not None and forget_bias is not None:
        weights[b_x][forget * units : (forget + 1) * units] = forget_bias
        weights[b_h][forget * units : (forget + 1) * units] = 0.0
    extra = GATED[cell].extra if cell in GATED else None
    if extra is not None:
        weights[f"{name}.{extra[0]}"].zero_()
        if extra[0] == "norm":
            weights[f"{name}.norm"][:-1] = 1.0  # gains; the last row is a bias


def runs_gated(cell: str, x: Tensor) -> bool:
    """Return whether a cell is one of ``nn/gated.py``'s, and not the GRU where torch runs that faster."""
    return cell in GATED and not (cell == "gru" and torch_runs_gru(x))


def run_layer(
    cell: str, x: Tensor, state: State, weights: Sequence[Tensor], lengths: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Run one layer of any cell over x (T, B, I): every h (T, B, H), then the states after the last step.

    lengths (B,): of the texts, the longest first, where the output behind their ends does not matter.
    """
    if runs_gated(cell, x):
        return gated_layer(cell, x, state, weights)
    h = state[0]
    match cell:
        case "lstm":
            return lstm(x, h, state[1], weights, lengths)
        case "gru":
            return gru(x, h, weights)
        case "min-gru":
            return min_gru(x, h, weights)
        case _:
            return rnn(x, h, weights, "relu" if cell == "irnn" else "tanh")


def run_from_zeros(cell: str, weights: Weights, name: str, x: Tensor) -> Tensor:
    """Run one layer from a state of zeros: (T, B, I) to (T, B, H)."""
    layer = layer_weights(cell, weights, name)
    zero = x.new_zeros(x.shape[1], len(layer[0]) // GATES[cell])
    if x.numel() == 0:
        return zero.expand(len(x), *zero.shape)
    return run_layer(cell, x, (zero,) * states_of(cell), layer)[0]


def layer_names(layer: int) -> tuple[str, str, str, str]:
    """Return the names of a layer's four weights, as torch orders them; an LSTM's gates are i, f, g, o."""
    first, second = f"layer{layer}.input", f"layer{layer}.recurrent"
    return first, second, f"{first}_bias", f"{second}_bias"
