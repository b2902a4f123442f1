"""Networks trained by several workers under Ray Train, each with its share of every batch.

Anything that derives from ``NeuralModel`` can be trained so. The workers are a group of ``torch.distributed``: gloo
between CPUs, nccl between GPUs. All weights are one vector (``training/gradients.py``), into which their gradients are
gathered; its mean over the workers is one all-reduce per update, which is what DistributedDataParallel does with a
single bucket. That class itself cannot be used here: it takes gradients from modules, and that of the output layer is
computed before any module would see it (``nn/softmax.py``). Each worker draws its own dropout; clipping and the update
come after the mean, the same for all.

A run with one worker is the plain one, to the byte. With more the mean of the gradients is added up in another order,
and each draws its dropout, so the numbers differ as those of two batches do.

Every minute all workers report a checkpoint to Ray. A worker or a node that is lost costs what came after it: Ray
restarts the workers from there, and the result is the same.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor, distributed, float64, tensor

from foreword.arrays import Array
from foreword.cluster.connect import connected
from foreword.errors import ForewordError, SettingError, reason_of
from foreword.protocols import Json, Meter
from foreword.storage.atomic import atomic_file
from foreword.storage.checkpoint import Checkpoint, Upgrade
from foreword.storage.folder import load, save
from foreword.storage.safetensors import read_arrays
from foreword.tokens.corpus import Corpus
from foreword.training.model import NeuralModel
from foreword.training.workers import SINGLE_WORKER, WorkerGroup

PROGRESS, REPORT_SECONDS = "progress.json", 1.0
"""The file to which the first worker writes its progress, and the seconds between two reports."""

TRIES = 3
"""How often Ray restarts the workers before it gives up."""

Model = TypeVar("Model", bound=NeuralModel[Any])


def fit_on_ray(
    model: Model,
    data: Any,
    valid: Any = None,
    *,
    folder: str | Path,
    address: str | None = None,
    workers: int = 1,
    threads: int = 1,
    resume: bool = False,
    every: float = 60.0,
    meter: Meter | None = None,
) -> Model:
    """Train a model on the cluster at ``address``; ``folder``, which all nodes can read, holds the run.

    The folder may be deleted afterwards. resume: continue the run that is there. threads: cores of a worker.
    every: seconds between two checkpoints.
    """
    where = Path(folder).absolute()
    model.task(data, valid).check_workers(workers)
    if workers > 1 and model.training.seconds:
        raise SettingError(f"seconds={model.training.seconds:g} is for one worker: the clocks of several differ")
    if where.is_file():
        raise SettingError(f"{where} holds a run without --ray: resume it without, or remove it")
    if not resume:
        shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True, exist_ok=True)
    config = {"model": model, "folder": str(where), "threads": threads, "every": every}
    config |= {"data": _stored(data, where / "corpus"), "valid": _stored(valid, where / "valid")}
    with connected(address) as ray:
        trainer = _ray_trainer(config, workers, on_gpu=_on_gpu(model, ray, workers))
        with _progress_reported(where, meter):
            try:
                result = trainer.fit()
            except ray.exceptions.RayActorError as error:  # the actor that controls the workers is not restarted
                raise ForewordError(f"{_reason(error)} (--resume continues from the last checkpoint)") from error
            except Exception as error:
                raise ForewordError(_reason(error)) from error
        assert result.checkpoint is not None  # every run ends in one
        with result.checkpoint.as_directory() as files:
            return model.restore_best(read_arrays(Path(files) / _file_of(0)))


def _stored(data: Any, where: Path) -> Any:
    """Save a corpus, which workers then map into memory; return its path, or other data as they are."""
    if not isinstance(data, Corpus):
        return data
    if not where.exists():
        save(data, where)
    return where


def _on_gpu(model: NeuralModel[Any], ray: Any, workers: int) -> bool:
    """Return whether each worker gets a GPU."""
    return model.device == "cuda" or (model.device is None and ray.cluster_resources().get("GPU", 0) >= workers)


def _ray_trainer(config: dict[str, Any], workers: int, *, on_gpu: bool) -> Any:
    from ray.train import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    resources = {"CPU": config["threads"]} | ({"GPU": 1} if on_gpu else {})
    return TorchTrainer(
        _train,
        train_loop_config=config,
        scaling_config=ScalingConfig(num_workers=workers, use_gpu=on_gpu, resources_per_worker=resources),
        run_config=RunConfig(
            name="run",
            storage_path=config["folder"],
            failure_config=FailureConfig(max_failures=TRIES),
            checkpoint_config=CheckpointConfig(num_to_keep=1),
        ),
    )


def _reason(error: Exception) -> str:
    """Return the message of a worker's error if it is one of ours, else Ray's."""
    failures: Mapping[int, BaseException] = getattr(error, "worker_failures", {})
    for each in failures.values():
        cause = getattr(each, "cause", each)
        if isinstance(cause, ForewordError):
            return str(cause)
    return f"Ray failed to train: {reason_of(error)}"


@contextmanager
def _progress_reported(folder: Path, meter: Meter | None) -> Iterator[None]:
    """Pass the progress that the first worker writes to its file on to the meter."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(REPORT_SECONDS):
            with suppress(OSError, ValueError):
                loss, done, total = json.loads((folder / PROGRESS).read_text())
                if meter:
                    meter(f"training, loss {loss:.3f}", done, total)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


def _file_of(rank: int) -> str:
    return f"worker-{rank}.safetensors"


# What a worker does


class TorchGroup:
    """The workers of a run, a group of ``torch.distributed``. device: of what they exchange."""

    def __init__(self, device: str) -> None:
        self._device = device
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()

    def broadcast(self, weights: Tensor) -> None:
        """Send the weights of the first worker to all."""
        distributed.broadcast(weights, 0)

    def average(self, gradient: Tensor) -> None:
        """Replace a gradient by the mean over all workers."""
        distributed.all_reduce(gradient)
        gradient /= self.size

    def agree(self, number: float) -> float:
        """Return the number that the first worker has."""
        sent = tensor([number], dtype=float64, device=self._device)
        distributed.broadcast(sent, 0)
        return float(sent.item())


class RayCheckpoint(Checkpoint):
    """A checkpoint that is reported to Ray: a file of each worker, all of the same step."""

    def __init__(self, group: WorkerGroup, every: float) -> None:
        super().__init__(_file_of(group.rank), every=every)
        self._group = group

    def due(self) -> bool:
        """Return whether the first worker's clock says so."""
        return self._group.agree(float(super().due())) > 0

    def write(self, arrays: Mapping[str, Array], kind: str, run: str, facts: Mapping[str, Json] | None = None) -> None:
        """Report the arrays of this worker."""
        from ray import train

        with tempfile.TemporaryDirectory() as folder:
            file = Checkpoint(Path(folder) / self.path.name)
            file.write(arrays, kind, run, facts)
            train.report({"written": self.written + 1}, checkpoint=train.Checkpoint.from_directory(folder))
        self.written += 1
        self._last = time.monotonic()

    def read(
        self, like: Mapping[str, Array], kind: str, run: str, upgrade: Upgrade | None = None
    ) -> dict[str, Array] | None:
        """Return what this worker reported last."""
        from ray import train

        reported = train.get_checkpoint()
        if reported is None:
            return None
        with reported.as_directory() as folder:
            return Checkpoint(Path(folder) / self.path.name).read(like, kind, run, upgrade)


def _train(config: dict[str, Any]) -> None:
    import torch
    from ray.train.torch import get_device

    torch.set_num_threads(config["threads"])
    model: NeuralModel[Any] = config["model"]
    model.device = get_device().type
    group: WorkerGroup = SINGLE_WORKER if distributed.get_world_size() == 1 else TorchGroup(model.device)
    folder = Path(config["folder"])
    data, valid = (load(each) if isinstance(each, Path) else each for each in (config["data"], config["valid"]))
    checkpoint = RayCheckpoint(group, config["every"])
    reported = 0.0
    for step in model.train(data, valid=valid, checkpoint=checkpoint, group=group):
        if group.rank == 0 and time.monotonic() - reported > REPORT_SECONDS:
            reported = time.monotonic()
            with atomic_file(folder / PROGRESS) as new:
                new.write_text(json.dumps([step.loss, step.done, step.total]))
