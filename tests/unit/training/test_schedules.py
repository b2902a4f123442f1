"""P04: learning rates over a run; Q04: chances of the truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from foreword.errors import SettingError
from foreword.training.schedules import (
    averaging_begins,
    exponential_truth,
    hold_then_cosine,
    inverse_sigmoid_truth,
    linear_truth,
    plateau,
    running_share,
    step_decay,
)


def test_p04_cosine_holds_and_then_falls_to_its_last() -> None:
    """P04, cosine: 1 while it holds, half way at half of the rest, the last at the end."""
    assert [hold_then_cosine(done, hold=0.6, last=0.4) for done in (0, 0.3, 0.6)] == [1, 1, 1]
    assert hold_then_cosine(0.8, hold=0.6, last=0.4) == pytest.approx(0.7)
    assert hold_then_cosine(1, hold=0.6, last=0.4) == pytest.approx(0.4)
    assert hold_then_cosine(0.5, hold=0, last=0) == pytest.approx(0.5)
    assert hold_then_cosine(1, hold=1, last=0) == 1


def test_p04_step_decay() -> None:
    """P04, step: Zaremba's medium model, six epochs at the full rate, then 1.2 times smaller each."""
    factors = [step_decay(epoch, first=6, factor=1 / 1.2) for epoch in range(1, 9)]
    assert factors == pytest.approx([1, 1, 1, 1, 1, 1, 1 / 1.2, 1 / 1.44])


def test_p04_plateau_waits_and_cuts() -> None:
    """P04, plateau: two losses running without a new lowest one cut the rate, and the count begins anew."""
    losses = [5, 4, 4.5, 4.2, 3, 3, 3, 3, 3]
    factors = [plateau(losses[:seen], patience=2, factor=0.5) for seen in range(len(losses) + 1)]
    assert factors == [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125]


def test_p04_nt_asgd_begins_when_the_loss_is_worse_than_long_before() -> None:
    """P04, NT-ASGD: one bad loss is forgiven; being worse than the best of those long before is not."""
    assert averaging_begins([9, 8, 8.5, 7, 6, 5], patience=2) is None
    assert averaging_begins([9, 8, 7, 7.5, 7.4, 7.3], patience=2) == 5
    assert averaging_begins([], patience=2) is None


@pytest.mark.parametrize("tail", [0.0, 3.0, 10.0])
def test_a_running_average_is_a_weighted_mean_with_the_beginning_fading(tail: float) -> None:
    values = np.random.default_rng(0).normal(size=50)
    average = 100.0  # whatever it began with is gone after the first step
    for step, value in enumerate(values, 1):
        average += running_share(step, tail) * (value - average)
    weights = np.cumprod(np.append(1, 1 + tail / np.arange(1, 50)))  # each step counts 1 + tail / n of the one before
    assert average == pytest.approx(np.average(values, weights=weights))
    if tail == 0:
        assert average == pytest.approx(values.mean())


def test_q04_linear_truth_falls_to_its_least() -> None:
    """Q04, linear: max(ε, k − c · i)."""
    chances = [linear_truth(step, first=0.9, slope=0.2, least=0.25) for step in range(6)]
    assert chances == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.25, 0.25])


def test_q04_exponential_truth() -> None:
    """Q04, exponential: k^i, from 1 on."""
    assert [exponential_truth(step, base=0.5) for step in range(4)] == [1, 0.5, 0.25, 0.125]


def test_q04_inverse_sigmoid_truth() -> None:
    """Q04, inverse sigmoid: k / (k + exp(i / k)); half at k ln k; no overflow at the end."""
    for k in (1.0, 3.0, 50.0):
        chances = [inverse_sigmoid_truth(step, speed=k) for step in range(60)]
        assert chances == pytest.approx([k / (k + math.exp(step / k)) for step in range(60)], rel=1e-12)
        assert all(0 < later < earlier < 1 for earlier, later in itertools.pairwise(chances))
    assert inverse_sigmoid_truth(round(1000 * math.log(1000)), speed=1000) == pytest.approx(0.5, abs=1e-3)
    assert inverse_sigmoid_truth(10**9, speed=2) == 0


def test_q04_what_is_no_chance_is_refused() -> None:
    with pytest.raises(SettingError, match="base=1"):
        exponential_truth(1, base=1)
    with pytest.raises(SettingError, match=r"speed=0\.5"):
        inverse_sigmoid_truth(1, speed=0.5)
    with pytest.raises(SettingError, match=r"least=0\.5 and first=0\.4"):
        linear_truth(1, first=0.4, slope=0.1, least=0.5)
    with pytest.raises(SettingError, match="slope=-1"):
        linear_truth(1, first=1, slope=-1)
    with pytest.raises(SettingError, match="step=-1"):
        exponential_truth(-1, base=0.5)
