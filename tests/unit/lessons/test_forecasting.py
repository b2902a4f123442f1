"""A recurrent network that forecasts numbers, next to an autoregression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from foreword.arrays import Doubles
from foreword.errors import InputError
from foreword.lessons.forecasting import Forecaster, autoregression, henon, oscillation

Report = Callable[[str, object], None]


def errors(series: Doubles, split: int) -> tuple[float, float]:
    """The root of the mean squared error on the rest of a series, over its deviation: of the network, of the line."""
    torch.set_num_threads(1)
    train, test = series[:split], series[split:]
    model = Forecaster(32, device="cpu").fit(train)
    ours, linear = model.forecasts(test), autoregression(train, test)
    return tuple(float(np.sqrt(np.square(each - test)[10:].mean()) / test.std()) for each in (ours, linear))  # type: ignore[return-value]


def test_g07_a_network_forecasts_where_a_line_cannot(record_property: Report) -> None:
    """G07: of a chaotic series the linear baseline explains little, an LSTM nearly all; of a linear series the
    baseline is as good as can be, and the LSTM comes close.
    """
    chaotic, line = errors(henon(3000), 2000)
    record_property("G07 error of the Hénon map, LSTM and linear, in deviations", f"{chaotic:.3f} and {line:.3f}")
    assert chaotic < 0.2 * line
    network, best = errors(oscillation(3000), 2000)
    record_property(
        "G07 error of a linear oscillation, LSTM and linear, in deviations", f"{network:.3f} and {best:.3f}"
    )
    assert best <= network < 1.15 * best


def test_an_autoregression_finds_the_rule_of_a_linear_series() -> None:
    x = [1.0, 0.5]
    for _ in range(100):
        x.append(1.5 * x[-1] - 0.8 * x[-2] + 0.1)
    series = np.array(x)
    assert_allclose(autoregression(series[:60], series[50:], 2)[2:], series[52:], atol=1e-9)


def test_forecasts_follow_each_other_and_see_nothing_of_the_future() -> None:
    series = henon(300)
    model = Forecaster(8, training=replace(Forecaster.TRAINING, epochs=2), device="cpu").fit(series)
    changed = series.copy()
    changed[100:] = 0
    assert_allclose(model.forecasts(series)[:101], model.forecasts(changed)[:101])
    ahead = model.continued(series[:50], 3)
    assert_allclose(ahead[1], model.forecasts(np.array([*series[:50], ahead[0], 0.0]))[-1])
    same = Forecaster(8, training=replace(Forecaster.TRAINING, epochs=2), device="cpu").fit(series)
    assert_allclose(model.forecasts(series), same.forecasts(series))
    with pytest.raises(InputError, match="more than 50 finite numbers"):
        Forecaster().fit(np.ones(50))
