"""The ``fasttext`` module of fastText, with Foreword behind it: ``import foreword.compat.fasttext as fasttext``.

The same names, arguments, results and types of errors as the ``fasttext`` module 0.9.3, without a compiler and under
NumPy 2. Probabilities and vectors equal fastText's to 1e-6. Models are trained by Foreword: the settings mean the same,
the random numbers are others. What has no counterpart here (pretrained vectors, automatic tuning, retraining a
quantised model, another prefix of labels) raises a ValueError that names it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from foreword.arrays import Floats, Longs
from foreword.errors import ForewordError
from foreword.fasttext.classifier import FastTextClassifier
from foreword.fasttext.files import (
    SUPERVISED,
    FastTextFile,
    Matrix,
    QuantizedMatrix,
    Settings,
    read_fasttext,
    write_fasttext,
)
from foreword.fasttext.kernels_lines import make_line_workspace
from foreword.fasttext.model import PREFIX, LineModel
from foreword.fasttext.quantize import quantize
from foreword.fasttext.vectors import FastText as Vectors
from foreword.fasttext.vectors import vectors_of_file
from foreword.native.parallel import cores
from foreword.text.block import Block
from foreword.tokens.words import WordTokenizer
from foreword.vectors.wordvectors import WordVectors

__all__ = ["BOW", "EOS", "EOW", "FastText", "load_model", "tokenize", "train_supervised", "train_unsupervised"]

EOS, BOW, EOW = "</s>", "<", ">"

_LOSSES = {"softmax": "softmax", "hs": "hierarchical-softmax", "ova": "one-vs-all"}
_MODELS = {"skipgram": "skip-gram", "cbow": "cbow"}
_NAMES = {1: "cbow", 2: "skipgram", 3: "supervised"}

Neighbours = list[tuple[float, str]]


class FastText:
    """A model, as ``load_model`` and the two functions that train return it."""

    def __init__(self, file: FastTextFile) -> None:
        self._file = file

    def __repr__(self) -> str:
        return f"FastText({_NAMES.get(self._file.settings.model)}, {len(self.words):,} words)"

    @property
    def f(self) -> Inner:
        """The inner object, whose ``predict`` takes a line with its end and returns pairs."""
        return Inner(self)

    def __getattr__(self, name: str) -> Any:
        """Return a setting of training, such as ``dim`` or ``wordNgrams``."""
        if name.startswith("_") or name not in Settings.__slots__:
            raise AttributeError(f"'FastText' object has no attribute {name!r}")
        return getattr(self._file.settings, name)

    @cached_property
    def _lines(self) -> LineModel:
        if not self._is_supervised:
            raise ValueError("Model needs to be supervised for prediction!")
        return LineModel.from_file(self._file)

    @cached_property
    def _vectors(self) -> WordVectors:
        return vectors_of_file(self._file)

    @property
    def _is_supervised(self) -> bool:
        return self._file.settings.model == SUPERVISED

    # Labels

    def predict(
        self, text: str | list[str], k: int = 1, threshold: float = 0.0, on_unicode_error: str = "strict"
    ) -> tuple[Any, Any]:
        """Return the k likeliest labels of a line, all of them if k is −1, and their probabilities; for a list of lines
        a list of each.
        """
        if isinstance(text, list):
            found = self.f.multilinePredict([_line(each) for each in text], k, threshold, on_unicode_error)
            return found[0], found[1]
        pairs = self.f.predict(_line(text), k, threshold, on_unicode_error)
        return tuple(label for _, label in pairs), np.array([p for p, _ in pairs])

    def test(self, path: str, k: int = 1, threshold: float = 0.0) -> tuple[int, float, float]:
        """Return the number of lines, and precision and recall at k, over a labelled file."""
        lines = list(self._tested(path, k, threshold))
        right = sum(len(gold & found) for gold, found in lines)
        with np.errstate(invalid="ignore"):
            precision = np.float64(right) / np.float64(sum(len(found) for _, found in lines))
            recall = np.float64(right) / np.float64(sum(len(gold) for gold, _ in lines))
        return len(lines), float(precision), float(recall)

    def test_label(self, path: str, k: int = 1, threshold: float = 0.0) -> dict[str, dict[str, float]]:
        """Return precision, recall and F1 of each label over a labelled file; NaN where they are shares of nothing."""
        counts = np.zeros((3, len(self._lines.dictionary.label_words)))
        for gold, found in self._tested(path, k, threshold):
            for row, labels in enumerate((gold & found, found, gold)):
                counts[row, list(labels)] += 1
        right, predicted, real = counts
        with np.errstate(invalid="ignore"):
            measures = {
                "precision": right / predicted,
                "recall": right / real,
                "f1score": 2 * right / (predicted + real),
            }
        return {
            label: {name: float(values[index]) for name, values in measures.items()}
            for index, label in enumerate(self._label_words)
        }

    def _tested(self, path: str, k: int, threshold: float) -> Iterator[tuple[set[int], set[int]]]:
        """Yield the labels of each line that has any and known words, and those predicted, by their indices."""
        known = {label: index for index, label in enumerate(self._label_words)}
        texts, marks = _read_labelled(path)
        model = self._lines
        best, _ = model.predict(Block.from_texts(texts), len(known) if k < 0 else min(k, len(known)), threshold)
        rows = model.rows_of_lines(Block.from_texts(texts), self._workspace(texts))[1]
        for line, names in enumerate(marks):
            gold = {known[name] for name in names if name in known}
            if gold and rows[line + 1] > rows[line]:
                yield gold, {int(label) for label in best[line] if label >= 0}

    @cached_property
    def _label_words(self) -> list[str]:
        return [word.decode("utf-8", "surrogateescape") for word in self._lines.dictionary.label_words]

    def _workspace(self, texts: Sequence[str]) -> Any:
        longest = max((len(text.encode()) for text in texts), default=0)
        return make_line_workspace(longest, self._lines.reader, self._lines.inputs.shape[1])

    # Vectors

    def get_dimension(self) -> int:
        """Return the number of columns of a vector."""
        return self._file.settings.dim

    def get_word_vector(self, word: str) -> Floats:
        """Return the vector of a word, made of its n-grams if it is unknown; zeros if it has none."""
        try:
            return np.array(self._vectors[word], np.float32)
        except KeyError:
            return np.zeros(self.get_dimension(), np.float32)

    def __getitem__(self, word: str) -> Floats:
        return self.get_word_vector(word)

    def __contains__(self, word: str) -> bool:
        return self.get_word_id(word) >= 0

    def get_sentence_vector(self, text: str) -> Floats:
        """Return the mean of a line's rows for a classifier; else the mean of its words' vectors, each of length 1."""
        _line(text)
        if self._is_supervised:
            rows = self._lines.rows_of_lines(Block.from_texts([text]), self._workspace([text]))[0]
            mean = self._lines.inputs[rows, : self.get_dimension()].mean(axis=0) if len(rows) else 0
            return np.zeros(self.get_dimension(), np.float32) + np.asarray(mean, np.float32)
        vectors = [self.get_word_vector(word) for word in text.split()] + [self.get_word_vector(EOS)]
        lengths = [float(np.linalg.norm(vector)) for vector in vectors]
        known = [vector / length for vector, length in zip(vectors, lengths, strict=True) if length > 0]
        return np.mean(known, axis=0, dtype=np.float32) if known else np.zeros(self.get_dimension(), np.float32)

    def get_nearest_neighbors(self, word: str, k: int = 10, on_unicode_error: str = "strict") -> Neighbours:
        """Return the k words whose vectors have the highest cosines with that of a word."""
        return self._nearest(self.get_word_vector(word), k, {word})

    def get_analogies(
        self, wordA: str, wordB: str, wordC: str, k: int = 10, on_unicode_error: str = "strict"
    ) -> Neighbours:  # fmt: skip
        """Return the k words nearest to A − B + C, each of length 1."""
        query = np.zeros(self.get_dimension(), np.float32)
        for word, sign in ((wordA, 1.0), (wordB, -1.0), (wordC, 1.0)):
            vector = self.get_word_vector(word)
            query += np.float32(sign / (np.linalg.norm(vector) + 1e-8)) * vector
        return self._nearest(query, k, {wordA, wordB, wordC})

    @cached_property
    def _directions(self) -> Floats:
        rows = self._vectors.rows.floats(slice(None))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)

    def _nearest(self, query: Floats, k: int, left_out: set[str]) -> Neighbours:
        length = float(np.linalg.norm(query))
        cosines = self._directions @ query / (length if abs(length) >= 1e-8 else 1.0)
        words, found = self.words, list[tuple[float, str]]()
        for index in np.argsort(-cosines, kind="stable")[: k + len(left_out)].tolist():
            if words[index] not in left_out:
                found.append((float(cosines[index]), words[index]))
        return found[:k]

    # The dictionary

    @cached_property
    def words(self) -> list[str]:
        """The words, in the order of the file."""
        return self._names(0, self._file.number_of_words, "strict")

    @property
    def labels(self) -> list[str]:
        """The labels with their prefix; the words of a model that has none."""
        return self._names(self._file.number_of_words, None, "strict") if self._is_supervised else self.words

    def get_words(self, include_freq: bool = False, on_unicode_error: str = "strict") -> Any:
        """Return the words, and with ``include_freq`` how often each occurred."""
        return self._entries(0, self._file.number_of_words, include_freq, on_unicode_error)

    def get_labels(self, include_freq: bool = False, on_unicode_error: str = "strict") -> Any:
        """Return the labels, or the words of a model that has none."""
        if not self._is_supervised:
            return self.get_words(include_freq, on_unicode_error)
        return self._entries(self._file.number_of_words, len(self._file.words), include_freq, on_unicode_error)

    def _entries(self, first: int, last: int, include_freq: bool, errors: str) -> Any:
        names = self._names(first, last, errors)
        return (names, self._file.counts[first:last].copy()) if include_freq else names

    def _names(self, first: int, last: int | None, errors: str) -> list[str]:
        return [word.decode("utf-8", errors) for word in self._file.words[first:last]]

    def get_word_id(self, word: str) -> int:
        """Return the index of a word, −1 if it is unknown."""
        return int(self._vectors.places([word])[0])

    def get_label_id(self, label: str) -> int:
        """Return the index of a label, −1 if it is unknown."""
        return self._label_words.index(label) if label in self._label_words else -1

    def get_subwords(self, word: str, on_unicode_error: str = "strict") -> tuple[list[str], Longs]:
        """Return a known word and its n-grams, and the rows of the input matrix that they have."""
        settings, index = self._file.settings, self.get_word_id(word)
        names, rows = ([word], [index]) if index >= 0 else ([], [])
        if word != EOS and settings.maxn and settings.bucket:
            for ngram in _ngrams(f"{BOW}{word}{EOW}", settings.minn, settings.maxn):
                names.append(ngram)
                rows.append(self.get_subword_id(ngram))
        return names, np.array(rows, np.int64)

    def get_subword_id(self, subword: str) -> int:
        """Return the row of the input matrix that an n-gram has."""
        return self._file.number_of_words + _hashed(subword) % max(1, self._file.settings.bucket)

    def get_line(self, text: str | list[str], on_unicode_error: str = "strict") -> tuple[Any, Any]:
        """Return the words of a line, with its end, and its labels that the model knows; for a list a list of each."""
        if isinstance(text, list):
            found = [self.get_line(line) for line in text]
            return [words for words, _ in found], [labels for _, labels in found]
        words = [*_line(text).split(), EOS]
        known, prefix = self.labels if self._is_supervised else [], PREFIX.decode()
        return [w for w in words if not w.startswith(prefix)], [w for w in words if w in known]

    def get_input_vector(self, ind: int) -> Floats:
        """Return a row of the input matrix."""
        matrix = self._file.inputs
        rows = matrix.to_floats() if isinstance(matrix, QuantizedMatrix) else matrix
        return np.array(rows[ind], np.float32)

    def get_input_matrix(self) -> Floats:
        """Return a copy of the input matrix, one row for each word and then each n-gram."""
        return _floats(self._file.inputs)

    def get_output_matrix(self) -> Floats:
        """Return a copy of the output matrix, one row for each label, or for each word."""
        return _floats(self._file.outputs)

    # Files

    def is_quantized(self) -> bool:
        """Return whether the matrices are quantised."""
        return isinstance(self._file.inputs, QuantizedMatrix)

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Write a file that fastText loads."""
        write_fasttext(self._file, Path(path))

    def quantize(
        self, input: str | None = None, qout: bool = False, cutoff: int = 0, retrain: bool = False,
        epoch: int | None = None, lr: float | None = None, thread: int | None = None, verbose: int | None = None,
        dsub: int = 2, qnorm: bool = False,
    ) -> None:  # fmt: skip
        """Quantise the model in place. Training it again afterwards is not supported."""
        if retrain:
            raise ValueError("retrain=True is not supported: a quantised model is not trained again")
        if not self._is_supervised:
            raise ValueError("For now we only support quantization of supervised models")
        file = quantize(
            FastTextClassifier.from_file(self._file), cutoff=cutoff or None, part=dsub, norms=qnorm, outputs=qout
        )
        self.__dict__.clear()
        self._file = file


