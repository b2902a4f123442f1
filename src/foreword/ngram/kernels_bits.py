"""Numbers in as few bits as they need: packed arrays, and Elias-Fano lists of rising numbers.

Elias-Fano (Elias, 1974) keeps n rising numbers below u in about n (2 + log2(u / n)) bits: the low bits of each are
packed as they are, the high bits are said by where the ones stand in a bit string, in which number i with high part h
sets bit h + i. Number i is found by finding the i-th one, from the nearest of the places noted every 128 ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Bytes, Longs, ULongs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import load_unaligned, lowest_one, ones

EVERY = 128
SPARE = 8
"""Bytes behind a packed array, so that eight can be loaded wherever a number begins."""


@inlined
def read_bits(data: Bytes, start: int, place: int, width: int) -> int:
    """Number ``place`` of those of ``width`` (0 to 57) bits that begin at byte ``start``."""
    bit = place * width
    word = load_unaligned(data, start + (bit >> 3)) >> np.uint64(bit & 7)
    return np.int64(word & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)))


@kernel
def _pack(values: NDArray[np.integer], every: int, width: int, out: Bytes) -> None:
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for place in range(len(values) // every):
        bit = place * width
        value = (np.uint64(values[place * every]) & mask) << np.uint64(bit & 7)
        byte = bit >> 3
        while value != np.uint64(0):
            out[byte] |= np.uint8(value & np.uint64(0xFF))
            value >>= np.uint64(8)
            byte += 1


def packed_bytes(count: int, width: int) -> int:
    """How many bytes ``count`` numbers of ``width`` bits take, the spare ones included."""
    return (count * width + 7) // 8 + SPARE


def pack_bits(values: NDArray[np.integer], width: int, out: Bytes, *, every: int = 1) -> None:
    """The lower ``width`` bits (up to 56) of the numbers, or of each ``every``-th, one after another.

    out: uint8 (packed_bytes(count, width),).
    """
    out[:] = 0
    _pack(values, every, width, out)


def low_bits(count: int, universe: int) -> int:
    """How many bits of each number are kept as they are."""
    return max(0, (universe // max(1, count)).bit_length() - 1)


def high_words(count: int, universe: int) -> int:
    """How many 64-bit words the bit string takes."""
    return (count + (universe >> low_bits(count, universe))) // 64 + 1


@kernel
def _set_highs(values: Longs, low: int, highs: ULongs, samples: Longs) -> None:
    for place in range(len(values)):
        bit = (values[place] >> low) + place
        highs[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
        if place % EVERY == 0:
            samples[place // EVERY] = bit


def pack_rising(values: Longs, highs: ULongs, lows: Bytes, samples: Longs) -> None:
    """Elias-Fano: the bit string, the low bits, and where every 128th one stands, into arrays of the right sizes."""
    low = low_bits(len(values), int(values[-1]))
    highs[:] = 0
    _set_highs(values, low, highs, samples)
    pack_bits(values, low, lows)


@inlined
def next_one(highs: ULongs, first: int, last: int, bit: int) -> int:
    """The place of the first set bit from ``bit`` on, in the words from ``first`` to ``last``; the end if none."""
    word = first + (bit >> 6)
    if word >= last:
        return (last - first) << 6
    held = highs[word] >> np.uint64(bit & 63) << np.uint64(bit & 63)
    while held == np.uint64(0):
        word += 1
        if word >= last:
            return (last - first) << 6
        held = highs[word]
    return ((word - first) << 6) + lowest_one(held)


@inlined
def find_one(highs: ULongs, first: int, last: int, samples: Longs, sample: int, place: int) -> int:
    """The place of one number ``place``; damaged data gives a wrong place, never one outside the words."""
    bit = samples[sample + place // EVERY]
    missing = place % EVERY
    word = first + (bit >> 6)
    if bit < 0 or word >= last:
        return (last - first) << 6
    held = highs[word] >> np.uint64(bit & 63) << np.uint64(bit & 63)
    while True:
        here = ones(held)
        if here > missing:
            break
        missing -= here
        word += 1
        if word >= last:
            return (last - first) << 6
        held = highs[word]
    for _ in range(missing):
        held &= held - np.uint64(1)
    return ((word - first) << 6) + lowest_one(held)
