"""Grids of numbers between 0 and 1, each a square as full of colour as its number is large."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from foreword.picture.picture import percent, readable


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
