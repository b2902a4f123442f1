"""A compressed index, which counts any run of tokens and is smaller than the text: the FM-index.

It holds the Burrows-Wheeler transform of the text, the token before each suffix in sorted order, in a form that tells
how often a token occurs in any beginning of it. That alone finds the suffixes that begin with a run, one token after
another from its last to its first (P. Ferragina and G. Manzini, "Opportunistic data structures with applications",
FOCS 2000). The transform brings equal tokens together, so that it compresses well; it is kept as a Huffman-shaped
wavelet tree over compressed bits (``kernels_compressed``). There is no text and no suffix array in it: runs are
counted, not found. It is made for small vocabularies, bytes above all.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cache
from math import comb
from pathlib import Path
from typing import Any, Self

import numpy as np

from foreword.arrays import Bytes, Ids, Longs
from foreword.checks import check_ids
from foreword.errors import InputError
from foreword.infinigram import kernels_compressed as kernels
from foreword.infinigram.index import LONGEST_SEGMENT, check_text, sorted_text
from foreword.infinigram.suffixes import token_counts
from foreword.ngram.kernels_query import SPARE, pack_bits, packed_bytes
from foreword.notebook import ShownInNotebook
from foreword.protocols import Meter, Parts
from foreword.tokens.corpus import Corpus, id_type
from foreword.tokens.vocab import Vocab

LARGEST = 1 << 16
"""Tokens of the vocabulary, at most: every one that occurs takes a node of the tree."""


@dataclass(frozen=True, slots=True)
class HuffmanTree:
    """The tree of symbols with these counts; arrays as in ``kernels_compressed``. size: the number of all bits."""

    codes: Longs
    lengths: Longs
    children: Longs
    nodes: Longs
    size: int

    @classmethod
    def of(cls, counts: Longs) -> Self:
        """Join the two rarest trees until one is left; number its inner nodes from the root, left before right."""
        heap: list[tuple[int, int, Any]] = [(count, n, n) for n, count in enumerate(counts.tolist()) if count]
        heapq.heapify(heap)
        order = len(counts)
        while len(heap) > 1:
            one, other = heapq.heappop(heap), heapq.heappop(heap)
            heapq.heappush(heap, (one[0] + other[0], order, (one, other)))
            order += 1
        codes, lengths = np.zeros((2, len(counts)), np.int64)
        children, nodes = list[list[int]](), list[list[int]]()
        waiting, first, before = [(heap[0], 0, 0, -1)], 0, 0
        while waiting:
            (count, _, tree), code, depth, parent = waiting.pop()
            if not isinstance(tree, tuple):
                codes[tree], lengths[tree] = code, depth
                continue
            if parent >= 0:
                children[parent][code >> (depth - 1)] = len(nodes)
            left, right = tree
            waiting += [(right, code | 1 << depth, depth + 1, len(nodes)), (left, code, depth + 1, len(nodes))]
            nodes.append([first, before])
            children.append([0, 0])
            first, before = first + count, before + right[0]
        return cls(codes, lengths, np.array(children), np.array(nodes), first)


class CompressedIndex(ShownInNotebook):
    """Counts of every run of tokens in a corpus; runs are arrays of ids.

    counts: int64 (tokens + 1,), how often each symbol occurs. classes, offsets, samples: as in ``kernels_compressed``.
    """

    def __init__(self, counts: Longs, classes: Bytes, offsets: Bytes, samples: Longs, vocab: Vocab) -> None:
        self.counts, self.classes, self.offsets, self.samples, self.vocab = counts, classes, offsets, samples, vocab
        for array in (classes, offsets, samples):
            array.flags.writeable = False  # as a mapped one is, so that the kernels are compiled once
        tree = HuffmanTree.of(counts)
        starts = np.concatenate((np.zeros(1, np.int64), counts.cumsum()))
        self._arrays: tuple[Any, ...] = (
            classes, offsets, samples, *_tables(), tree.codes, tree.lengths, tree.children, tree.nodes, starts,
            tree.size,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"CompressedIndex({self.tokens:,} tokens, {len(self):,} documents, {self.nbytes:,} bytes)"

    def __len__(self) -> int:
        """Return the number of documents."""
        return int(self.counts[self.vocab.end + 1]) - 1

    @property
    def tokens(self) -> int:
        """The number of tokens, ``</s>`` after each document included."""
        return int(self.counts.sum()) - 2

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        return sum(array.nbytes for array in (self.counts, self.classes, self.offsets, self.samples))

    @classmethod
    def build(
        cls, corpus: Corpus, *, memory: int | None = None, folder: Path | None = None, meter: Meter | None = None
    ) -> Self:
        """Index a corpus; memory, folder: as in ``SuffixIndex.build``, for sorting alone."""
        scratch = check_text(corpus, memory, folder)
        for name, size, most in ("vocabulary", len(corpus.vocab), LARGEST), ("text", len(corpus.ids), LONGEST_SEGMENT):
            if size > most:
                raise InputError(f"the {name} has {size:,} tokens: expected {most:,} at most in a compressed index")
        text, suffixes = sorted_text(corpus, scratch, None if folder is None else folder / "0", meter)
        symbols: Ids = np.empty(len(text) + 1, id_type(len(corpus.vocab) + 1))
        kernels.transform(text, suffixes, symbols)
        counts = token_counts(symbols, len(corpus.vocab) + 1).astype(np.int64)
        return cls(counts, *_compressed(symbols, HuffmanTree.of(counts)), corpus.vocab)

    def count(self, run: Ids) -> int:
        """Return how often a run of tokens occurs."""
        ids = np.asarray(run, np.int64)
        check_ids(ids, len(self.vocab))
        return int(kernels.count(ids + 1, *self._arrays)) if len(ids) else self.tokens + 1

    # Saving

    def to_parts(self) -> Parts:
        """Return the arrays and the vocabulary to save."""
        names = ("counts", "classes", "offsets", "samples")
        return Parts({}, {name: getattr(self, name) for name in names}, self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Rebuild the index from what was saved."""
        counts, classes, offsets, samples = (parts.arrays[name] for name in ("counts", "classes", "offsets", "samples"))
        if parts.vocab is None or counts.dtype != np.int64 or counts.shape != (len(parts.vocab) + 1,):
            raise ValueError("expected a vocabulary, and a count for each of its tokens")
        if (counts < 0).any() or counts[0] != 1 or counts.sum() >= 1 << 32 or np.count_nonzero(counts) < 2:
            raise ValueError("the counts of the tokens are not those of a text")
        blocks = HuffmanTree.of(counts).size // kernels.BLOCK + 1
        if classes.dtype != np.uint8 or classes.shape != (packed_bytes(blocks, kernels.CLASS_BITS),):
            raise ValueError("the classes of the blocks do not fit the counts")
        if samples.dtype != np.int64 or samples.shape != (2, (blocks - 1) // kernels.SAMPLED + 1):
            raise ValueError("the samples of the blocks do not fit the counts")
        if offsets.dtype != np.uint8 or offsets.ndim != 1 or len(offsets) < SPARE:
            raise ValueError("the offsets of the blocks are of another type")
        return cls(counts, classes, offsets, samples, parts.vocab)


@cache
def _tables() -> tuple[Longs, Longs]:
    """Return the binomials, and the bits of an offset of each class."""
    size = kernels.BLOCK + 1
    binomials = np.array([[comb(n, k) for k in range(size)] for n in range(size)])
    return binomials, np.array([(comb(kernels.BLOCK, k) - 1).bit_length() for k in range(size)])


def _compressed(symbols: Ids, tree: HuffmanTree) -> tuple[Bytes, Bytes, Longs]:
    """Return classes, offsets and samples of the bits of all nodes; ``symbols`` is overwritten."""
    blocks = tree.size // kernels.BLOCK + 1
    bits = np.zeros(packed_bytes(blocks, kernels.BLOCK), np.uint8)
    spare, waiting = np.empty_like(symbols), [(0, 0, len(symbols), 0)]
    while waiting:
        node, begin, end, depth = waiting.pop()
        part, first = symbols[begin:end], int(tree.nodes[node, 0])
        middle = begin + kernels.split(part, spare, tree.codes, depth, bits, first)
        for turn, (start, stop) in enumerate(((begin, middle), (middle, end))):
            if tree.children[node, turn]:
                waiting.append((int(tree.children[node, turn]), start, stop, depth + 1))
    binomials, widths = _tables()
    classes, samples = np.empty(blocks, np.uint8), np.empty((2, (blocks - 1) // kernels.SAMPLED + 1), np.int64)
    size = kernels.classify(bits, widths, classes, samples)
    offsets = np.zeros(packed_bytes(size, 1), np.uint8)
    kernels.enumerate_blocks(bits, binomials, widths, classes, offsets)
    packed = np.empty(packed_bytes(blocks, kernels.CLASS_BITS), np.uint8)
    pack_bits(classes, kernels.CLASS_BITS, packed)
    return packed, offsets, samples
