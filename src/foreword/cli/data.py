"""``foreword data``: which texts there are by name, whether they are here, and where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli.options import AsJson, Quiet, examples

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
        str | None, typer.Argument(metavar="NAME", help="Tell all about this one.", show_default=False)
    ] = None,
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="SPLIT", help="Print where this split is, fetching it if need be."),
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch every split that is not here.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """List the named data sets, or tell about one, or fetch it.

    They are looked for in $FOREWORD_DATA, then in the cache, and fetched from their official address.
    """
    from foreword.cli.printing import write_json, write_text
    from foreword.cli.progress import progress
    from foreword.text.datasets import DATASETS, dataset

    if name is None:
        if path is not None or download:
            raise typer.BadParameter("name the data set", param_hint="'NAME'")
        sets = list(DATASETS.values())
        write_json([facts(one) for one in sets]) if as_json else print_list(sets)
        return
    found = dataset(name)
    if path is None and not download:
        write_json(facts(found)) if as_json else print_details(found)
        return
    with progress(quiet) as meter:
        wanted = found.splits if path is None else (found.file(path).split,)
        paths = {split: str(found.path(split, meter=meter)) for split in wanted}
    write_json(paths) if as_json else write_text("".join(f"{place}\n" for place in paths.values()))


def facts(one: Dataset) -> dict[str, Any]:
    from foreword.text.datasets import availability

    here = availability(one)
    return {
        "name": one.name,
        "title": one.title,
        "task": one.task,
        "licence": one.licence,
        "citation": one.citation,
        "address": one.address,
        "where": here.where,
        "files_here": here.files,
        "bytes_here": here.bytes,
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
        "path": path and str(path),
    }


def print_list(sets: list[Dataset]) -> None:
    from rich.filesize import decimal as size

    from foreword.cli.printing import plain_table, print_table
    from foreword.text.datasets import availability

    table = plain_table("name", "task", "where", "size", "licence", numbers=("size",))
    for one in sets:
        table.add_row(
            one.name, one.task, availability(one).where, size(sum(file.bytes for file in one.files)), one.licence
        )
    print_table(table)


def print_details(one: Dataset) -> None:
    from rich.filesize import decimal as size
    from rich.table import Table

    from foreword.cli.printing import plain_table, print_table
    from foreword.text.datasets import locate

    about = Table.grid(padding=(0, 2))
    about.add_column()
    about.add_column(overflow="fold")
    rows = {"title": one.title, "task": one.task, "licence": one.licence, "citation": one.citation}
    rows |= {"address": one.address} | ({"by hand": one.by_hand} if one.by_hand else {})
    for what, value in rows.items():
        about.add_row(what, value)
    print_table(about)
    splits = plain_table("split", "size", "format", "where", "file", numbers=("size",))
    for file in one.files:
        place, path = locate(file)
        splits.add_row(file.split, size(file.bytes), file.format, place, str(path or file.name))
    print_table(splits)
