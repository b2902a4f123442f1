"""What fastText's classifier has learnt, and how it answers: a dictionary, two matrices, lines in, labels out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from foreword.arrays import Bytes, Floats, Ints, Longs, ULongs
from foreword.fasttext.files import HIERARCHICAL, SOFTMAX, QuantizedMatrix, Settings
from foreword.fasttext.kernels_lines import LineReader, LineRoom, make_line_room
from foreword.fasttext.kernels_model import Answers, make_best, predict_lines
from foreword.text.block import Block
from foreword.tokens.strings import StringTable
from foreword.vectors.kernels_skipgram import Paths
from foreword.vectors.words import frozen

END = b"</s>"
PREFIX = b"__label__"


KEEP_ROOM = 1 << 20
"""Room for lines up to so many bytes is kept for the next call."""


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Words first, then labels with their prefix, each by falling count.

    data, offsets: entry i is ``data[offsets[i]:offsets[i + 1]]``; counts: int64; labels: how many entries are labels.
    """

    data: Bytes
    offsets: Longs
    counts: Longs
    labels: int

    @classmethod
    def of(cls, words: Sequence[bytes], counts: Longs, labels: int) -> Self:
        return cls(*joined(words), counts, labels)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dictionary):
            return NotImplemented
        pairs = ((self.data, other.data), (self.offsets, other.offsets), (self.counts, other.counts))
        return self.labels == other.labels and all(np.array_equal(one, two) for one, two in pairs)

    __hash__ = None  # type: ignore[assignment]

    @property
    def size(self) -> int:
        """How many entries are words."""
        return len(self.offsets) - 1 - self.labels

    @property
    def words(self) -> list[bytes]:
        """All entries."""
        return self._entries(0)

    @property
    def label_words(self) -> list[bytes]:
        return self._entries(self.size)

    def _entries(self, first: int) -> list[bytes]:
        blob, ends = self.data.tobytes(), self.offsets[first:].tolist()
        return [blob[start:stop] for start, stop in itertools.pairwise(ends)]

    def table(self) -> ULongs:
        """The rows of a table in which entry i has the number i + 1."""
        return StringTable.over(self.data, self.offsets).slots


@dataclass(frozen=True)
class LineModel:
    """settings: under fastText's names; pools: 1 for the mean of a line's rows, 3 for mean, largest and smallest;
    distinct: whether a row counts once in a line however often it comes.

    inputs: float32 (rows, stride), stride a multiple of sixteen; outputs: float32 (labels, pools * stride).
    prune: int32 (n, 2), which buckets of n-grams have a row and which, or None where all have.
    slots: the dictionary's table, if it was kept; else it is made when it is first needed.
    weights: float32 (rows,), how much each row counts in the mean, or None where all count the same.
    codes: what the inputs and the outputs were quantised to, where they were; only a ``.ftz`` is written from it.
    """

    settings: Settings
    dictionary: Dictionary
    inputs: Floats
    outputs: Floats
    prune: Ints | None = None
    pools: int = 1
    distinct: bool = False
    slots: ULongs | None = None
    codes: tuple[QuantizedMatrix | None, QuantizedMatrix | None] = (None, None)
    prefix: bytes = PREFIX
    weights: Floats | None = None

    @cached_property
    def label_names(self) -> list[str]:
        names = self.dictionary.label_words
        return [name.removeprefix(self.prefix).decode("utf-8", "surrogateescape") for name in names]

    @cached_property
    def table(self) -> ULongs:
        return self.dictionary.table() if self.slots is None else self.slots

    @cached_property
    def reader(self) -> LineReader:
        return line_reader(self.settings, self.dictionary, self.table, self.prune, self.prefix, self.distinct)

    @cached_property
    def _rooms(self) -> list[LineRoom]:
        """Room that no thread is using."""
        return []

    @cached_property
    def answers(self) -> Answers:
        tree = self.settings.loss == HIERARCHICAL
        left, right = label_tree(self.label_counts) if tree else ([-1], [-1])
        return Answers(
            self.pools, self.outputs.reshape(-1), self.dictionary.labels, tree, np.array(left, np.int32),
            np.array(right, np.int32), self.settings.loss == SOFTMAX, self.weights is not None,
            np.ones(1, np.float32) if self.weights is None else self.weights,
        )  # fmt: skip

    @property
    def label_counts(self) -> list[int]:
        counts: list[int] = self.dictionary.counts[self.dictionary.size :].tolist()
        return counts

    def predict(self, block: Block, k: int, threshold: float) -> tuple[Ints, Floats]:
        """The k likeliest labels of each line (lines, k), −1 where there are fewer, and their probabilities."""
        stride = self.inputs.shape[1]
        labels, probabilities = np.empty((len(block), k), np.int32), np.empty((len(block), k), np.float32)
        room = self._room(int((block.stops - block.starts).max(initial=0)))
        answers = self.answers._replace(outputs=frozen(self.answers.outputs), weights=frozen(self.answers.weights))
        predict_lines(
            frozen(block.data), block.starts, block.stops, self.reader, frozen(self.inputs.reshape(-1)), stride,
            answers, k, threshold, room, np.empty(3 * stride, np.float32), make_best(self.dictionary.labels, k),
            labels, probabilities,
        )  # fmt: skip
        if room.size <= KEEP_ROOM:
            self._rooms.append(room)
        return labels, probabilities

    def _room(self, longest: int) -> LineRoom:
        """Room for lines of that size: what another call left, with the n-grams of words in it, or new."""
        try:
            room = self._rooms.pop()
        except IndexError:
            return make_line_room(longest, self.reader, self.inputs.shape[1])
        return room if room.size >= longest else make_line_room(longest, self.reader, self.inputs.shape[1])


