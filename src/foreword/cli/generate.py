"""``foreword generate``: text from a language model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli.options import ModelFolder, OutputOptions, Seed, examples
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.infinigram.index import SuffixIndex
    from foreword.pipeline.language import TextLM

EXAMPLES = examples(
    "foreword generate model --prompt 'the market' --max-tokens 50",
    "foreword generate model --temperature 0.7 --top-k 40 -n 5 --seed 1",
    "foreword generate lstm --prompt 'the market' --draft index --json",
    "echo 'once upon a time' | foreword generate model --prompt - --json",
)


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How tokens are chosen."""

    max_tokens: Annotated[int, typer.Option("--max-tokens", min=0, help="Stop after this many tokens.")] = 50
    temperature: Annotated[
        float, typer.Option("--temperature", min=0, help="0 takes the likeliest token; 1 samples from the model.")
    ] = 1.0
    top_k: Annotated[
        int | None, typer.Option("--top-k", min=1, help="Sample from the k likeliest tokens.", show_default="all")
    ] = None
    top_p: Annotated[
        float | None,
        typer.Option("--top-p", min=0, max=1, help="Sample from the fewest tokens with this probability together.",
                     show_default="all"),
    ] = None  # fmt: skip

    def arguments(self) -> dict[str, Any]:
        """Return the options as keyword arguments of ``generate``."""
        return asdict(self)


def generate(
    model: ModelFolder,
    *,
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="Text to continue; - reads standard input.")] = "",
    sampling: SamplingOptions,
    beam: Annotated[
        int | None, typer.Option(min=1, help="Search for likely texts with a beam of this width, instead of sampling.")
    ] = None,
    draft: Annotated[
        str | None,
        typer.Option(metavar="INDEX", help="Draft tokens from this index and the text so far: the same text in fewer "
                     "steps of a network. An index of the same vocabulary: index build --tokenizer MODEL."),
    ] = None,
    seed: Seed = 0,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of texts, each with the next seed.")] = 1,
    output: OutputOptions,
) -> None:  # fmt: skip
    """Generate text with a language model, after a prompt or from nothing.

    The prompt is printed too, so that the two read as one text. With --json each text is an object with both.
    """
    from foreword.cli.models import load_able
    from foreword.cli.printing import flush, write_json, write_text

    loaded: TextLM = load_able(model, "score")
    start = read_prompt() if prompt == "-" else prompt
    if beam is not None:
        found = search(loaded, start, sampling.max_tokens, beam, count)
        for place, text in enumerate(found):
            facts = {"prompt": start, "text": text, "place": place}
            write_json(facts) if output.as_json else write_text(f"{start}{text}\n")
        return
    drafts = {} if draft is None else drafting(loaded, draft)
    for number in range(seed, seed + count):
        pieces = loaded.stream(start, **sampling.arguments(), seed=number, **drafts)
        if output.as_json:
            facts = {"prompt": start, "text": "".join(pieces), "seed": number}
            write_json(facts | ({"acceptance_length": drafts["acceptance"].length} if drafts else {}))
            continue
        write_text(start + next(pieces, ""))  # together, so that an error does not follow half a line
        for piece in pieces:
            write_text(piece)
            flush()
        write_text("\n")


def drafting(model: TextLM, index: str) -> dict[str, Any]:
    """Return the arguments of ``stream`` for drafts from an index."""
    from foreword.cli.models import load_able
    from foreword.decode import Acceptance
    from foreword.infinigram.draft import IndexDrafter

    found: SuffixIndex = load_able(index, "index").index
    if found.vocab != model.vocab:
        raise InputError(f"{index}: the index has another vocabulary than the model: build it with --tokenizer MODEL")
    return {"drafter": IndexDrafter(found), "acceptance": Acceptance()}


def search(model: TextLM, prompt: str, max_tokens: int, width: int, count: int) -> Iterator[str]:
    """Yield the likeliest continuations that beam search finds, best first."""
    from foreword.decode import beam_search, pieces

    read = model.tokenizer.encode(prompt).tolist()
    found = beam_search(model.model, width=max(width, count), max_tokens=max_tokens, n_best=count, prompt=read)
    for hypothesis in found[0]:
        yield "".join(pieces(model.tokenizer, iter(hypothesis.ids), after=read))


def read_prompt() -> str:
    """Return standard input without its last line end."""
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"standard input: invalid UTF-8 at byte {error.start}") from error
