"""``foreword generate``: a model writes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli.options import AsJson, ModelFolder, Seed, examples
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.pipeline.language import TextLM

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
    top_p: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Draw from the fewest that make up this share.", show_default="all"),
    ] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, help="Search for likely texts, this many at a time, instead of drawing.")
    ] = None,
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
    if beam is not None:
        for place, text in enumerate(search(loaded, start, max_tokens, beam, count)):
            if as_json:
                write_json({"prompt": start, "text": text, "place": place})
            else:
                write_text(f"{start}{text}\n")
        return
    for number in range(seed, seed + count):
        pieces = loaded.stream(
            start, max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, seed=number
        )
        if as_json:
            write_json({"prompt": start, "text": "".join(pieces), "seed": number})
            continue
        write_text(start)
        for piece in pieces:
            write_text(piece)
            flush()
        write_text("\n")


def search(model: TextLM, prompt: str, max_tokens: int, width: int, count: int) -> Iterator[str]:
    """The likeliest continuations that a beam of that width finds, best first."""
    from foreword.decode import beam_search, pieces

    read = model.tokenizer.encode(prompt).tolist()
    found = beam_search(model.model, width=max(width, count), max_tokens=max_tokens, n_best=count, prompt=read)
    for hypothesis in found[0]:
        yield "".join(pieces(model.tokenizer, iter(hypothesis.ids), after=read))


def read_prompt() -> str:
    """Standard input without the end of its last line."""
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"standard input: invalid UTF-8 at byte {error.start}") from error
