"""Rows of CSV and TSV, each with the number of its first line, and which of their columns hold text and label.

The columns that the user names are used; the others are guessed from the header, or from the first rows where there is
none: texts are long, and labels repeat. Guesses are reported, so that a wrong one is seen.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from foreword.errors import InputError
from foreword.text.lines import Lines

if TYPE_CHECKING:
    from _csv import Reader as CsvReader


from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from foreword.text.jsonl import listed

NumberedRow: TypeAlias = tuple[int, list[str]]

_QUOTED = re.compile(r'"[^"]*("|$)')


def csv_rows(batches: Iterable[Lines], name: str) -> Iterator[NumberedRow]:
    """Yield rows of CSV as Python's ``csv`` reads it: a quoted field may hold line ends. Blank rows are skipped.

    The delimiter is a comma, a semicolon or a tab: the most frequent one in the first line, outside quotation marks.
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
    return _check_widths(_parsed(reader, name), name)


def tsv_rows(batches: Iterable[Lines], name: str) -> Iterator[NumberedRow]:
    """Yield rows with tabs between the columns. Quotation marks are text."""
    rows = (
        (number, line.decode().split("\t"))
        for lines in (each.without_blank() for each in batches)
        for number, line in zip(lines.numbers.tolist(), lines, strict=True)
    )
    return _check_widths(rows, name)


def uneven(found: int, width: int, place: str) -> InputError:
    """Return the error that a row has another number of columns than the first."""
    columns = "column" if found == 1 else "columns"
    return InputError(f"{place} has {found} {columns}, not {width} as the first line has")


def _check_widths(rows: Iterable[NumberedRow], name: str) -> Iterator[NumberedRow]:
    """Yield the same rows, all of which must be as wide as the first."""
    width = 0
    for number, row in rows:
        width = width or len(row)
        if len(row) != width:
            raise uneven(len(row), width, f"{name}: line {number}")
        yield number, row


def _parsed(reader: CsvReader, name: str) -> Iterator[NumberedRow]:
    before = csv.field_size_limit()
    while True:
        number = reader.line_num + 1
        # ``csv`` refuses fields over 128 KB, and its limit belongs to the whole process: it is raised for a moment.
        csv.field_size_limit(2**31 - 1)
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{name}: line {number} is not CSV: {error}") from error
        finally:
            csv.field_size_limit(before)
        if any(field and not field.isspace() for field in row):
            yield number, row


# --- which column is which

Column: TypeAlias = str | int
"""A column by its name, or by its number, counted from 1."""

TEXT_NAMES = ("text", "sentence", "review", "message", "document", "content", "body", "comment", "tweet", "question")
LABEL_NAMES = ("label", "labels", "class", "category", "target", "sentiment", "topic", "intent", "tag", "y")
"""Usual names of the columns, the clearest first."""

SAMPLE = 1000
"""Rows from which columns are guessed."""

LEAST_FOR_HEADER = 5
"""Rows without which a header with unusual names is not recognised."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table.

    text, label: their indices, from 0. names: the header, if there is one. guessed: whether any of it was guessed.
    """

    text: int
    label: int
    names: tuple[str, ...] | None
    width: int
    guessed: bool

    def again(self, first: Sequence[str]) -> Columns:
        """Return the columns of another file of the same kind, given its first row."""
        names = tuple(field.strip() for field in first)
        if self.names is None or sorted(names) != sorted(self.names):
            return replace(self, names=None)
        text, label = names.index(self.names[self.text]), names.index(self.names[self.label])
        return replace(self, text=text, label=label, names=names)

    def described(self) -> str:
        """Describe the columns: texts in column 2 "review", labels in column 1 "class"."""
        header = "" if self.names is None else "; the first line is a header"
        return f"texts in column {self._called(self.text)}, labels in column {self._called(self.label)}{header}"

    def _called(self, index: int) -> str:
        name = "" if self.names is None else self.names[index]
        return f'{index + 1} "{name}"' if name else str(index + 1)


