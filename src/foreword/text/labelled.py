"""Labelled texts from files: what a classifier learns from and is measured on.

=============  ======================================================================================
tsv            one row per line, tabs between the columns, nothing quoted: a quotation mark is text
csv            one row per line or, quoted, several; commas, semicolons or tabs between the columns
jsonl          one object per line
parquet        one example per row
fasttext       ``__label__x some text``: labels are the words at the start of a line that begin so
label-first    ``x some text``: the label is the first word
folders        a folder for each label, a file for each text
=============  ======================================================================================

Files are found, decompressed and checked as everywhere (``sources.py``), and streamed. Blank lines are skipped; a
label without a text is an example with an empty text. A line without a label is an error that names the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeAlias, get_args

import numpy as np

from foreword.arrays import Bytes, Longs
from foreword.checks import check_choice, check_numbers
from foreword.errors import InputError, SettingError
from foreword.protocols import Meter
from foreword.text.block import BLOCK_BYTES, Block
from foreword.text.compression import decompressed
from foreword.text.files import Reader, Source, SourceFile, find_files, names_of, opened
from foreword.text.formats import LabelledFormat
from foreword.text.jsonl import field_names, json_rows
from foreword.text.lines import Lines, whole_lines
from foreword.text.parquet import parquet_labelled
from foreword.text.rows import format_of
from foreword.text.sources import no_text
from foreword.text.tables import SAMPLE, Column, Columns, csv_rows, field_columns, table_columns, uneven
from foreword.text.unicode import Errors, valid_utf8

Tell: TypeAlias = Callable[[str], None]
Batches: TypeAlias = Iterable[Lines]

FASTTEXT = b"__label__"
LABEL_SEPARATOR = "\x1f"
"""Between the labels of a text that has several; no fastText label has it."""

_TAB = 9


@dataclass(slots=True)
class SharedColumns:
    """The columns that all files of a source share: of tables, and of files in which every row names its fields."""

    columns: Columns | None = None
    fields: tuple[str, str] | None = None


class Example(NamedTuple):
    """A text and its label."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class LabelledBlock:
    """A block of texts, and the label of each."""

    texts: Block
    labels: list[str]


@dataclass(frozen=True, slots=True)
class LabelledReading:
    """How labelled texts are read.

    format: None takes it from a file's name or first line; a folder with folders in it has one folder per label.
    text_column, label_column: a name, or a number counted from 1; None guesses, and reports the guess.
    header: whether the first line of tsv or csv names the columns; None guesses.
    first_label: whether the first of several fastText labels is taken; otherwise several are an error.
    errors: whether bytes that are not UTF-8 (or are NUL) are an error, or are replaced by U+FFFD.
    block_bytes: how much is read and emitted at a time.
    all_labels: whether several fastText labels are kept, as one with ``LABEL_SEPARATOR`` between them.
    """

    format: LabelledFormat | None = None
    text_column: Column | None = None
    label_column: Column | None = None
    header: bool | None = None
    first_label: bool = False
    errors: Errors = "strict"
    block_bytes: int = BLOCK_BYTES
    all_labels: bool = False

    def __post_init__(self) -> None:
        check_choice(self, "format", (None, *get_args(LabelledFormat)))
        check_choice(self, "errors", get_args(Errors))
        check_numbers(self, "block_bytes", whole=True, least=1)
        if self.text_column is not None and self.text_column == self.label_column:
            raise SettingError(f"column {self.text_column} cannot be both the text and the label")


@dataclass(frozen=True, slots=True)
class LabelledFile:
    """A file that is being read.

    name: for messages. tell: called with every guess. shared: what the files before it have settled, so that all files
    of one source are read alike.
    """

    name: str
    reading: LabelledReading
    tell: Tell
    shared: SharedColumns

    def line(self, number: int) -> str:
        """Return the name of a line, for messages."""
        return f"{self.name}: line {number}"


# --- TSV


def tsv_blocks(batches: Batches, file: LabelledFile) -> Iterator[LabelledBlock]:
    """Yield examples from lines with tabs between the columns. Quotation marks are text."""
    columns: Columns | None = None
    for lines in (each.without_blank() for each in batches):
        if not len(lines):
            continue
        if columns is None:
            width = lines.data[lines.starts[0] : lines.stops[0]].tolist().count(_TAB) + 1
            cells(lines[:SAMPLE], width, file)
            columns = shared_columns([line.decode().split("\t") for line in lines[:SAMPLE]], file)
            lines = lines[1:] if columns.names else lines
        starts, stops = cells(lines, columns.width, file)
        labels = decoded(lines.data, starts[:, columns.label], stops[:, columns.label], lines.numbers, file)
        texts = Block(
            lines.data,
            np.ascontiguousarray(starts[:, columns.text]),
            np.ascontiguousarray(stops[:, columns.text]),
        )
        yield LabelledBlock(texts, labels)


