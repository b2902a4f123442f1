"""The base of every model that the engine trains: device, fitting, weights by name, saving and loading them.

A model derives from ``NeuralModel`` and supplies ``task``, which begins a run on some data, see ``training/engine.py``;
``fingerprinted``, the arrays that identify the data; and what JSON says of its settings. ``train`` yields Steps and may
be stopped at any of them: the model then is the best so far on the held-out data, or without such data what it was at
the end of the last epoch.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from foreword.arrays import Array
from foreword.checks import check_weights
from foreword.errors import GpuMemoryError, MissingExtraError, NotFittedError
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, Meter, Step

try:
    import torch
    from torch import Tensor
except ImportError:
    raise MissingExtraError("torch", "neural", "a neural network") from None

from foreword.nn.dropout import Dropout
from foreword.storage.checkpoint import Checkpoint, fingerprint
from foreword.training.engine import Trainer
from foreword.training.gradients import Shapes, choose_device, new_flat, views
from foreword.training.settings import Training, dropout_from, training_from
from foreword.training.task import Task, Weights
from foreword.training.workers import SINGLE_WORKER, WorkerGroup

Data = TypeVar("Data")


def without_length(settings: Mapping[str, Json]) -> dict[str, Json]:
    """Return the settings without how long to train: that may change when a run is resumed, what it learns may not."""
    return {
        name: without_length(value) if isinstance(value, dict) else value
        for name, value in settings.items()
        if name not in ("epochs", "seconds")
    }


class NeuralModel(ShownInNotebook, Generic[Data]):
    """A network and its training settings.

    TRAINING, DROPOUT: used where none are given. PLACES: where units may be dropped, fields of ``Dropout``.
    NEEDS: what ``fit`` is called with, for messages. STEPS: whether ``steps`` of the training limits its memory.
    valid_score_: the best score on held-out data, higher is better.
    """

    TRAINING: ClassVar[Training] = Training()
    DROPOUT: ClassVar[Dropout] = Dropout()
    PLACES: ClassVar[tuple[str, ...]] = ("words", "input", "between", "output", "recurrent")
    NEEDS: ClassVar[str] = "data"
    STEPS: ClassVar[bool] = False

    def __init__(
        self,
        training: Training | None,
        dropout: Dropout | float | None,
        seed: int,
        device: str | None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.training = training_from(self.TRAINING, training, settings or {})
        self.dropout = dropout_from(self.DROPOUT, dropout, self.PLACES)
        self.seed, self.device = seed, device
        self.valid_score_ = -math.inf
        self._flat: Tensor | None = None

    # What a model supplies

    def task(self, data: Data, valid: Data | None) -> Task:
        """Check the data and begin a run: learn vocabularies, build the network."""
        raise NotImplementedError

    def shapes(self) -> Shapes:
        """Return the names and shapes of the weights."""
        raise NotImplementedError

    def settings(self) -> dict[str, Json]:
        """Return the settings as model.json has them; the device, a matter of the machine, is left out."""
        raise NotImplementedError

    def fingerprinted(self, data: Data) -> Sequence[Array]:
        """Return arrays that identify the data."""
        raise NotImplementedError

    # Training

    def fit(self, data: Data, *, valid: Data | None = None, meter: Meter | None = None) -> Self:
        """Train to the end."""
        for step in self.train(data, valid=valid):
            if meter is not None:
                meter(f"training, loss {step.loss:.3f}", step.done, step.total)
        return self

    def train(
        self,
        data: Data,
        *,
        valid: Data | None = None,
        checkpoint: Checkpoint | None = None,
        group: WorkerGroup = SINGLE_WORKER,
    ) -> Iterator[Step]:
        """Train, yielding progress. With a checkpoint a run that was stopped resumes where it was.

        group: workers that train the same model in parallel, see ``cluster/training.py``.
        """
        yield from self._steps(self.trainer(data, valid=valid, group=group), data, valid, checkpoint)

    def trainer(self, data: Data, *, valid: Data | None = None, group: WorkerGroup = SINGLE_WORKER) -> Trainer:
        """Begin a run; the model is its best weights from now on."""
        return self._begin(self.task(data, valid), group)

    def _begin(self, task: Task, group: WorkerGroup) -> Trainer:
        with self._training_memory():
            trainer = Trainer(task, self.training_settings(task), self.torch_device(), seed=self.seed, group=group)
        self._flat, self.valid_score_ = trainer.best, -math.inf
        return trainer

    def training_settings(self, task: Task) -> Training:
        """Return the settings for one run."""
        return self.training

    def _steps(
        self, trainer: Trainer, data: Data, valid: Data | None, checkpoint: Checkpoint | None
    ) -> Iterator[Step]:  # fmt: skip
        run = "" if checkpoint is None else self.run_id(data, valid, trainer.group.size)
        if checkpoint is not None and checkpoint.stored_run() not in (None, run):  # 0.1.0 may have written it
            earlier = self.run_id(data, valid, trainer.group.size, with_length=True)
            run = earlier if checkpoint.stored_run() == earlier else run
        with self._training_memory():
            for step in trainer.steps(checkpoint, type(self).__name__, run):
                self.valid_score_ = trainer.best_score
                yield step
        self.valid_score_ = trainer.best_score

    def _training_memory(self) -> AbstractContextManager[None]:
        """Say which settings to lower where the GPU's memory does not suffice."""
        steps = f", fewer steps than {self.training.steps}" if self.STEPS else ""
        return gpu_memory("this training", f"a batch below {self.training.batch}{steps} or a smaller model")

    def run_id(self, data: Data, valid: Data | None, workers: int = 1, *, with_length: bool = False) -> str:
        """Return the fingerprint of a run: settings, data and the number of workers.

        with_length: count epochs and seconds among the settings, as 0.1.0 did.
        """
        held_out = [] if valid is None else self.fingerprinted(valid)
        settings = self.settings() if with_length else without_length(self.settings())
        run = fingerprint(settings, *self.fingerprinted(data), *held_out)
        return run if workers == 1 else f"{run} by {workers}"

    def restore_best(self, arrays: Mapping[str, Array]) -> Self:
        """Restore the best weights from a checkpoint, of a run that other workers finished."""
        self._flat = torch.from_numpy(np.array(arrays["best"])).to(self.torch_device())
        self.valid_score_ = float(arrays["score"][0])
        return self

    # Weights

    @property
    def weights_(self) -> Weights:
        """The learnt weights by name."""
        return views(self.flat_weights(), self.shapes())

    @property
    def parameter_count(self) -> int:
        """The number of weights."""
        return sum(math.prod(shape) for shape in self.shapes().values())

    def flat_weights(self) -> Tensor:
        """Return all learnt weights in one vector."""
        if self._flat is None:
            raise NotFittedError(self, self.NEEDS)
        return self._flat

    @contextlib.contextmanager
    def using(self, weights: Tensor) -> Iterator[None]:
        """Use other flat weights temporarily, to evaluate them."""
        own, self._flat = self._flat, weights
        try:
            yield
        finally:
            self._flat = own

    def evaluator(self, score: Callable[[], float]) -> Callable[[Tensor], float]:
        """Return a function that scores the model with other flat weights."""

        def evaluate(weights: Tensor) -> float:
            with self.using(weights):
                return score()

        return evaluate

    def weight_arrays(self, prefix: str = "weights.") -> dict[str, Array]:
        """Return the weights as arrays, for saving."""
        return {f"{prefix}{name}": part.cpu().numpy().copy() for name, part in self.weights_.items()}

    def load_weights(self, shapes: Shapes, arrays: Mapping[str, Array], prefix: str = "weights.") -> None:
        """Take weights over from arrays, each of which is checked before memory is allocated."""
        check_weights(arrays, shapes, prefix)
        flat = new_flat(shapes, self.torch_device())
        for name, part in views(flat, shapes).items():
            part.copy_(torch.from_numpy(np.array(arrays[f"{prefix}{name}"])))
        self._flat = flat

    def torch_device(self) -> torch.device:
        """Return the device to compute on: the one that was asked for, or the GPU where there is one."""
        return choose_device(self.device)


@contextlib.contextmanager
def gpu_memory(work: str, expected: str) -> Iterator[None]:
    """Turn torch's error of a full GPU into one line. work: what the memory is for. expected: what to lower."""
    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise GpuMemoryError(work, expected) from error


def scoring_memory() -> AbstractContextManager[None]:
    """Say what to do where the GPU's memory does not suffice for scoring, of which no setting decides the memory."""
    return gpu_memory("scoring", "a smaller model, or the CPU (set CUDA_VISIBLE_DEVICES= in the environment)")


@contextlib.contextmanager
def exact() -> Iterator[None]:
    """Compute without gradients, and in full float32 also in cuDNN."""
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield
