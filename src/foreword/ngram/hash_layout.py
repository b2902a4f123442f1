"""The hash layout of an n-gram model: a hash table for each order, the fastest to query, in 21.6 bytes per n-gram.

It is a few flat arrays that are mapped from a file as they are; ``kernels_query`` has the form of a table.
``hash_arrays`` builds them from the sorted n-grams of an estimate. ``GrowingHash`` is filled order by order with
n-grams in any order, as ARPA files have them: the table being built is also what finds the contexts of the next order's
n-grams, so that reading a model takes little more memory than storing it. A file may list an n-gram and not its shorter
ends, which queries rely on; those are added with the probability that backing off gives them, so that no score changes:

    p(w | c) = b(c) p(w | c without its first word)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foreword.arrays import Array, Doubles, Floats, Ints, Longs, UInts, ULongs, frozen
from foreword.errors import ForewordError, InputError
from foreword.native.hashing import FIRST, SECOND
from foreword.ngram import kernels_query as kernels
from foreword.ngram.kernels_arpa import HashTables, contexts_of, find_rows, insert_rows, rename_contexts
from foreword.ngram.kernels_query import COLUMNS, COUNT, FIRST_ROW, HASH, HOMES, ModelArrays
from foreword.protocols import Meter
from foreword.storage.scratch import Scratch

LOAD = 0.74
"""Taken share of the hash table's rows: 16 bytes a row make 21.6 bytes an n-gram."""

CHUNK = 1 << 18
"""Rows in a chunk of an order being read: 4 MB, the size from which NumPy asks for huge pages."""


@dataclass(slots=True)
class LoggedOrder:
    """The n-grams of one order: last words, the number of each one's prefix in the order below, and natural logs."""

    words: Ints
    parents: Ints
    probabilities: Floats
    backoffs: Floats


Spelled = tuple[int, Longs, Floats, Floats]
"""An order, its n-grams as words (n, order) in sorted order, their log-probabilities and log back-off weights."""


