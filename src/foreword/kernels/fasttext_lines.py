"""A line of text as fastText's classifiers read it: the rows of its words, of their character n-grams and of its word
n-grams; and its labels.

Tokens stand between blanks, tabs, returns, NULs; a line feed, or the end of the text, is a token of its own, ``</s>``,
and ends the line. Words that begin with the label prefix are labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foreword.kernels.jit import inlined, kernel
from foreword.kernels.memory import ones
from foreword.kernels.subword_hash import FIRST, LAST, hash_byte, word_buckets
from foreword.kernels.table import ID_BITS, find, make_key, row_of

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]

_BASIS = np.uint32(2166136261)
_PRIME = np.uint32(16777619)
_NEXT_WORD = np.uint64(116049371)  # fastText's multiplier for the hash of several words
_SPREAD = np.uint32(2654435769)
_LINE_FEED = 10

MARKED = 64
"""Room for a word with its marks; longer ones take the slower road."""


def _end_hash() -> np.int32:
    hashed = 2166136261
    for byte in b"</s>":
        hashed = ((hashed ^ byte) * 16777619) & 0xFFFFFFFF
    return np.uint32(hashed).astype(np.int32)


END_HASH = _end_hash()
"""What ``</s>`` hashes to."""


class LineReader(NamedTuple):
    """What turns text into rows.

    slots, arena, starts: a StringTable of all entries; entries: int32, which entry each of its strings is.
    words: how many entries are words, the rest being labels; end: the entry of ``</s>``, or −1.
    least, most: the lengths of character n-grams; word_ngrams: up to how many words together; buckets: for both.
    kept, ranks, kept_rows: where buckets were pruned, which are kept (a bit each), how many before each 64, and the
    row of each; else empty.
    ngrams, ngram_starts: the rows of every word's n-grams, found once; those of unknown words are found as they come.
    prefix: how a label begins; distinct: whether a row counts once however often it comes.
    """

    slots: Words
    arena: Bytes
    starts: Longs
    entries: Ints
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
    ngrams: Ints
    ngram_starts: Longs
    prefix: Bytes
    distinct: bool


class LineRoom(NamedTuple):
    """Room for a line: its rows, the hashes of its words and its labels; counts: how many labels it had; largest and
    smallest: which row each column's extreme came from.
    """

    rows: Ints
    hashes: NDArray[np.int32]
    labels: Ints
    counts: Longs
    key: Words
    marked: Bytes
    largest: Ints
    smallest: Ints
    seen: Ints


def make_line_room(longest: int, reader: LineReader, stride: int) -> LineRoom:
    """Enough for a line of so many bytes."""
    tokens = longest // 2 + 2
    characters = (longest + 2 * tokens) * (reader.most - reader.least + 1) if reader.most else 0
    rows = tokens + characters + tokens * max(0, reader.word_ngrams - 1)
    return LineRoom(
        np.empty(rows + 1, np.int32),
        np.empty(tokens + 1, np.int32),
        np.empty(tokens + 1, np.int32),
        np.zeros(1, np.int64),
        np.empty(4, np.uint64),
        np.empty(MARKED, np.uint8),
        np.zeros(stride, np.int32),
        np.zeros(stride, np.int32),
        np.empty(2 << (rows + 1).bit_length() if reader.distinct else 1, np.int32),
    )


@inlined
def is_separator(byte: np.uint8) -> bool:
    return byte == 32 or (9 <= byte <= 13) or byte == 0


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
def entry_of(reader: LineReader, data: Bytes, start: int, stop: int, key: Words) -> int:
    """The entry of a token, or −1."""
    make_key(data, start, stop, key, 0)
    rows = len(reader.slots) // 4
    at = find(reader.slots, reader.arena, reader.starts, row_of(key, 0, rows), key, 0, data, start, stop)
    number = np.int64(reader.slots[at + 3] & ID_BITS) - 1
    return np.int64(reader.entries[number]) if number >= 0 else -1


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
def read_line(reader: LineReader, data: Bytes, start: int, stop: int, room: LineRoom) -> int:
    """Fill ``room`` with the rows and labels of ``data[start:stop]``; how many rows."""
    rows, hashes, labels = room.rows, room.hashes, room.labels
    count, tokens, marks = 0, 0, 0
    place = start
    at_end = False
    while not at_end:
        while place < stop and data[place] != _LINE_FEED and is_separator(data[place]):
            place += 1
        first = place
        while place < stop and not is_separator(data[place]):
            place += 1
        if place == first:  # a line feed, or nothing left: </s>
            at_end = True
            entry = reader.end
            if entry >= 0:
                rows[count] = entry
                count += 1
            if reader.word_ngrams > 1:
                hashes[tokens] = END_HASH
                tokens += 1
            continue
        entry = entry_of(reader, data, first, place, room.key)
        at_end = place - first == 4 and entry == reader.end and entry >= 0 and is_end_mark(data, first)
        if entry >= reader.words:
            labels[marks] = entry - reader.words
            marks += 1
            continue
        if entry < 0 and begins_with(data, first, place, reader.prefix):
            continue
        if entry >= 0:
            rows[count] = entry
            count += 1
            for ngram in range(reader.ngram_starts[entry], reader.ngram_starts[entry + 1]):
                rows[count] = reader.ngrams[ngram]
                count += 1
        elif reader.most:
            count = add_ngrams(reader, data, first, place, rows, count, room.marked)
        if reader.word_ngrams > 1:
            hashes[tokens] = hash_token(data, first, place)
            tokens += 1
    if reader.word_ngrams > 1 and reader.buckets:
        count = add_word_ngrams(reader, hashes, tokens, rows, count)
    room.counts[0] = marks
    return keep_distinct(rows, count, room.seen) if reader.distinct else count


@inlined
def keep_distinct(rows: Ints, count: int, seen: Ints) -> int:
    """Each of ``rows[:count]`` once, in the order they first come; how many. ``seen`` is room for a table of them."""
    size = 16
    while size < 2 * count:
        size *= 2
    for place in range(size):
        seen[place] = -1
    kept = 0
    for place in range(count):
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


@kernel
def rows_of_words(
    reader: LineReader, data: Bytes, offsets: Longs, out: Ints, starts: Longs, first: int, last: int, marked: Bytes
) -> int:
    """The rows of the n-grams of words ``first`` to ``last``; ``starts[i + 1]`` says where those of word i stop."""
    at = 0
    for word in range(first, last):
        if word != reader.end:
            at = add_ngrams(reader, data, offsets[word], offsets[word + 1], out, at, marked)
        starts[word + 1] = at
    return at
