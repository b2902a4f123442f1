"""Merging the n-grams of parts of a text, as a cluster counts them, into the tables that ``counts.py`` lists from all
of it.

A *window* begins at every position of a text: the word there and the ``order`` - 1 after it, fewer where the document
ends. All counts of n-grams follow from the counts of windows: a k-gram was seen as often as windows begin with it. So a
part of a text gives its distinct windows, sorted, with their counts; two such lists are merged like any sorted lists,
with the counts of equal windows added; and since windows with different first words share no n-gram, the lists of each
range of first words can be merged independently. Then one pass over the sorted windows lists the n-grams of all orders.

Shapes: a window is a row of ``order`` numbers, a word's id + 1, ``words`` + 1 for ``<s>``, and 0 after the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Ints, Longs
from foreword.errors import ForewordError
from foreword.ngram.counts import Order, count_ngrams
from foreword.ngram.kernels_count import PARENT, WORD, list_extensions
from foreword.ngram.kernels_merge import fill_tables, find_suffixes, list_windows, merge_rows, table_sizes
from foreword.storage.scratch import Scratch
from foreword.tokens.corpus import Corpus

MOST = (1 << 31) - 1
"""The largest count, and the largest number of n-grams of one order, that a table can hold."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The distinct windows of a text. rows: int32 (n, order), sorted; counts: int64 (n,)."""

    rows: Ints
    counts: Longs

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: slice) -> Windows:
        return Windows(self.rows[which], self.counts[which])

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.rows.nbytes + self.counts.nbytes


@dataclass(frozen=True, slots=True)
class RangeTables:
    """The n-grams of a range of first words.

    unigrams: int64 (words + 1,), how often each word was seen, ``<s>`` last; zero outside the range.
    tables: of each order from two on, int32 (n, 4) as in ``counts.Order``; parents are numbered within the range,
    except those of bigrams, which are words.
    """

    unigrams: Longs
    tables: list[Ints]


# From text to windows


def windows_of(corpus: Corpus, order: int) -> Windows:
    """Return the distinct windows of a text.

    They follow from its sorted n-grams: the count of a window that ends where an n-gram does is what is left of that
    n-gram's count after those of its extensions are subtracted.
    """
    counts, orders = count_ngrams(corpus, order)
    unigrams = np.append(counts, len(corpus))
    begins = np.cumsum([0, *map(len, orders)])
    grams = np.concatenate([np.empty((0, 4), np.int32), *(each.grams for each in orders)])
    room = len(corpus.ids) + len(corpus)
    rows, found = np.empty((room, order), np.int32), np.empty(room, np.int64)
    nodes, seen = np.empty(order + 1, np.int64), np.empty(order + 1, np.int64)
    size = list_windows(unigrams, grams, begins, begins.copy(), nodes, seen, np.empty(order, np.int32), rows, found)
    return Windows(rows[:size].copy(), found[:size].copy())


def merge_windows(parts: Sequence[Windows], order: int) -> Windows:
    """Merge lists two by two, so that each window is moved only as often as the number of lists can be halved."""
    left = [part for part in parts if len(part)]
    if not left:
        return Windows(np.empty((0, order), np.int32), np.empty(0, np.int64))
    while len(left) > 1:
        pairs = [_merged(*left[index : index + 2]) for index in range(0, len(left) - 1, 2)]
        left = pairs + left[2 * len(pairs) :]
    return left[0]


def _merged(one: Windows, other: Windows) -> Windows:
    rows = np.empty((len(one) + len(other), one.rows.shape[1]), np.int32)
    counts = np.empty(len(rows), np.int64)
    size = merge_rows(one.rows, one.counts, other.rows, other.counts, rows, counts)
    return Windows(rows[:size], counts[:size])


# From windows to tables


def tables_of(windows: Windows, vocab_size: int) -> RangeTables:
    """Return the n-grams and words of sorted windows, of a text or of a range of first words."""
    order = windows.rows.shape[1]
    sizes = np.zeros(order + 1, np.int64)
    table_sizes(windows.rows, sizes)
    begins = np.append(0, np.cumsum(sizes[2:]))
    grams = np.zeros((int(begins[-1]), 4), np.int32)
    unigrams = np.zeros(vocab_size + 1, np.int64)
    latest = np.full(order + 1, -1, np.int64)
    if not fill_tables(windows.rows, windows.counts, begins, latest, unigrams, grams, MOST):
        raise ForewordError("an n-gram was seen more than two thousand million times: leave out what is repeated")
    return RangeTables(unigrams, [grams[begins[k] : begins[k + 1]] for k in range(order - 1)])


