"""``foreword doctor``: is a model's folder whole, and is a recurrent model well?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli.options import (
    TEXT_HELP,
    AsJson,
    DocumentOption,
    ErrorsOption,
    FieldOption,
    FormatOption,
    ModelFolder,
    Quiet,
    examples,
    reading_of,
)

if TYPE_CHECKING:
    from foreword.evaluate.doctor import Check, Diagnosis

EXAMPLES = examples(
    "foreword doctor model",
    "foreword doctor model ptb:valid",
    "foreword doctor model held_out.txt --json",
    "foreword doctor model held_out.txt --picture gradients.svg",
)


def doctor(
    model: ModelFolder,
    named: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help=TEXT_HELP, show_default="embedded")] = None,
    document: DocumentOption = "line",
    field: FieldOption = "text",
    format: FormatOption = None,
    errors: ErrorsOption = "strict",
    picture: Annotated[
        str | None,
        typer.Option("--picture", metavar="FILE.svg", help="Draw what words further and further back are taught."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Go through a checklist: the files of a model, and what happens inside a recurrent one as it reads a text.

    For RNN, GRU and LSTM language models: do gradients vanish or explode on their way back through the text, are units
    saturated or dead, how long do gates keep what they hold, does clipping decide every update, does the learning rate
    fit. Verdicts are good, watch and bad, with what to try; they are rules of thumb.

    With --json the keys are verdict, checks (name, verdict, value, advice and the numbers behind them) and
    gradient_by_lag: what the word so many steps back is taught by one loss, as a share of what the last word is. The
    exit status is 0 whatever the verdict.
    """
    from pathlib import Path

    from foreword.cli.models import STDIO, check_output, load_any
    from foreword.cli.printing import print_message, write_json
    from foreword.cli.progress import progress
    from foreword.cli.texts import EMBEDDED, blocks_in
    from foreword.evaluate.doctor import Diagnosis, examine
    from foreword.evaluate.gates import has_layers
    from foreword.pipeline.language import TextLM
    from foreword.storage.folder import verify
    from foreword.tokens.corpus import Corpus

    if picture is not None:
        if picture == STDIO:
            raise typer.BadParameter("the list goes to standard output: name a file", param_hint="'--picture'")
        check_output(picture, folder=False)
    with progress(quiet) as meter:
        loaded = load_any(model)
        files = files_check(verify(model) if Path(model).is_dir() else [])
        if isinstance(loaded, TextLM) and has_layers(loaded.model):
            reading = reading_of(document, field, format, errors)
            corpus = Corpus.from_blocks(blocks_in(named or [EMBEDDED], reading, meter), loaded.tokenizer)
            found = examine(loaded.model, corpus, meter=meter)
            found = Diagnosis([files, *found.checks], found.gradients)
        else:
            found = files_only(files)
            if not quiet:
                print_message(f"{model} has no recurrent layers: there is nothing else to look into")
    if picture is not None:
        draw(found, picture)
    if as_json:
        write_json(found.to_json())
    else:
        print_diagnosis(found)


def files_check(problems: list[str]) -> Check:
    from foreword.evaluate.doctor import Check

    if problems:
        return Check("files", "; ".join(problems), "bad", "copy or train the model again")
    return Check("files", "whole, every checksum right", "good")


def files_only(files: Check) -> Diagnosis:
    import numpy as np

    from foreword.evaluate.doctor import Diagnosis

    return Diagnosis([files], np.empty(0))


def draw(found: Diagnosis, path: str) -> None:
    from foreword.errors import InputError
    from foreword.picture.curves import gradients
    from foreword.picture.picture import write_standalone

    if not len(found.gradients):
        raise InputError(f"{path}: there are no gradients to draw")
    last = len(found.gradients) - 1
    lags = sorted({0, last, *(2**power for power in range(last.bit_length()) if 2**power < last)})
    title = "What the word so many steps back is taught"
    write_standalone(gradients({"this model": found.gradients.tolist()}, lags, title, accent={"this model"}), path)


def print_diagnosis(found: Diagnosis) -> None:
    from foreword.cli.printing import plain_table, print_table

    table = plain_table("check", "verdict", "measured", "what to try")
    for check in found.checks:
        table.add_row(check.name, check.verdict, check.value, check.advice)
    print_table(table)
