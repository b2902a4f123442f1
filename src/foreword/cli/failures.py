"""The one path of failures: an error is one line and an exit status, 1 for work that failed, 2 for bad usage."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

import typer

from foreword.cli.options import CommandGroup
from foreword.errors import ForewordError, NotSaveableError, SettingError, VocabularyError

INTERRUPTED = 130
PIPE_CLOSED = 141
"""As the shell reports them: 128 plus the number of the signal."""

RAY_ADDRESS = re.compile(r"local|auto|(ray://)?[^\s/]+:\d+")
"""What may follow ``--ray``; anything else is the next argument."""

COMMON = ("--json", "--quiet", "-q", "--debug")
"""Options of every command."""

SETTINGS: dict[str, tuple[str, ...]] = {
    "search index": ("--k1", "--b", "--delta"),
    "tokenize train": ("--pattern", "--min-frequency", "--split", "--form", "--lowercase"),
    "translate train": ("--attention",),
    "translate predict": ("--length-penalty", "--normalisation", "--coverage"),
    "translate evaluate": ("--length-penalty", "--normalisation", "--coverage"),
    "cloud": ("--width", "--height", "--upright", "--seed"),
    "serve": ("--max-body", "--max-tokens", "--max-requests", "--timeout", "--batch", "--wait", "--grace"),
}
"""Options of version 0.1.0 that are settings now: ``--k1 2`` is read as ``--set k1=2``."""

FLAGS = ("--lowercase",)
ARGUMENTS = {"translate train": ("--source", "--target")}
"""Options of 0.1.0 that are arguments now, in their order."""

FULL_GPU = (
    "the GPU does not have enough memory: lower the batch, choose a smaller model, or use the CPU "
    "(set CUDA_VISIBLE_DEVICES= in the environment)"
)

# Contexts are typed as Any: which class they are has changed between versions of Typer.


class Commands(CommandGroup):
    """The commands, with every error reported in one line unless ``--debug`` asks for the traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Accept ``--json``, ``--quiet`` and ``--debug`` anywhere, and options of 0.1.0 that have become settings."""
        end = args.index("--") if "--" in args else len(args)
        common = [word for word in args[:end] if word in COMMON]
        encoding, words = without_encoding([word for word in args[:end] if word not in COMMON])
        words = with_settings(with_ray_address(words))
        try:
            parsed: list[str] = super().parse_args(ctx, [*common, *encoding, *words, *args[end:]])
        except BrokenPipeError:  # while it printed the help or the version
            _discard_output()
            raise typer.Exit(PIPE_CLOSED) from None
        return parsed

    def invoke(self, ctx: Any) -> Any:
        """Run a command; turn an error into one line and an exit status."""
        try:
            with _warnings_as_messages(bool(ctx.params.get("quiet"))):
                result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a closed pipe is still handled
        except BaseException as error:
            _hint_at_settings(error)
            _hint_at_commands(error)
            line, status = message_of(error)
            if status is None or (ctx.params.get("debug") and line):
                raise
            if line:
                sys.stderr.write(f"foreword: {one_line(line)}\n")
            else:
                _discard_output()
            raise typer.Exit(status) from None
        return result


def without_encoding(args: list[str]) -> tuple[list[str], list[str]]:
    """Return ``--encoding`` with its value, if it is there, and the other words."""
    for index, word in enumerate(args):
        if word == "--encoding":
            return args[index : index + 2], args[:index] + args[index + 2 :]
        if word.startswith("--encoding="):
            return [word], args[:index] + args[index + 1 :]
    return [], args


def with_ray_address(args: list[str]) -> list[str]:
    """Give ``--ray`` an empty address where none follows: Typer has no options with an optional value."""
    return [
        f"{word}=" if word == "--ray" and not RAY_ADDRESS.fullmatch(next) else word
        for word, next in pairwise([*args, ""])
    ]


def with_settings(args: list[str]) -> list[str]:
    """Replace options of 0.1.0 that have become settings or arguments."""
    command = next((each for each in SETTINGS if args[: len(each.split())] == each.split()), None)
    if command is None:
        return args
    words: list[str] = []
    arguments: dict[str, str] = {}
    rest = iter(args)
    for word in rest:
        option, equals, value = word.partition("=")
        if option in SETTINGS[command]:
            value = value if equals else "true" if option in FLAGS else next(rest, "")
            words.append(f"--set={option.removeprefix('--').replace('-', '_')}={value}")
        elif option in ARGUMENTS.get(command, ()):
            arguments[option] = value if equals else next(rest, "")
        else:
            words.append(word)
    return [*words, *(arguments[name] for name in ARGUMENTS.get(command, ()) if name in arguments)]


def _hint_at_settings(error: Any) -> None:
    """Explain ``foreword train ngram --order 3``: settings of the model need --set."""
    unknown, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if unknown and context and any("--set" in param.opts for param in context.command.params):
        setting = unknown.lstrip("-").replace("-", "_")
        error.message = f"no option {unknown}: a setting of the model is given as --set {setting}=VALUE"
        error.possibilities = None


def _hint_at_commands(error: Any) -> None:
    """Explain ``foreword classify evaluate``: some commands take models of every family."""
    from foreword.cli import COMMANDS, GROUPS

    unknown = re.fullmatch(r"No such command '([\w-]+)'\.?", str(getattr(error, "message", "")))
    if unknown and unknown[1] in (*COMMANDS, *GROUPS):
        error.message = f"No such command {error.ctx.info_name} {unknown[1]}: there is foreword {unknown[1]}"


@contextmanager
def _warnings_as_messages(quiet: bool) -> Iterator[None]:
    """Print warnings in one line, as errors are, without the line of code that they come from."""

    def show(message: Warning | str, *where: object, **more: object) -> None:
        if not quiet:
            sys.stderr.write(f"foreword: warning: {one_line(str(message))}\n")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def message_of(error: BaseException) -> tuple[str, int | None]:
    """Return the message of an error and the exit status; no status for what Typer shows itself."""
    match error:
        case SettingError() if not isinstance(error, VocabularyError | NotSaveableError):
            return str(error), 2  # a call that makes no sense, as Typer's own complaints are
        case ForewordError():
            return str(error), 1
        case KeyboardInterrupt():
            return str(error) or "stopped", INTERRUPTED
        case BrokenPipeError():  # whoever read our output has enough, as in ``foreword data | head -1``
            return "", PIPE_CLOSED
        case MemoryError():
            return "not enough memory", 1
        case OSError():
            name = f"{error.filename}: " if error.filename is not None else ""
            return f"{name}{error.strerror or error}", 1
        case typer.Exit() | typer.Abort() | SystemExit():
            return "", None
    if hasattr(error, "exit_code"):  # a wrong call
        return "", None
    if type(error).__name__ == "OutOfMemoryError":  # torch's, without importing torch
        return FULL_GPU, 1
    return f"unexpected {type(error).__name__}: {error} (--debug shows where)", 1


def one_line(message: str) -> str:
    """Return a message as one line, whatever characters a file name in it has."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in message)


def _discard_output() -> None:
    """Redirect standard output to the null device, because Python flushes it again at exit."""
    with suppress(OSError, ValueError):  # there need not be a real file behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
