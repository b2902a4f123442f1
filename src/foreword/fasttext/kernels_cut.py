"""The tokens of lines, cut and counted as in fastText.

Tokens are separated by blanks, tabs, returns, NULs; a line feed, or the end of the text, ends a line. Sixty-four bytes
are classified at once: a bit for each marks a separator, and where bits change a token starts or stops. Counting takes
tokens one by one instead, for the table may have to grow between two of them.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Longs, ULongs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import bytes_between, load_unaligned, lowest_one, ones, prefetch
from foreword.tokens.strings import BATCH, ID_BITS, find, has_space, insert, make_key, row_of

WIDE = 64
"""Bytes that are classified together."""

SLACK = 8
"""Edges are written this many at a time, some of them for nothing."""

LINE_FEED = 10
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TOP = np.uint64(1 << 63)
_AFTER_BLANKS = np.uint64(0x2121212121212121)
_TOPS = np.uint64(0x8080808080808080)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def is_separator(byte: np.uint8) -> bool:
    """Return whether a byte separates tokens."""
    return byte == 32 or (9 <= byte <= 13) or byte == 0


@inlined
def separators(data: Bytes, place: int) -> np.uint64:
    """Return a bit for each of the 64 bytes from ``place`` on: whether it is a separator. Bytes beyond the data are."""
    if place + WIDE <= len(data):
        return bytes_between(data, place, 9, 13) | bytes_between(data, place, 32, 32) | bytes_between(data, place, 0, 0)
    found = _ALL << np.uint64(len(data) - place)
    for bit in range(len(data) - place):
        found |= np.uint64(is_separator(data[place + bit])) << np.uint64(bit)
    return found


@inlined
def line_feeds(data: Bytes, place: int) -> np.uint64:
    """Return a bit for each of the 64 bytes from ``place`` on: whether it is a line feed."""
    if place + WIDE <= len(data):
        return bytes_between(data, place, LINE_FEED, LINE_FEED)
    found = _ZERO
    for bit in range(len(data) - place):
        found |= np.uint64(data[place + bit] == LINE_FEED) << np.uint64(bit)
    return found


@inlined
def write_edges(change: np.uint64, place: int, edges: Longs, count: int) -> int:
    """Append ``place`` + the index of each set bit. Eight at a time, some of them for nothing, so that branches on
    their number are rare.
    """
    number = ones(change)
    for first in range(count, count + number, SLACK):
        for offset in range(SLACK):
            edges[first + offset] = place + lowest_one(change | _TOP)
            change &= change - _ONE
    return count + number


@inlined
def cut_lines(data: Bytes, begins: Longs, ends: Longs, first: int, last: int, edges: Longs) -> int:
    """Write start and stop of each token of lines ``first`` to ``last``, and return their number. The end of a line is
    an empty token.
    """
    count = 0
    for line in range(first, last):
        place, stop = begins[line], ends[line]
        before = _ONE  # as if preceded by a separator
        while place < stop:
            found, feeds = separators(data, place), line_feeds(data, place)
            if feeds != _ZERO:
                stop = min(stop, place + lowest_one(feeds))
            if stop - place < WIDE:
                found |= _ALL << np.uint64(stop - place)
            count = write_edges(found ^ (found << _ONE | before), place, edges, count)
            before = found >> np.uint64(WIDE - 1)
            place += WIDE
        if before == _ZERO:
            edges[count] = place
            count += 1
        edges[count], edges[count + 1] = 0, 0
        count += 2
    return count >> 1


@inlined
def token_end(data: Bytes, place: int, stop: int) -> int:
    """Return the first separator from ``place`` on, or ``stop``."""
    while place + 8 <= stop:
        word = load_unaligned(data, place)
        low = (word - _AFTER_BLANKS) & ~word & _TOPS  # the lowest bit set marks the first byte below 33
        if low == _ZERO:
            place += 8
            continue
        place += lowest_one(low) >> 3
        if is_separator(data[place]):
            return place
        place += 1
    while place < stop and not is_separator(data[place]):
        place += 1
    return place


@inlined
def cut_token(data: Bytes, place: int, stop: int, keys: ULongs, key: int) -> int:
    """Return where the token at ``place`` ends, and write its key. One of less than eight bytes, as most are, takes a
    single load: a branch for each length could not be predicted.
    """
    if place + 8 <= stop:
        word = load_unaligned(data, place)
        low = (word - _AFTER_BLANKS) & ~word & _TOPS
        if low != _ZERO:
            length = lowest_one(low) >> 3
            if is_separator(data[place + length]):
                keys[key] = word & ((np.uint64(1) << np.uint64(8 * length)) - np.uint64(1))
                keys[key + 1] = keys[key + 2] = _ZERO
                keys[key + 3] = np.uint64(length) << np.uint64(32)
                return place + length
    end = token_end(data, place, stop)
    make_key(data, place, end, keys, key)
    return end


# Counting


@inlined
def cut_words(
    data: Bytes, begins: Longs, ends: Longs, slots: ULongs, batch: Longs, keys: ULongs, position: Longs
) -> int:
    """Cut up to BATCH words from ``position`` on, make their keys, prefetch their rows, and return how many.

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
    """Count the words of texts. position: [text, place, strings in the table], where to continue.

    Return 0 when all is done, or one more than the length of a word that the table has no space for: the caller
    enlarges the table and calls again.
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
