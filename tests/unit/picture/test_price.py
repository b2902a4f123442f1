"""The chart of perplexity by seconds: one dot per model, names apart, and what is beaten is not in colour."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from foreword.errors import SettingError
from foreword.picture.price import LINE, frontier, price

POINTS = {
    "unigram": (0.001, 560.0),
    "bigram": (0.02, 140.0),
    "5-gram": (0.2, 88.0),
    "hmm": (27.0, 220.0),
    "rnn": (22.0, 126.0),
    "gru": (22.5, 80.0),
    "lstm": (23.0, 81.0),
}
SVG = "{http://www.w3.org/2000/svg}"


def test_what_another_model_beats_in_less_time_is_not_on_the_frontier() -> None:
    assert frontier(POINTS) == ["unigram", "bigram", "5-gram", "gru"]
    assert "from unigram, 560 after < 0.01 s, to gru, 80.0 after 22 s" in price(POINTS).caption


def test_each_model_has_a_dot_and_a_name() -> None:
    root = ElementTree.fromstring(price(POINTS, {"gru": (75.0, 85.0)}).markup)
    assert len(root.findall(f"{SVG}circle")) == len(POINTS)
    texts = [element.text for element in root.findall(f"{SVG}text")]
    assert set(POINTS) <= set(texts)
    hints = [element.text for element in root.iter(f"{SVG}title")]
    assert "5-gram: 88.0 after 0.2 s" in hints


def test_names_of_one_column_are_apart() -> None:
    root = ElementTree.fromstring(price(POINTS).markup)
    named = {each.text: each for each in root.findall(f"{SVG}text") if each.text in POINTS}
    column = sorted(float(named[name].attrib["y"]) for name in ("hmm", "rnn", "gru", "lstm"))
    assert all(lower - upper >= LINE - 0.01 for upper, lower in pairwise(column))


def test_infinite_perplexities_are_left_out() -> None:
    picture = price({"good": (1.0, 10.0), "broken": (2.0, math.inf)}, {"good": (9.0, math.inf)})
    assert "broken" not in picture.markup
    assert "good alone, 10.0 after 1 s" in picture.caption
    with pytest.raises(SettingError, match="finite"):
        price({"broken": (1.0, math.inf)})


def test_markup_in_a_name_is_escaped() -> None:
    assert not re.search("<script", price({"<script>": (1.0, 2.0)}).markup)
