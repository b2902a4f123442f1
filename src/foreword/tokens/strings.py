"""The hash table of byte strings: each distinct string gets a number, in order of first occurrence, and a count.

Open addressing over rows of four 64-bit words:

    the string's first 24 bytes in three words, padded with zeros
    tag, id + 1: 32 bits each; zero where the row is free. The tag is the string's length if that is at most 24, else
    31 bits of a hash of what follows, with the top bit set

A string of up to 24 bytes, which nearly all words are, is found by comparing four numbers and never touches its text.
Longer ones are compared byte by byte in ``arena``, which holds all strings one after another: string i is
``arena[starts[i]:starts[i + 1]]``. Counts are stored separately, by id: frequent strings come early, so that their
counts share few cache lines.

The cost is waiting for memory: the rows of a large table are scattered over it. So pieces are processed in batches: one
pass cuts the text, makes the keys and prefetches the rows, a second finds them. That alone doubles the speed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Bytes, Ids, Ints, Longs, Scalar, ULongs
from foreword.native.hashing import FIRST, HALF, SECOND, fold_bytes, mix
from foreword.native.jit import inlined, kernel
from foreword.native.memory import load8, prefetch
from foreword.storage.joined import joined
from foreword.text.block import Block
from foreword.tokens.pieces import PUNCTUATION, WORDS, character_classes, piece_end, skip_space

BATCH = 64
"""Pieces in a batch; from 32 on, more made no difference."""

LINE = 64
"""Bytes of a cache line."""

_LONG = np.uint64(1 << 63)
_TAG = np.uint64(0xFFFFFFFF00000000)
ID_BITS = np.uint64(0x00000000FFFFFFFF)
_ZERO = np.uint64(0)


@inlined
def make_key(data: Bytes, start: int, stop: int, key: ULongs, index: int) -> None:
    """Write the four words of ``data[start:stop]``'s row, without the id, to ``key[index:index + 4]``."""
    length = stop - start
    key[index] = load8(data, start, stop)
    key[index + 1] = load8(data, start + 8, stop) if length > 8 else _ZERO
    key[index + 2] = load8(data, start + 16, stop) if length > 16 else _ZERO
    if length <= 24:
        key[index + 3] = np.uint64(length) << HALF
        return
    key[index + 3] = (fold_bytes(np.uint64(length), data, start + 24, stop) | _LONG) & _TAG


@inlined
def mixed_key(first: np.uint64, second: np.uint64, third: np.uint64, tag: np.uint64) -> np.uint64:
    """Mix a key's four words, the last without its id, into one. The last shift matters: the low bits of a product do
    not depend on its factors' high bits.
    """
    mixed = (mix(first ^ ((tag & _TAG) >> np.uint64(7))) ^ second) * SECOND
    mixed ^= mixed >> HALF
    mixed = (mixed ^ third) * FIRST
    return mixed ^ (mixed >> np.uint64(29))


@inlined
def row_of(key: ULongs, index: int, rows: int) -> int:
    """Return the row at which the search begins."""
    mixed = mixed_key(key[index], key[index + 1], key[index + 2], key[index + 3])
    return np.int64(mixed & np.uint64(rows - 1))


@inlined
def same_bytes(data: Bytes, start: int, stop: int, arena: Bytes, begin: int, end: int) -> bool:
    """Return whether two strings are equal."""
    if stop - start != end - begin:
        return False
    while start < stop:
        if load8(data, start, stop) != load8(arena, begin, end):
            return False
        start += 8
        begin += 8
    return True


@inlined
def find(
    slots: ULongs, arena: Bytes, starts: Longs, row: int, key: ULongs, index: int, data: Bytes, start: int, stop: int
) -> int:
    """Return four times the row of the string with that key, searching from ``row`` on, or of the free row for it."""
    at = row * 4
    tag = key[index + 3]
    while slots[at + 3] != _ZERO:
        if (
            slots[at] == key[index]
            and (slots[at + 3] & _TAG) == tag
            and slots[at + 1] == key[index + 1]
            and slots[at + 2] == key[index + 2]
        ):
            if tag < _LONG:
                break
            id = np.int64(slots[at + 3] & ID_BITS) - 1
            if same_bytes(data, start, stop, arena, starts[id], starts[id + 1]):
                break
        at = (at + 4) & (len(slots) - 1)
    return at


