"""Texts are sampled evenly within bounded memory, and split by a fixed rule."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.errors import InputError, SettingError
from foreword.evaluate.compare.facts import digest_of, written_without_spaces
from foreword.evaluate.compare.ladder import compare
from foreword.evaluate.compare.results import Comparison, Sampled
from foreword.evaluate.compare.setup import (
    Splits,
    Streams,
    add_sampled,
    cut,
    prepare,
    read_text,
    sample_evenly,
    shortened,
    split,
)
from foreword.evaluate.compare.vocabulary import is_tokenised
from foreword.picture.report_tables import shortened_in_words
from foreword.text.datasets import find
from foreword.text.embedded import embedded_text
from foreword.text.sources import read_documents


def test_a_text_that_fits_is_taken_whole() -> None:
    texts = ["one two", "three", "größer"]
    kept, told = sample_evenly(texts, 1000)
    assert kept == texts
    assert told == Sampled(3, 8 + 6 + 9, 3, 23)


def test_every_second_then_every_fourth_is_taken() -> None:
    kept, told = sample_evenly((f"{place:09d}" for place in range(1000)), 3000)
    places = [int(text) for text in kept]
    assert places == list(range(0, 1000, 4))
    assert told == Sampled(1000, 10_000, 250, 2500)


def test_never_more_than_the_limit_is_held() -> None:
    alive = 0
    most = 0

    class Counted(str):
        __slots__ = ()

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def stream() -> Iterator[str]:
        nonlocal alive, most
        for place in range(5000):
            alive += 1
            most = max(most, alive)
            yield Counted(f"{place:09d}")

    kept, _ = sample_evenly(stream(), 1000)
    assert len(kept) <= 100
    assert most <= 100 + 3


def test_a_document_too_long_by_itself_is_cut_at_a_space() -> None:
    kept, told = sample_evenly(["word " * 100], 52)
    assert kept == ["word " * 9 + "word"]
    assert (told.documents, told.bytes, told.kept_bytes) == (1, 501, 50)
    assert shortened("没有空格的文字", 10) == "没有空"
    assert sample_evenly(["a b", "word " * 100, "c d"], 52)[0] == ["a b", "c d"]


def test_parts_are_told_together() -> None:
    assert add_sampled([Sampled(2, 20, 1, 10), Sampled(3, 30, 3, 30)]) == Sampled(5, 50, 4, 40)


def test_a_large_text_is_compared_on_a_part_of_it_and_says_so() -> None:
    documents = (f"document {place} says a word or two about number {place % 7}" for place in range(4000))
    events = list(compare(documents, models=["unigram", "bigram"], most_bytes=50_000, wordlists=False))
    [told] = [event for event in events if isinstance(event, Sampled)]
    last = events[-1]
    assert isinstance(last, Comparison)
    assert last.sampled == told
    assert told.documents == 4000
    assert told.kept_bytes <= 50_000 < told.bytes
    assert last.text.documents == told.kept_documents
    assert last.to_json()["sampled"] == {
        "documents": told.documents,
        "bytes": told.bytes,
        "kept_documents": told.kept_documents,
        "kept_bytes": told.kept_bytes,
    }


def test_a_text_that_came_split_stays_split() -> None:
    parts = [[f"{part} text {place}" for place in range(300)] for part in ("train", "valid", "test")]
    for texts in (Splits(*parts), Streams(*map(iter, parts))):
        *_, last = compare(texts, models=["unigram"], most_bytes=2000, wordlists=False)
        assert isinstance(last, Comparison)
        assert "".join(last.text.passage.pieces).startswith("test text")
        assert last.sampled is not None
        assert last.sampled.kept_bytes <= 2000 * 1.2


def test_a_test_part_that_takes_networks_too_long_is_shortened() -> None:
    parts = [[f"word{place % 900} and word{place % 7}" for place in range(count)] for count in (2000, 500, 4000)]
    *_, last = compare(Splits(*parts), models=["unigram", "rnn"], time_budget=0.5, wordlists=False)
    assert isinstance(last, Comparison)
    whole = 4000 * 4
    assert 0 < last.text.test_tokens <= 0.02 * 0.5 * 80e6 / last.text.vocabulary < whole
    *_, counted = compare(Splits(*parts), models=["unigram"], time_budget=0.5, wordlists=False)
    assert isinstance(counted, Comparison)
    assert counted.text.test_tokens == whole


def test_a_limit_must_be_positive() -> None:
    with pytest.raises(SettingError, match="most_bytes=0"):
        compare(["a b c"], most_bytes=0)


def test_a_test_part_that_networks_have_no_time_for_is_shortened_and_told() -> None:
    texts = Splits(["a b c d e"] * 50, ["a b"] * 40, ["c d e"] * 40)
    whole = prepare("text", read_text(texts, 1 << 20), None, None, None, None)
    short = prepare("text", read_text(texts, 1 << 20), None, None, None, 40.0 * len(whole.tokenizer.vocab))
    assert whole.facts.test_share == 1.0
    assert short.facts.test_share == pytest.approx(len(short.test) / 40)
    assert 0 < len(short.test) < 40
    assert f"{short.facts.test_share:.0%}" in shortened_in_words(short.facts)


NOVEL = [
    f"“The {animal},” said Mr. {name}, “was {verb} by the {thing}; and who, pray, would not be?”"
    for animal in ("horse", "hound")
    for name in ("Pip", "Darcy", "Ahab")
    for verb in ("led", "fed", "bred")
    for thing in ("boy", "cook", "squire")
]
TREEBANK = ["mr. smith , who is from the u.s. , said he did n't know", "the <unk> fell N % on monday"] * 20


def test_running_text_is_split_into_words_and_punctuation_marks() -> None:
    splits = split(NOVEL * 2)
    text = prepare("novel", read_text(NOVEL * 2, 1 << 20), None, None, None, None)
    assert text.facts.tokens == "words and punctuation marks"
    assert {"horse", ",", "“", "Darcy"} <= set(text.tokenizer.vocab.tokens)
    assert "".join(text.facts.passage.pieces[:-1]) in splits.test


@pytest.mark.parametrize("texts", [TREEBANK, [line.replace("<unk>", "index") for line in TREEBANK]])
def test_tokens_of_a_text_that_is_split_already_are_kept(texts: list[str]) -> None:
    assert is_tokenised(texts)
    text = prepare("treebank", read_text(texts, 1 << 20), None, None, None, None)
    assert text.facts.tokens == "words between spaces"
    assert {"n't", "u.s.", "mr."} <= set(text.tokenizer.vocab.tokens)


@pytest.mark.parametrize("texts", [NOVEL, ["The cat sat on the mat."] * 9, ["Chi, dunque, vien qua: è lui; sì!"]])
def test_text_with_punctuation_at_its_words_is_not_split_yet(texts: list[str]) -> None:
    assert not is_tokenised(texts)


def test_words_give_way_to_byte_pairs_where_many_would_be_unknown() -> None:
    rare = [f"{line} And it is, sir, x{place}y{place * 7}, or z{place}w!" for place, line in enumerate(NOVEL * 4)]
    text = prepare("novel", read_text(rare, 1 << 20), None, None, None, None)
    assert text.facts.tokens == "byte-pair tokens"
    assert text.facts.test_unknown == 0
    words = prepare("novel", read_text(rare, 1 << 20), None, 2, None, None)
    assert words.facts.tokens == "words and punctuation marks"
    assert words.facts.unknown_share > 0.03
    assert words.facts.test_unknown == np.count_nonzero(words.test.ids == words.tokenizer.vocab.unknown)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("ptb", "words between spaces"),
        ("wikitext-2", "words between spaces"),
        ("tinyshakespeare", "byte-pair tokens"),
        ("embedded", "words and punctuation marks"),
    ],
)
def test_at_most_three_percent_of_real_text_is_unknown(name: str, tokens: str) -> None:
    if name == "embedded":
        parts = [embedded_text(part) for part in ("train", "valid", "test")]
        text = read_text(Splits(*parts), 20_000_000)
    else:
        text = read_text(list(islice(read_documents(str(find(name))), 20_000)), 20_000_000)
    found = prepare(name, text, None, None, None, None).facts
    assert found.tokens == tokens
    if tokens != "words between spaces":
        assert found.unknown_share < 0.03


def test_a_digest_recognises_a_text() -> None:
    assert digest_of(["a", "b"]) == hashlib.sha256(b"a\nb\n").hexdigest()
    assert digest_of(["ab"]) != digest_of(["a", "b"])


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
    assert cut("a  b\nc\td e f").train == ["a  b", "d e"]
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
