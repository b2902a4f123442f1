"""fastText's text classifier: the mean of the rows of a line's words and n-grams, and a linear layer over it.

    h = mean of E[rows of the line]        p(label) = softmax(U h),  or σ(u·h) for each label,  or a path down a tree

A. Joulin et al., "Bag of tricks for efficient text classification" (2017). It loads what fastText trained, ``.bin`` and
``.ftz``, gives the same labels and the same probabilities, writes files that fastText reads, and is saved as a folder
that maps into memory. Rows of n-grams begin at zero, not at random numbers, so that an n-gram nobody has seen adds no
noise. Beyond fastText, ``pooling``: "distinct" counts a word or n-gram once in a line however often it comes, "idf"
also counts it the more the fewer lines have it, which is a point and a half better on film reviews; "mean-max-min" puts
the largest and smallest value of each column beside the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np

from foreword.arrays import Array, Doubles, Floats, Ints, Longs, ULongs
from foreword.errors import DivergedError, InputError, NotFittedError, SettingError
from foreword.fasttext.counting import count_lines
from foreword.fasttext.files import (
    HIERARCHICAL,
    LABEL,
    ONE_VS_ALL,
    SOFTMAX,
    SUPERVISED,
    WORD,
    FastTextFile,
    QuantizedMatrix,
    Settings,
    check_sizes,
    read_fasttext,
    write_fasttext,
)
from foreword.fasttext.kernels_lines import LineRoom, make_line_room
from foreword.fasttext.kernels_model import read_rows, train_lines
from foreword.fasttext.lines import Dictionary, LineModel, label_paths, rarity
from foreword.fasttext.vectors import vectors_of_file
from foreword.native.parallel import ordered_map
from foreword.protocols import Json, Meter, Parts, Step
from foreword.text.block import Block, blocks_of
from foreword.vectors.kernels_skipgram import Paths
from foreword.vectors.subwords import check_lengths
from foreword.vectors.training import (
    check_choice,
    check_ranges,
    check_rates,
    checked,
    padded,
    random_rows,
    widened,
    zero_rows,
)
from foreword.vectors.words import frozen
from foreword.vectors.wordvectors import WordVectors

Loss = Literal["softmax", "hierarchical-softmax", "one-vs-all"]
Pooling = Literal["mean", "distinct", "idf", "mean-max-min"]

LOSSES = {"softmax": SOFTMAX, "hierarchical-softmax": HIERARCHICAL, "one-vs-all": ONE_VS_ALL}

BATCH_BYTES = 1 << 18
"""Text that a thread takes at a time when it predicts."""

STEPS = 100
"""Steps that a whole training is told in."""

Prediction = list[tuple[str, float]]


@dataclass(slots=True)
class Progress:
    """Where training is: the step it comes to, and each thread's random numbers, uint64 (threads, 1)."""

    step: int
    random: ULongs


