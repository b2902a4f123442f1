"""Texts to rows of counts, the fast twin of ``plain.py``.

Small blocks of documents pass through four steps, each a kernel over buffers that stay in the cache:

    fold    the text in lower case                           cut     where its words, or runs of characters, are
    number  each gets a number, new ones as they come        gather  the distinct numbers of each document, and how many

Only at the end are the terms put in alphabetical order, numbers become columns, and rows a matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from foreword.arrays import Ints, Longs
from foreword.features import kernels_bag as kernels
from foreword.features.cutting import Cutter, Cutting, Pieces, room
from foreword.features.numbering import longer
from foreword.features.texts import Texts, document_blocks
from foreword.protocols import Counts


class Numbers(Protocol):
    """What gives terms their numbers, level by level: ``TermNumbers`` or ``HashNumbers``.

    sizes: how many numbers each level has. signed: -1 - number stands for a number that counts down.
    """

    signed: bool

    @property
    def sizes(self) -> list[int]: ...
    def number(self, pieces: Pieces, *, grow: bool) -> Iterator[tuple[int, Ints, Longs]]: ...


class Entries(NamedTuple):
    """What is not zero in the rows of a block: numbers at one level, their counts, and where each row ends."""

    level: int
    numbers: Ints
    counts: Ints
    row_ends: Longs


def entries_of(
    texts: Texts, cutting: Cutting, numbers: Numbers, tallies: Sequence[Tally], *, grow: bool
) -> Iterator[list[Entries]]:
    """For each block of documents the entries of all levels; they lie in buffers that are used again.

    tallies: one for each level. grow: new terms get numbers; otherwise they are left out.
    """
    cutter = Cutter(cutting)
    for block in document_blocks(texts, cutting.lowercase):
        pieces = cutter.cut(block)
        yield [
            Entries(level, *tallies[level].gather(given, ends, numbers.sizes[level]))
            for level, given, ends in numbers.number(pieces, grow=grow)
        ]


class Tally:
    """What is known of each number: in how many documents it stood, and how often it came in all."""

    def __init__(self, signed: bool = False) -> None:
        self.signed = signed
        self.base = 1
        self.tallies = np.zeros(0, np.int64)  # three for each number, side by side: they share a cache line
        self.numbers, self.counts = np.empty(0, np.int32), np.empty(0, np.int32)

    def gather(self, numbers: Ints, ends: Longs, size: int) -> tuple[Ints, Ints, Longs]:
        """Each document's distinct numbers, how often each came, and where the document ends in them.

        size: how many numbers there are.
        """
        if len(self.tallies) < 3 * size:
            self.tallies = longer(self.tallies, 3 * (size + size // 2 if len(self.tallies) else size))
        self.numbers, self.counts = room(self.numbers, len(numbers)), room(self.counts, len(numbers))
        row_ends = np.empty(len(ends), np.int64)
        written = kernels.gather_rows(
            numbers, ends, self.signed, self.base, self.tallies, self.numbers, self.counts, row_ends
        )
        self.base += written
        return self.numbers[:written], self.counts[:written], row_ends

    def documents(self, size: int) -> Longs:
        """int64 (size,); zero for numbers that did not come."""
        return longer(self.tallies[1 : 3 * size : 3], size)

    def totals(self, size: int) -> Longs:
        return longer(self.tallies[2 : 3 * size : 3], size)

    def restore(self, documents: Longs, totals: Longs) -> None:
        self.tallies = np.stack((np.zeros(len(documents), np.int64), documents, totals), axis=1).ravel()


class Rows:
    """Rows that are kept until it is known which column each number gets."""

    def __init__(self) -> None:
        self.blocks: list[list[Entries]] = []

    def add(self, block: Sequence[Entries]) -> None:
        self.blocks.append(
            [entries._replace(numbers=entries.numbers.copy(), counts=entries.counts.copy()) for entries in block]
        )

    def matrix(self, columns: Sequence[Ints], width: int) -> Counts:
        """CSR int64 (documents, width), columns rising in each row.

        columns[level][number]: -1 for what has none; an empty array where numbers are columns.
        """
        most = sum(len(entries.numbers) for block in self.blocks for entries in block)
        indices, data, row_sizes = np.empty(most, np.int32), np.empty(most, np.int64), [np.zeros(0, np.int64)]
        low, top = np.zeros((width >> 6) + 1, np.uint64), np.zeros((width >> 12) + 1, np.uint64)
        values, packed = np.zeros(width, np.int32), np.empty(0, np.uint64)
        written = 0
        for block in self.blocks:
            ends = np.sum([entries.row_ends for entries in block], axis=0)
            starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
            stops, packed = starts.copy(), room(packed, ends[-1])
            for level, numbers, counts, row_ends in block:
                kernels.add_entries(numbers, counts, row_ends, columns[level], stops, packed)
            written = kernels.sort_rows(packed, starts, stops, low, top, values, indices, data, written)
            row_sizes.append(stops - starts)
        if written < most:  # some had no column
            indices, data = indices[:written].copy(), data[:written].copy()
        return _matrix(data, indices, _offsets(np.concatenate(row_sizes)), width)


def _matrix(data: Longs, indices: Ints, indptr: Longs, width: int) -> Counts:
    kind = np.int32 if indptr[-1] <= np.iinfo(np.int32).max else np.int64  # SciPy wants one kind for both
    matrix = csr_matrix((data, indices.astype(kind, copy=False), indptr.astype(kind)), shape=(len(indptr) - 1, width))
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def _offsets(sizes: Longs) -> Longs:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
