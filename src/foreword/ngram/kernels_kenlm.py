"""Kernels that query a KenLM binary in place, in the file as it is mapped.

**Probing.** One hash table with linear probing for each order from two on. The key of an n-gram starts with the id of
its last word and takes in the words before it one by one, so that the keys of all orders come from one chain of
multiplications, and every slot that a step may need can be requested before the first is read.

**Trie.** The n-grams that end in the same words are adjacent, sorted by the word before these: the children of a node
are the n-grams one word longer to the left. Records are packed bits.

Both hold log10 values. A probability whose sign bit is set in a probing file belongs to an n-gram that is not the end
of a longer one; a weight of -0.0 to one that is not the beginning of a longer one. Sums are in float32, in KenLM's
order: the probability of the longest n-gram that is known, then the weights from the shorter to the longer contexts.

A state is int32 (2 * order - 1,): how many words of context count, their ids, the latest first, and the bits of the
weight of each context. Kernels trust the sizes that ``kenlm_format`` checked, and nothing else in the file: ids and
pointers out of range count as absent, and a search in a hash table ends after one round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreword.arrays import Bytes, Floats, Ids, Ints, Longs, ULongs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import float_of, load8, load_unaligned, load_unaligned32, prefetch
from foreword.ngram.kenlm_format import (
    HASHED_WORD,
    HIGH_START,
    HIGHS,
    LOG_AT,
    LOG_BITS,
    LOG_TABLE,
    NEXT_AT,
    NEXT_BITS,
    RECORD,
    SIZE,
    START,
    TRIE,
    WEIGHT_AT,
    WEIGHT_BITS,
    WEIGHT_TABLE,
    WORD_BITS,
)

LANES = 16
"""Documents scored in parallel: while one waits for memory, the others compute."""

ABSENT = -1
FULL = -2
"""Result of a search in a hash table without a free slot, which only a damaged file has."""

NO_EXTENSION = np.uint32(0x80000000)
"""The bits of -0.0: the weight of an n-gram that no longer one begins with."""

SIGN = np.uint32(0x80000000)
FREE = np.uint64(0)
WORD_FACTOR = np.uint64(17894857484156487943)
CHAIN_FACTOR = np.uint64(8978948897894561157)

MURMUR = np.uint64(0xC6A4A7935BD1E995)
MURMUR_SHIFT = np.uint64(47)


class KenlmArrays(NamedTuple):
    """A mapped file, as kernels take it.

    begin: id of ``<s>``, which our ids leave out; if there is none, ``bound``.
    """

    data: Bytes
    kind: int
    order: int
    vocabulary: int
    hashes: int
    bound: int
    begin: int
    shapes: Longs


# Words


@inlined
def murmur(data: Bytes, start: int, stop: int) -> np.uint64:
    """Return MurmurHash64A (Appleby, 2008; public domain) of ``data[start:stop]`` with seed 0."""
    mixed = np.uint64(stop - start) * MURMUR
    whole = start + (stop - start) // 8 * 8
    for at in range(start, whole, 8):
        word = load_unaligned(data, at) * MURMUR
        word ^= word >> MURMUR_SHIFT
        mixed = (mixed ^ (word * MURMUR)) * MURMUR
    if whole < stop:
        mixed = (mixed ^ load8(data, whole, stop)) * MURMUR
    mixed = (mixed ^ (mixed >> MURMUR_SHIFT)) * MURMUR
    return mixed ^ (mixed >> MURMUR_SHIFT)


@inlined
def home_slot(key: np.uint64, slots: int) -> int:
    """Return the slot at which the search for a key begins."""
    return np.int64(key % np.uint64(slots))


@inlined
def find_slot(data: Bytes, start: int, slots: int, size: int, home: int, key: np.uint64) -> int:
    """Return the offset of a key's slot, of ``size`` bytes, in the table at ``start``; ABSENT or FULL if there is none.

    A key of zero marks a free slot.
    """
    slot = home
    for _ in range(slots):
        held = load_unaligned(data, start + slot * size)
        if held == key:
            return start + slot * size
        if held == FREE:
            return ABSENT
        slot += 1
        if slot == slots:
            slot = 0
    return FULL


@inlined
def find_sorted(data: Bytes, start: int, count: int, key: np.uint64) -> int:
    """Return the index of a hash among ``count`` sorted ones, or ABSENT.

    Hashes are evenly distributed, so the search begins near where the key should be and doubles its steps from there.
    """
    guess = np.int64(np.float64(key) / 2.0**64 * count)
    guess = min(guess, np.int64(count - 1))
    low, high, step = 0, count, 1
    if count and load_unaligned(data, start + 8 * guess) < key:
        low = guess + 1
        while low + step < count and load_unaligned(data, start + 8 * (low + step)) < key:
            low += step + 1
            step *= 2
        high = min(count, low + step + 1)
    elif count:
        high = guess + 1
        while high - step > 0 and load_unaligned(data, start + 8 * (high - step)) > key:
            high -= step
            step *= 2
        low = max(0, high - step)
    while low < high:
        middle = (low + high) >> 1
        held = load_unaligned(data, start + 8 * middle)
        if held == key:
            return middle
        if held < key:
            low = middle + 1
        else:
            high = middle
    return ABSENT


@inlined
def find_word(model: KenlmArrays, key: np.uint64) -> int:
    """Return the id of a word by its hash; 0, that of ``<unk>``, if it is not known; FULL for a damaged file."""
    if model.kind >= TRIE:
        return find_sorted(model.data, model.vocabulary, model.hashes, key) + 1
    home = home_slot(key, model.hashes)
    at = find_slot(model.data, model.vocabulary, model.hashes, HASHED_WORD, home, key)
    if at < 0:
        return at if at == FULL else 0
    id = np.int64(load_unaligned32(model.data, at + 8))
    return id if id < model.bound else 0


@inlined
def is_blank(byte: int) -> bool:
    """Return whether a byte is one of ASCII's white space."""
    return byte == 32 or 9 <= byte <= 13