class HashLayout:
    """A hash table for each order from two on, one after another."""

    def __init__(self, model: ModelArrays, vocab_size: int, sizes: Sequence[int]) -> None:
        self.model = model
        self.vocab_size = vocab_size
        self.sizes = list(sizes)
        self._sorted: dict[int, tuple[ULongs, Longs]] = {}

    @classmethod
    def open(cls, arrays: Mapping[str, Array], sizes: Sequence[int], vocab_size: int, uniform: bool) -> HashLayout:
        """Check the arrays of a saved model, and take them as they are."""
        table, rows = arrays["table"], arrays["rows"]
        if table.dtype != np.uint64 or table.ndim != 1 or rows.dtype != np.int64 or rows.shape != (len(sizes),):
            raise InputError("the tables of n-grams have the wrong form")
        check_sizes(sizes, vocab_size)
        if rows.min() < 0 or rows.max() > len(table):
            raise InputError("the tables of n-grams do not fit their sizes")
        shapes = np.zeros((len(sizes), COLUMNS), np.int64)
        shapes[:, COUNT] = sizes
        shapes[:, FIRST_ROW] = np.cumsum(rows) - rows
        shapes[:, HOMES] = [homes_of(size) for size in sizes]
        if (rows[1:] <= shapes[1:, HOMES]).any() or 2 * int(rows.sum()) != len(table) or rows[0]:
            raise InputError("the tables of n-grams do not fit their sizes")
        # A search ends at a free row at the latest: without one at the end a hostile file could lead it outside.
        if table[2 * (np.cumsum(rows)[1:] - 1)].any():
            raise InputError("a table of n-grams has no free row at its end")
        bases = np.array([0, *[vocab_size + 1] * (len(sizes) - 1)], np.int64)
        model = model_of(HASH, arrays, vocab_size, bases, uniform)
        table = frozen(table)
        return cls(model._replace(table=table, values=table.view(np.float32), shapes=shapes), vocab_size, sizes)

    def arrays(self) -> dict[str, Array]:
        """Return the arrays to be saved."""
        ends = np.append(self.model.shapes[1:, FIRST_ROW], len(self.model.table) // 2)
        rows = ends - self.model.shapes[:, FIRST_ROW]
        return {"unigrams": self.model.unigrams, "table": self.model.table, "rows": rows}

    def extensions(self, length: int, context: int) -> tuple[Longs, Doubles]:
        """Return the words seen after a context of ``length`` + 1 words, and their log-probabilities there."""
        keys, rows = self._by_key(length + 1)
        bits = self.model.bits
        first, last = np.searchsorted(keys, np.array([context << bits, (context + 1) << bits], np.uint64))
        words = (keys[first:last] & np.uint64((1 << bits) - 1)).astype(np.int64)
        return words, self.model.values[4 * rows[first:last] + 2].astype(np.float64)

    def backoff(self, length: int, context: int) -> float:
        """Return the log back-off weight of a context of ``length`` + 1 words."""
        if length == 0:
            return float(self.model.unigrams[2 * context + 1])
        return float(self.model.values[4 * (context - self.vocab_size - 1) + 3])

    def _by_key(self, order: int) -> tuple[ULongs, Longs]:
        """Return all keys of an order, sorted, so that a context's extensions are adjacent, and their rows; cached."""
        if order not in self._sorted:
            rows = self._rows_of(order)
            keys = _unmixed(self.model.table[2 * rows])
            sort = np.argsort(keys)
            self._sorted[order] = keys[sort], rows[sort]
        return self._sorted[order]

    def _rows_of(self, order: int) -> Longs:
        """Return the rows of the n-grams of ``order`` + 1 words."""
        first = int(self.model.shapes[order, FIRST_ROW])
        last = len(self.model.table) // 2
        if order + 1 < len(self.sizes):
            last = int(self.model.shapes[order + 1, FIRST_ROW])
        return first + np.flatnonzero(self.model.table[2 * first : 2 * last : 2])

    def ngrams(self) -> Iterator[Spelled]:
        """Yield every order, see ``Spelled``."""
        values, base, bits = self.model.values, self.vocab_size + 1, np.uint64(self.model.bits)
        spelled = np.arange(base)[:, None]
        yield 1, spelled, self.model.unigrams[::2], self.model.unigrams[1::2]
        places = np.full(base + len(self.model.table) // 2, -1)  # of each context in its own order
        places[:base] = np.arange(base)
        for order in range(2, len(self.sizes) + 1):
            rows = self._rows_of(order - 1)
            keys = _unmixed(self.model.table[2 * rows])
            contexts = (keys >> bits).astype(np.int64)
            words = (keys & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
            if contexts.max(initial=0) >= len(places) or (parents := places[contexts]).min(initial=0) < 0:
                raise InputError("the tables of n-grams name a context that does not exist")
            sort = np.argsort(parents << 32 | words)
            rows, parents = rows[sort], parents[sort]
            spelled = np.concatenate((spelled[parents], words[sort][:, None]), axis=1)
            yield order, spelled, values[4 * rows + 2], values[4 * rows + 3]
            places[:] = -1
            places[base + rows] = np.arange(len(rows))


def homes_of(size: int) -> int:
    """Return the number of home rows of a table of ``size`` n-grams."""
    return int(size / LOAD) + 1


def most_rows(size: int) -> int:
    """Return an upper bound of the rows of an order's table: keys whose home is taken may need some after the last
    home.
    """
    return homes_of(size) + size // 8 + 256


def mixed_keys(contexts: Longs, words: Array, bits: int) -> ULongs:
    """Return the mixed keys of contexts and words, as ``kernels_query.mixed_key`` does."""
    mixed = ((contexts << bits | words) + 1).astype(np.uint64) * FIRST
    mixed ^= mixed >> np.uint64(32)
    return mixed * SECOND


def _unmixed(mixed: ULongs) -> ULongs:
    """Return the keys, context and word, of mixed keys."""
    modulus = 1 << 64
    keys = mixed * np.uint64(pow(int(SECOND), -1, modulus))
    keys ^= keys >> np.uint64(32)
    keys *= np.uint64(pow(int(FIRST), -1, modulus))
    return keys - np.uint64(1)


def word_bits(vocab_size: int) -> int:
    """Return the bits of a word in a key or a packed array; ``<s>`` has the number after the last word."""
    return (vocab_size + 1).bit_length()


def model_of(layout: int, arrays: Mapping[str, Array], vocab_size: int, bases: Longs, uniform: bool) -> ModelArrays:
    """Return a model with the arrays that both layouts have; the others are empty."""
    unigrams = arrays["unigrams"]
    if unigrams.dtype != np.float32 or unigrams.shape != (2 * (vocab_size + 1),):
        raise InputError("the unigrams do not fit the vocabulary")
    single, byte = frozen(np.empty(0, np.float32)), frozen(np.empty(0, np.uint8))
    word, long = frozen(np.empty(0, np.uint64)), frozen(np.empty(0, np.int64))
    return ModelArrays(
        layout, frozen(unigrams), word_bits(vocab_size), bases, uniform, -math.log(vocab_size),
        word, single, np.empty((0, COLUMNS), np.int64), byte, word, byte, long, single, byte, single,
    )  # fmt: skip


def check_sizes(sizes: Sequence[int], vocab_size: int) -> None:
    """Raise an ``InputError`` unless these can be the numbers of n-grams of each order."""
    if not sizes or sizes[0] != vocab_size + 1 or not all(0 <= size < 1 << 40 for size in sizes):
        raise InputError("the numbers of n-grams do not fit the vocabulary")


def hash_arrays(
    unigrams: Floats, tables: Sequence[Ints], scratch: Scratch, meter: Meter | None = None
) -> dict[str, Array]:
    """Build the arrays of ``HashLayout``. unigrams: float32 (words + 1, 2), logs of probability and weight.

    The memory of the tables is discarded, one after another.
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
    table = scratch.compact(table[: 2 * sum(rows)])
    return {"unigrams": unigrams.reshape(-1), "table": table, "rows": np.array(rows, np.int64)}


def _fill(
    table: ULongs, grams: Ints, contexts: UInts, base: int, bits: int, own: UInts,
    scratch: Scratch,
) -> int:  # fmt: skip
    """Build one order's table and return its number of rows. own, out: the row of each n-gram, unless it is empty."""
    size, homes = len(grams), homes_of(len(grams))
    packed = grams.view(np.uint64).reshape(-1)
    bucket_bits = min(kernels.BUCKET_BITS, (size // kernels.BUCKET_ROWS).bit_length())
    while True:
        counts = np.zeros(1 << bucket_bits, np.int64)
        kernels.count_buckets(packed, contexts, base, bits, bucket_bits, counts)
        begins = (np.arange((1 << bucket_bits) + 1, dtype=np.int64) << (32 - bucket_bits)) * homes >> 32
        if (counts <= np.diff(begins)).all():
            break
        bucket_bits -= 1  # keys that are spread so badly; a single bucket has room for all
    begins = begins[:-1]
    numbers = scratch.empty(size if len(own) else 0, np.int32)
    kernels.spread(packed, contexts, base, bits, bucket_bits, begins.copy(), np.cumsum(counts) - counts, table, numbers)
    largest = int(counts.max())
    ranges = list(scratch.ranges(len(own), 4))
    first, last = ranges[0] if ranges else (0, 0)
    used = kernels.lay_out(
        table, homes, bucket_bits, begins, counts, numbers, first, last, own[first:last],
        np.empty(2 * largest, np.uint64), np.empty(2 * largest, np.uint64), np.empty(2 * largest, np.int32),
        np.empty(largest, np.uint64), np.empty(largest, np.uint64), np.empty(kernels.TALLY, np.int32),
    )  # fmt: skip
    taken = max(used, homes) + 1
    if used < 0 or 2 * taken > len(table):
        raise ForewordError("there is no room for all n-grams in their table: their keys are spread too unevenly")
    table[2 * used : 2 * taken] = 0
    for first, last in ranges[1:]:
        kernels.name_contexts(table[: 2 * used], numbers, first, last, own[first:last])
    scratch.release(numbers)
    return taken


def table_of(logged: LoggedOrder) -> Ints:
    """Return an order as a table, int32 (n, 4)."""
    columns = (logged.words, logged.parents, logged.probabilities.view(np.int32), logged.backoffs.view(np.int32))
    return np.stack(columns, axis=1)


def in_order(orders: Sequence[LoggedOrder]) -> list[LoggedOrder]:
    """Sort each order by prefix, then word, as estimates are already and files of other tools need not be."""
    found = [orders[0]]
    places = np.arange(len(orders[0].words), dtype=np.int32)
    for order in orders[1:]:
        parents = places[order.parents]
        keys = parents.astype(np.int64) << 32 | order.words
        sort = np.arange(len(keys)) if (np.diff(keys) > 0).all() else np.argsort(keys)
        found.append(LoggedOrder(order.words[sort], parents[sort], order.probabilities[sort], order.backoffs[sort]))
        places = np.empty(len(sort), np.int32)
        places[sort] = np.arange(len(sort), dtype=np.int32)
    return found


# Filling in any order


class OrderRows:
    """The n-grams of one order as they are read.

    chunk: uint64 (2 * CHUNK,), rows of the table to be, as many as have been filled.
    """

    def __init__(self, order: int) -> None:
        self.order = order
        self.chunks: list[ULongs] = []
        self._ngrams: list[Ints] = []
        self._places: list[Longs] = []

    def __len__(self) -> int:
        return sum(len(chunk) for chunk in self.chunks) // 2

    def add(self, rows: ULongs, pending: Ints, places: Longs) -> None:
        """Add rows. Those of which a shorter end is missing have no key yet, but are in ``pending``, (n, order).

        places: their rows.
        """
        if len(places):
            self._ngrams.append(pending)
            self._places.append(places + len(self))
        self.chunks.append(rows)

    def give_keys(self, keys_of: Callable[[Ints], ULongs]) -> None:
        """Set the keys of pending n-grams, now that all shorter ends are known."""
        ngrams, places = self.pending()
        keys = keys_of(ngrams)
        first = 0
        for chunk in self.chunks:
            here = (first <= places) & (places < first + len(chunk) // 2)
            chunk[2 * (places[here] - first)] = keys[here]
            first += len(chunk) // 2

    def pending(self) -> tuple[Ints, Longs]:
        """Return the n-grams without a key, and their numbers among all."""
        return (
            np.concatenate([np.empty((0, self.order), np.int32), *self._ngrams]),
            np.concatenate([np.empty(0, np.int64), *self._places]),
        )


class GrowingHash:
    """The hash tables of the orders read so far, in the form of ``HashLayout``: one after another in one array.

    unigrams: float32 (2 * (words + 1),), log-probability and log back-off weight of each word and of ``<s>``.
    firsts, homes: int64 (orders,), where each order's table begins, and how many homes its keys have.
    """

    def __init__(self, unigrams: Floats, expected: Sequence[int] = ()) -> None:
        """Allocate the tables. expected: plausible numbers of n-grams from order two on: then nothing has to be moved.

        Allocated memory costs nothing before it is written to.
        """
        self.unigrams = unigrams
        self.vocab_size = len(unigrams) // 2 - 1
        self.bits = word_bits(self.vocab_size)
        self._allocate(expected)

    def _allocate(self, expected: Sequence[int]) -> None:
        self.table = np.empty(2 * sum(map(most_rows, expected)), np.uint64)
        self.sizes = [self.vocab_size + 1]
        self.rows = [0]
        self.firsts = np.zeros(1, np.int64)
        self.homes = np.zeros(1, np.int64)

    def arrays(self) -> dict[str, Array]:
        """Return the arrays for ``HashLayout.open``."""
        table = self.table[: 2 * sum(self.rows)]
        return {"unigrams": self.unigrams, "table": table, "rows": np.array(self.rows, np.int64)}

    def add_order(self, entries: OrderRows) -> int | None:
        """Add all n-grams of the next order and their missing shorter ends; return the number of one listed twice, if
        any.
        """
        ngrams, _ = entries.pending()
        if len(ngrams):
            self._add_missing(entries, self._missing(ngrams))
            entries.give_keys(self.keys)
        return self._add_table(entries.chunks, len(entries))

    def keys(self, ngrams: Ints) -> ULongs:
        """Return the mixed keys of n-grams, (n, words), whose contexts are all known."""
        return mixed_keys(self.contexts(ngrams[:, :-1]), ngrams[:, -1], self.bits)

    def tables(self) -> HashTables:
        """Return the tables for kernels."""
        return HashTables(self.table, self.firsts, self.homes, self.vocab_size, self.bits)

    def contexts(self, ngrams: Ints) -> Longs:
        """Return the context number of each n-gram, (n, words); -1 for one that is not known."""
        out = np.empty(len(ngrams), np.int64)
        contexts_of(np.ascontiguousarray(ngrams), self.tables(), out)
        return out

    def values(self, ngrams: Ints) -> tuple[Floats, Floats]:
        """Return log-probabilities and log back-off weights of n-grams that are all known."""
        places = self.contexts(ngrams)
        if ngrams.shape[1] == 1:
            return self.unigrams[2 * places], self.unigrams[2 * places + 1]
        singles, at = self.table.view(np.float32), 4 * (places - self.vocab_size - 1)
        return singles[at + 2], singles[at + 3]

    def _add_table(self, chunks: Sequence[ULongs], size: int) -> int | None:
        first, homes = sum(self.rows), homes_of(size)
        self.firsts, self.homes = np.append(self.firsts, first), np.append(self.homes, homes)
        for room in (most_rows(size), homes + size + 1):  # the second is enough for the worst of keys
            self._free_rows(first, first + room)
            before = 0
            for chunk in chunks:
                done = insert_rows(self.table, first, homes, first + room - 1, chunk)
                if done < 0:
                    break
                if done < len(chunk) // 2:
                    return before + done
                before += done
            else:
                break
        behind = self.table[2 * (first + homes) : 2 * (first + room) : 2]
        used = int(np.flatnonzero(behind).max(initial=-1)) + 1
        self.rows.append(homes + used + 1)
        self.sizes.append(size)
        return None

    def _free_rows(self, first: int, last: int) -> None:
        """Make rows ``first`` to ``last`` free, enlarging the table if it is too short."""
        if 2 * last > len(self.table):
            larger = np.empty(2 * last, np.uint64)  # not resized: that would lose the huge pages
            larger[: 2 * first] = self.table[: 2 * first]
            self.table = larger
        self.table[2 * first : 2 * last] = 0

    def _add_missing(self, entries: OrderRows, missing: dict[int, Ints]) -> None:
        """Rebuild the tables with additional n-grams, and rename the contexts of ``entries``. Few files need that."""
        if not any(len(ngrams) for ngrams in missing.values()):
            return
        old, old_rows, old_sizes = self.table, self.rows, self.sizes
        names = np.empty(0, np.int64)  # what the rows of the old tables are called now
        self._allocate([size + len(ngrams) for size, ngrams in zip(old_sizes[1:], missing.values(), strict=True)])
        for order, (rows, size) in enumerate(zip(old_rows[1:], old_sizes[1:], strict=True), 2):
            first = sum(old_rows[: order - 1])
            kept = old[2 * first : 2 * (first + rows)]
            rename_contexts(kept, names, self.vocab_size, self.bits)
            added = self._backed_off(missing[order])
            self._add_table([kept, added], size + len(added) // 2)
            now = np.empty(rows, np.int64)
            find_rows(kept, self.table, int(self.firsts[-1]), int(self.homes[-1]), now)
            names = np.append(names, now + self.vocab_size + 1)
        for chunk in entries.chunks:
            rename_contexts(chunk, names, self.vocab_size, self.bits)

    def _missing(self, ngrams: Ints) -> dict[int, Ints]:
        """Return by order, from two on, the ends of ``ngrams``, and the ends of those, that are not in the tables."""
        found: dict[int, Ints] = {}
        for order in range(ngrams.shape[1] - 1, 1, -1):
            ends = np.concatenate((ngrams[:, :-1], ngrams[:, 1:]))
            ngrams = np.unique(ends[self.contexts(ends) < 0], axis=0)
            found[order] = ngrams
        return dict(sorted(found.items()))

    def _backed_off(self, ngrams: Ints) -> ULongs:
        """Return rows for n-grams that the file does not list; their ends are all known."""
        rows = np.zeros(2 * len(ngrams), np.uint64)
        if len(ngrams):
            weights, logs = self.values(ngrams[:, :-1])[1], self.values(ngrams[:, 1:])[0]
            rows.view(np.float32)[2::4] = weights.astype(np.float64) + logs
            rows[::2] = self.keys(ngrams)
        return rows
