"""What every picture is made of: markup, a title, and one sentence that says what to see.

Pictures are written by hand as SVG (running text as HTML), from arrays alone, so the same arrays give the same bytes.
Lengths across are percentages and lengths down are pixels: a picture is as wide as its page, and its letters keep
their size on a telephone. Colours are CSS variables: a page that sets ``--ink``, ``--muted``, ``--line``, ``--accent``
and ``--heat`` decides; without one a picture follows the reader's light or dark setting.

``write_standalone`` writes a picture as an SVG file of its own, with its title, a background and a margin.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from xml.etree import ElementTree

from foreword.errors import SettingError
from foreword.storage.atomic import atomic_file

_STYLE = (
    ".picture{--p-ink:var(--ink,#23211e);--p-muted:var(--muted,#6d6962);--p-line:var(--line,#e0dcd3);"
    "--p-accent:var(--accent,#1f6f78);font:13px/1 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;"
    "font-variant-numeric:tabular-nums;overflow:visible}"
    "@media screen and (prefers-color-scheme:dark){.picture{--p-ink:var(--ink,#e8e4dc);--p-muted:var(--muted,#9c978d);"
    "--p-line:var(--line,#3a3833);--p-accent:var(--accent,#5fb6bd)}}"
)


@dataclass(frozen=True, slots=True)
class Picture:
    """markup: one ``<svg>``, or one HTML element where text has to flow; caption: one sentence, plain text."""

    markup: str
    title: str
    caption: str

    def _repr_html_(self) -> str:
        return f"<figure>{self.markup}<figcaption>{escape(self.caption)}</figcaption></figure>"


def svg(title: str, height: float, shapes: Iterable[str]) -> str:
    """Return shapes, already markup, as one drawing that is as wide as its container."""
    name = escape(title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" role="img" aria-label="{name}" width="100%" '
        f'height="{height:g}"><title>{name}</title><style>{_STYLE}</style>{"".join(shapes)}</svg>'
    )


def label(text: str, x: str, y: float, *, anchor: str = "start", colour: str = "ink", weight: int = 400) -> str:
    """Return a line of text; ``x`` with its unit, ``y`` in pixels at the foot of the letters."""
    return (
        f'<text x="{x}" y="{y:g}" text-anchor="{anchor}" font-weight="{weight}" fill="var(--p-{colour})">'
        f"{escape(text)}</text>"
    )


def percent(share: float) -> str:
    """Write 0.5 as ``50%``, short and the same on every machine."""
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + "%"


def readable(number: float) -> str:
    """Write a number as a person would: 12,346  123  45.7  6.54  0.0123  4.6×10⁻⁸  ∞."""
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if abs(number) >= 100:
        return f"{number:,.0f}"
    if abs(number) >= 10:
        return f"{number:.1f}"
    if abs(number) >= 1 or number == 0:
        return f"{number:.2f}"
    if abs(number) >= 1e-4:
        return f"{number:.3g}"
    digits, _, power = f"{number:.1e}".partition("e")
    return f"{digits}×{power_of_ten(int(power))}"


def plural(count: int, one: str, several: str = "") -> str:
    """Write a number with what it counts: 1 document, 1,200 documents. several: the plural, unless it adds an s."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def shorten(word: str, longest: int = 16) -> str:
    """Return a word of at most ``longest`` letters; a longer one ends in an ellipsis."""
    return word if len(word) <= longest else f"{word[: longest - 1]}…"


def power_of_ten(power: int) -> str:
    """Write a power of ten: 10⁻⁸, 10²⁴."""
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def size(count: int) -> str:
    """Write a number of bytes as a person would: 640 bytes, 1.4 MB."""
    if count < 1000:
        return f"{count} bytes"
    return f"{brief(count)}B"


def brief(number: float) -> str:
    """Write a number with three figures and a letter: 640, 12.3 k, 1.4 M."""
    for letter, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= 0.9995 * scale:
            return f"{number / scale:.3g} {letter}"
    return f"{number:.3g}"


def duration(seconds: float) -> str:
    """Write a time as a person would say it: < 0.01 s, 0.4 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 0.01:
        return "< 0.01 s"
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


WIDTH, MARGIN, HEADING = 760, 28, 34

# The same paper as the report's. It changes together with the inks, whatever the page around it does.
_PAPER = (
    ".paper{fill:#fdfcf9}.heading{fill:#23211e;font:600 15px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}"
    "@media screen and (prefers-color-scheme:dark){.paper{fill:#191817}.heading{fill:#e8e4dc}}"
)


def standalone(picture: Picture, width: int = WIDTH) -> str:
    """Return a whole SVG file; ``width`` is its width in pixels, for pictures that are as wide as their page."""
    inner = ElementTree.fromstring(picture.markup) if picture.markup.startswith("<svg") else None
    if inner is None or "viewBox" in inner.attrib:
        raise SettingError(f"{picture.title!r} is not a drawing that takes its width from the page")
    height = float(inner.attrib["height"])
    whole = height + 2 * MARGIN + HEADING
    within = f'x="{MARGIN}" y="{MARGIN + HEADING}" width="{width - 2 * MARGIN}" height="{height:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{whole:g}" viewBox="0 0 {width} {whole:g}">'
        f'<style>{_PAPER}</style><rect class="paper" width="100%" height="100%"/>'
        f'<text class="heading" x="{MARGIN}" y="{MARGIN + 12}">{escape(picture.title)}</text>\n'
        f"<svg {within}>{picture.markup}</svg>\n</svg>\n"
    )


def write_standalone(picture: Picture, path: str | Path, width: int = WIDTH) -> None:
    """Write a picture as an SVG file, atomically."""
    with atomic_file(path) as new:
        new.write_text(standalone(picture, width), encoding="utf-8", newline="\n")
