"""The ladder: every model's perplexity as a bar, so that a generation's progress is a length."""

from __future__ import annotations

import math
from collections.abc import Sequence

from foreword.picture.picture import Picture, label, percent, readable, svg

ROW_HEIGHT = 46
BAR_HEIGHT = 10


def ladder(names: Sequence[str], perplexities: Sequence[float], vocabulary: int) -> Picture:
    """One bar a model, the best one in colour.

    The widest bar is the worst finite perplexity. A model that stands alone is measured against ``vocabulary``, the
    perplexity of choosing blindly among all tokens: beside nothing a bar says nothing.
    """
    finite = [value for value in perplexities if math.isfinite(value)]
    full = max(finite, default=1.0) if len(perplexities) > 1 else float(max(vocabulary, *finite, 1))
    best = min(perplexities, default=math.inf)
    rows = (
        _row(place, name, value, min(value / full, 1.0), value == best)
        for place, (name, value) in enumerate(zip(names, perplexities, strict=True))
    )
    title = "Perplexity on text none of the models has seen"
    return Picture(svg(title, ROW_HEIGHT * len(names), rows), title, _caption(names, perplexities, vocabulary))


def _row(place: int, name: str, value: float, share: float, best: bool) -> str:
    top = place * ROW_HEIGHT
    colour = "accent" if best else "muted"
    bar = f'y="{top + 24}" height="{BAR_HEIGHT}" rx="{BAR_HEIGHT / 2:g}"'
    return (
        label(name, "0", top + 15, weight=600 if best else 400)
        + label(readable(value), "100%", top + 15, anchor="end", weight=600 if best else 400)
        + f'<rect x="0" {bar} width="100%" fill="var(--p-line)"/>'
        + f'<rect x="0" {bar} width="{percent(share)}" fill="var(--p-{colour})"/>'
    )


def _caption(names: Sequence[str], perplexities: Sequence[float], vocabulary: int) -> str:
    value, name = min(zip(perplexities, names, strict=True), default=(math.inf, ""))
    if math.isinf(value):
        return "Every model gave some token no probability at all, so none has a finite perplexity."
    against = f"blind choice among the whole vocabulary would be {vocabulary:,}"
    if len(names) == 1:
        return f"{name} is as unsure as if it chose among {readable(value)} equally likely tokens; {against}."
    return f"Shorter is better: {name} is as unsure as if it chose among {readable(value)} tokens; {against}."
