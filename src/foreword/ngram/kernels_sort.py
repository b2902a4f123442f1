"""Sorting every position of a text by the words that begin there.

The text is one array of numbers: a word is its id + 1, and ``stop``, the largest, stands before each document, where it
means ``<s>``, and behind the last one. What a position is sorted by are its own word and the ``order`` - 1 after it;
from a ``stop`` on they count as zero, so an n-gram at the end of a document comes before all its extensions.

Positions are taken in batches that fit the cache. The first word of each is told by a counting sort, which makes the
batches, and the others are packed into two 64-bit numbers, the upper and the lower, together with the position's place
in its batch: one scattered look at the text for each position, whatever the order. Records of two such numbers are then
sorted by the upper by radix, from the lowest digit up, and those whose upper numbers are alike, half of them, by the
lower. Refining the sort word by word instead took a look at the text, one at the number of the shorter n-gram and a
write for each position at each order, and five times as long.

N-grams of all orders fall out of the sorted positions in one pass: a k-gram is new where one of its k words differs
from the position before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Bytes, Ints, Longs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch

WORD, PARENT, COUNT = range(3)
"""Columns of a table of n-grams: the last word, the number of the n-gram without it, and how often it was seen."""

KEY_BITS = 62
"""What a packed number holds at most; no sign bit is touched."""

DIGIT = 11
"""Bits a digit at most: 2,048 lists that grow at once stay in the cache."""

TALLY = 6 << DIGIT
"""Counters that sorting by one packed number needs."""

_FEW, _SHORT_DIGIT = 1 << 10, 6
"""So few records have shorter digits, for which fewer lists have to be begun."""

_SMALL = 24
"""Up to how many records are sorted by insertion."""

_AHEAD = 24
"""Positions in sorted order are scattered over the text; memory is asked for this many before they are needed."""


@kernel
def write_text(ids: NDArray[np.integer], offsets: Longs, stop: int, text: Ints, counts: Longs) -> None:
    """Write the documents as the text described above, and count words: counts, int64 (words,), zero at first."""
    write = 0
    for document in range(len(offsets) - 1):
        text[write] = stop
        write += 1
        for place in range(offsets[document], offsets[document + 1]):
            word = np.int64(ids[place])
            counts[word] += 1
            text[write] = word + 1
            write += 1
    while write < len(text):
        text[write] = stop
        write += 1


@kernel
def sort_by_word(text: Ints, begins: Longs, positions: Ints) -> None:
    """Counting sort of all positions of the text, which ends where ``positions`` does.

    begins: int64 (stop + 2,), zero at first; out: positions of word w are ``positions[begins[w]:begins[w + 1]]``.
    """
    length = len(positions)
    for place in range(length):
        begins[text[place] + 1] += 1
    for word in range(1, len(begins)):
        begins[word] += begins[word - 1]
    for place in range(length):
        word = text[place]
        positions[begins[word]] = place
        begins[word] += 1
    for word in range(len(begins) - 1, 0, -1):
        begins[word] = begins[word - 1]
    begins[0] = 0


@kernel
def count_next(text: Ints, length: int, stop: int, prefix: Ints, counts: Longs) -> None:
    """How many positions begin with ``prefix`` and have each word after it; ``counts[0]``: none.

    counts: int64 (stop + 1,), zero at first.
    """
    known = len(prefix)
    for place in range(length):
        same = 0
        while same < known and text[place + same] == prefix[same]:
            same += 1
        if same == known:
            word = text[place + known]
            counts[0 if known > 0 and word == stop else word] += 1


@kernel
def collect(
    text: Ints, length: int, stop: int, prefix: Ints, first: int, last: int, start: int, positions: Ints, found: Longs
) -> int:  # fmt: skip
    """List positions from ``start`` on that ``count_next`` counts under the words from ``first`` up to ``last``.

    Stops when ``positions`` is full; how many were found is found[0], and where to go on is returned.
    """
    known = len(prefix)
    size = 0
    for place in range(start, length):
        same = 0
        while same < known and text[place + same] == prefix[same]:
            same += 1
        if same < known:
            continue
        word = np.int64(text[place + known])
        if known > 0 and word == stop:
            word = np.int64(0)
        if first <= word < last:
            if size == len(positions):
                found[0] = size
                return place
            positions[size] = place
            size += 1
    found[0] = size
    return length


@kernel
def pack_keys(
    text: Ints, stop: int, positions: Ints, first_word: int, with_first: bool, skip: int,
    upper_words: int, lower_words: int, bits: int, place_bits: int, records: Longs, before: Ints,
) -> None:  # fmt: skip
    """Pack the words after each position, from the one after ``skip`` others on, into ``records``, int64 (2 n,).

    The upper number has ``upper_words`` words, behind the first word's distance from ``first_word`` if that is asked
    for; the lower one the ``lower_words`` that follow, and the position's place in ``positions``. before: int32 (n,),
    out, the word before each position, 0 where a document begins.
    """
    for place in range(len(positions)):
        prefetch(text, np.int64(positions[min(place + _AHEAD, len(positions) - 1)]))
        at = np.int64(positions[place])
        upper = np.int64(text[at]) - first_word if with_first else np.int64(0)
        lower = np.int64(0)
        going_on = np.int64(1)
        for offset in range(1, skip + 1):
            going_on *= np.int64(text[at + offset] != stop)
        for offset in range(skip + 1, skip + upper_words + 1):
            word = np.int64(text[at + offset])
            going_on *= np.int64(word != stop)
            upper = upper << bits | word * going_on
        for offset in range(skip + upper_words + 1, skip + upper_words + lower_words + 1):
            word = np.int64(text[at + offset])
            going_on *= np.int64(word != stop)
            lower = lower << bits | word * going_on
        records[2 * place] = upper
        records[2 * place + 1] = lower << place_bits | place
        before[place] = text[at - 1] if text[at] != stop else 0


@kernel
def sort_records(records: Longs, spare: Longs, size: int, column: int, shift: int, bits: int, tally: Ints) -> int:
    """Sort records by one of their two numbers, from bit ``shift`` on; equal ones keep their order.

    bits: how many there are from there on, at most; tally: int32 (TALLY,). Returns 1 if the result is in ``spare``.
    """
    longest = DIGIT if size >= _FEW else _SHORT_DIGIT
    passes = (bits + longest - 1) // longest
    if passes == 0:
        return 0
    width = (bits + passes - 1) // passes
    digits = np.int64(1) << width
    tally[: passes * digits] = 0
    for place in range(size):
        key = records[2 * place + column] >> shift
        for turn in range(passes):
            tally[turn * digits + (key & (digits - 1))] += 1
            key >>= width
    moved = 0
    for turn in range(passes):
        base = turn * digits
        begin, alike = 0, False
        for digit in range(base, base + digits):
            count = tally[digit]
            alike = alike or count == size
            tally[digit] = begin
            begin += count
        if alike:
            continue
        if moved == 0:
            _spread(records, spare, size, column, shift + turn * width, digits - 1, tally[base : base + digits])
        else:
            _spread(spare, records, size, column, shift + turn * width, digits - 1, tally[base : base + digits])
        moved = 1 - moved
    return moved


@kernel
def _spread(source: Longs, target: Longs, size: int, column: int, shift: int, mask: int, begins: Ints) -> None:
    for place in range(size):
        digit = (source[2 * place + column] >> shift) & mask
        to = 2 * np.int64(begins[digit])
        begins[digit] += 1
        target[to] = source[2 * place]
        target[to + 1] = source[2 * place + 1]


@kernel
def sort_alike(records: Longs, spare: Longs, size: int, shift: int, bits: int, tally: Ints) -> None:
    """Sort records that are sorted by their upper numbers by their lower ones too, which differ in their last bits.

    Most upper numbers stand there once, so this is quicker than sorting all records by their lower numbers first.
    """
    first = 0
    while first < size:
        last = first + 1
        while last < size and records[2 * last] == records[2 * first]:
            last += 1
        if last - first <= _SMALL:
            _insert(records, first, last)
        elif sort_records(
            records[2 * first : 2 * last], spare[2 * first : 2 * last], last - first, 1, shift, bits, tally
        ):
            for place in range(2 * first, 2 * last):
                records[place] = spare[place]
        first = last


@inlined
def _insert(records: Longs, first: int, last: int) -> None:
    """Sort by the lower numbers."""
    for place in range(first + 1, last):
        upper, lower = records[2 * place], records[2 * place + 1]
        at = place
        while at > first and records[2 * at - 1] > lower:
            records[2 * at] = records[2 * at - 2]
            records[2 * at + 1] = records[2 * at - 1]
            at -= 1
        records[2 * at], records[2 * at + 1] = upper, lower


@kernel
def take_in_order(values: Ints, records: Longs, mask: int, out: Ints) -> None:
    """The positions, or something of each, in the order of the records; ``mask`` is that of a place."""
    for place in range(len(out)):
        out[place] = values[records[2 * place + 1] & mask]


@kernel
def list_ngrams(
    text: Ints, stop: int, positions: Ints, records: Longs, first_word: int,
    upper_words: int, lower_words: int, bits: int, place_bits: int,
    latest: Ints, sizes: Longs, bases: Longs, grams: Ints, marks: Bytes,
) -> None:  # fmt: skip
    """Go through sorted positions and write down every n-gram that differs from the one before.

    positions, records: in the same order. What the records do not hold of an n-gram is read from the text.
    latest: int32 (order + 1,), the words of the n-gram before, from 1 on; sizes: int64 (order + 1,), how many n-grams
    of each order are in ``grams``, int32 (order - 1, room, 4), n-gram number i of an order in row i - bases[order]. All
    three are kept from batch to batch. The fourth column is left alone.
    marks: uint8 (positions,), the lowest order that is new there, and the highest that there is times 16.
    """
    order = len(latest) - 1
    mask = (np.int64(1) << bits) - 1
    for place in range(len(positions)):
        upper, lower = records[2 * place], records[2 * place + 1] >> place_bits
        at = np.int64(positions[place])
        word = (upper >> (upper_words * bits)) + first_word
        is_new = np.int64(word != latest[1])
        latest[1] = word
        parent = word - 1
        new_orders = np.int64(0)
        highest = np.int64(1)
        for k in range(2, order + 1):
            if k - 1 <= upper_words:
                word = upper >> ((upper_words - k + 1) * bits) & mask
            elif k - 1 <= upper_words + lower_words:
                word = lower >> ((upper_words + lower_words - k + 1) * bits) & mask
            else:
                word = np.int64(text[at + k - 1])
                word *= np.int64(word != stop)
            if word == 0:
                break
            is_new |= np.int64(word != latest[k])
            latest[k] = word
            new_orders += is_new
            sizes[k] += is_new
            row = sizes[k] - 1
            grams[k - 2, row, WORD] = word - 1
            grams[k - 2, row, PARENT] = parent
            grams[k - 2, row, COUNT] = grams[k - 2, row, COUNT] * (1 - is_new) + 1
            parent = bases[k] + row
            highest = k
        for k in range(highest + 1, order + 1):
            latest[k] = 0
        marks[place] = (highest + 1 - new_orders) | highest << 4
