"""Analogy questions: fast and plain versions agree; word similarity: ranks, correlations, words without a vector."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foreword.errors import InputError, SettingError
from foreword.evaluate.vectors import (
    BLOCK,
    Section,
    best_words,
    measure_analogies,
    measure_similarity,
    pearson,
    plain_best_word,
    ranks,
    read_pairs,
    read_questions,
    spearman,
)
from foreword.vectors.words import SubwordTable
from foreword.vectors.wordvectors import WordVectors

CORNERS = {
    "man": [0, 0, 1], "woman": [0, 1, 1], "king": [1, 0, 1], "queen": [1, 1, 1], "apple": [-1, -0.5, -0.2],
}  # fmt: skip


def square(**more: list[float]) -> WordVectors:
    words = {**CORNERS, **more}
    return WordVectors.of_words(words, np.array(list(words.values()), np.float32))


@pytest.mark.parametrize("method", ["add", "mul"])
@pytest.mark.parametrize("stored", ["float32", "int8"])
def test_fast_and_plain_answer_alike(method: Any, stored: Any) -> None:
    rng = np.random.default_rng(0)
    count = BLOCK + 300
    vectors = WordVectors.of_words(
        [f"w{row}" for row in range(count + 50)], rng.normal(size=(count + 50, 12)).astype(np.float32)
    ).stored_as(stored)
    questions = np.array([rng.choice(count, 3, replace=False) for _ in range(200)])
    answers = best_words(vectors, questions, np.arange(count), method)
    expected = [plain_best_word(vectors, question.tolist(), count, method) for question in questions]
    assert answers.tolist() == expected
    first = vectors.first(count)
    for (a, b, c), answer in zip(questions[:20].tolist(), answers[:20].tolist(), strict=True):
        assert first.analogy(f"w{a}", f"w{b}", f"w{c}", method=method)[0][0] == f"w{answer}"


def test_sections_are_counted_apart() -> None:
    sections = {
        "royal": [
            ("man", "king", "woman", "queen"), ("man", "woman", "king", "queen"), ("man", "king", "woman", "apple"),
        ],
        "gram1-none": [("man", "king", "woman", "zebra"), ("king", "man", "queen", "woman")],
    }  # fmt: skip
    found = measure_analogies(square(), sections)
    assert found.sections == (Section("royal", 3, 2, 0), Section("gram1-none", 1, 1, 1))
    assert found.total == Section("total", 4, 3, 1)
    assert (found.semantic.accuracy, found.syntactic.accuracy, found.accuracy) == (2 / 3, 1.0, 0.75)
    assert found.to_json()["accuracy"] == 0.75
    assert measure_analogies(square(), {"none": [("a", "b", "c", "d")]}).accuracy == 0


def test_case_is_ignored_unless_it_matters() -> None:
    """Of words that differ in case the first stands for all, and none of them answers a question that holds one."""
    vectors = square(King=[1.0, 0.9, 1.0], Queen=[1.0, 1.01, 1.0])
    questions = {"": [("MAN", "KING", "WOMAN", "QUEEN")]}
    assert measure_analogies(vectors, questions).total.right == 1
    assert measure_analogies(vectors, questions, ignore_case=False).total.skipped == 1


def test_inputs_may_answer_if_asked_to() -> None:
    """Row E13: without the usual exclusion an analogy is often answered with one of its own words."""
    near = WordVectors.of_words(["a", "b", "c", "d"], np.array([[1, 0.1], [1, 0.2], [0.1, 1], [0.3, 1]], np.float32))
    questions = {"": [("a", "b", "c", "d")]}
    assert measure_analogies(near, questions).total.right == 1
    assert measure_analogies(near, questions, include_inputs=True).total.right == 0


def test_only_the_most_frequent_words_are_asked_about() -> None:
    found = measure_analogies(square(), {"": [("man", "king", "woman", "queen")]}, vocabulary=3)
    assert (found.vocabulary, found.total.skipped) == (3, 1)


def test_questions_are_read_by_sections(tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    path.write_text(": first\na b c d\n\n: second\ne f g h\ni j k l\n: third\n")
    assert read_questions(path) == {
        "first": [("a", "b", "c", "d")], "second": [("e", "f", "g", "h"), ("i", "j", "k", "l")], "third": [],
    }  # fmt: skip
    path.write_text("a b c d\na b c\n")
    with pytest.raises(InputError, match="line 2: 3 words, expected four"):
        read_questions(path)
    path.write_text(": alone\n")
    with pytest.raises(InputError, match="no questions"):
        read_questions(path)
    with pytest.raises(SettingError, match="expected one of add, mul"):
        measure_analogies(square(), {}, method="divide")  # type: ignore[arg-type]


def some_vectors() -> WordVectors:
    rows = [[1, 0], [0.9, 0.1], [0, 1], [-1, 0.2]]
    return WordVectors.of_words(["cat", "dog", "sky", "Rock"], np.array(rows, np.float32))


def test_equals_share_their_ranks() -> None:
    assert ranks(np.array([3.0, 1, 3, 2, 3])).tolist() == [4, 1, 4, 2, 4]
    assert ranks(np.array([])).tolist() == []


def test_correlations_are_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, other = rng.integers(0, 9, 30).astype(float), rng.normal(size=30)
        assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other)[0], abs=1e-12)
        assert pearson(one, other) == pytest.approx(stats.pearsonr(one, other)[0], abs=1e-12)


def test_nothing_to_compare_is_not_a_number() -> None:
    assert math.isnan(spearman(np.array([1.0]), np.array([2.0])))
    assert math.isnan(spearman(np.array([1.0, 1]), np.array([2.0, 3])))
    found = measure_similarity(some_vectors(), [("cat", "nobody", 1.0)])
    assert math.isnan(found.spearman)
    assert found.to_json()["spearman"] is None


def test_words_without_a_vector_are_counted() -> None:
    pairs = [("cat", "dog", 9.0), ("cat", "sky", 2.0), ("CAT", "rock", 1.0), ("cat", "zebra", 5.0)]
    found = measure_similarity(some_vectors(), pairs, name="some")
    assert (found.name, found.pairs, found.oov) == ("some", 3, 1)
    assert found.spearman == pytest.approx(1)
    assert measure_similarity(some_vectors(), pairs, ignore_case=False).oov == 2
    assert measure_similarity(some_vectors(), pairs, vocabulary=2).oov == 3


def test_parts_of_words_help_only_if_asked() -> None:
    table = SubwordTable(np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32), 3, 4, 50)
    known = some_vectors()
    vectors = WordVectors(known.rows, known.data, known.offsets, table)
    pairs = [("cat", "dog", 9.0), ("cat", "catlike", 8.0), ("sky", "dog", 1.0)]
    assert measure_similarity(vectors, pairs).oov == 1
    assert measure_similarity(vectors, pairs, compose=True).oov == 0


def test_pairs_are_read_or_the_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text("# remark\ncat\tdog\t9.5\n\ncat sky 2\n")
    assert read_pairs(path) == [("cat", "dog", 9.5), ("cat", "sky", 2.0)]
    for bad in ("cat dog\n", "cat dog much\n", "cat dog 1 2\n"):
        path.write_text(f"cat sky 2\n{bad}")
        with pytest.raises(InputError, match="line 2: expected two words and a number"):
            read_pairs(path)
