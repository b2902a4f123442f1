"""Statistics of texts, for blocks of documents; ``plain.py`` defines each one.

Words, lines and n-grams are compared by 64-bit hashes: of a million different n-grams two are taken for equal once in
thirty million times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreword.arrays import Bytes, Doubles, Ints, Longs, ULongs
from foreword.native.hashing import fold, fold_bytes, mix
from foreword.native.jit import inlined, kernel
from foreword.tokens.pieces import LETTER, SPACE, character

(
    CHARACTERS, WORDS, LINES, MEAN_WORD_LENGTH, SYMBOL_RATIO, ALPHABETIC_WORDS, STOPS, BULLET_LINES, ELLIPSIS_LINES,
    DUPLICATE_LINES, DUPLICATE_LINE_CHARACTERS, FIRST_TOP,
) = range(12)  # fmt: skip
FIRST_DUPLICATE = FIRST_TOP + 3
COLUMNS = FIRST_DUPLICATE + 6
"""Columns of the result: top 2 to 4-grams, then duplicate 5 to 10-grams, come last."""

_HASH, _DOT, _NEWLINE, _DASH = 0x23, 0x2E, 0x0A, 0x2D
LONGEST_STOP_WORD = 4

_SEED = np.uint64(0x2545F4914F6CDD1D)
_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Wanted(NamedTuple):
    """What is computed besides counts of words and characters. hashes: of words, for n-grams and stop words. tops,
    duplicates: lengths of n-grams.
    """

    hashes: bool
    lines: bool
    tops: Ints
    duplicates: Ints


class TextWorkspace(NamedTuple):
    """Buffers for one text: hashes and lengths of its words and lines, and a hash table of keys with counts."""

    hashes: ULongs
    lengths: Ints
    keys: ULongs
    counts: Ints


def make_text_workspace(longest: int) -> TextWorkspace:
    """Allocate buffers for texts of at most ``longest`` bytes."""
    most = longest // 2 + 2
    slots = max(16, 1 << (2 * most).bit_length())
    return TextWorkspace(
        np.empty(most, np.uint64), np.empty(most, np.int32), np.empty(slots, np.uint64), np.empty(slots, np.int32)
    )


@inlined
def clear_slots(work: TextWorkspace, items: int) -> int:
    """Clear a table with a capacity of ``items``, and return its mask."""
    size = 16
    while size < 2 * items:
        size *= 2
    for slot in range(size):
        work.keys[slot], work.counts[slot] = _ZERO, 0
    return size - 1


@inlined
def count_key(work: TextWorkspace, mask: int, key: np.uint64) -> int:
    """Count a key, and return how often it has occurred so far, this time included."""
    key |= _ONE  # zero is a free slot
    slot = np.int64((key >> np.uint64(20)) & np.uint64(mask))
    while work.keys[slot] != _ZERO and work.keys[slot] != key:
        slot = (slot + 1) & mask
    work.keys[slot] = key
    work.counts[slot] += 1
    return np.int64(work.counts[slot])


@inlined
def is_space(point: int, classes: Bytes) -> bool:
    """Return what ``str.isspace`` does: the four information separators are white space for Python alone."""
    return classes[point] == SPACE or 0x1C <= point <= 0x1F


@inlined
def is_ellipsis(data: Bytes, at: int, stop: int) -> bool:
    """Return whether "…" or "..." is at ``at``."""
    if at + 3 > stop:
        return False
    dots = data[at] == _DOT and data[at + 1] == _DOT and data[at + 2] == _DOT
    return dots or (data[at] == 0xE2 and data[at + 1] == 0x80 and data[at + 2] == 0xA6)


@inlined
def measure_words(
    data: Bytes, start: int, stop: int, classes: Bytes, stop_words: ULongs, hashed: bool, work: TextWorkspace,
    row: Doubles,
) -> int:  # fmt: skip
    """Write the counts of a text's words and characters to ``row``; with ``hashed`` hashes and lengths to ``work``."""
    words, characters, inside, alphabetic, hashes, ellipses, seen = 0, 0, 0, 0, 0, 0, 0
    at, begin, length, letters, dots = start, -1, 0, False, 0
    while at <= stop:
        point, width = 0x20, 1
        if at < stop:
            point, width = character(data, at, stop)
            characters += 1
            hashes += point == _HASH
            dots = dots + 1 if point == _DOT else 0
            if dots == 3 or point == 0x2026:
                ellipses += 1
                dots = 0
        if not is_space(point, classes):
            if begin < 0:
                begin, length, letters = at, 0, False
            length += 1
            letters |= classes[point] == LETTER
        elif begin >= 0:
            if hashed:
                key = mix(fold_bytes(_SEED, data, begin, at))
                work.hashes[words], work.lengths[words] = key, length
                if length <= LONGEST_STOP_WORD:
                    for place in range(len(stop_words)):
                        if stop_words[place] == key:
                            seen |= 1 << place
            words += 1
            inside += length
            alphabetic += letters
            begin = -1
        at += width
    row[CHARACTERS], row[WORDS] = characters, words
    row[STOPS] = bits(seen)
    if words:
        row[MEAN_WORD_LENGTH] = inside / words
        row[SYMBOL_RATIO] = max(hashes, ellipses) / words
        row[ALPHABETIC_WORDS] = alphabetic / words
    return words


@inlined
def bits(mask: int) -> int:
    """Return how many bits are set."""
    count = 0
    while mask:
        count += mask & 1
        mask >>= 1
    return count


