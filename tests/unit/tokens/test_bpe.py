from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from foreword.errors import ForewordError, InputError, SettingError
from foreword.protocols import Parts
from foreword.text.block import blocks_of
from foreword.tokens import plain
from foreword.tokens.bpe import BPETokenizer, Pattern, _PieceEncoder
from foreword.tokens.corpus import Corpus
from foreword.tokens.kernels import SHORT
from foreword.tokens.merges import Kind

TEXTS = [
    "the cat sat on the mat, the then there theory",
    "größer naïve 数学は美しい 😀 👩‍👩‍👧",
    "if x == 10:\n\treturn  'don''t'\r\n",
    "aaaa aaaaaaaa abababab -------- ====== 000000 123456789",
    "",
]
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
likely_text = st.text(st.sampled_from("thecasmnor abdegif0123456789-=\t\r\n'ößï数学😀"), max_size=60)
texts = st.one_of(likely_text, any_text)

VARIANTS: dict[str, dict[str, Any]] = {
    "gpt2": {},
    "cl100k": {"pattern": "cl100k"},
    "qwen2": {"pattern": "qwen2"},
    "none": {"pattern": "none"},
    "whole pieces": {"ignore_merges": True},
    "characters": {"kind": "characters"},
}


@pytest.fixture(scope="module", params=VARIANTS)
def tokenizer(request: pytest.FixtureRequest) -> BPETokenizer:
    return BPETokenizer(400, **VARIANTS[request.param]).fit(TEXTS * 3)


# Learning


def test_special_tokens_then_the_alphabet_then_what_is_learnt() -> None:
    tokenizer = BPETokenizer(262, special_tokens=["<pad>", "</s>"]).fit(["low low lower"])
    assert tokenizer.vocab.tokens[:4] == ["<pad>", "</s>", "!", '"']
    assert tokenizer.vocab.tokens[258:] == ["lo", "low", "Ġlow", "er"]
    assert list(tokenizer.merge_names()) == [("l", "o"), ("lo", "w"), ("Ġ", "low"), ("e", "r")]
    assert (tokenizer.vocab.end, tokenizer.vocab.unknown) == (1, None)


def test_the_record_tells_every_step() -> None:
    tokenizer = BPETokenizer(260).fit(["low low lower"])
    names = tokenizer.vocab.tokens
    steps = [(names[step.left], names[step.right], names[step.merged], step.count) for step in tokenizer.steps()]
    assert steps == [("l", "o", "lo", 3), ("lo", "w", "low", 3), ("Ġ", "low", "Ġlow", 2)]


def test_a_merge_can_be_refused_by_a_function_or_a_list() -> None:
    """No token of a vetoed merge is made, others take its place, and the vocabulary is as large as asked."""
    texts = ["the theme of the thesis", "then there they are"] * 5
    free = BPETokenizer(266).fit(texts)
    assert {"Ġthe", "the"} <= set(free.vocab)
    listed = BPETokenizer(266).fit(texts, veto=["the", "Ġthe"])
    asked = BPETokenizer(266).fit(texts, veto=lambda left, right: left + right in ("the", "Ġthe"))
    assert not {"Ġthe", "the"} & set(listed.vocab)
    assert list(listed.vocab) == list(asked.vocab)
    assert len(listed.vocab) == len(free.vocab)
    short = BPETokenizer(400).fit(texts, veto=lambda left, right: len(left + right) > 3)
    assert max(len(token) for token in short.vocab if token != "</s>") == 3
    assert short.decode(short.encode(texts[0])) == texts[0]
    with pytest.raises(SettingError, match="expected a function of two tokens"):
        BPETokenizer(266).fit(texts, veto="the")


def test_characters_have_unk_and_only_the_letters_seen() -> None:
    tokenizer = BPETokenizer(8, kind="characters").fit(["ab ab b"])
    assert tokenizer.vocab.tokens == ["<unk>", "</s>", " ", "a", "b", "ab", " b", " ab"]
    assert tokenizer.encode("ab xb").tolist() == [5, 2, 0, 4]
    assert tokenizer.decode(tokenizer.encode("ab xb")) == "ab \ufffdb"


@pytest.mark.parametrize(
    ("kind", "size", "alphabet"),
    [("bytes", 256, "256 bytes and 1 special"), ("characters", 4, "3 characters and 2 special")],
)
def test_a_vocabulary_smaller_than_the_alphabet_is_refused(kind: Kind, size: int, alphabet: str) -> None:
    with pytest.raises(SettingError, match=f"vocab_size={size} is smaller than the alphabet: {alphabet} tokens"):
        BPETokenizer(size, kind=kind).fit(["ab c"[:3]])


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SettingError, match="kind='words'"):
        BPETokenizer(kind="words")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="pattern='gpt5'"):
        BPETokenizer(pattern="gpt5")  # type: ignore[arg-type]


