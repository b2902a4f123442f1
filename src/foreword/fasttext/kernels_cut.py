"""Where the tokens of lines start and stop, as fastText cuts them.

Tokens stand between blanks, tabs, returns, NULs; a line feed, or the end of the text, ends a line. Sixty-four bytes are
told apart at once: a bit for each says whether it is a separator, and where bits change a token starts or stops.
Whoever counts words takes them one by one instead, for the table may have to grow between two of them.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Longs, ULongs
from foreword.native.jit import inlined
from foreword.native.memory import bytes_between, load_unaligned, lowest_one, ones
from foreword.tokens.strings import make_key

WIDE = 64
"""Bytes that are looked at together."""

SLACK = 8
"""Edges are written so many at a time, some of them for nothing."""

LINE_FEED = 10
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TOP = np.uint64(1 << 63)
_AFTER_BLANKS = np.uint64(0x2121212121212121)
_TOPS = np.uint64(0x8080808080808080)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def is_separator(byte: np.uint8) -> bool:
    return byte == 32 or (9 <= byte <= 13) or byte == 0


@inlined
def separators(data: Bytes, place: int) -> np.uint64:
    """A bit for each of the 64 bytes from ``place`` on: whether it is a separator. What lies behind the data is one."""
    if place + WIDE <= len(data):
        return bytes_between(data, place, 9, 13) | bytes_between(data, place, 32, 32) | bytes_between(data, place, 0, 0)
    found = _ALL << np.uint64(len(data) - place)
    for bit in range(len(data) - place):
        found |= np.uint64(is_separator(data[place + bit])) << np.uint64(bit)
    return found


@inlined
def line_feeds(data: Bytes, place: int) -> np.uint64:
    """A bit for each of the 64 bytes from ``place`` on: whether it is a line feed."""
    if place + WIDE <= len(data):
        return bytes_between(data, place, LINE_FEED, LINE_FEED)
    found = _ZERO
    for bit in range(len(data) - place):
        found |= np.uint64(data[place + bit] == LINE_FEED) << np.uint64(bit)
    return found


@inlined
def write_edges(change: np.uint64, place: int, edges: Longs, count: int) -> int:
    """Append ``place`` + the number of each set bit. Eight at a time, some of them for nothing, so that how many there
    are is seldom a branch.
    """
    number = ones(change)
    for first in range(count, count + number, SLACK):
        for offset in range(SLACK):
            edges[first + offset] = place + lowest_one(change | _TOP)
            change &= change - _ONE
    return count + number


@inlined
def cut_lines(data: Bytes, begins: Longs, ends: Longs, first: int, last: int, edges: Longs) -> int:
    """Write where each token of lines ``first`` to ``last`` starts and stops, one after another; how many. The end of a
    line is an empty token.
    """
    count = 0
    for line in range(first, last):
        place, stop = begins[line], ends[line]
        before = _ONE  # as if a separator stood there
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
    """The first separator from ``place`` on, or ``stop``."""
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
    """Where the token at ``place`` ends; its key is written. One of less than eight bytes, as most are, is done with
    the look that finds its end: a branch for each length could not be foreseen.
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
