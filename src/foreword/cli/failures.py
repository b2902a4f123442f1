"""What goes wrong, on one line and with an exit status: 1 for work that failed, 2 for a call that Typer refuses."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperGroup

from foreword.errors import ForewordError

INTERRUPTED = 130
PIPE_CLOSED = 141
"""Both as the shell tells them: 128 and the number of the signal."""

RAY_ADDRESS = re.compile(r"local|auto|(ray://)?[^\s/]+:\d+")
"""What may follow ``--ray``; anything else there is the next argument."""

# Contexts are typed as Any: which class they are has changed between versions of Typer.


class TellingGroup(TyperGroup):
    """The commands, with every error told in one line unless ``--debug`` asks for the traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """``--debug`` is wished for after an error, and then it is added at the end of the line: take it anywhere."""
        before = args.index("--") if "--" in args else len(args)
        args = [*ray_with_value(args[:before]), *args[before:]]
        before = args.index("--") if "--" in args else len(args)
        if "--debug" in args[:before]:
            args = ["--debug", *(word for word in args[:before] if word != "--debug"), *args[before:]]
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a reader that has gone away is still told quietly
        except BaseException as error:
            _hint_at_settings(error)
            line, status = told(error)
            if status is None or (ctx.params.get("debug") and line):
                raise
            if line:
                sys.stderr.write(f"foreword: {one_line(line)}\n")
            else:
                _forget_output()
            raise typer.Exit(status) from None
        return result


def ray_with_value(args: list[str]) -> list[str]:
    """``--ray`` may have an address behind it or none, which Typer has no word for: put none where there is none."""
    return [
        f"{word}=" if word == "--ray" and not RAY_ADDRESS.fullmatch(next) else word
        for word, next in pairwise([*args, ""])
    ]


def _hint_at_settings(error: Any) -> None:
    """To ``foreword train ngram --order 3``, which anyone tries first."""
    unknown, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if unknown and context and any("--set" in param.opts for param in context.command.params):
        setting = unknown.lstrip("-").replace("-", "_")
        error.message = f"no option {unknown}: a setting of the model is given as --set {setting}=VALUE"
        error.possibilities = None


def told(error: BaseException) -> tuple[str, int | None]:
    """The line for a person and the exit status; no status for what Typer shows itself."""
    match error:
        case ForewordError():
            return str(error), 1
        case KeyboardInterrupt():
            return str(error) or "stopped", INTERRUPTED
        case BrokenPipeError():  # whoever read our output has enough, as in ``foreword data | head -1``
            return "", PIPE_CLOSED
        case MemoryError():
            return "not enough memory", 1
        case OSError():
            place = f"{error.filename}: " if error.filename is not None else ""
            return f"{place}{error.strerror or error}", 1
        case typer.Exit() | typer.Abort() | SystemExit():
            return "", None
    if hasattr(error, "exit_code"):  # a wrong call
        return "", None
    return f"unexpected {type(error).__name__}: {error} (--debug shows where)", 1


def one_line(message: str) -> str:
    """A message as one line, whatever the name of a file in it holds."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in message)


def _forget_output() -> None:
    """Python flushes standard output once more as it ends, and would complain that nobody reads it."""
    with suppress(OSError, ValueError):  # there need not be a real file behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
