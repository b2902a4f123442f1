"""Naive Bayes: count words in each class, and treat them as independent of each other.

    p(c | x) ∝ p(c) Π_j p(w_j | c)^x_j                       multinomial: how often each word occurs
             ∝ p(c) Π_j p(w_j | c)^[x_j > 0] (1 − p(w_j | c))^[x_j = 0]       Bernoulli: whether it does
             ∝ Π_j (1 / p(w_j | not c))^x_j                  complement: against all the other classes together

with p(w_j | c) = (count of w_j in c + α) / (count of all words in c + α · words); in Bernoulli's form documents are
counted, and 2 α added below. A word never seen in a class, with α = 0, makes the whole product zero: −∞. A little α for
every word avoids that. A document that is impossible in every class gets the prior.

The logs are linear in x, so each word's contribution to a decision can be read off ``weights_``. They equal
scikit-learn's ``MultinomialNB``, ``BernoulliNB`` and ``ComplementNB`` to 1e-9.

A. McCallum and K. Nigam, "A comparison of event models for naive Bayes text classification", AAAI workshop 1998.
J. Rennie, L. Shih, J. Teevan and D. Karger, "Tackling the poor assumptions of naive Bayes text classifiers", ICML 2003,
for the complement and for ``norm``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np

from foreword.arrays import Doubles
from foreword.checks import check_choice, check_numbers
from foreword.classify import kernels
from foreword.classify.labels import (
    DataError,
    Labels,
    check_lengths,
    classes_of,
    list_of_labels,
    loaded_classes,
    numbers_of,
    read_labels,
    saved_classes,
)
from foreword.classify.linear import LinearModel, SparseRows, check_array, rows_of
from foreword.errors import SettingError
from foreword.protocols import Counts, Json, Meter, Parts

Kind: TypeAlias = Literal["multinomial", "complement", "bernoulli"]

TINY = np.finfo(np.float64).tiny
"""Replaces a sum that is zero, so that its log is finite."""


class NaiveBayes(LinearModel):
    """Naive Bayes over a matrix of counts (documents, words); weights such as TF-IDF are treated as counts.

    alpha: added to every count. prior: "counts", the relative frequencies of the classes; "uniform"; or a probability
    for each class, in the order of ``classes_``. The complement form uses no prior. norm: divide each class's weights
    by their sum; for the complement form only.

    After fit: ``class_count_`` (classes,), documents; ``feature_count_`` (classes, words); ``class_log_prior_``;
    ``feature_log_prob_`` (classes, words), log p(w | c), whose rows sum to one in the multinomial form.
    """

    class_count_: Doubles
    _counts_only = True
    _closed = False  # whether the first call of partial_fit fixed the classes
    _counts: Doubles  # (words, classes)
    _must: Doubles | None  # (words, classes): 1 for words that all documents of a class have, with alpha=0

    def __init__(
        self,
        kind: Kind = "multinomial",
        *,
        alpha: float = 1.0,
        prior: Literal["counts", "uniform"] | Sequence[float] = "counts",
        norm: bool = False,
    ) -> None:
        self.kind = kind
        self.alpha = alpha
        self.prior = prior
        self.norm = norm

    def fit(self, X: Counts, y: Sequence[Any], *, meter: Meter | None = None) -> Self:
        """Count the words of each class."""
        self._check_settings()
        rows = rows_of(X, self, counts=True, distinct=self._presence)
        classes, numbers = read_labels(y, len(rows))
        self._closed = False
        self._count(rows, numbers, classes, np.zeros((rows.width, len(classes))), np.zeros(len(classes)))
        if meter:
            meter("counting", len(rows), len(rows))
        return self

    def partial_fit(self, X: Counts, y: Sequence[Any], classes: Sequence[Any] | None = None) -> Self:
        """Count more documents. Labels may be new, unless the first call fixed the ``classes``."""
        self._check_settings()
        rows = rows_of(X, self, counts=True, distinct=self._presence)
        labels = list_of_labels(y)
        check_lengths(len(rows), len(labels))
        if not hasattr(self, "classes_"):
            self._closed = classes is not None
            known = classes_of(list_of_labels(labels if classes is None else classes))
            return self._count(
                rows, numbers_of(labels, known), known, np.zeros((rows.width, len(known))), np.zeros(len(known))
            )
        self._check_width(rows)
        if classes is not None and classes_of(list_of_labels(classes)).tolist() != self.classes_.tolist():
            raise DataError("the classes are not those of the first call")
        known = self.classes_ if self._closed else classes_of([*self.classes_.tolist(), *labels])
        indices = numbers_of(self.classes_.tolist(), known)
        counts, documents = np.zeros((rows.width, len(known))), np.zeros(len(known))
        counts[:, indices], documents[indices] = self._counts, self.class_count_
        return self._count(rows, numbers_of(labels, known), known, counts, documents)

    @property
    def _presence(self) -> bool:  # type: ignore[override]
        return self.kind == "bernoulli"

    @property
    def feature_count_(self) -> Doubles:
        """float64 (classes, words): occurrences, in Bernoulli's form documents."""
        _ = self.weights_
        return self._counts.T

    @property
    def feature_log_prob_(self) -> Doubles:
        """float64 (classes, words): log p(w | c); in the complement form the weights, as in scikit-learn."""
        if self.kind != "bernoulli":
            return self.weights_
        _ = self.weights_
        logs: Doubles = (_log(self._counts + self.alpha) - np.log(self.class_count_ + 2 * self.alpha)).T
        return logs

    def _count(self, rows: SparseRows, numbers: Any, classes: Labels, counts: Doubles, documents: Doubles) -> Self:
        """Add the rows to the counts, and learn from them."""
        kernels.add_up(rows.starts, rows.columns, rows.values, numbers, self._presence, counts)
        return self._learn(classes, counts, documents + np.bincount(numbers, minlength=len(classes)))

    def _learn(self, classes: Labels, counts: Doubles, documents: Doubles) -> Self:
        """Set the weights from counts (words, classes) and documents (classes,)."""
        self._counts = counts
        self.class_count_ = documents
        self.class_log_prior_ = self._log_prior(documents)
        self._must = None
        table: Doubles
        bias = self.class_log_prior_
        if self.kind == "multinomial":
            table = _log_shares(counts + self.alpha)
        elif self.kind == "complement":
            table = -_log_shares(counts.sum(axis=1, keepdims=True) - counts + self.alpha)
            bias = np.zeros(len(classes))
            if self.norm:
                table = table / table.sum(axis=0)
        else:
            absent = _log(documents - counts + self.alpha)
            must = np.isneginf(absent)
            if must.any():  # without them a document is impossible; with them, they are uninformative
                self._must = must.astype(np.float64)
                absent[must] = 0.0
            present = np.where(must, 0.0, _log(counts + self.alpha))
            table = present - absent
            total = _log(np.maximum(documents + 2 * self.alpha, TINY))
            bias = bias + absent.sum(axis=0) - (len(counts) - must.sum(axis=0)) * total
        self._set_weights(classes, table, bias)
        return self

    def _scores(self, rows: SparseRows) -> Doubles:
        scores = super()._scores(rows)
        if self._must is not None:
            found = np.zeros_like(scores)
            kernels.add_scores(rows.starts, rows.columns, rows.values, True, self._must, found)
            scores[found < self._must.sum(axis=0)] = -np.inf
        return scores

    def _uninformed(self) -> Doubles:
        return self.class_log_prior_

    def _log_prior(self, documents: Doubles) -> Doubles:
        if isinstance(self.prior, str):
            given = documents if self.prior == "counts" else np.ones(len(documents))
        else:
            given = np.asarray(self.prior, np.float64)
            if given.shape != documents.shape:
                raise SettingError(f"prior has {given.size} probabilities, but there are {len(documents)} classes")
        return _log(given / given.sum())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # on the blobs of numbers that scikit-learn's checks make
        return tags

    def to_parts(self) -> Parts:
        """Return settings and counts for a model folder."""
        _ = self.weights_
        settings: dict[str, Json] = {
            "kind": self.kind,
            "alpha": float(self.alpha),
            "prior": self.prior if isinstance(self.prior, str) else [float(share) for share in self.prior],
            "norm": bool(self.norm),
            "classes": saved_classes(self.classes_),
        }
        return Parts(settings, {"counts": self._counts, "documents": self.class_count_})

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a classifier from a model folder."""
        settings: dict[str, Any] = dict(parts.settings)
        classes = loaded_classes(settings.pop("classes"))
        model = cls(**settings)
        model._check_settings()
        counts = check_array(parts.arrays["counts"], "counts", (-1, len(classes)))
        documents = check_array(parts.arrays["documents"], "documents", (len(classes),))
        if not (np.isfinite(counts).all() and np.isfinite(documents).all()):
            raise ValueError("a count is infinite")
        if counts.min() < 0 or documents.min() < 0 or (model.kind == "bernoulli" and (counts > documents).any()):
            raise ValueError("a count is negative, or more documents have a word than there are")
        return model._learn(classes, counts, documents)

    def _check_settings(self) -> None:
        check_choice(self, "kind", get_args(Kind))
        check_numbers(self, "alpha")
        if self.kind == "complement" and self.norm and self.alpha == 0:
            raise SettingError("norm=True divides by sums of logs, which alpha=0 may make infinite: expected alpha > 0")
        if isinstance(self.prior, str):
            if self.prior not in ("counts", "uniform"):
                raise SettingError(f"prior={self.prior!r}: expected counts, uniform or a probability for each class")
            return
        shares = [float(share) for share in self.prior]
        if not (all(share >= 0 for share in shares) and math.isclose(sum(shares), 1, abs_tol=1e-9)):
            raise SettingError(f"prior={shares}: expected probabilities that sum to one")


def _log(numbers: Doubles) -> Doubles:
    with np.errstate(divide="ignore"):
        return np.log(numbers)


def _log_shares(counts: Doubles) -> Doubles:
    """Return the log of each count's share of its column; −∞ where nothing was counted, even in the whole column."""
    shares: Doubles = _log(counts) - np.log(np.maximum(counts.sum(axis=0), TINY))
    return shares
