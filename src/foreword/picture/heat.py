"""Grids of numbers between 0 and 1, each a square as full of colour as its number is large."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from foreword.arrays import Reals
from foreword.errors import SettingError
from foreword.picture.picture import Picture, label, percent, readable, svg

ROW, TOP = 24, 96
FIRST = 0.2
"""Names of rows stand before the first column; a share of the width."""

LONGEST_WORD, WIDEST = 16, 0.08
"""A square is at most so wide, so that a short sentence has no bars."""


def heat_map(columns: Sequence[str], rows: Sequence[str], shares: Reals, title: str, caption: str) -> Picture:
    """A square for each pair; shares: (rows, columns), between 0 and 1. Names of columns stand aslant above them."""
    check_shares(columns, rows, shares)
    each = min(WIDEST, (1 - FIRST) / len(columns))
    shapes = [
        f'<svg x="{percent(FIRST + (place + 0.5) * each)}" y="{TOP - 8}" overflow="visible">'
        f'<g transform="rotate(-50)">{label(_short(name), "0", 0)}</g></svg>'
        for place, name in enumerate(columns)
    ]
    for number, name in enumerate(rows):
        top = TOP + ROW * number
        shapes.append(label(_short(name), percent(FIRST - 0.012), top + 16, anchor="end"))
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
    if not columns or not rows or shares.shape != (len(rows), len(columns)):
        raise SettingError(
            f"weights are {shares.shape} for {len(rows)} rows and {len(columns)} columns: expected as many of both, "
            "and at least one"
        )


def square(share: float, left: float, top: float, width: float, height: float, hint: str = "") -> str:
    """One square; ``left`` and ``width`` are shares of the picture's width, ``top`` and ``height`` pixels.

    A thin outline stays where the number is 0, so that empty and missing look different.
    """
    full = min(max(share, 0.0), 1.0)
    return (
        f'<rect x="{percent(left)}" y="{top:g}" width="{percent(width)}" height="{height:g}" '
        f'fill-opacity="{full:.2f}"><title>{escape(hint or readable(share))}</title></rect>'
    )


def grid(squares: Iterable[str]) -> str:
    """Squares with their colour, said once for all of them."""
    return f'<g fill="var(--p-accent)" stroke="var(--p-line)">{"".join(squares)}</g>'


def _short(word: str) -> str:
    return word if len(word) <= LONGEST_WORD else f"{word[: LONGEST_WORD - 1]}…"
