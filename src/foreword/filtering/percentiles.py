"""The k-th best of very many numbers that lie on disk, exactly, in memory that does not grow with them.

A float64 is made a whole number that sorts in the same order. Its first 16 bits are counted, the bin that holds the
k-th number is found, then the next 16 bits of those in the bin are counted, and so on: four readings, and 512 KB for
each label, ``GROUPS`` labels at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from foreword.arrays import Array, Doubles, Longs, ULongs
from foreword.filtering.shards import VALUE

DIGIT = 16
"""Bits that are counted in one reading."""

BINS = 1 << DIGIT
GROUPS = 64
READ_VALUES = 1 << 20

Values = Callable[[], Iterable[Array]]
"""Some VALUEs at a time, from the beginning at every call."""


def values_in(paths: Sequence[Path]) -> Values:
    def read() -> Iterator[Array]:
        for path in paths:
            with path.open("rb") as file:
                while len(part := np.fromfile(file, VALUE, READ_VALUES)):
                    yield part

    return read


def best_shares(
    values: Values, percents: Sequence[float], low: bool, labels: Sequence[str] | None
) -> dict[str, tuple[float, ...]]:
    """For each label that occurs, or for all together under ``*``, the worst value among the best p percent.

    That is the value than which ⌈n · p / 100⌉ of n are no worse. low: whether low values are the good ones.
    """
    names = ["*"] if labels is None else list(labels)
    found: dict[str, tuple[float, ...]] = {}
    for first in range(0, len(names), GROUPS):
        some = names[first : first + GROUPS]
        grouped = _grouped(values, None if labels is None else first, len(some))
        sizes = sum((np.bincount(group, minlength=len(some)) for group, _ in grouped()), np.zeros(len(some), np.int64))
        limits = [_limits(grouped, sizes, percent, low) for percent in percents]
        for place in np.flatnonzero(sizes).tolist():
            found[some[place]] = tuple(float(limit[place]) for limit in limits)
    return found


Grouped = Callable[[], Iterable[tuple[Longs, Doubles]]]


def _grouped(values: Values, first: int | None, groups: int) -> Grouped:
    """The values of ``groups`` labels from ``first`` on, with the group each is in."""

    def read() -> Iterator[tuple[Longs, Doubles]]:
        for part in values():
            numbers = np.ascontiguousarray(part["value"])
            if first is None:
                yield np.zeros(len(part), np.int64), numbers
                continue
            group = part["label"].astype(np.int64) - first
            inside = (group >= 0) & (group < groups)
            yield group[inside], numbers[inside]

    return read


def _limits(grouped: Grouped, sizes: Longs, percent: float, low: bool) -> Doubles:
    """The threshold of each group that is not empty."""
    wanted = np.array([max(1, math.ceil(size * percent / 100)) for size in sizes.tolist()])
    rank = wanted - 1 if low else sizes - wanted  # from below
    prefix = np.zeros(len(sizes), np.uint64)
    for shift in range(64 - DIGIT, -1, -DIGIT):
        counts = np.zeros(len(sizes) * BINS, np.int64)
        for group, numbers in grouped():
            keys = sortable(numbers)
            if shift + DIGIT < 64:
                inside = keys >> np.uint64(shift + DIGIT) == prefix[group]
                group, keys = group[inside], keys[inside]
            digits = ((keys >> np.uint64(shift)) & np.uint64(BINS - 1)).astype(np.int64)
            counts += np.bincount(group * BINS + digits, minlength=len(counts))
        ends = np.cumsum(counts.reshape(-1, BINS), axis=1)
        digit = np.minimum((ends <= rank[:, None]).sum(axis=1), BINS - 1)
        before = ends[np.arange(len(sizes)), digit] - counts.reshape(-1, BINS)[np.arange(len(sizes)), digit]
        rank = rank - before
        prefix = prefix << np.uint64(DIGIT) | digit.astype(np.uint64)
    return unsortable(prefix)


_SIGN = np.uint64(1 << 63)


def sortable(values: Doubles) -> ULongs:
    """Whole numbers in the order of the values: the sign bit is turned, and of negative numbers all others too."""
    bits = values.view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def unsortable(keys: ULongs) -> Doubles:
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)
