from __future__ import annotations

import math
import re
import string
import time
from hashlib import sha256
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.errors import SettingError
from foreword.lessons.cloud import INKS, LEAST_SIZE, PAPERS, Placed, extent, lay_out, word_cloud
from foreword.lessons.kernels_cloud import place_boxes, plain_place_boxes
from foreword.picture.picture import Picture

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '<script>alert("1")</script> & \' "'


def zipf(count: int, seed: int = 0) -> dict[str, float]:
    """Words of all lengths whose weights fall as those of a text do."""
    random = np.random.default_rng(seed)
    letters = list(string.ascii_lowercase)
    return {
        f"{''.join(random.choice(letters, random.integers(1, 12)))}{place}": 10_000 / (place + 1)
        for place in range(count)
    }


def overlap(one: Placed, other: Placed) -> bool:
    """Two boxes that share more than an edge, rounding aside."""
    across = min(one.left + one.width, other.left + other.width) - max(one.left, other.left)
    down = min(one.top + one.height, other.top + other.height) - max(one.top, other.top)
    return across > 1e-6 and down > 1e-6


def texts(picture: Picture) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(picture.markup).iter(f"{SVG}text"))


def word_of(element: ElementTree.Element) -> str:
    return "".join(element.itertext())[len(element.findtext(f"{SVG}title") or "") :]


