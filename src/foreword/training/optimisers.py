"""How a gradient moves the weights. All weights are one vector, see ``gradients.py``.

    sgd     w ← w − rate · g
    adam    m ← β₁ m + (1 − β₁) g,    v ← β₂ v + (1 − β₂) g²,
            w ← w − rate · (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)

With β₁ = 0 the mean m is the gradient itself and is not stored.

D. Kingma and J. Ba, "Adam: a method for stochastic optimization" (2015).
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

BETAS = (0.9, 0.999)
EPSILON = 1e-8

NEVER_DENORMAL = 1e-30
"""Added before a square root: on a CPU it is ten times as slow for numbers below 1e-38."""

BLOCK = 1 << 16
"""Numbers that Adam updates at a time on a CPU: its five vectors then stay in the cache between its operations."""


ALL = slice(None)


class Optimiser(Protocol):
    """A rule that moves weights along their gradient.

    plan: what the host knows of an update, for ``update`` to read on the device. moments: vectors that it remembers.
    ``update`` moves a segment of the weights, ``at`` of their vector, along a gradient as long, or a sparse one.
    """

    moments: dict[str, Tensor]

    def plan(self, rate: float, step: int) -> tuple[float, ...]: ...
    def update(
        self, weights: Tensor, gradient: Tensor, factor: Tensor | float, planned: Tensor, at: slice = ALL
    ) -> None: ...


class SGD:
    """Stochastic gradient descent. planned: (rate,)."""

    def __init__(self) -> None:
        self.moments: dict[str, Tensor] = {}

    def plan(self, rate: float, step: int) -> tuple[float, ...]:
        """Return the rate."""
        return (rate,)

    def update(
        self, weights: Tensor, gradient: Tensor, factor: Tensor | float, planned: Tensor, at: slice = ALL
    ) -> None:
        """Move the weights; of a sparse gradient only its rows."""
        if gradient.is_sparse:
            by = -float(planned[0] * factor)
            weights.view(gradient.shape).index_add_(0, gradient._indices()[0], gradient._values(), alpha=by)
        else:
            weights.addcmul_(gradient, planned[0] * factor, value=-1)


class Adam:
    """Adam. planned: rate / (1 − β₁ᵗ), 1 / √(1 − β₂ᵗ)."""

    def __init__(self, weights: Tensor, beta1: float = BETAS[0]) -> None:
        self.beta1 = beta1
        first = {"first": torch.zeros_like(weights)} if beta1 else {}
        self.moments = {**first, "second": torch.zeros_like(weights)}
        self._workspace = torch.empty_like(weights if weights.device.type != "cpu" else weights[:BLOCK])

    def plan(self, rate: float, step: int) -> tuple[float, ...]:
        """Return the two factors of update ``step``, counted from 1."""
        return rate / (1 - self.beta1**step), (1 - BETAS[1] ** step) ** -0.5

    def update(
        self, weights: Tensor, gradient: Tensor, factor: Tensor | float, planned: Tensor, at: slice = ALL
    ) -> None:
        """Update the moments and move the weights."""
        gradient = gradient.to_dense().view(-1) if gradient.is_sparse else gradient
        first = self.moments["first"][at] if self.beta1 else gradient
        second = self.moments["second"][at]
        for begin in range(0, len(weights), len(self._workspace)):
            part = slice(begin, begin + len(self._workspace))
            g, m, v = gradient[part], first[part], second[part]
            buffer = self._workspace[: len(g)]
            g.mul_(factor)
            if self.beta1:
                m.lerp_(g, 1 - self.beta1)
            v.mul_(BETAS[1]).addcmul_(g, g, value=1 - BETAS[1])
            torch.add(v, NEVER_DENORMAL, out=buffer)
            buffer.sqrt_().mul_(planned[1]).add_(EPSILON)
            torch.div(m, buffer, out=buffer)
            weights[part].addcmul_(buffer, planned[0].expand_as(buffer), value=-1)


def optimiser(name: str, weights: Tensor, beta1: float = BETAS[0]) -> Optimiser:
    """Return the optimiser of that name for these weights; beta1: of Adam."""
    return Adam(weights, beta1) if name == "adam" else SGD()
