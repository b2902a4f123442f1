"""Networks trained by several workers under Ray Train, each with its share of every batch.

The workers are a group of ``torch.distributed``: gloo between CPUs, nccl between GPUs. All weights lie in one vector
(``training/gradients.py``), into which their gradients are gathered; its mean over the workers is one all-reduce per
update, which is what DistributedDataParallel does with a single bucket. That class itself cannot be used here: it takes
gradients from modules, and the output layer's is made where it belongs, before any module would see it
(``nn/softmax.py``). A worker's dropout is its own; clipping and the update come after the mean, the same for all.

One worker's run is the plain one, to the byte. With more the mean of the gradients is added up in another order, and
dropout is drawn by each, so the numbers differ as those of two batches do.

Every minute all workers hand what they hold to Ray (``ray.train.report``). A worker or a node that is lost costs what
came after that: Ray begins the workers anew from there, and the end is the same.
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
from typing import Any

from torch import Tensor, distributed, float64, tensor

from foreword.arrays import Array
from foreword.cluster.connect import connected, lost
from foreword.errors import ForewordError, SettingError
from foreword.neural.model import NeuralLM
from foreword.protocols import Meter
from foreword.storage.atomic import atomic_file
from foreword.storage.folder import load, save
from foreword.storage.safetensors import read_arrays
from foreword.tokens.corpus import Corpus
from foreword.training.checkpoint import Checkpoint, Upgrade
from foreword.training.workers import SINGLE_WORKER, WorkerGroup

PROGRESS, TOLD_EVERY = "progress.json", 1.0
"""Where the first worker writes down how far it is, and how many seconds apart."""

TRIES = 3
"""How often Ray begins the workers anew before it gives up."""


def fit_on_ray(
    model: NeuralLM,
    corpus: Corpus,
    valid: Corpus | None = None,
    *,
    folder: str | Path,
    address: str | None = None,
    workers: int = 1,
    threads: int = 1,
    resume: bool = False,
    every: float = 60.0,
    meter: Meter | None = None,
) -> NeuralLM:
    """Train on the cluster at ``address``; ``folder``, which all its nodes see, keeps the run.

    The folder may be deleted when this has returned. resume: go on with what is there. threads: cores of a worker.
    every: seconds between two checkpoints.
    """
    place = Path(folder).absolute()
    model.check_training(corpus, valid)
    if workers > 1 and min(model.training.batch, len(corpus.ids)) % workers:
        raise SettingError(f"batch={model.training.batch} cannot be shared by {workers} workers: expected a multiple")
    if workers > 1 and model.training.seconds:
        raise SettingError(f"seconds={model.training.seconds:g} is for one worker: the clocks of several differ")
    if place.is_file():
        raise SettingError(f"{place} keeps a run without --ray: go on with it without, or remove it")
    if not resume:
        shutil.rmtree(place, ignore_errors=True)
    if not (place / "corpus").exists():
        save(corpus, place / "corpus")
        if valid is not None:
            save(valid, place / "valid")
    with connected(address) as ray:
        from ray.train import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer

        on_gpu = model.device == "cuda" or (
            model.device is None and ray.cluster_resources().get("GPU", 0) >= workers
        )  # fmt: skip
        run = TorchTrainer(
            _train,
            train_loop_config={"model": model, "folder": str(place), "threads": threads, "every": every},
            scaling_config=ScalingConfig(
                num_workers=workers,
                use_gpu=on_gpu,
                resources_per_worker={"CPU": threads} | ({"GPU": 1} if on_gpu else {}),
            ),
            run_config=RunConfig(
                name="run",
                storage_path=str(place),
                failure_config=FailureConfig(max_failures=TRIES),
                checkpoint_config=CheckpointConfig(num_to_keep=1),
            ),
        )
        with _watched(place, meter):
            try:
                result = run.fit()
            except Exception as error:
                raise ForewordError(_reason(error)) from error
        assert result.checkpoint is not None  # every run ends in one
        with result.checkpoint.as_directory() as kept:
            model.task(corpus, valid)
            return model.restore_best(read_arrays(Path(kept) / _file_of(0)))


def _reason(error: Exception) -> str:
    """What a worker said, if it was one of ours, else what Ray says."""
    failures: Mapping[int, BaseException] = getattr(error, "worker_failures", {})
    for each in failures.values():
        cause = getattr(each, "cause", each)
        if isinstance(cause, ForewordError):
            return str(cause)
    return f"Ray gave up training: {lost(error)}"


@contextmanager
def _watched(folder: Path, meter: Meter | None) -> Iterator[None]:
    """Tell the meter what the first worker writes down about how far it is."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(TOLD_EVERY):
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


class Group:
    """The workers of a run, as ``torch.distributed`` knows them. device: where they meet."""

    def __init__(self, device: str) -> None:
        self._device = device
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()

    def broadcast(self, weights: Tensor) -> None:
        distributed.broadcast(weights, 0)

    def average(self, gradient: Tensor) -> None:
        distributed.all_reduce(gradient)
        gradient /= self.size

    def agree(self, number: float) -> float:
        told = tensor([number], dtype=float64, device=self._device)
        distributed.broadcast(told, 0)
        return float(told.item())


class RayCheckpoint(Checkpoint):
    """A checkpoint that Ray keeps: a file of each worker, all of the same step."""

    def __init__(self, group: WorkerGroup, every: float) -> None:
        super().__init__(_file_of(group.rank), every=every)
        self._group = group

    def due(self) -> bool:
        return self._group.agree(float(super().due())) > 0

    def write(self, arrays: Mapping[str, Array], kind: str, run: str) -> None:
        from ray import train

        with tempfile.TemporaryDirectory() as folder:
            file = Checkpoint(Path(folder) / self.path.name)
            file.write(arrays, kind, run)
            train.report({"written": self.written + 1}, checkpoint=train.Checkpoint.from_directory(folder))
        self.written += 1
        self._last = time.monotonic()

    def read(
        self, like: Mapping[str, Array], kind: str, run: str, upgrade: Upgrade | None = None
    ) -> dict[str, Array] | None:
        from ray import train

        kept = train.get_checkpoint()
        if kept is None:
            return None
        with kept.as_directory() as folder:
            return Checkpoint(Path(folder) / self.path.name).read(like, kind, run, upgrade)


def _train(config: dict[str, Any]) -> None:
    import torch
    from ray.train.torch import get_device

    torch.set_num_threads(config["threads"])
    model: NeuralLM = config["model"]
    model.device = get_device().type
    group: WorkerGroup = SINGLE_WORKER if distributed.get_world_size() == 1 else Group(model.device)
    folder = Path(config["folder"])
    corpus = load(folder / "corpus")
    valid = load(folder / "valid") if (folder / "valid").exists() else None
    checkpoint = RayCheckpoint(group, config["every"])
    told = 0.0
    for step in model.train(corpus, valid=valid, checkpoint=checkpoint, group=group):
        if group.rank == 0 and time.monotonic() - told > TOLD_EVERY:
            told = time.monotonic()
            with atomic_file(folder / PROGRESS) as new:
                new.write_text(json.dumps([step.loss, step.done, step.total]))
