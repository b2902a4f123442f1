"""Two models mixed, from one alone to the other alone: where they do best together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from foreword.errors import SettingError
from foreword.picture.picture import Picture, label, percent, readable, svg

HEIGHT, TOP, FOOT, UNITS = 246, 34, 176, 1000
MARGIN = 0.09
"""Room at both sides for the numbers, as a share of the width."""


def mixing(
    one: str, other: str, weights: Sequence[float], perplexities: Sequence[float], chosen: float, reached: float
) -> Picture:
    """weights: the first model's, rising from 0 to 1; chosen, reached: the weight that was learnt, what it brings."""
    if len(weights) != len(perplexities) or len(weights) < 2:
        raise SettingError(
            f"{len(weights)} weights and {len(perplexities)} perplexities: expected as many, two or more"
        )
    finite = [value for value in (*perplexities, reached) if math.isfinite(value)]
    if not finite:
        raise SettingError("mixing needs a finite perplexity")
    low, high = min(finite), max(finite)

    def down(value: float) -> float:
        return TOP + (FOOT - TOP) * math.log(high / value) / max(math.log(high / low), 1e-9)

    points = " ".join(
        f"{UNITS * weight:.0f},{UNITS * (down(value) - TOP) / (FOOT - TOP):.0f}"
        for weight, value in zip(weights, perplexities, strict=True)
        if math.isfinite(value)
    )
    best = percent(MARGIN + (1 - 2 * MARGIN) * chosen)
    shapes = [
        f'<line x1="{percent(MARGIN)}" x2="{percent(1 - MARGIN)}" y1="{FOOT}" y2="{FOOT}" stroke="var(--p-line)"/>',
        f'<line x1="{best}" x2="{best}" y1="{down(reached):.1f}" y2="{FOOT}" stroke="var(--p-accent)" '
        'stroke-dasharray="2 5"/>',
        f'<svg x="{percent(MARGIN)}" y="{TOP}" width="{percent(1 - 2 * MARGIN)}" height="{FOOT - TOP}" '
        f'viewBox="0 0 {UNITS} {UNITS}" preserveAspectRatio="none" overflow="visible"><polyline points="{points}" '
        'fill="none" stroke="var(--p-muted)" stroke-width="2" stroke-linejoin="round" '
        'vector-effect="non-scaling-stroke"/></svg>',
        f'<circle cx="{best}" cy="{down(reached):.1f}" r="4.5" fill="var(--p-accent)"/>',
        label(readable(reached), best, down(reached) - 12, anchor="middle", colour="accent", weight=600),
        label(f"{chosen:.0%}", best, FOOT + 18, anchor="middle", colour="accent", weight=600),
        label(f"{other} alone", "0", FOOT + 42),
        label(f"{one} alone", "100%", FOOT + 60, anchor="end"),
        *(
            label(readable(value), percent(x), down(value) - 10, anchor="middle")
            for value, x in ((perplexities[0], MARGIN), (perplexities[-1], 1 - MARGIN))
            if math.isfinite(value)
        ),
    ]
    title = "Perplexity of two models mixed"
    told = (
        f"From {other} alone at the left to {one} alone at the right, on a logarithmic axis: with {chosen:.0%} of the "
        f"weight on the latter, a share that the tuning part chose, the two together reach {readable(reached)} on the "
        f"test, where the better one alone has {readable(min(perplexities[0], perplexities[-1]))}."
    )
    return Picture(svg(title, HEIGHT, shapes), title, told)
