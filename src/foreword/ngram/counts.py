"""Counting n-grams of all orders: one sort of all positions of the text, in memory or in parts that fit a limit.

With a limit only working memory is in memory. The text is a mapped file; positions are sorted one range of first words
at a time (and of second words where one first word is too frequent, and so on), and since such ranges follow each other
in sorted order, the n-grams found are appended to a file. Where an n-gram needs something of any other, everything is
read once for each range that fits. No step depends on the limit otherwise, so the result is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.ngram import kernels_count as kernels
from foreword.ngram.kernels_count import (
    COUNT,
    KEY_BITS,
    PARENT,
    TALLY,
    WORD,
    count_words_before,
    find_extension,
    first_extension,
    last_in_suffix_order,
    list_extensions,
    number_by_word_before,
    rank_by_first_place,
    replace_counts,
    write_suffixes,
)
from foreword.protocols import Meter
from foreword.storage.scratch import GrowingArray, Scratch
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

BATCH = 1 << 15
"""Positions that are sorted together, at least: their records fit the second-level cache."""


@dataclass(slots=True)
class Order:
    """All k-grams of one order, sorted by their words.

    grams: int32 (n, 4); the columns WORD, PARENT (the (k-1)-gram without the last word) and COUNT, and one that is
    free.
    suffixes: int32 (n,), the (k-1)-gram without the first word; continuations: int32 (n,), how many different words
    stand before each, empty at the highest order. below: how many (k-1)-grams there are.
    """

    grams: Ints
    suffixes: Ints
    continuations: Ints
    below: int

    def __len__(self) -> int:
        return len(self.grams)

    @property
    def words(self) -> Ints:
        """The last word of each, int32 (n,)."""
        return self.grams[:, WORD]

    @property
    def parents(self) -> Ints:
        """The number of the (k-1)-gram without the last word, int32 (n,)."""
        return self.grams[:, PARENT]

    @property
    def counts(self) -> Ints:
        """How often each was seen, or what smoothing has replaced that by, int32 (n,)."""
        return self.grams[:, COUNT]

    @property
    def children(self) -> Longs:
        """int64 (below + 1,): the k-grams that extend (k-1)-gram g are ``children[g]`` to ``children[g + 1]``."""
        children = np.empty(self.below + 1, np.int64)
        list_extensions(self.grams, children)
        return children


@dataclass(slots=True)
class Text:
    """A corpus as ``kernels_count`` reads it.

    words: int32 (length + order,), ids + 1, ``stop`` before each document and behind all; counts: int64 (words,).
    last: int64 (stop + 2,), how many documents end in each word; nothing stands behind those.
    """

    words: Ints
    length: int
    stop: int
    order: int
    counts: Longs
    last: Longs

    @classmethod
    def of(cls, corpus: Corpus, order: int, scratch: Scratch) -> Text:
        """Write the documents of a corpus one after another and count its words."""
        corpus.check_ids()
        length, stop = len(corpus.ids) + len(corpus), len(corpus.vocab) + 1
        words = scratch.empty(length + order, np.int32)
        counts = np.zeros(len(corpus.vocab), np.int64)
        kernels.write_text(corpus.ids, corpus.offsets, stop, words, counts)
        filled = corpus.offsets[1:][np.diff(corpus.offsets) > 0]
        last = np.bincount(np.asarray(corpus.ids[filled - 1], np.int64) + 1, minlength=stop + 2)
        return cls(words, length, stop, order, counts, last)

    def last_in_kenlms_sort(self, end: int) -> list[int]:
        """Return the ids of the n-gram, of the highest order but one or shorter from ``<s>`` on, that KenLM's sort has
        last.
        """
        ranks = np.full(self.stop + 1, -1, np.int32)
        text = self.words[: self.length]
        word = rank_by_first_place(text, ranks, end + 1)
        index = last_in_suffix_order(text, ranks, word, self.order)
        found = text[max(0, index - self.order + 2) : index + 1].tolist()
        beginnings = [at for at, each in enumerate(found) if each == self.stop]
        return [each - 1 for each in found[max(beginnings, default=0) :]]


@dataclass(frozen=True, slots=True)
class Tabulated:
    """All that probabilities are estimated from.

    unigrams: int64 (words,), how often each word was seen; orders: the n-grams from order two on.
    last: the n-gram that KenLM's sort has last, see ``Text.last_in_kenlms_sort``; empty where there are only unigrams.
    """

    vocab: Vocab
    unigrams: Longs
    orders: list[Order]
    last: list[int]


def tabulate(
    corpus: Corpus, order: int, scratch: Scratch, meter: Meter | None = None, *, last: bool = True
) -> Tabulated:  # fmt: skip
    """Count the n-grams of a corpus. last: whether to find the one that KenLM's sort has last."""
    text = Text.of(corpus, order, scratch)
    orders = list_orders(text, scratch, meter)
    found = text.last_in_kenlms_sort(corpus.vocab.end) if orders and last else []
    scratch.release(text.words)
    return Tabulated(corpus.vocab, text.counts, orders, found)


