"""scikit-learn as the oracle of classifiers: posteriors of naive Bayes, the optimum of logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from foreword.classify.logistic import LogisticRegression, NBLogistic
from foreword.classify.naive_bayes import NaiveBayes

naive_bayes = pytest.importorskip("sklearn.naive_bayes")
linear_model = pytest.importorskip("sklearn.linear_model")
estimator_checks = pytest.importorskip("sklearn.utils.estimator_checks")


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
    """Both run to a tight tolerance: the same probabilities and the same weights, within 1e-6."""
    X, y = counts(classes, 1)
    ours = LogisticRegression(C=C, tolerance=1e-14, max_iterations=100_000).fit(X, y)
    theirs = linear_model.LogisticRegression(C=C, tol=1e-12, max_iter=10_000, solver="newton-cg").fit(X, y)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-6)
    weights = ours.weights_ - ours.weights_.mean(axis=0)
    expected = theirs.coef_ if classes > 2 else np.concatenate((-theirs.coef_, theirs.coef_)) / 2
    np.testing.assert_allclose(weights, expected - expected.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("classes", [2, 5])
def test_the_complement_form_with_and_without_norm(norm: bool, classes: int) -> None:
    X, y = counts(classes)
    ours = NaiveBayes("complement", norm=norm).fit(X, y)
    theirs = naive_bayes.ComplementNB(norm=norm).fit(X, y)
    np.testing.assert_allclose(ours.feature_log_prob_, theirs.feature_log_prob_, atol=1e-9)
    np.testing.assert_allclose(ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), atol=1e-9)
    assert list(ours.predict(X)) == list(theirs.predict(X))


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli"])
def test_without_smoothing_where_every_class_has_every_word(kind: Any) -> None:
    """Row B05's neighbour: alpha 0 is harmless as long as no count is 0 and none is all."""
    X, y = counts(3)
    X = sparse.csr_matrix(np.minimum(X.toarray(), 3))
    rows, labels = [X.toarray()], list(y)
    for label in sorted(set(y)):
        rows += [np.ones((1, X.shape[1])), np.zeros((1, X.shape[1]))]
        labels += [label, label]
    full = sparse.csr_matrix(np.concatenate(rows))
    peer = {"multinomial": naive_bayes.MultinomialNB, "bernoulli": naive_bayes.BernoulliNB}[kind]
    theirs = peer(alpha=0.0, force_alpha=True).fit(full, labels)
    ours = NaiveBayes(kind, alpha=0.0).fit(full, labels)
    np.testing.assert_allclose(ours.predict_log_proba(full), theirs.predict_log_proba(full), atol=1e-9)


@pytest.mark.parametrize("prior", ["counts", "uniform", "given"])
def test_priors(prior: str) -> None:
    X, y = counts(3)
    given = [0.5, 0.2, 0.3]
    all_settings: dict[str, Any] = {"counts": {}, "uniform": {"fit_prior": False}, "given": {"class_prior": given}}
    chosen: Any = given if prior == "given" else prior
    theirs = naive_bayes.MultinomialNB(**all_settings[prior]).fit(X, y)
    np.testing.assert_allclose(
        NaiveBayes(prior=chosen).fit(X, y).predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-9
    )


CLASSIFIERS = [NaiveBayes(), NaiveBayes("complement"), NaiveBayes("bernoulli"), LogisticRegression(), NBLogistic()]


NEED_THEIR_CLASSES = {"check_estimators_unfitted", "check_supervised_y_2d"}
"""They ask for an exception and a warning that only scikit-learn defines; ours do not import it."""


@pytest.mark.filterwarnings("ignore::foreword.classify.logistic.NotConvergedWarning")
@pytest.mark.filterwarnings("ignore::UserWarning:sklearn")
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_scikit_learn_takes_them_for_its_own(model: Any) -> None:
    """Its own checks of estimators, all but two."""
    results = estimator_checks.check_estimator(model, on_fail=None, on_skip=None)
    failed = {result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"}
    assert failed.keys() == NEED_THEIR_CLASSES, failed
    assert sum(result["status"] == "passed" for result in results) > 30
