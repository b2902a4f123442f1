"""How an n-gram model lies in memory and on disk: a hash table, or a compact trie.

Both are a few flat arrays that map from a file as they are. The hash answers fastest, in 21.6 bytes an n-gram. The
trie keeps every order sorted, words in as few bits as they need and the way from an n-gram to its extensions as an
Elias-Fano list, in about 9 bytes; with eight bits for each log (equal-frequency bins, each standing for the mean of
its members) in about 4, at a loss that ``NgramLM.normalisation_loss`` states.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreword.arrays import Array, Doubles, Floats, Ints, Longs, ULongs
from foreword.errors import InputError
from foreword.native.hashing import FIRST, SECOND
from foreword.ngram.kernels_bits import EVERY, high_words, low_bits, packed_bytes
from foreword.ngram.kernels_query import (
    BACKOFF_START,
    COLUMNS,
    COUNT,
    FIRST_ROW,
    HASH,
    HIGH_START,
    HOMES,
    LOG_START,
    SAMPLE_START,
    TRIE,
    WORD_START,
    Model,
    count_extensions,
    known_extensions,
    unpack_logs,
    unpack_weights,
    unpack_words,
)

LOAD = 0.74
"""Taken share of the hash table's rows: 16 bytes a row make 21.6 bytes an n-gram."""


@dataclass(slots=True)
class Logged:
    """The n-grams of one order: last words, the number of each one's prefix in the order below, natural logs."""

    words: Ints
    parents: Ints
    probabilities: Floats
    backoffs: Floats


Spelled = tuple[int, Longs, Floats, Floats]
"""An order, its n-grams as words (n, order) in sorted order, their log-probabilities and log back-off weights."""