def cells(lines: Lines, width: int, file: LabelledFile) -> tuple[Longs, Longs]:
    """Return where each column of each line starts and stops: int64 (lines, width) both."""
    tabs = np.flatnonzero(lines.data == _TAB)
    first = np.searchsorted(tabs, lines.starts)
    counts = np.searchsorted(tabs, lines.stops) - first
    wrong = np.flatnonzero(counts != width - 1)
    if len(wrong):
        raise uneven(int(counts[wrong[0]]) + 1, width, file.line(int(lines.numbers[wrong[0]])))
    between = tabs[first[:, None] + np.arange(width - 1)]
    return np.column_stack((lines.starts, between + 1)), np.column_stack((between, lines.stops))


# --- CSV


def csv_blocks(batches: Batches, file: LabelledFile) -> Iterator[LabelledBlock]:
    """Yield examples from CSV as Python's ``csv`` reads it: a quoted field may hold line ends."""
    rows = csv_rows(batches, file.name)
    sample = list(islice(rows, SAMPLE))
    if not sample:  # nothing but commas
        return
    columns = shared_columns([row for _, row in sample], file)
    texts: list[str] = []
    labels: list[str] = []
    size = 0
    for number, row in chain(sample[1:] if columns.names else sample, rows):
        texts.append(row[columns.text])
        labels.append(labelled(row[columns.label], number, file))
        size += len(texts[-1])
        if size >= file.reading.block_bytes:
            yield LabelledBlock(Block.from_texts(texts), labels)
            texts, labels, size = [], [], 0
    yield LabelledBlock(Block.from_texts(texts), labels)


# --- JSONL


def jsonl_blocks(batches: Batches, first: bytes, number: int, file: LabelledFile) -> Iterator[LabelledBlock]:
    """Yield examples from JSONL. first, number: the first line that is not blank, which names the fields."""
    text, label = shared_fields(field_names(first, file.line(number)), file)
    for lines in batches:
        rows = json_rows(lines, file.name, text, label, file.reading.errors)
        there, texts = rows.present, rows.texts
        labels = decoded(texts.data, rows.label_starts[there], rows.label_stops[there], lines.numbers[there], file)
        yield LabelledBlock(Block(texts.data, texts.starts[there], texts.stops[there]), labels)


# --- labels before the text


def fasttext_blocks(batches: Batches, file: LabelledFile) -> Iterator[LabelledBlock]:
    """Yield examples from lines with ``__label__x`` before the text, once or several times."""

    def split(line: bytes, number: int) -> tuple[bytes, bytes]:
        labels: list[bytes] = []
        while line.startswith(FASTTEXT):
            label, *rest = line.split(None, 1)
            labels.append(label.removeprefix(FASTTEXT))
            line = rest[0] if rest else b""
        if not labels:
            raise InputError(f"{file.line(number)} has no label: it does not begin with {FASTTEXT.decode()}")
        several = file.reading.all_labels and not file.reading.first_label
        if len(labels) > 1 and not (several or file.reading.first_label):
            raise InputError(f"{file.line(number)} has {len(labels)} labels, not one: --first-label takes the first")
        if FASTTEXT in line and any(word.startswith(FASTTEXT) for word in line.split()):
            raise InputError(f"{file.line(number)} has a label after its text: labels come first")
        return LABEL_SEPARATOR.encode().join(labels) if several else labels[0], line

    return first_word_blocks(batches, split, file)


def label_first_blocks(batches: Batches, file: LabelledFile) -> Iterator[LabelledBlock]:
    """Yield examples from lines of a label, white space and a text."""

    def split(line: bytes, number: int) -> tuple[bytes, bytes]:
        label, *text = line.split(None, 1)
        return label, text[0] if text else b""

    return first_word_blocks(batches, split, file)


