"""Lines of a file into texts and labels, format by format.

Texts are not copied where a line holds them as they are: they stay spans of the bytes that were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from foreword.arrays import Bytes, Longs
from foreword.errors import InputError, SettingError
from foreword.text.block import BLOCK_BYTES, Block
from foreword.text.columns import SAMPLE, Column, Columns, field_columns, table_columns
from foreword.text.jsonl import field_names, json_rows
from foreword.text.lines import Lines
from foreword.text.tables import csv_rows, uneven
from foreword.text.utf8 import Errors

Format: TypeAlias = Literal["tsv", "csv", "jsonl", "parquet", "fasttext", "label-first", "folders"]
Tell: TypeAlias = Callable[[str], None]
Batches: TypeAlias = Iterable[Lines]

FASTTEXT = b"__label__"

_TAB = 9


@dataclass(slots=True)
class Agreed:
    """The columns of the files read so far: of tables, and of files in which every row names its fields."""

    columns: Columns | None = None
    fields: tuple[str, str] | None = None


class Example(NamedTuple):
    text: str
    label: str


@dataclass(frozen=True, slots=True)
class LabelledBlock:
    """Some texts, and the label of each."""

    texts: Block
    labels: list[str]


@dataclass(frozen=True, slots=True)
class LabelledReading:
    """How to read.

    format: None tells it by the name of a file or its first line; a folder with folders in it is a folder a label.
    text_column, label_column: a name, or a place counted from 1; None guesses, and tells what.
    header: whether the first line of tsv or csv names the columns; None guesses.
    first_label: of several fastText labels take the first; otherwise they are an error, since a text has one label.
    errors: what is not UTF-8 (or a NUL) is an error, or replaced by U+FFFD.
    block_bytes: how much is read and handed on at a time.
    """

    format: Format | None = None
    text_column: Column | None = None
    label_column: Column | None = None
    header: bool | None = None
    first_label: bool = False
    errors: Errors = "strict"
    block_bytes: int = BLOCK_BYTES

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in get_args(Format):
            raise SettingError(f"format must be one of {', '.join(get_args(Format))}, not {self.format}")
        if self.errors not in get_args(Errors):
            raise SettingError(f"errors must be one of {', '.join(get_args(Errors))}, not {self.errors}")
        if self.block_bytes < 1:
            raise SettingError(f"block_bytes must be at least 1, not {self.block_bytes}")
        if self.text_column is not None and self.text_column == self.label_column:
            raise SettingError(f"column {self.text_column} cannot be both the text and the label")


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a file before it is read.

    name: for messages. tell: hears what is guessed. agreed: what was found of the files before it, so that all files
    of one source are read alike.
    """

    name: str
    reading: LabelledReading
    tell: Tell
    agreed: Agreed

    def line(self, number: int) -> str:
        return f"{self.name}: line {number}"


# --- tabs


def tsv_blocks(batches: Batches, told: Told) -> Iterator[LabelledBlock]:
    """Tabs between columns, and nothing else means anything: quotation marks are text."""
    columns: Columns | None = None
    for lines in (each.without_blank() for each in batches):
        if not len(lines):
            continue
        if columns is None:
            width = lines.data[lines.starts[0] : lines.stops[0]].tolist().count(_TAB) + 1
            cells(lines[:SAMPLE], width, told)
            columns = told_columns([line.decode().split("\t") for line in lines[:SAMPLE]], told)
            lines = lines[1:] if columns.names else lines
        starts, stops = cells(lines, columns.width, told)
        labels = decoded(lines.data, starts[:, columns.label], stops[:, columns.label], lines.numbers, told)
        texts = Block(
            lines.data,
            np.ascontiguousarray(starts[:, columns.text]),
            np.ascontiguousarray(stops[:, columns.text]),
        )
        yield LabelledBlock(texts, labels)


def cells(lines: Lines, width: int, told: Told) -> tuple[Longs, Longs]:
    """Where each column of each line starts and stops: int64 (lines, width) both."""
    tabs = np.flatnonzero(lines.data == _TAB)
    first = np.searchsorted(tabs, lines.starts)
    counts = np.searchsorted(tabs, lines.stops) - first
    wrong = np.flatnonzero(counts != width - 1)
    if len(wrong):
        raise uneven(int(counts[wrong[0]]) + 1, width, told.line(int(lines.numbers[wrong[0]])))
    between = tabs[first[:, None] + np.arange(width - 1)]
    return np.column_stack((lines.starts, between + 1)), np.column_stack((between, lines.stops))


# --- CSV


