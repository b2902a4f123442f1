"""Schedules: learning rates over a run, when averaging begins, and the probability of teacher forcing.

S. Merity, N. Keskar and R. Socher, "Regularizing and optimizing LSTM language models" (2018) for NT-ASGD; I. Loshchilov
and F. Hutter, "SGDR" (2017) for the cosine; O. Shamir and T. Zhang, "Stochastic gradient descent for non-smooth
optimization" (2013) for the running average; S. Bengio, O. Vinyals, N. Jaitly and N. Shazeer, "Scheduled sampling for
sequence prediction with recurrent neural networks" (2015); J. Howard and S. Ruder, "Universal language model
fine-tuning for text classification" (2018) for the slanted triangle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from foreword.errors import SettingError


def hold_then_cosine(done: float, *, hold: float, last: float) -> float:
    """Return a factor of the rate: 1 until ``hold`` of the run is done, then half a cosine down to ``last``.

    ``hold=0, last=0`` is the plain cosine.
    """
    if done <= hold or hold >= 1:
        return 1.0
    return last + (1 - last) * (1 + math.cos(math.pi * (done - hold) / (1 - hold))) / 2


def step_decay(epoch: int, *, first: int, factor: float) -> float:
    """Return a factor of the rate: 1 for epochs 1 to ``first``, then times ``factor`` with each."""
    return factor ** max(0, epoch - first)


RISE, LOWEST = 0.1, 1 / 32
"""The share of a stage in which a slanted rate rises, and what it begins and ends with, as a share of the highest."""


def slanted(done: float) -> float:
    """Return a factor of the rate: up for the first tenth of a stage, then down, both along a straight line."""
    height = done / RISE if done < RISE else (1 - done) / (1 - RISE)
    return LOWEST + (1 - LOWEST) * max(0.0, height)


def plateau(losses: Sequence[float], *, patience: int, factor: float) -> float:
    """Return a factor of the rate: ``factor`` once more after each ``patience`` losses without a new lowest one."""
    best, waited, now = math.inf, 0, 1.0
    for loss in losses:
        waited = 0 if loss < best else waited + 1
        best = min(best, loss)
        if waited == patience:
            now, waited = now * factor, 0
    return now


def averaging_begins(losses: Sequence[float], *, patience: int = 5) -> int | None:
    """Return the index of the held-out loss that starts the averaging of NT-ASGD, or None.

    It is the first that is worse than the best of those at least ``patience`` before it. One bad loss alone does not
    trigger it: the last ``patience`` losses are left out of the comparison.
    """
    for index in range(patience + 1, len(losses)):
        if losses[index] > min(losses[: index - patience]):
            return index
    return None


def running_share(step: int, tail: float) -> float:
    """Return the share that the weights after step 1, 2, … get in their running average: (tail + 1) / (step + tail).

    tail 0 is the plain mean of all steps. With a larger one the beginning fades, wherever the run is stopped: at any
    time about the last 1 / (tail + 1) of it counts.
    """
    return (tail + 1) / (step + tail)


class TwoTails:
    """Where a long and a short plain average of the weights begin, in updates: averaging without a trigger to tune.

    Both run; whenever the short one, of the more recent weights, scores at least as well on the held-out data, it
    becomes the long one and a new short one begins. So the long one covers what the held-out data wants, at any time
    and at any rate. G. Melis, "Two-tailed averaging: anytime, adaptive, once-in-a-while optimal weight averaging for
    better generalization" (2022).
    """

    def __init__(self, long: int = 0, short: int = 0) -> None:
        self.long, self.short = long, short

    def shares(self, step: int) -> tuple[float, float]:
        """Return the shares of the weights after an update in the long and the short average."""
        return 1 / (step + 1 - self.long), 1 / (step + 1 - self.short)

    def switch(self, long_score: float, short_score: float, step: int) -> bool:
        """Note the scores of both, higher is better; return whether the long average becomes the short one."""
        if short_score < long_score:
            return False
        self.long, self.short = self.short, step
        return True


def linear_truth(step: int, *, first: float, slope: float, least: float = 0.0) -> float:
    """Return the probability of teacher forcing after ``step`` batches: max(least, first − slope · step)."""
    _check_step(step)
    if not 0 <= least <= first <= 1:
        raise SettingError(f"least={least} and first={first} must be probabilities, the least not above the first")
    if not (math.isfinite(slope) and slope >= 0):
        raise SettingError(f"slope={slope} must be zero or a positive number")
    return max(least, first - slope * step)


def exponential_truth(step: int, *, base: float) -> float:
    """Return the probability of teacher forcing as base^step; the base is a little below 1."""
    _check_step(step)
    if not 0 < base < 1:
        raise SettingError(f"base={base} must be above 0 and below 1")
    return base**step


def inverse_sigmoid_truth(step: int, *, speed: float) -> float:
    """Return the probability of teacher forcing as k / (k + exp(step / k)): near 1, a half at k · ln k, then falling.

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
