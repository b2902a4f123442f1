"""Charts of lines and bars, gradients by lag, ticks, and pictures as files."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from foreword.errors import SettingError
from foreword.lessons.fading import FIRST, draw_fading
from foreword.picture.axes import spread, tick_name, ticks
from foreword.picture.curves import BOTTOM, TOP, curves, gradients, growth
from foreword.picture.picture import Picture, standalone, write_standalone
from foreword.picture.text import surprisal

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '<script>alert("1")</script> & \' "'
DOCS = Path(__file__).parents[3] / "docs"


def elements(picture: Picture, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(picture.markup).iter(f"{SVG}{tag}"))


def texts(picture: Picture) -> list[str]:
    return ["".join(element.itertext()) for element in elements(picture, "text")]


def points(picture: Picture) -> list[tuple[float, float]]:
    return [
        (float(circle.attrib["cx"].rstrip("%")), float(circle.attrib["cy"])) for circle in elements(picture, "circle")
    ]


def test_points_lie_on_a_logarithmic_axis() -> None:
    found = points(curves(["a", "b", "c"], {"line": [1.0, 10.0, 100.0]}, "title", "caption."))
    assert [y for _, y in found] == [BOTTOM, (TOP + BOTTOM) / 2, TOP]
    assert found[1][0] - found[0][0] == pytest.approx(found[2][0] - found[1][0])


def test_a_line_is_broken_where_a_number_is_infinite_and_left_out_where_all_are() -> None:
    lines = {"broken": [1.0, math.inf, 3.0], "nowhere": [math.inf] * 3}
    picture = curves(["a", "b", "c"], lines, "title", "caption.")
    assert len(points(picture)) == 2
    assert not [line for line in elements(picture, "line") if "stroke-width" in line.attrib]
    assert "broken: 3.00" in texts(picture)
    assert not any("nowhere" in text for text in texts(picture))


def test_the_accented_line_lies_on_top() -> None:
    picture = curves(["a"], {"one": [1.0], "two": [1.0]}, "title", "caption.", accent={"one"}, dashed={"two"})
    assert ["accent" in circle.attrib["fill"] for circle in elements(picture, "circle")] == [False, True]


@pytest.mark.parametrize("lines", [{}, {"x": [1.0]}, {"x": [0.0, 1.0]}, {"x": [-1.0, 2.0]}, {"x": [math.nan] * 2}])
def test_what_cannot_be_drawn_is_refused(lines: dict[str, list[float]]) -> None:
    with pytest.raises(SettingError):
        curves(["a", "b"], lines, "title", "caption.")


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (90, 1200, [100, 200, 500, 1000]),
        (1e-10, 1, [1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1]),
        (3, 4, []),
        (1e4, 1e24, [1e6, 1e9, 1e12, 1e15, 1e18, 1e21, 1e24]),
    ],
)
def test_marks_are_round_numbers(low: float, high: float, marks: list[float]) -> None:
    assert list(ticks(low, high)) == pytest.approx(marks)


@pytest.mark.parametrize(
    ("value", "name"), [(1, "1"), (200, "200"), (1e5, "100,000"), (1e24, "10²⁴"), (1e-8, "10⁻⁸"), (0.1, "0.1")]
)
def test_marks_are_named_for_people(value: float, name: str) -> None:
    assert tick_name(value) == name


@pytest.mark.parametrize("places", [[0.0, 0.0, 0.0], [0.0, 100.0], [95.0, 96.0, 97.0], [1.0, 2.0, 99.0, 99.5]])
def test_names_do_not_lie_on_each_other(places: list[float]) -> None:
    moved = spread(places, 10, 100)
    assert all(below - above >= 10 for above, below in pairwise(moved))
    assert moved[-1] <= 100
    assert spread([0.0, 50.0], 10, 100) == [0, 50]


def test_n08_growth_draws_what_is_possible_seen_seen_once_and_new() -> None:
    """N08: one point for each number, and a bar as high as the share that is new."""
    picture = growth([1, 2, 3], [100, 10_000, 10**6], [90, 800, 900], [0, 400, 880], [0.0, 0.5, 1.0])
    assert len(points(picture)) == 8  # no word was seen once
    bars = [line for line in elements(picture, "line") if line.attrib.get("stroke-width") == "26"]
    heights = [float(bar.attrib["y1"]) - float(bar.attrib["y2"]) for bar in bars]
    assert heights == [0, 35, 70]
    assert {"0%", "50%", "100%", "n = 2"} <= set(texts(picture))
    assert "3-grams 100%" in picture.caption
    assert len(growth([1], [9], [3], [1], [math.nan]).markup) > 0
    with pytest.raises(SettingError):
        growth([], [], [], [], [])


def test_h07_bars_are_as_long_as_the_logarithm_of_the_distance_and_no_longer_than_the_bound() -> None:
    """H07: the scale runs from the smallest power of ten to one."""
    picture = draw_fading(["the", "cat", "sat"], [1.0, 1e-2, 1e-4], [1.0, 0.5, 0.1])
    strokes = elements(picture, "line")
    bars = [line for line in strokes if line.attrib.get("stroke-width") == "10"]
    bounds = [line for line in strokes if line.attrib.get("stroke-width") == "2"]
    ends = [float(bar.attrib["x2"].rstrip("%")) for bar in bars]
    assert ends == pytest.approx([100, 100 * (FIRST + 1) / 2, 100 * FIRST])
    limits = [float(bound.attrib["x1"].rstrip("%")) for bound in bounds]
    assert all(end <= limit for end, limit in zip(ends, limits, strict=True))
    assert {"the", "cat", "sat", "1"} <= set(texts(picture))


def test_a_distance_of_nothing_is_a_bar_of_no_length() -> None:
    picture = draw_fading(["a", "b"], [1.0, 0.0], [1.0, 0.0])
    assert [line for line in elements(picture, "line") if line.attrib.get("stroke-width") == "10"][1].attrib["x2"] == (
        f"{100 * FIRST:g}%"
    )


@pytest.mark.parametrize("columns", [([], [], []), (["a"], [], [1.0]), (["a"], [1.0], [1.0, 1.0])])
def test_fading_needs_as_many_of_each(columns: tuple[list[str], list[float], list[float]]) -> None:
    with pytest.raises(SettingError):
        draw_fading(*columns)


@pytest.mark.parametrize(
    "picture",
    [curves([NASTY], {NASTY: [2.0]}, NASTY, "caption."), draw_fading([NASTY[:18]], [0.5], [1.0])],
    ids=["curves", "fading"],
)
def test_every_text_is_escaped_and_nothing_is_fetched(picture: Picture) -> None:
    for markup in (picture.markup, standalone(picture)):
        root = ElementTree.fromstring(markup)
        assert "script" not in {element.tag.removeprefix(SVG) for element in root.iter()}
        assert not re.search(r"(?:href|src)\s*=|url\(", markup)
    assert picture.caption.endswith(".")


def test_a_picture_as_a_file_has_a_size_a_title_and_paper(tmp_path: Path) -> None:
    picture = curves(["a"], {"x": [1.0]}, "What is drawn", "caption.")
    write_standalone(picture, tmp_path / "picture.svg", width=500)
    markup = (tmp_path / "picture.svg").read_text(encoding="utf-8")
    assert markup == standalone(picture, 500)
    root = ElementTree.fromstring(markup)
    assert root.attrib["width"] == "500"
    assert root.findtext(f"{SVG}text") == "What is drawn"
    assert "prefers-color-scheme:dark" in markup


def test_running_text_is_no_drawing() -> None:
    with pytest.raises(SettingError, match="is not a drawing"):
        standalone(surprisal(["a"], {"model": [1.0]}))


def test_the_pages_show_pictures_that_are_there() -> None:
    """The page of n-grams and the page of HMMs have a picture each, and each is a whole drawing."""
    for page in ("ngram.md", "hmm.md"):
        shown = re.findall(r"!\[[^\]]+\]\((pictures/[\w-]+\.svg)\)", (DOCS / page).read_text(encoding="utf-8"))
        assert shown
        for name in shown:
            assert ElementTree.parse(DOCS / name).getroot().tag == f"{SVG}svg"


def test_lines_are_shares_of_their_beginning_at_the_lags_asked_for() -> None:
    picture = gradients({"rnn": [4.0, 2.0, 1.0, 1e-40], "lstm": [5.0, 5.0, 4.0, 2.5]}, [0, 2, 3], accent={"lstm"})
    assert ">lstm: 0.5<" in picture.markup
    assert ">rnn: 0.25<" in picture.markup  # at lag 3 it is past drawing, and the name stands where the line ends
    assert "3 steps back there is left: rnn nothing, lstm 0.5" in picture.caption
    assert all(f">{lag}<" in picture.markup for lag in (0, 2, 3))


def test_what_cannot_be_drawn_is_named() -> None:
    with pytest.raises(SettingError, match="rnn: 2 lags but lag 5"):
        gradients({"rnn": [1.0, 0.5]}, [0, 5])
    with pytest.raises(SettingError, match="expected a positive number"):
        gradients({"rnn": [0.0, 0.5]}, [0, 1])
    with pytest.raises(SettingError, match="at least one"):
        gradients({}, [0])