def first_word_blocks(
    batches: Batches, split: Callable[[bytes, int], tuple[bytes, bytes]], file: LabelledFile
) -> Iterator[LabelledBlock]:
    """Yield examples from lines of which ``split`` returns the label and the text."""
    for lines in (each.without_blank() for each in batches):
        found = [split(line.strip(), number) for line, number in zip(lines, lines.numbers.tolist(), strict=True)]
        texts = Block.from_texts([text for _, text in found])
        labels = [
            labelled(label.decode(), number, file)
            for (label, _), number in zip(found, lines.numbers.tolist(), strict=True)
        ]
        yield LabelledBlock(texts, labels)


# --- shared by the formats


def shared_columns(rows: Sequence[Sequence[str]], file: LabelledFile) -> Columns:
    """Return the columns of a table: those of the files before it, or else guessed from its first rows."""
    reading, before = file.reading, file.shared.columns
    if before is not None:
        if len(rows[0]) != before.width:
            raise InputError(f"{file.name}: it has {len(rows[0])} columns, but the files before it {before.width}")
        return before.again(rows[0])
    columns = table_columns(rows, reading.text_column, reading.label_column, reading.header, file.name)
    file.shared.columns = columns
    if columns.guessed:
        file.tell(columns.described())
    return columns


def shared_fields(names: Sequence[str], file: LabelledFile) -> tuple[str, str]:
    """Return the names of the fields with text and label."""
    text, label = file.shared.fields or (file.reading.text_column, file.reading.label_column)
    fields = field_columns(names, text, label, file.name)
    file.shared.fields = fields
    if text is None or label is None:
        file.tell(f'texts in "{fields[0]}", labels in "{fields[1]}"')
    return fields


def decoded(data: Bytes, starts: Longs, stops: Longs, numbers: Longs, file: LabelledFile) -> list[str]:
    """Return the labels as strings; there are few different ones, so each is decoded once."""
    view = np.ascontiguousarray(data).data
    known: dict[bytes, str] = {}
    labels: list[str] = []
    for start, stop, number in zip(starts.tolist(), stops.tolist(), numbers.tolist(), strict=True):
        found = bytes(view[start:stop])
        label = known.get(found)
        if label is None:
            label = known[found] = labelled(found.decode(), number, file)
        labels.append(label)
    return labels


def labelled(label: str, number: int, file: LabelledFile) -> str:
    """Return the label without white space around it; raise an error if nothing is left."""
    stripped = label.strip()
    if not stripped:
        raise InputError(f"{file.line(number)} has no label")
    return stripped


# --- files and folders

GUESSED = LabelledReading()


def read_labelled(
    source: Source, reading: LabelledReading = GUESSED, *, tell: Tell | None = None, meter: Meter | None = None
) -> Iterator[Example]:
    """Yield texts with their labels one by one: slow and simple."""
    blocks = read_labelled_blocks(source, reading, tell=tell, meter=meter)
    return (example for block in blocks for example in map(Example, block.texts.strings(), block.labels))


def read_labelled_blocks(
    source: Source, reading: LabelledReading = GUESSED, *, tell: Tell | None = None, meter: Meter | None = None
) -> Iterator[LabelledBlock]:
    """Yield texts with their labels, one block at a time.

    Files are found at once, so that a wrong name is reported here. ``tell`` is called with a line for every guess,
    ``meter`` with the bytes read. A source without any example is an error.
    """
    names = names_of(source)
    tell = tell or (lambda line: None)
    if reading.format == "folders" or (reading.format is None and any(map(_holds_folders, names))):
        files = [found for name in names for found in _in_class_folders(name, tell)]
        return _not_empty(_folder_blocks(files, reading, meter), names)
    return _not_empty(_file_blocks(find_files(source), reading, tell, meter), names)


def _not_empty(blocks: Iterator[LabelledBlock], names: list[str]) -> Iterator[LabelledBlock]:
    empty = True
    for block in blocks:
        if block.labels:
            empty = False
            yield block
    if empty:
        raise no_text(names, "labelled text")


# --- a folder for each label


def _holds_folders(name: str) -> bool:
    folder = Path(name)
    try:
        return folder.is_dir() and any(each.is_dir() and not each.name.startswith(".") for each in folder.iterdir())
    except (OSError, ValueError):  # find_files says what is wrong with it
        return False


