"""Stacked recurrent layers between an embedding and a softmax, for any cell.

DropConnect masks a weight before it is passed on; ``nn/layers.py`` does the rest.
Shapes: T steps, a batch of B texts, V words, D units of the embedding, H units of a layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from foreword.nn.dropout import Dropout, draw_mask, locked_mask
from foreword.nn.fused import only_read, read_words
from foreword.nn.layers import gru, lstm, min_gru, mogrifier_lstm, rnn, round_shapes
from foreword.nn.network import EMBEDDING, State, Weights, embed, initialise_words, mixture_tensors, word_tensors

GATES = {"rnn": 1, "irnn": 1, "lstm": 4, "gru": 3, "min-gru": 2}
"""The cells, and how many rows of W_x each unit has; ``irnn`` is a ReLU network initialised with W_h = IDENTITY · 1."""

IDENTITY = 0.1
"""Factor of the identity that an ``irnn`` begins with. Q. Le, N. Jaitly and G. Hinton, "A simple way to initialize
recurrent networks of rectified linear units" (2015), scale it down for tasks that need less memory. A language model
carries its state from chunk to chunk of the text: with 1 the state adds up what it has read and training diverges
within twenty updates at any rate; after four epochs of 90,000 words 0.9 leaves perplexity 240, 0.5 140 and 0.1 120."""

CELLS = tuple(GATES)


@dataclass(frozen=True, slots=True)
class Masks:
    """The dropout masks of one segment of text. words (V,), input (1, B, D), between[l] (1, B, H), output
    (1, B, units), recurrent[l] (gates · H, H), latent (1, B, softmaxes · units) where there is a mixture of softmaxes.
    """

    words: Tensor
    input: Tensor
    between: tuple[Tensor, ...]
    output: Tensor
    recurrent: tuple[Tensor, ...]
    latent: Tensor | None = None


@dataclass(frozen=True, slots=True)
class RecurrentNetwork:
    """A stack of recurrent layers. vocab: V. embedding: D. hidden: H. tied: the embedding is the output weight too.

    last: units of the last layer; D where it is tied. forget_bias: initial bias of an LSTM's forget gates; None to draw
    it as the others. mogrify: rounds in which an LSTM's input and state gate each other, see ``nn/layers.py``.
    softmaxes: of the output, see ``nn/mixture.py``.
    """

    vocab: int
    embedding: int
    hidden: int
    layers: int
    tied: bool = True
    cell: str = "lstm"
    last: int | None = None
    forget_bias: float | None = None
    mogrify: int = 0
    softmaxes: int = 1

    def layer_sizes(self) -> list[tuple[int, int]]:
        """Return the inputs and units of each layer: D→H, H→H, …, H→last."""
        last = self.embedding if self.last is None else self.last
        return list(pairwise([self.embedding, *[self.hidden] * (self.layers - 1), last]))

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of all weights."""
        last = self.layer_sizes()[-1][1]
        shapes = word_tensors(self.vocab, self.embedding, None if self.tied else last)
        shapes |= mixture_tensors(self.softmaxes, last)
        for layer, (read, written) in enumerate(self.layer_sizes()):
            gates = GATES[self.cell] * written
            sizes = [(gates, read), (gates, written), (gates,), (gates,)]
            shapes |= dict(zip(layer_names(layer), sizes, strict=True))
            if self.cell == "min-gru":  # its gates do not see the state
                del shapes[layer_names(layer)[1]], shapes[layer_names(layer)[3]]
            rounds = round_shapes(read, written, self.mogrify)
            shapes |= dict(zip(round_names(layer, self.mogrify), rounds, strict=True))
        return shapes

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Draw recurrent weights from ±1 / √units, and words' as ``initialise_words`` does."""
        initialise_words(weights, generator)
        for layer, (_, units) in enumerate(self.layer_sizes()):
            names = [name for name in (*layer_names(layer), *round_names(layer, self.mogrify)) if name in weights]
            for name in names:
                weights[name].uniform_(-(units**-0.5), units**-0.5, generator=generator)
            _, w_h, b_x, b_h = layer_names(layer)
            if self.cell == "irnn":
                weights[w_h].copy_(IDENTITY * torch.eye(units))
                weights[b_x].zero_()
                weights[b_h].zero_()
            if self.cell == "lstm" and self.forget_bias is not None:
                weights[b_x][units : 2 * units] = self.forget_bias
                weights[b_h][units : 2 * units] = 0.0
        last = self.layer_sizes()[-1][1]
        for name in mixture_tensors(self.softmaxes, last):
            weights[name].uniform_(-(last**-0.5), last**-0.5, generator=generator)

    def start(self, texts: int, like: Tensor) -> State:
        """Return zeros for the first layer's h, and c if it is an LSTM, then the second's, …; each (B, units)."""
        return tuple(like.new_zeros(texts, units) for _, units in self.layer_sizes() for _ in range(self._parts()))

    def _parts(self) -> int:
        return 2 if self.cell == "lstm" else 1

    def masks(self, dropout: Dropout, texts: int, like: Tensor, generator: torch.Generator | None) -> Masks:
        """Draw the masks of one segment of text."""
        sizes = self.layer_sizes()
        none = self.cell == "min-gru" or dropout.recurrent == 0
        recurrent = [] if none else [units for _, units in sizes]
        return Masks(
            draw_mask((self.vocab,), dropout.words, like, generator),
            locked_mask(texts, self.embedding, dropout.input, like, generator),
            tuple(locked_mask(texts, units, dropout.between, like, generator) for _, units in sizes[:-1]),
            locked_mask(texts, sizes[-1][1], dropout.output, like, generator),
            tuple(draw_mask((GATES[self.cell] * u, u), dropout.recurrent, like, generator) for u in recurrent),
            None
            if self.softmaxes == 1
            else locked_mask(texts, self.softmaxes * sizes[-1][1], dropout.between, like, generator),
        )

    def read(
        self,
        weights: Weights,
        ids: Tensor,
        state: State,
        masks: Masks | None = None,
        more: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        """Read words (T, B): the last layer's output at each step (T, B, units), before dropout, and the state.

        more (T, B, D): added to the words' vectors. lengths (B,): of the texts, the longest first, where the output
        behind their ends does not matter.
        """
        first: list[Tensor] = []
        if masks is None and more is None and self._reads_words(weights, ids, state):
            of_layer = [weights[name] for name in layer_names(0)]
            distinct, rows = torch.unique(ids, return_inverse=True)
            x, *first = read_words(embed(weights, distinct), rows, state[0], state[1], of_layer, lengths)
        else:
            x = embed(weights, ids, masks)
            x = x if more is None else x + more
        new = first
        for layer in range(1 if first else 0, self.layers):
            of_layer = [weights[name] for name in layer_names(layer) if name in weights]
            if masks is not None and masks.recurrent:
                of_layer[1] = of_layer[1] * masks.recurrent[layer]
            parts = state[self._parts() * layer : self._parts() * (layer + 1)]
            if self.mogrify:
                rounds = [weights[name] for name in round_names(layer, self.mogrify)]
                x, *after = mogrifier_lstm(x, parts[0], parts[1], of_layer, rounds)
            else:
                x, *after = self._layer(x, parts, of_layer, lengths)
            new += after
            if masks is not None and layer < self.layers - 1:
                x = x * masks.between[layer]
        return x, tuple(new)

    def _reads_words(self, weights: Weights, ids: Tensor, state: State) -> bool:
        """Return whether the first layer multiplies each distinct word once, and looks it up afterwards."""
        of_layer = [weights[name] for name in layer_names(0) if name in weights]
        plain = self.cell == "lstm" and not self.mogrify and ids.numel() > 0
        return plain and only_read(weights[EMBEDDING], state[0], state[1], of_layer)

    def _layer(self, x: Tensor, state: State, weights: list[Tensor], lengths: Tensor | None) -> tuple[Tensor, ...]:
        h = state[0]
        match self.cell:
            case "lstm":
                return lstm(x, h, state[1], weights, lengths)
            case "gru":
                return gru(x, h, weights)
            case "min-gru":
                return min_gru(x, h, weights)
            case cell:
                return rnn(x, h, weights, "relu" if cell == "irnn" else "tanh")


def layer_names(layer: int) -> tuple[str, str, str, str]:
    """Return the names of a layer's four weights, as torch orders them; an LSTM's gates are i, f, g, o."""
    first, second = f"layer{layer}.input", f"layer{layer}.recurrent"
    return first, second, f"{first}_bias", f"{second}_bias"


def round_names(layer: int, rounds: int) -> list[str]:
    """Return the names of the matrices by which a layer's input and state gate each other."""
    return [f"layer{layer}.mogrify{number + 1}" for number in range(rounds)]
