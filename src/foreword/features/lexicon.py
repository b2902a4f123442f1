"""What a bag of words remembers: the terms it has seen (``Lexicon``), or only how full its columns are
(``HashedColumns``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from foreword.arrays import Ints, Longs
from foreword.features.counting import Entries, Rows, Tally, entries_of
from foreword.features.cutting import Cutting
from foreword.features.numbering import HashNumbers, TermNumbers
from foreword.features.texts import Texts
from foreword.features.vocabulary import Keep, Vocabulary, choose, numbers_of, tallies_of
from foreword.protocols import Counts


class Memory(Protocol):
    """Both of them. width: columns; seen: documents; documents: int64 (width,), how many had something there."""

    @property
    def width(self) -> int: ...
    @property
    def seen(self) -> int: ...
    @property
    def documents(self) -> Longs: ...
    def learn(self, texts: Texts) -> None: ...  # add what is in the texts
    def learn_rows(self, texts: Texts) -> Counts: ...  # the same, and the rows of these texts
    def rows(self, texts: Texts) -> Counts: ...  # int64 CSR (documents, width); learns nothing
    def settle(self) -> None: ...  # learning is over, until learn is called again


class Learning(NamedTuple):
    """Everything that was seen: the terms, and level by level how often each came; and how many documents."""

    numbers: TermNumbers
    tallies: list[Tally]
    seen: int


class Lexicon:
    """Terms that grow while it learns, and a vocabulary that is chosen from them when somebody asks for it."""

    def __init__(self, cutting: Cutting, keep: Keep) -> None:
        self.cutting = cutting
        self.keep = keep
        self._learning: Learning | None = None
        self._vocabulary: Vocabulary | None = None
        self._lookup: tuple[TermNumbers, list[Ints]] | None = None  # numbers of terms, and columns of numbers

    @property
    def vocabulary(self) -> Vocabulary:
        if self._vocabulary is None:
            numbers, tallies, seen = self._learnt()
            self._vocabulary, columns = choose(numbers, tallies, seen, self.keep)
            self._lookup = numbers, columns
        return self._vocabulary

    @property
    def width(self) -> int:
        return len(self.vocabulary.terms)

    @property
    def seen(self) -> int:
        return self._learning.seen if self._learning else self.vocabulary.seen

    @property
    def documents(self) -> Longs:
        return self.vocabulary.documents

    def learn(self, texts: Texts) -> None:
        for _ in self._learn(texts):
            pass

    def learn_rows(self, texts: Texts) -> Counts:
        rows = Rows()
        for block in self._learn(texts):
            rows.add(block)
        return rows.matrix(self._found()[1], self.width)

    def rows(self, texts: Texts) -> Counts:
        numbers, columns = self._found()
        rows = Rows()
        for block in entries_of(texts, self.cutting, numbers, [Tally() for _ in columns], grow=False):
            rows.add(block)
        return rows.matrix(columns, self.width)

    def restore(self, vocabulary: Vocabulary) -> None:
        """Take a vocabulary from a file; a ValueError if it is none."""
        vocabulary.check()
        self._lookup = numbers_of(vocabulary.terms, *self.cutting.runs)
        self._vocabulary = vocabulary

    def settle(self) -> None:
        """From now on only the vocabulary counts; terms that are not in it are forgotten."""
        size = self.width
        self._learning = None
        if self._lookup and sum(self._lookup[0].sizes) > size:
            self._lookup = None  # it will be made again, smaller

    def __getstate__(self) -> dict[str, object]:
        """For pickling: what can be made again is left out."""
        return {**vars(self), "_lookup": None} if self._vocabulary and not self._learning else vars(self)

    def _learn(self, texts: Texts) -> Iterator[list[Entries]]:
        numbers, tallies, seen = self._learning = self._learnt()
        self._vocabulary = self._lookup = None
        for block in entries_of(texts, self.cutting, numbers, tallies, grow=True):
            seen += len(block[0].row_ends)
            self._learning = Learning(numbers, tallies, seen)
            yield block

    def _learnt(self) -> Learning:
        """What was learnt so far, or what is left of it in the vocabulary, or nothing."""
        if self._learning:
            return self._learning
        if self._vocabulary:
            numbers, columns = self._found()
            return Learning(numbers, tallies_of(self._vocabulary, columns), self._vocabulary.seen)
        numbers = TermNumbers(*self.cutting.runs)
        return Learning(numbers, [Tally() for _ in numbers.sizes], 0)

    def _found(self) -> tuple[TermNumbers, list[Ints]]:
        terms = self.vocabulary.terms
        if self._lookup is None:
            self._lookup = numbers_of(terms, *self.cutting.runs)
        return self._lookup


class HashedColumns:
    """No terms: each has the column that its hash says, and only how many documents had something there is kept."""

    def __init__(self, cutting: Cutting, columns: int, signed: bool) -> None:
        self.cutting = cutting
        self.numbers = HashNumbers(*cutting.runs, columns, signed)
        self.tally = Tally(signed)
        self.seen = 0

    @property
    def width(self) -> int:
        return self.numbers.columns

    @property
    def documents(self) -> Longs:
        return self.tally.documents(self.width)

    def learn(self, texts: Texts) -> None:
        for block in self._entries(texts, self.tally):
            self.seen += len(block[0].row_ends)

    def learn_rows(self, texts: Texts) -> Counts:
        rows = self._rows(texts, self.tally)
        self.seen += rows.shape[0]
        return rows

    def rows(self, texts: Texts) -> Counts:
        return self._rows(texts, Tally(self.numbers.signed))

    def restore(self, documents: Longs, seen: int) -> None:
        """Take counts from a file; a ValueError if they are none."""
        if documents.dtype != np.int64 or documents.shape != (self.width,):
            raise ValueError(f"there should be {self.width} 64-bit counts, one for each column")
        if (documents < 0).any() or (documents > seen).any():
            raise ValueError("a column cannot be in fewer than 0 documents, or in more than there were")
        self.tally.restore(documents, documents)
        self.seen = seen

    def settle(self) -> None:
        """There is nothing that could be left out."""

    def _entries(self, texts: Texts, tally: Tally) -> Iterator[list[Entries]]:
        return entries_of(texts, self.cutting, self.numbers, [tally], grow=False)

    def _rows(self, texts: Texts, tally: Tally) -> Counts:
        rows = Rows()
        for block in self._entries(texts, tally):
            rows.add(block)
        return rows.matrix([np.zeros(0, np.int32)], self.width)
