"""What DATA stands for on the command line: labelled files in all their forms, or a data set by its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from foreword.text.formats import LabelledFormat

if TYPE_CHECKING:
    from foreword.protocols import Meter
    from foreword.text.block import Block
    from foreword.text.datasets import DataFile, Dataset
    from foreword.text.labelled import LabelledBlock, LabelledReading, Tell

LABELLED = "Reading labelled texts"

DATA_HELP = (
    "Labelled texts: TSV, CSV, JSONL, Parquet, fastText lines, or one folder per label, compressed or not. [bold]-[/] "
    "is standard input, [bold]imdb:train[/] a data set (see [bold]foreword data[/])."
)

ClassifierFolder: TypeAlias = Annotated[str, typer.Argument(metavar="MODEL", help="A saved classifier.")]
Data: TypeAlias = Annotated[list[str], typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)]
FieldOrColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--text-column", metavar="NAME", help="Column of the text, by name or number.", show_default="guessed",
        rich_help_panel=LABELLED,
    ),
]  # fmt: skip
Header: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether the first line of TSV or CSV has the names of the columns.",
        show_default="guessed", rich_help_panel=LABELLED,
    ),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class LabelledOptions:
    """Where the texts and the labels are."""

    text_column: FieldOrColumn = None
    label_column: Annotated[
        str | None,
        typer.Option("--label-column", metavar="NAME", help="Column of the label, by name or number.",
                     show_default="guessed", rich_help_panel=LABELLED),
    ] = None  # fmt: skip
    header: Header = None
    first_label: Annotated[
        bool,
        typer.Option("--first-label", help="Take the first of several fastText labels.", rich_help_panel=LABELLED),
    ] = False

    def reading(self, format: LabelledFormat | None, errors: Literal["strict", "replace"]) -> LabelledReading:
        """Return how labelled files are read."""
        from foreword.text.labelled import LabelledReading

        return LabelledReading(
            format, column(self.text_column), column(self.label_column), self.header, self.first_label, errors=errors
        )


LabelledFormatOption: TypeAlias = Annotated[
    LabelledFormat | None,
    typer.Option("--format", help="File format.", show_default="by name or first line", rich_help_panel=LABELLED),
]


def column(name: str | None) -> str | int | None:
    """Return the name of a column, or its number."""
    return int(name) if name is not None and name.isdecimal() else name


def labelled_in(
    names: Sequence[str], reading: LabelledReading, tell: Tell | None = None, meter: Meter | None = None
) -> Iterator[LabelledBlock]:
    """Return the labelled texts of the named sources, in blocks. A missing source is reported at once."""
    from foreword.cli.texts import is_dataset
    from foreword.text.labelled import read_labelled_blocks

    files = [name for name in names if not is_dataset(name)]
    if len(files) == len(names):
        return read_labelled_blocks(files, reading, tell=tell, meter=meter)
    parts = [
        dataset_blocks(name, meter) if is_dataset(name) else read_labelled_blocks(name, reading, tell=tell, meter=meter)
        for name in names
    ]
    return chain.from_iterable(parts)


def dataset_blocks(spec: str, meter: Meter | None) -> Iterator[LabelledBlock]:
    """Read a named data set, whose format is known."""
    from foreword.text.block import Block
    from foreword.text.datasets import labelled, lookup
    from foreword.text.labelled import LabelledBlock, read_labelled_blocks

    found, file = lookup(spec)
    reading = reading_of_dataset(found, file)
    if reading is not None:
        return read_labelled_blocks(found.path(file.split, meter=meter), reading, meter=meter)
    examples = list(labelled(spec, meter=meter))
    return iter([LabelledBlock(Block.from_texts([text for _, text in examples]), [label for label, _ in examples])])


def reading_of_dataset(found: Dataset, file: DataFile) -> LabelledReading | None:
    """Return how the fast reader reads a data set; None for encodings and formats that it does not read."""
    from foreword.text.labelled import LabelledReading

    if found.encoding != "utf-8":
        return None
    match file.format:
        case "jsonl":
            return LabelledReading("jsonl", found.text_field, found.label_field)
        case "label-tab-text":
            return LabelledReading("tsv", text_column=2, label_column=1, header=False)
        case "text-tab-label":
            return LabelledReading("tsv", text_column=1, label_column=2, header=True)
        case "label-space-text":
            return LabelledReading("label-first")
    return None


def gathered(blocks: Iterable[LabelledBlock]) -> tuple[list[Block], list[str]]:
    """Read all labelled texts into memory, as bytes."""
    texts: list[Block] = []
    labels: list[str] = []
    for block in blocks:
        texts.append(block.texts)
        labels += block.labels
    return texts, labels


def read_by(model: object, texts: list[Block]) -> list[Block] | list[str]:
    """Return the texts as the model takes them: fastText takes strings."""
    from foreword.storage.folder import kind_of

    if kind_of(model) == "text-classifier":
        return texts
    return lines_for(model, [text for block in texts for text in block.strings()])


def lines_for(model: object, texts: list[str]) -> list[str]:
    """Return texts as the model takes them: fastText reads no further than the end of a line."""
    from foreword.storage.folder import kind_of

    return texts if kind_of(model) == "text-classifier" else [text.replace("\n", " ") for text in texts]
