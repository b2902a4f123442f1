"""The recursions of a hidden Markov model as the equations have them: one document, one token at a time, NumPy.

``kernels.py`` has the fast versions and the equations; tests hold both equal. Shapes: S = states, K = words, N =
tokens; ``emission`` is (K, S).
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Ids, Longs, Reals


def filtered(start: Reals, transition: Reals, emission: Reals, ids: Ids) -> tuple[Reals, Reals]:
    """Return (N, S) beliefs p(z_n | x_1..x_n) and (N,) scales p(x_n | x_<n)."""
    beliefs, scales = np.empty((len(ids), len(start)), start.dtype), np.empty(len(ids), start.dtype)
    predicted = start
    for index, id in enumerate(ids):
        joint = predicted * emission[id]
        scales[index] = joint.sum()
        beliefs[index] = joint / scales[index] if scales[index] > 0 else predicted
        predicted = beliefs[index] @ transition
    return beliefs, scales


def smoothed(start: Reals, transition: Reals, emission: Reals, ids: Ids) -> tuple[Reals, Reals]:
    """Return (N, S) posteriors p(z_n | x_1..x_N) and (S, S) expected transitions, Σ_n p(z_(n-1), z_n | x_1..x_N)."""
    beliefs, scales = filtered(start, transition, emission, ids)
    transitions = np.zeros_like(transition)
    posteriors = beliefs.copy()
    later = np.ones_like(start)
    for index in range(len(ids) - 1, 0, -1):
        posteriors[index] *= later
        seen = emission[ids[index]] / scales[index] if scales[index] > 0 else np.ones_like(start)
        weights = np.where(beliefs[index] > 0, seen * later, 0)
        transitions += transition * np.outer(beliefs[index - 1], weights)
        later = transition @ weights
    posteriors[:1] *= later
    return posteriors, transitions


def viterbi(log_start: Reals, log_transition: Reals, log_emission: Reals, ids: Ids) -> Longs:
    """Return (N,) the states of the likeliest path; among equals the lowest, from the last token backwards."""
    best = np.empty((len(ids), len(log_start)), log_start.dtype)
    reached = log_start
    for index, id in enumerate(ids):
        seen = reached + log_emission[id]
        best[index] = seen if np.isfinite(seen).any() else reached
        reached = (best[index][:, None] + log_transition).max(axis=0)
    path = np.empty(len(ids), np.int64)
    for index in range(len(ids) - 1, -1, -1):
        following = 0 if index == len(ids) - 1 else log_transition[:, path[index + 1]]
        path[index] = np.argmax(best[index] + following)
    return path
