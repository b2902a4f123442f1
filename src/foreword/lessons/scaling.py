"""How loss falls with size: a power law, fitted.

    L(N) = a N^(−b)          a line on two logarithmic axes
    L(N) = a N^(−b) + c      the same above a floor c that no size gets below

The first is fitted by least squares on logarithms. For the second b is searched: given b, a and c follow by least
squares, so there is one number to look for, on a grid that closes in. R² is told on the losses themselves for both.

J. Hestness et al., "Deep learning scaling is predictable, empirically" (2017); J. Kaplan et al., "Scaling laws for
neural language models" (2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foreword.arrays import Doubles
from foreword.errors import SettingError

STEEPEST = 4.0
"""The largest exponent that is looked for; measured ones are below 1."""

ROUNDS, POINTS = 12, 41
"""Each round lays so many points between the neighbours of the best of the round before: 20¹² is past rounding."""


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """L(N) = scale · N^(−exponent) + floor; r2: the share of the losses' variance that it explains."""

    scale: float
    exponent: float
    floor: float
    r2: float

    def at(self, sizes: Sequence[float] | Doubles) -> Doubles:
        values: Doubles = self.scale * np.asarray(sizes, np.float64) ** -self.exponent + self.floor
        return values


def fit_power_law(sizes: Sequence[float], losses: Sequence[float], *, floor: bool = False) -> PowerLaw:
    """At least two sizes, or three with a floor. The floor is between 0 and the least loss."""
    n, loss = np.asarray(sizes, np.float64), np.asarray(losses, np.float64)
    least = 3 if floor else 2
    if n.shape != loss.shape or n.ndim != 1 or len(set(n.tolist())) < least:
        raise SettingError(f"{n.size} sizes and {loss.size} losses: expected as many, of at least {least} sizes")
    if not ((n > 0) & (loss > 0) & np.isfinite(n) & np.isfinite(loss)).all():
        raise SettingError("sizes and losses must be positive numbers")
    if not floor:
        slope, start = np.polyfit(np.log(n), np.log(loss), 1)
        return _told(n, loss, float(np.exp(start)), float(-slope), 0.0)
    # Powers of N / the geometric mean stay near 1, whatever N is.
    middle = float(np.exp(np.log(n).mean()))
    low, high = 1e-4, STEEPEST
    for _ in range(ROUNDS):
        grid = np.linspace(low, high, POINTS)
        errors = [_with_floor(n / middle, loss, exponent)[2] for exponent in grid.tolist()]
        best = int(np.argmin(errors))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, POINTS - 1)]
    exponent = float(grid[best])
    scale, level, _ = _with_floor(n / middle, loss, exponent)
    return _told(n, loss, scale * middle**exponent, exponent, level)


def _with_floor(n: Doubles, loss: Doubles, exponent: float) -> tuple[float, float, float]:
    """The best scale and floor for one exponent, the floor not below 0; and what is left, squared."""
    power = n**-exponent
    spread = power - power.mean()
    scale = float(spread @ loss / (spread @ spread))
    level = float(loss.mean() - scale * power.mean())
    if level < 0:
        scale, level = float(power @ loss / (power @ power)), 0.0
    return scale, level, float(((scale * power + level - loss) ** 2).sum())


def _told(n: Doubles, loss: Doubles, scale: float, exponent: float, floor: float) -> PowerLaw:
    left = float(((scale * n**-exponent + floor - loss) ** 2).sum())
    spread = float(((loss - loss.mean()) ** 2).sum())
    return PowerLaw(scale, exponent, floor, 1 - left / spread if spread else float("nan"))
