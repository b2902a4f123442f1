"""Kernels that write KenLM binaries, and list the records of a trie (``kenlm_writing.py``)."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ints, Longs, UInts, ULongs
from foreword.native.jit import kernel
from foreword.native.memory import load_unaligned
from foreword.ngram.kenlm_format import RECORD, START, WORD_BITS
from foreword.ngram.kernels_kenlm import (
    FREE,
    KenlmArrays,
    chained,
    home_slot,
    murmur,
    pointer,
    read_bits,
    trie_log,
    trie_weight,
)


@kernel
def hash_words(words: Bytes, offsets: Longs, hashes: ULongs) -> None:
    """Compute the hash of each word."""
    for index in range(len(hashes)):
        hashes[index] = murmur(words, offsets[index], offsets[index + 1])


@kernel
def ngram_keys(words: Longs, first: int, last: int, keys: ULongs) -> None:
    """Compute the key of each row's columns ``first`` to ``last``; words: int64 (n, order), ids of the file."""
    for row in range(len(keys)):
        key = np.uint64(words[row, last - 1])
        for column in range(last - 2, first - 1, -1):
            key = chained(key, words[row, column])
        keys[row] = key


@kernel
def insert_records(keys: ULongs, values: UInts, out: Bytes, slots: int, size: int) -> int:
    """Insert keys, each followed by its row of ``values``, (n, numbers), into an empty hash table; return the row of a
    key that is there already or zero, or -1.
    """
    for row in range(len(keys)):
        key = keys[row]
        slot = home_slot(key, slots)
        while load_unaligned(out, slot * size) != FREE:
            if load_unaligned(out, slot * size) == key:
                return row
            slot += 1
            if slot == slots:
                slot = 0
        if key == FREE:
            return row
        for byte in range(8):
            out[slot * size + byte] = np.uint8(key >> np.uint64(8 * byte))
        for column in range(values.shape[1]):
            for byte in range(4):
                out[slot * size + 8 + 4 * column + byte] = np.uint8(values[row, column] >> np.uint32(8 * byte))
    return -1


@kernel
def pack_field(values: ULongs, record: int, at: int, width: int, out: Bytes) -> None:
    """Write the lower ``width`` (0 to 57) bits of each number ``at`` bits into its record of ``record`` bits.

    out: uint8, zero where the bits go.
    """
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for index in range(len(values)):
        bit = index * record + at
        value = (values[index] & mask) << np.uint64(bit & 7)
        byte = bit >> 3
        while value != FREE:
            out[byte] |= np.uint8(value & np.uint64(0xFF))
            value >>= np.uint64(8)
            byte += 1


@kernel
def list_records(
    model: KenlmArrays, k: int, first: int, words: Ints, logs: UInts, weights: UInts, nexts: Longs
) -> None:
    """Write words, bits of the logs and of the weights, and pointers of records ``first`` and following of a trie.

    k: one or more, for two words or more. weights and nexts may be empty; nexts: one more than there are records.
    """
    shape = model.shapes[k]
    for row in range(len(words)):
        index = first + row
        words[row] = np.int32(read_bits(model.data, shape[START], index * shape[RECORD], shape[WORD_BITS]))
        logs[row] = trie_log(model, k, index)
        if len(weights):
            weights[row] = trie_weight(model, k, index)
    for row in range(len(nexts)):
        nexts[row] = pointer(model, k, first + row)
