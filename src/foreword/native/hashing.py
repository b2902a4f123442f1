"""The hash table of integer keys: flat rows of two numbers, a key and its value, with open addressing.

The number of rows is a power of two and some rows are always free; a free row has the key zero, so keys must not be
zero. Looking up many keys, find each one's first row, prefetch it, and search later. The table of strings is
``tokens/strings.py``.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Longs
from foreword.native.jit import inlined

EMPTY = np.int64(0)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@inlined
def pair_key(left: int, right: int) -> int:
    """Return two ids as one key that is never zero; smaller pairs have smaller keys."""
    return (np.int64(left) << 32 | np.int64(right)) + 1


@inlined
def first_slot(slots: Longs, key: int) -> int:
    """Return the offset of the row where the search for ``key`` begins."""
    mixed = np.uint64(key) * _MULTIPLIER
    mixed ^= mixed >> _HALF
    return np.int64(mixed & np.uint64(len(slots) // 2 - 1)) * 2


@inlined
def search_from(slots: Longs, slot: int, key: int) -> int:
    """Return the offset of the row of ``key``, or of the free row where it belongs, searching from ``slot`` on."""
    while slots[slot] != EMPTY and slots[slot] != key:
        slot = (slot + 2) & (len(slots) - 1)
    return slot


@inlined
def find_slot(slots: Longs, key: int) -> int:
    """Return the offset of the row of ``key``, or of the free row where it belongs."""
    return search_from(slots, first_slot(slots, key), key)
