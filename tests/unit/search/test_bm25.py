"""BM25 and the cosine, by hand and by two roads."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foreword.errors import ForewordError, InputError, SettingError
from foreword.protocols import Parts
from foreword.search import inverted
from foreword.search.bm25 import BM25, Variant
from foreword.search.cosine import CosineSearch
from foreword.search.inverted import Found
from foreword.storage.folder import load, save
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

VARIANTS: tuple[Variant, ...] = get_args(Variant)
WORDS = 60
VOCAB = Vocab(["<unk>", "</s>", *(f"w{place}" for place in range(WORDS - 2))])
SMALL = [[2, 3, 3, 4], [2, 5], [], [2, 2, 2, 3, 6, 7, 0], [8, 9, 10]]

Ranker = BM25 | CosineSearch
RANKERS: dict[str, Callable[[], Ranker]] = {
    **{variant: lambda variant=variant: BM25(variant) for variant in VARIANTS},  # type: ignore[misc]
    "cosine": CosineSearch,
    "cosine, sublinear": lambda: CosineSearch(smooth=False, sublinear=True),
}


def corpus_of(documents: list[list[int]]) -> Corpus:
    return Corpus.from_ids(documents, VOCAB)


def random_documents(count: int, seed: int, longest: int = 30) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [
        (rng.zipf(1.3, rng.integers(0, longest)) % (WORDS - 2) + 2 * rng.integers(0, 2)).tolist() for _ in range(count)
    ]


def by_the_book(
    variant: Variant, documents: list[list[int]], query: list[int], k1: float, b: float, delta: float
) -> Any:
    """The equations at the head of bm25.py, word by word."""
    n = len(documents)
    average = sum(map(len, documents)) / n
    scores = []
    for document in documents:
        score = 0.0
        for term in query:
            df = sum(term in other for other in documents)
            if term < 2 or not df:
                continue
            tf = document.count(term)
            length = 1 - b + b * len(document) / average
            idf = {
                "lucene": math.log(1 + (n - df + 0.5) / (df + 0.5)),
                "robertson": max(0.0, math.log((n - df + 0.5) / (df + 0.5))),
                "atire": math.log(n / df),
                "bm25l": math.log((n + 1) / (df + 0.5)),
                "bm25+": math.log((n + 1) / df),
            }[variant]
            plain = tf / (tf + k1 * length) if tf else 0.0
            c = tf / length if tf else 0.0
            saturation = {
                "lucene": plain,
                "robertson": plain,
                "atire": (k1 + 1) * plain,
                "bm25l": (k1 + 1) * (c + delta) / (c + delta + k1),
                "bm25+": (k1 + 1) * plain + delta,
            }[variant]
            score += idf * saturation
        scores.append(score)
    return np.array(scores)


# The numbers


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("k1", "b", "delta"), [(1.5, 0.75, 0.5), (0.5, 1.0, 1.5), (2.0, 0.0, 0.0)])
def test_scores_by_the_book(variant: Variant, k1: float, b: float, delta: float) -> None:
    documents = SMALL + random_documents(40, 1)
    model = BM25(variant, k1=k1, b=b, delta=delta).fit(corpus_of(documents))
    for query in ([2], [3, 4, 9], [2, 2, 3], [5, 0, 59], []):
        expected = by_the_book(variant, documents, query, k1, b, delta)
        assert_allclose(model.scores(np.array(query, np.int64)), expected, rtol=1e-5, atol=1e-7)


def test_one_number_by_hand() -> None:
    """Two documents of two words each: idf = ln(1 + 1.5 / 1.5) = ln 2, saturation 1 / (1 + 1.5) = 0.4."""
    model = BM25().fit(corpus_of([[2, 3], [4, 5]]))
    assert_allclose(model.scores(np.array([2])), [0.4 * math.log(2), 0], rtol=1e-6)


def test_the_cosine_of_a_document_with_itself_is_one() -> None:
    model = CosineSearch().fit(corpus_of(SMALL))
    for document, text in enumerate(SMALL):
        known = [id for id in text if id]
        cosines = model.scores(np.array(text, np.int64))
        assert cosines[document] == pytest.approx(1 if known else 0, rel=1e-6)
        assert cosines.max() <= 1 + 1e-6


# Two roads


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("rows", [0, 4, 1 << 40], ids=["no rows", "some rows", "rows only"])
def test_the_fast_road_finds_what_the_plain_one_does(ranker: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same documents with the same scores to the last bit, ties in document order, however terms are stored."""
    monkeypatch.setattr(inverted, "ROW_SHARE", rows)
    for seed, count in enumerate((1, 2, 63, 64, 65, 700)):
        model = RANKERS[ranker]().fit(corpus_of(random_documents(count, seed)))
        queries = corpus_of([*random_documents(40, seed + 100, 12), [], [0], [59]])
        questions = model._batch(queries)
        for k in (1, 3, 10, count, count + 5):
            found = model.index_.best(questions, k)
            assert found.documents.shape == (len(queries), min(k, count))
            for query in range(len(queries)):
                assert_best(found, query, model.index_.scores(questions, query))