def rarity(rows: Ints, lines: int, size: int) -> Floats:
    """How much each row counts: log((n + 2) / (f + 1)) where f of n lines have it. rows: those of all lines, each once
    a line. What every line has counts next to nothing, what none has most.
    """
    found = np.bincount(rows, minlength=size)
    return np.log((lines + 2) / (found + 1)).astype(np.float32)


def joined(words: Sequence[bytes]) -> tuple[Bytes, Longs]:
    """Words in one buffer, and where each begins."""
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in words], out=offsets[1:])
    return np.frombuffer(b"".join(words), np.uint8), offsets


def line_reader(
    settings: Settings,
    dictionary: Dictionary,
    slots: ULongs,
    prune: Ints | None,
    prefix: bytes,
    distinct: bool,
) -> LineReader:
    kept, ranks, rows = _kept_buckets(settings.bucket, prune)
    least, most = (settings.minn, settings.maxn) if settings.bucket else (0, 0)
    return LineReader(
        frozen(slots), frozen(dictionary.data), frozen(dictionary.offsets), dictionary.size, _place_of_end(dictionary),
        least, most, settings.wordNgrams, settings.bucket, prune is not None, kept, ranks, rows,
        np.frombuffer(prefix, np.uint8), distinct,
    )  # fmt: skip


def _place_of_end(dictionary: Dictionary) -> int:
    """The entry of ``</s>``, or −1; it is nearly always the first, for no word is more frequent."""
    offsets, mark = dictionary.offsets, np.frombuffer(END, np.uint8)
    for entry in np.flatnonzero(np.diff(offsets) == len(END)).tolist():
        if np.array_equal(dictionary.data[offsets[entry] : offsets[entry + 1]], mark):
            return int(entry)
    return -1


def _kept_buckets(buckets: int, prune: Ints | None) -> tuple[ULongs, Ints, Ints]:
    """A bit for each bucket that has a row, how many come before each 64 bits, and the rows in the buckets' order."""
    size = -(-max(1, buckets) // 64) if prune is not None else 1
    kept, counts, rows = np.zeros(size, np.uint64), np.zeros(size, np.int32), np.zeros(1, np.int32)
    if prune is not None and len(prune):
        order = np.argsort(prune[:, 0], kind="stable")
        words, bits = np.divmod(prune[order, 0], 64)
        np.bitwise_or.at(kept, words, np.uint64(1) << bits.astype(np.uint64))
        counts = np.bincount(words, minlength=size).astype(np.int32)
        rows = np.ascontiguousarray(prune[order, 1])
    return kept, np.cumsum(counts, dtype=np.int32) - counts, rows


def label_tree(counts: list[int]) -> tuple[list[int], list[int]]:
    """The children of each node of fastText's Huffman tree: leaves 0 to n − 1 are the labels, the root is 2n − 2.

    Labels come with falling counts, so the two rarest nodes are always the last leaf left or the first inner node left.
    """
    n = len(counts)
    weights = [*counts, *([int(1e15)] * (n - 1))]
    left, right = [-1] * (2 * n - 1), [-1] * (2 * n - 1)
    leaf, node = n - 1, n
    for parent in range(n, 2 * n - 1):
        pair = []
        for _ in range(2):
            if leaf >= 0 and (node >= parent or weights[leaf] < weights[node]):
                pair.append(leaf)
                leaf -= 1
            else:
                pair.append(node)
                node += 1
        left[parent], right[parent] = pair
        weights[parent] = weights[pair[0]] + weights[pair[1]]
    return left, right


def label_paths(counts: list[int]) -> Paths:
    """Each label's way from the root: the inner nodes, counted from 0, and 1 where it turns right."""
    left, right = label_tree(counts)
    n = len(counts)
    steps: list[list[tuple[int, int]]] = [[] for _ in range(2 * n - 1)]
    for node in range(2 * n - 2, n - 1, -1):
        steps[left[node]] = [*steps[node], (node - n, 0)]
        steps[right[node]] = [*steps[node], (node - n, 1)]
    flat = [step for path in steps[:n] for step in path]
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(path) for path in steps[:n]], dtype=np.int64)))
    nodes = np.array([node for node, _ in flat], np.int32)
    return Paths(nodes, np.array([turn for _, turn in flat], np.uint8), offsets)
