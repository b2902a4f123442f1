"""The command line: parse, call the public API, print.

``foreword --help`` has to answer at once, so nothing here imports NumPy, Numba or Rich before a command needs them.
Results go to standard output, messages to standard error; ``-`` is standard input or output.
"""

from __future__ import annotations

import gc
import io
import sys
from typing import Annotated

import typer

import foreword
from foreword.cli import (
    claims,
    classify,
    cloud,
    compare,
    convert,
    course,
    data,
    doctor,
    evaluate,
    filter,
    generate,
    index,
    lab,
    score,
    search,
    serve,
    speech,
    tag,
    tokenize,
    train,
    translate,
    vectors,
    warm,
)
from foreword.cli.failures import Commands
from foreword.cli.options import add_command, kind_among
from foreword.storage.checking import CHECKS, end_process

__all__ = ["app", "main"]

SETTINGS = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    context_settings=SETTINGS,
    pretty_exceptions_enable=False,
    epilog=f"Every command has a --help with examples.\n\n{compare.EXAMPLES}",
)


@app.callback(help="Every language model that came before the Transformer.")
def foreword_itself(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=lambda asked: _print_version(asked)),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON. Accepted by every command.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show no progress and no closing line. Accepted by every command.")
    ] = False,
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding",
            metavar="NAME",
            show_default="utf-8",
            help="Encoding of texts; guess looks at them. Accepted by every command that reads text.",
        ),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error. Accepted by every command.")
    ] = False,
) -> None: ...


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"foreword {foreword.__version__}")
        raise typer.Exit


add_command(app, compare.compare, compare.EXAMPLES)
add_command(app, train.train, train.EXAMPLES, kind_among("language-model", "vectors"))
add_command(app, evaluate.evaluate, evaluate.EXAMPLES)
add_command(app, score.score, score.EXAMPLES)
add_command(app, filter.filter, filter.EXAMPLES)
add_command(app, generate.generate, generate.EXAMPLES)
add_command(app, vectors.nearest, vectors.NEAREST_EXAMPLES)
add_command(app, vectors.analogy, vectors.ANALOGY_EXAMPLES)
app.add_typer(classify.app, context_settings=SETTINGS)
app.add_typer(search.app, context_settings=SETTINGS)
app.add_typer(index.app, context_settings=SETTINGS)
app.add_typer(speech.app, context_settings=SETTINGS)
app.add_typer(tag.app, context_settings=SETTINGS)
app.add_typer(tokenize.app, context_settings=SETTINGS)
app.add_typer(translate.app, context_settings=SETTINGS)
add_command(app, claims.claims, claims.EXAMPLES)
add_command(app, convert.convert, convert.EXAMPLES)
add_command(app, cloud.cloud, cloud.EXAMPLES)
add_command(app, course.course, course.COURSE_EXAMPLES)
add_command(app, course.check, course.CHECK_EXAMPLES)
app.add_typer(lab.app, context_settings=SETTINGS)
add_command(app, serve.serve, serve.EXAMPLES)
add_command(app, data.data, data.EXAMPLES)
add_command(app, warm.warm, warm.EXAMPLES)
add_command(app, doctor.doctor, doctor.EXAMPLES)


def main() -> None:
    """Run the program: the ``foreword`` script and ``python -m foreword``."""
    # Imports make a million objects that stay; looking for garbage among them took a seventh of a short run.
    gc.set_threshold(100_000, 50, 50)
    # Old locales cannot print every character: one that they lack is spelled out rather than an error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    CHECKS.report = end_process  # a command that reads a damaged model must not end well
    app(prog_name="foreword")
