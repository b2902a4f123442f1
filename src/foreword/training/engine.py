"""One engine for every network: gradient descent with clipping, schedules, averages, checkpoints and data parallelism.

A network supplies a ``Task`` (``task.py``): its tensors by name and shape, its batches, and the loss of a batch. The
engine owns the rest: device, precision, flat parameters, clipping, averaging, keeping the best weights, finite checks,
CUDA graphs, checkpoints, resuming and workers. One update is

    g ← ∂ loss / ∂ w,    g ← g · min(1, clip / |g|),    w ← (1 − rate · decay) w,    w ← w − rate · g  (or by Adam),
    average ← average + share · (w − average)

With L2 the gradient is g + l2 · w from the beginning.

It never waits for the device, so that on a GPU the whole update can be one CUDA graph: what the host decides, rates and
shares, is written to the device for some updates ahead. A language model passes what it remembers from one chunk of
text to the next as plain values, through which no gradient flows (R. Williams and J. Peng, "An efficient gradient-based
algorithm for on-line training of recurrent network trajectories", 1990).

A network is hosted like this; ``training/model.py`` has the base class of models, with fit, train, saving and loading:

    class Line(BatchTask):                                        # y = w x + b
        def __init__(self, x: Tensor, y: Tensor) -> None:
            super().__init__([1] * len(x), batch=16)              # what each example counts in Step.done
            self.x, self.y = x, y

        def tensors(self) -> Shapes:
            return {"w": (1,), "b": (1,)}

        def initialise(self, weights: Weights, generator: torch.Generator) -> None:
            weights["w"].uniform_(-1, 1, generator=generator)

        def batch_loss(self, weights: Weights, examples: list[int], run: Trainer) -> Loss:
            return Loss(run.scale * (weights["w"] * self.x[examples] + weights["b"] - self.y[examples]).square().mean())

    trainer = Trainer(Line(x, y), Training(epochs=3, optimiser="adam", rate=0.01), torch.device("cpu"))
    for step in trainer.steps():                                  # Step(done, total, loss, rate)
        print(step)
    print(views(trainer.best, trainer.shapes))
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from foreword.arrays import Array
from foreword.errors import DivergedError, InputError
from foreword.protocols import Step
from foreword.storage.checkpoint import Checkpoint
from foreword.training.fused import Update, can_fuse, fused_adam
from foreword.training.gradients import (
    Shapes,
    SparseGradients,
    clamp,
    clip_factor,
    gather,
    new_flat,
    new_gradients,
    norm_of,
    plain_norm,
    slices_of,
    views,
)
from foreword.training.graphs import Graphed
from foreword.training.optimisers import Adam, optimiser
from foreword.training.schedules import (
    TwoTails,
    averaging_begins,
    hold_then_cosine,
    plateau,
    running_share,
    slanted,
    step_decay,
)
from foreword.training.settings import Training
from foreword.training.task import Group, Stage, Task
from foreword.training.workers import SINGLE_WORKER, WorkerGroup

PLANNED = 50
"""Updates whose rates and shares are written to the device ahead, at most."""

STEP_SECONDS = 0.3
"""Seconds between two Steps, about, where a task does not fix the number of updates."""


class Progress:
    """Where a run is, and what its schedule makes of that.

    epoch, step: which epoch it is, and updates so far. update: which update of the epoch is being computed.
    evaluations: losses on the held-out data so far.
    """

    def __init__(self, settings: Training, stages: list[Stage]) -> None:
        self.settings, self._stages = settings, stages
        self.epochs = sum(stage.epochs for stage in stages)
        self.epoch = self.step = self.update = 0
        self.evaluations: list[float] = []
        self.tails = TwoTails() if settings.two_tailed else None
        self._done_by_update = [0]
        self._averaging_from: int | None = None
        self._stage_begun = 0
        self._seconds_before, self._began = 0.0, time.monotonic()

    @property
    def updates(self) -> int:
        """Updates of an epoch."""
        return len(self._done_by_update) - 1

    @property
    def epoch_done(self) -> bool:
        """Whether every update of the epoch has been made."""
        return self.update == self.updates

    @property
    def seconds(self) -> float:
        """Seconds of training, those before a checkpoint included."""
        return self._seconds_before + time.monotonic() - self._began

    @property
    def stopped(self) -> bool:
        """Whether the time is up, or the held-out loss has not fallen for ``patience`` evaluations."""
        patience, losses = self.settings.patience, self.evaluations
        stalled = patience > 0 and len(losses) > patience and min(losses[-patience:]) >= min(losses[:-patience])
        return stalled or 0 < self.settings.seconds <= self.seconds

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to do."""
        return self.stopped or (self.epoch_done and self.epoch >= self.epochs)

    @property
    def done(self) -> int:
        """What has been read so far, in all epochs."""
        return self.done_after(self.update)

    def done_after(self, update: int) -> int:
        """Return what has been read before an update of this epoch, in all epochs."""
        return max(0, self.epoch - 1) * self._done_by_update[-1] + self._done_by_update[update]

    def share(self) -> float:
        """Return how much of the run is done, 0 to 1."""
        return min(1.0, self.share_after(self.done))

    def share_after(self, done: int) -> float:
        """Return how much of the run is done when ``done`` has been read, by count or by the clock."""
        by_count = done / max(1, self.epochs * self._done_by_update[-1])
        return max(by_count, self.seconds / self.settings.seconds) if self.settings.seconds else by_count

    def stage(self) -> tuple[int, Stage]:
        """Return the first epoch of the present stage, and the stage."""
        first = 1
        for stage in self._stages[:-1]:
            if self.epoch < first + stage.epochs:
                return first, stage
            first += stage.epochs
        return first, self._stages[-1]

    def rate(self, done: float, step: int) -> float:
        """Return the learning rate of an update: ``done`` of the run, ``step`` updates before it."""
        settings, (_, stage) = self.settings, self.stage()
        factor = min(1.0, (step + 1) / settings.warm_up) if settings.warm_up else 1.0
        match settings.schedule:
            case "cosine":
                factor *= hold_then_cosine(done, hold=settings.hold, last=settings.last_rate)
            case "step":
                factor *= step_decay(self.epoch, first=settings.full_epochs, factor=settings.decay)
            case "plateau":
                factor *= plateau(self.evaluations, patience=settings.wait, factor=settings.decay)
            case "slanted":
                factor *= slanted((step - self._stage_begun) / max(1, stage.epochs * self.updates))
        return stage.rate * factor

    def averaging_share(self, step: int, tail: float) -> float:
        """Return the share of the weights after an update in a running average."""
        if self.settings.schedule != "nt-asgd":
            return running_share(step + 1 - self._stage_begun, tail)
        begun = self._averaging_from
        return 1.0 if begun is None else running_share(step + 1 - begun, tail)

    def averaging_shares(self, step: int) -> list[float]:
        """Return the share of the weights after an update in each average."""
        shares = [self.averaging_share(step, tail) for tail in self.settings.averages]
        return shares if self.tails is None else [*shares, *self.tails.shares(step)]

    def note(self, loss: float) -> None:
        """Record a validation loss, for the schedules that depend on it."""
        self.evaluations.append(loss)
        settled = averaging_begins(self.evaluations, patience=self.settings.wait) is not None
        if self._averaging_from is None and settled:
            self._averaging_from = self.step


