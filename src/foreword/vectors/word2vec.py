"""word2vec: vectors of words from the words around them.

Skip-gram asks each word of a window to predict the centre, CBOW asks the mean of them. With inputs E (V, d) and outputs
U (V, d), for a centre w, an input h (a row of E, or the mean of several) and k words n drawn as noise::

    negative sampling       maximise  log σ(u_w·h) + Σ_k log σ(−u_n·h),     n ~ count^0.75
    hierarchical softmax    maximise  Σ log σ(±u_node·h)                    over the nodes of w's path in a Huffman tree

Both matrices are kept: ``inputs_`` is what people call the embedding, ``outputs_`` the other half of the model.

T. Mikolov et al., "Efficient estimation of word representations in vector space" and "Distributed representations of
words and phrases and their compositionality" (2013). What is done differently: the noise words are drawn once for a
window and shared by it (S. Ji et al., "Parallelizing word2vec in shared and distributed memory", 2016), which turns
single dot products into small matrix products. ``vectors/plain.py`` has the same steps in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from foreword.errors import ForewordError, InputError, SettingError
from foreword.kernels.simd import LANES
from foreword.kernels.skipgram import CONTEXTS, OUTPUTS, AliasTable, Paths, make_room, train_windows
from foreword.protocols import Array, Meter, Parts, Step
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.vectors.noise import alias_table, huffman_paths, keep_shares
from foreword.vectors.rounds import Rounds
from foreword.vectors.wordvectors import WordVectors

Model = Literal["skip-gram", "cbow"]
Loss = Literal["negative-sampling", "hierarchical-softmax"]

RATES: dict[str, float] = {"skip-gram": 0.025, "cbow": 0.05}
"""What word2vec starts with; the rate then falls in a straight line to a ten-thousandth of it."""

SENTENCE = 10_000
"""Words read at a time; windows do not reach over the edge. gensim's limit too."""


