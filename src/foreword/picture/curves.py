"""Lines over steps: one for each thing that is compared, its name at the line's end."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from foreword.errors import SettingError
from foreword.picture.picture import Picture, brief, label, percent, power_of_ten, readable, svg

TOP, BOTTOM, HEIGHT = 24, 300, 334
LINE = 16
"""Names at the lines' ends are at least so far apart."""

FIRST, LAST = 0.1, 0.74
"""Where the first and the last step stand, as shares of the width; what is left is for the names."""

DASHES = ' stroke-dasharray="2 6"'


def curves(
    steps: Sequence[str],
    lines: Mapping[str, Sequence[float]],
    title: str,
    caption: str,
    *,
    accent: Collection[str] = (),
    dashed: Collection[str] = (),
    numbers: bool = True,
) -> Picture:
    """Positive numbers on a logarithmic axis, one for each step; a line is broken where a number is not finite.

    accent, dashed: the names of lines that are drawn in colour, and dashed. numbers: a line's last one beside its name.
    """
    return Picture(svg(title, HEIGHT, lines_over_steps(steps, lines, accent, dashed, numbers)), title, caption)


def lines_over_steps(
    steps: Sequence[str],
    lines: Mapping[str, Sequence[float]],
    accent: Collection[str],
    dashed: Collection[str],
    numbers: bool = True,
) -> list[str]:
    """The shapes of such a picture, ``HEIGHT`` pixels high."""
    for name, values in lines.items():
        if len(values) != len(steps):
            raise SettingError(f"{name}: {len(steps)} steps but {len(values)} numbers")
    drawn = {name: values for name, values in lines.items() if any(map(math.isfinite, values))}
    finite = [value for values in drawn.values() for value in values if math.isfinite(value)]
    if not finite or min(finite) <= 0:
        raise SettingError("curves need positive numbers")
    axes = _Axes(len(steps), math.log10(min(finite)), math.log10(max(finite)))
    colours = {name: "accent" if name in accent else "muted" for name in drawn}
    on_top = sorted(drawn, key=lambda name: name in accent)
    return [
        *(_grid_line(axes, value) for value in ticks(min(finite), max(finite))),
        *(
            label(step, at(place, len(steps)), BOTTOM + 28, anchor="middle", colour="muted")
            for place, step in enumerate(steps)
        ),
        *(_line(axes, drawn[name], colours[name], name in dashed) for name in on_top),
        *_names(axes, drawn, colours, numbers),
    ]


def at(place: int, steps: int) -> str:
    """How far to the right a step stands."""
    return percent(FIRST + (LAST - FIRST) * (place / (steps - 1) if steps > 1 else 0.5))


@dataclass(frozen=True, slots=True)
class _Axes:
    """How many steps there are, and the powers of ten at the bottom and at the top."""

    steps: int
    low: float
    high: float

    def x(self, place: int) -> str:
        return at(place, self.steps)

    def y(self, value: float) -> float:
        share = (math.log10(value) - self.low) / max(self.high - self.low, 1e-9)
        return round(BOTTOM - (BOTTOM - TOP) * share, 2)


def ticks(low: float, high: float) -> Iterator[float]:
    """Round numbers between two: powers of ten, every few where they are many, or 1, 2 and 5 where they are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    span = last - first
    steps: tuple[float, ...] = (1.0,) if span > 3 else (1.0, 2.0, 5.0)
    every = max(1, round(span / 6))
    for power in range(first, last + 1):
        if power % every == 0:
            yield from (value for value in (step * 10.0**power for step in steps) if low <= value <= high)


def tick_name(value: float) -> str:
    """100 as it is, but 10⁻⁸ and 10²⁴ as powers."""
    power = round(math.log10(value))
    if -3 < power < 7 or not math.isclose(value, 10.0**power):
        return readable(value).removesuffix(".00").removesuffix(".0")
    return power_of_ten(power)


def _grid_line(axes: _Axes, value: float) -> str:
    y = axes.y(value)
    line = f'<line x1="0" x2="{percent(LAST)}" y1="{y:g}" y2="{y:g}" stroke="var(--p-line)"/>'
    return line + label(tick_name(value), "0", y - 4, colour="muted")


def _line(axes: _Axes, values: Sequence[float], colour: str, dashed: bool) -> str:
    paint = f'stroke="var(--p-{colour})" stroke-width="2" stroke-linecap="round"{dashed * DASHES}'
    segments = "".join(
        f'<line x1="{axes.x(place)}" y1="{axes.y(here):g}" x2="{axes.x(place + 1)}" y2="{axes.y(there):g}" {paint}/>'
        for place, (here, there) in enumerate(pairwise(values))
        if math.isfinite(here) and math.isfinite(there)
    )
    points = "".join(
        f'<circle cx="{axes.x(place)}" cy="{axes.y(value):g}" r="3.2" fill="var(--p-{colour})">'
        f"<title>{readable(value)}</title></circle>"
        for place, value in enumerate(values)
        if math.isfinite(value)
    )
    return segments + points


def _names(
    axes: _Axes, drawn: Mapping[str, Sequence[float]], colours: Mapping[str, str], numbers: bool
) -> Iterator[str]:
    """Each name beside the end of its line, moved down where the one above is too near."""
    ends = {name: [value for value in values if math.isfinite(value)][-1] for name, values in drawn.items()}
    ranked = sorted(ends, key=lambda name: (axes.y(ends[name]), name))
    places = spread([axes.y(ends[name]) for name in ranked], LINE, BOTTOM + 4)
    for name, place in zip(ranked, places, strict=True):
        text = label(
            f"{name}: {_short(ends[name])}" if numbers and ends[name] < 1e6 else name,
            percent(LAST + 0.02),
            place + 4,
            colour="accent" if colours[name] == "accent" else "ink",
            weight=600 if colours[name] == "accent" else 400,
        )
        yield text


def _short(value: float) -> str:
    """There is little room beside a line."""
    return readable(value) if value < 10_000 else brief(value)


def spread(places: Sequence[float], apart: float, last: float) -> list[float]:
    """Rising numbers, moved so that neighbours are ``apart`` and none is past ``last``."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + apart) if moved else place)
    limit = last
    for index in reversed(range(len(moved))):
        moved[index] = min(moved[index], limit)
        limit = moved[index] - apart
    return [round(place, 2) for place in moved]