def csv_blocks(batches: Batches, told: Told) -> Iterator[LabelledBlock]:
    """CSV as Python's ``csv`` reads it: a quoted field may hold line ends."""
    rows = csv_rows(batches, told.name)
    sample = list(islice(rows, SAMPLE))
    if not sample:  # nothing but commas
        return
    columns = told_columns([row for _, row in sample], told)
    texts: list[str] = []
    labels: list[str] = []
    held = 0
    for number, row in chain(sample[1:] if columns.names else sample, rows):
        texts.append(row[columns.text])
        labels.append(labelled(row[columns.label], number, told))
        held += len(texts[-1])
        if held >= told.reading.block_bytes:
            yield LabelledBlock(Block.from_texts(texts), labels)
            texts, labels, held = [], [], 0
    yield LabelledBlock(Block.from_texts(texts), labels)


# --- JSONL


def jsonl_blocks(batches: Batches, first: bytes, number: int, told: Told) -> Iterator[LabelledBlock]:
    text, label = told_fields(field_names(first, told.line(number)), told)
    for lines in batches:
        rows = json_rows(lines, told.name, text, label, told.reading.errors)
        labels = decoded(rows.texts.data, rows.label_starts, rows.label_stops, rows.numbers, told)
        yield LabelledBlock(rows.texts, labels)


# --- labels before the text


def fasttext_blocks(batches: Batches, told: Told) -> Iterator[LabelledBlock]:
    """``__label__x`` before the text, once or several times."""

    def split(line: bytes, number: int) -> tuple[bytes, bytes]:
        labels: list[bytes] = []
        while line.startswith(FASTTEXT):
            label, *rest = line.split(None, 1)
            labels.append(label.removeprefix(FASTTEXT))
            line = rest[0] if rest else b""
        if not labels:
            raise InputError(f"{told.line(number)} has no label: it does not begin with {FASTTEXT.decode()}")
        if len(labels) > 1 and not told.reading.first_label:
            raise InputError(f"{told.line(number)} has {len(labels)} labels, not one: --first-label takes the first")
        if FASTTEXT in line and any(word.startswith(FASTTEXT) for word in line.split()):
            raise InputError(f"{told.line(number)} has a label after its text: labels come first")
        return labels[0], line

    return first_word_blocks(batches, split, told)


def label_first_blocks(batches: Batches, told: Told) -> Iterator[LabelledBlock]:
    """A label, white space, a text."""

    def split(line: bytes, number: int) -> tuple[bytes, bytes]:
        label, *text = line.split(None, 1)
        return label, text[0] if text else b""

    return first_word_blocks(batches, split, told)


def first_word_blocks(
    batches: Batches, split: Callable[[bytes, int], tuple[bytes, bytes]], told: Told
) -> Iterator[LabelledBlock]:
    """``split`` gives a line's label, and its text, which is all the rest of the line."""
    for lines in (each.without_blank() for each in batches):
        found = [split(line.strip(), number) for line, number in zip(lines, lines.numbers.tolist(), strict=True)]
        texts = Block.from_texts([text for _, text in found])
        labels = [
            labelled(label.decode(), number, told)
            for (label, _), number in zip(found, lines.numbers.tolist(), strict=True)
        ]
        yield LabelledBlock(texts, labels)


# --- what all of them need


def told_columns(rows: Sequence[Sequence[str]], told: Told) -> Columns:
    """The columns of a table; a second one has them where the first has, with or without a header of its own."""
    reading, before = told.reading, told.agreed.columns
    if before is not None:
        if len(rows[0]) != before.width:
            raise InputError(f"{told.name}: it has {len(rows[0])} columns, but the files before it {before.width}")
        return before.again(rows[0])
    columns = table_columns(rows, reading.text_column, reading.label_column, reading.header, told.name)
    told.agreed.columns = columns
    if columns.guessed:
        told.tell(columns.described())
    return columns


def told_fields(names: Sequence[str], told: Told) -> tuple[str, str]:
    """The names of the fields with text and label."""
    text, label = told.agreed.fields or (told.reading.text_column, told.reading.label_column)
    fields = field_columns(names, text, label, told.name)
    told.agreed.fields = fields
    if text is None or label is None:
        told.tell(f'texts in "{fields[0]}", labels in "{fields[1]}"')
    return fields


def decoded(data: Bytes, starts: Longs, stops: Longs, numbers: Longs, told: Told) -> list[str]:
    """Labels as strings; there are few, so each is decoded once."""
    view = np.ascontiguousarray(data).data
    known: dict[bytes, str] = {}
    labels: list[str] = []
    for start, stop, number in zip(starts.tolist(), stops.tolist(), numbers.tolist(), strict=True):
        found = bytes(view[start:stop])
        label = known.get(found)
        if label is None:
            label = known[found] = labelled(found.decode(), number, told)
        labels.append(label)
    return labels


def labelled(label: str, number: int, told: Told) -> str:
    """The label without white space around it."""
    stripped = label.strip()
    if not stripped:
        raise InputError(f"{told.line(number)} has no label")
    return stripped
