"""What word2vec, fastText and GloVe share: training in rounds, a state that can be saved between two of them, padded
matrices, and the tables that training draws from.

In each round every thread trains on the next piece of its own share of the corpus. Between rounds all threads rest, so
that the learning rate can fall, progress be reported and the state be saved.
"""

from __future__ import annotations

import heapq
import math
import mmap
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np

from foreword.arrays import Array, Doubles, Floats, Longs, Reals, UInts, ULongs, frozen
from foreword.checks import check_corpus, check_numbers
from foreword.errors import DivergedError, InputError
from foreword.native.parallel import ordered_map
from foreword.native.simd import LANES
from foreword.protocols import Meter, Parts, Step
from foreword.storage.joined import offsets_of
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.vectors.kernels_training import COUNT_LANES, AliasTable, Paths, count_ids, fill_aliases, fill_rows

Model = TypeVar("Model")

Work = Callable[[int, int, int, float], None]
"""``work(thread, begin, stop, rate)``: train on ``ids[begin:stop]``."""

SENTENCE = 10_000
"""Words read at a time; windows do not cross the boundary. gensim's limit too."""

PIECE = 100_000
"""Tokens that a thread trains on in a round: a twentieth of a second of work."""

PARTS = 4
"""Parts of a piece where threads share the work."""

APART = 128
"""Bytes between the numbers that two threads write to: two cache lines, for they are fetched in pairs."""

LINE = 64
"""Bytes of a cache line."""

HUGE = 4 << 20
"""From this many bytes on a matrix is in huge pages."""

STEPS = 200
"""A small corpus is cut finer, so that the rate still falls in about 200 steps."""

_FULL = 1 << 32


