"""Measures of classifiers on examples small enough to be counted by hand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from foreword.errors import InputError, SettingError
from foreword.evaluate.classification import (
    calibration_error,
    confusion,
    cross_validate,
    lone_classes,
    measure_classifier,
    stratified_folds,
    wilson_interval,
)

TRUTH = ["cat", "cat", "cat", "dog", "dog", "owl"]
SAID = ["cat", "cat", "dog", "dog", "cat", "dog"]


class FirstWord:
    """A text is what its first word says; a word that is no class gives each class its share."""

    classes_: Sequence[str]

    def fit(self, texts: Sequence[str], labels: Sequence[str], /) -> Self:
        counts = Counter(labels)
        self.classes_ = sorted(counts)
        self.shares = {label: counts[label] / len(labels) for label in self.classes_}
        self.learnt_from = list(texts)
        return self

    def predict_best(self, texts: Sequence[str], k: int = 1) -> Iterator[list[tuple[str, float]]]:
        for text in texts:
            word = text.split()[0]
            if word in self.classes_:
                yield [(word, 0.9)]
            elif word == "?":
                yield []
            else:
                yield [max(self.shares.items(), key=lambda pair: pair[1])]


def test_confusion_by_hand() -> None:
    found = confusion(TRUTH, SAID)
    assert found.labels == ("cat", "dog", "owl")
    assert_array_equal(found.counts, [[2, 1, 0], [1, 1, 0], [0, 1, 0]])
    assert (found.texts, found.right, found.accuracy, found.micro_f1) == (6, 3, 0.5, 0.5)
    cat, dog, owl = found.classes
    assert (cat.precision, cat.recall, cat.f1, cat.texts, cat.predicted) == (2 / 3, 2 / 3, 2 / 3, 3, 3)
    assert (dog.precision, dog.recall, dog.f1) == (1 / 3, 1 / 2, 2 / 5)
    assert (owl.precision, owl.recall, owl.f1, owl.predicted) == (0, 0, 0, 0)
    assert found.macro_f1 == pytest.approx((2 / 3 + 2 / 5) / 3, rel=1e-15)


def test_to_json_says_it_all() -> None:
    told = confusion(TRUTH, SAID, known={"cat", "dog"}).to_json()
    assert told["accuracy"] == 0.5
    assert told["unseen_labels"] == {"owl": 1}
    assert told["confusion"] == {"labels": ["cat", "dog", "owl"], "counts": [[2, 1, 0], [1, 1, 0], [0, 1, 0]]}
    assert isinstance(told["classes"], dict)
    assert told["classes"]["dog"] == {"precision": 1 / 3, "recall": 0.5, "f1": 0.4, "texts": 2, "predicted": 3}


def test_nothing_to_measure() -> None:
    with pytest.raises(InputError, match="no labelled text"):
        confusion([], [])
    with pytest.raises(InputError, match="2 labels and 1 predictions"):
        confusion(["a", "b"], ["a"])


def test_wilson_interval_by_the_textbook() -> None:
    """Wilson's bounds solve (p̂ − p)² = z² p (1 − p) / n, and known values come out."""
    z = 1.959963984540054
    for right, total in ((1, 10), (5, 10), (81, 263), (912, 1000)):
        for bound in wilson_interval(right, total):
            assert (right / total - bound) ** 2 == pytest.approx(z * z * bound * (1 - bound) / total, rel=1e-9)
    # Newcombe 1998, Statistics in Medicine 17, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29
    for (right, total), bounds in {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }.items():
        assert_allclose(wilson_interval(right, total), bounds, atol=5e-5)
    assert wilson_interval(20, 20)[1] == 1.0
    with pytest.raises(SettingError):
        wilson_interval(0, 0)


