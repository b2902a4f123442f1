"""Numbering n-grams, and counting what stands before them.

A k-gram's number is its place among all k-grams in sorted order. Smoothing needs the number of its suffix, the
(k-1)-gram that is left when the first word is dropped, and Kneser-Ney's counts how many k-grams have the same suffix.

Looking them up would take two scattered looks at memory for each position of the text. But positions that begin with
the same word are sorted by what follows it. So go through all positions in sorted order, look at the word before each,
and tell the next of those that begin with that word: that is where the n-gram here is the suffix. (The same step turns
a Burrows-Wheeler transform back into its text: Burrows and Wheeler, 1994.) Each word has one place that is written to,
and most words of a text are frequent ones, so this hardly ever leaves the cache.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.native.jit import kernel
from foreword.native.memory import prefetch
from foreword.ngram.kernels_sort import COUNT, PARENT, WORD

_AHEAD = 16
"""Memory is asked for this many positions before it is needed."""


@kernel
def number_by_word_before(
    before: Ints, marks: Bytes, order: int, begins: Longs, first: int, last: int, latest: Longs,
    numbers: Ints, tables: Longs, counts: Ints,
) -> None:  # fmt: skip
    """Go through the positions in sorted order and tell the one before each the numbers of the n-grams here.

    before, marks: of ``pack_keys`` and ``list_ngrams``, in sorted order. begins: int64 (stop + 1,), where the positions
    of each word begin in that order; it is moved on. latest: int64 (order + 1,), -1 at first, scratch.
    numbers: int32 ((last - first) * (order - 2),), out, for positions from ``first`` up to ``last`` in sorted order:
    the numbers of the n-grams of 2 to ``order`` - 1 words that begin behind their first word.
    counts: int32, zero at first, how many different words stand before each n-gram; that of k-gram i is
    ``counts[tables[k] + i]``. Only words at those positions are counted.
    """
    each = order - 2
    end = len(before) - 1
    for place in range(len(before)):
        prefetch(begins, np.int64(before[min(place + 2 * _AHEAD, end)]))
        ahead = begins[before[min(place + _AHEAD, end)]]
        if first <= ahead < last:
            prefetch(numbers, (ahead - first) * each)
            prefetch(marks, ahead)
        lowest, highest = np.int64(marks[place] & 15), np.int64(marks[place] >> 4)
        for k in range(2, order):
            latest[k] += np.int64(lowest <= k) & np.int64(k <= highest)
        word = before[place]
        if word == 0:
            continue
        to = begins[word]
        begins[word] = to + 1
        if first <= to < last:
            new_from, longest = np.int64(marks[to] & 15), np.int64(marks[to] >> 4)
            for k in range(2, order):
                numbers[(to - first) * each + k - 2] = latest[k]
                counts[tables[k] + latest[k]] += np.int64(new_from <= k + 1) & np.int64(k < longest)


@kernel
def write_suffixes(
    marks: Bytes, order: int, latest: Longs, numbers: Ints, tables: Longs, suffixes: Ints
) -> None:  # fmt: skip
    """Take down the suffixes of n-grams of orders from three on, as their positions have been told them.

    marks, numbers: of positions that follow each other in sorted order; latest: int64 (order + 1,), the latest number
    of each order, -1 at first, kept from call to call. suffixes, out: that of k-gram i is ``suffixes[tables[k] + i]``.
    Every occurrence of an n-gram says the same, so the last one may have its way.
    """
    each = order - 2
    for place in range(len(marks)):
        lowest, highest = np.int64(marks[place] & 15), np.int64(marks[place] >> 4)
        for k in range(3, highest + 1):
            latest[k] += np.int64(lowest <= k)
            suffixes[tables[k] + latest[k]] = numbers[place * each + k - 3]


@kernel
def count_words_before(suffixes: Ints, counts: Ints) -> None:
    """How many different words stand before each word, one for each bigram; counts: int32 (words,), zero at first."""
    for place in range(len(suffixes)):
        counts[suffixes[place]] += 1


@kernel
def replace_counts(grams: Ints, counts: Ints) -> None:
    for place in range(len(counts)):
        grams[place, COUNT] = counts[place]


@kernel
def counts_of_counts(grams: Ints, tally: Longs) -> None:
    """How many have the count 1, 2, 3, 4: tally[1:5]."""
    for place in range(len(grams)):
        count = grams[place, COUNT]
        if 0 < count < 5:
            tally[count] += 1


@kernel
def first_extension(grams: Ints, parent: int) -> int:
    """Where the extensions of n-gram number ``parent`` begin, or would, among those of the next order."""
    low, high = 0, len(grams)
    while low < high:
        middle = (low + high) >> 1
        if grams[middle, PARENT] < parent:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def find_extension(grams: Ints, parent: int, word: int) -> int:
    """The number of an n-gram that is there."""
    low, high = first_extension(grams, parent), first_extension(grams, parent + 1)
    while low < high:
        middle = (low + high) >> 1
        if grams[middle, WORD] < word:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def list_extensions(grams: Ints, children: Longs) -> None:
    """children: int64 (n-grams below + 1,), out; n-gram g is extended by ``children[g]`` to ``children[g + 1]``."""
    parent = 0
    for place in range(len(grams)):
        while parent <= grams[place, PARENT]:
            children[parent] = place
            parent += 1
    while parent < len(children):
        children[parent] = len(grams)
        parent += 1


@kernel
def rank_by_first_place(text: Ints, ranks: Ints, end: int) -> int:
    """Number words in the order they first come, ``end`` before all; ranks: int32 (stop + 1,), -1 at first, out.

    Returns the word that came last. Words are those of the text: ``stop``, the largest, has no rank.
    """
    stop = len(ranks) - 1
    ranks[end] = 0
    seen = 1
    last = np.int64(end)
    for place in range(len(text)):
        word = np.int64(text[place])
        if ranks[word] < 0 and word != stop:
            ranks[word] = seen
            seen += 1
            last = word
    return last


@kernel
def last_in_suffix_order(text: Ints, ranks: Ints, word: int, order: int) -> int:
    """Where the n-gram ends that comes last when n-grams are sorted by their last word, then the one before, …

    Only those that end in ``word`` are looked at; a word's place in the sort is its rank. ``<s>`` ends an n-gram.
    """
    best = np.int64(-1)
    for place in range(len(text)):
        if text[place] != word:
            continue
        if best < 0:
            best = place
            continue
        for back in range(1, order):
            left, right = text[place - back], text[best - back]
            if left != right:
                if ranks[left] > ranks[right]:
                    best = place
                break
            if ranks[left] < 0:
                break
    return best
