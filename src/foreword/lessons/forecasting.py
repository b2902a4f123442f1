"""Forecasting a series of numbers: the recurrent networks of language models, with numbers in the place of words.

    h_t = LSTM(x_t, h_(t−1)),    x̂_(t+1) = w · h_t + b,    loss = mean (x̂ − x)²

Numbers are standardised by the mean and deviation of the training series. The baseline is an autoregression: the next
number as a linear function of the last ``order`` ones, by least squares (G. U. Yule, 1927). Of a linear series no
forecaster can do better.
Shapes: T steps, B windows of a batch, H units.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear, mse_loss

from foreword.arrays import Array, Doubles
from foreword.checks import check_numbers
from foreword.errors import InputError
from foreword.lessons.horizon import first_weights
from foreword.nn.layers import lstm
from foreword.nn.weights import PARTS
from foreword.protocols import Json
from foreword.training.engine import Trainer
from foreword.training.gradients import Shapes
from foreword.training.model import NeuralModel, exact
from foreword.training.settings import Training
from foreword.training.task import BatchTask, Loss, Weights


class Forecaster(NeuralModel[Doubles]):
    """An LSTM that reads a series and forecasts the next number.

    units: H. window: steps of a training example, from a state of zeros. mean_, deviation_: of the training series.
    """

    TRAINING: ClassVar[Training] = Training(
        epochs=100, batch=8, optimiser="adam", rate=1e-2, hold=0.0, last_rate=0.05, clip=1.0, weight_decay=0.0,
        activation=0.0, change=0.0, averages=(), precision="float32",
    )  # fmt: skip
    NEEDS: ClassVar[str] = "series"

    def __init__(
        self,
        units: int = 32,
        *,
        window: int = 50,
        training: Training | None = None,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        super().__init__(training, 0.0, seed, device)
        self.units, self.window = units, window

    def __repr__(self) -> str:
        return f"Forecaster({self.units}, window={self.window})"

    def shapes(self) -> Shapes:
        """Return the names and shapes of the weights."""
        wide = 4 * self.units
        layer = zip(PARTS, ((wide, 1), (wide, self.units), (wide,), (wide,)), strict=True)
        return {**dict(layer), "output": (1, self.units), "output_bias": (1,)}

    def settings(self) -> dict[str, Json]:
        """Return the settings that a run depends on."""
        return {"units": self.units, "window": self.window, "seed": self.seed}

    def fingerprinted(self, data: Doubles) -> list[Array]:
        """Return the series."""
        return [data]

    def task(self, data: Doubles, valid: Doubles | None) -> ForecastTask:
        """Check the series and begin a run."""
        check_numbers(self, "units", "window", whole=True, least=1)
        if data.ndim != 1 or len(data) <= self.window or not np.isfinite(data).all():
            raise InputError(f"expected a series of more than {self.window} finite numbers")
        self.mean_, self.deviation_ = float(data.mean()), float(data.std()) or 1.0
        task = ForecastTask(self, self._standardised(data))
        if valid is not None:
            task.evaluate = self.evaluator(lambda: -float(np.square(self.forecasts(valid) - valid).mean()))
        return task

    def forecasts(self, series: Doubles) -> Doubles:
        """Return (T,): the forecast of each number from those before it; of the first, the mean."""
        with exact():
            x = self._standardised(series)[:-1, None].to(self.flat_weights().device)
            ahead = read(self.weights_, x)[:, 0].cpu().numpy().astype(np.float64)
        return np.concatenate(([self.mean_], ahead * self.deviation_ + self.mean_))

    def continued(self, series: Doubles, steps: int) -> Doubles:
        """Return the next ``steps`` numbers, each forecast from the series and the forecasts before it."""
        grown = np.asarray(series, np.float64)
        for _ in range(steps):
            grown = np.append(grown, self.forecasts(np.append(grown, 0.0))[-1])
        return grown[len(series) :]

    def _standardised(self, series: Doubles) -> Tensor:
        return torch.from_numpy(((series - self.mean_) / self.deviation_).astype(np.float32))


class ForecastTask(BatchTask):
    """The next number at every step of windows of a series."""

    def __init__(self, model: Forecaster, series: Tensor) -> None:
        self.model, self.series = model, series
        super().__init__(np.full(len(series) // model.window, model.window), model.training.batch * model.window)

    def tensors(self) -> Shapes:
        """Return the weights' names and shapes."""
        return self.model.shapes()

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Draw the layer's weights; the output begins at zero."""
        for name, drawn in zip(PARTS, first_weights("lstm", 1, self.model.units, generator), strict=True):
            weights[name].copy_(drawn)

    def begin_epoch(self, random: np.random.Generator) -> list[int]:
        """Cut the windows at other steps."""
        window = self.model.window
        self._begins = torch.from_numpy(random.integers(len(self.series) - window, size=len(self.lengths)))
        return super().begin_epoch(random)

    def batch_loss(self, weights: Weights, examples: list[int], run: Trainer) -> Loss:
        """Return the mean squared error."""
        steps = torch.arange(self.model.window + 1)[:, None] + self._begins[examples]
        x = self.series[steps].to(self.device)
        return Loss(run.scale * mse_loss(read(weights, x[:-1]), x[1:]))


def read(weights: Weights, x: Tensor) -> Tensor:
    """Return the forecasts (T, B) of the numbers that follow x, (T, B)."""
    zero = x.new_zeros(x.shape[1], weights["output"].shape[1])
    hidden = lstm(x[..., None], zero, zero, [weights[name] for name in PARTS])[0]
    return linear(hidden, weights["output"], weights["output_bias"])[..., 0]


def autoregression(train: Doubles, series: Doubles, order: int = 10) -> Doubles:
    """Return (T,): the linear forecast of each number of a series, fitted to ``train``; of the first ones, its mean."""
    windows = np.lib.stride_tricks.sliding_window_view
    fitted = np.linalg.lstsq(_with_one(windows(train, order)[:-1]), train[order:], rcond=None)[0]
    ahead = _with_one(windows(series, order)[:-1]) @ fitted
    return np.concatenate((np.full(order, train.mean()), ahead))


def _with_one(rows: Doubles) -> Doubles:
    return np.column_stack((rows, np.ones(len(rows))))


def henon(steps: int, seed: int = 0) -> Doubles:
    """Generate x_(t+1) = 1 − 1.4 x_t² + 0.3 x_(t−1): a chaotic series (M. Hénon, 1976)."""
    x = [*np.random.default_rng(seed).uniform(-0.1, 0.1, 2)]
    for _ in range(steps + 100):
        x.append(1 - 1.4 * x[-1] ** 2 + 0.3 * x[-2])
    return np.array(x[-steps:])


def oscillation(steps: int, seed: int = 0) -> Doubles:
    """Generate x_(t+1) = 1.8 x_t − 0.9 x_(t−1) + noise: a linear series."""
    noise = np.random.default_rng(seed).normal(size=steps + 100)
    x = [0.0, 0.0]
    for drawn in noise:
        x.append(1.8 * x[-1] - 0.9 * x[-2] + drawn)
    return np.array(x[-steps:])
