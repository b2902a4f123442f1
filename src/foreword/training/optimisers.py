"""How a gradient moves the weights. All weights are one vector, see ``flat.py``.

    sgd     w ← w − rate · g
    adam    m ← β₁ m + (1 − β₁) g,    v ← β₂ v + (1 − β₂) g²,
            w ← w − rate · (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)

D. Kingma and J. Ba, "Adam: a method for stochastic optimization" (2015).
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

BETAS = (0.9, 0.999)
EPSILON = 1e-8

NEVER_DENORMAL = 1e-30
"""Added before a root is drawn: of numbers below 1e-38, which CPUs handle in software, it takes ten times as long."""

BLOCK = 1 << 16
"""Numbers that Adam moves at a time on a CPU: its five vectors then stay in the cache between its operations."""


ALL = slice(None)


class Optimiser(Protocol):
    """plan: what the host knows of an update, for ``update`` to read on the device. moments: what is remembered.

    ``update`` moves a stretch of the weights, ``at`` of their vector, along a gradient as long, or one of some rows,
    which is a sparse tensor.
    """

    moments: dict[str, Tensor]

    def plan(self, rate: float, step: int) -> tuple[float, ...]: ...
    def update(
        self, weights: Tensor, gradient: Tensor, factor: Tensor | float, planned: Tensor, at: slice = ALL
    ) -> None: ...


class SGD:
    """planned: (rate,)."""

    def __init__(self) -> None:
        self.moments: dict[str, Tensor] = {}

    def plan(self, rate: float, step: int) -> tuple[float, ...]:
        return (rate,)

    def update(
        self, weights: Tensor, gradient: Tensor, factor: Tensor | float, planned: Tensor, at: slice = ALL
    ) -> None:
        if gradient.is_sparse:
            by = -float(planned[0] * factor)
            weights.view(gradient.shape).index_add_(0, gradient._indices()[0], gradient._values(), alpha=by)
        else:
            weights.addcmul_(gradient, planned[0] * factor, value=-1)


class Adam:
    """planned: rate / (1 − β₁ᵗ), 1 / √(1 − β₂ᵗ)."""

    def __init__(self, weights: Tensor) -> None:
        self.moments = {"first": torch.zeros_like(weights), "second": torch.zeros_like(weights)}
        self._room = torch.empty_like(weights if weights.device.type != "cpu" else weights[:BLOCK])

    def plan(self, rate: float, step: int) -> tuple[float, ...]:
        """Of update ``step``, counted from 1."""
        return rate / (1 - BETAS[0] ** step), (1 - BETAS[1] ** step) ** -0.5

    def update(
        self, weights: Tensor, gradient: Tensor, factor: Tensor | float, planned: Tensor, at: slice = ALL
    ) -> None:
        gradient = gradient.to_dense().view(-1) if gradient.is_sparse else gradient
        first, second = self.moments["first"][at], self.moments["second"][at]
        for begin in range(0, len(weights), len(self._room)):
            part = slice(begin, begin + len(self._room))
            g, m, v = gradient[part], first[part], second[part]
            room = self._room[: len(g)]
            g.mul_(factor)
            m.lerp_(g, 1 - BETAS[0])
            v.mul_(BETAS[1]).addcmul_(g, g, value=1 - BETAS[1])
            torch.add(v, NEVER_DENORMAL, out=room)
            room.sqrt_().mul_(planned[1]).add_(EPSILON)
            torch.div(m, room, out=room)
            weights[part].addcmul_(room, planned[0].expand_as(room), value=-1)


def optimiser(name: str, weights: Tensor) -> Optimiser:
    return Adam(weights) if name == "adam" else SGD()
