"""Pictures of words in space: what is drawn is where the vectors are, and which way the arrows go."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from foreword.errors import InputError, SettingError
from foreword.picture.picture import Picture, readable
from foreword.picture.space import cbow_against_skip_gram, parallelogram, word_map
from foreword.vectors.word2vec import Word2Vec
from foreword.vectors.wordvectors import WordVectors

SVG = "{http://www.w3.org/2000/svg}"


def parsed(picture: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(picture.markup)


def texts(picture: Picture) -> list[str]:
    return ["".join(element.itertext()) for element in parsed(picture).iter(f"{SVG}text")]


def share(length: str) -> float:
    return float(length.rstrip("%"))


def royal() -> WordVectors:
    corners = {"man": [0, 0, 5], "woman": [0, 1, 5], "king": [1, 0, 5], "queen": [1, 1, 5], "<b>": [-3, -3, 1]}
    return WordVectors.of_words(corners, np.array(list(corners.values()), np.float32))


def test_an_analogy_is_drawn_where_its_words_are() -> None:
    """Row F02: across the step from man to king, which is that from woman to queen; down the one from man to woman."""
    picture = parallelogram(royal(), "man", "king", "woman", "queen")
    assert texts(picture) == ["man", "king", "woman", "queen"]
    dots = [(share(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in parsed(picture).iter(f"{SVG}circle")]
    (man, king, woman, queen) = dots
    assert king[0] - man[0] == pytest.approx(queen[0] - woman[0], abs=1)
    assert king[0] > man[0] + 10
    assert woman[1] - man[1] == pytest.approx(queen[1] - king[1], abs=8)
    assert woman[1] > man[1] + 50
    arrows = [line for line in parsed(picture).iter(f"{SVG}line") if "marker-end" in line.attrib]
    assert [(share(arrow.attrib["x1"]), share(arrow.attrib["x2"])) for arrow in arrows] == [
        (man[0], king[0]), (woman[0], queen[0]),
    ]  # fmt: skip
    a, b, c, d = royal().directions(royal().places(["man", "king", "woman", "queen"]))
    cosine = float((b - a) @ (d - c) / (np.linalg.norm(b - a) * np.linalg.norm(d - c)))
    assert readable(cosine) in picture.caption
    assert picture == parallelogram(royal(), "man", "king", "woman", "queen")
    with pytest.raises(InputError, match="no vector for 'prince'"):
        parallelogram(royal(), "man", "king", "woman", "prince")


def test_a_map_keeps_groups_apart_and_names_off_one_another() -> None:
    rng = np.random.default_rng(0)
    groups = {name: [f"{name}{number}" for number in range(7)] for name in ("day", "city")}
    rows = np.concatenate([rng.normal(size=(7, 6)) * 0.1 + 3 * np.eye(6)[place] for place in range(2)])
    vectors = WordVectors.of_words([word for group in groups.values() for word in group], rows.astype(np.float32))
    picture = word_map(vectors, groups)
    assert sorted(texts(picture)) == sorted(word for group in groups.values() for word in group)
    dots = list(parsed(picture).iter(f"{SVG}circle"))
    days, cities = ([share(dot.attrib["cx"]) for dot in part] for part in (dots[:7], dots[7:]))
    assert max(days) < min(cities)
    assert ["accent" in dot.attrib["fill"] for dot in dots] == [True] * 7 + [False] * 7
    names = [
        (share(text.attrib["x"]), float(text.attrib["y"]), text.attrib["text-anchor"])
        for text in parsed(picture).iter(f"{SVG}text")
    ]
    assert len(set(names)) == len(names)
    with pytest.raises(SettingError, match="three words"):
        word_map(vectors, {"one": ["day0"]})


def test_what_words_hold_is_escaped() -> None:
    assert "<b>" in texts(word_map(royal(), {"<i>": ["man", "<b>", "king"]}))


def test_cbow_and_skip_gram_have_their_arrows_reversed() -> None:
    """Row F03: drawn from the models: their windows, their dimensions, and which way each of them goes."""
    cbow, skip_gram = Word2Vec(50, model="cbow", window=2), Word2Vec(60, window=2)
    sentence = ["the", "cat", "sat", "on", "the", "mat"]
    picture = cbow_against_skip_gram(cbow, skip_gram, sentence, 2)
    boxes = {id(box): box for box in parsed(picture).iter(f"{SVG}rect")}
    assert len(boxes) == 2 * 5
    assert texts(picture).count("sat") == 2
    assert "mat" not in texts(picture)  # three words away
    assert "mean, d = 50" in texts(picture)
    assert "its vector, d = 60" in texts(picture)
    lines = [tuple(share(line.attrib[end]) for end in ("x1", "x2")) for line in parsed(picture).iter(f"{SVG}line")]
    left, right = [line for line in lines if line[1] < 50], [line for line in lines if line[0] > 50]
    (middle,) = {line[1] for line in left[:4]}
    assert [line for line in left if line[0] == middle] == left[4:]  # four arrows in, one out
    (middle,) = {line[0] for line in right[1:]}
    assert [line for line in right if line[1] == middle] == right[:1]  # one in, four out
    assert cbow_against_skip_gram(cbow, skip_gram, sentence, 0) != picture
    with pytest.raises(SettingError, match="expected a CBOW and a skip-gram"):
        cbow_against_skip_gram(skip_gram, cbow, sentence, 2)
    with pytest.raises(SettingError, match="centre=6"):
        cbow_against_skip_gram(cbow, skip_gram, sentence, 6)
