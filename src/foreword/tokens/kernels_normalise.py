"""Kernels that normalise texts as sentencepiece does: the character map, the dummy prefix, and white space.

Normalised text is sentencepiece's with one difference: ▁, three bytes long there, is a blank here, so that words are
shorter and their cut is quicker to find. Every ▁ becomes one, whether it stands for a blank or stood in the text.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ints, Longs, UInts
from foreword.native.jit import inlined, kernel
from foreword.tokens.kernels_trie import CROWDED, list_labels, longest_match

COPY, BLANK, SEARCH = 0, 1, 2
"""What becomes of a byte below 0x80 that another one, or the end, follows. SEARCH: the maps have to be asked."""

UNUSED_UNIT = np.uint32(0xFFFFFFFF)
"""A node that is not in use: its label is that of no byte."""

_SPACE = 0x20
_IN_STRINGS, _IN_TEXT, _INVALID = 0, 1, 2


@inlined
def map_offset(unit: int) -> int:
    """Return where the children of a node of the character map are."""
    return (unit >> 10) << ((unit & 0x200) >> 6)


@kernel
def check_map(units: UInts, strings: Bytes, heights: Ints, stack: Longs, longest: int) -> int:
    """Return 0 if every path of a character map ends within ``longest`` bytes and stays inside, else what is wrong.

    heights: (nodes,), all -1: the length of the longest path below each node that is done, -2 while it is on the stack.
    stack: (4 * (longest + 2),), scratch: node, where its children are, next byte to try, longest path so far.
    """
    count = len(units)
    top = 0
    stack[0], stack[1], stack[2], stack[3] = 0, map_offset(np.int64(units[0])), 1, 0
    heights[0] = -2
    while top >= 0:
        at = 4 * top
        label = stack[at + 2]
        if label > 255:
            heights[stack[at]] = stack[at + 3]
            top -= 1
            if top >= 0:
                stack[4 * top + 3] = max(stack[4 * top + 3], stack[at + 3] + 1)
            continue
        stack[at + 2] = label + 1
        child = stack[at + 1] ^ label
        if child >= count:
            continue
        unit = np.int64(units[child])
        if unit & 0x800000FF != label:
            continue
        if heights[child] == -2:
            return 2
        if heights[child] >= 0:
            stack[at + 3] = max(stack[at + 3], heights[child] + 1)
            if top + 1 + heights[child] > longest:
                return 3
            continue
        base = child ^ map_offset(unit)
        if unit & 0x100:
            if base >= count:
                return 1
            value = np.int64(units[base]) & 0x7FFFFFFF
            if value >= len(strings) or strings[value] & 0xC0 == 0x80:
                return 4
        if top + 1 > longest:
            return 3
        top += 1
        heights[child] = -2
        stack[4 * top], stack[4 * top + 1], stack[4 * top + 2], stack[4 * top + 3] = child, base, 1, 0
    return 0


@inlined
def map_match(units: UInts, data: Bytes, index: int, stop: int) -> tuple[int, int]:
    """Return the length of the longest key of the character map at ``index``, 0 for none, and its replacement."""
    longest, value = 0, 0
    if len(units) == 0:
        return longest, value
    node = map_offset(np.int64(units[0]))
    for end in range(index, stop):
        byte = np.int64(data[end])
        node ^= byte
        if byte == 0 or node >= len(units):  # no key holds a NUL: there a node holds its value
            break
        unit = np.int64(units[node])
        if unit & 0x800000FF != byte:
            break
        node ^= map_offset(unit)
        if unit & 0x100:
            longest = end + 1 - index
            value = np.int64(units[node]) & 0x7FFFFFFF
    return longest, value


@inlined
def valid_length(data: Bytes, index: int, stop: int) -> int:
    """Return the length of the UTF-8 character at ``index``, 0 if there is none."""
    first = np.int64(data[index])
    if first < 0x80:
        return 1
    if first < 0xC2 or first > 0xF4:
        return 0
    length = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if index + length > stop:
        return 0
    point = first & (0x7F >> length)
    for following in range(index + 1, index + length):
        byte = np.int64(data[following])
        if byte & 0xC0 != 0x80:
            return 0
        point = (point << 6) | (byte & 0x3F)
    if length == 3 and (point < 0x800 or 0xD800 <= point < 0xE000):
        return 0
    if length == 4 and (point < 0x10000 or point > 0x10FFFF):
        return 0
    return length


@inlined
def next_prefix(
    units: UInts, strings: Bytes, symbols: Ints, data: Bytes, index: int, stop: int
) -> tuple[int, int, int, int]:
    """Return the length of what is replaced at ``index``, and its replacement: where it lies, its start and stop.

    symbols: the trie of the user-defined symbols, which stay as they are.
    """
    length, _ = longest_match(symbols, data, index, stop)
    if length:
        return length, _IN_TEXT, index, index + length
    length, start = map_match(units, data, index, stop)
    if length:
        end = start
        while strings[end] != 0:
            end += 1
        return length, _IN_STRINGS, start, end
    length = valid_length(data, index, stop)
    if length:
        return length, _IN_TEXT, index, index + length
    return 1, _INVALID, 0, 0


@inlined
def skip_blanks(units: UInts, strings: Bytes, symbols: Ints, data: Bytes, index: int, stop: int) -> int:
    """Return where the text begins after everything that is replaced by one blank."""
    while index < stop:
        length, source, first, last = next_prefix(units, strings, symbols, data, index, stop)
        if source == _INVALID or last - first != 1:
            break
        if (strings[first] if source == _IN_STRINGS else data[first]) != _SPACE:
            break
        index += length
    return index


@inlined
def copy_escaped(source: Bytes, first: int, last: int, escape: bool, out: Bytes, used: int) -> int:
    """Copy bytes to ``out``, each ▁ as a blank where ``escape``; return where they end."""
    while first < last:
        byte = source[first]
        if escape and byte == 0xE2 and first + 2 < last and source[first + 1] == 0x96 and source[first + 2] == 0x81:
            out[used] = _SPACE
            first += 3
        else:
            out[used] = byte
            first += 1
        used += 1
    return used


@inlined
def begins_with_blank(data: Bytes, index: int, stop: int) -> bool:
    """Return whether a blank or ▁ stands at ``index``."""
    if data[index] == _SPACE:
        return True
    return index + 2 < stop and data[index] == 0xE2 and data[index + 1] == 0x96 and data[index + 2] == 0x81


@kernel
def normalise(
    data: Bytes, begins: Longs, ends: Longs, units: UInts, strings: Bytes, symbols: Ints, ascii: Bytes, longest: int,
    dummy: bool, collapse: bool, escape: bool, suffix: bool, prefix_once: bool,
    out: Bytes, out_begins: Longs, out_ends: Longs, position: Longs,
) -> int:  # fmt: skip
    """Normalise documents from ``position[0]`` on into ``out``; return 1 if it is too short for the next one, else 0.

    ascii: uint8 (256,), COPY, BLANK or SEARCH. longest: bytes of the longest replacement or user-defined symbol.
    position: [document, bytes of ``out`` in use], in and out.
    """
    for document in range(position[0], len(begins)):
        start = used = position[1]
        index, stop = begins[document], ends[document]
        if collapse:
            index = skip_blanks(units, strings, symbols, data, index, stop)
        if index < stop:
            if dummy and not suffix and not (prefix_once and begins_with_blank(data, index, stop)):
                if used >= len(out):
                    return 1
                out[used] = _SPACE
                used += 1
            after_blank = collapse
            while index < stop:
                if used + longest + 5 > len(out):
                    return 1
                # Bytes that stay or become blanks, without a branch for each. The last one before a byte from 0x80
                # on is taken back: the two together may be a key.
                run = min(stop, index + len(out) - used - longest - 4)
                used_before, blank_before = used, after_blank
                taken = index
                while index < run and ascii[data[index]] < SEARCH:
                    used_before, blank_before = used, after_blank
                    byte = data[index]
                    blank = ascii[byte] == BLANK
                    out[used] = _SPACE if blank else byte
                    used += 0 if blank and after_blank else 1
                    after_blank = blank and collapse
                    index += 1
                if index == stop:
                    break
                if index > taken:
                    if data[index] < 0x80:
                        if ascii[data[index]] < SEARCH:
                            continue
                    else:
                        index -= 1
                        used, after_blank = used_before, blank_before
                length, source, first, last = next_prefix(units, strings, symbols, data, index, stop)
                index += length
                if source == _INVALID:
                    out[used], out[used + 1], out[used + 2] = 0xEF, 0xBF, 0xBD
                    used += 3
                    after_blank = False
                    continue
                replacement = strings if source == _IN_STRINGS else data
                while after_blank and first < last and replacement[first] == _SPACE:
                    first += 1
                if first < last:
                    used = copy_escaped(replacement, first, last, escape, out, used)
                    after_blank = collapse and replacement[last - 1] == _SPACE
            if collapse:
                while used > start and out[used - 1] == _SPACE:
                    used -= 1
            if dummy and suffix:
                if used >= len(out):
                    return 1
                out[used] = _SPACE
                used += 1
        out_begins[document], out_ends[document] = start, used
        position[0], position[1] = document + 1, used
    return 0


@kernel
def compile_map(
    keys: Bytes, offsets: Longs, values: Ints, units: UInts, bases: Bytes, stack: Longs, labels: Longs
) -> int:
    """Build the trie of a character map from sorted, distinct keys; return how many nodes are in use, -1 if it is too
    short.

    units: (nodes,), all UNUSED_UNIT. bases: uint8 (nodes,), zero: which offsets are taken. stack: (4 * (keys + 2),),
    labels: (2 * 258,), scratch. Nodes of two parents never share an offset, so that a label tells whose child it is.
    """
    nodes = len(units)
    top = 0
    stack[0], stack[1], stack[2], stack[3] = 0, len(values), 0, 0  # first key, last key, depth, node
    units[0] = 0
    used, first_free = 1, 1
    while top >= 0:
        at = 4 * top
        first, last, depth, node = stack[at], stack[at + 1], stack[at + 2], stack[at + 3]
        top -= 1
        ends = offsets[first] + depth == offsets[first + 1]
        if ends:
            labels[0], labels[1] = 0, first
        children = list_labels(keys, offsets, first + ends, last, depth, labels, np.int64(ends))
        while first_free < nodes and units[first_free] != UNUSED_UNIT:
            first_free += 1
        place = first_free
        tried = place
        base = np.int64(0)
        free = False
        while not free:
            base = place ^ labels[0]
            if (base | 255) >= nodes:
                return -1
            free = bases[base] == 0 and base != node  # an offset of 0 would lead back to the node
            for child in range(children):
                free = free and units[base ^ labels[2 * child]] == UNUSED_UNIT
            place += 1
        if place - tried > CROWDED:
            first_free = place - 1
        bases[base] = 1
        units[node] |= np.uint32((node ^ base) << 10)
        if ends:
            units[node] |= np.uint32(0x100)
        for child in range(children):
            label = labels[2 * child]
            place = base ^ label
            used = max(used, place + 1)
            if child == 0 and ends:
                units[place] = np.uint32(values[first]) | np.uint32(0x80000000)
                continue
            units[place] = np.uint32(label)
            top += 1
            at = 4 * top
            stack[at], stack[at + 1] = labels[2 * child + 1], labels[2 * child + 3]
            stack[at + 2], stack[at + 3] = depth + 1, place
    return used
