from __future__ import annotations

import json

import pytest

from foreword.errors import InputError, SettingError
from foreword.evaluate.tagging import measure_spans

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
