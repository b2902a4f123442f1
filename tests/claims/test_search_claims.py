"""What the sources say of search by counted words, run."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from foreword.pipeline.search import TextSearch
from foreword.search.bm25 import BM25, Variant
from foreword.search.cosine import CosineSearch

HAPPY, GLAD, DISHWASHER = "a happy day for the happy family", "the family is glad today", "the dishwasher is broken"
RANKERS: dict[str, BM25 | CosineSearch] = {
    **{variant: BM25(variant) for variant in get_args(Variant)},
    "tf-idf": CosineSearch(),
}

DOCUMENTS = [
    "Happy people, happy lives: what makes happy people happy?",
    "The people of the town are glad.",
    "A dishwasher for happy kitchens.",
    "People who are happy live longer than people who are not, say people who study that.",
    "Sad songs say so much.",
    "How to be happy: a guide.",
    "On the migration of peoples.",
]
QUERIES = ["happy people", "happy", "people who are glad", "a happy dishwasher for the people"]


@pytest.mark.parametrize("name", RANKERS)
def test_t05_the_query_happy_ignores_the_document_that_says_glad(name: str) -> None:
    """T05: its score is 0, as is that of the dishwasher: to counted words a synonym is as far away as anything.

    BM25L and BM25+ give every document the same for a word that it does not hold; beyond that it is 0 there too.
    """
    ranker = RANKERS[name]
    search = TextSearch(ranker=ranker).fit([HAPPY, GLAD, DISHWASHER])
    assert [hit.document for hit in search.query("happy")] == [0]
    happy, glad, dishwasher = ranker.scores(search.tokenizer.encode("happy"))
    assert happy > glad == dishwasher
    if name not in ("bm25l", "bm25+"):
        assert glad == 0


def test_t05_the_words_themselves_are_all_at_right_angles() -> None:
    """T05: happy and glad are as far apart as happy and dishwasher: every cosine between different words is 0."""
    words = ["happy", "glad", "dishwasher"]
    ranker = CosineSearch()
    search = TextSearch(ranker=ranker).fit(words)
    cosines = np.array([ranker.scores(search.tokenizer.encode(word)) for word in words])
    np.testing.assert_allclose(cosines, np.eye(3), atol=1e-7)


def test_t07_a_search_for_happy_people_finds_them() -> None:
    """T07: the document about happy people first, then those that hold one of the words, and no others."""
    hits = TextSearch().fit(DOCUMENTS).query("happy people")
    assert hits[0].document == 0
    assert {hit.document for hit in hits} == {0, 1, 2, 3, 5}


def test_t07_the_ranking_is_that_of_bm25s_and_of_scikit_learn() -> None:
    """T07: on a fixed corpus, from text to ranking on both sides, no two documents of which are equally good."""
    bm25s = pytest.importorskip("bm25s")
    sklearn: Any = pytest.importorskip("sklearn.feature_extraction.text")
    pattern = r"\w+|[^\w\s]"

    peer = bm25s.BM25(method="lucene")
    peer.index(
        bm25s.tokenize(DOCUMENTS, token_pattern=pattern, stopwords=None, show_progress=False), show_progress=False
    )
    vectorizer = sklearn.TfidfVectorizer(token_pattern=pattern)
    rows = vectorizer.fit_transform(DOCUMENTS)
    bm25, cosine = TextSearch().fit(DOCUMENTS), TextSearch(ranker=CosineSearch()).fit(DOCUMENTS)
    for query in QUERIES:
        asked = bm25s.tokenize([query], token_pattern=pattern, stopwords=None, show_progress=False, return_ids=False)
        scores = peer.get_scores(asked[0])
        assert_ranked(bm25.query(query), scores)
        assert_ranked(cosine.query(query), (rows @ vectorizer.transform([query]).T).toarray()[:, 0])


def assert_ranked(hits: list[Any], scores: Any) -> None:
    expected = [document for document in np.argsort(-scores, kind="stable").tolist() if scores[document] > 0]
    assert len(set(scores[expected].tolist())) == len(expected)
    assert [hit.document for hit in hits] == expected
    assert [hit.score for hit in hits] == pytest.approx(scores[expected], rel=1e-5)
