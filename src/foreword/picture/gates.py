"""The gates of a recurrent layer while it reads a sentence: a row a token, a column a unit (row L05)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from foreword.arrays import Doubles
from foreword.errors import SettingError
from foreword.picture.heat import grid, square
from foreword.picture.picture import Picture, label, percent, svg

ROW, TOP = 22, 46
FIRST, GAP = 0.17, 0.035
"""Words stand before the first column; gates are so far apart; both are shares of the width."""

LONGEST_WORD = 16
MEAN = 0.055
"""Beside each gate's squares stands the mean over all its units, as a number."""


def gates(tokens: Sequence[str], traces: Mapping[str, Doubles], units: int = 12) -> Picture:
    """traces: a gate's name → (tokens, units) between 0 and 1. Of each gate the units that vary most are drawn."""
    for name, values in traces.items():
        if values.shape[0] != len(tokens):
            raise SettingError(f"{name}: {len(tokens)} tokens but {values.shape[0]} rows")
    if not tokens or not traces:
        raise SettingError("gates need at least one token and one gate")
    width = (1 - FIRST - GAP * (len(traces) - 1)) / len(traces)
    height = TOP + ROW * len(tokens)
    shapes = [label(_short(token), "0", TOP + ROW * place + 15) for place, token in enumerate(tokens)]
    for number, (name, values) in enumerate(traces.items()):
        shapes += _gate(name, values, FIRST + number * (width + GAP), width, units)
    title = "What the gates do at each word"
    return Picture(svg(title, height + 4, shapes), title, _caption(tokens, traces))


def _gate(name: str, values: Doubles, left: float, width: float, units: int) -> list[str]:
    """One gate's squares, those of a unit below each other, and the mean over all units at the right."""
    drawn = np.argsort(-values.std(axis=0), kind="stable")[:units]
    each = (width - MEAN) / len(drawn)
    shapes = [
        label(name, percent(left), 14, weight=600),
        label("mean", percent(left + width), 34, anchor="end", colour="muted"),
        label(f"{len(drawn)} of {values.shape[1]} units", percent(left), 34, colour="muted"),
    ]
    for place, row in enumerate(values):
        top = TOP + ROW * place
        shapes.append(
            grid(
                square(float(row[unit]), left + column * each, top, each, ROW - 3, f"{unit}: {row[unit]:.2f}")
                for column, unit in enumerate(drawn.tolist())
            )
        )
        shapes.append(label(f"{row.mean():.2f}", percent(left + width), top + 15, anchor="end", colour="muted"))
    return shapes


def _short(word: str) -> str:
    return word if len(word) <= LONGEST_WORD else f"{word[: LONGEST_WORD - 1]}…"


def _caption(tokens: Sequence[str], traces: Mapping[str, Doubles]) -> str:
    said = "Full colour is an open gate, none a shut one; a column is a unit, and those that vary most are shown."
    name = "forget" if "forget" in traces else next(iter(traces))
    means = traces[name].mean(axis=1)
    low, high = int(means.argmin()), int(means.argmax())
    return (
        f"{said} The {name} gate is most shut at “{tokens[low]}” ({means[low]:.2f} in the mean) "
        f"and most open at “{tokens[high]}” ({means[high]:.2f})."
    )
