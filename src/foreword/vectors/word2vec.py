"""word2vec: vectors of words from the words around them.

Skip-gram asks each word of a window to predict the centre (with the full softmax the centre predicts each word, which
is the same pairs turned around), CBOW asks the mean of them. With inputs E (V, d) and outputs
U (V, d), for a centre w, an input h (a row of E, or the mean of several) and k words n drawn as noise::

    negative sampling       maximise  log σ(u_w·h) + Σ_k log σ(−u_n·h),     n ~ count^0.75
    hierarchical softmax    maximise  Σ log σ(±u_node·h)                    over the nodes of w's path in a Huffman tree
    softmax                 maximise  log softmax(U h)_w                    over all words: exact, and slow

Both matrices are retained: ``inputs_`` is the embedding, ``outputs_`` the other half of the model.

T. Mikolov et al., "Efficient estimation of word representations in vector space" and "Distributed representations of
words and phrases and their compositionality" (2013). What is done differently: the noise words are drawn once for a
window and shared by it (S. Ji et al., "Parallelizing word2vec in shared and distributed memory", 2016), which turns
single dot products into small matrix products. ``vectors/plain.py`` has the same steps in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Literal, Self, get_args

import numpy as np

from foreword.arrays import Array, Floats, Longs
from foreword.checks import check_choice, check_number
from foreword.errors import InputError, SettingError
from foreword.notebook import ShownInNotebook
from foreword.protocols import Meter, Parts, Step
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import LearntVocab
from foreword.vectors.kernels_training import (
    CONTEXTS,
    OUTPUTS,
    AliasTable,
    Paths,
    make_workspace,
    train_softmax,
    train_windows,
)
from foreword.vectors.training import (
    SENTENCE,
    Rounds,
    TrainingState,
    Work,
    alias_table,
    check_rates,
    check_training,
    checked,
    counts_to_train,
    epochs_for,
    huffman_paths,
    keep_shares,
    padded,
    random_rows,
    run,
    sample_for,
    untrained,
    widened,
    zero_rows,
)
from foreword.vectors.wordvectors import WordVectors

Model = Literal["skip-gram", "cbow"]
Loss = Literal["negative-sampling", "hierarchical-softmax", "softmax"]

RATES: dict[str, float] = {"skip-gram": 0.025, "cbow": 0.05}
"""The first learning rates of word2vec; the rate then falls linearly to a ten-thousandth."""


@dataclass(eq=False, repr=False)
class Word2Vec(ShownInNotebook, LearntVocab):
    """Word vectors by skip-gram or CBOW.

    loss: training objective; the time of "softmax" grows with the vocabulary: for small texts, and for teaching.
    window: words on either side at most: a distance from 1 to ``window`` is drawn for each centre. "fixed:5" takes all
    five always, and cuts no document of up to 10,000 words; "fixed" is "fixed:5".
    sample: subsample words with a relative frequency above this; 0 for none. None: 1e-4 for a text of ten million words
    and more, 1e-3 for a smaller one.
    epochs: passes over the text. None: 5, or more for a text of less than a million words, at most 30.
    rate: initial learning rate; None for word2vec's own.
    threads: with one the same seed gives the same bits; with more, threads write to the same rows without locking,
    which is faster and no longer repeatable.

    inputs_, outputs_: float32 (V, dimensions); with the hierarchical softmax outputs_ has one row per inner node.
    """

    dimensions: int = 100
    _: KW_ONLY
    model: Model = "skip-gram"
    loss: Loss = "negative-sampling"
    window: int | str = 5
    negatives: int = 5
    sample: float | None = None
    epochs: int | None = None
    rate: float | None = None
    seed: int = 0
    threads: int = 1

    def __repr__(self) -> str:
        return f"Word2Vec({self.dimensions}, model={self.model!r}, loss={self.loss!r}, epochs={self.epochs})"

    @property
    def inputs_(self) -> Floats:
        """Input vectors, the word vectors: float32 (words, dimensions)."""
        return self._inputs[:, : self.dimensions]

    @property
    def outputs_(self) -> Floats:
        """Output vectors: float32 (words, dimensions)."""
        return self._outputs[:, : self.dimensions]

    @property
    def vectors(self) -> WordVectors:
        """The counted words and their input vectors."""
        return WordVectors.of_vocab(self.vocab, self.inputs_)

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None, meter: Meter | None = None) -> Self:
        """Train to the end. ``valid`` is ignored: nothing here is tuned."""
        run(self.train(corpus), meter)
        return self

    def train(self, corpus: Corpus) -> Iterator[Step]:
        """Train, yielding a step about every hundred thousand words.

        A model that was saved between two steps, and loaded, resumes where it was, and with one thread ends in the
        same bits as if it had never stopped.
        """
        self._check_settings()
        counts = counts_to_train(corpus, self._vocab, self.threads)
        if self._vocab is None:
            self._initialise(corpus, counts)
        epochs = epochs_for(self.epochs, int(counts.sum()))
        rounds = Rounds(corpus, epochs, self.threads, whole=isinstance(self.window, str))
        yield from self._state.steps(rounds, self._work(corpus, counts), self.rate or RATES[self.model])

    def _initialise(self, corpus: Corpus, counts: Longs) -> None:
        rng = np.random.default_rng(self.seed)
        # Twice as wide as in word2vec, as in gensim: after five epochs of four million words CBOW, which learns slowly
        # at first because its input is a mean of rows that cancel each other, answers one analogy in a hundred more.
        self._inputs = random_rows(rng, len(counts), self.dimensions, 1 / self.dimensions, threads=self.threads)
        self._inputs[counts == 0] = 0
        self._outputs = zero_rows(len(counts), padded(self.dimensions))
        self._state = TrainingState.begin(self.threads, rng)
        self._vocab = corpus.vocab

    def _work(self, corpus: Corpus, counts: Longs) -> Work:
        """Return what a thread does in a round, with the tables made of the counts and a workspace per thread."""
        keep, negatives = keep_shares(counts, sample_for(self.sample, int(counts.sum()))), self.negatives
        noise = AliasTable(np.zeros(1, np.uint32), np.zeros(1, np.int32))
        paths = Paths(np.zeros(1, np.int32), np.zeros(1, np.uint8), np.zeros(len(counts) + 1, np.int64))
        if self.loss == "negative-sampling":
            noise = alias_table(counts**0.75)
        elif self.loss == "hierarchical-softmax":
            paths, negatives = huffman_paths(counts), 0
            if np.diff(paths.offsets).max() > OUTPUTS:
                raise InputError(f"the counts are so uneven that a path in their tree has over {OUTPUTS} turns")
        workspaces = [make_workspace(self._inputs.shape[1], SENTENCE) for _ in range(self.threads)]
        scores = np.empty((self.threads, len(counts) if self.loss == "softmax" else 0), np.float32)
        window, cbow = window_reach(self.window), self.model == "cbow"
        weights = (self._inputs.reshape(-1), self._outputs.reshape(-1), self._inputs.shape[1])

        def work(thread: int, begin: int, stop: int, rate: float) -> None:
            text = (corpus.ids, begin, stop, corpus.vocab.end, keep, *window, cbow)
            own = (np.float32(rate), self._state.random[thread], workspaces[thread])
            report = self._state.report[thread]
            if self.loss == "softmax":
                train_softmax(*text, *weights, *own, scores[thread], report)
            else:
                train_windows(*text, negatives, noise, paths, *weights, *own, report)

        return work

    def _check_settings(self) -> None:
        check_training(self, negatives=OUTPUTS - 1)
        check_number("window", window_reach(self.window)[0], whole=True, least=1, most=CONTEXTS // 2)
        check_choice(self, "model", get_args(Model))
        check_choice(self, "loss", get_args(Loss))
        check_rates(self)

    def to_parts(self) -> Parts:
        """Return the whole state of training, so that a saved model is also a checkpoint."""
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
        """Build a model from a folder, trained or in the middle of training."""
        model, vocab, number = untrained(cls, parts, _SETTINGS, "round")
        model._vocab = vocab
        shape = (len(vocab), model.dimensions)
        model._inputs = widened(checked(parts.arrays, "inputs", np.float32, shape))
        model._outputs = widened(checked(parts.arrays, "outputs", np.float32, shape))
        model._state = TrainingState.from_arrays(number, parts.arrays, model.threads)
        return model


def window_reach(window: int | str) -> tuple[int, bool]:
    """Return the words on either side, and whether all of them are taken always."""
    if not isinstance(window, str):
        return window, False
    name, _, size = window.partition(":")
    if name != "fixed" or not (size or "5").isdecimal():
        raise SettingError(f"window is {window!r}: expected a whole number, 'fixed' or 'fixed:' and a whole number")
    return int(size or 5), True


_SETTINGS = (
    "dimensions", "model", "loss", "window", "negatives", "sample", "epochs", "rate", "seed", "threads",
)  # fmt: skip
