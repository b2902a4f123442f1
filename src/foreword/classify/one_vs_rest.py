"""Several labels per document: one classifier of two classes for each label.

    p(label | x) = p₁(label's own classifier says yes | x)          predicted: the labels with p ≥ threshold

The labels of a document are decided independently of each other, so their probabilities need not sum to one, and a
document may have no label. R. Rifkin and A. Klautau, "In defense of one-vs-all classification", JMLR 5 (2004).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import deepcopy
from typing import Any, Self

import numpy as np

from foreword.arrays import Doubles, Logs
from foreword.checks import check_numbers, saveable
from foreword.classify.labels import DataError, Labels, check_lengths, classes_of, loaded_classes, saved_classes
from foreword.features.estimator import Estimator, EstimatorNotFittedError
from foreword.protocols import Classifier, Counts, Meter, Parts
from foreword.storage.folder import nest, unnest


class OneVsRest(Estimator):
    """Classifiers of documents that have any number of labels.

    model: a classifier of two classes, copied for each label. threshold: the least probability of a predicted label.
    After fit: ``classes_``, the labels, sorted; ``models_``, the classifier of each.
    """

    classes_: Labels
    models_: list[Any]

    def __init__(self, model: Any, *, threshold: float = 0.5) -> None:
        self.model = model
        self.threshold = threshold

    def fit(self, X: Counts, y: Sequence[Collection[Any]], *, meter: Meter | None = None) -> Self:
        """Train one classifier per label. y: the labels of each document."""
        self._check_settings()
        given = label_sets(y)
        check_lengths(X.shape[0], len(given))
        if not any(given):
            raise DataError("no document has a label: there is nothing to learn from")
        classes = classes_of([label for labels in given for label in labels])
        models = []
        for number, label in enumerate(classes.tolist()):
            has_label = [label in labels for labels in given]
            if all(has_label):
                raise DataError(f"all documents have the label {label!r}: it cannot be told apart from the others")
            models.append(deepcopy(self.model).fit(X, has_label))
            if meter:
                meter("labels", number + 1, len(classes))
        self.classes_, self.models_ = classes, models
        return self

    def predict_proba(self, X: Counts) -> Doubles:
        """Return the probability of every label, (documents, labels)."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Counts) -> Logs:
        """Return the natural logs of the labels' probabilities, (documents, labels)."""
        return np.stack([np.asarray(model.predict_log_proba(X))[:, 1] for model in self._models()], axis=1)

    def predict(self, X: Counts) -> list[list[Any]]:
        """Return the labels of each document whose probability reaches the threshold, in the order of ``classes_``."""
        labels = self._models() and self.classes_.tolist()
        return [
            [label for label, has_it in zip(labels, row, strict=True) if has_it]
            for row in (self.predict_proba(X) >= self.threshold).tolist()
        ]

    def score(self, X: Counts, y: Sequence[Collection[Any]]) -> float:
        """Return the share of documents whose labels are all right, and no label is missing."""
        predicted, truth = self.predict(X), label_sets(y)
        check_lengths(len(predicted), len(truth))
        if not predicted:
            raise DataError("there are no documents to score")
        return float(np.mean([set(ours) == theirs for ours, theirs in zip(predicted, truth, strict=True)]))

    def __sklearn_tags__(self) -> Any:
        tags: Any = deepcopy(self.model.__sklearn_tags__())
        tags.classifier_tags.multi_label = True
        return tags

    @property
    def n_features_in_(self) -> int:
        """The number of features of a document."""
        return int(self._models()[0].n_features_in_)

    def _models(self) -> list[Any]:
        if not hasattr(self, "models_"):
            raise EstimatorNotFittedError(self, "X, y")
        return self.models_

    def to_parts(self) -> Parts:
        """Return the labels and their classifiers for a model folder."""
        models = self._models()
        parts = Parts({"threshold": float(self.threshold), "classes": saved_classes(self.classes_)})
        for number, model in enumerate(models):
            nest(f"model{number}", saveable(model), parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build the classifiers from a model folder."""
        settings: Any = parts.settings
        classes = loaded_classes(settings["classes"])
        models = [unnest(f"model{number}", parts) for number in range(len(classes))]
        for model in models:
            if not isinstance(model, Classifier) or list(model.classes_) != [False, True]:
                raise ValueError(f"a {type(model).__name__} is not a classifier of one label")
        if len({model.n_features_in_ for model in models}) != 1:
            raise ValueError("the classifiers of its labels have other features each")
        made = cls(models[0], threshold=settings["threshold"])
        made._check_settings()
        made.classes_, made.models_ = classes, models
        return made

    def _check_settings(self) -> None:
        check_numbers(self, "threshold", above=0, most=1)


def label_sets(y: Any) -> list[set[Any]]:
    """Return the labels of each document; a DataError for one label where a collection of labels is expected."""
    if isinstance(y, str):
        raise DataError(f"y should be a list with the labels of each document, got {y!r}")
    for labels in y:
        if isinstance(labels, str) or not isinstance(labels, Collection):
            raise DataError(f"expected a list of labels for each document, not {labels!r}")
    return [{label.item() if isinstance(label, np.generic) else label for label in labels} for labels in y]
