from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foreword.text.block import Block
from foreword.tokens.pieces import WHOLE, WORDS
from foreword.tokens.strings import StringTable, empty_rows, hash_strings

Longs = NDArray[np.int64]

# Lengths at the edges of what a row holds in one, two or three words, and beyond.
some_strings = st.lists(st.binary(max_size=40) | st.sampled_from([b"x" * n for n in range(0, 60)]), max_size=60)


def packed(strings: list[bytes]) -> tuple[NDArray[np.uint8], Longs]:
    return np.frombuffer(b"".join(strings), np.uint8), np.cumsum([0, *map(len, strings)], dtype=np.int64)


def add(table: StringTable, strings: list[bytes]) -> list[int]:
    ones = np.ones(len(strings), np.int64)
    numbers: list[int] = table.add(*packed(strings), ones, np.arange(len(strings))).tolist()
    return numbers


def strings_in(table: StringTable) -> list[bytes]:
    arena, offsets = table.arena.tobytes(), table.offsets.tolist()
    return [arena[start:stop] for start, stop in itertools.pairwise(offsets)]


def test_a_new_table_holds_the_empty_string() -> None:
    table = StringTable()
    assert (table.size, strings_in(table), table.counts.tolist()) == (1, [b""], [0])
    assert add(table, [b""]) == [0]


@settings(deadline=None)
@given(some_strings)
def test_it_numbers_and_counts_as_a_dict_does(strings: list[bytes]) -> None:
    table = StringTable()
    expected: dict[bytes, int] = {b"": 0}
    numbers = [expected.setdefault(string, len(expected)) for string in strings]
    assert add(table, strings) == numbers
    assert strings_in(table) == list(expected)
    assert table.counts.tolist() == [strings.count(string) for string in expected]
    assert table.ids_of(*packed(strings)).tolist() == numbers


@settings(deadline=None)
@given(some_strings, some_strings)
def test_what_it_has_not_has_no_number(held: list[bytes], asked: list[bytes]) -> None:
    table = StringTable()
    add(table, held)
    found = table.ids_of(*packed(asked)).tolist()
    stored = strings_in(table)
    assert found == [stored.index(string) if string in stored else -1 for string in asked]
    assert strings_in(table) == stored


@settings(deadline=None)
@given(some_strings, some_strings)
def test_over_strings_that_lie_together_it_finds_the_same(held: list[bytes], asked: list[bytes]) -> None:
    table = StringTable.over(*packed(held))
    stored = [b"", *held]
    assert strings_in(table) == stored
    found = table.ids_of(*packed([*held, *asked])).tolist()
    assert found == [stored.index(string) if string in stored else -1 for string in [*held, *asked]]


def test_a_table_over_strings_can_grow() -> None:
    count = 3000
    held = [b"word%d" % number for number in range(count)]
    table = StringTable.over(*packed(held))
    assert add(table, [b"another%d" % number for number in range(count)]) == list(range(count + 1, 2 * count + 1))
    assert table.ids_of(*packed(held)).tolist() == list(range(1, count + 1))


def test_long_strings_that_differ_in_one_byte_are_told_apart() -> None:
    """Past the 24th byte a row holds only a hash, so that the text itself decides."""
    base = b"abcdefgh" * 8
    strings = [base[:place] + b"!" + base[place + 1 : length] for length in (25, 32, 33, 64) for place in range(length)]
    strings += [base[:length] for length in range(20, 65)]
    table = StringTable()
    numbers = add(table, strings)
    assert len(set(numbers)) == len(set(strings))
    assert add(table, strings) == numbers


def test_strings_of_zeros_differ_by_their_length() -> None:
    """What is missing in a row counts as zero, so these have the same words and differ in the tag alone."""
    strings = [b"\0" * length for length in range(1, 40)]
    table = StringTable()
    assert add(table, strings) == list(range(1, 40))
    assert table.ids_of(*packed([b"\0" * 40, b"", b"\0"])).tolist() == [-1, 0, 1]


def colliding(rows: int, wanted: int) -> list[bytes]:
    """Strings whose first row is the same in a table of so many rows."""
    strings = [f"{number:x}".encode() for number in range(rows * wanted * 2)]
    rows_of = hash_strings(*packed(strings)) % rows
    row = int(np.bincount(rows_of).argmax())
    return [string for string, place in zip(strings, rows_of.tolist(), strict=True) if place == row][:wanted]


