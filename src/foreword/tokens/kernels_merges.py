"""Kernels that learn the merges of byte-pair encoding.

The plain trainer counts all pairs again after every merge (``plain.py``). Here the counts are updated: a merge only
touches the words that hold the pair, and only changes the counts of adjacent pairs (Sennrich, Haddow and Birch, 2016).
What makes it fast:

* Words with their counts, not text: each distinct word is rewritten once for all its occurrences.
* All symbols of all words in one array; a merge compacts a word in place.
* The four kinds of changed pairs of a merge a+b -> x, namely (L, a), (L, x), (b, R), (x, R), are summed in arrays
  indexed by the neighbour L or R, so the pair table is asked once for each changed pair, not for each change.
* A heap whose counts may be stale: counts of a pair only fall, so an entry is corrected when it surfaces.

Exactness. Hugging Face's trainer is the reference, and two of its habits are kept because its merges depend on them:
the count of a merged pair is left as it was, and each entry of the heap carries the list of words where the pair was
when the entry was made. Both show only when two different merges give the same token ("--"+"--", "---"+"-").
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ints, Longs, ULongs
from foreword.native.hashing import EMPTY, find_slot, pair_key
from foreword.native.jit import allocating, inlined, kernel
from foreword.tokens.pieces import character
from foreword.tokens.strings import ID_BITS, find, insert, make_key, row_of


@kernel
def move_pairs(old: Longs, new: Longs) -> int:
    """Copy the pairs that still have a count; return how many there are."""
    held = 0
    for source in range(0, len(old), 2):
        if old[source] != EMPTY and old[source + 1] != 0:
            index = find_slot(new, old[source])
            new[index] = old[source]
            new[index + 1] = old[source + 1]
            held += 1
    return held


@inlined
def before(heap: Longs, left: int, right: int) -> bool:
    """Return whether entry ``left`` comes out before ``right``: the higher count, then the smaller pair."""
    if heap[left * 3] != heap[right * 3]:
        return heap[left * 3] > heap[right * 3]
    return heap[left * 3 + 1] < heap[right * 3 + 1]


@inlined
def swap(heap: Longs, left: int, right: int) -> None:
    """Swap two entries of the heap."""
    for part in range(3):
        held = heap[left * 3 + part]
        heap[left * 3 + part] = heap[right * 3 + part]
        heap[right * 3 + part] = held


@inlined
def sift_up(heap: Longs, index: int) -> None:
    """Move an entry up to its place in the heap."""
    while index > 0:
        parent = (index - 1) >> 1
        if not before(heap, index, parent):
            break
        swap(heap, index, parent)
        index = parent


@inlined
def sift_down(heap: Longs, index: int, size: int) -> None:
    """Move an entry down to its place in the heap."""
    while True:
        child = 2 * index + 1
        if child >= size:
            break
        if child + 1 < size and before(heap, child + 1, child):
            child += 1
        if not before(heap, child, index):
            break
        swap(heap, child, index)
        index = child


@kernel
def count_pairs(symbols: Ints, begins: Longs, lengths: Ints, counts: Longs, pairs: Longs, held: Longs) -> int:
    """Count adjacent pairs from word ``held[1]`` on; ``held[0]``: distinct ones. Return 1 if the table is full."""
    for word in range(held[1], len(lengths)):
        if held[0] * 4 + 4 * lengths[word] > len(pairs):
            held[1] = word
            return 1
        start = begins[word]
        for index in range(start, start + lengths[word] - 1):
            key = pair_key(symbols[index], symbols[index + 1])
            at = find_slot(pairs, key)
            if pairs[at] == EMPTY:
                pairs[at] = key
                pairs[at + 1] = 0
                held[0] += 1
            pairs[at + 1] += counts[word]
    held[1] = len(lengths)
    return 0


@kernel
def number_pairs(pairs: Longs, numbers: Ints, heap: Longs) -> int:
    """Give each pair a number, in table order, and an entry in the heap array (not yet in heap order)."""
    size = 0
    for index in range(0, len(pairs), 2):
        if pairs[index] != EMPTY:
            numbers[index >> 1] = size
            heap[size * 3] = pairs[index + 1]
            heap[size * 3 + 1] = pairs[index]
            heap[size * 3 + 2] = size
            size += 1
    return size


@kernel
def find_words(
    symbols: Ints, begins: Longs, lengths: Ints, pairs: Longs, numbers: Ints, fills: Longs, last: Ints, pool: Ints
) -> None:
    """List for each pair the words that contain it. With an empty ``pool`` only count them, in ``fills``."""
    for word in range(len(lengths)):
        start = begins[word]
        for index in range(start, start + lengths[word] - 1):
            number = numbers[find_slot(pairs, pair_key(symbols[index], symbols[index + 1])) >> 1]
            if last[number] != word:  # a word is listed once, however often it holds the pair
                last[number] = word
                if len(pool):
                    pool[fills[number]] = word
                fills[number] += 1


@kernel
def heapify(heap: Longs, size: int) -> None:
    """Bring an array of entries into heap order."""
    for index in range(size // 2 - 1, -1, -1):
        sift_down(heap, index, size)


@inlined
def note_change(neighbour: int, word: int, count: int, side: Longs, touched: Ints, events: Ints, sizes: Longs) -> None:
    """Add a change at a neighbour: ``side`` has two rows per neighbour, the count and the number of events."""
    if side[2 * neighbour + 1] == 0:
        touched[sizes[0]] = neighbour
        sizes[0] += 1
    side[2 * neighbour] += count
    side[2 * neighbour + 1] += 1
    events[2 * sizes[1]] = neighbour
    events[2 * sizes[1] + 1] = word
    sizes[1] += 1


@kernel
def merge_words(
    pool: Ints, first: int, last: int, left: int, right: int, merged: int,
    symbols: Ints, begins: Longs, lengths: Ints, counts: Longs,
    lefts: Longs, rights: Longs, touched_left: Ints, touched_right: Ints,
    events_left: Ints, events_right: Ints, sizes: Longs,
) -> None:  # fmt: skip
    """Rewrite left+right as merged in the listed words; the changes are summed by neighbour.

    sizes: [touched left, events left, touched right, events right], out.
    """
    left_sizes, right_sizes = sizes[0:2], sizes[2:4]
    for listed in range(first, last):
        word = pool[listed]
        start = begins[word]
        stop = start + lengths[word]
        count = counts[word]
        write = start
        read = start
        while read < stop:
            if read + 1 < stop and symbols[read] == left and symbols[read + 1] == right:
                if write > start:
                    note_change(symbols[write - 1], word, count, lefts, touched_left, events_left, left_sizes)
                if read + 2 < stop:
                    note_change(symbols[read + 2], word, count, rights, touched_right, events_right, right_sizes)
                symbols[write] = merged
                read += 2
            else:
                symbols[write] = symbols[read]
                read += 1
            write += 1
        lengths[word] = write - start


@inlined
def add_count(pairs: Longs, key: int, change: int) -> int:
    """Change a pair's count; return 1 if the pair is new in the table."""
    at = find_slot(pairs, key)
    new = pairs[at] == EMPTY
    if new:
        pairs[at] = key
        pairs[at + 1] = 0
    pairs[at + 1] += change
    return 1 if new else 0