@inlined
def insert(
    slots: ULongs, arena: Bytes, starts: Longs, at: int, size: int,
    key: ULongs, index: int, data: Bytes, start: int, stop: int,
) -> None:  # fmt: skip
    """Enter ``data[start:stop]`` as string number ``size`` in the free row ``at``; there must be space."""
    used = starts[size]
    for offset in range(stop - start):
        arena[used + offset] = data[start + offset]
    starts[size + 1] = used + stop - start
    for part in range(3):
        slots[at + part] = key[index + part]
    slots[at + 3] = key[index + 3] | np.uint64(size + 1)


@inlined
def has_space(slots: ULongs, arena: Bytes, starts: Longs, size: int, length: int) -> bool:
    """Return whether one more string of that length fits: at most half the rows are ever used."""
    return size * 8 + 8 <= len(slots) and size + 2 <= len(starts) and starts[size] + length <= len(arena)


@kernel
def rehash(old: ULongs, new: ULongs) -> None:
    """Enter all rows of a table into a larger one."""
    for source in range(0, len(old), 4):
        if old[source + 3] != _ZERO:
            at = row_of(old, source, len(new) // 4) * 4
            while new[at + 3] != _ZERO:
                at = (at + 4) & (len(new) - 1)
            for part in range(4):
                new[at + part] = old[source + part]


@inlined
def cut_batch(
    data: Bytes,
    begins: Longs,
    ends: Longs,
    goes_on: bool,
    pattern: int,
    classes: Bytes,
    slots: ULongs,
    batch: Longs,
    keys: ULongs,
    position: Longs,
) -> int:
    """Cut up to BATCH pieces from ``position`` on, make their keys and prefetch their rows; return how many.

    A document's end is an empty piece; that of the last one only if it does not continue in the next block.
    batch: (BATCH * 4,), out: document, start, stop and row of each piece; keys: (BATCH * 4,), out.
    position: [document, offset, …], in and out.
    """
    document, index = position[0], position[1]
    spaced = pattern in (WORDS, PUNCTUATION)
    filled = 0
    while filled < BATCH and document < len(begins):
        index = max(index, begins[document])
        stop = ends[document]
        if spaced:
            index = skip_space(data, index, stop)
        end = piece_end(data, index, stop, pattern, classes) if index < stop else index
        at = filled * 4
        batch[at] = document
        batch[at + 1] = index
        batch[at + 2] = end
        if index >= stop:
            document += 1
            if goes_on and document == len(begins):
                break
        make_key(data, index, end, keys, at)
        batch[at + 3] = row_of(keys, at, len(slots) // 4)
        prefetch(slots, batch[at + 3] * 4)
        index = end
        filled += 1
    position[0], position[1] = document, index
    return filled


@kernel
def count_pieces(
    data: Bytes,
    begins: Longs,
    ends: Longs,
    goes_on: bool,
    pattern: int,
    classes: Bytes,
    slots: ULongs,
    arena: Bytes,
    starts: Longs,
    counts: Longs,
    firsts: Longs,
    base: int,
    out: Ints,
    batch: Longs,
    keys: ULongs,
    position: Longs,
) -> int:
    """Cut documents into pieces and count them; unless ``out`` is empty, also write each piece's id there.

    A document's end is counted as the empty string, id 0. ``firsts`` records where each string was first seen, as
    ``base`` + byte offset. position: [document, offset, ids written, strings in the table], where to resume. Returns 0
    when all is done, or one more than the length of a piece that the table has no space for: the caller enlarges it
    and calls again.
    """
    written, size = position[2], position[3]
    with_ids = len(out) > 0
    while position[0] < len(begins):
        filled = cut_batch(data, begins, ends, goes_on, pattern, classes, slots, batch, keys, position)
        for piece in range(filled):
            key = piece * 4
            start, end = batch[key + 1], batch[key + 2]
            at = find(slots, arena, starts, batch[key + 3], keys, key, data, start, end)
            id = np.int64(slots[at + 3] & ID_BITS) - 1
            if id < 0:
                if not has_space(slots, arena, starts, size, end - start):
                    position[0], position[1], position[2], position[3] = batch[key], start, written, size
                    return end - start + 1
                insert(slots, arena, starts, at, size, keys, key, data, start, end)
                firsts[size] = base + start
                counts[size] = 0
                id = size
                size += 1
            counts[id] += 1
            if with_ids:
                out[written] = id
                written += 1
    position[2], position[3] = written, size
    return 0


@kernel
def add_counted(
    words: Bytes,
    offsets: Longs,
    more: Longs,
    seen: Longs,
    slots: ULongs,
    arena: Bytes,
    starts: Longs,
    counts: Longs,
    firsts: Longs,
    places: Ints,
    keys: ULongs,
    position: Longs,
) -> int:
    """Add strings that were counted elsewhere; ``places[i]`` becomes the id of string i here.

    keys: (BATCH * 4,), scratch. position: [next string, strings in the table]. Returns as ``count_pieces`` does.
    """
    size = position[1]
    rows = len(slots) // 4
    for word in range(position[0], len(more)):
        key = (word % BATCH) * 4
        if key == 0 or word == position[0]:
            for ahead in range(word, min(word - word % BATCH + BATCH, len(more))):
                make_key(words, offsets[ahead], offsets[ahead + 1], keys, (ahead % BATCH) * 4)
                prefetch(slots, row_of(keys, (ahead % BATCH) * 4, rows) * 4)
        start, stop = offsets[word], offsets[word + 1]
        at = find(slots, arena, starts, row_of(keys, key, rows), keys, key, words, start, stop)
        id = np.int64(slots[at + 3] & ID_BITS) - 1
        if id < 0:
            if not has_space(slots, arena, starts, size, stop - start):
                position[0], position[1] = word, size
                return stop - start + 1
            insert(slots, arena, starts, at, size, keys, key, words, start, stop)
            firsts[size] = seen[word]
            counts[size] = 0
            id = size
            size += 1
        counts[id] += more[word]
        firsts[id] = min(firsts[id], seen[word])
        places[word] = id
    position[0], position[1] = len(more), size
    return 0


@kernel
def enter_all(data: Bytes, starts: Longs, slots: ULongs, keys: ULongs) -> None:
    """Enter every string; of equal ones the first is entered. keys: (BATCH * 4,), scratch."""
    rows = len(slots) // 4
    count = len(starts) - 1
    for first in range(0, count, BATCH):
        last = min(first + BATCH, count)
        for number in range(first, last):
            key = (number - first) * 4
            make_key(data, starts[number], starts[number + 1], keys, key)
            prefetch(slots, row_of(keys, key, rows) * 4)
        for number in range(first, last):
            key = (number - first) * 4
            row = row_of(keys, key, rows)
            at = find(slots, data, starts, row, keys, key, data, starts[number], starts[number + 1])
            if slots[at + 3] == _ZERO:
                for part in range(3):
                    slots[at + part] = keys[key + part]
                slots[at + 3] = keys[key + 3] | np.uint64(number + 1)


@kernel
def look_up(
    words: Bytes, offsets: Longs, slots: ULongs, arena: Bytes, starts: Longs, places: Ints, keys: ULongs
) -> None:
    """Set ``places[i]`` to the id of string i, -1 if it is not in the table."""
    first = np.int64(0)
    for word in range(len(places)):
        start, stop = offsets[word], offsets[word + 1]
        make_key(words, start, stop, keys, first)
        at = find(slots, arena, starts, row_of(keys, first, len(slots) // 4), keys, first, words, start, stop)
        places[word] = np.int64(slots[at + 3] & ID_BITS) - 1


class StringTable:
    """Distinct strings with their counts; number 0 is the empty string, which stands for a document's end."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all strings, and free their memory."""
        self.size = self._last_base = 0
        self.slots = empty_rows(1 << 12)
        self.arena = np.empty(1 << 15, np.uint8)
        self.starts = np.zeros(1 << 11, np.int64)
        self._counts = np.zeros(1 << 11, np.int64)
        self._firsts = np.zeros(1 << 11, np.int64)
        self.add(np.empty(0, np.uint8), *(np.zeros(length, np.int64) for length in (2, 1, 1)))

    @classmethod
    def over(cls, data: Bytes, offsets: Longs) -> StringTable:
        """Make a table of strings in an existing buffer, without copying: string i has the number i + 1.

        Twice as fast as adding them. Of equal strings only the first is found.
        """
        table = cls.__new__(cls)
        table.size, table._last_base = len(offsets), 0
        table.slots = empty_rows(max(1 << 12, 1 << (2 * table.size - 1).bit_length()))
        table.arena = data if data.flags.writeable else data.copy()  # Numba would compile all kernels twice
        table.starts = np.concatenate((np.zeros(1, np.int64), offsets))
        table._counts, table._firsts = np.zeros_like(table.starts), np.zeros_like(table.starts)
        enter_all(table.arena, table.starts, table.slots, np.empty(BATCH * 4, np.uint64))
        return table

    @property
    def counts(self) -> Longs:
        """How often each string was seen, int64 (size,)."""
        return self._counts[: self.size]

    @property
    def firsts(self) -> Longs:
        """Where each string was first seen, int64 (size,)."""
        return self._firsts[: self.size]

    @property
    def tallies(self) -> tuple[Longs, Longs]:
        """Counts and first positions with the unused space after them, for kernels to write to."""
        return self._counts, self._firsts

    @property
    def offsets(self) -> Longs:
        """Where each string lies in ``arena``, int64 (size + 1,)."""
        return self.starts[: self.size + 1]

    def count(self, block: Block, pattern: int, *, base: int = 0, out: Ints | None = None) -> Ints:
        """Count a block's pieces; with ``out``, large enough for all of them, return their ids, a view of it.

        base: the block's byte offset. Where threads share tables, a block may come after a later one: then it is
        counted by itself and added, which compares first positions.
        """
        if base < self._last_base:
            apart = StringTable()
            found = apart.count(block, pattern, base=base, out=out)
            found[:] = self.add(apart.arena, apart.offsets, apart.counts, apart.firsts)[found]
            return found
        self._last_base = base
        ids = _NO_IDS if out is None else out
        position = np.array([0, 0, 0, self.size], np.int64)
        batch, keys = np.empty(BATCH * 4, np.int64), np.empty(BATCH * 4, np.uint64)
        while need := count_pieces(
            block.data, block.starts, block.stops, block.open, pattern, character_classes(pattern),
            self.slots, self.arena, self.starts, self._counts, self._firsts, base, ids, batch, keys, position,
        ):  # fmt: skip
            self.grow(int(position[3]), need)
        self.size = int(position[3])
        return ids[: position[2]]

    def add(self, words: Bytes, offsets: Longs, counts: Longs, firsts: Longs) -> Ints:
        """Add strings counted elsewhere; return their ids here."""
        if self.size == 1:  # nearly always all of them are new then: growing in steps would take three times as long
            self._reserve(len(counts) + 1, int(offsets[-1] - offsets[0]))
        places = np.empty(len(counts), np.int32)
        position = np.array([0, self.size], np.int64)
        keys = np.empty(BATCH * 4, np.uint64)
        while need := add_counted(
            words, offsets, counts, firsts,
            self.slots, self.arena, self.starts, self._counts, self._firsts, places, keys, position,
        ):  # fmt: skip
            self.grow(int(position[1]), need)
        self.size = int(position[1])
        return places

    def ids_of(self, words: Bytes, offsets: Longs) -> Ints:
        """Return the ids of strings, -1 for those not in the table."""
        places = np.empty(len(offsets) - 1, np.int32)
        look_up(words, offsets, self.slots, self.arena, self.starts, places, np.empty(4, np.uint64))
        return places

    def memory(self) -> int:
        """Return the size of the table's arrays in bytes."""
        return sum(array.nbytes for array in (self.slots, self.arena, self.starts, self._counts, self._firsts))

    def _reserve(self, strings: int, length: int) -> None:
        """Enlarge the arrays to hold that many strings, ``length`` bytes in all."""
        if strings * 8 > len(self.slots):
            larger = empty_rows(1 << (2 * strings - 1).bit_length())
            rehash(self.slots, larger)
            self.slots = larger
        if strings + 1 > len(self.starts):
            self.starts = longer(self.starts, strings + 1)
            self._counts = longer(self._counts, strings + 1)
            self._firsts = longer(self._firsts, strings + 1)
        if length > len(self.arena):
            self.arena = longer(self.arena, length)

    def grow(self, size: int, length: int) -> None:
        """Enlarge the arrays for one more string of that length, after a kernel ran out of space; size: strings by
        then.
        """
        self.size = size
        if size * 8 + 8 > len(self.slots):
            larger = empty_rows(len(self.slots) // 2)
            rehash(self.slots, larger)
            self.slots = larger
        if size + 2 > len(self.starts):
            self.starts = longer(self.starts, 2 * len(self.starts))
            self._counts = longer(self._counts, 2 * len(self._counts))
            self._firsts = longer(self._firsts, 2 * len(self._firsts))
        if self.starts[size] + length > len(self.arena):
            self.arena = longer(self.arena, 2 * len(self.arena) + length)


_NO_IDS = np.empty(0, np.int32)


def add_strings(strings: Sequence[bytes], slots: ULongs, arena: Bytes, starts: Longs, size: int) -> None:
    """Add distinct strings to the arrays of a table, the first as number ``size``; there must be space."""
    data, offsets = joined(strings)
    none, unused = np.zeros(len(strings), np.int64), np.zeros(len(starts), np.int64)
    numbers = np.empty(len(strings), np.int32)
    position = np.array([0, size], np.int64)
    lacking = add_counted(
        data, offsets, none, none, slots, arena, starts, unused, unused, numbers,
        np.empty(BATCH * 4, np.uint64), position,
    )  # fmt: skip
    if lacking or position[1] != size + len(strings):
        raise ValueError("no space for all strings, or one is repeated")


def empty_rows(rows: int) -> ULongs:
    """Return free rows, two per cache line: a row across two lines would cost two accesses to memory."""
    # Not np.zeros: NumPy asks for huge pages only where it does not ask for zeroed ones, and a table this scattered
    # spends its time in address translation.
    room = np.empty(rows * 4 + LINE // 8, np.uint64)
    skipped = -room.ctypes.data % LINE // 8
    slots = room[skipped : skipped + rows * 4]
    slots.fill(0)
    return slots


def longer(array: NDArray[Scalar], rows: int) -> NDArray[Scalar]:
    """Return a copy with space for that many rows."""
    copy = np.empty((rows, *array.shape[1:]), array.dtype)
    copy[: len(array)] = array
    return copy


# Many strings at once


@kernel
def _gather(data: Bytes, offsets: Longs, numbers: Longs, out: Bytes, index: int) -> None:
    for listed in range(len(numbers)):
        prefetch(offsets, numbers[min(listed + 32, len(numbers) - 1)])
        prefetch(data, offsets[numbers[min(listed + 16, len(numbers) - 1)]])
        number = numbers[listed]
        for source in range(offsets[number], offsets[number + 1]):
            out[index] = data[source]
            index += 1


def gather_strings(data: Bytes, offsets: Longs, numbers: Longs, out: Bytes, index: int) -> None:
    """Copy the strings with these numbers to ``out``, from ``index`` on."""
    _gather(data, offsets, numbers, out, index)


@kernel
def _hash(data: Bytes, offsets: Longs, key: ULongs, out: Longs) -> None:
    first = np.int64(0)
    for number in range(len(out)):
        make_key(data, offsets[number], offsets[number + 1], key, first)
        out[number] = row_of(key, first, 1 << 30)


def hash_strings(data: Bytes, offsets: Longs) -> Longs:
    """Return a hash from 0 to 2^30 - 1 of each string."""
    out = np.empty(len(offsets) - 1, np.int64)
    _hash(data, offsets, np.empty(4, np.uint64), out)
    return out


@kernel
def renumber(ids: Ints, numbers: Ids, out: Ids) -> None:
    """Set ``out[i] = numbers[ids[i]]``; five times faster than ``np.take``, which checks every index again."""
    for index in range(len(ids)):
        out[index] = numbers[ids[index]]