@kernel
def find_words(model: KenlmArrays, words: Bytes, offsets: Longs, ids: Ints) -> int:
    """Write the file's id of each word; return FULL for a damaged file, else 0."""
    for index in range(len(ids)):
        id = find_word(model, murmur(words, offsets[index], offsets[index + 1]))
        if id == FULL:
            return FULL
        ids[index] = id
    return 0


@kernel
def encode_words(
    model: KenlmArrays, data: Bytes, starts: Longs, stops: Longs, open: bool, end: int, out: Ints, ends: Longs
) -> int:
    """Encode the words between white space as our ids; return how many were written, or FULL for a damaged file.

    Words of a text that look like ``<s>`` or ``</s>`` are unknown. open: the last document continues in another block.
    """
    written = 0
    for document in range(len(starts)):
        at, stop = starts[document], stops[document]
        while True:
            while at < stop and is_blank(data[at]):
                at += 1
            if at >= stop:
                break
            begin = at
            while at < stop and not is_blank(data[at]):
                at += 1
            id = find_word(model, murmur(data, begin, at))
            if id == FULL:
                return FULL
            if id == model.begin:
                id = 0
            elif id > model.begin:
                id -= 1
            out[written] = 0 if id == end else id
            written += 1
        if not (open and document + 1 == len(starts)):
            out[written] = end
            written += 1
            ends[document] = written
    return written


# N-grams


@inlined
def read_bits(data: Bytes, start: int, bit: int, width: int) -> np.uint64:
    """Return ``width`` (0 to 57) bits that begin ``bit`` bits after byte ``start``."""
    word = load_unaligned(data, start + (bit >> 3)) >> np.uint64(bit & 7)
    return word & ((np.uint64(1) << np.uint64(width)) - np.uint64(1))


@inlined
def chained(key: np.uint64, word: int) -> np.uint64:
    """Return the key of an n-gram one word longer to the left."""
    return (key * CHAIN_FACTOR) ^ (np.uint64(word + 1) * WORD_FACTOR)


