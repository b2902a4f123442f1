"""Write KenLM binaries, probing and trie, and list the n-grams of a trie.

A new file is laid out by the code that reads one (``kenlm_format``), mapped, and filled in place. KenLM marks two facts
in the values, so that queries stop early: an n-gram that ends no longer one has the sign bit of its log-probability set
(in a probing file; elsewhere the sign is clear), and one that begins no longer one and has no back-off weight has the
weight -0.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from foreword.arrays import Bools, Bytes, Floats, Longs, UInts, ULongs
from foreword.errors import InputError
from foreword.ngram import kernels_kenlm_writing as kernels
from foreword.ngram.hash_layout import Spelled
from foreword.ngram.kenlm import KenlmLM
from foreword.ngram.kenlm_format import (
    HASHED_WORD,
    LOG_AT,
    LOG_BITS,
    NEXT_AT,
    NEXT_BITS,
    PROBING,
    RECORD,
    SIZE,
    START,
    TRIE,
    WEIGHT_AT,
    WEIGHT_BITS,
    WORD_BITS,
    FileLayout,
    Header,
    header_end,
    read_layout,
    render_header,
)
from foreword.ngram.log10 import Log10Ngrams
from foreword.storage.atomic import atomic_file
from foreword.tokens.vocab import Vocab

Binary: TypeAlias = Literal["probing", "trie"]
BINARIES: tuple[Binary, ...] = ("probing", "trie")

MULTIPLIER = 1.5
"""Slots of a hash table for each entry, KenLM's default."""

SIGN = np.uint32(0x80000000)
ANY_SIZE = 1 << 62


def write_kenlm(model: Log10Ngrams, path: str | Path, binary: Binary = "probing") -> None:
    """Write a KenLM binary: "probing" is the faster one to query, "trie" the smaller."""
    new = _NewFile(model, binary)
    with atomic_file(path) as temporary:
        file = np.memmap(temporary, np.uint8, mode="w+", shape=(new.size,))
        new.fill(file.view(np.ndarray))
        file.flush()


def build_kenlm(model: Log10Ngrams, binary: Binary = "probing") -> Bytes:
    """Return a KenLM binary in memory."""
    new = _NewFile(model, binary)
    data = np.zeros(new.size, np.uint8)
    new.fill(data)
    return data


class _NewFile:
    """A file to be written. size: of the whole file, in bytes."""

    def __init__(self, model: Log10Ngrams, binary: Binary) -> None:
        if len(model.sizes) < 2:
            raise InputError("a model of order 1 cannot be a KenLM binary: they begin with bigrams")
        self.model = model
        self.words, self.offsets = _spelled(model.vocab)
        self.hashes = np.empty(len(self.offsets) - 1, np.uint64)
        kernels.hash_words(self.words, self.offsets, self.hashes)
        kind = PROBING if binary == "probing" else TRIE
        header = Header(len(model.sizes), MULTIPLIER, kind, True, tuple(model.sizes), header_end(len(model.sizes)))
        count = len(self.hashes)
        first = np.array([0, count], np.uint32) if kind == PROBING else np.array([count - 1], np.uint64)
        self.beginning = np.frombuffer(render_header(header) + first.tobytes(), np.uint8)
        self.layout = read_layout(self.beginning, "the new file", ANY_SIZE)
        self.size = self.layout.end + len(self.words) + count

    def fill(self, data: Bytes) -> None:
        """Write all parts to ``data``, which is zero."""
        data[: len(self.beginning)] = self.beginning
        trie = self.layout.header.is_trie
        ids = np.arange(len(self.hashes))  # the file's id of each word; <s> is the last word
        if trie:
            ids[1 + np.argsort(self.hashes[1:], kind="stable")] = np.arange(1, len(ids))
        _write_words(data[self.layout.end :], self.words, self.offsets, np.argsort(ids))
        orders = _marked_orders(self.model, ids)
        if trie:
            _fill_trie(data, self.layout, np.sort(self.hashes[1:]), orders)
        else:
            _fill_probing(data, self.layout, self.hashes, orders)


def _spelled(vocab: Vocab) -> tuple[Bytes, Longs]:
    """Return the words, ``<s>`` after the last, and where each begins; ``<unk>`` has to be the first."""
    if vocab.unknown != 0:
        raise InputError("a KenLM binary needs <unk> as its first word, and the vocabulary has another")
    data = np.append(vocab.data, np.frombuffer(b"<s>", np.uint8))
    if (data == 0).any():
        raise InputError("a word holds a NUL, which ends a word in a KenLM binary")
    return data, np.append(vocab.offsets, vocab.offsets[-1] + 3)


