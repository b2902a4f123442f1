"""An index of every run of tokens in a corpus, of any length: the text and its suffix array.

All occurrences of a run are neighbours in the suffix array, so that counting them, finding them and listing what
follows takes a few binary searches, whatever the length and the corpus. The text begins with ``</s>`` and every
document ends in it, so that ``</s>`` in front of a run stands for the beginning of a document.

An index may have several *segments*, each a text with a suffix array of its own: parts that were appended, other
indexes that are asked as one, or what exceeds the 2³¹ tokens of one suffix array. Counts add up over them.

J. Liu, S. Min, L. Zettlemoyer, Y. Choi and H. Hajishirzi, "Infini-gram: scaling unbounded n-gram language models to a
trillion tokens", COLM 2024.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from foreword.arrays import Array, Bools, Bytes, Ids, Ints, Longs
from foreword.checks import check_corpus, check_ids
from foreword.errors import InputError, SettingError
from foreword.infinigram import kernels_matching as kernels
from foreword.infinigram.chunks import ChunkedSort
from foreword.infinigram.suffixes import suffix_array, token_counts
from foreword.ngram.kernels_query import pack_bits
from foreword.notebook import ShownInNotebook
from foreword.protocols import Meter, Parts
from foreword.storage.atomic import nearest_existing
from foreword.storage.scratch import Scratch
from foreword.tokens.corpus import Corpus, id_type
from foreword.tokens.vocab import Vocab

LONGEST_SEGMENT = (1 << 31) - 2
"""Tokens of a segment: positions are int32, and one token goes in front."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A text and its suffix array.

    text, suffixes: packed, and firsts: int32 (tokens + 1,), as in ``kernels_matching``.
    offsets: int64 (documents + 1,); document i is ``text[offsets[i]:offsets[i + 1]]``.
    """

    text: Bytes
    suffixes: Bytes
    firsts: Ints
    offsets: Longs

    def __post_init__(self) -> None:
        for array in (self.text, self.suffixes, self.firsts):
            array.flags.writeable = False  # as a mapped one is, so that the kernels are compiled once

    @classmethod
    def build(cls, corpus: Corpus, scratch: Scratch, folder: Path | None = None, meter: Meter | None = None) -> Self:
        """Sort the suffixes of a corpus: see ``SuffixIndex.build``."""
        tokens = len(corpus.vocab)
        text, suffixes = sorted_text(corpus, scratch, folder, meter)
        firsts = np.concatenate((np.zeros(1, np.int32), token_counts(text, tokens).cumsum(dtype=np.int32)))
        return cls(
            packed(text, 1, tokens, scratch), packed(suffixes, 0, len(text) - 1, scratch), firsts, corpus.offsets + 1
        )

    @property
    def size(self) -> int:
        """The number of tokens, that in front included."""
        return int(self.firsts[-1])

    def check(self, tokens: int) -> None:
        """Raise a ValueError unless the arrays fit together; text and suffixes, which may be large, are not read."""
        firsts, offsets = self.firsts, self.offsets
        if firsts.dtype != np.int32 or firsts.shape != (tokens + 1,) or (np.diff(firsts) < 0).any():
            raise ValueError("the first suffixes of the tokens do not rise")
        n = self.size
        if firsts[0] != 0 or n < 1:
            raise ValueError("the first suffixes of the tokens do not fit the text")
        for array in (self.text, self.suffixes):
            if array.dtype != np.uint8 or array.ndim != 2 or not LEAST_BITS <= array.shape[1] <= 32:
                raise ValueError("the text or the suffixes are of another type")
            if len(array) != _rows(n):
                raise ValueError("the suffixes do not fit the text")
        if offsets.dtype != np.int64 or offsets.ndim != 1 or (np.diff(offsets) < 1).any():
            raise ValueError("the offsets of the documents do not rise")
        if len(offsets) < 1 or (offsets[0], offsets[-1]) != (1, n):
            raise ValueError("the offsets of the documents do not fit the text")

    def extended(self, tokens: int) -> Segment:
        """Return the segment for a vocabulary that has grown to ``tokens``."""
        more = np.full(tokens + 1 - len(self.firsts), self.firsts[-1], np.int32)
        return replace(self, firsts=np.concatenate((self.firsts, more)))

    def keys(self, ids: Longs) -> Longs:
        """Return the numbers by which ids are sorted in this segment: themselves."""
        return ids

    def ids(self, keys: Longs) -> Longs:
        """Return the ids of such numbers."""
        return keys

    def read(self, begin: int, end: int) -> Longs:
        """Return the ids of a part of the text."""
        return _unpacked(self.text, begin, end) - 1

    def positions(self, low: int, high: int) -> Longs:
        """Return where the suffixes of a range begin, in no order."""
        return _unpacked(self.suffixes, low, high)

    def first_positions(self, lows: Longs, highs: Longs, lengths: Longs) -> Longs:
        """Return where the runs of ranges, of ``lengths`` tokens, occur first; -1 where a range is empty."""
        found = np.empty(len(lows), np.int64)
        kernels.first_positions(self.text, self.suffixes, lows, highs, lengths, found)
        return found

    def occurrences(self, positions: Longs, first: int) -> list[Occurrence]:
        """Return positions of the text as documents and offsets. first: the number of the segment's first document."""
        documents = np.searchsorted(self.offsets, positions, side="right") - 1
        if kernels.any_outside(documents, len(self.offsets) - 1):
            raise InputError("the index is damaged: a suffix is not in its text")
        offsets = positions - self.offsets[documents]
        return [*map(Occurrence, (documents + first).tolist(), offsets.tolist())]

    def find(self, run: Longs) -> tuple[int, int]:
        """Return the range of the suffixes that begin with a run of tokens."""
        if len(run) == 0:
            return 0, self.size
        low, high = kernels.find(self.text, self.suffixes, self.firsts, self.keys(run))
        return low, max(low, high)

    def match(self, query: Longs, borders: Longs) -> Longs:
        """Return where the longest run that ends at each position begins, and its range: see ``kernels.match``.

        Int64 (3, n): begins, lows and highs.
        """
        found = np.empty((3, len(query)), np.int64)
        kernels.match(self.text, self.suffixes, self.firsts, self.keys(query), borders, *found)
        return found

    def next_tokens(self, low: int, high: int, length: int, tokens: int) -> tuple[Longs, Longs]:
        """Return the ids that follow the run of a range, of ``length`` tokens, and how often each does.

        tokens: the number of ids there are.
        """
        if length == 0 and len(self.firsts):
            counts = np.diff(self.firsts).astype(np.int64)
            found = np.flatnonzero(counts)
            return found, counts[found]
        found, counts = np.empty((2, min(high - low, tokens)), np.int64)
        limit = 1 << 8 * self.text.shape[2] if self.text.ndim == 3 else tokens
        batch = np.empty(kernels.BATCH + kernels.STEP, np.int64)
        number = kernels.next_tokens(self.text, self.suffixes, low, high, length, limit, found, counts, batch)
        return self.ids(found[:number]), counts[:number]


