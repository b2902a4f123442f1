"""Data parallelism: what the workers that train one network have to agree on, and a step as a CUDA graph.

Each worker reads its share of a batch; the mean of their gradients is the gradient of the batch, and all make the same
update. Whatever a worker decides by its clock is decided by the first one and sent to the others, since all must take
part in the same collective operations in the same order.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class WorkerGroup(Protocol):
    """Workers of one run. rank: which of ``size`` workers this is; the first is 0."""

    @property
    def rank(self) -> int:
        """The index of this worker."""

    @property
    def size(self) -> int:
        """The number of workers."""

    def broadcast(self, weights: Tensor) -> None:
        """Copy the weights of the first worker to all."""

    def average(self, gradient: Tensor) -> None:
        """Replace a gradient by its mean over all workers."""

    def agree(self, number: float) -> float:
        """Return the number that the first worker has."""


class SingleWorker:
    """A group of one worker: nothing changes."""

    rank, size = 0, 1

    def broadcast(self, weights: Tensor) -> None:
        """Keep the weights."""

    def average(self, gradient: Tensor) -> None:
        """Keep the gradient."""

    def agree(self, number: float) -> float:
        """Return the number."""
        return number


SINGLE_WORKER = SingleWorker()
