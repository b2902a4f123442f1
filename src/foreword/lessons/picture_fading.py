"""How fast two readers who began apart come to agree, word by word (row H07)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from foreword.errors import SettingError
from foreword.picture.curves import tick_name
from foreword.picture.picture import Picture, label, percent, readable, svg

ROW, TOP = 24, 30
FIRST = 0.2
"""Where the scale begins, as a share of the width; words stand before it."""

LONGEST_WORD = 18
LEAST = 1e-15
"""Below this a difference between two numbers near one is rounding."""


def fading(words: Sequence[str], distances: Sequence[float], bounds: Sequence[float]) -> Picture:
    """A bar for the distance after each word, and a stroke for what it cannot exceed; the scale is logarithmic."""
    if not words or not len(words) == len(distances) == len(bounds):
        raise SettingError(f"{len(words)} words, {len(distances)} distances and {len(bounds)} bounds: expected as many")
    powers = math.floor(math.log10(max(min(distances), LEAST)))
    powers = min(powers, -1)
    every = max(1, round(-powers / 5))
    height = TOP + ROW * len(words)
    shapes = [
        *(_scale(10.0**power, powers, height) for power in range(0, powers - 1, -every)),
        *(
            _row(place, word, distance, bound, powers)
            for place, (word, distance, bound) in enumerate(zip(words, distances, bounds, strict=True))
        ),
    ]
    title = "How far apart two beliefs are after each word"
    caption = (
        f"After {len(words)} words the two differ by {readable(distances[-1])} in total variation; the strokes are the "
        f"Dobrushin bound, which no bar passes."
    )
    return Picture(svg(title, height, shapes), title, caption)


def _x(value: float, powers: int) -> str:
    """The scale runs from the least power of ten, at the left, to one."""
    share = max(0.0, 1 - math.log10(max(value, LEAST)) / powers)
    return percent(FIRST + (1 - FIRST) * share)


def _scale(value: float, powers: int, height: float) -> str:
    x = _x(value, powers)
    anchor = "end" if value == 1 else "middle"
    line = f'<line x1="{x}" x2="{x}" y1="{TOP - 8}" y2="{height}" stroke="var(--p-line)"/>'
    return line + label(tick_name(value), x, 12, anchor=anchor, colour="muted")


def _row(place: int, word: str, distance: float, bound: float, powers: int) -> str:
    top = TOP + ROW * place
    short = word if len(word) <= LONGEST_WORD else f"{word[: LONGEST_WORD - 1]}…"
    start, end, limit = percent(FIRST), _x(distance, powers), _x(bound, powers)
    middle = top + 8
    return (
        label(short, "0", top + 13)
        + f'<line x1="{start}" x2="{end}" y1="{middle}" y2="{middle}" stroke="var(--p-accent)" stroke-width="10">'
        + f"<title>{readable(distance)}, at most {readable(bound)}</title></line>"
        + f'<line x1="{limit}" x2="{limit}" y1="{top}" y2="{top + 16}" stroke="var(--p-ink)" stroke-width="2"/>'
    )
