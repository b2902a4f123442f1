"""Kernels that parse ARPA entries into rows of a model's hash table, and write them.

Reading waits for memory three times: for a word's string, for the n-gram without its last word, and for the one without
its first. So lines are processed in batches: one pass cuts them and prefetches their words, the next finds the words
and prefetches the shortest contexts, and each longer context is prefetched when the shorter one is found.

A kernel parses only ordinary lines, which is nearly every line of every file. Any other one, broken or merely unusual,
it leaves to Python, so that both readers agree.

Writing gives what Python's ``f"{value:.9g}"`` would, twenty times as fast.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from foreword.arrays import Bytes, Doubles, Floats, Ints, Longs, ULongs
from foreword.native.hashing import FIRST, HALF, SECOND
from foreword.native.jit import inlined, kernel
from foreword.native.memory import load8, prefetch
from foreword.ngram.kernels_query import find, home_of, mixed_key
from foreword.tokens.strings import ID_BITS, make_key, row_of
from foreword.tokens.strings import find as find_string

LINES = 32
"""Lines in a batch."""

MORE, ENOUGH, ODD, FULL = range(4)
"""Why a reader stopped: the bytes are used up, all declared entries are read, a line for Python, no space left."""

AT, LINE, ENTRIES, ROWS, PENDING = range(5)
"""Indices of ``position``: the next byte, its line's number less one, how many entries of the section have been read,
and how many rows and pending n-grams have been written since the caller last emptied those."""

_NEWLINE, _RETURN, _SPACE, _TAB = 10, 13, 32, 9
_PLUS, _MINUS, _POINT, _ZERO, _NINE, _LITTLE_E, _BIG_E = 43, 45, 46, 48, 57, 101, 69
_FREE = np.uint64(0)
_UNDO_FIRST, _UNDO_SECOND = (np.uint64(pow(int(factor), -1, 1 << 64)) for factor in (FIRST, SECOND))
_UPPER_UNKNOWN = np.uint64(int.from_bytes(b"<UNK>", "little"))
_EXACT = 1 << 53
"""Whole numbers up to here are exact in float64, and so are powers of ten up to the 22nd."""

POWERS = np.array([10.0**power for power in range(23)])
_MANY = (1 << 63) // 10 - 1
"""A whole number up to here can take another digit in an int64."""


# Numbers


@inlined
def product_error(a: float, b: float, product: float) -> float:
    """Return the rounding error of a float64 product, exactly (Dekker, 1971)."""
    scale = 134217729.0  # 2^27 + 1
    a_high = a * scale - (a * scale - a)
    b_high = b * scale - (b * scale - b)
    a_low, b_low = a - a_high, b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@inlined
def _quotient(digits: int, power: int) -> float:
    """Return ``digits`` / 10^``power``, correctly rounded, or NaN where that is not certain.

    Up to 2^53 one division rounds once. Beyond, the digits are a float64 and a small rest; so is the quotient, and if
    it rounds the same with its rest a little larger or smaller, then it is right: the rest's own error is far less.
    """
    if digits <= _EXACT:
        return np.float64(digits) / POWERS[power]
    high = np.float64(digits)
    low = np.float64(digits - np.int64(high))
    ten = POWERS[power]
    first = high / ten
    product = first * ten
    rest = ((high - product) - product_error(first, ten, product) + low) / ten
    little = rest * 2.0**-40
    value = first + rest
    return value if first + (rest + little) == value and first + (rest - little) == value else np.nan


@inlined
def _read_number(data: Bytes, at: int, stop: int, numbers: Doubles, index: int) -> int:
    """Read a decimal number into ``numbers[index]``; return where it ends, or -1 if Python has to read it."""
    negative = at < stop and data[at] == _MINUS
    if at < stop and (negative or data[at] == _PLUS):
        at += 1
    digits = np.int64(0)
    fraction = read = 0
    pointed = False
    while at < stop:
        byte = data[at]
        if _ZERO <= byte <= _NINE:
            if digits > _MANY:
                return -1
            digits = digits * 10 + np.int64(byte - _ZERO)
            read += 1
            fraction += pointed
        elif byte == _POINT and not pointed:
            pointed = True
        else:
            break
        at += 1
    if read == 0:
        return -1
    exponent = np.int64(0)
    if at < stop and (data[at] == _LITTLE_E or data[at] == _BIG_E):
        at += 1
        falling = at < stop and data[at] == _MINUS
        if at < stop and (falling or data[at] == _PLUS):
            at += 1
        begin = at
        while at < stop and _ZERO <= data[at] <= _NINE and at - begin < 4:
            exponent = exponent * 10 + np.int64(data[at] - _ZERO)
            at += 1
        if at == begin:
            return -1
        if falling:
            exponent = -exponent
    exponent -= fraction
    value = 0.0
    if digits > 0:
        if -22 <= exponent <= 0:
            value = _quotient(digits, -exponent)
        elif 0 < exponent <= 22 and digits <= _EXACT:
            value = np.float64(digits) * POWERS[exponent]
        else:
            return -1
        if np.isnan(value):
            return -1
    numbers[index] = -value if negative else value
    return at


# Lines


@inlined
def _skip_blanks(data: Bytes, at: int, stop: int) -> int:
    while at < stop and (data[at] == _SPACE or data[at] == _TAB):
        at += 1
    return at


@inlined
def _skip_line_ends(data: Bytes, at: int, stop: int, position: Longs) -> int:
    """Return the next byte that is neither blank nor the end of a line, counting lines."""
    while at < stop and data[at] <= _SPACE:
        if data[at] == _NEWLINE:
            position[LINE] += 1
        elif data[at] != _SPACE and data[at] != _TAB and data[at] != _RETURN:
            break
        at += 1
    return at


@inlined
def _cut(data: Bytes, at: int, stop: int, order: int, spans: Longs, index: int, numbers: Doubles, number: int) -> int:
    """Cut the entry that begins at ``at``: its words' ends go to ``spans[index:]``, its two logs to
    ``numbers[number:]``. Return where its line ends, or -1 if it is for Python.
    """
    at = _read_number(data, at, stop, numbers, number)
    if at < 0 or numbers[number] > 0 or at == stop or (data[at] != _SPACE and data[at] != _TAB):
        return -1
    for word in range(order):
        at = _skip_blanks(data, at, stop)
        spans[index + 2 * word] = at
        while at < stop and (
            data[at] > _SPACE
            or (data[at] != _SPACE and data[at] != _NEWLINE and data[at] != _TAB and data[at] != _RETURN)
        ):
            at += 1
        if at == spans[index + 2 * word]:
            return -1
        spans[index + 2 * word + 1] = at
    at = _skip_blanks(data, at, stop)
    numbers[number + 1] = 0.0
    if at < stop and data[at] != _NEWLINE and data[at] != _RETURN:
        at = _read_number(data, at, stop, numbers, number + 1)
        if at < 0:
            return -1
    while at < stop and (data[at] == _SPACE or data[at] == _TAB or data[at] == _RETURN):
        at += 1
    return -1 if at < stop and data[at] != _NEWLINE else at


@kernel
def read_unigrams(
    data: Bytes, declared: int, words: Bytes, offsets: Longs, values: Floats, lines: Longs,
    spans: Longs, numbers: Doubles, scale: float, position: Longs,
) -> int:  # fmt: skip
    """Copy the words of unigrams to ``words``, their ends to ``offsets``, their logs to ``values``; return why it
    stopped.

    words: as long as data. offsets, lines: (n + 1,), values: (2 * n,), for up to n entries.
    lines[i], out: the line that entry i stands in. spans, numbers: (2,), scratch. scale: what logs are multiplied by.
    """
    offsets[0] = first = np.int64(0)
    while position[ENTRIES] < declared:
        row = position[ROWS]
        if row + 1 == len(offsets):
            return FULL
        position[AT] = _skip_line_ends(data, position[AT], len(data), position)
        if position[AT] == len(data):
            return MORE
        end = _cut(data, position[AT], len(data), np.int64(1), spans, first, numbers, first)
        if end < 0 or (spans[1] - spans[0] == 5 and load8(data, spans[0], spans[1]) == _UPPER_UNKNOWN):
            return ODD
        written = offsets[row]
        for index in range(spans[0], spans[1]):
            words[written] = data[index]
            written += 1
        offsets[row + 1] = written
        lines[row] = position[LINE] + 1
        values[2 * row] = np.float32(numbers[0] * scale)
        values[2 * row + 1] = np.float32(numbers[1] * scale)
        position[AT] = end
        position[ROWS] += 1
        position[ENTRIES] += 1
    return ENOUGH


class WordArrays(NamedTuple):
    """The arrays of a ``StringTable``, and the id of each string, ``words`` for ``<s>``."""

    slots: ULongs
    arena: Bytes
    starts: Longs
    ids: Ints


class HashTables(NamedTuple):
    """The orders read before, each a hash table in ``table``: that of k + 1 words begins at row ``firsts[k]`` and has
    ``homes[k]``. words: how many there are, without ``<s>``; bits: what a word takes in a key.
    """

    table: ULongs
    firsts: Longs
    homes: Longs
    words: int
    bits: int


class EntryBatch(NamedTuple):
    """Buffers for LINES entries.

    spans, keys, found: of each word, where it begins and ends, its key, and its row, then its id.
    numbers: the two logs of each entry. places: its first byte and its line. contexts, mixes: the context number
    without its last word, and without its first, and their mixed keys.
    """

    spans: Longs
    keys: ULongs
    found: Longs
    numbers: Doubles
    places: Longs
    contexts: Longs
    mixes: ULongs


def batch_of(order: int) -> EntryBatch:
    """Allocate a batch for n-grams of that order."""
    words = order * LINES
    spans, keys, found = np.empty(2 * words, np.int64), np.empty(4 * words, np.uint64), np.empty(words, np.int64)
    numbers, mixes = np.empty(2 * LINES), np.empty(2 * LINES, np.uint64)
    places, contexts = np.empty(2 * LINES, np.int64), np.empty(2 * LINES, np.int64)
    return EntryBatch(spans, keys, found, numbers, places, contexts, mixes)


@inlined
def _cut_batch(
    data: Bytes, declared: int, order: int, slots: ULongs, batch: EntryBatch, position: Longs
) -> tuple[int, bool]:
    """Cut up to LINES entries and prefetch their words' rows; return how many, and whether an odd one follows."""
    filled = 0
    while filled < LINES and position[ENTRIES] + filled < declared:
        at = _skip_line_ends(data, position[AT], len(data), position)
        position[AT] = at
        if at == len(data):
            break
        end = _cut(data, at, len(data), order, batch.spans, 2 * order * filled, batch.numbers, 2 * filled)
        if end < 0:
            return filled, True
        for word in range(order * filled, order * filled + order):
            make_key(data, batch.spans[2 * word], batch.spans[2 * word + 1], batch.keys, 4 * word)
            batch.found[word] = row_of(batch.keys, 4 * word, len(slots) // 4)
            prefetch(slots, 4 * batch.found[word])
        batch.places[2 * filled], batch.places[2 * filled + 1] = at, position[LINE]
        position[AT] = end
        filled += 1
    return filled, False


@inlined
def _find_words(data: Bytes, order: int, strings: WordArrays, start: int, batch: EntryBatch, filled: int) -> int:
    """Set ``found`` to the words' ids; return how many entries come before one with an invalid word."""
    for entry in range(filled):
        for word in range(order * entry, order * entry + order):
            begin, end = batch.spans[2 * word], batch.spans[2 * word + 1]
            at = find_string(
                strings.slots, strings.arena, strings.starts, batch.found[word], batch.keys, 4 * word, data, begin, end
            )
            number = np.int64(strings.slots[at + 3] & ID_BITS) - 1
            if number < 0 or (strings.ids[number] == start and word > order * entry):
                return entry
            batch.found[word] = strings.ids[number]
    return filled


@inlined
def _find_contexts(order: int, tables: HashTables, batch: EntryBatch, filled: int) -> None:
    """Set ``contexts`` to the numbers of each entry without its last word and without its first, -1 if unknown."""
    contexts, found = batch.contexts, batch.found
    for side in range(2 * filled):
        contexts[side] = found[order * (side >> 1) + (side & 1)]
    for depth in range(1, order - 1):
        first, homes = tables.firsts[depth], tables.homes[depth]
        for side in range(2 * filled):
            if contexts[side] >= 0:
                word = found[order * (side >> 1) + depth + (side & 1)]
                batch.mixes[side] = mixed_key(contexts[side], word, tables.bits)
                row = first + home_of(batch.mixes[side], homes)
                prefetch(tables.table, 2 * row)
                prefetch(tables.table, 2 * row + 6)  # a search may run into the next line
        for side in range(2 * filled):
            if contexts[side] >= 0:
                row = find(tables.table, first, homes, batch.mixes[side])
                contexts[side] = tables.words + 1 + row if row >= 0 else -1


@kernel
def read_ngrams(
    data: Bytes, declared: int, order: int, highest: bool, strings: WordArrays, tables: HashTables,
    rows: ULongs, values: Floats, pending: Ints, places: Longs, batch: EntryBatch, scale: float, position: Longs,
) -> int:  # fmt: skip
    """Read n-grams, of two words or more, as rows to be inserted into a hash table; return why it stopped.

    rows: uint64 (2 * n,), out; values: the same bytes as float32.
    pending, places: n-grams of which a shorter end is not in the tables, as ids, and their rows, which have no key.
    """
    while position[ENTRIES] < declared:
        if 2 * (position[ROWS] + LINES) > len(rows) or position[PENDING] + LINES > len(places):
            return FULL
        filled, odd = _cut_batch(data, declared, order, strings.slots, batch, position)
        good = _find_words(data, order, strings, tables.words, batch, filled)
        if good < filled:
            filled, odd = good, True
            position[AT], position[LINE] = batch.places[2 * good], batch.places[2 * good + 1]
        _find_contexts(order, tables, batch, filled)
        for entry in range(filled):
            row = position[ROWS]
            if batch.contexts[2 * entry] >= 0 and batch.contexts[2 * entry + 1] >= 0:
                last = batch.found[order * entry + order - 1]
                rows[2 * row] = mixed_key(batch.contexts[2 * entry], last, tables.bits)
            else:
                rows[2 * row] = _FREE
                for word in range(order):
                    pending[position[PENDING] * order + word] = batch.found[order * entry + word]
                places[position[PENDING]] = row
                position[PENDING] += 1
            values[4 * row + 2] = np.float32(batch.numbers[2 * entry] * scale)
            values[4 * row + 3] = np.float32(0.0 if highest else batch.numbers[2 * entry + 1] * scale)
            position[ROWS] += 1
            position[ENTRIES] += 1
        if odd:
            return ODD
        if position[AT] == len(data):
            return MORE if position[ENTRIES] < declared else ENOUGH
    return ENOUGH


# HashTables


@kernel
def insert_rows(table: ULongs, first: int, homes: int, last: int, rows: ULongs) -> int:
    """Insert rows into the table that begins at row ``first``; rows with a free key are left out.

    Returns how many rows were inserted: all of them, or the number of one whose key exists already. -1: the table is
    too small, for row ``last`` must stay free; it is unusable then.
    """
    count = len(rows) // 2
    for number in range(count):
        ahead = min(number + LINES, count - 1)
        prefetch(table, 2 * (first + home_of(rows[2 * ahead], homes)))
        key, value = rows[2 * number], rows[2 * number + 1]
        if key == _FREE:
            continue
        row = first + home_of(key, homes)
        while table[2 * row] != _FREE and table[2 * row] < key:
            row += 1
        if table[2 * row] == key:
            return number
        while table[2 * row] != _FREE:
            held, held_value = table[2 * row], table[2 * row + 1]
            table[2 * row], table[2 * row + 1] = key, value
            key, value = held, held_value
            row += 1
        if row >= last:
            return -1
        table[2 * row], table[2 * row + 1] = key, value
    return count


@kernel
def contexts_of(ngrams: Ints, tables: HashTables, out: Longs) -> None:
    """Write the context number of each n-gram, (n, words), to ``out``, -1 where it is not in the tables."""
    for number in range(len(out)):
        context = np.int64(ngrams[number, 0])
        for depth in range(1, ngrams.shape[1]):
            if context >= 0:
                mixed = mixed_key(context, np.int64(ngrams[number, depth]), tables.bits)
                row = find(tables.table, tables.firsts[depth], tables.homes[depth], mixed)
                context = tables.words + 1 + row if row >= 0 else -1
        out[number] = context


@kernel
def rename_contexts(rows: ULongs, names: Longs, vocab_size: int, bits: int) -> None:
    """Rename the contexts of rows whose tables were rebuilt: row r of the old tables is now ``names[r]``."""
    for number in range(len(rows) // 2):
        key = rows[2 * number]
        if key != _FREE:
            key *= _UNDO_SECOND
            key ^= key >> HALF
            key = key * _UNDO_FIRST - np.uint64(1)
            context = np.int64(key >> np.uint64(bits))
            if context > vocab_size:
                word = np.int64(key & ((np.uint64(1) << np.uint64(bits)) - np.uint64(1)))
                rows[2 * number] = mixed_key(names[context - vocab_size - 1], word, bits)


@kernel
def find_rows(rows: ULongs, table: ULongs, first: int, homes: int, out: Longs) -> None:
    """Write the table's row of each of ``rows`` to ``out``; -1 for a free key."""
    for number in range(len(out)):
        key = rows[2 * number]
        out[number] = find(table, first, homes, key) if key != _FREE else -1


# Writing


@inlined
def _write_digits(number: int, count: int, out: Bytes, at: int) -> int:
    """Return the last ``count`` decimal digits of a number."""
    for index in range(at + count - 1, at - 1, -1):
        out[index] = _ZERO + number % 10
        number //= 10
    return at + count


@inlined
def _write_number(value: float, out: Bytes, at: int) -> int:
    """Write ``f"{value:.9g}"``; return where it ends, or -1 for a value so large or small that Python has to write it.

    A float64 times a power of ten up to the 22nd is exactly a sum of two float64s, so it rounds to nine digits as the
    number itself does, to the even one between two equally near.
    """
    if value < 0 or (value == 0 and math.copysign(1.0, value) < 0):
        out[at] = _MINUS
        at += 1
        value = -value
    if value == 0:
        out[at] = _ZERO
        return at + 1
    if not 1e-13 <= value < 1e8:
        return -1
    exponent = 0
    while exponent < 8 and value >= POWERS[exponent + 1]:
        exponent += 1
    while exponent > -14 and exponent <= 0 and value * POWERS[-exponent] < 1:
        exponent -= 1
    product = value * POWERS[8 - exponent]
    rest = product_error(value, POWERS[8 - exponent], product)
    if product > 1e9 or (product == 1e9 and rest >= 0):
        exponent += 1
    elif product < 1e8 or (product == 1e8 and rest < 0):
        exponent -= 1
    product = value * POWERS[8 - exponent]
    rest = product_error(value, POWERS[8 - exponent], product)
    digits = np.int64(product)
    over = (product - np.float64(digits)) - 0.5
    if over > 0 or (over == 0 and (rest > 0 or (rest == 0 and digits % 2 == 1))):
        digits += 1
    if digits == 1_000_000_000:
        digits = 100_000_000
        exponent += 1
    count = 9
    while digits % 10 == 0:
        digits //= 10
        count -= 1
    if exponent < -4:
        at = _write_digits(digits // np.int64(POWERS[count - 1]), 1, out, at)
        if count > 1:
            out[at] = _POINT
            at = _write_digits(digits, count - 1, out, at + 1)
        out[at], out[at + 1] = _LITTLE_E, _MINUS
        return _write_digits(-exponent, 2, out, at + 2)
    if exponent < 0:
        out[at], out[at + 1] = _ZERO, _POINT
        at = _write_digits(0, -exponent - 1, out, at + 2)
        return _write_digits(digits, count, out, at)
    whole = exponent + 1
    if count <= whole:
        return _write_digits(digits * np.int64(POWERS[whole - count]), whole, out, at)
    at = _write_digits(digits // np.int64(POWERS[count - whole]), whole, out, at)
    out[at] = _POINT
    return _write_digits(digits, count - whole, out, at + 1)


@kernel
def write_entries(
    ngrams: Longs, logs: Floats, weights: Floats, highest: bool, names: Bytes, offsets: Longs,
    never: float, scale: float, out: Bytes, position: Longs,
) -> int:  # fmt: skip
    """Write lines for n-grams from ``position[0]`` on to ``out`` from ``position[1]`` on; return why it stopped.

    never: log10 of zero. scale: what logs are divided by. ODD: the next n-gram has a number that Python has to write.
    FULL: ``out`` is full.
    """
    order = ngrams.shape[1]
    while position[0] < len(logs):
        number, at = position[0], position[1]
        length = 64
        for word in range(order):
            length += offsets[ngrams[number, word] + 1] - offsets[ngrams[number, word]] + 1
        if at + length > len(out):
            return FULL
        log = np.float64(logs[number])
        at = _write_number(never if log == -np.inf else log / scale, out, at)
        if at < 0:
            return ODD
        out[at] = _TAB
        at += 1
        for word in range(order):
            for index in range(offsets[ngrams[number, word]], offsets[ngrams[number, word] + 1]):
                out[at] = names[index]
                at += 1
            out[at] = _SPACE
            at += 1
        at -= 1
        if not highest:
            out[at] = _TAB
            at = _write_number(max(np.float64(weights[number]) / scale, never), out, at + 1)
            if at < 0:
                return ODD
        out[at] = _NEWLINE
        position[0], position[1] = number + 1, at + 1
    return ENOUGH
