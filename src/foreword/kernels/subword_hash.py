"""Character n-grams of words, hashed as fastText hashes them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foreword.kernels.jit import inlined, kernel

Bytes = NDArray[np.uint8]

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
def byte_at(data: Bytes, start: int, length: int, place: int) -> np.uint8:
    """A byte of ``<word>``."""
    if place == 0:
        return np.uint8(FIRST)
    if place > length:
        return np.uint8(LAST)
    return data[start + place - 1]


@inlined
def is_inside(byte: np.uint8) -> bool:
    """Whether a byte continues a UTF-8 character."""
    return (byte & 0xC0) == 0x80


@inlined
def word_buckets(
    data: Bytes, start: int, stop: int, least: int, most: int, buckets: int, out: NDArray[np.int32], at: int
) -> int:
    """Write the buckets of the n-grams of ``data[start:stop]`` from ``out[at]`` on, as far as there is room; where
    writing ended. An n-gram of one character is left out at either end, where it would be a mark.
    """
    length = stop - start
    whole = length + 2
    for first in range(whole):
        if is_inside(byte_at(data, start, length, first)):
            continue
        hashed = _BASIS
        place, characters = first, 0
        while place < whole and characters < most:
            hashed = hash_byte(hashed, byte_at(data, start, length, place))
            place += 1
            while place < whole and is_inside(byte_at(data, start, length, place)):
                hashed = hash_byte(hashed, byte_at(data, start, length, place))
                place += 1
            characters += 1
            if characters >= least and not (characters == 1 and (first == 0 or place == whole)) and at < len(out):
                out[at] = np.int32(np.uint64(hashed) % np.uint64(buckets))
                at += 1
    return at


@kernel
def buckets_of_words(
    data: Bytes, offsets: NDArray[np.int64], least: int, most: int, buckets: int, out: NDArray[np.int32],
    ends: NDArray[np.int64],
) -> int:  # fmt: skip
    """The buckets of many words, one after another; ``ends[i]`` says where those of word i stop."""
    at = 0
    for word in range(len(offsets) - 1):
        at = word_buckets(data, offsets[word], offsets[word + 1], least, most, buckets, out, at)
        ends[word] = at
    return at
