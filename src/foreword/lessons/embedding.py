"""What an embedding is, in numbers: does it keep words apart, in how many dimensions does it live, what words share.

An embedding should be one-to-one, and by the manifold hypothesis its points need fewer dimensions than they have. Two
neighbours of each point tell how many: the ratio of their distances, μ = r₂ / r₁, has P(μ > m) = m^−d where points lie
evenly in d dimensions (E. Facco et al., "Estimating the intrinsic dimension of datasets by a minimal neighborhood
information", 2017).
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Doubles, Reals
from foreword.errors import InputError, SettingError
from foreword.vectors.subwords import character_ngrams
from foreword.vectors.wordvectors import WordVectors


def distinct_vectors(vectors: WordVectors) -> int:
    """How many different vectors there are: as many as words, if the mapping is one-to-one."""
    rows = np.ascontiguousarray(vectors.matrix)
    return len(np.unique(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))))


def intrinsic_dimension(points: Reals, *, discard: float = 0.1) -> float:
    """The dimension d of a cloud of points (n, D), from the distances of each to its two nearest.

    A straight line through the origin is fitted to −log(1 − F(μ)) against log μ; its slope is d. The largest ratios,
    a tenth of them, are the least certain and are left out. Points that stand twice count once.
    """
    if not 0 <= discard < 1:
        raise SettingError(f"discard={discard}: expected a share from 0 to less than 1")
    ratios = np.sort(_neighbour_ratios(np.unique(points.astype(np.float64), axis=0)))
    kept = int(len(ratios) * (1 - discard))
    x = np.log(ratios[:kept])
    y = -np.log1p(-np.arange(1, kept + 1) / (len(ratios) + 1))
    return float((x * y).sum() / (x * x).sum())


def _neighbour_ratios(points: Doubles) -> Doubles:
    """r₂ / r₁ of each point."""
    if len(points) < 10:
        raise InputError(f"{len(points)} different points: expected at least ten")
    squares = (points**2).sum(axis=1)
    ratios = np.empty(len(points))
    for begin in range(0, len(points), 512):
        block = points[begin : begin + 512]
        distances = squares[begin : begin + 512, None] + squares - 2 * block @ points.T
        distances[np.arange(len(block)), begin + np.arange(len(block))] = np.inf
        nearest = np.sqrt(np.maximum(np.partition(distances, 1, axis=1)[:, :2], 1e-300))
        ratios[begin : begin + len(block)] = nearest[:, 1] / nearest[:, 0]
    return ratios


def shared_ngrams(one: str, other: str, least: int = 3, most: int = 6) -> float:
    """The share of two words' character n-grams that they have in common: those of both, of those of either."""
    a, b = (set(character_ngrams(word, least, most)) for word in (one, other))
    return len(a & b) / len(a | b) if a | b else 0.0
