"""How networks learn: a small chart for each, on the same axes, perplexity over seconds of training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from foreword.errors import SettingError
from foreword.picture.curves import tick_name, ticks
from foreword.picture.picture import Picture, label, percent, readable, svg

HEIGHT, TOP, FOOT = 178, 28, 150
LEFT = 0.2
"""Where the time begins, as a share of a chart's width: numbers of the axis stand before it."""

UNITS = 1000
"""A line is drawn in thousandths of its frame, which is then stretched to the width there is."""

_GRID = "display:grid;gap:1.25rem 1.75rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,13rem),1fr))"

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Learning:
    """train, valid: (seconds, perplexity) of what is learnt from, and of the tuning part."""

    train: Points
    valid: Points


def learning(networks: Mapping[str, Learning]) -> Picture:
    """A network's title → how it learnt. All charts have the same axes; that of perplexity is logarithmic."""
    points = [point for each in networks.values() for point in (*each.train, *each.valid)]
    finite = [(seconds, value) for seconds, value in points if math.isfinite(value) and value > 0]
    if not finite:
        raise SettingError("learning needs at least one network with a point to draw")
    frame = _Frame(max(seconds for seconds, _ in finite) or 1.0, *_range(value for _, value in finite))
    charts = "".join(f"<div>{_chart(name, each, frame)}</div>" for name, each in networks.items())
    title = "How each network learnt"
    return Picture(f'<div class="learning" style="{_GRID}">{charts}</div>', title, _caption(networks))


@dataclass(frozen=True, slots=True)
class _Frame:
    seconds: float
    low: float
    high: float

    def place(self, seconds: float, value: float) -> tuple[float, float]:
        """Shares of the frame, from its left and from its top."""
        down = (math.log(self.high) - math.log(value)) / max(math.log(self.high) - math.log(self.low), 1e-9)
        return seconds / self.seconds, min(max(down, 0.0), 1.0)


def _range(values: Iterable[float]) -> tuple[float, float]:
    found = list(values)
    return min(found) / 1.1, max(found) * 1.1


def _chart(name: str, each: Learning, frame: _Frame) -> str:
    last = each.valid[-1][1] if each.valid else math.nan
    shapes = [label(name, "0", 14, weight=600)]
    if math.isfinite(last):
        shapes.append(label(readable(last), "100%", 14, anchor="end", colour="accent", weight=600))
    for value in ticks(frame.low, frame.high):
        y = TOP + (FOOT - TOP) * frame.place(0, value)[1]
        shapes.append(
            f'<line x1="{percent(LEFT)}" x2="100%" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--p-line)"/>'
            + label(tick_name(value), percent(LEFT - 0.025), y + 4, anchor="end", colour="muted")
        )
    shapes += [
        label("0 s", percent(LEFT), FOOT + 20, colour="muted"),
        label(f"{frame.seconds:.3g} s", "100%", FOOT + 20, anchor="end", colour="muted"),
        _lines(each, frame),
        *(_dot(frame, seconds, value) for seconds, value in each.valid if math.isfinite(value)),
    ]
    return svg(f"{name}: perplexity while it learnt", HEIGHT, shapes)


def _lines(each: Learning, frame: _Frame) -> str:
    """Both lines in a frame of their own, whose shape the page decides; strokes keep their width in it."""
    drawn = "".join(
        f'<polyline points="{_path(points, frame)}" fill="none" stroke="var(--p-{colour})" stroke-width="{width}" '
        'stroke-linejoin="round" vector-effect="non-scaling-stroke"/>'
        for points, colour, width in ((each.train, "muted", 1.2), (each.valid, "accent", 2.2))
    )
    return (
        f'<svg x="{percent(LEFT)}" y="{TOP}" width="{percent(1 - LEFT)}" height="{FOOT - TOP}" '
        f'viewBox="0 0 {UNITS} {UNITS}" preserveAspectRatio="none">{drawn}</svg>'
    )


def _path(points: Points, frame: _Frame) -> str:
    placed = (frame.place(seconds, value) for seconds, value in points if math.isfinite(value) and value > 0)
    return " ".join(f"{UNITS * across:.0f},{UNITS * down:.0f}" for across, down in placed)


def _dot(frame: _Frame, seconds: float, value: float) -> str:
    across, down = frame.place(seconds, value)
    hint = escape(f"{readable(value)} after {seconds:.3g} s")
    return (
        f'<circle cx="{percent(LEFT + (1 - LEFT) * across)}" cy="{TOP + (FOOT - TOP) * down:.1f}" r="3" '
        f'fill="var(--p-accent)"><title>{hint}</title></circle>'
    )


def _caption(networks: Mapping[str, Learning]) -> str:
    said = (
        "Perplexity over seconds of training, on the same axes: in grey what is being learnt from, as the training "
        "sees it, in colour the tuning part at each look that found a new best"
    )
    ends = {name: each.valid[-1] for name, each in networks.items() if each.valid}
    if len(ends) < 2:
        return f"{said}."
    best = min(ends, key=lambda name: ends[name][1])
    return f"{said}; {best} comes lowest, to {readable(ends[best][1])} after {ends[best][0]:.3g} s."
