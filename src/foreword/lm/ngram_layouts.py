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
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from foreword.errors import InputError
from foreword.kernels import ngram_table
from foreword.kernels.bits import EVERY, high_words, low_bits, pack_bits, pack_rising, packed_bytes
from foreword.kernels.ngram_query import HASH, TRIE, Model, known_extensions, unpack_logs, unpack_words
from foreword.protocols import Array

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

LOAD = 0.74
"""Taken share of the hash table's rows: 16 bytes a row make 21.6 bytes an n-gram."""


@dataclass(slots=True)
class Logged:
    """The n-grams of one order: last words, the number of each one's prefix in the order below, natural logs."""

    words: Ints
    parents: Ints
    probabilities: Singles
    backoffs: Singles


Spelled = tuple[int, Longs, Singles, Singles]
"""An order, its n-grams as words (n, order) in sorted order, their log-probabilities and log back-off weights."""


class HashLayout:
    """One open-addressing table for all orders from two on."""

    name = "hash"

    def __init__(self, model: Model, vocab_size: int, sizes: Sequence[int]) -> None:
        self.model = model
        self.vocab_size = vocab_size
        self.sizes = list(sizes)
        self._sorted: tuple[NDArray[np.uint64], Longs] | None = None

    @classmethod
    def build(cls, orders: Sequence[Logged], vocab_size: int, uniform: bool) -> HashLayout:
        rows = int(sum(len(order.words) for order in orders[1:]) / LOAD) + 2
        table = np.empty(2 * rows, np.uint64)
        table.fill(0)  # not np.zeros: NumPy asks for huge pages only where it does not ask for zeroed ones
        packed = np.empty(1, np.uint64)
        contexts = np.arange(vocab_size + 1, dtype=np.int64)
        for order in orders[1:]:
            own = np.empty(len(order.words), np.int64)
            ngram_table.fill(
                table, order.parents, order.words, order.probabilities, order.backoffs, contexts, own,
                _word_bits(vocab_size), vocab_size + 1, packed.view(np.float32), packed,
            )  # fmt: skip
            contexts = own
        sizes = [len(order.words) for order in orders]
        return cls.open({"table": table, "unigrams": _unigrams(orders)}, sizes, vocab_size, uniform)

    @classmethod
    def open(cls, arrays: Mapping[str, Array], sizes: Sequence[int], vocab_size: int, uniform: bool) -> HashLayout:
        table = arrays["table"]
        if table.dtype != np.uint64 or table.ndim != 1 or len(table) < 4 or len(table) % 2:
            raise InputError("the table of n-grams has the wrong form")
        _check_free_row(table)
        bases = np.array([0, *[vocab_size + 1] * (len(sizes) - 1)], np.int64)
        model = _model(HASH, arrays, vocab_size, bases, uniform)._replace(table=table, values=table.view(np.float32))
        return cls(model, vocab_size, sizes)

    def arrays(self) -> dict[str, Array]:
        return {"table": self.model.table, "unigrams": self.model.unigrams}

    def extensions(self, length: int, context: int) -> tuple[Longs, Floats]:
        """The words seen after a context of ``length`` + 1 words, and their log-probabilities there."""
        keys, rows = self._by_key()
        bits = self.model.bits
        ends = np.array([(context << bits) + 1, ((context + 1) << bits) + 1], np.uint64)
        first, last = np.searchsorted(keys, ends)
        words = ((keys[first:last] - np.uint64(1)) & np.uint64((1 << bits) - 1)).astype(np.int64)
        return words, self.model.values[4 * rows[first:last] + 2].astype(np.float64)

    def backoff(self, length: int, context: int) -> float:
        if length == 0:
            return float(self.model.unigrams[2 * context + 1])
        return float(self.model.values[4 * (context - self.vocab_size - 1) + 3])

    def _by_key(self) -> tuple[NDArray[np.uint64], Longs]:
        """All keys in order and their rows: with it a context's extensions lie together. Made when first needed."""
        if self._sorted is None:
            rows = np.flatnonzero(self.model.table[::2])
            rows = rows[np.argsort(self.model.table[2 * rows])]
            self._sorted = self.model.table[2 * rows], rows
        return self._sorted

    def ngrams(self) -> Iterator[Spelled]:
        values, base = self.model.values, self.vocab_size + 1
        spelled = np.arange(base)[:, None]
        yield 1, spelled, self.model.unigrams[::2], self.model.unigrams[1::2]
        keys, rows = self._by_key()
        parents = ((keys - np.uint64(1)) >> np.uint64(self.model.bits)).astype(np.int64)
        words = ((keys - np.uint64(1)) & np.uint64((1 << self.model.bits) - 1)).astype(np.int64)
        places = np.full(base + len(self.model.table) // 2, -1)
        places[:base] = np.arange(base)
        members = np.flatnonzero(parents < base)
        for order in range(2, len(self.sizes) + 1):
            spelled = np.concatenate((spelled[places[parents[members]]], words[members][:, None]), axis=1)
            sort = np.lexsort(spelled.T[::-1])
            own, spelled = rows[members][sort], spelled[sort]
            yield order, spelled, values[4 * own + 2], values[4 * own + 3]
            places[:] = -1
            places[base + own] = np.arange(len(own))
            members = np.flatnonzero(places[parents] >= 0)


class TrieLayout:
    """Every order sorted, and for each n-gram where its extensions begin in the next order."""

    name = "trie"

    def __init__(self, model: Model, vocab_size: int, sizes: Sequence[int]) -> None:
        self.model = model
        self.vocab_size = vocab_size
        self.sizes = list(sizes)

    @classmethod
    def build(cls, orders: Sequence[Logged], vocab_size: int, uniform: bool, *, quantized: bool) -> TrieLayout:
        orders = _in_order(orders)
        bits = _word_bits(vocab_size)
        begins = [
            np.searchsorted(above.parents, np.arange(len(below.words) + 1)).astype(np.int64)
            for below, above in pairwise(orders)
        ]
        lists = [pack_rising(each) for each in begins]
        arrays: dict[str, Array] = {
            "unigrams": _unigrams(orders),
            "words": _joined([pack_bits(order.words, bits) for order in orders[1:]], np.uint8),
            "highs": _joined([highs for highs, _, _ in lists], np.uint64),
            "lows": _joined([lows for _, lows, _ in lists], np.uint8),
            "samples": _joined([samples for _, _, samples in lists], np.int64),
        }
        # The highest order extends to nothing, so it has no weights.
        logs = [[order.probabilities, order.backoffs] for order in orders[1:]]
        if logs:
            logs[-1].pop()
        if quantized:
            books = np.zeros((len(orders), 2, 256), np.float32)
            codes = []
            for order, both in enumerate(logs, 1):
                for kind, values in enumerate(both):
                    books[order, kind], code = _quantize(values)
                    codes.append(code)
            arrays |= {"codes": _joined(codes, np.uint8), "books": books.ravel()}
        else:
            arrays["logs"] = _joined([values for both in logs for values in both], np.float32)
        return cls.open(arrays, [len(order.words) for order in orders], vocab_size, uniform)

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
        parts = {name: arrays[name] for name in expected}
        return cls(model._replace(shapes=shapes, **parts), vocab_size, sizes)

    def arrays(self) -> dict[str, Array]:
        names = ("unigrams", "words", "highs", "lows", "samples")
        stored = ("codes", "books") if len(self.model.codes) else ("logs",)
        return {name: getattr(self.model, name) for name in (*names, *stored)}

    def extensions(self, length: int, context: int) -> tuple[Longs, Floats]:
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
        place = int(self.model.shapes[length, 8]) + context - int(self.model.bases[length])
        if len(self.model.codes):
            return float(self.model.books[512 * length + 256 + self.model.codes[place]])
        return float(self.model.logs[place])

    def ngrams(self) -> Iterator[Spelled]:
        spelled = np.arange(self.vocab_size + 1)[:, None]
        yield 1, spelled, self.model.unigrams[::2], self.model.unigrams[1::2]
        for order, size in enumerate(self.sizes[1:], 2):
            words, logs = np.empty(size, np.int64), np.empty(size)
            unpack_words(self.model, order - 1, 0, size, words)
            unpack_logs(self.model, order - 1, 0, size, logs)
            counts = np.empty(len(spelled), np.int64)
            base = int(self.model.bases[order - 2])
            found = np.empty(2, np.int64)
            for place in range(len(spelled)):
                known_extensions(self.model, order - 2, base + place, found)
                counts[place] = found[1] - found[0]
            spelled = np.concatenate((np.repeat(spelled, counts, axis=0), words[:, None]), axis=1)
            weights = np.zeros(size, np.float32)
            if order < len(self.sizes):
                first = int(self.model.bases[order - 1])
                weights[:] = [self.backoff(order - 1, first + place) for place in range(size)]
            yield order, spelled, logs.astype(np.float32), weights


def _word_bits(vocab_size: int) -> int:
    """What a word takes in a key or a packed array; ``<s>`` has the number after the last word."""
    return (vocab_size + 1).bit_length()


def _unigrams(orders: Sequence[Logged]) -> Singles:
    return np.stack((orders[0].probabilities, orders[0].backoffs), axis=1).ravel()


def _joined(parts: Sequence[Array], kind: type[np.generic]) -> Array:
    return np.concatenate([np.empty(0, kind), *parts])


def _model(layout: int, arrays: Mapping[str, Array], vocab_size: int, bases: Longs, uniform: bool) -> Model:
    """A model with the parts that both layouts have; the others are empty."""
    unigrams = arrays["unigrams"]
    if unigrams.dtype != np.float32 or unigrams.shape != (2 * (vocab_size + 1),):
        raise InputError("the unigrams do not fit the vocabulary")
    single, byte = np.empty(0, np.float32), np.empty(0, np.uint8)
    word, long = np.empty(0, np.uint64), np.empty(0, np.int64)
    return Model(
        layout, unigrams, _word_bits(vocab_size), bases, uniform, -math.log(vocab_size),
        word, single, np.empty((0, 9), np.int64), byte, word, byte, long, single, byte, single,
    )  # fmt: skip


def _check_free_row(table: NDArray[np.uint64]) -> None:
    """A search ends at a free row, so there must be one, or a hostile file could make it run for ever."""
    for first in range(0, len(table), 1 << 16):
        if not table[first : first + (1 << 16) : 2].all():
            return
    raise InputError("the table of n-grams has no free row")


def _trie_shapes(sizes: Sequence[int], vocab_size: int) -> tuple[Longs, dict[str, int]]:
    """Where everything begins follows from how many n-grams there are; nothing of it is believed from a file."""
    if not sizes or sizes[0] != vocab_size + 1 or any(size < 0 for size in sizes):
        raise InputError("the numbers of n-grams do not fit the vocabulary")
    bits = _word_bits(vocab_size)
    shapes = np.zeros((len(sizes), 9), np.int64)
    words = highs = lows = samples = logs = 0
    for order, size in enumerate(sizes):
        if order:
            shapes[order, :2] = size, words
            words += packed_bytes(size, bits)
            shapes[order, 7] = logs
            logs += size
            if order + 1 < len(sizes):
                shapes[order, 8] = logs
                logs += size
        shapes[order, 0] = size
        if order + 1 < len(sizes):
            low = low_bits(size + 1, sizes[order + 1])
            shapes[order, 2:7] = highs, highs + high_words(size + 1, sizes[order + 1]), lows, low, samples
            highs += high_words(size + 1, sizes[order + 1])
            lows += packed_bytes(size + 1, low)
            samples += (size + EVERY) // EVERY
    return shapes, {"words": words, "highs": highs, "lows": lows, "samples": samples, "logs": logs}


def _in_order(orders: Sequence[Logged]) -> list[Logged]:
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


def _quantize(values: Singles) -> tuple[Singles, NDArray[np.uint8]]:
    """256 values that stand for all, and which of them stands for each: bins of equal frequency, by their means.

    A weight of zero and minus infinity keep a value of their own, for they mean something exact: a context that
    extends to nothing, and an impossible word.
    """
    book = np.zeros(256, np.float32)
    codes = np.zeros(len(values), np.uint8)
    book[0], book[1] = 0.0, -np.inf
    codes[np.isneginf(values)] = 1
    rest = np.flatnonzero((values != 0) & np.isfinite(values))
    order = rest[np.argsort(values[rest])]
    cuts = np.linspace(0, len(order), 255).astype(np.int64)
    for number, (first, last) in enumerate(pairwise(cuts.tolist()), 2):
        if last > first:
            book[number] = values[order[first:last]].mean(dtype=np.float64)
            codes[order[first:last]] = number
    return book, codes