class Word2Vec:
    """Word vectors by skip-gram or CBOW.

    sample: words with a larger share of the text than this are read less often; 0 reads everything.
    rate: the first learning rate; None takes word2vec's own.
    threads: with one the same seed gives the same bits; with more, threads write to the same rows without waiting for
    each other, which is faster and no longer repeatable.

    inputs_, outputs_: float32 (V, dimensions); with the hierarchical softmax outputs_ has a row for each inner node.
    """

    def __init__(
        self,
        dimensions: int = 100,
        *,
        model: Model = "skip-gram",
        loss: Loss = "negative-sampling",
        window: int = 5,
        negatives: int = 5,
        sample: float = 1e-4,
        epochs: int = 5,
        rate: float | None = None,
        seed: int = 0,
        threads: int = 1,
    ) -> None:
        self.dimensions = dimensions
        self.model = model
        self.loss = loss
        self.window = window
        self.negatives = negatives
        self.sample = sample
        self.epochs = epochs
        self.rate = rate
        self.seed = seed
        self.threads = threads
        self._vocab: Vocab | None = None

    def __repr__(self) -> str:
        return f"Word2Vec({self.dimensions}, model={self.model!r}, loss={self.loss!r}, epochs={self.epochs})"

    @property
    def vocab(self) -> Vocab:
        if self._vocab is None:
            raise ForewordError("this Word2Vec has learnt nothing yet: call fit(corpus) first")
        return self._vocab

    @property
    def inputs_(self) -> NDArray[np.float32]:
        return self._inputs[:, : self.dimensions]

    @property
    def outputs_(self) -> NDArray[np.float32]:
        return self._outputs[:, : self.dimensions]

    @property
    def vectors(self) -> WordVectors:
        """The words that were counted and their input vectors, as a value of its own."""
        return WordVectors.of_vocab(self.vocab, self.inputs_)

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None, meter: Meter | None = None) -> Self:
        """Train to the end. ``valid`` is not looked at: nothing here is tuned."""
        for step in self.train(corpus):
            if meter:
                meter(f"training, loss {step.loss:.4f}", step.done, step.total)
        return self

    def train(self, corpus: Corpus) -> Iterator[Step]:
        """Train, a step every hundred thousand words or so.

        A model that was saved between two steps, and loaded, goes on where it was, and with one thread ends in the
        same bits as if it had never stopped.
        """
        self._check_settings()
        corpus.check_ids()
        if self._vocab is None:
            self._begin(corpus)
        elif corpus.vocab != self._vocab:
            raise InputError("the text was turned into ids with another vocabulary than the one training began with")
        work = _Work(self, corpus)
        while self._round < work.rounds.total:
            done = work.rounds.done(self._round)
            rate = self._rate_at(done / max(1, work.rounds.tokens))
            before = self._report.copy()
            work.run(self._round, rate)
            self._round += 1
            log_likelihood, pairs, _ = (self._report - before).sum(0)
            yield Step(work.rounds.done(self._round), work.rounds.tokens, -log_likelihood / max(1.0, pairs), rate)

    def _begin(self, corpus: Corpus) -> None:
        counts = word_counts(corpus)
        if np.count_nonzero(counts) < 2:
            raise InputError("the text has fewer than two different words that are frequent enough: nothing to learn")
        self._vocab = corpus.vocab
        stride = padded(self.dimensions)
        rng = np.random.default_rng(self.seed)
        self._inputs = np.zeros((len(counts), stride), np.float32)
        self._inputs[:, : self.dimensions] = (rng.random((len(counts), self.dimensions), np.float32) - 0.5) / (
            self.dimensions
        )
        self._inputs[counts == 0] = 0
        self._outputs = np.zeros((len(counts), stride), np.float32)
        self._random = rng.integers(0, 1 << 63, (self.threads, 1), np.int64).astype(np.uint64)
        self._report = np.zeros((self.threads, 3))
        self._round = 0

    def _rate_at(self, share: float) -> float:
        start = RATES[self.model] if self.rate is None else self.rate
        return start * max(1e-4, 1 - share)

    def _check_settings(self) -> None:
        for name, least, most in (
            ("dimensions", 1, 1 << 16),
            ("window", 1, CONTEXTS // 2),
            ("epochs", 1, 1 << 20),
            ("threads", 1, 1 << 10),
            ("negatives", 1, OUTPUTS - 1),
        ):
            if not least <= getattr(self, name) <= most:
                raise SettingError(f"{name}={getattr(self, name)}: expected a number from {least} to {most}")
        for name, choices in (("model", get_args(Model)), ("loss", get_args(Loss))):
            if getattr(self, name) not in choices:
                raise SettingError(f"{name}={getattr(self, name)!r}: expected one of {', '.join(choices)}")
        if not (math.isfinite(self.sample) and self.sample >= 0):
            raise SettingError(f"sample={self.sample}: expected zero or a small positive number such as 1e-4")
        if self.rate is not None and not (math.isfinite(self.rate) and self.rate > 0):
            raise SettingError(f"rate={self.rate}: expected a positive number")

    def to_parts(self) -> Parts:
        """The whole state of training, so that a saved model may also be a checkpoint."""
        vocab = self.vocab
        settings = {name: getattr(self, name) for name in _SETTINGS}
        arrays: dict[str, Array] = {
            "inputs": np.ascontiguousarray(self.inputs_),
            "outputs": np.ascontiguousarray(self.outputs_),
            "random": self._random,
            "report": self._report,
        }
        return Parts({**settings, "round": self._round}, arrays, vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        settings = dict(parts.settings)
        at = settings.pop("round", None)
        if parts.vocab is None or not isinstance(at, int) or at < 0 or set(settings) != set(_SETTINGS):
            raise ValueError("expected the settings of a Word2Vec, the number 'round' and a vocabulary")
        model = cls(**settings)  # type: ignore[arg-type]
        model._check_settings()
        shapes = {
            "inputs": (np.float32, (len(parts.vocab), model.dimensions)),
            "outputs": (np.float32, (len(parts.vocab), model.dimensions)),
            "random": (np.uint64, (model.threads, 1)),
            "report": (np.float64, (model.threads, 3)),
        }
        for name, (dtype, shape) in shapes.items():
            array = parts.arrays.get(name)
            if array is None or array.dtype != dtype or array.shape != shape:
                raise ValueError(f"expected the array {name!r}, {np.dtype(dtype)} {shape}")
        model._vocab, model._round = parts.vocab, at
        model._inputs, model._outputs = widened(parts.arrays["inputs"]), widened(parts.arrays["outputs"])
        model._random, model._report = parts.arrays["random"].copy(), parts.arrays["report"].copy()
        return model


_SETTINGS = (
    "dimensions", "model", "loss", "window", "negatives", "sample", "epochs", "rate", "seed", "threads",
)  # fmt: skip


def padded(dimensions: int) -> int:
    """The room of a row: a multiple of what the kernels take at once."""
    return -(-dimensions // LANES) * LANES


def widened(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """A copy with the rows padded by zeros."""
    wide = np.zeros((len(matrix), padded(matrix.shape[1])), np.float32)
    wide[:, : matrix.shape[1]] = matrix
    return wide


def word_counts(corpus: Corpus) -> NDArray[np.int64]:
    """How often each id stands in the corpus; zero for ``<unk>`` and ``</s>``, which get no vector."""
    counts = np.bincount(corpus.ids, minlength=len(corpus.vocab)).astype(np.int64)
    counts[corpus.vocab.end] = 0
    if corpus.vocab.unknown is not None:
        counts[corpus.vocab.unknown] = 0
    return counts


class _Work:
    """What the kernel needs beside the model: tables made of the counts, and room to work in for each thread."""

    def __init__(self, model: Word2Vec, corpus: Corpus) -> None:
        counts = word_counts(corpus)
        self.model, self.corpus = model, corpus
        self.keep = keep_shares(counts, model.sample)
        self.noise = AliasTable(np.zeros(1, np.uint32), np.zeros(1, np.int32))
        self.paths = Paths(np.zeros(1, np.int32), np.zeros(1, np.uint8), np.zeros(len(counts) + 1, np.int64))
        if model.loss == "negative-sampling":
            self.noise = alias_table(counts**0.75)
        else:
            self.paths = huffman_paths(counts)
            if np.diff(self.paths.offsets).max() > OUTPUTS:
                raise InputError(f"the counts are so uneven that a path in their tree has over {OUTPUTS} turns")
        self.rounds = Rounds(corpus, model.epochs, model.threads)
        self.rooms = [make_room(model._inputs.shape[1], SENTENCE) for _ in range(model.threads)]

    def run(self, number: int, rate: float) -> None:
        model = self.model

        def work(thread: int, begin: int, stop: int) -> None:
            train_windows(
                self.corpus.ids, begin, stop, self.corpus.vocab.end, self.keep, model.window, model.model == "cbow",
                model.negatives if model.loss == "negative-sampling" else 0, self.noise, self.paths,
                model._inputs.reshape(-1), model._outputs.reshape(-1), model._inputs.shape[1], np.float32(rate),
                model._random[thread], self.rooms[thread], model._report[thread],
            )  # fmt: skip

        self.rounds.run(number, work)
