"""LSA against scikit-learn's TruncatedSVD, and against what scikit-learn asks of an estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits

from foreword.features.lsa import LSA
from foreword.features.topics import LDA, PLSA
from foreword.text.datasets import labelled
from foreword.text.embedded import embedded_text

DIMENSIONS = 20
LEADING = 15
"""scikit-learn's randomised method is exact only for the first of them, however long it runs."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """BLAS's own threads only wait for each other in matrices as small as these."""
    with threadpool_limits(1):
        yield


def texts() -> list[str]:
    """The embedded text, 25 lines a document."""
    lines = list(embedded_text("valid"))
    return [" ".join(lines[start : start + 25]) for start in range(0, len(lines), 25)]


@pytest.fixture(scope="module", params=["counts", "tf-idf", "tall", "small"])
def matrix(request: pytest.FixtureRequest) -> Any:
    if request.param == "small":
        return sparse.random_array((40, 30), density=0.3, rng=np.random.default_rng(0), format="csr")
    if request.param == "tall":
        return sparse.csr_array(TfidfVectorizer(max_features=600).fit_transform(" ".join(texts()).split(".")))
    vectorizer = CountVectorizer() if request.param == "counts" else TfidfVectorizer()
    return vectorizer.fit_transform(texts())


def test_t09_it_equals_arpack(matrix: Any) -> None:
    """T09: singular values, components with their signs, transformed documents and explained variance."""
    ours, theirs = LSA(DIMENSIONS), TruncatedSVD(DIMENSIONS, algorithm="arpack", tol=0.0, random_state=0)
    ours_transformed, theirs_transformed = ours.fit_transform(matrix), theirs.fit_transform(matrix)
    assert_allclose(ours.singular_values_, theirs.singular_values_, rtol=1e-10)
    assert_allclose(ours.components_, theirs.components_, atol=1e-6)
    assert_allclose(ours_transformed, theirs_transformed, atol=1e-6 * ours.singular_values_[0])
    assert_allclose(ours.explained_variance_, theirs.explained_variance_, rtol=1e-6)
    assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-6)
    assert_allclose(ours.inverse_transform(ours_transformed), theirs.inverse_transform(theirs_transformed), atol=1e-5)


def test_t09_the_randomised_method_comes_to_the_same(matrix: Any) -> None:
    """T09: with enough rounds, as far as it gets; up to sign."""
    theirs = TruncatedSVD(DIMENSIONS, algorithm="randomized", n_iter=30, n_oversamples=30, random_state=0).fit(matrix)
    ours = LSA(DIMENSIONS).fit(matrix)
    assert_allclose(ours.singular_values_[:LEADING], theirs.singular_values_[:LEADING], rtol=1e-6)
    cosines = np.abs(np.sum(ours.components_ * theirs.components_, axis=1))[:LEADING]
    assert_allclose(cosines, 1, atol=1e-6)


@pytest.mark.parametrize("model", [LSA(1), PLSA(1), LDA(1)], ids=["LSA", "PLSA", "LDA"])
def test_it_passes_scikit_learn_s_own_checks(model: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(model, on_skip=None, on_fail=None)
    assert [result["check_name"] for result in results if result["status"] == "failed"] == []
    assert sum(result["status"] == "passed" for result in results) > 40


def test_it_stands_in_pipelines_and_searches() -> None:
    documents = texts()[:60]
    labels = ["error" in text for text in documents]
    pipeline = make_pipeline(TfidfVectorizer(), LSA(4), LogisticRegression())
    search = GridSearchCV(pipeline, {"lsa__dimensions": [2, 5]}, cv=2).fit(documents, labels)
    assert search.best_params_["lsa__dimensions"] in (2, 5)
    assert clone(LSA(7, seed=1)).get_params() == LSA(7, seed=1).get_params()


@pytest.mark.data
def test_t09_on_20_newsgroups() -> None:
    """T09: 2,000 documents, 100 dimensions, each component to 1e-6."""
    documents = [text for _, (_, text) in zip(range(2000), labelled("20newsgroups:train"), strict=False)]
    counted = TfidfVectorizer(min_df=2).fit_transform(documents)
    ours = LSA(100).fit(counted)
    theirs = TruncatedSVD(100, algorithm="arpack", tol=0.0, random_state=0).fit(counted)
    assert_allclose(ours.singular_values_, theirs.singular_values_, rtol=1e-12)
    assert_allclose(ours.components_, theirs.components_, atol=1e-6)


def test_g08_lda_equals_scikit_learn() -> None:
    """G08: from the same topics, the same documents' topics, the same topics after one more pass, no worse a result."""
    counts = sparse.csr_array(CountVectorizer(max_features=300).fit_transform(texts()), dtype=np.float64)
    theirs = LatentDirichletAllocation(5, max_iter=30, max_doc_update_iter=500, mean_change_tol=1e-9, random_state=0)
    theirs.fit(counts)
    ours = LDA(5, iterations=1).fit(counts)
    ours._learnt_ = theirs.components_
    documents = np.ones((counts.shape[0], 5))
    for _ in range(500):
        documents = ours._documents(counts, documents, theirs.components_)
    assert_allclose(documents / documents.sum(1, keepdims=True), theirs.transform(counts), atol=1e-5)
    assert_allclose(ours.transform(counts), theirs.transform(counts), atol=0.01)
    again = LatentDirichletAllocation(5, max_iter=1, max_doc_update_iter=500, mean_change_tol=1e-9)
    again.fit(counts)
    again.components_, again.exp_dirichlet_component_ = theirs.components_, theirs.exp_dirichlet_component_
    again._em_step(counts, total_samples=counts.shape[0], batch_update=True)
    assert_allclose(ours._topics(counts, documents, theirs.components_), again.components_, rtol=1e-4, atol=1e-4)
