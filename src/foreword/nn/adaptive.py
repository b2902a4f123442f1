"""Adaptive softmax: frequent words in a small softmax of their own, rare ones in clusters that are seldom opened.

    p(w) = softmax(head h)_w                                 for a frequent word
    p(w) = softmax(head h)_cluster · softmax(up down h)_w    for a rare one

Words are numbered by falling frequency, and ``cutoffs`` say where the clusters begin. Most words a text brings are
frequent, so most of the vocabulary is not touched for them; and a cluster is read through fewer units, the fewer the
rarer its words are.

E. Grave et al., "Efficient softmax approximation for GPUs" (2017). Shapes: N words to predict, D units, V words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import linear, log_softmax

from foreword.errors import SettingError
from foreword.nn.softmax import linear_cross_entropy

Weights = Mapping[str, Tensor]

HEAD = "head"


@dataclass(frozen=True, slots=True)
class Adaptive:
    """vocab: V. units: D. cutoffs: the first word of each cluster. factor: the i-th cluster has D / factorⁱ units."""

    vocab: int
    units: int
    cutoffs: tuple[int, ...]
    factor: float = 4.0

    def __post_init__(self) -> None:
        borders = (0, *self.cutoffs, self.vocab)
        if not self.cutoffs or any(low >= high for low, high in pairwise(borders)):
            raise SettingError(f"cutoffs are {self.cutoffs!r}: expected rising numbers between 0 and {self.vocab}")
        if self.factor < 1 or self.units < 1:
            raise SettingError(f"{self.units} units by {self.factor!r}: expected at least 1 of each")

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """The head (frequent words + clusters, D); of each cluster ``down`` (units, D) and ``up`` (words, units)."""
        shapes: dict[str, tuple[int, ...]] = {HEAD: (self.cutoffs[0] + len(self.cutoffs), self.units)}
        for place, (low, high) in enumerate(self._clusters()):
            narrow = max(1, int(self.units // self.factor ** (place + 1)))
            shapes |= {f"down{place}": (narrow, self.units), f"up{place}": (high - low, narrow)}
        return shapes

    def loss(self, weights: Weights, hidden: Tensor, targets: Tensor) -> Tensor:
        """The mean of −log p(target), without the logits of all words at any time. hidden (N, D), targets (N,)."""
        self._check(targets)
        aims, total = targets.clone(), torch.zeros((), device=hidden.device)
        for place, (low, high) in enumerate(self._clusters()):
            rows = ((targets >= low) & (targets < high)).nonzero()[:, 0]
            if len(rows):
                aims[rows] = self.cutoffs[0] + place
                narrow = linear(hidden[rows], weights[f"down{place}"])
                total = total + len(rows) * _loss(narrow, weights[f"up{place}"], targets[rows] - low)
        return _loss(hidden, weights[HEAD], aims) + total / len(targets)

    def logs(self, weights: Weights, hidden: Tensor) -> Tensor:
        """Log-probabilities of all words (N, V), for choosing one."""
        head = log_softmax(linear(hidden, weights[HEAD]), -1)
        first = self.cutoffs[0]
        parts = [head[:, :first]]
        for place, _ in enumerate(self._clusters()):
            within = linear(linear(hidden, weights[f"down{place}"]), weights[f"up{place}"])
            parts.append(log_softmax(within, -1) + head[:, first + place, None])
        return torch.cat(parts, 1)

    def _clusters(self) -> Iterator[tuple[int, int]]:
        return pairwise((*self.cutoffs, self.vocab))

    def _check(self, targets: Tensor) -> None:
        if len(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < self.vocab:
            raise IndexError(f"a target lies outside of 0 to {self.vocab - 1}")


def _loss(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    return linear_cross_entropy(hidden, weight, weight.new_zeros(len(weight)), targets)
