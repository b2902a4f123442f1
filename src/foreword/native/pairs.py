"""A hash table from pairs of ids to a number: rows of two, the key and what it stands for, open addressing."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Longs
from foreword.native.jit import inlined

EMPTY = np.int64(0)
_FIRST = np.uint64(0x9E3779B97F4A7C15)


@inlined
def pair_key(left: int, right: int) -> int:
    """Both ids in one number, plus one: zero marks a free place. Smaller pairs have smaller keys."""
    return (np.int64(left) << 32 | np.int64(right)) + 1


@inlined
def pair_place(pairs: Longs, key: int) -> int:
    """Where ``key`` stands in the table, or the free place where it belongs; there must always be a free one."""
    mixed = np.uint64(key) * _FIRST
    mixed ^= mixed >> np.uint64(32)
    place = np.int64(mixed & np.uint64(len(pairs) // 2 - 1)) * 2
    while pairs[place] != EMPTY and pairs[place] != key:
        place = (place + 2) & (len(pairs) - 1)
    return place