@inlined
def pointer(model: KenlmArrays, k: int, index: int) -> int:
    """Return where the children of record ``index`` of order ``k`` + 1 begin in the next order."""
    shape = model.shapes[k]
    if k == 0:
        found = load_unaligned(model.data, shape[START] + 16 * index + 8)
    else:
        found = read_bits(model.data, shape[START], index * shape[RECORD] + shape[NEXT_AT], shape[NEXT_BITS])
        if shape[HIGHS]:
            low, high = 0, shape[HIGHS]  # the last high part that begins at or before this record
            while high - low > 1:
                middle = (low + high) >> 1
                if load_unaligned(model.data, shape[HIGH_START] + 8 * middle) <= np.uint64(index):
                    low = middle
                else:
                    high = middle
            found |= np.uint64(low) << np.uint64(shape[NEXT_BITS])
    limit = model.shapes[k + 1][SIZE] - 1
    return limit if found > np.uint64(limit) else np.int64(found)


@inlined
def find_child(model: KenlmArrays, k: int, first: int, last: int, word: int) -> int:
    """Return the record of order ``k`` + 1, from ``first`` up to ``last``, whose first word is ``word``, or ABSENT.

    Ids are in the order of hashes, so they are evenly distributed, and the first guesses are proportional.
    """
    shape = model.shapes[k]
    low, high, guesses = first, last, 4
    least, most = 0, model.bound
    while low < high:
        if guesses and least <= word < most:
            middle = low + np.int64((high - low) * ((word - least) / (most - least)))
            middle = min(max(middle, low), high - 1)
            guesses -= 1
        else:
            middle = (low + high) >> 1
        held = np.int64(read_bits(model.data, shape[START], middle * shape[RECORD], shape[WORD_BITS]))
        if held == word:
            return middle
        if held < word:
            low, least = middle + 1, held + 1
        else:
            high, most = middle, held
    return ABSENT


@inlined
def trie_log(model: KenlmArrays, k: int, index: int) -> np.uint32:
    """Return the bits of the log-probability of a record of a trie, two words or more."""
    shape = model.shapes[k]
    bits = read_bits(model.data, shape[START], index * shape[RECORD] + shape[LOG_AT], shape[LOG_BITS])
    if shape[LOG_TABLE]:
        return load_unaligned32(model.data, shape[LOG_TABLE] + 4 * np.int64(bits))
    return np.uint32(np.uint32(bits) | SIGN)


@inlined
def trie_weight(model: KenlmArrays, k: int, index: int) -> np.uint32:
    """Return the bits of the back-off weight of a record of a trie, two words or more."""
    shape = model.shapes[k]
    bits = read_bits(model.data, shape[START], index * shape[RECORD] + shape[WEIGHT_AT], shape[WEIGHT_BITS])
    if shape[WEIGHT_TABLE]:
        return load_unaligned32(model.data, shape[WEIGHT_TABLE] + 4 * np.int64(bits))
    return np.uint32(bits)


