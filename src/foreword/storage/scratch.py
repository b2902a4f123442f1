"""Workspace for large arrays: in memory, or with a limit in temporary files.

The files have no name: the system frees them when the last array over them is gone, or the process, however it ended.
So nothing is ever left to clean up, and the system decides what of them stays in memory.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import IO, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Array, Bytes
from foreword.errors import SettingError, explained

T = TypeVar("T", bound=np.generic)
Shape = int | tuple[int, ...]

LEAST = 1 << 20
"""The smallest limit: buffers of a few kilobytes would spend their time being filled."""

LINE = 64
"""Arrays begin at multiples of this, a cache line."""


class Scratch:
    """Allocator of the arrays of one piece of work.

    memory: limit of its working memory in bytes; None is no limit, and then nothing goes to disk.
    folder: where the files go; None is the system's folder for temporary files.
    """

    def __init__(self, memory: int | None = None, folder: str | Path | None = None) -> None:
        if memory is not None and memory < LEAST:
            raise SettingError(f"memory={memory}: expected at least {LEAST} bytes")
        self.memory = memory
        self.folder = folder
        self._pool = _Pool()

    @property
    def on_disk(self) -> bool:
        """Whether arrays go to disk."""
        return self.memory is not None

    def fits(self, item_bytes: int, least: int = 1) -> int:
        """Return how many items of that size, all their arrays together, fit in memory; at least ``least``."""
        if self.memory is None:
            return 1 << 62
        # Half of the limit: the rest is for what is there all the time, the vocabulary above all.
        return max(least, self.memory // 2 // item_bytes)

    def ranges(self, size: int, item_bytes: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of ``size`` items that fit in memory."""
        step = self.fits(item_bytes)
        for first in range(0, size, step):
            yield first, min(first + step, size)

    def empty(self, shape: Shape, kind: type[T]) -> NDArray[T]:
        """Return an uninitialised array, on disk if there is a limit."""
        if self.on_disk:
            return self._mapped(_bytes(shape, kind)).view(kind).reshape(shape)
        return self.buffer(shape, kind)

    def buffer(self, shape: Shape, kind: type[T]) -> NDArray[T]:
        """Return an uninitialised array in memory in any case: the caller keeps to the limit."""
        return self._pool.take(_bytes(shape, kind)).view(kind).reshape(shape)

    def release(self, array: Array) -> None:
        """Free an array, given as itself or a view of its beginning, for reuse."""
        self._pool.give(array)

    def reserve(self, size: int) -> None:
        """Allocate the next arrays from one block of ``size`` bytes, as far as it goes, if there is no memory limit."""
        if not self.on_disk:
            self._pool.reserve(size)

    def discardable(self, shape: Shape, kind: type[T]) -> NDArray[T]:
        """Return an array in memory whose parts can be discarded; pages never written to take no memory."""
        if self.on_disk:
            return np.empty(shape, kind)
        return self._pool.discardable(_bytes(shape, kind)).view(kind).reshape(shape)

    def discard(self, array: Array) -> None:
        """Return the memory of a part of a discardable array to the system at once.

        The next allocation then gets the same memory, far cheaper than memory that has not been used for a while.
        """
        self._pool.discard(array)

    def compact(self, array: NDArray[T]) -> NDArray[T]:
        """Return an array that outlives the work: itself, or a copy if it would retain twice the memory it needs."""
        return array.copy() if 2 * array.nbytes < self._pool.reached(array) else array

    def growing(self, columns: int, kind: type[T]) -> GrowingArray[T]:
        """Return an array on disk that is written from its beginning to its end."""
        return GrowingArray(self._file(), columns, kind, self.folder)

    def array_list(self, kind: type[T]) -> ArrayList[T]:
        """Return a list of arrays that can be appended to, on disk if there is a limit."""
        return ArrayList(self.growing(1, kind) if self.on_disk else None)

    def _mapped(self, size: int) -> Bytes:
        if not size:
            return np.empty(0, np.uint8)
        with self._file() as file, _explained(self.folder):
            # Allocated now, so that a full disk is an error here and not a SIGBUS when the array is written to.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            return np.memmap(file, np.uint8, "r+").view(np.ndarray)

    def _file(self) -> IO[bytes]:
        with _explained(self.folder):
            return tempfile.TemporaryFile(prefix="foreword-", dir=self.folder)


