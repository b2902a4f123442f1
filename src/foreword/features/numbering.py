"""Numbers for terms, given as they come: one table for strings, one for each length of a run of words.

A run of words is known by two numbers: that of the run without its last word, and that of its last word. So no text is
compared or stored for it, and a run of any length is found in as many steps as it has words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Ints, Longs
from foreword.features.cutting import Pieces
from foreword.features.kernels_bag import following, hash_runs, number_pairs, number_spans, rehash_pairs
from foreword.tokens.strings import BATCH, empty_rows, rehash

Scalar = TypeVar("Scalar", bound=np.generic)


class StringNumbers:
    """Distinct strings, numbered from 0: the table of ``tokens/strings.py``."""

    def __init__(self) -> None:
        self.size = 0
        self.slots = empty_rows(1 << 12)
        self.arena = np.empty(1 << 15, np.uint8)
        self.starts = np.zeros(1 << 11, np.int64)

    def number(self, pieces: Pieces, out: Ints, *, grow: bool) -> None:
        """The number of each piece to ``out``; -1 for a new one unless the table may grow."""
        position = np.array([0, self.size], np.int64)
        text = pieces.text.view()
        text.flags.writeable = False  # as that of a file is, so that the kernel is compiled once for both
        rows, keys = np.empty(BATCH, np.int64), np.empty(4 * BATCH, np.uint64)
        while need := number_spans(
            text, pieces.spans, pieces.total, grow, self.slots, self.arena, self.starts,
            out, rows, keys, position,
        ):  # fmt: skip
            self._make_room(int(position[1]), need)
        self.size = int(position[1]) if grow else self.size

    def _make_room(self, size: int, length: int) -> None:
        if size * 8 + 8 > len(self.slots):
            larger = empty_rows(len(self.slots) // 2)
            rehash(self.slots, larger)
            self.slots = larger
        if size + 2 > len(self.starts):
            self.starts = longer(self.starts, 2 * len(self.starts))
        if self.starts[size] + length > len(self.arena):
            self.arena = longer(self.arena, 2 * len(self.arena) + length)


class PairNumbers:
    """Distinct pairs of numbers, numbered from 0. members: int32 (2 * pairs,), left and right of each."""

    def __init__(self) -> None:
        self.size = 0
        self.slots = _free_pairs(1 << 12)
        self._members = np.empty(1 << 12, np.int32)

    @property
    def members(self) -> Ints:
        return self._members[: 2 * self.size]

    def number(self, lefts: Ints, rights: Ints, count: int, out: Ints, *, grow: bool) -> None:
        """The same for pairs; a pair with a -1 in it has no number. ``out`` may be ``lefts``."""
        position = np.array([0, self.size], np.int64)
        keys = np.empty(BATCH, np.int64)
        while number_pairs(lefts, rights, count, grow, self.slots, self._members, out, keys, position):
            larger = _free_pairs(len(self.slots))
            rehash_pairs(self.slots, larger)
            self.slots = larger
            self._members = longer(self._members, len(larger) // 2)
        self.size = int(position[1]) if grow else self.size


def _free_pairs(rows: int) -> Longs:
    slots = np.empty(2 * rows, np.int64)  # not np.zeros: see empty_rows
    slots.fill(0)
    return slots


def longer(array: NDArray[Scalar], length: int) -> NDArray[Scalar]:
    """The array with zeros after it."""
    longer = np.zeros(length, array.dtype)
    longer[: len(array)] = array
    return longer


class TermNumbers:
    """All terms of some texts: pieces as they were cut (level 0), and at level k runs of k + 1 of them.

    shortest, longest: how many pieces a term may have; shorter runs are numbered too, but are not given.
    """

    signed = False

    def __init__(self, shortest: int, longest: int) -> None:
        self.shortest = shortest
        self.strings = StringNumbers()
        self.runs = [PairNumbers() for _ in range(longest - 1)]

    @property
    def sizes(self) -> list[int]:
        """How many numbers each level has given."""
        return [self.strings.size, *(level.size for level in self.runs)]

    def number(self, pieces: Pieces, *, grow: bool) -> Iterator[tuple[int, Ints, Longs]]:
        """For each level its numbers in the order of the text, and where each document ends in them."""
        words = np.empty(pieces.total, np.int32)
        self.strings.number(pieces, words, grow=grow)
        if self.shortest == 1:
            yield 0, words, pieces.ends
        before, last = words, np.empty(pieces.total if self.runs else 0, np.int32)
        for level, runs in enumerate(self.runs, 1):
            following(words, pieces.ends, level, last)
            numbers = np.empty(pieces.total, np.int32) if level == 1 else before
            runs.number(before, last, pieces.total, numbers, grow=grow)
            if level + 1 >= self.shortest:
                yield level, numbers, pieces.ends
            before = numbers


class HashNumbers:
    """No table at all: a term's number is its hash, and that is its column (``hashed`` in ``plain.py``)."""

    def __init__(self, shortest: int, longest: int, columns: int, signed: bool) -> None:
        self.shortest = shortest
        self.longest = longest
        self.columns = columns
        self.signed = signed

    @property
    def sizes(self) -> list[int]:
        return [self.columns]

    def number(self, pieces: Pieces, *, grow: bool) -> Iterator[tuple[int, Ints, Longs]]:
        numbers = np.empty(pieces.total * (self.longest - self.shortest + 1), np.int32)
        ends = np.empty(len(pieces.ends), np.int64)
        hash_runs(
            pieces.text, pieces.spans, pieces.ends, self.shortest, self.longest, self.columns, self.signed,
            numbers, ends,
        )  # fmt: skip
        yield 0, numbers, ends
