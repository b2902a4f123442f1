"""N-grams counted in parts and put together are those of the whole text, to the last bit."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from foreword.errors import SettingError
from foreword.ngram import plain
from foreword.ngram.counts import Tabulated, tabulate
from foreword.ngram.merge import (
    Windows,
    first_places,
    join_tables,
    last_in_kenlms_sort,
    merge_windows,
    tables_of,
    windows_of,
)
from foreword.ngram.model import NgramLM
from foreword.storage.scratch import Scratch
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer


def tabulate_in_parts(corpus: Corpus, order: int, parts: int) -> Tabulated:
    """Count a corpus in parts and merge them, as a cluster does, in one process."""
    size = len(corpus.vocab)
    windows = merge_windows([windows_of(corpus.shard(index, parts), order) for index in range(parts)], order)
    cuts = np.searchsorted(windows.rows[:, 0], np.linspace(0, size + 2, parts + 1).astype(np.int64))
    ranges = [tables_of(windows[int(a) : int(b)], size) for a, b in pairwise(cuts)]
    totals = [sum(len(part.tables[k]) for part in ranges) for k in range(order - 1)]
    unigrams, orders = join_tables(ranges, totals, size)
    last = last_in_kenlms_sort(orders, first_places(corpus.ids), corpus.vocab.end, size) if orders else []
    return Tabulated(corpus.vocab, unigrams, orders, last)


def made_up(seed: int, documents: int = 60, words: int = 12) -> Corpus:
    """Few words, so that n-grams come again; some documents are empty, some shorter than any window."""
    rng = random.Random(seed)
    texts = [
        " ".join(f"w{int(rng.expovariate(0.5)) % words}" for _ in range(rng.randrange(9))) for _ in range(documents)
    ]
    tokenizer = WordTokenizer(min_count=rng.choice([1, 2])).fit(texts)
    return Corpus.from_texts(texts, tokenizer)


def same(one: Windows, other: Windows) -> bool:
    return np.array_equal(one.rows, other.rows) and np.array_equal(one.counts, other.counts)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_windows_are_those_of_the_plain_road_and_add_up(order: int, seed: int) -> None:
    corpus = made_up(seed)
    whole = plain.windows_of(corpus, order)
    assert same(windows_of(corpus, order), whole)
    assert whole.counts.sum() == len(corpus.ids) + len(corpus)
    for parts in (1, 2, 3, 7, 60):
        pieces = [windows_of(corpus.shard(place, parts), order) for place in range(parts)]
        assert same(merge_windows(pieces, order), whole)
    assert len(merge_windows([], order)) == 0


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_tables_are_those_of_the_whole_text(order: int, parts: int) -> None:
    for seed in range(4):
        corpus = made_up(seed)
        wanted, found = tabulate(corpus, order, Scratch()), tabulate_in_parts(corpus, order, parts)
        assert found.unigrams.tolist() == wanted.unigrams.tolist()
        assert found.last == wanted.last
        for mine, theirs in zip(found.orders, wanted.orders, strict=True):
            assert mine.grams[:, :3].tolist() == theirs.grams[:, :3].tolist()
            assert mine.suffixes.tolist() == theirs.suffixes.tolist()
            assert mine.continuations.tolist() == theirs.continuations.tolist()
            assert mine.below == theirs.below


@pytest.mark.parametrize("smoothing", ["modified-kneser-ney", "witten-bell", "stupid-backoff"])
def test_a_model_of_parts_is_the_model(smoothing: str) -> None:
    corpus = made_up(5, documents=300)
    wanted = NgramLM(4, smoothing, prune=(0, 0, 1)).fit(corpus).to_parts()
    found = NgramLM(4, smoothing, prune=(0, 0, 1)).fit_tabulated(tabulate_in_parts(corpus, 4, 3)).to_parts()
    assert found.settings == wanted.settings
    assert {name: each.tobytes() for name, each in found.arrays.items()} == {
        name: each.tobytes() for name, each in wanted.arrays.items()
    }
    with pytest.raises(SettingError, match="counts of order 4 for a model of order 3"):
        NgramLM(3).fit_tabulated(tabulate_in_parts(corpus, 4, 2))


def test_too_many_of_one_ngram_are_told() -> None:
    rows = np.array([[1, 2, 0], [1, 2, 3]], np.int32)
    with pytest.raises(Exception, match="two thousand million times"):
        tables_of(Windows(rows, np.array([1 << 30, 1 << 30], np.int64)), 3)
