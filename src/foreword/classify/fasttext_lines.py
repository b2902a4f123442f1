"""What fastText's classifier has learnt, and how it answers: a dictionary, two matrices, lines in, labels out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foreword.io.fasttext import HIERARCHICAL, SOFTMAX, Settings
from foreword.kernels.fasttext_lines import MARKED, LineReader, make_line_room, rows_of_words
from foreword.kernels.fasttext_model import Answers, make_best, predict_lines
from foreword.kernels.skipgram import Paths
from foreword.kernels.table import StringTable
from foreword.text.block import Block

END = b"</s>"
PREFIX = b"__label__"

Labels = NDArray[np.int32]
Floats = NDArray[np.float32]


class Dictionary(NamedTuple):
    """Words first, then labels with their prefix, each by falling count."""

    words: list[bytes]
    counts: NDArray[np.int64]
    labels: int

    @property
    def size(self) -> int:
        """How many entries are words."""
        return len(self.words) - self.labels


@dataclass(frozen=True)
class LineModel:
    """settings: under fastText's names; pools: 1 for the mean of a line's rows, 3 for mean, largest and smallest;
    distinct: whether a row counts once in a line however often it comes.

    inputs: float32 (rows, stride), stride a multiple of sixteen; outputs: float32 (labels, pools * stride).
    prune: int32 (n, 2), which buckets of n-grams have a row and which, or None where all have.
    """

    settings: Settings
    dictionary: Dictionary
    inputs: Floats
    outputs: Floats
    prune: NDArray[np.int32] | None = None
    pools: int = 1
    distinct: bool = False
    prefix: bytes = PREFIX

    @property
    def label_names(self) -> list[str]:
        names = self.dictionary.words[self.dictionary.size :]
        return [name.removeprefix(self.prefix).decode("utf-8", "surrogateescape") for name in names]

    @cached_property
    def reader(self) -> LineReader:
        return line_reader(self.settings, self.dictionary, self.prune, self.prefix, self.distinct)

    @cached_property
    def answers(self) -> Answers:
        tree = self.settings.loss == HIERARCHICAL
        left, right = label_tree(self.label_counts) if tree else ([-1], [-1])
        return Answers(
            self.pools, self.outputs.reshape(-1), self.dictionary.labels, tree, np.array(left, np.int32),
            np.array(right, np.int32), self.settings.loss == SOFTMAX,
        )  # fmt: skip

    @property
    def label_counts(self) -> list[int]:
        counts: list[int] = self.dictionary.counts[self.dictionary.size :].tolist()
        return counts

    def predict(self, block: Block, k: int, threshold: float) -> tuple[Labels, Floats]:
        """The k likeliest labels of each line (lines, k), −1 where there are fewer, and their probabilities."""
        stride = self.inputs.shape[1]
        labels, probabilities = np.empty((len(block), k), np.int32), np.empty((len(block), k), np.float32)
        longest = int((block.stops - block.starts).max(initial=0))
        predict_lines(
            block.data, block.starts, block.stops, self.reader, self.inputs.reshape(-1), stride, self.answers, k,
            threshold, make_line_room(longest, self.reader, stride), np.empty(3 * stride, np.float32),
            make_best(self.dictionary.labels, k), labels, probabilities,
        )  # fmt: skip
        return labels, probabilities


def joined(words: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Words in one buffer, and where each begins."""
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in words], out=offsets[1:])
    return np.frombuffer(b"".join(words), np.uint8), offsets


def line_reader(
    settings: Settings, dictionary: Dictionary, prune: NDArray[np.int32] | None, prefix: bytes, distinct: bool
) -> LineReader:
    table = StringTable()
    words = dictionary.words
    none = np.zeros(len(words), np.int64)
    numbers = table.add(*joined(words), none, none)
    entries = np.full(table.size, -1, np.int32)
    entries[numbers[::-1]] = np.arange(len(words))[::-1]  # where a word stands twice the first counts
    end = words.index(END) if END in words else -1
    kept, ranks, rows = _kept_buckets(settings.bucket, prune)
    least, most = (settings.minn, settings.maxn) if settings.bucket else (0, 0)
    reader = LineReader(
        table.slots, table.arena, table.starts, entries, dictionary.size, end, least, most, settings.wordNgrams,
        settings.bucket, prune is not None, kept, ranks, rows, np.zeros(1, np.int32),
        np.zeros(len(words) + 1, np.int64), np.frombuffer(prefix, np.uint8), distinct,
    )  # fmt: skip
    ngrams, starts = _ngrams_of_words(reader, words[: dictionary.size])
    return reader._replace(ngrams=ngrams, ngram_starts=starts)


def _ngrams_of_words(reader: LineReader, words: list[bytes]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The rows of the n-grams of every known word, so that lines need not hash them again."""
    data, offsets = joined(words)
    starts = np.zeros(len(words) + 1, np.int64)
    if not reader.most:
        return np.zeros(1, np.int32), starts
    room = np.empty(int((np.diff(offsets) + 2).sum()) * (reader.most - reader.least + 1) + 1, np.int32)
    used = rows_of_words(reader, data, offsets, room, starts, 0, len(words), np.empty(MARKED, np.uint8))
    return room[: used + 1].copy(), starts


def _kept_buckets(
    buckets: int, prune: NDArray[np.int32] | None
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32]]:
    """A bit for each bucket that has a row, how many come before each 64 bits, and the rows in the buckets' order."""
    size = -(-max(1, buckets) // 64) if prune is not None else 1
    bits = np.zeros(size * 64, bool)
    rows = np.zeros(1, np.int32)
    if prune is not None and len(prune):
        order = np.argsort(prune[:, 0], kind="stable")
        bits[prune[:, 0]] = True
        rows = np.ascontiguousarray(prune[order, 1])
    kept = np.packbits(bits, bitorder="little").view(np.uint64)
    counts = bits.reshape(size, 64).sum(axis=1)
    return kept, (np.cumsum(counts) - counts).astype(np.int32), rows


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
