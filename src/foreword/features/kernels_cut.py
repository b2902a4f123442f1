"""Documents cut into the pieces that are counted: words, or runs of characters.

Two steps, each over a batch of documents small enough to stay in the cache. First the text is *folded* into a buffer:
copied, ASCII letters in lower case if asked, and for character runs its white space normalised. Then it is cut:
``spans`` gets start and stop of each piece, and ``span_ends`` the number of pieces up to the end of each document.

    text: uint8, at least PADDING bytes longer than the text itself, for it is read in large steps
    bounds: int64 (documents + 1,); folded document i is ``text[bounds[i]:bounds[i + 1]]``
    spans: int64 (2 * pieces,); span_ends: int64 (documents,)

Text beyond ASCII is lowered before, by Python (``features/counting.py``).
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from foreword.arrays import Bytes, Longs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import load_unaligned, lowest_one
from foreword.tokens.pieces import character, punctuation_piece, skip_space, split_space, word_end

PADDING = 64
_BLANK = np.uint8(0x20)
_OUTSIDE = np.uint8(0x80)


@cache
def word_characters() -> Bytes:
    r"""Return 1 for every code point that ``\\w`` matches in Python's ``re``, uint8 (0x110000,)."""
    everything = np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    table = np.zeros(0x110000, np.uint8)
    for run in re.finditer(r"\w+", everything):
        table[run.start() : run.end()] = 1
    table.flags.writeable = False
    return table


@inlined
def lowered(byte: np.uint8, lowercase: bool) -> np.uint8:
    """Return an ASCII capital in lower case if asked, any other byte as it is."""
    capital = (byte >= np.uint8(65)) & (byte <= np.uint8(90)) & lowercase
    return np.uint8(byte | (np.uint8(capital) << np.uint8(5)))


@kernel
def fold(data: Bytes, begins: Longs, stops: Longs, lowercase: bool, text: Bytes, bounds: Longs) -> None:
    """Copy documents one after another."""
    written = 0
    for document in range(len(begins)):
        # Slices: an index that is a sum might be negative, for all the compiler knows, and then it does not vectorise.
        source = data[begins[document] : stops[document]]
        target = text[written : written + len(source)]
        for place in range(len(source)):
            target[place] = lowered(source[place], lowercase)
        written += len(source)
        bounds[document + 1] = written


@kernel
def fold_runs_of_space(data: Bytes, begins: Longs, stops: Longs, lowercase: bool, text: Bytes, bounds: Longs) -> None:
    """Copy documents, replacing two or more white-space characters in a row by one blank."""
    written = 0
    for document in range(len(begins)):
        place, stop = begins[document], stops[document]
        while place < stop:
            width = split_space(data, place, stop)
            after = skip_space(data, place, stop)
            if after > place + width:
                text[written] = _BLANK
                written += 1
                place = after
                continue
            after = max(after, place + 1)
            while place < after:
                text[written] = lowered(data[place], lowercase)
                written += 1
                place += 1
        bounds[document + 1] = written


@kernel
def fold_words(data: Bytes, begins: Longs, stops: Longs, lowercase: bool, text: Bytes, bounds: Longs) -> None:
    """Copy the white-space words of documents with one blank between them, before the first and after the last."""
    written = 0
    for document in range(len(begins)):
        place, stop = skip_space(data, begins[document], stops[document]), stops[document]
        if place < stop:
            text[written] = _BLANK
            written += 1
        while place < stop:
            if split_space(data, place, stop):
                text[written] = _BLANK
                place = skip_space(data, place, stop)
            else:
                text[written] = lowered(data[place], lowercase)
                place += 1
            written += 1
        if written > bounds[document] and text[written - 1] != _BLANK:
            text[written] = _BLANK
            written += 1
        bounds[document + 1] = written


@kernel
def mark_words(text: Bytes, length: int, words: Bytes, marks: Bytes) -> None:
    r"""Set ``marks`` to 0x80 for each byte of ``text[:length]`` outside ``\\w`` characters, else to zero."""
    beyond_ascii = np.uint8(0)
    for place in range(length):
        byte = text[place]
        small = byte | np.uint8(0x20)
        letter = (small >= np.uint8(97)) & (small <= np.uint8(122))
        digit = (byte >= np.uint8(48)) & (byte <= np.uint8(57))
        inside = letter | digit | (byte == np.uint8(95))
        marks[place] = np.uint8(np.uint8(not inside) << np.uint8(7))
        beyond_ascii |= byte
    if beyond_ascii < np.uint8(0x80):
        return
    place = 0
    while place < length:
        high = load_unaligned(text, place) & np.uint64(0x8080808080808080)
        if high == np.uint64(0):
            place += 8
            continue
        place += lowest_one(high) >> 3
        if place >= length:
            break
        point, width = character(text, place, length)
        mark = np.uint8(0) if words[point] else _OUTSIDE
        for part in range(place, place + width):
            marks[part] = mark
        place += width


@inlined
def unmarked(marks: Bytes, place: int) -> np.uint64:
    """Return a bit for each of the 64 bytes from ``place`` on: one where there is no mark."""
    bits = np.uint64(0)
    for part in range(8):
        # The top bits of eight bytes, each moved by this product to a bit of its own in the highest byte.
        word = (load_unaligned(marks, place + 8 * part) >> np.uint64(7)) & np.uint64(0x0101010101010101)
        bits |= ((word * np.uint64(0x0102040810204080)) >> np.uint64(56)) << np.uint64(8 * part)
    return ~bits


