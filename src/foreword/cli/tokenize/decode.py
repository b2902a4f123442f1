"""``foreword tokenize decode``: ids in, text out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli.options import TokenizerPath, examples
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.cli.lines import Batch

EXAMPLES = examples(
    "foreword tokenize decode tokenizer ids.txt",
    "echo '412 7 88' | foreword tokenize decode tokenizer",
)


def decode(
    tokenizer: TokenizerPath,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Ids, a line a document; - is standard input.")] = "-",
    as_json: Annotated[bool, typer.Option("--json", help="Read JSON lists and print JSON strings.")] = False,
) -> None:
    """Turn ids into text, a line for a line.

    A text that holds line ends keeps them, and then takes several lines; with --json it is one string on one line.
    """
    from foreword.cli.lines import line_batches
    from foreword.cli.models import load_tokenizer
    from foreword.cli.printing import flush, write_text

    batches = line_batches(file)
    loaded = load_tokenizer(tokenizer)
    for batch in batches:
        written: list[str] = []
        for number in range(len(batch.lines)):
            text = loaded.decode(ids_in(batch, number, as_json, len(loaded.vocab)))
            written.append(f"{json.dumps(text, ensure_ascii=False) if as_json else text}\n")
        write_text("".join(written))
        flush()


def ids_in(batch: Batch, number: int, as_json: bool, size: int) -> list[int]:
    """The ids on one line, each of which must be in a vocabulary of ``size`` tokens."""
    line = batch.lines[number]
    try:
        ids = json.loads(line) if as_json else [int(word) for word in line.split()]
    except (ValueError, RecursionError):
        expected = "a JSON list of ids" if as_json else "ids with blanks between them"
        raise InputError(f"{batch.place(number)} is not {expected}") from None
    if not isinstance(ids, list) or not all(type(id) is int for id in ids):
        raise InputError(f"{batch.place(number)} is not a JSON list of ids")
    for id in ids:
        if not 0 <= id < size:
            raise InputError(f"{batch.place(number)} has the id {id}, but the vocabulary ends at {size - 1}")
    return ids
