"""scikit-learn as an oracle for the vectorisers, and as the host that has to take them.

Equal means: the same vocabulary in the same order, and no entry that differs by more than 1e-9; counts are equal.
"""

from __future__ import annotations

import inspect
import pickle
import warnings
from itertools import islice
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foreword.features.bag import BagOfWords, OneHot
from foreword.features.tfidf import TfIdf
from foreword.text.datasets import labelled

text_features = pytest.importorskip("sklearn.feature_extraction.text")
checks = pytest.importorskip("sklearn.utils.estimator_checks")

SMALL = [
    "The cat chases the mouse, the mouse chases the cat.",
    "",
    "Naïve CAFÉ, ΣΊΣΥΦΟΣ and İSTANBUL; Ⱥ, \u212aelvin, ǅungla, straße STRASSE \ufb01ne",
    "under_score x yy 1 22 333 a-b c.d it's don't 4²",
    "tabs\tand\n\nlines\r\n  and \u3000 wide\u2003blanks\x85and\x1cseparators",
    "日本語のテキスト 한국어 русский ТЕКСТ हिन्दी العربية emoji 🎉🎉 e\u0301 ⅷ½",
    "a\x00b \x01control \x01 characters\x7f",
    "the the the the cat",
    "the cat",
]

Settings = tuple[dict[str, Any], dict[str, Any]]
"""Ours, and the same thing as scikit-learn says it."""

TERMS: dict[str, Settings] = {
    "words": ({}, {}),
    "words as they are": ({"lowercase": False}, {"lowercase": False}),
    "words and pairs": ({"ngrams": (1, 2)}, {"ngram_range": (1, 2)}),
    "two and three words": ({"ngrams": (2, 3)}, {"ngram_range": (2, 3)}),
    "characters": ({"split": "characters", "ngrams": (1, 3)}, {"analyzer": "char", "ngram_range": (1, 3)}),
    "characters as they are": (
        {"split": "characters", "ngrams": (2, 2), "lowercase": False},
        {"analyzer": "char", "ngram_range": (2, 2), "lowercase": False},
    ),
    "characters in words": (
        {"split": "characters in words", "ngrams": (2, 5)},
        {"analyzer": "char_wb", "ngram_range": (2, 5)},
    ),
    "space": ({"split": "space"}, {"tokenizer": str.split, "token_pattern": None}),
}

CHOICES: dict[str, Settings] = {
    "all": ({}, {}),
    "in two documents": ({"min_documents": 2}, {"min_df": 2}),
    "in a share of them": ({"min_documents": 0.01, "max_documents": 0.5}, {"min_df": 0.01, "max_df": 0.5}),
    "in some": ({"min_documents": 2, "max_documents": 9}, {"min_df": 2, "max_df": 9}),
    "the 50 most frequent": ({"max_size": 50}, {"max_features": 50}),
    "the 50 in most documents": ({"max_size": 50, "binary": True}, {"max_features": 50, "binary": True}),
    "frequent, chosen": (
        {"max_size": 30, "min_documents": 2, "max_documents": 0.9},
        {"max_features": 30, "min_df": 2, "max_df": 0.9},
    ),
    "binary": ({"binary": True}, {"binary": True}),
}

WEIGHTS: dict[str, Settings] = {
    "smooth, l2": ({}, {}),
    "sublinear": ({"sublinear": True}, {"sublinear_tf": True}),
    "l1": ({"norm": "l1"}, {"norm": "l1"}),
    "no norm": ({"norm": None}, {"norm": None}),
    "no idf": ({"idf": None}, {"use_idf": False}),
    "plain+1": ({"idf": "plain+1"}, {"smooth_idf": False}),
    "all at once": (
        {"idf": "plain+1", "sublinear": True, "norm": "l1", "binary": True},
        {"smooth_idf": False, "sublinear_tf": True, "norm": "l1", "binary": True},
    ),
}


def real(spec: str, count: int) -> list[str]:
    return [text for _, text in islice(labelled(spec), count)]


SOURCES = ["small", *(pytest.param(name, marks=pytest.mark.data) for name in ("imdb", "20newsgroups"))]


@pytest.fixture(scope="module", params=SOURCES)
def texts(request: pytest.FixtureRequest) -> list[str]:
    return SMALL if request.param == "small" else real(f"{request.param}:train", 60)


def assert_equal(ours: BagOfWords, peer: Any, texts: list[str]) -> None:
    """fit_transform on all texts, then transform of them, and of some that are not the ones fitted on."""
    for learn in (True, False):
        found = ours.fit_transform(texts) if learn else ours.transform(texts[::-1] + SMALL)
        wanted = peer.fit_transform(texts) if learn else peer.transform(texts[::-1] + SMALL)
        wanted.sort_indices()
        assert ours.vocabulary_ == peer.vocabulary_
        assert_array_equal(ours.get_feature_names_out(), peer.get_feature_names_out())
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        assert type(found) is type(wanted)
        assert found.indices.dtype == wanted.indices.dtype
        assert_array_equal(found.indptr, wanted.indptr)
        assert_array_equal(found.indices, wanted.indices)
        assert_allclose(found.data, wanted.data, rtol=0, atol=1e-9 if found.dtype == np.float64 else 0)


def quick(terms: str, texts: list[str]) -> list[str]:
    """scikit-learn takes its time over runs of characters."""
    return texts[:12] if terms.startswith("characters") else texts


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("terms", TERMS)
def test_counts_equal_the_count_vectorizer_s(terms: str, choice: str, texts: list[str]) -> None:
    ours, theirs = ({**TERMS[terms][side], **CHOICES[choice][side]} for side in (0, 1))
    assert_equal(BagOfWords(**ours), text_features.CountVectorizer(**theirs), quick(terms, texts))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("terms", ["words", "words and pairs", "characters in words"])
