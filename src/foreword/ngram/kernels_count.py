"""Kernels that count n-grams: sort the positions of a text and number the n-grams.

The text is one array of numbers: a word is its id + 1, and ``stop``, the largest, precedes each document, where it
means ``<s>``, and follows the last one. A position is sorted by its own word and the ``order`` - 1 after it; from a
``stop`` on they count as zero, so that an n-gram at the end of a document comes before all its extensions.

Positions are processed in batches that fit the cache. A counting sort by the first word makes the batches, and the
others are packed into two 64-bit numbers, the upper and the lower, together with the position's index in its batch: one
random access to the text per position, whatever the order. Records of two such numbers are then sorted by the upper by
radix, from the lowest digit up, and those whose upper numbers are alike, half of them, by the lower. Refining the sort
word by word instead took two random reads and a write for each position at each order, and five times as long.

N-grams of all orders fall out of the sorted positions in one pass: a k-gram is new where one of its k words differs
from the position before.

Smoothing also needs the number of each k-gram's suffix, the (k-1)-gram without the first word, and Kneser-Ney's counts,
how many k-grams have the same suffix; a k-gram's number is its index among all k-grams in sorted order. Looking
suffixes up would take two random accesses to memory for each position. But positions that begin with the same word are
sorted by what follows it. So scan all positions in sorted order, look at the word before each, and pass the numbers
found here to the next position that begins with that word: there the n-gram here is the suffix. (The same step inverts
a Burrows-Wheeler transform: Burrows and Wheeler, 1994.) Each word has one position that is written to, and most words
of a text are frequent ones, so this hardly ever leaves the cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Bytes, Ints, Longs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch

WORD, PARENT, COUNT = range(3)
"""Columns of a table of n-grams: the last word, the number of the n-gram without it, and how often it was seen."""

LOG, WEIGHT = 2, 3
"""Columns of the same table once probabilities are estimated: two natural logs, of the probability and of the back-off
weight, as float32."""

KEY_BITS = 62
"""Bits of a packed number; the sign bit is not used."""

DIGIT = 11
"""Bits of a digit at most: 2,048 lists that grow in parallel stay in the cache."""

TALLY = 6 << DIGIT
"""Counters for sorting by one packed number."""

_FEW, _SHORT_DIGIT = 1 << 10, 6
"""Fewer records than this are sorted by shorter digits, which need fewer lists."""

_SMALL = 24
"""Records up to which insertion sort is used."""

_AHEAD = 24
"""Sorted positions are scattered over the text; they are prefetched this many steps ahead."""


@kernel
def write_text(ids: NDArray[np.integer], offsets: Longs, stop: int, text: Ints, counts: Longs) -> None:
    """Write the documents as the text described above, and count words: counts, int64 (words,), zero at first."""
    write = 0
    for document in range(len(offsets) - 1):
        text[write] = stop
        write += 1
        for index in range(offsets[document], offsets[document + 1]):
            word = np.int64(ids[index])
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
    for index in range(length):
        begins[text[index] + 1] += 1
    for word in range(1, len(begins)):
        begins[word] += begins[word - 1]
    for index in range(length):
        word = text[index]
        positions[begins[word]] = index
        begins[word] += 1
    for word in range(len(begins) - 1, 0, -1):
        begins[word] = begins[word - 1]
    begins[0] = 0


@kernel
def count_next(text: Ints, length: int, stop: int, prefix: Ints, counts: Longs) -> None:
    """Count the positions that begin with ``prefix`` by the word after it; ``counts[0]``: no word.

    counts: int64 (stop + 1,), zero at first.
    """
    known = len(prefix)
    for index in range(length):
        same = 0
        while same < known and text[index + same] == prefix[same]:
            same += 1
        if same == known:
            word = text[index + known]
            counts[0 if known > 0 and word == stop else word] += 1


@kernel
def collect(
    text: Ints, length: int, stop: int, prefix: Ints, first: int, last: int, start: int, positions: Ints, found: Longs
) -> int:  # fmt: skip
    """List positions from ``start`` on that ``count_next`` counts under the words from ``first`` up to ``last``.

    Stops when ``positions`` is full; found[0] is how many were found. Returns where to resume.
    """
    known = len(prefix)
    size = 0
    for index in range(start, length):
        same = 0
        while same < known and text[index + same] == prefix[same]:
            same += 1
        if same < known:
            continue
        word = np.int64(text[index + known])
        if known > 0 and word == stop:
            word = np.int64(0)
        if first <= word < last:
            if size == len(positions):
                found[0] = size
                return index
            positions[size] = index
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
    for; the lower one the ``lower_words`` that follow, and the position's index in ``positions``. before: int32 (n,),
    out, the word before each position, 0 where a document begins.
    """
    for index in range(len(positions)):
        prefetch(text, np.int64(positions[min(index + _AHEAD, len(positions) - 1)]))
        at = np.int64(positions[index])
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
        records[2 * index] = upper
        records[2 * index + 1] = lower << place_bits | index
        before[index] = text[at - 1] if text[at] != stop else 0


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
    for index in range(size):
        key = records[2 * index + column] >> shift
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
    for index in range(size):
        digit = (source[2 * index + column] >> shift) & mask
        to = 2 * np.int64(begins[digit])
        begins[digit] += 1
        target[to] = source[2 * index]
        target[to + 1] = source[2 * index + 1]


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
            for index in range(2 * first, 2 * last):
                records[index] = spare[index]
        first = last


