"""The report of a comparison with networks: every section is there, with its own numbers, and texts of any kind."""

from __future__ import annotations

import dataclasses
import math
from html.parser import HTMLParser

import pytest

from foreword.errors import SettingError
from foreword.evaluate.compare.ladder import compare
from foreword.evaluate.compare.results import Comparison, Curve, Sampled
from foreword.picture.curves import learning, mixing
from foreword.picture.picture import readable
from foreword.picture.report import report
from foreword.picture.text import merges, neighbours

ANIMALS, VERBS, THINGS = ("cat", "dog", "cow", "owl", "fox"), ("saw", "ate", "hid"), ("mat", "hat", "bat")
DOCUMENTS = [f"the {animal} {verb} the {thing}" for animal in ANIMALS for verb in VERBS for thing in THINGS] * 3


class Sections(HTMLParser):
    """The text of each section, by its heading."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._heading: str | None = None
        self._in_heading = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "h2":
            self._heading, self._in_heading = "", True

    def handle_endtag(self, tag: str) -> None:
        if tag == "h2" and self._heading is not None:
            self._in_heading = False
            self.found[self._heading] = ""

    def handle_data(self, data: str) -> None:
        if self._heading is None:
            return
        if self._in_heading:
            self._heading += data
        else:
            self.found[self._heading] += data


def comparison_of(texts: list[str], models: list[str], seconds: float) -> Comparison:
    *_, last = compare(texts, models=models, time_budget=seconds)
    assert isinstance(last, Comparison)
    return last


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return comparison_of(DOCUMENTS, ["unigram", "5-gram", "rnn", "gru", "lstm"], 4)


@pytest.fixture(scope="module")
def sections(comparison: Comparison) -> dict[str, str]:
    return Sections(report(comparison)).found


def test_every_section_is_there_in_its_order(sections: dict[str, str]) -> None:
    assert [title for title in sections if title != "Two are better than one"] == [
        "In short",
        "Results",
        "Perplexity for its time",
        "A passage, as each model read it",
        "What each model writes",
        "How the networks learnt",
        "How far back a network is taught",
        "What the gates do",
        "Words put together",
        "The text’s words",
        "Why longer n-grams run out of text",
        "Size and speed",
        "How this was measured",
    ]


def test_learning_curves_show_each_network_and_where_it_ended(comparison: Comparison, sections: dict[str, str]) -> None:
    told = sections["How the networks learnt"]
    for row in comparison.rows[2:]:
        assert row.curve is not None
        assert row.title in told
        assert readable(row.curve.valid[-1][1]) in told
        assert row.curve.train
    assert all(row.curve is None for row in comparison.rows[:2])


def test_f09_gradients_by_lag_are_drawn_for_the_recurrent_networks(
    comparison: Comparison, sections: dict[str, str]
) -> None:
    """F09: gradient norm against lag, RNN, GRU and LSTM, on a logarithmic axis."""
    told = sections["How far back a network is taught"]
    for row in comparison.rows[2:]:
        lag = max(lag for lag in (0, 1, 2, 3, 5, 8, 12, 16, 20, 30, 40) if lag < len(row.gradient))
        assert f"{row.title} {readable(row.gradient[lag] / row.gradient[0])}" in told
    assert "logarithmic" in told


def test_l05_gates_are_drawn_at_the_words_of_the_passage(comparison: Comparison, sections: dict[str, str]) -> None:
    """L05: forget, input and output of the LSTM, reset and update of the GRU."""
    told = sections["What the gates do"]
    for name in ("forget", "input", "output", "reset", "update"):
        assert name in told
    for piece in comparison.text.passage.pieces[:5]:
        assert piece.strip() in told
    [lstm] = [row for row in comparison.rows if row.name == "lstm"]
    assert lstm.gates is not None
    first = lstm.gates.traces["forget"][0]
    assert f"{sum(first) / len(first):.2f}" in told


def test_f11_merges_are_shown_with_their_counts(comparison: Comparison, sections: dict[str, str]) -> None:
    """F11: the first merges, and a sentence cut with more and more of them."""
    told = sections["Words put together"]
    assert comparison.merges is not None
    left, right, count = comparison.merges.first[0]
    assert f"{left} + {right} {count}".replace(" ", "") in told.replace(" ", "").replace("␣", "")
    assert f"After {comparison.merges.learnt} merges: {len(comparison.merges.stages[-1][1])} tokens" in told


def test_size_and_speed_are_told(sections: dict[str, str]) -> None:
    told = sections["Size and speed"]
    for column in ("Parameters", "On disk", "Learning took", "Scoring, tokens/s"):
        assert column in told
    assert "scores fastest" in told


def test_the_page_is_small(comparison: Comparison) -> None:
    assert len(report(comparison).encode()) < 6_000_000


def test_json_tells_the_same(comparison: Comparison) -> None:
    told = comparison.to_json()
    models = told["models"]
    assert isinstance(models, list)
    lstm = models[-1]
    assert isinstance(lstm, dict)
    assert {"learning", "gradient_by_lag", "gates"} <= set(lstm)
    assert "merges" in told


LANGUAGES = {
    "Chinese": "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。",
    "Arabic": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق، وقد وهبوا عقلاً وضميرًا",
    "Thai": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ",
    "emoji": "😀 👩‍👩‍👧 🏳️‍🌈 ❤️ 😀 👍🏽 🎉 😀 👩‍👩‍👧 ❤️ 👍🏽 🎉 😀",
    "fifty words": "the cat sat on the mat and the dog sat on the cat because the mat was warm " * 3,
    "three words": "one two three",
    "one word again and again": "a " * 60,
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_report_is_made_of_any_language_and_of_few_words(language: str) -> None:
    comparison = comparison_of([LANGUAGES[language]], ["unigram", "5-gram", "hmm", "lstm", "gru"], 0.3)
    assert all(math.isfinite(row.measures.perplexity) for row in comparison.rows)
    page = report(comparison)
    assert "Results" in Sections(page).found
    assert LANGUAGES[language].split()[-1][:3] in page or "&lt;unk&gt;" in page


def test_a_sampled_text_says_so(comparison: Comparison) -> None:
    sampled = dataclasses.replace(comparison, sampled=Sampled(800, 100_000_000, 100, 12_000_000))
    assert "Of 100 MB in 800 documents 12 MB in 100 were taken, evenly spread." in report(sampled)
    cut = dataclasses.replace(comparison, sampled=Sampled(1, 100_000_000, 1, 20_000_000))
    assert "Of 100 MB the first 20 MB were taken." in report(cut)


def test_what_was_not_measured_has_no_section(comparison: Comparison) -> None:
    rows = tuple(dataclasses.replace(row, curve=Curve(), gradient=(0.0, 0.0), gates=None) for row in comparison.rows)
    bare = dataclasses.replace(comparison, rows=rows, merges=None, mixed=None, growth=())
    assert {"How the networks learnt", "What the gates do", "Words put together"}.isdisjoint(
        Sections(report(bare)).found
    )
    assert "How far back" not in report(bare)


# The pictures by themselves


def test_learning_needs_something_to_draw() -> None:
    with pytest.raises(SettingError, match="at least one network"):
        learning({"a": Curve()})
    picture = learning({"a": Curve(((0.0, 100.0), (1.0, 50.0)), ((1.0, 60.0),)), "b": Curve(((0.0, 90.0),))})
    assert picture.markup.count("<svg xmlns") == 2
    assert ">60.0<" in picture.markup
    assert picture.caption.endswith("found a new best.")


def test_mixing_marks_the_weight_that_was_chosen() -> None:
    picture = mixing("LSTM", "5-gram", [0.0, 0.5, 1.0], [90.0, 70.0, 100.0], 0.4, 69.0)
    assert ">69.0<" in picture.markup
    assert ">40%<" in picture.markup
    assert "reach 69.0 on the test, where the better one alone has 90.0" in picture.caption
    with pytest.raises(SettingError, match="as many"):
        mixing("a", "b", [0.0, 1.0], [1.0], 0.5, 1.0)
    with pytest.raises(SettingError, match="finite"):
        mixing("a", "b", [0.0, 1.0], [math.inf, math.inf], 0.5, math.inf)
    assert "∞" not in mixing("a", "b", [0.0, 0.5, 1.0], [math.inf, 5.0, 6.0], 0.5, 5.0).markup


def test_words_and_merges_are_escaped_and_needed() -> None:
    nasty = "<script>"
    for picture in (
        neighbours([(nasty, [(nasty, 0.5)])]),
        merges([(nasty, " x", 3)], 1, [(0, [nasty, " "]), (1, [nasty + " "])]),
    ):
        assert "<script>" not in picture.markup
        assert "&lt;script&gt;" in picture.markup
    with pytest.raises(SettingError, match="at least one"):
        neighbours([("alone", [])])
    with pytest.raises(SettingError, match="at least one"):
        merges([], 0, [])
