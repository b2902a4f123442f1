"""``foreword generate``: a model writes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from foreword.cli.options import AsJson, ModelFolder, Seed, examples
from foreword.errors import InputError

EXAMPLES = examples(
    "foreword generate model --prompt 'the market' --max-tokens 50",
    "foreword generate model --temperature 0.7 --top-k 40 -n 5 --seed 1",
    "echo 'once upon a time' | foreword generate model --prompt - --json",
)


def generate(
    model: ModelFolder,
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="What to go on from; - reads standard input.")] = "",
    max_tokens: Annotated[int, typer.Option(min=0, help="Stop after so many tokens, if the model has not.")] = 50,
    temperature: Annotated[
        float, typer.Option(min=0, help="0 takes the likeliest, 1 draws as is, more is wild.")
    ] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="Draw from the k likeliest.", show_default="all")] = None,
    seed: Seed = 0,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many; each has the next seed.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Let a model write, after a prompt or from nothing.

    The prompt is printed too, so that the two read as one text. With --json an object a line holds them apart.
    """
    from foreword.cli.models import load_language_model
    from foreword.cli.printing import flush, write_json, write_text

    loaded = load_language_model(model)
    start = read_prompt() if prompt == "-" else prompt
    for number in range(seed, seed + count):
        pieces = loaded.stream(start, max_tokens=max_tokens, temperature=temperature, top_k=top_k, seed=number)
        if as_json:
            write_json({"prompt": start, "text": "".join(pieces), "seed": number})
            continue
        write_text(start)
        for piece in pieces:
            write_text(piece)
            flush()
        write_text("\n")


def read_prompt() -> str:
    """Standard input without the end of its last line."""
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"standard input: invalid UTF-8 at byte {error.start}") from error
