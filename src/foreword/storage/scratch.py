"""Room for large arrays: in memory, or with a limit in files that vanish with their owner.

The files have no name: the system takes them back when the last array over them is gone, or the process, however it
ended. So nothing is ever left to clean up, and what is mapped from them is the system's to keep in memory or not.
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
"""The smallest limit that makes sense: buffers of a few kilobytes would spend their time being filled."""

LINE = 64
"""Arrays begin at multiples of this, a cache line."""


class Scratch:
    """Where the arrays of one piece of work live.

    memory: bytes that its working memory may take; None is no limit, and then nothing goes to disk.
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
        return self.memory is not None

    def fits(self, item_bytes: int, least: int = 1) -> int:
        """How many items may be held in memory at once, of all that is held together; no fewer than ``least``."""
        if self.memory is None:
            return 1 << 62
        # Half of the limit: the rest is for what is there all the time, the vocabulary above all.
        return max(least, self.memory // 2 // item_bytes)

    def ranges(self, size: int, item_bytes: int) -> Iterator[tuple[int, int]]:
        """Cut ``size`` items into ranges that fit."""
        step = self.fits(item_bytes)
        for first in range(0, size, step):
            yield first, min(first + step, size)

    def empty(self, shape: Shape, kind: type[T]) -> NDArray[T]:
        """An array with anything in it."""
        if self.on_disk:
            return self._mapped(_bytes(shape, kind)).view(kind).reshape(shape)
        return self.buffer(shape, kind)

    def buffer(self, shape: Shape, kind: type[T]) -> NDArray[T]:
        """The same, but in memory in any case: the limit is the caller's business."""
        return self._pool.take(_bytes(shape, kind)).view(kind).reshape(shape)

    def release(self, array: Array) -> None:
        """Give back an array, or a view of its beginning, that nobody looks at any more."""
        self._pool.give(array)

    def reserve(self, size: int) -> None:
        """Without a limit: take the next arrays out of one block of so many bytes, as far as they go."""
        if not self.on_disk:
            self._pool.reserve(size)

    def apart(self, shape: Shape, kind: type[T]) -> NDArray[T]:
        """An array in memory of which parts may be discarded; what is never written to takes nothing."""
        if self.on_disk:
            return np.empty(shape, kind)
        return self._pool.apart(_bytes(shape, kind)).view(kind).reshape(shape)

    def discard(self, array: Array) -> None:
        """Give the memory of a part of such an array, which nobody looks at any more, back to the system at once. What
        is asked for next is then the same memory, far cheaper than any that nobody has used for a while.
        """
        self._pool.discard(array)

    def keep(self, array: NDArray[T]) -> NDArray[T]:
        """An array that outlives the work: itself, or a copy if it would hold on to twice the memory that it needs."""
        return array.copy() if 2 * array.nbytes < self._pool.reached(array) else array

    def growing(self, columns: int, kind: type[T]) -> Growing[T]:
        """An array that is written from its beginning to its end, on disk."""
        return Growing(self._file(), columns, kind, self.folder)

    def pieces(self, kind: type[T]) -> Pieces[T]:
        """Arrays that are kept one after another until all are there."""
        return Pieces(self.growing(1, kind) if self.on_disk else None)

    def _mapped(self, size: int) -> Bytes:
        if not size:
            return np.empty(0, np.uint8)
        with self._file() as file, _explained(self.folder):
            # Taken now, so that a full disk is an error here and not the death of whoever writes to the array.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            return np.memmap(file, np.uint8, "r+").view(np.ndarray)

    def _file(self) -> IO[bytes]:
        with _explained(self.folder):
            return tempfile.TemporaryFile(prefix="foreword-", dir=self.folder)


class _Pool:
    """Memory that is used again: what is fresh from the system costs more than most loops that fill it.

    Free pieces are (block, start, stop), sorted; neighbours are joined.
    """

    def __init__(self) -> None:
        self._blocks: list[Bytes] = []
        self._free: list[tuple[int, int, int]] = []
        self._taken: dict[int, tuple[int, int, int]] = {}
        self._reached: list[int] = []
        self._apart: list[tuple[int, mmap.mmap]] = []

    def reserve(self, size: int) -> None:
        # Memory that nobody writes to costs nothing, so this may be more than will ever be needed; but where a system
        # does not give so much at once, it may be less that is.
        try:
            self._blocks.append(np.empty(size, np.uint8))
        except MemoryError:
            return
        self._free.append((len(self._blocks) - 1, 0, size))
        self._reached.append(0)

    def take(self, size: int) -> Bytes:
        room = -(-size // LINE) * LINE
        fitting = [piece for piece in self._free if piece[2] - piece[1] >= room]
        if not fitting or not size:
            return np.empty(size, np.uint8)
        block, start, stop = min(fitting, key=lambda piece: piece[2] - piece[1])
        self._free.remove((block, start, stop))
        if start + room < stop:
            self._free.append((block, start + room, stop))
        array = self._blocks[block][start : start + size]
        self._taken[array.ctypes.data] = (block, start, start + room)
        self._reached[block] = max(self._reached[block], start + room)
        return array

    def give(self, array: Array) -> None:
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

    def apart(self, size: int) -> Bytes:
        if not size or not hasattr(mmap, "MADV_DONTNEED"):
            return np.empty(size, np.uint8)
        held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            held.madvise(mmap.MADV_HUGEPAGE)
        array = np.frombuffer(held, np.uint8)
        self._apart.append((array.ctypes.data, held))
        return array

    def discard(self, array: Array) -> None:
        for begin, held in self._apart:
            start = -(-(array.ctypes.data - begin) // mmap.PAGESIZE) * mmap.PAGESIZE
            stop = (array.ctypes.data - begin + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
            if 0 <= start < stop <= len(held):
                held.madvise(mmap.MADV_DONTNEED, start, stop - start)

    def reached(self, array: Array) -> int:
        """How much of the block that an array is part of has been in use."""
        piece = self._taken.get(array.ctypes.data)
        return self._reached[piece[0]] if piece else 0


class Growing(Generic[T]):
    """An array of rows that is written from its beginning to its end; then it is mapped."""

    def __init__(self, file: IO[bytes], columns: int, kind: type[T], folder: str | Path | None) -> None:
        self._file = file
        self._folder = folder
        self._columns = columns
        self._kind = kind
        self.rows = 0

    def append(self, rows: NDArray[T]) -> None:
        with _explained(self._folder):
            self._file.write(np.ascontiguousarray(rows, self._kind).data)
        self.rows += len(rows)

    def finish(self) -> NDArray[T]:
        """All that was written, (rows, columns)."""
        with _explained(self._folder), self._file as file:  # closing writes what is still held
            file.flush()
            if not self.rows:
                return np.empty((0, self._columns), self._kind)
            held = np.memmap(file, self._kind, "r+").view(np.ndarray)
        return held.reshape(self.rows, self._columns)


class Pieces(Generic[T]):
    """Arrays, each (n,), kept in the order they came; on disk if there is a file for them."""

    def __init__(self, file: Growing[T] | None) -> None:
        self._file = file
        self._held: list[NDArray[T]] = []
        self._ends = [0]

    def append(self, piece: NDArray[T]) -> None:
        if self._file is None:
            self._held.append(piece)
        else:
            self._file.append(piece)
            self._ends.append(self._file.rows)

    def finish(self) -> list[NDArray[T]]:
        if self._file is None:
            return self._held
        together = self._file.finish().reshape(-1)
        return [together[first:last] for first, last in pairwise(self._ends)]


def _bytes(shape: Shape, kind: type[T]) -> int:
    return (prod(shape) if isinstance(shape, tuple) else shape) * np.dtype(kind).itemsize


def _explained(folder: str | Path | None) -> AbstractContextManager[None]:
    """Turn an OSError into one line that names the folder."""
    return explained(f"cannot write temporary files in {folder or tempfile.gettempdir()}")
