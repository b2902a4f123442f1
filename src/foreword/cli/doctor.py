"""``foreword doctor``: check the files of a model, and the inside of a recurrent network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli.options import TEXT_HELP, ModelFolder, OutputOptions, ReadingOptions, examples

if TYPE_CHECKING:
    from foreword.evaluate.doctor import Check, Diagnosis
    from foreword.protocols import Meter

EXAMPLES = examples(
    "foreword doctor model",
    "foreword doctor model ptb:valid",
    "foreword doctor model held_out.txt --json",
    "foreword doctor model held_out.txt --picture gradients.svg",
)


def doctor(
    model: ModelFolder,
    named: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help=TEXT_HELP, show_default="embedded")] = None,
    *,
    picture: Annotated[
        str | None,
        typer.Option("--picture", metavar="FILE.svg", help="Draw the gradient norm by distance in words."),
    ] = None,
    reading: ReadingOptions,
    output: OutputOptions,
) -> None:
    """Run a checklist on a model's files, and on what happens inside a recurrent network as it reads a text.

    For RNN, GRU and LSTM language models: whether gradients vanish or explode, whether units are saturated or dead, how
    long gates keep their contents, whether clipping decides every update, whether the learning rate fits. Verdicts are
    good, watch and bad, with what to try; they are rules of thumb.

    The JSON keys are verdict, checks (name, verdict, value, advice and the numbers behind them) and gradient_by_lag:
    the gradient of one loss at a word some steps back, relative to that at the last word. The exit status is 0 whatever
    the verdict.
    """
    from foreword.cli.models import STDIO, check_output
    from foreword.cli.printing import write_json
    from foreword.cli.progress import progress

    if picture is not None:
        if picture == STDIO:
            raise typer.BadParameter("the list goes to standard output: name a file", param_hint="'--picture'")
        check_output(picture, folder=False)
    with progress(output.quiet) as meter:
        found = diagnosis(model, named, reading, output, meter)
    if picture is not None:
        draw(found, picture)
    if output.as_json:
        write_json(found.to_json())
    else:
        print_diagnosis(found)


def diagnosis(
    path: str, texts: list[str] | None, reading: ReadingOptions, output: OutputOptions, meter: Meter | None
) -> Diagnosis:
    """Check the files of a model, and a recurrent network as it reads a text."""
    import numpy as np

    from foreword.cli.models import load_any
    from foreword.cli.printing import print_message
    from foreword.cli.texts import EMBEDDED, blocks_in
    from foreword.evaluate.doctor import Diagnosis, examine
    from foreword.evaluate.gates import has_layers
    from foreword.pipeline.language import TextLM
    from foreword.storage.folder import verify
    from foreword.tokens.corpus import Corpus

    loaded = load_any(path)
    files = files_check(verify(path)) if Path(path).is_dir() else foreign_check()
    if isinstance(loaded, TextLM) and has_layers(loaded.model):
        corpus = Corpus.from_blocks(blocks_in(texts or [EMBEDDED], reading.reading(), meter), loaded.tokenizer)
        found = examine(loaded.model, corpus, meter=meter)
        return Diagnosis([files, *found.checks], found.gradients)
    if not output.quiet:
        print_message(f"{path} has no recurrent layers: only its files are checked")
    return Diagnosis([files], np.empty(0))


def files_check(problems: list[str]) -> Check:
    """Return the check of a model's files: passed, or the first problem."""
    from foreword.evaluate.doctor import Check

    if problems:
        return Check("files", "; ".join(problems), "bad", "copy or train the model again")
    return Check("files", "whole, every checksum right", "good")


def foreign_check() -> Check:
    """Return the check of a file of another tool, which has no checksums: it was opened."""
    from foreword.evaluate.doctor import Check

    return Check("files", "opened; such a file has no checksums", "good")


def draw(found: Diagnosis, path: str) -> None:
    """Write the picture of the gradients by lag."""
    from foreword.errors import InputError
    from foreword.picture.curves import gradients
    from foreword.picture.picture import write_standalone

    if not len(found.gradients):
        raise InputError(f"{path}: there are no gradients to draw")
    last = len(found.gradients) - 1
    lags = sorted({0, last, *(2**power for power in range(last.bit_length()) if 2**power < last)})
    title = "Gradient at the word some steps back"
    write_standalone(gradients({"this model": found.gradients.tolist()}, lags, title, accent={"this model"}), path)


def print_diagnosis(found: Diagnosis) -> None:
    """Print one row per check."""
    from foreword.cli.printing import plain_table, print_table

    table = plain_table("check", "verdict", "measured", "what to try")
    for check in found.checks:
        table.add_row(check.name, check.verdict, check.value, check.advice)
    print_table(table)