words = st.text(st.characters(categories=["L", "N", "P", "S", "M"]), min_size=1, max_size=20).filter(str.strip)
weights_of = st.dictionaries(words, st.floats(1e-3, 1e6) | st.integers(1, 100), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(
    weights=weights_of,
    seed=st.integers(0, 2**32),
    upright=st.sampled_from([0.0, 0.3, 1.0]),
    frame=st.sampled_from([(960, 600), (300, 900), (2000, 100)]),
)
def test_t10_every_word_is_placed_none_on_another_and_size_rises_with_weight(
    weights: dict[str, float], seed: int, upright: float, frame: tuple[int, int]
) -> None:
    """T10, F01: whatever the words, the weights, the frame and the seed."""
    placed, (width, height) = lay_out(weights, seed=seed, upright=upright, width=frame[0], height=frame[1])
    assert {each.word for each in placed} == set(weights)
    assert not any(overlap(*pair) for pair in combinations(placed, 2))
    for each in placed:
        assert each.left >= 0
        assert each.top >= 0
        assert each.left + each.width <= width + 1e-6
        assert each.top + each.height <= height + 1e-6
        assert each.size >= LEAST_SIZE - 1e-6
    by_weight = sorted(placed, key=lambda each: each.weight)
    assert [each.size for each in by_weight] == sorted(each.size for each in placed)
    assert width / height == pytest.approx(frame[0] / frame[1])


def test_t10_what_is_drawn_lies_in_its_box_to_a_tenth_of_a_pixel() -> None:
    """T10: the numbers in the file, not those of the layout: no two words touch."""
    weights = zipf(120)
    placed, _ = lay_out(weights, upright=0.3, seed=2)
    drawn = texts(word_cloud(weights, upright=0.3, seed=2))
    assert [word_of(element) for element in drawn] == [each.word for each in placed]
    for element, each in zip(drawn, placed, strict=True):
        room, size = extent(each.word), float(element.attrib["font-size"])
        length = float(element.attrib["textLength"])
        assert size == pytest.approx(each.size, abs=0.06)
        assert length == pytest.approx(room.width * each.size, abs=0.06)
        if each.upright:
            x, y = map(float, re.findall(r"-?[\d.]+", element.attrib["transform"])[:2])
            edges = (x - room.above * size, y - length / 2, x + room.below * size, y + length / 2)
        else:
            x, y = float(element.attrib["x"]), float(element.attrib["y"])
            edges = (x - length / 2, y - room.above * size, x + length / 2, y + room.below * size)
        assert edges[0] >= each.left - 0.15
        assert edges[1] >= each.top - 0.15
        assert edges[2] <= each.left + each.width + 0.15
        assert edges[3] <= each.top + each.height + 0.15


def test_t10_the_same_seed_gives_the_same_bytes_on_any_machine() -> None:
    """T10: the digest was taken once; nothing in the picture depends on the fonts or the processor."""
    words = ["the", "cat", "sat", "on", "a", "mat,", "said", "Ångström", "猫"]
    weights = {word: 100.0 / place for place, word in enumerate(words, 1)}
    markup = word_cloud(weights, seed=3, upright=0.2).markup
    assert sha256(markup.encode()).hexdigest() == DIGEST
    assert word_cloud(dict(reversed(weights.items())), seed=3, upright=0.2).markup == markup
    assert word_cloud(weights, seed=4, upright=0.2).markup != markup


DIGEST = "1d8a81bc5792cb87517f6ff727bb76ac6ee346593f331b0d02c2d4a406d3665b"


@pytest.mark.parametrize("seed", range(8))
def test_the_fast_search_finds_the_places_that_the_plain_one_does(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, columns = int(random.integers(12, 40)), int(random.integers(12, 60))
    count = int(random.integers(1, 120))
    widths, heights = random.integers(1, 9, count), random.integers(1, 6, count)
    if seed % 2:
        widths, heights = -np.sort(-widths), -np.sort(-heights)
    cells = random.permutation(rows * columns).astype(np.int32)
    plain = plain_place_boxes(widths, heights, cells, rows, columns)
    least = np.minimum.accumulate(np.stack((widths, heights))[:, ::-1], axis=1)[:, ::-1].T.copy()
    lefts, tops = np.full(count, -1), np.full(count, -1)
    found = place_boxes(
        widths, heights, least, cells, np.empty(len(cells) + 1, np.int32),
        np.zeros((heights.max() + 1, widths.max() + 1), np.int32), np.zeros((rows, columns), np.uint8), lefts, tops,
    )  # fmt: skip
    assert list(zip(lefts[:found].tolist(), tops[:found].tolist(), strict=True)) == plain
    assert (lefts[found:] == -1).all()


def test_the_picture_grows_where_letters_would_be_too_small_to_read() -> None:
    placed, (width, height) = lay_out(zipf(3000), width=300, height=200)
    assert len(placed) == 3000
    assert width > 900
    assert width / height == pytest.approx(1.5)
    assert min(each.size for each in placed) == pytest.approx(LEAST_SIZE)


def test_few_words_do_not_fill_the_frame_with_one_letter() -> None:
    placed, size = lay_out({"a": 3})
    only = placed[0]
    assert size == pytest.approx((960, 600))
    assert only.size == pytest.approx(180)
    assert only.left + only.width / 2 == pytest.approx(480)
    assert word_cloud({"a": 3}).caption == "The only word is “a”."


def test_five_hundred_words_take_well_under_a_second() -> None:
    weights = zipf(500)
    word_cloud(weights)  # compiles
    began = time.process_time()
    word_cloud(weights, seed=1)
    assert time.process_time() - began < 0.5


def test_the_heaviest_are_drawn_and_of_equals_the_first_in_the_alphabet() -> None:
    placed, _ = lay_out({"b": 1, "a": 1, "c": 2, "d": 0.5}, max_words=3)
    assert [each.word for each in placed] == ["c", "a", "b"]


def test_words_stand_on_end_only_if_asked_and_never_the_heaviest() -> None:
    weights = zipf(100)
    assert not any(each.upright for each in lay_out(weights)[0])
    placed, _ = lay_out(weights, upright=1)
    assert not placed[0].upright
    assert sum(each.upright for each in placed) > 80
    assert all((each.height > each.width) == each.upright for each in placed if len(each.word) > 3)


def test_the_pointer_is_told_the_count_or_else_the_weight() -> None:
    weights = {"cat": 12.5, "dog": 3.0}
    told = [element.findtext(f"{SVG}title") for element in texts(word_cloud(weights, counts={"cat": 1234, "dog": 7}))]
    assert told == ["cat: 1,234", "dog: 7"]
    assert [element.findtext(f"{SVG}title") for element in texts(word_cloud(weights))] == ["cat: 12.5", "dog: 3"]


def test_those_who_listen_hear_the_words() -> None:
    root = ElementTree.fromstring(word_cloud({"cat": 2, "dog": 1}).markup)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == root.findtext(f"{SVG}title") == "Word cloud of 2 words"
    assert root.findtext(f"{SVG}desc") == "cat dog"


@pytest.mark.parametrize("word", [NASTY, "new york", "a\x00b\ufffe", "\ud800x", "سلام", "👩‍👩‍👧", "é", "x" * 5000])
def test_any_string_makes_a_picture_that_can_be_read(word: str) -> None:
    picture = word_cloud({word: 3, "other": 2})
    picture.markup.encode()
    shown = re.sub("[\x00\ufffe\ud800]", "\ufffd", word)
    assert [word_of(element) for element in texts(picture)] == [shown, "other"]
    assert "script" not in {element.tag for element in ElementTree.fromstring(picture.markup).iter()}
    assert "url(" not in picture.markup
    assert not re.search(r"(?:href|src)\s*=", picture.markup)


def luminance(colour: str) -> float:
    """Relative luminance, as the Web Content Accessibility Guidelines define it."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("side", [0, 1], ids=["light", "dark"])
def test_f01_every_ink_can_be_read_on_its_paper(side: int) -> None:
    """F01: a contrast of 4.5 : 1, by day and by night, and the two change together."""
    for ink in INKS:
        lighter, darker = sorted((luminance(ink[side]), luminance(PAPERS[side])), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5
    markup = word_cloud({"a": 1}).markup
    day, night = markup.split("prefers-color-scheme:dark")
    shown = (day, night)[side]
    assert PAPERS[side] in shown
    assert all(ink[side] in shown for ink in INKS)


@pytest.mark.parametrize("weight", [0, -1.0, math.nan, math.inf])
def test_weights_are_positive_numbers(weight: float) -> None:
    with pytest.raises(SettingError, match="weight of 'cat'"):
        word_cloud({"dog": 1, "cat": weight})


@pytest.mark.parametrize("weights", [{}, {"": 1.0}, {" \n": 1.0}])
def test_there_must_be_something_to_draw(weights: dict[str, float]) -> None:
    with pytest.raises(SettingError, match="a word cloud"):
        word_cloud(weights)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("width", 99), ("height", 20_001), ("max_words", 0), ("seed", -1), ("upright", 1.5), ("upright", math.nan)],
)
def test_settings_out_of_range_are_named(setting: str, value: float) -> None:
    with pytest.raises(SettingError, match=f"{setting} is"):
        word_cloud({"a": 1}, **{setting: value})  # type: ignore[arg-type]


def test_the_room_for_letters() -> None:
    assert extent("猫猫").width == 2
    assert extent("é").width == extent("e").width
    assert extent("é").above > extent("e").above
    assert extent("p").below > extent("o").below
    assert extent("l").above > extent("o").above
    assert extent("W").width > extent("i").width
    assert extent("e\u0301\u0323").width == extent("e").width
    assert extent("\u0301").width > 0
    assert extent("Д").width > extent("д").width