class _Pool:
    """Memory that is reused: pages fresh from the system cost more than most loops that fill them.

    Free pieces are (block, start, stop), sorted; neighbours are joined.
    """

    def __init__(self) -> None:
        self._blocks: list[Bytes] = []
        self._free: list[tuple[int, int, int]] = []
        self._taken: dict[int, tuple[int, int, int]] = {}
        self._reached: list[int] = []
        self._mappings: list[tuple[int, mmap.mmap]] = []

    def reserve(self, size: int) -> None:
        """Add a block of memory to the pool."""
        # Memory that is never written to costs nothing, so this may be more than will ever be needed; where the system
        # refuses so much at once, less may be enough.
        try:
            self._blocks.append(np.empty(size, np.uint8))
        except MemoryError:
            return
        self._free.append((len(self._blocks) - 1, 0, size))
        self._reached.append(0)

    def take(self, size: int) -> Bytes:
        """Return an array from the smallest free piece that fits, or a new one."""
        length = -(-size // LINE) * LINE
        fitting = [piece for piece in self._free if piece[2] - piece[1] >= length]
        if not fitting or not size:
            return np.empty(size, np.uint8)
        block, start, stop = min(fitting, key=lambda piece: piece[2] - piece[1])
        self._free.remove((block, start, stop))
        if start + length < stop:
            self._free.append((block, start + length, stop))
        array = self._blocks[block][start : start + size]
        self._taken[array.ctypes.data] = (block, start, start + length)
        self._reached[block] = max(self._reached[block], start + length)
        return array

    def give(self, array: Array) -> None:
        """Return an array's memory to the pool."""
        piece = self._taken.pop(array.ctypes.data, None)
        if piece is None:
            return
        joined: list[tuple[int, int, int]] = []
        for block, start, stop in sorted([*self._free, piece]):
            if joined and joined[-1][0] == block and joined[-1][2] == start:
                joined[-1] = (block, joined[-1][1], stop)
            else:
                joined.append((block, start, stop))
        self._free = joined

    def discardable(self, size: int) -> Bytes:
        """Return an array whose pages can be given back to the system."""
        if not size or not hasattr(mmap, "MADV_DONTNEED"):
            return np.empty(size, np.uint8)
        mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            mapping.madvise(mmap.MADV_HUGEPAGE)
        array = np.frombuffer(mapping, np.uint8)
        self._mappings.append((array.ctypes.data, mapping))
        return array

    def discard(self, array: Array) -> None:
        """Give the whole pages of an array back to the system."""
        for begin, mapping in self._mappings:
            start = -(-(array.ctypes.data - begin) // mmap.PAGESIZE) * mmap.PAGESIZE
            stop = (array.ctypes.data - begin + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
            if 0 <= start < stop <= len(mapping):
                mapping.madvise(mmap.MADV_DONTNEED, start, stop - start)

    def reached(self, array: Array) -> int:
        """Return how many bytes of the block that an array is part of have been in use."""
        piece = self._taken.get(array.ctypes.data)
        return self._reached[piece[0]] if piece else 0


class GrowingArray(Generic[T]):
    """An array of rows in a file that is written from its beginning to its end, and then mapped."""

    def __init__(self, file: IO[bytes], columns: int, kind: type[T], folder: str | Path | None) -> None:
        self._file = file
        self._folder = folder
        self._columns = columns
        self._kind = kind
        self.rows = 0

    def append(self, rows: NDArray[T]) -> None:
        """Write more rows."""
        with _explained(self._folder):
            self._file.write(np.ascontiguousarray(rows, self._kind).data)
        self.rows += len(rows)

    def finish(self) -> NDArray[T]:
        """Return all rows, (rows, columns), mapped."""
        with _explained(self._folder), self._file as file:  # closing flushes the buffer
            file.flush()
            if not self.rows:
                return np.empty((0, self._columns), self._kind)
            mapped = np.memmap(file, self._kind, "r+").view(np.ndarray)
        return mapped.reshape(self.rows, self._columns)


class ArrayList(Generic[T]):
    """A list of arrays, each (n,), in one file if there is one."""

    def __init__(self, file: GrowingArray[T] | None) -> None:
        self._file = file
        self._arrays: list[NDArray[T]] = []
        self._ends = [0]

    def append(self, piece: NDArray[T]) -> None:
        """Add an array."""
        if self._file is None:
            self._arrays.append(piece)
        else:
            self._file.append(piece)
            self._ends.append(self._file.rows)

    def finish(self) -> list[NDArray[T]]:
        """Return all arrays."""
        if self._file is None:
            return self._arrays
        together = self.joined()
        return [together[first:last] for first, last in pairwise(self._ends)]

    def joined(self) -> NDArray[T]:
        """Return all arrays as one, mapped where there is a file; there must be at least one."""
        return np.concatenate(self._arrays) if self._file is None else self._file.finish().reshape(-1)


def _bytes(shape: Shape, kind: type[T]) -> int:
    return (prod(shape) if isinstance(shape, tuple) else shape) * np.dtype(kind).itemsize


def _explained(folder: str | Path | None) -> AbstractContextManager[None]:
    """Turn an OSError into one line that names the folder."""
    return explained(f"cannot write temporary files in {folder or tempfile.gettempdir()}")