def _upgrade_of(task: Task) -> Callable[[dict[str, Array], Mapping[str, Array]], dict[str, Array]]:
    """Return what fits the arrays of a checkpoint to a run, whose number of epochs may have changed.

    States that are carried in float32 now and were in float16 in an older version are converted.
    """

    def upgrade(saved: dict[str, Array], like: Mapping[str, Array]) -> dict[str, Array]:
        saved = task.upgrade(saved, like)
        for name in like:
            half = name.startswith("state") and name in saved and saved[name].dtype == np.float16
            if half and like[name].dtype == np.float32:
                saved[name] = saved[name].astype(np.float32)
        if "looks" in saved and saved["looks"].shape != like["looks"].shape:
            losses = np.full_like(like["looks"], np.nan)
            shared = min(len(losses), saved["looks"].size)
            losses[:shared] = saved["looks"].ravel()[:shared]
            saved["looks"] = losses
        return saved

    return upgrade


class Trainer(Progress):
    """A run of training.

    weights: float32, all weights in one vector, changed in place. averages: one such vector for each of
    ``settings.averages``. best, best_score: the best weights on the held-out data so far, or the last ones.
    scale: what losses are multiplied by. norm: of the last gradient, times ``scale``.
    """

    def __init__(
        self,
        task: Task,
        settings: Training,
        device: torch.device,
        *,
        seed: int = 0,
        group: WorkerGroup = SINGLE_WORKER,
    ) -> None:
        super().__init__(settings, task.stages(settings))
        self.task, self.seed, self.group = task, seed, group
        task.bind(device, group)
        self.device, self.shapes = device, task.tensors()
        self.generator = torch.Generator(device).manual_seed(seed)
        self.weights = new_flat(self.shapes, device)
        task.initialise(views(self.weights, self.shapes), self.generator)
        group.broadcast(self.weights)
        if group.rank:
            self.generator.manual_seed(seed + group.rank)
        self._averages = self.weights.repeat(len(settings.averages) + 2 * settings.two_tailed, 1)
        self.averages = list(self._averages)
        self.best, self.best_score = self.weights.clone(), -math.inf
        self._random = np.random.default_rng(seed)
        self._random_before = _random_state(self._random)
        self._optimiser = optimiser(settings.optimiser, self.weights, settings.beta1)
        self._allocate()

    def _allocate(self) -> None:
        """Make the working copy of the weights, their gradients, and what the device needs to know."""
        settings, device, task = self.settings, self.device, self.task
        precision = settings.precision_on(device.type)
        self._half = precision == "float16" and device.type != "cpu"
        copied = precision != "float32" and device.type != "cpu" and not task.casts
        self._working = self.weights.to(getattr(torch, precision)) if copied else self.weights
        self.scale = (settings.loss_scale if self._half else 1.0) * task.scale()
        self.leaves = {name: part.detach().requires_grad_() for name, part in views(self._working, self.shapes).items()}
        sparse = task.sparse and device.type == "cpu"
        self._gradients = new_gradients(self.weights, self.shapes, self.leaves, sparse=sparse)
        self._groups = task.groups()
        self._slices = _group_slices(self._groups, self.shapes)
        self._moved = [0] * len(self._groups)  # updates of each group
        self._staged = len(self._groups) > 1 or len(self._stages) > 1
        self._trained = list(self.shapes)
        self._first_state = task.state(self._working[:0])
        self.state = tuple(part.clone() for part in self._first_state)
        gathered = self.group.size > 1 or (sparse and settings.l2 > 0)
        self._shared = torch.empty_like(self.weights if gathered else self.weights[:0])
        self._row = torch.zeros((), dtype=torch.int64, device=device)
        self._width = len(self._optimiser.plan(0.0, 1))
        columns = 1 + self._width * len(self._groups) + len(self.averages)
        self._plan = torch.zeros(PLANNED, columns, device=device)
        self._losses = torch.zeros((), dtype=torch.float32, device=device)
        self.norm = torch.zeros((), dtype=torch.float32, device=device)
        self._fused: Update | None = None
        if isinstance(self._optimiser, Adam) and len(self._groups) == 1 and can_fuse(self.weights):
            copy = self._working if copied else None
            self._fused = fused_adam(self.weights, self._averages, copy, self._optimiser, settings.weight_decay)
        # A CUDA graph has one shape, and no exchange with other workers in it.
        recorded = device.type == "cuda" and task.recordable() and self.group.size == 1
        self._go: Callable[[], None] = Graphed(self._one_update, self.generator) if recorded else self._one_update

    @property
    def gradients(self) -> dict[str, Tensor]:
        """The gradients of the last update by name."""
        return self._gradients.by_name()

    def gradient_buffer(self, name: str) -> Tensor:
        """Return memory for a gradient that a loss computes itself, on a CPU and for a ``sparse`` task."""
        if not isinstance(self._gradients, SparseGradients):
            raise ValueError("only a sparse task on a CPU has buffers of gradients")
        return self._gradients.buffer(name)

    def _write_plan(self, count: int) -> None:
        """Write the next updates' rates, what the optimiser makes of them, and the averages' shares to the device."""
        rows = []
        for ahead in range(count):
            step, update = self.step + ahead, self.update + ahead
            rate = self.rate(self.share_after(self.done_after(update)), step) * self.task.rate_factor(update)
            moves = [
                number
                for group, moved in zip(self._groups, self._moved, strict=True)
                for number in self._optimiser.plan(rate * group.factor, moved + ahead + 1)
            ]
            rows.append([rate, *moves, *self.averaging_shares(step)])
        self._plan[:count].copy_(torch.tensor(rows))
        self._row.zero_()

    # The run

    def steps(self, checkpoint: Checkpoint | None = None, kind: str = "", run: str = "") -> Iterator[Step]:
        """Train to the end, resuming from the checkpoint if it was written by this run.

        kind, run: the name of the model and the fingerprint of the run, see ``Checkpoint``.
        """
        if checkpoint is not None:
            self._resume(checkpoint, kind, run)
        evaluated_at = -1
        while not self.ended:
            if self.epoch_done:
                self.begin_epoch(self.epoch + 1)
            for step in self._epoch_steps():
                yield step
                if checkpoint is not None and not self.epoch_done and checkpoint.due():
                    checkpoint.write(self.arrays(), kind, run)
            if self.epoch_done and (self.epoch == self.epochs or self.epoch % self.settings.evaluate_every == 0):
                self.evaluate()
                evaluated_at = self.step
            if self.epoch_done and checkpoint is not None and checkpoint.due():
                checkpoint.write(self.arrays(), kind, run)
        if evaluated_at != self.step and self.stopped:  # by the clock
            self.evaluate()
        if checkpoint is not None:
            checkpoint.write(self.arrays(), kind, run)

    def _epoch_steps(self) -> Iterator[Step]:
        """Run what is left of an epoch."""
        fixed = self.task.updates_per_step(self.device)
        updates = fixed or 1
        while not self.epoch_done and not self.stopped:
            began, rate = time.monotonic(), self.rate(self.share(), self.step)
            loss = self.run(updates)
            total = round(self.done / max(self.share(), 1e-9))
            yield Step(self.done, max(self.done, total), loss, rate)
            if fixed is None:
                faster = STEP_SECONDS / max(1e-3, time.monotonic() - began)
                updates = int(self.group.agree(max(1, min(PLANNED, int(updates * faster)))))

    def begin_epoch(self, epoch: int) -> None:
        """Draw the batches of an epoch."""
        self.epoch, self.update = epoch, 0
        if self.task.reseeded:
            self._random = np.random.default_rng([self.seed, epoch])
            self.generator.manual_seed(int(self._random.integers(1 << 62)) + self.group.rank)
        self._random_before = _random_state(self._random)
        self._done_by_update = [0, *accumulate(self.task.begin_epoch(self._random))]
        first, stage = self.stage()
        if epoch == first:
            self._stage_begun = self.step
        if len(self._groups) > 1:
            self._trained = [name for group in self._groups[: stage.groups] for name in group.names]
            for name, leaf in self.leaves.items():
                leaf.requires_grad_(name in self._trained)
        for part, start in zip(self.state, self._first_state, strict=True):
            part.copy_(start)

    def run(self, updates: int) -> float:
        """Make ``updates`` updates, or what is left of the epoch; return their mean loss."""
        count = min(updates, PLANNED, self.updates - self.update)
        self._write_plan(count)
        self._losses.zero_()
        for _ in range(count):
            self._go()
            self.update += 1
        self.step += count
        _, stage = self.stage()
        self._moved = [moved + count * (place < stage.groups) for place, moved in enumerate(self._moved)]
        loss = (self._losses / count).item()
        _check_finite(loss, self, skips=self._half)
        return loss

    def _one_update(self) -> None:
        self._gradients.clear()
        loss = self.task.loss(self.leaves, self)
        self._gradients.compute(loss.value, self._trained)
        with torch.no_grad():
            self._move()
            for kept, new in zip(self.state, loss.state, strict=True):
                kept.copy_(new)  # its values only: no gradient flows through
            self._losses += loss.value.detach() / self.scale if loss.reported is None else loss.reported.detach()
            self._row += 1

    def _move(self) -> None:
        """Clip the gradients, move the weights along them, and update the averages."""
        settings = self.settings
        plan = self._plan.index_select(0, self._row.reshape(1))[0]
        shares = plan[len(plan) - len(self.averages) :]
        pieces = list(self._gradients.pieces())
        if len(self._shared):
            pieces = [(slice(None), gather(pieces, self._shared))]
            self.group.average(self._shared)
        if settings.l2:
            pieces[0][1].add_(self.weights, alpha=settings.l2 * self.scale)
        if len(self._groups) > 1:
            _, stage = self.stage()
            pieces = [(each, pieces[0][1][each]) for each in self._slices[: stage.groups]]
        if settings.clip_value:
            for _, piece in pieces:
                clamp(piece, settings.clip_value * self.scale)
        (norm_of if self.task.blocked_norm else plain_norm)([piece for _, piece in pieces], self.norm)
        factor = clip_factor(self.norm / self.scale, settings.clip) / self.scale
        if self._half:  # a gradient that overflows counts as none
            factor = torch.where(torch.isfinite(self.norm), factor, 0.0)
        if self._fused is not None:
            self._fused(pieces[0][1], factor, plan, shares)
            return
        if self._half:
            for _, piece in pieces:
                piece.nan_to_num_(0.0, 0.0, 0.0)
        if settings.weight_decay:
            self.weights.mul_(1 - plan[0] * settings.weight_decay)
        for place, (where, piece) in enumerate(pieces):
            first = 1 + self._width * (place if len(self._groups) > 1 else 0)
            self._optimiser.update(self.weights[where], piece, factor, plan[first : first + self._width], where)
        if self._working is not self.weights:
            self._working.copy_(self.weights)
        for average, share in zip(self.averages, shares, strict=True):
            average.lerp_(self.weights, share)

    # Held-out data

    def evaluate(self) -> None:
        """Score the averages, or else the weights, on the held-out data; keep them if they are the best so far."""
        candidates = self.averages or [self.weights]
        if self.task.evaluate is None:
            self.best.copy_(candidates[0])
            return
        scores = [self.group.agree(self.task.evaluate(each)) for each in candidates]
        best = max(scores)
        self.note(-best)
        if best > self.best_score or (self.task.later_wins and best == self.best_score):
            self.best_score = best
            self.best.copy_(candidates[scores.index(best)])
        if self.tails is not None and self.tails.switch(scores[-2], scores[-1], self.step):
            self.averages[-2].copy_(self.averages[-1])

    # Checkpoints

    def _tensors(self) -> dict[str, Tensor]:
        """Return the tensors that the rest of the run depends on."""
        averages = {f"average{place}": part for place, part in enumerate(self.averages)}
        state = {f"state{place}": part for place, part in enumerate(self.state)}
        return {"weights": self.weights, **averages, **self._optimiser.moments, **state, "best": self.best}

    def arrays(self) -> dict[str, Array]:
        """Return all that the rest of the run depends on, on the host."""
        losses = np.full(self.epochs + 1, np.nan)
        losses[: len(self.evaluations)] = self.evaluations[: len(losses)]
        begun = -1 if self._averaging_from is None else self._averaging_from
        found: dict[str, Array] = {name: _for_numpy(part) for name, part in self._tensors().items()}
        found |= {
            "where": np.array([self.epoch, self.update, self.step, begun], np.int64),
            "looks": losses,
            "seconds": np.array([self.seconds]),
            "random": self.generator.get_state().numpy(),
            "score": np.array([self.best_score]),
        }
        if not self.task.reseeded:
            found["order"] = self._random_before
        if self.tails is not None:
            found["tails"] = np.array([self.tails.long, self.tails.short], np.int64)
        if self._staged:
            found["stage"] = np.array([self._stage_begun, *self._moved], np.int64)
        return found

    def _resume(self, checkpoint: Checkpoint, kind: str, run: str) -> None:
        like = self.arrays()
        saved = checkpoint.read(like, kind, run, _upgrade_of(self.task))
        if saved is not None:
            try:
                self.restore(saved)
            except (ValueError, RuntimeError) as error:
                raise InputError(f"{checkpoint.path}: a damaged checkpoint: {error}") from error

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Continue from what ``arrays`` returned."""
        epoch, update, step, begun = arrays["where"].tolist()
        if not 1 <= epoch <= self.epochs or step < 0:
            raise ValueError(f"there is no epoch {epoch}, step {step} in a run of {self.epochs} epochs")
        if not self.task.reseeded:
            _set_random_state(self._random, arrays["order"])
        self.begin_epoch(epoch)
        update = self.updates if update == WHOLE_EPOCH else update
        if not 0 <= update <= self.updates:
            raise ValueError(f"there is no update {update} in an epoch of {self.updates}")
        self.task.seek(update)
        with torch.no_grad():
            for name, part in self._tensors().items():
                part.copy_(torch.from_numpy(arrays[name]))
            if self._working is not self.weights:
                self._working.copy_(self.weights)
        self.generator.set_state(torch.from_numpy(arrays["random"]))
        self.step, self.update, self._moved = step, update, [step]
        if self._staged:
            self._stage_begun, *self._moved = arrays["stage"].tolist()
        self._averaging_from = None if begun < 0 else begun
        if self.tails is not None:
            self.tails.long, self.tails.short = arrays["tails"].tolist()
        self.evaluations = [loss for loss in arrays["looks"].tolist() if loss == loss]
        self.best_score = float(arrays["score"][0])
        self._seconds_before, self._began = float(arrays["seconds"][0]), time.monotonic()


def _check_finite(loss: float, run: Trainer, *, skips: bool) -> None:
    """Raise where the run has diverged. skips: an update whose gradient overflows is left out."""
    if loss <= run.task.limit and math.isfinite(loss) and (skips or math.isfinite(run.norm.item())):
        return
    if math.isfinite(loss) and loss <= run.task.limit:
        what = f"the gradient of {_not_finite(run.gradients) or 'all weights together'} is not a finite number"
    else:
        weight = _not_finite(views(run.weights, run.shapes))
        what = f"the loss is {loss:.3g}" + (f" and {weight} is not a finite number" if weight else "")
    raise DivergedError(_divergence(what, run.step, run.settings))


def _not_finite(parts: Mapping[str, Tensor]) -> str:
    """Return the name of the first tensor with a number that is not finite, or nothing."""
    return next((name for name, part in parts.items() if not bool(torch.isfinite(part).all())), "")


WHOLE_EPOCH = -1
"""Stands for the last update of an epoch in a converted checkpoint."""


def _divergence(what: str, step: int, settings: Training) -> str:
    """Return the message of a run that diverged, and what to try."""
    clip = f", or a smaller clip than {settings.clip:g}" if settings.clip else ", or set a clip"
    return f"training diverged: {what} at step {step}, at the latest: try a lower rate than {settings.rate:g}{clip}"


def _for_numpy(part: Tensor) -> Array:
    """Convert a tensor; NumPy has no bfloat16, but float32 holds the same numbers."""
    array: Array = (part.float() if part.dtype == torch.bfloat16 else part).cpu().numpy()
    return array


def _random_state(random: np.random.Generator) -> Array:
    """Return the state of a PCG64 generator as 64-bit words."""
    state = random.bit_generator.state
    mask = (1 << 64) - 1
    words = [state["state"][name] >> shift & mask for name in ("state", "inc") for shift in (64, 0)]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def _set_random_state(random: np.random.Generator, words: Array) -> None:
    high, low, inc_high, inc_low, has, value = (int(word) for word in words.tolist())
    inner = {"state": high << 64 | low, "inc": inc_high << 64 | inc_low}
    random.bit_generator.state = {"bit_generator": "PCG64", "state": inner, "has_uint32": has, "uinteger": value}


def _group_slices(groups: Sequence[Group], shapes: Shapes) -> list[slice]:
    """Return the slice of the flat weights from each group's first tensor to its last."""
    slices = slices_of(shapes)
    return [
        slice(min(slices[name].start for name in each.names), max(slices[name].stop for name in each.names))
        for each in groups
    ]
