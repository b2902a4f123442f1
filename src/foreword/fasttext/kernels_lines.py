"""A line of text as fastText's classifiers read it: the rows of its words, of their character n-grams and of its word
n-grams; and its labels.

Tokens are separated by blanks, tabs, returns, NULs; a line feed, or the end of the text, is a token of its own,
``</s>``, and ends the line. Words that begin with the label prefix are labels.

Four things make it fast. Tokens are cut sixty-four bytes at a time (``kernels_cut.py``). They are taken in batches, and
each step is a loop of its own over a batch: keys, hashes, prefetching their slots of the table, a first probe; none has
a branch that depends on the text. The n-grams of a word are hashed once and cached, for most words come again soon. And
a batch continues from one line to the next, so that short lines are no slower than long ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreword.arrays import Bytes, Ints, Longs, ULongs
from foreword.fasttext.kernels_cut import SLACK, cut_lines
from foreword.native.jit import inlined, kernel
from foreword.native.memory import load_unaligned, ones, prefetch
from foreword.tokens.strings import ID_BITS, make_key, mixed_key, same_bytes
from foreword.vectors.kernels_words import BEGIN_MARK, END_MARK, hash_byte, word_buckets

_BASIS = np.uint32(2166136261)
_PRIME = np.uint32(16777619)
_NEXT_WORD = np.uint64(116049371)  # fastText's multiplier for the hash of several words
_SPREAD = np.uint32(2654435769)
_LONG = np.uint64(1 << 63)
_TAG = np.uint64(0xFFFFFFFF00000000)
_ZERO = np.uint64(0)

MARKED = 64
"""Longest word with its marks; longer ones take the slower path."""

BATCH = 128
"""Tokens that are looked up together."""

SPECIAL = -2
"""The entry of the end of a line."""

LINES = 256
"""Lines that are read at a time, if they are short."""

SHORT = 1 << 16
"""Bytes that are read at a time; a longer line is read alone."""

MOST_ROWS = 1 << 22
"""About the most rows at a time, where n-grams of hundreds of lengths make many out of few bytes."""

CACHED = 1 << 14
"""Words whose n-grams are cached, a power of two: one for each value of some bits of a hash."""

CACHED_ROWS = 32
"""Numbers of a cached word: how many rows it has, and the rows."""


def _end_hash() -> np.int32:
    hashed = 2166136261
    for byte in b"</s>":
        hashed = ((hashed ^ byte) * 16777619) & 0xFFFFFFFF
    return np.uint32(hashed).astype(np.int32)


END_HASH = _end_hash()
"""The hash of ``</s>``."""

_END_MARK = np.uint64(int.from_bytes(b"</s>", "little"))
_END_LENGTH = np.uint64(4 << 32)

_MASKS = np.array(
    [(1 << 8 * min(8, max(0, length - skipped))) - 1 for length in range(25) for skipped in (0, 8, 16)], np.uint64
)
"""The bits of three 64-bit words that belong to a token, by its length."""


class LineReader(NamedTuple):
    """How text becomes rows.

    slots: a StringTable's, in which entry i has the number i + 1; arena, starts: the entries themselves.
    words: how many entries are words, the rest being labels; end: the entry of ``</s>``, or −1.
    least, most: the lengths of character n-grams; word_ngrams: up to how many words together; buckets: for both.
    kept, ranks, kept_rows: if buckets were pruned, which remain (a bit each), how many before each 64, and the row of
    each; else empty.
    prefix: how a label begins; distinct: whether a row counts once however often it comes.
    """

    slots: ULongs
    arena: Bytes
    starts: Longs
    words: int
    end: int
    least: int
    most: int
    word_ngrams: int
    buckets: int
    pruned: bool
    kept: ULongs
    ranks: Ints
    kept_rows: Ints
    prefix: Bytes
    distinct: bool


class LineWorkspace(NamedTuple):
    """Buffers for some lines, ``size`` bytes in all.

    rows, row_ends: those of line i are ``rows[row_ends[i]:row_ends[i + 1]]``; hashes: of one line's words.
    edges: start and stop of each token. Of a batch, keys: its tokens' four words, the first ones first; spreads: the
    hash of each; entries: what was found; late: tokens that were not found by the first probe.
    known, known_rows: cached words and their rows.
    largest, smallest: the row of each column's extreme; seen: a table of distinct rows.
    """

    size: int
    rows: Ints
    row_ends: Longs
    hashes: Ints
    edges: Longs
    spreads: Longs
    entries: Longs
    late: Longs
    keys: ULongs
    one_key: ULongs
    marked: Bytes
    known: ULongs
    known_rows: Ints
    largest: Ints
    smallest: Ints
    seen: Ints


def make_line_workspace(longest: int, reader: LineReader, stride: int) -> LineWorkspace:
    """Allocate buffers for lines of up to ``longest`` bytes."""
    lengths = max(0, reader.most - reader.least + 1) if reader.most else 0
    size = max(longest, min(SHORT, MOST_ROWS // (2 * lengths + reader.word_ngrams + 1)))
    tokens = size // 2 + 2 * LINES
    characters = (size + 2 * tokens) * lengths
    rows = tokens + characters + tokens * max(0, reader.word_ngrams - 1)
    return LineWorkspace(
        size,
        np.empty(rows + 4, np.int32),
        np.zeros(LINES + 1, np.int64),
        np.empty(tokens + 1, np.int32),
        np.empty(2 * tokens + SLACK, np.int64),
        np.empty(BATCH, np.int64),
        np.empty(BATCH, np.int64),
        np.empty(BATCH, np.int64),
        np.zeros(BATCH * 4, np.uint64),
        np.empty(4, np.uint64),
        np.empty(MARKED, np.uint8),
        np.zeros(CACHED * 4 if reader.most else 4, np.uint64),
        np.zeros(CACHED * CACHED_ROWS if reader.most else 1, np.int32),
        np.zeros(stride, np.int32),
        np.zeros(stride, np.int32),
        np.empty(2 << (rows + 1).bit_length() if reader.distinct else 1, np.int32),
    )


@inlined
def bucket_row(reader: LineReader, bucket: int) -> int:
    """Return the row of a bucket, or −1 if it was pruned."""
    if not reader.pruned:
        return reader.words + bucket
    word = reader.kept[bucket >> 6]
    bit = np.uint64(1) << np.uint64(bucket & 63)
    if (word & bit) == np.uint64(0):
        return -1
    rank = np.int64(reader.ranks[bucket >> 6]) + ones(word & (bit - np.uint64(1)))
    return reader.words + np.int64(reader.kept_rows[rank])


@inlined
def entry_of(reader: LineReader, data: Bytes, start: int, stop: int, keys: ULongs, token: int, place: int) -> int:
    """Return the entry of a token, or −1. The table may come from a file, so no number in it is trusted."""
    slots = reader.slots
    tag = keys[3 * BATCH + token]
    at = place * 4
    for _ in range(len(slots) // 4):
        last = slots[at + 3]
        if last == _ZERO:
            return -1
        if (
            slots[at] == keys[token]
            and (last & _TAG) == tag
            and slots[at + 1] == keys[BATCH + token]
            and slots[at + 2] == keys[2 * BATCH + token]
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
def find_entries(reader: LineReader, data: Bytes, batch: int, filled: int, work: LineWorkspace) -> None:
    """Find the entries of the tokens from ``batch`` on: −1 for unknown ones, SPECIAL for ends of lines."""
    edges, keys, entries, late = work.edges, work.keys, work.entries, work.late
    inside = len(reader.slots) // 4 - 1
    for number in range(probe_once(reader, filled, work)):
        token = late[number]
        start, stop = edges[2 * (batch + token)], edges[2 * (batch + token) + 1]
        if start == stop or (keys[token] == _END_MARK and keys[3 * BATCH + token] == _END_LENGTH):
            entries[token] = SPECIAL
        else:
            entries[token] = entry_of(reader, data, start, stop, keys, token, work.spreads[token] & inside)


@inlined
def probe_once(reader: LineReader, filled: int, work: LineWorkspace) -> int:
    """Find the entries of tokens by their first probe, which nearly always suffices. Write the others to ``late``, and
    return how many they are. There is no branch, which would be mispredicted once in twelve times.
    """
    slots, keys, entries, late = reader.slots, work.keys, work.entries, work.late
    known = len(reader.starts) - 1
    inside = len(slots) // 4 - 1
    missing = 0
    for token in range(filled):
        at = (work.spreads[token] & inside) * 4
        last, tag = slots[at + 3], keys[3 * BATCH + token]
        differs = (slots[at] ^ keys[token]) | (slots[at + 1] ^ keys[BATCH + token])
        differs |= (slots[at + 2] ^ keys[2 * BATCH + token]) | ((last ^ tag) & _TAG) | (tag & _LONG)
        entry = np.int64(last & ID_BITS) - 2
        free = last == _ZERO
        entries[token], late[missing] = -1 if free else entry, token
        special = (tag == _ZERO) | ((keys[token] == _END_MARK) & (tag == _END_LENGTH))
        missing += np.int64(special | ~free & ((differs != _ZERO) | (entry < 0) | (entry >= known)))
    return missing


@inlined
def begins_with(data: Bytes, start: int, stop: int, prefix: Bytes) -> bool:
    """Return whether a token begins with a prefix."""
    if stop - start < len(prefix):
        return False
    same = True
    for place in range(len(prefix)):
        same &= data[start + place] == prefix[place]
    return same


@inlined
def hash_token(data: Bytes, start: int, stop: int) -> np.int32:
    """Return the signed hash of a token."""
    hashed = _BASIS
    for place in range(start, stop):
        hashed = hash_byte(hashed, data[place])
    return np.int32(hashed)


@inlined
def mark(data: Bytes, start: int, stop: int, marked: Bytes) -> bool:
    """Write ``<word>`` to ``marked``, and return whether it is ASCII and fits."""
    if stop - start + 2 > len(marked):
        return False
    marked[0], marked[stop - start + 1] = BEGIN_MARK, END_MARK
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
    # Buckets are written in place of the rows, and then replaced by rows one by one.
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
def is_known(work: LineWorkspace, token: int, place: int) -> bool:
    """Return whether the rows of a token are cached at ``place``."""
    keys, known, at = work.keys, work.known, place * 4
    return (
        known[at] == keys[token]
        and known[at + 1] == keys[BATCH + token]
        and known[at + 2] == keys[2 * BATCH + token]
        and known[at + 3] == keys[3 * BATCH + token]
    )


@inlined
def add_known(known_rows: Ints, place: int, rows: Ints, count: int) -> int:
    """Append cached rows. Four at once suffice for most words, and are faster than a loop, which LLVM unrolls."""
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
def cache_word(work: LineWorkspace, token: int, place: int, first: int, last: int) -> None:
    """Cache ``rows[first:last]`` if they fit and the key holds the whole word."""
    if work.keys[3 * BATCH + token] >= _LONG or last - first >= CACHED_ROWS:
        return
    for part in range(4):
        work.known[place * 4 + part] = work.keys[part * BATCH + token]
    work.known_rows[place * CACHED_ROWS] = last - first
    for number in range(last - first):
        work.known_rows[place * CACHED_ROWS + 1 + number] = work.rows[first + number]


@inlined
def add_word(
    reader: LineReader, data: Bytes, start: int, stop: int, token: int, work: LineWorkspace, count: int
) -> int:
    """Append the rows of a word, its own and those of its n-grams, and return their number; −1 for a label."""
    spread = work.spreads[token]
    place = spread & (CACHED - 1)
    if reader.most and is_known(work, token, place):
        return add_known(work.known_rows, place * CACHED_ROWS, work.rows, count)
    entry = work.entries[token]
    if reader.most:
        entry = entry_of(reader, data, start, stop, work.keys, token, spread & (len(reader.slots) // 4 - 1))
    if entry >= reader.words or (entry < 0 and begins_with(data, start, stop, reader.prefix)):
        return -1
    last = count
    if entry >= 0:
        work.rows[last] = entry
        last += 1
    if reader.most:
        last = add_ngrams(reader, data, start, stop, work.rows, last, work.marked)
        cache_word(work, token, place, count, last)
    return last


@inlined
def make_keys(data: Bytes, edges: Longs, first: int, filled: int, keys: ULongs, one_key: ULongs) -> None:
    """Make the keys of tokens from ``first`` on: their first 64-bit words, then the second ones, third and fourth.

    All lengths up to 24 bytes take one path, for a branch for each could not be predicted; bytes beyond a short one are
    masked.
    """
    for token in range(filled):
        start, stop = edges[2 * (first + token)], edges[2 * (first + token) + 1]
        length = stop - start
        if length <= 24 and start + 24 <= len(data):
            keys[token] = load_unaligned(data, start) & _MASKS[3 * length]
            keys[BATCH + token] = load_unaligned(data, start + 8) & _MASKS[3 * length + 1]
            keys[2 * BATCH + token] = load_unaligned(data, start + 16) & _MASKS[3 * length + 2]
            keys[3 * BATCH + token] = np.uint64(length) << np.uint64(32)
        else:
            make_key(data, start, stop, one_key, 0)
            for part in range(4):
                keys[part * BATCH + token] = one_key[part]


@inlined
def prefetch_slots(reader: LineReader, filled: int, work: LineWorkspace) -> None:
    """Hash each token and prefetch its slot. The hashes have a loop of their own, which LLVM vectorises; leftovers of
    the batch before do no harm.
    """
    keys, spreads = work.keys, work.spreads
    mask = np.uint64(max(len(reader.slots) // 4, CACHED) - 1)
    for token in range(BATCH):
        words = keys[token], keys[BATCH + token], keys[2 * BATCH + token], keys[3 * BATCH + token]
        spreads[token] = np.int64(mixed_key(*words) & mask)
    inside = len(reader.slots) // 4 - 1
    for token in range(filled):
        spread = spreads[token]
        if reader.most:
            prefetch(work.known, (spread & (CACHED - 1)) * 4)
            prefetch(work.known_rows, (spread & (CACHED - 1)) * CACHED_ROWS)
        else:
            prefetch(reader.slots, (spread & inside) * 4)


@inlined
def lines_that_fit(begins: Longs, ends: Longs, first: int, size: int) -> int:
    """Return how many lines from ``first`` on fit; at least one."""
    last, used = first, 0
    while last < len(begins) and last - first < LINES and (last == first or used + ends[last] - begins[last] <= size):
        used += ends[last] - begins[last]
        last += 1
    return last - first


@kernel
def read_lines(reader: LineReader, data: Bytes, begins: Longs, ends: Longs, first: int, work: LineWorkspace) -> int:
    """Fill ``work`` with the rows of the next lines, and return how many. None may be longer than ``work.size``."""
    rows, hashes, edges, keys, entries = work.rows, work.hashes, work.edges, work.keys, work.entries
    plain = reader.most == 0 and reader.word_ngrams <= 1
    lines = lines_that_fit(begins, ends, first, work.size)
    tokens = cut_lines(data, begins, ends, first, first + lines, edges)
    count, words, line, over = np.int64(0), np.int64(0), np.int64(0), False
    for batch in range(0, tokens, BATCH):
        filled = min(BATCH, tokens - batch)
        make_keys(data, edges, batch, filled, keys, work.one_key)
        prefetch_slots(reader, filled, work)
        if not reader.most:
            find_entries(reader, data, batch, filled, work)
        for token in range(filled):
            entry = entries[token]
            if plain and entry != SPECIAL and entry != reader.end and not over:
                rows[count] = entry
                count += np.int64((entry >= 0) & (entry < reader.words))
                continue
            start, stop = edges[2 * (batch + token)], edges[2 * (batch + token) + 1]
            if start == stop:
                count = end_line(reader, rows, work.row_ends[line], count, hashes, words, work.seen)
                line += 1
                work.row_ends[line] = count
                words, over = 0, False
                continue
            over |= keys[token] == _END_MARK and keys[3 * BATCH + token] == _END_LENGTH
            if over:
                continue
            added = add_word(reader, data, start, stop, token, work, count)
            if added < 0:
                continue
            count = added
            if reader.word_ngrams > 1:
                hashes[words] = hash_token(data, start, stop)
                words += 1
    return lines


@inlined
def end_line(reader: LineReader, rows: Ints, first: int, count: int, hashes: Ints, words: int, seen: Ints) -> int:
    """Append ``</s>`` and the word n-grams to the rows of a line, which begin at ``first``; return their end."""
    if reader.end >= 0:
        rows[count] = reader.end
        count += 1
    if reader.word_ngrams > 1 and reader.buckets:
        hashes[words] = END_HASH
        count = add_word_ngrams(reader, hashes, words + 1, rows, count)
    return keep_distinct(rows, first, count, seen) if reader.distinct else count


@inlined
def keep_distinct(rows: Ints, first: int, last: int, seen: Ints) -> int:
    """Keep each of ``rows[first:last]`` once, in the order they first come, and return their end. seen: scratch for a
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
