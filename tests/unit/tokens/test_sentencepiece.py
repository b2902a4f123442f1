"""``.model`` files of sentencepiece: what is read, what is refused, and the character map."""

from __future__ import annotations

import pickle
import random
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.fuzz_files import piece_model
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import foreword
from foreword.errors import InputError
from foreword.text.block import Block
from foreword.tokens import plain_sentencepiece as plain
from foreword.tokens.character_map import CharacterMap, compile_rules
from foreword.tokens.kernels_trie import UNIT, build_trie
from foreword.tokens.normaliser import Normaliser
from foreword.tokens.protobuf import bytes_field, number_field
from foreword.tokens.sentencepiece import SentencePieceTokenizer
from foreword.tokens.sentencepiece_file import Normalisation, model_bytes, parse_model, read_model

TEXT = "the cat sat  on a mät ½ <x>z"


@pytest.fixture(params=["unigram", "bpe"])
def tokenizer(request: pytest.FixtureRequest) -> SentencePieceTokenizer:
    return SentencePieceTokenizer.from_model(piece_model(request.param))


def test_a_model_is_written_and_read(tokenizer: SentencePieceTokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.model").write_bytes(model_bytes(tokenizer.model_))
    again = foreword.load(tmp_path / "a.model")
    assert isinstance(again, SentencePieceTokenizer)
    assert again.vocab == tokenizer.vocab
    assert again.encode(TEXT).tolist() == tokenizer.encode(TEXT).tolist() == plain.encode(tokenizer, TEXT)
    assert again.decode(again.encode("the cat")) == "the cat"
    assert pickle.loads(pickle.dumps(again)).encode(TEXT).tolist() == again.encode(TEXT).tolist()


def test_words_that_come_again_come_from_the_cache(tokenizer: SentencePieceTokenizer) -> None:
    once, texts = tokenizer.encode(TEXT).tolist(), [TEXT] * 5
    assert [ids.tolist() for ids in tokenizer.encode_batch(texts)] == [once] * 5
    block = tokenizer.encode_block(Block.from_texts(texts, open=True))
    assert block.ends.tolist() == [(len(once) + 1) * number for number in range(1, 5)]


def test_the_command_line_takes_a_model_file(tmp_path: Path) -> None:
    from foreword.cli import app

    (tmp_path / "a.model").write_bytes(model_bytes(piece_model("unigram")))
    (tmp_path / "text").write_text("the cat\nthe dog\n", "utf-8")
    ids = CliRunner().invoke(app, ["tokenize", "encode", str(tmp_path / "a.model"), str(tmp_path / "text"), "--quiet"])
    assert ids.exit_code == 0, ids.output
    (tmp_path / "ids").write_text(ids.stdout, "utf-8")
    text = CliRunner().invoke(app, ["tokenize", "decode", str(tmp_path / "a.model"), str(tmp_path / "ids")])
    assert text.stdout == "the cat\nthe dog\n"


def test_a_file_cut_anywhere_is_refused_in_one_line(tmp_path: Path) -> None:
    whole = model_bytes(piece_model("unigram"))
    path = tmp_path / "cut.model"
    settings = whole.index(b"<mask>") + 13  # a file that ends after any piece is a whole one
    for length in [*range(12), *range(settings + 3, len(whole), 97)]:
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"cut\.model") as refused:
            read_model(path)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff" * 20, "longer than 64 bits"),
        (b"\n\x7fabc", "127 bytes, but only 3 are left"),
        (b"\x0b", "unknown wire type 3"),
        (bytes_field(1, bytes_field(1, b"\xff")), "expected UTF-8"),
        (bytes_field(1, bytes_field(1, b"a")), "0 pieces are of the type unknown"),
        (bytes_field(2, number_field(3, 1)), "holds no pieces"),
        (bytes_field(1, bytes_field(1, b"a")) + bytes_field(2, number_field(3, 4)), "char, expected unigram or bpe"),
        (bytes_field(1, bytes_field(1, b"a") + number_field(3, 9)), "type 7"),
        (bytes_field(1, bytes_field(1, b"a" * 5000)), "5000 bytes, expected 1 to 4096"),
        (2 * bytes_field(1, bytes_field(1, b"a")), "appears twice"),
        (bytes_field(1, bytes_field(1, b"a") + b"\x15" + struct.pack("<f", float("nan"))), "not a finite number"),
    ],
)
def test_what_is_not_a_model_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.model"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_model(path)


