"""What word2vec and fastText share: training in rounds, and a state that can be put on disk between two of them.

In each round every thread trains on the next piece of its own share of the corpus. Between rounds all threads rest, so
that the learning rate can fall, progress be shown and the state be saved.
"""

from __future__ import annotations

import math
import mmap
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from foreword.arrays import Array, Doubles, Floats, Longs, ULongs
from foreword.errors import DivergedError, InputError, SettingError
from foreword.native.parallel import ordered_map
from foreword.native.simd import LANES
from foreword.protocols import Step
from foreword.tokens.corpus import Corpus
from foreword.vectors.kernels_counts import COUNT_LANES, count_ids
from foreword.vectors.kernels_rows import fill_rows
from foreword.vectors.words import frozen

Work = Callable[[int, int, int, float], None]
"""``work(thread, begin, stop, rate)``: train on ``ids[begin:stop]``."""

SENTENCE = 10_000
"""Words read at a time; windows do not reach over the edge. gensim's limit too."""

PIECE = 100_000
"""Tokens that a thread trains on in a round: a twentieth of a second of work."""

PARTS = 4
"""What a piece is cut into where threads share the work."""

APART = 128
"""Bytes between what two threads write to: two cache lines, for they are fetched in pairs."""

LINE = 64
"""Bytes of a cache line."""

HUGE = 4 << 20
"""From so many bytes on a matrix lies in huge pages."""

STEPS = 200
"""A small corpus is cut finer, so that the rate still falls in about so many steps."""


