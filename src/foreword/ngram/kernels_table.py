"""N-gram probabilities from counts, and the hash tables that hold them.

Each order has a table of rows of two 64-bit words: the key, made of the context and the last word, and the two logs of
the n-gram, its probability and its back-off weight, as float32. A context is where its own row stands, so every key
fits one word at any order. Contexts of one word are that word's id; rows are counted after those.

What is stored is not the key but the key mixed by a bijection, so nothing is lost, and the mixed key's upper half says
where to look first. Rows hold mixed keys in rising order, apart from gaps: a search that meets a larger one has failed
and stops, which makes failures, one for nearly every word of a text, as cheap as finds.

So a table is made by sorting. A first pass spreads the rows over buckets by their top bits, each bucket to where its
part of the table begins; then bucket after bucket is sorted in the cache and laid out from there, every key at its home
or, if that is taken, as near behind it as there is room.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Doubles, Ints, Longs, UInts, ULongs
from foreword.native.hashing import HALF, SECOND, mix
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch
from foreword.ngram.kernels_sort import COUNT, PARENT

_FREE = np.uint64(0)
_LOW_HALF = np.uint64(0xFFFFFFFF)

BUCKET_BITS = 11
"""Buckets that grow at once stay in the cache."""

BUCKET_ROWS = 1 << 15
"""Fewer rows a bucket than this are not worth their bookkeeping."""

DIGIT = 11
TALLY = 2 << DIGIT

_INDEX_BITS = np.uint64(24)
_INDEX = np.uint64((1 << 24) - 1)
MOST_IN_BUCKET = 1 << 24


# Probabilities


@kernel
def look_up_lower(suffixes: Ints, first: int, last: int, lower: Doubles, out: Doubles) -> None:
    """out[i] becomes the probability of suffix i, for suffixes from ``first`` up to ``last``.

    lower: float64 (last - first,).
    """
    size = len(suffixes)
    for place in range(size):
        ahead = np.int64(suffixes[min(place + 32, size - 1)])
        if first <= ahead < last:
            prefetch(lower, ahead - first)
        suffix = np.int64(suffixes[place])
        if first <= suffix < last:
            out[place] = lower[suffix - first]


@kernel
def weigh_contexts(
    grams: Ints, kept: Bytes, first_context: int, discounts: Doubles, per_type: float, extra: float,
    totals: Doubles, weights: Doubles,
) -> None:  # fmt: skip
    """N(c) and b(c), see ``share_out``, of contexts from ``first_context`` on; grams: all their extensions.

    kept: zero for n-grams that are pruned, which give all they have to b(c); empty if none are. A context without
    extensions has the weight one.
    """
    totals[:] = 0.0
    weights[:] = 0.0
    for place in range(len(grams)):
        context = grams[place, PARENT] - first_context
        count = grams[place, COUNT]
        totals[context] += count + per_type
        is_pruned = len(kept) > 0 and kept[place] == 0
        weights[context] += count + per_type if is_pruned else discounts[min(count, 3)] + per_type
    for context in range(len(totals)):
        if totals[context] > 0.0:
            totals[context] += extra
            weights[context] = (weights[context] + extra) / totals[context]
        else:
            weights[context] = 1.0


@kernel
def share_out(
    grams: Ints, first_context: int, discounts: Doubles, interpolated: bool, totals: Doubles, weights: Doubles,
    lower: Doubles, probabilities: Doubles,
) -> None:  # fmt: skip
    """Probabilities of n-grams.

        p(w | c) = (n(c w) - D(n)) / N(c) + b(c) p(w | c without its first word)

    N(c) is the sum of counts, ``per_type`` for each different word, and ``extra``; b(c) is what is left over. With
    ``interpolated`` false the last term is left out. lower: the last factor, for each n-gram.
    """
    for place in range(len(grams)):
        context = grams[place, PARENT] - first_context
        count = grams[place, COUNT]
        share = (count - discounts[min(count, 3)]) / totals[context]
        probabilities[place] = share + weights[context] * lower[place] if interpolated else share


@kernel
def mark_frequent(grams: Ints, limit: int, kept: Bytes) -> None:
    """kept[i] = 1 where n-gram i was seen more than ``limit`` times."""
    for place in range(len(grams)):
        kept[place] = grams[place, COUNT] > limit


@kernel
def drop_rare(grams: Ints, kept: Bytes, renumbered_below: Ints, renumbered: Ints) -> int:
    """Close the gaps that n-grams leave which are not kept; how many are. Their parents are kept where they are.

    renumbered_below: int32, the new numbers of the order below, empty if they are the old ones; renumbered: int32 (n,),
    out, the same for this order.
    """
    size = 0
    for place in range(len(grams)):
        renumbered[place] = size
        if kept[place]:
            for column in range(4):
                grams[size, column] = grams[place, column]
            if len(renumbered_below):
                grams[size, PARENT] = renumbered_below[grams[size, PARENT]]
            size += 1
    return size


# Tables


@inlined
def mixed_key(context: int, word: int, bits: int) -> np.uint64:
    """The key of (context, word), mixed; never zero, which marks a free row."""
    return mix(np.uint64((context << bits | word) + 1)) * SECOND


@inlined
def home_of(mixed: np.uint64, homes: int) -> int:
    """The first row to look at: the mixed key's upper half, scaled to the number of homes."""
    return np.int64(((mixed >> HALF) * np.uint64(homes)) >> HALF)


