"""Evaluation of classifiers: accuracy with its confidence interval, F1, the confusion matrix, calibration.

With tp, fp, fn counted for one class:

    precision = tp / (tp + fp)     recall = tp / (tp + fn)     F1 = 2 tp / (2 tp + fp + fn)

0/0 counts as 0. Macro F1 is the mean over classes, those that only the truth or only the predictions name included;
micro F1, where every text has one label, is accuracy. A label that the model has never seen in training can only be
predicted wrongly: its texts count as wrong, and ``unseen`` says how many they are.

The interval is Wilson's (1927): the accuracies p for which what was seen is no surprise, |p̂ − p| ≤ z √(p (1−p) / n).
Unlike p̂ ± z √(p̂ (1−p̂) / n) it never leaves [0, 1] and is not empty when everything is right.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from foreword.arrays import Bools, Logs, Longs
from foreword.errors import InputError, SettingError
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, LabelModel

CONFIDENCE_Z = 1.959963984540054
"""Standard deviations within which 95 % of a normal distribution lie."""

CALIBRATION_BINS = 15
"""As in Guo et al. 2017, On Calibration of Modern Neural Networks."""


@dataclass(frozen=True, slots=True)
class ClassScores:
    """One class. texts: of this class; predicted: texts that were predicted to be."""

    label: str
    precision: float
    recall: float
    f1: float
    texts: int
    predicted: int


@dataclass(frozen=True, slots=True)
class Confusion(ShownInNotebook):
    """A confusion matrix.

    labels: every label of the truth and the predictions, sorted. counts: int64 (labels, labels), the truth in rows.
    unseen: labels that the model cannot predict → the number of their texts.
    calibration_error: mean gap between confidence and accuracy; None where there are no probabilities.
    """

    labels: tuple[str, ...]
    counts: Longs
    unseen: dict[str, int] = field(default_factory=dict)
    calibration_error: float | None = None

    @property
    def texts(self) -> int:
        """The number of texts."""
        return int(self.counts.sum())

    @property
    def right(self) -> int:
        """The number of right predictions."""
        return int(np.trace(self.counts))

    @property
    def accuracy(self) -> float:
        """The share of right predictions."""
        return self.right / self.texts

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the accuracy."""
        return wilson_interval(self.right, self.texts)

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes."""
        return math.fsum(scores.f1 for scores in self.classes) / len(self.labels)

    @property
    def micro_f1(self) -> float:
        """F1 over all texts, which is the accuracy."""
        return self.accuracy

    @property
    def classes(self) -> list[ClassScores]:
        """The scores of each class."""
        hits, texts, predicted = np.diag(self.counts), self.counts.sum(axis=1), self.counts.sum(axis=0)
        return [
            ClassScores(label, share(hit, named), share(hit, true), share(2 * hit, true + named), true, named)
            for label, hit, true, named in zip(
                self.labels, hits.tolist(), texts.tolist(), predicted.tolist(), strict=True
            )
        ]

    def to_json(self) -> dict[str, Json]:
        """Return the measures as JSON can hold them."""
        return {
            "accuracy": self.accuracy,
            "accuracy_interval": list(self.interval),
            "f1": self.macro_f1,
            "micro_f1": self.micro_f1,
            "calibration_error": self.calibration_error,
            "texts": self.texts,
            "right": self.right,
            "unseen_labels": dict(self.unseen),
            "classes": {
                scores.label: {name: value for name, value in asdict(scores).items() if name != "label"}
                for scores in self.classes
            },
            "confusion": {"labels": list(self.labels), "counts": self.counts.tolist()},
        }


def confusion(truth: Sequence[str], predicted: Sequence[str], *, known: Collection[str] | None = None) -> Confusion:
    """Count the confusion matrix; ``known`` are the labels that the model can predict."""
    if len(truth) != len(predicted):
        raise InputError(f"{len(truth)} labels and {len(predicted)} predictions: expected as many of each")
    if not len(truth):
        raise InputError("there is nothing to measure: no labelled text")
    labels = sorted({*truth, *predicted})
    index = {label: number for number, label in enumerate(labels)}
    pairs = [index[true] * len(labels) + index[named] for true, named in zip(truth, predicted, strict=True)]
    counts = np.bincount(pairs, minlength=len(labels) ** 2).reshape(len(labels), len(labels)).astype(np.int64)
    unseen = Counter(label for label in truth if known is not None and label not in known)
    return Confusion(tuple(labels), counts, dict(sorted(unseen.items())))


def wilson_interval(right: int, total: int, z: float = CONFIDENCE_Z) -> tuple[float, float]:
    """Return the Wilson confidence interval of a proportion, ``right`` out of ``total``."""
    if not 0 <= right <= total or total == 0:
        raise SettingError(f"{right} out of {total} is not a proportion")
    proportion, spread = right / total, z * z / total
    middle = (proportion + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(proportion * (1 - proportion) / total + spread / (4 * total))
    # At the ends the square root is exact on paper only.
    return 0.0 if right == 0 else max(0.0, middle - half), 1.0 if right == total else min(1.0, middle + half)


def calibration_error(confidence: Logs, right: Bools, bins: int = CALIBRATION_BINS) -> float:
    """Return the expected calibration error: texts are binned by the probability of their predicted label; the gaps
    between mean probability and accuracy are averaged, weighted by texts.

    confidence: float (texts,), probabilities of the predicted labels; right: bool (texts,).
    """
    bin = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    gaps = np.bincount(bin, confidence - right, bins)
    return float(np.abs(gaps).sum() / len(right))


def share(part: float, whole: float) -> float:
    """Return ``part`` / ``whole``, and 0 for 0/0."""
    return part / whole if whole else 0.0


# A classifier of texts


@dataclass(slots=True)
class _Predictions:
    """Labels of texts, their predictions and the probabilities of those."""

    truth: list[str] = field(default_factory=list)
    predicted: list[str] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)
    unseen: Counter[str] = field(default_factory=Counter)

    def add(self, model: LabelModel, texts: Any, labels: Sequence[str]) -> None:
        """Predict texts and add the predictions."""
        known = set(map(str, model.classes_))
        best = list(model.predict_best(texts))
        names = list(map(str, labels))  # a file has strings where the model may have learnt numbers
        self.truth += names
        # fastText predicts nothing for a text without known words; its first class is the most frequent one.
        self.predicted += [str(ranks[0][0] if ranks else model.classes_[0]) for ranks in best]
        self.probabilities += [ranks[0][1] if ranks else 0.0 for ranks in best]
        self.unseen.update(label for label in names if label not in known)

    def __add__(self, other: _Predictions) -> _Predictions:
        return _Predictions(
            self.truth + other.truth,
            self.predicted + other.predicted,
            self.probabilities + other.probabilities,
            self.unseen + other.unseen,
        )

    def measure(self) -> Confusion:
        """Compare the predictions with the labels."""
        found = confusion(self.truth, self.predicted)
        right = np.fromiter(map(str.__eq__, self.truth, self.predicted), np.bool_, len(self.predicted))
        error = calibration_error(np.array(self.probabilities), right)
        return Confusion(found.labels, found.counts, dict(sorted(self.unseen.items())), error)


def measure_classifier(model: LabelModel, texts: Any, labels: Sequence[str]) -> Confusion:
    """Predict the texts and compare with their labels."""
    predictions = _Predictions()
    predictions.add(model, texts, labels)
    return predictions.measure()


# Cross-validation


@dataclass(frozen=True, slots=True)
class Fold:
    """One fold: the measures on its part, and on all parts so far together."""

    number: int
    of: int
    measures: Confusion
    so_far: Confusion


def stratified_folds(labels: Sequence[str], folds: int, seed: int = 0) -> Longs:
    """Return the fold, 0 to folds − 1, in which each text is tested, int64 (texts,).

    The texts of each class are shuffled and dealt out one by one, each class beginning where the last one ended: in
    any two folds the number of texts differs by one at most, and so does that of each class.
    """
    if not 2 <= folds <= len(labels):
        raise SettingError(f"folds must be at least 2 and at most the number of texts, {len(labels)}, not {folds}")
    generator = np.random.default_rng(seed)
    part = np.empty(len(labels), np.int64)
    by_label: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        by_label.setdefault(label, []).append(index)
    dealt = 0
    for label in sorted(by_label):
        shuffled = generator.permutation(by_label[label])
        part[shuffled] = (dealt + np.arange(len(shuffled))) % folds
        dealt += len(shuffled)
    return part


def lone_classes(labels: Sequence[str]) -> list[str]:
    """Return the classes with a single text, which cross-validation can never get right."""
    return sorted(label for label, count in Counter(labels).items() if count == 1)


def cross_validate(
    make: Callable[[], LabelModel], texts: Sequence[str], labels: Sequence[str], *, folds: int = 10, seed: int = 0
) -> Iterator[Fold]:
    """Train on all folds but one and measure on that one, fold by fold; the last ``so_far`` is the result.

    ``make`` returns an unfitted model: features too are learnt from the training folds alone. The only text of a class
    cannot be learnt from while it is tested, so it counts as wrong and as ``unseen``.
    """
    if len(Counter(labels)) - len(lone_classes(labels)) < 2:
        raise InputError("cross-validation needs two classes with two texts each, so that some of each are learnt from")
    return _rounds(make, texts, labels, stratified_folds(labels, folds, seed), folds)


def _rounds(
    make: Callable[[], LabelModel], texts: Sequence[str], labels: Sequence[str], part: Longs, folds: int
) -> Iterator[Fold]:
    total = _Predictions()
    for number in range(folds):
        test, train = (np.flatnonzero(chosen).tolist() for chosen in (part == number, part != number))
        model = make()
        model.fit([texts[index] for index in train], [labels[index] for index in train])
        fold = _Predictions()
        fold.add(model, [texts[index] for index in test], [labels[index] for index in test])
        total = total + fold
        yield Fold(number + 1, folds, fold.measure(), total.measure())