class Inner:
    """What ``model.f`` is: the calls without checks and conversions, for lines that end in a line feed."""

    def __init__(self, model: FastText) -> None:
        self._model = model

    def predict(
        self, text: str, k: int = 1, threshold: float = 0.0, on_unicode_error: str = "strict"
    ) -> list[tuple[float, str]]:
        """Return pairs of a probability and a label, the likeliest first."""
        labels, chances = self.multilinePredict([text], k, threshold, on_unicode_error)
        return list(zip(chances[0].tolist(), labels[0], strict=True))

    def multilinePredict(  # noqa: N802
        self, texts: Sequence[str], k: int = 1, threshold: float = 0.0, on_unicode_error: str = "strict"
    ) -> tuple[list[list[str]], list[Floats]]:
        """Return the labels and the probabilities of several lines."""
        model = self._model._lines
        most = model.dictionary.labels
        if k == 0 or k < -1:
            raise ValueError("k needs to be 1 or higher!")
        best, shares = model.predict(Block.from_texts(list(texts)), most if k < 0 else min(k, most), threshold)
        names = self._model._label_words
        labels = [[names[label] for label in row if label >= 0] for row in best.tolist()]
        return labels, [row[: len(found)].copy() for row, found in zip(shares, labels, strict=True)]


def load_model(path: str | os.PathLike[str]) -> FastText:
    """Open a ``.bin`` or ``.ftz``."""
    if not Path(path).exists():
        raise ValueError(f"{path} cannot be opened for loading!")
    with _as_value_errors():
        return FastText(read_fasttext(Path(path)))


