"""The loop: truncated backpropagation through time, with clipping, schedules and running averages.

A text is read in B places at once, T words at a time. What is remembered goes from one stretch to the next as plain
values; the gradient does not follow (R. Williams and J. Peng, "An efficient gradient-based algorithm for on-line
training of recurrent network trajectories", 1990). One step is

    g ← ∂ loss / ∂ w,    g ← g · min(1, clip / |g|),    w ← (1 − rate · decay) w,    w ← w − rate · g  (or by Adam),
    average ← average + share · (w − average)

and it never waits for the device, so that on a GPU the whole of it is one recording (``graphed.py``): what the host
decides, rates and shares, is written down for some steps ahead.
Shapes: N tokens, B texts side by side, L words in each, T words a step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from foreword.arrays import Array
from foreword.errors import DivergedError
from foreword.training.flat import Shapes, views
from foreword.training.gradients import Apart, Gradients, InOne, clamp, gather, norm_of
from foreword.training.graphed import Graphed
from foreword.training.optimisers import optimiser
from foreword.training.reading import Reading
from foreword.training.schedules import averaging_begins, hold_then_cosine, plateau, running_share, step_decay
from foreword.training.settings import Training
from foreword.training.together import ALONE, Together

State = tuple[Tensor, ...]
Loss = Callable[[Mapping[str, Tensor], Tensor, Tensor, State, float], tuple[Tensor, Tensor, State]]
"""loss(weights, inputs (T, B), targets (T, B), state, scale): mean loss · scale, penalties · scale, the new state."""

PLANNED = 50
"""Updates whose rates and shares are written down ahead, at most."""


class Trainer:
    """Weights on their way down.

    weights: float32, every weight in one vector, see ``flat.py``; changed in place. averages: as many such vectors as
    ``settings.averages`` has. state: what a text is begun with. looks: losses on the held-out text so far.
    epoch, step: which epoch it is, and updates so far.
    """

    def __init__(
        self,
        weights: Tensor,
        shapes: Shapes,
        loss: Loss,
        state: State,
        reading: Reading,
        settings: Training,
        generator: torch.Generator | None = None,
        *,
        seed: int = 0,
        together: Together = ALONE,
    ) -> None:
        self._together = together
        self.weights, self.shapes, self.settings, self.seed = weights, shapes, settings, seed
        self.averages = [weights.clone() for _ in settings.averages]
        self.state = tuple(part.clone() for part in state)
        self.reading = reading
        self.epoch, self.step = 0, 0
        self.looks: list[float] = []
        self._first_state = state
        self._loss = loss
        self._generator = generator
        self._averaging_from: int | None = None
        self._seconds_before, self._began = 0.0, time.monotonic()
        device = weights.device
        self._working = self._working_copy()
        self._scale = settings.loss_scale if self._working.dtype == torch.float16 else 1.0
        self._leaves = {name: part.detach().requires_grad_() for name, part in views(self._working, shapes).items()}
        self._shared = torch.empty_like(weights if together.size > 1 else weights[:0])  # all workers' gradient
        on_cpu = device.type == "cpu"
        self._gradients: Gradients = Apart(shapes, self._leaves) if on_cpu else InOne(weights, shapes, self._leaves)
        self._optimiser = optimiser(settings.optimiser, weights)
        self._inputs = torch.zeros(reading.length, reading.rows, dtype=torch.int64, device=device)
        self._targets = torch.zeros_like(self._inputs)
        self._stretches: list[int] = []
        self._update_in_epoch = self._words_in_epoch = 0
        self._place = torch.zeros((), dtype=torch.int64, device=device)
        self._row = torch.zeros((), dtype=torch.int64, device=device)
        self._window = torch.arange(reading.stretch, device=device)
        self._plan = torch.zeros(PLANNED, len(self._planned(0, 0.0, 1.0)), device=device)
        self._losses = torch.zeros((), dtype=torch.float32, device=device)
        self._norm = torch.zeros((), dtype=torch.float32, device=device)
        # A recording has one length, and no meeting with other workers in it.
        recorded = device.type == "cuda" and not reading.vary and together.size == 1
        self._go: Callable[[], None] = Graphed(self._one_step, generator) if recorded else self._one_step

    def _working_copy(self) -> Tensor:
        """What products are made with: the weights themselves, or their copy in half precision."""
        if self.settings.precision == "float32" or self.weights.device.type == "cpu":
            return self.weights
        return self.weights.to(getattr(torch, self.settings.precision))

    # Where the run is

    @property
    def epoch_done(self) -> bool:
        return self._update_in_epoch == len(self._stretches)

    @property
    def seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._began

    @property
    def stopped(self) -> bool:
        """Whether the time is up, or the held-out loss has not fallen for long enough."""
        patience, looks = self.settings.patience, self.looks
        stalled = patience > 0 and len(looks) > patience and min(looks[-patience:]) >= min(looks[:-patience])
        return stalled or 0 < self.settings.seconds <= self.seconds

    @property
    def tokens(self) -> int:
        """Read so far, all epochs together."""
        return self._words() * self.reading.all_rows

    def share(self) -> float:
        """How much of the run is done, 0 to 1."""
        return min(1.0, self._share_after(self._words()))

    def _share_after(self, words: int) -> float:
        settings = self.settings
        by_words = words / (settings.epochs * self.reading.words)
        return max(by_words, self.seconds / settings.seconds) if settings.seconds else by_words

    def _words(self) -> int:
        """Words of a row read so far, all epochs together."""
        return max(0, self.epoch - 1) * self.reading.words + self._words_in_epoch

    def look(self, loss: float) -> None:
        """Take note of the loss on the held-out text."""
        self.looks.append(loss)
        if self._averaging_from is None and averaging_begins(self.looks, patience=self.settings.wait) is not None:
            self._averaging_from = self.step

    # What the host decides

    def rate(self, done: float, step: int) -> float:
        """The learning rate of an update: ``done`` of the run, ``step`` updates before it."""
        settings = self.settings
        factor = min(1.0, (step + 1) / settings.warm_up) if settings.warm_up else 1.0
        match settings.schedule:
            case "cosine":
                factor *= hold_then_cosine(done, hold=settings.hold, last=settings.last_rate)
            case "step":
                factor *= step_decay(self.epoch, first=settings.full_epochs, factor=settings.decay)
            case "plateau":
                factor *= plateau(self.looks, patience=settings.wait, factor=settings.decay)
        return settings.rate * factor

    def _averaging_share(self, step: int, tail: float) -> float:
        if self.settings.schedule != "nt-asgd":
            return running_share(step + 1, tail)
        begun = self._averaging_from
        return 1.0 if begun is None else running_share(step + 1 - begun, tail)

    def _planned(self, step: int, done: float, part: float) -> list[float]:
        """One row of the plan: the rate, what the optimiser makes of it, the share of each average."""
        rate = self.rate(done, step) * part
        shares = [self._averaging_share(step, tail) for tail in self.settings.averages]
        return [rate, *self._optimiser.plan(rate, step + 1), *shares]

    # The run

    def begin_epoch(self, epoch: int) -> None:
        """An epoch draws from seeds of its own, so that it can be begun without those before it."""
        random = np.random.default_rng([self.seed, epoch])
        if self._generator is not None:
            self._generator.manual_seed(int(random.integers(1 << 62)) + self._together.rank)
        inputs, targets = self.reading.epoch(random)
        self._inputs.copy_(inputs)
        self._targets.copy_(targets)
        self._stretches = self.reading.stretches(random)
        self.epoch, self._update_in_epoch, self._words_in_epoch = epoch, 0, 0
        self._place.zero_()
        for part, first in zip(self.state, self._first_state, strict=True):
            part.copy_(first)

    def run(self, updates: int) -> float:
        """So many updates, or what is left of the epoch; the mean loss over them.

        A loss that is no number ends the run and says where.
        """
        first = self._update_in_epoch
        lengths = self._stretches[first : first + min(updates, PLANNED)]
        self._write_plan(lengths)
        self._losses.zero_()
        for length in lengths:
            if length != len(self._window):
                self._window = torch.arange(length, device=self.weights.device)
            self._go()
        self.step += len(lengths)
        self._update_in_epoch += len(lengths)
        self._words_in_epoch += sum(lengths)
        loss = (self._losses / len(lengths)).item()
        self._check(loss)
        return loss

    def _write_plan(self, lengths: list[int]) -> None:
        words, rows = self._words(), []
        for ahead, length in enumerate(lengths):
            part = length / self.reading.stretch if self.reading.vary else 1.0
            rows.append(self._planned(self.step + ahead, self._share_after(words), part))
            words += length
        self._plan[: len(rows)].copy_(torch.tensor(rows))
        self._row.zero_()

    def _check(self, loss: float) -> None:
        skips = self._working.dtype == torch.float16  # there a gradient too large is passed over
        if np.isfinite(loss) and (skips or np.isfinite(self._norm.item())):
            return
        tensor = "the loss" if not np.isfinite(loss) else self._first_bad()
        clip = f", or a smaller clip than {self.settings.clip:g}" if self.settings.clip else ", or set a clip"
        raise DivergedError(
            f"training diverged: {tensor} is not a finite number at step {self.step}, at the latest:"
            f" try a lower rate than {self.settings.rate:g}{clip}"
        )

    def _first_bad(self) -> str:
        bad = (name for name, part in self.gradients.items() if not bool(torch.isfinite(part).all()))
        return f"the gradient of {next(bad, 'all weights together')}"

    def _one_step(self) -> None:
        self._gradients.forget()
        rows = self._place + self._window
        inputs, targets = self._inputs.index_select(0, rows), self._targets.index_select(0, rows)
        loss, penalty, state = self._loss(self._leaves, inputs, targets, self.state, self._scale)
        self._gradients.compute(loss + penalty)
        with torch.no_grad():
            self._update()
            for kept, new in zip(self.state, state, strict=True):
                kept.copy_(new)  # its values only: the gradient is cut here
            self._losses += loss.detach() / self._scale
            self._place += len(self._window)
            self._row += 1

    @property
    def gradients(self) -> dict[str, Tensor]:
        """Of the last update, by name."""
        return self._gradients.by_name()

    def claim(self, name: str) -> Tensor:
        """On a CPU: where a gradient goes, for a loss that makes it there itself. What else reaches it is added."""
        if not isinstance(self._gradients, Apart):
            raise ValueError("gradients are claimed on a CPU only")
        return self._gradients.claim(name)

    def _update(self) -> None:
        settings = self.settings
        plan = self._plan.index_select(0, self._row.reshape(1))[0]
        rate, planned, shares = (
            plan[0],
            plan[1 : len(plan) - len(self.averages)],
            plan[len(plan) - len(self.averages) :],
        )
        pieces = list(self._gradients.pieces())
        if self._together.size > 1:
            pieces = [(slice(None), gather(pieces, self._shared))]
            self._together.average(self._shared)
        if settings.clip_value:
            for _, piece in pieces:
                clamp(piece, settings.clip_value * self._scale)
        norm_of([piece for _, piece in pieces], self._norm)
        factor = torch.ones_like(self._norm)
        if settings.clip:
            factor = clip_factor(self._norm / self._scale, settings.clip)
        factor = factor / self._scale
        if self._working.dtype == torch.float16:  # too large for it: as if that stretch had not been read
            for _, piece in pieces:
                piece.nan_to_num_(0.0, 0.0, 0.0)
            factor = torch.where(torch.isfinite(self._norm), factor, 0.0)
        if settings.weight_decay:
            self.weights.mul_(1 - rate * settings.weight_decay)
        for at, piece in pieces:
            self._optimiser.update(self.weights[at], piece, factor, planned, at)
        if self._working is not self.weights:
            self._working.copy_(self.weights)
        for average, share in zip(self.averages, shares, strict=True):
            average.lerp_(self.weights, share)

    # Stopped and gone on with

    def arrays(self) -> dict[str, Array]:
        """All that the rest of the run depends on, on the host."""
        averages = {f"average{place}": part for place, part in enumerate(self.averages)}
        state = {f"state{place}": _for_numpy(part) for place, part in enumerate(self.state)}
        held = {"weights": self.weights, **averages, **self._optimiser.moments, **state}
        looks = np.full(self.settings.epochs + 1, np.nan)
        looks[: len(self.looks)] = self.looks[: len(looks)]
        begun = -1 if self._averaging_from is None else self._averaging_from
        where = np.array([self.epoch, self._update_in_epoch, self.step, begun], np.int64)
        drawn = torch.empty(0, dtype=torch.uint8) if self._generator is None else self._generator.get_state()
        told = {"where": where, "looks": looks, "seconds": np.array([self.seconds]), "random": drawn.numpy()}
        return {name: part.cpu().numpy() for name, part in held.items()} | told

    def take(self, arrays: Mapping[str, Array]) -> None:
        """Go on from there."""
        epoch, update, step, begun = arrays["where"].tolist()
        if not 1 <= epoch <= self.settings.epochs or step < 0:
            raise ValueError(f"there is no epoch {epoch}, step {step}")
        self.begin_epoch(epoch)
        if not 0 <= update <= len(self._stretches):
            raise ValueError(f"there is no update {update} in an epoch of {len(self._stretches)}")
        held = {"weights": self.weights, **self._optimiser.moments}
        held |= {f"average{place}": part for place, part in enumerate(self.averages)}
        held |= {f"state{place}": part for place, part in enumerate(self.state)}
        with torch.no_grad():
            for name, part in held.items():
                part.copy_(torch.from_numpy(arrays[name]))
            if self._working is not self.weights:
                self._working.copy_(self.weights)
        if self._generator is not None:
            self._generator.set_state(torch.from_numpy(arrays["random"]))
        self.step, self._update_in_epoch = step, update
        self._averaging_from = None if begun < 0 else begun
        self._words_in_epoch = sum(self._stretches[:update])
        self._place.fill_(self._words_in_epoch)
        self.looks = [loss for loss in arrays["looks"].tolist() if loss == loss]
        self._seconds_before, self._began = float(arrays["seconds"][0]), time.monotonic()


def clip_factor(norm: Tensor, clip: float) -> Tensor:
    """What a gradient of that norm is multiplied with: its direction stays, its norm is at most ``clip``."""
    return (clip / norm).clamp(max=1.0)


def _for_numpy(part: Tensor) -> Tensor:
    """NumPy has no bfloat16; float32 holds the same numbers."""
    return part.float() if part.dtype == torch.bfloat16 else part
