"""Kernels that query an n-gram model in either of its layouts, and build its hash tables.

A context is a number. Contexts of one word are that word's id, ``<s>`` the number after the last word; longer ones
follow: in the hash layout the index of their row in the table, in the trie their index in their order. A state is the
contexts of the last words: column j is that of j + 1 words, -1 where the training text never had it. The longest known
n-gram counts; the weights of longer contexts that do not know the word are added. No n-gram is known unless its shorter
ends are, so the search goes up from the bigram and stops at the first miss.

**Hash.** Each order has a table of rows of two 64-bit words: the key, made of the context and the last word, and the
two logs of the n-gram, its probability and its back-off weight, as float32. A context is the index of its own row, so
every key fits one word at any order. What is stored is the key mixed by a bijection, whose upper half gives the home
row. Rows hold mixed keys in rising order, apart from gaps: a search that meets a larger key has failed and stops, which
makes misses, one for nearly every word of a text, as cheap as hits. So a table is built by sorting: a first pass
spreads the rows over buckets by their top bits, each bucket to where its part of the table begins; then each bucket is
sorted in the cache and laid out from there, every key at its home row or, if that is taken, as close behind it as
possible.

**Trie.** Words are packed into as few bits as they need. Where the extensions of an n-gram begin is an Elias-Fano list
(Elias, 1974), which stores n rising numbers below u in about n (2 + log2(u / n)) bits: the low bits of each are packed
as they are, the high bits are a bit string in which number i with high part h sets bit h + i. Number i is found by
finding the i-th set bit, from the nearest of the positions noted every 128 of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Bytes, Doubles, Floats, Ints, Longs, UInts, ULongs
from foreword.native.hashing import HALF, SECOND, mix
from foreword.native.jit import inlined, kernel
from foreword.native.memory import load_unaligned, lowest_one, ones, prefetch

EVERY = 128
SPARE = 8
"""Bytes after a packed array, so that eight can be loaded wherever a number begins."""


@inlined
def read_bits(data: Bytes, start: int, index: int, width: int) -> int:
    """Return number ``index`` of those of ``width`` (0 to 57) bits that begin at byte ``start``."""
    bit = index * width
    word = load_unaligned(data, start + (bit >> 3)) >> np.uint64(bit & 7)
    return np.int64(word & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)))


@kernel
def _pack(values: NDArray[np.integer], every: int, width: int, out: Bytes) -> None:
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for index in range(len(values) // every):
        bit = index * width
        value = (np.uint64(values[index * every]) & mask) << np.uint64(bit & 7)
        byte = bit >> 3
        while value != np.uint64(0):
            out[byte] |= np.uint8(value & np.uint64(0xFF))
            value >>= np.uint64(8)
            byte += 1


def packed_bytes(count: int, width: int) -> int:
    """Return how many bytes ``count`` numbers of ``width`` bits take, the spare ones included."""
    return (count * width + 7) // 8 + SPARE


def pack_bits(values: NDArray[np.integer], width: int, out: Bytes, *, every: int = 1) -> None:
    """Pack the lower ``width`` bits (up to 56) of the numbers, or of each ``every``-th.

    out: uint8 (packed_bytes(count, width),).
    """
    out[:] = 0
    _pack(values, every, width, out)


def low_bits(count: int, universe: int) -> int:
    """Return how many low bits of each number are packed as they are."""
    return max(0, (universe // max(1, count)).bit_length() - 1)


def high_words(count: int, universe: int) -> int:
    """Return how many 64-bit words the bit string takes."""
    return (count + (universe >> low_bits(count, universe))) // 64 + 1


@kernel
def _set_highs(values: Longs, low: int, highs: ULongs, samples: Longs) -> None:
    for index in range(len(values)):
        bit = (values[index] >> low) + index
        highs[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
        if index % EVERY == 0:
            samples[index // EVERY] = bit


def pack_rising(values: Longs, highs: ULongs, lows: Bytes, samples: Longs) -> None:
    """Write an Elias-Fano list: the bit string, the low bits, and the positions of every 128th set bit."""
    low = low_bits(len(values), int(values[-1]))
    highs[:] = 0
    _set_highs(values, low, highs, samples)
    pack_bits(values, low, lows)


@inlined
def next_one(highs: ULongs, first: int, last: int, bit: int) -> int:
    """Return the first set bit from ``bit`` on, in the words from ``first`` to ``last``; the end if none."""
    word = first + (bit >> 6)
    if word >= last:
        return (last - first) << 6
    held = highs[word] >> np.uint64(bit & 63) << np.uint64(bit & 63)
    while held == np.uint64(0):
        word += 1
        if word >= last:
            return (last - first) << 6
        held = highs[word]
    return ((word - first) << 6) + lowest_one(held)


@inlined
def find_one(highs: ULongs, first: int, last: int, samples: Longs, sample: int, index: int) -> int:
    """Return the position of set bit number ``index``; damaged data gives a wrong one, but never outside the words."""
    bit = samples[sample + index // EVERY]
    missing = index % EVERY
    word = first + (bit >> 6)
    if bit < 0 or word >= last:
        return (last - first) << 6
    held = highs[word] >> np.uint64(bit & 63) << np.uint64(bit & 63)
    while True:
        here = ones(held)
        if here > missing:
            break
        missing -= here
        word += 1
        if word >= last:
            return (last - first) << 6
        held = highs[word]
    for _ in range(missing):
        held &= held - np.uint64(1)
    return ((word - first) << 6) + lowest_one(held)


_FREE = np.uint64(0)
_LOW_HALF = np.uint64(0xFFFFFFFF)

BUCKET_BITS = 11
"""The top bits that choose a bucket: that many buckets that grow in parallel stay in the cache."""

BUCKET_ROWS = 1 << 15
"""Rows per bucket at least: smaller ones are not worth their bookkeeping."""

DIGIT = 11
TALLY = 2 << DIGIT

_INDEX_BITS = np.uint64(24)
_INDEX = np.uint64((1 << 24) - 1)
MOST_IN_BUCKET = 1 << 24


# Building the hash tables


@inlined
def mixed_key(context: int, word: int, bits: int) -> np.uint64:
    """Return the key of (context, word), mixed; never zero, which marks a free row."""
    return mix(np.uint64((context << bits | word) + 1)) * SECOND


@inlined
def home_of(mixed: np.uint64, homes: int) -> int:
    """Return the first row to look at: the mixed key's upper half, scaled to the number of homes."""
    return np.int64(((mixed >> HALF) * np.uint64(homes)) >> HALF)