@inlined
def step(model: KenlmArrays, old: Ints, at: int, word: int, new: Ints, to: int) -> tuple[np.float32, int]:
    """Read one word; return its log10 and the length of the n-gram that matched, or FULL.

    old, new: states, at ``old[at:]`` and ``new[to:]``; they may not overlap.
    """
    data, order = model.data, model.order
    record = model.shapes[0][START] + word * (16 if model.kind >= TRIE else model.shapes[0][RECORD])
    log = load_unaligned32(data, record)
    weight = load_unaligned32(data, record + 4)
    new[to] = weight != NO_EXTENSION
    new[to + 1] = word
    new[to + order] = np.int32(weight)
    trie = model.kind >= TRIE
    first = last = 0
    key = np.uint64(word)
    if trie:
        first, last = pointer(model, 0, word), pointer(model, 0, word + 1)
        more = first < last
    else:
        more = log & SIGN == np.uint32(0)
    length, matched = old[at], 1
    while matched <= length and more:
        before = np.int64(np.uint32(old[at + matched]))
        shape = model.shapes[matched]
        highest = matched + 1 == order
        if trie:
            index = find_child(model, matched, first, last, before)
            if index < 0:
                break
            log = trie_log(model, matched, index)
            if not highest:
                weight = trie_weight(model, matched, index)
                first, last = pointer(model, matched, index), pointer(model, matched, index + 1)
                more = first < last
        else:
            key = chained(key, before)
            slot = find_slot(data, shape[START], shape[SIZE], shape[RECORD], home_slot(key, shape[SIZE]), key)
            if slot < 0:
                if slot == FULL:
                    return np.float32(0.0), FULL
                break
            log = load_unaligned32(data, slot + 8)
            if not highest:
                weight = load_unaligned32(data, slot + 12)
            more = log & SIGN == np.uint32(0)
        matched += 1
        if highest:
            break
        new[to + matched] = np.int32(before)
        new[to + order - 1 + matched] = np.int32(weight)
        if weight != NO_EXTENSION:
            new[to] = matched
    total = float_of(log if trie else np.uint32(log | SIGN))
    for context in range(matched - 1, length):
        total += float_of(np.uint32(old[at + order + context]))
    return total, matched


@inlined
def file_id(model: KenlmArrays, id: int) -> int:
    """Return the file's id of one of ours, which leave out ``<s>``."""
    return id + (id >= model.begin)


@inlined
def ask_ahead(model: KenlmArrays, state: Ints, at: int, word: int) -> None:
    """Request the slots that the next step may read."""
    shape = model.shapes[0]
    prefetch(model.data, shape[START] + word * (16 if model.kind >= TRIE else shape[RECORD]))
    if model.kind < TRIE:
        key = np.uint64(word)
        for matched in range(1, state[at] + 1):
            key = chained(key, np.int64(np.uint32(state[at + matched])))
            shape = model.shapes[matched]
            prefetch(model.data, shape[START] + home_slot(key, shape[SIZE]) * shape[RECORD])


@kernel
def score(
    model: KenlmArrays, start: Ints, ids: Ids, offsets: Longs, first: int, last: int,
    states: Ints, at: Longs, logs: Floats, matched: Bytes,
) -> int:  # fmt: skip
    """Compute log10 of every id of documents ``first`` to ``last``, LANES documents in parallel; FULL or 0.

    start: the state after ``<s>``. states: int32 (LANES * 2 * (2 * order - 1),), at: int64 (LANES * 2,), scratch.
    matched: uint8, out, the length of the n-gram that matched, if it is not empty.
    """
    size = len(start)
    coming = first
    for lane in range(LANES):
        at[2 * lane] = at[2 * lane + 1] = 0
    while True:
        busy = False
        for lane in range(LANES):
            here = lane * 2 * size + size * (at[2 * lane] & 1)
            if at[2 * lane] == at[2 * lane + 1]:
                while coming < last and offsets[coming] == offsets[coming + 1]:
                    coming += 1
                if coming == last:
                    continue
                at[2 * lane] = offsets[coming]
                at[2 * lane + 1] = offsets[coming + 1]
                coming += 1
                here = lane * 2 * size + size * (at[2 * lane] & 1)
                for index in range(size):
                    states[here + index] = start[index]
            busy = True
            ask_ahead(model, states, here, file_id(model, np.int64(ids[at[2 * lane]])))
        if not busy:
            return 0
        for lane in range(LANES):
            index = at[2 * lane]
            if index < at[2 * lane + 1]:
                here = lane * 2 * size + size * (index & 1)
                there = lane * 2 * size + size * (~index & 1)
                log, length = step(model, states, here, file_id(model, np.int64(ids[index])), states, there)
                if length == FULL:
                    return FULL
                logs[index] = log
                if len(matched):
                    matched[index] = length
                at[2 * lane] = index + 1


