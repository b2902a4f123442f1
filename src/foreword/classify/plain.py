"""Naive Bayes and dual coordinate ascent in the plainest NumPy, on dense matrices: what the fast roads must equal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp, wrightomega

from foreword.arrays import Doubles


def multinomial_joint_logs(counts: Doubles, labels: Any, alpha: float, documents: Doubles) -> Doubles:
    """The logs log p(c) + Σ_j x_j log p(w_j | c) of documents, (documents, classes), learnt from counts and labels."""
    columns = []
    for label in range(int(labels.max()) + 1):
        seen = counts[labels == label].sum(axis=0) + alpha
        columns.append(np.log(np.mean(labels == label)) + documents @ np.log(seen / seen.sum()))
    return np.stack(columns, axis=1)


def objective(
    X: Doubles, labels: Any, table: Doubles, bias: Doubles, strength: float, scales: Doubles | None = None
) -> float:
    """C Σ_i −log p(y_i | x_i) + ½ Σ (W / s)²; scales are s², (features, classes)."""
    scores = X @ table + bias
    loss = (logsumexp(scores, axis=1) - scores[np.arange(len(labels)), labels]).sum()
    return float(strength * loss + 0.5 * (table**2 / (1.0 if scales is None else scales)).sum())


@dataclass
class Ascent:
    """Dual coordinate ascent as ``dual.py`` tells it.

    X: (documents, features). scales: s², (features, classes). shares: p̃, at first all of it on the right class.
    """

    X: Doubles
    labels: Any
    strength: float
    scales: Doubles
    shares: Doubles = field(init=False)
    table: Doubles = field(init=False)
    bias: Doubles = field(init=False)

    def __post_init__(self) -> None:
        classes = self.scales.shape[1]
        self.shares = np.eye(classes)[self.labels]
        self.table = np.zeros_like(self.scales)
        self.bias = np.zeros(classes)

    def visit(self, i: int, loose: float) -> None:
        """The best p̃_i while all others stay, and what that does to W and b."""
        x = self.X[i]
        lengths = self.strength * (x**2 @ self.scales + loose)
        scores = x @ self.table + self.bias
        new = settle(scores + lengths * self.shares[i], lengths)
        step = self.strength * (self.shares[i] - new)
        self.table += self.scales * np.outer(x, step)
        self.bias += loose * step
        self.shares[i] = new


def settle(scores: Doubles, lengths: Doubles) -> Doubles:
    """The p with log p_c + L_c p_c = u_c − ν, where ν is such that they sum to one: it is bisected.

    For a given ν, p_c = ω(u_c − ν + log L_c) / L_c with Wright's function ω(z) + log ω(z) = z.
    """
    low, high = scores.min() - lengths.max() - 1, logsumexp(scores) + 1
    for _ in range(200):
        level = 0.5 * (low + high)
        shares = wrightomega(scores - level + np.log(lengths)) / lengths
        low, high = (level, high) if shares.sum() > 1 else (low, level)
    settled: Doubles = shares / shares.sum()
    return settled
