"""Counting the words between fastText's separators, into a ``StringTable``."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Longs, ULongs
from foreword.fasttext.kernels_cut import cut_token, is_separator
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch
from foreword.tokens.strings import BATCH, ID_BITS, find, has_space, insert, row_of


@inlined
def cut_words(
    data: Bytes, begins: Longs, ends: Longs, slots: ULongs, batch: Longs, keys: ULongs, position: Longs
) -> int:
    """Cut up to BATCH words from ``position`` on, make their keys and ask for their rows; how many.

    batch: (BATCH * 4,), out: text, start, stop and row of each; keys: (BATCH * 4,), out; position: [text, place, …].
    """
    text, place = position[0], position[1]
    filled = 0
    while filled < BATCH and text < len(begins):
        place, stop = max(place, begins[text]), ends[text]
        while place < stop and is_separator(data[place]):
            place += 1
        if place >= stop:
            text, place = text + 1, 0
            continue
        at = filled * 4
        end = cut_token(data, place, stop, keys, at)
        row = row_of(keys, at, len(slots) // 4)
        prefetch(slots, row * 4)
        batch[at], batch[at + 1], batch[at + 2], batch[at + 3] = text, place, end, row
        place = end
        filled += 1
    position[0], position[1] = text, place
    return filled


@kernel
def count_words(
    data: Bytes, begins: Longs, ends: Longs, slots: ULongs, arena: Bytes, starts: Longs, counts: Longs, firsts: Longs,
    batch: Longs, keys: ULongs, position: Longs,
) -> int:  # fmt: skip
    """Count the words of texts. position: [text, place, strings in the table], where to go on.

    Returns 0 when all is done, or one more than the length of a word that the table has no room for: the caller makes
    room and calls again.
    """
    size = position[2]
    while position[0] < len(begins):
        filled = cut_words(data, begins, ends, slots, batch, keys, position)
        for word in range(filled):
            key = word * 4
            start, end = batch[key + 1], batch[key + 2]
            at = find(slots, arena, starts, batch[key + 3], keys, key, data, start, end)
            id = np.int64(slots[at + 3] & ID_BITS) - 1
            if id < 0:
                if not has_space(slots, arena, starts, size, end - start):
                    position[0], position[1], position[2] = batch[key], start, size
                    return end - start + 1
                insert(slots, arena, starts, at, size, keys, key, data, start, end)
                firsts[size], counts[size] = start, 0
                id = size
                size += 1
            counts[id] += 1
    position[2] = size
    return 0
