"""Charts of bars: ``ladder``, every model's perplexity, and ``reasons``, why a linear classifier chose its label."""

from __future__ import annotations

import math
from collections.abc import Sequence

from foreword.errors import SettingError
from foreword.picture.picture import Picture, label, percent, readable, svg

ROW_HEIGHT = 46
BAR_HEIGHT = 10


def ladder(names: Sequence[str], perplexities: Sequence[float], vocabulary: int) -> Picture:
    """Draw one bar per model, the best one in colour.

    The widest bar is the worst finite perplexity. A single model is compared with ``vocabulary``, the perplexity of
    choosing blindly among all tokens: alone a bar says nothing.
    """
    finite = [value for value in perplexities if math.isfinite(value)]
    full = max(finite, default=1.0) if len(perplexities) > 1 else float(max(vocabulary, *finite, 1))
    best = min(perplexities, default=math.inf)
    rows = (
        _ladder_row(index, name, value, min(value / full, 1.0), value == best)
        for index, (name, value) in enumerate(zip(names, perplexities, strict=True))
    )
    title = "Perplexity on text none of the models has seen"
    return Picture(svg(title, ROW_HEIGHT * len(names), rows), title, _ladder_caption(names, perplexities, vocabulary))


def _ladder_row(index: int, name: str, value: float, share: float, best: bool) -> str:
    top = index * ROW_HEIGHT
    colour = "accent" if best else "muted"
    bar = f'y="{top + 24}" height="{BAR_HEIGHT}" rx="{BAR_HEIGHT / 2:g}"'
    return (
        label(name, "0", top + 15, weight=600 if best else 400)
        + label(readable(value), "100%", top + 15, anchor="end", weight=600 if best else 400)
        + f'<rect x="0" {bar} width="100%" fill="var(--p-line)"/>'
        + f'<rect x="0" {bar} width="{percent(share)}" fill="var(--p-{colour})"/>'
    )


def _ladder_caption(names: Sequence[str], perplexities: Sequence[float], vocabulary: int) -> str:
    value, name = min(zip(perplexities, names, strict=True), default=(math.inf, ""))
    if math.isinf(value):
        return "Every model gave some token no probability at all, so none has a finite perplexity."
    against = f"blind choice among the whole vocabulary would be {vocabulary:,}"
    if len(names) == 1:
        return f"{name} is as unsure as if it chose among {readable(value)} equally likely tokens; {against}."
    return f"Shorter is better: {name} is as unsure as if it chose among {readable(value)} tokens; {against}."


ROW, BAR = 24, 14
NAME, NUMBER = 0.26, 0.08
"""Widths of the words before the bars and of the numbers at their ends, as shares of the picture's width."""


def reasons(words: Sequence[str], weights: Sequence[float], title: str, caption: str) -> Picture:
    """Draw one bar per word, as long as its weight: to the right for the label, to the left against it."""
    if not words or len(words) != len(weights):
        raise SettingError(f"{len(words)} words and {len(weights)} weights: expected as many of both, at least one")
    most, least = max(0.0, *weights), min(0.0, *weights)
    wide = (1 - NAME - 2 * NUMBER) / ((most - least) or 1.0)
    zero = NAME + NUMBER - least * wide
    shapes = [
        _reason_row(ROW * index, word, weight, zero, wide)
        for index, (word, weight) in enumerate(zip(words, weights, strict=True))
    ]
    height = ROW * len(words)
    axis = f'<line x1="{percent(zero)}" x2="{percent(zero)}" y1="0" y2="{height - 4}" stroke="var(--p-muted)"/>'
    return Picture(svg(title, height, [*shapes, axis]), title, caption)


def _reason_row(top: int, word: str, weight: float, zero: float, wide: float) -> str:
    end = zero + weight * wide
    left, colour = min(zero, end), "accent" if weight >= 0 else "muted"
    number, anchor = (end + 0.008, "start") if weight >= 0 else (end - 0.008, "end")
    return (
        label(word, percent(NAME - 0.02), top + 14, anchor="end")
        + f'<rect x="{percent(left)}" y="{top + 2}" width="{percent(abs(end - zero))}" height="{BAR}" '
        f'fill="var(--p-{colour})"/>'
        + label(f"{weight:+.2f}".replace("-", "−"), percent(number), top + 14, anchor=anchor, colour="muted")
    )
