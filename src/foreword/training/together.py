"""Several workers that train one network: what they have to agree on.

Each reads its share of the places of a batch, and the mean of their gradients is the gradient of the batch; all then
make the same update. Everything a worker decides by its clock is decided by the first and told to the others, for they
have to come to the same meetings in the same order.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Together(Protocol):
    """rank: which of ``size`` workers this is; the first, 0, has the last word."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def begin_alike(self, weights: Tensor) -> None: ...  # those of the first, for all
    def average(self, gradient: Tensor) -> None: ...  # the mean of all workers', in place
    def agree(self, number: float) -> float: ...  # what the first says


class Alone:
    """One worker: there is nobody to ask, and nothing changes."""

    rank, size = 0, 1

    def begin_alike(self, weights: Tensor) -> None:
        pass

    def average(self, gradient: Tensor) -> None:
        pass

    def agree(self, number: float) -> float:
        return number


ALONE = Alone()
