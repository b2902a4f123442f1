"""Counting the pieces of a text: every distinct word with how often it came.

One pass on all cores; each thread fills a table of its own, and the tables are added at the end. Where a word was
first seen is kept too, so that the order of the result does not depend on the threads.

With a memory limit, a table that grows past its share is emptied onto disk, its words spread over a fixed number of
files by their hash. At the end each file is counted by itself: no step holds more than a part of all words.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import IO

import numpy as np

from foreword.arrays import Array, Bytes, Ints, Longs
from foreword.native.parallel import cores, ordered_map
from foreword.text.block import Block
from foreword.tokens.strings import StringTable, gather_strings, hash_strings

PARTS = 32
"""Files over which spilled strings are spread."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Distinct strings with counts; number 0 is the empty string and counts documents.

    data: uint8 (bytes,), the strings one after another; offsets: int64 (strings + 1,).
    counts: int64 (strings,); firsts: int64 (strings,), where each was first seen.
    """

    data: Bytes
    offsets: Longs
    counts: Longs
    firsts: Longs

    def __len__(self) -> int:
        return len(self.counts)

    def arrays(self) -> dict[str, Array]:
        """Return the arrays by name, as a checkpoint saves them."""
        return {"data": self.data, "offsets": self.offsets, "counts": self.counts, "firsts": self.firsts}

    def check(self) -> None:
        """Raise a ValueError unless the arrays fit together, as those read from a file may not."""
        n = len(self.counts)
        if self.data.dtype != np.uint8 or any(a.dtype != np.int64 for a in (self.offsets, self.counts, self.firsts)):
            raise ValueError("wrong types")
        if n < 1 or len(self.offsets) != n + 1 or len(self.firsts) != n or self.offsets[0] != 0:
            raise ValueError("wrong lengths")
        if (np.diff(self.offsets) < 0).any() or self.offsets[-1] != len(self.data) or (self.counts < 0).any():
            raise ValueError("wrong offsets or counts")

    def find(self, words: Sequence[str]) -> Longs:
        """Return the number of each word, -1 where it was not seen."""
        lengths = np.diff(self.offsets)
        found = np.full(len(words), -1, np.int64)
        for index, word in enumerate(words):
            spelling = np.frombuffer(word.encode(), np.uint8)
            alike = np.flatnonzero(lengths == len(spelling))
            letters = self.data[self.offsets[alike][:, None] + np.arange(len(spelling))]
            same = alike[(letters == spelling).all(axis=1)]
            if len(same):
                found[index] = same[0]
        return found

    def by_frequency(self, numbers: Longs) -> Longs:
        """Sort numbers from the most to the least frequent string, ties by first occurrence."""
        numbers = numbers[np.argsort(self.firsts[numbers], kind="stable")]
        counts = self.counts[numbers]
        # NumPy sorts 16-bit numbers by radix, many times faster than 64-bit ones; few words are too frequent for that.
        top = np.iinfo(np.uint16).max
        order = numbers[np.argsort((top - np.minimum(counts, top)).astype(np.uint16), kind="stable")]
        frequent = int((counts >= top).sum())
        order[:frequent] = order[:frequent][np.argsort(-self.counts[order[:frequent]], kind="stable")]
        return order

    def gather(self, numbers: Longs, before: Sequence[str] = ()) -> tuple[Bytes, Longs]:
        """Return the strings with these numbers, after the words ``before``, as data and offsets."""
        head = [word.encode() for word in before]
        lengths = np.concatenate((np.array([len(word) for word in head], np.int64), np.diff(self.offsets)[numbers]))
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        data = np.empty(int(offsets[-1]), np.uint8)
        start = sum(map(len, head))
        data[:start] = np.frombuffer(b"".join(head), np.uint8)
        gather_strings(self.data, self.offsets, numbers, data, start)
        return data, offsets

    @classmethod
    def of(cls, table: StringTable) -> Counted:
        """Copy the strings and counts of a table."""
        size = int(table.offsets[-1])
        return cls(table.arena[:size].copy(), table.offsets.copy(), table.counts.copy(), table.firsts.copy())


def pieces_of(block: Block, pattern: int) -> list[str]:
    """Return the pieces that a pattern cuts a block of one text into."""
    table = StringTable()
    numbers = table.count(block, pattern, out=np.empty(block.text_bytes() + len(block) + 1, np.int32))
    offsets, arena = table.offsets.tolist(), table.arena.tobytes()
    return [arena[offsets[number] : offsets[number + 1]].decode() for number in numbers.tolist()]


def merge_tables(tables: Sequence[StringTable]) -> tuple[Counted, list[Ints]]:
    """Merge tables; return the counts, and for each table the new numbers of its strings."""
    merged = tables[0]
    own = np.arange(merged.size, dtype=np.int32)
    others = [merged.add(table.arena, table.offsets, table.counts, table.firsts) for table in tables[1:]]
    return Counted.of(merged), [own, *others]


def merge_counted(parts: Iterable[Counted]) -> Counted:
    """Merge the counts of several texts; the earliest first occurrence counts."""
    table = StringTable()
    for part in parts:
        table.add(part.data, part.offsets, part.counts, part.firsts)
    return Counted.of(table)


def count_pieces_of(
    blocks: Iterable[Block],
    pattern: int,
    *,
    threads: int | None = None,
    memory: int | None = None,
    start: Counted | None = None,
    due: Callable[[], bool] = lambda: False,
    pause: Callable[[int, Counted], None] = lambda done, counted: None,
) -> Counted:
    """Count the pieces of a stream of documents.

    memory: about how many bytes the tables may take; None is no limit. start: counts to resume from.
    Whenever ``due()`` is true, the blocks in flight are finished and ``pause(blocks done, counts so far)`` is called.
    """
    threads = threads or cores()
    # What was seen before the stop comes before what is seen after it.
    base = 0 if start is None else int(start.firsts.max()) + 1
    coming = _Pausing(with_base(blocks, base), due)
    done = 0
    with Counter(pattern, threads, memory) as counter:
        if start is not None:
            counter.add(start)
        while not coming.ended:
            for _ in ordered_map(counter.count, coming, threads):
                done += 1
            if not coming.ended:
                pause(done, counter.counted())
        return counter.counted()


class _Pausing:
    """An iterator that ends whenever a pause is due, and can be resumed."""

    def __init__(self, items: Iterable[tuple[int, Block]], due: Callable[[], bool]) -> None:
        self.items = iter(items)
        self.due = due
        self.ended = False

    def __iter__(self) -> Iterator[tuple[int, Block]]:
        for item in self.items:
            yield item
            if self.due():
                return
        self.ended = True


def with_base(blocks: Iterable[Block], base: int = 0) -> Iterable[tuple[int, Block]]:
    """Yield each block with the number of bytes before it, so that first occurrences can be compared."""
    for block in blocks:
        yield base, block
        base += len(block.data)


class Counter:
    """A string table for each thread, and files for what does not fit in memory."""

    def __init__(self, pattern: int, threads: int, memory: int | None) -> None:
        self.pattern = pattern
        self.share = None if memory is None else memory // threads
        self.free: SimpleQueue[StringTable] = SimpleQueue()
        self.tables = [StringTable() for _ in range(threads)]
        for table in self.tables:
            self.free.put(table)
        self.files: list[IO[bytes]] = []
        self.spilling = threading.Lock()  # the files are shared, the tables are not

    def __enter__(self) -> Counter:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self.files:
            file.close()

    def count(self, item: tuple[int, Block]) -> None:
        """Count a block, given with its byte offset, in a free table."""
        base, block = item
        table = self.free.get()
        table.count(block, self.pattern, base=base)
        # Growing doubles a table and holds both for a moment, hence the factor.
        if self.share is not None and 3 * table.memory() > self.share:
            with self.spilling:
                self._spill(table)
        self.free.put(table)

    def add(self, counted: Counted) -> None:
        """Add counts made before."""
        self.tables[0].add(counted.data, counted.offsets, counted.counts, counted.firsts)

    def counted(self) -> Counted:
        """Return all counts so far. Must not be called while a block is being counted."""
        taken = [self.free.get() for _ in self.tables]
        try:
            if not self.files:
                merged = StringTable()
                for table in self.tables:
                    merged.add(table.arena, table.offsets, table.counts, table.firsts)
                return Counted.of(merged)
            for table in self.tables:
                self._spill(table)
            return self._join()
        finally:
            for table in taken:
                self.free.put(table)

    def _spill(self, table: StringTable) -> None:
        if not self.files:
            self.files = [tempfile.TemporaryFile(prefix="foreword-") for _ in range(PARTS)]  # noqa: SIM115
        part = hash_strings(table.arena, table.offsets) % PARTS
        counted = Counted.of(table)
        for number, file in enumerate(self.files):
            members = np.flatnonzero(part == number)
            data, offsets = counted.gather(members)
            header = np.array([len(members), len(data)], np.int64)
            for array in (header, np.diff(offsets), counted.counts[members], counted.firsts[members], data):
                file.write(array.data)
        table.clear()

    def _join(self) -> Counted:
        parts = [_read_part(file) for file in self.files]
        # The documents' count belongs first, wherever its hash has put it.
        ended = sum(int(part.counts[0]) for part in parts)
        data = np.concatenate([part.data for part in parts])
        lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.offsets)[1:] for part in parts)])
        counts = np.concatenate([np.array([ended]), *(part.counts[1:] for part in parts)])
        firsts = np.concatenate([np.zeros(1, np.int64), *(part.firsts[1:] for part in parts)])
        return Counted(data, np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))), counts, firsts)


def _read_part(file: IO[bytes]) -> Counted:
    """Return the merged counts of everything that was spilled into one file."""
    table = StringTable()
    end = file.tell()
    file.seek(0)
    while file.tell() < end:
        n, size = np.frombuffer(file.read(16), np.int64).tolist()
        lengths, counts, firsts = (np.frombuffer(file.read(8 * n), np.int64) for _ in range(3))
        data = np.frombuffer(file.read(size), np.uint8)
        table.add(data, np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))), counts, firsts)
    return Counted.of(table)