def sorted_text(corpus: Corpus, scratch: Scratch, folder: Path | None, meter: Meter | None) -> tuple[Ids, Ints]:
    """Return the ids of a corpus, ``</s>`` in front, and the suffix array; in chunks in ``folder``, if one is given."""
    tokens = len(corpus.vocab)
    text: Ids = scratch.empty(len(corpus.ids) + 1, id_type(tokens))
    text[0], text[1:] = corpus.vocab.end, corpus.ids
    if scratch.memory is not None and folder is not None:
        return text, ChunkedSort(text, tokens, scratch.memory, folder, meter).sorted()
    return text, suffix_array(text, tokens)


def check_text(corpus: Corpus, memory: int | None, folder: Path | None) -> Scratch:
    """Check what an index is built of; return where its arrays go."""
    if (memory is None) != (folder is None):
        raise SettingError("a limit of memory needs a folder for what does not fit, and the other way round")
    check_corpus(corpus)
    if len(corpus.ids) == 0:
        raise InputError("there is nothing to index: the corpus is empty")
    corpus.check_ids()
    return Scratch(memory, None if folder is None else nearest_existing(folder))


PACKED_AT_ONCE = 1 << 20

LEAST_BITS = 8
"""Eight bytes are loaded wherever a number begins, so that the row of zeros at the end must have as many."""