def _in_class_folders(name: str, tell: Tell) -> list[tuple[SourceFile, str]]:
    """Return the files, and the label of each: the name of its folder."""
    start = name.rstrip("/") + "/"
    split = [(file, file.name.removeprefix(start).partition("/")) for file in find_files(name)]
    found = [(file, label) for file, (label, slash, _) in split if slash and file.name.startswith(start)]
    if not found:
        raise InputError(f"{name}: no folders of texts in it; each label should have one")
    outside = len(split) - len(found)
    left_out = f"; {outside} files next to the folders are left out" if outside else ""
    tell(f"{name}: its {len({label for _, label in found})} folders are the labels, each file a text{left_out}")
    return found


def _folder_blocks(
    files: list[tuple[SourceFile, str]], reading: LabelledReading, meter: Meter | None
) -> Iterator[LabelledBlock]:
    texts: list[bytes] = []
    labels: list[str] = []
    done = size = 0
    total = sum(file.size or 0 for file, _ in files)
    for file, label in files:
        with opened(file) as reader:
            chunks = valid_utf8(decompressed(reader, reading.block_bytes), file.name, reading.errors)
            texts.append(b"".join(chunk.data.tobytes() for chunk in chunks))
            done += reader.taken
        labels.append(label)
        size += len(texts[-1])
        if size >= reading.block_bytes:
            if meter:
                meter("reading", done, total)
            yield LabelledBlock(Block.from_texts(texts), labels)
            texts, labels, size = [], [], 0
    yield LabelledBlock(Block.from_texts(texts), labels)


# --- one file after another


def _file_blocks(
    files: list[SourceFile], reading: LabelledReading, tell: Tell, meter: Meter | None
) -> Iterator[LabelledBlock]:
    sizes = [file.size for file in files]
    total = None if None in sizes else sum(size for size in sizes if size)
    before = 0
    guesses: set[str] = set()
    shared = SharedColumns()
    for file in files:

        def once(guess: str, name: str = file.name) -> None:
            """Report a guess for the first of the files that share it."""
            if guess not in guesses:
                tell(f"{name}: {guess}")
            guesses.add(guess)

        with opened(file) as reader:
            for block in _blocks(reader, LabelledFile(file.name, reading, once, shared)):
                if meter:
                    meter("reading", before + reader.taken, total)
                yield block
            before += reader.taken


def _blocks(reader: Reader, file: LabelledFile) -> Iterator[LabelledBlock]:
    reading = file.reading
    format = reading.format or _format_by_name(reader.name)
    if format == "parquet":
        return _parquet_blocks(reader, file)
    chunks = valid_utf8(decompressed(reader, reading.block_bytes), reader.name, reading.errors)
    batches = whole_lines(chunks, name=reader.name)
    opening = _up_to_text(batches)
    if not opening:
        return iter(())
    first = opening[-1].without_blank()[:1]
    line, number = next(iter(first)), int(first.numbers[0])
    if format is None:
        format = _format_by_line(line, reader.name)
        file.tell(f"read as {format}")
    batches = chain(opening, batches)
    match format:
        case "jsonl":
            return jsonl_blocks(batches, line, number, file)
        case "csv":
            return csv_blocks(batches, file)
        case "tsv":
            return tsv_blocks(batches, file)
        case "fasttext":
            return fasttext_blocks(batches, file)
        case _:
            return label_first_blocks(batches, file)


def _up_to_text(batches: Iterator[Lines]) -> list[Lines]:
    """Return the first batches, up to the first line that is not blank; none if there is no such line."""
    read: list[Lines] = []
    for lines in batches:
        read.append(lines)
        if len(lines.without_blank()):
            return read
    return []


def _format_by_name(name: str) -> LabelledFormat | None:
    found = format_of(name)
    return None if found == "text" else found


def _format_by_line(line: bytes, name: str) -> LabelledFormat:
    """Return the format that the first line of a file stands for."""
    if line.lstrip().startswith(FASTTEXT):
        return "fasttext"
    if line.lstrip().startswith(b"{"):
        return "jsonl"
    if b"\t" in line:
        return "tsv"
    raise InputError(
        f"{name}: where are its labels? Its first line has neither a tab nor {FASTTEXT.decode()}; "
        "--format says what it is, such as csv or label-first"
    )


def _parquet_blocks(reader: Reader, file: LabelledFile) -> Iterator[LabelledBlock]:
    reading = file.reading
    row = 1
    for texts, labels in parquet_labelled(
        reader, lambda names: shared_fields(names, file), reading.errors, reading.block_bytes
    ):
        yield LabelledBlock(texts, [labelled(label, number, file) for number, label in enumerate(labels, row)])
        row += len(labels)
