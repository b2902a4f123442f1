"""How fast a hidden Markov model forgets: two readers who differ in what they believe at the beginning, and then read
the same words, come to believe the same.

How far apart they still are after each word is measured, and held against what theory says they cannot exceed:
R. L. Dobrushin, "Central limit theorem for nonstationary Markov chains", Theory of Probability and its Applications 1
(1956). Shapes: S = states, N = words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from foreword.arrays import Doubles, Ids, Reals
from foreword.hmm.model import HMM


@dataclass(frozen=True, slots=True)
class Fading:
    """distances (N,): how far apart two beliefs are after each word. bounds (N,): what they cannot exceed."""

    distances: Doubles
    bounds: Doubles


def total_variation(first: Reals, second: Reals) -> float:
    """½ Σ |p − q|: 0 for the same distribution, 1 for two that have nothing in common."""
    return float(np.abs(np.subtract(first, second, dtype=np.float64)).sum() / 2)


def dobrushin(kernel: Reals) -> float:
    """The largest total variation between two rows of a stochastic matrix: one step brings any two distributions
    together by at least this factor (Dobrushin 1956).
    """
    return max((total_variation(row, other) for row in kernel for other in kernel), default=0.0)


def fading(model: HMM, ids: Ids, first: Reals, second: Reals) -> Fading:
    """Two readers who differ in what they believe at the beginning, (S,) each, read the same words.

    Given all words up to the n-th the states still form a chain, whose step k is F_k(i, j) ∝ A_ij B_j(x_k) p(x_(k+1)
    … x_n | z_k = j). Both readers' beliefs about z_n pass through the same F_2 … F_n, so their total variation is at
    most the product of the Dobrushin coefficients (Cappé, Moulines and Rydén, "Inference in Hidden Markov Models",
    2005, section 4.3). That of A alone bounds only what happens where nothing is read.
    """
    distances, bounds = np.empty(len(ids)), np.empty(len(ids))
    one, other = first, second
    for place, id in enumerate(np.asarray(ids)):
        one, other = model.correct(one, int(id)), model.correct(other, int(id))
        distances[place] = total_variation(one, other)
        bounds[place] = math.prod(map(dobrushin, _conditional_steps(model, ids[: place + 1])))
        one, other = model.predict(one), model.predict(other)
    return Fading(distances, bounds)


def _conditional_steps(model: HMM, ids: Ids) -> Iterator[Reals]:
    """The chain's steps given all the words, from the last to the first; only rows from where they can be read."""
    later = np.ones(model.states)
    for id in np.asarray(ids)[:0:-1]:
        step = model.transition_ * (model.emission_[:, id] * later)
        later = step.sum(axis=1)
        step = step[later > 0] / later[later > 0][:, None]
        later = later / later.max(initial=0, where=later > 0) if later.any() else np.ones(model.states)
        yield step
