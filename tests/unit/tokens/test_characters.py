from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.errors import ForewordError, InputError
from foreword.protocols import Parts
from foreword.tokens.characters import (
    ALPHABET,
    BYTE_OF,
    CHARACTER_OF,
    ByteTokenizer,
    CharacterTokenizer,
    printable,
    spelling_of,
)
from foreword.tokens.vocab import Vocab

any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def test_characters_are_numbered_by_code_point() -> None:
    tokenizer = CharacterTokenizer().fit(["ba", "a é", ""])
    assert tokenizer.vocab.tokens == ["<unk>", "</s>", " ", "a", "b", "é"]
    assert tokenizer.vocab.counts is not None
    assert tokenizer.vocab.counts.tolist() == [0, 3, 1, 2, 1, 1]
    assert tokenizer.encode("abc").tolist() == [3, 4, 0]
    assert tokenizer.decode([3, 1, 0]) == "a\ufffd"


def test_rare_characters_are_unknown() -> None:
    tokenizer = CharacterTokenizer(min_count=2).fit(["aab", "c"])
    assert tokenizer.vocab.tokens == ["<unk>", "</s>", "a"]
    assert tokenizer.vocab.counts is not None
    assert tokenizer.vocab.counts.tolist() == [2, 2, 2]


def test_characters_may_be_normalised() -> None:
    tokenizer = CharacterTokenizer(lowercase=True, form="NFC").fit(["E\u0301"])
    assert tokenizer.decode(tokenizer.encode("É")) == "é"


@settings(deadline=None)
@given(any_text)
def test_seen_characters_come_back(text: str) -> None:
    tokenizer = CharacterTokenizer().fit([text])
    ids = tokenizer.encode(text)
    assert len(ids) == len(text)
    assert tokenizer.decode(ids.tolist()) == text


def test_an_unfitted_character_tokenizer_says_so() -> None:
    with pytest.raises(ForewordError, match="fit"):
        CharacterTokenizer().encode("a")


@given(st.binary(max_size=40))
def test_any_bytes_come_back(data: bytes) -> None:
    tokenizer = ByteTokenizer()
    ids = tokenizer.encode(data)
    assert ids.tolist() == list(data)
    assert tokenizer.decode_bytes([*ids.tolist(), tokenizer.vocab.end]) == data


@given(any_text)
def test_any_text_comes_back_from_bytes(text: str) -> None:
    tokenizer = ByteTokenizer()
    assert tokenizer.decode(tokenizer.encode(text).tolist()) == text


def test_there_are_257_bytes() -> None:
    tokenizer = ByteTokenizer()
    assert (len(tokenizer.vocab), tokenizer.vocab.end, tokenizer.vocab.unknown) == (257, 256, None)
    assert tokenizer.decode([0xC3]) == "\ufffd"
    with pytest.raises(InputError, match="not that of bytes"):
        ByteTokenizer.from_parts(Parts({}, {}, Vocab(["a", "</s>"], unknown=None)))


def test_every_byte_has_a_printable_character_of_its_own() -> None:
    assert len(set(CHARACTER_OF)) == 256
    assert all(character.isprintable() and not character.isspace() for character in CHARACTER_OF)
    assert [CHARACTER_OF[byte] for byte in b"a \n\x00\xff\xad"] == ["a", "Ġ", "Ċ", "Ā", "ÿ", "Ń"]
    assert [BYTE_OF[CHARACTER_OF[byte]] for byte in range(256)] == list(range(256))
    assert sorted(ALPHABET) == list(range(256))
    assert ALPHABET[0] == ord("!")


@given(st.binary(max_size=20))
def test_spelling_undoes_printing(data: bytes) -> None:
    assert spelling_of(printable(data)) == data


def test_what_is_made_of_no_bytes_spells_itself() -> None:
    assert spelling_of("[unused 漢]") == "[unused 漢]".encode()
