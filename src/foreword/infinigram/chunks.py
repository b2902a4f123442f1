"""Suffix arrays of texts that are larger than the memory: sort chunks, rank the rest among each, and merge.

The chunks are taken from the end of the text to its beginning. A chunk's suffixes are sorted as those of the whole
text: one bit for each position says whether its suffix is greater than the tail, what follows the chunk, and that
decides every comparison that reaches the end of the chunk. Then every suffix of the tail is ranked among the chunk's,
each from the one after it, which gives the gaps: how many suffixes of the tail come between two of the chunk. In the
end all chunks are merged by their gaps in one pass (P. Ferragina, T. Gagie and G. Manzini, "Lightweight data indexing
and compression in external memory", Algorithmica 2012; J. Kärkkäinen and D. Kempa, "Engineering a lightweight external
memory suffix array construction algorithm", 2014). The time is that of sorting in memory and one step for each token
and chunk; repetitive texts take no longer.

What is done of a chunk is kept in a folder, so that a build that was killed resumes with the next one.
"""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from foreword.arrays import Bytes, Ids, Ints, Longs
from foreword.infinigram import kernels_merging as kernels
from foreword.infinigram.suffixes import sort_suffixes, token_counts
from foreword.protocols import Meter
from foreword.storage.atomic import atomic_file
from foreword.text.strict_json import parse_json

BYTES_PER_TOKEN = 10
"""Working memory for each token of a chunk."""

LANES = 32
"""Independent walks over the tail, which wait for memory together."""

HINTED = 64
"""Tokens with hints, at most; each takes four bytes for every 2^SHIFT suffixes."""

MERGED_AT_ONCE = 1 << 20


