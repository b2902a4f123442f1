"""Pieces to numbers, numbers to rows of counts, numbers to sorted terms.

Terms are numbered in order of arrival, in tables of two kinds: ``tokens/strings.py`` for strings, and for runs of words
a table of pairs, (number of the run without its last word, number of the last word) -> number of the run. Equal numbers
of a document are found by remembering where in the output each number was last written: if that is before the row's
first entry, it is new in the row. Nothing is compared, and nothing cleared in between.

Strings are compared as UTF-8, which is the order of their code points.
"""

from __future__ import annotations

import math

import numpy as np

from foreword.arrays import Bytes, Doubles, Ints, Longs, ULongs
from foreword.native.hashing import EMPTY, find_slot, first_slot, pair_key
from foreword.native.jit import inlined, kernel
from foreword.native.memory import lowest_one, prefetch
from foreword.tokens.strings import BATCH, ID_BITS, find, has_space, insert, make_key, row_of

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
    """Write the number of piece i to ``numbers[i]``, -1 for an unknown one if the table may not grow.

    position: [next piece, strings in the table]. Return 0 when all is done, or one more than the length of a piece that
    the table has no space for. rows, keys: (BATCH,), (BATCH * 4,), scratch.
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
                if not has_space(slots, arena, starts, size, stop - start):
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
    """Set ``out[i] = numbers[i + ahead]`` where that is in the same document, else -1."""
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
    """Write the number of the pair (lefts[i], rights[i]) to ``numbers[i]``, -1 if one of them is -1 or it is unknown.

    slots: rows of two, the key and its number, at least half of them free.
    members: (2 * capacity,), left and right of each pair. keys: (BATCH,), scratch.
    position: [next pair, pairs in the table]. Return 0 when all is done, 1 if the table is full.
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
    """Insert all pairs of one table into a larger one."""
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
    """Hash runs of ``shortest`` to ``longest`` pieces, as ``hashed`` in ``plain.py`` does, and return how many.

    A column that counts down is written as -1 - column.
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
    """Return the number itself, whether it counts up or down."""
    return number ^ (number >> 31)


@kernel
def gather_rows(
    numbers: Ints, ends: Longs, signed: bool, base: int, tallies: Longs, out: Ints, counts: Ints, row_ends: Longs
) -> int:
    """Write the entries of the rows, each document's distinct numbers and their counts, and return how many.

    A negative number is skipped; if ``signed``, -1 - number is a number that counts down.
    tallies: (3 * numbers,): where each was last written, how many documents had it, and how often it came.
    base: larger than any position in ``tallies``, so that those of earlier calls are recognised.
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
    """Append entries that have a column to ``packed``, column << 32 | count; places[row] is the row's next position."""
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
    """Write rows of packed entries, columns rising, from ``written`` on, and return where they end.

    Nothing is compared: ``low`` has a bit for every column that occurs, ``top`` one for every non-zero word of ``low``,
    and iterating over those bits gives the columns in order. Both are zero before and after.
    low, top, values: one bit, one bit per 64 of them, and one number per column.
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
    """Multiply term frequencies by weights, if there are any, and divide each row by its norm: 1, 2, or 0 for none.

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


@kernel
def leading_bytes(data: Bytes, offsets: Longs, numbers: Longs, depth: int, keys: ULongs) -> None:
    """Pack eight bytes of each string from ``depth`` on into a key, the first one highest; zeros beyond its end."""
    for listed in range(len(numbers)):
        start, stop = offsets[numbers[listed]] + depth, offsets[numbers[listed] + 1]
        key = np.uint64(0)
        for place in range(start, min(start + 8, stop)):
            key |= np.uint64(data[place]) << np.uint64(8 * (7 - (place - start)))
        keys[listed] = key


def alphabetical(data: Bytes, offsets: Longs) -> Longs:
    """Return the indices of distinct strings, sorted by their bytes. String i is ``data[offsets[i]:offsets[i + 1]]``.

    They are sorted by the first eight bytes, ties by the next eight, and after three rounds the few that are still tied
    by all their bytes.
    """
    order = np.arange(len(offsets) - 1)
    tied = order.copy()  # positions in the order that are not final yet
    group = np.zeros(len(order), np.int64)  # tied strings have the same number
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
    """Write the words of runs with a blank between them, each run from its end.

    parents, words: (runs,), the run without its last word, -1 if there is none, and the last word.
    numbers: which runs; offsets: (len(numbers) + 1,), where each is written.
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
                out[place] = np.uint8(0x20)
