"""The trie layout of an n-gram model: the smallest, in about 9 bytes per n-gram, or 4 with quantized logs.

Every order is sorted; words are packed into as few bits as they need, and where the extensions of each n-gram begin in
the next order is an Elias-Fano list. Quantized logs take eight bits each: bins of equal frequency, each represented by
the mean of its members, at a loss that ``NgramLM.normalisation_loss`` measures. ``trie_arrays`` builds the arrays from
the sorted n-grams of an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Array, Bytes, Doubles, Floats, Ints, Longs, frozen
from foreword.errors import InputError
from foreword.ngram.hash_layout import Spelled, check_sizes, model_of, word_bits
from foreword.ngram.kernels_count import LOG, WEIGHT, list_extensions
from foreword.ngram.kernels_query import (
    BACKOFF_START,
    COLUMNS,
    COUNT,
    EVERY,
    HIGH_START,
    LOG_START,
    SAMPLE_START,
    TRIE,
    WORD_START,
    ModelArrays,
    count_extensions,
    high_words,
    known_extensions,
    low_bits,
    pack_bits,
    pack_rising,
    packed_bytes,
    unpack_logs,
    unpack_weights,
    unpack_words,
)
from foreword.protocols import Meter
from foreword.storage.scratch import Scratch

T = TypeVar("T", bound=np.generic)

CHUNK = 1 << 16
"""Numbers processed together."""


class TrieLayout:
    """Every order sorted, and for each n-gram where its extensions begin in the next order."""

    def __init__(self, model: ModelArrays, vocab_size: int, sizes: Sequence[int]) -> None:
        self.model = model
        self.vocab_size = vocab_size
        self.sizes = list(sizes)

    @classmethod
    def open(cls, arrays: Mapping[str, Array], sizes: Sequence[int], vocab_size: int, uniform: bool) -> TrieLayout:
        """Check the arrays of a saved model, and take them as they are."""
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
        model = model_of(TRIE, arrays, vocab_size, bases, uniform)
        parts: dict[str, Any] = {name: frozen(arrays[name]) for name in expected}
        return cls(model._replace(shapes=shapes, **parts), vocab_size, sizes)

    def arrays(self) -> dict[str, Array]:
        """Return the arrays to be saved."""
        names = ("unigrams", "words", "highs", "lows", "samples")
        stored = ("codes", "books") if len(self.model.codes) else ("logs",)
        return {name: getattr(self.model, name) for name in (*names, *stored)}

    def extensions(self, length: int, context: int) -> tuple[Longs, Doubles]:
        """Return the words seen after a context of ``length`` + 1 words, and their log-probabilities there."""
        found = np.empty(2, np.int64)
        known_extensions(self.model, length, context, found)
        first, last = found.tolist()
        words, logs = np.empty(max(0, last - first), np.int64), np.empty(max(0, last - first))
        unpack_words(self.model, length + 1, first, last, words)
        unpack_logs(self.model, length + 1, first, last, logs)
        return words, logs

    def backoff(self, length: int, context: int) -> float:
        """Return the log back-off weight of a context of ``length`` + 1 words."""
        if length == 0:
            return float(self.model.unigrams[2 * context + 1])
        weight = np.empty(1)
        index = context - int(self.model.bases[length])
        unpack_weights(self.model, length, index, index + 1, weight)
        return float(weight[0])

    def ngrams(self) -> Iterator[Spelled]:
        """Yield every order, see ``Spelled``."""
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


def _trie_shapes(sizes: Sequence[int], vocab_size: int) -> tuple[Longs, dict[str, int]]:
    """Return where each part of the arrays begins, and their lengths: both follow from ``sizes``, not from a file."""
    check_sizes(sizes, vocab_size)
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


# Building


def trie_arrays(
    unigrams: Floats, tables: Sequence[Ints], scratch: Scratch, *, quantize: bool, meter: Meter | None = None
) -> dict[str, Array]:
    """Build the arrays of ``TrieLayout``; the tables must be sorted."""
    bits = word_bits(len(unigrams) - 1)
    sizes = [len(unigrams), *map(len, tables)]
    words = _divided(scratch, np.uint8, [packed_bytes(size, bits) for size in sizes[1:]])
    highs = _divided(scratch, np.uint64, [high_words(size + 1, above) for size, above in pairwise(sizes)])
    lows = _divided(
        scratch, np.uint8, [packed_bytes(size + 1, low_bits(size + 1, above)) for size, above in pairwise(sizes)]
    )
    samples = _divided(scratch, np.int64, [(size + EVERY) // EVERY for size in sizes[:-1]])
    # The highest order extends to nothing, so it has no weights.
    columns = [(k, column) for k in range(len(tables)) for column in (LOG, WEIGHT)][:-1]
    logs = _divided(scratch, np.float32, [len(tables[k]) for k, _ in columns])
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
    codes = _divided(scratch, np.uint8, [len(part) for part in logs.parts])
    for values, coded, (k, column) in zip(logs.parts, codes.parts, columns, strict=True):
        books[k + 1, column - LOG] = _quantize(values, coded, scratch)
    return arrays | {"codes": codes.whole, "books": books.ravel()}


@dataclass(slots=True)
class _Divided(Generic[T]):
    """An array and its consecutive parts."""

    whole: NDArray[T]
    parts: list[NDArray[T]]


def _divided(scratch: Scratch, kind: type[T], sizes: Sequence[int]) -> _Divided[T]:
    whole = scratch.empty(sum(sizes), kind)
    ends = np.cumsum([0, *sizes]).tolist()
    return _Divided(whole, [whole[first:last] for first, last in pairwise(ends)])


def _quantize(values: Floats, codes: Bytes, scratch: Scratch) -> Floats:
    """Return a code book of 256 values, the means of bins of equal frequency, and write the code of each value.

    A weight of zero and minus infinity have codes of their own, for they mean something exact: a context that extends
    to nothing, and an impossible word. codes: uint8 (n,), out.
    """
    book = np.zeros(256, np.float32)
    book[0], book[1] = 0.0, -np.inf
    ranked = scratch.empty(len(values), np.uint64)
    size = 0
    for first in range(0, len(values), CHUNK):
        some = values[first : first + CHUNK]
        codes[first : first + CHUNK] = np.isneginf(some)
        places = np.flatnonzero((some != 0) & np.isfinite(some))
        # A float's bits, inverted where it is negative, rise with it; its index follows, so that no two are equal.
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