class ChunkedSort:
    """The sort of a text in chunks, which a folder keeps.

    text: any ids (n,), 0 to ``tokens`` - 1. memory: bytes of working memory. folder: for what is done; of another
    text or another limit it is emptied.
    """

    def __init__(self, text: Ids, tokens: int, memory: int, folder: Path, meter: Meter | None = None) -> None:
        self.text, self.tokens, self.folder, self.meter = text, tokens, folder, meter
        chunks = -(-len(text) * BYTES_PER_TOKEN // memory)
        self.borders: Longs = np.linspace(0, len(text), chunks + 1).astype(np.int64)
        self._facts = {"tokens": len(text), "crc32": _checksum(text), "chunks": chunks}
        self.left = self._chunks_left()
        if self.left is None:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            self.left = chunks
        self._mapped: list[np.memmap[Any, Any]] = []
        self.suffixes: Ints = self._file("suffixes", len(text))
        self.gaps: Ints = self._file("gaps", len(text) + chunks)

    def sorted(self) -> Ints:
        """Sort all chunks that are left, and return the suffix array, mapped from a file of the folder."""
        while self.left:
            self._report("sorting", len(self.text) - int(self.borders[self.left]))
            self._sort_chunk(self.left - 1)
        return self._merged()

    def _sort_chunk(self, chunk: int) -> None:
        begin, end = self.borders[chunk : chunk + 2].tolist()
        text, size, last_one = self.text, end - begin, end == len(self.text)
        greater = np.zeros(len(text) // 8 + 1, np.uint8) if last_one else self._greater(chunk + 1)
        suffixes = np.empty(size, np.int32)
        tail_rank = 0
        if last_one:
            sort_suffixes(text[begin:end], self.tokens, suffixes)
        else:
            kernels.compare_to_tail(text, begin, end, greater, suffixes)
            renamed = np.empty(size, np.uint16 if self.tokens + 2 <= 1 << 16 else np.int32)
            tail_rank = kernels.rename(text, begin, end, greater, renamed)
            sort_suffixes(renamed, self.tokens + 2, suffixes)
            del renamed
        self.suffixes[begin:end] = suffixes
        of_chunk = np.zeros(len(text) // 8 + 1, np.uint8)
        kernels.compare_to_chunk(suffixes, begin, of_chunk)
        if not last_one:
            lanes = np.linspace(end, len(text), min(LANES, len(text) - end) + 1).astype(np.int64)
            found = [kernels.rank_in_chunk(text, begin, end, greater, suffixes, lane) for lane in lanes[1:].tolist()]
            ranks = np.empty(size + 1, np.int32)
            kernels.link(suffixes, ranks, tail_rank)
            last = np.array([text[end - 1], ranks[size - 1], tail_rank, ranks[0]])
            ranks[:] = 0
            self._rank_tail(begin, end, suffixes, last, lanes, np.array(found), ranks, greater, of_chunk)
            self.gaps[begin + chunk : end + chunk + 1] = ranks
        self._finish(chunk, of_chunk)

    def _rank_tail(
        self, begin: int, end: int, after: Ints, last: Longs, lanes: Longs, ranks: Longs, gaps: Ints, greater: Bytes,
        of_chunk: Bytes,
    ) -> None:  # fmt: skip
        """Count the suffixes of the tail before each of the chunk, and compare them with the chunk."""
        text, size = self.text, end - begin
        counts = token_counts(text[begin:end], self.tokens)
        firsts = np.concatenate((np.zeros(1, np.int32), counts.cumsum(dtype=np.int32)))
        hinted = np.argsort(-counts, kind="stable")[:HINTED]
        hinted = hinted[counts[hinted] >= 16]
        rows = np.full(self.tokens, -1, np.int32)
        rows[hinted] = np.arange(len(hinted))
        hints = np.empty((len(hinted), (size >> kernels.SHIFT) + 2), np.int32)
        kernels.make_hints(after, firsts, hinted, hints)
        last_bytes = after.astype(np.uint8)
        kernels.rank_tail(text, firsts, after, last_bytes, rows, hints, last, greater, lanes, ranks, gaps, of_chunk)

    def _merged(self) -> Ints:
        merged = self._file("merged", len(self.text))
        state = np.empty((2, len(self.borders) - 1), np.int64)
        for first in range(0, len(merged), MERGED_AT_ONCE):
            self._report("merging", first)
            part = merged[first : first + MERGED_AT_ONCE]
            kernels.interleave(self.suffixes, self.gaps, self.borders, state[0], state[1], first == 0, part)
        return merged

    # Files

    def _file(self, name: str, size: int) -> Ints:
        path = self.folder / name
        mode: Any = "r+" if path.exists() and path.stat().st_size == 4 * size else "w+"
        mapped = np.memmap(path, np.int32, mode, shape=(size,))
        self._mapped.append(mapped)
        return mapped.view(np.ndarray)

    def _greater(self, chunk: int) -> Bytes:
        """Return which suffixes from a chunk's beginning on are greater than the text from there on."""
        return np.fromfile(self.folder / f"greater-{chunk}", np.uint8)

    def _finish(self, chunk: int, greater: Bytes) -> None:
        """Record that a chunk is done; what it needed of the one before is deleted."""
        for mapped in self._mapped:
            mapped.flush()
        with atomic_file(self.folder / f"greater-{chunk}") as path:
            greater.tofile(path)
        with atomic_file(self.folder / "progress.json") as path:
            path.write_text(json.dumps({**self._facts, "left": chunk}))
        (self.folder / f"greater-{chunk + 1}").unlink(missing_ok=True)
        self.left = chunk

    def _chunks_left(self) -> int | None:
        """Return how many chunks an earlier build of the same text has left to do; None if there was none."""
        try:
            found = parse_json((self.folder / "progress.json").read_bytes())
            sizes = [(self.folder / name).stat().st_size for name in ("suffixes", "gaps")]
        except (OSError, ValueError):
            return None
        left = found.pop("left", None)
        whole = sizes == [4 * len(self.text), 4 * (len(self.text) + self._facts["chunks"])]
        return left if found == self._facts and isinstance(left, int) and whole else None

    def _report(self, phase: str, done: int) -> None:
        if self.meter:
            self.meter(phase, done, len(self.text))


def _checksum(text: Ids) -> int:
    """Return the CRC-32 of a text, read a part at a time."""
    checksum = 0
    for first in range(0, len(text), MERGED_AT_ONCE):
        checksum = zlib.crc32(np.ascontiguousarray(text[first : first + MERGED_AT_ONCE]).data, checksum)
    return checksum
