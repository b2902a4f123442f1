"""fastText: word vectors made of the vectors of character n-grams.

    v(w) = mean of w's own row and the rows of its n-grams        maximise  log σ(u_c·v(w)) + Σ_k log σ(−u_n·v(w))

so that *eatable* has a vector even if it was never seen, and *running* and *runner* share most of theirs.

P. Bojanowski et al., "Enriching word vectors with subword information" (2017). As in fastText, noise words are drawn in
proportion to the square root of their counts and n-grams share a fixed number of buckets; buckets without a word of the
vocabulary get no row, where fastText keeps random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self, Unpack, get_args

import numpy as np

from foreword.arrays import Array, Floats, Ints, Longs
from foreword.checks import check_choice
from foreword.errors import InputError
from foreword.fasttext.files import (
    CBOW,
    END,
    NEGATIVE,
    SKIP_GRAM,
    WORD,
    FastTextFile,
    QuantizedMatrix,
    Settings,
    write_fasttext,
)
from foreword.fasttext.kernels_vectors import TARGETS, Subwords, make_subword_workspace, train_subwords
from foreword.notebook import ShownInNotebook
from foreword.protocols import Meter, Parts, Step
from foreword.storage.joined import separated
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import LearntVocab
from foreword.vectors.rows import VectorRows
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
    keep_shares,
    padded,
    random_rows,
    run,
    sample_for,
    untrained,
    widened,
    zero_rows,
)
from foreword.vectors.words import SubwordSettings, SubwordTable, Words, check_ngrams, hashed_ngrams, ngram_lengths
from foreword.vectors.wordvectors import WordVectors

Model = Literal["skip-gram", "cbow"]


class FastText(ShownInNotebook, LearntVocab):
    """Word vectors with subwords.

    subwords: ``min_n`` and ``max_n``, the fewest and most characters of an n-gram, 3 and 6 by default, 0 and 0 for
    none; ``buckets``, the rows that n-grams share, two million by default. The other settings are those of
    ``Word2Vec``, with fastText's own defaults.

    words_: float32 (V, d), the words' own rows; ngrams_: (used buckets, d); outputs_: (V, d).
    """

    def __init__(
        self,
        dimensions: int = 100,
        *,
        model: Model = "skip-gram",
        window: int = 5,
        negatives: int = 5,
        sample: float | None = None,
        epochs: int | None = None,
        rate: float = 0.05,
        seed: int = 0,
        threads: int = 1,
        **subwords: Unpack[SubwordSettings],
    ) -> None:
        self.dimensions = dimensions
        self.model = model
        self.window = window
        self.negatives = negatives
        self.sample = sample
        self.epochs = epochs
        self.rate = rate
        self.min_n, self.max_n, self.buckets = ngram_lengths(**subwords)
        self.seed = seed
        self.threads = threads

    def __repr__(self) -> str:
        return f"FastText({self.dimensions}, model={self.model!r}, min_n={self.min_n}, max_n={self.max_n})"

    @property
    def words_(self) -> Floats:
        """Input vectors of the words: float32 (words, dimensions)."""
        return self._inputs[: len(self.vocab), : self.dimensions]

    @property
    def ngrams_(self) -> Floats:
        """Input vectors of the n-gram buckets: float32 (buckets, dimensions)."""
        return self._inputs[len(self.vocab) :, : self.dimensions]

    @property
    def outputs_(self) -> Floats:
        """Output vectors: float32 (words, dimensions)."""
        return self._outputs[:, : self.dimensions]

    @property
    def vectors(self) -> WordVectors:
        """The words' vectors, and the rows of the n-grams for unknown words."""
        table = SubwordTable(np.ascontiguousarray(self.ngrams_), self.min_n, self.max_n, self.buckets, self._used)
        return WordVectors.of_vocab(self.vocab, self._means(), subwords=table)

    def _means(self) -> Floats:
        """Return the mean of each word's rows, (V, dimensions)."""
        rows, offsets = self._subwords()
        sums = np.add.reduceat(self._inputs[rows, : self.dimensions], offsets[:-1], axis=0, dtype=np.float32)
        return (sums / np.diff(offsets)[:, None]).astype(np.float32)

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None, meter: Meter | None = None) -> Self:
        """Train to the end. ``valid`` is ignored: nothing here is tuned."""
        run(self.train(corpus), meter)
        return self

    def train(self, corpus: Corpus) -> Iterator[Step]:
        """Train, yielding a step about every hundred thousand words; a saved model resumes where it was."""
        self._check_settings()
        counts = counts_to_train(corpus, self._vocab, self.threads)
        if self._vocab is None:
            self._initialise(corpus, counts)
        rounds = Rounds(corpus, epochs_for(self.epochs, int(counts.sum())), self.threads)
        yield from self._state.steps(rounds, self._work(corpus, counts), self.rate)

    def _initialise(self, corpus: Corpus, counts: Longs) -> None:
        self._vocab = corpus.vocab
        self._used = np.unique(self._buckets_of_words()[0])
        rng = np.random.default_rng(self.seed)
        rows = len(counts) + len(self._used)
        self._inputs = random_rows(rng, rows, self.dimensions, 1 / self.dimensions, threads=self.threads)
        self._inputs[: len(counts)][counts == 0] = 0
        self._outputs = zero_rows(len(counts), padded(self.dimensions))
        self._state = TrainingState.begin(self.threads, rng)

    def _buckets_of_words(self) -> tuple[Ints, Longs]:
        """Return the buckets of every word's n-grams; ``<unk>`` and ``</s>`` have none."""
        vocab = self.vocab
        buckets, offsets = hashed_ngrams(vocab.data, vocab.offsets, self.min_n, self.max_n, self.buckets)
        special = [id for id in (vocab.unknown, vocab.end) if id is not None]
        lengths = np.diff(offsets)
        kept = np.ones(len(vocab), bool)
        kept[special] = False
        lengths[special] = 0
        return buckets[np.repeat(kept, np.diff(offsets))], np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))

    def _subwords(self) -> Subwords:
        """Return each word's rows: its own, then those of its n-grams."""
        buckets, offsets = self._buckets_of_words()
        words = len(self.vocab)
        whole = offsets + np.arange(words + 1)
        rows = np.empty(whole[-1], np.int32)
        own = np.zeros(len(rows), bool)
        own[whole[:-1]] = True
        rows[own] = np.arange(words)
        rows[~own] = np.searchsorted(self._used, buckets) + words
        return Subwords(rows, whole)

    def _work(self, corpus: Corpus, counts: Longs) -> Work:
        keep, noise, subwords = (
            keep_shares(counts, sample_for(self.sample, int(counts.sum()))),
            alias_table(counts**0.5),
            self._subwords(),
        )
        workspaces = [make_subword_workspace(self._inputs.shape[1], SENTENCE) for _ in range(self.threads)]

        def work(thread: int, begin: int, stop: int, rate: float) -> None:
            train_subwords(
                corpus.ids, begin, stop, corpus.vocab.end, keep, self.window, self.model == "cbow", self.negatives,
                noise, subwords, self._inputs.reshape(-1), self._outputs.reshape(-1), self._inputs.shape[1],
                np.float32(rate), self._state.random[thread], workspaces[thread], self._state.report[thread],
            )  # fmt: skip

        return work

    def _check_settings(self) -> None:
        check_training(self, window=1 << 16, negatives=TARGETS - 1)
        check_choice(self, "model", get_args(Model))
        check_ngrams(self.min_n, self.max_n, self.buckets)
        check_rates(self)

    def to_file(self) -> FastTextFile:
        """Return the model as in a fastText file: ``</s>`` is a word there, and unused buckets are zeros."""
        vocab = self.vocab
        counts = vocab.counts if vocab.counts is not None else np.ones(len(vocab), np.int64)
        words = [id for id in range(len(vocab)) if id not in (vocab.unknown, vocab.end)]
        order = np.array([vocab.end, *sorted(words, key=lambda id: -int(counts[id]))])
        buckets = self.buckets if self.max_n else 0
        inputs = np.zeros((len(order) + buckets, self.dimensions), np.float32)
        inputs[: len(order)] = self.words_[order]
        inputs[len(order) + self._used] = self.ngrams_
        seen = int(counts.sum())
        settings = Settings(
            self.dimensions, self.window, epochs_for(self.epochs, seen), 1, self.negatives, 1, NEGATIVE,
            SKIP_GRAM if self.model == "skip-gram" else CBOW, buckets, self.min_n, self.max_n, 100,
            sample_for(self.sample, seen),
        )  # fmt: skip
        blob, offsets = vocab.data.tobytes(), vocab.offsets.tolist()
        return FastTextFile(
            settings,
            [blob[offsets[id] : offsets[id + 1]] for id in order],
            np.maximum(counts[order], 1),
            np.full(len(order), WORD, np.int8),
            int(counts[order].sum()),
            None,
            inputs,
            np.ascontiguousarray(self.outputs_[order]),
        )

    def write(self, path: str | Path) -> None:
        """Write a ``.bin`` that fastText and gensim load."""
        write_fasttext(self.to_file(), path)

    def to_parts(self) -> Parts:
        """Return the whole state of training, so that a saved model is also a checkpoint."""
        vocab = self.vocab
        settings = {name: getattr(self, name) for name in _SETTINGS}
        arrays: dict[str, Array] = {
            "inputs": np.ascontiguousarray(self._inputs[:, : self.dimensions]),
            "outputs": np.ascontiguousarray(self.outputs_),
            "used": self._used,
            "random": self._state.random,
            "report": self._state.report,
        }
        return Parts({**settings, "round": self._state.round}, arrays, vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a model from a folder, trained or in the middle of training."""
        model, vocab, number = untrained(cls, parts, _SETTINGS, "round")
        model._vocab = vocab
        model._used = np.unique(model._buckets_of_words()[0])
        used = checked(parts.arrays, "used", np.int32, model._used.shape)
        if not np.array_equal(used, model._used):
            raise ValueError("the buckets in use are not those of the vocabulary")
        words, d = len(vocab), model.dimensions
        model._inputs = widened(checked(parts.arrays, "inputs", np.float32, (words + len(used), d)))
        model._outputs = widened(checked(parts.arrays, "outputs", np.float32, (words, d)))
        model._state = TrainingState.from_arrays(number, parts.arrays, model.threads)
        return model


_SETTINGS = (
    "dimensions", "model", "window", "negatives", "sample", "epochs", "rate", "min_n", "max_n", "buckets", "seed",
    "threads",
)  # fmt: skip


def vectors_of_file(file: FastTextFile) -> WordVectors:
    """Return the word vectors of a fastText file, a classifier's too, and the rows of its n-grams."""
    words = file.words[: file.number_of_words]
    rows = file.inputs.to_floats() if isinstance(file.inputs, QuantizedMatrix) else file.inputs
    settings = file.settings
    if not settings.maxn or not settings.bucket:
        return WordVectors.of_words(words, np.ascontiguousarray(rows[: len(words)], np.float32))
    table = SubwordTable(
        np.ascontiguousarray(rows[len(words) :], np.float32), settings.minn, settings.maxn, settings.bucket
    )
    if file.prune is not None:
        order = np.argsort(file.prune[:, 0])
        used, kept = file.prune[order, 0], file.prune[order, 1]
        table = replace(table, matrix=table.matrix[kept], used=np.ascontiguousarray(used, np.int32))
    listed = Words.of(words)
    buckets, offsets = _buckets_without_end(listed, words, table)
    own = np.ascontiguousarray(rows[: len(words)], np.float32)
    return WordVectors.of_words(words, _mean_rows(own, table, buckets, offsets), subwords=table)


def file_of_vectors(vectors: WordVectors) -> FastTextFile:
    """Return word vectors with subwords as a fastText file. A word's own row is its vector less the rows of its
    n-grams; the outputs, which only training needs, are zeros.
    """
    table = vectors.subwords
    if table is None:
        raise InputError("these vectors have no subwords: write them as a word2vec file")
    rows = VectorRows(table.matrix, table.scales).floats(slice(None))
    plain = replace(table, matrix=rows, scales=None)
    words = separated(vectors.data, vectors.offsets)
    buckets, offsets = _buckets_without_end(Words(vectors.data, vectors.offsets), words, table)
    ngrams = _rows_of_words(plain, buckets, offsets)
    own = vectors.rows.floats(slice(None)) * (1 + np.diff(ngrams.indptr))[:, None] - ngrams @ rows
    if END not in words:  # fastText always has it
        words, own = [*words, END], np.concatenate((own, np.zeros((1, vectors.dimensions), np.float32)))
    inputs = np.zeros((len(words) + table.buckets, vectors.dimensions), np.float32)
    inputs[: len(words)] = own
    inputs[len(words) + (np.arange(table.buckets) if table.used is None else table.used)] = rows
    settings = Settings(
        vectors.dimensions, 5, 5, 1, 5, 1, NEGATIVE, SKIP_GRAM, table.buckets, table.least, table.most, 100, 1e-4
    )
    counts = np.arange(len(words), 0, -1, dtype=np.int64)  # unknown by now; falling, as in fastText
    types = np.full(len(words), WORD, np.int8)
    outputs = np.zeros((len(words), vectors.dimensions), np.float32)
    return FastTextFile(settings, words, counts, types, int(counts.sum()), None, inputs, outputs)


def _buckets_without_end(listed: Words, words: list[bytes], lengths: SubwordTable) -> tuple[Ints, Longs]:
    """Return the buckets of every word's n-grams; ``</s>`` has none."""
    buckets, offsets = hashed_ngrams(listed.data, listed.offsets, lengths.least, lengths.most, lengths.buckets)
    if END not in words:
        return buckets, offsets
    end = words.index(END)
    kept = np.ones(len(buckets), bool)
    kept[offsets[end] : offsets[end + 1]] = False
    removed = offsets[end + 1] - offsets[end]
    return buckets[kept], np.where(np.arange(len(offsets)) > end, offsets - removed, offsets)


def _mean_rows(own: Floats, table: SubwordTable, buckets: Ints, offsets: Longs) -> Floats:
    """Return the mean of each word's own row and the rows of its n-grams: (own + N · rows) / (1 + n-grams)."""
    ngrams = _rows_of_words(table, buckets, offsets)
    whole: Floats = (own + ngrams @ table.matrix) / (1 + np.diff(ngrams.indptr))[:, None]
    return whole.astype(np.float32, copy=False)


def _rows_of_words(table: SubwordTable, buckets: Ints, offsets: Longs) -> Any:
    """Return N, (words, rows), sparse: how often each row of the table is an n-gram of each word."""
    from scipy.sparse import csr_matrix

    rows, known = table.rows_of(buckets)
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(known)))[offsets]
    ones = np.ones(int(ends[-1]), np.float32)
    return csr_matrix((ones, rows[known], ends), shape=(len(offsets) - 1, len(table.matrix)))
