"""A line of text as fastText's classifiers read it: the rows of its words, of their character n-grams and of its word
n-grams; and its labels.

Tokens stand between blanks, tabs, returns, NULs; a line feed, or the end of the text, is a token of its own, ``</s>``,
and ends the line. Words that begin with the label prefix are labels.

Three things make it fast. Tokens are taken in batches: one pass cuts them, eight bytes at a time, and asks for their
rows in the table of words, a second finds them there. The n-grams of a word are hashed once and kept, for most words
come again soon. And a batch goes on from one line to the next, so that short lines are no slower than long ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foreword.kernels.jit import inlined, kernel
from foreword.kernels.memory import load_unaligned, lowest_one, ones, prefetch
from foreword.kernels.subword_hash import FIRST, LAST, hash_byte, word_buckets
from foreword.kernels.table import BATCH, ID_BITS, make_key, row_of, same_bytes

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]

_BASIS = np.uint32(2166136261)
_PRIME = np.uint32(16777619)
_NEXT_WORD = np.uint64(116049371)  # fastText's multiplier for the hash of several words
_SPREAD = np.uint32(2654435769)
_LINE_FEED = 10
_LONG = np.uint64(1 << 63)
_TAG = np.uint64(0xFFFFFFFF00000000)
_ZERO = np.uint64(0)
_AFTER_BLANKS = np.uint64(0x2121212121212121)
_TOPS = np.uint64(0x8080808080808080)

MARKED = 64
"""Room for a word with its marks; longer ones take the slower road."""

LINES = 64
"""Lines that are read at a time, if they are short."""

SHORT = 1 << 14
"""Bytes that are read at a time; a longer line is read alone."""

KEPT = 1 << 14
"""Words whose n-grams are kept: one for each value of so many bits of a hash."""

KEPT_ROWS = 32
"""Room for a kept word: how many rows it has, and the rows."""


def _end_hash() -> np.int32:
    hashed = 2166136261
    for byte in b"</s>":
        hashed = ((hashed ^ byte) * 16777619) & 0xFFFFFFFF
    return np.uint32(hashed).astype(np.int32)


END_HASH = _end_hash()
"""What ``</s>`` hashes to."""


class LineReader(NamedTuple):
    """What turns text into rows.

    slots: a StringTable's, in which entry i has the number i + 1; arena, starts: the entries themselves.
    words: how many entries are words, the rest being labels; end: the entry of ``</s>``, or −1.
    least, most: the lengths of character n-grams; word_ngrams: up to how many words together; buckets: for both.
    kept, ranks, kept_rows: where buckets were pruned, which are kept (a bit each), how many before each 64, and the
    row of each; else empty.
    prefix: how a label begins; distinct: whether a row counts once however often it comes.
    """

    slots: Words
    arena: Bytes
    starts: Longs
    words: int
    end: int
    least: int
    most: int
    word_ngrams: int
    buckets: int
    pruned: bool
    kept: Words
    ranks: Ints
    kept_rows: Ints
    prefix: Bytes
    distinct: bool


class LineRoom(NamedTuple):
    """Room for some lines, ``size`` bytes in all.

    rows, row_ends: those of line i are ``rows[row_ends[i]:row_ends[i + 1]]``; hashes: of one line's words.
    tokens: start, stop and first place in the table of each token of a batch; keys: four words each.
    known, known_rows: words and their rows, kept for the next time they come.
    largest, smallest: which row each column's extreme came from; seen: for telling rows apart.
    """

    size: int
    rows: Ints
    row_ends: Longs
    hashes: Ints
    tokens: Longs
    keys: Words
    cursor: Longs
    marked: Bytes
    known: Words
    known_rows: Ints
    largest: Ints
    smallest: Ints
    seen: Ints


def make_line_room(longest: int, reader: LineReader, stride: int) -> LineRoom:
    """Enough for lines of up to so many bytes."""
    size = max(longest, SHORT)
    tokens = size // 2 + 2 * LINES
    characters = (size + 2 * tokens) * max(0, reader.most - reader.least + 1) if reader.most else 0
    rows = tokens + characters + tokens * max(0, reader.word_ngrams - 1)
    return LineRoom(
        size,
        np.empty(rows + 4, np.int32),
        np.zeros(LINES + 1, np.int64),
        np.empty(tokens + 1, np.int32),
        np.empty(BATCH * 3, np.int64),
        np.empty(BATCH * 4, np.uint64),
        np.zeros(2, np.int64),
        np.empty(MARKED, np.uint8),
        np.zeros(KEPT * 4 if reader.most else 4, np.uint64),
        np.zeros(KEPT * KEPT_ROWS if reader.most else 1, np.int32),
        np.zeros(stride, np.int32),
        np.zeros(stride, np.int32),
        np.empty(2 << (rows + 1).bit_length() if reader.distinct else 1, np.int32),
    )


@inlined
def is_separator(byte: np.uint8) -> bool:
    return byte == 32 or (9 <= byte <= 13) or byte == 0


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
def bucket_row(reader: LineReader, bucket: int) -> int:
    """The row of a bucket, or −1 where it was pruned."""
    if not reader.pruned:
        return reader.words + bucket
    word = reader.kept[bucket >> 6]
    bit = np.uint64(1) << np.uint64(bucket & 63)
    if (word & bit) == np.uint64(0):
        return -1
    rank = np.int64(reader.ranks[bucket >> 6]) + ones(word & (bit - np.uint64(1)))
    return reader.words + np.int64(reader.kept_rows[rank])


@inlined
def entry_of(reader: LineReader, data: Bytes, start: int, stop: int, keys: Words, key: int, place: int) -> int:
    """The entry of a token, or −1. The table may come from a file, so no number in it is trusted."""
    slots = reader.slots
    tag = keys[key + 3]
    at = place * 4
    for _ in range(len(slots) // 4):
        last = slots[at + 3]
        if last == _ZERO:
            return -1
        if (
            slots[at] == keys[key]
            and (last & _TAG) == tag
            and slots[at + 1] == keys[key + 1]
            and slots[at + 2] == keys[key + 2]
        ):
            entry = np.int64(last & ID_BITS) - 2
            if not 0 <= entry < len(reader.starts) - 1:
                return -1
            if tag < _LONG or same_bytes(
                data, start, stop, reader.arena, reader.starts[entry], reader.starts[entry + 1]
            ):
                return entry
        at = (at + 4) & (len(slots) - 1)
    return -1


@inlined
def begins_with(data: Bytes, start: int, stop: int, prefix: Bytes) -> bool:
    if stop - start < len(prefix):
        return False
    same = True
    for place in range(len(prefix)):
        same &= data[start + place] == prefix[place]
    return same


@inlined
def hash_token(data: Bytes, start: int, stop: int) -> np.int32:
    hashed = _BASIS
    for place in range(start, stop):
        hashed = hash_byte(hashed, data[place])
    return np.int32(hashed)


@inlined
def mark(data: Bytes, start: int, stop: int, marked: Bytes) -> bool:
    """Write ``<word>`` to ``marked``; whether it is ASCII and fits."""
    if stop - start + 2 > len(marked):
        return False
    marked[0], marked[stop - start + 1] = FIRST, LAST
    high = np.uint8(0)
    for place in range(start, stop):
        marked[place - start + 1] = data[place]
        high |= data[place]
    return high < 128


@inlined
def add_ngrams(reader: LineReader, data: Bytes, start: int, stop: int, rows: Ints, count: int, marked: Bytes) -> int:
    """Append the rows of a word's n-grams. Most words are short and ASCII, where a byte is a character."""
    least, most, divisor = reader.least, reader.most, np.uint32(reader.buckets)
    if mark(data, start, stop, marked):
        length = stop - start + 2
        for first in range(length):
            hashed = _BASIS
            for last in range(first, min(first + most, length)):
                hashed = np.uint32((hashed ^ np.uint32(marked[last])) * _PRIME)
                if last - first + 1 < least or (last == first and (first == 0 or last == length - 1)):
                    continue
                row = bucket_row(reader, np.int64(hashed % divisor))
                if row >= 0:
                    rows[count] = row
                    count += 1
        return count
    # Buckets are written where the rows go, and then taken for rows one by one.
    end = word_buckets(data, start, stop, least, most, reader.buckets, rows, count)
    for place in range(count, end):
        row = bucket_row(reader, np.int64(rows[place]))
        if row >= 0:
            rows[count] = row
            count += 1
    return count


