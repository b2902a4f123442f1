"""Charts of lines: one line for each thing that is compared, its name at the line's end.

``curves`` draws any numbers over steps; ``gradients`` what is left of a gradient, ``growth`` how n-grams outgrow a
text, ``learning`` how networks learnt, and ``mixing`` the perplexity of two models mixed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise

from foreword.errors import SettingError
from foreword.evaluate.compare.results import Curve
from foreword.picture.axes import Axes, Scale, spread, tick_name, ticks
from foreword.picture.picture import Picture, brief, label, percent, readable, svg

TOP, BOTTOM, HEIGHT = 24, 300, 334
LINE = 16
"""Least distance between the names at the lines' ends, in pixels."""

FIRST, LAST = 0.1, 0.74
"""Positions of the first and the last step, as shares of the width; what is left is for the names."""

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
    """Draw positive numbers on a logarithmic axis, one for each step; a line is broken where a number is not finite.

    accent, dashed: the names of lines that are drawn in colour, and dashed. numbers: write a line's last one after its
    name.
    """
    return Picture(svg(title, HEIGHT, lines_over_steps(steps, lines, accent, dashed, numbers)), title, caption)


def lines_over_steps(
    steps: Sequence[str],
    lines: Mapping[str, Sequence[float]],
    accent: Collection[str],
    dashed: Collection[str],
    numbers: bool = True,
) -> list[str]:
    """Return the shapes of such a picture, ``HEIGHT`` pixels high."""
    for name, values in lines.items():
        if len(values) != len(steps):
            raise SettingError(f"{name}: {len(steps)} steps but {len(values)} numbers")
    drawn = {name: values for name, values in lines.items() if any(map(math.isfinite, values))}
    finite = [value for values in drawn.values() for value in values if math.isfinite(value)]
    if not finite or min(finite) <= 0:
        raise SettingError("curves need positive numbers")
    axes = Axes(step_scale(len(steps)), Scale(min(finite), max(finite), BOTTOM, TOP))
    colours = {name: "accent" if name in accent else "muted" for name in drawn}
    on_top = sorted(drawn, key=lambda name: name in accent)
    return [
        *(axes.grid_line(value, LAST) for value in ticks(min(finite), max(finite))),
        *(
            label(step, axes.x(number), BOTTOM + 28, anchor="middle", colour="muted")
            for number, step in enumerate(steps)
        ),
        *(_line(axes, drawn[name], colours[name], name in dashed) for name in on_top),
        *_names(axes, drawn, colours, numbers),
    ]


def step_scale(steps: int) -> Scale:
    """Return the horizontal scale of ``steps`` steps at equal distances; a single one stands in the middle."""
    return Scale(0, steps - 1, FIRST, LAST, log=False) if steps > 1 else Scale(-1, 1, FIRST, LAST, log=False)


def _line(axes: Axes, values: Sequence[float], colour: str, dashed: bool) -> str:
    paint = f'stroke="var(--p-{colour})" stroke-width="2" stroke-linecap="round"{dashed * DASHES}'
    segments = "".join(
        f'<line x1="{axes.x(step)}" y1="{axes.y(here):g}" x2="{axes.x(step + 1)}" y2="{axes.y(there):g}" {paint}/>'
        for step, (here, there) in enumerate(pairwise(values))
        if math.isfinite(here) and math.isfinite(there)
    )
    points = "".join(
        f'<circle cx="{axes.x(step)}" cy="{axes.y(value):g}" r="3.2" fill="var(--p-{colour})">'
        f"<title>{readable(value)}</title></circle>"
        for step, value in enumerate(values)
        if math.isfinite(value)
    )
    return segments + points


def _names(
    axes: Axes, drawn: Mapping[str, Sequence[float]], colours: Mapping[str, str], numbers: bool
) -> Iterator[str]:
    """Write each name next to the end of its line, moved down where the one above is too near."""
    ends = {name: [value for value in values if math.isfinite(value)][-1] for name, values in drawn.items()}
    ranked = sorted(ends, key=lambda name: (axes.y(ends[name]), name))
    heights = spread([axes.y(ends[name]) for name in ranked], LINE, BOTTOM + 4)
    for name, y in zip(ranked, heights, strict=True):
        number = readable(ends[name]) if ends[name] < 10_000 else brief(ends[name])
        yield label(
            f"{name}: {number}" if numbers and ends[name] < 1e6 else name,
            percent(LAST + 0.02),
            y + 4,
            colour="accent" if colours[name] == "accent" else "ink",
            weight=600 if colours[name] == "accent" else 400,
        )


# What is left of a gradient

LEAST = 1e-30
"""Smaller shares are drawn as missing: the axis would be all vanishing and no shape."""


