"""An update by Adam in one pass over the weights, on a GPU: ``kernels_update.py`` launched."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from foreword.nn.gpu import runs_kernels
from foreword.training.kernels_update import adam
from foreword.training.optimisers import BETAS, EPSILON, Adam

BLOCK = 4096
"""Weights of one program."""

Update = Callable[[Tensor, Tensor, Tensor, Tensor], None]
"""Takes the gradient, its factor, the plan of the update and the shares of the averages; moves everything in place."""


def can_fuse(weights: Tensor) -> bool:
    """Return whether the kernel runs where the weights are."""
    return runs_kernels(weights.device.type, weights.device.index)


def fused_adam(weights: Tensor, averages: Tensor, working: Tensor | None, optimiser: Adam, decay: float) -> Update:
    """Return a function that makes an update. averages (A, n); working (n,): a copy in half precision, if any."""
    second = optimiser.moments["second"]
    first = optimiser.moments.get("first", second)
    grid = (-(-len(weights) // BLOCK),)

    def update(gradient: Tensor, factor: Tensor, plan: Tensor, shares: Tensor) -> None:
        adam[grid](
            weights, gradient, first, second, averages, weights if working is None else working, plan, shares, factor,
            len(weights), decay, optimiser.beta1, BETAS[1], EPSILON, FIRST=optimiser.beta1 > 0,
            AVERAGES=len(averages), WORKING=working is not None, BLOCK=BLOCK, num_warps=8,
        )  # fmt: skip

    return update
