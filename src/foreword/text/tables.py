"""Rows of CSV and TSV, each with the number of the line it begins on."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from foreword.errors import InputError
from foreword.text.lines import Lines

if TYPE_CHECKING:
    from _csv import Reader

NumberedRow: TypeAlias = tuple[int, list[str]]

_QUOTED = re.compile(r'"[^"]*("|$)')


def csv_rows(batches: Iterable[Lines], name: str) -> Iterator[NumberedRow]:
    """CSV as Python's ``csv`` reads it: a quoted field may hold line ends. Blank rows are skipped.

    Commas, semicolons or tabs: whichever the first line has most of outside quotation marks.
    """
    lines = (f"{line.decode()}\n" for lines in batches for line in lines)
    opening: list[str] = []
    for line in lines:
        opening.append(line)
        if not line.isspace():
            break
    first = opening[-1] if opening else ""
    delimiter = max(",;\t", key=_QUOTED.sub("", first).count)
    reader = csv.reader(chain(opening, lines), delimiter=delimiter, strict=True)
    return _even(_parsed(reader, name), name)


def tsv_rows(batches: Iterable[Lines], name: str) -> Iterator[NumberedRow]:
    """Tabs between columns, and nothing else means anything: quotation marks are text."""
    rows = (
        (number, line.decode().split("\t"))
        for lines in (each.without_blank() for each in batches)
        for number, line in zip(lines.numbers.tolist(), lines, strict=True)
    )
    return _even(rows, name)


def uneven(found: int, width: int, place: str) -> InputError:
    columns = "column" if found == 1 else "columns"
    return InputError(f"{place} has {found} {columns}, not {width} as the first line has")


def _even(rows: Iterable[NumberedRow], name: str) -> Iterator[NumberedRow]:
    """The same rows, all of which have to be as wide as the first."""
    width = 0
    for number, row in rows:
        width = width or len(row)
        if len(row) != width:
            raise uneven(len(row), width, f"{name}: line {number}")
        yield number, row


def _parsed(reader: Reader, name: str) -> Iterator[NumberedRow]:
    while True:
        number = reader.line_num + 1
        try:
            with _long_fields():
                row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{name}: line {number} is not CSV: {error}") from error
        if any(field and not field.isspace() for field in row):
            yield number, row


@contextmanager
def _long_fields() -> Iterator[None]:
    """``csv`` refuses fields over 128 KB unless told, and can be told only for everybody: so only for a moment."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)