@kernel
def apply_changes(
    pairs: Longs, left: int, right: int, merged: int,
    lefts: Longs, rights: Longs, touched_left: Ints, touched_right: Ints, sizes: Longs,
) -> int:  # fmt: skip
    """Move the counts from the old pairs to the new; return how many pairs are new in the table."""
    new = 0
    for index in range(sizes[0]):
        neighbour = touched_left[index]
        change = lefts[2 * neighbour]
        new += add_count(pairs, pair_key(neighbour, left), -change)
        new += add_count(pairs, pair_key(neighbour, merged), change)
    for index in range(sizes[2]):
        neighbour = touched_right[index]
        change = rights[2 * neighbour]
        new += add_count(pairs, pair_key(right, neighbour), -change)
        new += add_count(pairs, pair_key(merged, neighbour), change)
    return new


@kernel
def push_side(
    pairs: Longs, merged: int, before_it: bool, side: Longs, touched: Ints, n_touched: int, events: Ints, n_events: int,
    heap: Longs, size: int, entries: Longs, n_entries: int, pool: Ints, used: int, least: int,
) -> int:  # fmt: skip
    """Enter the new pairs on one side of the merged symbol, each with its list of words, and clear ``side``.

    Returns the heap's new size; entries and pool grow by as many entries and at most by ``n_events`` words.
    """
    for index in range(n_touched):
        neighbour = touched[index]
        key = pair_key(neighbour, merged) if before_it else pair_key(merged, neighbour)
        total = pairs[find_slot(pairs, key) + 1]
        words = side[2 * neighbour + 1]
        side[2 * neighbour + 1] = 0
        if total < least:
            side[2 * neighbour] = -1
            continue
        entries[2 * n_entries] = used
        entries[2 * n_entries + 1] = used
        side[2 * neighbour] = n_entries
        heap[size * 3] = total
        heap[size * 3 + 1] = key
        heap[size * 3 + 2] = n_entries
        n_entries += 1
        used += words
        sift_up(heap, size)
        size += 1
    for event in range(n_events):
        entry = side[2 * events[2 * event]]
        if entry >= 0:
            end = entries[2 * entry + 1]
            word = events[2 * event + 1]
            if end == entries[2 * entry] or pool[end - 1] != word:
                pool[end] = word
                entries[2 * entry + 1] = end + 1
    for index in range(n_touched):
        side[2 * touched[index]] = 0
    return size


