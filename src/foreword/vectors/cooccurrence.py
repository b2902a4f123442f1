"""Which words stand near which, and how near: what GloVe learns from.

Two words at most ``window`` apart in a document count 1/distance for each other, so that the sum for a pair of words is

    X_ij = Σ 1 / |p − q|        over the places p of word i and q of word j with 0 < |p − q| ≤ window

``<unk>`` is stepped over as if it were not there, and ``</s>`` ends every window. X is symmetric, so only the words up
to its own are kept in a word's row.

Sums are made of whole numbers. Up to a window of 22 the unit is one over the least common multiple of all distances,
which makes every 1/distance a whole number and the sums exact; beyond, it is a power of two, and 1/distance is rounded
to 32 bits after the point. So the result is the same to the last bit in whatever pieces the text is counted: with a
limit on memory, part after part of the text is counted by itself and put on disk, and the rows are added at the end.

J. Pennington, R. Socher and C. Manning, "GloVe: global vectors for word representation" (2014).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from queue import SimpleQueue
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Array, Doubles, Floats, Ints, Longs
from foreword.errors import InputError, SettingError
from foreword.native.parallel import ordered_map
from foreword.protocols import Json, Meter, Parts
from foreword.storage.scratch import Scratch
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.vectors import kernels_cooccurrence as kernels
from foreword.vectors.plain import pairs

T = TypeVar("T", bound=np.generic)

LONGEST_WINDOW = 1 << 10
EXACT_WINDOW = 22
"""The least common multiple of 1 to 22 has 28 bits, that of 1 to 23 has 33."""

PIECE, PAIR_BYTES = 1 << 18, 12
"""Pairs that a thread writes before it hands them on, if the limit allows: 3 MB."""

PART_TOKENS = 1 << 30
"""No part of a text has more, whatever the limit: positions are 32 bits."""

TOKEN_BYTES = 8
"""What counting keeps of each token of a part: its id and its position."""


def plain_cooccurrence(corpus: Corpus, window: int) -> dict[tuple[int, int], Fraction]:
    """X as it is defined above, slow and exact: both halves."""
    X: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for document in corpus.documents():
        words = [id for id in document.tolist() if id not in (corpus.vocab.unknown, corpus.vocab.end)]
        for p, q in pairs(len(words), window):
            X[words[p], words[q]] += Fraction(1, abs(p - q))
    return dict(X)


@dataclass(frozen=True)
class Cooccurrence:
    """How often words stood near each other, weighed by their distance.

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

        memory: how many bytes counting may take beside the vocabulary; what does not fit goes to files without a name
        in ``scratch``, by default the system's folder for such. None is no limit.
        """
        check_window(window)
        corpus.check_ids()
        room = Scratch(memory, scratch)
        counter = _Counter(corpus, window, room, threads, meter)
        lengths = [np.zeros(1, np.int64)]
        columns, counts = _Joined(room, np.int32), _Joined(room, np.float32)
        for piece in counter.pieces():
            lengths.append(piece.lengths)
            columns.append(piece.columns)
            counts.append((piece.sums / counter.unit).astype(np.float32))
        offsets = np.cumsum(np.concatenate(lengths))
        return cls(corpus.vocab, window, offsets, columns.finish(), counts.finish())

    def __len__(self) -> int:
        """How many ordered pairs (i, j) have been seen."""
        filled = np.flatnonzero(np.diff(self.offsets))  # a row that has its own word ends with it
        return 2 * len(self.columns) - int(np.count_nonzero(self.columns[self.offsets[filled + 1] - 1] == filled))

    def __getitem__(self, words: tuple[str, str]) -> float:
        """X of two words; a KeyError for a word that is not in the vocabulary."""
        low, high = sorted(self._id(word) for word in words)
        begin, stop = self.offsets[high : high + 2].tolist()
        place = begin + int(np.searchsorted(self.columns[begin:stop], low))
        return float(self.counts[place]) if place < stop and self.columns[place] == low else 0.0

    @cached_property
    def totals(self) -> Doubles:
        """The sum of each word's row, float64 (V,): all that stood near it."""
        sums = np.zeros(len(self.vocab))
        kernels.add_up(self.offsets, self.columns, self.counts, sums)
        return sums

    def probability(self, word: str, given: str) -> float:
        """P(word | given): the word's share of all that stood near ``given``; 0 where nothing did."""
        total = float(self.totals[self._id(given)])
        return self[word, given] / total if total else 0.0

    def matrix(self) -> Any:
        """The whole of X, both halves, as a scipy.sparse CSR matrix (V, V)."""
        from scipy.sparse import csr_matrix, diags

        size = len(self.vocab)
        half = csr_matrix((self.counts, self.columns, self.offsets), (size, size))
        return csr_matrix(half + half.T - diags(half.diagonal()))

    def _id(self, word: str) -> int:
        if word not in self.vocab:
            raise KeyError(word)
        return self.vocab.id(word)

    def to_parts(self) -> Parts:
        settings: dict[str, Json] = {"window": self.window}
        arrays: dict[str, Array] = {"offsets": self.offsets, "columns": self.columns, "counts": self.counts}
        return Parts(settings, arrays, self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        window = parts.settings.get("window")
        if parts.vocab is None or not isinstance(window, int):
            raise ValueError("expected a vocabulary and the window")
        check_window(window)
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
    """Some rows that follow each other: how many pairs each has, the pairs' words and their sums."""

    lengths: Longs
    columns: Ints
    sums: Longs


class _Counter:
    """A corpus on its way to rows. unit: what the sums are multiples of, or rather how many of it make 1."""

    def __init__(self, corpus: Corpus, window: int, scratch: Scratch, threads: int, meter: Meter | None) -> None:
        self.corpus = corpus
        self.unit, self.weights = weights_of(window, len(corpus.ids))
        self.window = window
        self.scratch = scratch
        self.threads = threads
        self.meter = meter
        self.words = len(corpus.vocab)
        # Each thread has a room to write to, and up to twice as many pieces wait their turn.
        fitting = scratch.fits(PAIR_BYTES * (3 * threads + 1), least=1 << 10)
        self.room = max(self.words, min(PIECE, fitting))
        self._rooms: SimpleQueue[_Room] = SimpleQueue()
        for _ in range(threads):
            self._rooms.put(_Room(kernels.make_room(self.words), self.room))

    def pieces(self) -> Iterator[_Piece]:
        """All rows, in order."""
        tokens = len(self.corpus.ids)
        step = min(PART_TOKENS, self.scratch.fits(TOKEN_BYTES))
        if tokens <= step:
            return self._rows_of_part(0, tokens)
        return self._merged([(begin, min(begin + step, tokens)) for begin in range(0, tokens, step)])

    def _rows_of_part(self, begin: int, stop: int) -> Iterator[_Piece]:
        """Rows of all windows whose middle is in ``ids[begin:stop]``; on the sides they reach over the edge."""
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
                lambda room, *out: kernels.count_rows(text, positions, starts, *rows, self.weights, room, *out),
            )

        for rows, piece in self._spread(work, most):
            yield piece
            if self.meter:
                self.meter("counting pairs", begin + int(starts[rows[1]]), len(ids))

    def _merged(self, parts: list[tuple[int, int]]) -> Iterator[_Piece]:
        """Every part counted by itself and put on disk, and then each row added up over the parts."""
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
            return self._write(rows, lambda room, *out: kernels.merge_rows(*runs, *rows, room, *out))

        for rows, piece in self._spread(work, most):
            yield piece
            if self.meter:
                self.meter("adding up pairs", rows[1], self.words)

    def _spread(self, work: Any, most: Longs) -> Iterator[tuple[tuple[int, int], _Piece]]:
        """``work`` on ranges of rows that fit a room; most: how many pairs each row may have."""

        def both(rows: tuple[int, int]) -> tuple[tuple[int, int], _Piece]:
            return rows, work(rows)

        return ordered_map(both, _ranges(most, self.room), self.threads)

    def _write(self, rows: tuple[int, int], fill: Any) -> _Piece:
        room = self._rooms.get()
        ends = np.empty(rows[1] - rows[0], np.int64)
        written = fill(room.sums, room.columns, room.counts, ends)
        piece = _Piece(np.diff(ends, prepend=0), room.columns[:written].copy(), room.counts[:written].copy())
        self._rooms.put(room)
        return piece


