"""The loop: truncated backpropagation through time, by stochastic gradient descent, with running averages.

A text is read in B places at once, T words at a time. What is remembered goes from one stretch to the next as plain
values; the gradient does not follow (R. Williams and J. Peng, "An efficient gradient-based algorithm for on-line
training of recurrent network trajectories", 1990). One step is

    g ← ∂ loss / ∂ w,    g ← g · min(1, clip / |g|),    w ← (1 − rate · decay) w − rate · g,
    average ← average + share · (w − average)

and it never waits for the device, so that on a GPU the whole of it is one recording (``graphed.py``).
Shapes: N tokens, B texts side by side, L words in each, T words a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from foreword.errors import ForewordError
from foreword.protocols import Array
from foreword.training.flat import Shapes, views
from foreword.training.graphed import Graphed
from foreword.training.schedules import hold_then_cosine, running_share
from foreword.training.settings import Training

State = tuple[Tensor, ...]
Loss = Callable[[Mapping[str, Tensor], Tensor, Tensor, State, float], tuple[Tensor, Tensor, State]]
"""loss(weights, inputs (T, B), targets (T, B), state, scale): mean loss · scale, penalties · scale, the new state."""


class Reading:
    """A text as B rows of L words. The text is a ring: what comes before its first word is its last, an end.

    With each epoch the ring is cut at another place, and each row begins at another of its words, so that no two epochs
    have their borders at the same words.
    """

    def __init__(self, ids: Tensor, batch: int, steps: int) -> None:
        self.ids = ids
        self.rows = min(batch, len(ids))
        self.length = len(ids) // self.rows
        self.stretch = min(steps, self.length)
        self.steps = self.length // self.stretch
        self.tokens = self.steps * self.stretch * self.rows

    def epoch(self, random: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Inputs and targets, each (L, B); an input is the word before its target."""
        device = self.ids.device
        first = int(random.integers(len(self.ids)))
        begins = torch.from_numpy(random.integers(self.length, size=self.rows)).to(device)
        within = (torch.arange(self.length, device=device)[:, None] + begins) % self.length
        places = (first + torch.arange(self.rows, device=device) * self.length + within) % len(self.ids)
        return self.ids[places - 1], self.ids[places]