def count_ngrams(
    corpus: Corpus, order: int, *, scratch: Scratch | None = None, meter: Meter | None = None
) -> tuple[Longs, list[Order]]:
    """Return the count of each word, int64 (words,), and the n-grams of orders 2 to ``order``."""
    scratch = scratch or Scratch()
    text = Text.of(corpus, order, scratch)
    return text.counts, list_orders(text, scratch, meter)


def list_orders(text: Text, scratch: Scratch, meter: Meter | None = None) -> list[Order]:
    """List the n-grams of orders from two on, with their suffixes and continuation counts."""
    if text.order == 1:
        return []
    listed = (_ListerOnDisk if scratch.on_disk else _Lister)(text, scratch, meter).listed()
    tables = listed.tables
    begins = np.zeros(text.order + 1, np.int64)
    begins[3:] = np.cumsum([len(grams) for grams in tables[:-1]])
    suffixes = scratch.empty(sum(map(len, tables)), np.int32)
    suffixes[: len(tables[0])] = tables[0][:, WORD]
    continuations = scratch.empty(sum(map(len, tables[:-1])), np.int32)
    continuations[:] = 0
    if text.order > 2:
        _link(text, listed, begins, suffixes, continuations, scratch, meter)
    scratch.release(listed.before)
    scratch.release(listed.marks)
    sizes = [text.stop, *map(len, tables)]
    parts = [slice(int(begins[k]), int(begins[k]) + len(grams)) for k, grams in enumerate(tables, 2)]
    return [
        Order(grams, suffixes[part], continuations[part], below)
        for grams, part, below in zip(tables, parts, sizes, strict=False)
    ]


def _link(
    text: Text,
    listed: Listed,
    begins: Longs,
    suffixes: Ints,
    continuations: Ints,
    scratch: Scratch,
    meter: Meter | None,
) -> None:
    each = text.order - 2
    own = np.full(text.order + 1, -1, np.int64)
    # The last position of a document has no word after it that could pass numbers on, and is sorted before the others.
    filled = listed.begins + text.last[: len(listed.begins)]
    for first, last in scratch.ranges(text.length, 4 * each):
        numbers = scratch.buffer((last - first) * each, np.int32)
        latest = np.full(text.order + 1, -1, np.int64)
        number_by_word_before(
            listed.before, listed.marks, text.order, filled.copy(), first, last, latest, numbers, begins, continuations
        )
        write_suffixes(listed.marks[first:last], text.order, own, numbers, begins, suffixes)
        scratch.release(numbers)
        if meter is not None:
            meter("linking", last, text.length)


def count_continuations(vocab_size: int, orders: list[Order]) -> Longs:
    """Replace the counts of all but the highest order by the number of different words before each n-gram.

    What begins with ``<s>`` keeps its count, for nothing stands before it. Returns the unigrams' new counts.
    """
    after_start = vocab_size  # the number of <s> as a context; n-grams that begin with it come last
    for each in orders[:-1]:
        after_start = first_extension(each.grams, after_start)
        replace_counts(each.grams, each.continuations[:after_start])
    unigrams = np.zeros(vocab_size, np.int32)
    count_words_before(orders[0].suffixes, unigrams)
    return unigrams.astype(np.int64)


def find_ngram(orders: list[Order], words: list[int]) -> int:
    """Return the number of an n-gram that exists."""
    number = words[0]
    for counted, word in zip(orders, words[1:], strict=False):
        number = find_extension(counted.grams, number, word)
    return number