@inlined
def find(table: ULongs, first: int, homes: int, mixed: np.uint64) -> int:
    """Return the row of a key in the table that begins at row ``first``, or -1. The table's last row is free."""
    row = first + home_of(mixed, homes)
    held = table[2 * row]
    while held < mixed and held != _FREE:
        row += 1
        held = table[2 * row]
    return row if held == mixed else -1


@inlined
def _key_of(grams: ULongs, index: int, contexts: UInts, base: int, bits: int) -> np.uint64:
    """Return the mixed key of an n-gram. grams: uint64 (2 n,); word and parent are the halves of the first number."""
    named = grams[2 * index]
    context = base + np.int64(contexts[np.int64(named >> HALF)])
    return mixed_key(context, np.int64(named & _LOW_HALF), bits)


@kernel
def count_buckets(grams: ULongs, contexts: UInts, base: int, bits: int, bucket_bits: int, counts: Longs) -> None:
    """Count the n-grams of each bucket; counts: int64 (buckets,), zero at first."""
    shift = np.uint64(63 - bucket_bits)
    for index in range(len(grams) // 2):
        mixed = _key_of(grams, index, contexts, base, bits)
        counts[np.int64(mixed >> np.uint64(1) >> shift)] += 1


@kernel
def spread(
    grams: ULongs, contexts: UInts, base: int, bits: int, bucket_bits: int, rows: Longs, places: Longs,
    table: ULongs, numbers: Ints,
) -> None:  # fmt: skip
    """Write every n-gram's row to its bucket's part of the table, from ``rows[bucket]`` on, and its number to
    ``numbers``, from ``places[bucket]`` on; both are moved on. ``numbers`` may be empty: then they are not written.
    """
    shift = np.uint64(63 - bucket_bits)
    for index in range(len(grams) // 2):
        mixed = _key_of(grams, index, contexts, base, bits)
        bucket = np.int64(mixed >> np.uint64(1) >> shift)
        row = rows[bucket]
        rows[bucket] = row + 1
        table[2 * row] = mixed
        table[2 * row + 1] = grams[2 * index + 1]
        if len(numbers):
            numbers[places[bucket]] = index
            places[bucket] += 1


@inlined
def _sort_bucket(keys: ULongs, size: int, bucket_bits: int, order: ULongs, spare: ULongs, tally: Ints) -> None:
    """Sort the keys of a bucket. order[i], out: in its lower bits, the index of key number i.

    Above them are the forty bits of the key that follow those that a bucket has in common. Sorting by 22 of them leaves
    next to nothing to be put right.
    """
    tally[:] = 0
    for index in range(size):
        rest = keys[index] << np.uint64(bucket_bits) >> _INDEX_BITS << _INDEX_BITS
        order[index] = rest | np.uint64(index)
        tally[np.int64(rest >> np.uint64(64 - 2 * DIGIT)) & (1 << DIGIT) - 1] += 1
        tally[(1 << DIGIT) + np.int64(rest >> np.uint64(64 - DIGIT))] += 1
    for turn in range(2):
        begin = 0
        for digit in range(turn << DIGIT, (turn + 1) << DIGIT):
            count = tally[digit]
            tally[digit] = begin
            begin += count
    for index in range(size):
        digit = np.int64(order[index] >> np.uint64(64 - 2 * DIGIT)) & (1 << DIGIT) - 1
        spare[tally[digit]] = order[index]
        tally[digit] += 1
    for index in range(size):
        digit = (1 << DIGIT) + np.int64(spare[index] >> np.uint64(64 - DIGIT))
        order[tally[digit]] = spare[index]
        tally[digit] += 1
    alike = False
    for index in range(1, size):
        held = order[index]
        at = index
        while at > 0 and order[at - 1] > held:
            order[at] = order[at - 1]
            at -= 1
        order[at] = held
        alike = alike or (at > 0 and order[at - 1] >> _INDEX_BITS == held >> _INDEX_BITS)
    if alike:
        _sort_by_key(keys, size, order)


@kernel
def _sort_by_key(keys: ULongs, size: int, order: ULongs) -> None:
    """Sort by whole keys where forty bits were equal; the order is nearly right already."""
    for index in range(1, size):
        held = order[index]
        at = index
        while at > 0 and keys[np.int64(order[at - 1] & _INDEX)] > keys[np.int64(held & _INDEX)]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = held


@kernel
def lay_out(
    table: ULongs, homes: int, bucket_bits: int, begins: Longs, counts: Longs, numbers: Ints,
    first: int, last: int, contexts: UInts,
    keys: ULongs, values: ULongs, names: Ints, order: ULongs, spare: ULongs, tally: Ints,
) -> int:  # fmt: skip
    """Sort each bucket and put its rows where they belong; the number of rows up to the last one that is taken, or -1
    if the table is too small, which it is for no keys that are spread at all evenly.

    begins, counts: int64 (buckets,), where each bucket lies in the table and how many rows it has. numbers: as
    ``spread`` wrote them; out, in the order of the rows. contexts[n - first], out: the row of n-gram n, for n from
    ``first`` up to ``last``. keys, values, names: (2 * largest bucket,), order, spare: uint64 (largest bucket,), tally:
    int32 (TALLY,), scratch. A bucket may run into the part of the next one, never further, so that one is taken out
    first.
    """
    room = len(order)
    row = 0
    listed = 0
    buckets = len(counts)
    for bucket in range(-1, buckets):
        here, there = room * (bucket & 1), room * ((bucket + 1) & 1)
        if bucket + 1 < buckets:
            begin = begins[bucket + 1]
            named = listed + (counts[bucket] if bucket >= 0 else 0)
            for index in range(counts[bucket + 1]):
                keys[there + index] = table[2 * (begin + index)]
                values[there + index] = table[2 * (begin + index) + 1]
                if len(numbers):
                    names[there + index] = numbers[named + index]
        if bucket < 0:
            continue
        size = counts[bucket]
        end = begins[bucket + 1] if bucket + 1 < buckets else homes
        if row < end:
            table[2 * row : 2 * end] = _FREE
        _sort_bucket(keys[here : here + size], size, bucket_bits, order, spare, tally)
        for index in range(size):
            if len(numbers):
                ahead = names[here + np.int64(order[min(index + 24, size - 1)] & _INDEX)]
                if first <= ahead < last:
                    prefetch(contexts, ahead - first)
            source = here + np.int64(order[index] & _INDEX)
            key = keys[source]
            row = max(row, home_of(key, homes))
            if row >= len(table) // 2:
                return -1
            table[2 * row] = key
            table[2 * row + 1] = values[source]
            if len(numbers):
                number = np.int64(names[source])
                numbers[listed + index] = number
                if first <= number < last:
                    contexts[number - first] = row
            row += 1
        listed += size
    return row


@kernel
def name_contexts(table: ULongs, numbers: Ints, first: int, last: int, contexts: UInts) -> None:
    """Set contexts[n - first] to the row of n-gram n, for n from ``first`` up to ``last``; numbers: of ``lay_out``."""
    listed = 0
    for row in range(len(table) // 2):
        if table[2 * row] != _FREE:
            number = np.int64(numbers[listed])
            listed += 1
            if first <= number < last:
                contexts[number - first] = row


# Queries

HASH, TRIE = 0, 1

COUNT, WORD_START, HIGH_START, HIGH_END, LOW_START, LOW_BITS, SAMPLE_START, LOG_START, BACKOFF_START = range(9)
"""Columns of ``ModelArrays.shapes``: for each order from the unigrams on, how many n-grams there are and where the
parts of its arrays begin. Words and logs are the order's own; highs, lows and samples say where the extensions of each
of its n-grams begin in the next order."""

COLUMNS = 9

FIRST_ROW, HOMES = 1, 2
"""Columns of ``ModelArrays.shapes`` in the hash layout: where an order's table begins, and how many homes its keys
have."""

LANES = 32
"""Documents scored in parallel, so that each waits for its memory while the others work."""


class ModelArrays(NamedTuple):
    """The arrays of a model, as queries take them.

    unigrams: float32, [2 * word] log-probability, [2 * word + 1] log back-off weight; bits: what a word takes in a
    key or a packed array; bases: int64 (orders,), the first context number of contexts of one, two, … words.
    uniform, floor: what a context does not know has its weight plus ``floor`` (Lidstone), not what shorter ones say.
    table, values: the hash layout, and the same bytes as float32. shapes: int64 (orders, 9), see ``COUNT`` and
    ``FIRST_ROW``. The rest is the trie. codes: uint8 log-probabilities and weights as numbers into ``books``, float32
    (orders * 2 * 256,), or empty; then ``logs`` holds them as they are.
    """

    layout: int
    unigrams: Floats
    bits: int
    bases: Longs
    uniform: bool
    floor: float
    table: ULongs
    values: Floats
    shapes: Longs
    words: Bytes
    highs: ULongs
    lows: Bytes
    samples: Longs
    logs: Floats
    codes: Bytes
    books: Floats


@inlined
def extensions(model: ModelArrays, length: int, context: int) -> tuple[int, int]:
    """Return the range, in the next order of the trie, of the extensions of a context of ``length`` + 1 words."""
    shape = model.shapes[length]
    index = context - model.bases[length]
    first, last = shape[HIGH_START], shape[HIGH_END]
    low = shape[LOW_BITS]
    bit = find_one(model.highs, first, last, model.samples, shape[SAMPLE_START], index)
    after = next_one(model.highs, first, last, bit + 1)
    start = ((bit - index) << low) | read_bits(model.lows, shape[LOW_START], index, low)
    stop = ((after - index - 1) << low) | read_bits(model.lows, shape[LOW_START], index + 1, low)
    count = model.shapes[length + 1][COUNT]
    return min(max(start, 0), count), min(max(stop, 0), count)


@inlined
def search(model: ModelArrays, length: int, context: int, word: int) -> int:
    """Search for a word among the extensions of a context; return its index in the next order, or -1."""
    low, high = extensions(model, length, context)
    start = model.shapes[length + 1][WORD_START]
    while low < high:
        middle = (low + high) >> 1
        found = read_bits(model.words, start, middle, model.bits)
        if found == word:
            return middle
        if found < word:
            low = middle + 1
        else:
            high = middle
    return -1


@inlined
def entry(model: ModelArrays, length: int, context: int, word: int) -> int:
    """Return the n-gram of a context of ``length`` + 1 words and a word, or -1."""
    if model.layout == HASH:
        shape = model.shapes[length + 1]
        return find(model.table, shape[FIRST_ROW], shape[HOMES], mixed_key(context, word, model.bits))
    return search(model, length, context, word)


@inlined
def log_of(model: ModelArrays, order: int, index: int) -> float:
    """Return the log-probability of an n-gram of ``order`` + 1 words, ``order`` at least 1."""
    if model.layout == HASH:
        return np.float64(model.values[4 * index + 2])
    at = model.shapes[order][LOG_START] + index
    if len(model.codes):
        return np.float64(model.books[512 * order + model.codes[at]])
    return np.float64(model.logs[at])


@inlined
def weight_of(model: ModelArrays, length: int, context: int) -> float:
    """Return the log back-off weight of a context of ``length`` + 1 words."""
    if length == 0:
        return np.float64(model.unigrams[2 * context + 1])
    index = context - model.bases[length]
    if model.layout == HASH:
        return np.float64(model.values[4 * index + 3])
    at = model.shapes[length][BACKOFF_START] + index
    if len(model.codes):
        return np.float64(model.books[512 * length + 256 + model.codes[at]])
    return np.float64(model.logs[at])


@inlined
def is_context(model: ModelArrays, length: int, context: int) -> bool:
    """Return whether a state names this context of ``length`` + 1 words.

    Where a context's answer is final (Lidstone), one that nothing is known to follow, which has a weight of one, must
    not be asked; elsewhere that weight does no harm.
    """
    return not model.uniform or weight_of(model, length, context) != 0.0


@inlined
def step(model: ModelArrays, state: Longs, at: int, orders: int, word: int) -> tuple[float, int]:
    """Read a word in the state at ``state[at:at + orders]``; return its log-probability and the order that matched."""
    matched = 1
    log = np.float64(model.unigrams[2 * word])
    weight = np.float64(0.0)
    alive = True
    carried = state[at] if orders else np.int64(-1)
    if orders:
        state[at] = word if is_context(model, np.int64(0), word) else -1
    for length in range(orders):
        context = carried
        carried = state[at + length + 1] if length + 1 < orders else np.int64(-1)
        index = np.int64(-1)
        if context >= 0:
            if alive:
                index = entry(model, length, context, word)
                alive = index >= 0 or model.uniform
            if index >= 0:
                matched = length + 2
                log = log_of(model, length + 1, index)
                weight = 0.0
            elif model.uniform:
                matched = 1
                log = model.floor
                weight = weight_of(model, length, context)
            else:
                weight += weight_of(model, length, context)
        if length + 1 < orders:
            state[at + length + 1] = -1
            if index >= 0 and is_context(model, length + 1, model.bases[length + 1] + index):
                state[at + length + 1] = model.bases[length + 1] + index
    return log + weight, matched


@inlined
def ask_ahead(model: ModelArrays, state: Longs, at: int, orders: int, word: int) -> None:
    """Prefetch the rows that the next step will read."""
    if model.layout == HASH:
        for length in range(orders):
            context = state[at + length]
            if context >= 0:
                shape = model.shapes[length + 1]
                home = home_of(mixed_key(context, word, model.bits), shape[HOMES])
                prefetch(model.table, 2 * (shape[FIRST_ROW] + home))
                prefetch(model.table, 2 * (shape[FIRST_ROW] + home) + 6)  # a search may run into the next line


@kernel
def score(
    model: ModelArrays, start: Longs, ids: NDArray[np.integer], offsets: Longs, first: int, last: int,
    states: Longs, at: Longs, logs: Doubles, matched: Bytes,
) -> None:  # fmt: skip
    """Compute the log-probability of every id of documents ``first`` to ``last``, LANES documents in parallel.

    start: the state after ``<s>``, (orders,). states: (LANES * orders,), at: (LANES * 2,), scratch.
    matched: uint8, out, the order that matched, if it is not empty.
    """
    orders = len(start)
    coming = first
    for lane in range(LANES):
        at[2 * lane] = at[2 * lane + 1] = 0
    while True:
        busy = False
        for lane in range(LANES):
            if at[2 * lane] == at[2 * lane + 1]:
                while coming < last and offsets[coming] == offsets[coming + 1]:
                    coming += 1
                if coming == last:
                    continue
                at[2 * lane] = offsets[coming]
                at[2 * lane + 1] = offsets[coming + 1]
                coming += 1
                for length in range(orders):
                    states[lane * orders + length] = start[length]
            busy = True
            ask_ahead(model, states, lane * orders, orders, np.int64(ids[at[2 * lane]]))
        if not busy:
            break
        for lane in range(LANES):
            index = at[2 * lane]
            if index < at[2 * lane + 1]:
                log, order = step(model, states, lane * orders, orders, np.int64(ids[index]))
                logs[index] = log
                if len(matched):
                    matched[index] = order
                at[2 * lane] = index + 1


@kernel
def advance(model: ModelArrays, states: Longs, ids: Longs, orders: int) -> None:
    """Read one word in each row of ``states``, (rows * orders,), in place."""
    for row in range(len(ids)):
        step(model, states, row * orders, orders, ids[row])


@kernel
def known_extensions(model: ModelArrays, length: int, context: int, found: Longs) -> None:
    """Write the range of a context's extensions in the trie to found[0:2]."""
    found[0], found[1] = extensions(model, length, context)


@kernel
def unpack_words(model: ModelArrays, order: int, first: int, last: int, out: Longs) -> None:
    """Write the last words of n-grams ``first`` to ``last`` to ``out``."""
    for index in range(first, last):
        out[index - first] = read_bits(model.words, model.shapes[order][WORD_START], index, model.bits)


@kernel
def unpack_logs(model: ModelArrays, order: int, first: int, last: int, out: Doubles) -> None:
    """Write the log-probabilities of n-grams ``first`` to ``last`` to ``out``."""
    for index in range(first, last):
        out[index - first] = log_of(model, order, index)


@kernel
def unpack_weights(model: ModelArrays, length: int, first: int, last: int, out: Doubles) -> None:
    """Write the log back-off weights of n-grams ``first`` to ``last`` to ``out``."""
    for index in range(first, last):
        out[index - first] = weight_of(model, length, model.bases[length] + index)


@kernel
def count_extensions(model: ModelArrays, length: int, out: Longs) -> None:
    """Count the extensions, in the trie, of each n-gram of ``length`` + 1 words."""
    for index in range(len(out)):
        first, last = extensions(model, length, model.bases[length] + index)
        out[index] = max(0, last - first)
