"""From estimated n-grams to the arrays of a layout, in memory or in files.

n-grams come as tables, int32 (n, 4): word, parent, and the two logs as float32 (see ``ngram_estimate``), sorted. They
are read from their beginning to their end, and so are the arrays written, but for the numbers by which n-grams of the
next order name their contexts; with a limit those are told in ranges that fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Array, Bytes, Floats, Ints, UInts, ULongs
from foreword.errors import ForewordError
from foreword.ngram import kernels_table as ngram_table
from foreword.ngram.kernels_bits import EVERY, high_words, low_bits, pack_bits, pack_rising, packed_bytes
from foreword.ngram.kernels_count import list_extensions
from foreword.ngram.layouts import Logged, homes_of, most_rows, word_bits
from foreword.protocols import Meter
from foreword.storage.scratch import Scratch

T = TypeVar("T", bound=np.generic)

LOG, WEIGHT = 2, 3
"""Columns of a table of n-grams that hold float32."""

CHUNK = 1 << 16
"""Numbers that are looked at together."""


def table_of(logged: Logged) -> Ints:
    """An order as a table."""
    columns = (logged.words, logged.parents, logged.probabilities.view(np.int32), logged.backoffs.view(np.int32))
    return np.stack(columns, axis=1)


def hash_arrays(
    unigrams: Floats, tables: Sequence[Ints], scratch: Scratch, meter: Meter | None = None
) -> dict[str, Array]:
    """The arrays of ``HashLayout``. unigrams: float32 (words + 1, 2), logs of probability and weight.

    The tables are given up, one after another.
    """
    vocab_size = len(unigrams) - 1
    # All tables in one array from the start, each cut off where it is full.
    table = scratch.empty(2 * sum(most_rows(len(grams)) for grams in tables), np.uint64)
    rows = [0]
    base, contexts = 0, np.arange(vocab_size + 1, dtype=np.uint32)
    for k, grams in enumerate(tables, 2):
        first = sum(rows)
        room = table[2 * first : 2 * (first + most_rows(len(grams)))]
        own = scratch.empty(len(grams) if k <= len(tables) else 0, np.uint32)
        rows.append(_fill(room, grams, contexts, base, word_bits(vocab_size), own, scratch))
        scratch.release(contexts)
        scratch.discard(grams)
        base, contexts = vocab_size + 1 + first, own
        if meter is not None:
            meter("filling tables", k, len(tables) + 1)
    table = scratch.keep(table[: 2 * sum(rows)])
    return {"unigrams": unigrams.reshape(-1), "table": table, "rows": np.array(rows, np.int64)}


def _fill(
    table: ULongs, grams: Ints, contexts: UInts, base: int, bits: int, own: UInts,
    scratch: Scratch,
) -> int:  # fmt: skip
    """Make one order's table; how many rows it takes. own, out: the row of each n-gram, if it has room for them."""
    size, homes = len(grams), homes_of(len(grams))
    packed = grams.view(np.uint64).reshape(-1)
    bucket_bits = min(ngram_table.BUCKET_BITS, (size // ngram_table.BUCKET_ROWS).bit_length())
    while True:
        counts = np.zeros(1 << bucket_bits, np.int64)
        ngram_table.count_buckets(packed, contexts, base, bits, bucket_bits, counts)
        begins = (np.arange((1 << bucket_bits) + 1, dtype=np.int64) << (32 - bucket_bits)) * homes >> 32
        if (counts <= np.diff(begins)).all():
            break
        bucket_bits -= 1  # keys that are spread so badly; a single bucket has room for all
    begins = begins[:-1]
    numbers = scratch.empty(size if len(own) else 0, np.int32)
    ngram_table.spread(
        packed, contexts, base, bits, bucket_bits, begins.copy(), np.cumsum(counts) - counts, table, numbers
    )
    largest = int(counts.max())
    ranges = list(scratch.ranges(len(own), 4))
    first, last = ranges[0] if ranges else (0, 0)
    used = ngram_table.lay_out(
        table, homes, bucket_bits, begins, counts, numbers, first, last, own[first:last],
        np.empty(2 * largest, np.uint64), np.empty(2 * largest, np.uint64), np.empty(2 * largest, np.int32),
        np.empty(largest, np.uint64), np.empty(largest, np.uint64), np.empty(ngram_table.TALLY, np.int32),
    )  # fmt: skip
    taken = max(used, homes) + 1
    if used < 0 or 2 * taken > len(table):
        raise ForewordError("there is no room for all n-grams in their table: their keys are spread too unevenly")
    table[2 * used : 2 * taken] = 0
    for first, last in ranges[1:]:
        ngram_table.name_contexts(table[: 2 * used], numbers, first, last, own[first:last])
    scratch.release(numbers)
    return taken


def trie_arrays(
    unigrams: Floats, tables: Sequence[Ints], scratch: Scratch, *, quantize: bool, meter: Meter | None = None
) -> dict[str, Array]:
    """The arrays of ``TrieLayout``; the tables must be sorted."""
    bits = word_bits(len(unigrams) - 1)
    sizes = [len(unigrams), *map(len, tables)]
    words = _parts(scratch, np.uint8, [packed_bytes(size, bits) for size in sizes[1:]])
    highs = _parts(scratch, np.uint64, [high_words(size + 1, above) for size, above in pairwise(sizes)])
    lows = _parts(
        scratch, np.uint8, [packed_bytes(size + 1, low_bits(size + 1, above)) for size, above in pairwise(sizes)]
    )
    samples = _parts(scratch, np.int64, [(size + EVERY) // EVERY for size in sizes[:-1]])
    # The highest order extends to nothing, so it has no weights.
    columns = [(k, column) for k in range(len(tables)) for column in (LOG, WEIGHT)][:-1]
    logs = _parts(scratch, np.float32, [len(tables[k]) for k, _ in columns])
    for k, grams in enumerate(tables):
        pack_bits(grams.reshape(-1), bits, words.parts[k], every=4)
        begins = scratch.empty(sizes[k] + 1, np.int64)
        list_extensions(grams, begins)
        pack_rising(begins, highs.parts[k], lows.parts[k], samples.parts[k])
        scratch.release(begins)
        if meter is not None:
            meter("packing", k + 1, len(tables))
    for part, (k, column) in zip(logs.parts, columns, strict=True):
        part[:] = tables[k].view(np.float32)[:, column]
    arrays: dict[str, Array] = {
        "unigrams": unigrams.reshape(-1),
        "words": words.whole,
        "highs": highs.whole,
        "lows": lows.whole,
        "samples": samples.whole,
    }
    if not quantize:
        return arrays | {"logs": logs.whole}
    books = np.zeros((len(sizes), 2, 256), np.float32)
    codes = _parts(scratch, np.uint8, [len(part) for part in logs.parts])
    for values, coded, (k, column) in zip(logs.parts, codes.parts, columns, strict=True):
        books[k + 1, column - LOG] = _quantize(values, coded, scratch)
    return arrays | {"codes": codes.whole, "books": books.ravel()}


@dataclass(slots=True)
class _Parts(Generic[T]):
    """An array and its parts, one after another."""

    whole: NDArray[T]
    parts: list[NDArray[T]]


def _parts(scratch: Scratch, kind: type[T], sizes: Sequence[int]) -> _Parts[T]:
    whole = scratch.empty(sum(sizes), kind)
    ends = np.cumsum([0, *sizes]).tolist()
    return _Parts(whole, [whole[first:last] for first, last in pairwise(ends)])


def _quantize(values: Floats, codes: Bytes, scratch: Scratch) -> Floats:
    """256 values that stand for all, and which of them stands for each: bins of equal frequency, by their means.

    A weight of zero and minus infinity keep a value of their own, for they mean something exact: a context that
    extends to nothing, and an impossible word. codes: uint8 (n,), out.
    """
    book = np.zeros(256, np.float32)
    book[0], book[1] = 0.0, -np.inf
    ranked = scratch.empty(len(values), np.uint64)
    size = 0
    for first in range(0, len(values), CHUNK):
        some = values[first : first + CHUNK]
        codes[first : first + CHUNK] = np.isneginf(some)
        places = np.flatnonzero((some != 0) & np.isfinite(some))
        # A float's bits, turned over where it is negative, rise with it; behind them its place, so that no two are
        # alike.
        bits = some[places].view(np.uint32)
        bits ^= np.where(bits >> np.uint32(31), np.uint32(0xFFFFFFFF), np.uint32(0x80000000))
        ranked[size : size + len(places)] = bits.astype(np.uint64) << np.uint64(32) | (places + first).astype(np.uint64)
        size += len(places)
    ranked[:size].sort()
    cuts = np.linspace(0, size, 255).astype(np.int64)
    for number, (first, last) in enumerate(pairwise(cuts.tolist()), 2):
        if last > first:
            members = ranked[first:last] & np.uint64(0xFFFFFFFF)
            book[number] = values[members].mean(dtype=np.float64)
            codes[members] = number
    scratch.release(ranked)
    return book
