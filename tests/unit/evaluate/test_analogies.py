"""Analogy questions: the fast road against the formula, what is counted, what is refused."""

from __future__ import annotations

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
    plain_best_word,
    read_questions,
)
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
