"""N-gram probabilities from counts, and the hash table that holds them.

The table is open addressing over rows of two 64-bit words: the key (context, last word) and the two logs of the
n-gram, its probability and its back-off weight, as float32. A context is where its own row stands, so every key fits
one word at any order and equality is exact. Contexts of one word are that word's id; rows are counted after those.
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

_FIRST = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_FREE = np.uint64(0)


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
def row_of(key: np.uint64, rows: int) -> int:
    """The first row to look at. Rows need not be a power of two: the hash's upper half is scaled to their number."""
    mixed = key * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _SECOND
    return np.int64(((mixed >> _HALF) * np.uint64(rows)) >> _HALF)


@inlined
def key_of(context: int, word: int, bits: int) -> np.uint64:
    return np.uint64((context << bits | word) + 1)


@inlined
def pack(probability: np.float32, backoff: np.float32, halves: Singles, words: Words) -> np.uint64:
    """Two float32 as one number; ``halves`` and ``words`` are one and the same eight bytes."""
    halves[0] = probability
    halves[1] = backoff
    return words[0]


@kernel
def fill(
    table: Words, parents: Ints, words: Ints, probabilities: Singles, backoffs: Singles,
    parent_contexts: Longs, contexts: Longs, bits: int, base: int, halves: Singles, packed: Words,
) -> None:  # fmt: skip
    """Enter one order's n-grams; ``contexts[i]``, out, is what n-gram i is called as a context."""
    rows = len(table) // 2
    count = len(words)
    for number in range(count):
        ahead = min(number + 32, count - 1)
        prefetch(table, 2 * row_of(key_of(parent_contexts[parents[ahead]], np.int64(words[ahead]), bits), rows))
        key = key_of(parent_contexts[parents[number]], np.int64(words[number]), bits)
        row = row_of(key, rows)
        while table[2 * row] != _FREE:
            row += 1
            if row == rows:
                row = 0
        table[2 * row] = key
        table[2 * row + 1] = pack(probabilities[number], backoffs[number], halves, packed)
        contexts[number] = base + row


@inlined
def find(table: Words, key: np.uint64, row: int) -> int:
    """The row of ``key``, from ``row`` on, or -1."""
    rows = len(table) // 2
    while table[2 * row] != key:
        if table[2 * row] == _FREE:
            return -1
        row += 1
        if row == rows:
            row = 0
    return row
