"""``foreword score``: one score per line or row."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer

from foreword.cli.options import READING, AsJson, ErrorsOption, FieldOption, ModelFolder, examples

EXAMPLES = examples(
    "foreword score model lines.txt > scores.txt",
    "paste scores.txt lines.txt | sort -n | tail",
    "foreword score model web.jsonl.zst --json | jq 'select(.perplexity < 800)'",
)


def score(
    model: ModelFolder,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Text, JSONL or Parquet, compressed or not; - is standard input.")
    ] = "-",
    field: FieldOption = "text",
    format: Annotated[
        Literal["text", "jsonl", "parquet"] | None,
        typer.Option("--format", help="What it is.", show_default="told by the name", rich_help_panel=READING),
    ] = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
) -> None:
    """Print the natural log-probability of every line, its end included: higher is likelier.

    Each line gives exactly one line, as soon as it is read, and a blank line gives a blank one.
    With --json that is an object with score, tokens, oov and perplexity (null for a blank line), which come after
    the line's text, or after all fields of a JSONL or Parquet row.
    """
    from foreword.cli.models import load_language_model
    from foreword.cli.printing import flush, write_text
    from foreword.pipeline.scoring import score_documents
    from foreword.text.rows import RowReading, read_rows

    batches = read_rows(file, RowReading(field, format, errors, tables=False))
    loaded = load_language_model(model)
    for rows in batches:
        scores = score_documents(loaded, rows.texts)
        if as_json:
            write_text("".join(map(as_object, rows.fields(), scores.records())))
        else:
            write_text("".join(map(as_number, scores.logprobs.tolist())))
        flush()


def as_number(logprob: float) -> str:
    """Return a score as a line; that of a blank line is blank."""
    return "\n" if math.isnan(logprob) else f"{logprob!r}\n"


def as_object(row: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Return a row with what was found of it, as a line of JSON."""
    # Parquet holds dates, bytes and decimals, which JSON has no form for.
    return json.dumps({**row, **found}, ensure_ascii=False, default=str) + "\n"
