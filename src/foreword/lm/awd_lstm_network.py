"""The network of the AWD-LSTM as functions of its weights: nothing is stored in modules, so nothing has to be put back.

Weights come in as a dictionary of tensors. A weight that DropConnect thins out is computed and passed on like any
other; ``torch``'s own LSTM kernel does the rest. Shapes: T steps, B texts side by side, V words, D units of the
embedding and of the last layer, H units of the layers before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear

from foreword.nn.dropout import Dropout, draw_mask, locked_mask
from foreword.nn.layers import lstm

Weights = Mapping[str, Tensor]
State = tuple[Tensor, ...]
"""h and c of the first layer, h and c of the second, …; each (B, units)."""

EMBEDDING, OUTPUT, BIAS = "embedding", "output", "bias"


@dataclass(frozen=True, slots=True)
class Shape:
    """vocab: V. embedding: D. hidden: H. tied: the embedding is the output layer's weight too."""

    vocab: int
    embedding: int
    hidden: int
    layers: int
    tied: bool = True

    def layer_sizes(self) -> list[tuple[int, int]]:
        """What each layer reads and writes: D→H, H→H, …, H→D, so that the last can be tied to the first."""
        sizes = [self.embedding, *[self.hidden] * (self.layers - 1), self.embedding]
        return list(pairwise(sizes))

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Every weight's name and shape, in the order in which they are kept."""
        shapes: dict[str, tuple[int, ...]] = {EMBEDDING: (self.vocab, self.embedding), BIAS: (self.vocab,)}
        if not self.tied:
            shapes[OUTPUT] = (self.vocab, self.embedding)
        for layer, (read, written) in enumerate(self.layer_sizes()):
            names = layer_names(layer)
            gates = 4 * written
            shapes |= dict(zip(names, [(gates, read), (gates, written), (gates,), (gates,)], strict=True))
        return shapes

    def parameter_count(self) -> int:
        return sum(math.prod(shape) for shape in self.tensors().values())


def layer_names(layer: int) -> tuple[str, str, str, str]:
    """The four weights of a layer, as torch orders them; the gates are input, forget, cell, output."""
    first, second = f"layer{layer}.input", f"layer{layer}.recurrent"
    return first, second, f"{first}_bias", f"{second}_bias"


def initialise(weights: Weights, shape: Shape, generator: torch.Generator) -> None:
    """Embedding within 0.1 of zero, recurrent weights within 1 / √units, no bias on words."""
    for name in (EMBEDDING, OUTPUT):
        if name in weights:
            weights[name].uniform_(-0.1, 0.1, generator=generator)
    weights[BIAS].zero_()
    for layer, (_, units) in enumerate(shape.layer_sizes()):
        for name in layer_names(layer):
            weights[name].uniform_(-(units**-0.5), units**-0.5, generator=generator)


def zero_state(shape: Shape, texts: int, like: Tensor) -> State:
    return tuple(like.new_zeros(texts, units) for _, units in shape.layer_sizes() for _ in "hc")


@dataclass(frozen=True, slots=True)
class Masks:
    """What is dropped while one stretch of text is read. words (V,), input and output (1, B, D), between[l] (1, B, H),
    recurrent[l] (4 · units, units).
    """

    words: Tensor
    input: Tensor
    between: tuple[Tensor, ...]
    output: Tensor
    recurrent: tuple[Tensor, ...]


def draw_masks(dropout: Dropout, shape: Shape, texts: int, like: Tensor, generator: torch.Generator | None) -> Masks:
    sizes = shape.layer_sizes()
    return Masks(
        draw_mask((shape.vocab,), dropout.words, like, generator),
        locked_mask(texts, shape.embedding, dropout.input, like, generator),
        tuple(locked_mask(texts, units, dropout.between, like, generator) for _, units in sizes[:-1]),
        locked_mask(texts, shape.embedding, dropout.output, like, generator),
        tuple(draw_mask((4 * units, units), dropout.recurrent, like, generator) for _, units in sizes),
    )


def read(weights: Weights, shape: Shape, ids: Tensor, state: State, masks: Masks | None = None) -> tuple[Tensor, State]:
    """Words (T, B) in; what the last layer says at every step (T, B, D), not dropped from yet, and the new state."""
    x = embedding(ids, weights[EMBEDDING])
    if masks is not None:
        x = x * masks.words[ids].unsqueeze(-1) * masks.input
    new: list[Tensor] = []
    for layer in range(shape.layers):
        w_x, w_h, b_x, b_h = (weights[name] for name in layer_names(layer))
        if masks is not None:
            w_h = w_h * masks.recurrent[layer]
        h, c = state[2 * layer : 2 * layer + 2]
        x, h, c = lstm(x, h, c, [w_x, w_h, b_x, b_h])
        new += [h, c]
        if masks is not None and layer < shape.layers - 1:
            x = x * masks.between[layer]
    return x, tuple(new)


def output_weight(weights: Weights) -> Tensor:
    """(V, D): the embedding itself where the two are tied."""
    return weights[OUTPUT] if OUTPUT in weights else weights[EMBEDDING]


def next_logs(weights: Weights, hidden: Tensor) -> Tensor:
    """(n, D) to log-probabilities (n, V), in float64 so that a row sums to one to the last digits of float32."""
    return torch.log_softmax(linear(hidden, output_weight(weights), weights[BIAS]).double(), -1)
