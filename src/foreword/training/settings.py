"""How a neural language model is trained: one frozen value, a sentence a field."""

from __future__ import annotations

import math
from dataclasses import dataclass

from foreword.checks import check_choice, check_numbers
from foreword.errors import SettingError

OPTIMISERS = ("sgd", "adam")
SCHEDULES = ("constant", "step", "cosine", "plateau", "nt-asgd")
PRECISIONS = ("float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class Training:
    """Gradient descent through a text that is read in ``batch`` places at once.

    epochs: times the text is read. batch: places; a text shorter than that is read in fewer.
    steps: words between two updates, and how far gradients go back. vary: draw that number anew for each update, around
        ``steps``, so that no two epochs are cut at the same words; on a GPU this is far slower.
    shuffle: read the documents in another order in each epoch, so that none is learnt to follow another.
    optimiser: "sgd" or "adam".
    rate: the learning rate; it rises through the first ``warm_up`` updates, and then goes by its ``schedule``:
        constant; step, times ``decay`` with each epoch after ``full_epochs``; cosine, which stays for ``hold`` of the
        run and falls to ``last_rate`` of itself; plateau, times ``decay`` after ``wait`` looks at the held-out text
        without a new best; nt-asgd, constant, and the weights are averaged once the held-out loss has stalled.
    clip: the largest norm of a gradient; clip_value: the largest number in it; 0 for none.
    weight_decay: the share of a weight that is lost at each update, by the rate.
    activation, change: penalties on the last layer: of large values, and of values that differ from the step before.
    averages: running averages of the weights that are kept, see ``running_share``; the held-out text chooses among
        them, or the first is taken; none: the weights themselves.
    evaluate_every: epochs between two looks at the held-out text.
    patience: looks without a new best after which training stops; 0 for never.
    seconds: training stops after so many, and the rate goes by the clock instead of the epochs; 0 for no limit.
    precision: of the products, with the weights themselves in float32. "float16" is for GPUs only; "bfloat16" is, on a
        CPU, the precision of the output layer's products, which are most of the work.
    sampled: on a CPU, words that are drawn to stand for the whole vocabulary in the softmax of an update, see
        ``nn/sampled.py``; 0 for all words.
    loss_scale: what the loss is multiplied with in float16, so that small gradients do not vanish.
    """

    epochs: int = 40
    batch: int = 64
    steps: int = 35
    vary: bool = False
    shuffle: bool = False
    optimiser: str = "sgd"
    rate: float = 40.0
    warm_up: int = 0
    schedule: str = "cosine"
    hold: float = 0.6
    last_rate: float = 0.4
    full_epochs: int = 6
    decay: float = 0.5
    wait: int = 5
    clip: float = 0.25
    clip_value: float = 0.0
    weight_decay: float = 1.2e-6
    activation: float = 2.0
    change: float = 1.0
    averages: tuple[float, ...] = (8.0,)
    evaluate_every: int = 1
    patience: int = 0
    seconds: float = 0.0
    precision: str = "float32"
    sampled: int = 0
    loss_scale: float = 8192.0

    def __post_init__(self) -> None:
        check_numbers(self, "epochs", "batch", "steps", "evaluate_every", "wait", whole=True, least=1)
        check_numbers(self, "warm_up", "full_epochs", "patience", "sampled", whole=True)
        check_numbers(self, "rate", "decay", "loss_scale", above=0)
        check_numbers(self, "weight_decay", "activation", "change", "last_rate", "clip", "clip_value", "seconds")
        check_numbers(self, "hold", most=1)
        for name, choices in (("optimiser", OPTIMISERS), ("schedule", SCHEDULES), ("precision", PRECISIONS)):
            check_choice(self, name, choices)
        if any(not math.isfinite(tail) or tail < 0 for tail in self.averages):
            raise SettingError(f"averages are {self.averages!r}: expected numbers of 0 or more")
        if self.schedule == "nt-asgd" and not self.averages:
            raise SettingError("schedule is 'nt-asgd', which averages: expected averages=(0.0,)")

    @property
    def needs_held_out(self) -> bool:
        """Whether something here looks at the held-out text."""
        return self.schedule in ("plateau", "nt-asgd") or self.patience > 0
