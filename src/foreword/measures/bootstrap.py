"""How sure a measure is: the bootstrap over documents.

The test documents are drawn again, with replacement, as many as there are; the perplexity of each draw is computed, and
the middle 95 % of a thousand of them is the interval (B. Efron, "Bootstrap methods: another look at the jackknife",
1979). Words of one document are alike, so whole documents are drawn and never single words. Two models are compared on
the same draws: what a hard document adds to both cancels in their ratio (P. Koehn, "Statistical significance tests for
machine translation evaluation", 2004).

A text of few documents is cut into segments of ``SEGMENT`` tokens, which then stand for documents.
Shapes: T tokens, D documents, M models, S draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from foreword.arrays import Doubles, Longs

DRAWS, AT_ONCE = 1000, 50
"""Draws in all, and of them in memory at a time."""

FEWEST_DOCUMENTS, SEGMENT = 30, 50
"""Documents below which a text is cut into segments, and tokens of a segment."""

LEVEL = 0.95


def resampling_units(offsets: Longs) -> Longs:
    """Return the offsets of what is drawn: documents (D + 1,), or segments where documents are few."""
    if len(offsets) - 1 >= FEWEST_DOCUMENTS:
        return offsets
    return np.unique(np.append(np.arange(offsets[0], offsets[-1], SEGMENT), offsets[-1]))


def resampled_means(logs: Sequence[Doubles], offsets: Longs, *, seed: int = 0) -> Doubles:
    """Return the mean log-probability of each draw, (M, S), from log-probabilities (T,) of each model."""
    units = resampling_units(offsets)
    lengths = np.diff(units).astype(np.float64)
    sums = np.stack([np.add.reduceat(each, units[:-1]) for each in logs]) if len(lengths) else np.empty((len(logs), 0))
    random = np.random.default_rng(seed)
    means = np.empty((len(logs), DRAWS))
    even = np.full(len(lengths), 1 / len(lengths))
    for begin in range(0, DRAWS, AT_ONCE):
        times = random.multinomial(len(lengths), even, size=AT_ONCE).astype(np.float64)
        means[:, begin : begin + AT_ONCE] = sums @ times.T / (times @ lengths)
    return means


def resampled_sums(rows: Doubles, *, seed: int = 0) -> Iterator[Doubles]:
    """Yield the sum of each draw of statistics (D, …) that add up over documents."""
    random = np.random.default_rng(seed)
    even = np.full(len(rows), 1 / len(rows))
    for _ in range(DRAWS):
        yield np.tensordot(random.multinomial(len(rows), even).astype(np.float64), rows, 1)


def interval(values: Sequence[float] | Doubles) -> tuple[float, float]:
    """Return the quantiles that enclose ``LEVEL``."""
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def perplexity_interval(logs: Doubles, offsets: Longs, *, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of the perplexity; infinite where a token was given no probability."""
    if not len(logs) or not np.isfinite(logs).all():
        return math.inf, math.inf
    return _middle(-resampled_means([logs], offsets, seed=seed)[0])


def ratio_interval(logs: Doubles, other: Doubles, offsets: Longs, *, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of the second model's perplexity divided by the first's, on the same draws."""
    if not len(logs) or not (np.isfinite(logs).all() and np.isfinite(other).all()):
        return math.inf, math.inf
    first, second = resampled_means([logs, other], offsets, seed=seed)
    return _middle(first - second)


def _middle(nats: Doubles) -> tuple[float, float]:
    """Return exp of the quantiles that enclose ``LEVEL``."""
    with np.errstate(over="ignore"):
        low, high = np.exp(interval(nats))
    return float(low), float(high)
