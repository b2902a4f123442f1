"""N-gram probabilities from counts, and the hash tables that hold them.

Each order has a table of rows of two 64-bit words: the key, made of the context and the last word, and the two logs of
the n-gram, its probability and its back-off weight, as float32. A context is where its own row stands, so every key
fits one word at any order. Contexts of one word are that word's id; rows are counted after those.

What is stored is not the key but the key mixed by a bijection, so nothing is lost, and the mixed key's upper half says
where to look first. Rows hold mixed keys in rising order, apart from gaps: a search that meets a larger one has failed
and stops, which makes failures, one for nearly every word of a text, as cheap as finds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foreword.kernels.jit import inlined, kernel
from foreword.kernels.memory import prefetch

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

FIRST = np.uint64(0x9E3779B97F4A7C15)
SECOND = np.uint64(0xD6E8FEB86659FD93)
HALF = np.uint64(32)
_FREE = np.uint64(0)

_BUCKETS = 1 << 11
_BUCKET_SHIFT = np.uint64(64 - 11)


@kernel
def discounted(
    children: Longs, counts: Ints, raw: Ints, suffixes: Ints, lower: Floats,
    discounts: Floats, per_type: float, extra: float, prune: int, interpolated: bool,
    probabilities: Floats, backoffs: Floats,
) -> None:  # fmt: skip
    """One order's probabilities, given those of the order below.

        p(w | c) = (n(c w) - D(n)) / N(c) + b(c) p(w | c without its first word)

    N(c) is the sum of counts, ``per_type`` for each different word, and ``extra``; b(c) is what is left over. N-grams
    seen at most ``prune`` times give all they have to b(c). With ``interpolated`` false the last term is left out.
    """
    for context in range(len(children) - 1):
        first, last = children[context], children[context + 1]
        if first == last:
            backoffs[context] = 1.0
            continue
        total = extra + per_type * (last - first)
        left = total
        for number in range(first, last):
            count = counts[number]
            total += count
            left += count if raw[number] <= prune else discounts[min(count, 3)]
        weight = left / total
        backoffs[context] = weight
        for number in range(first, last):
            prefetch(lower, suffixes[min(number + 32, len(suffixes) - 1)])
            count = counts[number]
            share = (count - discounts[min(count, 3)]) / total
            probabilities[number] = share + weight * lower[suffixes[number]] if interpolated else share


@inlined
def mixed_key(context: int, word: int, bits: int) -> np.uint64:
    """The key of (context, word), mixed; never zero, which marks a free row."""
    mixed = np.uint64((context << bits | word) + 1) * FIRST
    return (mixed ^ (mixed >> HALF)) * SECOND


@inlined
def home_of(mixed: np.uint64, homes: int) -> int:
    """The first row to look at: the mixed key's upper half, scaled to the number of homes."""
    return np.int64(((mixed >> HALF) * np.uint64(homes)) >> HALF)


@inlined
def find(table: Words, first: int, homes: int, mixed: np.uint64) -> int:
    """The row of a key in the table that begins at row ``first``, or -1. The table's last row is free."""
    row = first + home_of(mixed, homes)
    held = table[2 * row]
    while held < mixed and held != _FREE:
        row += 1
        held = table[2 * row]
    return row if held == mixed else -1


@inlined
def _insert(table: Words, row: int, key: np.uint64, number: np.uint64) -> None:
    """Put a key in from ``row`` on so that keys go on rising; larger ones move up."""
    while table[2 * row] != _FREE and table[2 * row] < key:
        row += 1
    while table[2 * row] != _FREE:
        held, held_number = table[2 * row], table[2 * row + 1]
        table[2 * row], table[2 * row + 1] = key, number
        key, number = held, held_number
        row += 1
    table[2 * row], table[2 * row + 1] = key, number


@kernel
def fill(
    table: Words, homes: int, parents: Ints, words: Ints, logs: NDArray[np.uint32], weights: NDArray[np.uint32],
    parent_contexts: Longs, contexts: Longs, bits: int, base: int,
    keys: Words, numbers: Ints, begins: Longs,
) -> int:  # fmt: skip
    """Make one order's table, all free at first; how many rows of it are in use, up to the last one.

    logs, weights: float32 seen as uint32. contexts[i], out: what n-gram i is called as a context, ``base`` + its row.
    keys, numbers: (n-grams,), begins: int64 (_BUCKETS + 1,), scratch. N-grams are first spread over buckets by the top
    bits of their keys, so that the rows they go to next lie together and stay in the cache.
    """
    count = len(words)
    begins[:] = 0
    for number in range(count):
        mixed = mixed_key(parent_contexts[parents[number]], np.int64(words[number]), bits)
        begins[np.int64(mixed >> _BUCKET_SHIFT) + 1] += 1
    for bucket in range(1, len(begins)):
        begins[bucket] += begins[bucket - 1]
    for number in range(count):
        mixed = mixed_key(parent_contexts[parents[number]], np.int64(words[number]), bits)
        bucket = np.int64(mixed >> _BUCKET_SHIFT)
        keys[begins[bucket]] = mixed
        numbers[begins[bucket]] = number
        begins[bucket] += 1
    for place in range(count):
        _insert(table, home_of(keys[place], homes), keys[place], np.uint64(numbers[place]))
    used = 0
    for row in range(len(table) // 2):
        ahead = min(row + 24, len(table) // 2 - 1)
        prefetch(logs, np.int64(table[2 * ahead + 1]))
        prefetch(weights, np.int64(table[2 * ahead + 1]))
        if table[2 * row] != _FREE:
            number = np.int64(table[2 * row + 1])
            table[2 * row + 1] = np.uint64(logs[number]) | (np.uint64(weights[number]) << HALF)
            contexts[number] = base + row
            used = row + 1
    return used
