"""Kernels that encode text: words and symbols by their vocabulary, and bytes or characters by the merges of a BPE."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ints, Longs, ULongs
from foreword.native.hashing import EMPTY, find_slot, pair_key
from foreword.native.jit import inlined, kernel
from foreword.tokens.pieces import character
from foreword.tokens.strings import ID_BITS, cut_batch, find, has_space, insert

NEVER = np.int64(0x7FFFFFFFFFFFFFFF)

SHORT = 64
"""Symbols up to which a scan of all pairs for the best one beats a heap."""


@kernel
def encode_symbols(
    data: Bytes, begins: Longs, ends: Longs, goes_on: bool, by_character: bool, symbols: Ints, end_id: int, out: Ints,
    document_ends: Longs,
) -> int:  # fmt: skip
    """Encode every byte or character by itself; return how many ids were written.

    symbols: the id of each byte (256,) or code point (0x110000,). document_ends: (documents,), out, in all three
    encoders: how many ids were written when each document had ended; not set for a last one that continues.
    """
    written = 0
    for document in range(len(begins)):
        written = first_symbols(data, begins[document], ends[document], by_character, symbols, out, written)
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
    """Encode words by the table; return how many ids were written. ids: the vocabulary's id of each table number."""
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
    """Return the merge of a pair, as rank << 32 | merged id, or NEVER; merges: a table of pairs."""
    index = find_slot(merges, pair_key(left, right))
    return NEVER if merges[index] == EMPTY else merges[index + 1]


@kernel
def fill_merges(merges: Longs, lefts: Ints, rights: Ints, merged: Ints, ranks: Ints) -> None:
    """Enter merges into an empty table of pairs; those of the lowest rank are applied first."""
    for number in range(len(lefts)):
        key = pair_key(lefts[number], rights[number])
        index = find_slot(merges, key)
        merges[index] = key
        merges[index + 1] = np.int64(ranks[number]) << 32 | np.int64(merged[number])


@inlined
def merge_short(symbols: Ints, values: Longs, length: int, merges: Longs) -> int:
    """Merge the pair of the lowest rank, leftmost first, until none is left; return the new length.

    values[i]: the merge of the pair (i, i + 1). Several pairs may have one rank.
    """
    for index in range(length - 1):
        values[index] = merge_of(merges, symbols[index], symbols[index + 1])
    while length > 1:
        best = 0
        for index in range(1, length - 1):
            if values[index] >> 32 < values[best] >> 32:
                best = index
        if values[best] == NEVER:
            break
        symbols[best] = np.int32(values[best] & 0xFFFFFFFF)
        length -= 1
        for index in range(best + 1, length):
            symbols[index] = symbols[index + 1]
            values[index - 1] = values[index]
        if best > 0:
            values[best - 1] = merge_of(merges, symbols[best - 1], symbols[best])
        if best + 1 < length:
            values[best] = merge_of(merges, symbols[best], symbols[best + 1])
    return length


@inlined
def heap_push(heap: Longs, size: int, rank: int, index: int) -> int:
    """Push (rank, index) on a heap of two numbers per entry; return its size."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if heap[2 * parent] < rank or (heap[2 * parent] == rank and heap[2 * parent + 1] <= index):
            break
        heap[2 * at] = heap[2 * parent]
        heap[2 * at + 1] = heap[2 * parent + 1]
        at = parent
    heap[2 * at] = rank
    heap[2 * at + 1] = index
    return size + 1


@inlined
def heap_pop(heap: Longs, size: int) -> int:
    """Remove the first entry, and return the heap's size."""
    size -= 1
    rank, index = heap[2 * size], heap[2 * size + 1]
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
        if rank < heap[2 * child] or (rank == heap[2 * child] and index <= heap[2 * child + 1]):
            break
        heap[2 * at] = heap[2 * child]
        heap[2 * at + 1] = heap[2 * child + 1]
        at = child
    heap[2 * at] = rank
    heap[2 * at + 1] = index
    return size


