"""scikit-learn as the oracle of classifiers: posteriors of naive Bayes, the optimum of logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from foreword.classify.logistic import LogisticRegression
from foreword.classify.naive_bayes import NaiveBayes

naive_bayes = pytest.importorskip("sklearn.naive_bayes")
linear_model = pytest.importorskip("sklearn.linear_model")


def counts(classes: int, seed: int = 0) -> tuple[Any, list[str]]:
    rng = np.random.default_rng(seed)
    labels = [f"c{number}" for number in rng.integers(0, classes, 150)]
    means = rng.gamma(0.3, 1.0, (classes, 60))
    rows = rng.poisson([means[int(label[1:])] for label in labels])
    return sparse.csr_matrix(rows.astype(float)), labels


@pytest.mark.parametrize(
    ("kind", "peer"), [("multinomial", "MultinomialNB"), ("complement", "ComplementNB"), ("bernoulli", "BernoulliNB")]
)
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("alpha", [1.0, 0.1])
def test_naive_bayes_has_the_posteriors_of_scikit_learn(kind: Any, peer: str, classes: int, alpha: float) -> None:
    """Row B01: log posteriors within 1e-9."""
    X, y = counts(classes)
    ours = NaiveBayes(kind, alpha=alpha).fit(X, y)
    theirs = getattr(naive_bayes, peer)(alpha=alpha).fit(X, y)
    assert list(ours.classes_) == list(theirs.classes_)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-9)
    assert list(ours.predict(X)) == list(theirs.predict(X))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_logistic_regression_ends_in_the_optimum_of_scikit_learn(classes: int, C: float) -> None:
    """Both run to a tight tolerance: the same probabilities and the same weights, within 1e-5."""
    X, y = counts(classes, 1)
    ours = LogisticRegression(C=C, tolerance=1e-12, max_iterations=10_000).fit(X, y)
    theirs = linear_model.LogisticRegression(C=C, tol=1e-12, max_iter=10_000, solver="newton-cg").fit(X, y)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-5)
    weights = ours.weights_ - ours.weights_.mean(axis=0)
    expected = theirs.coef_ if classes > 2 else np.concatenate((-theirs.coef_, theirs.coef_)) / 2
    np.testing.assert_allclose(weights, expected - expected.mean(axis=0), atol=1e-5)
