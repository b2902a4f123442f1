"""Text to ids with a vocabulary that is already there."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ints, Longs, ULongs
from foreword.native.hashing import EMPTY, find_slot, pair_key
from foreword.native.jit import inlined, kernel
from foreword.tokens.pieces import character
from foreword.tokens.strings import ID_BITS, cut_batch, find, has_room, insert

NEVER = np.int64(0x7FFFFFFFFFFFFFFF)

SHORT = 64
"""Symbols up to which looking through all pairs for the best one beats keeping them in a heap."""


@kernel
def encode_symbols(
    data: Bytes, begins: Longs, ends: Longs, goes_on: bool, by_character: bool, symbols: Ints, end_id: int, out: Ints,
    document_ends: Longs,
) -> int:  # fmt: skip
    """Every byte or character by itself; how many ids were written.

    symbols: the id of each byte (256,) or code point (0x110000,). document_ends: (documents,), out, in all three
    encoders: how many ids were written when each document had ended; left alone for a last one that goes on.
    """
    written = 0
    for document in range(len(begins)):
        place = begins[document]
        stop = ends[document]
        while place < stop:
            if by_character:
                point, length = character(data, place, stop)
                out[written] = symbols[point]
                place += length
            else:
                out[written] = symbols[data[place]]
                place += 1
            written += 1
        if document + 1 < len(begins) or not goes_on:
            out[written] = end_id
            written += 1
            document_ends[document] = written
    return written


@kernel
def encode_words(
    data: Bytes, begins: Longs, ends: Longs, goes_on: bool, pattern: int, classes: Bytes,
    slots: ULongs, arena: Bytes, starts: Longs, ids: Ints, unknown: int, out: Ints, document_ends: Longs,
    batch: Longs, keys: ULongs, position: Longs,
) -> int:  # fmt: skip
    """Words by the table: ``ids`` turns the table's numbers into the vocabulary's; how many ids were written."""
    written = 0
    while position[0] < len(begins):
        filled = cut_batch(data, begins, ends, goes_on, pattern, classes, slots, batch, keys, position)
        for piece in range(filled):
            key = piece * 4
            at = find(slots, arena, starts, batch[key + 3], keys, key, data, batch[key + 1], batch[key + 2])
            number = np.int64(slots[at + 3] & ID_BITS) - 1
            out[written] = unknown if number < 0 else ids[number]
            written += 1
            if number == 0:
                document_ends[batch[key]] = written
    return written


@inlined
def merge_of(merges: Longs, left: int, right: int) -> int:
    """What a pair becomes, as rank << 32 | merged id, or NEVER; merges: a table of pairs."""
    place = find_slot(merges, pair_key(left, right))
    return NEVER if merges[place] == EMPTY else merges[place + 1]


@kernel
def fill_merges(merges: Longs, lefts: Ints, rights: Ints, merged: Ints) -> None:
    for rank in range(len(lefts)):
        key = pair_key(lefts[rank], rights[rank])
        place = find_slot(merges, key)
        merges[place] = key
        merges[place + 1] = np.int64(rank) << 32 | np.int64(merged[rank])


@inlined
def merge_short(symbols: Ints, values: Longs, length: int, merges: Longs) -> int:
    """Merge the best pair, leftmost first, until none is left; the new length. values[i] is the pair (i, i + 1)'s."""
    for place in range(length - 1):
        values[place] = merge_of(merges, symbols[place], symbols[place + 1])
    while length > 1:
        best = 0
        for place in range(1, length - 1):
            if values[place] < values[best]:
                best = place
        if values[best] == NEVER:
            break
        symbols[best] = np.int32(values[best] & 0xFFFFFFFF)
        length -= 1
        for place in range(best + 1, length):
            symbols[place] = symbols[place + 1]
            values[place - 1] = values[place]
        if best > 0:
            values[best - 1] = merge_of(merges, symbols[best - 1], symbols[best])
        if best + 1 < length:
            values[best] = merge_of(merges, symbols[best], symbols[best + 1])
    return length


