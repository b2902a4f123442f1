"""The random numbers that vectors begin with.

A number is a function of the seed, its row and its column, so threads may fill rows in any order and get the same ones:
SplitMix64 (Steele et al. 2014) of the row, then Wellons' 32-bit mix ("lowbias32") of the column, sixteen at a time.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Floats
from foreword.native.jit import inlined, kernel

_ROW = np.uint64(0x9E3779B97F4A7C15)
_COLUMN = np.uint32(0x9E3779B9)
_ONE_OF = np.float32(1 / (1 << 23))


@inlined
def mixed_column(word: np.uint32) -> np.uint32:
    word = np.uint32(word ^ np.uint32(word >> np.uint32(16)))
    word = np.uint32(word * np.uint32(0x7FEB352D))
    word = np.uint32(word ^ np.uint32(word >> np.uint32(15)))
    word = np.uint32(word * np.uint32(0x846CA68B))
    return np.uint32(word ^ np.uint32(word >> np.uint32(16)))


@kernel
def fill_rows(
    matrix: Floats, stride: int, first: int, last: int, dimensions: int, reach: np.float32, seed: np.uint64
) -> None:
    """Rows ``first`` to ``last`` of a flat matrix become numbers from −reach to reach; what pads them is left alone."""
    for row in range(first, last):
        mixed = seed + np.uint64(row + 1) * _ROW
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        low, high = np.uint32(mixed), np.uint32(mixed >> np.uint64(32))
        for column in range(dimensions):
            bits = np.uint32(mixed_column(np.uint32(low + np.uint32(column) * _COLUMN)) ^ high)
            number = np.float32(np.int32(bits >> np.uint32(8))) * _ONE_OF - np.float32(1.0)
            matrix[row * stride + column] = number * reach
