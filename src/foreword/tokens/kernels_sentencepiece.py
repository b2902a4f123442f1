"""Kernels that encode normalised text with the pieces of a sentencepiece model: unigram (Kudo, 2018) and BPE.

Unigram takes the best path: with s(p) the log-probability of a piece and a character that no piece covers at the
lowest score - 10,

    best(0) = 0,    best(j) = max over pieces p = text[i:j] of  best(i) + s(p)

What makes it fast is a cache of words. A text is cut before its blanks where no piece reaches over a blank, which is
nearly always so; then the best path through a text goes through the best paths of its words, and those are few.

Exactness. sentencepiece adds in single precision along the whole text, so that two paths of a word that are nearly
equal may come out either way, by what came before: after 5,000 characters the sum is about -10,000, and numbers that
large are 0.001 apart. So a word is cached with a limit: as long as the sum before it is smaller, rounding cannot change
its path. Let ``margin`` be the least difference between the best and the second best way into a node of its best
path, n its number of characters, and W the largest sum within it. After k additions the error is at most k / 2 spacings
of the numbers, so the path is safe if ``spacing(|sum| + W) * n < margin``. Otherwise the word is computed again from
the real sum, in single precision, as sentencepiece does.
"""

from __future__ import annotations

import math

import numpy as np

from foreword.arrays import Bytes, Doubles, Floats, Ints, Longs, ULongs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import load8, lowest_one, prefetch
from foreword.tokens.kernels import SHORT, merge_long, merge_short
from foreword.tokens.kernels_trie import UNIT, child_of, longest_match
from foreword.tokens.strings import BATCH, ID_BITS, find, has_space, insert, make_key, row_of

CUT_BEFORE, CUT_AFTER, CUT_NOWHERE, CUT_EACH = 0, 1, 2, 3
"""Where a text may be cut: before runs of blanks, after them, nowhere, or before each blank, sums beginning at zero."""

SINGLE, DOUBLE = 24, 53
"""Binary digits of the sums: of sentencepiece, and of ``tokenizers``."""

LONGEST_WORD = 96
"""Bytes of a word that is cached; longer ones seldom come again."""

_SPACE = 0x20
_BLANKS, _ONES, _HIGH = np.uint64(0x2020202020202020), np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
INLINE = 4
"""Ids of a word that its record has itself."""
COUNT_BITS = 12
COUNTED = (1 << COUNT_BITS) - 1
"""A record's number of ids: at most three for each byte of a cached word."""

_EVER = 1e15
"""A limit that no sum reaches."""
_SAFE = 0.99
"""Part of the margin that is used: the margin itself is computed in double precision."""


@inlined
def character_length(first: int) -> int:
    """Return the length of the UTF-8 character that begins with this byte; 1 for a byte that begins none."""
    if first < 0xC0:
        return 1
    return 2 if first < 0xE0 else 3 if first < 0xF0 else 4


@inlined
def word_end(data: Bytes, index: int, stop: int, cut: int) -> int:
    """Return where the word that begins at ``index`` ends."""
    if cut == CUT_NOWHERE:
        return stop
    if cut == CUT_EACH:
        return blank_from(data, index + 1, stop)
    if cut == CUT_BEFORE:
        while index < stop and data[index] == _SPACE:
            index += 1
        return blank_from(data, index, stop)
    index = blank_from(data, index, stop)
    while index < stop and data[index] == _SPACE:
        index += 1
    return index


@inlined
def blank_from(data: Bytes, index: int, stop: int) -> int:
    """Return the first blank from ``index`` on, or ``stop``: eight bytes at a time."""
    while index < stop:
        word = load8(data, index, stop) ^ _BLANKS
        zeros = (word - _ONES) & ~word & _HIGH  # the lowest bit that is set marks the first byte that is zero
        if zeros != np.uint64(0):
            return min(index + (lowest_one(zeros) >> 3), stop)
        index += 8
    return stop


# Unigram


