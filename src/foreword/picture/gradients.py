"""How much of a gradient is left so many steps back, for each kind of cell (rows R11, R13, L04)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from foreword.errors import SettingError
from foreword.picture.curves import curves
from foreword.picture.picture import Picture, readable

LEAST = 1e-30
"""What is smaller is drawn as missing: the axis would be all vanishing and no shape."""


def gradients(
    norms: Mapping[str, Sequence[float]],
    lags: Sequence[int],
    title: str = "What is left of a gradient, so many steps back",
    *,
    accent: Collection[str] = (),
    dashed: Collection[str] = (),
    numbers: bool = True,
) -> Picture:
    """norms: a line's name → its number at lag 0, 1, 2, …; lags: those that are drawn. Each line is a share of its own
    first number. numbers: the last one beside each name; the caption tells them too.
    """
    if not lags or not norms:
        raise SettingError("gradients need at least one lag and one line")
    lines = {}
    for name, values in norms.items():
        if max(lags) >= len(values):
            raise SettingError(f"{name}: {len(values)} lags but lag {max(lags)} is to be drawn")
        if not values[0] > 0:
            raise SettingError(f"{name}: {values[0]!r} at lag 0, expected a positive number")
        lines[name] = [_share(values[lag], values[0]) for lag in lags]
    steps, caption = [str(lag) for lag in lags], _caption(lines, lags)
    return curves(steps, lines, title, caption, accent=accent, dashed=dashed, numbers=numbers)


def _share(value: float, first: float) -> float:
    share = value / first
    return share if share >= LEAST else math.nan


def _caption(lines: Mapping[str, Sequence[float]], lags: Sequence[int]) -> str:
    last = {name: values[-1] for name, values in lines.items()}
    told = ", ".join(f"{name} {'nothing' if math.isnan(value) else readable(value)}" for name, value in last.items())
    return f"Of the gradient at the last step, {lags[-1]} steps back there is left: {told}. The axis is logarithmic."