def _write_words(out: Bytes, words: Bytes, offsets: Longs, order: Longs) -> None:
    """Write the words, in the order of their ids, each ended by a NUL."""
    lengths = np.diff(offsets)[order]
    starts = np.cumsum(lengths + 1) - lengths - 1
    within = np.arange(len(words)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    out[np.repeat(starts, lengths) + within] = words[np.repeat(offsets[:-1][order], lengths) + within]


# Values


class _Order:
    """One order, with ids of the file.

    words: int64 (n, order). keys, ends: of each n-gram, and of it without its first word. logs, weights: the bits.
    """

    def __init__(self, words: Longs, logs: Floats, weights: Floats) -> None:
        self.words = words
        self.keys = _keys(words, 0)
        self.ends = _keys(words, 1)
        self.logs: UInts = np.where(logs == 0, np.float32(0), logs).view(np.uint32) & ~SIGN
        # A weight of zero is +0.0 for now: -0.0 has a meaning.
        self.weights: UInts = np.where(weights == 0, np.float32(0), weights).view(np.uint32)
        self.extends_left: Bools = np.zeros(len(words), np.bool_)


def _keys(words: Longs, first: int) -> ULongs:
    keys = np.zeros(len(words), np.uint64)
    if words.shape[1] > first:
        kernels.ngram_keys(words, first, words.shape[1], keys)
    return keys


def _marked_orders(model: Log10Ngrams, ids: Longs) -> Iterator[_Order]:
    """Yield each order, marked by what the next one holds. ids: the file's id of each word."""
    below: _Order | None = None
    for _, words, logs, weights in model.ngrams():
        order = _Order(np.ascontiguousarray(ids[words]), logs, weights)
        if below is not None:
            beginnings = np.empty(len(order.words), np.uint64)
            kernels.ngram_keys(order.words, 0, order.words.shape[1] - 1, beginnings)
            below.extends_left = np.isin(below.keys, order.ends)
            below.weights[(below.weights == 0) & ~np.isin(below.keys, beginnings)] = SIGN
            yield below
        below = order
    assert below is not None
    yield below


# Probing


def _fill_probing(data: Bytes, layout: FileLayout, hashes: ULongs, orders: Iterator[_Order]) -> None:
    table = data[layout.vocabulary : layout.vocabulary + HASHED_WORD * layout.hashes]
    ids = np.arange(1, len(hashes), dtype=np.uint32)[:, None]
    if kernels.insert_records(hashes[1:], ids, table, layout.hashes, HASHED_WORD) >= 0:
        raise InputError("two words have the same hash: they cannot be in one KenLM binary")
    for k, order in enumerate(orders):
        logs = order.logs | np.where(order.extends_left, np.uint32(0), SIGN)
        values = np.stack((logs, order.weights), axis=1)
        start, slots, size = layout.shapes[k, [START, SIZE, RECORD]].tolist()
        if k == 0:
            rows = data[start : start + 8 * len(values)].view(np.uint32).reshape(-1, 2)
            rows[order.words[:, 0]] = values
        elif (
            kernels.insert_records(
                order.keys, values[:, : size // 4 - 2].copy(), data[start : start + size * slots], slots, size
            )
            >= 0
        ):
            raise InputError(f"two {k + 1}-grams have the same hash: they cannot be in one KenLM probing binary")


# Trie


def _fill_trie(data: Bytes, layout: FileLayout, hashes: ULongs, orders: Iterator[_Order]) -> None:
    """Write every order when the next one is known, which tells where its n-grams' children begin."""
    data[layout.vocabulary : layout.vocabulary + 8 * len(hashes)] = hashes.view(np.uint8)
    below: tuple[_Order, Longs] | None = None
    for k, order in enumerate(orders):
        rank = np.lexsort(order.words.T)  # by the last word, then the one before it, and so on
        if below is not None:
            _write_order(data, layout, k - 1, *below, _begins(*below, order.ends, k))
        below = order, rank
    assert below is not None
    _write_order(data, layout, len(layout.shapes) - 1, *below, None)


def _begins(order: _Order, rank: Longs, ends: ULongs, k: int) -> ULongs:
    """Return where the children of each n-gram begin, in the file's order; one more number than there are n-grams."""
    keys = order.keys[rank]
    by_key = np.argsort(keys)
    at = np.searchsorted(keys, ends, sorter=by_key)
    places = by_key[np.minimum(at, len(keys) - 1)]
    if (keys[places] != ends).any():
        raise InputError(f"a {k + 1}-gram is in the model, but not its last {k} words")
    counts = np.bincount(places, minlength=len(keys))
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))).astype(np.uint64)