class Trainer:
    """Weights on their way down.

    weights: float32, every weight in one vector, see ``flat.py``; changed in place. averages: as many such vectors as
    ``settings.averages`` has.
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
    ) -> None:
        self.weights, self.shapes, self.settings = weights, shapes, settings
        self.averages = [weights.clone() for _ in settings.averages]
        self.state = state
        self.reading = reading
        self.total = settings.epochs * reading.steps
        self.step = 0
        self._loss = loss
        self._generator = generator
        device = weights.device
        self._half = settings.precision == "float16"
        self._scale = settings.loss_scale if self._half else 1.0
        self._working = weights.to(torch.float16) if self._half else weights
        self._leaves = {name: part.detach().requires_grad_() for name, part in views(self._working, shapes).items()}
        self._gradient = torch.zeros_like(weights)
        self._gradients = views(self._gradient, shapes)
        self._inputs = torch.zeros(reading.length, reading.rows, dtype=torch.int64, device=device)
        self._targets = torch.zeros_like(self._inputs)
        self._window = torch.arange(reading.stretch, device=device)
        self._place = torch.zeros((), dtype=torch.int64, device=device)
        self._count = torch.zeros((), dtype=torch.int64, device=device)
        self._losses = torch.zeros((), dtype=torch.float32, device=device)
        self._norm = torch.zeros((), dtype=torch.float32, device=device)
        self._rates = torch.tensor([self.rate(step) for step in range(self.total)], device=device)
        tails = settings.averages
        shares = [[running_share(step + 1, tail) for tail in tails] for step in range(self.total)]
        self._shares = torch.tensor(shares, dtype=torch.float32, device=device)
        self._go: Callable[[], None] = Graphed(self._one_step, generator) if device.type == "cuda" else self._one_step

    def rate(self, step: int) -> float:
        done = step / max(1, self.total)
        settings = self.settings
        return settings.rate * hold_then_cosine(done, hold=settings.hold, last=settings.last_rate)

    def arrays(self) -> dict[str, Array]:
        """What the run is between two epochs, on the host."""
        held = {"weights": self.weights, **{f"average{place}": part for place, part in enumerate(self.averages)}}
        return {name: part.cpu().numpy() for name, part in held.items()} | {"step": np.array([self.step])}

    def take(self, arrays: Mapping[str, Array]) -> None:
        """Go on from there."""
        self.weights.copy_(torch.from_numpy(arrays["weights"]))
        for place, part in enumerate(self.averages):
            part.copy_(torch.from_numpy(arrays[f"average{place}"]))
        if self._half:
            with torch.no_grad():
                self._working.copy_(self.weights)
        self.step = int(arrays["step"][0])
        self._count.fill_(self.step)

    def begin_epoch(self, epoch: int, seed: int) -> None:
        """An epoch draws from seeds of its own, so that it can be begun without those before it."""
        random = np.random.default_rng([seed, epoch])
        if self._generator is not None:
            self._generator.manual_seed(int(random.integers(1 << 62)))
        inputs, targets = self.reading.epoch(random)
        self._inputs.copy_(inputs)
        self._targets.copy_(targets)
        self._place.zero_()
        for part in self.state:
            part.zero_()

    def run(self, steps: int) -> float:
        """So many steps; the mean loss over them. A loss that is no number ends the run and says where."""
        self._losses.zero_()
        for _ in range(steps):
            self._go()
        self.step += steps
        loss, norm = (self._losses / steps).item(), self._norm.item()
        if not np.isfinite(loss) or (not self._half and not np.isfinite(norm)):
            tensor = "the loss" if not np.isfinite(loss) else self._first_bad()
            raise ForewordError(
                f"{tensor} is not a finite number at step {self.step}, at the latest: try a lower rate than"
                f" {self.settings.rate:g}, or a smaller clip than {self.settings.clip:g}"
            )
        return loss

    def _first_bad(self) -> str:
        bad = (name for name, part in self._gradients.items() if not bool(torch.isfinite(part).all()))
        return f"the gradient of {next(bad, 'all weights together')}"

    def _one_step(self) -> None:
        rows = self._place + self._window
        inputs, targets = self._inputs.index_select(0, rows), self._targets.index_select(0, rows)
        loss, penalty, state = self._loss(self._leaves, inputs, targets, self.state, self._scale)
        gradients = torch.autograd.grad(loss + penalty, list(self._leaves.values()))
        with torch.no_grad():
            for part, gradient in zip(self._gradients.values(), gradients, strict=True):
                part.copy_(gradient)
            self._update()
            for kept, new in zip(self.state, state, strict=True):
                kept.copy_(new)  # its values only: the gradient is cut here
            self._losses += loss.detach() / self._scale
            self._place += self.reading.stretch
            self._count += 1

    def _update(self) -> None:
        at = self._count.reshape(1)
        rate = self._rates.index_select(0, at)
        torch.linalg.vector_norm(self._gradient, out=self._norm)
        factor = clip_factor(self._norm / self._scale, self.settings.clip) / self._scale
        if self._half:  # a gradient too large for float16 is passed over, as if that stretch had not been read
            self._gradient.nan_to_num_(0.0, 0.0, 0.0)
            factor = torch.where(torch.isfinite(self._norm), factor, 0.0)
        if self.settings.weight_decay:
            self.weights.mul_(1 - rate * self.settings.weight_decay)
        self.weights.addcmul_(self._gradient, rate * factor, value=-1)
        if self._half:
            self._working.copy_(self.weights)
        shares = self._shares.index_select(0, at)[0]
        for average, share in zip(self.averages, shares, strict=True):
            average.lerp_(self.weights, share)


def clip_factor(norm: Tensor, clip: float) -> Tensor:
    """What a gradient of that norm is multiplied with: its direction stays, its norm is at most ``clip``."""
    return (clip / norm).clamp(max=1.0)
