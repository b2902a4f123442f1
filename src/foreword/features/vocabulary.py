"""From numbers in the order they came to columns in alphabetical order, and back from a saved vocabulary to numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreword.arrays import Bools, Ints, Longs
from foreword.errors import InputError, SettingError
from foreword.features.counting import Tally
from foreword.features.cutting import Pieces
from foreword.features.kernels_terms import alphabetical, spell
from foreword.features.numbering import TermNumbers
from foreword.features.terms import Terms


@dataclass(frozen=True)
class Vocabulary:
    """What was learnt: terms in alphabetical order, one a column.

    documents: int64 (terms,), in how many of the ``seen`` documents each stands; counts: how often it came in all.
    """

    terms: Terms
    documents: Longs
    counts: Longs
    seen: int

    def check(self) -> None:
        """Raise a ValueError unless everything fits together, as what was read from a file may not."""
        self.terms.check()
        for array in (self.documents, self.counts):
            if array.dtype != np.int64 or array.shape != (len(self.terms),):
                raise ValueError(f"there should be {len(self.terms)} 64-bit counts, one for each term")
        if (self.documents < 1).any() or (self.documents > self.seen).any() or (self.counts < self.documents).any():
            raise ValueError("the counts of the terms do not fit together")


@dataclass(frozen=True)
class Keep:
    """Which terms become columns; the settings of ``BagOfWords``. kind: the numbers in which counts are compared."""

    min_documents: int | float
    max_documents: int | float
    max_size: int | None
    binary: bool
    kind: np.dtype[Any]

    def chosen(self, documents: Longs, counts: Longs, seen: int) -> Longs:
        """The places of what is kept, in the same order."""
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


def choose(numbers: TermNumbers, tallies: Sequence[Tally], seen: int, keep: Keep) -> tuple[Vocabulary, list[Ints]]:
    """The vocabulary, and the column of each number at each level, -1 if it has none."""
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
    """Numbers for these terms, and the column of each; runs of more than one word have a blank between the words."""
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
        raise ValueError("a term stands there twice")
    return numbers, columns


def _columns(terms: Longs, numbers: Ints, ending: Bools, size: int) -> Ints:
    columns = np.full(size, -1, np.int32)
    columns[numbers[ending]] = terms[ending]
    return columns


def tallies_of(vocabulary: Vocabulary, columns: Sequence[Ints]) -> list[Tally]:
    """What was counted, as far as the vocabulary has kept it."""
    tallies = [Tally() for _ in columns]
    for tally, places in zip(tallies, columns, strict=True):
        documents, counts = (
            np.where(places < 0, 0, kept[places]) for kept in (vocabulary.documents, vocabulary.counts)
        )
        tally.restore(documents, counts)
    return tallies


class _Tree:
    """All numbers of all levels in one row, the levels one after another. A run of words hangs on the run without its
    last word: parents[node] is that, or -1; words[node] is the last word.
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
        """All nodes in the order of their spelling.

        The blank between words comes before any character of a word, so runs are ordered as their words are, one
        after the other: (a, b) before (a b). Level by level every node is placed after the one it hangs on, and among
        those that hang there by its last word. Only control characters, which are below the blank, break this rule.
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
        lengths = np.diff(self.starts)[self.words]
        for first, last in zip(self.firsts[1:-1], self.firsts[2:], strict=True):
            lengths[first:last] += 1 + lengths[self.parents[first:last]]
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[nodes])))
        data = np.empty(offsets[-1], np.uint8)
        spell(self.arena, self.starts, self.parents, self.words, nodes, offsets, data)
        return Terms(data, offsets)