def test_strings_that_want_the_same_row_all_find_one() -> None:
    table = StringTable()
    strings = colliding(len(table.slots) // 4, 60)
    assert len(strings) == 60
    numbers = add(table, strings)
    assert numbers == list(range(1, 61))
    assert table.ids_of(*packed(strings[::-1])).tolist() == numbers[::-1]
    assert table.ids_of(*packed([string + b"z" for string in strings])).tolist() == [-1] * 60


@pytest.mark.parametrize("count", [2046, 2047, 2048, 2049, 50_000])
def test_it_grows(count: int) -> None:
    table = StringTable()
    before = table.memory()
    strings = [f"string number {number}, long enough" if number % 3 else str(number) for number in range(count)]
    encoded = [string.encode() for string in strings]
    assert add(table, encoded) == list(range(1, count + 1))
    assert table.ids_of(*packed(encoded)).tolist() == list(range(1, count + 1))
    assert strings_in(table)[1:] == encoded
    assert len(table.slots) // 4 >= 2 * table.size
    assert table.memory() >= before
    table.clear()
    assert (table.size, table.memory()) == (1, before)
    assert table.ids_of(*packed(encoded[:3])).tolist() == [-1, -1, -1]


def test_one_string_longer_than_all_the_room() -> None:
    long = b"y" * 1_000_000
    table = StringTable()
    assert add(table, [b"a", long, b"b", long]) == [1, 2, 3, 2]
    assert strings_in(table)[2] == long
    by_count = StringTable()
    numbers = by_count.count(Block.from_texts(["a", "y" * 1_000_000]), WHOLE, out=np.empty(2_000_000, np.int32))
    assert numbers.tolist() == [1, 0, 2, 0]


def test_counts_and_first_places_add_up() -> None:
    table = StringTable()
    data, offsets = packed([b"a", b"b", b"a"])
    table.add(data, offsets, np.array([5, 1, 2]), np.array([40, 50, 30]))
    table.count(Block.from_texts(["b c"]), WORDS, base=20)
    assert strings_in(table) == [b"", b"a", b"b", b"c"]
    assert table.counts.tolist() == [1, 7, 2, 1]
    assert table.firsts.tolist()[1:] == [30, 50, 22]


def test_growing_in_the_middle_of_a_block_loses_nothing() -> None:
    words = [f"w{number}" for number in range(30_000)]
    text = " ".join(words + words[::-1])
    table = StringTable()
    numbers = table.count(Block.from_texts([text]), WORDS, out=np.empty(70_000, np.int32))
    there = list(range(1, 30_001))
    assert numbers.tolist() == [*there, *there[::-1], 0]
    assert table.counts.tolist() == [1, *[2] * 30_000]


def test_texts_at_the_end_of_the_buffer_are_read_byte_by_byte() -> None:
    """Eight bytes are read at a time, but never past the array."""
    for length in range(1, 40):
        words = ["q" * length, "r" * length]
        table = StringTable()
        table.count(Block.from_texts([words[0], words[1]]), WORDS)
        assert strings_in(table) == [b"", words[0].encode(), words[1].encode()]


def test_what_lies_outside_the_documents_is_not_read() -> None:
    data = np.frombuffer(b"junk one two junk three junk", np.uint8)
    block = Block(data, np.array([5, 18]), np.array([12, 23]))
    table = StringTable()
    table.count(block, WORDS)
    assert strings_in(table) == [b"", b"one", b"two", b"three"]
    assert table.counts[0] == 2


def test_empty_rows_are_empty() -> None:
    rows = empty_rows(16)
    assert len(rows) == 64
    assert not rows.any()


def test_the_hash_depends_on_the_string_alone() -> None:
    strings = [b"", b"a", b"a" * 24, b"a" * 25, b"b"]
    found = hash_strings(*packed(strings))
    again = hash_strings(*packed([b"zz", *strings]))[1:]
    assert found.tolist() == again.tolist()
    assert len(set(found.tolist())) == 5
    assert found.min() >= 0
    assert found.max() < 1 << 30