@allocating
def longer_ints(old: Ints, need: int) -> Ints:
    """Return a copy with space for at least ``need`` items."""
    new = np.empty(max(need, len(old) + len(old) // 2), np.int32)
    new[: len(old)] = old
    return new


@allocating
def longer_longs(old: Longs, need: int) -> Longs:
    """Return a copy with space for at least ``need`` items."""
    new = np.empty(max(need, len(old) + len(old) // 2), np.int64)
    new[: len(old)] = old
    return new


@allocating
def initial_pairs(
    symbols: Ints, begins: Longs, lengths: Ints, counts: Longs
) -> tuple[Longs, Longs, Longs, Longs, Ints]:
    """Return the initial pair table, heap, entries, sizes and word lists."""
    pairs = np.zeros(1 << 13, np.int64)
    held = np.zeros(2, np.int64)
    while count_pairs(symbols, begins, lengths, counts, pairs, held):
        larger = np.zeros(2 * len(pairs), np.int64)
        held[0] = move_pairs(pairs, larger)
        pairs = larger
    heap = np.empty(3 * (held[0] + 1), np.int64)
    numbers = np.empty(len(pairs) // 2, np.int32)
    size = number_pairs(pairs, numbers, heap)
    fills = np.zeros(size + 1, np.int64)
    last = np.full(size, -1, np.int32)
    find_words(symbols, begins, lengths, pairs, numbers, fills, last, np.empty(0, np.int32))
    entries = np.empty(2 * (size + 1), np.int64)
    total = 0
    for number in range(size):
        entries[2 * number] = total
        total += fills[number]
        fills[number] = entries[2 * number]
        entries[2 * number + 1] = total
    last[:] = -1
    pool = np.empty(total + 1, np.int32)
    find_words(symbols, begins, lengths, pairs, numbers, fills, last, pool)
    heapify(heap, size)
    sizes = np.array([size, size, total, held[0]])  # heap, entries, pool, pairs
    return pairs, heap, entries, sizes, pool


@kernel
def symbols_of_characters(data: Bytes, offsets: Longs, seen: Ints, symbols: Ints, begins: Longs) -> int:
    """Write words as code points to ``symbols``, and ``begins`` (words + 1,); ``seen`` marks the code points."""
    used = 0
    begins[0] = 0
    for word in range(len(offsets) - 1):
        index = offsets[word]
        while index < offsets[word + 1]:
            point, length = character(data, index, offsets[word + 1])
            seen[point] = 1
            symbols[used] = point
            used += 1
            index += length
        begins[word + 1] = used
    return used


@kernel
def token_of(
    slots: ULongs, arena: Bytes, starts: Longs, size: int, left: int, right: int, spelling: Bytes, key: ULongs
) -> int:
    """Return the id of the token spelt left+right, which is added if there is none; there must be space."""
    first = length = np.int64(0)
    for part in (left, right):
        for index in range(starts[part], starts[part + 1]):
            spelling[length] = arena[index]
            length += 1
    make_key(spelling, first, length, key, first)
    at = find(slots, arena, starts, row_of(key, first, len(slots) // 4), key, first, spelling, first, length)
    id = np.int64(slots[at + 3] & ID_BITS) - 1
    if id < 0:
        insert(slots, arena, starts, at, size, key, first, spelling, first, length)
        return size
    return id


@inlined
def best_pair(pairs: Longs, heap: Longs, sizes: Longs, least: int) -> int:
    """Bring the pair with the highest count to the top of the heap and return its key; 0 if none has ``least``."""
    while sizes[0] > 0:
        count, pair = heap[0], heap[1]
        now = pairs[find_slot(pairs, pair) + 1]
        if now == count:
            return pair if count >= least else np.int64(0)
        heap[0] = now
        sift_down(heap, 0, sizes[0])
    return np.int64(0)


@inlined
def pop_best(pairs: Longs, heap: Longs, sizes: Longs, least: int) -> tuple[int, int, int]:
    """Remove the pair with the highest count from the heap: its count, key and entry; count 0 if none has ``least``."""
    pair = best_pair(pairs, heap, sizes, least)
    if pair == 0:
        return np.int64(0), np.int64(0), np.int64(0)
    count, entry = heap[0], heap[2]
    sizes[0] -= 1
    swap(heap, 0, sizes[0])
    sift_down(heap, 0, sizes[0])
    return count, pair, entry


@kernel
def next_pair(pairs: Longs, heap: Longs, sizes: Longs, least: int, drop: bool) -> int:
    """Return the key of the pair that would be merged next, 0 if there is none. drop: of the one after it, which is
    passed over for good.
    """
    if drop:
        pop_best(pairs, heap, sizes, least)
    return best_pair(pairs, heap, sizes, least)


@allocating
def push_pairs(
    pairs: Longs, merged: int, least: int, changes: Longs, lefts: Longs, touched_left: Ints, events_left: Ints,
    rights: Longs, touched_right: Ints, events_right: Ints, heap: Longs, entries: Longs, pool: Ints, sizes: Longs,
) -> tuple[Longs, Longs, Ints]:  # fmt: skip
    """Enter the new pairs on both sides of the merged symbol; return heap, entries and pool, which may have grown."""
    touched = changes[0] + changes[2]
    if 3 * (sizes[0] + touched) > len(heap):
        heap = longer_longs(heap, 3 * (sizes[0] + touched))
    if 2 * (sizes[1] + touched) > len(entries):
        entries = longer_longs(entries, 2 * (sizes[1] + touched))
    if sizes[2] + changes[1] + changes[3] > len(pool):
        pool = longer_ints(pool, sizes[2] + changes[1] + changes[3])
    grown = push_side(
        pairs, merged, True, lefts, touched_left, changes[0], events_left, changes[1],
        heap, sizes[0], entries, sizes[1], pool, sizes[2], least,
    )  # fmt: skip
    if grown > sizes[0]:
        sizes[1] += grown - sizes[0]
        sizes[0] = grown
        sizes[2] += changes[1]
    grown = push_side(
        pairs, merged, False, rights, touched_right, changes[2], events_right, changes[3],
        heap, sizes[0], entries, sizes[1], pool, sizes[2], least,
    )  # fmt: skip
    if grown > sizes[0]:
        sizes[1] += grown - sizes[0]
        sizes[0] = grown
        sizes[2] += changes[3]
    return heap, entries, pool


@allocating
def learn_merges(
    wanted: int, at_most: int, least: int, reserved: int,
    symbols: Ints, begins: Longs, lengths: Ints, counts: Longs,
    pairs: Longs, heap: Longs, entries: Longs, sizes: Longs, pool: Ints,
    slots: ULongs, arena: Bytes, starts: Longs, n_tokens: int, merges: Longs,
) -> tuple[Longs, Longs, Longs, Ints, Bytes, int, int]:  # fmt: skip
    """Merge until there are ``wanted`` tokens, ``at_most`` merges are made, or no pair is left with ``least`` counts.
    Pairs that spell one of the first ``reserved`` tokens are passed over.

    merges: (at_most, 4), out: left id, right id, merged id, count when merged. Returns the arrays that may have grown
    (pairs, heap, entries, pool, arena), the number of tokens, and the number of merges made, negative (-1 - made) if
    no pair is left.
    """
    lefts = np.zeros(2 * (wanted + 1), np.int64)
    rights = np.zeros(2 * (wanted + 1), np.int64)
    touched_left = np.empty(wanted + 1, np.int32)
    touched_right = np.empty(wanted + 1, np.int32)
    events_left = np.empty(1 << 12, np.int32)
    events_right = np.empty(1 << 12, np.int32)
    spelling = np.empty(1 << 10, np.uint8)
    key = np.empty(4, np.uint64)
    changes = np.zeros(4, np.int64)
    made = 0
    ended = False
    while n_tokens < wanted and made < at_most:
        count, pair, entry = pop_best(pairs, heap, sizes, least)
        if count == 0:
            ended = True
            break
        left, right = (pair - 1) >> 32, (pair - 1) & 0xFFFFFFFF
        length = starts[left + 1] - starts[left] + starts[right + 1] - starts[right]
        if length > len(spelling):
            spelling = np.empty(2 * length, np.uint8)
        if starts[n_tokens] + length > len(arena):
            longer = np.empty(2 * len(arena) + length, np.uint8)
            longer[: len(arena)] = arena
            arena = longer
        merged = token_of(slots, arena, starts, n_tokens, left, right, spelling, key)
        if merged < reserved:
            continue
        if merged == n_tokens:
            n_tokens += 1
        merges[made, 0], merges[made, 1], merges[made, 2], merges[made, 3] = left, right, merged, count
        made += 1

        first, last = entries[2 * entry], entries[2 * entry + 1]
        bound = 0
        for listed in range(first, last):
            bound += lengths[pool[listed]] >> 1
        if 2 * bound > len(events_left):
            events_left = np.empty(3 * bound, np.int32)
            events_right = np.empty(3 * bound, np.int32)
        changes[:] = 0
        merge_words(
            pool, first, last, left, right, merged, symbols, begins, lengths, counts,
            lefts, rights, touched_left, touched_right, events_left, events_right, changes,
        )  # fmt: skip
        touched = changes[0] + changes[2]
        if (sizes[3] + 2 * touched) * 4 > len(pairs):
            larger = np.zeros(2 * len(pairs), np.int64)
            sizes[3] = move_pairs(pairs, larger)
            pairs = larger
        sizes[3] += apply_changes(pairs, left, right, merged, lefts, rights, touched_left, touched_right, changes)
        heap, entries, pool = push_pairs(
            pairs, merged, least, changes, lefts, touched_left, events_left, rights, touched_right, events_right,
            heap, entries, pool, sizes,
        )  # fmt: skip
    return pairs, heap, entries, pool, arena, n_tokens, (-1 - made if ended else made)
