"""Options and arguments that several commands share, with their help, in one place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from foreword.errors import SettingError

if TYPE_CHECKING:
    from foreword.text.sources import Reading

TEXT_HELP = (
    "A file, a folder, a glob, [bold]-[/] for standard input, an address such as s3://…, "
    "[bold]embedded[/], or a data set such as [bold]ptb:train[/] (see [bold]foreword data[/]). "
    "Compressed files are read as they are."
)

Texts: TypeAlias = Annotated[list[str], typer.Argument(metavar="TEXT", help=TEXT_HELP, show_default=False)]
ModelFolder: TypeAlias = Annotated[str, typer.Argument(metavar="MODEL", help="A folder that foreword train wrote.")]
TokenizerPath: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="TOKENIZER", help="A tokenizer's folder, a tokenizer.json, or a model whose one is meant."),
]

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no closing line.")]
Threads: TypeAlias = Annotated[
    int | None, typer.Option("--threads", min=1, help="How many threads to use.", show_default="all cores")
]
Seed: TypeAlias = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same text.")]
MinCount: TypeAlias = Annotated[
    int | None,
    typer.Option("--min-count", min=1, help="What is seen less often is <unk>: for words and characters."),
]

RUNNING = "How it runs"
RayOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ray", metavar="[ADDRESS]", rich_help_panel=RUNNING, show_default=False,
        help="Do the work on Ray: on the cluster at HOST:PORT, on the one this machine is part of (auto), or without "
        "an address on this machine. The result is the same.",
    ),
]  # fmt: skip

READING = "How to read"

DocumentKind: TypeAlias = Literal["line", "blank-line", "file"]
FileFormat: TypeAlias = Literal["text", "jsonl", "parquet"]
OnErrors: TypeAlias = Literal["strict", "replace"]

DocumentOption: TypeAlias = Annotated[
    DocumentKind,
    typer.Option("--document", help="What a document is: a line, a paragraph, a file.", rich_help_panel=READING),
]
FieldOption: TypeAlias = Annotated[
    str, typer.Option("--field", metavar="NAME", help="Where JSONL or Parquet has the text.", rich_help_panel=READING)
]
FormatOption: TypeAlias = Annotated[
    FileFormat | None,
    typer.Option("--format", help="What the files are.", show_default="told by the name", rich_help_panel=READING),
]
ErrorsOption: TypeAlias = Annotated[
    OnErrors,
    typer.Option("--errors", help="Stop at bytes that are no UTF-8, or replace them.", rich_help_panel=READING),
]


def reading_of(document: DocumentKind, field: str, format: FileFormat | None, errors: OnErrors) -> Reading:
    """The four options above as what ``read_blocks`` takes."""
    from foreword.text.sources import Reading

    return Reading(document=document, field=field, format=format, errors=errors)


@contextmanager
def ray_talking_to_stderr() -> Iterator[None]:
    """Ray prints to standard output when it loses a node, where only results belong."""
    with redirect_stdout(sys.stderr):
        yield


def examples(*lines: str) -> str:
    """What stands below a command's help."""
    return "\n".join(["Examples:", *(f"$ {line}" for line in lines)])


def add_command(app: typer.Typer, command: Callable[..., None], epilog: str) -> None:
    """Make a function a command, its docstring the help: paragraphs flow, where Typer would keep every line end."""
    paragraphs = cleandoc(command.__doc__ or "").split("\n\n")
    app.command(help="\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs), epilog=epilog)(command)


LEAST_MEMORY = 64 << 20
"""Below this the tables would be emptied onto disk after every block."""


def memory_size(text: str | int) -> int:
    """512M or 1.5G as bytes; a number, which is how Typer hands over the default, is bytes already."""
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
