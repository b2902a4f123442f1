"""Hash functions that all tables share, and the table of integer keys.

The package has two hash tables, both with open addressing and linear probing: byte strings in ``tokens/strings.py`` and
integer keys here. A table of integer keys is one array, its length a power of two, in which every ``stride``-th item
is a key, zero where the slot is free; what the key stands for follows it, or lies in another array at the same index.
To look up many keys, find the first slot of each, prefetch it, and search later.

Three files lay out their tables differently and take only the hash functions from here: n-gram rows are sorted by
mixed key, so that a failed search stops early; word vectors save a table of 4-byte numbers next to the words; features
of a tagger are their own mixed keys. All three are saved with models, so these functions must never change.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Longs
from foreword.native.jit import inlined
from foreword.native.memory import load8

FIRST = np.uint64(0x9E3779B97F4A7C15)
SECOND = np.uint64(0xD6E8FEB86659FD93)
"""Odd numbers with bits set all over: multiplying by one is a bijection that carries low bits into high ones."""

HALF = np.uint64(32)
EMPTY = np.int64(0)
"""The key of a free slot."""


@inlined
def mix(key: np.uint64) -> np.uint64:
    """Mix a 64-bit key: a bijection. The shift brings high bits down, of which a product's low bits know nothing."""
    mixed = key * FIRST
    return mixed ^ (mixed >> HALF)


@inlined
def fold(mixed: np.uint64, word: np.uint64) -> np.uint64:
    """Mix one more 64-bit word into a hash."""
    mixed = (mixed ^ word) * SECOND
    return mixed ^ (mixed >> np.uint64(29))


@inlined
def fold_bytes(mixed: np.uint64, data: Bytes, start: int, stop: int) -> np.uint64:
    """Mix ``data[start:stop]`` into a hash, eight bytes at a time."""
    for word in range(start, stop, 8):
        mixed = fold(mixed, load8(data, word, stop))
    return mixed


@inlined
def pair_key(left: int, right: int) -> int:
    """Return the key of two ids, never zero. Smaller pairs have smaller keys."""
    return (np.int64(left) << 32 | np.int64(right)) + 1


@inlined
def first_slot(slots: Longs, key: int) -> int:
    """Return the index, in a table of stride 2, at which the search for ``key`` begins."""
    return np.int64(mix(np.uint64(key)) & np.uint64(len(slots) // 2 - 1)) * 2


@inlined
def search_from(slots: Longs, slot: int, key: int, stride: int) -> int:
    """Return the index of ``key``, or of the free slot where it belongs, searching from ``slot`` on.

    At least one slot must be free.
    """
    while slots[slot] != 0 and slots[slot] != key:
        slot = (slot + stride) & (len(slots) - 1)
    return slot


@inlined
def find_slot(slots: Longs, key: int) -> int:
    """Return the index of ``key`` in a table of stride 2, or of the free slot where it belongs."""
    return search_from(slots, first_slot(slots, key), key, 2)