@inlined
def best_path(
    data: Bytes, start: int, stop: int, trie: Ints, scores: Floats, unknown: int, unknown_score: np.float32,
    best: Floats, ids: Ints, begins: Ints,
) -> None:  # fmt: skip
    """Find the best path through ``data[start:stop]``, in the precision of ``best`` and the scores.

    best, ids, begins: (bytes + 1,), the best sum up to each position, and the last piece on the way there with its
    begin; ``best[0]`` is the sum before it.
    """
    length = stop - start
    for index in range(1, length + 1):
        ids[index] = -1
    index = 0
    while index < length:
        here = best[index]
        width = min(character_length(data[start + index]), length - index)
        covered = False
        node = np.int64(0)
        for end in range(index, length):
            node = child_of(trie, node, np.int64(data[start + end]))
            if node < 0:
                break
            id = trie[node * UNIT + 2]
            if id < 0:
                continue
            candidate = here + scores[id]
            if ids[end + 1] < 0 or candidate > best[end + 1]:
                best[end + 1], ids[end + 1], begins[end + 1] = candidate, id, index
            if end + 1 - index == width:
                covered = True
        if not covered:
            end = index + width
            candidate = here + unknown_score
            if ids[end] < 0 or candidate > best[end]:
                best[end], ids[end], begins[end] = candidate, unknown, index
        index += width


@inlined
def safe_path(
    data: Bytes, start: int, stop: int, trie: Ints, scores: Floats, unknown: int, unknown_score: np.float32,
    digits: int, best: Doubles, second: Doubles, ids: Ints, begins: Ints,
) -> float:  # fmt: skip
    """Find the best path in double precision; return the sum up to which rounding cannot change it.

    digits: the binary digits of the sums, 24 for float32. second: the sum of the second best way to each position.
    """
    length = stop - start
    best[0] = 0.0
    for index in range(1, length + 1):
        best[index] = second[index] = -np.inf
    index = characters = 0
    while index < length:
        here = best[index]
        width = min(character_length(data[start + index]), length - index)
        covered = False
        node = np.int64(0)
        for end in range(index + 1, length + 1):
            node = child_of(trie, node, np.int64(data[start + end - 1]))
            if node < 0:
                break
            id = trie[node * UNIT + 2]
            if id < 0:
                continue
            candidate = here + np.float64(scores[id])
            if candidate > best[end]:
                second[end] = best[end]
                best[end], ids[end], begins[end] = candidate, id, index
            elif candidate > second[end]:
                second[end] = candidate
            if end - index == width:
                covered = True
        if not covered:
            end = index + width
            candidate = here + unknown_score
            if candidate > best[end]:
                second[end] = best[end]
                best[end], ids[end], begins[end] = candidate, unknown, index
            elif candidate > second[end]:
                second[end] = candidate
        index += width
        characters += 1
    margin = largest = np.float64(0.0)
    for index in range(1, length + 1):
        if best[index] > -np.inf:
            largest = max(largest, abs(best[index]))
    margin = np.inf
    index = length
    while index > 0:
        margin = min(margin, best[index] - second[index])
        index = begins[index]
    if margin == np.inf:
        return np.inf
    if margin <= 0.0:
        return 0.0
    # Numbers below 2^k are at most 2^(k - digits) apart.
    power = math.floor(math.log2(_SAFE * margin / characters)) + digits
    return math.ldexp(1.0, min(power, 1000)) - 1.001 * largest


@inlined
def trace_back(
    length: int, ids: Ints, begins: Ints, scores: Floats, unknown: int, unknown_score: np.float32,
    path: Ints, path_ends: Ints, path_scores: Floats,
) -> int:  # fmt: skip
    """Write the pieces of the best path, the last one first, where each ends, and their scores; return how many."""
    count = 0
    index = length
    while index > 0:
        id = ids[index]
        path[count] = id
        path_ends[count] = index
        path_scores[count] = unknown_score if id == unknown else scores[id]
        count += 1
        index = begins[index]
    return count


# Byte-pair encoding


@inlined
def first_pieces(
    data: Bytes, start: int, stop: int, characters: Ints, frozen: Ints, unknown: int, symbols: Ints
) -> int:
    """Write the symbols of a word before any merge; return how many.

    characters: the trie of single characters. frozen: that of user-defined symbols, which are never merged: theirs is
    ``unknown + 1 + id``. unknown: the symbol of any other character.
    """
    count = 0
    index = start
    while index < stop:
        length, id = longest_match(frozen, data, index, stop)
        if length:
            symbols[count] = unknown + 1 + id
        else:
            length = min(character_length(data[index]), stop - index)
            matched, id = longest_match(characters, data, index, index + length)
            symbols[count] = id if matched == length else unknown
        index += length
        count += 1
    return count


