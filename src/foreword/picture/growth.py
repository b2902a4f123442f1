"""N-grams that could be, n-grams that were seen, and how little they help with a new text (row N08)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from foreword.errors import SettingError
from foreword.picture.curves import HEIGHT, LAST, at, lines_over_steps
from foreword.picture.picture import Picture, label, percent, svg

BARS = 70
"""Pixels that a share of one takes; the bars hang below the lines."""


def growth(
    orders: Sequence[int],
    possible: Sequence[int],
    seen: Sequence[int],
    once: Sequence[int],
    unseen_share: Sequence[float],
) -> Picture:
    """For each order: how many n-grams there could be, how many a text has, how many of those a single time, and which
    share of another text's n-grams is not among them, NaN where it has none.
    """
    if not orders:
        raise SettingError("growth needs at least one order")
    lines = {
        "possible": [float(number) for number in possible],
        "seen": [_or_missing(number) for number in seen],
        "once": [_or_missing(number) for number in once],
    }
    shapes = lines_over_steps([f"n = {order}" for order in orders], lines, {"seen"}, {"possible"})
    foot = HEIGHT + 30 + BARS
    shapes += [_bar(at(place, len(orders)), share, foot) for place, share in enumerate(unseen_share)]
    shapes += [
        label("new text:", percent(LAST + 0.05), foot - BARS / 2, weight=600, colour="accent"),
        label("never seen", percent(LAST + 0.05), foot - BARS / 2 + 16, weight=600, colour="accent"),
    ]
    title = "N-grams that could be, that were seen, and that are new"
    return Picture(svg(title, foot + 4, shapes), title, _caption(orders, unseen_share))


def _bar(x: str, share: float, foot: float) -> str:
    if math.isnan(share):
        return ""
    height = round(BARS * share, 1)
    return (
        f'<line x1="{x}" x2="{x}" y1="{foot}" y2="{foot - height:g}" stroke="var(--p-accent)" stroke-width="26"/>'
        + label(f"{share:.0%}", x, foot - height - 6, anchor="middle")
    )


def _or_missing(number: int) -> float:
    """None at all has no place on a logarithmic axis."""
    return float(number) if number else math.nan


def _caption(orders: Sequence[int], unseen_share: Sequence[float]) -> str:
    told = "What could be said grows by the same factor at each step, what was said hardly at all"
    shares = [(order, share) for order, share in zip(orders, unseen_share, strict=True) if not math.isnan(share)]
    if not shares:
        return f"{told}."
    order, share = shares[-1]
    return f"{told}: of a new text’s {order}-grams {share:.0%} were never seen."