@kernel
def merge_long(symbols: Ints, following: Ints, preceding: Ints, heap: Longs, length: int, merges: Longs) -> int:
    """Merge as ``merge_short`` does, by a heap of pairs over a linked list: n log n, for long pieces. -1: merged
    symbol.
    """
    size = 0
    for index in range(length):
        following[index] = index + 1
        preceding[index] = index - 1
    for index in range(length - 1):
        value = merge_of(merges, symbols[index], symbols[index + 1])
        if value != NEVER:
            size = heap_push(heap, size, value >> 32, index)
    while size > 0:
        rank, index = heap[0], heap[1]
        size = heap_pop(heap, size)
        after = following[index]
        if symbols[index] < 0 or after >= length:
            continue
        value = merge_of(merges, symbols[index], symbols[after])
        if value == NEVER or value >> 32 != rank:
            continue
        symbols[index] = np.int32(value & 0xFFFFFFFF)
        symbols[after] = -1
        beyond = following[after]
        following[index] = beyond
        if beyond < length:
            preceding[beyond] = index
            value = merge_of(merges, symbols[index], symbols[beyond])
            if value != NEVER:
                size = heap_push(heap, size, value >> 32, index)
        behind = preceding[index]
        if behind >= 0:
            value = merge_of(merges, symbols[behind], symbols[index])
            if value != NEVER:
                size = heap_push(heap, size, value >> 32, behind)
    kept = 0
    for index in range(length):
        if symbols[index] >= 0:
            symbols[kept] = symbols[index]
            kept += 1
    return kept


@inlined
def first_symbols(data: Bytes, start: int, stop: int, by_character: bool, table: Ints, symbols: Ints, at: int) -> int:
    """Write the ids of a piece before any merge to ``symbols`` from ``at`` on; return where they end."""
    index = start
    while index < stop:
        if by_character:
            point, width = character(data, index, stop)
            symbols[at] = table[point]
            index += width
        else:
            symbols[at] = table[data[index]]
            index += 1
        at += 1
    return at


@kernel
def encode_bpe(
    data: Bytes, begins: Longs, ends: Longs, goes_on: bool, pattern: int, classes: Bytes,
    slots: ULongs, arena: Bytes, starts: Longs, memo_ends: Longs, memo: Ints,
    by_character: bool, table: Ints, merges: Longs, end_id: int,
    symbols: Ints, following: Ints, preceding: Ints, heap: Longs,
    out: Ints, document_ends: Longs, batch: Longs, keys: ULongs, position: Longs,
) -> int:  # fmt: skip
    """Encode pieces by byte-pair encoding; distinct ones are cached while there is space.

    The cache is a string table; what piece number i became is ``memo[memo_ends[i - 1]:memo_ends[i]]``.
    symbols, following, preceding: int32 (longest piece,), heap: int64 (4 * longest piece,), scratch.
    position: [document, offset, ids written, pieces cached, 1 if the cache was too small], in and out.
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
                for index in range(memo_ends[number - 1], memo_ends[number]):
                    out[written] = memo[index]
                    written += 1
                continue
            if stop - start > len(symbols):
                position[0], position[1], position[2], position[3] = batch[key], start, written, size
                return stop - start
            length = first_symbols(data, start, stop, by_character, table, symbols, 0)
            if length <= SHORT:
                length = merge_short(symbols, heap, length, merges)
            else:
                length = merge_long(symbols, following, preceding, heap, length, merges)
            for index in range(length):
                out[written + index] = symbols[index]
            written += length
            used = memo_ends[size - 1]
            if has_space(slots, arena, starts, size, stop - start) and used + length <= len(memo):
                insert(slots, arena, starts, at, size, keys, key, data, start, stop)
                for index in range(length):
                    memo[used + index] = symbols[index]
                memo_ends[size] = used + length
                size += 1
            else:
                position[4] = 1
    position[2], position[3] = written, size
    return 0