def gradients(
    norms: Mapping[str, Sequence[float]],
    lags: Sequence[int],
    title: str = "What is left of a gradient, so many steps back",
    *,
    accent: Collection[str] = (),
    dashed: Collection[str] = (),
    numbers: bool = True,
) -> Picture:
    """Draw how much of a gradient is left, by lag, for each kind of cell.

    norms: a line's name → its number at lag 0, 1, 2, …, drawn as a share of the first; lags: those that are drawn.
    numbers: write the last number after each name; the caption has them too.
    """
    if not lags or not norms:
        raise SettingError("gradients need at least one lag and one line")
    lines = {}
    for name, values in norms.items():
        if max(lags) >= len(values):
            raise SettingError(f"{name}: {len(values)} lags but lag {max(lags)} is to be drawn")
        if not values[0] > 0:
            raise SettingError(f"{name}: {values[0]!r} at lag 0, expected a positive number")
        shares = (values[lag] / values[0] for lag in lags)
        lines[name] = [share if share >= LEAST else math.nan for share in shares]
    last = {name: values[-1] for name, values in lines.items()}
    left = ", ".join(f"{name} {'nothing' if math.isnan(value) else readable(value)}" for name, value in last.items())
    caption = f"Of the gradient at the last step, {lags[-1]} steps back there is left: {left}. The axis is logarithmic."
    return curves([str(lag) for lag in lags], lines, title, caption, accent=accent, dashed=dashed, numbers=numbers)


# N-grams that could be, n-grams that were seen, and how little they help with a new text

BARS = 70
"""Height of a bar for a share of one, in pixels; the bars hang below the lines."""


def growth(
    orders: Sequence[int],
    possible: Sequence[int],
    seen: Sequence[int],
    once: Sequence[int],
    unseen_share: Sequence[float],
) -> Picture:
    """Draw, for each order, the number of possible n-grams, of those a text has, and of those it has once.

    unseen_share: the share of another text's n-grams that is not among them, NaN where it has none.
    """
    if not orders:
        raise SettingError("growth needs at least one order")
    lines = {
        "possible": [float(number) for number in possible],
        "seen": [float(number) if number else math.nan for number in seen],  # a logarithmic axis has no 0
        "once": [float(number) if number else math.nan for number in once],
    }
    shapes = lines_over_steps([f"n = {order}" for order in orders], lines, {"seen"}, {"possible"})
    foot, scale = HEIGHT + 30 + BARS, step_scale(len(orders))
    shapes += [_bar(percent(scale.position(step)), share, foot) for step, share in enumerate(unseen_share)]
    shapes += [
        label("new text:", percent(LAST + 0.05), foot - BARS / 2, weight=600, colour="accent"),
        label("never seen", percent(LAST + 0.05), foot - BARS / 2 + 16, weight=600, colour="accent"),
    ]
    title = "N-grams that could be, that were seen, and that are new"
    return Picture(svg(title, foot + 4, shapes), title, _growth_caption(orders, unseen_share))


def _bar(x: str, share: float, foot: float) -> str:
    if math.isnan(share):
        return ""
    height = round(BARS * share, 1)
    return (
        f'<line x1="{x}" x2="{x}" y1="{foot}" y2="{foot - height:g}" stroke="var(--p-accent)" stroke-width="26"/>'
        + label(f"{share:.0%}", x, foot - height - 6, anchor="middle")
    )


def _growth_caption(orders: Sequence[int], unseen_share: Sequence[float]) -> str:
    caption = "What could be said grows by the same factor at each step, what was said hardly at all"
    shares = [(order, share) for order, share in zip(orders, unseen_share, strict=True) if not math.isnan(share)]
    if not shares:
        return f"{caption}."
    order, share = shares[-1]
    return f"{caption}: of a new text’s {order}-grams {share:.0%} were never seen."


# Two models mixed

MIXING_HEIGHT, MIXING_TOP, MIXING_FOOT = 246, 34, 176
MARGIN = 0.09
"""Width for the numbers at both sides, as a share of the picture's."""