def assert_best(found: Found, query: int, scores: Any) -> None:
    order = np.lexsort((np.arange(len(scores)), -scores))
    expected = order[scores[order] > 0][: found.documents.shape[1]]
    number = len(expected)
    assert_array_equal(found.documents[query, :number], expected)
    assert_array_equal(found.scores[query, :number], scores[expected])
    assert (found.documents[query, number:] == -1).all()
    assert (found.scores[query, number:] == 0).all()


def test_a_long_index_with_long_lists() -> None:
    """Enough documents that lists are asked about single documents, and added to those that are still in the race."""
    rng = np.random.default_rng(3)
    model = BM25().fit(corpus_of([(rng.zipf(1.15, 12) % 58 + 2).tolist() for _ in range(6000)]))
    queries = corpus_of([rng.integers(2, 60, 6).tolist() for _ in range(300)])
    questions = model.index_.batch(queries)
    for k in (1, 10, 100):
        found = model.index_.best(questions, k)
        for query in range(0, len(queries), 7):
            assert_best(found, query, model.index_.scores(questions, query))


def test_a_query_of_thousands_of_words() -> None:
    documents = random_documents(300, 5)
    model = BM25().fit(corpus_of(documents))
    query = [id for document in documents for id in document]
    questions = model.index_.batch(corpus_of([query]))
    assert int(questions.factors.sum()) == sum(id > 1 for id in query)
    assert_best(model.index_.best(questions, 10), 0, model.index_.scores(questions))


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_the_number_of_threads_changes_nothing(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inverted, "QUERIES_AT_ONCE", 4)
    corpus = corpus_of(random_documents(200, 8))
    one, many = BM25().fit(corpus), BM25().fit(corpus, threads=threads)
    for name, array in one.index_.arrays().items():
        assert_array_equal(array, many.index_.arrays()[name], err_msg=name)
    queries = corpus_of(random_documents(50, 9, 6))
    assert_array_equal(one.search(queries).documents, many.search(queries, threads=threads).documents)
    assert_array_equal(one.search(queries).scores, many.search(queries, threads=threads).scores)


def test_indexing_in_pieces_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inverted, "TOKENS_AT_ONCE", 50)
    corpus = corpus_of(random_documents(100, 2))
    told: list[tuple[str, int, int | None]] = []
    model = BM25().fit(corpus, meter=lambda *report: told.append(report))
    assert told[-1] == ("indexing", 2 * len(corpus.ids), 2 * len(corpus.ids))
    assert len(told) > 10
    monkeypatch.undo()
    whole = BM25().fit(corpus)
    assert_array_equal(model.index_.pairs, whole.index_.pairs)
    assert_array_equal(model.index_.rows, whole.index_.rows)


# What is asked


def test_ties_are_in_document_order() -> None:
    model = BM25().fit(corpus_of([[3], [2, 4], [3], [2, 4], [2, 4], [2, 4, 4]]))
    assert model.search(corpus_of([[2]]), 3).documents.tolist() == [[1, 3, 4]]


