"""The kernels of estimation against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from foreword.ngram import hash_layout, kernels_count, kernels_query
from foreword.ngram.counts import cut, plan_rounds
from foreword.ngram.hash_layout import homes_of, mixed_keys, most_rows
from foreword.ngram.kernels_count import DIGIT, KEY_BITS, TALLY
from foreword.storage.scratch import Scratch

# Sorting


@settings(max_examples=100, deadline=None)
@given(keys=st.lists(st.integers(0, (1 << KEY_BITS) - 1), min_size=1, max_size=300), shift=st.integers(0, KEY_BITS))
def test_records_are_sorted_and_equal_ones_keep_their_order(keys: list[int], shift: int) -> None:
    for column in (0, 1):
        records = np.zeros((len(keys), 2), np.int64)
        records[:, column], records[:, 1 - column] = keys, np.arange(len(keys))
        expected = [records[place].tolist() for place in np.argsort(records[:, column] >> shift, kind="stable")]
        flat, spare, tally = records.reshape(-1), np.empty(records.size, np.int64), np.empty(TALLY, np.int32)
        moved = kernels_count.sort_records(flat, spare, len(keys), column, shift, KEY_BITS - shift, tally)
        assert (spare if moved else flat).reshape(-1, 2).tolist() == expected


@pytest.mark.parametrize("size", [1, 20, 60, 3000])
def test_records_with_the_same_upper_number_are_sorted_by_the_lower(size: int) -> None:
    """Few by insertion, more by short digits, many by long ones."""
    random = np.random.default_rng(size)
    lower = random.integers(0, 1 << 30, 2 * size) << 20 | np.arange(2 * size)
    upper = np.sort(random.integers(0, 1 << 40, 2 * size))
    upper[size // 2 : size // 2 + size] = upper[size // 2]
    records = np.stack((upper, lower), axis=1)
    flat = records.reshape(-1).copy()
    kernels_count.sort_alike(flat, np.empty_like(flat), 2 * size, 20, 30, np.empty(TALLY, np.int32))
    assert_array_equal(flat.reshape(-1, 2), records[np.lexsort((lower, upper))])


@settings(max_examples=200, deadline=None)
@given(words=st.integers(1, 9), bits=st.integers(2, 31), first_bits=st.integers(0, 31), place_bits=st.integers(1, 31))
def test_every_word_is_sorted_by_once_and_the_first_last(
    words: int, bits: int, first_bits: int, place_bits: int
) -> None:
    rounds = plan_rounds(words, bits, first_bits, place_bits)
    covered = [word for turn in rounds[::-1] for word in range(turn.skip, turn.skip + turn.upper + turn.lower)]
    assert covered == list(range(words))
    assert rounds[-1].skip == 0
    for turn in rounds:
        assert turn.upper * bits + (first_bits if turn.skip == 0 else 0) <= KEY_BITS
        assert turn.lower * bits + place_bits <= KEY_BITS


def test_a_digit_of_the_largest_key_has_its_counters() -> None:
    assert -(-KEY_BITS // DIGIT) << DIGIT <= TALLY


@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.integers(0, 5), min_size=1, max_size=20), most=st.integers(1, 9))
def test_cuts_cover_all_and_hold_no_more_than_they_may(sizes: list[int], most: int) -> None:
    begins = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    ranges = list(cut(begins, most))
    assert [place for first, last in ranges for place in range(first, last) if sizes[place]] == [
        place for place, size in enumerate(sizes) if size
    ]
    assert all(sum(sizes[first:last]) <= most or last - first == 1 for first, last in ranges)


# Tables


def plain_table(keys: list[int], values: list[int], homes: int) -> list[int]:
    """Every key at its home or, where that is taken, as near behind it as there is room; smaller keys first."""
    rows: list[int] = []
    for key, value in sorted(zip(keys, values, strict=True)):
        home = (key >> 32) * homes >> 32
        rows += [0, 0] * (home - len(rows) // 2)
        rows += [key, value]
    return rows


def filled(words: NDArray[np.int64], contexts: NDArray[np.int64], bits: int) -> tuple[list[int], list[int], int]:
    """The table of n-grams, each context one parent; the rows they stand in, and how many rows there are."""
    size = len(words)
    grams = np.zeros((size, 4), np.int32)
    parents, places = np.unique(contexts, return_inverse=True)
    grams[:, 0], grams[:, 1], grams[:, 2] = words, places, np.arange(size)
    room = np.full(2 * most_rows(size), 99, np.uint64)
    own = np.empty(size, np.uint32)
    used = hash_layout._fill(room, grams, parents.astype(np.uint32), 0, bits, own, Scratch())
    return room[: 2 * used].tolist(), own.tolist(), used


@pytest.mark.long
@pytest.mark.parametrize("size", [0, 1, 2, 300, 100_000])
@pytest.mark.parametrize("buckets", [None, 3, 11])
def test_a_table_is_what_plain_insertion_makes(size: int, buckets: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if buckets is not None:  # as many as a large table has
        monkeypatch.setattr(kernels_query, "BUCKET_BITS", buckets)
        monkeypatch.setattr(kernels_query, "BUCKET_ROWS", max(1, size >> buckets))
    random = np.random.default_rng(size)
    pairs = np.unique(random.integers(0, 1 << 20, (size, 2)), axis=0)
    random.shuffle(pairs)
    words, contexts = pairs[:, 0], pairs[:, 1]
    table, own, used = filled(words, contexts, 21)
    keys = mixed_keys(contexts, words, 21).tolist()
    expected = plain_table(keys, list(range(len(keys))), homes_of(len(keys)))
    assert table == expected + [0] * (2 * used - len(expected))
    assert used > homes_of(len(keys))
    assert table[-2:] == [0, 0]
    assert [table[2 * row] for row in own] == keys


def test_keys_that_are_spread_badly_are_laid_out_all_the_same() -> None:
    """Buckets of very different sizes, and keys that differ in their last bits only."""
    random = np.random.default_rng(1)
    keys = np.unique(
        np.concatenate(
            (
                random.integers(1, 1 << 63, 500).astype(np.uint64),
                (np.uint64(7) << np.uint64(60)) + np.arange(50, dtype=np.uint64),
            )
        )
    )
    random.shuffle(keys)
    size, homes = len(keys), homes_of(len(keys))
    for bits in (0, 1, 2):
        buckets = (keys >> np.uint64(1) >> np.uint64(63 - bits)).astype(np.int64)
        counts = np.bincount(buckets, minlength=1 << bits)
        begins = (np.arange(1 << bits) << (32 - bits)) * homes >> 32
        room = np.full(2 * (homes + size), 99, np.uint64)
        for bucket, begin in enumerate(begins.tolist()):
            there = np.flatnonzero(buckets == bucket)
            if len(there) > np.append(begins, homes)[bucket + 1] - begin:
                break  # ``_fill`` would take fewer buckets
            room[2 * begin : 2 * (begin + len(there)) : 2] = keys[there]
            room[2 * begin + 1 : 2 * (begin + len(there)) + 1 : 2] = there.astype(np.uint64)
        else:
            numbers = np.concatenate([np.flatnonzero(buckets == bucket) for bucket in range(1 << bits)])
            largest, own = int(counts.max()), np.empty(size, np.uint32)
            used = kernels_query.lay_out(
                room, homes, bits, begins, counts, numbers.astype(np.int32), 0, size, own,
                np.empty(2 * largest, np.uint64), np.empty(2 * largest, np.uint64), np.empty(2 * largest, np.int32),
                np.empty(largest, np.uint64), np.empty(largest, np.uint64), np.empty(kernels_query.TALLY, np.int32),
            )  # fmt: skip
            assert room[: 2 * used].tolist() == plain_table(keys.tolist(), list(range(size)), homes)
            assert_array_equal(room[2 * own.astype(np.int64)], keys)
            again = np.empty(size, np.uint32)
            names = np.array(
                [value for key, value in zip(room[: 2 * used : 2], room[1 : 2 * used : 2], strict=True) if key]
            )
            kernels_query.name_contexts(room[: 2 * used], names.astype(np.int32), 0, size, again)
            assert_array_equal(again, own)
