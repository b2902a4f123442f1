"""Calibrated probabilities: of a hundred answers given with 80 %, eighty should be right.

A classifier that treats words as independent, or that has overfitted its training texts, is overconfident. One number
corrects most of that:

    p(c | x) ∝ p₀(c | x)^(1/T)          T = argmin Σ_i −log p(y_i | x_i)

over documents that the classifier has not seen: the training set is split into parts, and each is classified by a
model trained on the others. T > 1 makes it less confident. Which class is the likeliest does not change, so neither
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
from foreword.checks import check_numbers, saveable
from foreword.classify.labels import classes_of, list_of_labels, numbers_of
from foreword.classify.linear import log_softmax
from foreword.features.estimator import Estimator, EstimatorNotFittedError
from foreword.protocols import Classifier, Counts, Meter, Parts
from foreword.storage.folder import nest, unnest

COLDEST, HOTTEST = 1e-2, 1e3
"""Bounds of T: if every held-out document is classified right, or none, there is no optimum."""


def calibrated(classifier: Any, X: Counts, y: Sequence[Any], *, folds: int = 5, seed: int = 0) -> Calibrated:
    """Train a classifier on X and y and calibrate its probabilities."""
    return Calibrated(classifier, folds=folds, seed=seed).fit(X, y)


class Calibrated(Estimator):
    """A classifier with a temperature.

    folds: parts that the documents are split into, class by class. seed: of the split.
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
        """Train the classifier on everything, and find its temperature by cross-validation."""
        self._check_settings()
        documents = _indexable(X)
        labels = list_of_labels(y)
        trained = deepcopy(self.model).fit(X, y)
        numbers = numbers_of(labels, classes_of(labels))
        parts = stratified_parts(numbers, min(self.folds, len(labels)), self.seed)
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
        """Return the log-posteriors of the held-out documents, (documents, classes), by a model of the others, and
        their classes. Documents of a class that the others do not have are left out.
        """
        if len(set(numbers[~held].tolist())) < 2:
            return None
        rest = np.flatnonzero(~held)
        model = deepcopy(self.model).fit(_rows_of(documents, rest), [labels[row] for row in rest.tolist()])
        classes = classes_of(labels)
        known = numbers_of(list(model.classes_), classes)
        there = np.flatnonzero(held & np.isin(numbers, known))
        logs = np.full((len(there), len(classes)), -np.inf)
        if len(there):
            logs[:, known] = model.predict_log_proba(_rows_of(documents, there))
        return logs, numbers[there]

    @property
    def classes_(self) -> Any:
        """Labels of the calibrated classifier, in the order of its columns."""
        return self._model().classes_

    @property
    def weights_(self) -> Doubles:
        """Weights of the classifier divided by the temperature: (classes, features)."""
        weights: Doubles = self._model().weights_ / self.temperature_
        return weights

    @property
    def bias_(self) -> Doubles:
        """Biases of the classifier divided by the temperature: (classes,)."""
        bias: Doubles = self._model().bias_ / self.temperature_
        return bias

    def predict(self, X: Counts) -> Any:
        """Return the likeliest class of each document."""
        return self._model().predict(X)

    def predict_log_proba(self, X: Counts) -> Logs:
        """Return the natural logs of the calibrated posteriors, (documents, classes)."""
        logs = np.asarray(self._model().predict_log_proba(X), np.float64)
        return log_softmax(logs / self.temperature_, np.full(logs.shape[1], -np.log(max(logs.shape[1], 1))))

    def predict_proba(self, X: Counts) -> Logs:
        """Return the calibrated posteriors, (documents, classes)."""
        return np.exp(self.predict_log_proba(X))

    def score(self, X: Counts, y: Sequence[Any]) -> float:
        """Return the accuracy."""
        return float(self._model().score(X, y))

    def __sklearn_tags__(self) -> Any:
        tags: Any = self.model
        return tags.__sklearn_tags__()

    def _model(self) -> Any:
        if not hasattr(self, "model_"):
            raise EstimatorNotFittedError(self, "X, y")
        return self.model_

    def to_parts(self) -> Parts:
        """Return the classifier and its temperature for a model folder."""
        parts = Parts({"temperature": float(self.temperature_), "folds": int(self.folds), "seed": int(self.seed)})
        nest("model", saveable(self._model()), parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a calibrated classifier from a model folder."""
        settings: Any = parts.settings
        model = unnest("model", parts)
        if not isinstance(model, Classifier):
            raise ValueError(f"a {type(model).__name__} is not a classifier")
        made = cls(model, folds=settings["folds"], seed=settings["seed"])
        made._check_settings()
        temperature = settings["temperature"]
        if not (isinstance(temperature, int | float) and COLDEST <= temperature <= HOTTEST):
            raise ValueError(f"temperature {temperature} must lie between {COLDEST:g} and {HOTTEST:g}")
        made.model_, made.temperature_ = model, float(temperature)
        if hasattr(model, "n_features_in_"):
            made.n_features_in_ = model.n_features_in_
        return made

    def _check_settings(self) -> None:
        check_numbers(self, "folds", whole=True, least=2)
        check_numbers(self, "seed", whole=True)


def stratified_parts(numbers: Any, parts: int, seed: int) -> Any:
    """Assign each document to a part, classes spread as evenly as possible: (documents,), below ``parts``."""
    shuffled = np.random.default_rng(seed).permutation(len(numbers))
    by_class = shuffled[np.argsort(numbers[shuffled], kind="stable")]
    part_of = np.empty(len(numbers), np.int64)
    part_of[by_class] = np.arange(len(numbers)) % parts
    return part_of


def best_temperature(logs: Doubles, truth: Any) -> float:
    """Return the T that maximises the likelihood of the truth. logs: (documents, classes), −∞ for an impossible class.

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


def _rows_of(documents: Any, rows: Any) -> Any:
    return [documents[row] for row in rows.tolist()] if isinstance(documents, list) else documents[rows]