def table_columns(
    rows: Sequence[Sequence[str]], text: Column | None, label: Column | None, header: bool | None, name: str
) -> Columns:
    """Return the columns of a table, given its first rows; ``name`` is the file's."""
    first = [field.strip() for field in rows[0]]
    width = len(first)
    if width < 2:
        raise InputError(f"{name}: its first line has one column, but a text and a label take two")
    if header is None:
        header = True if isinstance(text, str) or isinstance(label, str) or _has_usual_name(first) else None
    names = first if header else None
    text_at, label_at = column_index(text, names, width, name), column_index(label, names, width, name)
    body = rows[1:SAMPLE] if header else rows[:SAMPLE]
    if names is not None:
        text_at = _find_name(names, TEXT_NAMES, label_at) if text_at is None else text_at
        label_at = _find_name(names, LABEL_NAMES, text_at) if label_at is None else label_at
    text_at = _longest(body, width, label_at) if text_at is None else text_at
    label_at = _most_repeated(body, width, text_at) if label_at is None else label_at
    if text_at == label_at:
        raise InputError(f"{name}: column {text_at + 1} cannot be both the text and the label")
    guessed = text is None or label is None
    if header is None and _looks_like_header(rows[:SAMPLE], label_at):
        names, guessed = first, True
    return Columns(text_at, label_at, None if names is None else tuple(names), width, guessed)


def text_column(
    rows: Sequence[Sequence[str]], text: Column | None, header: bool | None, name: str
) -> tuple[int, tuple[str, ...] | None]:
    """Return the column of the texts in a table that need not have labels, and its header, if it has one."""
    first = [field.strip() for field in rows[0]]
    if header is None:
        header = isinstance(text, str) or _has_usual_name(first)
    names = first if header else None
    index = column_index(text, names, len(first), name)
    if index is None and names is not None:
        index = _find_name(names, TEXT_NAMES, None)
    body = rows[1:SAMPLE] if header else rows[:SAMPLE]
    index = _longest(body, len(first), None) if index is None else index
    return index, None if names is None else tuple(names)


def field_columns(names: Sequence[str], text: Column | None, label: Column | None, name: str) -> tuple[str, str]:
    """Return the names of the fields that hold text and label, where every row has names."""
    text_at, label_at = (column_index(column, names, len(names), name) for column in (text, label))
    text_at = _find_name(names, TEXT_NAMES, label_at) if text_at is None else text_at
    label_at = _find_name(names, LABEL_NAMES, text_at) if label_at is None else label_at
    if text_at is None or label_at is None:
        what = "text" if text_at is None else "label"
        raise InputError(f"{name}: which field is the {what}? Say it by --{what}-column (it has: {listed(names)})")
    if text_at == label_at:
        raise InputError(f'{name}: "{names[text_at]}" cannot be both the text and the label')
    return names[text_at], names[label_at]


def column_index(column: Column | None, names: Sequence[str] | None, width: int, name: str) -> int | None:
    """Return the index of a column that the user has named; None if they have not."""
    if column is None:
        return None
    if isinstance(column, int):
        if not 1 <= column <= width:
            raise InputError(f"{name}: no column {column}: it has {width}")
        return column - 1
    if names is None or column not in names:
        known = f"it has: {listed(names)}" if names else "it has no header"
        raise InputError(f'{name}: no column "{column}" ({known})')
    return list(names).index(column)


def _has_usual_name(names: Sequence[str]) -> bool:
    lowered = {name.lower() for name in names}
    return not lowered.isdisjoint(TEXT_NAMES) or not lowered.isdisjoint(LABEL_NAMES)


def _find_name(names: Sequence[str], wanted: Sequence[str], taken: int | None) -> int | None:
    lowered = [name.lower() for name in names]
    found = [lowered.index(name) for name in wanted if name in lowered]
    return next((index for index in found if index != taken), None)


def _longest(rows: Sequence[Sequence[str]], width: int, taken: int | None) -> int:
    """Return the column with the most letters; of equal ones the last, since labels mostly come first."""
    sizes = [sum(len(row[column]) for row in rows) for column in range(width)]
    return max((column for column in range(width) if column != taken), key=lambda column: (sizes[column], column))


def _most_repeated(rows: Sequence[Sequence[str]], width: int, taken: int) -> int:
    """Return the column with the fewest different values, but more than one if there is such a column."""
    kinds = [len({row[column] for row in rows}) for column in range(width)]
    return min(
        (column for column in range(width) if column != taken), key=lambda column: (kinds[column] < 2, kinds[column])
    )


def _looks_like_header(rows: Sequence[Sequence[str]], label: int) -> bool:
    """Return whether the first label occurs once and every other one repeats: then it names the column."""
    counts = Counter(row[label].strip() for row in rows)
    first = rows[0][label].strip()
    others = [count for value, count in counts.items() if value != first]
    return len(rows) >= LEAST_FOR_HEADER and counts[first] == 1 and bool(others) and min(others) > 1
