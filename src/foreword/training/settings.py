"""How a recurrent model is trained: one frozen value, a sentence a field."""

from __future__ import annotations

from dataclasses import dataclass

from foreword.errors import SettingError


@dataclass(frozen=True, slots=True)
class Training:
    """Stochastic gradient descent through a text that is read in ``batch`` places at once.

    epochs: times the text is read. batch: places; a text shorter than that is read in fewer.
    steps: words between two updates, and how far gradients go back.
    rate: the learning rate; it stays for ``hold`` of the run, then falls as a cosine to ``last_rate`` of itself.
    clip: the largest norm of a gradient. weight_decay: the share of a weight that is lost at each update, by the rate.
    activation, change: penalties on the last layer: of large values, and of values that differ from the step before.
    averages: running averages of the weights that are kept, see ``running_share``; the held-out text chooses among
        them, or the first is taken; none: the weights themselves.
    evaluate_every: epochs between two looks at the held-out text.
    precision: of the products; "float16" is for GPUs only, and keeps the weights themselves in float32.
    loss_scale: what the loss is multiplied with there, so that small gradients do not vanish.
    """

    epochs: int = 40
    batch: int = 64
    steps: int = 35
    rate: float = 40.0
    hold: float = 0.6
    last_rate: float = 0.4
    clip: float = 0.25
    weight_decay: float = 1.2e-6
    activation: float = 2.0
    change: float = 1.0
    averages: tuple[float, ...] = (8.0,)
    evaluate_every: int = 1
    precision: str = "float32"
    loss_scale: float = 8192.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "steps", "evaluate_every"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} is {getattr(self, name)!r}: expected at least 1")
        for name in ("rate", "clip", "loss_scale"):
            if not getattr(self, name) > 0:
                raise SettingError(f"{name} is {getattr(self, name)!r}: expected more than 0")
        for name in ("weight_decay", "activation", "change", "last_rate", "hold"):
            if not getattr(self, name) >= 0:
                raise SettingError(f"{name} is {getattr(self, name)!r}: expected 0 or more")
        if self.hold > 1:
            raise SettingError(f"hold is {self.hold!r}: expected a share of the run, 0 to 1")
        if self.precision not in ("float32", "float16"):
            raise SettingError(f"precision is {self.precision!r}: expected float32 or float16")
        if any(tail < 0 for tail in self.averages):
            raise SettingError(f"averages are {self.averages!r}: expected numbers of 0 or more")
