"""Rank and frequency: a few words are everywhere, most words are nowhere.

Zipf's law says count(rank) ≈ count(1) / rank, a straight line of slope −1 when both axes are logarithmic.
G. K. Zipf, "Human Behavior and the Principle of Least Effort" (1949).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foreword.errors import SettingError
from foreword.picture.picture import Picture, label, percent, svg

HEIGHT = 320
TOP = 22  # room for a label above the highest grid line
BOTTOM = 292  # the axis of ranks; their labels stand below

NEAR_EDGE = 0.7
"""From this share of the width on there is no room to the right of a point."""

LONGEST_NAME = 16


def zipf(
    ranks: Sequence[int],
    counts: Sequence[int],
    *,
    once: int,
    words: Sequence[tuple[int, str]] = (),
    unit: str = "word",
) -> Picture:
    """Count against rank, both logarithmic, with Zipf's line dashed.

    ranks, counts: rising ranks from 1, falling counts; a few hundred points are plenty.
    once: how many words occur a single time. words: (rank, word) of points to name, if they occur twice.
    """
    if not ranks or len(ranks) != len(counts) or ranks[0] != 1 or counts[-1] < 1:
        raise SettingError("zipf needs a positive count for each rank, and the ranks to begin at 1")
    axes = _Axes(max(math.log10(ranks[-1]), 0.5), max(math.log10(counts[0]), 0.5))
    points = list(zip(ranks, counts, strict=True))
    at = dict(points)
    shapes = [
        *(_count_line(axes, count) for count in _powers(counts[0])),
        *(_rank_label(axes, rank) for rank in _powers(ranks[-1])),
        _law(axes, counts[0]),
        *(
            f'<circle cx="{axes.x(rank)}" cy="{axes.y(count):g}" r="2.6" fill="var(--p-accent)"/>'
            for rank, count in points
        ),
        *(_name(axes, rank, at[rank], word) for rank, word in words if at.get(rank, 0) > 1),
    ]
    title = f"How often each {unit} occurs"
    return Picture(svg(title, HEIGHT, shapes), title, _caption(ranks[-1], once, unit))


@dataclass(frozen=True, slots=True)
class _Axes:
    """How many powers of ten each axis spans."""

    across: float
    down: float

    def share(self, rank: float) -> float:
        return math.log10(rank) / self.across

    def x(self, rank: float) -> str:
        return percent(self.share(rank))

    def y(self, count: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * math.log10(count) / self.down, 2)


def _powers(limit: int) -> Iterator[int]:
    return (10**power for power in range(len(str(limit))))


def _count_line(axes: _Axes, count: int) -> str:
    """A grid line with its label at the end where the curve is not: it falls from the top left to the bottom right."""
    y = axes.y(count)
    said = (
        label("once", "0", y - 5, colour="muted")
        if count == 1
        else label(f"{count:,} times", "100%", y - 5, anchor="end", colour="muted")
    )
    return f'<line x1="0" x2="100%" y1="{y:g}" y2="{y:g}" stroke="var(--p-line)"/>{said}'


def _rank_label(axes: _Axes, rank: int) -> str:
    if rank == 1:
        return label("rank 1", "0", BOTTOM + 18, colour="muted")
    anchor = "end" if axes.share(rank) > 0.95 else "middle"
    return label(f"{rank:,}", axes.x(rank), BOTTOM + 18, anchor=anchor, colour="muted")


def _law(axes: _Axes, commonest: int) -> str:
    """Zipf's line, from the commonest word to where it meets the bottom or the right edge."""
    last = min(float(commonest), 10**axes.across)
    ends = f'x1="0" y1="{axes.y(commonest):g}" x2="{axes.x(last)}" y2="{axes.y(commonest / last):g}"'
    return f'<line {ends} stroke="var(--p-muted)" stroke-dasharray="4 4"/>'


def _name(axes: _Axes, rank: int, count: int, word: str) -> str:
    """The word above and to the right of its point, or below and to the left: on neither side of a falling curve."""
    y = axes.y(count)
    left = axes.share(rank) > NEAR_EDGE
    below = left and y < BOTTOM - 20  # on the bottom line only the space above is free
    short = word if len(word) <= LONGEST_NAME else f"{word[: LONGEST_NAME - 1]}…"
    text = label(short, axes.x(rank), y + 16 if below else y - 8, anchor="end" if left else "start", weight=600)
    return f'<g transform="translate({-6 if left else 6},0)">{text}</g>'


def _caption(types: int, once: int, unit: str) -> str:
    law = "The dashed line is Zipf’s law, half as often at twice the rank"
    return f"{law}; {once / types:.0%} of the text’s {types:,} different {unit}s occur only once."