def test_unfitted_it_says_so() -> None:
    with pytest.raises(ForewordError, match="fit"):
        BPETokenizer().encode("a")


def test_from_nothing_nothing_is_learnt_but_the_alphabet() -> None:
    tokenizer = BPETokenizer(300).fit([])
    assert len(tokenizer.vocab) == 257
    assert tokenizer.decode(tokenizer.encode("größer")) == "größer"


@pytest.mark.parametrize("kind", ["bytes", "characters"])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_blocks_and_memory_change_nothing(kind: Kind, threads: int) -> None:
    """With this much memory the counts are spilt after every block, and yet all pieces are kept for the merges."""
    rng = random.Random(1)
    texts = ["".join(rng.choices("abcdefghij ", k=200)) for _ in range(100)]
    once = BPETokenizer(500, kind=kind).fit(texts)
    again = BPETokenizer(500, kind=kind).fit_blocks(blocks_of(texts, 900), threads=threads, memory=1_000_000)
    assert again.left_out_ == 0
    assert again.vocab == once.vocab
    assert_array_equal(again.record_, once.record_)


def test_where_memory_is_short_the_rarest_pieces_are_left_out() -> None:
    texts = ["common words " * 50, " ".join(f"rare{number}" for number in range(2000))]
    full = BPETokenizer(280).fit(texts)
    short = BPETokenizer(280).fit_blocks(blocks_of(texts), threads=1, memory=20_000)
    assert full.left_out_ == 0
    assert short.left_out_ > 1000
    assert "Ġcommon" in short.vocab
    assert short.decode(short.encode("rare7")) == "rare7"


# Encoding


@settings(deadline=None, max_examples=200)
@given(text=texts)
@example(text="-" * 200 + "=" * 150 + "0" * 99)
@example(text="aaaaaaa a aa aaaaa")
def test_the_fast_road_is_the_plain_one(tokenizer: BPETokenizer, text: str) -> None:
    assert tokenizer.encode(text).tolist() == plain.encode(tokenizer, text)


@settings(deadline=None, max_examples=200)
@given(text=texts)
@example(text="\r\n\x00 \u2028\u0085\ufeff\ufffd")
@example(text="</s><unk>")
def test_any_text_comes_back(tokenizer: BPETokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    if tokenizer.vocab.unknown not in ids.tolist():
        assert tokenizer.decode(ids) == text
    assert tokenizer.kind == "characters" or tokenizer.vocab.unknown is None


@settings(deadline=None, max_examples=200)
@given(data=st.binary(max_size=60))
@example(data=b"\xff\xfe \xc3( \xe2\x82 \xf0\x9f\x98 \xed\xa0\x80 \xf4\x90\x80\x80 \xc0\x80")
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "qwen2", "none"])
def test_any_bytes_come_back(fitted: dict[str, BPETokenizer], pattern: str, data: bytes) -> None:
    """What is no UTF-8 too: no byte is lost."""
    tokenizer = fitted[pattern]
    assert tokenizer.decode_bytes(tokenizer.encode(data)) == data


@pytest.fixture(scope="module")
def fitted() -> dict[str, BPETokenizer]:
    patterns: list[Pattern] = ["gpt2", "cl100k", "qwen2", "none"]
    return {pattern: BPETokenizer(400, pattern=pattern).fit(TEXTS * 3) for pattern in patterns}


