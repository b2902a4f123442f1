from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.errors import InputError
from foreword.evaluate.compare.facts import written_without_spaces
from foreword.evaluate.compare.setup import cut, split

CHINESE = "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。"
JAPANESE = "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
THAI = "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ"
FINNISH = "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille on annettu järki"
KOREAN = "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다."
ARABIC = "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق، وقد وهبوا عقلاً وضميرًا"


def test_of_twenty_documents_the_tenth_tunes_and_the_last_tests() -> None:
    parts = split([f"document {place}" for place in range(45)])
    assert parts.valid == ["document 9", "document 29"]
    assert parts.test == ["document 19", "document 39"]
    assert len(parts.train) == 41


def test_blank_documents_are_left_out() -> None:
    parts = split(["", "  \n"] + [str(place) for place in range(20)])
    assert (parts.valid, parts.test) == (["9"], ["19"])
    assert parts.train == [str(place) for place in range(20) if place not in (9, 19)]


def test_a_single_document_is_cut_within() -> None:
    words = [f"w{place}" for place in range(100)]
    parts = split([" ".join(words)])
    assert parts.valid == [" ".join(words[45:50])]
    assert parts.test == [" ".join(words[95:])]
    assert parts.train == [" ".join(words[:45]), " ".join(words[50:95])]


@given(st.integers(3, 200))
def test_cutting_loses_no_word_and_leaves_no_part_empty(count: int) -> None:
    words = [f"w{place}" for place in range(count)]
    parts = cut(" ".join(words))
    told = [word for part in (parts.train, parts.valid, parts.test) for text in part for word in text.split()]
    assert sorted(told) == sorted(words)
    assert all(text for part in (parts.train, parts.valid, parts.test) for text in part)
    assert parts.train
    assert parts.valid
    assert parts.test


def test_what_stands_between_words_is_kept() -> None:
    assert cut("a  b\nc\td").train == ["a", "c"] or "c" in cut("a  b\nc\td").train[-1]
    assert "c\td" in split(["a b c\td e f g h i j k l m n o"]).train[0]


def test_a_text_without_spaces_is_cut_between_characters() -> None:
    parts = split([CHINESE])
    assert "".join([parts.train[0], *parts.valid, parts.train[1], *parts.test]) == CHINESE
    assert len(parts.test[0]) == len(CHINESE) // 20


@pytest.mark.parametrize("texts", [[], ["", " "], ["one"], ["one two"], ["one", "two"]])
def test_two_words_are_too_few(texts: list[str]) -> None:
    with pytest.raises(InputError, match="too short"):
        split(texts)


@pytest.mark.parametrize("text", [CHINESE, JAPANESE, THAI, "ACGTTGCAACGTACGGTACC" * 3])
def test_texts_without_spaces_are_told(text: str) -> None:
    assert written_without_spaces([text])


@pytest.mark.parametrize("text", [FINNISH, KOREAN, ARABIC, "the cat sat on the mat", "我 们 a b c d e f g h", ""])
def test_texts_with_spaces_are_told(text: str) -> None:
    assert not written_without_spaces([text])
