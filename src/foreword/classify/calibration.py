"""Probabilities that mean what they say: of a hundred answers given with 80 %, eighty should be right.

A classifier that took words for independent, or that knows its training texts too well, is surer than it should be. One
number mends most of that:

    p(c | x) ∝ p₀(c | x)^(1/T)          T = argmin Σ_i −log p(y_i | x_i)

over documents that the classifier had not seen: the training set is dealt out in parts, and each is judged by a
classifier trained on the others. T > 1 makes it less sure. Which class is the likeliest does not change, so neither
does any prediction. With two classes this is Platt's sigmoid without its offset.

C. Guo, G. Pleiss, Y. Sun and K. Weinberger, "On calibration of modern neural networks", ICML 2017.
J. Platt, "Probabilistic outputs for support vector machines", 1999, for the held-out parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Self

import numpy as np

from foreword.classify.linear import DataError, Doubles, Labels, classes_of, list_of_labels, log_softmax, numbers_of
from foreword.errors import SettingError
from foreword.features.estimator import Estimator, NotLearntError
from foreword.io.folder import nest, unnest
from foreword.protocols import Classifier, Counts, Logs, Meter, Parts, Saveable

COLDEST, HOTTEST = 1e-2, 1e3
"""Bounds of T: where every held-out document is right, or none, there is no best."""


def calibrated(classifier: Classifier, X: Counts, y: Sequence[Any], *, folds: int = 5, seed: int = 0) -> Calibrated:
    """The classifier, trained on X and y, with probabilities that agree with how often it is right."""
    return Calibrated(classifier, folds=folds, seed=seed).fit(X, y)


class Calibrated(Estimator):
    """A classifier and its temperature.

    folds: parts that the documents are dealt out in, class by class. seed: of the dealing.
    After fit: ``model``, trained on everything; ``temperature_``; and, where the model is linear, ``weights_`` and
    ``bias_``, divided by the temperature.
    """

    def __init__(self, model: Classifier, *, folds: int = 5, seed: int = 0) -> None:
        self.model = model
        self.folds = folds
        self.seed = seed

    def fit(self, X: Counts, y: Sequence[Any], *, meter: Meter | None = None) -> Self:
        self._check_settings()
        labels = list_of_labels(y)
        classes = classes_of(labels)
        numbers = numbers_of(labels, classes)
        if len(labels) != _documents(X):
            raise DataError(f"{_documents(X)} documents and {len(labels)} labels: expected a label for each document")
        if np.bincount(numbers).max(initial=0) < 2 or len(classes) < 2:
            raise DataError("calibration needs two classes, and two documents of one of them at least")
        parts = deal(numbers, min(self.folds, len(labels)), self.seed)
        logs, truth = [], []
        for part in range(int(parts.max()) + 1):
            if meter:
                meter("calibrating", part, int(parts.max()) + 1)
            held = parts == part
            if len(set(numbers[~held].tolist())) < 2:
                continue
            model = deepcopy(self.model).fit(_rows(X, ~held), [labels[row] for row in np.flatnonzero(~held)])
            known = numbers_of(list(model.classes_), classes)
            there = held & np.isin(numbers, known)  # a class that only the held part has cannot be foreseen
            if there.any():
                padded = np.full((int(there.sum()), len(classes)), -np.inf)
                padded[:, known] = model.predict_log_proba(_rows(X, there))
                logs.append(padded)
                truth.append(numbers[there])
        self.temperature_ = best_temperature(np.concatenate(logs), np.concatenate(truth)) if logs else 1.0
        self.model.fit(X, y)
        return self

    @property
    def classes_(self) -> Any:
        return self.model.classes_

    @property
    def weights_(self) -> Doubles:
        weights: Doubles = getattr(self.model, "weights_") / self._temperature()  # noqa: B009 - not all models have it
        return weights

    @property
    def bias_(self) -> Doubles:
        bias: Doubles = getattr(self.model, "bias_") / self._temperature()  # noqa: B009
        return bias

    def predict(self, X: Counts) -> Labels | Sequence[str]:
        return self.model.predict(X)

    def predict_log_proba(self, X: Counts) -> Logs:
        logs = np.asarray(self.model.predict_log_proba(X), np.float64)
        return log_softmax(logs / self._temperature(), np.full(logs.shape[1], -np.log(max(logs.shape[1], 1))))

    def predict_proba(self, X: Counts) -> Logs:
        return np.exp(self.predict_log_proba(X))

    def score(self, X: Counts, y: Sequence[Any]) -> float:
        return self.model.score(X, y)

    def __sklearn_tags__(self) -> Any:
        return self.model.__sklearn_tags__()  # type: ignore[attr-defined]

    def _temperature(self) -> float:
        if not hasattr(self, "temperature_"):
            raise NotLearntError(self)
        return self.temperature_

    def to_parts(self) -> Parts:
        parts = Parts({"temperature": float(self._temperature()), "folds": int(self.folds), "seed": int(self.seed)})
        if not isinstance(self.model, Saveable):
            raise SettingError(f"a {type(self.model).__name__} cannot be saved")
        nest("model", self.model, parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        settings: Any = parts.settings
        model = unnest("model", parts)
        if not isinstance(model, Classifier):
            raise ValueError(f"a {type(model).__name__} is no classifier")
        made = cls(model, folds=settings["folds"], seed=settings["seed"])
        made._check_settings()
        if not COLDEST <= settings["temperature"] <= HOTTEST:
            raise ValueError(f"temperature {settings['temperature']} must lie between {COLDEST:g} and {HOTTEST:g}")
        made.temperature_ = float(settings["temperature"])
        return made

    def _check_settings(self) -> None:
        for name, least in (("folds", 2), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise SettingError(f"{name}={value} must be a whole number, at least {least}")


def deal(numbers: Any, parts: int, seed: int) -> Any:
    """The part of each document, classes shared out as evenly as can be: (documents,), below ``parts``."""
    shuffled = np.random.default_rng(seed).permutation(len(numbers))
    by_class = shuffled[np.argsort(numbers[shuffled], kind="stable")]
    dealt = np.empty(len(numbers), np.int64)
    dealt[by_class] = np.arange(len(numbers)) % parts
    return dealt


def best_temperature(logs: Doubles, truth: Any) -> float:
    """T that makes the truth likeliest. logs: (documents, classes), −∞ where a class is impossible.

    The loss is convex in 1/T, so its slope is bisected: Σ_i Σ_c p_ic log p₀_ic − log p₀_iy.
    """
    finite = np.isfinite(logs)
    logs = np.where(finite, logs, np.min(logs[finite], initial=0.0) - 10.0)
    right = logs[np.arange(len(truth)), truth]
    low, high = np.log(1 / HOTTEST), np.log(1 / COLDEST)
    for _ in range(60):
        middle = 0.5 * (low + high)
        tempered = np.exp(log_softmax(logs * np.exp(middle), np.zeros(logs.shape[1])))
        if float(((tempered * logs).sum(axis=1) - right).sum()) > 0:
            high = middle
        else:
            low = middle
    return float(np.clip(np.exp(-0.5 * (low + high)), COLDEST, HOTTEST))  # rounding may leave the bounds


def _documents(X: Counts) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _rows(X: Counts, chosen: Any) -> Counts:
    if hasattr(X, "shape"):
        return X[np.flatnonzero(chosen)]
    return [row for row, keep in zip(X, chosen.tolist(), strict=True) if keep]