@inlined
def merge_word(
    data: Bytes, start: int, stop: int, characters: Ints, frozen: Ints, unknown: int, merges: Longs,
    symbols: Ints, following: Ints, preceding: Ints, heap: Longs,
) -> int:  # fmt: skip
    """Write the symbols of a word after all merges; return how many."""
    count = first_pieces(data, start, stop, characters, frozen, unknown, symbols)
    if count <= SHORT:
        return merge_short(symbols, heap, count, merges)
    return merge_long(symbols, following, preceding, heap, count, merges)


# Both


@inlined
def write_unknown(
    data: Bytes, start: int, stop: int, unknown: int, byte_ids: Ints, escape: bool, out: Ints, written: int, first: int
) -> int:
    """Write an unknown character: its bytes, or ``<unk>`` unless the one before is that too; return the new end.

    first: where the word begins in ``out``.
    """
    if len(byte_ids) == 0:
        if written == first or out[written - 1] != unknown:
            out[written] = unknown
            written += 1
        return written
    for index in range(start, stop):
        byte = data[index]
        if escape and byte == _SPACE:
            out[written], out[written + 1], out[written + 2] = byte_ids[0xE2], byte_ids[0x96], byte_ids[0x81]
            written += 3
        else:
            out[written] = byte_ids[byte]
            written += 1
    return written


@inlined
def write_path(
    data: Bytes, start: int, count: int, path: Ints, path_ends: Ints, unknown: int, byte_ids: Ints, escape: bool,
    out: Ints, written: int,
) -> int:  # fmt: skip
    """Write the ids of a path that ``trace_back`` left; return where they end."""
    first = written
    begin = 0
    for number in range(count - 1, -1, -1):
        end = path_ends[number]
        if path[number] == unknown:
            written = write_unknown(data, start + begin, start + end, unknown, byte_ids, escape, out, written, first)
        else:
            out[written] = path[number]
            written += 1
        begin = end
    return written


@inlined
def write_symbols(
    data: Bytes, start: int, stop: int, count: int, symbols: Ints, symbol_ids: Ints, symbol_lengths: Ints,
    unknown_id: int, byte_ids: Ints, escape: bool, out: Ints, written: int,
) -> int:  # fmt: skip
    """Write the ids of a word's symbols after all merges; return where they end."""
    first = written
    index = start
    for number in range(count):
        symbol = symbols[number]
        length = symbol_lengths[symbol]
        if length == 0:
            length = min(character_length(data[index]), stop - index)
        id = symbol_ids[symbol]
        if id == unknown_id:
            written = write_unknown(data, index, index + length, unknown_id, byte_ids, escape, out, written, first)
        else:
            out[written] = id
            written += 1
        index += length
    return written


