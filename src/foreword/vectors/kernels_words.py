"""Words to indices, by open addressing over indices alone; and their character n-grams, hashed as fastText does.

Word i is ``data[offsets[i]:offsets[i + 1]]``. A row of the table, int32, is 0 if it is free, else the index of a word +
1; a word is searched for from the row that its hash names and compared byte by byte with the words themselves. That is
sixteen bytes per word at most, where a ``StringTable`` takes more than sixty-four: this table is saved with vectors and
mapped. It may come from a file, so no number in it is trusted.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.native.hashing import FIRST, fold_bytes, mix
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch
from foreword.tokens.strings import same_bytes

AHEAD = 16
"""Words between prefetching a row of the table and using it."""


def rows_for(words: int) -> int:
    """Return the size of a table: a power of two, at most half of it used."""
    return max(16, 1 << (2 * words - 1).bit_length())


@inlined
def first_row(data: Bytes, start: int, stop: int, rows: int) -> int:
    """Return the row where the search for ``data[start:stop]`` begins."""
    mixed = fold_bytes(np.uint64(stop - start) * FIRST, data, start, stop)
    return np.int64(mix(mixed) & np.uint64(rows - 1))


@inlined
def find_row(table: Ints, row: int, data: Bytes, offsets: Longs, words: Bytes, start: int, stop: int) -> int:
    """Return the row of ``words[start:stop]``, searching from ``row`` on, or the free one where it belongs; else −1."""
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
    """Enter all words into a table of zeros; of equal ones the first."""
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
def find_words(words: Bytes, ends: Longs, data: Bytes, offsets: Longs, table: Ints, indices: Longs) -> None:
    """Set ``indices[i]`` to the index of the word ``words[ends[i]:ends[i + 1]]``, −1 if it is not in the table."""
    for word in range(len(indices)):
        start, stop = ends[word], ends[word + 1]
        row = find_row(table, first_row(words, start, stop, len(table)), data, offsets, words, start, stop)
        indices[word] = -1 if row < 0 else np.int64(table[row]) - 1


# Character n-grams

BEGIN_MARK, END_MARK = 0x3C, 0x3E  # < and >, which mark where a word begins and ends
_BASIS = np.uint32(2166136261)
_PRIME = np.uint32(16777619)
_SIGN = np.uint32(0xFFFFFF00)


@inlined
def hash_byte(hashed: np.uint32, byte: np.uint8) -> np.uint32:
    """Make a step of FNV-1a. fastText's bytes are signed, so those above 127 flip the upper 24 bits too; files in use
    depend on it.
    """
    wide = np.uint32(byte)
    if byte >= 128:
        wide |= _SIGN
    return np.uint32((hashed ^ wide) * _PRIME)


@kernel
def hash_bytes(data: Bytes, start: int, stop: int) -> np.uint32:
    """Return the FNV-1a hash of bytes."""
    hashed = _BASIS
    for place in range(start, stop):
        hashed = hash_byte(hashed, data[place])
    return hashed


@inlined
def is_continuation(byte: np.uint8) -> bool:
    """Return whether a byte continues a UTF-8 character."""
    return (byte & 0xC0) == 0x80


@inlined
def hash_character(hashed: np.uint32, data: Bytes, place: int, start: int, stop: int) -> np.uint32:
    """Return the hash after the character at ``place`` of ``<word>``, the word being ``data[start:stop]``."""
    if place < start:
        return hash_byte(hashed, np.uint8(BEGIN_MARK))
    if place >= stop:
        return hash_byte(hashed, np.uint8(END_MARK))
    hashed = hash_byte(hashed, data[place])
    place += 1
    while place < stop and is_continuation(data[place]):
        hashed = hash_byte(hashed, data[place])
        place += 1
    return hashed


@inlined
def next_character(data: Bytes, place: int, start: int, stop: int) -> int:
    """Return the position of the next character of ``<word>``."""
    place += 1
    while start <= place < stop and is_continuation(data[place]):
        place += 1
    return place


@inlined
def word_buckets(data: Bytes, start: int, stop: int, least: int, most: int, buckets: int, out: Ints, at: int) -> int:
    """Write the buckets of the n-grams of ``data[start:stop]`` from ``out[at]`` on, as many as fit, and return the end.
    An n-gram of one character is left out at either end, where it would be a mark.
    """
    divisor = np.uint32(buckets)
    first = start - 1
    while first <= stop:
        hashed = _BASIS
        place, characters = first, 0
        while place <= stop and characters < most:
            hashed = hash_character(hashed, data, place, start, stop)
            place = next_character(data, place, start, stop)
            characters += 1
            if characters >= least and not (characters == 1 and (first < start or place > stop)) and at < len(out):
                out[at] = np.int32(hashed % divisor)
                at += 1
        first = next_character(data, first, start, stop)
    return at


@kernel
def buckets_of_words(
    data: Bytes, offsets: Longs, least: int, most: int, buckets: int, out: Ints,
    ends: Longs,
) -> int:  # fmt: skip
    """Write the buckets of many words, one after another; those of word i stop at ``ends[i]``."""
    at = np.int64(0)
    for word in range(len(offsets) - 1):
        at = word_buckets(data, offsets[word], offsets[word + 1], least, most, buckets, out, at)
        ends[word] = at
    return at
