"""Word error rate: counted by hand, against the textbook recursion, and its interval."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from foreword.errors import InputError
from foreword.measures.recognition import edits, fewer_errors, word_errors


def test_counted_by_hand() -> None:
    assert edits(["one", "two", "three"], ["one", "two", "three"]) == (0, 0, 0)
    assert edits(["one", "too", "three"], ["one", "two", "three"]) == (1, 0, 0)
    assert edits(["one", "three"], ["one", "two", "three"]) == (0, 1, 0)
    assert edits(["one", "one", "two", "three"], ["one", "two", "three"]) == (0, 0, 1)
    assert edits([], ["a", "b"]) == (0, 2, 0)
    assert edits(["a", "b"], []) == (0, 0, 2)


def test_the_sum_is_the_edit_distance() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        said, heard = (tuple(random.integers(0, 4, random.integers(0, 7)).tolist()) for _ in range(2))

        @lru_cache(None)
        def distance(i: int, j: int, a: tuple[int, ...] = heard, b: tuple[int, ...] = said) -> int:
            if not i or not j:
                return i + j
            other = distance(i - 1, j - 1, a, b) + (a[i - 1] != b[j - 1])
            return min(other, distance(i - 1, j, a, b) + 1, distance(i, j - 1, a, b) + 1)

        substituted, deleted, inserted = edits(heard, said)
        assert substituted + deleted + inserted == distance(len(heard), len(said))
        assert len(said) - deleted + inserted == len(heard)


def test_rate_and_interval() -> None:
    said = [["a", "b"]] * 50
    heard = [["a", "b"]] * 40 + [["a", "c"]] * 10
    found = word_errors(heard, said)
    assert found.rate == pytest.approx(0.1)
    assert (found.substitutions, found.deletions, found.insertions) == (10, 0, 0)
    assert (found.words, found.texts, found.right) == (100, 50, 40)
    # Each text has 0 or 1 error in 2 words: a standard error of √(0.2 · 0.8 / 50) / 2 = 0.028.
    assert found.low == pytest.approx(0.1 - 1.96 * 0.028, abs=0.015)
    assert found.high == pytest.approx(0.1 + 1.96 * 0.028, abs=0.015)
    assert found.to_json()["wer"] == found.rate
    assert found.to_json()["accuracy"] == 0.8


def test_a_difference_has_a_narrower_interval_than_its_rates() -> None:
    said = [["a", "b"]] * 100
    other = [["a", "b"]] * 60 + [["c", "c"]] * 40  # the same hard texts, of which the first mends five words
    heard = [["a", "b"]] * 60 + [["a", "c"]] * 5 + [["c", "c"]] * 35
    less, low, high = fewer_errors(heard, other, said)
    assert less == pytest.approx(word_errors(other, said).rate - word_errors(heard, said).rate) == pytest.approx(0.025)
    # Of 100 texts five differ by one word of two: a standard error of √(0.05 · 0.95 / 100) / 2 = 0.011.
    assert (low, high) == pytest.approx((0.025 - 1.96 * 0.011, 0.025 + 1.96 * 0.011), abs=0.006)
    assert fewer_errors(other, other, said) == (0.0, 0.0, 0.0)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="2 texts recognised of 1"):
        word_errors([["a"], ["b"]], [["a"]])
    with pytest.raises(InputError, match="at least one word"):
        word_errors([[]], [[]])