@inlined
def cut_words(
    data: Bytes, begins: Longs, ends: Longs, goes_on: bool, cut: int, slots: ULongs, batch: Longs, keys: ULongs,
    position: Longs,
) -> int:  # fmt: skip
    """Cut up to BATCH words from ``position`` on, as ``cut_batch`` of ``strings.py`` cuts pieces."""
    document, index = position[0], position[1]
    filled = 0
    while filled < BATCH and document < len(begins):
        index = max(index, begins[document])
        stop = ends[document]
        end = word_end(data, index, stop, cut) if index < stop else index
        at = filled * 4
        batch[at], batch[at + 1], batch[at + 2] = document, index, end
        if index >= stop:
            document += 1
            if goes_on and document == len(begins):
                break
        elif end - index <= LONGEST_WORD:
            make_key(data, index, end, keys, at)
            batch[at + 3] = row_of(keys, at, len(slots) // 4)
            prefetch(slots, batch[at + 3] * 4)
        index = end
        filled += 1
    position[0], position[1] = document, index
    return filled


@inlined
def record_of(records: Longs, number: int, used: int, limit: float, out: Ints, first: int, last: int) -> None:
    """Record that word ``number`` became ``out[first:last]`` as long as the sum before it is below ``limit``.

    A record is four numbers, half a cache line: the limit, rounded down; where ids begin in the memo, and their count;
    and the first four ids themselves, since few words have more.
    """
    count = last - first
    at = 4 * number
    records[at] = np.int64(math.floor(max(min(limit, _EVER), -1.0)))
    records[at + 1] = used << COUNT_BITS | count
    for half in range(2):
        low = np.int64(out[first + 2 * half]) if 2 * half < count else np.int64(0)
        high = np.int64(out[first + 2 * half + 1]) if 2 * half + 1 < count else np.int64(0)
        records[at + 2 + half] = high << 32 | low


@inlined
def write_known(
    records: Longs, number: int, memo: Ints, scores: Floats, before: np.float32, out: Ints, written: int
) -> tuple[int, np.float32]:
    """Write the ids of a cached word; return where they end, and the sum after them.

    Four are always written, and the sum takes the scores of those that count: how many a word has is hard to predict.
    """
    at = 4 * number
    count = records[at + 1] & COUNTED
    total, nothing = before, before - before  # in the precision of the scores
    if count <= INLINE:
        for index in range(INLINE):
            id = (records[at + 2 + (index >> 1)] >> (32 * (index & 1))) & 0xFFFFFFFF
            out[written + index] = id
            score = scores[id]
            total = total + (score if index < count else nothing)
        return written + count, total
    first = records[at + 1] >> COUNT_BITS
    for index in range(count):
        id = np.int64(memo[first + index])
        out[written + index] = id
        total = total + scores[id]
    return written + count, total


@kernel
def encode_pieces(
    data: Bytes, begins: Longs, ends: Longs, goes_on: bool, cut: int, escape: bool, end_id: int,
    trie: Ints, scores: Floats, unknown: int, unknown_score: np.float32, digits: int, byte_ids: Ints,
    merges: Longs, frozen: Ints, symbol_ids: Ints, symbol_lengths: Ints,
    slots: ULongs, arena: Bytes, starts: Longs, records: Longs, memo: Ints,
    rounded: Floats, best: Doubles, second: Doubles, ids: Ints, starts_of: Ints, path: Ints, path_ends: Ints,
    path_scores: Floats, heap: Longs,
    out: Ints, document_ends: Longs, batch: Longs, keys: ULongs, position: Longs, sums: Floats,
) -> int:  # fmt: skip
    """Encode normalised documents; words are cached while there is space.

    Unigram has an empty ``merges``, and a ``trie`` of all pieces; BPE a ``trie`` of single characters.
    The cache is a string table; ``record_of`` says what it holds of each word. Records are requested a batch ahead, and
    so are the ids of words that have many. out: with INLINE numbers to spare.
    position: [document, offset, ids written, words cached, 1 if the cache was too small, 1 after an unknown piece].
    sums: (1,), the sum so far in this document. Returns 0, or the length of a word that the scratch is too short for.
    """
    written, size = position[2], position[3]
    bpe = len(merges) > 0
    while position[0] < len(begins):
        filled = cut_words(data, begins, ends, goes_on, cut, slots, batch, keys, position)
        for word in range(filled):
            key = word * 4
            start, stop = batch[key + 1], batch[key + 2]
            number = np.int64(-1)
            if start < stop and stop - start <= LONGEST_WORD:
                at = find(slots, arena, starts, batch[key + 3], keys, key, data, start, stop)
                number = np.int64(slots[at + 3] & ID_BITS) - 1
                prefetch(records, max(4 * number, 0))
                if number < 0:
                    number = -1 - at
            batch[key + 3] = number
        for word in range(filled):
            number = batch[word * 4 + 3]
            if number >= 0 and records[4 * number + 1] & COUNTED > INLINE:
                prefetch(memo, records[4 * number + 1] >> COUNT_BITS)
        for word in range(filled):
            key = word * 4
            start, stop = batch[key + 1], batch[key + 2]
            if start == stop:
                out[written] = end_id
                written += 1
                document_ends[batch[key]] = written
                sums[0] = 0.0
                position[5] = 0
                continue
            length = stop - start
            cached = length <= LONGEST_WORD
            at = np.int64(0)
            if cached:
                number = batch[key + 3]
                if number < 0:  # its row was free; the same word may have been entered since, or another
                    at = find(slots, arena, starts, (-1 - number) >> 2, keys, key, data, start, stop)
                    number = np.int64(slots[at + 3] & ID_BITS) - 1
                if number >= 0:
                    if abs(sums[0]) < records[4 * number]:
                        written, total = write_known(records, number, memo, scores, sums[0], out, written)
                        if cut != CUT_EACH:
                            sums[0] = total
                        position[5] = 0
                        continue
                    cached = False
            if length + 1 > len(ids):
                position[0], position[1], position[2], position[3] = batch[key], start, written, size
                return length + 1
            first = written
            count = np.int64(0)
            limit = np.inf
            if bpe:
                symbols = merge_word(
                    data, start, stop, trie, frozen, len(symbol_ids) - 1 - len(scores), merges, ids, starts_of, path,
                    heap,
                )  # fmt: skip
                written = write_symbols(
                    data, start, stop, symbols, ids, symbol_ids, symbol_lengths, unknown, byte_ids, escape, out, written
                )
            else:
                if cached:
                    limit = safe_path(
                        data, start, stop, trie, scores, unknown, unknown_score, digits, best, second, ids, starts_of
                    )
                else:
                    rounded[0] = sums[0]
                    best_path(data, start, stop, trie, scores, unknown, unknown_score, rounded, ids, starts_of)
                count = trace_back(length, ids, starts_of, scores, unknown, unknown_score, path, path_ends, path_scores)
                written = write_path(data, start, count, path, path_ends, unknown, byte_ids, escape, out, written)
            if cached:
                for index in range(count):
                    if path[index] == unknown:  # the ids do not tell the scores then
                        limit = 0.0
                if out[first] == unknown or out[written - 1] == unknown:
                    limit = 0.0
                before = records[4 * size - 3]
                used = (before >> COUNT_BITS) + (before & COUNTED if before & COUNTED > INLINE else 0)
                if has_space(slots, arena, starts, size, length) and used + written - first <= len(memo):
                    insert(slots, arena, starts, at, size, keys, key, data, start, stop)
                    record_of(records, size, used, limit, out, first, written)
                    if written - first > INLINE:
                        for index in range(first, written):
                            memo[used + index - first] = out[index]
                    size += 1
                else:
                    position[4] = 1
            if not bpe:
                if cached and not abs(sums[0]) < limit:  # the path that was cached may not be that of this text
                    rounded[0] = sums[0]
                    best_path(data, start, stop, trie, scores, unknown, unknown_score, rounded, ids, starts_of)
                    count = trace_back(
                        length, ids, starts_of, scores, unknown, unknown_score, path, path_ends, path_scores
                    )
                    written = write_path(data, start, count, path, path_ends, unknown, byte_ids, escape, out, first)
                if cut != CUT_EACH:
                    for index in range(count - 1, -1, -1):
                        sums[0] = sums[0] + path_scores[index]
            if position[5] == 1 and out[first] == unknown:
                for index in range(first + 1, written):
                    out[index - 1] = out[index]
                written -= 1
            position[5] = 1 if out[written - 1] == unknown and len(byte_ids) == 0 else 0
    position[2], position[3] = written, size
    return 0


# One text with the spans of its pieces: the whole text at once, without the cache


@kernel
def unigram_spans(
    data: Bytes, trie: Ints, scores: Floats, unknown: int, unknown_score: np.float32,
    best: Floats, ids: Ints, begins: Ints, path: Ints, path_ends: Ints, path_scores: Floats,
) -> int:  # fmt: skip
    """Write the pieces of a normalised text, the last one first, and where each ends; return how many."""
    best[0] = 0.0
    best_path(data, 0, len(data), trie, scores, unknown, unknown_score, best, ids, begins)
    return trace_back(len(data), ids, begins, scores, unknown, unknown_score, path, path_ends, path_scores)


@kernel
def bpe_spans(
    data: Bytes, characters: Ints, frozen: Ints, unknown: int, merges: Longs, symbol_lengths: Ints,
    symbols: Ints, following: Ints, ends: Ints, heap: Longs,
) -> int:  # fmt: skip
    """Write the symbols of a normalised text, and where each ends; return how many."""
    count = merge_word(data, 0, len(data), characters, frozen, unknown, merges, symbols, following, ends, heap)
    index = 0
    for number in range(count):
        length = symbol_lengths[symbols[number]]
        index += length if length > 0 else min(character_length(data[index]), len(data) - index)
        ends[number] = index
    return count
