"""A comparison as one page: a file that opens by double click, prints, and needs no other file.

Everything that comes from the text or from a model is escaped. The page forbids itself the network and every script but
one, named by its digest, which saves the page as one file or hands it to the telephone's share menu.
``report_tables.py`` has its words and columns of numbers; here are its pictures, each with a sentence on what to see.
"""

from __future__ import annotations

import base64
import hashlib
import math
import platform
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

import numpy as np

import foreword
from foreword.evaluate.compare.results import Comparison, Row, TextFacts
from foreword.picture.bars import ladder
from foreword.picture.curves import gradients, growth, learning, mixing
from foreword.picture.heat import gates
from foreword.picture.picture import Picture
from foreword.picture.price import price
from foreword.picture.report_tables import cost_sentence, costs, header, method, results, sample
from foreword.picture.text import merges, neighbours, surprisal, zipf
from foreword.storage.atomic import atomic_file

STYLE = "\n" + Path(__file__).with_name("report.css").read_text(encoding="utf-8")
"""How the report looks: one calm column of serif text, numbers in columns, two colours, light or dark."""

SCRIPT = "\n" + Path(__file__).with_name("report.js").read_text(encoding="utf-8")
SCRIPT_DIGEST = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{SCRIPT_DIGEST}'"

SHARE = '<p class="share"><button type="button" hidden>Save this page as one file</button></p>'

LAGS = (0, 1, 2, 3, 5, 8, 12, 16, 20, 30, 40)
"""Steps back at which a gradient is drawn, as far as it was followed."""


def write_report(comparison: Comparison, path: str | Path) -> None:
    """Write the page atomically: an older file of that name stays until the new one is complete."""
    with atomic_file(path) as new:
        new.write_text(report(comparison), encoding="utf-8", newline="\n")


def report(comparison: Comparison) -> str:
    """Return the whole page as HTML: the same comparison gives the same bytes."""
    sections = list(_sections(comparison))
    listed = "".join(f'<li><a href="#{_anchor(title)}">{escape(title)}</a></li>' for title, _ in sections)
    contents = f'<nav aria-label="On this page"><ol>{listed}</ol></nav>'
    body = [_section(title, each) for title, each in sections]
    return _page(f"{comparison.text.name}: language models compared", header(comparison), contents, body)


def _sections(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the title and the body of each section; what was not measured has none."""
    text, rows = comparison.text, comparison.rows
    if comparison.conclusion:
        yield "In short", f"<p>{escape(comparison.conclusion)}</p>"
    yield "Results", results(text, rows) + _figure(_ladder(text, rows))
    if any(math.isfinite(row.measures.perplexity) for row in rows):
        yield "Perplexity for its time", _figure(_price(rows))
    if comparison.mixed is not None:
        yield "Two are better than one", _figure(_mixing(comparison))
    yield "A passage, as each model read it", _figure(_surprisal(text, rows))
    yield "What each model writes", "".join(map(sample, rows))
    if any(row.curve is not None and row.curve.train for row in rows):
        yield "How the networks learnt", _figure(_learning(rows))
    if any(map(_has_gradient, rows)):
        yield "How far back a network is taught", _figure(_gradients(rows))
    if any(row.gates is not None for row in rows):
        yield "What the gates do", "".join(_gates(row) for row in rows if row.gates is not None)
    if any(each.nearest for each in comparison.neighbours):
        yield "Words that are alike", _figure(neighbours([(each.word, each.nearest) for each in comparison.neighbours]))
    if comparison.merges is not None:
        merged = comparison.merges
        yield "Words put together", _figure(merges(merged.first, merged.learnt, merged.stages))
    yield f"The text’s {text.unit}s", _figure(_zipf(text))
    if comparison.growth:
        yield "Why longer n-grams run out of text", _figure(_growth(comparison))
    if rows:
        yield "Size and speed", f"<figure>{costs(rows)}<figcaption>{escape(cost_sentence(rows))}</figcaption></figure>"
    yield "How this was measured", method(comparison)


def _page(title: str, header: str, contents: str, sections: Iterable[str]) -> str:
    made = f"Foreword {foreword.__version__} · Python {platform.python_version()} · NumPy {np.__version__}"
    # The policy lets the page style itself, run the one script of this digest and do nothing else: no requests and no
    # other script, whatever the text held.
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="Foreword {escape(foreword.__version__)}">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
{header}
{SHARE}
{contents}
</header>
<main>
{chr(10).join(sections)}
</main>
<footer>{escape(made)}</footer>
<script>{SCRIPT}</script>
</body>
</html>
"""


def _section(title: str, body: str) -> str:
    anchor = _anchor(title)
    return f'<section aria-labelledby="{anchor}">\n<h2 id="{anchor}">{escape(title)}</h2>\n{body}\n</section>'


def _anchor(title: str) -> str:
    return "-".join("".join(letter if letter.isalpha() else " " for letter in title.lower()).split())


def _figure(picture: Picture) -> str:
    return f"<figure>{picture.markup}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _wide(picture: Picture) -> str:
    """Return a figure that scrolls by itself where the page is narrow."""
    name = escape(picture.title)
    return (
        f'<figure><div class="scroll" role="region" aria-label="{name}" tabindex="0"><div class="wide">'
        f"{picture.markup}</div></div><figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def _ladder(text: TextFacts, rows: Iterable[Row]) -> Picture:
    rows = list(rows)
    return ladder([row.title for row in rows], [row.measures.perplexity for row in rows], text.vocabulary)


def _price(rows: Iterable[Row]) -> Picture:
    shown = [row for row in rows if math.isfinite(row.measures.perplexity)]
    points = {row.name: (row.train_seconds, row.measures.perplexity) for row in shown}
    return price(points, {row.name: row.interval for row in shown})


def _mixing(comparison: Comparison) -> Picture:
    mixed = comparison.mixed
    assert mixed is not None
    titles = {row.name: row.title for row in comparison.rows}
    one, other = (titles.get(name, name) for name in mixed.names)
    return mixing(one, other, mixed.weights, mixed.curve, mixed.weight, mixed.perplexity)


def _surprisal(text: TextFacts, rows: Iterable[Row]) -> Picture:
    bits = {row.title: row.surprisal for row in rows}
    return surprisal(text.passage.pieces, bits, unknown=text.passage.unknown)


def _learning(rows: Iterable[Row]) -> Picture:
    return learning({row.title: row.curve for row in rows if row.curve is not None and row.curve.train})


def _has_gradient(row: Row) -> bool:
    return len(row.gradient) > 1 and row.gradient[0] > 0 and all(map(math.isfinite, row.gradient))


def _gradients(rows: Iterable[Row]) -> Picture:
    norms = {row.title: row.gradient for row in rows if _has_gradient(row)}
    followed = min(map(len, norms.values()))
    return gradients(norms, [lag for lag in LAGS if lag < followed], accent={"LSTM"}, numbers=False)


def _gates(row: Row) -> str:
    assert row.gates is not None
    traces = {name: np.array(values) for name, values in row.gates.traces.items()}
    return f"<h3>{escape(row.title)}</h3>{_wide(gates(row.gates.tokens, traces))}"


def _zipf(text: TextFacts) -> Picture:
    ranks, counts = zip(*text.frequencies, strict=True)
    return zipf(ranks, counts, once=text.once, words=text.landmarks, unit=text.unit)


def _growth(comparison: Comparison) -> Picture:
    rows = comparison.growth
    return growth(
        [row.order for row in rows],
        [row.possible for row in rows],
        [row.seen for row in rows],
        [row.once for row in rows],
        [row.unseen_share for row in rows],
    )
