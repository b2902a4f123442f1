"""The axes of every chart: numbers become shares of the picture's width across and pixels down."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from foreword.picture.picture import label, percent, power_of_ten, readable

UNITS = 1000
"""Units of the coordinate system in which a line is drawn that stretches with its page."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Scale:
    """A map from numbers between ``low`` and ``high`` to positions from ``start`` to ``stop``.

    log: whether equal ratios, not equal differences, have equal lengths.
    """

    low: float
    high: float
    start: float
    stop: float
    log: bool = True

    def share(self, value: float) -> float:
        """Return how far ``value`` is on the way from ``low``, 0, to ``high``, 1."""
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log10(value), math.log10(low), math.log10(high)
        return (value - low) / max(high - low, 1e-9)

    def position(self, value: float) -> float:
        """Return the position of ``value``."""
        return self.start + (self.stop - self.start) * self.share(value)


@dataclass(frozen=True, slots=True)
class Axes:
    """The two axes of a chart. across: positions in shares of the width; down: positions in pixels."""

    across: Scale
    down: Scale

    def x(self, value: float) -> str:
        """Return the horizontal position of ``value`` as SVG writes it."""
        return percent(self.across.position(value))

    def y(self, value: float) -> float:
        """Return the vertical position of ``value`` in pixels."""
        return round(self.down.position(value), 2)

    def grid_line(self, value: float, right: float) -> str:
        """Draw a horizontal line from the left edge to the share ``right``, with its number above its beginning."""
        y = self.y(value)
        line = f'<line x1="0" x2="{percent(right)}" y1="{y:g}" y2="{y:g}" stroke="var(--p-line)"/>'
        return line + label(tick_name(value), "0", y - 4, colour="muted")

    def stretched_lines(self, lines: Iterable[tuple[Points, str, float]], *, overflow: bool = False) -> str:
        """Draw (points, colour, stroke width) lines over the whole area of the axes, whose shape the page decides.

        Strokes keep their width. A point that is not finite and positive is left out. overflow: draw strokes past the
        area's edges.
        """
        (left, right), (foot, top) = ((scale.start, scale.stop) for scale in (self.across, self.down))
        drawn = "".join(
            f'<polyline points="{self._path(points)}" fill="none" stroke="var(--p-{colour})" '
            f'stroke-width="{width:g}" stroke-linejoin="round" vector-effect="non-scaling-stroke"/>'
            for points, colour, width in lines
        )
        return (
            f'<svg x="{percent(left)}" y="{top:g}" width="{percent(right - left)}" height="{foot - top:g}" '
            f'viewBox="0 0 {UNITS} {UNITS}" preserveAspectRatio="none"{overflow * OVERFLOW}>{drawn}</svg>'
        )

    def _path(self, points: Points) -> str:
        shares = (
            (self.across.share(x), min(max(1 - self.down.share(y), 0.0), 1.0))
            for x, y in points
            if math.isfinite(y) and y > 0
        )
        return " ".join(f"{UNITS * across:.0f},{UNITS * down:.0f}" for across, down in shares)


OVERFLOW = ' overflow="visible"'


def ticks(low: float, high: float) -> Iterator[float]:
    """Yield round numbers for a logarithmic axis: powers of ten, every few if they are many, or 1, 2, 5 if few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    span = last - first
    steps: tuple[float, ...] = (1.0,) if span > 3 else (1.0, 2.0, 5.0)
    every = max(1, round(span / 6))
    for power in range(first, last + 1):
        if power % every == 0:
            yield from (value for value in (step * 10.0**power for step in steps) if low <= value <= high)


def even_ticks(low: float, high: float) -> list[float]:
    """Return three to eight evenly spaced round numbers: multiples of 1, 2 or 5 times a power of ten."""
    rough = max(high - low, 1e-9 * high) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [round(number * step, 12) for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def tick_name(value: float) -> str:
    """Write 100 as it is, but 10⁻⁸ and 10²⁴ as powers."""
    power = round(math.log10(value))
    if -3 < power < 7 or not math.isclose(value, 10.0**power):
        return readable(value).removesuffix(".00").removesuffix(".0")
    return power_of_ten(power)


def spread(positions: Sequence[float], apart: float, last: float) -> list[float]:
    """Move rising positions so that neighbours are at least ``apart`` and none is past ``last``."""
    moved: list[float] = []
    for position in positions:
        moved.append(max(position, moved[-1] + apart) if moved else position)
    limit = last
    for index in reversed(range(len(moved))):
        moved[index] = min(moved[index], limit)
        limit = moved[index] - apart
    return [round(position, 2) for position in moved]
