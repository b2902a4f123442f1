"""A picture as a file of its own: its title above it, paper below it, and room around."""

from __future__ import annotations

from html import escape
from pathlib import Path
from xml.etree import ElementTree

from foreword.errors import SettingError
from foreword.picture.picture import Picture
from foreword.storage.atomic import atomic_file

WIDTH, MARGIN, HEADING = 760, 28, 34

# The same paper as the report's. It changes together with the inks, whatever the page around it does.
_PAPER = (
    ".paper{fill:#fdfcf9}.heading{fill:#23211e;font:600 15px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}"
    "@media screen and (prefers-color-scheme:dark){.paper{fill:#191817}.heading{fill:#e8e4dc}}"
)


def standalone(picture: Picture, width: int = WIDTH) -> str:
    """A whole SVG file; ``width`` is its width in pixels, for pictures that are as wide as their page."""
    inner = ElementTree.fromstring(picture.markup) if picture.markup.startswith("<svg") else None
    if inner is None or "viewBox" in inner.attrib:
        raise SettingError(f"{picture.title!r} is no drawing that takes its width from the page")
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
    """Write the file; an older one of that name stays whole until the new one is."""
    with atomic_file(path) as new:
        new.write_text(standalone(picture, width), encoding="utf-8", newline="\n")