def mixing(
    one: str, other: str, weights: Sequence[float], perplexities: Sequence[float], chosen: float, reached: float
) -> Picture:
    """Draw the perplexity of two models mixed, from the second alone to the first alone.

    weights: the first model's, rising from 0 to 1. chosen, reached: the learnt weight and its perplexity.
    """
    if len(weights) != len(perplexities) or len(weights) < 2:
        raise SettingError(
            f"{len(weights)} weights and {len(perplexities)} perplexities: expected as many, two or more"
        )
    finite = [value for value in (*perplexities, reached) if math.isfinite(value)]
    if not finite:
        raise SettingError("mixing needs a finite perplexity")
    down = Scale(min(finite), max(finite), MIXING_FOOT, MIXING_TOP)
    axes = Axes(Scale(0, 1, MARGIN, 1 - MARGIN, log=False), down)
    foot, best, lowest = MIXING_FOOT, axes.x(chosen), down.position(reached)
    shapes = [
        f'<line x1="{axes.x(0)}" x2="{axes.x(1)}" y1="{foot}" y2="{foot}" stroke="var(--p-line)"/>',
        f'<line x1="{best}" x2="{best}" y1="{lowest:.1f}" y2="{foot}" stroke="var(--p-accent)" '
        'stroke-dasharray="2 5"/>',
        axes.stretched_lines([(list(zip(weights, perplexities, strict=True)), "muted", 2)], overflow=True),
        f'<circle cx="{best}" cy="{lowest:.1f}" r="4.5" fill="var(--p-accent)"/>',
        label(readable(reached), best, lowest - 12, anchor="middle", colour="accent", weight=600),
        label(f"{chosen:.0%}", best, foot + 18, anchor="middle", colour="accent", weight=600),
        label(f"{other} alone", "0", foot + 42),
        label(f"{one} alone", "100%", foot + 60, anchor="end"),
        *(
            label(readable(value), axes.x(weight), down.position(value) - 10, anchor="middle")
            for value, weight in ((perplexities[0], 0), (perplexities[-1], 1))
            if math.isfinite(value)
        ),
    ]
    title = "Perplexity of two models mixed"
    caption = (
        f"From {other} alone at the left to {one} alone at the right, on a logarithmic axis: with {chosen:.0%} of the "
        f"weight on the latter, a share that the tuning part chose, the two together reach {readable(reached)} on the "
        f"test, where the better one alone has {readable(min(perplexities[0], perplexities[-1]))}."
    )
    return Picture(svg(title, MIXING_HEIGHT, shapes), title, caption)


# How networks learnt

CHART_HEIGHT, CHART_TOP, CHART_FOOT = 178, 28, 150
LEFT = 0.2
"""Position of second 0, as a share of a chart's width; the numbers of the axis stand before it."""

_GRID = "display:grid;gap:1.25rem 1.75rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,13rem),1fr))"


def learning(networks: Mapping[str, Curve]) -> Picture:
    """Draw a small chart for each network, by its title: perplexity, on a logarithmic axis, over seconds of training.

    All charts have the same axes.
    """
    points = [point for each in networks.values() for point in (*each.train, *each.valid)]
    finite = [(seconds, value) for seconds, value in points if math.isfinite(value) and value > 0]
    if not finite:
        raise SettingError("learning needs at least one network with a point to draw")
    longest, values = max(seconds for seconds, _ in finite) or 1.0, [value for _, value in finite]
    down = Scale(min(values) / 1.1, max(values) * 1.1, CHART_FOOT, CHART_TOP)
    axes = Axes(Scale(0, longest, LEFT, 1, log=False), down)
    charts = "".join(f"<div>{_chart(name, each, axes)}</div>" for name, each in networks.items())
    title = "How each network learnt"
    return Picture(f'<div class="learning" style="{_GRID}">{charts}</div>', title, _learning_caption(networks))


def _chart(name: str, curve: Curve, axes: Axes) -> str:
    last = curve.valid[-1][1] if curve.valid else math.nan
    shapes = [label(name, "0", 14, weight=600)]
    if math.isfinite(last):
        shapes.append(label(readable(last), "100%", 14, anchor="end", colour="accent", weight=600))
    for value in ticks(axes.down.low, axes.down.high):
        y = axes.down.position(value)
        shapes.append(
            f'<line x1="{percent(LEFT)}" x2="100%" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--p-line)"/>'
            + label(tick_name(value), percent(LEFT - 0.025), y + 4, anchor="end", colour="muted")
        )
    shapes += [
        label("0 s", percent(LEFT), CHART_FOOT + 20, colour="muted"),
        label(f"{axes.across.high:.3g} s", "100%", CHART_FOOT + 20, anchor="end", colour="muted"),
        axes.stretched_lines([(curve.train, "muted", 1.2), (curve.valid, "accent", 2.2)]),
        *(_dot(axes, seconds, value) for seconds, value in curve.valid if math.isfinite(value)),
    ]
    return svg(f"{name}: perplexity while it learnt", CHART_HEIGHT, shapes)


def _dot(axes: Axes, seconds: float, value: float) -> str:
    hint = escape(f"{readable(value)} after {seconds:.3g} s")
    return (
        f'<circle cx="{axes.x(seconds)}" cy="{axes.down.position(value):.1f}" r="3" '
        f'fill="var(--p-accent)"><title>{hint}</title></circle>'
    )


def _learning_caption(networks: Mapping[str, Curve]) -> str:
    caption = (
        "Perplexity over seconds of training, on the same axes: in grey what is being learnt from, as the training "
        "sees it, in colour the tuning part at each look that found a new best"
    )
    ends = {name: each.valid[-1] for name, each in networks.items() if each.valid}
    if len(ends) < 2:
        return f"{caption}."
    best = min(ends, key=lambda name: ends[name][1])
    return f"{caption}; {best} comes lowest, to {readable(ends[best][1])} after {ends[best][0]:.3g} s."
