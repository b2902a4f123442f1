"""Where a translation looks: a row a target word, a column a source word, as in the papers (rows Q14 and F08).

Bahdanau et al. (2015), figure 3. As a drawing, or as letters for a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from foreword.errors import SettingError
from foreword.picture.heat import grid, square
from foreword.picture.picture import Picture, label, percent, svg

ROW, TOP = 24, 96
FIRST = 0.2
"""Target words stand before the first column; a share of the width."""

LONGEST_WORD, WIDEST = 16, 0.08
"""A square is at most so wide, so that a short sentence has no bars."""

SHADES = " ░▒▓█"

Weights = NDArray[np.floating[Any]]


def attention(source: Sequence[str], target: Sequence[str], weights: Weights) -> Picture:
    """weights: (target, source), each row summing to one."""
    _check(source, target, weights)
    each = min(WIDEST, (1 - FIRST) / len(source))
    shapes = [
        f'<svg x="{percent(FIRST + (place + 0.5) * each)}" y="{TOP - 8}" overflow="visible">'
        f'<g transform="rotate(-50)">{label(_short(word), "0", 0)}</g></svg>'
        for place, word in enumerate(source)
    ]
    for row, word in enumerate(target):
        top = TOP + ROW * row
        shapes.append(label(_short(word), percent(FIRST - 0.012), top + 16, anchor="end"))
        shapes.append(
            grid(
                square(float(share), FIRST + place * each, top, each, ROW - 2, f"{word} ← {source[place]}: {share:.2f}")
                for place, share in enumerate(weights[row].tolist())
            )
        )
    title = "Where each word of the translation looks"
    return Picture(svg(title, TOP + ROW * len(target) + 4, shapes), title, _caption(source, target, weights))


def attention_text(source: Sequence[str], target: Sequence[str], weights: Weights) -> str:
    """The same for a terminal: source words numbered below, and for each target word the one it looked at most."""
    _check(source, target, weights)
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


def _check(source: Sequence[str], target: Sequence[str], weights: Weights) -> None:
    if not source or not target or weights.shape != (len(target), len(source)):
        raise SettingError(
            f"weights are {weights.shape} for {len(target)} target and {len(source)} source words: expected a row for "
            "each of the first and a column for each of the second, at least one of both"
        )


def _short(word: str) -> str:
    return word if len(word) <= LONGEST_WORD else f"{word[: LONGEST_WORD - 1]}…"


def _width(word: str) -> int:
    """Columns of a terminal."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in word)


def _caption(source: Sequence[str], target: Sequence[str], weights: Weights) -> str:
    row, column = divmod(int(weights.argmax()), len(source))
    return (
        f"Full colour is all of the attention: a row is a word of the translation, and sums to one. “{target[row]}” "
        f"looks at “{source[column]}” with {weights[row, column]:.2f}, the most of all."
    )