def test_a_text_is_not_taken_for_a_model(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("\n\n\nsome words, one line\n", "utf-8")
    with pytest.raises(InputError, match="neither a saved model nor a file"):
        foreword.load(tmp_path / "text")


# The character map


def units_of(*units: int) -> bytes:
    padded = [*units, *([0xFFFFFFFF] * (256 - len(units)))]
    return struct.pack("<I256I", 1024, *padded) + b"a\0b\0"


@pytest.mark.parametrize(
    ("compiled", "message"),
    [
        (b"\x01", "the character map has 1 bytes"),
        (struct.pack("<I", 1 << 31) + b"abcdefgh", "its trie 2147483648"),
        (units_of(0)[:-1], "no end"),
        (units_of(0) + b"\xff\0", "not UTF-8"),
        (units_of(0, 1 | 1 << 10), "cycle"),  # the children of node 1 are where it lies itself
        (units_of(0, 1 | 0x100 | (1 << 20) << 10), "outside"),
        (units_of(0, 1 | 0x100 | 2 << 10, 5, 0x80000000 | 99), "replacement lies outside"),
    ],
)
def test_broken_character_maps_are_refused(compiled: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CharacterMap.parse(compiled)


def test_a_key_may_not_be_huge() -> None:
    with pytest.raises(InputError, match="longer than 256 bytes"):
        CharacterMap.parse(compile_rules({"a" * 300: "b"}))


rules = st.dictionaries(
    st.text("abé▁ 漢", min_size=1, max_size=4), st.text("xyz ▁", max_size=5), min_size=1, max_size=20
)


Flags = tuple[bool, bool, bool, bool]
flags = st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans())


@settings(max_examples=60, deadline=None)
@given(rules=rules, text=st.text("abcé▁ 漢z", max_size=30), flags=flags)
def test_compiled_rules_replace_the_longest_key(rules: dict[str, str], text: str, flags: Flags) -> None:
    compiled = CharacterMap.parse(compile_rules(rules))
    longest = max((key for key in rules if text.startswith(key)), key=len, default="")
    assert compiled.match(text.encode(), 0) == (len(longest.encode()), rules.get(longest, "").encode())
    normaliser = Normaliser(Normalisation(compile_rules(rules), flags[0], flags[1], flags[2], flags[3]), ["▁b", "éa"])
    assert normaliser.outer(normaliser.text(text)) == plain.normalise(normaliser, text)


def test_a_trie_finds_every_key() -> None:
    rng = random.Random(1)
    keys = {bytes(rng.choices(b"abc\xff\x00", k=rng.randint(1, 9))): number for number in range(3000)}
    trie = build_trie(keys)
    for key, value in keys.items():
        node = 0
        for byte in key:
            child = int(trie[node * UNIT]) + byte
            assert trie[child * UNIT + 1] == node
            node = child
        assert trie[node * UNIT + 2] == value


def test_a_model_folder_with_other_pieces_is_refused(tokenizer: SentencePieceTokenizer) -> None:
    parts = tokenizer.to_parts()
    with pytest.raises(InputError, match="scores"):
        SentencePieceTokenizer.from_parts(replace(parts, arrays={**parts.arrays, "scores": np.zeros(3, np.float64)}))
    assert parse_model(model_bytes(tokenizer.model_)).pieces == tokenizer.model_.pieces
