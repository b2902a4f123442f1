"""Results on standard output: UTF-8 whatever the locale, JSON for programs, tables for people."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.table import Table

    from foreword.protocols import Json

WIDTH_OF_FILES = 120
"""Columns where the output is not a terminal and COLUMNS is not set."""


def write_text(text: str) -> None:
    """Write text without adding a line end."""
    # Half of a surrogate pair, which UTF-8 cannot encode, is escaped as in JSON and Python.
    write_bytes(text.encode("utf-8", "backslashreplace"))


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output, all of them."""
    rest = memoryview(data)
    while rest:  # with PYTHONUNBUFFERED there is no buffer, and a pipe may take a part only
        rest = rest[sys.stdout.buffer.write(rest) :]


def write_json(value: Json | dict[str, Any]) -> None:
    """Write a value to standard output as one line of JSON."""
    write_text(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")


def flush() -> None:
    """Flush standard output: a reader may be waiting for each answer."""
    sys.stdout.buffer.flush()


def print_message(line: str) -> None:
    """Print a line for people, which goes to standard error."""
    sys.stderr.write(f"{line}\n")


@contextmanager
def shown_warnings(quiet: bool = False) -> Iterator[None]:
    """Print the warnings of the package as messages."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for each in caught:
        if not quiet:
            print_message(f"foreword: warning: {each.message}")


def print_table(table: Table) -> None:
    """Print a table to standard output."""
    from rich.console import Console

    # Rich asks all three for the width; a program that runs us has none of them on a terminal.
    seen = any(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)) or "COLUMNS" in os.environ
    console = Console(highlight=False, markup=False, emoji=False, width=None if seen else WIDTH_OF_FILES)
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    # Rich fills every line up with blanks, which nobody wants in a file.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def print_paragraph(text: str) -> None:
    """Print running text to standard output, its lines broken at the width of the terminal, after a blank line."""
    from shutil import get_terminal_size
    from textwrap import fill

    if text:
        sys.stdout.flush()  # tables are written through the text layer, which must come first
        width = min(WIDTH_OF_FILES, get_terminal_size((WIDTH_OF_FILES, 24)).columns)
        write_text(f"\n{fill(text, width, break_long_words=False, break_on_hyphens=False)}\n")


def print_facts(facts: dict[str, str], justify: Literal["left", "right"] = "left") -> None:
    """Print names and values, one pair per line."""
    from rich.table import Table

    table = Table.grid(padding=(0, 3))
    table.add_column()
    table.add_column(justify=justify, overflow="fold")
    for name, value in facts.items():
        table.add_row(name, value)
    print_table(table)


def plain_table(*columns: str, numbers: tuple[str, ...] = (), title: str | None = None) -> Table:
    """Return an empty table; ``numbers``: the columns that are aligned to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=title and Text(title), title_justify="left", pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    return table