@inlined
def cut_words(model: KenlmArrays, data: Bytes, keys: ULongs) -> int:
    """Write the hash of each word of a text, and request its slot in the vocabulary; return how many there are.

    A word ends at a NUL, as in KenLM's Python module.
    """
    written = at = 0
    while True:
        while at < len(data) and is_blank(data[at]):
            at += 1
        if at >= len(data):
            return written
        begin = at
        stop = -1
        while at < len(data) and not is_blank(data[at]):
            if data[at] == 0 and stop < 0:
                stop = at
            at += 1
        key = murmur(data, begin, at if stop < 0 else stop)
        keys[written] = key
        written += 1
        if model.kind < TRIE:
            prefetch(model.data, model.vocabulary + home_slot(key, model.hashes) * HASHED_WORD)


@inlined
def ask_for_ngrams(model: KenlmArrays, ids: Ints, index: int) -> None:
    """Request the slots of the n-grams that end in word ``index``, up to trigrams: longer ones are rarely known."""
    word = np.int64(ids[index])
    prefetch(model.data, model.shapes[0][START] + word * model.shapes[0][RECORD])
    key = np.uint64(word)
    for back in range(1, min(index, 2, model.order - 1) + 1):
        key = chained(key, np.int64(ids[index - back]))
        shape = model.shapes[back]
        prefetch(model.data, shape[START] + home_slot(key, shape[SIZE]) * shape[RECORD])


@kernel
def score_sentence(
    model: KenlmArrays, data: Bytes, end: int, states: Ints, keys: ULongs, logs: Floats, lengths: Bytes, ids: Ints
) -> int:
    """Score the words of one sentence, and ``end`` after them unless it is -1; return how many there are, or FULL.

    states: int32 (2 * (2 * order - 1),); its first half is the state before the sentence. ids: of the file. The last
    number of ``logs``, out, is the sum. keys: uint64, scratch.
    """
    size = len(states) // 2
    written = cut_words(model, data, keys)
    for index in range(written):
        word = find_word(model, keys[index])
        if word == FULL:
            return FULL
        ids[index] = word
        if model.kind < TRIE:
            ask_for_ngrams(model, ids, index)
    if end >= 0:
        ids[written] = end
        written += 1
    total = np.float32(0.0)
    for index in range(written):
        here = size * (index & 1)
        log, length = step(model, states, here, np.int64(ids[index]), states, size - here)
        if length == FULL:
            return FULL
        logs[index], lengths[index] = log, length
        total += log
    logs[len(logs) - 1] = total
    return written


@kernel
def sum_documents(logs: Floats, offsets: Longs, totals: Floats) -> None:
    """Add the log10 of each document in float32, word by word, as KenLM's Python module does."""
    for document in range(len(totals)):
        total = np.float32(0.0)
        for index in range(offsets[document], offsets[document + 1]):
            total += logs[index]
        totals[document] = total


@kernel
def advance(model: KenlmArrays, states: Ints, words: Longs, new: Ints, logs: Floats, matched: Longs) -> int:
    """Read one word, an id of the file, in each row of ``states``, (rows * size,); FULL or 0."""
    size = 2 * model.order - 1
    for row in range(len(words)):
        logs[row], matched[row] = step(model, states, row * size, words[row], new, row * size)
        if matched[row] == FULL:
            return FULL
    return 0


@kernel
def score_all(model: KenlmArrays, state: Ints, scratch: Ints, logs: Floats) -> int:
    """Compute log10 of every word but ``<s>`` after one state; FULL or 0. scratch: int32 (2 * order - 1,)."""
    for id in range(len(logs)):
        logs[id], length = step(model, state, 0, file_id(model, id), scratch, 0)
        if length == FULL:
            return FULL
    return 0


@kernel
def weight_of(model: KenlmArrays, word: int) -> np.float32:
    """Return the log10 back-off weight of one word."""
    size = 16 if model.kind >= TRIE else model.shapes[0][RECORD]
    return float_of(load_unaligned32(model.data, model.shapes[0][START] + word * size + 4))
