"""The ``fasttext`` module of fastText, with Foreword behind it: ``import foreword.compat.fasttext as fasttext``.

The same names, arguments, results and types of errors as the ``fasttext`` module 0.9.3, without a compiler and under
NumPy 2. Probabilities and vectors equal fastText's to 1e-6. Models are trained by Foreword: the settings mean the same,
the random numbers are others, and automatic tuning searches by the accuracy. What has no counterpart here (pretrained
vectors, retraining a quantised model, another prefix of labels, negative sampling for a classifier, other losses for
vectors) raises a ValueError that names it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from foreword.arrays import Floats, Longs
from foreword.compat.fasttext_inner import Inner
from foreword.compat.fasttext_meter import Meter
from foreword.errors import ForewordError
from foreword.fasttext.autotune import autotune
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

__all__ = [
    "BOW", "EOS", "EOW", "FastText", "cbow", "load_model", "skipgram", "supervised", "tokenize", "train_supervised",
    "train_unsupervised",
]  # fmt: skip

EOS, BOW, EOW = "</s>", "<", ">"

_LOSSES = {"softmax": "softmax", "hs": "hierarchical-softmax", "ova": "one-vs-all"}
_SETTINGS = {
    "dim": "dimensions", "wordNgrams": "word_ngrams", "minCount": "min_count", "epoch": "epochs", "lr": "rate",
    "minn": "min_n", "maxn": "max_n",
}  # fmt: skip
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
        right = sum(len(gold & found.keys()) for gold, found in lines)
        with np.errstate(invalid="ignore"):
            precision = np.float64(right) / np.float64(sum(len(found) for _, found in lines))
            recall = np.float64(right) / np.float64(sum(len(gold) for gold, _ in lines))
        return len(lines), float(precision), float(recall)

    def test_label(self, path: str, k: int = 1, threshold: float = 0.0) -> dict[str, dict[str, float]]:
        """Return precision, recall and F1 of each label over a labelled file; NaN where they are shares of nothing."""
        counts = np.zeros((3, len(self._lines.dictionary.label_words)))
        for gold, found in self._tested(path, k, threshold):
            for row, labels in enumerate((gold & found.keys(), found, gold)):
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

    def get_meter(self, path: str, k: int = -1) -> Meter:
        """Return scores of each label, precision and recall over a labelled file."""
        return Meter(self._tested(path, k, 0.0), len(self._label_words), self.get_label_id)

    def _tested(self, path: str, k: int, threshold: float) -> Iterator[tuple[set[int], dict[int, float]]]:
        """Yield the labels of each line that has any and known words, and those predicted with their probabilities."""
        known = {label: index for index, label in enumerate(self._label_words)}
        texts, marks = _read_labelled(path, "{path}: Test file cannot be opened!")
        model = self._lines
        best, shares = model.predict(Block.from_texts(texts), len(known) if k < 0 else min(k, len(known)), threshold)
        rows = model.rows_of_lines(Block.from_texts(texts), self._workspace(texts))[1]
        for line, names in enumerate(marks):
            gold = {known[name] for name in names if name in known}
            if gold and rows[line + 1] > rows[line]:
                found = zip(best[line].tolist(), shares[line].tolist(), strict=True)
                yield gold, {label: share for label, share in found if label >= 0}

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
        self._replace(file)

    def set_matrices(self, input_matrix: Floats, output_matrix: Floats) -> None:
        """Replace both matrices by others of the same shapes."""
        given = [np.ascontiguousarray(matrix, np.float32) for matrix in (input_matrix, output_matrix)]
        shapes = [_floats(matrix).shape for matrix in (self._file.inputs, self._file.outputs)]
        if [matrix.shape for matrix in given] != shapes:
            raise ValueError(f"the matrices are {[m.shape for m in given]}, expected {shapes}")
        self._replace(replace(self._file, inputs=given[0], outputs=given[1]))

    def set_args(self, args: Any = None) -> None:
        """Copy the arguments of training from an object, such as ``f.getArgs()``."""
        for name in _DEFAULTS if args is not None else ():
            if hasattr(args, name):
                setattr(self, name, getattr(args, name))

    def _replace(self, file: FastTextFile) -> None:
        """Use another file, and drop what was derived from the one before."""
        self.__dict__.clear()
        self._file = file


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


_DEFAULTS: dict[str, Any] = {
    "lr": 0.05, "dim": 100, "ws": 5, "epoch": 5, "minCount": 5, "minCountLabel": 0, "minn": 3, "maxn": 6, "neg": 5,
    "wordNgrams": 1, "loss": "ns", "bucket": 2_000_000, "thread": None, "lrUpdateRate": 100, "t": 1e-4,
    "label": PREFIX.decode(), "verbose": 2, "pretrainedVectors": "", "seed": 0, "autotuneValidationFile": "",
    "autotuneMetric": "f1", "autotunePredictions": 1, "autotuneDuration": 300, "autotuneModelSize": "",
}  # fmt: skip
"""The arguments of training in fastText's order, with the defaults for vectors."""

