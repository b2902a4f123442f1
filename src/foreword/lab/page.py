"""The page's frame, and the page as one file.

The modules in ``static/`` name each other by bare names (``lab/dom``); a map in the page says where each is: on the
server an address, in the exported file the module itself. So the same files serve both, and nothing is built.
"""

from __future__ import annotations

import base64
import json
from html import escape
from pathlib import Path
from typing import NamedTuple

import foreword
from foreword.protocols import Json
from foreword.storage.atomic import atomic_file

STATIC = Path(__file__).with_name("static")


class Panel(NamedTuple):
    """One tab: its module is ``static/<name>.js``."""

    name: str
    title: str


PANELS = (
    Panel("cells_panel", "Recurrent cells"),
    Panel("next_word", "Next word"),
    Panel("tokens", "Tokens"),
    Panel("words", "Words"),
    Panel("tags", "Tags"),
    Panel("translate", "Translate"),
    Panel("train", "Train"),
    Panel("reference", "Reference"),
)

EXPORTED = ("dom", "chart", "cells", "cells_panel", "main")
"""Modules that the exported page needs."""


def page() -> str:
    """Return the page as the server sends it."""
    names = sorted(path.stem for path in STATIC.glob("*.js"))
    urls = {f"lab/{name}": f"/static/{name}.js" for name in names}
    style = '<link rel="stylesheet" href="/static/style.css">'
    preload = "".join(f'<link rel="modulepreload" href="/static/{name}.js">' for name in EXPORTED)
    return _frame("", style + preload, urls, PANELS, None)


def exported(data: dict[str, Json]) -> str:
    """Return the panel of recurrent cells as one file: no server, no network, the same modules."""
    urls = {}
    for name in EXPORTED:
        code = base64.b64encode((STATIC / f"{name}.js").read_bytes()).decode()
        urls[f"lab/{name}"] = f"data:text/javascript;base64,{code}"
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' data:; img-src data:"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    style = f"<style>{(STATIC / 'style.css').read_text(encoding='utf-8')}</style>"
    return _frame(head, style, urls, PANELS[:1], data)


def write_exported(path: str | Path, data: dict[str, Json]) -> None:
    """Write the exported page to a file."""
    with atomic_file(path) as new:
        new.write_text(exported(data), encoding="utf-8", newline="\n")


def _frame(
    policy: str, head: str, urls: dict[str, str], panels: tuple[Panel, ...], data: dict[str, Json] | None
) -> str:
    """Return the page. The import map comes first, because a module resolves its imports while it is loaded."""
    script = "" if data is None else f'<script type="application/json" id="cells-data">{_inside(data)}</script>'
    listed = _inside([{"name": panel.name, "title": panel.title} for panel in panels])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="Foreword {escape(foreword.__version__)}">
<title>Foreword lab</title>
{policy}
<script type="importmap">{_inside({"imports": urls})}</script>
{head}
<script>
try {{
  const kept = localStorage.getItem("theme");
  if (kept) document.documentElement.dataset.theme = kept;
}} catch {{}}
</script>
</head>
<body>
<a class="skip" href="#panel">Skip to the panel</a>
<header class="top">
<h1>Foreword <span>lab</span></h1>
<nav aria-label="Panels"><div role="tablist" aria-label="Panels" id="tabs"></div></nav>
<button type="button" id="theme" class="quiet" aria-label="Light or dark">
<svg class="icon" viewBox="0 0 16 16" width="1em" height="1em" aria-hidden="true">
<circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.5"/>
<path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor"/></svg></button>
</header>
<main id="panel" tabindex="-1"></main>
<div id="said" class="sr" role="status" aria-live="polite"></div>
<noscript>This page computes in the browser: it needs JavaScript.</noscript>
<script type="application/json" id="panels">{listed}</script>
{script}
<script type="module">import "lab/main";</script>
</body>
</html>
"""


def _inside(value: object) -> str:
    """Return JSON for a script element: no text in it can end the element."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