def join_tables(
    parts: Iterable[RangeTables], sizes: Sequence[int], vocab_size: int, scratch: Scratch | None = None
) -> tuple[Longs, list[Order]]:
    """Join ranges of first words, in order, into the tables of the whole text: word counts, and n-grams from two on.

    parts: consumed one after another, so that no two need be in memory at once; sizes: how many n-grams of each order
    from two on they have together.
    """
    if max(sizes, default=0) > MOST:
        raise ForewordError("more than two thousand million n-grams of one order: take a lower one, or fewer words")
    scratch = scratch or Scratch()
    unigrams, tables = np.zeros(vocab_size + 1, np.int64), [scratch.empty((size, 4), np.int32) for size in sizes]
    filled = [0] * len(tables)
    for part in parts:
        unigrams += part.unigrams
        before = filled.copy()
        for k, grams in enumerate(part.tables):
            here = tables[k][before[k] : before[k] + len(grams)]
            here[:] = grams
            if k:  # parents have been numbered within their range
                here[:, PARENT] += before[k - 1]
            filled[k] += len(grams)
    return unigrams[:vocab_size], _linked(tables, vocab_size, scratch)


def _linked(tables: list[Ints], vocab_size: int, scratch: Scratch) -> list[Order]:
    """Add to each table its suffixes and continuation counts: one for each n-gram that it is the suffix of."""
    suffixes: list[Ints] = []
    for index, grams in enumerate(tables):
        found = scratch.empty(len(grams), np.int32)
        found[:] = grams[:, WORD]
        if index:
            shorter = tables[index - 1]
            below = len(tables[index - 2]) if index > 1 else vocab_size + 1
            children = np.empty(below + 1, np.int64)
            list_extensions(shorter, children)
            find_suffixes(grams, suffixes[-1], shorter, children, found)
        suffixes.append(found)
    sizes = [vocab_size + 1, *map(len, tables)]
    before = [
        np.bincount(longer, minlength=len(grams)).astype(np.int32)
        for grams, longer in zip(tables, suffixes[1:], strict=False)
    ]
    none = np.empty(0, np.int32)
    return [
        Order(grams, found, continuations, below)
        for grams, found, continuations, below in zip(tables, suffixes, [*before, none], sizes, strict=False)
    ]


# What KenLM's sort has last


def first_places(ids: NDArray[np.integer]) -> Longs:
    """Return the distinct ids of a text in the order of their first occurrence."""
    found, places = np.unique(ids, return_index=True)
    return np.asarray(found, np.int64)[np.argsort(places)]


def last_in_kenlms_sort(orders: Sequence[Order], in_order: Longs, end: int, vocab_size: int) -> list[int]:
    """Find what ``Text.last_in_kenlms_sort`` does from the tables alone. in_order: the result of ``first_places``."""
    ranks = np.full(vocab_size + 1, -1, np.int64)  # <s>, the last, has none
    rest = in_order[in_order != end]
    ranks[end], ranks[rest] = 0, np.arange(1, len(rest) + 1)
    word = int(rest[-1]) if len(rest) else end
    if len(orders) == 1:
        return [word]
    ending = [
        words.tolist()
        for length in range(2, len(orders) + 1)
        for words in _spelled(orders, length, word)
        if length == len(orders) or words[0] == vocab_size
    ]
    return max(ending, key=lambda words: [int(ranks[each]) for each in reversed(words[:-1])])


def _spelled(orders: Sequence[Order], length: int, word: int) -> Longs:
    """Return the n-grams of ``length`` words that end in ``word``: (n, length)."""
    numbers: NDArray[np.integer] = np.flatnonzero(orders[length - 2].words == word)
    words = np.empty((len(numbers), length), np.int64)
    for index in range(length - 1, 0, -1):
        table = orders[index - 1]
        words[:, index], numbers = table.words[numbers], table.parents[numbers]
    words[:, 0] = numbers
    return words
