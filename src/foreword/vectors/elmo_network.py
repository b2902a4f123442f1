"""The network of ELMo, as functions of weights: letters become words, and words are read from both ends.

    x = W_p highway(max over places of conv_k(letters), k = 1 … 5)       one vector a word, whatever stands around it
    ahead_1 = LSTM(x),    ahead_j = LSTM(ahead_(j−1)) + ahead_(j−1),    behind_j the same from the end
    p(w_(t+1) | w_≤t) = softmax(W ahead_L,t + b),    p(w_(t−1) | w_≥t) = softmax(W behind_L,t + b)

The letters, the projection and the softmax serve both directions; the LSTMs are each one's own. From the second
layer on the output of a layer is added to its input. A sentence stands between two ends, which are words of no letters.

M. Peters et al., "Deep contextualized word representations" (2018); Y. Kim et al., "Character-aware neural language
models" (2016) for the letters; R. Srivastava, K. Greff and J. Schmidhuber, "Highway networks" (2015).
Shapes: B sentences, T words of the longest with its ends, D distinct words of L letters, H units, V words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import conv1d, embedding, linear

from foreword.nn.dropout import NO_DROPOUT, Dropout, locked_mask
from foreword.nn.layers import lstm, reversing, turned
from foreword.nn.network import Weights
from foreword.nn.weights import PARTS

NO_LETTER, UNSEEN_LETTER, BEGINS, ENDS, BORDER = range(5)
MARKS = 5
"""Rows of letters that are none; the last is all that the end of a sentence is spelled with."""

WIDTHS = (1, 2, 3, 4, 5)
"""Letters that a filter sees at a time."""

WAYS = ("ahead", "behind")

SPELLED_AT_ONCE = 1 << 15
"""Letters that are read together."""


@dataclass(frozen=True, slots=True)
class ELMoNetwork:
    """letters: of the alphabet, each of ``letter_units``. filters: of each width. units: H. vocab: V."""

    letters: int
    letter_units: int
    filters: int
    units: int
    layers: int
    vocab: int

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of the weights."""
        wide = self.filters * len(WIDTHS)
        shapes: dict[str, tuple[int, ...]] = {"letters": (self.letters, self.letter_units)}
        for width in WIDTHS:
            shapes |= {
                f"filters{width}": (self.filters, self.letter_units, width),
                f"filters{width}_bias": (self.filters,),
            }
        shapes |= {"highway": (2 * wide, wide), "highway_bias": (2 * wide,)}
        shapes |= {"projection": (self.units, wide), "projection_bias": (self.units,)}
        sizes = [(4 * self.units, self.units)] * 2 + [(4 * self.units,)] * 2
        for layer in range(self.layers):
            for way in WAYS:
                shapes |= {f"layer{layer}.{way}.{part}": size for part, size in zip(PARTS, sizes, strict=True)}
        return shapes | {"output": (self.vocab, self.units), "bias": (self.vocab,)}

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Draw matrices by inputs and outputs (Glorot); forget gates begin open, the highway gates half open."""
        for name, part in weights.items():
            reach = (
                math.sqrt(6 / (part[0].numel() + len(part) / (4 if "layer" in name else 1))) if part.dim() > 1 else 0
            )
            if name in ("letters", "output"):
                reach = math.sqrt(3 / part.shape[1])
            part.uniform_(-reach, reach, generator=generator)
            if name.endswith("input_bias"):
                part[self.units : 2 * self.units] = 1.0

    def word_vectors(self, weights: Weights, spelled: Tensor, sizes: Tensor) -> Tensor:
        """Return vectors (D, H) of distinct words from their characters (D, L) and numbers of characters."""
        step = max(1, SPELLED_AT_ONCE // max(1, spelled.shape[1]))
        parts = zip(torch.split(spelled, step), torch.split(sizes, step), strict=True)
        return torch.cat([self._spellings(weights, *part) for part in parts])

    def _spellings(self, weights: Weights, spelled: Tensor, sizes: Tensor) -> Tensor:
        there = torch.arange(spelled.shape[1], device=spelled.device) < sizes[:, None]
        x = (embedding(spelled, weights["letters"]) * there[:, :, None]).transpose(1, 2)
        found = []
        for width in WIDTHS:  # a window begins at each letter, and what lies behind the word is zero
            wide = torch.nn.functional.pad(x, (0, width - 1))
            seen = conv1d(wide, weights[f"filters{width}"], weights[f"filters{width}_bias"])
            found.append(torch.relu(seen.masked_fill(~there[:, None], -torch.inf).amax(2)))
        x = torch.cat(found, 1)
        carried, new = linear(x, weights["highway"], weights["highway_bias"]).chunk(2, 1)
        gate = torch.sigmoid(carried)
        return linear(gate * x + (1 - gate) * torch.relu(new), weights["projection"], weights["projection_bias"])

    def read(
        self,
        weights: Weights,
        vectors: Tensor,
        places: Tensor,
        lengths: Tensor,
        dropout: Dropout = NO_DROPOUT,
        generator: torch.Generator | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return the states of each layer, (T, B, H), the words themselves first: from the left, and from the right.

        vectors: (D, H) of distinct words; places: (T, B) which of them stands where; lengths: (B,), ends included.
        """
        x, back = embedding(places, vectors), reversing(lengths, len(places))
        if dropout.input:
            x = x * locked_mask(x.shape[1], x.shape[2], dropout.input, x, generator)
        said: list[list[Tensor]] = [[x], [x]]
        for number, way in enumerate(WAYS):
            here = turned(x, back) if number else x
            for layer in range(self.layers):
                held = [weights[f"layer{layer}.{way}.{part}"] for part in PARTS]
                zero = here.new_zeros(here.shape[1], self.units)
                new = lstm(here, zero, zero, held)[0]
                here = new + here if layer else new
                share = dropout.between if layer < self.layers - 1 else dropout.output
                if share:
                    here = here * locked_mask(here.shape[1], self.units, share, here, generator)
                said[number].append(turned(here, back) if number else here)
        return said[0], said[1]


def aimed_at(words: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return two masks (T, B): where the next word is predicted, at every position but the last, and where the one
    before, at every position but the first.
    """
    places = torch.arange(len(words), device=words.device)[:, None]
    return places < lengths - 1, (places > 0) & (places < lengths)
