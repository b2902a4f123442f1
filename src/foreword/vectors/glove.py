"""GloVe: vectors of words from how often each two of them stand near each other.

With X from ``vectors/cooccurrence.py``, two vectors and two biases per word, minimise over all pairs that were seen

    J = Σ f(X_ij) (w_i·w̃_j + b_i + b̃_j − log X_ij)² / 2        f(x) = min(1, (x / x_max)^alpha)

by AdaGrad: a step of rate·∂J for each number, divided by the root of 1 plus the squares of all its steps so far. The
vector of a word is w + w̃, for the two differ only in their initial values.

J. Pennington, R. Socher and C. Manning, "GloVe: global vectors for word representation" (2014). What is done
differently: records are not shuffled on disk. Each epoch permutes the words, a block is all pairs of some of them, and
only the block is shuffled: it stays in the cache, and nothing but X is stored. A pair of words is trained in both
orders at once. ``glove_step`` in ``plain.py`` is the plain version of the kernel.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, Self, TypedDict, Unpack, get_args

import numpy as np

from foreword.arrays import Array, Floats, Ints, Longs
from foreword.checks import check_choice, check_corpus, check_numbers
from foreword.errors import InputError, SettingError
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, Meter, Parts, Step
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import LearntVocab
from foreword.vectors.cooccurrence import LONGEST_WINDOW, Cooccurrence, check_pairs
from foreword.vectors.kernels_glove import RECORD, gather_block, residual_sums, train_block
from foreword.vectors.training import check_enough_words, check_training, checked, padded, run, untrained, word_counts
from foreword.vectors.wordvectors import WordVectors

Combine = Literal["sum", "words"]

BLOCK = 1 << 15
"""Pairs in a block: half a megabyte of records, and the rows of a few hundred words. Shuffling all pairs of four
million words together took twice the time and gave vectors that were no better."""

MOST_RATE = 100
"""A step is divided by the root of its own square among others, so it never exceeds 1, and no rate makes training
diverge; but squares of far larger ones would be infinite and no number would change."""

LINE = 16
"""Floats in a cache line."""

WORD, CONTEXT, WORD_SQUARES, CONTEXT_SQUARES = range(4)
"""The parts of a word's row."""


class CountingSettings(TypedDict, total=False):
    """Limits of counting. memory: bytes; what does not fit goes to temporary files in the folder ``scratch``."""

    memory: int | None
    scratch: str | None