def test_nothing_is_found_where_no_word_is_known_and_k_may_be_large() -> None:
    model = BM25("bm25+").fit(corpus_of(SMALL))
    found = model.search(corpus_of([[], [0], [50], [9]]), 100)
    assert found.documents.shape == (4, len(SMALL))
    assert found.documents[:3].max() == -1
    assert not found.scores[:3].any()
    assert found.documents[3].tolist() == [4, -1, -1, -1, -1]
    assert model.search(corpus_of([])).documents.shape == (0, 5)


def test_the_unknown_word_cannot_be_searched_for() -> None:
    model = BM25().fit(corpus_of([[0, 0, 2], [3]]))
    assert not model.scores(np.array([0])).any()
    # But it makes its document longer.
    assert_allclose(model.scores(np.array([2]))[0], by_the_book("lucene", [[0, 0, 2], [3]], [2], 1.5, 0.75, 0)[0], 1e-6)


def test_robertson_does_not_count_words_of_every_other_document() -> None:
    model = BM25("robertson").fit(corpus_of([[2, 3], [2, 4], [2, 5], [6, 7]]))
    assert model.index_.idf[2] == 0
    assert model.search(corpus_of([[2]])).documents.max() == -1
    assert model.search(corpus_of([[2, 3]])).documents[0].tolist() == [0, -1, -1, -1]


@pytest.mark.parametrize("ranker", RANKERS)
def test_contributions_sum_to_the_score(ranker: str) -> None:
    documents = random_documents(50, 4)
    model = RANKERS[ranker]().fit(corpus_of(documents))
    query = np.array([2, 3, 3, 11, 0, 59])
    for document in (0, 7, 20):
        contributions = model.contributions(query, document)
        assert set(contributions) <= {"w0", "w1", "w9", "w57"}
        assert sum(contributions.values()) == pytest.approx(model.scores(query)[document], rel=1e-5, abs=1e-7)
    with pytest.raises(SettingError, match="document 50: expected 0 to 49"):
        model.contributions(query, 50)


def test_the_documents_that_hold_a_word() -> None:
    index = BM25().fit(corpus_of(SMALL)).index_
    assert index.postings(2)[0].tolist() == [0, 1, 3]
    assert index.postings(9)[0].tolist() == [4]
    assert index.postings(59)[0].tolist() == []


