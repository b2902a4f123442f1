"""bm25s as an oracle for its five variants, and scikit-learn for the cosine of TF-IDF vectors.

bm25s leaves the order of equal scores to chance; ours is document order. So rankings are compared by what the peer
itself says of the documents that we name, rank by rank, and document by document wherever scores differ by more than
float32 can blur.
"""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from foreword.arrays import Ids
from foreword.search.bm25 import BM25, Variant
from foreword.search.cosine import CosineSearch
from foreword.text.block import blocks_of
from foreword.text.datasets import labelled
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

bm25s = pytest.importorskip("bm25s")
text_features = pytest.importorskip("sklearn.feature_extraction.text")

K = 10
TOLERANCE = 3e-6
"""Relative: some tens of float32 roundings, for bm25s adds the terms in another order."""

VARIANTS: tuple[Variant, ...] = get_args(Variant)

FIXED = [
    "a happy man meets happy people and they are happy",
    "people of the city are glad",
    "the dishwasher is broken",
    "happy birthday to all the happy people of the world and to all other people",
    "to be or not to be that is the question",
    "",
    "people people people people",
    "the happy dishwasher washes the dishes of the people",
]
FIXED_QUERIES = ["happy people", "the people of the city", "happy happy dishwasher", "to be or not to be", "glad"]


class Setting:
    """Documents and queries as ids, for us and for the peers."""

    def __init__(self, texts: list[str], queries: list[str]) -> None:
        tokenizer = WordTokenizer(split="punctuation", lowercase=True)
        self.corpus = tokenizer.fit_corpus(blocks_of(texts), threads=1)
        self.queries = Corpus.from_texts(queries, tokenizer)
        self.lists = [document[:-1].tolist() for document in self.corpus.documents()]
        self.vocab = {token: id for id, token in enumerate(self.corpus.vocab)}

    def query(self, number: int) -> Ids:
        """The words that the index knows; bm25s leaves the others out by itself where it is asked with words."""
        ids = self.queries.ids[self.queries.offsets[number] : self.queries.offsets[number + 1] - 1]
        known: Ids = ids[ids != self.corpus.vocab.unknown]
        return known

    def peer(self, variant: Variant, **settings: float) -> Any:
        peer = bm25s.BM25(method=variant, **settings)
        peer.index((self.lists, dict(self.vocab)), show_progress=False)
        return peer


@pytest.fixture(scope="module")
def fixed() -> Setting:
    return Setting(FIXED, FIXED_QUERIES)


@pytest.fixture(scope="module")
def newsgroups() -> Setting:
    """The test part, with every 60th subject line as a query."""
    texts = [text for _, text in labelled("20newsgroups:test")]
    subjects = [text.partition("Subject:")[2].partition("\n")[0] for text in texts]
    return Setting(texts, subjects[::60])


SETTINGS = ["fixed", pytest.param("newsgroups", marks=pytest.mark.data)]


@pytest.fixture(scope="module", params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> Setting:
    found: Setting = request.getfixturevalue(request.param)
    return found


def assert_same_ranking(documents: NDArray[np.int32], scores: NDArray[Any], theirs: NDArray[Any], floor: float) -> bool:
    """Ours are the best documents by the peer's scores; those at ``floor``, which hold no word of the query, are not
    found at all. Returns whether they are also the very documents, and not some that are equal but for rounding.
    """
    expected = np.lexsort((np.arange(len(theirs)), -theirs))
    expected = expected[theirs[expected] > floor * (1 + TOLERANCE)][: len(documents)]
    found = documents[documents >= 0]
    assert len(found) == len(expected)
    assert_allclose(theirs[found], theirs[expected], rtol=TOLERANCE)
    assert_allclose(scores[: len(found)], theirs[found], rtol=TOLERANCE)
    return bool((found == expected).all())


@pytest.mark.parametrize("variant", VARIANTS)
def test_t07_scores_and_ranking_are_those_of_bm25s(setting: Setting, variant: Variant) -> None:
    """T07: the ranking equals bm25s on a fixed corpus, and on 20 Newsgroups; in every variant."""
    ours, peer = BM25(variant).fit(setting.corpus), setting.peer(variant)
    found = ours.search(setting.queries, K)
    exact = []
    for number in range(len(setting.queries)):
        query = setting.query(number)
        if not len(query):
            assert (found.documents[number] == -1).all()
            continue
        theirs = peer.get_scores_from_ids(query)
        assert_allclose(ours.scores(query), theirs, rtol=TOLERANCE, atol=1e-7)
        floor = 0.0 if peer.nonoccurrence_array is None else float(peer.nonoccurrence_array[query].sum())
        exact.append(assert_same_ranking(found.documents[number], found.scores[number], theirs, floor))
    assert np.mean(exact) > 0.98


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("k1", "b", "delta"), [(0.9, 0.4, 1.0), (1.2, 0.0, 0.5), (2.0, 1.0, 0.0), (0.1, 0.5, 0.5)])
def test_settings_mean_what_they_mean_in_bm25s(
    fixed: Setting, variant: Variant, k1: float, b: float, delta: float
) -> None:
    ours, peer = BM25(variant, k1=k1, b=b, delta=delta).fit(fixed.corpus), fixed.peer(variant, k1=k1, b=b, delta=delta)
    for number in range(len(fixed.queries)):
        theirs = peer.get_scores_from_ids(fixed.query(number))
        assert_allclose(ours.scores(fixed.query(number)), theirs, rtol=TOLERANCE, atol=1e-7)


COSINES = [
    ("fixed", True, False),
    ("fixed", False, False),
    ("fixed", True, True),
    ("fixed", False, True),
    pytest.param("newsgroups", True, False, marks=pytest.mark.data),
]


@pytest.mark.parametrize(("place", "smooth", "sublinear"), COSINES)
def test_t07_cosines_are_those_of_scikit_learn(
    request: pytest.FixtureRequest, place: str, smooth: bool, sublinear: bool
) -> None:
    """T07: TfidfVectorizer's rows multiplied with the queries' (``linear_kernel``), scores and ranking."""
    from sklearn.metrics.pairwise import linear_kernel

    setting: Setting = request.getfixturevalue(place)
    vectorizer = text_features.TfidfVectorizer(analyzer=str.split, smooth_idf=smooth, sublinear_tf=sublinear)
    documents = vectorizer.fit_transform([" ".join(map(str, document)) for document in setting.lists])
    numbers = range(len(setting.queries))
    queries = vectorizer.transform([" ".join(map(str, setting.query(number))) for number in numbers])
    ours = CosineSearch(smooth=smooth, sublinear=sublinear).fit(setting.corpus)
    found = ours.search(setting.queries, K)
    cosines = linear_kernel(queries, documents)
    for number in numbers:
        assert_allclose(ours.scores(setting.query(number)), cosines[number], rtol=TOLERANCE, atol=1e-7)
        assert_same_ranking(found.documents[number], found.scores[number], cosines[number], 0.0)
    assert_array_equal(found.scores[found.documents < 0], 0)
