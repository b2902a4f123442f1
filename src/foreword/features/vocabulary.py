"""The vocabulary of a bag of words: terms in alphabetical order, one per column, learnt from counts and saved.

``Lexicon`` grows while texts are read and chooses a vocabulary from what it has seen; ``HashedColumns`` has no terms
and only counts in how many documents each column was used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from foreword.arrays import Bools, Bytes, Ints, Longs
from foreword.errors import InputError, SettingError
from foreword.features.counting import (
    Cutting,
    Entries,
    HashNumbers,
    PendingRows,
    Pieces,
    TermNumbers,
    TermStatistics,
    Texts,
    entries_of,
)
from foreword.features.kernels_bag import alphabetical, spell
from foreword.protocols import Counts
from foreword.storage.joined import check_joined, decoded
from foreword.text.unicode import is_utf8


@dataclass(frozen=True)
class Terms:
    """Distinct strings as UTF-8 in one buffer, so that millions of terms do not become millions of Python objects.

    Term i is ``data[offsets[i]:offsets[i + 1]]``. data: uint8 (bytes,); offsets: int64 (terms + 1,).
    """

    data: Bytes
    offsets: Longs

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> str:
        return bytes(self.data[self.offsets[number] : self.offsets[number + 1]]).decode()

    @cached_property
    def strings(self) -> list[str]:
        """All terms as strings, decoded on first use."""
        return decoded(self.data, self.offsets)

    @cached_property
    def columns(self) -> dict[str, int]:
        """{term: column}, built on first use."""
        return {term: column for column, term in enumerate(self.strings)}

    def check(self) -> None:
        """Raise a ValueError unless the arrays fit together, as those read from a file may not."""
        check_joined(self.data, self.offsets, "terms")
        if (np.diff(self.offsets) == 0).any():
            raise ValueError("a term is empty")
        if not is_utf8(self.data) or ((self.data[self.offsets[:-1]] & 0xC0) == 0x80).any():
            raise ValueError("the terms are not valid UTF-8")


@dataclass(frozen=True)
class Vocabulary:
    """Learnt terms in alphabetical order, one per column.

    documents: int64 (terms,), in how many of the ``seen`` documents each occurs; counts: how often it occurs in all.
    """

    terms: Terms
    documents: Longs
    counts: Longs
    seen: int

    def check(self) -> None:
        """Raise a ValueError unless everything fits together, as arrays read from a file may not."""
        self.terms.check()
        for array in (self.documents, self.counts):
            if array.dtype != np.int64 or array.shape != (len(self.terms),):
                raise ValueError(f"there should be {len(self.terms)} 64-bit counts, one for each term")
        if (self.documents < 1).any() or (self.documents > self.seen).any() or (self.counts < self.documents).any():
            raise ValueError("the counts of the terms do not fit together")


@dataclass(frozen=True)
class Keep:
    """Which terms become columns; the settings of ``BagOfWords``. kind: the dtype in which counts are compared."""

    min_documents: int | float
    max_documents: int | float
    max_size: int | None
    binary: bool
    kind: np.dtype[Any]

    def chosen(self, documents: Longs, counts: Longs, seen: int) -> Longs:
        """Return the indices of the terms to keep, rising."""
        low = self.min_documents * seen if isinstance(self.min_documents, float) else self.min_documents
        high = self.max_documents * seen if isinstance(self.max_documents, float) else self.max_documents
        if not low <= high:
            raise SettingError(
                f"min_documents={self.min_documents} is more than max_documents={self.max_documents} for {seen} texts"
            )
        kept = np.flatnonzero((documents >= low) & (documents <= high))
        if self.max_size is not None and len(kept) > self.max_size:
            weights = (documents if self.binary else counts)[kept].astype(self.kind)
            # Not a stable sort, because scikit-learn's is not: among equally frequent terms the same ones are kept.
            kept = np.sort(kept[np.argsort(-weights)[: self.max_size]])
        return kept


def choose(
    numbers: TermNumbers, tallies: Sequence[TermStatistics], seen: int, keep: Keep
) -> tuple[Vocabulary, list[Ints]]:
    """Return the vocabulary, and the column of each number at each level, -1 if it has none."""
    tree = _Tree(numbers)
    order = tree.alphabetical()
    order = order[order >= tree.firsts[numbers.shortest - 1]]
    if len(order) == 0:
        raise InputError(f"no term in {seen} texts: are they empty, or is ngrams too long for them?")
    sized = list(zip(tallies, numbers.sizes, strict=True))
    documents = np.concatenate([tally.documents(size) for tally, size in sized])
    counts = np.concatenate([tally.totals(size) for tally, size in sized])
    order = order[keep.chosen(documents[order], counts[order], seen)]
    if len(order) == 0:
        raise SettingError(
            f"min_documents={keep.min_documents}, max_documents={keep.max_documents} leave none of the terms"
        )
    columns = np.full(len(tree.parents), -1, np.int32)
    columns[order] = np.arange(len(order))
    vocabulary = Vocabulary(tree.spelled(order), documents[order], counts[order], seen)
    return vocabulary, np.split(columns, tree.firsts[1:-1])


def numbers_of(terms: Terms, shortest: int, longest: int) -> tuple[TermNumbers, list[Ints]]:
    """Return numbers for these terms, and the column of each; the words of a run are separated by a blank."""
    numbers = TermNumbers(shortest, longest)
    blanks = np.flatnonzero(terms.data == 0x20) if longest > 1 else np.zeros(0, np.int64)
    starts = np.sort(np.concatenate((terms.offsets[:-1], blanks + 1)))
    stops = np.sort(np.concatenate((terms.offsets[1:], blanks)))
    firsts = np.searchsorted(starts, terms.offsets)  # the first word of each term
    lengths = np.diff(firsts)
    if (starts >= stops).any() or ((lengths < shortest) | (lengths > longest)).any():
        raise ValueError(f"the terms should be runs of {shortest} to {longest} words")
    words = np.empty(len(starts), np.int32)
    spans = np.stack((starts, stops), axis=1).ravel()
    numbers.strings.number(Pieces(terms.data, spans, firsts[1:], len(starts)), words, grow=True)
    here, before = np.arange(len(terms)), words[firsts[:-1]]  # the terms that reach this level, and their numbers
    columns = [_columns(here, before, lengths == 1, numbers.strings.size)]
    for level, runs in enumerate(numbers.runs, 1):
        long = lengths[here] > level
        here, before = here[long], before[long].copy()
        runs.number(before, words[firsts[here] + level], len(here), before, grow=True)
        columns.append(_columns(here, before, lengths[here] == level + 1, runs.size))
    if sum(int((level >= 0).sum()) for level in columns) != len(terms):
        raise ValueError("a term occurs twice")
    return numbers, columns


def _columns(terms: Longs, numbers: Ints, ending: Bools, size: int) -> Ints:
    columns = np.full(size, -1, np.int32)
    columns[numbers[ending]] = terms[ending]
    return columns


def tallies_of(vocabulary: Vocabulary, columns: Sequence[Ints]) -> list[TermStatistics]:
    """Return the statistics that the vocabulary has retained, level by level."""
    tallies = [TermStatistics() for _ in columns]
    for tally, indices in zip(tallies, columns, strict=True):
        documents, counts = (
            np.where(indices < 0, 0, kept[indices]) for kept in (vocabulary.documents, vocabulary.counts)
        )
        tally.restore(documents, counts)
    return tallies


class _Tree:
    """All numbers of all levels as nodes of a tree, the levels one after another. The parent of a run of words is the
    run without its last word: parents[node], -1 at the root; words[node] is the last word.
    """

    def __init__(self, numbers: TermNumbers) -> None:
        self.arena, self.starts = numbers.strings.arena, numbers.strings.starts[: numbers.strings.size + 1]
        self.firsts = [0, *np.cumsum(numbers.sizes).tolist()]  # the first node of each level
        parents, words = [np.full(numbers.sizes[0], -1)], [np.arange(numbers.sizes[0])]
        for first, runs in zip(self.firsts, numbers.runs, strict=False):
            parents.append(runs.members[::2] + np.int64(first))
            words.append(runs.members[1::2].astype(np.int64))
        self.parents, self.words = np.concatenate(parents), np.concatenate(words)

    def alphabetical(self) -> Longs:
        """Return all nodes in alphabetical order of their spelling.

        The blank between words comes before any character of a word, so runs are ordered as their words are, one
        after the other: (a, b) before (a b). Level by level every node comes after its parent, and among its
        siblings by its last word. Only control characters, which are below the blank, break this rule.
        """
        size = len(self.starts) - 1
        if len(self.firsts) > 2 and self.arena[: self.starts[-1]].min(initial=255) < 0x20:
            everything = self.spelled(np.arange(len(self.parents)))
            return alphabetical(everything.data, everything.offsets)
        order = alphabetical(self.arena, self.starts)
        rank = np.empty(len(self.parents), np.int64)
        rank[order] = np.arange(size)
        word_rank = rank[:size].copy()
        for first, last in zip(self.firsts[1:-1], self.firsts[2:], strict=True):
            keys = np.empty(last, np.int64)
            keys[:first] = rank[:first] * (size + 1)
            keys[first:] = rank[self.parents[first:last]] * (size + 1) + 1 + word_rank[self.words[first:last]]
            order = np.argsort(keys)
            rank[order] = np.arange(last)
        return order

    def spelled(self, nodes: Longs) -> Terms:
        """Return the spelling of some nodes."""
        lengths = np.diff(self.starts)[self.words]
        for first, last in zip(self.firsts[1:-1], self.firsts[2:], strict=True):
            lengths[first:last] += 1 + lengths[self.parents[first:last]]
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[nodes])))
        data = np.empty(offsets[-1], np.uint8)
        spell(self.arena, self.starts, self.parents, self.words, nodes, offsets, data)
        return Terms(data, offsets)


class LearntColumns(Protocol):
    """What a bag has learnt. width: columns; seen: documents; documents: int64 (width,), how many used each column."""

    @property
    def width(self) -> int: ...
    @property
    def seen(self) -> int: ...
    @property
    def documents(self) -> Longs: ...

    def learn(self, texts: Texts) -> None:
        """Learn from texts."""

    def learn_rows(self, texts: Texts) -> Counts:
        """Learn from texts and return their rows."""

    def rows(self, texts: Texts) -> Counts:
        """Return the rows of texts, int64 CSR (documents, width), without learning."""

    def finish(self) -> None:
        """End learning, until ``learn`` is called again."""


class Learning(NamedTuple):
    """Everything seen so far: the terms, the statistics of each level, and the number of documents."""

    numbers: TermNumbers
    tallies: list[TermStatistics]
    seen: int


class Lexicon:
    """Terms that grow while it learns, and a vocabulary that is chosen from them on demand."""

    def __init__(self, cutting: Cutting, keep: Keep) -> None:
        self.cutting = cutting
        self.keep = keep
        self._learning: Learning | None = None
        self._vocabulary: Vocabulary | None = None
        self._lookup: tuple[TermNumbers, list[Ints]] | None = None  # numbers of terms, and columns of numbers

    @property
    def vocabulary(self) -> Vocabulary:
        """Terms that were learnt, with their columns."""
        if self._vocabulary is None:
            numbers, tallies, seen = self._learnt()
            self._vocabulary, columns = choose(numbers, tallies, seen, self.keep)
            self._lookup = numbers, columns
        return self._vocabulary

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.vocabulary.terms)

    @property
    def seen(self) -> int:
        """Number of documents seen."""
        return self._learning.seen if self._learning else self.vocabulary.seen

    @property
    def documents(self) -> Longs:
        """Number of documents that contain each term."""
        return self.vocabulary.documents

    def learn(self, texts: Texts) -> None:
        """Add the terms of texts."""
        for _ in self._learn(texts):
            pass

    def learn_rows(self, texts: Texts) -> Counts:
        """Add the terms of texts and return the texts' rows."""
        rows = _buffered(self._learn(texts))
        return rows.matrix(self._columns()[1], self.width)

    def rows(self, texts: Texts) -> Counts:
        """Return the rows of texts, int64 CSR (documents, width), without learning."""
        numbers, columns = self._columns()
        tallies = [TermStatistics() for _ in columns]
        rows = _buffered(entries_of(texts, self.cutting, numbers, tallies, grow=False))
        return rows.matrix(columns, self.width)

    def restore(self, vocabulary: Vocabulary) -> None:
        """Take over a saved vocabulary; raise a ValueError if it is malformed."""
        vocabulary.check()
        self._lookup = numbers_of(vocabulary.terms, *self.cutting.runs)
        self._vocabulary = vocabulary

    def finish(self) -> None:
        """Forget all terms that are not in the vocabulary."""
        size = self.width
        self._learning = None
        if self._lookup and sum(self._lookup[0].sizes) > size:
            self._lookup = None  # it will be rebuilt, smaller

    def __getstate__(self) -> dict[str, object]:
        """Leave out what can be rebuilt, for copies and other processes."""
        return {**vars(self), "_lookup": None} if self._vocabulary and not self._learning else vars(self)

    def _learn(self, texts: Texts) -> Iterator[list[Entries]]:
        numbers, tallies, seen = self._learning = self._learnt()
        self._vocabulary = self._lookup = None
        for block in entries_of(texts, self.cutting, numbers, tallies, grow=True):
            seen += len(block[0].row_ends)
            self._learning = Learning(numbers, tallies, seen)
            yield block

    def _learnt(self) -> Learning:
        """Return what was learnt so far, or what the vocabulary has retained of it, or nothing."""
        if self._learning:
            return self._learning
        if self._vocabulary:
            numbers, columns = self._columns()
            return Learning(numbers, tallies_of(self._vocabulary, columns), self._vocabulary.seen)
        numbers = TermNumbers(*self.cutting.runs)
        return Learning(numbers, [TermStatistics() for _ in numbers.sizes], 0)

    def _columns(self) -> tuple[TermNumbers, list[Ints]]:
        """Return the numbers of terms, and the columns of numbers."""
        terms = self.vocabulary.terms
        if self._lookup is None:
            self._lookup = numbers_of(terms, *self.cutting.runs)
        return self._lookup