@inlined
def stripped(data: Bytes, first: int, last: int, classes: Bytes) -> tuple[int, int]:
    """Return the ends of a line without the white space around it; two equal ones for a blank line."""
    while first < last:
        point, width = character(data, first, last)
        if not is_space(point, classes):
            break
        first += width
    while first < last:
        begin = last - 1
        while begin > first and data[begin] & 0xC0 == 0x80:
            begin -= 1
        point, width = character(data, begin, last)
        if begin + width != last or not is_space(point, classes):
            break
        last = begin
    return first, last


@inlined
def count_characters(data: Bytes, at: int, stop: int) -> int:
    """Return the number of characters of a text."""
    count = 0
    while at < stop:
        at += character(data, at, stop)[1]
        count += 1
    return count


@inlined
def measure_lines(data: Bytes, start: int, stop: int, classes: Bytes, work: TextWorkspace, row: Doubles) -> None:
    """Write the statistics of lines: how many, with bullets, with an ellipsis at their end, duplicates."""
    newlines = 1
    for at in range(start, stop):
        newlines += data[at] == _NEWLINE
    mask = clear_slots(work, min(newlines, len(work.hashes)))  # no more lines than words have any text
    lines, bullets, ellipses, duplicates, repeated, begin = 0, 0, 0, 0, 0, start
    while begin < stop:
        end = begin
        while end < stop and data[end] != _NEWLINE:
            end += 1
        first, last = stripped(data, begin, end, classes)
        begin = end + 1
        if first == last:
            continue
        lines += 1
        bullets += data[first] == _DASH or (
            last - first >= 3 and data[first] == 0xE2 and data[first + 1] == 0x80 and data[first + 2] == 0xA2
        )
        ellipses += last - first >= 3 and is_ellipsis(data, last - 3, last)
        if count_key(work, mask, mix(fold_bytes(_SEED, data, first, last))) > 1:
            duplicates += 1
            repeated += count_characters(data, first, last)
    row[LINES] = lines
    if lines:
        row[BULLET_LINES], row[ELLIPSIS_LINES] = bullets / lines, ellipses / lines
        row[DUPLICATE_LINES] = duplicates / lines
    if row[CHARACTERS]:
        row[DUPLICATE_LINE_CHARACTERS] = repeated / row[CHARACTERS]


@inlined
def ngram_key(work: TextWorkspace, place: int, n: int) -> np.uint64:
    """Return the hash of the n words from ``place`` on."""
    key = _SEED
    for word in range(place, place + n):
        key = fold(key, work.hashes[word])
    return mix(key)


@inlined
def ngram_characters(work: TextWorkspace, place: int, n: int) -> int:
    """Return the characters of the n words from ``place`` on, without blanks."""
    total = 0
    for word in range(place, place + n):
        total += work.lengths[word]
    return total


@inlined
def top_ngram(work: TextWorkspace, words: int, n: int) -> int:
    """Return the characters of the most frequent n-gram times its count."""
    mask, most = clear_slots(work, words), 0
    for place in range(words - n + 1):
        most = max(most, count_key(work, mask, ngram_key(work, place, n)))
    # The first of equals is the one whose first occurrence comes first, not the one that reaches the count first.
    for place in range(words - n + 1):
        key = ngram_key(work, place, n) | _ONE
        slot = np.int64((key >> np.uint64(20)) & np.uint64(mask))
        while work.keys[slot] != key:
            slot = (slot + 1) & mask
        if work.counts[slot] == most:
            return (ngram_characters(work, place, n) + n - 1) * most
    return 0


@inlined
def duplicate_ngrams(work: TextWorkspace, words: int, n: int) -> int:
    """Return the characters of n-grams that occurred before, from left to right and without overlaps."""
    mask, total, place = clear_slots(work, words), 0, 0
    while place <= words - n:
        if count_key(work, mask, ngram_key(work, place, n)) > 1:
            total += ngram_characters(work, place, n)
            place += n
        else:
            place += 1
    return total


@kernel
def measure_texts(
    data: Bytes, starts: Longs, stops: Longs, classes: Bytes, stop_words: ULongs, wanted: Wanted, work: TextWorkspace,
    out: Doubles,
) -> None:  # fmt: skip
    """Write the statistics of each text to a row of ``out``, float64 (texts, COLUMNS), NaN where there is none."""
    for text in range(len(starts)):
        row = out[text]
        for column in range(COLUMNS):
            row[column] = np.nan
        words = measure_words(data, starts[text], stops[text], classes, stop_words, wanted.hashes, work, row)
        if row[CHARACTERS]:
            for place in range(len(wanted.tops)):
                n = np.int64(wanted.tops[place])
                row[FIRST_TOP + n - 2] = top_ngram(work, words, n) / row[CHARACTERS]
            for place in range(len(wanted.duplicates)):
                n = np.int64(wanted.duplicates[place])
                row[FIRST_DUPLICATE + n - 5] = duplicate_ngrams(work, words, n) / row[CHARACTERS]
        if wanted.lines:
            measure_lines(data, starts[text], stops[text], classes, work, row)


@kernel
def hash_words(data: Bytes, starts: Longs, stops: Longs, out: ULongs) -> None:
    """Write the hash of each word."""
    for word in range(len(starts)):
        out[word] = mix(fold_bytes(_SEED, data, starts[word], stops[word]))
