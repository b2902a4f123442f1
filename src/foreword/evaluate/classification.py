"""How right a classifier is: accuracy with its uncertainty, F1, the confusion of classes, calibration.

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
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from foreword.arrays import Bools, Logs, Longs
from foreword.errors import InputError, SettingError
from foreword.protocols import Json, LabelModel

CONFIDENCE_Z = 1.959963984540054
"""95 % of a normal distribution lie within so many standard deviations."""

CALIBRATION_BINS = 15
"""As in Guo et al. 2017, On Calibration of Modern Neural Networks."""


@dataclass(frozen=True, slots=True)
class ClassScores:
    """One class. texts: how many are of it; predicted: how many were said to be."""

    label: str
    precision: float
    recall: float
    f1: float
    texts: int
    predicted: int


@dataclass(frozen=True, slots=True)
class Confusion:
    """What was what, and what it was taken for.

    labels: every label of the truth and the predictions, sorted. counts: int64 (labels, labels), the truth in rows.
    unseen: labels that the model cannot predict, and how many texts have each.
    calibration_error: mean gap between confidence and accuracy; None where there are no probabilities.
    """

    labels: tuple[str, ...]
    counts: Longs
    unseen: dict[str, int] = field(default_factory=dict)
    calibration_error: float | None = None

    @property
    def texts(self) -> int:
        return int(self.counts.sum())

    @property
    def right(self) -> int:
        return int(np.trace(self.counts))

    @property
    def accuracy(self) -> float:
        return self.right / self.texts

    @property
    def interval(self) -> tuple[float, float]:
        """Where the accuracy may really lie, at 95 %."""
        return wilson_interval(self.right, self.texts)

    @property
    def macro_f1(self) -> float:
        return math.fsum(scores.f1 for scores in self.classes) / len(self.labels)

    @property
    def micro_f1(self) -> float:
        return self.accuracy

    @property
    def classes(self) -> list[ClassScores]:
        hits, texts, predicted = np.diag(self.counts), self.counts.sum(axis=1), self.counts.sum(axis=0)
        return [
            ClassScores(label, _share(hit, said), _share(hit, true), _share(2 * hit, true + said), true, said)
            for label, hit, true, said in zip(
                self.labels, hits.tolist(), texts.tolist(), predicted.tolist(), strict=True
            )
        ]

    def to_json(self) -> dict[str, Json]:
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
                scores.label: {
                    "precision": scores.precision,
                    "recall": scores.recall,
                    "f1": scores.f1,
                    "texts": scores.texts,
                    "predicted": scores.predicted,
                }
                for scores in self.classes
            },
            "confusion": {"labels": list(self.labels), "counts": self.counts.tolist()},
        }


def confusion(truth: Sequence[str], predicted: Sequence[str], *, known: Collection[str] | None = None) -> Confusion:
    """Count what was taken for what; ``known`` are the labels that the model can predict."""
    if len(truth) != len(predicted):
        raise InputError(f"{len(truth)} labels and {len(predicted)} predictions: expected as many of each")
    if not len(truth):
        raise InputError("there is nothing to measure: no labelled text")
    labels = sorted({*truth, *predicted})
    number = {label: place for place, label in enumerate(labels)}
    pairs = [number[true] * len(labels) + number[said] for true, said in zip(truth, predicted, strict=True)]
    counts = np.bincount(pairs, minlength=len(labels) ** 2).reshape(len(labels), len(labels)).astype(np.int64)
    unseen = Counter(label for label in truth if known is not None and label not in known)
    return Confusion(tuple(labels), counts, dict(sorted(unseen.items())))


def wilson_interval(right: int, total: int, z: float = CONFIDENCE_Z) -> tuple[float, float]:
    """The interval of a share of which ``right`` out of ``total`` were seen."""
    if not 0 <= right <= total or total == 0:
        raise SettingError(f"{right} out of {total} is no share")
    share, spread = right / total, z * z / total
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / total + spread / (4 * total))
    # At the ends the square root is exact on paper only.
    return 0.0 if right == 0 else max(0.0, middle - half), 1.0 if right == total else min(1.0, middle + half)


def calibration_error(confidence: Logs, right: Bools, bins: int = CALIBRATION_BINS) -> float:
    """Expected calibration error: texts are binned by the probability of what was said; the gaps between mean
    probability and share right are averaged, weighted by texts.

    confidence: float (texts,), probabilities of the predicted labels; right: bool (texts,).
    """
    place = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    gaps = np.bincount(place, confidence - right, bins)
    return float(np.abs(gaps).sum() / len(right))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


# --- a classifier of texts


@dataclass(slots=True)
class _Answers:
    """The labels of texts, what the model said, and how sure it was."""

    truth: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    sure: list[float] = field(default_factory=list)
    unseen: Counter[str] = field(default_factory=Counter)

    def ask(self, model: LabelModel, texts: Any, labels: Sequence[str]) -> None:
        known = set(model.classes_)
        best = list(model.predict_best(texts))
        usual = model.classes_[0]
        self.truth += labels
        # fastText says nothing of a text of which it knows nothing; its first class is the most frequent one.
        self.said += [ranks[0][0] if ranks else usual for ranks in best]
        self.sure += [ranks[0][1] if ranks else 0.0 for ranks in best]
        self.unseen.update(label for label in labels if label not in known)

    def __add__(self, other: _Answers) -> _Answers:
        return _Answers(
            self.truth + other.truth, self.said + other.said, self.sure + other.sure, self.unseen + other.unseen
        )

    def measured(self) -> Confusion:
        found = confusion(self.truth, self.said)
        right = np.fromiter(map(str.__eq__, self.truth, self.said), np.bool_, len(self.said))
        error = calibration_error(np.array(self.sure), right)
        return Confusion(found.labels, found.counts, dict(sorted(self.unseen.items())), error)


def measure_classifier(model: LabelModel, texts: Any, labels: Sequence[str]) -> Confusion:
    """Predict the texts and compare with their labels."""
    answers = _Answers()
    answers.ask(model, texts, labels)
    return answers.measured()


# --- cross-validation


@dataclass(frozen=True, slots=True)
class Fold:
    """One round: what was measured on its part, and on all parts so far together."""

    number: int
    of: int
    measures: Confusion
    so_far: Confusion


def stratified_folds(labels: Sequence[str], folds: int, seed: int = 0) -> Longs:
    """int64 (texts,): the part, 0 to folds − 1, in which each text is tested.

    The texts of each class are shuffled and dealt out one by one, each class going on where the last one stopped: in
    any two parts the number of texts differs by one at most, and so does that of each class.
    """
    if not 2 <= folds <= len(labels):
        raise SettingError(f"folds must be at least 2 and at most the number of texts, {len(labels)}, not {folds}")
    generator = np.random.default_rng(seed)
    part = np.empty(len(labels), np.int64)
    places: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        places.setdefault(label, []).append(place)
    dealt = 0
    for label in sorted(places):
        shuffled = generator.permutation(places[label])
        part[shuffled] = (dealt + np.arange(len(shuffled))) % folds
        dealt += len(shuffled)
    return part


def lone_classes(labels: Sequence[str]) -> list[str]:
    """Classes with a single text, which cross-validation can never get right."""
    return sorted(label for label, count in Counter(labels).items() if count == 1)


def cross_validate(
    make: Callable[[], LabelModel], texts: Sequence[str], labels: Sequence[str], *, folds: int = 10, seed: int = 0
) -> Iterator[Fold]:
    """Train on all parts but one and measure on that one, part after part; the last ``so_far`` is the result.

    ``make`` gives a fresh model: features too are learnt from the training parts alone. The only text of a class cannot
    be learnt from while it is tested, so it counts as wrong and as ``unseen``.
    """
    if len(Counter(labels)) - len(lone_classes(labels)) < 2:
        raise InputError("cross-validation needs two classes with two texts each, so that some of each are learnt from")
    return _rounds(make, texts, labels, stratified_folds(labels, folds, seed), folds)


def _rounds(
    make: Callable[[], LabelModel], texts: Sequence[str], labels: Sequence[str], part: Longs, folds: int
) -> Iterator[Fold]:
    answers = _Answers()
    for number in range(folds):
        test, train = (np.flatnonzero(chosen).tolist() for chosen in (part == number, part != number))
        model = make()
        model.fit([texts[place] for place in train], [labels[place] for place in train])
        here = _Answers()
        here.ask(model, [texts[place] for place in test], [labels[place] for place in test])
        answers = answers + here
        yield Fold(number + 1, folds, here.measured(), answers.measured())
