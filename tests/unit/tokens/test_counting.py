from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.text.block import Block, blocks_of
from foreword.tokens import counting
from foreword.tokens.counting import Counted, count_pieces_of, merge_tables
from foreword.tokens.pieces import GPT2, WORDS
from foreword.tokens.strings import StringTable

TINY = 1
"""A memory limit that no table keeps to: everything is spilt after every block."""

some_texts = st.lists(st.text(st.sampled_from("abcé漢 \n") | st.characters(exclude_categories=["Cs"]), max_size=30))


def many_texts() -> list[str]:
    """More distinct words than one table begins with, so that it grows, and some longer than its rows hold."""
    rng = np.random.default_rng(3)
    words = [f"w{number}" * (1 + number % 7) for number in range(6000)]
    return [" ".join(rng.choice(words, 40).tolist()) for _ in range(500)]


def as_dict(counted: Counted) -> dict[str, tuple[int, int]]:
    """Count and first place of every string."""
    blob, ends = counted.data.tobytes(), counted.offsets.tolist()
    strings = [blob[start:stop].decode() for start, stop in itertools.pairwise(ends)]
    return dict(zip(strings, zip(counted.counts.tolist(), counted.firsts.tolist(), strict=True), strict=True))


def test_the_empty_string_counts_documents() -> None:
    counted = count_pieces_of(blocks_of(["a b", "", "b"]), WORDS, threads=1)
    assert as_dict(counted) == {"": (3, 0), "a": (1, 0), "b": (2, 2)}
    assert len(counted) == 3


@settings(deadline=None)
@given(some_texts)
def test_it_is_a_counter_over_str_split(texts: list[str]) -> None:
    counted = count_pieces_of(blocks_of(texts), WORDS, threads=1)
    found = {word: count for word, (count, _) in as_dict(counted).items() if word}
    assert found == Counter(word for text in texts for word in text.split())
    assert counted.counts[0] == len(texts)


@pytest.mark.parametrize("pattern", [WORDS, GPT2])
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("memory", [None, TINY, 1 << 20])
def test_threads_blocks_and_spilling_change_nothing(pattern: int, threads: int, memory: int | None) -> None:
    texts = many_texts()
    once = as_dict(count_pieces_of(blocks_of(texts), pattern, threads=1))
    assert len(once) > 4000
    again = as_dict(count_pieces_of(blocks_of(texts, 2000), pattern, threads=threads, memory=memory))
    assert again == once


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_blocks_may_come_in_any_order(order: tuple[int, ...]) -> None:
    """As they do where a thread is held up between taking a block and taking a table."""
    texts = ["b a", "a c b", "c d a"]
    table = StringTable()
    ids = {
        n: table.count(Block.from_texts([texts[n]]), WORDS, base=10 * n, out=np.empty(9, np.int32)).tolist()
        for n in order
    }
    once = StringTable()
    for n, text in enumerate(texts):
        once.count(Block.from_texts([text]), WORDS, base=10 * n)
    counted = Counted.of(table)
    assert as_dict(counted) == as_dict(Counted.of(once))
    names = list(as_dict(counted))
    assert [[names[id] for id in ids[n]] for n in range(3)] == [[*text.split(), ""] for text in texts]


def test_a_limit_spills_and_the_files_are_closed() -> None:
    with counting.Counter(WORDS, 1, TINY) as counter:
        counter.count((0, Block.from_texts(["a b a"])))
        assert len(counter.files) == counting.PARTS
        counter.count((6, Block.from_texts(["b c"])))
        assert {word: count for word, (count, _) in as_dict(counter.counted()).items()} == {
            "": 2,
            "a": 2,
            "b": 2,
            "c": 1,
        }
        counter.count((10, Block.from_texts(["c"])))  # and it can go on
        assert as_dict(counter.counted())["c"] == (2, 8)
        files = counter.files
    assert all(file.closed for file in files)


