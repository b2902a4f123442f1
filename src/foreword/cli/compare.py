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
    from pathlib import Path

    from foreword.evaluate.compare.results import Event
    from foreword.evaluate.compare.setup import Streams
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
    sample: Annotated[
        float, typer.Option("--sample", min=0.001, metavar="MB", help="Of a larger text take so much, evenly spread.")
    ] = 20.0,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Train every model, also those that a stopped run had finished.")
    ] = False,
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

    A run that is stopped, by Ctrl-C or otherwise, goes on when the same command is given again: what was finished is
    kept until then in the user's cache folder.
    """
    if as_json and report == "-":
        raise typer.BadParameter("standard output is taken by --report", param_hint="'--json'")

    # The ladder's networks are small: a second thread costs their products more than it gives. Read at import only.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

    from foreword.cli.compared import drawn, result_of, table_of, told
    from foreword.cli.models import check_output, load_tokenizer
    from foreword.cli.printing import print_message, print_table, write_json, write_text
    from foreword.evaluate.compare.ladder import compare as run
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
            most_bytes=max(1, round(1e6 * sample)),
            keep=kept_runs(),
            resume=not fresh,
            wordlists=report is not None or as_json,
        )

    watched = events() if quiet else drawn(events()) if sys.stderr.isatty() else told(events())
    comparison = result_of(watched)
    if report == "-":
        write_text(page(comparison))
        return
    if report is not None:
        write_report(comparison, report)
    if as_json:
        write_json(comparison.to_json())
    else:
        print_table(table_of(comparison.text, comparison.rows, comparison.mixed))
    if report is not None and not quiet:
        print_message(f"report written to {report}")
    elif sys.stdout.isatty() and not (quiet or as_json):
        print_message("--report report.html writes it all as a page, with pictures")
    if comparison.left_out and not quiet:
        print_message(
            f"left out, for they need torch: {', '.join(comparison.left_out)} (pip install 'foreword[neural]')"
        )


# The text


def splits_of(names: list[str], reading: Reading) -> Streams | Iterable[str]:
    """A text as its makers split it, or its documents for ``compare`` to split."""
    from foreword.cli.texts import EMBEDDED, documents_in, is_embedded, whole_dataset
    from foreword.evaluate.compare.setup import Streams

    parts = ("train", "valid", "test")
    only = names[0] if len(names) == 1 else ""
    found = whole_dataset(only)
    if (is_embedded(only) and only == EMBEDDED) or (found is not None and set(parts) <= set(found.splits)):
        return Streams(*(documents_in([f"{only}:{part}"], reading) for part in parts))
    return documents_in(names, reading)


def kept_runs() -> Path | None:
    """Where runs are kept that may be stopped; nowhere where that cannot be written to."""
    from foreword.text.download import cache_folder

    cache = cache_folder()
    if cache is None:
        return None
    folder = cache / "compare"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


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
