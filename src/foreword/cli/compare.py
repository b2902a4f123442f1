"""``foreword compare``: the main job. Every model on one text, in one table that fills as they finish."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli.options import (
    TEXT_HELP,
    AsJson,
    DocumentOption,
    ErrorsOption,
    FieldOption,
    FormatOption,
    MinCount,
    Quiet,
    Seed,
    examples,
    reading_of,
)

if TYPE_CHECKING:
    from rich.table import Table

    from foreword.evaluate.compare import Comparison, Event, Row
    from foreword.evaluate.facts import TextFacts
    from foreword.evaluate.splits import Splits
    from foreword.text.sources import Reading

EXAMPLES = examples(
    "foreword compare",
    "foreword compare notes.txt --report report.html",
    "foreword compare notes.txt --models 5-gram,lstm,transformer --time-budget 600",
    "foreword compare ptb --json | jq '.models[0].perplexity'",
)


def compare(
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help=TEXT_HELP, show_default="embedded")] = None,
    report: Annotated[str | None, typer.Option(metavar="FILE", help="Write a page with pictures; - prints it.")] = None,
    models: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Which models, in which order.", show_default="all")
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(metavar="TOKENIZER", help="Use this tokenizer.", show_default="words or characters")
    ] = None,
    vocab: Annotated[
        int | None, typer.Option(min=2, help="Keep so many words, the rest is <unk>.", show_default="all")
    ] = None,
    min_count: MinCount = None,
    time_budget: Annotated[
        float, typer.Option("--time-budget", min=0.001, metavar="SECONDS", help="About how long all may take together.")
    ] = 180.0,
    seed: Seed = 0,
    document: DocumentOption = "line",
    field: FieldOption = "text",
    format: FormatOption = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train every model on a text, measure each on a part that none has seen, and show them side by side.

    Without a text it uses one that comes with every Python. Data sets are split as their makers did, other texts
    by a fixed rule: 18 of 20 documents are learnt from, one is for tuning and one for the test.

    Neural models share the time that the others leave of --time-budget, and stop earlier where the tuning part gets no
    better. Where torch is not installed they are left out.
    """
    if as_json and report == "-":
        raise typer.BadParameter("standard output is taken by --report", param_hint="'--json'")

    # The ladder's networks are small: a second thread costs their products more than it gives. Read at import only.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

    from foreword.cli.models import check_output, load_tokenizer
    from foreword.cli.printing import print_table, tell, write_json, write_text
    from foreword.evaluate.compare import compare as run
    from foreword.picture.report import report as page
    from foreword.picture.report import write_report

    if report is not None:
        check_output(report, folder=False)
    named, reading = texts or ["embedded"], reading_of(document, field, format, errors)
    chosen = None if models is None else [name.strip() for name in models.split(",")]

    def events() -> Iterator[Event]:  # nothing is read before somebody watches
        yield from run(
            splits_of(named, reading),
            name=title_of(named),
            models=chosen,
            tokenizer=None if tokenizer is None else load_tokenizer(tokenizer),
            min_count=min_count,
            max_size=vocab,
            time_budget=time_budget,
            seed=seed,
        )

    comparison = result_of(drawn(events()) if sys.stderr.isatty() and not quiet else events())
    if report == "-":
        write_text(page(comparison))
        return
    if report is not None:
        write_report(comparison, report)
    if as_json:
        write_json(comparison.to_json())
    else:
        print_table(table_of(comparison.text, comparison.rows))
    if report is not None and not quiet:
        tell(f"report written to {report}")
    if comparison.left_out and not quiet:
        tell(f"left out, for they need torch: {', '.join(comparison.left_out)} (pip install 'foreword[neural]')")


# The text


def splits_of(names: list[str], reading: Reading) -> Splits | Iterable[str]:
    """A text as its makers split it, or its documents for ``compare`` to split."""
    from foreword.cli.texts import EMBEDDED, documents_in, is_embedded, whole_dataset
    from foreword.evaluate.splits import Splits

    parts = ("train", "valid", "test")
    only = names[0] if len(names) == 1 else ""
    found = whole_dataset(only)
    if (is_embedded(only) and only == EMBEDDED) or (found is not None and set(parts) <= set(found.splits)):
        return Splits(*(list(documents_in([f"{only}:{part}"], reading)) for part in parts))
    return documents_in(names, reading)


def title_of(names: list[str]) -> str:
    """What to call the text in a table and on a page."""
    from foreword.cli.texts import is_embedded, whole_dataset

    first = names[0]
    found = whole_dataset(first)
    if first == "-":
        title = "standard input"
    elif is_embedded(first):
        title = "Python’s own documentation"
    else:
        title = first if found is None else found.title
    return title if len(names) == 1 else f"{title} and {len(names) - 1} more"


# The table


def result_of(events: Iterable[Event]) -> Comparison:
    from foreword.evaluate.compare import Comparison

    *_, last = events
    assert isinstance(last, Comparison)
    return last


def drawn(events: Iterable[Event]) -> Iterator[Event]:
    """The same events, drawn on the terminal as they come; what was drawn is wiped off at the end."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    from foreword.evaluate.compare import Progress, Row
    from foreword.evaluate.facts import TextFacts

    bar = Bar(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    task = bar.add_task("getting ready", total=None)
    facts: TextFacts | None = None
    rows: list[Row] = []
    with Live(bar, console=Console(stderr=True), transient=True) as live:
        for event in events:
            match event:
                case Progress():
                    bar.update(task, description=event.phase, completed=event.done, total=event.total)
                case TextFacts():
                    facts = event
                case Row():
                    rows.append(event)
            if facts is not None:
                live.update(Group(table_of(facts, rows), bar))
            yield event


def table_of(text: TextFacts, rows: Iterable[Row]) -> Table:
    from foreword.cli.printing import plain_table
    from foreword.picture.picture import readable
    from foreword.picture.report import brief, size

    rows = list(rows)
    numbers = ("perplexity", "bits per byte", "parameters", "on disk", "learns tokens/s", "scores tokens/s")
    title = f"{text.name}: {text.documents:,} documents, {text.units:,} {text.unit}s, {text.types:,} different"
    table = plain_table("model", *numbers, numbers=numbers, title=title)
    best = min((row.measures.perplexity for row in rows), default=None)
    for row in rows:
        table.add_row(
            row.title,
            readable(row.measures.perplexity),
            readable(row.measures.bits_per_byte),
            f"{row.parameters:,}",
            size(row.disk_bytes),
            brief(row.train_tokens_per_second),
            brief(row.score_tokens_per_second),
            style="bold" if row.measures.perplexity == best and len(rows) > 1 else None,
        )
    return table
