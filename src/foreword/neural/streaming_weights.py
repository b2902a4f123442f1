"""Matrices as a step without torch reads them: in float32, or in whole numbers with a scale for each row.

``Screened`` finds a product's largest numbers without reading all of the float32: what numbers rounded to int8 say is
off by no more than

    | x · w − x̃ · w̃ |  ≤  |x| |w − w̃| + |x − x̃| |w̃|        (Cauchy and Schwarz)

so a row that is beaten even so is out, and the few that are left are multiplied out in float32, to the bit as all of
them would have been. Shapes: n texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from foreword.arrays import Floats, Longs, Shorts, SignedBytes
from foreword.native.simd import LANES
from foreword.nn.kernels_inference import (
    ROWS_AT_ONCE,
    SMALL_STEP,
    multiply_rows,
    multiply_short_rows,
    multiply_small_rows,
    round_rows,
)


class Matrix(Protocol):
    def multiply(self, x: Floats) -> Floats: ...  # (n, columns) to (n, rows), the bias added


@dataclass(frozen=True, slots=True)
class Whole:
    """values (rows, columns), flat; bias (rows,)."""

    values: Floats
    bias: Floats

    def multiply(self, x: Floats) -> Floats:
        texts, columns = x.shape
        out = np.empty((texts, len(self.bias)), np.float32)
        multiply_rows(self.values, self.bias, x.reshape(-1), texts, len(self.bias), columns, out.reshape(-1))
        return out


@dataclass(frozen=True, slots=True)
class Short:
    """values: int16 (rows, columns), padded with zeros to a multiple of 16, flat; scales and bias (rows,)."""

    values: Shorts
    scales: Floats
    bias: Floats
    padded: int

    def multiply(self, x: Floats) -> Floats:
        texts, columns = x.shape
        wide = x
        if columns != self.padded:
            wide = np.zeros((texts, self.padded), np.float32)
            wide[:, :columns] = x
        out = np.empty((texts, len(self.bias)), np.float32)
        multiply_short_rows(
            self.values, self.scales, self.bias, wide.reshape(-1), texts, len(self.bias), self.padded, out.reshape(-1)
        )
        return out


@dataclass(frozen=True, slots=True)
class Small:
    """values: int8 (rows, columns), padded with zeros to multiples of 2 and 64, flat; scales and bias (rows,).

    limit: how large a text's whole numbers may be, so that no sum of products leaves int32.
    """

    values: SignedBytes
    scales: Floats
    bias: Floats
    padded: int
    limit: int

    def multiply(self, x: Floats) -> Floats:
        texts, columns = x.shape
        rounded, x_scales = np.empty(texts * self.padded, np.int16), np.empty(texts, np.float32)
        round_rows(x.reshape(-1), texts, columns, self.limit, rounded, self.padded, x_scales)
        out = np.empty((texts, len(self.bias)), np.float32)
        multiply_small_rows(
            self.values, self.scales, self.bias, rounded, x_scales, texts, len(self.bias), self.padded,
            np.empty(4, np.int32), out.reshape(-1),
        )  # fmt: skip
        return out


def matrix(weight: Floats, bias: Floats, kind: np.dtype[Any]) -> Matrix:
    """kind: of what is kept, float32, int16 or int8."""
    if kind == np.float32:
        values = np.empty(weight.size, np.float32)  # NumPy asks for huge pages, torch does not: a fourth of the time
        values[:] = weight.reshape(-1)
        return Whole(values, bias)
    if kind == np.int8:
        return small_matrix(weight, bias)
    values, scales, padded = _rounded(weight, np.dtype(np.int16), 1, LANES)
    return Short(values, scales, bias, padded)


def small_matrix(weight: Floats, bias: Floats) -> Small:
    values, scales, padded = _rounded(weight, np.dtype(np.int8), ROWS_AT_ONCE, SMALL_STEP)
    limit = min((1 << 15) - 1, ((1 << 31) - 1) // (127 * weight.shape[1]))
    return Small(values, scales, bias, padded, limit)


def _rounded(weight: Floats, kind: np.dtype[Any], together: int, step: int) -> tuple[Any, Floats, int]:
    """Whole numbers, flat, rows and columns padded with zeros to multiples; the rows' scales; columns with padding."""
    rows, columns = weight.shape
    sizes = np.abs(weight).max(axis=1)
    scales = np.where(sizes > 0, sizes / np.iinfo(kind).max, 1).astype(np.float32)
    padded = -(-columns // step) * step
    small = np.empty((-(-rows // together) * together, padded), kind)  # not zeros: see tokens/strings.py
    small.fill(0)
    small[:rows, :columns] = np.rint(weight / scales[:, None])
    return small.reshape(-1), scales, padded


WORTH = 8
"""Rows for each that is asked for, at least: with fewer it is as well to multiply all of them."""

HALF, LOST = 0.5001, 2.0**-22
"""A rounded number is off by half a step, and a little for the division; what one operation in float32 loses, fourfold.
"""


class Screened:
    """A matrix in float32 and, beside it, in int8: a quarter more to keep, a quarter to read."""

    def __init__(self, exact: Whole) -> None:
        self._exact, self._small = exact, None
        rows = exact.values.reshape(len(exact.bias), -1)
        self._lost = LOST * (rows.shape[1] + 8)
        self._sizes = (1 + self._lost) * np.linalg.norm(rows, axis=1)
        if not (np.isfinite(self._sizes).all() and np.isfinite(exact.bias).all()):
            return
        self._small = rounded = small_matrix(rows, exact.bias)
        again = rounded.values.reshape(-1, rounded.padded)[: len(rows), : rows.shape[1]] * rounded.scales[:, None]
        self._away = (1 + self._lost) * np.linalg.norm(rows - again, axis=1)
        self._of_bias = 2 * LOST * np.abs(exact.bias)

    def largest(self, x: Floats, count: int) -> tuple[Longs, Floats]:
        """Rows, rising, among which are those of the ``count`` largest products with x (columns,); the products."""
        rows, columns = len(self._exact.bias), len(x)
        size = float(np.linalg.norm(x))
        if self._small is None or count * WORTH > rows or not np.isfinite(size):
            return np.arange(rows), self._exact.multiply(x[None])[0]
        about = self._small.multiply(x[None])[0]
        off = HALF * float(np.abs(x).max()) / self._small.limit * columns**0.5
        radius = (size + off) * self._away + (off + self._lost * size) * self._sizes + self._of_bias
        lower = about - radius
        floor = lower.max() if count == 1 else np.partition(lower, -count)[-count]
        few = np.flatnonzero(about + radius >= floor)
        chosen = self._exact.values.reshape(rows, columns)[few]
        return few, Whole(chosen.reshape(-1), self._exact.bias[few]).multiply(x[None])[0]
