"""Texts mapped character by character, as ``cleaning.py`` describes."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.native.jit import inlined, kernel

DONE, MISSING_PAGE, PLAINLY = 0, 1, 2
_SPACE, _CONTEXTUAL, _BLANK = 1, 2, 0x20


@inlined
def code_point(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Return the code point at ``at``, of valid UTF-8, and its length in bytes."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, 1
    length = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if at + length > stop:  # not reached for valid UTF-8
        return 0xFFFD, stop - at
    point = first & (0x7F >> length)
    for following in range(at + 1, at + length):
        point = point << 6 | (np.int64(data[following]) & 0x3F)
    return point & 0x1FFFFF, length


@inlined
def write_entry(offsets: Longs, arena: Bytes, entry: int, out: Bytes, end: int) -> int:
    """Append what a character becomes, and return the end."""
    for place in range(offsets[entry], offsets[entry + 1]):
        out[end] = arena[place]
        end += 1
    return end


@inlined
def clean_one(
    data: Bytes, at: int, stop: int, pages: Ints, offsets: Longs, flags: Bytes, arena: Bytes, simple: Bytes,
    squeeze: bool, out: Bytes, end: int, state: Longs,
) -> int:  # fmt: skip
    """Write one text from ``end`` on, and return its end; −1 and the page in ``state[1]`` if a page is missing, −2 if
    a character depends on its neighbours.
    """
    begun, run, single = False, 0, 0  # run: of white space; single: its last character
    kept = end  # after the last character that is not white space
    while at < stop:
        if run == 0 and begun:
            while at < stop and data[at] < 128 and simple[data[at]]:
                out[end] = simple[data[at]]
                at += 1
                end += 1
            kept = end
            if at == stop:
                break
        point, width = code_point(data, at, stop)
        at += width
        page = np.int64(pages[min(point >> 8, len(pages) - 1)])
        if page < 0:
            state[1] = point >> 8
            return -1
        entry = page * 256 + (point & 255)
        if flags[entry] & _CONTEXTUAL:
            return -2
        if flags[entry] & _SPACE:
            if begun:  # else it is at the beginning
                run += 1
                single = entry
                end = end if squeeze else write_entry(offsets, arena, entry, out, end)
            continue
        if squeeze and run == 1:
            end = write_entry(offsets, arena, single, out, end)
        elif squeeze and run > 1:
            out[end] = _BLANK
            end += 1
        end = kept = write_entry(offsets, arena, entry, out, end)
        begun, run = True, 0
    return kept


@kernel
def clean_texts(
    data: Bytes, starts: Longs, stops: Longs, pages: Ints, offsets: Longs, flags: Bytes, arena: Bytes, simple: Bytes,
    squeeze: bool, out: Bytes, ends: Longs, state: Longs,
) -> int:  # fmt: skip
    """Clean the texts from ``state[0]`` on, one after another into ``out``; text i stops at ``ends[i + 1]``.

    pages: int32, the index of each page in the table, −1 if it has none yet; offsets, arena: what each character of
    the table becomes; simple: uint8 (128,), what ASCII characters become that become one, else 0.

    Return DONE; or MISSING_PAGE, where ``state[1]`` is the page that the next text needs; or PLAINLY for a next text
    whose characters depend on each other.
    """
    while state[0] < len(starts):
        text = state[0]
        end = clean_one(
            data, starts[text], stops[text], pages, offsets, flags, arena, simple, squeeze, out, ends[text], state
        )
        if end == -1:
            return MISSING_PAGE
        if end == -2:
            return PLAINLY
        ends[text + 1] = end
        state[0] += 1
    return DONE
