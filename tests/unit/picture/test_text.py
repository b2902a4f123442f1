from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from foreword.errors import SettingError
from foreword.picture.bars import ladder
from foreword.picture.picture import Picture, percent, readable
from foreword.picture.text import BOTTOM, DARKEST_OPACITY, TOP, surprisal, zipf

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '<script>alert("1")</script> & \' "'


def parsed(picture: Picture) -> ElementTree.Element:
    """Well-formed, or an error: everything was escaped and every tag closed."""
    return ElementTree.fromstring(picture.markup)


def texts(picture: Picture) -> list[str]:
    return ["".join(element.itertext()) for element in parsed(picture).iter(f"{SVG}text")]


def widths(picture: Picture) -> list[float]:
    """Of the bars, leaving out the track under each."""
    rects = list(parsed(picture).iter(f"{SVG}rect"))[1::2]
    return [float(rect.attrib["width"].rstrip("%")) for rect in rects]


def test_ladder_bars_are_as_long_as_their_numbers() -> None:
    picture = ladder(["unigram", "trigram", "lstm"], [800.0, 200.0, 100.0], 10_000)
    assert widths(picture) == [100, 25, 12.5]
    assert texts(picture) == ["unigram", "800", "trigram", "200", "lstm", "100"]
    assert "lstm" in picture.caption
    assert "100" in picture.caption


def test_ladder_colours_the_best_only() -> None:
    bars = list(parsed(ladder(["a", "b"], [3.0, 2.0], 10)).iter(f"{SVG}rect"))[1::2]
    assert ["accent" in bar.attrib["fill"] for bar in bars] == [False, True]


def test_a_model_alone_is_measured_against_blind_choice() -> None:
    assert widths(ladder(["unigram"], [500.0], 10_000)) == [5]
    assert widths(ladder(["worse than blind"], [20.0], 10)) == [100]


def test_ladder_of_infinite_perplexities() -> None:
    picture = ladder(["mle", "laplace"], [math.inf, 50.0], 100)
    assert widths(picture) == [100, 100]
    assert texts(picture)[1] == "∞"
    assert "laplace" in picture.caption
    assert "none has a finite perplexity" in ladder(["mle"], [math.inf], 100).caption
    parsed(ladder([], [], 1))


def shades(picture: Picture) -> list[float]:
    return [float(found) for found in re.findall(r'title="[^"]*" style="[^"]*/([\d.]+)\)', picture.markup)]


def test_surprisal_shades_rise_with_the_bits_and_stop_where_letters_would_drown() -> None:
    picture = surprisal(["a", " b", " c", " d"], {"one": [0, 4, 8, 1000], "two": [math.inf, 0, 0, 0]})
    one, two = shades(picture)[:4], shades(picture)[4:]
    assert one == [0, DARKEST_OPACITY / 4, DARKEST_OPACITY / 2, DARKEST_OPACITY]
    assert two == [DARKEST_OPACITY, 0, 0, 0]
    assert "two held “a” to be impossible" in picture.caption


def test_surprisal_spells_the_passage_once_a_model() -> None:
    passages = parsed(surprisal(["To", " be", ",", " 数"], {"one": [1, 2, 3, 4], "two": [4, 3, 2, 1]})).iter("p")
    assert ["".join(p.itertext()) for p in passages if p.attrib["class"] == "passage"] == ["To be, 数"] * 2


def test_tokens_that_spell_one_character_add_up() -> None:
    picture = surprisal(["", "é", "a"], {"bytes": [3.0, 5.0, 1.0]})
    assert shades(picture) == [DARKEST_OPACITY / 2, 0.04]  # 0.72 · 1/16, to two places
    assert "“é”, by 8.00 bits" in picture.caption


def test_unknown_words_are_marked_and_explained() -> None:
    marked = surprisal(["a", " zebra"], {"one": [1, 2]}, unknown=[1])
    assert re.findall('title="([^"]*)"', marked.markup) == ["1.00 bits", "2.00 bits, as &lt;unk&gt;"]
    assert "dotted" in marked.markup
    assert "dotted" not in surprisal(["a"], {"one": [1]}).markup