class Rounds:
    """The pieces of each thread, round by round. tokens: those of all epochs; total: how many rounds.

    whole: whether pieces end where documents do, so that no window is cut.
    """

    def __init__(self, corpus: Corpus, epochs: int, threads: int, *, whole: bool = False) -> None:
        self._begins = corpus.offsets if whole else None
        self._edges = np.linspace(0, len(corpus.ids), threads + 1).astype(np.int64)
        share = int(np.diff(self._edges).max(initial=1))
        self._piece = max(1, min(PIECE, share * epochs // STEPS + 1))
        self._in_epoch = max(1, -(-share // self._piece))
        self._threads = threads
        self._size = len(corpus.ids)
        self.tokens = self._size * epochs
        self.total = self._in_epoch * epochs

    def done(self, number: int) -> int:
        """Return the tokens read before round ``number``."""
        epoch, piece = divmod(number, self._in_epoch)
        return epoch * self._size + min(self._size, piece * self._piece * self._threads)

    def run(self, number: int, work: Work, rate: float, pool: ThreadPoolExecutor | None) -> None:
        """Call ``work`` for every thread, in parallel. A thread takes the next part when it has finished the last, so
        that a delayed one gets fewer, and none waits for long at the end of a round.
        """
        skip = number % self._in_epoch * self._piece
        pieces = [
            (thread, int(min(begin + skip, stop)), int(min(begin + skip + self._piece, stop)))
            for thread, (begin, stop) in enumerate(zip(self._edges[:-1], self._edges[1:], strict=True))
        ]
        if pool is None:
            thread, begin, stop = pieces[0]
            work(thread, self._edge(begin), self._edge(stop), rate)
            return
        waiting = deque(part for _, begin, stop in pieces for part in _parts(begin, stop))

        def work_until_empty(thread: int) -> None:
            while True:
                try:
                    begin, stop = waiting.popleft()
                except IndexError:
                    return
                work(thread, self._edge(begin), self._edge(stop), rate)

        for _ in pool.map(work_until_empty, range(self._threads)):
            pass

    def _edge(self, place: int) -> int:
        """Return where a piece really begins: there, or at the next beginning of a document."""
        if self._begins is None:
            return place
        return int(self._begins[np.searchsorted(self._begins, place)])

    @contextmanager
    def pool(self) -> Iterator[ThreadPoolExecutor | None]:
        """Start the threads once for all rounds; None if there is one only."""
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
    """The state of training: the next round, and for each thread its random numbers and its report.

    random: uint64 (threads, 1); report: float64 (threads, 3): log-likelihood, pairs and centre words so far.
    """

    round: int
    random: ULongs
    report: Doubles

    @classmethod
    def begin(cls, threads: int, rng: np.random.Generator) -> Self:
        """Return the state before the first round."""
        seeds = rng.integers(0, 1 << 63, (threads, 1), np.int64).astype(np.uint64)
        return cls(0, _apart(seeds), _apart(np.zeros((threads, 3))))

    @classmethod
    def from_arrays(cls, round: object, arrays: Mapping[str, Array], threads: int) -> Self:
        """Restore a saved state; raise a ValueError if it is malformed."""
        if not isinstance(round, int) or round < 0:
            raise ValueError("expected the number 'round'")
        random = checked(arrays, "random", np.uint64, (threads, 1))
        report = checked(arrays, "report", np.float64, (threads, 3))
        return cls(round, _apart(random), _apart(report))

    def steps(self, rounds: Rounds, work: Work, first_rate: float) -> Iterator[Step]:
        """Run the remaining rounds; the rate falls linearly to a ten-thousandth of the first."""
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
    """Copy numbers so that each thread's have cache lines of their own: threads that write to one line wait for it."""
    spaced = np.zeros((len(values), APART // values.itemsize), values.dtype)
    view: Array = spaced[:, : values.shape[1]]
    view[:] = values
    return view


def checked(arrays: Mapping[str, Array], name: str, dtype: type[np.generic], shape: tuple[int, ...]) -> Array:
    """Return an array of a saved model; raise a ValueError unless it has this dtype and shape."""
    array = arrays.get(name)
    if array is None or array.dtype != dtype or array.shape != shape:
        raise ValueError(f"expected the array {name!r}, {np.dtype(dtype)} {shape}")
    return array


def check_training(model: object, **most: int) -> None:
    """Raise a SettingError unless the settings of training are in their ranges. most: the largest value of others."""
    for name, limit in {"dimensions": 1 << 16, "epochs": 1 << 20, "threads": 1 << 10, **most}.items():
        if name != "epochs" or getattr(model, name) is not None:
            check_numbers(model, name, whole=True, least=1, most=limit)


def check_rates(model: object) -> None:
    """Raise a SettingError unless the learning rate, if there is one, is positive and ``sample`` is not negative."""
    if getattr(model, "rate", None) is not None:
        check_numbers(model, "rate", above=0)
    if getattr(model, "sample", None) is not None:
        check_numbers(model, "sample")


def untrained(cls: type[Model], parts: Parts, names: Iterable[str], state: str) -> tuple[Model, Vocab, Any]:
    """Return a model with the settings ``names`` of a folder, the vocabulary, and the setting that holds the state of
    training; raise a ValueError if one of them is missing or another is there.
    """
    settings: dict[str, Any] = dict(parts.settings)
    progress = settings.pop(state, None)
    if parts.vocab is None or set(settings) != set(names):
        raise ValueError(f"expected the settings of a {cls.__name__} and a vocabulary")
    model = cls(**settings)
    model._check_settings()  # type: ignore[attr-defined]
    return model, parts.vocab, progress


def counts_to_train(corpus: Corpus, vocab: Vocab | None, threads: int) -> Longs:
    """Count the words of a corpus; raise an InputError unless its vocabulary is that of a model already begun."""
    check_corpus(corpus)
    corpus.check_ids()
    if vocab is not None and corpus.vocab != vocab:
        raise InputError("the text was turned into ids with another vocabulary than the one training began with")
    counts = word_counts(corpus, threads)
    if vocab is None:
        check_enough_words(counts)
    return counts


def run(steps: Iterable[Step], meter: Meter | None) -> None:
    """Train to the end, reporting the loss of each step."""
    for step in steps:
        if meter:
            meter(f"training, loss {step.loss:.4f}", step.done, step.total)


def padded(dimensions: int) -> int:
    """Return the stride of a row: a multiple of the kernels' SIMD width."""
    return -(-dimensions // LANES) * LANES


def widened(matrix: Floats) -> Floats:
    """Copy a matrix with its rows padded by zeros."""
    wide = zero_rows(len(matrix), padded(matrix.shape[1]))
    wide[:, : matrix.shape[1]] = matrix
    return wide


def zero_rows(rows: int, stride: int) -> Floats:
    """Return zeros (rows, stride) for fast access to scattered rows: the first is aligned to a cache line, and large
    matrices are in huge pages, which NumPy does not request for zeros.
    """
    size = 4 * rows * stride
    if size < HUGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        plain = np.zeros(size + LINE, np.uint8)
        skipped = -plain.ctypes.data % LINE
        return plain[skipped : skipped + size].view(np.float32).reshape(rows, stride)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.float32).reshape(rows, stride)


def random_rows(
    rng: np.random.Generator, rows: int, dimensions: int, reach: float, *, threads: int = 1, zeros: int = 0
) -> Floats:
    """Draw rows uniformly from ±reach, padded by zeros, followed by ``zeros`` rows of zeros. The same at any number of
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
    """Count each id of the corpus; zero for ``<unk>`` and ``</s>``, which get no vector."""
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
    """Raise an InputError unless there are two different words."""
    if np.count_nonzero(counts) < 2:
        raise InputError("the text has fewer than two different words that are frequent enough: nothing to learn")


# From counts to sampling tables


def alias_table(weights: Reals) -> AliasTable:
    """Return a table from which one random number draws an index in proportion to its weight, in constant time.

    A. Walker, "An efficient method for generating discrete random variables with general distributions" (1977).
    """
    n = len(weights)
    shares = np.asarray(weights, np.float64) * (n / weights.sum())
    accept, other = np.empty(n), np.empty(n, np.int32)
    fill_aliases(shares, accept, other, np.empty(n, np.int32), np.empty(n, np.int32))
    return AliasTable(_scaled(accept), other)


MANY_WORDS, WORDS_READ, FEWEST_EPOCHS, MOST_EPOCHS = 10_000_000, 5_000_000, 5, 30
"""Words of a large text; words that are read of a smaller one, all epochs together; and limits of its epochs."""


def sample_for(sample: float | None, words: int) -> float:
    """Return the threshold of frequent words: the one given, or the default for a text with that number of words.

    word2vec's 1e-4 is for large texts. Of Tiny Shakespeare, 296,000 tokens, it leaves so little that in five epochs all
    vectors stay alike: the mean cosine of two words is 0.99; with 1e-3 and the epochs below it is 0.3.
    """
    if sample is not None:
        return sample
    return 1e-4 if words >= MANY_WORDS else 1e-3


def epochs_for(epochs: int | None, words: int) -> int:
    """Return the number of epochs: the one given, or as many as a small text needs."""
    if epochs is not None:
        return epochs
    return max(FEWEST_EPOCHS, min(MOST_EPOCHS, WORDS_READ // max(1, words)))


def keep_shares(counts: Longs, sample: float) -> UInts:
    """Return how often each word is read, of 2³²: with a share f of the text, ``√(t/f) + t/f`` of the times.

    A word that was never counted is never read; ``sample=0`` reads all others always.
    """
    shares = counts / max(1, counts.sum())
    kept = (counts > 0).astype(np.float64)
    if sample > 0:
        seen = shares > 0
        kept[seen] = np.minimum(1, np.sqrt(sample / shares[seen]) + sample / shares[seen])
    return _scaled(kept)


def _scaled(shares: Doubles) -> UInts:
    return np.minimum(shares * _FULL, _FULL - 1).astype(np.uint32)


def huffman_paths(counts: Longs) -> Paths:
    """Return the paths of the Huffman tree over the counted words: n words have n − 1 inner nodes, of which n − 2 is
    the root.

    A turn is 1 where word2vec's code has a 0, that is, where the score's sigmoid should be high.
    """
    words = np.flatnonzero(counts)
    parent, right = _tree(counts[words].tolist())
    steps: list[list[tuple[int, int]]] = [[] for _ in counts]
    leaves = len(words)
    for leaf, word in enumerate(words.tolist()):
        node = leaf
        while parent[node] >= 0:
            steps[word].append((parent[node] - leaves, 0 if right[node] else 1))
            node = parent[node]
        steps[word].reverse()
    flat = [step for path in steps for step in path]
    offsets = offsets_of(steps)
    nodes = np.array([node for node, _ in flat], np.int32)
    return Paths(nodes, np.array([turn for _, turn in flat], np.uint8), offsets)


def _tree(counts: list[int]) -> tuple[list[int], list[bool]]:
    """Return the parents of leaves and inner nodes (−1 for the root), and which are the right, heavier child."""
    heap = [(count, leaf) for leaf, count in enumerate(counts)]
    heapq.heapify(heap)
    size = max(1, 2 * len(counts) - 1)
    parent, right = [-1] * size, [False] * size
    for node in range(len(counts), size):
        light, lightest = heapq.heappop(heap)
        heavy, heavier = heapq.heappop(heap)
        parent[lightest] = parent[heavier] = node
        right[heavier] = True
        heapq.heappush(heap, (light + heavy, node))
    return parent, right
