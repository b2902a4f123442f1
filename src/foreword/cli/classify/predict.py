"""``foreword classify predict``: a line in, a label out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword.cli.labelled import ClassifierFolder
from foreword.cli.options import READING, AsJson, ErrorsOption, examples
from foreword.cli.score import Row, is_blank, row_batches

if TYPE_CHECKING:
    from foreword.protocols import LabelModel
    from foreword.text.files import SourceFile
    from foreword.text.utf8 import Errors

EXAMPLES = examples(
    "foreword classify predict model messages.txt > labels.txt",
    "foreword classify predict model reviews.csv --json | jq 'select(.predicted == \"bad\")'",
    "tail -f inbox.txt | foreword classify predict model --probabilities",
)

BATCH_BYTES = 1 << 20

RowFormat: TypeAlias = Literal["text", "jsonl", "parquet", "csv", "tsv"]

Ranked: TypeAlias = list[tuple[str, float]]
"""Labels with their probabilities, the likeliest first."""


def predict(
    model: ClassifierFolder,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Text, JSONL, Parquet, CSV or TSV; - is standard input.")
    ] = "-",
    probabilities: Annotated[
        bool, typer.Option("--probabilities", "-p", help="Print the probability after the label.")
    ] = False,
    k: Annotated[
        int | None,
        typer.Option("--k", "-k", min=1, help="So many labels, the likeliest first.", show_default="1; all in JSON"),
    ] = None,
    text_column: Annotated[
        str | None,
        typer.Option(
            "--text-column", metavar="NAME", help="The text, by name or number.", show_default="guessed",
            rich_help_panel=READING,
        ),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first line of CSV or TSV names the columns.",
            show_default="guessed", rich_help_panel=READING,
        ),
    ] = None,
    format: Annotated[
        RowFormat | None,
        typer.Option("--format", help="What it is.", show_default="told by the name", rich_help_panel=READING),
    ] = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Print the label of every line, as soon as it is read.

    Each line, or row, gives exactly one line, and a blank line gives a blank one. With more than one label, or with
    probabilities, tabs stand between them. With --json that is an object with predicted, probability and, where asked
    for, probabilities, which come after the line's text, or after all fields of a row.
    """
    from foreword.cli.models import load_classifier
    from foreword.cli.printing import flush, write_text

    batches = text_batches(file, text_column, header, format, errors)
    loaded = load_classifier(model)
    for rows, texts in batches:
        found = zip(rows, ranked(loaded, texts, k or (len(loaded.classes_) if as_json else 1)), strict=True)
        if as_json:
            write_text("".join(as_object(row, ranks, probabilities or k is not None) for row, ranks in found))
        else:
            write_text("".join(as_line(ranks, probabilities) for _, ranks in found))
        flush()


def ranked(model: LabelModel, texts: list[str], k: int) -> Iterator[Ranked]:
    """The likeliest labels of each text, none for a blank one."""
    from foreword.cli.labelled import lines_for

    found = iter(model.predict_best(lines_for(model, [text for text in texts if not is_blank(text)]), k))
    for text in texts:
        yield [] if is_blank(text) else list(next(found))


def as_line(ranks: Ranked, probabilities: bool) -> str:
    return "\t".join(f"{label}\t{value:.6g}" if probabilities else label for label, value in ranks) + "\n"


def as_object(row: Row, ranks: Ranked, probabilities: bool) -> str:
    told: dict[str, Any] = {
        "predicted": ranks[0][0] if ranks else None,
        "probability": ranks[0][1] if ranks else None,
    }
    if probabilities:
        told["probabilities"] = dict(ranks)
    # Parquet holds dates, bytes and decimals, which JSON has no form for.
    return json.dumps({**row, **told}, ensure_ascii=False, default=str) + "\n"


# --- rows with a text in each


def text_batches(
    file: str, column: str | None, header: bool | None, format: RowFormat | None, errors: Errors
) -> Iterator[tuple[list[Row], list[str]]]:
    """Rows and their texts, some at a time."""
    chosen = format or format_of(file)
    if chosen in ("csv", "tsv"):
        return table_batches(file, column, header, chosen == "csv", errors)
    field = column or "text"
    batches = row_batches(file, field, None if format is None else chosen, errors)
    return ((rows, [row.get(field) or "" for row in rows]) for rows in batches)


def format_of(name: str) -> str:
    from foreword.text.compression import without_suffix

    suffix = PurePath(without_suffix(name)).suffix.lower()
    return {".csv": "csv", ".tsv": "tsv", ".tab": "tsv"}.get(suffix, "text")


def table_batches(
    file: str, column: str | None, header: bool | None, quoted: bool, errors: Errors
) -> Iterator[tuple[list[Row], list[str]]]:
    """The rows of CSV or TSV, as objects whose keys are the header's, or the columns' numbers."""
    from foreword.text.files import find_files

    files = find_files(file)  # at once, so that a wrong name is told before the model is loaded
    return (batch for each in files for batch in one_table(each, column, header, quoted, errors))


def one_table(
    file: SourceFile, column: str | None, header: bool | None, quoted: bool, errors: Errors
) -> Iterator[tuple[list[Row], list[str]]]:
    from foreword.cli.labelled import column as place_or_name
    from foreword.text.columns import SAMPLE, text_column
    from foreword.text.compression import decompressed
    from foreword.text.files import opened
    from foreword.text.lines import whole_lines
    from foreword.text.tables import csv_rows, tsv_rows
    from foreword.text.utf8 import valid_utf8

    with opened(file) as reader:
        lines = whole_lines(valid_utf8(decompressed(reader, BATCH_BYTES), file.name, errors))
        rows = (row for _, row in (csv_rows if quoted else tsv_rows)(lines, file.name))
        batch = list(islice(rows, SAMPLE))
        if not batch:
            return
        place, names = text_column(batch, place_or_name(column), header, file.name)
        keys = names or tuple(str(number) for number in range(1, len(batch[0]) + 1))
        batch = batch[1:] if names else batch
        while batch:
            yield [dict(zip(keys, row, strict=True)) for row in batch], [row[place] for row in batch]
            batch = list(islice(rows, SAMPLE))
