"""Where a text is cut, held to the engines that run the regular expressions: Oniguruma, inside Hugging Face's
``tokenizers``, and the ``regex`` package, which is what ``tiktoken``'s patterns were written in.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foreword.text.block import Block
from foreword.tokens.pieces import (
    CL100K,
    GPT2,
    LETTER,
    MARK,
    NUMBER,
    O200K,
    PUNCTUATION,
    QWEN2,
    SPACE,
    SPACE_BEFORE,
    WHOLE,
    WORDS,
    character_classes,
)
from foreword.tokens.strings import StringTable
from foreword.tokens.tokenizer_json import CHARACTERS_REGEX, REGEXES

peer = pytest.importorskip("tokenizers")

PATTERNS = {"gpt2": GPT2, "cl100k": CL100K, "o200k": O200K, "qwen2": QWEN2}
SURROGATES = range(0xD800, 0xE000)
EVERYTHING = "".join(chr(point) for point in range(0x110000) if point not in SURROGATES)

# The characters that some branch of some pattern asks for, and one of each kind beside them.
NOTABLE = "'sStTmMdDlLvVrReEſabñ漢ǅ019٣½Ⅷ \t\r\n\x0b\x0c\x1c\x1f\x85\u00a0\u2028\u3000.,-_=é\u0301\u200d😀\x00\ufffd"
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
notable_text = st.text(st.sampled_from(NOTABLE), max_size=40)
texts = st.one_of(notable_text, any_text)


def pieces(text: str, pattern: int) -> list[str]:
    """What our scanner cuts a text into."""
    table = StringTable()
    block = Block.from_texts([text], open=True)
    numbers = table.count(block, pattern, out=np.empty(len(block.data) + 1, np.int32))
    offsets, arena = table.offsets.tolist(), table.arena.tobytes()
    return [arena[offsets[number] : offsets[number + 1]].decode() for number in numbers.tolist()]


@cache
def splitter(regex: str) -> Any:
    return peer.pre_tokenizers.Split(peer.Regex(regex), "isolated")


def peer_pieces(text: str, regex: str) -> list[str]:
    return [text[start:stop] for _, (start, stop) in splitter(regex).pre_tokenize_str(text)]


@pytest.mark.parametrize(("regex", "wanted"), [(r"\p{L}", LETTER), (r"\p{N}", NUMBER), (r"\s", SPACE)])
def test_every_code_point_is_in_the_engine_s_class(regex: str, wanted: int) -> None:
    runs = peer.pre_tokenizers.Split(peer.Regex(f"{regex}+"), "removed").pre_tokenize_str(EVERYTHING)
    theirs = np.ones(0x110000, np.bool_)
    theirs[SURROGATES.start : SURROGATES.stop] = False
    for _, (start, stop) in runs:
        others = np.array([ord(EVERYTHING[start]), ord(EVERYTHING[stop - 1])])
        theirs[others[0] : others[1] + 1] = False
    assert np.flatnonzero(theirs != (character_classes() == wanted)).tolist() == []


@pytest.mark.parametrize("name", PATTERNS)
def test_every_code_point_is_cut_alike_wherever_it_stands(name: str) -> None:
    """After a letter, a digit and a blank, and before them; all points up to the Chinese characters, then a sample."""
    points = [*range(0x3100), *range(0x3100, 0x110000, 37)]
    text = "".join(f"a{c}1{c} {c}a" for c in map(chr, points) if not "\ud800" <= c <= "\udfff")
    assert pieces(text, PATTERNS[name]) == peer_pieces(text, REGEXES[name])  # type: ignore[index]


@settings(max_examples=600, deadline=None)
@given(text=texts)
@example(text="'ſ 'S't'LL'lL'vE'RE'M'd''s")
@example(text=" \n \r\n\n x\n")
@example(text="...\n\n\r x..\n")
@example(text="HTTPServer XMLHttp ʰA\u0301BC \u0301ABC \u0301Ab 漢A字b ǅaǅ A'S a'LL x//\n _Ab")
@example(text=" 1234567 ١٢٣٤ a1b2")
@example(text="\u00a0a \u00a0\u3000 a\t\tb ")
@pytest.mark.parametrize("name", PATTERNS)
def test_any_text_is_cut_alike(name: str, text: str) -> None:
    ours = pieces(text, PATTERNS[name])
    assert "".join(ours) == text
    assert ours == peer_pieces(text, REGEXES[name])  # type: ignore[index]


@settings(max_examples=300, deadline=None)
@given(text=notable_text)
@pytest.mark.parametrize("name", PATTERNS)
def test_a_second_engine_agrees(name: str, text: str) -> None:
    regex = pytest.importorskip("regex")
    assert pieces(text, PATTERNS[name]) == regex.findall(REGEXES[name], text)  # type: ignore[index]


def test_words_are_those_of_str_split_at_every_code_point() -> None:
    text = "".join(f"{c}b a{c}{c}" for c in EVERYTHING)
    assert pieces(text, WORDS) == text.split()


@settings(max_examples=600, deadline=None)
@given(text=texts)
@example(text="\x1c\x1d a\x1e\x85b\u2029 \u180e\u200b\ufeff")
@example(text="abcdefg\u3000hijklmnop\u2007qrstuvw\u202fxyzabcdefg\u205f")
@example(text="\u1680\u2000 " * 9)
def test_words_are_those_of_str_split(text: str) -> None:
    assert pieces(text, WORDS) == text.split()


@settings(max_examples=300, deadline=None)
@given(text=texts)
@example(text="\x1cab\x1d \x1e\x1f\x85c\u2028d\u3000\u200be")
def test_the_sources_rule_cuts_before_each_white_space_character(text: str) -> None:
    expected: list[str] = []
    for character in text:
        if character.isspace() or not expected:
            expected.append(character)
        else:
            expected[-1] += character
    assert pieces(text, SPACE_BEFORE) == expected == peer_pieces(text, CHARACTERS_REGEX)


WORD_PART = r"[\p{L}\p{N}\p{M}\p{Pc}]"
PUNCTUATION_REGEX = rf"{WORD_PART}+|[^\p{{L}}\p{{N}}\p{{M}}\p{{Pc}}]"


def test_every_code_point_that_is_part_of_a_word_is_in_a_class() -> None:
    """Marks and connecting punctuation, against Python's table where that knows the character."""
    joins = np.isin(character_classes(), [LETTER, NUMBER, MARK])
    known = [point for point in range(0x110000) if unicodedata.category(chr(point)) not in ("Cn", "Cs")]
    expected = [
        unicodedata.category(chr(point))[0] in "LNM" or unicodedata.category(chr(point)) == "Pc" for point in known
    ]
    assert joins[known].tolist() == expected


@settings(max_examples=600, deadline=None)
@given(text=texts)
@example(text="Don't stop—now, e\u0301 naïve_x 3.14 (ok)!?")
def test_punctuation_is_split_off(text: str) -> None:
    expected = [piece for word in text.split() for piece in peer_pieces(word, PUNCTUATION_REGEX)]
    assert pieces(text, PUNCTUATION) == expected


@given(text=texts)
def test_no_pattern_is_no_cut(text: str) -> None:
    assert pieces(text, WHOLE) == [text] * (text != "")
