"""What a network supplies to the engine for one run: its weights, its batches, and the loss of a batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from foreword.arrays import Array, Longs
from foreword.training.batches import bucketed
from foreword.training.gradients import Shapes
from foreword.training.settings import Training
from foreword.training.workers import WorkerGroup

if TYPE_CHECKING:
    from foreword.training.engine import Trainer

Weights = Mapping[str, Tensor]
State = tuple[Tensor, ...]

UPDATES_ON_GPU = 20
"""Updates between two Steps on a GPU, where reading the loss waits for the device."""


class Loss(NamedTuple):
    """The loss of one batch.

    value: what is differentiated, times ``Trainer.scale``. reported: the mean loss of ``Step``, unscaled; by default
    value / scale. state: what the next update begins with.
    """

    value: Tensor
    reported: Tensor | None = None
    state: State = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """Epochs in which the first ``groups`` groups of weights are trained, at a rate of their own."""

    epochs: int
    rate: float
    groups: int = 1


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring tensors that are trained at ``factor`` times the rate."""

    names: Sequence[str]
    factor: float = 1.0


class Task:
    """What a network supplies for one training run. Methods without a default must be written.

    reseeded: every epoch draws from random numbers of its own, seeded by its number, instead of one sequence.
    sparse: on a CPU gradients of embeddings stay sparse. blocked_norm: the gradient's norm is added up in blocks.
    casts: the loss converts weights to half precision itself, instead of being given half-precision weights.
    later_wins: of equal scores on the held-out data the later one is the best. limit: a loss above it has diverged.
    evaluate: scores flat weights on the held-out data, higher is better; None without such data.
    network: has ``tensors`` and ``initialise`` for its weights, unless these are overridden here.
    """

    reseeded: ClassVar[bool] = False
    sparse: ClassVar[bool] = False
    blocked_norm: ClassVar[bool] = False
    casts: ClassVar[bool] = False
    later_wins: ClassVar[bool] = False
    limit: ClassVar[float] = math.inf
    evaluate: Callable[[Tensor], float] | None = None
    network: Any
    device: torch.device

    def bind(self, device: torch.device, group: WorkerGroup) -> None:
        """Prepare for a device and a group of workers; called first."""
        self.device = device

    def check_workers(self, workers: int) -> None:
        """Refuse a number of workers that cannot share a batch."""

    def tensors(self) -> Shapes:
        """Return the weights' names and shapes, in the order in which they are stored."""
        shapes: Shapes = self.network.tensors()
        return shapes

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Draw the initial weights; they are zero before."""
        self.network.initialise(weights, generator)

    def begin_epoch(self, random: np.random.Generator) -> list[int]:
        """Draw the batches of an epoch; return what each update counts in ``Step.done``."""
        raise NotImplementedError

    def seek(self, update: int) -> None:
        """Prepare for an update in the middle of the epoch that was just begun, to resume there."""

    def loss(self, weights: Weights, run: Trainer) -> Loss:
        """Return the loss of the batch of update ``run.update``."""
        raise NotImplementedError

    def state(self, like: Tensor) -> State:
        """Return what every epoch begins with; ``like`` has the device and precision."""
        return ()

    def stages(self, settings: Training) -> list[Stage]:
        """Return the stages of the run."""
        return [Stage(settings.epochs, settings.rate)]

    def groups(self) -> list[Group]:
        """Return the groups of weights that stages and rates tell apart."""
        return [Group(list(self.tensors()))]

    def rate_factor(self, update: int) -> float:
        """Return a factor of one update's rate."""
        return 1.0

    def updates_per_step(self, device: torch.device) -> int | None:
        """Return the number of updates between two Steps; None to go by the clock."""
        return 1 if device.type == "cpu" else UPDATES_ON_GPU

    def recordable(self) -> bool:
        """Return whether every update runs the same kernels, so that it can be a CUDA graph."""
        return False

    def scale(self) -> float:
        """Return the constant that the loss is a multiple of."""
        return 1.0

    def upgrade(self, saved: dict[str, Array], like: Mapping[str, Array]) -> dict[str, Array]:
        """Convert a checkpoint that an older version wrote."""
        return saved


class BatchTask(Task):
    """A task that reads examples in batches of similar length.

    lengths: what each example counts; an example of length 0 is left out. With several workers each reads its share of
    a batch, and losses are weighted by the lengths of the shares.
    """

    def __init__(self, lengths: Sequence[int] | Longs, batch: int) -> None:
        self.lengths, self.batch = np.asarray(lengths, np.int64), batch
        self._batches: list[list[int]] = []

    def batches(self, random: np.random.Generator) -> list[list[int]]:
        """Draw the batches of an epoch, each a list of examples."""
        return bucketed(self.lengths.tolist(), self.batch, random)

    def batch_loss(self, weights: Weights, examples: list[int], run: Trainer) -> Loss:
        """Return the loss of some examples, times ``run.scale``."""
        raise NotImplementedError

    def begin_epoch(self, random: np.random.Generator) -> list[int]:
        """Draw the batches of an epoch."""
        self._batches = self.batches(random)
        return [int(self.lengths[each].sum()) for each in self._batches]

    def loss(self, weights: Weights, run: Trainer) -> Loss:
        """Return the loss of this worker's share of a batch, weighted so that the mean over workers is the batch's."""
        examples = self._batches[run.update]
        if run.group.size == 1:
            return self.batch_loss(weights, examples, run)
        own = examples[run.group.rank :: run.group.size]
        loss = self.batch_loss(weights, own or examples[:1], run)
        return loss._replace(value=loss.value * self.share(own, examples, run.group.size))

    def share(self, own: list[int], examples: list[int], workers: int) -> float:
        """Return the weight of one worker's loss, a mean over its examples; for a sum it is ``workers``."""
        return workers * float(self.lengths[own].sum()) / float(self.lengths[examples].sum())