@inlined
def add_word_ngrams(reader: LineReader, hashes: Ints, tokens: int, rows: Ints, count: int) -> int:
    """Append the rows of 2 to ``word_ngrams`` words in a row; hashes are signed, and widen as signed numbers do."""
    for first in range(tokens):
        hashed = np.uint64(np.int64(hashes[first]))
        for last in range(first + 1, min(tokens, first + reader.word_ngrams)):
            hashed = hashed * _NEXT_WORD + np.uint64(np.int64(hashes[last]))
            row = bucket_row(reader, np.int64(hashed % np.uint64(reader.buckets)))
            if row >= 0:
                rows[count] = row
                count += 1
    return count


@inlined
def is_known(room: LineRoom, key: int, place: int) -> bool:
    """Whether the rows of the token with that key are kept at that place."""
    keys, known, at = room.keys, room.known, place * 4
    return (
        known[at] == keys[key]
        and known[at + 1] == keys[key + 1]
        and known[at + 2] == keys[key + 2]
        and known[at + 3] == keys[key + 3]
    )


@inlined
def add_known(known_rows: Ints, place: int, rows: Ints, count: int) -> int:
    """Append kept rows. Four at once are enough for most words, and faster than a loop, which LLVM makes long."""
    kept = np.int64(known_rows[place])
    one, two, three, four = (
        known_rows[place + 1], known_rows[place + 2], known_rows[place + 3], known_rows[place + 4],
    )  # fmt: skip
    rows[count], rows[count + 1], rows[count + 2], rows[count + 3] = one, two, three, four
    if kept > 4:
        for number in range(4, kept):
            rows[count + number] = known_rows[place + 1 + number]
    return count + kept


