"""The page's frame, and the page as one file.

The modules in ``static/`` name each other by bare names (``lab/dom``); a map in the page says where each is: on the
server an address, in the exported file the module itself. So the same files serve both, and nothing is built.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import foreword
from foreword.errors import SettingError
from foreword.lab.formulas import typeset
from foreword.protocols import Json
from foreword.storage.atomic import atomic_file

STATIC = Path(__file__).with_name("static")
IMPORTED = re.compile(r'^import .*? from "lab/(\w+)"', re.MULTILINE)


class Panel(NamedTuple):
    """One tab: ``static/<name>.js`` draws it, with ``static/<name>.css`` if there is one.

    module: the module of this folder that answers it, if it asks for something of its own. It has
    ``add_routes(service, lab)``; ``prepare(lab)``, where something is trained before the panel can show it; and
    ``answers(texts, seconds)``, where ``foreword lab export`` can write the panel without a server.
    """

    name: str
    title: str
    module: str = ""


PANELS = (
    Panel("cells_panel", "Recurrent cells", "cells"),
    Panel("next_word", "Next word"),
    Panel("ngrams", "N-grams", "ngrams"),
    Panel("matches", "Longest match", "matches"),
    Panel("tokens", "Tokens", "tokens"),
    Panel("words", "Words", "words"),
    Panel("tags", "Tags", "tags"),
    Panel("translate", "Translate", "translating"),
    Panel("speech", "Speech", "speech"),
    Panel("train", "Train"),
    Panel("landscape", "Loss landscape"),
    Panel("units", "Hidden units", "units"),
    Panel("reference", "Reference", "reference"),
)

Answers = Mapping[str, Json]
"""What a saved panel knows: the server's answer to each question, which is a path, or a path, a blank and JSON."""


def page() -> str:
    """Return the page as the server sends it."""
    names = sorted(path.stem for path in STATIC.glob("*.js"))
    urls = {f"lab/{name}": f"/static/{name}.js" for name in names}
    styles = "".join(f'<link rel="stylesheet" href="/static/{path.name}">' for path in style_sheets(PANELS))
    first = "".join(f'<link rel="modulepreload" href="/static/{name}.js">' for name in modules_of(PANELS[0].name))
    return _frame("", styles + first, urls, PANELS, None)


def exported(panel: str, answers: Answers) -> str:
    """Return one panel as one file: no server, no network, the same modules."""
    chosen = find_panel(panel)
    urls = {}
    for name in modules_of(panel):
        code = base64.b64encode((STATIC / f"{name}.js").read_bytes()).decode()
        urls[f"lab/{name}"] = f"data:text/javascript;base64,{code}"
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' data:; img-src data:"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    styles = "".join(path.read_text(encoding="utf-8") for path in style_sheets((chosen,)))
    return _frame(head, f"<style>{styles}</style>", urls, (chosen,), answers)


def write_exported(path: str | Path, panel: str, answers: Answers) -> None:
    """Write one panel to a file."""
    with atomic_file(path) as new:
        new.write_text(exported(panel, answers), encoding="utf-8", newline="\n")


def find_panel(name: str) -> Panel:
    """Return the panel of that name."""
    found = {panel.name: panel for panel in PANELS}
    if name not in found:
        raise SettingError(f"no panel {name!r}: expected one of {', '.join(found)}")
    return found[name]


def answers_of(panel: str, texts: Sequence[str], seconds: float) -> Answers:
    """Return what a panel asks for, learnt from texts; raise a SettingError if it can only be saved from the page."""
    module = import_module(f"foreword.lab.{find_panel(panel).module or 'page'}")
    if not hasattr(module, "answers"):
        raise SettingError(f"panel {panel!r} is saved from the page of foreword lab, with the button at the top")
    found: Answers = module.answers(texts, seconds)
    return found


def modules_of(panel: str) -> list[str]:
    """Return the names of the modules that a page with this panel needs, the frame's included."""
    found, waiting = set[str](), ["main", panel]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += IMPORTED.findall((STATIC / f"{name}.js").read_text(encoding="utf-8"))
    return sorted(found)


def style_sheets(panels: Sequence[Panel]) -> list[Path]:
    """Return the style sheet of the frame and those of panels."""
    return [STATIC / "style.css", *(path for panel in panels if (path := STATIC / f"{panel.name}.css").exists())]


def _frame(policy: str, head: str, urls: dict[str, str], panels: Sequence[Panel], answers: Answers | None) -> str:
    """Return the page. The import map comes first, because a module resolves its imports while it is loaded."""
    known = "" if answers is None else f'<script type="application/json" id="answers">{_inside(answers)}</script>'
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
<button type="button" id="save" class="quiet" aria-label="Save this panel as one file">
<svg class="icon" viewBox="0 0 16 16" width="1em" height="1em" aria-hidden="true">
<path d="M8 2v8M4.5 7L8 10.5L11.5 7M3 13.5h10" fill="none" stroke="currentColor" stroke-width="1.6"/></svg></button>
<button type="button" id="theme" class="quiet" aria-label="Light or dark">
<svg class="icon" viewBox="0 0 16 16" width="1em" height="1em" aria-hidden="true">
<circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.5"/>
<path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor"/></svg></button>
</header>
<main id="panel" tabindex="-1"></main>
<div id="said" class="sr" role="status" aria-live="polite"></div>
<noscript>This page computes in the browser: it needs JavaScript.</noscript>
<script type="application/json" id="panels">{listed}</script>
<script type="application/json" id="formulas">{_inside(typeset())}</script>
{known}
<script type="module">import "lab/main";</script>
</body>
</html>
"""


def _inside(value: object) -> str:
    """Return JSON for a script element: no text in it can end the element."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