class HashLayout:
    """A hash table for each order from two on, one after another."""

    def __init__(self, model: Model, vocab_size: int, sizes: Sequence[int]) -> None:
        self.model = model
        self.vocab_size = vocab_size
        self.sizes = list(sizes)
        self._sorted: dict[int, tuple[ULongs, Longs]] = {}

    @classmethod
    def open(cls, arrays: Mapping[str, Array], sizes: Sequence[int], vocab_size: int, uniform: bool) -> HashLayout:
        table, rows = arrays["table"], arrays["rows"]
        if table.dtype != np.uint64 or table.ndim != 1 or rows.dtype != np.int64 or rows.shape != (len(sizes),):
            raise InputError("the tables of n-grams have the wrong form")
        _check_sizes(sizes, vocab_size)
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
        model = _model(HASH, arrays, vocab_size, bases, uniform)
        return cls(model._replace(table=table, values=table.view(np.float32), shapes=shapes), vocab_size, sizes)

    def arrays(self) -> dict[str, Array]:
        ends = np.append(self.model.shapes[1:, FIRST_ROW], len(self.model.table) // 2)
        rows = ends - self.model.shapes[:, FIRST_ROW]
        return {"unigrams": self.model.unigrams, "table": self.model.table, "rows": rows}

    def extensions(self, length: int, context: int) -> tuple[Longs, Doubles]:
        """The words seen after a context of ``length`` + 1 words, and their log-probabilities there."""
        keys, rows = self._by_key(length + 1)
        bits = self.model.bits
        first, last = np.searchsorted(keys, np.array([context << bits, (context + 1) << bits], np.uint64))
        words = (keys[first:last] & np.uint64((1 << bits) - 1)).astype(np.int64)
        return words, self.model.values[4 * rows[first:last] + 2].astype(np.float64)

    def backoff(self, length: int, context: int) -> float:
        if length == 0:
            return float(self.model.unigrams[2 * context + 1])
        return float(self.model.values[4 * (context - self.vocab_size - 1) + 3])

    def _by_key(self, order: int) -> tuple[ULongs, Longs]:
        """All keys of an order, sorted, and their rows: so a context's extensions lie together. Made when needed."""
        if order not in self._sorted:
            rows = self._rows_of(order)
            keys = _unmixed(self.model.table[2 * rows])
            sort = np.argsort(keys)
            self._sorted[order] = keys[sort], rows[sort]
        return self._sorted[order]

    def _rows_of(self, order: int) -> Longs:
        """The rows that the n-grams of ``order`` + 1 words have."""
        first = int(self.model.shapes[order, FIRST_ROW])
        last = len(self.model.table) // 2
        if order + 1 < len(self.sizes):
            last = int(self.model.shapes[order + 1, FIRST_ROW])
        return first + np.flatnonzero(self.model.table[2 * first : 2 * last : 2])

    def ngrams(self) -> Iterator[Spelled]:
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
    return int(size / LOAD) + 1


def most_rows(size: int) -> int:
    """Room for an order's table: behind the last home some for keys that find theirs taken, more than ever needed."""
    return homes_of(size) + size // 8 + 256


def mixed_keys(contexts: Longs, words: Array, bits: int) -> ULongs:
    """What the table stores for contexts and words, as ``ngram_table.mixed_key`` has it."""
    mixed = ((contexts << bits | words) + 1).astype(np.uint64) * FIRST
    mixed ^= mixed >> np.uint64(32)
    return mixed * SECOND


def _unmixed(mixed: ULongs) -> ULongs:
    """The keys, context and word, from what the table stores: the mixing backwards."""
    modulus = 1 << 64
    keys = mixed * np.uint64(pow(int(SECOND), -1, modulus))
    keys ^= keys >> np.uint64(32)
    keys *= np.uint64(pow(int(FIRST), -1, modulus))
    return keys - np.uint64(1)


class TrieLayout:
    """Every order sorted, and for each n-gram where its extensions begin in the next order."""

    def __init__(self, model: Model, vocab_size: int, sizes: Sequence[int]) -> None:
        self.model = model
        self.vocab_size = vocab_size
        self.sizes = list(sizes)

    @classmethod
    def open(cls, arrays: Mapping[str, Array], sizes: Sequence[int], vocab_size: int, uniform: bool) -> TrieLayout:
        shapes, lengths = _trie_shapes(sizes, vocab_size)
        stored = "codes" if "codes" in arrays else "logs"
        expected = {
            "words": (np.uint8, lengths["words"]),
            "highs": (np.uint64, lengths["highs"]),
            "lows": (np.uint8, lengths["lows"]),
            "samples": (np.int64, lengths["samples"]),
            stored: (np.uint8 if stored == "codes" else np.float32, lengths["logs"]),
            **({"books": (np.float32, 512 * len(sizes))} if stored == "codes" else {}),
        }
        for name, (kind, length) in expected.items():
            if arrays[name].dtype != kind or arrays[name].shape != (length,):
                raise InputError(f"the trie's {name} have the wrong form")
        bases = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)[:-1])).astype(np.int64)
        model = _model(TRIE, arrays, vocab_size, bases, uniform)
        parts: dict[str, Any] = {name: arrays[name] for name in expected}
        return cls(model._replace(shapes=shapes, **parts), vocab_size, sizes)

    def arrays(self) -> dict[str, Array]:
        names = ("unigrams", "words", "highs", "lows", "samples")
        stored = ("codes", "books") if len(self.model.codes) else ("logs",)
        return {name: getattr(self.model, name) for name in (*names, *stored)}

    def extensions(self, length: int, context: int) -> tuple[Longs, Doubles]:
        found = np.empty(2, np.int64)
        known_extensions(self.model, length, context, found)
        first, last = found.tolist()
        words, logs = np.empty(max(0, last - first), np.int64), np.empty(max(0, last - first))
        unpack_words(self.model, length + 1, first, last, words)
        unpack_logs(self.model, length + 1, first, last, logs)
        return words, logs

    def backoff(self, length: int, context: int) -> float:
        if length == 0:
            return float(self.model.unigrams[2 * context + 1])
        weight = np.empty(1)
        place = context - int(self.model.bases[length])
        unpack_weights(self.model, length, place, place + 1, weight)
        return float(weight[0])

    def ngrams(self) -> Iterator[Spelled]:
        spelled = np.arange(self.vocab_size + 1)[:, None]
        yield 1, spelled, self.model.unigrams[::2], self.model.unigrams[1::2]
        for order, size in enumerate(self.sizes[1:], 2):
            words, logs = np.empty(size, np.int64), np.empty(size)
            unpack_words(self.model, order - 1, 0, size, words)
            unpack_logs(self.model, order - 1, 0, size, logs)
            counts = np.empty(len(spelled), np.int64)
            count_extensions(self.model, order - 2, counts)
            spelled = np.concatenate((np.repeat(spelled, counts, axis=0), words[:, None]), axis=1)
            weights = np.zeros(size)
            if order < len(self.sizes):
                unpack_weights(self.model, order - 1, 0, size, weights)
            yield order, spelled, logs.astype(np.float32), weights.astype(np.float32)