_OF_CLASSIFIERS = {"lr": 0.1, "minCount": 1, "minn": 0, "maxn": 0, "loss": "softmax"}
_NOT_OFFERED = ("minCountLabel", "label", "pretrainedVectors", "autotuneMetric", "autotunePredictions",
                "autotuneModelSize")  # fmt: skip


def train_supervised(input: str = "", *values: Any, **given: Any) -> FastText:
    """Train a classifier on a file of lines with labels that begin with ``__label__``.

    values, given: lr, dim, ws, epoch, minCount, minCountLabel, minn, maxn, neg, wordNgrams, loss (softmax, hs or ova),
    bucket, thread and the other arguments of fastText, in its order. With ``autotuneValidationFile`` those that are not
    given are chosen by the accuracy on that file, within ``autotuneDuration`` seconds.
    """
    chosen = _bound("train_supervised", _DEFAULTS | _OF_CLASSIFIERS, values, given)
    if chosen["loss"] not in _LOSSES:
        raise ValueError(f"loss {chosen['loss']!r} is not supported: expected softmax, hs or ova")
    texts, marks = _read_labelled(input, "{path} cannot be opened for training!")
    prefix = PREFIX.decode()
    labels = [[mark.removeprefix(prefix) for mark in line] for line in marks]
    with _as_value_errors():
        if chosen["autotuneValidationFile"]:
            set_by_hand = dict(zip(_DEFAULTS, values, strict=False)) | given
            return FastText(_tuned(texts, labels, chosen, _settings_of(chosen, set_by_hand)).to_file())
        model = FastTextClassifier(**_settings_of(chosen, chosen), seed=chosen["seed"])
        for _ in model.train(texts, labels):
            pass
    return FastText(model.to_file())


