"""t-SNE: points in a plane for rows of many dimensions, such that neighbours stay neighbours.

    p(j | i) ∝ exp(−|x_i − x_j|² / 2σ_i²), σ_i such that i has ``perplexity`` neighbours, about;  p_ij = mean of both
    q_ij ∝ 1 / (1 + |y_i − y_j|²)             minimise KL(p ‖ q) by descent, with p four times as large at first

Exact, over all pairs: for the hundreds of words that a map can show. It starts from the two principal components, so
the same rows give the same map. L. van der Maaten and G. Hinton, "Visualizing data using t-SNE", JMLR 2008.
Shapes: n rows of d numbers in, (n, 2) out.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Array, Doubles
from foreword.errors import SettingError

EARLY, EXAGGERATION = 100, 4.0
"""Rounds of early exaggeration, and its factor: groups form before they settle."""

BISECTIONS = 40
"""Bisection steps in the search of each width."""


def principal_components(rows: Array) -> Doubles:
    """Project rows onto their two principal components, (n, 2), signed so that the largest coordinate is positive."""
    centred = np.asarray(rows, np.float64) - np.mean(rows, axis=0)
    _, _, components = np.linalg.svd(centred, full_matrices=False)
    points: Doubles = centred @ components[:2].T
    signs = np.sign(points[np.abs(points).argmax(axis=0), np.arange(points.shape[1])])
    points = points * np.where(signs == 0, 1, signs)
    return np.pad(points, ((0, 0), (0, 2 - points.shape[1])))


def tsne(rows: Array, *, perplexity: float = 15.0, rounds: int = 300) -> Doubles:
    """Return points (n, 2) for n rows; the perplexity is at most a third of n − 1."""
    n = len(rows)
    if n < 4:
        raise SettingError(f"t-SNE of {n} rows: expected four or more")
    if perplexity < 1 or rounds < 1:
        raise SettingError("t-SNE needs a perplexity of 1 or more, and a round or more")
    near = affinities(rows, min(perplexity, (n - 1) / 3))
    points = principal_components(rows)
    points *= 1e-2 / max(float(points[:, 0].std()), 1e-12)
    rate, speed, gains = max(n / EXAGGERATION / 4, 50.0), np.zeros_like(points), np.ones_like(points)
    for number in range(rounds):
        early = number < min(EARLY, rounds // 3)
        gradient = _gradient(near * EXAGGERATION if early else near, points)
        gains = np.maximum(np.where(gradient * speed < 0, gains + 0.2, gains * 0.8), 0.01)
        speed = (0.5 if early else 0.8) * speed - rate * gains * gradient
        points = points + speed
        points -= points.mean(axis=0)
    return points


def affinities(rows: Array, perplexity: float) -> Doubles:
    """Return p_ij (n, n), symmetric, with sum one."""
    far = _distances(np.asarray(rows, np.float64))
    np.fill_diagonal(far, np.inf)
    nearest = far.min(axis=1, keepdims=True)  # subtracted, so that no row of exponentials is all zeros
    scale = max(float(np.median(far[np.isfinite(far)])), 1e-20)
    least, most = np.full(len(far), 1e-6 / scale), np.full(len(far), 1e6 / scale)
    shares = np.empty_like(far)
    for _ in range(BISECTIONS):
        precision = np.sqrt(least * most)
        shares = np.exp(-(far - nearest) * precision[:, None])
        shares /= shares.sum(axis=1, keepdims=True)
        entropy = -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1)
        wide = entropy > np.log(perplexity)
        least, most = np.where(wide, precision, least), np.where(wide, most, precision)
    both: Doubles = (shares + shares.T) / (2 * len(far))
    return both


def divergence(near: Doubles, points: Doubles) -> float:
    """Return KL(p ‖ q), in nats, which t-SNE minimises."""
    inverse = _inverse(points)
    q = np.maximum(inverse / inverse.sum(), 1e-300)
    some = near > 0
    return float((near[some] * np.log(near[some] / q[some])).sum())


def _gradient(near: Doubles, points: Doubles) -> Doubles:
    inverse = _inverse(points)
    pull = (near - inverse / inverse.sum()) * inverse
    gradient: Doubles = 4 * (pull.sum(axis=1)[:, None] * points - pull @ points)
    return gradient


def _inverse(points: Doubles) -> Doubles:
    """Return 1 / (1 + |y_i − y_j|²), with zeros on the diagonal."""
    inverse: Doubles = 1 / (1 + _distances(points))
    np.fill_diagonal(inverse, 0)
    return inverse


def _distances(rows: Doubles) -> Doubles:
    squares = (rows**2).sum(axis=1)
    far: Doubles = np.maximum(squares[:, None] + squares[None] - 2 * rows @ rows.T, 0)
    return far