def _write_order(data: Bytes, layout: FileLayout, k: int, order: _Order, rank: Longs, begins: ULongs | None) -> None:
    shape = layout.shapes[k]
    start, record = int(shape[START]), int(shape[RECORD])
    logs, weights = order.logs[rank], order.weights[rank]
    if k == 0:
        assert begins is not None
        size = len(logs)
        rows = data[start : start + 16 * (size + 2)].view(np.uint32).reshape(-1, 4)
        rows[:size, 0], rows[:size, 1] = np.where(logs == 0, logs, logs | SIGN), weights
        rows[: size + 1, 2:] = begins.view(np.uint32).reshape(-1, 2)
        return
    out = data[start : start + (record * (len(logs) + 1) + 7) // 8 + 8]
    fields = [(order.words[rank, 0], 0, WORD_BITS), (logs, int(shape[LOG_AT]), LOG_BITS)]
    if begins is not None:
        fields += [(weights, int(shape[WEIGHT_AT]), WEIGHT_BITS), (begins, int(shape[NEXT_AT]), NEXT_BITS)]
    for values, at, width in fields:
        kernels.pack_field(values.astype(np.uint64), record, at, int(shape[width]), out)


# Listing


def trie_ngrams(model: KenlmLM) -> Log10Ngrams:
    """Return the n-grams of a trie; a probing file has only their hashes."""
    if not model.layout_.header.is_trie:
        raise InputError(f"{model.name}: a KenLM {model.type} file holds only hashes of its n-grams: build a trie")
    return Log10Ngrams(model.vocab, model.sizes_, lambda: _list_trie(model))


def _list_trie(model: KenlmLM) -> Iterator[Spelled]:
    arrays, counts, bound = model.model, model.sizes_, model.layout_.bound
    ours = np.arange(bound) - (np.arange(bound) > arrays.begin)
    ours[arrays.begin : arrays.begin + 1] = len(model.vocab)  # <s> is the number after the last word
    start = int(arrays.shapes[0, START])
    rows = arrays.data[start : start + 16 * (bound + 1)].copy().view(np.uint32).reshape(-1, 4)
    nexts: Longs = np.minimum(rows[:, 2:].copy().view(np.uint64)[:, 0], np.uint64(counts[1])).astype(np.int64)
    spelled = np.arange(bound)[:, None]
    unigrams = np.argsort(ours)
    yield 1, ours[spelled[unigrams]], _floats(rows[unigrams, 0] | SIGN), _plain_weights(rows[unigrams, 1])
    for k in range(1, model.order):
        count, highest = counts[k], k + 1 == model.order
        words, logs = np.empty(count, np.int32), np.empty(count, np.uint32)
        weights = np.zeros(0 if highest else count, np.uint32)
        children = np.diff(nexts)
        if children.min(initial=0) < 0 or nexts[0] != 0 or nexts[-1] != count:
            raise InputError(f"{model.name}: the {k + 1}-grams are not where the {k}-grams point: the file is damaged")
        nexts = np.empty(0 if highest else count + 1, np.int64)
        kernels.list_records(arrays, k, 0, words, logs, weights, nexts)
        if words.max(initial=0) >= bound:
            raise InputError(f"{model.name}: a {k + 1}-gram names a word that does not exist: the file is damaged")
        spelled = np.concatenate((words[:, None], np.repeat(spelled, children, axis=0)), axis=1)
        weights = np.zeros(count, np.uint32) if highest else weights
        yield k + 1, ours[spelled], _floats(logs), _plain_weights(weights)


def _plain_weights(bits: UInts) -> Floats:
    """Return weights without the mark of n-grams that begin no longer one."""
    return _floats(np.where(bits == SIGN, np.uint32(0), bits))


def _floats(bits: UInts) -> Floats:
    return np.ascontiguousarray(bits).view(np.float32)
