"""The network of a neural tagger, as functions of weights: words become vectors, and vectors scores of tags.

    v_w = [table(w) + vector(w); letters(w)],    h_t = [LSTM→(v_1 … v_t); LSTM←(v_T … v_t)],    e_t = W h_t + b

``letters`` is a convolution over three characters at a time with the largest value kept, or the last states of an LSTM
that reads the word both ways. A word that stands many times in a batch is spelled once. The second LSTM reads every
sentence from its own last word: what pads a sentence always comes behind it, in either direction, and is never read by
a word. So a sentence's scores do not depend on the others in its batch.

X. Ma and E. Hovy, "End-to-end sequence labeling via bi-directional LSTM-CNNs-CRF" (2016) for the convolution;
G. Lample et al., "Neural architectures for named entity recognition" (2016) for the LSTM over letters.
Shapes: B sentences, T words of the longest, D distinct words of L letters, K tags, H units in each direction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv1d, embedding, linear

from foreword.arrays import Longs
from foreword.nn.crf import Chain
from foreword.nn.dropout import locked_mask
from foreword.nn.layers import lstm, reversing, turned
from foreword.nn.network import Weights
from foreword.tag.bilstm_words import NO_LETTER, Words
from foreword.training.batches import longs

CHARACTERS = ("cnn", "lstm", "none")
WINDOW = 3
"""Characters that the convolution sees at a time."""

SPELLED_AT_ONCE = 1 << 15
"""Letters that are read together."""

PARTS = ("input", "recurrent", "input_bias", "recurrent_bias")


@dataclass(frozen=True, slots=True)
class Distinct:
    """The distinct words of some text, D of them.

    rows: (D,) of the table that is learnt. vectors: (D, d) from before, or none. spelled: (D, L) letters. sizes: (D,)
    how many of them each word has.
    """

    rows: Tensor
    vectors: Tensor | None
    spelled: Tensor
    sizes: Tensor

    def take(self, places: Tensor) -> Distinct:
        """Some of them, in this order, with no more room for letters than they need."""
        sizes = self.sizes[places]
        spelled = self.spelled[places, : int(sizes.max()) if len(sizes) else 0]
        return Distinct(self.rows[places], None if self.vectors is None else self.vectors[places], spelled, sizes)


def numbered(sentences: Sequence[Sequence[str]], words: Words, device: torch.device) -> tuple[Distinct, list[Longs]]:
    """The distinct words of sentences, short ones first so that few letters are padded; and which stands where."""
    distinct = sorted({word for sentence in sentences for word in sentence}, key=lambda word: (len(word), word))
    number = {word: place for place, word in enumerate(distinct)}
    letters = [words.spelled(word) for word in distinct]
    sizes = np.array([len(each) for each in letters], np.int64)
    spelled = np.full((len(letters), int(sizes.max(initial=0))), NO_LETTER, np.int64)
    for row, each in enumerate(letters):
        spelled[row, : len(each)] = each
    vectors = None
    if words.vectors is not None:
        vectors = torch.from_numpy(words.vectors[[words.vector_place(word) for word in distinct]]).to(device)
    rows = longs([words.row(word) for word in distinct], device)
    ids = [np.array([number[word] for word in sentence], np.int64) for sentence in sentences]
    return Distinct(rows, vectors, longs(spelled, device), longs(sizes, device)), ids


@dataclass(frozen=True, slots=True)
class TaggerNetwork:
    """rows: of the table, words: its units; letters: of the alphabet, each a vector of ``letter_units``; characters:
    what reads them, into ``spelling`` numbers; units: of each direction; tags: K; context: numbers of an embedder.
    """

    rows: int
    words: int
    letters: int
    letter_units: int
    characters: str
    spelling: int
    units: int
    layers: int
    tags: int
    both_ways: bool
    crf: bool
    context: int = 0

    @property
    def directions(self) -> tuple[str, ...]:
        return ("ahead", "behind") if self.both_ways else ("ahead",)

    @property
    def inputs(self) -> int:
        return self.words + (0 if self.characters == "none" else self.spelling)

    @property
    def hidden(self) -> int:
        """What the last layer reads: 512 for two directions of 256."""
        return self.units * len(self.directions)

    def tensors(self) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {"table": (self.rows, self.words)}
        if self.characters != "none":
            shapes["letters"] = (self.letters, self.letter_units)
        if self.characters == "cnn":
            shapes |= {"filters": (self.spelling, self.letter_units, WINDOW), "filter_bias": (self.spelling,)}
        if self.characters == "lstm":
            for way in ("ahead", "behind"):
                shapes |= _lstm_shapes(f"spelling.{way}", self.letter_units, self.spelling // 2)
        for layer in range(self.layers):
            for way in self.directions:
                shapes |= _lstm_shapes(
                    f"layer{layer}.{way}", self.hidden if layer else self.inputs + self.context, self.units
                )
        shapes |= {"output": (self.tags, self.hidden), "bias": (self.tags,)}
        if self.crf:
            shapes |= {"start": (self.tags,), "moves": (self.tags, self.tags), "end": (self.tags,)}
        return shapes

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Tables by their width, matrices by their inputs and outputs (Glorot), forget gates open, the rest zero."""
        for name, part in weights.items():
            if name in ("table", "letters"):
                reach = math.sqrt(3 / part.shape[1])
            elif part.dim() > 1 and name != "moves":
                fan = part[0].numel() + (len(part) // 4 if "layer" in name or "spelling" in name else len(part))
                reach = math.sqrt(6 / fan)
            else:
                reach = 0.0
            part.uniform_(-reach, reach, generator=generator)
            if name.endswith("input_bias"):
                units = len(part) // 4
                part[units : 2 * units] = 1.0

    def word_vectors(self, weights: Weights, words: Distinct) -> Tensor:
        """(D, inputs), what the first layer reads of each word."""
        x = embedding(words.rows, weights["table"])
        if words.vectors is not None:
            x = x + words.vectors
        if self.characters == "none" or len(x) == 0:
            return x.new_zeros(0, self.inputs) if len(x) == 0 else x
        step = max(1, SPELLED_AT_ONCE // words.spelled.shape[1])
        read = [
            self._spellings(weights, words.spelled[begin : begin + step], words.sizes[begin : begin + step])
            for begin in range(0, len(x), step)
        ]
        return torch.cat((x, torch.cat(read)), 1)

    def emissions(
        self,
        weights: Weights,
        vectors: Tensor,
        places: Tensor,
        lengths: Tensor,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
        context: Tensor | None = None,
    ) -> Tensor:
        """(B, T, K) scores of the tags of each word; what stands behind a sentence's end means nothing.

        vectors: (D, inputs) of distinct words; places: (T, B) which of them stands where; lengths: (B,);
        context: (T, B, n) what an embedder says of each word where it stands.
        """
        x = embedding(places, vectors) if len(vectors) else vectors.new_zeros(*places.shape, self.inputs)
        if context is not None:
            x = torch.cat((x, context), 2)
        back = reversing(lengths, len(x))
        for layer in range(self.layers):
            if dropout:
                x = x * locked_mask(x.shape[1], x.shape[2], dropout, x, generator)
            x = self._layer(weights, f"layer{layer}", x, back)
        if dropout:
            x = x * locked_mask(x.shape[1], x.shape[2], dropout, x, generator)
        return linear(x, weights["output"], weights["bias"]).transpose(0, 1)

    def chain(self, weights: Weights) -> Chain:
        """Of the field, or of zeros where there is none."""
        if self.crf:
            return Chain(weights["start"], weights["moves"], weights["end"])
        zeros = torch.zeros_like(weights["bias"])
        return Chain(zeros, zeros.expand(self.tags, -1), zeros)

    def _layer(self, weights: Weights, name: str, x: Tensor, back: Tensor) -> Tensor:
        out = [_run(weights, f"{name}.ahead", x)]
        if self.both_ways:
            out.append(turned(_run(weights, f"{name}.behind", turned(x, back)), back))
        return torch.cat(out, 2)

    def _spellings(self, weights: Weights, spelled: Tensor, sizes: Tensor) -> Tensor:
        """(D, spelling)."""
        spelled = spelled[:, : int(sizes.max())]
        there = torch.arange(spelled.shape[1], device=spelled.device) < sizes[:, None]
        x = embedding(spelled, weights["letters"]) * there[:, :, None]
        if self.characters == "cnn":
            found = conv1d(x.transpose(1, 2), weights["filters"], weights["filter_bias"], padding=WINDOW // 2)
            return torch.tanh(found.masked_fill(~there[:, None], -torch.inf).amax(2))
        x, back = x.transpose(0, 1), reversing(sizes, spelled.shape[1])
        last = (sizes - 1)[None, :, None].expand(1, -1, self.spelling // 2)
        ends = [
            _run(weights, f"spelling.{way}", each).gather(0, last)[0]
            for way, each in (("ahead", x), ("behind", turned(x, back)))
        ]
        return torch.cat(ends, 1)


def _lstm_shapes(name: str, inputs: int, units: int) -> dict[str, tuple[int, ...]]:
    shapes = [(4 * units, inputs), (4 * units, units), (4 * units,), (4 * units,)]
    return {f"{name}.{part}": shape for part, shape in zip(PARTS, shapes, strict=True)}


def _run(weights: Weights, name: str, x: Tensor) -> Tensor:
    """One layer in one direction, from zero: (T, B, I) to (T, B, H)."""
    held = [weights[f"{name}.{part}"] for part in PARTS]
    zero = x.new_zeros(x.shape[1], held[1].shape[1])
    if x.numel() == 0:
        return x.new_zeros(*x.shape[:2], held[1].shape[1])
    return lstm(x, zero, zero, held)[0]