@pytest.mark.parametrize("kind", ["bytes", "characters"])
@pytest.mark.parametrize("length", [SHORT - 1, SHORT, SHORT + 1, 257, 600])
def test_long_pieces_take_the_road_with_the_heap(kind: Kind, length: int) -> None:
    """One piece without a blank, at both sides of the length where the other road is taken, and past the scratch."""
    rng = random.Random(length)
    letters = "".join(rng.choices("abc", [5, 3, 1], k=20_000))
    tokenizer = BPETokenizer(400, kind=kind).fit([letters])
    for start in (0, 333):
        text = letters[start : start + length // 2] + "".join(rng.choices("abc", k=length - length // 2))
        assert tokenizer.pieces(text) == [text]
        assert tokenizer.encode(text).tolist() == plain.encode(tokenizer, text)


def test_both_roads_agree_where_a_later_merge_makes_an_earlier_one_possible() -> None:
    """Merges that others made need not come in the order of a training: here "aab" is learnt before "aa"."""
    names = [*BPETokenizer(257).fit([]).vocab, "aab", "aa", "aabaab"]
    ids = {name: id for id, name in enumerate(names)}
    pairs = [("aab", "aab"), ("aa", "b"), ("a", "a")]
    record = np.array([[ids[a], ids[b], ids[a + b], 0] for a, b in pairs], np.int64)
    tokenizer = BPETokenizer(len(names)).with_merges(names, record)
    for text in ("aab", "aabaab", "aaaab", "aab" * 50, "a" * 101 + "b"):
        assert tokenizer.encode(text).tolist() == plain.encode(tokenizer, text)
        assert list(tokenizer.replay(text))[-1]["tokens"] == [names[id] for id in plain.encode(tokenizer, text)]
    assert [names[id] for id in tokenizer.encode("aabaab")] == ["aabaab"]


def test_what_was_worked_out_is_remembered_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for a few pieces only, the memory fills, grows and is emptied again, and the ids stay the same."""
    tokenizer = BPETokenizer(400).fit(TEXTS * 3)
    words = [f"word{number} " * (1 + number % 3) for number in range(500)]
    expected = [plain.encode(tokenizer, text) for text in words]
    monkeypatch.setattr(_PieceEncoder, "LARGEST", 64)
    encoder = _PieceEncoder(tokenizer)
    encoder.capacity = 16
    encoder._forget()
    tokenizer._encoders.put(encoder)
    assert [tokenizer.encode(text).tolist() for text in words * 2] == expected * 2
    assert encoder.capacity == 64
    assert [ids.tolist() for ids in tokenizer.encode_batch(words)] == expected


def test_whole_pieces_are_remembered_after_forgetting(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = BPETokenizer(400, ignore_merges=True).fit(TEXTS * 3)
    monkeypatch.setattr(_PieceEncoder, "LARGEST", 64)
    encoder = _PieceEncoder(tokenizer)
    encoder.capacity = 1024
    encoder._forget()
    tokenizer._encoders.put(encoder)
    for number in range(3000):
        text = f"the w{number}"
        assert tokenizer.encode(text).tolist() == plain.encode(tokenizer, text)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_many_texts_at_once_are_the_texts_one_by_one(tokenizer: BPETokenizer, threads: int) -> None:
    texts = TEXTS * 100
    batch = tokenizer.encode_batch(texts, threads=threads)
    assert [ids.tolist() for ids in batch] == [tokenizer.encode(text).tolist() for text in TEXTS] * 100
    one = Corpus.from_blocks(blocks_of(texts, 300), tokenizer, threads=threads)
    assert_array_equal(one.ids, Corpus.from_texts(texts, tokenizer).ids)


def test_a_blank_before_each_text() -> None:
    tokenizer = BPETokenizer(300, prefix_space=True).fit(["the the"])
    assert [tokenizer.vocab[id] for id in tokenizer.encode("the")] == ["Ġthe"]
    assert tokenizer.decode(tokenizer.encode("the")) == "the"
    assert tokenizer.encode("").tolist() == []
    assert tokenizer.decode_bytes(tokenizer.encode(b"\xff")) == b" \xff"


# Special tokens


def test_a_special_token_in_a_text_is_text_unless_asked_for() -> None:
    tokenizer = BPETokenizer(300, special_tokens=["</s>", "<a>", "<a>b"]).fit(TEXTS)
    text = "x<a>b</s><a> y"
    plain, special = tokenizer.encode(text), tokenizer.encode(text, special=True)
    assert not set(plain.tolist()) & {0, 1, 2}
    assert tokenizer.decode(plain) == text
    assert [id for id in special.tolist() if id < 3] == [2, 0, 1]
    assert tokenizer.decode(special) == "x y"
    assert tokenizer.decode(special, special=True) == text
    with pytest.raises(SettingError, match="not in bytes"):
        tokenizer.encode(b"x", special=True)


@pytest.mark.parametrize("kind", ["bytes", "characters"])
@pytest.mark.parametrize("pattern", ["gpt2", "none"])
def test_no_text_can_forge_a_special_token(kind: Kind, pattern: Pattern) -> None:
    """Not even one that spelt it a hundred times while the merges were learnt."""
    texts = ["</s>", "<unk>", "x</s>y<unk>z the"] * 100
    tokenizer = BPETokenizer(310, kind=kind, pattern=pattern, special_tokens=["</s>", "the", "<unk>"]).fit(texts)
    tokenizer.add_special_tokens(["€"])
    special = {tokenizer.vocab.id(token) for token in tokenizer.standing}
    for text in texts[:3]:
        assert not special & set(tokenizer.encode(text).tolist())
        assert tokenizer.encode(text).tolist() == plain.encode(tokenizer, text)
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.vocab.id("€") not in tokenizer.encode("€")


def test_added_tokens_are_found_when_asked_and_stay_in_the_text() -> None:
    tokenizer = BPETokenizer(300, added_tokens=["<tool>", "  "]).fit(TEXTS)
    ids = tokenizer.encode("a  <tool></s>", special=True).tolist()
    assert [tokenizer.vocab[id] for id in ids] == ["a", "  ", "<tool>", "</s>"]
    assert tokenizer.decode(ids) == "a  <tool>"


def test_special_tokens_are_added_after_all_others() -> None:
    tokenizer = BPETokenizer(300).fit(TEXTS)
    before = tokenizer.encode(TEXTS[0])
    size = len(tokenizer.vocab)
    assert tokenizer.add_special_tokens(["<b>", "</s>", "<a>", "<b>"]) is tokenizer
    assert tokenizer.vocab.tokens[size:] == ["<b>", "<a>"]
    assert tokenizer.encode("<a><b></s>", special=True).tolist() == [size + 1, size, 0]
    assert_array_equal(tokenizer.encode(TEXTS[0]), before)
    assert tokenizer.vocab.end == 0
    with pytest.raises(SettingError, match="'the' cannot become a special token"):
        tokenizer.add_special_tokens(["<c>", "the"])
    assert "<c>" not in tokenizer.vocab


@pytest.mark.parametrize(
    ("special", "end"),
    [
        (["<|endoftext|>"], "<|endoftext|>"),
        (["<pad>", "<|im_end|>", "<|endoftext|>"], "<|endoftext|>"),
        (["<pad>"], "</s>"),
        ([], "</s>"),
    ],
)
def test_the_end_of_a_document_is_the_first_known_name_for_it(special: list[str], end: str) -> None:
    tokenizer = BPETokenizer(300, special_tokens=special).fit(TEXTS)
    assert tokenizer.vocab[tokenizer.vocab.end] == end


# Replaying


@settings(deadline=None, max_examples=50)
@given(text=texts)
def test_the_replay_begins_with_the_alphabet_and_ends_in_the_encoding(tokenizer: BPETokenizer, text: str) -> None:
    steps = list(tokenizer.replay(text))
    assert steps[0]["merge"] is None
    assert steps[-1]["tokens"] == [tokenizer.vocab[id] for id in tokenizer.encode(text).tolist()]
    for before, after in itertools.pairwise(steps):
        assert after["merge"] in list(tokenizer.merge_names())
        assert len(after["tokens"]) < len(before["tokens"])
        assert "".join(after["tokens"]) == "".join(before["tokens"])


def test_a_replay_told_step_by_step() -> None:
    """The data behind F11, the merge-by-merge page."""
    tokenizer = BPETokenizer(262, special_tokens=["</s>", "<pad>"]).fit(["low low lower"])
    assert list(tokenizer.replay("lower low")) == [
        {"merge": None, "tokens": ["l", "o", "w", "e", "r", "Ġ", "l", "o", "w"]},
        {"merge": ("l", "o"), "tokens": ["lo", "w", "e", "r", "Ġ", "lo", "w"]},
        {"merge": ("lo", "w"), "tokens": ["low", "e", "r", "Ġ", "low"]},
        {"merge": ("Ġ", "low"), "tokens": ["low", "e", "r", "Ġlow"]},
        {"merge": ("e", "r"), "tokens": ["low", "er", "Ġlow"]},
    ]


# Parts


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (np.zeros((1, 4), np.int32), "four 64-bit numbers"),
        (np.zeros((1, 3), np.int64), "four 64-bit numbers"),
        (np.zeros(4, np.int64), "four 64-bit numbers"),
        (np.array([[1, 2, 9999, 1]]), "not in the vocabulary"),
        (np.array([[-1, 2, 3, 1]]), "not in the vocabulary"),
    ],
)
def test_merges_that_do_not_fit_are_refused(record: np.ndarray, message: str) -> None:
    parts = BPETokenizer(300).fit(TEXTS).to_parts()
    with pytest.raises(InputError, match=message):
        BPETokenizer.from_parts(Parts(parts.settings, {"record": record}, parts.vocab))


def test_bytes_need_a_token_for_every_byte() -> None:
    names = [name for name in BPETokenizer(257).fit([]).vocab if name != "Ġ"]
    with pytest.raises(InputError, match="no token for the byte 'Ġ'"):
        BPETokenizer(256).with_merges(names, np.empty((0, 4), np.int64))


def test_the_end_stays_the_end_when_parts_are_put_together_again() -> None:
    tokenizer = BPETokenizer(300, special_tokens=["<|endoftext|>"]).fit(TEXTS).add_special_tokens(["</s>"])
    again = BPETokenizer.from_parts(tokenizer.to_parts())
    assert again.vocab[again.vocab.end] == tokenizer.vocab[tokenizer.vocab.end] == "<|endoftext|>"
    assert again.vocab == tokenizer.vocab