class HashedColumns:
    """No terms: each has the column that its hash says, and only the documents that used each column are counted."""

    def __init__(self, cutting: Cutting, columns: int, signed: bool) -> None:
        self.cutting = cutting
        self.numbers = HashNumbers(*cutting.runs, columns, signed)
        self.tally = TermStatistics(signed)
        self.seen = 0

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.numbers.columns

    @property
    def documents(self) -> Longs:
        """Number of documents that have a count in each column."""
        return self.tally.documents(self.width)

    def learn(self, texts: Texts) -> None:
        """Count the documents that use each column."""
        for block in self._entries(texts, self.tally):
            self.seen += len(block[0].row_ends)

    def learn_rows(self, texts: Texts) -> Counts:
        """Count the documents that use each column and return the texts' rows."""
        rows = self._rows(texts, self.tally)
        self.seen += rows.shape[0]
        return rows

    def rows(self, texts: Texts) -> Counts:
        """Return the rows of texts, int64 CSR (documents, width), without learning."""
        return self._rows(texts, TermStatistics(self.numbers.signed))

    def restore(self, documents: Longs, seen: int) -> None:
        """Take over saved counts; raise a ValueError if they are malformed."""
        if documents.dtype != np.int64 or documents.shape != (self.width,):
            raise ValueError(f"there should be {self.width} 64-bit counts, one for each column")
        if (documents < 0).any() or (documents > seen).any():
            raise ValueError("a column cannot be in fewer than 0 documents, or in more than there were")
        self.tally.restore(documents, documents)
        self.seen = seen

    def finish(self) -> None:
        """Do nothing: there are no terms to leave out."""

    def _entries(self, texts: Texts, tally: TermStatistics) -> Iterator[list[Entries]]:
        return entries_of(texts, self.cutting, self.numbers, [tally], grow=False)

    def _rows(self, texts: Texts, tally: TermStatistics) -> Counts:
        return _buffered(self._entries(texts, tally)).matrix([np.zeros(0, np.int32)], self.width)


def _buffered(blocks: Iterator[list[Entries]]) -> PendingRows:
    rows = PendingRows()
    for block in blocks:
        rows.add(block)
    return rows
