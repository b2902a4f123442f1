"""Options that several commands share: each is written once, and those that belong together are a group.

A group is a dataclass whose fields are options. A command takes it as one parameter; ``add_command`` puts the fields in
its place, so that Typer sees plain options.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from foreword import kinds
from foreword.errors import SettingError
from foreword.text.formats import DocumentFormat

if TYPE_CHECKING:
    from foreword.pipeline.fitting import Output
    from foreword.protocols import TextTokenizer
    from foreword.text.sources import Reading

TEXT_HELP = (
    "A file, folder or glob, [bold]-[/] for standard input, an address such as s3://…, [bold]embedded[/], or a data "
    "set such as [bold]ptb:train[/] (see [bold]foreword data[/]). Compressed files are decompressed as they are read."
)
READING, RUNNING = "Reading", "Running"

# Arguments

Texts: TypeAlias = Annotated[list[str], typer.Argument(metavar="TEXT", help=TEXT_HELP, show_default=False)]
ModelFolder: TypeAlias = Annotated[str, typer.Argument(metavar="MODEL", help="A saved model.")]
TokenizerPath: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TOKENIZER", help="A saved tokenizer, a tokenizer.json, or a model, whose tokenizer is used."
    ),
]

# Options

Out: TypeAlias = Annotated[str, typer.Option("--out", "-o", metavar="MODEL", help="Folder to save the model in.")]
Overwrite: TypeAlias = Annotated[bool, typer.Option("--overwrite", help="Replace a model of another kind.")]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Change a setting. May be repeated."),
]
Threads: TypeAlias = Annotated[
    int | None, typer.Option("--threads", min=1, help="Number of threads.", show_default="all cores")
]
Seed: TypeAlias = Annotated[
    int, typer.Option("--seed", min=0, help="Random seed; the same seed gives the same result.")
]
TokenizerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="TOKENIZER",
        help="Tokenizer to use: a saved tokenizer, a tokenizer.json, or a model (its tokenizer is used).",
        show_default="words",
    ),
]
MinCount: TypeAlias = Annotated[
    int | None, typer.Option("--min-count", min=1, help="Words seen less often than this become <unk>.")
]
MaxWords: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--vocab", min=2, help="Keep this many of the most frequent words; others become <unk>.", show_default="all"
    ),
]
DeviceOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--device", metavar="cpu|cuda", help="Where networks are trained.", show_default="a GPU, if any"),
]
RayOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ray", metavar="[ADDRESS]", rich_help_panel=RUNNING, show_default=False,
        help="Run on Ray: on the cluster at HOST:PORT, on the cluster of this machine (auto), or, without an address, "
        "on this machine alone. The result is the same.",
    ),
]  # fmt: skip

DocumentKind: TypeAlias = Literal["line", "blank-line", "file"]
OnErrors: TypeAlias = Literal["strict", "replace"]

DocumentOption: TypeAlias = Annotated[
    DocumentKind,
    typer.Option("--document", help="What one document is: a line, a paragraph or a file.", rich_help_panel=READING),
]
FieldOption: TypeAlias = Annotated[
    str,
    typer.Option("--field", metavar="NAME", help="Field of the text in JSONL or Parquet.", rich_help_panel=READING),
]
FormatOption: TypeAlias = Annotated[
    DocumentFormat | None,
    typer.Option("--format", help="File format.", show_default="by file name", rich_help_panel=READING),
]
ErrorsOption: TypeAlias = Annotated[
    OnErrors,
    typer.Option("--errors", help="Stop at bytes that are not UTF-8, or replace them.", rich_help_panel=READING),
]


def reading_of(document: DocumentKind, field: str, format: DocumentFormat | None, errors: OnErrors) -> Reading:
    """Return the reading options as ``read_blocks`` takes them."""
    from foreword.text.sources import Reading

    return Reading(document=document, field=field, format=format, errors=errors)


def kind_option(task: kinds.Task, help: str) -> Any:
    """Return a ``--kind`` option for the kinds of a task, refused before any work if there is no such kind."""
    return typer.Option("--kind", metavar="KIND", help=help, callback=kind_check(task))


def kind_check(*tasks: kinds.Task) -> Callable[[str], str]:
    """Return a check that a kind can be trained for one of the tasks."""

    def check(kind: str) -> str:
        if kind not in (known := kinds.trained_as(*tasks)):
            raise typer.BadParameter(f"no kind {kind!r}: expected {', '.join(known)}")
        return kind

    return check


# Groups of options


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How texts are read."""

    document: DocumentOption = "line"
    field: FieldOption = "text"
    format: FormatOption = None
    errors: ErrorsOption = "strict"

    def reading(self) -> Reading:
        """Return how texts are read."""
        return reading_of(self.document, self.field, self.format, self.errors)


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What is printed. Every command takes these options, so that they belong to the program: see ``cli/__init__``."""

    as_json: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class VocabularyOptions:
    """Which words a model knows."""

    tokenizer: TokenizerOption = None
    vocab: MaxWords = None
    min_count: MinCount = None

    def __post_init__(self) -> None:
        if self.tokenizer and (self.vocab or self.min_count):
            raise typer.BadParameter("the tokenizer has its vocabulary already", param_hint="'--vocab' / '--min-count'")

    def load(self) -> TextTokenizer | None:
        """Load the tokenizer that was named; None if none was."""
        from foreword.cli.models import load_tokenizer

        return None if self.tokenizer is None else load_tokenizer(self.tokenizer)


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """How a network is trained, where, and whether a training that was stopped is resumed."""

    settings: SetOption = None
    resume: Annotated[bool, typer.Option("--resume", help="Resume a training that was stopped.")] = False
    overwrite: Overwrite = False
    device: DeviceOption = None

    def begin(self, out: str, kind: kinds.Kind, command: str, *without: str) -> tuple[dict[str, Any], Output] | None:
        """Check the call before any text is read. Return the settings, of which the command itself sets those in
        ``without``, and where the model is saved; None, with a message, where there is nothing to resume.
        """
        from foreword.cli.models import check_output, nothing_to_resume
        from foreword.cli.settings import parse_settings

        check_output(out, folder=True, kind=kind.name, overwrite=self.overwrite or self.resume)
        given = parse_settings(self.settings, command, kind.home, without=["device", *without])

        from foreword.pipeline.fitting import Output  # imported now that the arguments are checked: it takes a while

        target = Output(out, self.resume)
        return None if nothing_to_resume(target, kind) else ({**given, "device": self.device}, target)


# Commands

COMMON_HELP = (
    "Every command also takes --json (print JSON), --quiet (no progress, no closing line) and --debug; commands that "
    "read text take --encoding NAME (latin-1, utf-16, …; guess detects it and reports the result)."
)


def examples(*lines: str) -> str:
    """Return the examples that are shown below a command's help."""
    return "\n".join(["Examples:", *(f"$ {line}" for line in lines)])


