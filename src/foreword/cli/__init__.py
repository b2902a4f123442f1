"""The command line: parse, call the public API, print.

``foreword --help`` has to answer at once, so nothing here imports NumPy, Numba or Rich before a command needs them.
Results go to standard output, talk to standard error; ``-`` is standard input or output.
"""

from __future__ import annotations

import gc
import io
import sys
from typing import Annotated

import typer

import foreword
from foreword.cli import (
    analogy,
    claims,
    classify,
    cloud,
    compare,
    convert,
    data,
    doctor,
    evaluate,
    filter,
    generate,
    lab,
    nearest,
    score,
    search,
    serve,
    tag,
    tokenize,
    train,
    translate,
)
from foreword.cli.failures import TellingGroup
from foreword.cli.options import add_command

__all__ = ["app", "main"]

SETTINGS = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    cls=TellingGroup,
    no_args_is_help=True,
    context_settings=SETTINGS,
    pretty_exceptions_enable=False,
    epilog=f"Every command has a --help of its own, with examples.\n\n{compare.EXAMPLES}",
)


@app.callback(help="Every language model that came before the Transformer.")
def foreword_itself(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=lambda asked: _tell_version(asked))
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")] = False,
) -> None: ...


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"foreword {foreword.__version__}")
        raise typer.Exit


add_command(app, compare.compare, compare.EXAMPLES)
add_command(app, train.train, train.EXAMPLES)
add_command(app, evaluate.evaluate, evaluate.EXAMPLES)
add_command(app, score.score, score.EXAMPLES)
add_command(app, filter.filter, filter.EXAMPLES)
add_command(app, generate.generate, generate.EXAMPLES)
add_command(app, nearest.nearest, nearest.EXAMPLES)
add_command(app, analogy.analogy, analogy.EXAMPLES)
app.add_typer(classify.app, context_settings=SETTINGS)
app.add_typer(search.app, context_settings=SETTINGS)
app.add_typer(tag.app, context_settings=SETTINGS)
app.add_typer(tokenize.app, context_settings=SETTINGS)
app.add_typer(translate.app, context_settings=SETTINGS)
add_command(app, claims.claims, claims.EXAMPLES)
add_command(app, convert.convert, convert.EXAMPLES)
add_command(app, cloud.cloud, cloud.EXAMPLES)
app.add_typer(lab.app, context_settings=SETTINGS)
add_command(app, serve.serve, serve.EXAMPLES)
add_command(app, data.data, data.EXAMPLES)
add_command(app, doctor.doctor, doctor.EXAMPLES)


def main() -> None:
    """Where the ``foreword`` script and ``python -m foreword`` begin."""
    # Imports make a million objects that stay; looking for garbage among them took a seventh of a short run.
    gc.set_threshold(100_000, 50, 50)
    # Old locales cannot print every character: one that they lack is spelled out rather than an error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="foreword")
