"""Where each of many words stands: open addressing over their numbers alone.

The words lie one after another in ``data``, word i is ``data[offsets[i]:offsets[i + 1]]``. A row of the table, int32,
is 0 where it is free, else the number of a word + 1; a word is looked for from the row that its hash names and compared
byte by byte with the words themselves. That is sixteen bytes a word at most, where a ``StringTable`` takes more than
sixty-four: this one is put on disk beside vectors, and mapped. It may come from a file, so no number in it is trusted.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.native.hashing import FIRST, fold_bytes, mix
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch
from foreword.tokens.strings import same_bytes

AHEAD = 16
"""How many words ahead a row is asked for."""


def rows_for(words: int) -> int:
    """How many rows a table of so many words has: a power of two, and never more than half of them taken."""
    return max(16, 1 << (2 * words - 1).bit_length())


@inlined
def first_row(data: Bytes, start: int, stop: int, rows: int) -> int:
    mixed = fold_bytes(np.uint64(stop - start) * FIRST, data, start, stop)
    return np.int64(mix(mixed) & np.uint64(rows - 1))


@inlined
def find_row(table: Ints, row: int, data: Bytes, offsets: Longs, words: Bytes, start: int, stop: int) -> int:
    """From ``row`` on, the row of ``words[start:stop]``, or the free one where it belongs; −1 for neither."""
    for _ in range(len(table)):
        number = np.int64(table[row]) - 1
        if number == -1:
            return row
        if 0 <= number < len(offsets) - 1 and same_bytes(
            words, start, stop, data, offsets[number], offsets[number + 1]
        ):
            return row
        row = (row + 1) & (len(table) - 1)
    return -1


@kernel
def fill_table(data: Bytes, offsets: Longs, table: Ints) -> None:
    """Enter all words into a table of zeros; where two are the same, the first has the row."""
    rows = len(table)
    for number in range(len(offsets) - 1):
        soon = number + AHEAD
        if soon < len(offsets) - 1:
            prefetch(table, first_row(data, offsets[soon], offsets[soon + 1], rows))
        start, stop = offsets[number], offsets[number + 1]
        row = find_row(table, first_row(data, start, stop, rows), data, offsets, data, start, stop)
        if table[row] == 0:
            table[row] = number + 1


@kernel
def find_words(words: Bytes, ends: Longs, data: Bytes, offsets: Longs, table: Ints, places: Longs) -> None:
    """``places[i]`` becomes the number of the word ``words[ends[i]:ends[i + 1]]``, −1 where the table has it not."""
    for word in range(len(places)):
        start, stop = ends[word], ends[word + 1]
        row = find_row(table, first_row(words, start, stop, len(table)), data, offsets, words, start, stop)
        places[word] = -1 if row < 0 else np.int64(table[row]) - 1