class PlainHelp:
    """Help that shows no type behind an argument, nor behind an option that takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of a command."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in found:
            if each.param_type_name == "argument":
                _show_by_name(each)
            elif each.metavar is None:
                each.metavar = "" if getattr(each, "is_flag", False) else _metavar(each, ctx)
        return found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help. Rich ends the process where nobody reads it; the caller has a status for that."""
        try:
            super().format_help(ctx, formatter)  # type: ignore[misc]
            self.format_settings(ctx)
        except SystemExit:
            raise BrokenPipeError from None

    def format_settings(self, ctx: Any) -> None:
        """Print what the help of this command adds."""


def _metavar(option: Any, ctx: Any) -> str | None:
    """Return what stands for the value of an option: N or X for a number, a name for a string; None for choices."""
    shown = (
        option.type.name if hasattr(option, "type") else option.display_type(ctx).strip("<>")
    )  # older Typer has type
    kind = shown.partition(" ")[0]
    return {"int": "N", "integer": "N", "float": "X", "str": option.name.upper(), "text": option.name.upper()}.get(kind)


def _show_by_name(argument: Any) -> None:
    """Show an argument by its name, ``FILE…`` where there may be several, in brackets where it may be left out."""
    name = argument.metavar or argument.name.upper()
    name = argument.metavar = name if argument.nargs == 1 or "…" in name else f"{name}…"
    argument.display_type_rich = lambda ctx: None
    argument._usage_display_name = lambda: name if argument.required or name[0] == "[" else f"[{name}]"


class CommandGroup(PlainHelp, TyperGroup):
    """Commands that belong together."""


def command_group(name: str, help: str, epilog: str) -> typer.Typer:
    """Return a group of commands, such as ``foreword tag``, whose help is shown where none of them is named."""
    return typer.Typer(cls=CommandGroup, name=name, help=help, no_args_is_help=True, epilog=epilog)