# Sorting and listing


@dataclass(frozen=True, slots=True)
class Round:
    """One pass of sorting: by the words from ``skip`` on after a position, packed into two numbers."""

    skip: int
    upper: int
    lower: int


def plan_rounds(words: int, bits: int, first_bits: int, place_bits: int) -> list[Round]:
    """Plan how to sort by ``words`` words of ``bits`` bits after a first one of ``first_bits``; the last words come
    first.
    """
    upper, lower = (KEY_BITS - first_bits) // bits, (KEY_BITS - place_bits) // bits
    taken = min(words, upper + lower)
    most = range(max(0, taken - lower), min(taken, upper) + 1)
    best = min(most, key=lambda part: _passes(first_bits + part * bits) + _passes((taken - part) * bits))
    rounds = [Round(0, best, taken - best)]
    while taken < words:
        more = min(words - taken, KEY_BITS // bits)
        rounds.append(Round(taken, more, 0))
        taken += more
    return rounds[::-1]


def _passes(bits: int) -> int:
    return -(-bits // kernels.DIGIT)


@dataclass(slots=True)
class Listed:
    """The result of sorting.

    tables: of each order from two on, as in ``Order``. begins: int64 (stop + 2,), where the positions of each word
    begin in sorted order; before, marks: of all positions in that order, see ``kernels_count``.
    """

    tables: list[Ints]
    begins: Longs
    before: Ints
    marks: Bytes


class _Lister:
    """Sorter of batches of positions that lists their n-grams, all in memory."""

    def __init__(self, text: Text, scratch: Scratch, meter: Meter | None) -> None:
        self.text = text
        self.scratch = scratch
        self.meter = meter
        self.bits = int(text.stop - 1).bit_length()
        self.latest = np.zeros(text.order + 1, np.int32)
        self.sizes = np.zeros(text.order + 1, np.int64)
        self.bases = np.zeros(text.order + 1, np.int64)
        self.tally = np.empty(TALLY, np.int32)

    def listed(self) -> Listed:
        """Sort all positions and list the n-grams of every order."""
        text = self.text
        begins = np.zeros(text.stop + 2, np.int64)
        positions = self.scratch.empty(text.length, np.int32)
        kernels.sort_by_word(text.words, begins, positions)
        marks = self.scratch.empty(text.length, np.uint8)
        self.allocate(max(BATCH, int(np.diff(begins).max())), text.length)
        for first, last in cut(begins, BATCH):
            here = slice(int(begins[first]), int(begins[last]))
            self.list(positions[here], first, last, marks[here])
            if self.meter is not None:
                self.meter("counting", here.stop, text.length)
        for buffer in (self.records, self.spare, self.before, self.sorted):
            self.scratch.release(buffer)
        tables = [self.grams[k - 2, : self.sizes[k]] for k in range(2, text.order + 1)]
        return Listed(tables, begins, positions, marks)

    def allocate(self, batch: int, rows: int) -> None:
        """Allocate buffers for batches of ``batch`` positions and tables of ``rows`` n-grams."""
        self.records, self.spare = (self.scratch.buffer(2 * batch, np.int64) for _ in range(2))
        self.before, self.sorted = (self.scratch.buffer(batch, np.int32) for _ in range(2))
        self.grams = self.scratch.discardable((self.text.order - 1, rows, 4), np.int32)

    def list(self, positions: Ints, first: int, last: int, marks: Bytes) -> None:
        """Sort positions that begin with words from ``first`` up to ``last``, and list their n-grams.

        positions: out, the words before them, in sorted order; marks: out.
        """
        text, size = self.text, len(positions)
        in_order = self.sorted[:size]
        first_bits, place_bits = (last - first - 1).bit_length(), max(1, (size - 1).bit_length())
        for turn in plan_rounds(text.order - 1, self.bits, first_bits, place_bits):
            is_last = turn.skip == 0
            kernels.pack_keys(
                text.words, text.stop, positions, first, is_last, turn.skip, turn.upper, turn.lower,
                self.bits, place_bits, self.records, self.before,
            )  # fmt: skip
            upper_bits = turn.upper * self.bits + first_bits * is_last
            if kernels.sort_records(self.records, self.spare, size, 0, 0, upper_bits, self.tally):
                self.records, self.spare = self.spare, self.records
            kernels.sort_alike(self.records, self.spare, size, place_bits, turn.lower * self.bits, self.tally)
            kernels.take_in_order(positions, self.records, (1 << place_bits) - 1, in_order)
            positions[:] = in_order
        kernels.list_ngrams(
            text.words, text.stop, in_order, self.records, first, turn.upper, turn.lower, self.bits, place_bits,
            self.latest, self.sizes, self.bases, self.grams, marks,
        )  # fmt: skip
        kernels.take_in_order(self.before, self.records, (1 << place_bits) - 1, positions)


class _ListerOnDisk(_Lister):
    """The same in ranges that fit into memory, with the n-grams in files."""

    def listed(self) -> Listed:
        """Sort all positions and list the n-grams of every order."""
        text, order = self.text, self.text.order
        files = {k: self.scratch.growing(4, np.int32) for k in range(2, order + 1)}
        before, all_marks = self.scratch.growing(1, np.int32), self.scratch.growing(1, np.uint8)
        # A position with its records, the word before, sorted position and marks, and a row for each order.
        batch = self.scratch.fits(4 + 32 + 4 + 4 + 1 + 16 * (order - 1), least=256)
        batch = min(batch, text.length)
        self.allocate(batch, batch + 1)
        self.collected = np.empty(batch, np.int32)
        marks = np.empty(batch, np.uint8)
        for positions, first, last in self._batches(np.empty(0, np.int32)):
            self.list(positions, first, last, marks[: len(positions)])
            before.append(positions)
            all_marks.append(marks[: len(positions)])
            self._flush(files, keep=1)
            if self.meter is not None:
                self.meter("counting", before.rows, text.length)
        self._flush(files, keep=0)
        tables = [files[k].finish() for k in range(2, order + 1)]
        counts = np.zeros(text.stop + 1, np.int64)
        kernels.count_next(text.words, text.length, text.stop, np.empty(0, np.int32), counts)
        begins = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        return Listed(tables, begins, before.finish().reshape(-1), all_marks.finish().reshape(-1))

    def _batches(self, prefix: Ints) -> Iterator[tuple[Ints, int, int]]:
        """Yield the positions that begin with ``prefix``, one range of next words at a time, with the range of first
        words.
        """
        text = self.text
        counts = np.zeros(text.stop + 1, np.int64)
        kernels.count_next(text.words, text.length, text.stop, prefix, counts)
        begins = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        room = len(self.collected)
        for first, last in cut(begins, room):
            is_alike = first == 0 or len(prefix) + 1 == text.order
            if begins[last] - begins[first] > room and not is_alike:
                yield from self._batches(np.append(prefix, np.int32(first)))
                continue
            for positions in self._collected(prefix, first, last):
                words = (int(prefix[0]), int(prefix[0]) + 1) if len(prefix) else (first, last)
                yield positions, *words

    def _collected(self, prefix: Ints, first: int, last: int) -> Iterator[Ints]:
        """Yield the positions of a range, in several parts if they are too many, which only equal n-grams can be."""
        text, found, start = self.text, np.zeros(1, np.int64), 0
        while start < text.length:
            start = kernels.collect(
                text.words, text.length, text.stop, prefix, first, last, start, self.collected, found
            )
            if found[0]:
                yield self.collected[: found[0]]

    def _flush(self, files: dict[int, GrowingArray[np.int32]], keep: int) -> None:
        """Write n-grams to their files, except for the last of each order, which the next batch may continue."""
        for k, file in files.items():
            size = int(self.sizes[k])
            done = max(0, size - keep)
            grams = self.grams[k - 2]
            file.append(grams[:done])
            grams[: size - done] = grams[done:size].copy()
            self.bases[k] += done
            self.sizes[k] = size - done


def cut(begins: Longs, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of groups with at most ``most`` members in all, or of a single larger group; empty ones are left
    out.

    begins: int64 (n + 1,), rising; group i has ``begins[i + 1] - begins[i]`` members.
    """
    first, end = 0, len(begins) - 1
    while first < end:
        last = int(np.searchsorted(begins, begins[first] + most, side="right")) - 1
        last = min(max(last, first + 1), end)
        if begins[last] > begins[first]:
            yield first, last
        first = last
