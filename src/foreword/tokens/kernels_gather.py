"""Moving many strings of a buffer at once."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ids, Ints, Longs, ULongs
from foreword.native.jit import kernel
from foreword.native.memory import prefetch
from foreword.tokens.strings import make_key, row_of


@kernel
def _gather(data: Bytes, offsets: Longs, numbers: Longs, out: Bytes, place: int) -> None:
    for listed in range(len(numbers)):
        prefetch(offsets, numbers[min(listed + 32, len(numbers) - 1)])
        prefetch(data, offsets[numbers[min(listed + 16, len(numbers) - 1)]])
        number = numbers[listed]
        for source in range(offsets[number], offsets[number + 1]):
            out[place] = data[source]
            place += 1


def gather_strings(data: Bytes, offsets: Longs, numbers: Longs, out: Bytes, place: int) -> None:
    """Copy the strings with these numbers one after another to ``out``, from ``place`` on."""
    _gather(data, offsets, numbers, out, place)


@kernel
def _hash(data: Bytes, offsets: Longs, key: ULongs, out: Longs) -> None:
    for number in range(len(out)):
        make_key(data, offsets[number], offsets[number + 1], key, 0)
        out[number] = row_of(key, 0, 1 << 30)


def hash_strings(data: Bytes, offsets: Longs) -> Longs:
    """A number from 0 to 2^30 - 1 for each string, the same for the same string everywhere."""
    out = np.empty(len(offsets) - 1, np.int64)
    _hash(data, offsets, np.empty(4, np.uint64), out)
    return out


@kernel
def renumber(ids: Ints, numbers: Ids, out: Ids) -> None:
    """``out[i] = numbers[ids[i]]``; five times faster than ``np.take``, which checks every index again."""
    for place in range(len(ids)):
        out[place] = numbers[ids[place]]
