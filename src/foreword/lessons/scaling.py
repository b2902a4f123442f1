"""Scaling laws: fitting a power law to the loss by model size, and drawing it.

    L(N) = a N^(−b)          a line on two logarithmic axes
    L(N) = a N^(−b) + c      the same above a floor c that no size gets below

The first is fitted by least squares on logarithms. For the second b is searched on a grid that closes in; given b, a
and c follow by least squares. R² is that of the losses themselves for both.

J. Hestness et al., "Deep learning scaling is predictable, empirically" (2017); J. Kaplan et al., "Scaling laws for
neural language models" (2020).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import stdtrit

from foreword.arrays import Doubles
from foreword.errors import SettingError
from foreword.picture.axes import Axes, Points, Scale, even_ticks, spread, tick_name, ticks
from foreword.picture.curves import BOTTOM, FIRST, HEIGHT, LAST, LINE, TOP
from foreword.picture.picture import Picture, label, percent, readable, svg

STEEPEST = 4.0
"""The largest exponent that is searched; measured ones are below 1."""

ROUNDS, POINTS = 12, 41
"""Rounds of the search, and points per round between the neighbours of the last round's best: 20¹² is past rounding."""


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """L(N) = scale · N^(−exponent) + floor; r2: the share of the losses' variance that the law explains."""

    scale: float
    exponent: float
    floor: float
    r2: float

    def at(self, sizes: Sequence[float] | Doubles) -> Doubles:
        """Return the losses at these sizes."""
        values: Doubles = self.scale * np.asarray(sizes, np.float64) ** -self.exponent + self.floor
        return values


def fit_power_law(sizes: Sequence[float], losses: Sequence[float], *, floor: bool = False) -> PowerLaw:
    """Fit a power law to at least two sizes, or three with a floor, which is between 0 and the least loss."""
    n, loss = np.asarray(sizes, np.float64), np.asarray(losses, np.float64)
    least = 3 if floor else 2
    if n.shape != loss.shape or n.ndim != 1 or len(set(n.tolist())) < least:
        raise SettingError(f"{n.size} sizes and {loss.size} losses: expected as many, of at least {least} sizes")
    if not ((n > 0) & (loss > 0) & np.isfinite(n) & np.isfinite(loss)).all():
        raise SettingError("sizes and losses must be positive numbers")
    if not floor:
        slope, start = np.polyfit(np.log(n), np.log(loss), 1)
        return _power_law(n, loss, float(np.exp(start)), float(-slope), 0.0)
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
    return _power_law(n, loss, scale * middle**exponent, exponent, level)


def exponent_interval(sizes: Sequence[float], losses: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of b in a N^(−b), from at least three sizes: Student's, of the slope on logarithms."""
    x, y = np.log(np.asarray(sizes, np.float64)), np.log(np.asarray(losses, np.float64))
    b, free = fit_power_law(sizes, losses).exponent, len(x) - 2
    if free < 1:
        raise SettingError(f"{len(x)} sizes: expected at least 3 for an interval")
    x, y = x - x.mean(), y - y.mean()
    half = float(stdtrit(free, 0.975) * np.sqrt(((y + b * x) ** 2).sum() / free / (x**2).sum()))
    return b - half, b + half


def _with_floor(n: Doubles, loss: Doubles, exponent: float) -> tuple[float, float, float]:
    """Return the best scale and floor, not below 0, for one exponent, and the squared error."""
    power = n**-exponent
    spread = power - power.mean()
    scale = float(spread @ loss / (spread @ spread))
    level = float(loss.mean() - scale * power.mean())
    if level < 0:
        scale, level = float(power @ loss / (power @ power)), 0.0
    return scale, level, float(((scale * power + level - loss) ** 2).sum())


def _power_law(n: Doubles, loss: Doubles, scale: float, exponent: float, floor: float) -> PowerLaw:
    left = float(((scale * n**-exponent + floor - loss) ** 2).sum())
    spread = float(((loss - loss.mean()) ** 2).sum())
    return PowerLaw(scale, exponent, floor, 1 - left / spread if spread else float("nan"))


PIECES = 24
"""Straight segments with which a law is drawn."""


def draw_scaling(
    measured: Mapping[str, Points],
    laws: Mapping[str, Callable[[float], float]],
    caption: str,
    *,
    accent: Collection[str] = (),
) -> Picture:
    """Draw loss against size on two logarithmic axes.

    measured: a model's name → (size, loss) pairs, each a dot; laws: its law, a line through them.
    """
    if not measured or not all(measured.values()):
        raise SettingError("scaling needs at least one point for each model")
    if missing := set(laws) - set(measured):
        raise SettingError(f"a law for {sorted(missing)}, which was not measured")
    points = [point for each in measured.values() for point in each]
    if min(min(point) for point in points) <= 0:
        raise SettingError("scaling needs positive sizes and losses")
    sizes, losses = zip(*points, strict=True)
    axes = Axes(Scale(min(sizes), max(sizes), FIRST, LAST), Scale(min(losses), max(losses), BOTTOM, TOP))
    shapes = [axes.grid_line(loss, LAST) for loss in even_ticks(min(losses), max(losses))]
    shapes += [
        label(tick_name(size), axes.x(size), BOTTOM + 28, anchor="middle", colour="muted")
        for size in ticks(min(sizes), max(sizes))
    ]
    for name, each in measured.items():
        colour = "accent" if name in accent else "muted"
        if name in laws:
            shapes += _law(axes, laws[name], min(each)[0], max(each)[0], colour)
        shapes += [_dot(axes, size, loss, colour) for size, loss in each]
    ends = sorted((axes.y(max(each)[1]), name, max(each)[1]) for name, each in measured.items())
    for (_, name, loss), y in zip(ends, spread([y for y, _, _ in ends], LINE, BOTTOM + 4), strict=True):
        ink, weight = ("accent", 600) if name in accent else ("ink", 400)
        shapes.append(label(f"{name}: {readable(loss)}", percent(LAST + 0.02), y + 4, colour=ink, weight=weight))
    title = "Loss against the number of parameters"
    return Picture(svg(title, HEIGHT, shapes), title, caption)


def _law(axes: Axes, law: Callable[[float], float], first: float, last: float, colour: str) -> list[str]:
    steps = [first * (last / first) ** (piece / PIECES) for piece in range(PIECES + 1)]
    paint = f'stroke="var(--p-{colour})" stroke-width="1.5" stroke-linecap="round"'
    ends = [(axes.x(size), axes.y(law(size))) for size in steps]
    return [f'<line x1="{a}" y1="{b:g}" x2="{c}" y2="{d:g}" {paint}/>' for (a, b), (c, d) in pairwise(ends)]


def _dot(axes: Axes, size: float, loss: float, colour: str) -> str:
    hint = f"{size:,.0f} parameters: {readable(loss)}"
    centre = f'cx="{axes.x(size)}" cy="{axes.y(loss):g}"'
    return f'<circle {centre} r="4" fill="var(--p-{colour})"><title>{hint}</title></circle>'
