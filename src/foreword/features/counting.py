"""Texts to rows of counts: the fast version of ``plain.py``.

Texts of any kind become small blocks of whole documents, which pass through four steps, each a kernel over buffers that
stay in the cache:

    fold    copy the text, in lower case if asked            cut     find its words, or runs of characters
    number  give each an id, new ones in order of arrival    gather  count the distinct ids of each document

Only at the end are the terms sorted alphabetically, ids mapped to columns, and rows assembled into a matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from foreword.arrays import Array, Bytes, Ints, Longs, Scalar, frozen
from foreword.checks import check_not_string
from foreword.errors import InputError
from foreword.features import kernels_bag, kernels_cut
from foreword.features.plain import Split
from foreword.protocols import Counts
from foreword.text.block import Block
from foreword.tokens.pieces import character_classes
from foreword.tokens.strings import BATCH, empty_rows, rehash

Texts: TypeAlias = "Iterable[str | Block] | Block"
"""Strings, one document each, or blocks of documents as ``read_blocks`` yields them."""

BATCH_BYTES = 128 << 10
"""Text that is counted at a time: with all that is made of it, it should stay in the cache. 64 KiB to 1 MiB made no
difference that could be measured."""

CHARACTER_SPLITS = ("characters", "characters in words")


# Texts to blocks


def document_blocks(texts: Texts, lowercase: bool) -> Iterator[Block]:
    """Yield closed blocks of about BATCH_BYTES; text beyond ASCII is already in lower case where that is asked."""
    check_not_string(texts)
    batch: list[str] = []
    done = size = 0  # texts in earlier blocks, characters in this one
    begun: list[bytes] = []  # pieces of a document that continues in the next block
    for text in [texts] if isinstance(texts, Block) else texts:
        if isinstance(text, str):
            batch.append(text)
            size += len(text) + 1
            if size < BATCH_BYTES:
                continue
        if batch:
            yield _packed(batch, lowercase, done)
            done, size, batch = done + len(batch), 0, []
        if isinstance(text, Block):
            yield from _small_blocks(text, lowercase, begun)
            done += 1
        elif not isinstance(text, str):
            raise InputError(f"text {done} (counted from 0) is a {type(text).__name__}, but should be a string")
    if begun:
        yield Block.from_texts([_lowered(b"".join(begun)) if lowercase else b"".join(begun)])
    if batch:
        yield _packed(batch, lowercase, done)


def _packed(texts: list[str], lowercase: bool, done: int) -> Block:
    """Encode texts as one block. done: the index of the first one, for error messages."""
    try:
        if lowercase:
            return Block.from_texts([(text if text.isascii() else text.lower()).encode() for text in texts])
        return Block.from_texts([text.encode() for text in texts])
    except UnicodeEncodeError as error:
        number = done + next(index for index, text in enumerate(texts) if error.object in (text, text.lower()))
        raise InputError(f"text {number} (counted from 0) is not valid Unicode: {error.reason}") from error


def _small_blocks(block: Block, lowercase: bool, begun: list[bytes]) -> Iterator[Block]:
    """Split a block. A document that continues in the next block waits in ``begun`` until it is complete."""
    if begun or block.open or (lowercase and block.data.max(initial=0) >= 0x80):
        block = _rewritten(block, lowercase, begun)
    batches = np.cumsum(block.stops - block.starts) // BATCH_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(batches)) + 1).tolist(), len(block)]
    for first, last in pairwise(cuts):
        if first < last:
            yield Block(block.data, block.starts[first:last], block.stops[first:last])


def _rewritten(block: Block, lowercase: bool, begun: list[bytes]) -> Block:
    """Copy a block so that it holds whole documents only, in lower case if asked."""
    view = np.ascontiguousarray(block.data).data
    pieces = [bytes(view[start:stop]) for start, stop in zip(block.starts.tolist(), block.stops.tolist(), strict=True)]
    if begun and pieces and (len(pieces) > 1 or not block.open):
        pieces[0] = b"".join([*begun, pieces[0]])
        begun.clear()
    if block.open and pieces:
        begun.append(pieces.pop())
    return Block.from_texts([_lowered(piece) for piece in pieces] if lowercase else pieces)


def _lowered(piece: bytes) -> bytes:
    return piece if piece.isascii() else piece.decode().lower().encode()


# Blocks to pieces


class Pieces(NamedTuple):
    """Piece i is ``text[spans[2 * i]:spans[2 * i + 1]]``; document d ends with piece ``ends[d]`` (exclusive)."""

    text: Bytes
    spans: Longs
    ends: Longs
    total: int


class Cutting(NamedTuple):
    """How a text is cut into pieces; the settings of ``BagOfWords``."""

    split: Split
    lowercase: bool
    ngrams: tuple[int, int]

    @property
    def runs(self) -> tuple[int, int]:
        """Fewest and most pieces of a term; a run of characters is cut as one piece."""
        return (1, 1) if self.split in CHARACTER_SPLITS else self.ngrams


class Cutter:
    """Cuts blocks into pieces. Each call overwrites the buffers of the last."""

    def __init__(self, cutting: Cutting) -> None:
        self.cutting = cutting
        self.text, self.marks = np.empty(0, np.uint8), np.empty(0, np.uint8)
        self.heads, self.spans = np.empty(0, np.int64), np.empty(0, np.int64)

    def cut(self, block: Block) -> Pieces:
        """Fold and cut the documents of a block."""
        split, lowercase, (shortest, longest) = self.cutting
        bounds, ends = np.zeros(len(block) + 1, np.int64), np.empty(len(block), np.int64)
        text = self.text = _at_least(self.text, block.text_bytes() + 2 * len(block) + kernels_cut.PADDING)
        folds = {"characters": kernels_cut.fold_runs_of_space, "characters in words": kernels_cut.fold_words}
        folds.get(split, kernels_cut.fold)(block.data, block.starts, block.stops, lowercase, text, bounds)
        size = int(bounds[-1])
        runs = longest - shortest + 1 if split in CHARACTER_SPLITS else 1
        spans = self.spans = _at_least(self.spans, 2 * (runs * size + 1))
        if split == "words":
            marks = self.marks = _at_least(self.marks, len(text))
            kernels_cut.mark_words(text, size, kernels_cut.word_characters(), marks)
            total = kernels_cut.cut_words(text, bounds, marks, spans, ends)
        elif split == "space":
            total = kernels_cut.cut_space(text, bounds, spans, ends)
        elif split == "punctuation":
            total = kernels_cut.cut_punctuation(text, bounds, character_classes(), spans, ends)
        elif split == "whole":
            total = kernels_cut.cut_nothing(bounds, spans, ends)
        else:
            heads = self.heads = _at_least(self.heads, size + 1)
            cuts = {
                "characters": kernels_cut.cut_characters,
                "characters in words": kernels_cut.cut_characters_in_words,
            }
            total = cuts[split](text, bounds, shortest, longest, heads, spans, ends)
        return Pieces(text, spans, ends, total)


def _at_least(buffer: NDArray[Scalar], size: int) -> NDArray[Scalar]:
    """Return the buffer, or a larger uninitialised one if it is shorter than ``size``."""
    return buffer if len(buffer) >= size else np.empty(size + size // 2, buffer.dtype)


def _extended(array: NDArray[Scalar], length: int) -> NDArray[Scalar]:
    """Copy an array and pad it with zeros."""
    extended = np.zeros(length, array.dtype)
    extended[: len(array)] = array
    return extended


# Pieces to numbers


class Numbers(Protocol):
    """Assigns numbers to terms, level by level: ``TermNumbers`` or ``HashNumbers``.

    sizes: how many numbers each level has. signed: -1 - number stands for a number that counts down.
    """

    signed: bool

    @property
    def sizes(self) -> list[int]: ...
    def number(self, pieces: Pieces, *, grow: bool) -> Iterator[tuple[int, Ints, Longs]]: ...


class StringNumbers:
    """Distinct strings, numbered from 0: the hash table of ``tokens/strings.py``."""

    def __init__(self) -> None:
        self.size = 0
        self.slots = empty_rows(1 << 12)
        self.arena = np.empty(1 << 15, np.uint8)
        self.starts = np.zeros(1 << 11, np.int64)

    def number(self, pieces: Pieces, out: Ints, *, grow: bool) -> None:
        """Write the number of each piece to ``out``; -1 for a new one unless the table may grow."""
        position = np.array([0, self.size], np.int64)
        text = frozen(pieces.text)
        rows, keys = np.empty(BATCH, np.int64), np.empty(4 * BATCH, np.uint64)
        while need := kernels_bag.number_spans(
            text, pieces.spans, pieces.total, grow, self.slots, self.arena, self.starts,
            out, rows, keys, position,
        ):  # fmt: skip
            self._grow(int(position[1]), need)
        self.size = int(position[1]) if grow else self.size

    def _grow(self, size: int, length: int) -> None:
        """Enlarge what is too small for one more string of ``length`` bytes."""
        if size * 8 + 8 > len(self.slots):
            larger = empty_rows(len(self.slots) // 2)
            rehash(self.slots, larger)
            self.slots = larger
        if size + 2 > len(self.starts):
            self.starts = _extended(self.starts, 2 * len(self.starts))
        if self.starts[size] + length > len(self.arena):
            self.arena = _extended(self.arena, 2 * len(self.arena) + length)


class PairNumbers:
    """Distinct pairs of numbers, numbered from 0. members: int32 (2 * pairs,), left and right of each.

    A run of words is identified by two numbers: that of the run without its last word, and that of its last word. So no
    text is compared or stored for it, and a run of any length is found in as many steps as it has words.
    """

    def __init__(self) -> None:
        self.size = 0
        self.slots = _free_pairs(1 << 12)
        self._members = np.empty(1 << 12, np.int32)

    @property
    def members(self) -> Ints:
        """Members of the n-grams, two numbers each: int32 (2 · size,)."""
        return self._members[: 2 * self.size]

    def number(self, lefts: Ints, rights: Ints, count: int, out: Ints, *, grow: bool) -> None:
        """Write the number of each pair to ``out``, which may be ``lefts``; a pair with a -1 in it has none: -1."""
        position = np.array([0, self.size], np.int64)
        keys = np.empty(BATCH, np.int64)
        while kernels_bag.number_pairs(lefts, rights, count, grow, self.slots, self._members, out, keys, position):
            larger = _free_pairs(len(self.slots))
            kernels_bag.rehash_pairs(self.slots, larger)
            self.slots = larger
            self._members = _extended(self._members, len(larger) // 2)
        self.size = int(position[1]) if grow else self.size


def _free_pairs(rows: int) -> Longs:
    slots = np.empty(2 * rows, np.int64)  # not np.zeros: see empty_rows
    slots.fill(0)
    return slots


class TermNumbers:
    """All terms of some texts: single pieces at level 0, runs of k + 1 pieces at level k.

    shortest, longest: fewest and most pieces of a term; shorter runs are numbered too, but not yielded.
    """

    signed = False

    def __init__(self, shortest: int, longest: int) -> None:
        self.shortest = shortest
        self.strings = StringNumbers()
        self.runs = [PairNumbers() for _ in range(longest - 1)]

    @property
    def sizes(self) -> list[int]:
        """How many numbers each level has assigned."""
        return [self.strings.size, *(level.size for level in self.runs)]

    def number(self, pieces: Pieces, *, grow: bool) -> Iterator[tuple[int, Ints, Longs]]:
        """Yield for each level its numbers in the order of the text, and where each document ends in them."""
        words = np.empty(pieces.total, np.int32)
        self.strings.number(pieces, words, grow=grow)
        if self.shortest == 1:
            yield 0, words, pieces.ends
        before, last = words, np.empty(pieces.total if self.runs else 0, np.int32)
        for level, runs in enumerate(self.runs, 1):
            kernels_bag.following(words, pieces.ends, level, last)
            numbers = np.empty(pieces.total, np.int32) if level == 1 else before
            runs.number(before, last, pieces.total, numbers, grow=grow)
            if level + 1 >= self.shortest:
                yield level, numbers, pieces.ends
            before = numbers


class HashNumbers:
    """No table: a term's number is its hash, which is also its column (``hashed`` in ``plain.py``)."""

    def __init__(self, shortest: int, longest: int, columns: int, signed: bool) -> None:
        self.shortest = shortest
        self.longest = longest
        self.columns = columns
        self.signed = signed

    @property
    def sizes(self) -> list[int]:
        """Number of columns, as a list of one level."""
        return [self.columns]

    def number(self, pieces: Pieces, *, grow: bool) -> Iterator[tuple[int, Ints, Longs]]:
        """Yield the one level there is: the hashes of all runs, and where each document ends in them."""
        numbers = np.empty(pieces.total * (self.longest - self.shortest + 1), np.int32)
        ends = np.empty(len(pieces.ends), np.int64)
        kernels_bag.hash_runs(
            pieces.text, pieces.spans, pieces.ends, self.shortest, self.longest, self.columns, self.signed,
            numbers, ends,
        )  # fmt: skip
        yield 0, numbers, ends