def tokenize(text: str) -> list[str]:
    """Split a text into words, with ``</s>`` for each line feed."""
    first, *others = text.split("\n")
    return [*first.split(), *(word for line in others for word in (EOS, *line.split()))]


def train_supervised(
    input: str, lr: float = 0.1, dim: int = 100, ws: int = 5, epoch: int = 5, minCount: int = 1,
    minn: int = 0, maxn: int = 0, wordNgrams: int = 1, loss: str = "softmax", bucket: int = 2_000_000,
    thread: int | None = None, seed: int = 0, **others: Any,
) -> FastText:  # fmt: skip
    """Train a classifier on a file of lines with labels that begin with ``__label__``."""
    _check_others(others)
    if loss not in _LOSSES:
        raise ValueError(f"loss {loss!r} is not supported: expected softmax, hs or ova")
    texts, marks = _read_labelled(input)
    chosen: Any = _LOSSES[loss]
    model = FastTextClassifier(
        dim, loss=chosen, word_ngrams=wordNgrams, min_count=minCount, epochs=epoch, rate=lr, seed=seed,
        threads=thread or max(1, cores() - 1), min_n=minn, max_n=maxn, buckets=max(1, bucket),
    )  # fmt: skip
    prefix = PREFIX.decode()
    labels = [[mark.removeprefix(prefix) for mark in line] for line in marks]
    with _as_value_errors():
        for _ in model.train(texts, labels):
            pass
    return FastText(model.to_file())


def train_unsupervised(
    input: str, model: str = "skipgram", lr: float = 0.05, dim: int = 100, ws: int = 5, epoch: int = 5,
    minCount: int = 5, minn: int = 3, maxn: int = 6, neg: int = 5, loss: str = "ns",
    bucket: int = 2_000_000, thread: int | None = None, t: float = 1e-4, seed: int = 0, **others: Any,
) -> FastText:  # fmt: skip
    """Train word vectors with subwords on a file of text."""
    _check_others(others)
    if loss != "ns" or model not in _MODELS:
        raise ValueError(f"model {model!r} with loss {loss!r} is not supported: expected skipgram or cbow with ns")
    chosen: Any = _MODELS[model]
    vectors = Vectors(
        dim, model=chosen, window=ws, negatives=neg, sample=t, epochs=epoch, rate=lr, seed=seed,
        threads=thread or max(1, cores() - 1), min_n=minn, max_n=maxn, buckets=max(1, bucket),
    )  # fmt: skip
    text = [line for line in Path(input).read_text(encoding="utf-8").split("\n") if line.strip()]
    tokenizer = WordTokenizer(min_count=minCount)
    with _as_value_errors():
        vectors.fit(tokenizer.fit_corpus([Block.from_texts(text)], threads=1))
    return FastText(vectors.to_file())