@inlined
def width_of(first: np.uint8) -> int:
    """Return the length in bytes of a character, from its first byte."""
    if first < np.uint8(0xC0):
        return 1
    return 2 if first < np.uint8(0xE0) else 3 if first < np.uint8(0xF0) else 4


@kernel
def cut_words(text: Bytes, bounds: Longs, marks: Bytes, spans: Longs, span_ends: Longs) -> int:
    r"""Cut ``\\b\\w\\w+\\b``: runs of two or more word characters.

    64 bytes are examined at once: where a bit differs from the one before it, a run begins or ends, so no branch
    depends on the length of a word.
    """
    written = 0
    for document in range(len(span_ends)):
        place, stop = bounds[document], bounds[document + 1]
        first = written
        before = np.uint64(0)
        while place < stop:
            inside = unmarked(marks, place)
            if stop - place < 64:
                inside &= (np.uint64(1) << np.uint64(stop - place)) - np.uint64(1)
            edges = inside ^ ((inside << np.uint64(1)) | before)
            before = inside >> np.uint64(63)
            while edges != np.uint64(0):
                spans[written] = place + lowest_one(edges)
                edges &= edges - np.uint64(1)
                written += 1
            place += 64
        if (written - first) % 2:  # the last run ends with the document
            spans[written] = stop
            written += 1
        kept = first
        for run in range(first, written, 2):
            start, end = spans[run], spans[run + 1]
            spans[kept] = start
            spans[kept + 1] = end
            kept += 2 * (end - start > width_of(text[start]))
        written = kept
        span_ends[document] = written // 2
    return written // 2


@kernel
def cut_space(text: Bytes, bounds: Longs, spans: Longs, span_ends: Longs) -> int:
    """Cut the words of ``str.split``."""
    written = 0
    for document in range(len(span_ends)):
        stop = bounds[document + 1]
        place = skip_space(text, bounds[document], stop)
        while place < stop:
            spans[2 * written] = place
            place = word_end(text, place, stop)
            spans[2 * written + 1] = place
            written += 1
            place = skip_space(text, place, stop)
        span_ends[document] = written
    return written


@kernel
def cut_punctuation(text: Bytes, bounds: Longs, classes: Bytes, spans: Longs, span_ends: Longs) -> int:
    """Cut the words of ``str.split`` with punctuation split off, as ``WordTokenizer`` does."""
    written = 0
    for document in range(len(span_ends)):
        stop = bounds[document + 1]
        place = skip_space(text, bounds[document], stop)
        while place < stop:
            spans[2 * written] = place
            place = punctuation_piece(text, place, stop, classes)
            spans[2 * written + 1] = place
            written += 1
            place = skip_space(text, place, stop)
        span_ends[document] = written
    return written


@kernel
def cut_nothing(bounds: Longs, spans: Longs, span_ends: Longs) -> int:
    """Make every document that is not empty one piece."""
    written = 0
    for document in range(len(span_ends)):
        spans[2 * written] = bounds[document]
        spans[2 * written + 1] = bounds[document + 1]
        written += bounds[document + 1] > bounds[document]
        span_ends[document] = written
    return written


@inlined
def runs(heads: Longs, count: int, shortest: int, longest: int, whole: bool, spans: Longs, written: int) -> int:
    """Write all runs of ``shortest`` to ``longest`` of ``count`` characters, character i from heads[i] to heads[i+1].

    whole: where there are fewer characters than a run should have, all are one run, though only for the first length.
    """
    for length in range(shortest, longest + 1):
        last = max(count - length, 0) if whole else count - length
        for first in range(last + 1):
            spans[2 * written] = heads[first]
            spans[2 * written + 1] = heads[min(first + length, count)]
            written += 1
        if last <= 0:
            break
    return written


@kernel
def cut_characters(
    text: Bytes, bounds: Longs, shortest: int, longest: int, heads: Longs, spans: Longs, span_ends: Longs
) -> int:
    """Cut runs of characters. heads: one longer than the text, scratch."""
    written = 0
    for document in range(len(span_ends)):
        count = 0
        for place in range(bounds[document], bounds[document + 1]):
            heads[count] = place
            count += (text[place] & np.uint8(0xC0)) != np.uint8(0x80)
        heads[count] = bounds[document + 1]
        written = runs(heads, count, shortest, longest, False, spans, written)
        span_ends[document] = written
    return written


@kernel
def cut_characters_in_words(
    text: Bytes, bounds: Longs, shortest: int, longest: int, heads: Longs, spans: Longs, span_ends: Longs
) -> int:
    """Cut runs of characters within one word and its two blanks; the text is as ``fold_words`` leaves it."""
    written = 0
    for document in range(len(span_ends)):
        count = 0
        for place in range(bounds[document], bounds[document + 1]):
            byte = text[place]
            heads[count] = place
            count += (byte & np.uint8(0xC0)) != np.uint8(0x80)
            if byte == _BLANK and count > 1:
                heads[count] = place + 1
                written = runs(heads, count, shortest, longest, True, spans, written)
                heads[0] = place
                count = 1
        span_ends[document] = written
    return written
