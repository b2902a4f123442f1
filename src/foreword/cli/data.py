"""``foreword data``: the named data sets, where they are, and where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli.options import OutputOptions, examples
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.text.datasets import DataFile, Dataset

EXAMPLES = examples(
    "foreword data",
    "foreword data ptb",
    "foreword data ptb --download",
    "wc $(foreword data ptb --path test)",
)


def data(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Describe this data set.", show_default=False)
    ] = None,
    *,
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="SPLIT", help="Print the path of this split, downloading it if need be."),
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Download the splits that are missing.")] = False,
    output: OutputOptions,
) -> None:
    """List the named data sets, or describe one, or download it.

    Data sets are looked up in $FOREWORD_DATA, then in the cache, and downloaded from their official address.
    """
    from foreword.cli.printing import write_json
    from foreword.cli.texts import EMBEDDED
    from foreword.text.datasets import DATASETS, dataset

    if name is None:
        if path is not None or download:
            raise typer.BadParameter("name the data set", param_hint="'NAME'")
        sets = [embedded_set(), *DATASETS.values()]
        write_json([facts(one) for one in sets]) if output.as_json else print_list(sets)
        return
    found = embedded_set() if name == EMBEDDED else dataset(name)
    if path is not None or download:
        print_paths(found, path, output)
    else:
        write_json(facts(found)) if output.as_json else print_details(found)


def embedded_set() -> Dataset:
    """Return the embedded text as a data set."""
    from foreword.cli.texts import EMBEDDED
    from foreword.text.datasets import Dataset

    return Dataset(
        name=EMBEDDED,
        title="The help topics and docstrings of this Python; splits train, valid, test",
        task="lm",
        licence="PSF-2.0",
        citation="Python Software Foundation",
        address="https://docs.python.org/3/",
        files=(),
    )


def print_paths(one: Dataset, split: str | None, output: OutputOptions) -> None:
    """Print the path of a split, or of all of them, downloading what is missing."""
    from foreword.cli.printing import write_json, write_text
    from foreword.cli.progress import progress

    if not one.files:
        raise InputError(f"{one.name} is not a file: it comes with Python; use its name wherever a TEXT is expected")
    with progress(output.quiet) as meter:
        wanted = one.splits if split is None else (one.file(split).split,)
        paths = {split: str(one.path(split, meter=meter)) for split in wanted}
    if output.as_json:
        write_json(paths)
    else:
        write_text("".join(f"{place}\n" for place in paths.values()))


# What is known of a set


def where(one: Dataset) -> str:
    """Return whether a data set is on this machine, and where."""
    from foreword.text.datasets import availability

    return availability(one).where if one.files else "this Python"


def facts(one: Dataset) -> dict[str, Any]:
    """Return the description of a data set as JSON."""
    return {
        "name": one.name,
        "title": one.title,
        "task": one.task,
        "licence": one.licence,
        "citation": one.citation,
        "address": one.address,
        "where": where(one),
        "bytes": sum(file.bytes for file in one.files) or None,
        "splits": [_split_facts(file) for file in one.files],
    }


def _split_facts(file: DataFile) -> dict[str, Any]:
    from foreword.text.datasets import locate

    place, path = locate(file)
    return {
        "split": file.split,
        "file": file.name,
        "format": file.format,
        "bytes": file.bytes,
        "sha256": file.sha256,
        "download": file.download,
        "where": place,
        "path": None if path is None else str(path),
    }


def print_list(sets: list[Dataset]) -> None:
    """Print one line per data set."""
    from rich.filesize import decimal as size

    from foreword.cli.printing import plain_table, print_table

    table = plain_table("name", "task", "where", "size", "licence", numbers=("size",))
    for one in sets:
        whole = sum(file.bytes for file in one.files)
        table.add_row(one.name, one.task, where(one), size(whole) if whole else "", one.licence)
    print_table(table)


def print_details(one: Dataset) -> None:
    """Print the description of one data set."""
    from rich.filesize import decimal as size

    from foreword.cli.printing import plain_table, print_facts, print_table
    from foreword.text.datasets import locate

    rows = {"title": one.title, "task": one.task, "licence": one.licence, "citation": one.citation}
    print_facts({**rows, "address": one.address, **({"by hand": one.by_hand} if one.by_hand else {})})
    if not one.files:
        return
    splits = plain_table("split", "size", "format", "where", "file", numbers=("size",))
    for file in one.files:
        place, path = locate(file)
        splits.add_row(file.split, size(file.bytes), file.format, place, str(path or file.name))
    print_table(splits)