def test_surprisal_needs_a_number_for_each_token() -> None:
    with pytest.raises(SettingError, match="2 tokens but 1"):
        surprisal(["a", "b"], {"one": [1]})


def test_zipf_points_lie_where_logarithms_put_them() -> None:
    circles = list(parsed(zipf([1, 10, 100], [1000, 100, 1], once=1)).iter(f"{SVG}circle"))
    assert [circle.attrib["cx"] for circle in circles] == ["0%", "50%", "100%"]
    heights = [float(circle.attrib["cy"]) for circle in circles]
    assert heights == pytest.approx([TOP, TOP + (BOTTOM - TOP) / 3, BOTTOM])


def test_zipf_s_line_goes_through_a_text_that_keeps_the_law() -> None:
    picture = zipf([1, 10, 100], [100, 10, 1], once=1)
    line = next(line for line in parsed(picture).iter(f"{SVG}line") if "stroke-dasharray" in line.attrib)
    assert (line.attrib["x1"], line.attrib["x2"]) == ("0", "100%")
    assert (float(line.attrib["y1"]), float(line.attrib["y2"])) == (TOP, BOTTOM)


def test_zipf_s_line_stops_at_the_right_edge() -> None:
    picture = zipf([1, 10], [1000, 900], once=0)
    line = next(line for line in parsed(picture).iter(f"{SVG}line") if "stroke-dasharray" in line.attrib)
    assert line.attrib["x2"] == "100%"
    assert float(line.attrib["y2"]) == pytest.approx(TOP + (BOTTOM - TOP) / 3)


def test_zipf_names_words_that_occur_more_than_once() -> None:
    picture = zipf([1, 10, 20], [100, 10, 1], once=7, words=[(1, "the"), (10, "x" * 40), (20, "hapax"), (30, "beyond")])
    assert "the" in texts(picture)
    assert "x" * 15 + "…" in texts(picture)
    assert "hapax" not in texts(picture)
    assert "35% of the text’s 20 different words" in picture.caption


@pytest.mark.parametrize(("ranks", "counts"), [([1], [1]), ([1, 2], [1, 1]), ([1], [10**12]), ([1, 10**9], [2, 1])])
def test_zipf_of_strange_texts(ranks: list[int], counts: list[int]) -> None:
    for circle in parsed(zipf(ranks, counts, once=1)).iter(f"{SVG}circle"):
        assert 0 <= float(circle.attrib["cx"].rstrip("%")) <= 100
        assert TOP <= float(circle.attrib["cy"]) <= BOTTOM


@pytest.mark.parametrize(("ranks", "counts"), [([], []), ([2], [1]), ([1, 2], [1]), ([1], [0])])
def test_zipf_needs_counts_and_ranks(ranks: list[int], counts: list[int]) -> None:
    with pytest.raises(SettingError, match="zipf needs"):
        zipf(ranks, counts, once=0)


@pytest.mark.parametrize(
    "picture",
    [
        ladder([NASTY], [3.0], 10),
        surprisal([NASTY], {NASTY: [1.0]}),
        zipf([1], [5], once=0, words=[(1, NASTY[:16])]),
    ],
    ids=["ladder", "surprisal", "zipf"],
)
def test_every_text_is_escaped_and_nothing_is_fetched(picture: Picture) -> None:
    assert "script" not in {element.tag.removeprefix(SVG) for element in parsed(picture).iter()}
    assert "url(" not in picture.markup
    assert not re.search(r"(?:href|src)\s*=", picture.markup)
    assert "\n" not in picture.caption
    assert picture.caption.endswith(".")
    assert picture.title


def test_the_same_numbers_give_the_same_bytes() -> None:
    assert ladder(["a"], [1 / 3], 7) == ladder(["a"], [1 / 3], 7)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (12345.6, "12,346"),
        (123.4, "123"),
        (45.67, "45.7"),
        (6.543, "6.54"),
        (0.01234, "0.0123"),
        (0, "0.00"),
        (math.inf, "∞"),
    ],
)
def test_numbers_are_written_for_people(number: float, text: str) -> None:
    assert readable(number) == text


def test_percent() -> None:
    assert [percent(share) for share in (0, 0.5, 1, 1 / 3)] == ["0%", "50%", "100%", "33.33%"]