class GloVe(ShownInNotebook, LearntVocab):
    """Word vectors by GloVe.

    x_max: count from which a pair has full weight; 100 suits corpora of billions of words. alpha: exponent of the
    weighting function below ``x_max``.
    combine: "sum" gives w + w̃ as a word's vector, "words" w alone.
    threads: with one the same seed gives the same bits; with more, threads write to the same rows without locking,
    which is faster and no longer repeatable. Counting gives the same at any number.
    counting: ``memory``, the memory limit of counting in bytes (None: no limit); what does not fit goes to temporary
    files in ``scratch``, by default the system's temporary folder.
    """

    def __init__(
        self,
        dimensions: int = 100,
        *,
        window: int = 15,
        x_max: float = 10.0,
        alpha: float = 0.75,
        epochs: int = 15,
        rate: float = 0.05,
        combine: Combine = "sum",
        seed: int = 0,
        threads: int = 1,
        **counting: Unpack[CountingSettings],
    ) -> None:
        self.dimensions = dimensions
        self.window = window
        self.x_max = x_max
        self.alpha = alpha
        self.epochs = epochs
        self.rate = rate
        self.combine = combine
        self.seed = seed
        self.threads = threads
        self.memory, self.scratch = _counting_limits(**counting)
        self._epoch, self._block = 0, 0
        self._source: Json = None

    def __repr__(self) -> str:
        return f"GloVe({self.dimensions}, window={self.window}, x_max={self.x_max:g}, epochs={self.epochs})"

    @property
    def words_(self) -> Floats:
        """w, float32 (V, dimensions)."""
        return self._rows[:, WORD, : self.dimensions]

    @property
    def contexts_(self) -> Floats:
        """w̃, float32 (V, dimensions)."""
        return self._rows[:, CONTEXT, : self.dimensions]

    @property
    def biases_(self) -> Floats:
        """The biases b and b̃, float32 (V, 2)."""
        return np.stack((self._rows[:, WORD, self.dimensions], self._rows[:, CONTEXT, self.dimensions + 1]), axis=1)

    @property
    def vectors(self) -> WordVectors:
        """The counted words and their vectors."""
        matrix = self.words_ + self.contexts_ if self.combine == "sum" else self.words_
        return WordVectors.of_vocab(self.vocab, matrix)

    # Learning

    def fit(self, source: Corpus | Cooccurrence, *, valid: Corpus | None = None, meter: Meter | None = None) -> Self:
        """Count and train to the end. ``valid`` is ignored: nothing here is tuned."""
        run(self.train(source, meter=meter), meter)
        return self

    def count(self, corpus: Corpus, meter: Meter | None = None) -> Cooccurrence:
        """Count the pairs of words that ``fit`` learns from."""
        self._check_settings()
        check_corpus(corpus)
        corpus.check_ids()
        check_enough_words(word_counts(corpus))
        return Cooccurrence.of(
            corpus, self.window, memory=self.memory, scratch=self.scratch, threads=self.threads, meter=meter
        )

    def train(self, source: Corpus | Cooccurrence, *, meter: Meter | None = None) -> Iterator[Step]:
        """Train, yielding a step about every ten thousand pairs; a Step's ``done`` and ``total`` are pairs of words,
        its loss the mean J of a pair, as Stanford's program shows it.

        A model that was saved between two steps, and loaded, resumes where it was, and with one thread ends in the
        same bits as if it had never stopped. The counts are not saved with it: pass the same text or counts again.
        A text is counted before this returns; ``meter`` reports that.
        """
        self._check_settings()
        return self._steps(source if isinstance(source, Cooccurrence) else self.count(source, meter))

    def _steps(self, X: Cooccurrence) -> Iterator[Step]:
        check_pairs(X)
        if X.window != self.window:
            raise SettingError(f"window={self.window}, but the pairs were counted within {X.window} words")
        if self._vocab is None:
            self._initialise(X)
        elif X.vocab != self._vocab or self._source != _fingerprint(X):
            raise InputError("this is not the text that training began with")
        total = len(X.columns) * self.epochs
        while self._epoch < self.epochs:
            blocks = _Blocks(X, self.seed, self._epoch)
            if self._block >= len(blocks):
                raise InputError(f"the model is damaged: it stopped in block {self._block} of {len(blocks)}")
            work, base = self._work(X, blocks), self._epoch * len(X.columns)
            for first in range(self._block, len(blocks), self.threads):
                last = min(first + self.threads, len(blocks))
                loss, steps = _in_parallel(work, first, last).tolist()
                if not math.isfinite(loss):
                    raise InputError(f"the loss is NaN or infinite in epoch {self._epoch + 1}: the model is damaged")
                self._epoch, self._block = (self._epoch + 1, 0) if last == len(blocks) else (self._epoch, last)
                yield Step(base + blocks.pairs_before(last), total, loss / steps, self.rate)

    def _initialise(self, X: Cooccurrence) -> None:
        d = self.dimensions
        numbers = np.random.default_rng(self.seed).random((len(X.vocab), 2, d + 1), np.float32)
        numbers = (numbers - np.float32(0.5)) / np.float32(d)
        numbers[X.totals == 0] = 0
        ones = np.ones((len(X.vocab), d + 1), np.float32)
        self._rows = _rows_of([numbers[:, 0], numbers[:, 1], ones, ones])
        self._source = _fingerprint(X)
        self._vocab = X.vocab

    def _work(self, X: Cooccurrence, blocks: _Blocks) -> Callable[[int], Array]:
        """Return what a thread does with a block: gather it, shuffle it, train, and report its loss and its steps."""
        buffers = [np.empty(RECORD * blocks.largest, np.int32) for _ in range(self.threads)]
        rows, width = self._rows.reshape(-1), self._rows.shape[2]

        def work(number: int) -> Array:
            records, report = buffers[number % self.threads], np.zeros(2)
            values = records.view(np.float32)
            size = gather_block(
                blocks.words_of(number), X.offsets, X.columns, X.counts, float(self.x_max), float(self.alpha),
                blocks.seeds[number : number + 1], records, values,
            )  # fmt: skip
            train_block(records, values, size, rows, width, np.float32(self.rate), report)
            return report

        return work

    def _check_settings(self) -> None:
        check_training(self, window=LONGEST_WINDOW)
        check_numbers(self, "seed", whole=True, most=(1 << 63) - 1)
        check_choice(self, "combine", get_args(Combine))
        check_numbers(self, "rate", above=0, most=MOST_RATE)
        check_numbers(self, "x_max", "alpha", above=0)

    # Saving

    def to_parts(self) -> Parts:
        """Return the whole state of training, so that a saved model is also a checkpoint."""
        vocab, d = self.vocab, self.dimensions
        state: dict[str, Json] = {"epoch": self._epoch, "block": self._block, "source": self._source}
        arrays: dict[str, Array] = {
            name: np.ascontiguousarray(self._rows[:, kind][:, _learnt(kind, d)]) for kind, name in enumerate(_ARRAYS)
        }
        return Parts({**{name: getattr(self, name) for name in _SETTINGS}, "state": state}, arrays, vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a model from a folder, trained or in the middle of training."""
        model, vocab, state = untrained(cls, parts, _SETTINGS, "state")
        if not isinstance(state, dict):
            raise ValueError("expected the state of training")
        epoch, block, source = (state.get(name) for name in ("epoch", "block", "source"))
        if not (isinstance(epoch, int) and isinstance(block, int) and epoch >= 0 and block >= 0):
            raise ValueError("expected the numbers 'epoch' and 'block'")
        shape = (len(vocab), model.dimensions + 1)
        model._rows = _rows_of([checked(parts.arrays, name, np.float32, shape) for name in _ARRAYS])
        model._epoch, model._block, model._source = epoch, block, source
        model._vocab = vocab
        return model


_SETTINGS = ("dimensions", "window", "x_max", "alpha", "epochs", "rate", "combine", "seed", "threads")
_ARRAYS = ("words", "contexts", "word_squares", "context_squares")
"""Each float32 (V, dimensions + 1), the bias last."""


def _counting_limits(memory: int | None = None, scratch: str | None = None) -> tuple[int | None, str | None]:
    return memory, scratch


def _learnt(kind: int, dimensions: int) -> Longs:
    """Return the columns of vector and bias in one of the four parts of a row: a word's bias comes before the constant
    one, a context's after it.
    """
    return np.append(np.arange(dimensions), dimensions + kind % 2)


def _rows_of(parts: Sequence[Floats]) -> Floats:
    """Join the four parts, each (V, d + 1), to the rows of ``vectors/kernels_glove.py``, (V, 4, width)."""
    d = parts[0].shape[1] - 1
    rows = _aligned((len(parts[0]), 4, padded(d + 2)))
    rows[:, :2], rows[:, 2:] = 0, 1
    for kind, part in enumerate(parts):
        rows[:, kind, _learnt(kind, d)] = part
        rows[:, kind, d + 1 - kind % 2] = 1 if kind < WORD_SQUARES else np.inf
    return rows


def _aligned(shape: tuple[int, ...]) -> Floats:
    """Allocate an array that begins at a cache line, as then all its rows do."""
    size = math.prod(shape)
    buffer = np.empty(size + LINE, np.float32)  # not np.zeros, which requests no huge pages
    skip = -(buffer.ctypes.data // buffer.itemsize) % LINE
    return buffer[skip : skip + size].reshape(shape)


class _Blocks:
    """The blocks of an epoch: the words permuted, cut into parts of equally many pairs. seeds: of their shuffles."""

    def __init__(self, X: Cooccurrence, seed: int, epoch: int) -> None:
        rng = np.random.default_rng((seed, epoch))
        lengths = np.diff(X.offsets)
        self._order = rng.permutation(np.flatnonzero(lengths)).astype(np.int32)
        self._before = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[self._order])))
        pairs = len(X.columns)
        cuts = np.linspace(0, pairs, -(-pairs // BLOCK) + 1)
        self._edges = np.unique(np.searchsorted(self._before, cuts))
        self.largest = int(np.diff(self._before[self._edges]).max())
        self.seeds = rng.integers(0, 1 << 63, len(self), np.int64).astype(np.uint64)

    def __len__(self) -> int:
        return len(self._edges) - 1

    def words_of(self, block: int) -> Ints:
        """Return the words of a block."""
        return self._order[self._edges[block] : self._edges[block + 1]]

    def pairs_before(self, block: int) -> int:
        """Return the number of pairs in earlier blocks."""
        return int(self._before[self._edges[block]])


def _in_parallel(work: Callable[[int], Array], first: int, last: int) -> Array:
    """Call ``work`` for each block, all in parallel, and add up their reports."""
    if last - first == 1:
        return work(first)
    with ThreadPoolExecutor(last - first) as pool:
        total: Array = np.sum(list(pool.map(work, range(first, last))), axis=0)
    return total


def _fingerprint(X: Cooccurrence) -> Json:
    """Return enough to recognise another text's pairs: their number, and a checksum of the number of each word."""
    return [len(X.columns), zlib.crc32(np.ascontiguousarray(X.offsets).data)]


@dataclass(frozen=True, slots=True)
class Residuals:
    """Residuals w_i·w̃_j + b_i + b̃_j − log X_ij.

    pairs: their number, both orders; rms: the root of the mean square; weighted: the same, weighted by f.
    """

    pairs: int
    rms: float
    weighted: float


def residuals(model: GloVe, X: Cooccurrence, *, least: float = 0.0) -> Residuals:
    """Return the residuals of pairs with X_ij ≥ ``least``; with ``least=model.x_max``, of the frequent ones."""
    if X.vocab != model.vocab:
        raise InputError("the pairs were counted with another vocabulary than the model's")
    sums, rows = np.zeros(4), model._rows
    residual_sums(
        rows.reshape(-1), rows.shape[2], X.offsets, X.columns, X.counts, float(model.x_max), float(model.alpha),
        float(least), sums,
    )  # fmt: skip
    pairs, squares, weights, weighted = sums.tolist()
    if not pairs:
        raise InputError(f"no pair has been seen {least:g} times: there is no residual")
    return Residuals(int(pairs), math.sqrt(squares / pairs), math.sqrt(weighted / weights))
