"""The command line: parse, call the public API, print.

``foreword --help`` has to answer at once, so nothing here imports NumPy, Numba or Rich before a command needs them.
Results go to standard output, messages to standard error; ``-`` is standard input or output.
"""

from __future__ import annotations

import gc
import io
import sys
from importlib import import_module
from typing import Annotated, Any

import typer

import foreword
from foreword.cli.failures import COMMON, Commands
from foreword.cli.options import add_command, kind_among
from foreword.storage.checking import CHECKS, end_process

__all__ = ["app", "main"]

SETTINGS = {"help_option_names": ["-h", "--help"]}

COMMANDS: dict[str, tuple[str, str]] = {
    "compare": ("compare", "EXAMPLES"),
    "train": ("train", "EXAMPLES"),
    "evaluate": ("evaluate", "EXAMPLES"),
    "score": ("score", "EXAMPLES"),
    "filter": ("filter", "EXAMPLES"),
    "generate": ("generate", "EXAMPLES"),
    "nearest": ("vectors", "NEAREST_EXAMPLES"),
    "analogy": ("vectors", "ANALOGY_EXAMPLES"),
    "claims": ("claims", "EXAMPLES"),
    "convert": ("convert", "EXAMPLES"),
    "cloud": ("cloud", "EXAMPLES"),
    "course": ("course", "COURSE_EXAMPLES"),
    "check": ("course", "CHECK_EXAMPLES"),
    "serve": ("serve", "EXAMPLES"),
    "data": ("data", "EXAMPLES"),
    "warm": ("warm", "EXAMPLES"),
    "doctor": ("doctor", "EXAMPLES"),
}
"""The module of each command, and the name of its examples there."""

GROUPS = ("classify", "search", "index", "speech", "tag", "tokenize", "translate", "lab")
"""Commands that have commands of their own: each is the ``app`` of its module."""


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
            help="Encoding of texts; guess detects it. Accepted by every command that reads text.",
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


def application(only: str | None = None) -> typer.Typer:
    """Return the program; ``only``: with this command alone, since defining all of them takes a tenth of a second."""
    epilog = "" if only else f"Every command has a --help with examples.\n\n{_in('compare').EXAMPLES}"
    program = typer.Typer(
        cls=Commands, no_args_is_help=True, context_settings=SETTINGS, pretty_exceptions_enable=False, epilog=epilog
    )
    program.callback(help="Every language model that came before the Transformer.")(foreword_itself)
    for name in [only] if only else [*COMMANDS, *GROUPS]:
        if name in GROUPS:
            program.add_typer(_in(name).app, context_settings=SETTINGS)
        else:
            module, examples = COMMANDS[name]
            kinds = kind_among("language-model", "vectors") if name == "train" else None
            add_command(program, getattr(_in(module), name), getattr(_in(module), examples), kinds)
    return program


def _in(module: str) -> Any:
    return import_module(f"foreword.cli.{module}")


def __getattr__(name: str) -> typer.Typer:
    """Build ``app``, the program with all commands, when it is first asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = program = application()
    return program


def main() -> None:
    """Run the program: the ``foreword`` script and ``python -m foreword``."""
    # Imports make a million objects that stay; looking for garbage among them took a seventh of a short run.
    gc.set_threshold(100_000, 50, 50)
    # Old locales cannot print every character: one that they lack is spelled out rather than an error.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    CHECKS.report = end_process  # a command that reads a damaged model must not end well
    first = next((word for word in sys.argv[1:] if word not in COMMON), "")
    application(first if first in COMMANDS or first in GROUPS else None)(prog_name="foreword")
