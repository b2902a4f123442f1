"""``foreword score``: a line in, a score out."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword.cli.options import READING, AsJson, ErrorsOption, FieldOption, ModelFolder, examples
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.cli.lines import Batch
    from foreword.pipeline import TextLM

EXAMPLES = examples(
    "foreword score model lines.txt > scores.txt",
    "paste scores.txt lines.txt | sort -n | tail",
    "foreword score model web.jsonl.zst --json | jq 'select(.perplexity < 800)'",
)

Row: TypeAlias = dict[str, Any]
Scored: TypeAlias = tuple[float, int]
"""Natural log-probability and number of tokens."""


def score(
    model: ModelFolder,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Text or JSONL, compressed or not; - is standard input.")
    ] = "-",
    field: FieldOption = "text",
    format: Annotated[
        Literal["text", "jsonl"] | None,
        typer.Option("--format", help="What it is.", show_default="told by the name", rich_help_panel=READING),
    ] = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
) -> None:
    """Print the natural log-probability of every line, its end included: higher is likelier.

    Each line gives exactly one line, as soon as it is read, and a blank line gives a blank one.
    With --json that is an object with score, tokens and perplexity (null for a blank line), which come after
    the line's text, or after all fields of a JSONL row.
    """
    from foreword.cli.lines import line_batches
    from foreword.cli.models import load_language_model
    from foreword.cli.printing import flush, write_text

    batches = line_batches(file, errors)
    loaded = load_language_model(model)
    for batch in batches:
        is_jsonl = (format or format_of(batch.name)) == "jsonl"
        rows = list(jsonl_rows(batch, field)) if is_jsonl else [{field: line} for line in batch.lines]
        scores = score_lines(loaded, [row.get(field, "") for row in rows])
        write_text("".join(map(as_object, rows, scores) if as_json else map(as_number, scores)))
        flush()


def format_of(name: str) -> Literal["text", "jsonl"]:
    from foreword.text.compression import without_suffix

    suffix = PurePath(without_suffix(name)).suffix.lower()
    if suffix == ".parquet":
        raise InputError(f"{name}: expected lines of text or JSONL, not Parquet")
    return "jsonl" if suffix in (".jsonl", ".ndjson") else "text"


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
    """Log-probability and tokens of each line, None for a blank one."""
    import numpy as np

    corpus = model.corpus([line for line in lines if not is_blank(line)])
    logs = model.model.logprobs(corpus)
    sums = np.add.reduceat(logs, corpus.offsets[:-1]) if len(corpus) else logs
    found = zip(sums.tolist(), np.diff(corpus.offsets).tolist(), strict=True)
    for line in lines:
        yield None if is_blank(line) else next(found)


def is_blank(line: str) -> bool:
    return not line or line.isspace()


def as_number(scored: Scored | None) -> str:
    return "\n" if scored is None else f"{scored[0]!r}\n"


def as_object(row: Row, scored: Scored | None) -> str:
    logprob, tokens = scored or (-math.inf, 0)
    likely = math.isfinite(logprob)
    told = {
        "score": logprob if likely else None,
        "tokens": tokens,
        "perplexity": perplexity(logprob, tokens) if likely else None,
    }
    return json.dumps({**row, **told}, ensure_ascii=False) + "\n"


def perplexity(logprob: float, tokens: int) -> float | None:
    try:
        return math.exp(-logprob / tokens)
    except OverflowError:
        return None