@inlined
def _insert(records: Longs, first: int, last: int) -> None:
    """Sort by the lower numbers."""
    for index in range(first + 1, last):
        upper, lower = records[2 * index], records[2 * index + 1]
        at = index
        while at > first and records[2 * at - 1] > lower:
            records[2 * at] = records[2 * at - 2]
            records[2 * at + 1] = records[2 * at - 1]
            at -= 1
        records[2 * at], records[2 * at + 1] = upper, lower


@kernel
def take_in_order(values: Ints, records: Longs, mask: int, out: Ints) -> None:
    """Write the positions, or a value of each, to ``out`` in the order of the records; mask: of an index."""
    for index in range(len(out)):
        out[index] = values[records[2 * index + 1] & mask]


@kernel
def list_ngrams(
    text: Ints, stop: int, positions: Ints, records: Longs, first_word: int,
    upper_words: int, lower_words: int, bits: int, place_bits: int,
    latest: Ints, sizes: Longs, bases: Longs, grams: Ints, marks: Bytes,
) -> None:  # fmt: skip
    """Scan sorted positions and list every n-gram that differs from the one before.

    positions, records: in the same order. What the records do not hold of an n-gram is read from the text.
    latest: int32 (order + 1,), the words of the n-gram before, from 1 on; sizes: int64 (order + 1,), how many n-grams
    of each order are in ``grams``, int32 (order - 1, room, 4), n-gram number i of an order in row i - bases[order]. All
    three are kept from batch to batch. The fourth column is left alone.
    marks: uint8 (positions,), the lowest order that is new there, and the highest that there is times 16.
    """
    order = len(latest) - 1
    mask = (np.int64(1) << bits) - 1
    for index in range(len(positions)):
        upper, lower = records[2 * index], records[2 * index + 1] >> place_bits
        at = np.int64(positions[index])
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
        marks[index] = (highest + 1 - new_orders) | highest << 4


# Numbering


_LINK_AHEAD = 16
"""Memory is prefetched this many positions ahead."""


@kernel
def number_by_word_before(
    before: Ints, marks: Bytes, order: int, begins: Longs, first: int, last: int, latest: Longs,
    numbers: Ints, tables: Longs, counts: Ints,
) -> None:  # fmt: skip
    """Scan the positions in sorted order and pass the numbers of the n-grams here to the position before each.

    before, marks: of ``pack_keys`` and ``list_ngrams``, in sorted order. begins: int64 (stop + 1,), where the positions
    of each word begin in that order; it is moved on. latest: int64 (order + 1,), -1 at first, scratch.
    numbers: int32 ((last - first) * (order - 2),), out, for positions from ``first`` up to ``last`` in sorted order:
    the numbers of the n-grams of 2 to ``order`` - 1 words that begin behind their first word.
    counts: int32, zero at first, how many different words stand before each n-gram; that of k-gram i is
    ``counts[tables[k] + i]``. Only words at those positions are counted.
    """
    each = order - 2
    end = len(before) - 1
    for index in range(len(before)):
        prefetch(begins, np.int64(before[min(index + 2 * _LINK_AHEAD, end)]))
        ahead = begins[before[min(index + _LINK_AHEAD, end)]]
        if first <= ahead < last:
            prefetch(numbers, (ahead - first) * each)
            prefetch(marks, ahead)
        lowest, highest = np.int64(marks[index] & 15), np.int64(marks[index] >> 4)
        for k in range(2, order):
            latest[k] += np.int64(lowest <= k) & np.int64(k <= highest)
        word = before[index]
        if word == 0:
            continue
        to = begins[word]
        begins[word] = to + 1
        if first <= to < last:
            new_from, longest = np.int64(marks[to] & 15), np.int64(marks[to] >> 4)
            for k in range(2, order):
                numbers[(to - first) * each + k - 2] = latest[k]
                counts[tables[k] + latest[k]] += np.int64(new_from <= k + 1) & np.int64(k < longest)


