"""Rows of files, one stream for every format: text, JSONL, CSV, TSV and Parquet, compressed or remote.

Every row has a text and fields; a batch of rows also has what the file holds of them: lines of bytes, or an Arrow
record batch. Where a format has blank lines, they are rows too, with an empty text, so that every line of the input
can have its answer on the same line of the output.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import Any, Literal, Protocol

import numpy as np

from foreword.arrays import Bools, Longs
from foreword.errors import InputError
from foreword.text.block import BLOCK_BYTES, Block
from foreword.text.compression import decompressed, without_suffix
from foreword.text.files import Chunk, Reader, Source, find_files, opened
from foreword.text.formats import RowFormat
from foreword.text.jsonl import json_rows
from foreword.text.lines import Lines, whole_lines
from foreword.text.parquet import ParquetRows, parquet_opened
from foreword.text.strict_json import SHORT, check_json_size
from foreword.text.tables import SAMPLE, Column, csv_rows, text_column, tsv_rows
from foreword.text.unicode import Errors, blank, valid_utf8

SUFFIXES: dict[str, RowFormat] = {
    "": "text",
    ".txt": "text",
    ".text": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
}
"""The format that a file's suffix stands for. Many corpora call their JSONL ``.json.gz``."""

TEXT_FIELD = "text"

PAGE_SHARE = 3
"""How many times the longest row a page of Parquet may be: it is in memory packed, unpacked and in part decoded."""


def format_of(name: str) -> RowFormat | None:
    """Return the format that a file's name stands for, whatever it is compressed by; None if the suffix is unknown."""
    return SUFFIXES.get(PurePath(without_suffix(name)).suffix.lower())


@dataclass(frozen=True, slots=True)
class RowReading:
    """How rows are read.

    field: the field or column of the text; None is "text", or in CSV and TSV a guess.
    format: None takes it from the file's name; a suffix that is not known is text.
    tables: whether CSV and TSV are read as tables, or as lines of text.
    header: whether the first line of CSV or TSV names the columns; None guesses.
    longest: a longer row is an error; None is no limit.
    """

    field: Column | None = None
    format: RowFormat | None = None
    errors: Errors = "strict"
    tables: bool = True
    header: bool | None = None
    longest: int | None = None


class RowBatch(Protocol):
    """A batch of consecutive rows of a file."""

    @property
    def texts(self) -> Block:
        """Return the text of each row, empty where it has none."""
        ...

    @property
    def present(self) -> Bools:
        """Return which rows are not blank lines."""
        ...

    def __len__(self) -> int: ...

    def fields(self) -> list[dict[str, Any]]:
        """Return the fields of each row; a blank line of JSONL has none."""
        ...

    def values(self, field: str) -> list[Any]:
        """Return the value of one field in each row, None where there is none."""
        ...


def read_rows(source: Source, reading: RowReading) -> Iterator[RowBatch]:
    """Yield the rows of files, folders, globs, ``-`` or addresses in batches, from standard input as lines arrive.

    Files are found at once, so that a wrong name is reported here.
    """
    files = find_files(source, prompt=reading.format != "parquet")

    def batches() -> Iterator[RowBatch]:
        for file in files:
            with opened(file) as reader:
                yield from rows_from(reader, reading)

    return batches()


def rows_from(reader: Reader, reading: RowReading, number: int = 1, offset: int = 0) -> Iterator[RowBatch]:
    """Yield the rows of an open file. number, offset: of its first line and byte in the file they are part of."""
    format = reading.format or format_of(reader.name) or "text"
    if format == "parquet":
        return _parquet_rows(reader, str(reading.field or TEXT_FIELD), reading)
    if format in ("csv", "tsv") and reading.tables:
        return _table_rows(reader, format, reading)
    return _line_rows(reader, "jsonl" if format == "jsonl" else "text", reading, number, offset)


# --- lines: text and JSONL


@dataclass(frozen=True, slots=True)
class LineRows:
    """Rows that are lines of text or JSONL.

    lines: the bytes of the file, without line ends; texts: the text of each, in other bytes where it is unescaped.
    """

    lines: Lines
    texts: Block
    present: Bools
    format: Literal["text", "jsonl"]
    name: str
    field: str

    def __len__(self) -> int:
        return len(self.lines)

    def fields(self) -> list[dict[str, Any]]:
        """Return the objects of JSONL, or the line of text under the name of the field."""
        if self.format == "text":
            return [{self.field: line} for line in self.lines.strings()]
        self._check_long(self.lines.starts, self.lines.stops)
        return [json.loads(line) if there else {} for line, there in zip(self.lines, self.present, strict=True)]

    def values(self, field: str) -> list[Any]:
        """Return the value of one field in each row, None where there is none, without parsing the others."""
        if self.format == "text":
            if field != self.field:
                raise InputError(f'{self.name}: lines of text have no field "{field}"')
            return list(self.lines.strings())
        from foreword.text.kernels import find_value

        lines, spans = self.lines, np.empty((len(self), 2), np.int64)
        find_value(lines.data, lines.starts, lines.stops, np.frombuffer(field.encode(), np.uint8), spans)
        unfound = spans[:, 0] < 0  # the whole line is parsed
        spans[unfound] = np.stack((lines.starts, lines.stops), axis=1)[unfound]
        self._check_long(spans[:, 0], spans[:, 1])
        view = np.ascontiguousarray(lines.data).data
        found: list[Any] = [json.loads(bytes(view[start:stop])) if stop else None for start, stop in spans.tolist()]
        for line in np.flatnonzero(unfound).tolist():
            found[line] = found[line].get(field)
        return found

    def _check_long(self, starts: Longs, stops: Longs) -> None:
        """Refuse JSON that would take too much memory. How deep it nests was checked when the text was found."""
        for line in np.flatnonzero(stops - starts > SHORT).tolist():
            try:
                check_json_size(self.lines.data[starts[line] : stops[line]].tobytes())
            except ValueError as error:
                number = self.lines.numbers[line]
                raise InputError(f"{self.name}: line {number} cannot be read as JSON: {error}") from error