def test_calibration_error_by_hand() -> None:
    # Four texts said at 0.9, of which three are right, and two at 0.6, both right: gaps .15 and .4.
    sure = np.array([0.9, 0.9, 0.9, 0.9, 0.6, 0.6])
    right = np.array([True, True, True, False, True, True])
    assert calibration_error(sure, right) == pytest.approx((4 * 0.15 + 2 * 0.4) / 6)
    assert calibration_error(np.ones(3), np.ones(3, np.bool_)) == 0
    assert calibration_error(np.array([0.5, 0.5]), np.array([True, False])) == 0


def test_a_label_never_seen_in_training_counts_as_wrong_and_is_told() -> None:
    model = FirstWord().fit(["cat a", "dog b"], ["cat", "dog"])
    found = measure_classifier(model, ["cat", "dog", "owl hoots"], ["cat", "dog", "owl"])
    assert found.accuracy == 2 / 3
    assert found.unseen == {"owl": 1}
    assert found.labels == ("cat", "dog", "owl")
    assert found.calibration_error == pytest.approx((2 * 0.1 + 0.5) / 3)


def test_a_model_that_says_nothing_says_its_first_class() -> None:
    """As fastText does for a text of which it knows no word; its classes are sorted by frequency."""
    model = FirstWord().fit(["cat a", "dog b"], ["cat", "dog"])
    found = measure_classifier(model, ["?", "?"], ["cat", "dog"])
    assert found.accuracy == 0.5


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from("aaabbc"), min_size=2, max_size=60), st.integers(2, 12), st.integers(0, 3))
def test_folds_are_even_in_all_and_in_each_class(labels: list[str], folds: int, seed: int) -> None:
    if folds > len(labels):
        with pytest.raises(SettingError, match="folds must be at least 2 and at most the number of texts"):
            stratified_folds(labels, folds, seed)
        return
    part = stratified_folds(labels, folds, seed)
    assert_array_equal(part, stratified_folds(labels, folds, seed))
    for chosen in ([True] * len(labels), *([label == each for label in labels] for each in set(labels))):
        sizes = np.bincount(part[np.array(chosen)], minlength=folds)
        assert sizes.max() - sizes.min() <= 1


def test_folds_depend_on_the_seed() -> None:
    labels = ["a", "b"] * 20
    assert (stratified_folds(labels, 5, seed=0) != stratified_folds(labels, 5, seed=1)).any()


def test_cross_validation_tests_every_text_once_and_never_learns_from_it() -> None:
    texts = [f"{label} {number}" for number, label in enumerate(["cat", "dog", "owl"] * 4)]
    labels = [text.split()[0] for text in texts]
    made: list[FirstWord] = []

    def make() -> FirstWord:
        made.append(FirstWord())
        return made[-1]

    folds = list(cross_validate(make, texts, labels, folds=4))
    assert [(fold.number, fold.of) for fold in folds] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert all(fold.measures.texts == 3 for fold in folds)
    assert folds[-1].so_far.texts == 12
    assert folds[-1].so_far.accuracy == 1
    assert sorted(text for model in made for text in set(texts) - set(model.learnt_from)) == sorted(texts)


def test_cross_validation_with_a_lone_text_of_a_class() -> None:
    texts = ["cat 1", "cat 2", "dog 1", "dog 2", "owl 1"]
    labels = ["cat", "cat", "dog", "dog", "owl"]
    assert lone_classes(labels) == ["owl"]
    result = list(cross_validate(FirstWord, texts, labels, folds=2))[-1].so_far
    assert result.unseen == {"owl": 1}
    assert result.right == 4


@pytest.mark.parametrize("labels", [["a", "a", "a"], ["a", "b", "c"], ["a", "a", "b"]])
def test_cross_validation_needs_two_classes_of_two(labels: list[str]) -> None:
    with pytest.raises(InputError, match="two classes with two texts each"):
        cross_validate(FirstWord, labels, labels, folds=2)


def test_measures_are_plain_numbers() -> None:
    found = confusion(TRUTH, SAID)
    assert all(type(number) is float and math.isfinite(number) for number in (found.accuracy, found.macro_f1))