@inlined
def find(table: ULongs, first: int, homes: int, mixed: np.uint64) -> int:
    """The row of a key in the table that begins at row ``first``, or -1. The table's last row is free."""
    row = first + home_of(mixed, homes)
    held = table[2 * row]
    while held < mixed and held != _FREE:
        row += 1
        held = table[2 * row]
    return row if held == mixed else -1


@inlined
def _key_of(grams: ULongs, place: int, contexts: UInts, base: int, bits: int) -> np.uint64:
    """grams: uint64 (2 n,), of which word and parent are the lower and the upper half of the first."""
    named = grams[2 * place]
    context = base + np.int64(contexts[np.int64(named >> HALF)])
    return mixed_key(context, np.int64(named & _LOW_HALF), bits)


@kernel
def count_buckets(grams: ULongs, contexts: UInts, base: int, bits: int, bucket_bits: int, counts: Longs) -> None:
    """How many n-grams each bucket gets; counts: int64 (buckets,), zero at first."""
    shift = np.uint64(63 - bucket_bits)
    for place in range(len(grams) // 2):
        mixed = _key_of(grams, place, contexts, base, bits)
        counts[np.int64(mixed >> np.uint64(1) >> shift)] += 1


@kernel
def spread(
    grams: ULongs, contexts: UInts, base: int, bits: int, bucket_bits: int, rows: Longs, places: Longs,
    table: ULongs, numbers: Ints,
) -> None:  # fmt: skip
    """Write every n-gram's row to its bucket's part of the table, from ``rows[bucket]`` on, and its number to
    ``numbers``, from ``places[bucket]`` on; both are moved on. ``numbers`` may be empty: then nobody asks for them.
    """
    shift = np.uint64(63 - bucket_bits)
    for place in range(len(grams) // 2):
        mixed = _key_of(grams, place, contexts, base, bits)
        bucket = np.int64(mixed >> np.uint64(1) >> shift)
        row = rows[bucket]
        rows[bucket] = row + 1
        table[2 * row] = mixed
        table[2 * row + 1] = grams[2 * place + 1]
        if len(numbers):
            numbers[places[bucket]] = place
            places[bucket] += 1


@inlined
def _sort_bucket(keys: ULongs, size: int, bucket_bits: int, order: ULongs, spare: ULongs, tally: Ints) -> None:
    """order[i], out: in its lower bits, which key is number i.

    Above them are the forty bits of the key that follow those that a bucket has in common. Sorting by 22 of them leaves
    next to nothing to be put right.
    """
    tally[:] = 0
    for place in range(size):
        rest = keys[place] << np.uint64(bucket_bits) >> _INDEX_BITS << _INDEX_BITS
        order[place] = rest | np.uint64(place)
        tally[np.int64(rest >> np.uint64(64 - 2 * DIGIT)) & (1 << DIGIT) - 1] += 1
        tally[(1 << DIGIT) + np.int64(rest >> np.uint64(64 - DIGIT))] += 1
    for turn in range(2):
        begin = 0
        for digit in range(turn << DIGIT, (turn + 1) << DIGIT):
            count = tally[digit]
            tally[digit] = begin
            begin += count
    for place in range(size):
        digit = np.int64(order[place] >> np.uint64(64 - 2 * DIGIT)) & (1 << DIGIT) - 1
        spare[tally[digit]] = order[place]
        tally[digit] += 1
    for place in range(size):
        digit = (1 << DIGIT) + np.int64(spare[place] >> np.uint64(64 - DIGIT))
        order[tally[digit]] = spare[place]
        tally[digit] += 1
    alike = False
    for place in range(1, size):
        held = order[place]
        at = place
        while at > 0 and order[at - 1] > held:
            order[at] = order[at - 1]
            at -= 1
        order[at] = held
        alike = alike or (at > 0 and order[at - 1] >> _INDEX_BITS == held >> _INDEX_BITS)
    if alike:
        _sort_by_key(keys, size, order)


@kernel
def _sort_by_key(keys: ULongs, size: int, order: ULongs) -> None:
    """Put right what forty bits did not tell; it is nearly sorted already."""
    for place in range(1, size):
        held = order[place]
        at = place
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
            for place in range(counts[bucket + 1]):
                keys[there + place] = table[2 * (begin + place)]
                values[there + place] = table[2 * (begin + place) + 1]
                if len(numbers):
                    names[there + place] = numbers[named + place]
        if bucket < 0:
            continue
        size = counts[bucket]
        end = begins[bucket + 1] if bucket + 1 < buckets else homes
        if row < end:
            table[2 * row : 2 * end] = _FREE
        _sort_bucket(keys[here : here + size], size, bucket_bits, order, spare, tally)
        for place in range(size):
            if len(numbers):
                ahead = names[here + np.int64(order[min(place + 24, size - 1)] & _INDEX)]
                if first <= ahead < last:
                    prefetch(contexts, ahead - first)
            source = here + np.int64(order[place] & _INDEX)
            key = keys[source]
            row = max(row, home_of(key, homes))
            if row >= len(table) // 2:
                return -1
            table[2 * row] = key
            table[2 * row + 1] = values[source]
            if len(numbers):
                number = np.int64(names[source])
                numbers[listed + place] = number
                if first <= number < last:
                    contexts[number - first] = row
            row += 1
        listed += size
    return row


@kernel
def name_contexts(table: ULongs, numbers: Ints, first: int, last: int, contexts: UInts) -> None:
    """contexts[n - first] becomes the row of n-gram n, for n from ``first`` up to ``last``; numbers: of ``lay_out``."""
    listed = 0
    for row in range(len(table) // 2):
        if table[2 * row] != _FREE:
            number = np.int64(numbers[listed])
            listed += 1
            if first <= number < last:
                contexts[number - first] = row
