"""Why a linear classifier said what it said: a bar for each word, to the right for its label, to the left against."""

from __future__ import annotations

from collections.abc import Sequence

from foreword.errors import SettingError
from foreword.picture.picture import Picture, label, percent, svg

ROW, BAR = 24, 14
NAME, ROOM = 0.26, 0.08
"""Words stand before the bars; numbers have so much room beside them; both are shares of the width."""


def reasons(words: Sequence[str], weights: Sequence[float], title: str, caption: str) -> Picture:
    """One bar a word, as long as its weight, which may be negative; the order is the caller's."""
    if not words or len(words) != len(weights):
        raise SettingError(f"{len(words)} words and {len(weights)} weights: expected as many of both, at least one")
    most, least = max(0.0, *weights), min(0.0, *weights)
    wide = (1 - NAME - 2 * ROOM) / ((most - least) or 1.0)
    zero = NAME + ROOM - least * wide
    shapes = [
        _row(ROW * place, word, weight, zero, wide)
        for place, (word, weight) in enumerate(zip(words, weights, strict=True))
    ]
    height = ROW * len(words)
    axis = f'<line x1="{percent(zero)}" x2="{percent(zero)}" y1="0" y2="{height - 4}" stroke="var(--p-muted)"/>'
    return Picture(svg(title, height, [*shapes, axis]), title, caption)


def _row(top: int, word: str, weight: float, zero: float, wide: float) -> str:
    end = zero + weight * wide
    left, colour = min(zero, end), "accent" if weight >= 0 else "muted"
    beside, anchor = (end + 0.008, "start") if weight >= 0 else (end - 0.008, "end")
    return (
        label(word, percent(NAME - 0.02), top + 14, anchor="end")
        + f'<rect x="{percent(left)}" y="{top + 2}" width="{percent(abs(end - zero))}" height="{BAR}" '
        f'fill="var(--p-{colour})"/>'
        + label(f"{weight:+.2f}".replace("-", "−"), percent(beside), top + 14, anchor=anchor, colour="muted")
    )