class Command(PlainHelp, TyperCommand):
    """A command whose help lists the settings of the kind that was named, if it trains one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remember the words of the call: ``--help`` is answered before they are parsed."""
        ctx.meta[WORDS] = list(args)
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed

    def invoke(self, ctx: Any) -> Any:
        """Run the command. A setting that is refused is called by the name that was typed, not by the constructor's."""
        try:
            return super().invoke(ctx)
        except SettingError as error:
            kind = self._trained_kind(ctx)
            typed = {setting.partition("=")[0].replace("-", "_") for setting in ctx.params.get("settings") or []}
            for name, own in {} if kind is None else kind[1].aliases.items():
                if name in typed and str(error).startswith(f"{own} "):
                    raise SettingError(f"{name}{str(error).removeprefix(own)}") from error
            raise

    def format_settings(self, ctx: Any) -> None:
        """Print the settings of the kind."""
        if (kind := self._trained_kind(ctx)) is not None:
            from foreword.cli.settings_help import print_settings

            print_settings(*kind)

    def _trained_kind(self, ctx: Any) -> tuple[str, kinds.Kind] | None:
        trained: TrainedKind | None = getattr(self.callback, "trained", None)
        return None if trained is None else trained(ctx.meta.get(WORDS, []))


WORDS = "foreword.words"

TrainedKind: TypeAlias = Callable[[list[str]], "tuple[str, kinds.Kind] | None"]
"""Returns the kind that a call trains, and the name that it is called by; None if the call does not say."""


def kind_among(*tasks: kinds.Task) -> TrainedKind:
    """Return a function that finds a kind of these tasks among the words of a call."""

    def find(words: list[str]) -> tuple[str, kinds.Kind] | None:
        known = kinds.trained_as(*tasks)
        return next(((word, known[word]) for word in words if word in known), None)

    return find


def kind_by_option(task: kinds.Task, usual: str) -> TrainedKind:
    """Return a function that finds the kind that ``--kind`` names; ``usual`` without it."""

    def find(words: list[str]) -> tuple[str, kinds.Kind] | None:
        name = option_value(words, "--kind") or usual
        known = kinds.trained_as(task)
        return (name, known[name]) if name in known else None

    return find


def option_value(words: list[str], option: str) -> str:
    """Return the value that the words of a call give an option; nothing where they do not."""
    joined = " ".join(words).replace(f"{option}=", f"{option} ")
    return joined.partition(f"{option} ")[2].partition(" ")[0]


def add_command(
    app: typer.Typer, command: Callable[..., None], epilog: str, trained: TrainedKind | None = None
) -> None:
    """Make a function a command, its docstring the help: paragraphs flow, where Typer would keep every line end.

    trained: what kind a call trains, whose settings the help lists.
    """
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    text = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    expanded = with_groups_expanded(command)
    expanded.trained = trained  # type: ignore[attr-defined]
    app.command(command.__name__, cls=Command, help=text, epilog=f"{epilog}\n\n{COMMON_HELP}")(expanded)


def with_groups_expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a function that takes the fields of each group of options, and calls the command with the groups."""
    hints = get_type_hints(command, include_extras=True)
    hints.pop("return", None)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for parameter in inspect.signature(command).parameters.values():
        group = groups.get(parameter.name)
        if group is None:
            parameters.append(parameter.replace(annotation=hints[parameter.name], kind=parameter.KEYWORD_ONLY))
        elif group is not OutputOptions:
            types = get_type_hints(group, include_extras=True)
            parameters += [
                inspect.Parameter(each.name, parameter.KEYWORD_ONLY, default=each.default, annotation=types[each.name])
                for each in fields(group)
            ]

    def expanded(context: typer.Context, **given: Any) -> None:
        encoding = context.find_root().params.get("encoding")
        if encoding is not None:
            given["errors"] = _decoding(given, encoding)
        for name, group in groups.items():
            source = dict(context.find_root().params) if group is OutputOptions else given
            given[name] = group(**{each.name: source.pop(each.name) for each in fields(group)})
        command(**given)

    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {each.name: each.annotation for each in parameters}
    return expanded


def _decoding(given: dict[str, Any], encoding: str) -> str:
    """Return how the texts of a call are decoded: ``--errors`` and ``--encoding`` together."""
    from foreword.text.encodings import Decoding

    if "errors" not in given:
        raise typer.BadParameter("this command reads no text", param_hint="'--encoding'")
    return Decoding(given["errors"], encoding)


@contextmanager
def ray_output_to_stderr() -> Iterator[None]:
    """Send to standard error what Ray prints: standard output is for results."""
    with redirect_stdout(sys.stderr):
        yield


LEAST_MEMORY = 64 << 20
"""Below this the tables would be emptied onto disk after every block."""


def memory_size(text: str | int) -> int:
    """Parse 512M or 1.5G as bytes; a number, which is how Typer hands over the default, is bytes already."""
    if isinstance(text, int):
        return text
    from foreword.text.files import parse_size

    try:
        size = parse_size(text)
    except SettingError as error:
        raise typer.BadParameter(str(error)) from None
    if size < LEAST_MEMORY:
        raise typer.BadParameter(f"{text} is less than the {LEAST_MEMORY >> 20}M that are needed")
    return size