# What is refused


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"variant": "bm26"}, "variant is 'bm26': expected lucene or robertson or atire or bm25l or bm25"),
        ({"k1": -1}, "k1 is -1"),
        ({"k1": math.inf}, "k1 is inf"),
        ({"b": 1.5}, "b is 1.5: expected at least 0 and at most 1"),
        ({"b": math.nan}, "b is nan"),
        ({"delta": -0.5}, "delta is -0.5"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        BM25(**settings)


def test_calls_that_make_no_sense() -> None:
    for model in (BM25(), CosineSearch()):
        with pytest.raises(ForewordError, match="learnt nothing yet"):
            model.search(corpus_of([[2]]))
    with pytest.raises(InputError, match="from 1 to"):
        BM25().fit(corpus_of([]))
    model = BM25().fit(corpus_of(SMALL))
    with pytest.raises(SettingError, match="k is 0: expected at least 1"):
        model.search(corpus_of([[2]]), 0)
    with pytest.raises(InputError, match="another vocabulary"):
        model.search(Corpus.from_ids([[2]], Vocab(["<unk>", "</s>", "other"])))


# Saving


@pytest.mark.parametrize("ranker", RANKERS)
def test_a_saved_index_answers_the_same(ranker: str, tmp_path: Path) -> None:
    model = RANKERS[ranker]().fit(corpus_of(random_documents(80, 6)))
    save(model, tmp_path / "index")
    loaded = load(tmp_path / "index")
    assert repr(loaded) == repr(model)
    assert len(loaded) == 80
    queries = corpus_of(random_documents(30, 7, 6))
    assert_array_equal(loaded.search(queries).documents, model.search(queries).documents)
    assert_array_equal(loaded.search(queries).scores, model.search(queries).scores)
    base = loaded.index_.pairs
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert "mmap" in type(base).__name__.lower()  # not read, mapped


def parts_of() -> Parts:
    parts = BM25().fit(corpus_of(random_documents(80, 6))).to_parts()
    return Parts(parts.settings, {name: array.copy() for name, array in parts.arrays.items()}, parts.vocab)


DAMAGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "pairs of another type": lambda arrays: arrays.update(pairs=arrays["pairs"].astype(np.int64)),
    "pairs that are triples": lambda arrays: arrays.update(pairs=np.zeros((4, 3), np.int32)),
    "pairs without a shape": lambda arrays: arrays.update(pairs=np.array(3, np.int32)),
    "offsets that fall": lambda arrays: arrays["offsets"].__setitem__(5, 1 << 40),
    "offsets that begin late": lambda arrays: arrays["offsets"].__setitem__(0, 1),
    "offsets that end early": lambda arrays: arrays["offsets"].__setitem__(-1, 0),
    "too few offsets": lambda arrays: arrays.update(offsets=arrays["offsets"][:-1]),
    "a row of no term": lambda arrays: arrays["row_terms"].__setitem__(-1, 99),
    "a row of a negative term": lambda arrays: arrays["row_terms"].__setitem__(0, -1),
    "two rows of a term": lambda arrays: arrays["row_terms"].__setitem__(1, arrays["row_terms"][0]),
    "rows without documents": lambda arrays: arrays.update(rows=arrays["rows"][:, :0].copy()),
    "rows that are flat": lambda arrays: arrays.update(rows=arrays["rows"].reshape(-1)),
    "an idf that is no number": lambda arrays: arrays["idf"].__setitem__(3, np.nan),
    "a negative bound": lambda arrays: arrays["bounds"].__setitem__(3, -1),
    "no bounds": lambda arrays: arrays.pop("bounds"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_arrays_that_do_not_fit_are_refused(damage: str) -> None:
    parts = parts_of()
    DAMAGES[damage](parts.arrays)
    with pytest.raises((ValueError, KeyError, TypeError)):
        BM25.from_parts(parts)


POSTINGS: dict[str, Callable[[dict[str, Any], int], None]] = {
    "a document beyond the last": lambda arrays, at: arrays["pairs"].__setitem__((at, 0), 80),
    "a negative document": lambda arrays, at: arrays["pairs"].__setitem__((at, 0), -5),
    "a document far away": lambda arrays, at: arrays["pairs"].__setitem__((at, 0), 2**31 - 1),
    "a weight that is no number": lambda arrays, at: arrays["pairs"].view(np.float32).__setitem__((at, 1), np.nan),
    "a weight above the bound": lambda arrays, at: arrays["pairs"].view(np.float32).__setitem__((at, 1), 1e30),
    "a weight of zero": lambda arrays, at: arrays["pairs"].__setitem__((at, 1), 0),
}


@pytest.mark.parametrize("damage", POSTINGS)
def test_damaged_postings_are_told_when_they_are_asked_for(damage: str) -> None:
    parts = parts_of()
    term = int(np.flatnonzero(np.diff(parts.arrays["offsets"]) > 2)[0])
    POSTINGS[damage](parts.arrays, int(parts.arrays["offsets"][term + 1]) - 1)
    model = BM25.from_parts(parts)
    for ask in (model.search, model.search):
        with pytest.raises(InputError, match=f"the index is damaged: the postings of '{VOCAB[term]}'"):
            ask(corpus_of([[term, 2]]))
    with pytest.raises(InputError, match="damaged"):
        model.scores(np.array([term]))
    assert model.search(corpus_of([[2]])).documents[0, 0] >= 0  # other terms are whole


def test_a_damaged_row_is_told_when_it_is_asked_for() -> None:
    parts = parts_of()
    parts.arrays["rows"][0, 3] = np.inf
    with pytest.raises(InputError, match="damaged"):
        BM25.from_parts(parts).search(corpus_of([[int(parts.arrays["row_terms"][0])]]))
