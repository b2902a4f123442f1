"""P04: learning rates over a run."""

from __future__ import annotations

import numpy as np
import pytest

from foreword.training.schedules import averaging_begins, hold_then_cosine, plateau, running_share, step_decay


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
