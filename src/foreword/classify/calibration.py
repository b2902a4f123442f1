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
from scipy import sparse

from foreword.arrays import Doubles, Logs
from foreword.checks import saveable
from foreword.classify.linear import classes_of, list_of_labels, log_softmax, numbers_of
from foreword.errors import SettingError
from foreword.features.estimator import Estimator, EstimatorNotFittedError
from foreword.protocols import Classifier, Counts, Meter, Parts
from foreword.storage.folder import nest, unnest

COLDEST, HOTTEST = 1e-2, 1e3
"""Bounds of T: where every held-out document is right, or none, there is no best."""


def calibrated(classifier: Any, X: Counts, y: Sequence[Any], *, folds: int = 5, seed: int = 0) -> Calibrated:
    """The classifier, trained on X and y, with probabilities that agree with how often it is right."""
    return Calibrated(classifier, folds=folds, seed=seed).fit(X, y)


class Calibrated(Estimator):
    """A classifier and its temperature.

    folds: parts that the documents are dealt out in, class by class. seed: of the dealing.
    After fit: ``model_``, trained on everything; ``temperature_``; and, where the model is linear, ``weights_`` and
    ``bias_``, divided by the temperature.
    """

    model_: Any
    temperature_: float

    def __init__(self, model: Any, *, folds: int = 5, seed: int = 0) -> None:
        self.model = model
        self.folds = folds
        self.seed = seed

    def fit(self, X: Counts, y: Sequence[Any], *, meter: Meter | None = None) -> Self:
        self._check_settings()
        documents = _indexable(X)
        labels = list_of_labels(y)
        trained = deepcopy(self.model).fit(X, y)
        numbers = numbers_of(labels, classes_of(labels))
        parts = deal(numbers, min(self.folds, len(labels)), self.seed)
        logs, truth = [], []
        for part in range(int(parts.max()) + 1):
            if meter:
                meter("calibrating", part, int(parts.max()) + 1)
            found = self._held_out(documents, labels, numbers, parts == part)
            if found is not None:
                logs.append(found[0])
                truth.append(found[1])
        self.temperature_ = best_temperature(np.concatenate(logs), np.concatenate(truth)) if logs else 1.0
        self.model_ = trained
        if hasattr(trained, "n_features_in_"):
            self.n_features_in_: int = trained.n_features_in_
        return self

    def _held_out(self, documents: Any, labels: list[Any], numbers: Any, held: Any) -> tuple[Doubles, Any] | None:
        """Log-posteriors of the held documents, (documents, classes), by a model of the others; and their classes.

        Documents of a class that only they have are left out, for nobody could have foreseen it.
        """
        if len(set(numbers[~held].tolist())) < 2:
            return None
        rest = np.flatnonzero(~held)
        model = deepcopy(self.model).fit(_taken(documents, rest), [labels[row] for row in rest.tolist()])
        classes = classes_of(labels)
        known = numbers_of(list(model.classes_), classes)
        there = np.flatnonzero(held & np.isin(numbers, known))
        logs = np.full((len(there), len(classes)), -np.inf)
        if len(there):
            logs[:, known] = model.predict_log_proba(_taken(documents, there))
        return logs, numbers[there]

    @property
    def classes_(self) -> Any:
        return self._model().classes_

    @property
    def weights_(self) -> Doubles:
        weights: Doubles = self._model().weights_ / self.temperature_
        return weights

    @property
    def bias_(self) -> Doubles:
        bias: Doubles = self._model().bias_ / self.temperature_
        return bias

    def predict(self, X: Counts) -> Any:
        return self._model().predict(X)

    def predict_log_proba(self, X: Counts) -> Logs:
        logs = np.asarray(self._model().predict_log_proba(X), np.float64)
        return log_softmax(logs / self.temperature_, np.full(logs.shape[1], -np.log(max(logs.shape[1], 1))))

    def predict_proba(self, X: Counts) -> Logs:
        return np.exp(self.predict_log_proba(X))

    def score(self, X: Counts, y: Sequence[Any]) -> float:
        return float(self._model().score(X, y))

    def __sklearn_tags__(self) -> Any:
        tags: Any = self.model
        return tags.__sklearn_tags__()

    def _model(self) -> Any:
        if not hasattr(self, "model_"):
            raise EstimatorNotFittedError(self, "X, y")
        return self.model_

    def to_parts(self) -> Parts:
        parts = Parts({"temperature": float(self.temperature_), "folds": int(self.folds), "seed": int(self.seed)})
        nest("model", saveable(self._model()), parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        settings: Any = parts.settings
        model = unnest("model", parts)
        if not isinstance(model, Classifier):
            raise ValueError(f"a {type(model).__name__} is no classifier")
        made = cls(model, folds=settings["folds"], seed=settings["seed"])
        made._check_settings()
        temperature = settings["temperature"]
        if not (isinstance(temperature, int | float) and COLDEST <= temperature <= HOTTEST):
            raise ValueError(f"temperature {temperature} must lie between {COLDEST:g} and {HOTTEST:g}")
        made.model_, made.temperature_ = model, float(temperature)
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


def _indexable(X: Counts) -> Any:
    if sparse.issparse(X):
        return X.tocsr()
    return X if isinstance(X, list) else np.asarray(X)


def _taken(documents: Any, rows: Any) -> Any:
    return [documents[row] for row in rows.tolist()] if isinstance(documents, list) else documents[rows]