def word_bits(vocab_size: int) -> int:
    """What a word takes in a key or a packed array; ``<s>`` has the number after the last word."""
    return (vocab_size + 1).bit_length()


def _model(layout: int, arrays: Mapping[str, Array], vocab_size: int, bases: Longs, uniform: bool) -> Model:
    """A model with the parts that both layouts have; the others are empty."""
    unigrams = arrays["unigrams"]
    if unigrams.dtype != np.float32 or unigrams.shape != (2 * (vocab_size + 1),):
        raise InputError("the unigrams do not fit the vocabulary")
    single, byte = np.empty(0, np.float32), np.empty(0, np.uint8)
    word, long = np.empty(0, np.uint64), np.empty(0, np.int64)
    return Model(
        layout, unigrams, word_bits(vocab_size), bases, uniform, -math.log(vocab_size),
        word, single, np.empty((0, COLUMNS), np.int64), byte, word, byte, long, single, byte, single,
    )  # fmt: skip


def _check_sizes(sizes: Sequence[int], vocab_size: int) -> None:
    if not sizes or sizes[0] != vocab_size + 1 or not all(0 <= size < 1 << 40 for size in sizes):
        raise InputError("the numbers of n-grams do not fit the vocabulary")


def _trie_shapes(sizes: Sequence[int], vocab_size: int) -> tuple[Longs, dict[str, int]]:
    """Where everything begins follows from how many n-grams there are; nothing of it is believed from a file."""
    _check_sizes(sizes, vocab_size)
    bits = word_bits(vocab_size)
    shapes = np.zeros((len(sizes), COLUMNS), np.int64)
    words = highs = lows = samples = logs = 0
    for order, size in enumerate(sizes):
        if order:
            shapes[order, WORD_START] = words
            words += packed_bytes(size, bits)
            shapes[order, LOG_START] = logs
            logs += size
            if order + 1 < len(sizes):
                shapes[order, BACKOFF_START] = logs
                logs += size
        shapes[order, COUNT] = size
        if order + 1 < len(sizes):
            low = low_bits(size + 1, sizes[order + 1])
            shapes[order, HIGH_START : SAMPLE_START + 1] = (
                highs,
                highs + high_words(size + 1, sizes[order + 1]),
                lows,
                low,
                samples,
            )
            highs += high_words(size + 1, sizes[order + 1])
            lows += packed_bytes(size + 1, low)
            samples += (size + EVERY) // EVERY
    return shapes, {"words": words, "highs": highs, "lows": lows, "samples": samples, "logs": logs}


def in_order(orders: Sequence[Logged]) -> list[Logged]:
    """Each order sorted by prefix, then word, as estimates are already and files of others need not be."""
    found = [orders[0]]
    places = np.arange(len(orders[0].words), dtype=np.int32)
    for order in orders[1:]:
        parents = places[order.parents]
        keys = parents.astype(np.int64) << 32 | order.words
        sort = np.arange(len(keys)) if (np.diff(keys) > 0).all() else np.argsort(keys)
        found.append(Logged(order.words[sort], parents[sort], order.probabilities[sort], order.backoffs[sort]))
        places = np.empty(len(sort), np.int32)
        places[sort] = np.arange(len(sort), dtype=np.int32)
    return found
