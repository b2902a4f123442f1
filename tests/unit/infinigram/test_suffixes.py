"""The suffix array, against sorting all suffixes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.infinigram import plain
from foreword.infinigram.chunks import BYTES_PER_TOKEN, ChunkedSort
from foreword.infinigram.suffixes import suffix_array

TEXTS = st.integers(1, 5).flatmap(lambda tokens: st.lists(st.integers(0, tokens - 1), max_size=40))


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.sampled_from([np.uint16, np.int32]))
def test_it_is_the_order_of_the_sorted_suffixes(text: list[int], dtype: Any) -> None:
    assert suffix_array(np.array(text, dtype), 5).tolist() == plain.suffix_array(text)


@pytest.mark.parametrize(
    "text",
    [[0] * 500, [0, 1] * 300, [1, 0] * 300, list(range(400)), list(range(400))[::-1], [0, 0, 1] * 100 + [0, 0]],
    ids=["equal", "01", "10", "rising", "falling", "period of three"],
)
def test_repetitive_texts_are_sorted(text: list[int]) -> None:
    assert suffix_array(np.array(text, np.int32), 400).tolist() == plain.suffix_array(text)


def test_several_levels_of_reduction_are_sorted() -> None:
    """A Fibonacci word of ten thousand tokens stays ambiguous for many levels."""
    one, two = [0], [0, 1]
    while len(two) < 10_000:
        one, two = two, two + one
    found = suffix_array(np.array(two, np.uint16), 2)
    text = bytes(two)
    assert all(text[a:] < text[b:] for a, b in zip(found[:-1:7].tolist(), found[1::7].tolist(), strict=False))
    assert sorted(found.tolist()) == list(range(len(two)))


@settings(max_examples=150, deadline=None)
@given(TEXTS.filter(bool), st.integers(1, 6), st.integers(1, 8), st.sampled_from([np.uint16, np.int32]))
def test_sorted_in_chunks_it_is_the_same(text: list[int], repeats: int, chunks: int, dtype: Any) -> None:
    repeated = np.array(text * repeats, dtype)
    memory = max(BYTES_PER_TOKEN, BYTES_PER_TOKEN * len(repeated) // chunks)
    with TemporaryDirectory() as folder:
        found = ChunkedSort(repeated, 5, memory, Path(folder, "work")).sorted()
        assert found.tolist() == suffix_array(repeated, 5).tolist()


def test_hints_of_frequent_tokens_change_nothing(tmp_path: Path) -> None:
    """Chunks of several thousand tokens, so that hints and the binary searches between them are used."""
    text = np.random.default_rng(0).integers(0, 3, 20_000).astype(np.uint16)
    text[5000:9000] = text[12_000:16_000]
    found = ChunkedSort(text, 3, BYTES_PER_TOKEN * 6000, tmp_path / "work").sorted()
    assert np.array_equal(found, suffix_array(text, 3))


def test_a_sort_that_was_killed_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = np.random.default_rng(1).integers(0, 4, 1000).astype(np.int32)
    memory, folder, done = BYTES_PER_TOKEN * 250, tmp_path / "work", list[int]()
    sort_chunk = ChunkedSort._sort_chunk

    def killed_at_the_third(self: ChunkedSort, chunk: int) -> None:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(chunk)
        sort_chunk(self, chunk)

    monkeypatch.setattr(ChunkedSort, "_sort_chunk", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        ChunkedSort(text, 4, memory, folder).sorted()
    monkeypatch.undo()
    assert ChunkedSort(text, 4, memory, folder).left == 2
    assert np.array_equal(ChunkedSort(text, 4, memory, folder).sorted(), suffix_array(text, 4))
    text[7] += 1 if text[7] < 3 else -1
    assert ChunkedSort(text, 4, memory, folder).left == 4, "of another text nothing is taken over"