# Numbers to rows


class Entries(NamedTuple):
    """Non-zero entries of the rows of a block: numbers at one level, their counts, and where each row ends."""

    level: int
    numbers: Ints
    counts: Ints
    row_ends: Longs


def entries_of(
    texts: Texts, cutting: Cutting, numbers: Numbers, tallies: Sequence[TermStatistics], *, grow: bool
) -> Iterator[list[Entries]]:
    """Yield for each block of documents the entries of all levels, in buffers that are reused.

    tallies: one for each level. grow: new terms get numbers; otherwise they are left out.
    """
    cutter = Cutter(cutting)
    for block in document_blocks(texts, cutting.lowercase):
        pieces = cutter.cut(block)
        yield [
            Entries(level, *tallies[level].gather(given, ends, numbers.sizes[level]))
            for level, given, ends in numbers.number(pieces, grow=grow)
        ]


class TermStatistics:
    """Statistics of each number: in how many documents it occurred, and how often in all."""

    def __init__(self, signed: bool = False) -> None:
        self.signed = signed
        self.base = 1
        self.tallies = np.zeros(0, np.int64)  # three for each number, adjacent: they share a cache line
        self.numbers, self.counts = np.empty(0, np.int32), np.empty(0, np.int32)

    def gather(self, numbers: Ints, ends: Longs, size: int) -> tuple[Ints, Ints, Longs]:
        """Return each document's distinct numbers, how often each came, and where the document ends in them.

        size: how many numbers there are.
        """
        if len(self.tallies) < 3 * size:
            self.tallies = _extended(self.tallies, 3 * (size + size // 2 if len(self.tallies) else size))
        self.numbers, self.counts = _at_least(self.numbers, len(numbers)), _at_least(self.counts, len(numbers))
        row_ends = np.empty(len(ends), np.int64)
        written = kernels_bag.gather_rows(
            numbers, ends, self.signed, self.base, self.tallies, self.numbers, self.counts, row_ends
        )
        self.base += written
        return self.numbers[:written], self.counts[:written], row_ends

    def documents(self, size: int) -> Longs:
        """Return in how many documents each number occurred, int64 (size,)."""
        return _extended(self.tallies[1 : 3 * size : 3], size)

    def totals(self, size: int) -> Longs:
        """Return how often each number occurred, int64 (size,)."""
        return _extended(self.tallies[2 : 3 * size : 3], size)

    def restore(self, documents: Longs, totals: Longs) -> None:
        """Take over saved statistics."""
        self.tallies = np.stack((np.zeros(len(documents), np.int64), documents, totals), axis=1).ravel()


class PendingRows:
    """Buffered rows whose numbers have no columns yet."""

    def __init__(self) -> None:
        self.blocks: list[list[Entries]] = []

    def add(self, block: Sequence[Entries]) -> None:
        """Append the rows of a block, copied from its buffers."""
        self.blocks.append(
            [entries._replace(numbers=entries.numbers.copy(), counts=entries.counts.copy()) for entries in block]
        )

    def matrix(self, columns: Sequence[Ints], width: int) -> Counts:
        """Return the rows as CSR int64 (documents, width), columns rising in each row.

        columns: by level, the column of each number, -1 for none; an empty array where numbers are columns.
        """
        most = sum(len(entries.numbers) for block in self.blocks for entries in block)
        indices, data, row_sizes = np.empty(most, np.int32), np.empty(most, np.int64), [np.zeros(1, np.int64)]
        low, top = np.zeros((width >> 6) + 1, np.uint64), np.zeros((width >> 12) + 1, np.uint64)
        values, packed = np.zeros(width, np.int32), np.empty(0, np.uint64)
        written = 0
        for block in self.blocks:
            ends = np.sum([entries.row_ends for entries in block], axis=0)
            starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
            stops, packed = starts.copy(), _at_least(packed, ends[-1])
            for level, numbers, counts, row_ends in block:
                kernels_bag.add_entries(numbers, counts, row_ends, columns[level], stops, packed)
            written = kernels_bag.sort_rows(packed, starts, stops, low, top, values, indices, data, written)
            row_sizes.append(stops - starts)
        if written < most:  # some had no column
            indices, data = indices[:written].copy(), data[:written].copy()
        indptr = np.cumsum(np.concatenate(row_sizes))
        kind = np.int32 if indptr[-1] <= np.iinfo(np.int32).max else np.int64  # SciPy wants one kind for both
        return canonical(data, indices.astype(kind, copy=False), indptr.astype(kind), width)


def canonical(data: Array, indices: Array, indptr: Array, width: int) -> Counts:
    """Return a CSR matrix of arrays that are known to be in canonical form; nothing is checked or copied."""
    matrix = csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, width))
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix
