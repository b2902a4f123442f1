"""fastText's text classifier: the mean of the rows of a line's words and n-grams, and a linear layer on top.

    h = mean of E[rows of the line]        p(label) = softmax(U h),  or σ(u·h) for each label,  or a path down a tree

A. Joulin et al., "Bag of tricks for efficient text classification" (2017). It loads what fastText trained, ``.bin`` and
``.ftz``, gives the same labels and the same probabilities, writes files that fastText reads, and is saved as a folder
that maps into memory. Rows of n-grams begin at zero, not at random numbers, so that an n-gram nobody has seen adds no
noise. Beyond fastText, ``pooling``: "distinct" counts a word or n-gram once in a line however often it comes, "idf"
also gives it the more weight the fewer lines have it, which is a point and a half better on film reviews;
"mean-max-min" appends the largest and smallest value of each column to the mean. ``loss="regression"`` is for labels
that are grades, such as 0 to 5: it minimises the squared error of the expected grade Σ p(g) g. The result is a softmax
model all the same, which fastText opens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, Unpack, cast, get_args

import numpy as np

from foreword.arrays import Array, Doubles, Floats, Ints, Longs, ULongs
from foreword.checks import check_choice, check_number, grades_of, list_of_texts
from foreword.errors import DivergedError, InputError, NotFittedError
from foreword.fasttext.files import (
    HIERARCHICAL,
    ONE_VS_ALL,
    SOFTMAX,
    SUPERVISED,
    FastTextFile,
    Settings,
    read_fasttext,
    write_fasttext,
)
from foreword.fasttext.kernels_lines import make_line_workspace
from foreword.fasttext.kernels_model import train_lines
from foreword.fasttext.model import Dictionary, LineModel, count_lines, label_paths, rarity
from foreword.fasttext.vectors import vectors_of_file
from foreword.native.parallel import ordered_map
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, Meter, Parts, Step
from foreword.text.block import Block, blocks_of
from foreword.vectors.kernels_training import Paths
from foreword.vectors.training import (
    check_rates,
    check_training,
    checked,
    padded,
    random_rows,
    run,
    widened,
    zero_rows,
)
from foreword.vectors.words import SubwordSettings, check_ngrams, ngram_lengths
from foreword.vectors.wordvectors import WordVectors

Loss = Literal["softmax", "hierarchical-softmax", "one-vs-all", "regression"]
Pooling = Literal["mean", "distinct", "idf", "mean-max-min"]

LOSSES = {"softmax": SOFTMAX, "hierarchical-softmax": HIERARCHICAL, "one-vs-all": ONE_VS_ALL, "regression": SOFTMAX}

BATCH_BYTES = 1 << 18
"""Text that a thread takes at a time when it predicts."""

STEPS = 100
"""Steps that a whole training yields."""

Prediction = list[tuple[str, float]]


@dataclass(slots=True)
class TrainingPosition:
    """The state of training: the next step, and each thread's random numbers, uint64 (threads, 1)."""

    step: int
    random: ULongs


