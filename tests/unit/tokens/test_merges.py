from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foreword.tokens.merges import MERGES_A_CALL, Merge, Veto, merges_of
from foreword.tokens.plain import learn_merges

LETTERS = [b"a", b"b", b"c"]
words = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=8)


def fast(
    words: list[list[int]],
    counts: list[int],
    spellings: list[bytes],
    size: int,
    least: int = 1,
    reserved: int = 0,
    veto: Veto | None = None,
) -> tuple[list[Merge], list[bytes]]:
    spellings = list(spellings)
    symbols = np.array([symbol for word in words for symbol in word], np.int32)
    begins = np.cumsum([0, *map(len, words)], dtype=np.int64)
    found = merges_of(
        symbols, begins, np.array(counts, np.int64), spellings, size, least=least, reserved=reserved, veto=veto
    )
    return list(found), spellings


def plain(
    words: list[list[int]],
    counts: list[int],
    spellings: list[bytes],
    size: int,
    least: int = 1,
    reserved: int = 0,
    veto: Veto | None = None,
) -> tuple[list[Merge], list[bytes]]:
    spellings = list(spellings)
    return list(learn_merges(words, counts, spellings, size, least=least, reserved=reserved, veto=veto)), spellings


def test_the_example_of_gage() -> None:
    """aaabdaaabac: aa, then ab (aaa b d aaa b a c), then both together, as in the paper of 1994."""
    found, spellings = plain([[0, 0, 0, 1, 3, 0, 0, 0, 1, 0, 2]], [1], [b"a", b"b", b"c", b"d"], 7)
    assert spellings[4:] == [b"aa", b"ab", b"aaab"]
    assert found == [Merge(0, 0, 4, 4), Merge(0, 1, 5, 2), Merge(4, 5, 6, 2)]


def no_repeats(left: bytes, right: bytes) -> bool:
    """A veto: the right token may not begin as the left one ends."""
    return left[-1:] == right[:1]


@settings(max_examples=150, deadline=None)
@given(words, st.integers(3, 12), st.integers(0, 1))
def test_a_veto_is_asked_before_each_merge_and_both_versions_agree(
    words: list[list[int]], size: int, reserved: int
) -> None:
    counts = [1 + 2 * place for place in range(len(words))]
    expected = plain(words, counts, LETTERS, size, reserved=reserved, veto=no_repeats)
    assert fast(words, counts, LETTERS, size, reserved=reserved, veto=no_repeats) == expected
    for merge in expected[0]:
        assert not no_repeats(expected[1][merge.left], expected[1][merge.right])
    assert fast(words, counts, LETTERS, size, veto=lambda left, right: False) == fast(words, counts, LETTERS, size)
    assert fast(words, counts, LETTERS, size, veto=lambda left, right: True)[0] == []


def test_ties_go_to_the_smaller_ids() -> None:
    found, _ = plain([[1, 2], [0, 1], [0, 2]], [5, 5, 5], LETTERS, 6)
    assert [(merge.left, merge.right) for merge in found] == [(0, 1), (0, 2), (1, 2)]


def test_rare_pairs_are_left_alone() -> None:
    for learn in (plain, fast):
        found, spellings = learn([[0, 1], [1, 2]], [3, 2], LETTERS, 99, 3)
        assert found == [Merge(0, 1, 3, 3)]
        assert len(spellings) == 4


def test_nothing_to_merge() -> None:
    for learn in (plain, fast):
        assert learn([[0], [1]], [9, 9], LETTERS, 99)[0] == []
        assert learn([], [], LETTERS, 99)[0] == []
        assert learn([[0, 1]], [1], LETTERS, 3)[0] == []


def test_a_token_that_is_there_already_is_used() -> None:
    """As a special token may be, whose name the text spells."""
    for learn in (plain, fast):
        found, spellings = learn([[1, 2]] * 2, [2, 2], [b"bc", b"b", b"c"], 5)
        assert found == [Merge(1, 2, 0, 4)]
        assert spellings == [b"bc", b"b", b"c"]


def test_what_is_reserved_is_never_spelt() -> None:
    """The pair is passed over, and longer tokens are reached another way: here abc by a+bc, as ab is taken."""
    for learn in (plain, fast):
        found, spellings = learn([[1, 2, 3]], [5], [b"ab", b"a", b"b", b"c"], 9, 1, 1)
        assert spellings == [b"ab", b"a", b"b", b"c", b"bc", b"abc"]
        assert found == [Merge(2, 3, 4, 5), Merge(1, 4, 5, 5)]


@settings(deadline=None, max_examples=300)
@given(words=words, data=st.data(), size=st.integers(3, 40), least=st.integers(0, 4))
@example(words=[[0] * length for length in range(1, 40)], data=None, size=60, least=1)
@example(words=[[0, 1] * 9, [1, 0] * 9, [0, 0, 1, 1] * 4], data=None, size=60, least=1)
def test_fast_and_plain_learn_the_same(
    words: list[list[int]], data: st.DataObject | None, size: int, least: int
) -> None:
    counts = [1] * len(words)
    if data is not None:
        counts = data.draw(st.lists(st.integers(1, 5), min_size=len(words), max_size=len(words)))
    slow, slow_spellings = plain(words, counts, LETTERS, size, least)
    if len({merge.merged for merge in slow}) < len(slow):
        return  # two merges that give one token: there the fast one follows Hugging Face's habits
    quick, quick_spellings = fast(words, counts, LETTERS, size, least)
    assert quick == slow
    assert quick_spellings == slow_spellings


def test_they_agree_past_many_calls_and_large_tables() -> None:
    rng = np.random.default_rng(5)
    alphabet = [bytes([97 + letter]) for letter in range(12)]
    words = [rng.integers(0, 12, rng.integers(2, 30)).tolist() for _ in range(100)]
    counts = rng.integers(1, 50, 100).tolist()
    size = 2 * MERGES_A_CALL
    assert fast(words, counts, alphabet, size) == plain(words, counts, alphabet, size)


def test_the_meter_hears_how_far_it_is() -> None:
    heard: list[tuple[str, int, int | None]] = []
    symbols, begins = np.array([0, 1, 0, 1, 2], np.int32), np.array([0, 5], np.int64)
    found = merges_of(symbols, begins, np.ones(1, np.int64), list(LETTERS), 5, meter=lambda *told: heard.append(told))
    assert len(list(found)) == 2
    assert heard[-1] == ("merging", 5, 5)


@pytest.mark.parametrize("length", [60, 200])
def test_long_tokens_are_spelt_out(length: int) -> None:
    """Doubling makes tokens longer than the table's rows hold."""
    found, spellings = fast([[0] * 64 * length], [1], LETTERS, 15)
    assert spellings[3:9] == [b"a" * 2**power for power in range(1, 7)]
    assert [merge.merged for merge in found] == list(range(3, 3 + len(found)))
