"""The network of the neural tagger, as functions of weights: from words to vectors, and from vectors to scores of tags.

    v_w = [table(w) + vector(w); letters(w)],    h_t = [LSTM→(v_1 … v_t); LSTM←(v_T … v_t)],    e_t = W h_t + b

``letters`` is a convolution over three characters at a time with its maximum, or the last states of an LSTM
that reads the word both ways. A word that occurs many times in a batch is spelled once. The second LSTM reads every
sentence from its own last word: padding always comes after the words, in either direction, and never affects
them. So a sentence's scores do not depend on the others in its batch. Any other cell of ``nn/recurrent_layer.py`` may
stand for the LSTM.

X. Ma and E. Hovy, "End-to-end sequence labeling via bi-directional LSTM-CNNs-CRF" (2016) for the convolution;
G. Lample et al., "Neural architectures for named entity recognition" (2016) for the LSTM over letters.
Shapes: B sentences, T words of the longest, D distinct words of L letters, K tags, H units in each direction.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv1d, embedding, linear

from foreword.arrays import Array, Floats, Longs
from foreword.nn.crf import Chain
from foreword.nn.dropout import NO_DROPOUT, Dropout, locked_mask
from foreword.nn.fused import read_lstm
from foreword.nn.layers import reversing, turned
from foreword.nn.network import Weights
from foreword.nn.recurrent_layer import GATES, initialise_cell, layer_shapes, run_from_zeros
from foreword.nn.weights import PARTS
from foreword.tag.tagger import packed, unpacked
from foreword.training.batches import longs
from foreword.vectors.wordvectors import WordVectors

CHARACTERS = ("cnn", "lstm", "none")
WINDOW = 3
"""Width of the convolution, in characters."""

SPELLED_AT_ONCE = 1 << 15
"""Letters that are read at once."""


UNSEEN = 0
NO_LETTER, UNSEEN_LETTER, BEGINS, ENDS = range(4)
MARKS = 4
"""Rows of the table of letters that are not letters."""

HEAD, TAIL = 24, 16
"""Letters of a long word that are read, from its beginning and from its end."""

_DIGIT = re.compile(r"\d")


def folded(word: str) -> str:
    """Return the word in lower case with every digit a 0."""
    return _DIGIT.sub("0", word.lower())


class WordTable:
    """The words of a training text, by frequency, and pre-trained vectors, if any.

    A word's row in the learnt table is that of the word in lower case with every digit a 0, so that ``1996`` and
    ``2014``, ``The`` and ``the`` share one; its letters distinguish them again. A word that was not seen has row 0.
    Letters stand between a mark for the beginning and one for the end; of a very long word the middle is left out.

    counts: how often each was seen; folds: learnt rows by folded word; letters: rows by character.
    vectors: (n + 1, d), pre-trained, the last row zero, and the names of the n others.
    """

    def __init__(
        self, words: Sequence[str], counts: Longs, vectors: Floats | None = None, vector_names: Sequence[str] = ()
    ) -> None:
        self.words, self.counts = list(words), counts
        self.folds: dict[str, int] = {}
        for word in words:
            self.folds.setdefault(folded(word), len(self.folds) + 1)
        self.fold_counts = np.zeros(len(self.folds) + 1, np.int64)
        np.add.at(self.fold_counts, [self.folds[folded(word)] for word in words], counts)
        self.letters = {letter: row for row, letter in enumerate(sorted(set("".join(words))), MARKS)}
        self.vectors, self.vector_names = vectors, list(vector_names)
        self.seen = set(words)
        self._vector_rows = {name: row for row, name in reversed(list(enumerate(self.vector_names)))}

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]], vectors: WordVectors | None = None) -> WordTable:
        """Build the table of a training text."""
        counted = Counter(word for words in sentences for word in words).most_common()
        words, counts = [word for word, _ in counted], np.array([count for _, count in counted], np.int64)
        if vectors is None:
            return cls(words, counts)
        names = vectors.words
        table = vectors.rows_of(names)
        table = table / max(float(table.std()), 1e-12)  # so that vectors of any origin have the same scale
        return cls(words, counts, np.concatenate((table, np.zeros_like(table[:1]))).astype(np.float32), names)

    def __contains__(self, word: object) -> bool:
        return word in self.seen

    @property
    def rows(self) -> int:
        """The rows of the learnt table."""
        return len(self.folds) + 1

    @property
    def alphabet(self) -> int:
        """The rows of the table of letters."""
        return MARKS + len(self.letters)

    def row(self, word: str) -> int:
        """Return the row of a word in the learnt table."""
        return self.folds.get(folded(word), UNSEEN)

    def vector_row(self, word: str) -> int:
        """Return the row of a word's vector: as spelled, else in lower case, else folded; else the row of zeros."""
        for form in (word, word.lower(), folded(word)):
            if form in self._vector_rows:
                return self._vector_rows[form]
        return len(self.vector_names)

    def spelled(self, word: str) -> list[int]:
        """Return the rows of a word's letters."""
        if len(word) > HEAD + TAIL:
            word = word[:HEAD] + word[-TAIL:]
        return [BEGINS, *(self.letters.get(letter, UNSEEN_LETTER) for letter in word), ENDS]

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays to be saved."""
        arrays: dict[str, Array] = dict(zip(("names", "names_offsets"), packed(self.words), strict=True))
        arrays["counts"] = self.counts
        if self.vectors is not None:
            arrays["vector_names"], arrays["vector_names_offsets"] = packed(self.vector_names)
            arrays["vectors"] = self.vectors
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], dimensions: int | None) -> WordTable:
        """Build the table from saved arrays; dimensions: of the vectors expected, or None for none."""
        words, counts = unpacked(arrays["names"], arrays["names_offsets"], "names"), arrays["counts"]
        if counts.dtype != np.int64 or counts.shape != (len(words),) or not words or counts.min() < 1:
            raise ValueError(f"counts are {counts.dtype} {counts.shape}, not one of at least 1 for {len(words)} words")
        if len(set(words)) != len(words):
            raise ValueError("a word appears twice")
        if dimensions is None:
            return cls(words, counts)
        names, vectors = (
            unpacked(arrays["vector_names"], arrays["vector_names_offsets"], "vector_names"),
            arrays["vectors"],
        )
        if vectors.dtype != np.float32 or vectors.shape != (len(names) + 1, dimensions):
            raise ValueError(f"vectors are {vectors.dtype} {vectors.shape}, not float32 {(len(names) + 1, dimensions)}")
        return cls(words, counts, vectors, names)


@dataclass(frozen=True, slots=True)
class DistinctWords:
    """The D distinct words of some sentences.

    rows: (D,) of the learnt table. vectors: (D, d) pre-trained, or None. spelled: (D, L) letters. sizes: (D,) how many
    letters each word has.
    """

    rows: Tensor
    vectors: Tensor | None
    spelled: Tensor
    sizes: Tensor

    def take(self, indices: Tensor) -> DistinctWords:
        """Return some of the words, in this order, with as few letters of padding as they need."""
        sizes = self.sizes[indices]
        spelled = self.spelled[indices, : int(sizes.max()) if len(sizes) else 0]
        return DistinctWords(
            self.rows[indices], None if self.vectors is None else self.vectors[indices], spelled, sizes
        )


def distinct_words(
    sentences: Sequence[Sequence[str]], words: WordTable, device: torch.device
) -> tuple[DistinctWords, list[Longs]]:
    """Return the distinct words of sentences, the short ones first for little padding, and each word's number."""
    distinct = sorted({word for sentence in sentences for word in sentence}, key=lambda word: (len(word), word))
    number = {word: index for index, word in enumerate(distinct)}
    letters = [words.spelled(word) for word in distinct]
    sizes = np.array([len(each) for each in letters], np.int64)
    spelled = np.full((len(letters), int(sizes.max(initial=0))), NO_LETTER, np.int64)
    for row, each in enumerate(letters):
        spelled[row, : len(each)] = each
    vectors = None
    if words.vectors is not None:
        vectors = torch.from_numpy(words.vectors[[words.vector_row(word) for word in distinct]]).to(device)
    rows = longs([words.row(word) for word in distinct], device)
    ids = [np.array([number[word] for word in sentence], np.int64) for sentence in sentences]
    return DistinctWords(rows, vectors, longs(spelled, device), longs(sizes, device)), ids


