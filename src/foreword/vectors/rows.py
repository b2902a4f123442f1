"""The numbers of word vectors: rows as float32, float16, or int8 with a scale for each row, and the nearest of them.

Int8 takes a quarter of the memory and changes a cosine by less than 0.01; products with it are integers, of which a
processor computes twice as many at once. Queries become int16 for that, which changes a cosine by about 1e-5.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, NoReturn, Self, get_args

import numpy as np

from foreword.arrays import Array, Floats, Longs, SignedBytes, frozen
from foreword.errors import InputError, SettingError
from foreword.native.simd import LANES, WIDTH
from foreword.vectors.kernels_nearest import BLOCK, GROUP, QUERIES, keep_best, scan_bytes, scan_floats, widen_halves

Stored = Literal["float32", "float16", "int8"]

LARGEST_BYTE = 127
LARGEST_SHORT = 32767
LARGEST_HALF = 65504.0

FLOAT_BLOCK = 4096
"""Rows of floats that are multiplied at a time: a few megabytes, which nearly fit into the second-level cache."""

MANY = 2048
"""From this many neighbours on, sorting everything is faster than maintaining a list."""


class NotFiniteError(InputError):
    """A vector with NaN or an infinite number in it; ``row`` is its row."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(f"vector {row + 1} {what}: expected finite numbers")
        self.row = row
        self.what = what