def test_t06_weights_equal_the_tfidf_vectorizer_s(terms: str, weights: str, texts: list[str]) -> None:
    """T06: the matrix equals scikit-learn's to 1e-9."""
    ours, theirs = ({**TERMS[terms][side], **WEIGHTS[weights][side]} for side in (0, 1))
    assert_equal(TfIdf(**ours), text_features.TfidfVectorizer(**theirs), quick(terms, texts))


def test_t06_chosen_terms_have_the_same_weights(texts: list[str]) -> None:
    ours = TfIdf(max_size=40, min_documents=2, ngrams=(1, 2))
    assert_equal(ours, text_features.TfidfVectorizer(max_features=40, min_df=2, ngram_range=(1, 2)), texts)


@pytest.mark.data
@pytest.mark.parametrize("name", ["imdb", "20newsgroups"])
def test_t06_thousands_of_documents_have_the_same_weights(name: str) -> None:
    assert_equal(TfIdf(), text_features.TfidfVectorizer(), real(f"{name}:test", 1500))


# As a part of scikit-learn's own machines

ESTIMATORS = [
    BagOfWords(),
    BagOfWords(ngrams=(1, 2), max_size=20, binary=True),
    BagOfWords(columns=512, signed=True),
    TfIdf(),
    TfIdf(columns=512),
    OneHot(),
]

NEED_NUMBERS = {
    "check_fit_score_takes_y",
    "check_estimators_overwrite_params",
    "check_dont_overwrite_parameters",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_n_features_in_after_fitting",
    "check_positive_only_tag_during_fit",
    "check_estimators_unfitted",
}
"""Of scikit-learn's checks of the API, those that fit a matrix of random numbers: their text forms are below. The last
one also asks for scikit-learn's own NotFittedError, which cannot be raised without importing it."""


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_check_estimator_passes(estimator: BagOfWords) -> None:
    """As for its own vectorisers, scikit-learn runs only the checks that need no data, and says that it does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ran = checks.check_estimator(estimator)
    assert {check["status"] for check in ran} <= {"passed"}
    assert ran


def api_checks() -> dict[str, Any]:
    """The checks of the API by name, those that need numbers left out; asked of an estimator that may have them all."""
    from sklearn.feature_extraction.text import CountVectorizer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        listed = [*checks._yield_api_checks(CountVectorizer()), checks.check_parameters_default_constructible]
    listed.append(checks.check_transformers_unfitted)
    return {check.__name__: check for check in listed if check.__name__ not in NEED_NUMBERS}


@pytest.mark.parametrize("name", sorted(api_checks()))
@pytest.mark.parametrize("estimator", [BagOfWords(), TfIdf(), OneHot()], ids=repr)
def test_the_checks_of_the_api_that_need_no_numbers_pass(estimator: BagOfWords, name: str) -> None:
    from sklearn.base import clone

    api_checks()[name](type(estimator).__name__, clone(estimator))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_what_scikit_learn_checks_with_numbers_is_true_of_texts(estimator: BagOfWords) -> None:
    """fit returns self, changes no setting, takes y, and gives what fit_transform gives; rows depend on nothing but
    their text; a pickle gives the same; a clone knows nothing; the tags are right.
    """
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import get_tags
    from sklearn.utils.validation import check_is_fitted

    ours = clone(estimator)
    settings = {name: pickle.dumps(value) for name, value in ours.get_params().items()}
    assert ours.fit(SMALL, [0] * len(SMALL)) is ours
    check_is_fitted(ours)
    assert {name: pickle.dumps(value) for name, value in ours.get_params().items()} == settings
    assert set(vars(ours)) - {"_memory"} <= set(inspect.signature(BagOfWords.__init__).parameters) | set(
        inspect.signature(type(ours).__init__).parameters
    )
    rows = ours.transform(SMALL).toarray()
    assert_array_equal(clone(ours).fit_transform(SMALL, [0] * len(SMALL)).toarray(), rows)
    assert_array_equal(ours.transform(SMALL[::-1]).toarray()[::-1], rows)
    assert_array_equal(np.concatenate([ours.transform([text]).toarray() for text in SMALL]), rows)
    assert_array_equal(ours.transform(np.array(SMALL, dtype=object)).toarray(), rows)
    assert_array_equal(ours.fit(SMALL).transform(SMALL).toarray(), rows)
    assert_array_equal(pickle.loads(pickle.dumps(ours)).transform(SMALL).toarray(), rows)
    tags = get_tags(ours)
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.transformer_tags is not None
    if tags.requires_fit:
        with pytest.raises(NotFittedError):
            check_is_fitted(clone(ours))


def test_pipelines_searches_and_unions_take_ours() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline, make_union

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 80)
    words = [["good", "fine", "great"], ["bad", "poor", "awful"]]
    texts = [" ".join([*rng.choice(words[label], 2), *rng.choice(["the", "film", "was"], 6)]) for label in labels]
    pipeline = make_pipeline(BagOfWords(), LogisticRegression())
    grid = {"bagofwords__ngrams": [(1, 1), (1, 2)], "bagofwords__columns": [None, 256]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(texts, labels)
    assert search.best_score_ == 1.0
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert cross_val_score(make_pipeline(TfIdf(), LogisticRegression()), texts, labels, cv=3).mean() == 1.0
    union = make_union(BagOfWords(), TfIdf(split="characters", ngrams=(2, 2)))
    assert union.fit_transform(texts).shape[1] == len(union.get_feature_names_out())
    names = pipeline.fit(texts, labels)[:-1].get_feature_names_out()
    assert_array_equal(names, pipeline[0].get_feature_names_out())