class FastTextClassifier(ShownInNotebook):
    """A classifier of lines, with fastText's settings under names of ours.

    word_ngrams: maximum length of word n-grams. subwords: ``min_n`` and ``max_n``, lengths of character n-grams, by
    default 0 and 0 for none; ``buckets``, the rows that all n-grams share, two million by default. rate: initial
    learning rate; it decays to zero.
    threads: with one the same seed gives the same bits; with more it is faster and no longer repeatable.
    """

    def __init__(
        self,
        dimensions: int = 100,
        *,
        loss: Loss = "softmax",
        pooling: Pooling = "mean",
        word_ngrams: int = 1,
        min_count: int = 1,
        epochs: int = 5,
        rate: float = 0.1,
        seed: int = 0,
        threads: int = 1,
        **subwords: Unpack[SubwordSettings],
    ) -> None:
        self.dimensions = dimensions
        self.loss = loss
        self.pooling = pooling
        self.word_ngrams = word_ngrams
        self.min_n, self.max_n, self.buckets = ngram_lengths(**SubwordSettings(min_n=0, max_n=0) | subwords)
        self.min_count = min_count
        self.epochs = epochs
        self.rate = rate
        self.seed = seed
        self.threads = threads
        self._model: LineModel | None = None
        self._progress: TrainingPosition | None = None
        self._resumes = False

    def __repr__(self) -> str:
        if self._model is None:
            return f"FastTextClassifier({self.dimensions}, loss={self.loss!r}, word_ngrams={self.word_ngrams})"
        labels, words = self._model.dictionary.labels, self._model.dictionary.size
        return f"FastTextClassifier({labels} labels, {words:,} words, {self._model.settings.dim} dimensions)"

    @property
    def model(self) -> LineModel:
        """The trained model: the dictionary and the two matrices."""
        if self._model is None:
            raise NotFittedError(self, "texts, labels")
        return self._model

    @property
    def classes_(self) -> list[str]:
        """The labels, the most frequent first."""
        return self.model.label_names

    def fit(self, texts: Iterable[str], labels: Iterable[str], *, meter: Meter | None = None) -> Self:
        """Learn from texts and a label for each."""
        run(self.train(texts, labels), meter)
        return self

    def train(self, texts: Iterable[str], labels: Iterable[str | Sequence[str]]) -> Iterator[Step]:
        """Train, yielding a hundred steps in all. A text may have several labels; only with "one-vs-all" all of them
        count at once, else one is drawn each time.

        A model that was saved between two steps, and loaded, resumes where it was if it is given the same texts; with
        one thread it ends in the same bits as if it had never stopped.
        """
        self._check_settings()
        block = Block.from_texts(list_of_texts(texts))
        marks = [[label] if isinstance(label, str) else list(label) for label in labels]
        if len(marks) != len(block):
            raise InputError(f"{len(block)} texts but {len(marks)} labels")
        dictionary, flat, ends = count_lines(block, marks, self.min_count)
        yield from self._train(block, dictionary, flat, ends)

    def _train(self, block: Block, dictionary: Dictionary, marks: Ints, ends: Longs) -> Iterator[Step]:
        if dictionary.labels < 2:
            raise InputError(f"{dictionary.labels} different labels: a classifier needs at least two")
        model, progress = self._begin_or_resume(dictionary)
        paths = label_paths(model.label_counts) if self.loss == "hierarchical-softmax" else _NO_PATHS
        stride = model.inputs.shape[1]
        longest = int((block.stops - block.starts).max(initial=0))
        report = np.zeros((self.threads, 2))
        workspaces = [
            (make_line_workspace(longest, model.reader, stride), *np.zeros((2, 3 * stride), np.float32))
            for _ in range(self.threads)
        ]
        scores = np.zeros((self.threads, dictionary.labels), np.float32)
        rows, row_ends = model.rows_of_lines(block, workspaces[0][0])
        if self.pooling == "idf":
            model = self._model = replace(model, weights=rarity(rows, len(block), len(model.inputs)))
        grades = standard_grades(model) if self.loss == "regression" else np.empty(0, np.float32)
        answers = model.answers._replace(grades=grades)
        edges = np.linspace(0, len(block), self.threads + 1).astype(int)

        def work(thread: int, part: tuple[float, float], rates: tuple[float, float]) -> None:
            begin, size = edges[thread], edges[thread + 1] - edges[thread]
            first, last = begin + int(part[0] * size), begin + int(part[1] * size)
            workspace, hidden, change = workspaces[thread]
            train_lines(
                rows, row_ends, marks, ends, first, last, model.inputs.reshape(-1), stride, answers, paths,
                *rates, progress.random[thread], workspace, hidden, change, scores[thread], report[thread],
            )  # fmt: skip

        pieces = -(-STEPS // self.epochs)
        with ThreadPoolExecutor(self.threads) as pool:
            for number in range(progress.step, self.epochs * pieces):
                part = (number % pieces / pieces, (number % pieces + 1) / pieces)
                falls = self.rate / (self.epochs * pieces)
                rates = (self.rate - falls * number, self.rate - falls * (number + 1))
                before = report.copy()
                for done in [pool.submit(work, thread, part, rates) for thread in range(self.threads)]:
                    done.result()
                log_likelihood, lines = (report - before).sum(0).tolist()
                if not np.isfinite(log_likelihood):
                    raise DivergedError(f"training diverged: try a rate below {self.rate}")
                progress.step = number + 1
                read = (number // pieces + part[1]) * len(block)
                yield Step(int(read), self.epochs * len(block), -log_likelihood / max(1.0, lines), rates[0])
        self._progress = None

    @property
    def finished(self) -> bool:
        """Whether training has finished; a model that was stopped before can be resumed."""
        return self._model is not None and self._progress is None

    def _begin_or_resume(self, dictionary: Dictionary) -> tuple[LineModel, TrainingPosition]:
        if not self._resumes or self._progress is None:
            random = np.random.default_rng(self.seed).integers(0, 1 << 63, (self.threads, 1), np.int64)
            self._model, self._progress = self._untrained(dictionary), TrainingPosition(0, random.astype(np.uint64))
        else:
            if self.model.dictionary != dictionary:
                raise InputError("the texts and labels are not those that training began with")
            d = self.model.settings.dim  # a mapped model is not written to
            outputs = zero_rows(*self.model.outputs.shape)
            outputs[:] = self.model.outputs
            self._model = replace(self.model, inputs=widened(self.model.inputs[:, :d]), outputs=outputs)
        self._resumes = False
        return self._model, self._progress

    def _untrained(self, dictionary: Dictionary) -> LineModel:
        buckets = self.buckets if self.word_ngrams > 1 or self.max_n else 0
        settings = Settings(
            self.dimensions, 5, self.epochs, self.min_count, 5, self.word_ngrams, LOSSES[self.loss], SUPERVISED,
            buckets, self.min_n, self.max_n, 100, 1e-4,
        )  # fmt: skip
        pools = 3 if self.pooling == "mean-max-min" else 1
        rng = np.random.default_rng(self.seed)
        inputs = random_rows(
            rng, dictionary.size, self.dimensions, 1 / self.dimensions, threads=self.threads, zeros=buckets
        )
        outputs = zero_rows(dictionary.labels, pools * padded(self.dimensions))
        return LineModel(settings, dictionary, inputs, outputs, None, pools, self.pooling in ("distinct", "idf"))

    def _check_settings(self) -> None:
        check_training(self, word_ngrams=100, min_count=1 << 40, buckets=(1 << 31) - 1)
        check_choice(self, "loss", get_args(Loss))
        check_choice(self, "pooling", get_args(Pooling))
        check_ngrams(self.min_n, self.max_n, self.buckets)
        check_rates(self)

    def predict(self, texts: Iterable[str]) -> list[str]:
        """Return the likeliest label of each text, or the most frequent one for a text without a known word."""
        names = self.classes_
        blocks = self.predict_blocks(blocks_of(texts))
        return [names[label] for labels, _ in blocks for label in np.maximum(labels[:, 0], 0).tolist()]

    def predict_best(
        self, texts: Iterable[str | bytes], k: int = 1, *, threshold: float = 0.0, threads: int | None = 1
    ) -> Iterator[Prediction]:
        """Yield the k likeliest labels of each text and their probabilities as fastText does: 0.00001 too high, and
        none at all for a text without a known word or n-gram. A text is read up to its first line feed.
        """
        names = self.classes_
        blocks = blocks_of(texts, BATCH_BYTES)
        for labels, probabilities in self.predict_blocks(blocks, k, threshold=threshold, threads=threads):
            if labels.shape[1] == 1 and labels.min(initial=0) >= 0:  # by far the usual case, and worth a fast path
                found = map(names.__getitem__, labels[:, 0].tolist())
                yield from ([pair] for pair in zip(found, probabilities[:, 0].tolist(), strict=True))
                continue
            for row, values in zip(labels.tolist(), probabilities.tolist(), strict=True):
                yield [(names[label], value) for label, value in zip(row, values, strict=True) if label >= 0]

    def predict_blocks(
        self, blocks: Iterable[Block], k: int = 1, *, threshold: float = 0.0, threads: int | None = 1
    ) -> Iterator[tuple[Ints, Floats]]:
        """Yield the same as arrays: indices of ``classes_`` (documents, k), −1 where there are fewer, and
        probabilities.
        """
        model = self.model
        check_number("k", k, whole=True, least=1)
        k = min(k, model.dictionary.labels)
        return ordered_map(lambda block: model.predict(block, k, threshold), blocks, threads)

    def predict_log_proba(self, texts: Iterable[str]) -> Doubles:
        """Return the logarithm of each label's probability, (texts, labels), in the order of ``classes_``."""
        model = self.model
        rows = []
        for labels, probabilities in self.predict_blocks(blocks_of(texts, BATCH_BYTES), model.dictionary.labels):
            whole = np.zeros(labels.shape)
            line, column = np.nonzero(labels >= 0)
            whole[line, labels[line, column]] = probabilities[line, column]
            whole[~(labels >= 0).any(axis=1)] = 1  # no known word, so all labels are equally likely
            rows.append(whole)
        found = np.concatenate([np.empty((0, model.dictionary.labels)), *rows])
        with np.errstate(divide="ignore"):
            logs: Doubles = np.log(found / found.sum(axis=1, keepdims=True))
        return logs

    def predict_proba(self, texts: Iterable[str]) -> Doubles:
        """Return each label's probability, (texts, labels), in the order of ``classes_``."""
        shares: Doubles = np.exp(self.predict_log_proba(texts))
        return shares

    def predict_grades(self, texts: Iterable[str]) -> Doubles:
        """Return the expected grade of each text, Σ p(label) · label, where all labels are numbers."""
        grades: Doubles = self.predict_proba(texts) @ grades_of(self.classes_)
        return grades

    def score(self, texts: Iterable[str], labels: Sequence[str]) -> float:
        """Return the accuracy."""
        found = self.predict(texts)
        if len(found) != len(labels) or not found:
            raise InputError(f"{len(found)} texts but {len(labels)} labels")
        return sum(one == other for one, other in zip(found, labels, strict=True)) / len(found)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a ``.bin`` or ``.ftz`` that fastText wrote."""
        return cls.from_file(read_fasttext(path))

    @classmethod
    def from_file(cls, file: FastTextFile) -> Self:
        """Build a classifier from a fastText file."""
        return cls._of(LineModel.from_file(file))

    @classmethod
    def _of(cls, model: LineModel) -> Self:
        settings = model.settings
        loss: Any = next((name for name, number in LOSSES.items() if number == settings.loss), "one-vs-all")
        once: Any = "distinct" if model.weights is None else "idf"
        pooling: Any = once if model.distinct else "mean" if model.pools == 1 else "mean-max-min"
        made = cls(
            settings.dim, loss=loss, pooling=pooling,
            word_ngrams=max(1, settings.wordNgrams), min_n=settings.minn, max_n=settings.maxn,
            buckets=max(1, settings.bucket), min_count=max(1, settings.minCount), epochs=max(1, settings.epoch),
        )  # fmt: skip
        made._model = model
        return made

    def to_file(self) -> FastTextFile:
        """Return the model as in a fastText file; fastText has no pooling but the mean."""
        return self.model.to_file()

    @property
    def quantized(self) -> bool:
        """Whether it was read from a ``.ftz``, as which it is written again."""
        return self.model.codes[0] is not None

    def write(self, path: str | Path) -> None:
        """Write a file that fastText loads: a ``.bin``, or a ``.ftz`` where the model is quantised."""
        write_fasttext(self.to_file(), path)

    def to_parts(self) -> Parts:
        """Return the model, and the state of training if it has not finished, for a model folder."""
        parts = self.model.to_parts()
        if self._progress is not None:
            training: dict[str, Json] = {name: getattr(self, name) for name in OF_TRAINING}
            if self.loss == "regression":  # in a file and a finished model it is a softmax
                training["loss"] = self.loss
            parts.settings["training"] = {"step": self._progress.step, **training}
            parts.arrays["random"] = self._progress.random
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a classifier from a model folder, trained or in the middle of training."""
        settings = dict(parts.settings)
        training = settings.pop("training", None)
        found = cls._of(LineModel.from_parts(replace(parts, settings=settings)))
        if training is not None:
            found._restore(training, parts.arrays)
        return found

    def _restore(self, training: Json, arrays: Mapping[str, Array]) -> None:
        """Restore the state that was saved in the middle of training."""
        if not isinstance(training, dict) or set(training) - {"loss"} != {"step", *OF_TRAINING}:
            raise ValueError(f"expected the numbers step, {', '.join(OF_TRAINING)}")
        self.loss = cast(Loss, training.get("loss", self.loss))
        numbers: list[Any] = [training[name] for name in ("step", *OF_TRAINING)]
        step, self.rate, self.seed, self.threads, self.buckets = numbers
        if not all(type(number) is int for number in (step, *numbers[2:])) or not isinstance(self.rate, int | float):
            raise ValueError("step, seed, threads and buckets must be whole numbers, rate a number")
        self._check_settings()
        if not 0 <= step <= self.epochs * -(-STEPS // self.epochs):
            raise ValueError(f"step {step}: expected one of those that training has")
        self._progress = TrainingPosition(step, checked(arrays, "random", np.uint64, (self.threads, 1)).copy())
        self._resumes = True


OF_TRAINING = ("rate", "seed", "threads", "buckets")
"""Settings of training only: a finished model is saved without them."""


def standard_grades(model: LineModel) -> Floats:
    """Return the labels as numbers whose mean is 0 and whose variance is 1 over the training set."""
    grades, counts = grades_of(model.label_names), np.array(model.label_counts)
    centred = grades - np.average(grades, weights=counts)
    return np.asarray(centred / np.sqrt(np.average(centred**2, weights=counts)), np.float32)


def open_fasttext(path: Path) -> FastTextClassifier | WordVectors:
    """Open a fastText file: a classifier, or word vectors."""
    file = read_fasttext(path)
    return FastTextClassifier.from_file(file) if file.settings.model == SUPERVISED else vectors_of_file(file)


_NO_PATHS = Paths(np.zeros(1, np.int32), np.zeros(1, np.uint8), np.zeros(1, np.int64))
