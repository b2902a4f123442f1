"""``foreword score``: a line in, a score out."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword.cli.options import READING, AsJson, ErrorsOption, FieldOption, ModelFolder, examples
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.cli.lines import Batch
    from foreword.pipeline.language import TextLM
    from foreword.text.utf8 import Errors

EXAMPLES = examples(
    "foreword score model lines.txt > scores.txt",
    "paste scores.txt lines.txt | sort -n | tail",
    "foreword score model web.jsonl.zst --json | jq 'select(.perplexity < 800)'",
)

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scored:
    """A line's natural log-probability, its number of tokens, and how many of them the model does not know."""

    logprob: float
    tokens: int
    oov: int


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

    batches = row_batches(file, field, format, errors)
    loaded = load_language_model(model)
    for rows in batches:
        scores = score_lines(loaded, [row.get(field) or "" for row in rows])
        write_text("".join(map(as_object, rows, scores) if as_json else map(as_number, scores)))
        flush()


def row_batches(file: str, field: str, format: str | None, errors: Errors) -> Iterator[list[Row]]:
    """Rows as objects with a text each, some at a time; files are looked for at once, and read when asked."""
    from foreword.cli.lines import line_batches
    from foreword.text.files import find_files
    from foreword.text.parquet import parquet_rows

    if (format or ("text" if file == "-" else format_of(file))) == "parquet":
        return (rows for each in find_files(file) for rows in parquet_rows(each, field))
    return (
        list(jsonl_rows(batch, field))
        if (format or format_of(batch.name)) == "jsonl"
        else [{field: line} for line in batch.lines]
        for batch in line_batches(file, errors)
    )


def format_of(name: str) -> str:
    from foreword.text.compression import without_suffix

    suffix = PurePath(without_suffix(name)).suffix.lower()
    return {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}.get(suffix, "text")


def jsonl_rows(batch: Batch, field: str) -> Iterator[Row]:
    """The rows as objects with a text each; an empty one for a blank line."""
    for number, line in enumerate(batch.lines):
        if is_blank(line):
            yield {}
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{batch.place(number)} is not JSON: {error}") from error
        if not isinstance(row, dict) or not isinstance(row.get(field), str):
            raise InputError(f'{batch.place(number)} is no object with a string "{field}" in it')
        yield row


def score_lines(model: TextLM, lines: list[str]) -> Iterator[Scored | None]:
    """What each line scores, None for a blank one."""
    import numpy as np

    corpus = model.corpus([line for line in lines if not is_blank(line)])
    logs = model.model.logprobs(corpus)
    unknown = corpus.ids == (-1 if corpus.vocab.unknown is None else corpus.vocab.unknown)
    starts = corpus.offsets[:-1]
    sums = np.add.reduceat(logs, starts) if len(corpus) else logs
    unknowns = np.add.reduceat(unknown.astype(np.int64), starts) if len(corpus) else starts
    found = map(Scored, sums.tolist(), np.diff(corpus.offsets).tolist(), unknowns.tolist())
    for line in lines:
        yield None if is_blank(line) else next(found)


def is_blank(line: str) -> bool:
    return not line or line.isspace()


def as_number(scored: Scored | None) -> str:
    return "\n" if scored is None else f"{scored.logprob!r}\n"


def as_object(row: Row, scored: Scored | None) -> str:
    scored = scored or Scored(-math.inf, 0, 0)
    likely = math.isfinite(scored.logprob)
    told = {
        "score": scored.logprob if likely else None,
        "tokens": scored.tokens,
        "oov": scored.oov,
        "perplexity": perplexity(scored) if likely else None,
    }
    # Parquet holds dates, bytes and decimals, which JSON has no form for.
    return json.dumps({**row, **told}, ensure_ascii=False, default=str) + "\n"


def perplexity(scored: Scored) -> float | None:
    try:
        return math.exp(-scored.logprob / scored.tokens)
    except OverflowError:
        return None