@kernel
def write_suffixes(
    marks: Bytes, order: int, latest: Longs, numbers: Ints, tables: Longs, suffixes: Ints
) -> None:  # fmt: skip
    """Write the suffixes of n-grams of orders from three on, as ``number_by_word_before`` passed them on.

    marks, numbers: of positions that follow each other in sorted order; latest: int64 (order + 1,), the latest number
    of each order, -1 at first, kept from call to call. suffixes, out: that of k-gram i is ``suffixes[tables[k] + i]``.
    Every occurrence of an n-gram has the same suffix, so the last one may overwrite the others.
    """
    each = order - 2
    for index in range(len(marks)):
        lowest, highest = np.int64(marks[index] & 15), np.int64(marks[index] >> 4)
        for k in range(3, highest + 1):
            latest[k] += np.int64(lowest <= k)
            suffixes[tables[k] + latest[k]] = numbers[index * each + k - 3]


@kernel
def count_words_before(suffixes: Ints, counts: Ints) -> None:
    """Count the different words before each word, one for each bigram; counts: int32 (words,), zero at first."""
    for index in range(len(suffixes)):
        counts[suffixes[index]] += 1


@kernel
def replace_counts(grams: Ints, counts: Ints) -> None:
    """Set the counts of the first n-grams."""
    for index in range(len(counts)):
        grams[index, COUNT] = counts[index]


@kernel
def counts_of_counts(grams: Ints, tally: Longs) -> None:
    """Count the n-grams that have the count 1, 2, 3, 4: tally[1:5]."""
    for index in range(len(grams)):
        count = grams[index, COUNT]
        if 0 < count < 5:
            tally[count] += 1


@inlined
def first_from(grams: Ints, column: int, least: int, low: int, high: int) -> int:
    """Return the first row from ``low`` up to ``high`` that has at least ``least`` in a column that is sorted there."""
    while low < high:
        middle = (low + high) >> 1
        if grams[middle, column] < least:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def first_extension(grams: Ints, parent: int) -> int:
    """Return where the extensions of n-gram number ``parent`` begin, or would, among those of the next order."""
    return first_from(grams, PARENT, parent, 0, len(grams))


@kernel
def find_extension(grams: Ints, parent: int, word: int) -> int:
    """Return the number of an n-gram that is there."""
    return first_from(grams, WORD, word, first_extension(grams, parent), first_extension(grams, parent + 1))


@kernel
def list_extensions(grams: Ints, children: Longs) -> None:
    """Write where the extensions of each n-gram begin. children: int64 (n-grams below + 1,), out; g is extended by
    ``children[g]`` to ``children[g + 1]``.
    """
    parent = 0
    for index in range(len(grams)):
        while parent <= grams[index, PARENT]:
            children[parent] = index
            parent += 1
    while parent < len(children):
        children[parent] = len(grams)
        parent += 1


@kernel
def rank_by_first_place(text: Ints, ranks: Ints, end: int) -> int:
    """Number words in order of first occurrence, ``end`` before all; ranks: int32 (stop + 1,), -1 at first, out.

    Returns the word that was numbered last. Words are those of the text: ``stop``, the largest, has no rank.
    """
    stop = len(ranks) - 1
    ranks[end] = 0
    seen = 1
    last = np.int64(end)
    for index in range(len(text)):
        word = np.int64(text[index])
        if ranks[word] < 0 and word != stop:
            ranks[word] = seen
            seen += 1
            last = word
    return last


@kernel
def last_in_suffix_order(text: Ints, ranks: Ints, word: int, order: int) -> int:
    """Return where the n-gram ends that comes last when n-grams are sorted by their last word, then the one before, …

    Only those that end in ``word`` count; a word's order in the sort is its rank. ``<s>`` ends an n-gram.
    """
    best = np.int64(-1)
    for index in range(len(text)):
        if text[index] != word:
            continue
        if best < 0:
            best = index
            continue
        for back in range(1, order):
            left, right = text[index - back], text[best - back]
            if left != right:
                if ranks[left] > ranks[right]:
                    best = index
                break
            if ranks[left] < 0:
                break
    return best
