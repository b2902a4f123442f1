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

from collections.abc import Iterator
from typing import Literal, Self, get_args

import numpy as np

from foreword.arrays import Array, Floats, Longs
from foreword.errors import InputError, NotFittedError
from foreword.protocols import Meter, Parts, Step
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.vectors.kernels_skipgram import CONTEXTS, OUTPUTS, AliasTable, Paths, make_room, train_windows
from foreword.vectors.noise import alias_table, huffman_paths, keep_shares
from foreword.vectors.training import (
    SENTENCE,
    Rounds,
    TrainingState,
    Work,
    check_choice,
    check_enough_words,
    check_ranges,
    check_rates,
    checked,
    padded,
    random_rows,
    widened,
    word_counts,
    zero_rows,
)
from foreword.vectors.wordvectors import WordVectors

Model = Literal["skip-gram", "cbow"]
Loss = Literal["negative-sampling", "hierarchical-softmax"]

RATES: dict[str, float] = {"skip-gram": 0.025, "cbow": 0.05}
"""What word2vec starts with; the rate then falls in a straight line to a ten-thousandth of it."""


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
            raise NotFittedError(self, "corpus")
        return self._vocab

    @property
    def inputs_(self) -> Floats:
        return self._inputs[:, : self.dimensions]

    @property
    def outputs_(self) -> Floats:
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
        counts = word_counts(corpus, self.threads)
        if self._vocab is None:
            self._begin(corpus, counts)
        elif corpus.vocab != self._vocab:
            raise InputError("the text was turned into ids with another vocabulary than the one training began with")
        rounds = Rounds(corpus, self.epochs, self.threads)
        yield from self._state.steps(rounds, self._work(corpus, counts), self.rate or RATES[self.model])

    def _begin(self, corpus: Corpus, counts: Longs) -> None:
        check_enough_words(counts)
        rng = np.random.default_rng(self.seed)
        # Twice as wide as word2vec begins, as gensim does: after five epochs of four million words CBOW, which begins
        # slowly, for its input is a mean of rows that cancel each other, answers one analogy in a hundred more.
        self._inputs = random_rows(rng, len(counts), self.dimensions, 1 / self.dimensions, threads=self.threads)
        self._inputs[counts == 0] = 0
        self._outputs = zero_rows(len(counts), padded(self.dimensions))
        self._state = TrainingState.begin(self.threads, rng)
        self._vocab = corpus.vocab

    def _work(self, corpus: Corpus, counts: Longs) -> Work:
        """What a thread does in a round: tables made of the counts, room to work in, and the kernel."""
        keep, negatives = keep_shares(counts, self.sample), self.negatives
        noise = AliasTable(np.zeros(1, np.uint32), np.zeros(1, np.int32))
        paths = Paths(np.zeros(1, np.int32), np.zeros(1, np.uint8), np.zeros(len(counts) + 1, np.int64))
        if self.loss == "negative-sampling":
            noise = alias_table(counts**0.75)
        else:
            paths, negatives = huffman_paths(counts), 0
            if np.diff(paths.offsets).max() > OUTPUTS:
                raise InputError(f"the counts are so uneven that a path in their tree has over {OUTPUTS} turns")
        rooms = [make_room(self._inputs.shape[1], SENTENCE) for _ in range(self.threads)]

        def work(thread: int, begin: int, stop: int, rate: float) -> None:
            train_windows(
                corpus.ids, begin, stop, corpus.vocab.end, keep, self.window, self.model == "cbow", negatives, noise,
                paths, self._inputs.reshape(-1), self._outputs.reshape(-1), self._inputs.shape[1], np.float32(rate),
                self._state.random[thread], rooms[thread], self._state.report[thread],
            )  # fmt: skip

        return work

    def _check_settings(self) -> None:
        check_ranges(
            self, dimensions=(1, 1 << 16), window=(1, CONTEXTS // 2), epochs=(1, 1 << 20), threads=(1, 1 << 10),
            negatives=(1, OUTPUTS - 1),
        )  # fmt: skip
        check_choice(self, "model", get_args(Model))
        check_choice(self, "loss", get_args(Loss))
        check_rates(self.sample, self.rate)

    def to_parts(self) -> Parts:
        """The whole state of training, so that a saved model may also be a checkpoint."""
        vocab = self.vocab
        settings = {name: getattr(self, name) for name in _SETTINGS}
        arrays: dict[str, Array] = {
            "inputs": np.ascontiguousarray(self.inputs_),
            "outputs": np.ascontiguousarray(self.outputs_),
            "random": self._state.random,
            "report": self._state.report,
        }
        return Parts({**settings, "round": self._state.round}, arrays, vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        settings = dict(parts.settings)
        at = settings.pop("round", None)
        if parts.vocab is None or set(settings) != set(_SETTINGS):
            raise ValueError("expected the settings of a Word2Vec and a vocabulary")
        model = cls(**settings)  # type: ignore[arg-type]
        model._check_settings()
        shape = (len(parts.vocab), model.dimensions)
        model._inputs = widened(checked(parts.arrays, "inputs", np.float32, shape))
        model._outputs = widened(checked(parts.arrays, "outputs", np.float32, shape))
        model._state = TrainingState.from_arrays(at, parts.arrays, model.threads)
        model._vocab = parts.vocab
        return model


_SETTINGS = (
    "dimensions", "model", "loss", "window", "negatives", "sample", "epochs", "rate", "seed", "threads",
)  # fmt: skip
