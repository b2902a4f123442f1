"""``foreword compare``: the main job. Every model on one text, in one table that fills as they finish."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli.options import (
    TEXT_HELP,
    DeviceOption,
    OutputOptions,
    ReadingOptions,
    Seed,
    VocabularyOptions,
    examples,
)

if TYPE_CHECKING:
    from pathlib import Path

    from foreword.evaluate.compare.results import Comparison, Event
    from foreword.evaluate.compare.setup import Streams
    from foreword.text.sources import Reading

EXAMPLES = examples(
    "foreword compare",
    "foreword compare notes.txt --report report.html",
    "foreword compare notes.txt --models 5-gram,lstm,transformer --time-budget 600",
    "foreword compare ptb --json | jq '.models[0].perplexity'",
)


@dataclass(frozen=True, slots=True)
class LadderOptions:
    """Which models are compared, and how long it may take."""

    report: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="Write a page with pictures; - prints it.")
    ] = None
    models: Annotated[
        str | None, typer.Option("--models", metavar="NAME,…", help="Models, in this order.", show_default="all")
    ] = None
    time_budget: Annotated[
        float, typer.Option("--time-budget", min=0.001, metavar="SECONDS", help="Time for all models together, about.")
    ] = 180.0
    sample: Annotated[
        float, typer.Option("--sample", min=0.001, metavar="MB", help="Subsample larger texts evenly to this size.")
    ] = 20.0
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Train all models again, also those that a stopped run had finished.")
    ] = False
    device: DeviceOption = None
    seed: Seed = 0


def compare(
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help=TEXT_HELP, show_default="embedded")] = None,
    *,
    ladder: LadderOptions,
    vocabulary: VocabularyOptions,
    reading: ReadingOptions,
    output: OutputOptions,
) -> None:
    """Train every model on a text, measure each on a part that none has seen, and show them in one table.

    The default text comes with every Python. Data sets are split as published, other texts by a fixed rule: of 20
    documents 18 are for training, one for validation and one for the test.

    Networks share the time that the other models leave of --time-budget, and stop earlier when the validation loss
    stops improving. Without torch they are left out. --device cuda adds AWD-LSTM and the Mogrifier, which need a GPU.

    A run that was stopped is resumed when the same command is given again: until then, what was finished is kept in
    the user's cache folder.
    """
    if output.as_json and ladder.report == "-":
        raise typer.BadParameter("standard output is taken by --report", param_hint="'--json'")

    # The ladder's networks are small: a second thread costs their products more than it gives. Read at import only.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

    from foreword.cli.compared import drawn, printed, result_of
    from foreword.cli.models import check_output

    if ladder.report is not None:
        check_output(ladder.report, folder=False)
    events = _events(texts or ["embedded"], ladder, vocabulary, reading.reading(), output)
    watched = events if output.quiet else drawn(events) if sys.stderr.isatty() else printed(events)
    _print(result_of(watched), ladder.report, output)


def _events(
    named: list[str], ladder: LadderOptions, vocabulary: VocabularyOptions, reading: Reading, output: OutputOptions
) -> Iterator[Event]:
    """Run the comparison; nothing is read before the first event is asked for."""
    from foreword.evaluate.compare.ladder import compare as run

    yield from run(
        splits_of(named, reading),
        name=title_of(named),
        models=None if ladder.models is None else [name.strip() for name in ladder.models.split(",")],
        tokenizer=vocabulary.load(),
        min_count=vocabulary.min_count,
        max_size=vocabulary.vocab,
        time_budget=ladder.time_budget,
        seed=ladder.seed,
        device=ladder.device,
        most_bytes=max(1, round(1e6 * ladder.sample)),
        keep=kept_runs(),
        resume=not ladder.fresh,
        wordlists=ladder.report is not None or output.as_json,
    )


def _print(comparison: Comparison, report: str | None, output: OutputOptions) -> None:
    from foreword.cli.compared import table_of
    from foreword.cli.printing import print_message, print_paragraph, print_table, write_json, write_text
    from foreword.errors import install_command
    from foreword.picture.report import report as page
    from foreword.picture.report import write_report

    if report == "-":
        write_text(page(comparison))
        return
    if report is not None:
        write_report(comparison, report)
    if output.as_json:
        write_json(comparison.to_json())
    else:
        print_table(table_of(comparison.text, comparison.rows, comparison.mixed))
        print_paragraph(comparison.conclusion)
    if report is not None and not output.quiet:
        print_message(f"report written to {report}")
    elif sys.stdout.isatty() and not (output.quiet or output.as_json):
        print_message("--report report.html writes a page with pictures")
    if comparison.left_out and not output.quiet:
        missing = ", ".join(comparison.left_out)
        print_message(f"left out, because they need torch: {missing} ({install_command('neural')})")


# The text


def splits_of(names: list[str], reading: Reading) -> Streams | Iterable[str]:
    """Return a text as its authors split it, or its documents for ``compare`` to split."""
    from foreword.cli.texts import EMBEDDED, documents_in, is_embedded, whole_dataset
    from foreword.evaluate.compare.setup import Streams

    parts = ("train", "valid", "test")
    only = names[0] if len(names) == 1 else ""
    found = whole_dataset(only)
    if (is_embedded(only) and only == EMBEDDED) or (found is not None and set(parts) <= set(found.splits)):
        return Streams(*(documents_in([f"{only}:{part}"], reading) for part in parts))
    return documents_in(names, reading)


def kept_runs() -> Path | None:
    """Return the folder in which unfinished runs are stored; None if it cannot be written to."""
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
    """Return what to call the text in a table and on a page: a title or the name of a file, never a whole path."""
    from pathlib import PurePath

    from foreword.cli.texts import is_embedded, whole_dataset

    first = names[0]
    found = whole_dataset(first)
    if first == "-":
        title = "standard input"
    elif is_embedded(first):
        title = "Python’s own documentation"
    else:
        title = (PurePath(first).name or first) if found is None else found.title
    return title if len(names) == 1 else f"{title} and {len(names) - 1} more"
