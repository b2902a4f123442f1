"""Features and a classifier together: texts in, labels out, with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, TypeAlias

import numpy as np

from foreword import kinds
from foreword.arrays import Logs
from foreword.checks import check_not_string, check_number, saveable
from foreword.classify.calibration import Calibrated
from foreword.classify.explain import Explanation
from foreword.classify.labels import Labels, Prediction, check_classes, list_of_labels
from foreword.classify.linear import LinearModel
from foreword.classify.logistic import NBLogistic
from foreword.classify.naive_bayes import NaiveBayes
from foreword.classify.one_vs_rest import OneVsRest, label_sets
from foreword.errors import InputError, SettingError
from foreword.features.bag import BagOfWords
from foreword.features.estimator import Estimator
from foreword.features.plain import hashed, terms_of
from foreword.protocols import Classifier, Counts, LinearClassifier, Meter, Parts
from foreword.storage.folder import nest, unnest
from foreword.text.block import Block

Texts = Iterable[str | Block]
"""Texts one by one, or blocks of them as ``read_labelled_blocks`` gives."""

AnyClassifier: TypeAlias = Classifier | LinearModel | Calibrated | OneVsRest


class TextClassifier(Estimator):
    """A classifier that reads text, with scikit-learn's conventions: ``model__C`` is a setting of its model.

    ``TextClassifier().fit(texts, labels)`` learns words, punctuation marks and pairs of them, weighted by TF-IDF, and
    logistic regression on them weighted by naive Bayes (see ``NBLogistic``): of the features tried, the best on IMDB
    and never far from it on TREC, SST-2, SMS spam and Reuters R8, by cross-validation on the training sets. Any
    features and any classifier may be given instead; where each has already learnt, they are joined as they are. A
    classifier without features gets those that suit its kind, as in ``foreword classify train``. ``OneVsRest`` is for
    texts that have several labels. Labels are strings, whole numbers or booleans, and stay what they are.
    """

    def __init__(self, features: BagOfWords | None = None, model: AnyClassifier | None = None) -> None:
        self.model: Any = NBLogistic() if model is None else model
        self._own_features = features is not None
        self.features: BagOfWords = default_features(self.model) if features is None else features

    def __repr__(self) -> str:
        return f"TextClassifier({self.features!r}, {self.model!r})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings; ``features`` is None where they are those that suit the model."""
        found = super().get_params(deep)
        return found if self._own_features else {**found, "features": None}

    def set_params(self, **settings: Any) -> Self:
        """Change settings, also those of the features and of the model: ``features__ngrams``, ``model__C``."""
        own = self._own_features if settings.get("features", True) is not None else False
        named = {name: value for name, value in settings.items() if name != "features" or value is not None}
        super().set_params(**{name: value for name, value in named.items() if not name.startswith("features__")})
        if not own and "features" not in named and {"model", "features"} & set(settings):
            self.features = default_features(self.model)
        inner = {name: value for name, value in named.items() if name.startswith("features__")}
        super().set_params(**inner)
        self._own_features = own or bool(inner) or "features" in named
        return self

    @property
    def classes_(self) -> Labels:
        """Return the labels, sorted, as the classifier has them."""
        return self.model.classes_

    @property
    def n_features_in_(self) -> int:
        """Return the number of columns of the features."""
        return int(self.model.n_features_in_)

    def fit(self, texts: Texts, labels: Sequence[Any], *, meter: Meter | None = None) -> Self:
        """Learn the features, then the classifier."""
        names = self._read_labels(labels)
        counts = self.features.learn_counts(check_not_string(texts))
        if counts.shape[0] != len(names):
            raise InputError(f"{counts.shape[0]} texts and {len(names)} labels: expected a label for each text")
        self.model.fit(counts, names, **({"meter": meter} if meter else {}))  # others' classifiers know no meter
        return self

    def _read_labels(self, labels: Any) -> list[Any]:
        """Return the labels as a list; raise a DataError or an InputError if nothing can be learnt from them."""
        if isinstance(self.model, OneVsRest):
            return list(label_sets(labels))
        names = list_of_labels(labels)
        check_classes(names)
        return names

    def counts(self, texts: Texts) -> Counts:
        """Return the features of the texts."""
        return self.features.counts(check_not_string(texts))

    def predict(self, texts: Texts) -> list[Any]:
        """Return the likeliest label of each text; with ``OneVsRest`` a list of labels for each."""
        found = self.model.predict(self.counts(texts))
        return found.tolist() if isinstance(found, np.ndarray) else list(found)

    def predict_log_proba(self, texts: Texts) -> Logs:
        """Return log-posteriors: float64 (texts, classes)."""
        logs: Logs = self.model.predict_log_proba(self.counts(texts))
        return logs

    def predict_proba(self, texts: Texts) -> Logs:
        """Return posteriors: float64 (texts, classes)."""
        return np.exp(self.predict_log_proba(texts))

    def predict_best(self, texts: Texts, k: int = 1) -> Iterator[Prediction]:
        """Return the k likeliest labels of each text with their probabilities, the likeliest first."""
        check_number("k", k, whole=True, least=1)
        shares = self.predict_proba(texts)
        order = np.argsort(-shares, axis=1, kind="stable")[:, :k]
        names = list_of_labels(self.classes_)
        for indices, values in zip(order.tolist(), np.take_along_axis(shares, order, axis=1).tolist(), strict=True):
            yield [(names[index], value) for index, value in zip(indices, values, strict=True)]

    def score(self, texts: Texts, labels: Sequence[Any]) -> float:
        """Return the accuracy; with ``OneVsRest`` the share of texts whose labels are all right."""
        truth = label_sets(labels) if isinstance(self.model, OneVsRest) else list_of_labels(labels)
        return float(self.model.score(self.counts(texts), truth))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, TargetTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(multi_label=isinstance(self.model, OneVsRest))
        tags.target_tags = TargetTags(required=True)
        tags.input_tags = InputTags(one_d_array=True, two_d_array=False, string=True)
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self.model, "classes_")

    def explain(self, text: str) -> Explanation:
        """Return what each term adds to the score of each class, and the prior: see ``Explanation``."""
        model = self.model
        if not isinstance(model, LinearClassifier):
            raise SettingError(f"a {type(model).__name__} is not linear: the share of a term is unknown")
        row = self.counts([text])
        terms, unknown = self._named(text, row)
        values = np.ones(row.nnz) if _sees_presence(model) else row.data.astype(np.float64)
        return Explanation(
            text=text,
            classes=tuple(list_of_labels(model.classes_)),
            probabilities=np.exp(model.predict_log_proba(row)[0]),
            terms=terms,
            values=values,
            bias=np.asarray(model.bias_, np.float64),
            weighted=_weighted(np.asarray(model.weights_)[:, row.indices], values),
            unknown=unknown,
        )

    def _named(self, text: str, row: Counts) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the terms behind the columns of a row, and the shortest terms of the text without a column."""
        bag = self.features
        found = terms_of(text, bag.split, bag.lowercase, bag.ngrams)
        if bag.columns is not None:  # terms that share a column cannot be distinguished
            sharing: dict[int, list[str]] = {}
            for term in dict.fromkeys(found):
                sharing.setdefault(hashed(term, bag.columns)[0], []).append(term)
            return tuple(" | ".join(sharing[column]) for column in row.indices.tolist()), ()
        known = bag.decode(row)
        shortest = terms_of(text, bag.split, bag.lowercase, (bag.ngrams[0], bag.ngrams[0]))
        return tuple(known), tuple(dict.fromkeys(term for term in shortest if term not in known))

    def to_parts(self) -> Parts:
        """Return the settings, arrays and vocabulary to save."""
        parts = Parts({})
        nest("features", self.features, parts)
        nest("model", saveable(self.model), parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Rebuild the model from what was saved."""
        features, model = unnest("features", parts), unnest("model", parts)
        if not isinstance(features, BagOfWords) or not isinstance(model, Classifier | OneVsRest):
            raise ValueError(f"a {type(features).__name__} and a {type(model).__name__} make no text classifier")
        width = features.counts([""]).shape[1]
        if isinstance(model, LinearClassifier) and model.weights_.shape[1] != width:
            raise ValueError(f"the features have {width} columns, but the model weighs {model.weights_.shape[1]}")
        return cls(features, model)


def _sees_presence(model: object) -> bool:
    """Return whether the model ignores how often a term occurs."""
    inner = model.model if isinstance(model, Calibrated) else model
    return isinstance(inner, NaiveBayes) and inner.kind == "bernoulli"


def _weighted(weights: Any, values: Any) -> Any:
    """Return value times weight: (classes, terms). An absent term adds nothing, however impossible it is."""
    return np.where(values == 0, 0.0, weights * np.where(values == 0, 1, values))


def default_features(model: object) -> BagOfWords:
    """Return the features that suit a classifier, as the registry has them: words and pairs of words by default."""
    while isinstance(model, Calibrated | OneVsRest):
        model = model.model
    kind = kinds.find(model)
    name, settings = kinds.WORDS_AND_PAIRS if kind is None or kind.features is None else kind.features
    found: BagOfWords = kinds.build(kinds.KINDS[name], settings)
    return found
