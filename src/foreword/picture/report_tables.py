"""The parts of the report that are words and columns of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from foreword.evaluate.compare.conclusion import FEW_TOKENS, TOO_MANY_UNKNOWN, unknown_warning
from foreword.evaluate.compare.results import Comparison, Row, Sampled, TextFacts
from foreword.picture.picture import brief, duration, readable, size


def header(comparison: Comparison) -> str:
    """Return the title, the first paragraph and the facts of the text."""
    text = comparison.text
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
        f'<p class="lede">{escape(_lede(comparison))}</p>\n'
        f'<dl class="facts">{listed}</dl>'
    )


def _lede(comparison: Comparison) -> str:
    text, rows = comparison.text, comparison.rows
    models = f"{_in_words(len(rows))} model{'s' * (len(rows) != 1)}"
    lede = (
        f"{models} learnt from {text.train_tokens:,} tokens of this text and then had to predict "
        f"{text.test_tokens:,} others."
    )
    best = min(rows, key=lambda row: row.measures.perplexity, default=None)
    if best is not None and math.isfinite(best.measures.perplexity):
        which = "It was" if len(rows) == 1 else f"The best, {best.title}, was"
        number = readable(best.measures.perplexity)
        lede += f" {which} as unsure at each as if it chose among {number} equally likely ones."
    if text.test_tokens < FEW_TOKENS:
        lede += " So short a test tells little: a longer text gives numbers to rely on."
    if comparison.sampled is not None:
        lede += f" {sampled_in_words(comparison.sampled)}"
    if text.test_share < 1:
        lede += f" {shortened_in_words(text)}"
    return lede


def shortened_in_words(text: TextFacts) -> str:
    """Say in a sentence that networks had no time to read the whole test part."""
    return f"Of the test part {text.test_share:.0%} is read, documents evenly spread: all the time there is for it."


def sampled_in_words(sampled: Sampled) -> str:
    """Say in a sentence that the text was too large to be taken whole."""
    if sampled.kept_documents == 1:
        return f"Of {size(sampled.bytes)} the first {size(sampled.kept_bytes)} were taken."
    return (
        f"Of {size(sampled.bytes)} in {sampled.documents:,} documents {size(sampled.kept_bytes)} in "
        f"{sampled.kept_documents:,} were taken, evenly spread."
    )


def _in_words(number: int) -> str:
    small = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")
    return small[number] if number < len(small) else str(number)


def tested_in_words(text: TextFacts) -> str:
    """Say in a sentence what the models were tested on."""
    documents = f"{text.test_documents:,} document{'s' * (text.test_documents != 1)}"
    return (
        f"Tested on {text.test_tokens:,} tokens ({text.tokens}) in {documents}; {text.unknown_share:.1%} of them are "
        "unknown."
    )


def results(text: TextFacts, rows: Iterable[Row]) -> str:
    """Return the table of measures, and what they were measured on."""
    warning = f" {unknown_warning(text.unknown_share)}" if text.unknown_share > TOO_MANY_UNKNOWN else ""
    tested = f'<p class="tested">{escape(tested_in_words(text) + warning)}</p>'
    return tested + _table(
        ("Model", "Perplexity", "95 % interval", "without unknown", "Bits per byte"),
        [
            (
                row,
                readable(row.measures.perplexity),
                interval_in_words(row.interval),
                readable(row.measures.perplexity_excluding_oov),
                readable(row.measures.bits_per_byte),
            )
            for row in rows
        ],
    )


def interval_in_words(edges: tuple[float, float]) -> str:
    """Write an interval as 84.1–92.3."""
    return "–" if math.isinf(edges[1]) else "–".join(map(readable, edges))


def epochs_in_words(row: Row) -> str:
    """Write how often a model read the training part."""
    return f"{row.epochs:.0f}" if row.epochs >= 9.95 else f"{row.epochs:.2g}"


def costs(rows: Iterable[Row]) -> str:
    """Return the table of sizes and speeds."""
    return _table(
        ("Model", "Parameters", "On disk", "Learning took", "Epochs", "Learning, tokens/s", "Scoring, tokens/s"),
        [
            (
                row,
                brief(row.parameters),
                size(row.disk_bytes),
                duration(row.train_seconds),
                epochs_in_words(row),
                brief(row.train_tokens_per_second),
                brief(row.score_tokens_per_second),
            )
            for row in rows
        ],
    )


def _table(columns: Sequence[str], lines: Sequence[tuple[Row, *tuple[str, ...]]]) -> str:
    best = min((row.measures.perplexity for row, *_ in lines), default=math.inf)
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = "\n".join(_line(row, cells, row.measures.perplexity == best) for row, *cells in lines)
    # Where it is too wide for a telephone it scrolls by itself, by the keyboard too.
    return (
        f'<div class="scroll" role="region" aria-label="{columns[1]} and more, by model" tabindex="0"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _line(row: Row, cells: Iterable[str], best: bool) -> str:
    data = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    mark = ' class="best"' if best else ""
    return f'<tr{mark}><th scope="row">{escape(row.title)}</th>{data}</tr>'


def cost_sentence(rows: Sequence[Row]) -> str:
    """Return one sentence on what to see in the table of costs."""
    quickest = max(rows, key=lambda row: row.score_tokens_per_second)
    smallest = min(rows, key=lambda row: row.disk_bytes)
    best = min(rows, key=lambda row: row.measures.perplexity)
    sentence = (
        f"What it costs: {quickest.title} scores fastest, {brief(quickest.score_tokens_per_second)} tokens a second, "
        f"and {smallest.title} is smallest, {size(smallest.disk_bytes)}"
    )
    if best in (quickest, smallest):
        return f"{sentence}."
    times = quickest.score_tokens_per_second / best.score_tokens_per_second
    return f"{sentence}; the best, {best.title}, takes {readable(times)} times as long for a token as the former."


def sample(row: Row) -> str:
    """Return what a model wrote as a quotation."""
    text = escape(row.sample) or "(nothing: it ended every document at once)"
    return f'<h3>{escape(row.title)}</h3>\n<blockquote dir="auto" lang="">{text}</blockquote>\n'


def method(comparison: Comparison) -> str:
    """Return the list of how everything was measured."""
    text = comparison.text
    entries = {
        "Text": (
            f"{text.name}, {size(text.bytes)}; SHA-256 of its documents, each followed by a line end: {text.digest}. "
            "The same digest means the same text."
        ),
        "Split": (
            f"Every model learnt from the same {text.train_tokens:,} tokens, could tune itself on "
            f"{text.valid_tokens:,} and was measured on {text.test_tokens:,} that it never saw."
        ),
        "Vocabulary": (
            f"One for all: {text.vocabulary:,} {text.tokens}, made of the training part. {text.test_unknown:,} test "
            "tokens are not in it and count as the one token <unk>, which is predicted like any other."
        ),
        "Perplexity": (
            "exp(−mean log-probability) over every test token, the </s> that ends a document included. “Without "
            "unknown” leaves out the tokens that are <unk>. Lower is better."
        ),
        "95 % interval": (
            "Bootstrap over documents: the test documents are drawn again with replacement, a thousand times, and the "
            "middle 95 % of the perplexities is given. Two models are compared on the same draws."
        ),
        "Bits per byte": (
            "The same log-probability in bits, shared out over the bytes of the text and one for each line’s end. It "
            "does not depend on what a token is, so it compares across tokenizers, but only where few words are "
            "<unk>, for nobody was asked to spell those."
        ),
        "Parameters and size": "How many numbers the saved model holds, and what its folder weighs on disk.",
        "Speed": (
            "Tokens that were read in a second, learning and scoring, on the machine that made this page. A network "
            "reads the training part several times; every epoch counts."
        ),
        "Learning": (
            "Networks learn until their share of the time is over, or until the tuning part has not become likelier "
            "for three evaluations. While they learn, most of a large vocabulary is represented by sampled words; all "
            "measures use the whole of it."
        ),
        "Two together": (
            "The pair and its weights are those that make the tuning part likeliest; the test part is reported."
        ),
        "Gradients": (
            "Of the loss at one position of the test text, the norm of what reaches the vector of the word n steps "
            "back, as a share of the last word’s; the mean over 32 positions."
        ),
        "Samples": "Drawn from each model at temperature 1 with a fixed seed, so the same run gives the same text.",
    }
    listed = "\n".join(f"<dt>{escape(what)}</dt><dd>{escape(how)}</dd>" for what, how in entries.items())
    return f'<dl class="method">{listed}</dl>'
