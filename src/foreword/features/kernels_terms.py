"""The terms themselves: spelt out, and in alphabetical order.

Strings are compared as UTF-8, which is the order of their code points.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Longs, ULongs
from foreword.native.jit import kernel
from foreword.native.memory import prefetch

_BLANK = np.uint8(0x20)


@kernel
def leading_bytes(data: Bytes, offsets: Longs, numbers: Longs, depth: int, keys: ULongs) -> None:
    """Eight bytes of each string from ``depth`` on, the first one weighing most; zeros where it has ended."""
    for listed in range(len(numbers)):
        start, stop = offsets[numbers[listed]] + depth, offsets[numbers[listed] + 1]
        key = np.uint64(0)
        for place in range(start, min(start + 8, stop)):
            key |= np.uint64(data[place]) << np.uint64(8 * (7 - (place - start)))
        keys[listed] = key


def alphabetical(data: Bytes, offsets: Longs) -> Longs:
    """The numbers of distinct strings in the order of their bytes; string i is ``data[offsets[i]:offsets[i + 1]]``.

    By the first eight bytes, then those that are alike there by the next eight, and after three rounds the few that
    are still alike by all they have.
    """
    order = np.arange(len(offsets) - 1)
    tied = order.copy()  # places in the order that are not settled yet
    group = np.zeros(len(order), np.int64)  # those of them with the same number have begun alike
    for depth in (0, 8, 16):
        keys = np.empty(len(tied), np.uint64)
        leading_bytes(data, offsets, order[tied], depth, keys)
        by = np.argsort(keys) if depth == 0 else np.lexsort((keys, group))
        order[tied] = order[tied][by]
        keys = keys[by]
        as_before = np.zeros(len(tied) + 1, bool)
        as_before[1:-1] = (keys[1:] == keys[:-1]) & (group[1:] == group[:-1])
        alike = as_before[1:] | as_before[:-1]
        tied, group = tied[alike], np.cumsum(~as_before[:-1])[alike]
    for places in np.split(tied, np.flatnonzero(np.diff(group)) + 1):
        order[places] = sorted(order[places], key=lambda number: bytes(data[offsets[number] : offsets[number + 1]]))
    return order


@kernel
def spell(
    arena: Bytes, starts: Longs, parents: Longs, words: Longs, numbers: Longs, offsets: Longs, out: Bytes
) -> None:
    """The words of runs with a blank between them, each written from its end.

    parents, words: (runs,), the run without its last word, -1 if that was all, and the last word.
    numbers: which runs; offsets: (len(numbers) + 1,), where each goes.
    """
    end = len(numbers) - 1
    for listed in range(len(numbers)):
        ahead = numbers[min(listed + 32, end)]
        prefetch(words, ahead)
        prefetch(parents, ahead)
        prefetch(starts, words[numbers[min(listed + 16, end)]])
        prefetch(arena, starts[words[numbers[min(listed + 8, end)]]])
        run = numbers[listed]
        place = offsets[listed + 1]
        while run >= 0:
            word = words[run]
            length = starts[word + 1] - starts[word]
            place -= length
            for part in range(length):
                out[place + part] = arena[starts[word] + part]
            run = parents[run]
            if run >= 0:
                place -= 1
                out[place] = _BLANK