class FastTextClassifier:
    """A classifier of lines, with fastText's settings under names of ours.

    word_ngrams: up to how many neighbouring words count together. min_n, max_n: lengths of character n-grams, 0 and 0
    for none. buckets: how many rows all n-grams share. rate: the first learning rate, which falls to zero.
    threads: with one the same seed gives the same bits; with more it is faster and no longer repeatable.
    """

    def __init__(
        self,
        dimensions: int = 100,
        *,
        loss: Loss = "softmax",
        pooling: Pooling = "mean",
        word_ngrams: int = 1,
        min_n: int = 0,
        max_n: int = 0,
        buckets: int = 2_000_000,
        min_count: int = 1,
        epochs: int = 5,
        rate: float = 0.1,
        seed: int = 0,
        threads: int = 1,
    ) -> None:
        self.dimensions = dimensions
        self.loss = loss
        self.pooling = pooling
        self.word_ngrams = word_ngrams
        self.min_n = min_n
        self.max_n = max_n
        self.buckets = buckets
        self.min_count = min_count
        self.epochs = epochs
        self.rate = rate
        self.seed = seed
        self.threads = threads
        self._model: LineModel | None = None
        self._progress: Progress | None = None
        self._goes_on = False

    def __repr__(self) -> str:
        if self._model is None:
            return f"FastTextClassifier({self.dimensions}, loss={self.loss!r}, word_ngrams={self.word_ngrams})"
        labels, words = self._model.dictionary.labels, self._model.dictionary.size
        return f"FastTextClassifier({labels} labels, {words:,} words, {self._model.settings.dim} dimensions)"

    @property
    def model(self) -> LineModel:
        """What was learnt: the dictionary and the two matrices."""
        if self._model is None:
            raise NotFittedError(self, "texts, labels")
        return self._model

    @property
    def classes_(self) -> list[str]:
        """The labels, the most frequent first."""
        return self.model.label_names

    def fit(self, texts: Iterable[str], labels: Iterable[str], *, meter: Meter | None = None) -> Self:
        """Learn from texts and a label for each."""
        for step in self.train(texts, labels):
            if meter:
                meter(f"training, loss {step.loss:.4f}", step.done, step.total)
        return self

    def train(self, texts: Iterable[str], labels: Iterable[str | Sequence[str]]) -> Iterator[Step]:
        """Train, a hundred steps in all. A text may have several labels; only with "one-vs-all" all of them count at
        once, else one is drawn each time.

        A model that was saved between two steps, and loaded, goes on where it was, if it is given the same texts; with
        one thread it ends in the same bits as if it had never stopped.
        """
        self._check_settings()
        block = Block.from_texts(list(texts))
        marks = [[label] if isinstance(label, str) else list(label) for label in labels]
        if len(marks) != len(block):
            raise InputError(f"{len(block)} texts but {len(marks)} labels")
        dictionary, flat, ends = count_lines(block, marks, self.min_count)
        yield from self._train(block, dictionary, flat, ends)

    def _train(self, block: Block, dictionary: Dictionary, marks: Ints, ends: Longs) -> Iterator[Step]:
        if dictionary.labels < 2:
            raise InputError(f"{dictionary.labels} different labels: a classifier needs at least two")
        model, progress = self._begin_or_go_on(dictionary)
        paths = label_paths(model.label_counts) if self.loss == "hierarchical-softmax" else _NO_PATHS
        stride = model.inputs.shape[1]
        longest = int((block.stops - block.starts).max(initial=0))
        report = np.zeros((self.threads, 2))
        rooms = [
            (make_line_room(longest, model.reader, stride), *np.zeros((2, 3 * stride), np.float32))
            for _ in range(self.threads)
        ]
        scores = np.zeros((self.threads, dictionary.labels), np.float32)
        rows, row_ends = _rows_of_lines(block, model, rooms[0][0])
        if self.pooling == "idf":
            model = self._model = replace(model, weights=rarity(rows, len(block), len(model.inputs)))
        edges = np.linspace(0, len(block), self.threads + 1).astype(int)

        def work(thread: int, part: tuple[float, float], rates: tuple[float, float]) -> None:
            begin, size = edges[thread], edges[thread + 1] - edges[thread]
            first, last = begin + int(part[0] * size), begin + int(part[1] * size)
            room, hidden, change = rooms[thread]
            train_lines(
                rows, row_ends, marks, ends, first, last, model.inputs.reshape(-1), stride, model.answers, paths,
                *rates, progress.random[thread], room, hidden, change, scores[thread], report[thread],
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
        """Whether training has come to its end; what was stopped on the way may go on."""
        return self._model is not None and self._progress is None

    def _begin_or_go_on(self, dictionary: Dictionary) -> tuple[LineModel, Progress]:
        if not self._goes_on or self._progress is None:
            random = np.random.default_rng(self.seed).integers(0, 1 << 63, (self.threads, 1), np.int64)
            self._model, self._progress = self._begin(dictionary), Progress(0, random.astype(np.uint64))
        else:
            if self.model.dictionary != dictionary:
                raise InputError("the texts and labels are not those that training began with")
            d = self.model.settings.dim  # a mapped model is not written to
            outputs = zero_rows(*self.model.outputs.shape)
            outputs[:] = self.model.outputs
            self._model = replace(self.model, inputs=widened(self.model.inputs[:, :d]), outputs=outputs)
        self._goes_on = False
        return self._model, self._progress

    def _begin(self, dictionary: Dictionary) -> LineModel:
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
        check_ranges(
            self, dimensions=(1, 1 << 16), word_ngrams=(1, 100), min_count=(1, 1 << 40), epochs=(1, 1 << 20),
            threads=(1, 1 << 10), buckets=(1, (1 << 31) - 1),
        )  # fmt: skip
        check_choice(self, "loss", get_args(Loss))
        check_choice(self, "pooling", get_args(Pooling))
        check_lengths(self.min_n, self.max_n, self.buckets)
        check_rates(0, self.rate)

    def predict(self, texts: Iterable[str]) -> list[str]:
        """The likeliest label of each text, or the most frequent one for a text of which nothing is known."""
        names = self.classes_
        return [names[label] for labels, _ in self.predict_blocks(blocks_of(texts)) for label in _or_first(labels)]

    def predict_best(
        self, texts: Iterable[str | bytes], k: int = 1, *, threshold: float = 0.0, threads: int | None = 1
    ) -> Iterator[Prediction]:
        """The k likeliest labels of each text and their probabilities, as fastText gives them: 0.00001 too high, and
        none at all for a text of which no word or n-gram is known. A text is read up to its first line feed.
        """
        names = self.classes_
        blocks = blocks_of(texts, BATCH_BYTES)
        for labels, probabilities in self.predict_blocks(blocks, k, threshold=threshold, threads=threads):
            if labels.shape[1] == 1 and labels.min(initial=0) >= 0:  # by far the usual case, and worth a shorter way
                found = map(names.__getitem__, labels[:, 0].tolist())
                yield from ([pair] for pair in zip(found, probabilities[:, 0].tolist(), strict=True))
                continue
            for row, values in zip(labels.tolist(), probabilities.tolist(), strict=True):
                yield [(names[label], value) for label, value in zip(row, values, strict=True) if label >= 0]

    def predict_blocks(
        self, blocks: Iterable[Block], k: int = 1, *, threshold: float = 0.0, threads: int | None = 1
    ) -> Iterator[tuple[Ints, Floats]]:
        """The same as arrays: places in ``classes_`` (documents, k), −1 where there are fewer, and probabilities."""
        model = self.model
        if k < 1:
            raise SettingError(f"k={k}: expected at least 1")
        k = min(k, model.dictionary.labels)
        return ordered_map(lambda block: model.predict(block, k, threshold), blocks, threads)

    def predict_log_proba(self, texts: Iterable[str]) -> Doubles:
        """(texts, labels): the logarithm of each label's probability, in the order of ``classes_``."""
        model = self.model
        rows = []
        for labels, probabilities in self.predict_blocks(blocks_of(texts, BATCH_BYTES), model.dictionary.labels):
            whole = np.zeros(labels.shape)
            line, column = np.nonzero(labels >= 0)
            whole[line, labels[line, column]] = probabilities[line, column]
            whole[~(labels >= 0).any(axis=1)] = 1  # nothing is known of the text, so all labels are alike
            rows.append(whole)
        found = np.concatenate([np.empty((0, model.dictionary.labels)), *rows])
        with np.errstate(divide="ignore"):
            logs: Doubles = np.log(found / found.sum(axis=1, keepdims=True))
        return logs

    def predict_proba(self, texts: Iterable[str]) -> Doubles:
        shares: Doubles = np.exp(self.predict_log_proba(texts))
        return shares

    def score(self, texts: Iterable[str], labels: Sequence[str]) -> float:
        """The share of texts whose label is right."""
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
        if file.settings.model != SUPERVISED:
            raise InputError("these are word vectors, not a classifier: a classifier is trained with labels")
        inputs, outputs = (
            matrix.to_floats() if isinstance(matrix, QuantizedMatrix) else matrix
            for matrix in (file.inputs, file.outputs)
        )
        codes = (
            file.inputs if isinstance(file.inputs, QuantizedMatrix) else None,
            file.outputs if isinstance(file.outputs, QuantizedMatrix) else None,
        )
        dictionary = Dictionary.of(file.words, file.counts, file.number_of_labels)
        prune = None if file.prune is None else np.array(file.prune, np.int32)
        return cls._of(LineModel(file.settings, dictionary, widened(inputs), widened(outputs), prune, codes=codes))

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
        """The model as fastText has it; pools other than the mean it does not know."""
        model = self.model
        if model.pools != 1 or model.distinct:
            raise InputError("fastText knows no pooling but the mean: this model cannot be one of its files")
        words, counts, labels = model.dictionary.words, model.dictionary.counts, model.dictionary.labels
        types = np.repeat(np.array([WORD, LABEL], np.int8), [model.dictionary.size, labels])
        d = model.settings.dim
        tokens = int(counts[: model.dictionary.size].sum())
        inputs, outputs = model.codes
        return FastTextFile(
            model.settings, words, counts, types, tokens, model.prune,
            model.inputs[:, :d] if inputs is None else inputs, model.outputs[:, :d] if outputs is None else outputs,
        )  # fmt: skip

    @property
    def quantized(self) -> bool:
        """Whether it was read from a ``.ftz``; it is written as one again."""
        return self.model.codes[0] is not None

    def write(self, path: str | Path) -> None:
        """Write a file that fastText loads: a ``.bin``, or a ``.ftz`` where the model is quantised."""
        write_fasttext(self.to_file(), path)

    def to_parts(self) -> Parts:
        """Everything that predicting needs is there as it will be used, so that a large model opens at once."""
        model = self.model
        arrays: dict[str, Array] = {
            "inputs": model.inputs,
            "outputs": model.outputs,
            "words": model.dictionary.data,
            "word_offsets": model.dictionary.offsets,
            "counts": model.dictionary.counts,
            "table": model.table,
        }
        arrays |= {name: array for name in ("prune", "weights") if (array := getattr(model, name)) is not None}
        settings: dict[str, Any] = asdict(model.settings)
        settings |= {"labels": model.dictionary.labels, "pools": model.pools, "distinct": model.distinct}
        if self._progress is not None:
            settings["training"] = {"step": self._progress.step, **{name: getattr(self, name) for name in OF_TRAINING}}
            arrays["random"] = self._progress.random
        settings["codes"] = {}
        for name, matrix in zip(CODED, model.codes, strict=True):
            if matrix is not None:
                settings["codes"][name] = matrix.quantizer.dsub
                arrays |= matrix.to_arrays(name)
        return Parts(settings, arrays)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        settings = dict(parts.settings)
        labels, pools, distinct = (settings.pop(name, None) for name in ("labels", "pools", "distinct"))
        widths, training = settings.pop("codes", {}), settings.pop("training", None)
        if set(settings) != {field.name for field in fields(Settings)} or pools not in (1, 3):
            raise ValueError("expected fastText's settings, the numbers 'labels' and 'pools', and 'distinct'")
        # Kernels are compiled for the types they are called with: for others it would take half a minute.
        whole = [value for name, value in settings.items() if name != "t"]
        if not all(type(value) is int for value in (*whole, pools)) or type(settings["t"]) not in (int, float):
            raise ValueError("a setting is no whole number")
        if not isinstance(labels, int) or type(distinct) is not bool:
            raise ValueError("expected a number of 'labels', and 'distinct' true or false")
        made = Settings(**settings)  # type: ignore[arg-type]
        dictionary = _dictionary_of(parts, labels)
        stride = padded(made.dim)
        rows = {name: len(parts.arrays[name]) if name in parts.arrays else 0 for name in CODED}
        inputs = checked(parts.arrays, "inputs", np.float32, (rows["inputs"], stride))
        outputs = checked(parts.arrays, "outputs", np.float32, (rows["outputs"], int(pools) * stride))
        prune, slots = parts.arrays.get("prune"), parts.arrays.get("table")
        if slots is not None and (slots.dtype != np.uint64 or slots.ndim != 1 or not _is_power_of_two(len(slots) // 4)):
            raise ValueError("expected a table of 64-bit words, four times a power of two")
        check_sizes(made, dictionary.size, labels, prune, rows["inputs"], rows["outputs"])
        codes = _codes_of(parts, widths, rows, made.dim)
        weights = checked(parts.arrays, "weights", np.float32, (len(inputs),)) if "weights" in parts.arrays else None
        learnt = LineModel(made, dictionary, inputs, outputs, prune, int(pools), bool(distinct), slots, codes)
        found = cls._of(replace(learnt, weights=weights))
        if training is not None:
            found._stopped(training, parts.arrays)
        return found

    def _stopped(self, training: Json, arrays: Mapping[str, Array]) -> None:
        """Take up what was saved in the middle of training."""
        if not isinstance(training, dict) or set(training) != {"step", *OF_TRAINING}:
            raise ValueError(f"expected the numbers step, {', '.join(OF_TRAINING)}")
        numbers: list[Any] = [training[name] for name in ("step", *OF_TRAINING)]
        step, self.rate, self.seed, self.threads, self.buckets = numbers
        if not all(type(number) is int for number in (step, *numbers[2:])) or not isinstance(self.rate, int | float):
            raise ValueError("step, seed, threads and buckets must be whole numbers, rate a number")
        self._check_settings()
        if not 0 <= step <= self.epochs * -(-STEPS // self.epochs):
            raise ValueError(f"step {step}: expected one of those that training has")
        self._progress = Progress(step, checked(arrays, "random", np.uint64, (self.threads, 1)).copy())
        self._goes_on = True


OF_TRAINING = ("rate", "seed", "threads", "buckets")
"""Settings that only training knows: a model that has come to its end is saved without them."""

CODED = ("inputs", "outputs")
"""The matrices that may be quantised."""


def _codes_of(
    parts: Parts, widths: Json, rows: dict[str, int], columns: int
) -> tuple[QuantizedMatrix | None, QuantizedMatrix | None]:
    if not isinstance(widths, dict):
        raise ValueError("expected 'codes' to say how many columns share one")

    def matrix(name: str) -> QuantizedMatrix | None:
        width = widths.get(name, 0)
        if not isinstance(width, int):
            raise ValueError(f"{name}: how many columns share a code must be a whole number")
        return QuantizedMatrix.from_arrays(parts.arrays, name, rows[name], columns, width) if width else None

    return matrix("inputs"), matrix("outputs")


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _rows_of_lines(block: Block, model: LineModel, room: LineRoom) -> tuple[Ints, Longs]:
    """Every line's rows, found once for all epochs: four bytes a row, less than the text itself takes as strings."""
    ends = np.zeros(len(block) + 1, np.int64)
    rows = np.empty(max(1024, block.text_bytes() // 2), np.int32)
    line = 0
    while True:
        line = read_rows(frozen(block.data), block.starts, block.stops, line, model.reader, room, rows, ends)
        if line == len(block):
            return rows[: ends[-1]], ends
        rows = np.concatenate((rows[: ends[line]], np.empty(len(rows) + len(room.rows), np.int32)))


def open_fasttext(path: Path) -> FastTextClassifier | WordVectors:
    """Whatever a fastText file holds: a classifier, or word vectors."""
    file = read_fasttext(path)
    return FastTextClassifier.from_file(file) if file.settings.model == SUPERVISED else vectors_of_file(file)


_NO_PATHS = Paths(np.zeros(1, np.int32), np.zeros(1, np.uint8), np.zeros(1, np.int64))


def _or_first(labels: Ints) -> list[int]:
    first: list[int] = np.maximum(labels[:, 0], 0).tolist()
    return first


def _dictionary_of(parts: Parts, labels: int) -> Dictionary:
    data, offsets = parts.arrays.get("words"), parts.arrays.get("word_offsets")
    if data is None or offsets is None or data.dtype != np.uint8 or offsets.dtype != np.int64 or not offsets.size:
        raise ValueError("expected the arrays 'words' and 'word_offsets'")
    if data.ndim != 1 or offsets.ndim != 1:
        raise ValueError("the words and their offsets must have one dimension")
    if offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
        raise ValueError("the words' offsets must rise from 0 to the end of the words")
    if not 0 < labels < len(offsets):
        raise ValueError(f"{labels} labels among {len(offsets) - 1} words")
    return Dictionary(data, offsets, checked(parts.arrays, "counts", np.int64, (len(offsets) - 1,)), labels)
