"""Character n-grams of words, hashed as fastText hashes them."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.native.jit import inlined, kernel

FIRST, LAST = 0x3C, 0x3E  # < and >, which mark where a word begins and ends
_BASIS = np.uint32(2166136261)
_PRIME = np.uint32(16777619)
_SIGN = np.uint32(0xFFFFFF00)


@inlined
def hash_byte(hashed: np.uint32, byte: np.uint8) -> np.uint32:
    """A step of FNV-1a. fastText's bytes are signed, so those above 127 flip the upper 24 bits too; files in use
    depend on it.
    """
    wide = np.uint32(byte)
    if byte >= 128:
        wide |= _SIGN
    return np.uint32((hashed ^ wide) * _PRIME)


@kernel
def hash_bytes(data: Bytes, start: int, stop: int) -> np.uint32:
    hashed = _BASIS
    for place in range(start, stop):
        hashed = hash_byte(hashed, data[place])
    return hashed


@inlined
def is_inside(byte: np.uint8) -> bool:
    """Whether a byte continues a UTF-8 character."""
    return (byte & 0xC0) == 0x80


@inlined
def hash_character(hashed: np.uint32, data: Bytes, place: int, start: int, stop: int) -> np.uint32:
    """The hash after the character at ``place`` of ``<word>``, the word being ``data[start:stop]``."""
    if place < start:
        return hash_byte(hashed, np.uint8(FIRST))
    if place >= stop:
        return hash_byte(hashed, np.uint8(LAST))
    hashed = hash_byte(hashed, data[place])
    place += 1
    while place < stop and is_inside(data[place]):
        hashed = hash_byte(hashed, data[place])
        place += 1
    return hashed


@inlined
def next_character(data: Bytes, place: int, start: int, stop: int) -> int:
    place += 1
    while start <= place < stop and is_inside(data[place]):
        place += 1
    return place


@inlined
def word_buckets(data: Bytes, start: int, stop: int, least: int, most: int, buckets: int, out: Ints, at: int) -> int:
    """Write the buckets of the n-grams of ``data[start:stop]`` from ``out[at]`` on, as far as there is room; where
    writing ended. An n-gram of one character is left out at either end, where it would be a mark.
    """
    divisor = np.uint32(buckets)
    first = start - 1
    while first <= stop:
        hashed = _BASIS
        place, characters = first, 0
        while place <= stop and characters < most:
            hashed = hash_character(hashed, data, place, start, stop)
            place = next_character(data, place, start, stop)
            characters += 1
            if characters >= least and not (characters == 1 and (first < start or place > stop)) and at < len(out):
                out[at] = np.int32(hashed % divisor)
                at += 1
        first = next_character(data, first, start, stop)
    return at


@kernel
def buckets_of_words(
    data: Bytes, offsets: Longs, least: int, most: int, buckets: int, out: Ints,
    ends: Longs,
) -> int:  # fmt: skip
    """The buckets of many words, one after another; ``ends[i]`` says where those of word i stop."""
    at = 0
    for word in range(len(offsets) - 1):
        at = word_buckets(data, offsets[word], offsets[word + 1], least, most, buckets, out, at)
        ends[word] = at
    return at
