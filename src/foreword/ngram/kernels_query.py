"""Reading an n-gram model word by word, in either of its two layouts.

A context is a number. Contexts of one word are that word's id, ``<s>`` the number after the last word; longer ones
follow: in the hash layout where their row stands in the table, in the trie their place in their order. A state is the
contexts of the last words: column j is that of j + 1 words, -1 where the text never had it.

The longest known n-gram counts; the weights of longer contexts that do not know the word are added. No n-gram is known
unless its shorter ends are, so the search goes up from the bigram and stops at the first miss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Bytes, Doubles, Floats, Longs, ULongs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch
from foreword.ngram.kernels_bits import find_one, next_one, read_bits
from foreword.ngram.kernels_table import find, home_of, mixed_key

HASH, TRIE = 0, 1

COUNT, WORD_START, HIGH_START, HIGH_END, LOW_START, LOW_BITS, SAMPLE_START, LOG_START, BACKOFF_START = range(9)
"""Columns of ``Model.shapes``: for each order from the unigrams on, how many n-grams there are and where the parts
of its arrays begin. Words and logs are the order's own; highs, lows and samples say where the extensions of each of
its n-grams begin in the next order."""

COLUMNS = 9

FIRST_ROW, HOMES = 1, 2
"""Columns of ``Model.shapes`` in the hash layout: where an order's table begins, and how many homes its keys have."""

LANES = 32
"""Documents that are scored side by side, so that each waits for its memory while the others work."""


class Model(NamedTuple):
    """All that a query needs.

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
def extensions(model: Model, length: int, context: int) -> tuple[int, int]:
    """In the trie, where the extensions of a context of ``length`` + 1 words begin and end in the next order."""
    shape = model.shapes[length]
    place = context - model.bases[length]
    first, last = shape[HIGH_START], shape[HIGH_END]
    low = shape[LOW_BITS]
    bit = find_one(model.highs, first, last, model.samples, shape[SAMPLE_START], place)
    after = next_one(model.highs, first, last, bit + 1)
    start = ((bit - place) << low) | read_bits(model.lows, shape[LOW_START], place, low)
    stop = ((after - place - 1) << low) | read_bits(model.lows, shape[LOW_START], place + 1, low)
    count = model.shapes[length + 1][COUNT]
    return min(max(start, 0), count), min(max(stop, 0), count)


@inlined
def search(model: Model, length: int, context: int, word: int) -> int:
    """Binary search for a word among the extensions of a context; its place in the next order, or -1."""
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
def entry(model: Model, length: int, context: int, word: int) -> int:
    """The n-gram of a context of ``length`` + 1 words and a word, or -1."""
    if model.layout == HASH:
        shape = model.shapes[length + 1]
        return find(model.table, shape[FIRST_ROW], shape[HOMES], mixed_key(context, word, model.bits))
    return search(model, length, context, word)


@inlined
def log_of(model: Model, order: int, place: int) -> float:
    """The log-probability of an n-gram of ``order`` + 1 words, ``order`` at least 1."""
    if model.layout == HASH:
        return np.float64(model.values[4 * place + 2])
    at = model.shapes[order][LOG_START] + place
    if len(model.codes):
        return np.float64(model.books[512 * order + model.codes[at]])
    return np.float64(model.logs[at])


@inlined
def weight_of(model: Model, length: int, context: int) -> float:
    """The log back-off weight of a context of ``length`` + 1 words."""
    if length == 0:
        return np.float64(model.unigrams[2 * context + 1])
    place = context - model.bases[length]
    if model.layout == HASH:
        return np.float64(model.values[4 * place + 3])
    at = model.shapes[length][BACKOFF_START] + place
    if len(model.codes):
        return np.float64(model.books[512 * length + 256 + model.codes[at]])
    return np.float64(model.logs[at])


@inlined
def is_context(model: Model, length: int, context: int) -> bool:
    """Whether a state names this context of ``length`` + 1 words.

    Where a context's answer is final (Lidstone), one that nothing is known to follow, which has a weight of one, must
    not be asked; elsewhere that weight does no harm.
    """
    return not model.uniform or weight_of(model, length, context) != 0.0


@inlined
def step(model: Model, state: Longs, at: int, orders: int, word: int) -> tuple[float, int]:
    """Read a word in the state at ``state[at:at + orders]``: its log-probability, and the order that matched."""
    matched = 1
    log = np.float64(model.unigrams[2 * word])
    weight = np.float64(0.0)
    alive = True
    carried = state[at] if orders else np.int64(-1)
    if orders:
        state[at] = word if is_context(model, 0, word) else -1
    for length in range(orders):
        context = carried
        carried = state[at + length + 1] if length + 1 < orders else np.int64(-1)
        place = np.int64(-1)
        if context >= 0:
            if alive:
                place = entry(model, length, context, word)
                alive = place >= 0 or model.uniform
            if place >= 0:
                matched = length + 2
                log = log_of(model, length + 1, place)
                weight = 0.0
            elif model.uniform:
                matched = 1
                log = model.floor
                weight = weight_of(model, length, context)
            else:
                weight += weight_of(model, length, context)
        if length + 1 < orders:
            state[at + length + 1] = -1
            if place >= 0 and is_context(model, length + 1, model.bases[length + 1] + place):
                state[at + length + 1] = model.bases[length + 1] + place
    return log + weight, matched


@inlined
def ask_ahead(model: Model, state: Longs, at: int, orders: int, word: int) -> None:
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
    model: Model, start: Longs, ids: NDArray[np.integer], offsets: Longs, first: int, last: int,
    states: Longs, at: Longs, logs: Doubles, matched: Bytes,
) -> None:  # fmt: skip
    """Log-probability of every id of documents ``first`` to ``last``, LANES documents side by side.

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
            place = at[2 * lane]
            if place < at[2 * lane + 1]:
                log, order = step(model, states, lane * orders, orders, np.int64(ids[place]))
                logs[place] = log
                if len(matched):
                    matched[place] = order
                at[2 * lane] = place + 1


@kernel
def advance(model: Model, states: Longs, ids: Longs, orders: int) -> None:
    """Read one word in each row of ``states``, (rows * orders,), in place."""
    for row in range(len(ids)):
        step(model, states, row * orders, orders, ids[row])


@kernel
def known_extensions(model: Model, length: int, context: int, found: Longs) -> None:
    """In the trie, the range of a context's extensions: found[0:2], out."""
    found[0], found[1] = extensions(model, length, context)


@kernel
def unpack_words(model: Model, order: int, first: int, last: int, out: Longs) -> None:
    for place in range(first, last):
        out[place - first] = read_bits(model.words, model.shapes[order][WORD_START], place, model.bits)


@kernel
def unpack_logs(model: Model, order: int, first: int, last: int, out: Doubles) -> None:
    for place in range(first, last):
        out[place - first] = log_of(model, order, place)


@kernel
def unpack_weights(model: Model, length: int, first: int, last: int, out: Doubles) -> None:
    for place in range(first, last):
        out[place - first] = weight_of(model, length, model.bases[length] + place)


@kernel
def count_extensions(model: Model, length: int, out: Longs) -> None:
    """In the trie, how many extensions each n-gram of ``length`` + 1 words has."""
    for place in range(len(out)):
        first, last = extensions(model, length, model.bases[length] + place)
        out[place] = max(0, last - first)
