"""Pieces to numbers, numbers to rows of counts.

Terms are numbered as they come, in tables of two kinds: ``table.py``'s rows for strings, and for runs of words a table
of pairs, (number of the run without its last word, number of the last word) -> number of the run. Equal numbers of a
document are found by remembering where in the output each number was last put: if that is before the row's first
entry, it is new in the row. Nothing is compared, and nothing cleared in between.
"""

from __future__ import annotations

import math

import numpy as np

from foreword.arrays import Bytes, Doubles, Ints, Longs, ULongs
from foreword.native.hashing import EMPTY, find_slot, first_slot, pair_key
from foreword.native.jit import inlined, kernel
from foreword.native.memory import lowest_one, prefetch
from foreword.tokens.strings import BATCH, ID_BITS, find, has_room, insert, make_key, row_of

_FNV_OFFSET = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_BLANK = np.uint64(0x20)
_HALF = np.uint64(32)
_TOP = np.uint64(63)


@kernel
def number_spans(
    text: Bytes, spans: Longs, count: int, grow: bool, slots: ULongs, arena: Bytes, starts: Longs,
    numbers: Ints, rows: Longs, keys: ULongs, position: Longs,
) -> int:  # fmt: skip
    """``numbers[i]`` becomes the number of piece i, -1 for one that the table has not and may not take.

    position: [next piece, strings in the table]. Returns 0 when all is done, or one more than the length of a piece
    that the table has no room for. rows, keys: (BATCH,), (BATCH * 4,), scratch.
    """
    size = position[1]
    for first in range(position[0], count, BATCH):
        last = min(first + BATCH, count)
        for piece in range(first, last):
            ahead = piece - first
            make_key(text, spans[2 * piece], spans[2 * piece + 1], keys, 4 * ahead)
            rows[ahead] = row_of(keys, 4 * ahead, len(slots) // 4)
            prefetch(slots, rows[ahead] * 4)
        for piece in range(first, last):
            start, stop = spans[2 * piece], spans[2 * piece + 1]
            key = 4 * (piece - first)
            at = find(slots, arena, starts, rows[piece - first], keys, key, text, start, stop)
            number = np.int64(slots[at + 3] & ID_BITS) - 1
            if number < 0 and grow:
                if not has_room(slots, arena, starts, size, stop - start):
                    position[0], position[1] = piece, size
                    return stop - start + 1
                insert(slots, arena, starts, at, size, keys, key, text, start, stop)
                number = size
                size += 1
            numbers[piece] = number
    position[0], position[1] = count, size
    return 0


@kernel
def following(numbers: Ints, span_ends: Longs, ahead: int, out: Ints) -> None:
    """``out[i] = numbers[i + ahead]`` where that still is in the same document, else -1."""
    piece = 0
    for document in range(len(span_ends)):
        stop = span_ends[document]
        while piece < stop:
            out[piece] = numbers[piece + ahead] if piece + ahead < stop else -1
            piece += 1


@kernel
def number_pairs(
    lefts: Ints, rights: Ints, count: int, grow: bool, slots: Longs, members: Ints, numbers: Ints, keys: Longs,
    position: Longs,
) -> int:  # fmt: skip
    """``numbers[i]`` becomes the number of the pair (lefts[i], rights[i]), -1 if one of them is -1 or it is not known.

    slots: rows of two, the key and what it stands for, half of them free at least.
    members: (2 * room,), left and right of each pair. keys: (BATCH,), scratch.
    position: [next pair, pairs in the table]. Returns 0 when all is done, 1 if the table has no room for one more.
    """
    size = position[1]
    for first in range(position[0], count, BATCH):
        filled = min(BATCH, count - first)
        for pair in range(filled):
            left, right = lefts[first + pair], rights[first + pair]
            keys[pair] = EMPTY if left < 0 or right < 0 else pair_key(left, right)
            prefetch(slots, first_slot(slots, keys[pair]))
        for pair in range(filled):
            number = np.int64(-1)
            if keys[pair] != EMPTY:
                place = find_slot(slots, keys[pair])
                if slots[place] != EMPTY:
                    number = slots[place + 1]
                elif grow:
                    if 4 * size + 4 > len(slots) or 2 * size + 2 > len(members):
                        position[0], position[1] = first + pair, size
                        return 1
                    slots[place] = keys[pair]
                    slots[place + 1] = size
                    members[2 * size] = lefts[first + pair]
                    members[2 * size + 1] = rights[first + pair]
                    number = size
                    size += 1
            numbers[first + pair] = number
    position[0], position[1] = count, size
    return 0


@kernel
def rehash_pairs(old: Longs, new: Longs) -> None:
    for source in range(0, len(old), 2):
        if old[source] != EMPTY:
            place = find_slot(new, old[source])
            new[place] = old[source]
            new[place + 1] = old[source + 1]


@kernel
def hash_runs(
    text: Bytes, spans: Longs, span_ends: Longs, shortest: int, longest: int, columns: int, signed: bool,
    numbers: Ints, number_ends: Longs,
) -> int:  # fmt: skip
    """Runs of ``shortest`` to ``longest`` pieces hashed, as ``hashed`` in ``features/plain.py`` says; how many.

    A column whose counts go down is written as -1 - column.
    """
    written = 0
    first = 0
    for document in range(len(span_ends)):
        stop = span_ends[document]
        while first < stop:
            value = _FNV_OFFSET
            for piece in range(first, min(first + longest, stop)):
                if piece > first:
                    value = (value ^ _BLANK) * _FNV_PRIME
                for place in range(spans[2 * piece], spans[2 * piece + 1]):
                    value = (value ^ np.uint64(text[place])) * _FNV_PRIME
                if piece - first + 1 >= shortest:
                    column = np.int64((value ^ (value >> _HALF)) % np.uint64(columns))
                    numbers[written] = -1 - column if signed and value >> _TOP else column
                    written += 1
            first += 1
        number_ends[document] = written
    return written


@inlined
def magnitude(number: int) -> int:
    """The number that counts up or down."""
    return number ^ (number >> 31)


@kernel
def gather_rows(
    numbers: Ints, ends: Longs, signed: bool, base: int, tallies: Longs, out: Ints, counts: Ints, row_ends: Longs
) -> int:
    """Entries of the rows: for each document its distinct numbers and how often each came; how many entries.

    Below zero stands what has no number; if ``signed``, -1 - number is a number that counts down.
    tallies: (3 * room,), for each number where it was last put, how many documents had it, and how often it came.
    base: more than any place in ``tallies``, so that those of earlier calls are told from this one's.
    """
    written = 0
    piece = 0
    for document in range(len(ends)):
        begin = base + written
        while piece < ends[document]:
            prefetch(tallies, 3 * magnitude(numbers[min(piece + 16, len(numbers) - 1)]))
            number = numbers[piece]
            step = np.int32(1)
            piece += 1
            if number < 0:
                if not signed:
                    continue
                step = np.int32(-1)
            tally = 3 * magnitude(number)
            place = tallies[tally]
            tallies[tally + 2] += step
            if place >= begin:
                counts[place - base] += step
            else:
                out[written] = magnitude(number)
                counts[written] = step
                tallies[tally] = base + written
                tallies[tally + 1] += 1
                written += 1
        row_ends[document] = written
    return written


@kernel
def add_entries(numbers: Ints, counts: Ints, row_ends: Longs, columns: Ints, places: Longs, packed: ULongs) -> None:
    """Entries with columns, column << 32 | count, to ``packed``; places[row] is where the row's next one goes."""
    entry = 0
    for row in range(len(row_ends)):
        place = places[row]
        while entry < row_ends[row]:
            column = columns[numbers[entry]] if len(columns) else numbers[entry]
            if column >= 0:
                packed[place] = (np.uint64(column) << _HALF) | np.uint64(np.uint32(counts[entry]))
                place += 1
            entry += 1
        places[row] = place


@kernel
def sort_rows(
    packed: ULongs, starts: Longs, stops: Longs, low: ULongs, top: ULongs, values: Ints, indices: Ints, data: Longs,
    written: int,
) -> int:  # fmt: skip
    """Rows of packed entries, columns rising, from ``written`` on; where they end.

    Without comparing: a bit in ``low`` for every column that is there, one in ``top`` for every word of ``low`` that is
    not zero, and going through those bits gives the columns in order. Both are zero before and after.
    low, top, values: a bit, a bit for 64 of them, and a place for each column.
    """
    for row in range(len(starts)):
        for entry in range(starts[row], stops[row]):
            column = np.int64(packed[entry] >> _HALF)
            values[column] = np.int32(np.uint32(packed[entry] & ID_BITS))
            low[column >> 6] |= np.uint64(1) << np.uint64(column & 63)
            top[column >> 12] |= np.uint64(1) << np.uint64((column >> 6) & 63)
        for block in range(len(top)):
            words = top[block]
            top[block] = np.uint64(0)
            while words != np.uint64(0):
                word = 64 * block + lowest_one(words)
                words &= words - np.uint64(1)
                bits = low[word]
                low[word] = np.uint64(0)
                while bits != np.uint64(0):
                    column = 64 * word + lowest_one(bits)
                    bits &= bits - np.uint64(1)
                    indices[written] = column
                    data[written] = values[column]
                    written += 1
    return written


@kernel
def weigh(
    indptr: Ints, indices: Ints, counts: Longs, weights: Doubles, sublinear: bool, norm: int,
    data: Doubles,
) -> None:  # fmt: skip
    """Term frequencies times weights (none if there are none), each row divided by its norm: 1, 2, or 0 for none.

    ``data`` may be the memory of ``counts``.
    """
    for row in range(len(indptr) - 1):
        length = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            value = float(counts[entry])
            if sublinear and value != 0.0:
                value = math.copysign(1.0 + math.log(abs(value)), value)
            if len(weights):
                value *= weights[indices[entry]]
            length += value * value if norm == 2 else abs(value)
            data[entry] = value
        length = math.sqrt(length) if norm == 2 else length
        if norm and length > 0.0:
            for entry in range(indptr[row], indptr[row + 1]):
                data[entry] /= length