@contextmanager
def _as_value_errors() -> Iterator[None]:
    """Raise faults of the input as the original does."""
    try:
        yield
    except ForewordError as error:
        raise ValueError(str(error)) from error


_WITHOUT_EFFECT = ("verbose", "lrUpdateRate", "minCountLabel", "neg", "ws", "t", "wordNgrams", "label")
_DEFAULTS = {"minCountLabel": 0, "label": PREFIX.decode(), "wordNgrams": 1, "pretrainedVectors": ""}


def _check_others(others: dict[str, Any]) -> None:
    """Refuse arguments that would change the result and are not supported."""
    for name, value in others.items():
        if name in _DEFAULTS and value == _DEFAULTS[name]:
            continue
        if name not in _WITHOUT_EFFECT or name in _DEFAULTS:
            raise ValueError(f"{name}={value!r} is not supported")


def _read_labelled(path: str) -> tuple[list[str], list[list[str]]]:
    """Return the text of each line without its labels, and the labels."""
    if not Path(path).exists():
        raise ValueError(f"{path} cannot be opened for training!")
    texts, marks, prefix = list[str](), list[list[str]](), PREFIX.decode()
    for line in Path(path).read_text(encoding="utf-8").split("\n"):
        words = line.split()
        labels = [word for word in words if word.startswith(prefix)]
        if words:
            texts.append(" ".join(word for word in words if not word.startswith(prefix)))
            marks.append(labels)
    return texts, marks


def _line(text: str) -> str:
    if "\n" in text:
        raise ValueError("predict processes one line at a time (remove '\\n')")
    return f"{text}\n"


def _ngrams(word: str, least: int, most: int) -> Iterator[str]:
    """Yield the n-grams of a marked word; single characters at its ends are its marks."""
    for first in range(len(word)):
        for length in range(1, min(most, len(word) - first) + 1):
            is_mark = length == 1 and first in (0, len(word) - 1)
            if length >= least and not is_mark:
                yield word[first : first + length]


def _hashed(text: str) -> int:
    """Return fastText's hash: FNV-1a of 32 bits over signed bytes."""
    found = 2166136261
    for byte in text.encode():
        found ^= byte if byte < 128 else byte | 0xFFFFFF00
        found = found * 16777619 & 0xFFFFFFFF
    return found


def _floats(matrix: Matrix) -> Floats:
    if isinstance(matrix, QuantizedMatrix):
        raise ValueError("Can't get quantized Matrix")
    return np.array(matrix, np.float32)
