"""Grids of numbers between 0 and 1, each a square as full of colour as its number is large.

``gates`` shows the gates of a recurrent layer while it reads a sentence: one row per token, one column per unit.
``attention`` shows the attention of a translation: one row per target word, one column per source word, as in figure 3
of Bahdanau et al. (2015); ``attention_text`` the same for a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from unicodedata import east_asian_width

import numpy as np

from foreword.arrays import Doubles, Reals
from foreword.errors import SettingError
from foreword.picture.picture import Picture, label, percent, readable, shorten, svg

ROW, TOP = 24, 96
FIRST = 0.2
"""Position of the first column, as a share of the width; the names of rows stand before it."""

WIDEST = 0.08
"""Greatest width of a square, so that a short sentence has no bars."""


def heat_map(columns: Sequence[str], rows: Sequence[str], shares: Reals, title: str, caption: str) -> Picture:
    """Draw a square for each pair; shares: (rows, columns), between 0 and 1."""
    check_shares(columns, rows, shares)
    each = min(WIDEST, (1 - FIRST) / len(columns))
    shapes = [
        f'<svg x="{percent(FIRST + (place + 0.5) * each)}" y="{TOP - 8}" overflow="visible">'
        f'<g transform="rotate(-50)">{label(shorten(name), "0", 0)}</g></svg>'
        for place, name in enumerate(columns)
    ]
    for number, name in enumerate(rows):
        top = TOP + ROW * number
        shapes.append(label(shorten(name), percent(FIRST - 0.012), top + 16, anchor="end"))
        shapes.append(
            grid(
                square(
                    float(share), FIRST + place * each, top, each, ROW - 2, f"{name} ← {columns[place]}: {share:.2f}"
                )
                for place, share in enumerate(shares[number].tolist())
            )
        )
    return Picture(svg(title, TOP + ROW * len(rows) + 4, shapes), title, caption)


def check_shares(columns: Sequence[str], rows: Sequence[str], shares: Reals) -> None:
    """Raise a SettingError unless the shape of ``shares`` is that of the names."""
    if not columns or not rows or shares.shape != (len(rows), len(columns)):
        raise SettingError(
            f"weights are {shares.shape} for {len(rows)} rows and {len(columns)} columns: expected as many of both, "
            "and at least one"
        )


def square(share: float, left: float, top: float, width: float, height: float, hint: str = "") -> str:
    """Draw one square; ``left`` and ``width`` are shares of the picture's width, ``top`` and ``height`` pixels.

    A thin outline stays where the number is 0, so that empty and missing look different.
    """
    full = min(max(share, 0.0), 1.0)
    return (
        f'<rect x="{percent(left)}" y="{top:g}" width="{percent(width)}" height="{height:g}" '
        f'fill-opacity="{full:.2f}"><title>{escape(hint or readable(share))}</title></rect>'
    )


def grid(squares: Iterable[str]) -> str:
    """Group squares and set their colour once for all of them."""
    return f'<g fill="var(--p-accent)" stroke="var(--p-line)">{"".join(squares)}</g>'


# The gates of a recurrent layer

GATE_ROW, GATES_TOP = 22, 46
FIRST_GATE, GAP = 0.17, 0.035
"""Position of the first gate, after the words, and the distance between gates, as shares of the width."""

MEAN = 0.055
"""Width of the column with the mean over all units of a gate."""


def gates(tokens: Sequence[str], traces: Mapping[str, Doubles], units: int = 12) -> Picture:
    """Draw the units of each gate that vary most; traces: a gate's name → (tokens, units), between 0 and 1."""
    for name, values in traces.items():
        if values.shape[0] != len(tokens):
            raise SettingError(f"{name}: {len(tokens)} tokens but {values.shape[0]} rows")
    if not tokens or not traces:
        raise SettingError("gates need at least one token and one gate")
    width = (1 - FIRST_GATE - GAP * (len(traces) - 1)) / len(traces)
    height = GATES_TOP + GATE_ROW * len(tokens)
    shapes = [label(shorten(token), "0", GATES_TOP + GATE_ROW * place + 15) for place, token in enumerate(tokens)]
    for number, (name, values) in enumerate(traces.items()):
        shapes += _gate(name, values, FIRST_GATE + number * (width + GAP), width, units)
    title = "What the gates do at each word"
    return Picture(svg(title, height + 4, shapes), title, _gates_caption(tokens, traces))


def _gate(name: str, values: Doubles, left: float, width: float, units: int) -> list[str]:
    """Draw one gate: one column per unit, and the mean over all units at the right."""
    drawn = np.argsort(-values.std(axis=0), kind="stable")[:units]
    each = (width - MEAN) / len(drawn)
    shapes = [
        label(name, percent(left), 14, weight=600),
        label("mean", percent(left + width), 34, anchor="end", colour="muted"),
        label(f"{len(drawn)} of {values.shape[1]} units", percent(left), 34, colour="muted"),
    ]
    for place, row in enumerate(values):
        top = GATES_TOP + GATE_ROW * place
        shapes.append(
            grid(
                square(float(row[unit]), left + column * each, top, each, GATE_ROW - 3, f"{unit}: {row[unit]:.2f}")
                for column, unit in enumerate(drawn.tolist())
            )
        )
        shapes.append(label(f"{row.mean():.2f}", percent(left + width), top + 15, anchor="end", colour="muted"))
    return shapes


def _gates_caption(tokens: Sequence[str], traces: Mapping[str, Doubles]) -> str:
    said = "Full colour is an open gate, none a shut one; a column is a unit, and those that vary most are shown."
    name = "forget" if "forget" in traces else next(iter(traces))
    means = traces[name].mean(axis=1)
    low, high = int(means.argmin()), int(means.argmax())
    return (
        f"{said} The {name} gate is most shut at “{tokens[low]}” ({means[low]:.2f} in the mean) "
        f"and most open at “{tokens[high]}” ({means[high]:.2f})."
    )


# Attention

SHADES = " ░▒▓█"


def attention(source: Sequence[str], target: Sequence[str], weights: Reals) -> Picture:
    """Draw attention weights: (target, source), each row summing to one."""
    title = "Where each word of the translation looks"
    check_shares(source, target, weights)
    return heat_map(source, target, weights, title, _attention_caption(source, target, weights))


def attention_text(source: Sequence[str], target: Sequence[str], weights: Reals) -> str:
    """Return the same for a terminal: source words numbered below, and each target word with its heaviest one."""
    check_shares(source, target, weights)
    wide = max(_width(word) for word in target)
    lines = []
    for word, row in zip(target, weights, strict=True):
        shades = "".join(2 * SHADES[min(len(SHADES) - 1, round(float(share) * (len(SHADES) - 1)))] for share in row)
        best = int(row.argmax())
        lines.append(f"{' ' * (wide - _width(word))}{word} │{shades}│ {source[best]} {row[best]:.2f}")
    numbers = "".join(f"{place % 100:<2}" for place in range(1, len(source) + 1))
    lines.append(f"{' ' * wide}  {numbers}")
    lines.append(f"{' ' * wide}  " + "  ".join(f"{place} {word}" for place, word in enumerate(source, 1)))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _width(word: str) -> int:
    """Return the width of a word in columns of a terminal."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in word)


def _attention_caption(source: Sequence[str], target: Sequence[str], weights: Reals) -> str:
    row, column = divmod(int(weights.argmax()), len(source))
    return (
        f"Full colour is all of the attention: a row is a word of the translation, and sums to one. “{target[row]}” "
        f"looks at “{source[column]}” with {weights[row, column]:.2f}, the most of all."
    )
