"""Which words stand near which: pairs within a window, counted row by row.

The text is one array of word ids in which words without a vector are left out and -1 ends a document. Its positions
are sorted by the word that stands there. Then one word after another is taken, all windows around its occurrences are
added up in one array with a place for each word, and what became of that array is the word's row. No pair is hashed or
sorted, and of the text's pairs nothing is kept but the sums.

Sums are whole numbers, multiples of a unit, so they do not depend on the order in which they are made.

V words; a row holds the words up to its own, for the other half of the matrix is the same. A bit for each word says
where the array is not zero, and a bit for each 64 of those bits where to look.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Doubles, Floats, Ints, Longs, ULongs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import lowest_one, prefetch

END = -1

_AHEAD = 12
"""Occurrences of a word are scattered over the text; memory is asked for this many before they are needed."""

_ONE = np.uint64(1)
_LOW = np.uint64(63)


class Room(NamedTuple):
    """What a thread works in: the array of sums (V,), all zero, and its bits."""

    sums: Longs
    used: ULongs
    used_words: ULongs


def make_room(words: int) -> Room:
    bits = (words >> 6) + 1
    return Room(np.zeros(words, np.int64), np.zeros(bits, np.uint64), np.zeros((bits >> 6) + 1, np.uint64))


@kernel
def write_text(
    ids: NDArray[np.integer], begin: int, stop: int, end: int, unknown: int, text: Ints, written: int
) -> int:
    """Write ``ids[begin:stop]`` to ``text[written:]`` as described above; how much is written then.

    unknown: the id that is left out; -1 if there is none.
    """
    for place in range(begin, stop):
        word = np.int64(ids[place])
        text[written] = END if word == end else word
        written += word != unknown
    return written


@kernel
def reach_back(ids: NDArray[np.integer], begin: int, end: int, unknown: int, window: int) -> int:
    """From where on to read, so that ``window`` words of the same document, or all there are, come before ``begin``."""
    held = 0
    while begin > 0 and held < window:
        word = np.int64(ids[begin - 1])
        if word == end:
            break
        held += word != unknown
        begin -= 1
    return begin


@kernel
def reach_on(ids: NDArray[np.integer], stop: int, end: int, unknown: int, window: int) -> int:
    """Up to where to read, so that ``window`` words of the same document, or all there are, come after ``stop``."""
    held = 0
    while stop < len(ids) and held < window:
        word = np.int64(ids[stop])
        if word == end:
            break
        held += word != unknown
        stop += 1
    return stop


@kernel
def sort_positions(text: Ints, begin: int, stop: int, starts: Longs, positions: Ints) -> None:
    """The positions of each word in ``text[begin:stop]``; word w has ``positions[starts[w]:starts[w + 1]]``.

    starts: int64 (V + 2,), out; the last place is scratch.
    """
    starts[:] = 0
    for place in range(begin, stop):
        word = np.int64(text[place])
        if word >= 0:
            starts[word + 2] += 1
    for word in range(2, len(starts)):
        starts[word] += starts[word - 1]
    for place in range(begin, stop):
        word = np.int64(text[place])
        if word >= 0:
            positions[starts[word + 1]] = place
            starts[word + 1] += 1


@inlined
def add(room: Room, word: int, weight: int) -> None:
    room.sums[word] += weight
    bit = word >> 6
    room.used[bit] |= _ONE << (np.uint64(word) & _LOW)
    room.used_words[bit >> 6] |= _ONE << (np.uint64(bit) & _LOW)


@inlined
def take_row(room: Room, row: int, columns: Ints, sums: Longs, written: int) -> int:
    """Write what was added of the words up to ``row``, in their order, and make the room empty; how much is written."""
    for upper in range(len(room.used_words)):
        groups = room.used_words[upper]
        room.used_words[upper] = np.uint64(0)
        while groups != np.uint64(0):
            bit = (upper << 6) + lowest_one(groups)
            groups &= groups - _ONE
            held = room.used[bit]
            room.used[bit] = np.uint64(0)
            while held != np.uint64(0):
                word = (bit << 6) + lowest_one(held)
                held &= held - _ONE
                if word <= row:
                    columns[written] = word
                    sums[written] = room.sums[word]
                    written += 1
                room.sums[word] = 0
    return written


@kernel
def count_rows(
    text: Ints, positions: Ints, starts: Longs, first: int, last: int, weights: Longs, room: Room,
    columns: Ints, sums: Longs, ends: Longs,
) -> int:  # fmt: skip
    """Rows ``first`` to ``last`` - 1: the words in ``columns``, what they have in ``sums``; how many in all.

    text: ``END`` stands before and behind all of it. weights: int64 (window + 1,), what a pair counts at each distance.
    columns, sums: there must be room. ends: int64 (last - first,), out: where each row ends.
    """
    window = len(weights) - 1
    written = 0
    for row in range(first, last):
        stop = starts[row + 1]
        for occurrence in range(starts[row], stop):
            place = np.int64(positions[occurrence])
            if occurrence + _AHEAD < len(positions):
                prefetch(text, np.int64(positions[occurrence + _AHEAD]))
            for distance in range(1, window + 1):
                word = np.int64(text[place - distance])
                if word < 0:
                    break
                add(room, word, weights[distance])
            for distance in range(1, window + 1):
                word = np.int64(text[place + distance])
                if word < 0:
                    break
                add(room, word, weights[distance])
        written = take_row(room, row, columns, sums, written)
        ends[row - first] = written
    return written


@kernel
def merge_rows(
    run_columns: Ints, run_sums: Longs, offsets: Longs, first: int, last: int, room: Room,
    columns: Ints, sums: Longs, ends: Longs,
) -> int:  # fmt: skip
    """The same rows out of several runs, each a part of the text counted by itself.

    offsets: int64 (runs, V + 1); row w of run r is ``run_columns[offsets[r, w]:offsets[r, w + 1]]``, and so its sums.
    """
    written = 0
    for row in range(first, last):
        for run in range(len(offsets)):
            for place in range(offsets[run, row], offsets[run, row + 1]):
                add(room, np.int64(run_columns[place]), run_sums[place])
        written = take_row(room, row, columns, sums, written)
        ends[row - first] = written
    return written


@kernel
def rows_are_sound(offsets: Longs, columns: Ints, counts: Floats) -> bool:
    """Whether each row's columns rise from 0 to the row itself at most, and its counts are positive and finite."""
    for row in range(len(offsets) - 1):
        before = np.int64(-1)
        for place in range(offsets[row], offsets[row + 1]):
            column = np.int64(columns[place])
            if column <= before or column > row or not np.float32(0.0) < counts[place] < np.float32(np.inf):
                return False
            before = column
    return True


@kernel
def add_up(offsets: Longs, columns: Ints, counts: Floats, sums: Doubles) -> None:
    """Add to ``sums`` (V,) what each word has in its row, both halves of the matrix counted."""
    for row in range(len(offsets) - 1):
        for place in range(offsets[row], offsets[row + 1]):
            column, count = np.int64(columns[place]), np.float64(counts[place])
            sums[row] += count
            if column != row:
                sums[column] += count