def _settings_of(chosen: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of our classifier for those arguments that are named; loss and threads always."""
    settings = {ours: chosen[theirs] for theirs, ours in _SETTINGS.items() if theirs in named}
    if "bucket" in named:
        settings["buckets"] = max(1, chosen["bucket"])
    return {**settings, "loss": _LOSSES[chosen["loss"]], "threads": chosen["thread"] or max(1, cores() - 1)}


def _tuned(
    texts: list[str], labels: list[list[str]], chosen: dict[str, Any], fixed: dict[str, Any]
) -> FastTextClassifier:
    """Return the best classifier that is found in the given time."""
    path, prefix = chosen["autotuneValidationFile"], PREFIX.decode()
    valid_texts, marks = _read_labelled(path, "{path}: Validation file cannot be opened!")
    valid = [[mark.removeprefix(prefix) for mark in line] for line in marks]
    if any(len(each) != 1 for each in (*labels, *valid)):
        raise ValueError("autotuneValidationFile is not supported with several labels per line, or none")
    best = None
    for trial in autotune(
        texts, [label for label, in labels], valid_texts, [label for label, in valid],
        seconds=chosen["autotuneDuration"], seed=chosen["seed"], **fixed,
    ):  # fmt: skip
        best = trial.classifier if trial.best else best
    assert best is not None  # the first trial is the best so far
    return best


def train_unsupervised(input: str = "", model: str = "skipgram", *values: Any, **given: Any) -> FastText:
    """Train word vectors with subwords on a file of text. values, given: as in ``train_supervised``; loss is ns."""
    chosen = _bound("train_unsupervised", _DEFAULTS, values, given)
    if model not in _MODELS:
        raise ValueError(f"model {model!r} is not supported: expected skipgram or cbow")
    if chosen["loss"] != "ns":
        raise ValueError(f"loss {chosen['loss']!r} is not supported for vectors: expected ns")
    if chosen["autotuneValidationFile"]:
        raise ValueError("autotuneValidationFile is not supported for vectors: expected a classifier")
    kind: Any = _MODELS[model]
    vectors = Vectors(
        chosen["dim"], model=kind, window=chosen["ws"], negatives=chosen["neg"], sample=chosen["t"],
        epochs=chosen["epoch"], rate=chosen["lr"], seed=chosen["seed"], threads=chosen["thread"] or max(1, cores() - 1),
        min_n=chosen["minn"], max_n=chosen["maxn"], buckets=max(1, chosen["bucket"]),
    )  # fmt: skip
    if not Path(input).is_file():
        raise ValueError(f"{input} cannot be opened for training!")
    text = [line for line in Path(input).read_text(encoding="utf-8").split("\n") if line.strip()]
    tokenizer = WordTokenizer(min_count=chosen["minCount"])
    with _as_value_errors():
        vectors.fit(tokenizer.fit_corpus([Block.from_texts(text)], threads=1))
    return FastText(vectors.to_file())


def skipgram(*values: Any, **given: Any) -> FastText:
    """Raise, as fastText does: this name is that of an older module."""
    raise NotImplementedError("`skipgram` is not supported any more: use train_unsupervised with model='skipgram'")


def cbow(*values: Any, **given: Any) -> FastText:
    """Raise, as fastText does: this name is that of an older module."""
    raise NotImplementedError("`cbow` is not supported any more: use train_unsupervised with model='cbow'")


def supervised(*values: Any, **given: Any) -> FastText:
    """Raise, as fastText does: this name is that of an older module."""
    raise NotImplementedError("`supervised` is not supported any more: use train_supervised")


def _bound(name: str, defaults: dict[str, Any], values: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    """Return all arguments of a training by name; refuse one that is unknown, given twice or not supported."""
    if len(values) > len(defaults):
        raise TypeError(f"{name}() takes at most {len(defaults) + 1} arguments")
    by_place = dict(zip(defaults, values, strict=False))
    for each in given:
        if each not in defaults:
            raise TypeError(f"{name}() got an unexpected keyword argument {each!r}")
        if each in by_place:
            raise TypeError(f"{name}() got multiple values for argument {each!r}")
    chosen = {**defaults, **by_place, **given}
    for each in _NOT_OFFERED:
        if chosen[each] != defaults[each]:
            raise ValueError(f"{each}={chosen[each]!r} is not supported: expected {defaults[each]!r}")
    return chosen


@contextmanager
def _as_value_errors() -> Iterator[None]:
    """Raise faults of the input as the original does."""
    try:
        yield
    except ForewordError as error:
        raise ValueError(str(error)) from error


def _read_labelled(path: str, missing: str) -> tuple[list[str], list[list[str]]]:
    """Return the text of each line without its labels, and the labels. missing: the message if there is no file."""
    if not Path(path).is_file():
        raise ValueError(missing.format(path=path))
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