def test_counting_can_pause_and_go_on() -> None:
    texts = many_texts()[:100]
    seen: list[tuple[int, dict[str, tuple[int, int]]]] = []
    whole = count_pieces_of(
        blocks_of(texts, 500), WORDS, threads=2, due=lambda: True,
        pause=lambda done, counted: seen.append((done, as_dict(counted))),
    )  # fmt: skip
    done, half = seen[len(seen) // 2]
    assert done > 1
    rest = list(blocks_of(texts, 500))[done:]
    assert half != as_dict(whole)
    start = _counted(half)
    resumed = count_pieces_of(rest, WORDS, threads=2, start=start)
    assert {word: count for word, (count, _) in as_dict(resumed).items()} == {
        word: count for word, (count, _) in as_dict(whole).items()
    }


def _counted(held: dict[str, tuple[int, int]]) -> Counted:
    spellings = [word.encode() for word in held]
    offsets = np.cumsum([0, *map(len, spellings)], dtype=np.int64)
    counts, firsts = (np.array(column, np.int64) for column in zip(*held.values(), strict=True))
    return Counted(np.frombuffer(b"".join(spellings), np.uint8), offsets, counts, firsts)


def test_an_error_in_the_text_comes_through() -> None:
    def broken() -> Iterator[Block]:
        yield Block.from_texts(["a"])
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        count_pieces_of(broken(), WORDS, threads=2)


def test_words_are_found_by_their_spelling() -> None:
    counted = count_pieces_of(blocks_of(["größe a b ab <unk>"]), WORDS, threads=1)
    assert counted.find(["ab", "größe", "ba", "<unk>", "zz", ""]).tolist() == [4, 1, -1, 5, -1, 0]


def test_strings_are_gathered_after_others() -> None:
    counted = count_pieces_of(blocks_of(["x yy zzz"]), WORDS, threads=1)
    data, offsets = counted.gather(np.array([3, 1]), ["<é>"])
    assert data.tobytes().decode() == "<é>zzzx"
    assert offsets.tolist() == [0, 4, 7, 8]
    data, offsets = counted.gather(np.array([], np.int64))
    assert (data.tolist(), offsets.tolist()) == ([], [0])


@given(st.lists(st.integers(1, 200_000), min_size=1, max_size=30))
def test_by_frequency_is_a_stable_sort(counts: list[int]) -> None:
    n = len(counts)
    firsts = np.arange(n)[::-1].copy()  # the last number came first
    counted = Counted(np.zeros(n, np.uint8), np.arange(n + 1), np.array(counts, np.int64), firsts)
    expected = sorted(range(n), key=lambda number: (-counts[number], firsts[number]))
    assert counted.by_frequency(np.arange(n)).tolist() == expected


@pytest.mark.parametrize(
    "change",
    [
        {"data": np.zeros(3, np.int8)},
        {"counts": np.zeros(2, np.int32)},
        {"counts": np.array([1, -1])},
        {"counts": np.array([], np.int64)},
        {"firsts": np.zeros(3, np.int64)},
        {"offsets": np.array([0, 1])},
        {"offsets": np.array([1, 0, 3])},
        {"offsets": np.array([0, 3, 2])},
        {"offsets": np.array([0, 0, 4])},
    ],
)
def test_counts_from_a_file_must_fit_together(change: dict[str, np.ndarray]) -> None:
    good = {
        "data": np.frombuffer(b"abc", np.uint8),
        "offsets": np.array([0, 0, 3]),
        "counts": np.array([1, 2]),
        "firsts": np.array([0, 0]),
    }
    Counted(**good).check()
    with pytest.raises(ValueError, match="wrong"):
        Counted(**(good | change)).check()


def test_tables_are_added_with_new_numbers() -> None:
    tables = [StringTable(), StringTable()]
    tables[0].count(Block.from_texts(["a b"]), WORDS)
    tables[1].count(Block.from_texts(["b c b"]), WORDS, base=10)
    counted, places = merge_tables(tables)
    assert as_dict(counted) == {"": (2, 0), "a": (1, 0), "b": (3, 2), "c": (1, 12)}
    assert [place.tolist() for place in places] == [[0, 1, 2], [0, 2, 3]]
