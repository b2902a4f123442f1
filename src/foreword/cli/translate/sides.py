"""What the commands of ``foreword translate`` share: two files line by line, translators, and how to search."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.pipeline.translator import TextTranslator
    from foreword.protocols import Meter

SIDE_HELP = (
    "A sentence a line, compressed or not, or a data set such as [bold]multi30k:train.en[/]; as many lines as the "
    "other has."
)
SEARCHING = "How to search"

Beam: TypeAlias = Annotated[
    int, typer.Option("--beam", min=1, help="Texts kept at every step; 1 is greedy.", rich_help_panel=SEARCHING)
]
LengthPenalty: TypeAlias = Annotated[
    float,
    typer.Option("--length-penalty", min=0, help="0 favours short texts, 1 compares means.", rich_help_panel=SEARCHING),
]
Normalised: TypeAlias = Annotated[
    Literal["power", "gnmt"],
    typer.Option(
        "--normalisation",
        help="What a log-probability is divided by: length^penalty, or ((5 + length) / 6)^penalty.",
        rich_help_panel=SEARCHING,
    ),
]
Coverage: TypeAlias = Annotated[
    float,
    typer.Option(
        "--coverage", min=0, help="What leaving source words out costs, 0 for nothing.", rich_help_panel=SEARCHING
    ),
]


def side_path(name: str, meter: Meter | None = None) -> str:
    """A file as it is, or that of a data set; a file always goes before a name."""
    from foreword.text.datasets import DATASETS, lookup

    if name == "-" or os.path.exists(name) or name.partition(":")[0] not in DATASETS:  # noqa: PTH110
        return name
    found, file = lookup(name)
    return str(found.path(file.split, meter=meter))


def read_sides(source: str, target: str, meter: Meter | None = None) -> tuple[list[str], list[str]]:
    from foreword.pipeline.translator import read_pairs

    if source == target == "-":
        raise InputError("standard input cannot be both the source and the target")
    return read_pairs(side_path(source, meter), side_path(target, meter))


def load_translator(path: str) -> TextTranslator:
    from foreword.cli.models import load_any
    from foreword.pipeline.translator import TextTranslator
    from foreword.storage.folder import kind_of

    found = load_any(path)
    if not isinstance(found, TextTranslator):
        raise InputError(
            f"{path}: its kind is {kind_of(found)}, not text-translator: foreword translate train makes one"
        )
    return found