class _Joined(Generic[T]):
    """Arrays that come one after another and end as one: on disk if there is a limit."""

    def __init__(self, scratch: Scratch, kind: type[T]) -> None:
        self._held = [np.empty(0, kind)]
        self._file = scratch.growing(1, kind) if scratch.on_disk else None

    def append(self, piece: NDArray[T]) -> None:
        if self._file is None:
            self._held.append(piece)
        else:
            self._file.append(piece)

    def finish(self) -> NDArray[T]:
        return np.concatenate(self._held) if self._file is None else self._file.finish().reshape(-1)


class _Room:
    """What a thread works in and writes to."""

    def __init__(self, sums: kernels.Room, pairs: int) -> None:
        self.sums = sums
        self.columns = np.empty(pairs, np.int32)
        self.counts = np.empty(pairs, np.int64)


def _ranges(most: Longs, room: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that have no more than ``room`` pairs together."""
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(most)))
    first = 0
    while first < len(most):
        last = int(np.searchsorted(before, before[first] + room, side="right")) - 1
        yield first, last
        first = last


def check_window(window: int) -> None:
    if not 1 <= window <= LONGEST_WINDOW:
        raise SettingError(f"window={window}: expected a number from 1 to {LONGEST_WINDOW}")


def weights_of(window: int, tokens: int) -> tuple[int, Longs]:
    """How many units make 1, and what a pair counts at each distance, int64 (window + 1,); at distance 0 nothing.

    No sum can grow too large: a word of a text has at most 2 Σ 1/distance around each of its places.
    """
    unit = math.lcm(*range(1, window + 1)) if window <= EXACT_WINDOW else 1 << 32
    around = 2 * sum(1 / distance for distance in range(1, window + 1))
    if tokens * around * unit >= 2**62:
        unit = 1 << int(math.log2(2**62 / (tokens * around)))
    weights = [0] + [round(Fraction(unit, distance)) for distance in range(1, window + 1)]
    return unit, np.array(weights, np.int64)


def check_pairs(cooccurrence: Cooccurrence) -> None:
    if not len(cooccurrence.columns):
        raise InputError("no two words of the text stand near each other: nothing to learn")
