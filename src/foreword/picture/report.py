"""A comparison as one page: a file that opens by double click, prints, and needs nothing beside it.

Everything that comes from the text or from a model is escaped, and the page forbids itself scripts and the network.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable
from html import escape
from pathlib import Path

import numpy as np

import foreword
from foreword.evaluate.compare import Comparison, Row
from foreword.evaluate.facts import TextFacts
from foreword.io.atomic import atomic_file
from foreword.picture.growth import growth
from foreword.picture.ladder import ladder
from foreword.picture.picture import Picture, readable
from foreword.picture.style import STYLE
from foreword.picture.surprisal import surprisal
from foreword.picture.zipf import zipf

FEW_TOKENS = 1000
"""A test below this is called short: one unlucky word moves the perplexity of a thousand tokens by a percent."""


def write_report(comparison: Comparison, path: str | Path) -> None:
    """Write the page; an older one of that name stays whole until the new one is."""
    with atomic_file(path) as new:
        new.write_text(report(comparison), encoding="utf-8", newline="\n")


def report(comparison: Comparison) -> str:
    """The whole page as HTML: the same comparison gives the same bytes."""
    text, rows = comparison.text, comparison.rows
    sections = [
        _section("Results", _table(rows) + _figure(_ladder(text, rows))),
        _section("A passage, as each model read it", _figure(_surprisal(text, rows))),
        _section("What each model writes", "".join(map(_sample, rows))),
        _section(f"The text’s {text.unit}s", _figure(_zipf(text))),
        *([_section("Why longer n-grams run out of text", _figure(_growth(comparison)))] if comparison.growth else []),
        _section("How this was measured", _method(text, rows)),
    ]
    return _page(f"{text.name}: language models compared", _header(text, rows), sections)


def _page(title: str, header: str, sections: Iterable[str]) -> str:
    made = f"Foreword {foreword.__version__} · Python {platform.python_version()} · NumPy {np.__version__}"
    # The policy lets the page style itself and do nothing else: no scripts, no requests, whatever the text held.
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="Foreword {escape(foreword.__version__)}">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
{header}
</header>
<main>
{chr(10).join(sections)}
</main>
<footer>{escape(made)}</footer>
</body>
</html>
"""


def _section(title: str, body: str) -> str:
    anchor = "-".join("".join(letter if letter.isalpha() else " " for letter in title.lower()).split())
    return f'<section aria-labelledby="{anchor}">\n<h2 id="{anchor}">{escape(title)}</h2>\n{body}\n</section>'


def _header(text: TextFacts, rows: Iterable[Row]) -> str:
    facts = {
        "document" if text.documents == 1 else "documents": f"{text.documents:,}",
        f"{text.unit}s": f"{text.units:,}",
        f"different {text.unit}s": f"{text.types:,}",
        "of UTF-8 text": size(text.bytes),
    }
    listed = "".join(f"<div><dt>{escape(what)}</dt><dd>{escape(value)}</dd></div>" for what, value in facts.items())
    return (
        "<p>Language models compared</p>\n"
        f'<h1 dir="auto">{escape(text.name)}</h1>\n'
        f'<p class="lede">{escape(_lede(text, list(rows)))}</p>\n'
        f'<dl class="facts">{listed}</dl>'
    )


def _lede(text: TextFacts, rows: list[Row]) -> str:
    models = f"{_in_words(len(rows))} model{'s' * (len(rows) != 1)}"
    told = (
        f"{models} learnt from {text.train_tokens:,} tokens of this text and then had to predict "
        f"{text.test_tokens:,} others."
    )
    best = min(rows, key=lambda row: row.measures.perplexity, default=None)
    if best is not None and math.isfinite(best.measures.perplexity):
        which = "It was" if len(rows) == 1 else f"The best, {best.title}, was"
        number = readable(best.measures.perplexity)
        told += f" {which} as unsure at each as if it chose among {number} equally likely ones."
    if text.test_tokens < FEW_TOKENS:
        told += " So short a test tells little: a longer text gives numbers to rely on."
    return told


