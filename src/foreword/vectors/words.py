"""The words of word vectors, as bytes in one buffer, and the index of each; and their character n-grams.

A million words open without creating a million strings. Saved vectors include a hash table of their words, mapped as it
is. Without one, a single word is found by its length and its bytes, in milliseconds; the table is built only when many
are looked up.

Character n-grams give a vector to a word that was never seen (fastText). ``apple`` with n = 3 has the n-grams ``<ap app
ppl ple le>``. Each is hashed to one of a fixed number of buckets, and a bucket is a row of a matrix; n-grams that fall
into the same bucket share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypedDict

import numpy as np

from foreword.arrays import Array, Bools, Bytes, Floats, Ints, Longs, frozen
from foreword.errors import SettingError
from foreword.storage.joined import decoded, joined
from foreword.vectors.kernels_words import buckets_of_words, fill_table, find_words, hash_bytes, rows_for

ESCAPE = "surrogateescape"

FEW = 64
"""Lookups without a table: it costs as much as two hundred of them."""

SMALL = 10_000
"""Up to this many words the table is built at once."""


class Words:
    """Words in one buffer: word i is ``data[offsets[i]:offsets[i + 1]]``. A word that occurs twice has its first index.

    table: the hash table of ``vectors/kernels_words.py``, if it was saved.
    """

    def __init__(self, data: Bytes, offsets: Longs, table: Ints | None = None) -> None:
        self.data = data
        self.offsets = offsets
        self._lookups = 0
        if table is not None:
            self.__dict__["table"] = table

    @classmethod
    def of(cls, words: Iterable[str | bytes]) -> Self:
        """Join words in one buffer."""
        return cls(*joined([as_bytes(word) for word in words]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def word(self, index: int) -> str:
        """Return a word as a string."""
        return bytes(self.data[self.offsets[index] : self.offsets[index + 1]]).decode("utf-8", ESCAPE)

    @cached_property
    def all(self) -> list[str]:
        """All words as strings."""
        return decoded(self.data, self.offsets, ESCAPE)

    def indices(self, words: Sequence[str]) -> Longs:
        """Return the first index of each word, -1 for an unknown one."""
        encoded = [as_bytes(word) for word in words]
        self._lookups += len(encoded)
        if not self.has_table and self._lookups <= FEW and len(self) > SMALL:
            return np.array([self._search(word) for word in encoded], np.int64)
        asked, ends = joined(encoded)
        found = np.empty(len(encoded), np.int64)
        find_words(frozen(asked), frozen(ends), frozen(self.data), frozen(self.offsets), frozen(self.table), found)
        return found

    @property
    def has_table(self) -> bool:
        """Whether the hash table has been built or loaded."""
        return "table" in self.__dict__

    def _search(self, word: bytes) -> int:
        """Find a word by its length, then byte by byte."""
        left = np.flatnonzero(np.diff(self.offsets) == len(word))
        for position, byte in enumerate(word):
            left = left[self.data[self.offsets[left] + position] == byte]
        return int(left[0]) if len(left) else -1

    @cached_property
    def table(self) -> Ints:
        """The hash table: the index of each row's word + 1."""
        table = np.zeros(rows_for(len(self)), np.int32)
        fill_table(frozen(self.data), frozen(self.offsets), table)
        return table


def as_bytes(word: str | bytes) -> bytes:
    """Encode a word as UTF-8, or as the bytes that it was read from."""
    if isinstance(word, bytes):
        return word
    try:
        return word.encode("utf-8", ESCAPE)
    except UnicodeEncodeError:  # half of a surrogate pair, which no file holds
        return word.encode("utf-8", "surrogatepass")


# Subwords


class SubwordSettings(TypedDict, total=False):
    """Character n-grams of ``min_n`` to ``max_n`` characters (0 and 0: none), hashed to ``buckets`` rows."""

    min_n: int
    max_n: int
    buckets: int


def ngram_lengths(min_n: int = 3, max_n: int = 6, buckets: int = 2_000_000) -> tuple[int, int, int]:
    """Return the settings of character n-grams, by default fastText's."""
    return min_n, max_n, buckets


def fasttext_hash(text: str | bytes) -> int:
    """Return fastText's 32-bit FNV-1a hash, with its signed bytes."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", ESCAPE)
    return int(hash_bytes(np.frombuffer(data, np.uint8), 0, len(data)))


def hashed_ngrams(data: Bytes, offsets: Longs, least: int, most: int, buckets: int) -> tuple[Ints, Longs]:
    """Return the buckets of the n-grams of every word in one array, and where each word's begin."""
    check_ngrams(least, most, buckets)
    starts = np.zeros(len(offsets), np.int64)
    if most == 0 or buckets == 0:
        return np.empty(0, np.int32), starts
    out = np.empty(int((np.diff(offsets) + 2).sum()) * (most - least + 1), np.int32)
    used = buckets_of_words(data, offsets, least, most, buckets, out, starts[1:])
    return out[:used].copy(), starts


def check_ngrams(least: int, most: int, buckets: int) -> None:
    """Raise a SettingError unless n-grams of these lengths can be hashed to this many buckets."""
    if not 0 <= least <= most <= 1000 or (most and not least) or not 0 <= buckets < 1 << 31:
        raise SettingError(
            f"n-grams of {least} to {most} characters in {buckets} buckets: expected 1 <= shortest <= longest"
        )


@dataclass(frozen=True, slots=True)
class SubwordTable:
    """Vectors of character n-grams, by bucket.

    matrix: float32 (rows, d), or float16, or int8 with ``scales`` (rows,), the factor of each row.
    used: int32 (rows,), rising, the bucket of each row, or None if every bucket has a row.
    """

    matrix: Array
    least: int
    most: int
    buckets: int
    used: Ints | None = None
    scales: Floats | None = None

    def rows(self, word: str) -> Longs:
        """Return the rows of a word's n-grams; those in a bucket without a row are left out."""
        data = np.frombuffer(word.encode("utf-8", ESCAPE), np.uint8)
        buckets, _ = hashed_ngrams(data, np.array([0, len(data)]), self.least, self.most, self.buckets)
        rows, known = self.rows_of(buckets)
        return rows[known]

    def rows_of(self, buckets: Ints) -> tuple[Longs, Bools]:
        """Return the row of each bucket, and whether it has one."""
        if self.used is None:
            return buckets.astype(np.int64), np.ones(len(buckets), bool)
        if not len(self.used):
            return np.zeros(len(buckets), np.int64), np.zeros(len(buckets), bool)
        rows = np.minimum(np.searchsorted(self.used, buckets), len(self.used) - 1)
        return rows.astype(np.int64), self.used[rows] == buckets

    def vector(self, word: str) -> Floats | None:
        """Return the mean of the rows of a word's n-grams; None if there are none."""
        rows = self.rows(word)
        if not len(rows):
            return None
        parts = self.matrix[rows] if self.scales is None else self.matrix[rows] * self.scales[rows, None]
        mean: Floats = parts.mean(axis=0, dtype=np.float32)
        return mean
