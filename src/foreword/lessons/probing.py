"""What the layers of a stacked network know: a linear probe on the states of each.

    Ŷ = [X, 1] W,    W = argmin |[X, 1] W − Y|² + ridge |W|²        Y: one-hot labels

A probe is as plain as can be, so that what it finds was there already. The answer for a word is
the largest number of its row. X: states (n, H), one row a word.

G. Alain and Y. Bengio, "Understanding intermediate layers using linear classifier probes" (2016); Y. Belinkov and
J. Glass, "Analysis methods in neural language processing" (2019).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from foreword.arrays import Ids, Reals
from foreword.errors import InputError


@dataclass(frozen=True, slots=True)
class Probed:
    """right: what was asked → the share of right answers from each layer, lowest first, on rows that were not learnt
    from. most_frequent: what always giving the commonest label would have right.
    """

    right: dict[str, list[float]]
    most_frequent: dict[str, float]


def probe(layers: list[Reals], asked: Mapping[str, Ids], *, train: float = 0.5, ridge: float = 1e-3) -> Probed:
    """layers: the states of each, (n, H); asked: labels (n,) of the same n words. The first share of them is learnt
    from, the rest answered.
    """
    rows = {len(states) for states in layers} | {len(labels) for labels in asked.values()}
    if len(rows) != 1:
        raise InputError(f"states and labels of {sorted(rows)} words: expected as many of each")
    count = rows.pop()
    cut = int(train * count)
    if not 0 < cut < count:
        raise InputError(f"{count} words: expected enough to learn from some and answer others")
    right: dict[str, list[float]] = {}
    common: dict[str, float] = {}
    for name, labels in asked.items():
        right[name] = [_right(states, labels, cut, ridge) for states in layers]
        common[name] = float((labels[cut:] == np.bincount(labels[:cut]).argmax()).mean())
    return Probed(right, common)


def _right(states: Reals, labels: Ids, cut: int, ridge: float) -> float:
    x = np.concatenate((np.asarray(states, np.float64), np.ones((len(states), 1))), axis=1)
    wanted = np.eye(int(labels.max()) + 1)[labels[:cut]]
    learnt = x[:cut]
    weights = np.linalg.solve(learnt.T @ learnt + ridge * cut * np.eye(x.shape[1]), learnt.T @ wanted)
    return float(((x[cut:] @ weights).argmax(axis=1) == labels[cut:]).mean())
