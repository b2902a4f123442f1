"""Vectors for parts of words, so that a word nobody has seen has a vector too (fastText, rows E09–E12).

``apple`` with n = 3 has the parts ``<ap app ppl ple le>``. Each is hashed to one of a fixed number of buckets, and a
bucket is a row of a matrix; parts that fall into the same bucket share it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foreword.arrays import Array, Bools, Bytes, Floats, Ints, Longs
from foreword.errors import SettingError
from foreword.vectors.kernels_subwords import buckets_of_words, hash_bytes

ESCAPE = "surrogateescape"


def character_ngrams(word: str, least: int = 3, most: int = 6) -> list[str]:
    """The parts of ``<word>``, shorter ones first at each place; the slow twin of the kernel."""
    marked = f"<{word}>"
    found = []
    for first in range(len(marked)):
        for length in range(max(1, least), most + 1):
            last = first + length
            lone_mark = length == 1 and (first == 0 or last == len(marked))
            if last <= len(marked) and not lone_mark:
                found.append(marked[first:last])
    return found


def fasttext_hash(text: str | bytes) -> int:
    """FastText's 32-bit FNV-1a, its signed bytes included."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", ESCAPE)
    return int(hash_bytes(np.frombuffer(data, np.uint8), 0, len(data)))


def hashed_ngrams(data: Bytes, offsets: Longs, least: int, most: int, buckets: int) -> tuple[Ints, Longs]:
    """The buckets of the parts of every word, and where each word's begin: rows ``offsets`` of one flat array."""
    check_lengths(least, most, buckets)
    starts = np.zeros(len(offsets), np.int64)
    if most == 0 or buckets == 0:
        return np.empty(0, np.int32), starts
    room = int((np.diff(offsets) + 2).sum()) * (most - least + 1)
    out = np.empty(room, np.int32)
    used = buckets_of_words(data, offsets, least, most, buckets, out, starts[1:])
    return out[:used].copy(), starts


def check_lengths(least: int, most: int, buckets: int) -> None:
    if not 0 <= least <= most <= 1000 or (most and not least) or not 0 <= buckets < 1 << 31:
        raise SettingError(f"n-grams of {least} to {most} characters in {buckets} buckets make no sense")


@dataclass(frozen=True, slots=True)
class SubwordTable:
    """The rows of the buckets.

    matrix: float32 (rows, d), or float16, or int8 with ``scales`` (rows,), what each row is multiplied by.
    used: int32 (rows,), rising, the bucket that each row is of, or None where every bucket has its row.
    """

    matrix: Array
    least: int
    most: int
    buckets: int
    used: Ints | None = None
    scales: Floats | None = None

    def rows(self, word: str) -> Longs:
        """The rows of a word's parts; parts in a bucket that has no row are left out."""
        data = np.frombuffer(word.encode("utf-8", ESCAPE), np.uint8)
        buckets, _ = hashed_ngrams(data, np.array([0, len(data)]), self.least, self.most, self.buckets)
        places, known = self.places(buckets)
        return places[known]

    def places(self, buckets: Ints) -> tuple[Longs, Bools]:
        """The row of each bucket, and whether it has one."""
        if self.used is None:
            return buckets.astype(np.int64), np.ones(len(buckets), bool)
        if not len(self.used):
            return np.zeros(len(buckets), np.int64), np.zeros(len(buckets), bool)
        places = np.minimum(np.searchsorted(self.used, buckets), len(self.used) - 1)
        return places.astype(np.int64), self.used[places] == buckets

    def vector(self, word: str) -> Floats | None:
        """The mean of the rows of a word's parts; None where it has none."""
        rows = self.rows(word)
        if not len(rows):
            return None
        parts = self.matrix[rows] if self.scales is None else self.matrix[rows] * self.scales[rows, None]
        mean: Floats = parts.mean(axis=0, dtype=np.float32)
        return mean
