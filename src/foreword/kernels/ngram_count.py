"""Counting n-grams of all orders by refining a sort.

All positions of the text, sorted by the word that stands there, are the unigrams: equal words lie together. Positions
sorted by k-gram become positions sorted by (k+1)-gram by stepping each one to the right and sorting every group by the
word it then stands on. Most groups are tiny, the more so the higher the order, so this is nearly linear, and no key
ever gets longer than one word.

A k-gram's number is its place in that order, so the extensions of a (k-1)-gram lie together, in the order of their
last words. Each k-gram also keeps the number of the (k-1)-gram that is left when its first word is dropped: its
suffix, which smoothing needs.

The text is one array with ``<s>`` before each document; ``<s>`` has the largest id, so k-grams that begin with it come
last.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foreword.kernels.jit import inlined, kernel
from foreword.kernels.memory import prefetch

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

_SMALL = 24
"""Groups up to this size are sorted by insertion."""

_AHEAD = 32
"""Positions in sorted order are scattered over the text; memory is asked for this many before they are needed."""


@kernel
def pad_documents(ids: NDArray[np.integer], offsets: Longs, start: int, text: Ints) -> None:
    """Write every document with ``start`` before it: text is int32 (tokens + documents,)."""
    write = 0
    for document in range(len(offsets) - 1):
        text[write] = start
        write += 1
        for place in range(offsets[document], offsets[document + 1]):
            text[write] = ids[place]
            write += 1


@kernel
def sort_by_word(text: Ints, begins: Longs, order: Ints) -> None:
    """Counting sort of all positions. begins: int64 (words + 2,), zero at first; out: where each word's lie."""
    for place in range(len(text)):
        begins[text[place] + 2] += 1
    for word in range(2, len(begins)):
        begins[word] += begins[word - 1]
    for place in range(len(text)):
        word = text[place]
        order[begins[word + 1]] = place
        begins[word + 1] += 1


@inlined
def _insertion_sort(keys: Longs, start: int, stop: int) -> None:
    for place in range(start + 1, stop):
        held = keys[place]
        at = place
        while at > start and keys[at - 1] > held:
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = held


@kernel
def _merge_sort(keys: Longs, spare: Longs, size: int) -> None:
    for start in range(0, size, _SMALL):
        _insertion_sort(keys, start, min(start + _SMALL, size))
    width = _SMALL
    while width < size:
        for start in range(0, size, 2 * width):
            middle, stop = min(start + width, size), min(start + 2 * width, size)
            left, right = start, middle
            for write in range(start, stop):
                if left < middle and (right >= stop or keys[left] <= keys[right]):
                    spare[write] = keys[left]
                    left += 1
                else:
                    spare[write] = keys[right]
                    right += 1
        for place in range(size):
            keys[place] = spare[place]
        width *= 2


@kernel
def _radix_sort(keys: Longs, spare: Longs, size: int, words: int, tally: Longs) -> None:
    """Sort by the word, the upper half of each key, eleven bits at a time; the lower halves rise already."""
    shift = 32
    while (words >> (shift - 32)) > 0:
        tally[:] = 0
        for place in range(size):
            tally[((keys[place] >> shift) & 2047) + 1] += 1
        for digit in range(1, 2049):
            tally[digit] += tally[digit - 1]
        for place in range(size):
            digit = (keys[place] >> shift) & 2047
            spare[tally[digit]] = keys[place]
            tally[digit] += 1
        for place in range(size):
            keys[place] = spare[place]
        shift += 11


@kernel
def refine(
    text: Ints, start_word: int,
    order: Ints, begins: Longs, suffix_of: Ints,
    new_order: Ints, new_number: Ints,
    words: Ints, parents: Ints, suffixes: Ints, counts: Ints, new_begins: Longs, children: Longs,
    keys: Longs, spare: Longs, tally: Longs,
) -> int:  # fmt: skip
    """From positions sorted by (k-1)-gram to positions sorted by k-gram; how many k-grams there are.

    order: int32 (positions,), begins: int64 ((k-1)-grams + 1,): positions of (k-1)-gram g are
    ``order[begins[g]:begins[g + 1]]``. suffix_of: the (k-1)-gram that ends at each position.
    Out, each with room for as many k-grams as there are positions: new_order, counts and new_begins (positions sorted
    by k-gram, how many each k-gram has and where they begin), new_number (the k-gram that ends at each position), words
    (its last word), parents (the (k-1)-gram before that), suffixes.
    children: ((k-1)-grams + 1,), the k-grams that extend g are numbered ``children[g]`` to ``children[g + 1]``.
    keys, spare: int64 (largest group,), tally: int64 (2049,), scratch.
    """
    size = 0
    written = 0
    length = len(text)
    last_listed = begins[len(begins) - 1] - 1
    for group in range(len(begins) - 1):
        children[group] = size
        first, last = begins[group], begins[group + 1]
        held = 0
        for listed in range(first, last):
            ahead = order[min(listed + _AHEAD, last_listed)] + 1
            prefetch(text, ahead)
            prefetch(suffix_of, ahead)
            prefetch(new_number, ahead)
            place = order[listed] + 1
            if place < length and text[place] != start_word:
                keys[held] = np.int64(text[place]) << 32 | np.int64(place)
                held += 1
        if held > 1:
            if held <= _SMALL:
                _insertion_sort(keys, 0, held)
            elif held <= 2048:
                _merge_sort(keys, spare, held)
            else:
                _radix_sort(keys, spare, held, start_word, tally)
        before = np.int64(-1)
        for listed in range(held):
            word = keys[listed] >> 32
            place = keys[listed] & 0xFFFFFFFF
            if word != before:
                before = word
                words[size] = word
                parents[size] = group
                new_begins[size] = written
                suffixes[size] = suffix_of[place]
                counts[size] = 0
                size += 1
            counts[size - 1] += 1
            new_order[written] = place
            new_number[place] = size - 1
            written += 1
    children[len(begins) - 1] = size
    new_begins[size] = written
    return size


@kernel
def count_left_extensions(suffixes: Ints, adjusted: Ints) -> None:
    """How many different words stand before each (k-1)-gram: one for each k-gram that ends in it."""
    for number in range(len(suffixes)):
        adjusted[suffixes[number]] += 1


@kernel
def counts_of_counts(counts: NDArray[np.integer], tally: Longs) -> None:
    """How many have the count 1, 2, 3, 4: tally[1:5]."""
    for number in range(len(counts)):
        if 0 < counts[number] < 5:
            tally[counts[number]] += 1


@kernel
def rank_by_first_place(ids: NDArray[np.integer], ranks: Ints, end: int) -> int:
    """Number words in the order they first come, ``end`` before all; ranks: int32 (words + 1,), -1 at first, out.

    Returns the word that came last.
    """
    ranks[end] = 0
    seen = 1
    last = np.int64(end)
    for place in range(len(ids)):
        word = np.int64(ids[place])
        if ranks[word] < 0:
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
