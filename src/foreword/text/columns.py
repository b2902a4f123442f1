"""Which column of a table holds the texts, which the labels, and whether its first row is a header.

What the user says counts; what they leave open is guessed from names, and where there are none from the first rows:
texts are long, and labels come again and again. A guess is told, so that a wrong one is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from foreword.errors import InputError
from foreword.text.jsonl import listed

Column: TypeAlias = str | int
"""A column by its name, or by its place, counted from 1."""

TEXT_NAMES = ("text", "sentence", "review", "message", "document", "content", "body", "comment", "tweet", "question")
LABEL_NAMES = ("label", "labels", "class", "category", "target", "sentiment", "topic", "intent", "tag", "y")
"""Column names that say what they hold, the clearest first."""

SAMPLE = 1000
"""How many rows are looked at."""

LEAST_FOR_HEADER = 5
"""With fewer rows nothing can be told of a first row whose names say nothing."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Places, counted from 0. names: the header, if there is one. guessed: whether anything was not the user's word."""

    text: int
    label: int
    names: tuple[str, ...] | None
    width: int
    guessed: bool

    def again(self, first: Sequence[str]) -> Columns:
        """The columns of another file of the same make, given its first row."""
        names = tuple(field.strip() for field in first)
        if self.names is None or sorted(names) != sorted(self.names):
            return replace(self, names=None)
        text, label = names.index(self.names[self.text]), names.index(self.names[self.label])
        return replace(self, text=text, label=label, names=names)

    def described(self) -> str:
        """For a person: the text in column 2 "review", the labels in column 1 "class"."""
        header = "" if self.names is None else "; the first line is a header"
        return f"texts in column {self._called(self.text)}, labels in column {self._called(self.label)}{header}"

    def _called(self, place: int) -> str:
        name = "" if self.names is None else self.names[place]
        return f'{place + 1} "{name}"' if name else str(place + 1)


def table_columns(
    rows: Sequence[Sequence[str]], text: Column | None, label: Column | None, header: bool | None, name: str
) -> Columns:
    """The columns of a table, told from its first rows; ``name`` is the file's."""
    first = [field.strip() for field in rows[0]]
    width = len(first)
    if width < 2:
        raise InputError(f"{name}: its first line has one column, but a text and a label take two")
    if header is None:
        header = True if isinstance(text, str) or isinstance(label, str) or _known(first) else None
    names = first if header else None
    text_at, label_at = place_of(text, names, width, name), place_of(label, names, width, name)
    body = rows[1:SAMPLE] if header else rows[:SAMPLE]
    if names is not None:
        text_at = _named(names, TEXT_NAMES, label_at) if text_at is None else text_at
        label_at = _named(names, LABEL_NAMES, text_at) if label_at is None else label_at
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
    """Where the texts are in a table that need not have labels, and its header, if it has one."""
    first = [field.strip() for field in rows[0]]
    if header is None:
        header = isinstance(text, str) or _known(first)
    names = first if header else None
    place = place_of(text, names, len(first), name)
    if place is None and names is not None:
        place = _named(names, TEXT_NAMES, None)
    body = rows[1:SAMPLE] if header else rows[:SAMPLE]
    place = _longest(body, len(first), None) if place is None else place
    return place, None if names is None else tuple(names)


def field_columns(names: Sequence[str], text: Column | None, label: Column | None, name: str) -> tuple[str, str]:
    """The names of the fields that hold text and label, where every row has names."""
    text_at, label_at = (place_of(column, names, len(names), name) for column in (text, label))
    text_at = _named(names, TEXT_NAMES, label_at) if text_at is None else text_at
    label_at = _named(names, LABEL_NAMES, text_at) if label_at is None else label_at
    if text_at is None or label_at is None:
        what = "text" if text_at is None else "label"
        raise InputError(f"{name}: which field is the {what}? Say it by --{what}-column (it has: {listed(names)})")
    if text_at == label_at:
        raise InputError(f'{name}: "{names[text_at]}" cannot be both the text and the label')
    return names[text_at], names[label_at]


def place_of(column: Column | None, names: Sequence[str] | None, width: int, name: str) -> int | None:
    """Where a column is that the user has named; None if they have not."""
    if column is None:
        return None
    if isinstance(column, int):
        if not 1 <= column <= width:
            raise InputError(f"{name}: no column {column}: it has {width}")
        return column - 1
    if names is None or column not in names:
        told = f"it has: {listed(names)}" if names else "it has no header"
        raise InputError(f'{name}: no column "{column}" ({told})')
    return list(names).index(column)


def _known(names: Sequence[str]) -> bool:
    lowered = {name.lower() for name in names}
    return not lowered.isdisjoint(TEXT_NAMES) or not lowered.isdisjoint(LABEL_NAMES)


def _named(names: Sequence[str], wanted: Sequence[str], taken: int | None) -> int | None:
    lowered = [name.lower() for name in names]
    places = [lowered.index(name) for name in wanted if name in lowered]
    return next((place for place in places if place != taken), None)


def _longest(rows: Sequence[Sequence[str]], width: int, taken: int | None) -> int:
    """The column with most letters in it; of equal ones the last, since labels mostly come first."""
    sizes = [sum(len(row[column]) for row in rows) for column in range(width)]
    return max((column for column in range(width) if column != taken), key=lambda column: (sizes[column], column))


def _most_repeated(rows: Sequence[Sequence[str]], width: int, taken: int) -> int:
    """The column with the fewest different values, but more than one if there is such a one."""
    kinds = [len({row[column] for row in rows}) for column in range(width)]
    return min(
        (column for column in range(width) if column != taken), key=lambda column: (kinds[column] < 2, kinds[column])
    )


def _looks_like_header(rows: Sequence[Sequence[str]], label: int) -> bool:
    """Whether the first label comes once and every other one again: then it is the name of a column."""
    counts = Counter(row[label].strip() for row in rows)
    first = rows[0][label].strip()
    others = [count for value, count in counts.items() if value != first]
    return len(rows) >= LEAST_FOR_HEADER and counts[first] == 1 and bool(others) and min(others) > 1
