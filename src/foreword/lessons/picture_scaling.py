"""Loss against size on two logarithmic axes: what was measured, and the power law through it (row X04)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from foreword.errors import SettingError
from foreword.picture.curves import BOTTOM, FIRST, HEIGHT, LAST, LINE, TOP, spread, tick_name, ticks
from foreword.picture.picture import Picture, label, percent, readable, svg

PIECES = 24
"""Straight pieces that a law is drawn with."""

Points = Sequence[tuple[float, float]]


def scaling(
    measured: Mapping[str, Points],
    laws: Mapping[str, Callable[[float], float]],
    caption: str,
    *,
    accent: Collection[str] = (),
) -> Picture:
    """measured: a model's name → (size, loss) pairs, each a dot; laws: its law, a line through them."""
    if not measured or not all(measured.values()):
        raise SettingError("scaling needs at least one point for each model")
    if missing := set(laws) - set(measured):
        raise SettingError(f"a law for {sorted(missing)}, which was not measured")
    points = [point for each in measured.values() for point in each]
    if min(min(point) for point in points) <= 0:
        raise SettingError("scaling needs positive sizes and losses")
    sizes, losses = zip(*points, strict=True)
    axes = _Axes(min(sizes), max(sizes), min(losses), max(losses))
    shapes = [_across(axes, value) for value in even_ticks(axes.least, axes.most)]
    shapes += [_down(axes, value) for value in ticks(axes.small, axes.large)]
    for name, each in measured.items():
        colour = "accent" if name in accent else "muted"
        if name in laws:
            shapes += _law(axes, laws[name], min(each)[0], max(each)[0], colour)
        shapes += [_dot(axes, size, loss, colour) for size, loss in each]
    ends = sorted((axes.y(max(each)[1]), name, max(each)[1]) for name, each in measured.items())
    for (_, name, loss), place in zip(ends, spread([y for y, _, _ in ends], LINE, BOTTOM + 4), strict=True):
        ink, weight = ("accent", 600) if name in accent else ("ink", 400)
        shapes.append(label(f"{name}: {readable(loss)}", percent(LAST + 0.02), place + 4, colour=ink, weight=weight))
    title = "Loss against the number of parameters"
    return Picture(svg(title, HEIGHT, shapes), title, caption)


def even_ticks(low: float, high: float) -> list[float]:
    """Three to eight round numbers between two that may be close: multiples of 1, 2 or 5 times a power of ten."""
    rough = max(high - low, 1e-9 * high) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [round(place * step, 12) for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


@dataclass(frozen=True, slots=True)
class _Axes:
    """The smallest and largest size, the least and the most loss."""

    small: float
    large: float
    least: float
    most: float

    def x(self, size: float) -> str:
        share = math.log(size / self.small) / max(math.log(self.large / self.small), 1e-9)
        return percent(FIRST + (LAST - FIRST) * share)

    def y(self, loss: float) -> float:
        share = math.log(loss / self.least) / max(math.log(self.most / self.least), 1e-9)
        return round(BOTTOM - (BOTTOM - TOP) * share, 2)


def _across(axes: _Axes, loss: float) -> str:
    y = axes.y(loss)
    line = f'<line x1="0" x2="{percent(LAST)}" y1="{y:g}" y2="{y:g}" stroke="var(--p-line)"/>'
    return line + label(tick_name(loss), "0", y - 4, colour="muted")


def _down(axes: _Axes, size: float) -> str:
    return label(tick_name(size), axes.x(size), BOTTOM + 28, anchor="middle", colour="muted")


def _law(axes: _Axes, law: Callable[[float], float], first: float, last: float, colour: str) -> list[str]:
    steps = [first * (last / first) ** (piece / PIECES) for piece in range(PIECES + 1)]
    paint = f'stroke="var(--p-{colour})" stroke-width="1.5" stroke-linecap="round"'
    ends = [(axes.x(size), axes.y(law(size))) for size in steps]
    return [f'<line x1="{a}" y1="{b:g}" x2="{c}" y2="{d:g}" {paint}/>' for (a, b), (c, d) in pairwise(ends)]


def _dot(axes: _Axes, size: float, loss: float, colour: str) -> str:
    hint = f"{size:,.0f} parameters: {readable(loss)}"
    place = f'cx="{axes.x(size)}" cy="{axes.y(loss):g}"'
    return f'<circle {place} r="4" fill="var(--p-{colour})"><title>{hint}</title></circle>'
