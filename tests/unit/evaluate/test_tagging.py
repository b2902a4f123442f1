from __future__ import annotations

import json
import math

import pytest

from foreword.errors import InputError, SettingError
from foreword.evaluate.tagging import ablation, measure_spans, measure_tagger
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


GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG", "B-ORG"]]
SAID = [["B-PER", "I-PER", "O", "B-ORG"], ["O", "B-ORG", "I-ORG"]]


def test_s03_counted_by_hand() -> None:
    """S03: one of three predicted spans is right, of four true ones; PER alone is found."""
    measures = measure_spans(SAID, GOLD)
    assert (measures.micro.right, measures.micro.predicted, measures.micro.gold) == (1, 3, 4)
    assert (measures.micro.precision, measures.micro.recall) == (1 / 3, 1 / 4)
    assert measures.micro.f1 == pytest.approx(2 / 7)
    assert [(kind.kind, kind.right, kind.predicted, kind.gold) for kind in measures.kinds] == [
        ("LOC", 0, 0, 1),
        ("ORG", 0, 2, 2),
        ("PER", 1, 1, 1),
    ]
    assert measures.macro.f1 == pytest.approx(1 / 3)
    assert measures.weighted.f1 == pytest.approx(1 / 4)
    told = json.loads(json.dumps(measures.to_json()))
    assert told["kinds"]["PER"] == {"precision": 1, "recall": 1, "f1": 1, "right": 1, "predicted": 1, "gold": 1}


def test_nothing_said_and_nothing_there() -> None:
    measures = measure_spans([["O"]], [["O"]])
    assert measures.micro.f1 == measures.macro.f1 == measures.weighted.f1 == 0
    assert measures.kinds == ()


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(InputError, match="1 sentences are predicted but 2"):
        measure_spans(SAID[:1], GOLD)
    with pytest.raises(InputError, match="sentence 1 has 2 predicted tags but 3"):
        measure_spans([SAID[0], SAID[1][:2]], GOLD)
    with pytest.raises(SettingError, match="scheme='IOB2'"):
        measure_spans(SAID, GOLD, scheme="IOB2")
    with pytest.raises(InputError, match="'E-X' is not of the scheme 'bio'"):
        measure_spans([["E-X"]], [["O"]], scheme="bio")