@inlined
def keep(room: LineRoom, key: int, place: int, first: int, last: int) -> None:
    """Keep ``rows[first:last]``, if there is room for them and the key holds all of the word."""
    if room.keys[key + 3] >= _LONG or last - first >= KEPT_ROWS:
        return
    for part in range(4):
        room.known[place * 4 + part] = room.keys[key + part]
    room.known_rows[place * KEPT_ROWS] = last - first
    for number in range(last - first):
        room.known_rows[place * KEPT_ROWS + 1 + number] = room.rows[first + number]


@inlined
def add_word(
    reader: LineReader, data: Bytes, start: int, stop: int, key: int, spread: int, room: LineRoom, count: int
) -> int:
    """Append the rows of a word: its own and those of its n-grams; −1 where it is not a word but a label."""
    place = spread & (KEPT - 1)
    if reader.most and is_known(room, key, place):
        return add_known(room.known_rows, place * KEPT_ROWS, room.rows, count)
    entry = entry_of(reader, data, start, stop, room.keys, key, spread & (len(reader.slots) // 4 - 1))
    if entry >= reader.words or (entry < 0 and begins_with(data, start, stop, reader.prefix)):
        return -1
    last = count
    if entry >= 0:
        room.rows[last] = entry
        last += 1
    if reader.most:
        last = add_ngrams(reader, data, start, stop, room.rows, last, room.marked)
        keep(room, key, place, count, last)
    return last


@inlined
def cut_token(data: Bytes, place: int, stop: int, keys: Words, key: int) -> int:
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


@inlined
def cut_tokens(reader: LineReader, data: Bytes, begins: Longs, ends: Longs, last: int, room: LineRoom) -> int:
    """Cut up to BATCH tokens of the lines before ``last`` from the cursor on, make their keys and ask for their places
    in the table; how many. The end of a line, also one that is written out, is an empty token.
    """
    tokens, keys = room.tokens, room.keys
    line, place = room.cursor[0], room.cursor[1]
    places = max(len(reader.slots) // 4, KEPT)
    inside = len(reader.slots) // 4 - 1
    filled = 0
    while filled < BATCH and line < last:
        stop = ends[line]
        while place < stop and data[place] != _LINE_FEED and is_separator(data[place]):
            place += 1
        at, key = filled * 3, filled * 4
        end = cut_token(data, place, stop, keys, key)
        filled += 1
        if end == place or (end - place == 4 and is_end_mark(data, place)):
            tokens[at], tokens[at + 1] = 0, 0
            line += 1
            place = begins[line] if line < last else 0
            continue
        spread = row_of(keys, key, places)
        if reader.most:
            prefetch(room.known, (spread & (KEPT - 1)) * 4)
            prefetch(room.known_rows, (spread & (KEPT - 1)) * KEPT_ROWS)
        else:
            prefetch(reader.slots, (spread & inside) * 4)
        tokens[at], tokens[at + 1], tokens[at + 2] = place, end, spread
        place = end
    room.cursor[0], room.cursor[1] = line, place
    return filled


@inlined
def lines_that_fit(begins: Longs, ends: Longs, first: int, size: int) -> int:
    """How many lines from ``first`` on there is room for; at least one."""
    last, held = first, 0
    while last < len(begins) and last - first < LINES and (last == first or held + ends[last] - begins[last] <= size):
        held += ends[last] - begins[last]
        last += 1
    return last - first


@kernel
def read_lines(reader: LineReader, data: Bytes, begins: Longs, ends: Longs, first: int, room: LineRoom) -> int:
    """Fill ``room`` with the rows of the next lines; how many lines. None may be longer than ``room.size``."""
    rows, hashes, tokens = room.rows, room.hashes, room.tokens
    lines = lines_that_fit(begins, ends, first, room.size)
    room.cursor[0], room.cursor[1] = first, begins[first]
    count, words, line = 0, 0, 0
    while line < lines:
        filled = cut_tokens(reader, data, begins, ends, first + lines, room)
        for token in range(filled):
            start, stop = tokens[token * 3], tokens[token * 3 + 1]
            if start == stop:
                count = end_line(reader, rows, room.row_ends[line], count, hashes, words, room.seen)
                line += 1
                room.row_ends[line] = count
                words = 0
                continue
            added = add_word(reader, data, start, stop, token * 4, tokens[token * 3 + 2], room, count)
            if added < 0:
                continue
            count = added
            if reader.word_ngrams > 1:
                hashes[words] = hash_token(data, start, stop)
                words += 1
    return lines


@inlined
def end_line(reader: LineReader, rows: Ints, first: int, count: int, hashes: Ints, words: int, seen: Ints) -> int:
    """What the end of a line adds to its rows, which begin at ``first``: ``</s>`` and the word n-grams."""
    if reader.end >= 0:
        rows[count] = reader.end
        count += 1
    if reader.word_ngrams > 1 and reader.buckets:
        hashes[words] = END_HASH
        count = add_word_ngrams(reader, hashes, words + 1, rows, count)
    return keep_distinct(rows, first, count, seen) if reader.distinct else count


@inlined
def keep_distinct(rows: Ints, first: int, last: int, seen: Ints) -> int:
    """Each of ``rows[first:last]`` once, in the order they first come; where they end then. ``seen`` is room for a
    table of them.
    """
    size = 16
    while size < 2 * (last - first):
        size *= 2
    for place in range(size):
        seen[place] = -1
    kept = first
    for place in range(first, last):
        row = rows[place]
        at = np.int64((np.uint32(row) * _SPREAD) >> np.uint32(7)) & (size - 1)
        while seen[at] >= 0 and seen[at] != row:
            at = (at + 1) & (size - 1)
        if seen[at] < 0:
            seen[at] = row
            rows[kept] = row
            kept += 1
    return kept


@inlined
def is_end_mark(data: Bytes, place: int) -> bool:
    """Whether ``</s>`` is written there."""
    return data[place] == 60 and data[place + 1] == 47 and data[place + 2] == 115 and data[place + 3] == 62