@dataclass(frozen=True, slots=True)
class TaggerNetwork:
    """The network of a tagger.

    rows: of the word table, words: its units; letters: of the alphabet, each a vector of ``letter_units``; characters:
    "cnn", "lstm" or "none", what reads them into ``spelling`` units; units: of each direction; tags: K; context: units
    of an embedder; cell: of the layers that read words.
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
    cell: str = "lstm"

    @property
    def directions(self) -> tuple[str, ...]:
        """The names of the directions that are read."""
        return ("ahead", "behind") if self.both_ways else ("ahead",)

    @property
    def inputs(self) -> int:
        """The units of a word's vector."""
        return self.words + (0 if self.characters == "none" else self.spelling)

    @property
    def hidden(self) -> int:
        """The inputs of the output layer: 512 for two directions of 256."""
        return self.units * len(self.directions)

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of all weights."""
        shapes: dict[str, tuple[int, ...]] = {"table": (self.rows, self.words)}
        if self.characters != "none":
            shapes["letters"] = (self.letters, self.letter_units)
        if self.characters == "cnn":
            shapes |= {"filters": (self.spelling, self.letter_units, WINDOW), "filter_bias": (self.spelling,)}
        if self.characters == "lstm":
            for way in ("ahead", "behind"):
                shapes |= layer_shapes("lstm", self.letter_units, self.spelling // 2, f"spelling.{way}.")
        for layer in range(self.layers):
            for way in self.directions:
                inputs = self.hidden if layer else self.inputs + self.context
                shapes |= layer_shapes(self.cell, inputs, self.units, f"layer{layer}.{way}.")
        shapes |= {"output": (self.tags, self.hidden), "bias": (self.tags,)}
        if self.crf:
            shapes |= {"start": (self.tags,), "moves": (self.tags, self.tags), "end": (self.tags,)}
        return shapes

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Draw tables by their width and matrices by Glorot's rule, open the forget gates, and set the rest to zero."""
        layers: dict[str, str] = {}
        for name, part in weights.items():
            if name in ("table", "letters"):
                reach = math.sqrt(3 / part.shape[1])
            elif part.dim() > 1 and name != "moves":
                gates = GATES[self.cell] if "layer" in name else 4 if "spelling" in name else 1
                reach = math.sqrt(6 / (part[0].numel() + len(part) // gates))
            else:
                reach = 0.0
            part.uniform_(-reach, reach, generator=generator)
            if name.endswith("input_bias"):
                layer = name.removesuffix(".input_bias")
                layers[layer] = self.cell if layer.startswith("layer") else "lstm"
        for layer, cell in layers.items():
            initialise_cell(cell, weights, layer, forget_bias=1.0)

    def word_vectors(self, weights: Weights, words: DistinctWords) -> Tensor:
        """Return the vectors of words, (D, inputs)."""
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
        words: Tensor,
        lengths: Tensor,
        dropout: Dropout = NO_DROPOUT,
        generator: torch.Generator | None = None,
        context: Tensor | None = None,
    ) -> Tensor:
        """Return (B, T, K) scores of the tags of each word; those of padding are arbitrary.

        vectors: (D, inputs) of distinct words; words: (T, B) their numbers; lengths: (B,); context: (T, B, n), an
        embedder's vectors of each word in its sentence.
        """
        x = embedding(words, vectors) if len(vectors) else vectors.new_zeros(*words.shape, self.inputs)
        if context is not None:
            x = torch.cat((x, context), 2)
        back = reversing(lengths, len(x))
        for layer, share in enumerate([dropout.input, *[dropout.between] * (self.layers - 1)]):
            x = _dropped(x, share, generator)
            x = self._layer(weights, f"layer{layer}", x, back)
        x = _dropped(x, dropout.output, generator)
        return linear(x, weights["output"], weights["bias"]).transpose(0, 1)

    def chain(self, weights: Weights) -> Chain:
        """Return the scores of transitions, zeros without a CRF."""
        if self.crf:
            return Chain(weights["start"], weights["moves"], weights["end"])
        zeros = torch.zeros_like(weights["bias"])
        return Chain(zeros, zeros.expand(self.tags, -1), zeros)

    def _layer(self, weights: Weights, name: str, x: Tensor, back: Tensor) -> Tensor:
        out = [run_from_zeros(self.cell, weights, f"{name}.ahead", x)]
        if self.both_ways:
            out.append(turned(run_from_zeros(self.cell, weights, f"{name}.behind", turned(x, back)), back))
        return torch.cat(out, 2)

    def _spellings(self, weights: Weights, spelled: Tensor, sizes: Tensor) -> Tensor:
        """Return vectors of words by their letters, (D, spelling)."""
        spelled = spelled[:, : int(sizes.max())]
        there = torch.arange(spelled.shape[1], device=spelled.device) < sizes[:, None]
        x = embedding(spelled, weights["letters"]) * there[:, :, None]
        if self.characters == "cnn":
            found = conv1d(x.transpose(1, 2), weights["filters"], weights["filter_bias"], padding=WINDOW // 2)
            return torch.tanh(found.masked_fill(~there[:, None], -torch.inf).amax(2))
        x, back = x.transpose(0, 1), reversing(sizes, spelled.shape[1])
        last = (sizes - 1)[None, :, None].expand(1, -1, self.spelling // 2)
        ends = [
            run_from_zeros("lstm", weights, f"spelling.{way}", each).gather(0, last)[0]
            for way, each in (("ahead", x), ("behind", turned(x, back)))
        ]
        return torch.cat(ends, 1)


def _dropped(x: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    return x * locked_mask(x.shape[1], x.shape[2], share, x, generator) if share else x


class SentenceReader:
    """The scores of ``TaggerNetwork.emissions`` of LSTMs on a CPU, several times as fast, for sentences of these words.

    Sentences are sorted, the longest first, so that at every step those that still have a word are the first few: a
    step reads exactly them, and no padding. From the end it is the same in reverse, and a sentence joins, with a state
    of zero, at its own last word. Products with the input are computed once per distinct word in the first layer, and
    looked up; those with the state are one matrix product per step for all sentences, and the gates a kernel.

    vectors: (D, inputs), as of ``word_vectors``. N: words in all.
    """

    def __init__(self, network: TaggerNetwork, weights: Weights, vectors: Tensor) -> None:
        self._network, self._weights = network, weights
        self._tables = [self._products(0, way, vectors) for way in network.directions]

    def emissions(self, numbers: Tensor, lengths: Tensor) -> Tensor:
        """Return (B, T, K), zero for padding. numbers: (T, B) of words; lengths: (B,), at least 1, falling."""
        network, weights = self._network, self._weights
        there = torch.arange(len(numbers))[:, None] < lengths
        counts = there.sum(1).tolist()
        words, x = numbers[there], torch.empty(0)
        for layer in range(network.layers):
            out = torch.empty(len(words), network.hidden)
            for number, way in enumerate(network.directions):
                table = self._products(layer, way, x) if layer else self._tables[number]
                part = out[:, number * network.units : (number + 1) * network.units]
                recurrent = weights[f"layer{layer}.{way}.recurrent"]
                read_lstm(table, None if layer else words, counts, recurrent, part, from_end=way == "behind")
            x = out
        scores = torch.zeros(*numbers.shape, network.tags)
        scores[there] = linear(x, weights["output"], weights["bias"])
        return scores.transpose(0, 1)

    def _products(self, layer: int, way: str, x: Tensor) -> Tensor:
        """Return products with the input, (…, 4H), both biases included."""
        w_x, _, b_x, b_h = (self._weights[f"layer{layer}.{way}.{part}"] for part in PARTS)
        return torch.addmm(b_x + b_h, x, w_x.t())
