from __future__ import annotations

import math

import pytest

from foreword.errors import InputError
from foreword.evaluate.tagging import ablation, measure_tagger
from foreword.tag.conllu import Tagged
from foreword.tag.features import FeatureTagger
from foreword.tag.hmm import HMMTagger

TRAIN = Tagged([["a", "dog", "ran"], ["a", "cat", "slept"]], [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]])
TEST = Tagged([["a", "cat"], ["a", "bird", "ran"], []], [["DET", "X"], ["DET", "NOUN", "VERB"], []])


def test_measures_by_hand() -> None:
    measures = measure_tagger(HMMTagger().fit(*TRAIN), *TEST)
    assert measures.accuracies == pytest.approx((4 / 5, 3 / 4, 1, 1 / 5))
    assert (measures.sentences, measures.sentences_right) == (3, 2)
    facts = measures.to_json()
    assert facts["unseen_tags"] == {"X": 1}
    assert facts["f1"] == pytest.approx((1 + 2 / 3 + 1 + 0) / 4)
    low, high = measures.confusion.interval
    assert 0 < low < 0.8 < high < 1


def test_no_unknown_words() -> None:
    measures = measure_tagger(HMMTagger().fit(*TRAIN), *TRAIN)
    assert math.isnan(measures.accuracies.unknown)
    assert measures.to_json()["unknown_accuracy"] is None


def test_nothing_to_measure() -> None:
    tagger = HMMTagger().fit(*TRAIN)
    with pytest.raises(InputError, match="empty"):
        measure_tagger(tagger, [[]], [[]])
    with pytest.raises(InputError, match="2 tags"):
        measure_tagger(tagger, [["a"]], [["X", "Y"]])


def test_b06_each_group_is_left_out_and_left_alone() -> None:
    """B06: the table has a row for each, and each row is what a tagger with those groups measures."""
    groups = ["word", "suffix", "history"]
    rows = list(ablation(TRAIN, TEST, groups, rounds=3))
    assert [row.name for row in rows] == [
        "all",
        *(f"without {group}" for group in groups),
        *(f"only {group}" for group in groups),
        "none",
    ]
    assert rows[1].groups == ("suffix", "history")
    assert rows[-1].groups == ()
    assert rows[-1].features == 1
    for row in rows:
        assert row.accuracies == pytest.approx(
            FeatureTagger(row.groups, rounds=3).fit(*TRAIN).accuracies(*TEST), nan_ok=True
        )
