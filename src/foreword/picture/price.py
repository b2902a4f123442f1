"""What a low perplexity costs: one dot per model, the time it learnt across and its perplexity down."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from html import escape

from foreword.errors import SettingError
from foreword.picture.axes import Axes, Scale, spread, tick_name, ticks
from foreword.picture.picture import Picture, duration, label, percent, readable, svg

TOP, BOTTOM, HEIGHT = 20, 296, 336
FIRST, LAST = 0.09, 0.76
"""Positions of the shortest and the longest time, as shares of the width; what is left is for the names."""

LINE, COLUMN = 16, 0.2
"""Least distance between two names of the column in pixels, and the share of the picture's width that it is for."""

Points = Mapping[str, tuple[float, float]]


def price(points: Points, intervals: Mapping[str, tuple[float, float]] | None = None) -> Picture:
    """Draw (seconds of training, perplexity) of each model by its name, on logarithmic axes.

    intervals: of a perplexity, drawn as a vertical line. Models that no other one beats in less time are in colour.
    """
    drawn = {name: (max(seconds, 1e-6), value) for name, (seconds, value) in points.items() if math.isfinite(value)}
    if not drawn:
        raise SettingError("price needs at least one model with a finite perplexity")
    edges = {name: each for name, each in (intervals or {}).items() if name in drawn and all(map(math.isfinite, each))}
    times = [seconds for seconds, _ in drawn.values()]
    values = [value for _, value in drawn.values()] + [edge for each in edges.values() for edge in each]
    axes = Axes(
        Scale(min(times) / 1.3, max(times) * 1.3, FIRST, LAST),
        Scale(min(values) / 1.03, max(values) * 1.03, BOTTOM, TOP),
    )
    best = frontier(drawn)
    shapes = [
        *(axes.grid_line(value, 1) for value in ticks(min(values), max(values))),
        *_times(axes),
        *(_mark(axes, name, drawn[name], edges.get(name), name in best) for name in drawn),
        *_names(axes, drawn, best),
    ]
    title = "Perplexity by seconds of training"
    return Picture(svg(title, HEIGHT, shapes), title, _caption(drawn, best))


def frontier(points: Points) -> list[str]:
    """Return the names of the models that none is better than in as little time, the quickest first."""
    found: list[str] = []
    lowest = math.inf
    for name in sorted(points, key=lambda name: points[name]):
        if points[name][1] < lowest:
            found.append(name)
            lowest = points[name][1]
    return found


def _times(axes: Axes) -> Iterator[str]:
    for value in ticks(axes.across.low, axes.across.high):
        if math.isclose(math.log10(value) % 1, 0, abs_tol=1e-9) or axes.across.high / axes.across.low < 100:
            yield label(f"{tick_name(value)} s", axes.x(value), BOTTOM + 26, anchor="middle", colour="muted")


def _mark(axes: Axes, name: str, point: tuple[float, float], edges: tuple[float, float] | None, best: bool) -> str:
    (seconds, value), colour = point, "accent" if best else "muted"
    hint = escape(f"{name}: {readable(value)} after {duration(seconds)}")
    bar = ""
    if edges is not None:
        low, high = (axes.y(edge) for edge in edges)
        x = axes.x(seconds)
        bar = f'<line x1="{x}" x2="{x}" y1="{low:g}" y2="{high:g}" stroke="var(--p-{colour})" stroke-width="1.5"/>'
    return (
        f'{bar}<circle cx="{axes.x(seconds)}" cy="{axes.y(value):g}" r="4" fill="var(--p-{colour})">'
        f"<title>{hint}</title></circle>"
    )


def _names(axes: Axes, drawn: Points, best: list[str]) -> Iterator[str]:
    """Write each name to the right of its dot; those of the longest trainings, close to each other, in one column."""
    across = {name: axes.across.position(seconds) for name, (seconds, _) in drawn.items()}
    last = max(across.values())
    column = sorted((name for name in drawn if across[name] > last - COLUMN), key=lambda name: axes.y(drawn[name][1]))
    apart = spread([axes.y(drawn[name][1]) for name in column], LINE, BOTTOM + 4)
    heights = dict(zip(column, apart, strict=True))
    for name, (_, value) in drawn.items():
        right = last if name in heights else across[name]
        y, chosen = heights.get(name, axes.y(value)), name in best
        yield label(
            name, percent(right + 0.02), y + 4, colour="accent" if chosen else "ink", weight=600 if chosen else 400
        )


def _caption(drawn: Points, best: list[str]) -> str:
    last = best[-1]
    caption = (
        "Lower is better, further left is quicker; in colour what no other model beats in as little time, with 95 % "
        "intervals"
    )
    if len(best) == 1:
        return f"{caption}: {last} alone, {readable(drawn[last][1])} after {duration(drawn[last][0])}."
    first = best[0]
    return (
        f"{caption}: from {first}, {readable(drawn[first][1])} after {duration(drawn[first][0])}, to {last}, "
        f"{readable(drawn[last][1])} after {duration(drawn[last][0])}."
    )