class VectorRows:
    """n vectors of d dimensions.

    matrix: float32, float16 or int8 (n, d); it may be mapped from a file and is never written to.
    scales: float32 (n,), the factor of each row of int8; None for floats.
    norms: float32 (n,), the lengths of the rows if they are already known.
    """

    def __init__(self, matrix: Array, scales: Floats | None = None, norms: Floats | None = None) -> None:
        if matrix.ndim != 2 or str(matrix.dtype) not in get_args(Stored):
            raise SettingError(f"vectors of {matrix.dtype} {matrix.shape}: expected float32, float16 or int8 (n, d)")
        for name, numbers in (("scales", scales), ("norms", norms)):
            if numbers is not None and (numbers.shape != (len(matrix),) or numbers.dtype != np.float32):
                raise SettingError(f"{name} of {numbers.dtype} {numbers.shape} for {len(matrix)} vectors")
        if (scales is None) == (matrix.dtype == np.int8):
            raise SettingError("vectors of int8, and no others, have a scale for each row")
        self.matrix = np.ascontiguousarray(matrix)
        self.scales = scales
        if norms is not None:
            self.norms = norms

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def dimensions(self) -> int:
        """Number of dimensions."""
        return int(self.matrix.shape[1])

    @property
    def stored(self) -> Stored:
        """Type in which the rows are stored."""
        name: Stored = str(self.matrix.dtype)  # type: ignore[assignment]
        return name

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return int(self.matrix.nbytes) + (0 if self.scales is None else int(self.scales.nbytes))

    def floats(self, rows: slice | Longs | list[int]) -> Floats:
        """Return some rows as float32, (rows, d)."""
        chosen = self.matrix[rows]
        if self.scales is not None:
            scaled: Floats = chosen.astype(np.float32) * self.scales[rows][:, None]
            return scaled
        return _widened(chosen)

    @cached_property
    def norms(self) -> Floats:
        """The length of each vector; 1 for a vector of zeros, so that it can be divided by.

        A vector with NaN or an infinite number raises a NotFiniteError.
        """
        lengths = np.empty(len(self), np.float32)
        for begin in range(0, len(self), FLOAT_BLOCK):
            block = self.floats(slice(begin, begin + FLOAT_BLOCK))
            with np.errstate(over="ignore"):
                lengths[begin : begin + len(block)] = np.sqrt(np.einsum("ij,ij->i", block, block))
        for row in np.flatnonzero(~np.isfinite(lengths)).tolist():  # or a square beyond float32
            with np.errstate(over="ignore"):
                lengths[row] = np.linalg.norm(self.floats([row])[0].astype(np.float64))
            if not np.isfinite(lengths[row]):
                self._refuse(row)
        return np.where(lengths > 0, lengths, np.float32(1)).astype(np.float32)

    def _refuse(self, row: int) -> NoReturn:
        vector = self.floats([row])[0]
        wrong = np.flatnonzero(~np.isfinite(vector))
        what = f"holds {vector[wrong[0]]} in dimension {wrong[0] + 1}" if len(wrong) else "is too long for a float32"
        raise NotFiniteError(row, what)

    def stored_as(self, stored: Stored) -> Self:
        """Return the vectors in another precision."""
        if stored not in get_args(Stored):
            raise SettingError(f"stored={stored!r}: expected one of {', '.join(get_args(Stored))}")
        if stored == self.stored:
            return self
        kind: Any = {"float32": np.float32, "float16": np.float16, "int8": np.int8}[stored]
        matrix, scales = np.empty(self.matrix.shape, kind), np.empty(len(self), np.float32)
        for begin in range(0, len(self), FLOAT_BLOCK):
            there = slice(begin, begin + FLOAT_BLOCK)
            block = self.floats(there)
            if stored == "int8":
                matrix[there], scales[there] = to_bytes(block)
            else:
                if stored == "float16" and np.abs(block).max(initial=0) > LARGEST_HALF:
                    raise InputError(f"a vector has a number over {LARGEST_HALF:.0f}, too large for float16: try int8")
                matrix[there] = block
        return type(self)(matrix, scales if stored == "int8" else None)

    def cosines(self, query: Floats) -> Floats:
        """Return the cosine of one vector with every row, (n,): the plain version of ``nearest``."""
        products = np.empty(len(self), np.float32)
        for begin in range(0, len(self), FLOAT_BLOCK):
            there = slice(begin, begin + FLOAT_BLOCK)
            products[there] = self.floats(there) @ unit(query)
        cosines: Floats = products / self.norms
        return cosines

    def nearest(self, queries: Floats, k: int) -> tuple[Longs, Floats]:
        """Return the rows with the largest cosines to each query, the nearest first, earlier rows first among equals.

        queries: (q, d). Both results are (q, k), or (q, n) where there are fewer rows.
        """
        queries = np.ascontiguousarray(queries, np.float32)
        if queries.ndim != 2 or queries.shape[1] != self.dimensions:
            raise InputError(f"queries of shape {queries.shape} among vectors of {self.dimensions} dimensions")
        if not np.isfinite(queries).all():
            raise InputError("a query holds a number that is not finite")
        queries, k = unit(queries), max(0, min(k, len(self)))
        rows, cosines = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
        if not k:
            return rows, cosines
        for begin in range(0, len(queries), QUERIES):
            chunk = slice(begin, begin + QUERIES)
            rows[chunk], cosines[chunk] = self._nearest(queries[chunk], k)
        return rows, cosines

    def _nearest(self, queries: Floats, k: int) -> tuple[Longs, Floats]:
        if k > MANY:
            scored = np.stack([self.cosines(query) for query in queries])
            order = np.argsort(-scored, axis=1, kind="stable")[:, :k]
            return order, np.take_along_axis(scored, order, axis=1)
        if self.scales is not None and len(self.matrix):
            return self._scan_bytes(queries, k)
        return self._scan_once(queries, k) if len(queries) == 1 else self._scan_floats(queries, k)

    def _scan_once(self, queries: Floats, k: int) -> tuple[Longs, Floats]:
        """Scan all rows for one query, which is bound by memory and needs neither BLAS nor its threads."""
        numbers: Any = self.matrix.view(np.uint16) if self.matrix.dtype == np.float16 else self.matrix
        width = -(-self.dimensions // LANES) * LANES
        query = np.zeros(width, np.float32)
        query[: self.dimensions] = queries[0]
        best = _Best(1, 1, k)
        scan_floats(
            frozen(numbers.reshape(-1)), self.dimensions, self._factors, query, np.zeros(width, numbers.dtype),
            np.empty((BLOCK, 1), np.float32), best.least, best.scores, best.rows,
        )  # fmt: skip
        return best.rows, best.scores

    def _scan_floats(self, queries: Floats, k: int) -> tuple[Longs, Floats]:
        best = _Best(len(queries), len(queries), k)
        for begin in range(0, len(self), FLOAT_BLOCK):
            block = self.floats(slice(begin, begin + FLOAT_BLOCK))
            keep_best(block @ queries.T, self._factors, begin, best.least, best.scores, best.rows)
        return best.rows, best.scores

    def _scan_bytes(self, queries: Floats, k: int) -> tuple[Longs, Floats]:
        count = 1 if len(queries) == 1 else -(-len(queries) // GROUP) * GROUP
        width = -(-self.dimensions // WIDTH) * WIDTH
        # Sums of products must fit an int32.
        largest = min(LARGEST_SHORT, ((1 << 31) - 1) // (128 * self.dimensions))
        steps = np.abs(queries).max(axis=1) / largest
        steps = np.where(steps > 0, steps, 1).astype(np.float32)
        shorts = np.zeros((count, width), np.int16)
        shorts[: len(queries), : self.dimensions] = np.rint(queries / steps[:, None])
        best = _Best(len(queries), count, k)
        scan_bytes(
            frozen(self.matrix.reshape(-1)), self.dimensions, self._factors, shorts, np.zeros(4 * width, np.int8),
            np.zeros((BLOCK + 4) * count, np.int32), np.empty((BLOCK, count), np.float32), best.least, best.scores,
            best.rows,
        )  # fmt: skip
        return best.rows[: len(queries)], best.scores[: len(queries)] * steps[:, None]

    @cached_property
    def _factors(self) -> Floats:
        """The factors that turn products of stored numbers into products with vectors of length one."""
        ones: Floats = (np.float32(1) if self.scales is None else self.scales) / self.norms
        return ones


class _Best:
    """The k best of each query. size: queries with padding."""

    def __init__(self, queries: int, size: int, k: int) -> None:
        self.least = np.full(size, -np.inf, np.float32)
        self.least[queries:] = np.inf
        self.scores = np.full((size, k), -np.inf, np.float32)
        self.rows = np.zeros((size, k), np.int64)


def to_bytes(rows: Floats) -> tuple[SignedBytes, Floats]:
    """Convert rows to int8 and return the scale of each: the largest number of a row becomes 127."""
    largest = np.abs(rows).max(axis=1, initial=0)
    if not np.isfinite(largest).all():
        raise InputError("a vector holds a number that is not finite")
    scales = (largest / LARGEST_BYTE).astype(np.float32)
    safe = np.where(scales > 0, scales, 1)
    return np.rint(rows / safe[:, None]).clip(-LARGEST_BYTE, LARGEST_BYTE).astype(np.int8), scales


def _widened(rows: Any) -> Floats:
    if rows.dtype != np.float16:
        floats: Floats = np.asarray(rows, np.float32)
        return floats
    wide = np.empty(rows.shape, np.float32)
    halves = frozen(np.ascontiguousarray(rows).view(np.uint16).reshape(-1))
    widen_halves(halves, wide.reshape(-1))
    return wide


def unit(vectors: Floats) -> Floats:
    """Scale a vector, or each row, to length one; zeros stay zeros."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=-1, keepdims=True)
    units: Floats = (wide / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return units