@inlined
def heap_push(heap: Longs, size: int, rank: int, place: int) -> int:
    """A heap of (rank, place), two numbers an entry."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if heap[2 * parent] < rank or (heap[2 * parent] == rank and heap[2 * parent + 1] <= place):
            break
        heap[2 * at] = heap[2 * parent]
        heap[2 * at + 1] = heap[2 * parent + 1]
        at = parent
    heap[2 * at] = rank
    heap[2 * at + 1] = place
    return size + 1


@inlined
def heap_pop(heap: Longs, size: int) -> int:
    """Remove the first entry (read it before)."""
    size -= 1
    rank, place = heap[2 * size], heap[2 * size + 1]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            heap[2 * other] < heap[2 * child]
            or (heap[2 * other] == heap[2 * child] and heap[2 * other + 1] < heap[2 * child + 1])
        ):
            child = other
        if rank < heap[2 * child] or (rank == heap[2 * child] and place <= heap[2 * child + 1]):
            break
        heap[2 * at] = heap[2 * child]
        heap[2 * at + 1] = heap[2 * child + 1]
        at = child
    heap[2 * at] = rank
    heap[2 * at + 1] = place
    return size


@kernel
def merge_long(symbols: Ints, following: Ints, preceding: Ints, heap: Longs, length: int, merges: Longs) -> int:
    """The same by a heap of pairs over a linked list: n log n, for pieces of any length. -1 marks a merged symbol."""
    size = 0
    for place in range(length):
        following[place] = place + 1
        preceding[place] = place - 1
    for place in range(length - 1):
        value = merge_of(merges, symbols[place], symbols[place + 1])
        if value != NEVER:
            size = heap_push(heap, size, value, place)
    while size > 0:
        value, place = heap[0], heap[1]
        size = heap_pop(heap, size)
        after = following[place]
        if symbols[place] < 0 or after >= length or merge_of(merges, symbols[place], symbols[after]) != value:
            continue
        symbols[place] = np.int32(value & 0xFFFFFFFF)
        symbols[after] = -1
        beyond = following[after]
        following[place] = beyond
        if beyond < length:
            preceding[beyond] = place
            value = merge_of(merges, symbols[place], symbols[beyond])
            if value != NEVER:
                size = heap_push(heap, size, value, place)
        behind = preceding[place]
        if behind >= 0:
            value = merge_of(merges, symbols[behind], symbols[place])
            if value != NEVER:
                size = heap_push(heap, size, value, behind)
    kept = 0
    for place in range(length):
        if symbols[place] >= 0:
            symbols[kept] = symbols[place]
            kept += 1
    return kept


@inlined
def first_symbols(data: Bytes, start: int, stop: int, by_character: bool, table: Ints, symbols: Ints) -> int:
    length = 0
    place = start
    while place < stop:
        if by_character:
            point, width = character(data, place, stop)
            symbols[length] = table[point]
            place += width
        else:
            symbols[length] = table[data[place]]
            place += 1
        length += 1
    return length


@kernel
def encode_bpe(
    data: Bytes, begins: Longs, ends: Longs, goes_on: bool, pattern: int, classes: Bytes,
    slots: ULongs, arena: Bytes, starts: Longs, memo_ends: Longs, memo: Ints,
    by_character: bool, table: Ints, merges: Longs, end_id: int,
    symbols: Ints, following: Ints, preceding: Ints, heap: Longs,
    out: Ints, document_ends: Longs, batch: Longs, keys: ULongs, position: Longs,
) -> int:  # fmt: skip
    """Pieces by byte-pair encoding, each distinct one worked out once and remembered while there is room.

    The memory is a string table; what piece number i became is ``memo[memo_ends[i - 1]:memo_ends[i]]``.
    symbols, following, preceding: int32 (longest piece,), heap: int64 (4 * longest piece,), scratch.
    position: [document, place, ids written, pieces remembered, 1 if one was forgotten for want of room], in and out.
    Returns 0, or the length of a piece the scratch is too short for: the caller lengthens it and calls again.
    """
    written, size = position[2], position[3]
    while position[0] < len(begins):
        filled = cut_batch(data, begins, ends, goes_on, pattern, classes, slots, batch, keys, position)
        for piece in range(filled):
            key = piece * 4
            start, stop = batch[key + 1], batch[key + 2]
            if start == stop:
                out[written] = end_id
                written += 1
                document_ends[batch[key]] = written
                continue
            at = find(slots, arena, starts, batch[key + 3], keys, key, data, start, stop)
            number = np.int64(slots[at + 3] & ID_BITS) - 1
            if number >= 0:
                for place in range(memo_ends[number - 1], memo_ends[number]):
                    out[written] = memo[place]
                    written += 1
                continue
            if stop - start > len(symbols):
                position[0], position[1], position[2], position[3] = batch[key], start, written, size
                return stop - start
            length = first_symbols(data, start, stop, by_character, table, symbols)
            if length <= SHORT:
                length = merge_short(symbols, heap, length, merges)
            else:
                length = merge_long(symbols, following, preceding, heap, length, merges)
            for place in range(length):
                out[written + place] = symbols[place]
            written += length
            used = memo_ends[size - 1]
            if has_room(slots, arena, starts, size, stop - start) and used + length <= len(memo):
                insert(slots, arena, starts, at, size, keys, key, data, start, stop)
                for place in range(length):
                    memo[used + place] = symbols[place]
                memo_ends[size] = used + length
                size += 1
            else:
                position[4] = 1
    position[2], position[3] = written, size
    return 0
