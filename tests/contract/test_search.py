"""What is true of everything that ranks documents for a query."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from foreword.pipeline.search import TextSearch
from foreword.protocols import Saveable
from foreword.storage.folder import load, save

from .models import RANKERS, Model

DOCUMENTS = [
    "the cat sat on the mat", "a dog ran", "the cat and the dog", "", "birds sing", "the the the", "cat cat mat",
]  # fmt: skip
QUERIES = ["cat", "the dog", "cat mat", "unseen", "", "cat cat"]


@pytest.fixture(scope="module", params=RANKERS, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Model:
    assert isinstance(request.param, Model)
    return request.param


@pytest.fixture(scope="module")
def search(case: Model) -> TextSearch:
    return TextSearch(ranker=case.build()).fit(DOCUMENTS)


def test_it_follows_the_protocols(search: TextSearch) -> None:
    assert isinstance(search, Saveable)
    assert isinstance(search.ranker, Saveable)
    assert len(search) == len(DOCUMENTS)


@pytest.mark.parametrize("query", QUERIES)
def test_hits_come_in_the_order_of_their_scores(search: TextSearch, query: str) -> None:
    hits = search.query(query, 10)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert all(first.score >= second.score for first, second in pairwise(hits))
    assert all(set(query.split()) & set(DOCUMENTS[hit.document].split()) for hit in hits)


@pytest.mark.parametrize("query", QUERIES)
def test_fewer_hits_are_the_first_of_more(search: TextSearch, query: str) -> None:
    assert search.query(query, 2) == search.query(query, 10)[:2]


def test_queries_do_not_know_of_each_other(search: TextSearch) -> None:
    assert list(search.query_batch(QUERIES, 5)) == [search.query(query, 5) for query in QUERIES]


def test_a_score_is_the_sum_of_what_its_words_add(search: TextSearch) -> None:
    for hit in search.query("the cat mat", 5):
        assert sum(search.explain("the cat mat", hit.document).values()) == pytest.approx(hit.score, rel=1e-5)


def test_saved_and_loaded_it_finds_the_same(search: TextSearch, tmp_path: Path) -> None:
    save(search, tmp_path / "index")
    loaded: Any = load(tmp_path / "index")
    assert [loaded.query(query, 5) for query in QUERIES] == [search.query(query, 5) for query in QUERIES]