def _in_words(number: int) -> str:
    small = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")
    return small[number] if number < len(small) else str(number)


COLUMNS = (
    "Model",
    "Perplexity",
    "without unknown",
    "Bits per byte",
    "Parameters",
    "On disk",
    "Learning, tokens/s",
    "Scoring, tokens/s",
)


def _table(rows: Iterable[Row]) -> str:
    rows = list(rows)
    best = min((row.measures.perplexity for row in rows), default=math.inf)
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    body = "\n".join(_table_row(row, row.measures.perplexity == best) for row in rows)
    return f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'


def _table_row(row: Row, best: bool) -> str:
    cells = [
        readable(row.measures.perplexity),
        readable(row.measures.perplexity_excluding_oov),
        readable(row.measures.bits_per_byte),
        f"{row.parameters:,}",
        size(row.disk_bytes),
        brief(row.train_tokens_per_second),
        brief(row.score_tokens_per_second),
    ]
    data = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    mark = ' class="best"' if best else ""
    return f'<tr{mark}><th scope="row">{escape(row.title)}</th>{data}</tr>'


def _figure(picture: Picture) -> str:
    return f"<figure>{picture.markup}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _ladder(text: TextFacts, rows: Iterable[Row]) -> Picture:
    rows = list(rows)
    return ladder([row.title for row in rows], [row.measures.perplexity for row in rows], text.vocabulary)


def _surprisal(text: TextFacts, rows: Iterable[Row]) -> Picture:
    bits = {row.title: row.surprisal for row in rows}
    return surprisal(text.passage.pieces, bits, unknown=text.passage.unknown)


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


def _sample(row: Row) -> str:
    said = escape(row.sample) or "(nothing: it ended every document at once)"
    return f'<h3>{escape(row.title)}</h3>\n<blockquote dir="auto" lang="">{said}</blockquote>\n'


def _method(text: TextFacts, rows: Iterable[Row]) -> str:
    oov = next((row.measures.oov for row in rows), 0)
    entries = {
        "Split": (
            f"Every model learnt from the same {text.train_tokens:,} tokens, could tune itself on "
            f"{text.valid_tokens:,} and was measured on {text.test_tokens:,} that it never saw."
        ),
        "Vocabulary": (
            f"One for all: {text.vocabulary:,} tokens, made of the training part. {oov:,} test tokens are not in it "
            "and count as the one token <unk>, which is predicted like any other."
        ),
        "Perplexity": (
            "exp(−mean log-probability) over every test token, the </s> that ends a document included. “Without "
            "unknown” leaves out the tokens that are <unk>. Lower is better."
        ),
        "Bits per byte": (
            "The same log-probability in bits, shared out over the bytes of the text and one for each line’s end. It "
            "does not depend on what a token is, so it compares across tokenizers, but only where few words are "
            "<unk>, for nobody was asked to spell those."
        ),
        "Parameters and size": "How many numbers the saved model holds, and what its folder weighs on disk.",
        "Speed": "Tokens a second, learning and scoring, on the machine that made this page.",
        "Samples": "Drawn from each model at temperature 1 with a fixed seed, so the same run gives the same text.",
    }
    listed = "\n".join(f"<dt>{escape(what)}</dt><dd>{escape(how)}</dd>" for what, how in entries.items())
    return f'<dl class="method">{listed}</dl>'


def size(count: int) -> str:
    """Bytes as a person would write them: 640 bytes, 1.4 MB."""
    if count < 1000:
        return f"{count} bytes"
    return f"{brief(count)}B"


def brief(number: float) -> str:
    """Three figures and a letter: 640, 12.3 k, 1.4 M."""
    for letter, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= 0.9995 * scale:
            return f"{number / scale:.3g} {letter}"
    return f"{number:.3g}"
