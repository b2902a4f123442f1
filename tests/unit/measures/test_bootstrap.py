"""Intervals of perplexities: they cover the truth as often as they say, and documents are what is drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from foreword.measures.bootstrap import (
    FEWEST_DOCUMENTS,
    SEGMENT,
    perplexity_interval,
    ratio_interval,
    resampling_units,
)


def offsets_of(documents: int, length: int) -> np.ndarray:
    return np.arange(documents + 1) * length


def test_the_interval_covers_the_true_perplexity_about_95_times_in_100() -> None:
    random = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        difficulty = np.repeat(random.normal(4.0, 0.5, 100), 20)  # what the words of one document share
        logs = -difficulty + random.normal(0, 1, 2000)
        low, high = perplexity_interval(logs, offsets_of(100, 20), seed=trial)
        covered += low < math.exp(4.0) < high
    assert 0.9 < covered / 200 < 0.99


def test_documents_are_drawn_and_not_words() -> None:
    random = np.random.default_rng(1)
    logs = -np.repeat(random.normal(4.0, 0.5, 200), 50)
    by_document = perplexity_interval(logs, offsets_of(200, 50))
    by_word = perplexity_interval(logs, offsets_of(10_000, 1))
    assert by_document[1] - by_document[0] > 4 * (by_word[1] - by_word[0])


def test_a_long_document_counts_for_its_words() -> None:
    logs = np.concatenate([np.full(900, -1.0), np.full(100, -5.0)])
    offsets = np.concatenate([np.arange(0, 900, 30), np.arange(900, 1001, 1)])
    low, high = perplexity_interval(logs, offsets)
    assert low < math.exp(-logs.mean()) < high


def test_two_models_are_compared_on_the_same_draws() -> None:
    random = np.random.default_rng(2)
    logs = -np.repeat(random.normal(4.0, 1.0, 100), 20)
    worse = logs - 0.1 + random.normal(0, 0.01, 2000)
    low, high = ratio_interval(logs, worse, offsets_of(100, 20))
    measured = math.exp(float((logs - worse).mean()))
    assert low < measured < high < low + 0.01  # far narrower than either perplexity's own interval
    assert ratio_interval(logs, logs, offsets_of(100, 20)) == (1.0, 1.0)


def test_a_text_of_few_documents_is_cut_into_segments() -> None:
    assert resampling_units(np.array([0, 120])).tolist() == [0, SEGMENT, 2 * SEGMENT, 120]
    many = offsets_of(FEWEST_DOCUMENTS, 3)
    assert resampling_units(many) is many
    low, high = perplexity_interval(-np.random.default_rng(0).random(500), np.array([0, 500]))
    assert low < high


def test_no_probability_has_no_interval() -> None:
    logs = np.array([-1.0, -math.inf, -2.0])
    assert perplexity_interval(logs, np.array([0, 3])) == (math.inf, math.inf)
    assert ratio_interval(logs, logs, np.array([0, 3])) == (math.inf, math.inf)
    assert perplexity_interval(np.empty(0), np.array([0])) == (math.inf, math.inf)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_gives_the_same_interval(seed: int) -> None:
    logs = -np.random.default_rng(3).random(600)
    assert perplexity_interval(logs, offsets_of(60, 10), seed=seed) == perplexity_interval(
        logs, offsets_of(60, 10), seed=seed
    )