def packed(numbers: Array, plus: int, most: int, scratch: Scratch) -> Bytes:
    """Return numbers, ``plus`` added, in as few bits as ``most`` needs: see ``kernels_matching``."""
    bits = max(LEAST_BITS, most.bit_length())
    rows = scratch.empty((_rows(len(numbers)), bits), np.uint8)
    rows[-1] = 0
    for first in range(0, len(numbers), PACKED_AT_ONCE):
        part = numbers[first : first + PACKED_AT_ONCE].astype(np.int64)
        pack_bits(part + plus, bits, rows[first // 8 : _rows(first + len(part)) - 1].reshape(-1))
    return rows


def _rows(n: int) -> int:
    """Return the number of rows of n packed numbers."""
    return (n + 7) // 8 + 1


def _unpacked(rows: Bytes, begin: int, end: int) -> Longs:
    numbers = np.empty(max(0, min(end, 8 * (len(rows) - 1)) - begin), np.int64)
    kernels.unpack(rows, begin, numbers)
    return numbers


@dataclass(frozen=True, slots=True)
class Matches:
    """For each position of a query, the longest run of its tokens that ends there and occurs in the index.

    begins: int64 (n,), where the run begins; position + 1 if it is empty.
    ranges: int64 (segments, 2, n), its occurrences in the suffix array of each segment.
    """

    begins: Longs
    ranges: Longs

    @property
    def lengths(self) -> Longs:
        """The number of tokens of each run, int64 (n,)."""
        return np.arange(1, len(self.begins) + 1) - self.begins

    @property
    def counts(self) -> Longs:
        """How often each run occurs, int64 (n,)."""
        counts: Longs = (self.ranges[:, 1] - self.ranges[:, 0]).sum(axis=0)
        return counts

    def covered(self, least: int) -> Bools:
        """Return which positions are part of a run of at least ``least`` tokens that occurs: bool (n,)."""
        ends = np.flatnonzero(self.lengths >= least)
        changes = np.bincount(self.begins[ends], minlength=len(self.begins) + 1)
        changes -= np.bincount(ends + 1, minlength=len(changes))
        inside: Bools = changes[:-1].cumsum() > 0
        return inside

    def spans(self, least: int = 1) -> list[tuple[int, int]]:
        """Return the runs of at least ``least`` tokens that no longer run contains, as (begin, end)."""
        ends = np.arange(1, len(self.begins) + 1)
        longest = np.append(self.begins[1:] > self.begins[:-1], True) & (ends - self.begins >= least)
        return list(zip(self.begins[longest].tolist(), ends[longest].tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Where a run of tokens occurs. document: its number, from 0. offset: of the run in the document, in tokens."""

    document: int
    offset: int


@dataclass(frozen=True, slots=True)
class Continuations:
    """What follows a context in the index.

    length: tokens of the context that were matched, its last ones. tokens: int64 (n,), rising; counts: int64 (n,).
    """

    length: int
    tokens: Longs
    counts: Longs

    def likeliest(self, k: int) -> list[tuple[int, int]]:
        """Return the k most frequent tokens with their counts; the lowest ids among equals."""
        order = np.argsort(-self.counts, kind="stable")[:k]
        return list(zip(self.tokens[order].tolist(), self.counts[order].tolist(), strict=True))


class SuffixIndex(ShownInNotebook):
    """An index of every run of tokens in a corpus; runs are arrays of ids."""

    def __init__(self, segments: Sequence[Segment], vocab: Vocab) -> None:
        self.segments = list(segments)
        self.vocab = vocab
        self._firsts = np.cumsum([0, *(len(segment.offsets) - 1 for segment in self.segments)])

    def __repr__(self) -> str:
        return f"SuffixIndex({self.tokens:,} tokens, {len(self):,} documents, {len(self.segments)} segments)"

    def __len__(self) -> int:
        """Return the number of documents."""
        return int(self._firsts[-1])

    @property
    def tokens(self) -> int:
        """The number of tokens, ``</s>`` after each document included."""
        return sum(segment.size - 1 for segment in self.segments)

    @classmethod
    def build(
        cls, corpus: Corpus, *, memory: int | None = None, folder: Path | None = None, meter: Meter | None = None
    ) -> Self:
        """Index a corpus.

        memory: limit of the working memory in bytes; the text and its suffixes are then in files, those of the suffixes
        in ``folder``. A build that was killed resumes there; the caller deletes the folder once the index is saved.
        """
        scratch = check_text(corpus, memory, folder)
        parts = -(-len(corpus.ids) // LONGEST_SEGMENT)
        folders = [None if folder is None else folder / str(number) for number in range(parts)]
        segments = [Segment.build(corpus.shard(n, parts), scratch, own, meter) for n, own in enumerate(folders)]
        return cls(segments, corpus.vocab)

    @classmethod
    def joined(cls, indexes: Sequence[SuffixIndex]) -> Self:
        """Return indexes of one vocabulary as one; their documents are numbered one after another."""
        if any(index.vocab != indexes[0].vocab for index in indexes):
            raise InputError("the indexes must share one vocabulary, but these do not")
        return cls([segment for index in indexes for segment in index.segments], indexes[0].vocab)

    # Queries

    def count(self, run: Ids) -> int:
        """Return how often a run of tokens occurs."""
        run = self._checked(run)
        ranges = [segment.find(run) for segment in self.segments]
        return sum([high - low for low, high in ranges])

    def find(self, run: Ids, limit: int | None = None) -> list[Occurrence]:
        """Return where a run of tokens occurs, the first ``limit`` of it in the order of the text."""
        run = self._checked(run)
        found: list[Occurrence] = []
        for segment, first in zip(self.segments, self._firsts.tolist(), strict=False):
            low, high = segment.find(run)
            positions: Array = segment.positions(low, high)
            left = len(positions) if limit is None else limit - len(found)
            if left < len(positions):  # of a million places the first few, which is far faster than to sort them all
                positions = np.partition(positions, left)[:left]
            found += segment.occurrences(np.sort(positions), first)
        return found

    def find_first(self, matches: Matches, ends: Longs) -> list[Occurrence]:
        """Return where the runs that end at these positions of a query occur first."""
        found: dict[int, Occurrence] = {}
        for segment, first, ranges in zip(self.segments, self._firsts.tolist(), matches.ranges, strict=False):
            lows, highs = ranges[:, ends]
            positions = segment.first_positions(lows, highs, matches.lengths[ends])
            new = [run for run, position in enumerate(positions.tolist()) if position >= 0 and run not in found]
            found |= zip(new, segment.occurrences(positions[new], first), strict=True)
        if len(found) < len(ends):
            raise InputError("the index is damaged: its suffixes are not in order")
        return [found[run] for run in range(len(ends))]

    def document(self, number: int, begin: int = 0, end: int | None = None) -> Longs:
        """Return the ids of a document, without ``</s>``, or of a part of it."""
        if not 0 <= number < len(self):
            raise InputError(f"document {number}: expected 0 to {len(self) - 1}")
        place = int(self._firsts.searchsorted(number, side="right")) - 1
        segment = self.segments[place]
        first, last = segment.offsets[number - self._firsts[place] :][:2].tolist()
        ids = segment.read(first + begin, last - 1 if end is None else min(first + end, last - 1))
        if kernels.any_outside(ids, len(self.vocab)):
            raise InputError(f"the index is damaged: document {number} has a token that is not in the vocabulary")
        return ids

    def match(self, query: Ids, borders: Longs | None = None) -> Matches:
        """Return the longest run that ends at each position of a query and occurs; none crosses one of the borders."""
        query = self._checked(query)
        if borders is None:
            borders = np.array([0, len(query)])
        found = [segment.match(query, borders) for segment in self.segments]
        if len(found) == 1:
            return Matches(found[0][0], found[0][None, 1:])
        together = np.stack(found)
        begins, ranges = together[:, 0].min(axis=0), together[:, 1:]
        ranges *= together[:, :1] == begins  # none where a segment has shorter runs only
        return Matches(begins, ranges)

    def context(self, context: Ids) -> Continuations:
        """Return what follows the longest end of a context that occurs and is followed by anything."""
        context = self._checked(context)
        length, ranges = 0, np.array([[0, segment.size] for segment in self.segments])
        if len(context):
            matches = self.match(context)
            length, ranges = len(context) - int(matches.begins[-1]), matches.ranges[:, :, -1]
        found = self._continuations(length, ranges)
        while length and len(found.tokens) == 0:  # only the last suffix of a text, which ends in </s>
            length -= 1
            tail = context[len(context) - length :]
            ranges = np.array([segment.find(tail) for segment in self.segments])
            found = self._continuations(length, ranges)
        return found

    def _continuations(self, length: int, ranges: Longs) -> Continuations:
        tokens, counts = np.zeros((2, 0), np.int64)
        for segment, (low, high) in zip(self.segments, ranges.tolist(), strict=True):
            more, each = segment.next_tokens(low, high, length, len(self.vocab))
            if length == 0:
                each[more == self.vocab.end] -= 1  # the one in front of the text
                more, each = more[each > 0], each[each > 0]
            tokens, counts = _added(tokens, counts, more, each) if len(tokens) else (more, each)
        return Continuations(length, tokens, counts)

    def count_next(self, matches: Matches, tokens: Ids) -> tuple[Longs, Longs]:
        """Return how often the run at each position of a query is followed by any token, and by one of ``tokens``."""
        contexts, counts = np.zeros((2, len(tokens)), np.int64)
        lengths = matches.lengths
        for segment, (lows, highs) in zip(self.segments, matches.ranges, strict=True):
            keys = segment.keys(np.asarray(tokens, np.int64))
            kernels.count_next(segment.text, segment.suffixes, lows, highs, lengths, keys, contexts, counts)
        contexts[lengths == 0] -= len(self.segments)  # the token in front of each text follows nothing
        counts[(lengths == 0) & (tokens == self.vocab.end)] -= len(self.segments)
        return contexts, counts

    def _checked(self, run: Ids) -> Longs:
        ids = np.asarray(run, np.int64)
        if kernels.any_outside(ids, len(self.vocab)):
            check_ids(ids, len(self.vocab))
        return ids

    # Saving

    def to_parts(self) -> Parts:
        """Return the arrays of all segments and the vocabulary to save."""
        if any(len(segment.firsts) == 0 for segment in self.segments):
            raise InputError("index files of infini-gram are asked where they are: this index cannot be saved")
        arrays = {
            f"{number}.{name}": getattr(segment, name)
            for number, segment in enumerate(self.segments)
            for name in Segment.__slots__
        }
        return Parts({"segments": len(self.segments)}, arrays, self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Rebuild the index from what was saved."""
        number = parts.settings["segments"]
        if type(number) is not int or number < 1 or parts.vocab is None:
            raise ValueError("expected a number of segments, and a vocabulary")
        parts.check_counts("segments")
        segments = [Segment(*(parts.arrays[f"{each}.{name}"] for name in Segment.__slots__)) for each in range(number)]
        for segment in segments:
            segment.check(len(parts.vocab))
        return cls(segments, parts.vocab)


def _added(tokens: Longs, counts: Longs, more: Longs, each: Longs) -> tuple[Longs, Longs]:
    """Add two lists of counted tokens."""
    together, where = np.unique(np.concatenate((tokens, more)), return_inverse=True)
    return together, np.bincount(where, np.concatenate((counts, each))).astype(np.int64)
