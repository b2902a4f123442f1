"""``foreword score``: one score per line or row."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from foreword.cli.options import ErrorsOption, FieldOption, FormatOption, ModelFolder, OutputOptions, examples

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
    *,
    field: FieldOption = "text",
    format: FormatOption = None,
    errors: ErrorsOption = "strict",
    output: OutputOptions,
) -> None:
    """Print the natural log-probability of every line, the end of the line included: higher is likelier.

    Each line gives exactly one line, as soon as it is read; that of a blank line is blank. With --json each line is an
    object: the text, or all fields of a JSONL or Parquet row, then score, tokens, oov and perplexity (null for a blank
    line).
    """
    from foreword.cli.models import load_able
    from foreword.cli.printing import flush, write_text
    from foreword.pipeline.scoring import score_documents
    from foreword.text.rows import RowReading, read_rows

    batches = read_rows(file, RowReading(field, format, errors, tables=False))
    loaded = load_able(model, "score")
    for rows in batches:
        scores = score_documents(loaded, rows.texts)
        if output.as_json:
            write_text("".join(map(as_object, rows.fields(), scores.records())))
        else:
            write_text("".join(map(as_number, scores.logprobs.tolist())))
        flush()


def as_number(logprob: float) -> str:
    """Return a score as a line; that of a blank line is blank."""
    return "\n" if math.isnan(logprob) else f"{logprob!r}\n"


def as_object(row: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Return a row with what was found of it, as a line of JSON."""
    whole = {**row, **found}
    try:
        # Parquet holds dates, bytes and decimals, which JSON has no form for.
        line = json.dumps(whole, ensure_ascii=False, allow_nan=False, default=str) + "\n"
        if not line.isascii():
            line.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can write
        return json.dumps(whole, default=str) + "\n"
    except ValueError:  # NaN and infinity, which JSON does not have
        return as_object({}, _finite(whole))
    return line


def _finite(value: Any) -> Any:
    """Return a value of JSON with null for every number that is not finite."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