def _line_rows(
    reader: Reader, format: Literal["text", "jsonl"], reading: RowReading, number: int, offset: int
) -> Iterator[LineRows]:
    field = str(reading.field or TEXT_FIELD)
    content = _Content(decompressed(reader, BLOCK_BYTES))
    chunks = valid_utf8(iter(content), reader.name, reading.errors)
    longest = reading.longest
    for lines in whole_lines(chunks, number, longest, name=reader.name):
        begins = offset + content.mark
        # Only the first line can be longer than a chunk, which is within the limit.
        if longest is not None and lines.stops[0] - lines.starts[0] > longest:
            raise InputError(
                f"{reader.name}: the line that begins at byte {begins} has more than {longest:,} bytes; "
                "--longest allows more"
            )
        if format == "text":
            texts = Block(lines.data, lines.starts, lines.stops)
            present = ~blank(lines.data, lines.starts, lines.stops)
        else:
            copy = Lines(lines.data.copy(), lines.starts, lines.stops, lines.numbers)
            found = json_rows(copy, reader.name, field, None, reading.errors, offset=begins)
            texts, present = found.texts, found.present
        yield LineRows(lines, texts, present, format, reader.name, field)
        end = int(lines.raw_stops()[-1])
        offset += end + (end < len(lines.data))  # up to the beginning of the next line


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class _Content:
    """Chunks of a file, and the length of the byte order mark at its beginning, which is no part of the text."""

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self._chunks, self.mark = chunks, 0

    def __iter__(self) -> Iterator[Chunk]:
        done = 0
        try:
            for chunk in self._chunks:
                if done == 0 and chunk.data[:3].tobytes() == _BYTE_ORDER_MARK:
                    self.mark = len(_BYTE_ORDER_MARK)
                done += len(chunk)
                yield chunk
        except InputError as error:  # a compressed file that is damaged or truncated
            raise InputError(f"{error} (after {done:,} bytes of text)") from error.__cause__


# --- CSV and TSV


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of CSV or TSV. names: the header's, or the numbers of the columns, from 1."""

    cells: list[list[str]]
    names: tuple[str, ...]
    column: int

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def texts(self) -> Block:
        """Return the column of the text."""
        return Block.from_texts([row[self.column] for row in self.cells])

    @property
    def present(self) -> Bools:
        """Return true for every row: blank lines are not rows of a table."""
        return np.ones(len(self), np.bool_)

    def fields(self) -> list[dict[str, Any]]:
        """Return the cells of each row by the names of their columns."""
        return [dict(zip(self.names, row, strict=True)) for row in self.cells]

    def values(self, field: str) -> list[Any]:
        """Return the cells of one column, None for each where there is no such column."""
        place = self.names.index(field) if field in self.names else None
        return [None if place is None else row[place] for row in self.cells]


def _table_rows(reader: Reader, format: RowFormat, reading: RowReading) -> Iterator[TableRows]:
    lines = whole_lines(valid_utf8(decompressed(reader, BLOCK_BYTES), reader.name, reading.errors), name=reader.name)
    rows = (row for _, row in (csv_rows if format == "csv" else tsv_rows)(lines, reader.name))
    batch = list(islice(rows, SAMPLE))
    if not batch:
        return
    column, header = text_column(batch, reading.field, reading.header, reader.name)
    names = header or tuple(str(number) for number in range(1, len(batch[0]) + 1))
    batch = batch[1:] if header else batch
    while batch:
        yield TableRows(batch, names, column)
        batch = list(islice(rows, SAMPLE))


# --- Parquet


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Rows of Parquet: an Arrow record batch, and the text of each row, empty where it is null."""

    batch: Any
    texts: Block
    table: ParquetRows

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def present(self) -> Bools:
        """Return true for every row."""
        return np.ones(len(self), np.bool_)

    def fields(self) -> list[dict[str, Any]]:
        """Return all columns of each row."""
        found: list[dict[str, Any]] = self.batch.to_pylist()
        return found

    def values(self, field: str) -> list[Any]:
        """Return the values of one column."""
        if field not in self.batch.schema.names:
            known = ", ".join(self.batch.schema.names)
            raise InputError(f"{self.table.name}: there is no column {field!r}; it has {known}")
        found: list[Any] = self.batch.column(field).to_pylist()
        return found


def _parquet_rows(reader: Reader, field: str, reading: RowReading) -> Iterator[ArrowRows]:
    done, longest = 0, reading.longest
    with parquet_opened(reader, field, None if longest is None else PAGE_SHARE * longest) as table:
        for batch, texts in table.batches(reading.errors, BLOCK_BYTES):
            lengths = texts.stops - texts.starts
            if longest is not None and lengths.max(initial=0) > longest:
                row = done + int(lengths.argmax()) + 1
                raise InputError(
                    f"{reader.name}: row {row} has a text of {lengths.max():,} bytes; --longest allows more"
                )
            yield ArrowRows(batch, texts, table)
            done += len(batch)
        if not done:  # a file without rows still has a schema
            yield ArrowRows(_empty_batch(table.schema), Block.from_texts([]), table)


def _empty_batch(schema: Any) -> Any:
    import pyarrow

    batches = schema.empty_table().to_batches()
    if batches:
        return batches[0]
    return pyarrow.RecordBatch.from_arrays([pyarrow.array([], field.type) for field in schema], schema=schema)
