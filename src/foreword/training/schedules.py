"""Learning rates over a run, when to begin averaging, and how long to be shown the truth. Plain numbers in and out.

S. Merity, N. Keskar and R. Socher, "Regularizing and optimizing LSTM language models" (2018) for NT-ASGD; I. Loshchilov
and F. Hutter, "SGDR" (2017) for the cosine; O. Shamir and T. Zhang, "Stochastic gradient descent for non-smooth
optimization" (2013) for the running average; S. Bengio, O. Vinyals, N. Jaitly and N. Shazeer, "Scheduled sampling for
sequence prediction with recurrent neural networks" (2015) for the chance of the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from foreword.errors import SettingError


def hold_then_cosine(done: float, *, hold: float, last: float) -> float:
    """A factor of the rate: 1 until ``hold`` of the run is done, then half a cosine down to ``last``.

    ``hold=0, last=0`` is the plain cosine.
    """
    if done <= hold or hold >= 1:
        return 1.0
    return last + (1 - last) * (1 + math.cos(math.pi * (done - hold) / (1 - hold))) / 2


def step_decay(epoch: int, *, first: int, factor: float) -> float:
    """A factor of the rate: 1 for epochs 1 to ``first``, then times ``factor`` with each."""
    return factor ** max(0, epoch - first)


def plateau(losses: Sequence[float], *, patience: int, factor: float) -> float:
    """A factor of the rate: times ``factor`` each time that ``patience`` losses running brought no new lowest one."""
    best, waited, now = math.inf, 0, 1.0
    for loss in losses:
        waited = 0 if loss < best else waited + 1
        best = min(best, loss)
        if waited == patience:
            now, waited = now * factor, 0
    return now


def averaging_begins(losses: Sequence[float], *, patience: int = 5) -> int | None:
    """NT-ASGD: the place of the first held-out loss that is worse than the best of those at least ``patience`` before.

    From there on the weights are averaged. One bad loss alone does not trigger it: the ``patience`` last ones are not
    what it is compared with.
    """
    for place in range(patience + 1, len(losses)):
        if losses[place] > min(losses[: place - patience]):
            return place
    return None


def running_share(step: int, tail: float) -> float:
    """How much of the average the weights after step 1, 2, … become: (tail + 1) / (step + tail).

    tail 0 is the plain mean of all steps. With a larger one the beginning fades, wherever the run is stopped: at any
    time about the last 1 / (tail + 1) of it counts.
    """
    return (tail + 1) / (step + tail)


def linear_truth(step: int, *, first: float, slope: float, least: float = 0.0) -> float:
    """Scheduled sampling: the chance that a decoder in training reads the true token and not its own, after ``step``
    batches: max(least, first − slope · step).
    """
    _check_step(step)
    if not 0 <= least <= first <= 1:
        raise SettingError(f"least={least} and first={first} must be chances, the least not above the first")
    if not (math.isfinite(slope) and slope >= 0):
        raise SettingError(f"slope={slope} must be zero or a positive number")
    return max(least, first - slope * step)


def exponential_truth(step: int, *, base: float) -> float:
    """The same as base^step: the base is a little below 1."""
    _check_step(step)
    if not 0 < base < 1:
        raise SettingError(f"base={base} must be above 0 and below 1")
    return base**step


def inverse_sigmoid_truth(step: int, *, speed: float) -> float:
    """The same as k / (k + exp(step / k)): near 1 for long, a half at k · ln k, then falling by e every k steps.

    speed: k, at least 1; the larger, the later.
    """
    _check_step(step)
    if not (math.isfinite(speed) and speed >= 1):
        raise SettingError(f"speed={speed} must be at least 1")
    # 1 / (1 + exp(x)) with x = step / k − ln k, from whichever side does not overflow.
    x = step / speed - math.log(speed)
    return math.exp(-x) / (1 + math.exp(-x)) if x > 0 else 1 / (1 + math.exp(x))


def _check_step(step: int) -> None:
    if step < 0:
        raise SettingError(f"step={step} must not be negative")