class Rounds:
    """Where each thread's pieces lie. tokens: all that will be read, every epoch counted; total: how many rounds."""

    def __init__(self, corpus: Corpus, epochs: int, threads: int) -> None:
        self._edges = np.linspace(0, len(corpus.ids), threads + 1).astype(np.int64)
        share = int(np.diff(self._edges).max(initial=1))
        self._piece = max(1, min(PIECE, share * epochs // STEPS + 1))
        self._in_epoch = max(1, -(-share // self._piece))
        self._threads = threads
        self._size = len(corpus.ids)
        self.tokens = self._size * epochs
        self.total = self._in_epoch * epochs

    def done(self, number: int) -> int:
        """Tokens read before round ``number``."""
        epoch, piece = divmod(number, self._in_epoch)
        return epoch * self._size + min(self._size, piece * self._piece * self._threads)

    def run(self, number: int, work: Work, rate: float, pool: ThreadPoolExecutor | None) -> None:
        """Call ``work`` for every thread, at the same time. Threads take their pieces in parts, as they are done with
        the last: whoever was held up gets fewer, and nobody waits for long at the end of a round.
        """
        skip = number % self._in_epoch * self._piece
        pieces = [
            (thread, int(min(begin + skip, stop)), int(min(begin + skip + self._piece, stop)))
            for thread, (begin, stop) in enumerate(zip(self._edges[:-1], self._edges[1:], strict=True))
        ]
        if pool is None:
            work(*pieces[0], rate)
            return
        waiting = deque(part for _, begin, stop in pieces for part in _parts(begin, stop))

        def take_what_is_left(thread: int) -> None:
            while True:
                try:
                    begin, stop = waiting.popleft()
                except IndexError:
                    return
                work(thread, begin, stop, rate)

        for _ in pool.map(take_what_is_left, range(self._threads)):
            pass

    @contextmanager
    def pool(self) -> Iterator[ThreadPoolExecutor | None]:
        """The threads, started once for all rounds; None where there is one."""
        if self._threads == 1:
            yield None
            return
        with ThreadPoolExecutor(self._threads) as pool:
            yield pool


def _parts(begin: int, stop: int) -> list[tuple[int, int]]:
    edges = [begin + (stop - begin) * part // PARTS for part in range(PARTS + 1)]
    return list(pairwise(edges))


@dataclass(slots=True)
class TrainingState:
    """Where training is: the round it comes to, and for each thread its random numbers and what it has reported.

    random: uint64 (threads, 1); report: float64 (threads, 3): log-likelihood, pairs and centre words so far.
    """

    round: int
    random: ULongs
    report: Doubles

    @classmethod
    def begin(cls, threads: int, rng: np.random.Generator) -> Self:
        seeds = rng.integers(0, 1 << 63, (threads, 1), np.int64).astype(np.uint64)
        return cls(0, _apart(seeds), _apart(np.zeros((threads, 3))))

    @classmethod
    def from_arrays(cls, round: object, arrays: Mapping[str, Array], threads: int) -> Self:
        if not isinstance(round, int) or round < 0:
            raise ValueError("expected the number 'round'")
        random = checked(arrays, "random", np.uint64, (threads, 1))
        report = checked(arrays, "report", np.float64, (threads, 3))
        return cls(round, _apart(random), _apart(report))

    def steps(self, rounds: Rounds, work: Work, first_rate: float) -> Iterator[Step]:
        """Run what is left; the rate falls in a straight line to a ten-thousandth of the first."""
        with rounds.pool() as pool:
            while self.round < rounds.total:
                rate = first_rate * max(1e-4, 1 - rounds.done(self.round) / max(1, rounds.tokens))
                before = self.report.copy()
                rounds.run(self.round, work, rate, pool)
                self.round += 1
                log_likelihood, pairs, _ = (self.report - before).sum(0).tolist()
                if not math.isfinite(log_likelihood):
                    raise DivergedError(f"training diverged in round {self.round}: try a rate below {first_rate}")
                yield Step(rounds.done(self.round), rounds.tokens, -log_likelihood / max(1.0, pairs), rate)


def _apart(values: Array) -> Array:
    """The same numbers, but each thread's far from the others': threads that write to one cache line wait for it."""
    room = np.zeros((len(values), APART // values.itemsize), values.dtype)
    view: Array = room[:, : values.shape[1]]
    view[:] = values
    return view


def checked(arrays: Mapping[str, Array], name: str, dtype: type[np.generic], shape: tuple[int, ...]) -> Array:
    """An array of a saved model, if it is what it should be."""
    array = arrays.get(name)
    if array is None or array.dtype != dtype or array.shape != shape:
        raise ValueError(f"expected the array {name!r}, {np.dtype(dtype)} {shape}")
    return array


def check_ranges(model: object, **limits: tuple[int, int]) -> None:
    """Each named setting must be a number within its limits."""
    for name, (least, most) in limits.items():
        value = getattr(model, name)
        if not least <= value <= most:
            raise SettingError(f"{name}={value}: expected a number from {least} to {most}")


def check_choice(model: object, name: str, choices: tuple[str, ...]) -> None:
    if getattr(model, name) not in choices:
        raise SettingError(f"{name}={getattr(model, name)!r}: expected one of {', '.join(choices)}")


def check_rates(sample: float, rate: float | None) -> None:
    if not (math.isfinite(sample) and sample >= 0):
        raise SettingError(f"sample={sample}: expected zero or a small positive number such as 1e-4")
    if rate is not None and not (math.isfinite(rate) and rate > 0):
        raise SettingError(f"rate={rate}: expected a positive number")


def padded(dimensions: int) -> int:
    """The room of a row: a multiple of what the kernels take at once."""
    return -(-dimensions // LANES) * LANES


def widened(matrix: Floats) -> Floats:
    """A copy with the rows padded by zeros."""
    wide = zero_rows(len(matrix), padded(matrix.shape[1]))
    wide[:, : matrix.shape[1]] = matrix
    return wide


def zero_rows(rows: int, stride: int) -> Floats:
    """Zeros (rows, stride), where scattered rows are soon found: the first begins a cache line, and large ones lie in
    huge pages, for which NumPy does not ask where it asks for zeros.
    """
    size = 4 * rows * stride
    if size < HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        plain = np.zeros(size + LINE, np.uint8)
        skipped = -plain.ctypes.data % LINE
        return plain[skipped : skipped + size].view(np.float32).reshape(rows, stride)
    held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    held.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(held, np.float32).reshape(rows, stride)


def random_rows(
    rng: np.random.Generator, rows: int, dimensions: int, reach: float, *, threads: int = 1, zeros: int = 0
) -> Floats:
    """Rows drawn evenly from ±reach, padded by zeros, and so many more rows of zeros. The same at any number of
    threads.
    """
    wide = zero_rows(rows + zeros, padded(dimensions))
    seed = np.uint64(rng.integers(0, 1 << 63))
    edges = np.linspace(0, rows, threads + 1).astype(int).tolist()

    def fill(piece: tuple[int, int]) -> None:
        fill_rows(wide.reshape(-1), wide.shape[1], *piece, dimensions, np.float32(reach), seed)

    for _ in ordered_map(fill, pairwise(edges), threads):
        pass
    return wide


def word_counts(corpus: Corpus, threads: int = 1) -> Longs:
    """How often each id stands in the corpus; zero for ``<unk>`` and ``</s>``, which get no vector."""
    edges = np.linspace(0, len(corpus.ids), threads + 1).astype(int).tolist()
    parts = np.zeros((threads, COUNT_LANES, len(corpus.vocab)), np.int64)

    def count(thread: int) -> None:
        count_ids(frozen(corpus.ids), edges[thread], edges[thread + 1], parts[thread])

    for _ in ordered_map(count, range(threads), threads):
        pass
    counts: Longs = parts.sum(axis=(0, 1))
    counts[corpus.vocab.end] = 0
    if corpus.vocab.unknown is not None:
        counts[corpus.vocab.unknown] = 0
    return counts


def check_enough_words(counts: Longs) -> None:
    if np.count_nonzero(counts) < 2:
        raise InputError("the text has fewer than two different words that are frequent enough: nothing to learn")
