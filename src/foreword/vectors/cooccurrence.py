"""Co-occurrence counts: which words are near which, and how near. GloVe learns from them.

Two words at most ``window`` apart in a document count 1/distance for each other, so that the sum for a pair of words is

    X_ij = Σ 1 / |p − q|        over the positions p of word i and q of word j with 0 < |p − q| ≤ window

``<unk>`` is skipped, and ``</s>`` ends every window. X is symmetric, so a word's row has only the words up to its own.

Sums are made of whole numbers. Up to a window of 22 the unit is one over the least common multiple of all distances,
which makes every 1/distance a whole number and the sums exact; beyond, it is a power of two, and 1/distance is rounded
to 32 bits after the point. So the result is the same to the last bit however the text is split: with a limit on memory,
each part of the text is counted separately and written to disk, and the rows are added at the end.

J. Pennington, R. Socher and C. Manning, "GloVe: global vectors for word representation" (2014).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from queue import SimpleQueue
from typing import Any, NamedTuple, Self

import numpy as np

from foreword.arrays import Array, Doubles, Floats, Ints, Longs
from foreword.checks import check_number
from foreword.errors import InputError
from foreword.native.parallel import ordered_map
from foreword.protocols import Json, Meter, Parts
from foreword.storage.scratch import Scratch
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.vectors import kernels_glove as kernels

LONGEST_WINDOW = 1 << 10
EXACT_WINDOW = 22
"""The least common multiple of 1 to 22 has 28 bits, that of 1 to 23 has 33."""

PIECE, PAIR_BYTES = 1 << 18, 12
"""Pairs of a piece, if the limit allows: 3 MB."""

PART_TOKENS = 1 << 30
"""The largest part of a text, whatever the limit: positions are 32 bits."""

TOKEN_BYTES = 8
"""Bytes per token of a part while it is counted: its id and its position."""


@dataclass(frozen=True)
class Cooccurrence:
    """How often words are near each other, weighted by their distance.

    offsets: int64 (V + 1,); columns: int32 (pairs,); counts: float32 (pairs,). Word i has ``X[i, columns[k]] =
    counts[k]`` for k from ``offsets[i]`` to ``offsets[i + 1]``, columns rising and none above i. All may be mapped.
    """

    vocab: Vocab
    window: int
    offsets: Longs
    columns: Ints
    counts: Floats

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        window: int = 15,
        *,
        memory: int | None = None,
        scratch: str | None = None,
        threads: int = 1,
        meter: Meter | None = None,
    ) -> Self:
        """Count a corpus; the same at any limit and any number of threads.

        memory: bytes that counting may take besides the vocabulary; what does not fit goes to unnamed files in
        ``scratch``, by default the system's folder for such. None is no limit.
        """
        check_number("window", window, whole=True, least=1, most=LONGEST_WINDOW)
        corpus.check_ids()
        space = Scratch(memory, scratch)
        counter = _Counter(corpus, window, space, threads, meter)
        lengths = [np.zeros(1, np.int64)]
        columns, counts = space.array_list(np.int32), space.array_list(np.float32)
        for piece in counter.pieces():
            lengths.append(piece.lengths)
            columns.append(piece.columns)
            counts.append((piece.sums / counter.unit).astype(np.float32))
        offsets = np.cumsum(np.concatenate(lengths))
        return cls(corpus.vocab, window, offsets, columns.joined(), counts.joined())

    def __len__(self) -> int:
        """Return the number of ordered pairs (i, j) that were seen."""
        filled = np.flatnonzero(np.diff(self.offsets))  # a row that has its own word ends with it
        return 2 * len(self.columns) - int(np.count_nonzero(self.columns[self.offsets[filled + 1] - 1] == filled))

    def __getitem__(self, words: tuple[str, str]) -> float:
        """Return X of two words; raise a KeyError for a word that is not in the vocabulary."""
        low, high = sorted(self._id(word) for word in words)
        begin, stop = self.offsets[high : high + 2].tolist()
        place = begin + int(np.searchsorted(self.columns[begin:stop], low))
        return float(self.counts[place]) if place < stop and self.columns[place] == low else 0.0

    @cached_property
    def totals(self) -> Doubles:
        """The sum of each word's row, float64 (V,)."""
        sums = np.zeros(len(self.vocab))
        kernels.add_up(self.offsets, self.columns, self.counts, sums)
        return sums

    def probability(self, word: str, given: str) -> float:
        """Return P(word | given): the word's share of all co-occurrences of ``given``; 0 if it has none."""
        total = float(self.totals[self._id(given)])
        return self[word, given] / total if total else 0.0

    def matrix(self) -> Any:
        """Return all of X, both halves, as a scipy.sparse CSR matrix (V, V)."""
        from scipy.sparse import csr_matrix, diags

        size = len(self.vocab)
        half = csr_matrix((self.counts, self.columns, self.offsets), (size, size))
        return csr_matrix(half + half.T - diags(half.diagonal()))

    def _id(self, word: str) -> int:
        if word not in self.vocab:
            raise KeyError(word)
        return self.vocab.id(word)

    def to_parts(self) -> Parts:
        """Return counts and vocabulary for a model folder."""
        settings: dict[str, Json] = {"window": self.window}
        arrays: dict[str, Array] = {"offsets": self.offsets, "columns": self.columns, "counts": self.counts}
        return Parts(settings, arrays, self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build counts from a model folder."""
        window = parts.settings.get("window")
        if parts.vocab is None or not isinstance(window, int):
            raise ValueError("expected a vocabulary and the window")
        check_number("window", window, whole=True, least=1, most=LONGEST_WINDOW)
        offsets, columns, counts = (parts.arrays[name] for name in ("offsets", "columns", "counts"))
        if offsets.dtype != np.int64 or columns.dtype != np.int32 or counts.dtype != np.float32:
            raise ValueError("expected int64 offsets, int32 columns and float32 counts")
        if offsets.shape != (len(parts.vocab) + 1,) or columns.ndim != 1 or columns.shape != counts.shape:
            raise ValueError("the arrays do not fit the vocabulary")
        if offsets[0] != 0 or offsets[-1] != len(columns) or (offsets[1:] < offsets[:-1]).any():
            raise ValueError("the offsets must rise from 0 to the number of pairs")
        if not kernels.rows_are_sound(offsets, columns, counts):
            raise ValueError("a row's words must rise up to its own, and its counts be positive")
        return cls(parts.vocab, window, offsets, columns, counts)


class _Piece(NamedTuple):
    """Consecutive rows: the number of pairs of each, the pairs' words and their sums."""

    lengths: Longs
    columns: Ints
    sums: Longs


class _Counter:
    """Counts the rows of a corpus. Sums are multiples of 1 / unit."""

    def __init__(self, corpus: Corpus, window: int, scratch: Scratch, threads: int, meter: Meter | None) -> None:
        self.corpus = corpus
        self.unit, self.weights = weights_of(window, len(corpus.ids))
        self.window = window
        self.scratch = scratch
        self.threads = threads
        self.meter = meter
        self.words = len(corpus.vocab)
        # Each thread has a buffer to write to, and up to twice as many pieces wait their turn.
        fitting = scratch.fits(PAIR_BYTES * (3 * threads + 1), least=1 << 10)
        self.capacity = max(self.words, min(PIECE, fitting))
        self._buffers: SimpleQueue[_Buffer] = SimpleQueue()
        for _ in range(threads):
            self._buffers.put(_Buffer(kernels.make_sums(self.words), self.capacity))

    def pieces(self) -> Iterator[_Piece]:
        """Yield all rows, in order."""
        tokens = len(self.corpus.ids)
        step = min(PART_TOKENS, self.scratch.fits(TOKEN_BYTES))
        if tokens <= step:
            return self._rows_of_part(0, tokens)
        return self._merged([(begin, min(begin + step, tokens)) for begin in range(0, tokens, step)])

    def _rows_of_part(self, begin: int, stop: int) -> Iterator[_Piece]:
        """Yield the rows of all windows whose middle is in ``ids[begin:stop]``; windows may extend beyond that."""
        ids, vocab = self.corpus.ids, self.corpus.vocab
        unknown = -1 if vocab.unknown is None else vocab.unknown
        low = kernels.reach_back(ids, begin, vocab.end, unknown, self.window)
        high = kernels.reach_on(ids, stop, vocab.end, unknown, self.window)
        text = np.empty(high - low + 3, np.int32)
        text[0] = kernels.END
        first = kernels.write_text(ids, low, begin, vocab.end, unknown, text, 1)
        last = kernels.write_text(ids, begin, stop, vocab.end, unknown, text, first)
        text[kernels.write_text(ids, stop, high, vocab.end, unknown, text, last)] = kernels.END
        starts, positions = np.empty(self.words + 2, np.int64), np.empty(last - first, np.int32)
        kernels.sort_positions(text, first, last, starts, positions)
        occurrences = np.diff(starts[:-1])
        most = np.minimum(np.arange(1, self.words + 1), occurrences * (2 * self.window))

        def work(rows: tuple[int, int]) -> _Piece:
            return self._write(
                rows,
                lambda sums, *out: kernels.count_rows(text, positions, starts, *rows, self.weights, sums, *out),
            )

        for rows, piece in self._spread(work, most):
            yield piece
            if self.meter:
                self.meter("counting pairs", begin + int(starts[rows[1]]), len(ids))

    def _merged(self, parts: list[tuple[int, int]]) -> Iterator[_Piece]:
        """Count every part separately, write it to disk, and then add up each row over the parts."""
        columns, sums = self.scratch.growing(1, np.int32), self.scratch.growing(1, np.int64)
        offsets = self.scratch.growing(self.words + 1, np.int64)
        for begin, stop in parts:
            lengths = [np.array([columns.rows])]
            for piece in self._rows_of_part(begin, stop):
                columns.append(piece.columns)
                sums.append(piece.sums)
                lengths.append(piece.lengths)
            offsets.append(np.cumsum(np.concatenate(lengths))[None])
        runs = columns.finish().reshape(-1), sums.finish().reshape(-1), offsets.finish()
        most = np.zeros(self.words, np.int64)
        for run in runs[2]:
            most += np.diff(run)
        most = np.minimum(np.arange(1, self.words + 1), most)

        def work(rows: tuple[int, int]) -> _Piece:
            return self._write(rows, lambda sums, *out: kernels.merge_rows(*runs, *rows, sums, *out))

        for rows, piece in self._spread(work, most):
            yield piece
            if self.meter:
                self.meter("adding up pairs", rows[1], self.words)

    def _spread(self, work: Any, most: Longs) -> Iterator[tuple[tuple[int, int], _Piece]]:
        """Call ``work`` on ranges of rows that fit into a buffer; most: the largest possible number of pairs of each
        row.
        """

        def both(rows: tuple[int, int]) -> tuple[tuple[int, int], _Piece]:
            return rows, work(rows)

        return ordered_map(both, _ranges(most, self.capacity), self.threads)

    def _write(self, rows: tuple[int, int], fill: Any) -> _Piece:
        buffer = self._buffers.get()
        ends = np.empty(rows[1] - rows[0], np.int64)
        written = fill(buffer.sums, buffer.columns, buffer.counts, ends)
        piece = _Piece(np.diff(ends, prepend=0), buffer.columns[:written].copy(), buffer.counts[:written].copy())
        self._buffers.put(buffer)
        return piece


class _Buffer:
    """Workspace and output of a thread."""

    def __init__(self, sums: kernels.Sums, pairs: int) -> None:
        self.sums = sums
        self.columns = np.empty(pairs, np.int32)
        self.counts = np.empty(pairs, np.int64)


def _ranges(most: Longs, capacity: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that have no more than ``capacity`` pairs together."""
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(most)))
    first = 0
    while first < len(most):
        last = int(np.searchsorted(before, before[first] + capacity, side="right")) - 1
        yield first, last
        first = last


def weights_of(window: int, tokens: int) -> tuple[int, Longs]:
    """Return how many units make 1, and what a pair counts at each distance, int64 (window + 1,); 0 at distance 0.

    No sum can overflow: a word has at most 2 Σ 1/distance around each of its positions.
    """
    unit = math.lcm(*range(1, window + 1)) if window <= EXACT_WINDOW else 1 << 32
    around = 2 * sum(1 / distance for distance in range(1, window + 1))
    if tokens * around * unit >= 2**62:
        unit = 1 << int(math.log2(2**62 / (tokens * around)))
    weights = [0] + [round(Fraction(unit, distance)) for distance in range(1, window + 1)]
    return unit, np.array(weights, np.int64)


def check_pairs(cooccurrence: Cooccurrence) -> None:
    """Raise an InputError if there are no pairs."""
    if not len(cooccurrence.columns):
        raise InputError("no two words of the text are near each other: nothing to learn")
