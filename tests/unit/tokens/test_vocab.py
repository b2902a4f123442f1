from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.errors import SettingError
from foreword.tokens.vocab import END, UNKNOWN, Vocab

# No lone surrogates: they are not text, and UTF-8 cannot hold them.
any_token = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def test_a_token_s_place_is_its_id() -> None:
    vocab = Vocab([UNKNOWN, END, "the", "größer"], [0, 3, 7, 1])
    assert [vocab.id(token) for token in vocab] == [0, 1, 2, 3]
    assert [vocab[id] for id in range(len(vocab))] == list(vocab) == vocab.tokens
    assert (vocab.unknown, vocab.end) == (0, 1)
    assert vocab.counts is not None
    assert vocab.counts.tolist() == [0, 3, 7, 1]


def test_what_is_not_there_is_unknown() -> None:
    vocab = Vocab([END, "a", UNKNOWN])
    assert vocab.id("b") == vocab.unknown == 2
    assert vocab.ids(["a", "b", "a"]).tolist() == [1, 2, 1]
    assert vocab.ids([]).dtype == np.int32
    assert "a" in vocab
    assert "b" not in vocab
    assert 1 not in vocab


def test_without_an_unknown_token_it_is_a_key_error() -> None:
    vocab = Vocab([END, "a"], unknown=None)
    assert vocab.unknown is None
    with pytest.raises(KeyError, match="b"):
        vocab.id("b")


@pytest.mark.parametrize("id", [-1, 2, 10**9])
def test_an_id_outside_is_an_index_error(id: int) -> None:
    with pytest.raises(IndexError, match=f"id {id} is not in a vocabulary of 2 tokens"):
        Vocab([UNKNOWN, END])[id]


def test_a_token_twice_is_refused() -> None:
    with pytest.raises(SettingError, match="'a' appears twice"):
        Vocab([UNKNOWN, END, "a", "b", "a"])


@pytest.mark.parametrize(("tokens", "lacking"), [([END], UNKNOWN), ([UNKNOWN], END), (["a", UNKNOWN], END)])
def test_the_special_tokens_must_be_there(tokens: list[str], lacking: str) -> None:
    with pytest.raises(SettingError, match=f"no '{lacking}'"):
        Vocab(tokens)


def test_as_many_counts_as_tokens() -> None:
    with pytest.raises(SettingError, match="2 tokens but 3 counts"):
        Vocab([UNKNOWN, END], [1, 2, 3])


def test_another_end_may_be_named() -> None:
    vocab = Vocab(["a", "<|endoftext|>"], unknown=None, end="<|endoftext|>")
    assert vocab.end == 1


def test_equal_means_the_same_tokens_and_the_same_special_ones() -> None:
    vocab = Vocab([UNKNOWN, END, "ab", "c"], [0, 1, 2, 3])
    assert vocab == Vocab([UNKNOWN, END, "ab", "c"])
    assert hash(vocab) == hash(Vocab([UNKNOWN, END, "ab", "c"]))
    assert vocab != Vocab([UNKNOWN, END, "a", "bc"])
    assert vocab != Vocab([UNKNOWN, END, "c", "ab"])
    assert vocab != Vocab([UNKNOWN, END, "ab", "c"], unknown=None)
    assert vocab != Vocab([UNKNOWN, END, "ab", "c"], end="c")
    assert vocab != [UNKNOWN, END, "ab", "c"]


def test_it_shows_its_size_and_its_first_tokens() -> None:
    assert repr(Vocab([UNKNOWN, END])) == "Vocab(2 tokens: '<unk>', '</s>')"
    many = Vocab([UNKNOWN, END, *map(str, range(2000))])
    assert repr(many) == "Vocab(2,002 tokens: '<unk>', '</s>', '0', '1', '2', '3', …)"


@given(st.lists(any_token, unique=True))
def test_any_tokens_are_kept_as_they_are(tokens: list[str]) -> None:
    tokens = [*(token for token in tokens if token != END), END]
    vocab = Vocab(tokens, unknown=None)
    assert vocab.tokens == tokens
    again = Vocab.from_bytes(vocab.data, vocab.offsets, unknown=None, end=len(tokens) - 1)
    assert again == vocab
    assert [again[id] for id in range(len(again))] == tokens


def test_from_bytes_copies_nothing() -> None:
    vocab = Vocab([UNKNOWN, END, "a"])
    again = Vocab.from_bytes(vocab.data, vocab.offsets, None, unknown=0, end=1)
    assert again.data is vocab.data
    assert again.offsets is vocab.offsets


def test_words_are_ordered_by_count_and_ties_as_they_came() -> None:
    vocab = Vocab.from_counts({"c": 1, "b": 2, "a": 1, "d": 3}, end_count=5)
    assert vocab.tokens == [UNKNOWN, END, "d", "b", "c", "a"]
    assert vocab.counts is not None
    assert vocab.counts.tolist() == [0, 5, 3, 2, 1, 1]


def test_what_is_left_out_counts_as_unknown() -> None:
    vocab = Vocab.from_counts({"a": 5, "b": 2, "c": 1, UNKNOWN: 4, END: 3}, min_count=2)
    assert vocab.tokens == [UNKNOWN, END, "a", "b"]
    assert vocab.counts is not None
    assert vocab.counts.tolist() == [1 + 4 + 3, 0, 5, 2]


def test_max_size_counts_the_special_tokens() -> None:
    counts = {"a": 3, "b": 2, "c": 1}
    assert Vocab.from_counts(counts, max_size=3).tokens == [UNKNOWN, END, "a"]
    assert Vocab.from_counts(counts, max_size=2).tokens == [UNKNOWN, END]
    assert len(Vocab.from_counts(counts, max_size=9)) == 5
    with pytest.raises(SettingError, match="max_size=1 has no room"):
        Vocab.from_counts(counts, max_size=1)
