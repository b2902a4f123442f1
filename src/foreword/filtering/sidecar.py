"""Sidecar files: only ids and scores, row for row with the input, to be joined with it later.

Parquet: a column with the ids, then a column for each score. Dolma: the attributes format of its toolkit, JSONL with ::

    {"id": "7", "attributes": {"foreword__quality__hq": [[0, 812, 0.93]], "foreword__wiki__perplexity": [[0, 812, 31]]}}

where each value belongs to a span of characters, here the whole text. Keys name the tool, the model and the attribute:
a label for its probability, as in Dolma's own fastText taggers, or the column. A missing score has no span.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import numpy as np

from foreword.arrays import Bools, Longs
from foreword.errors import InputError
from foreword.filtering.columns import LABEL, PROBABILITY, Column, label_of
from foreword.filtering.output import compressor_for
from foreword.filtering.settings import Filtering
from foreword.filtering.statistics import NAMES
from foreword.text.block import Block
from foreword.text.rows import ArrowRows, LineRows, RowBatch

GROUP_ROWS = 1 << 16
"""Rows of a row group."""

MOST = 1 << 63
"""Integers below this one fit a column of Parquet."""


def row_ids(rows: RowBatch, field: str) -> list[Any]:
    """Return the id of each row, None for a blank line. Lines of text are numbered."""
    if isinstance(rows, LineRows) and rows.format == "text":
        return [str(number) for number in rows.lines.numbers.tolist()]
    found = rows.values(field)
    for row in np.flatnonzero(rows.present).tolist():
        if found[row] is None:
            place = f"{rows.name}: line {rows.lines.numbers[row]}" if isinstance(rows, LineRows) else f"row {row + 1}"
            raise InputError(f'{place} has no field "{field}": --id names the field of the ids')
    return found


class SidecarTable:
    """A Parquet file of ids and scores. Ids of JSONL are int64 where all are integers, else strings."""

    def __init__(self, stream: BinaryIO, filtering: Filtering, columns: Sequence[Column]) -> None:
        self._stream, self._id, self._empty = stream, filtering.id, columns
        self._writer: Any = None
        self._buffered: list[Any] = []

    def write(self, rows: RowBatch, kept: Bools, columns: Sequence[Column]) -> None:
        """Add the ids and scores of all rows."""
        if isinstance(rows, ArrowRows):
            row_ids(rows, self._id)
            ids = rows.batch.column(self._id)
        else:
            ids = arrow_ids(row_ids(rows, self._id))
        batch = self._batch(ids, columns)
        if self._buffered and batch.schema != self._buffered[0].schema:
            batch, *self._buffered = (_with_spelled_ids(each) for each in (batch, *self._buffered))
        self._buffered.append(batch)
        if sum(map(len, self._buffered)) >= GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Write what is buffered, and the footer."""
        import pyarrow

        if not self._buffered and self._writer is None:
            self._buffered.append(self._batch(pyarrow.array([], pyarrow.string()), self._empty))
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Close a discarded file."""
        if self._writer is not None and self._writer.is_open:
            self._writer.close()

    def _batch(self, ids: Any, columns: Sequence[Column]) -> Any:
        import pyarrow

        names = [self._id, *(column.name for column in columns)]
        return pyarrow.RecordBatch.from_arrays([ids, *(column.to_arrow() for column in columns)], names)

    def _flush(self) -> None:
        import pyarrow
        from pyarrow import parquet

        if not self._buffered:
            return
        table = pyarrow.Table.from_batches(self._buffered)
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._stream, table.schema)
        elif table.schema != self._writer.schema:
            if table.schema.types[0] == pyarrow.int64():
                table = _with_spelled_ids(table)
            else:
                self._rewrite()
        self._writer.write_table(table)
        self._buffered = []

    def _rewrite(self) -> None:
        """Write the row groups of the file again, with ids as strings: all had been integers until now."""
        from pyarrow import parquet

        self._writer.close()
        self._stream.flush()
        with TemporaryFile(dir=Path(self._stream.name).parent) as copy:
            with Path(self._stream.name).open("rb") as file:
                copyfileobj(file, copy)
            copy.seek(0)
            self._stream.seek(0)
            self._stream.truncate()
            earlier = parquet.ParquetFile(copy)
            for group in range(earlier.num_row_groups):
                table = _with_spelled_ids(earlier.read_row_group(group))
                if not group:
                    self._writer = parquet.ParquetWriter(self._stream, table.schema)
                self._writer.write_table(table)


def arrow_ids(ids: Sequence[Any]) -> Any:
    """Return ids as an Arrow array: int64 where all are integers, else strings; None is null."""
    import pyarrow

    known = [each for each in ids if each is not None]
    if known and all(type(each) is int and -MOST <= each < MOST for each in known):
        return pyarrow.array(ids, pyarrow.int64())
    spelled = [each if each is None or isinstance(each, str) else json.dumps(each) for each in ids]
    return pyarrow.array(spelled, pyarrow.string())


def _with_spelled_ids(rows: Any) -> Any:
    """Return a batch or table with the ids in its first column as strings."""
    return rows.set_column(0, rows.schema.names[0], rows.column(0).cast("string"))


class SidecarLines:
    """Dolma's attributes as lines of JSON, compressed according to the suffix of the file."""

    def __init__(self, stream: BinaryIO, name: str, filtering: Filtering) -> None:
        self._stream, self._compressor, self._id = stream, compressor_for(name), filtering.id
        self._models = sorted((name for name, _ in filtering.models if name), key=len, reverse=True)

    def write(self, rows: RowBatch, kept: Bools, columns: Sequence[Column]) -> None:
        """Write a line for each row; a blank line stays one."""
        attributes = [
            f"{{{', '.join(filter(None, row))}}}" for row in zip(*self._attributes(rows, columns), strict=True)
        ]
        attributes = attributes or ["{}"] * len(rows)
        ids = [json.dumps(each, ensure_ascii=False) for each in row_ids(rows, self._id)]
        lines = [
            f'{{"id": {id}, "attributes": {found}}}\n' if present else "\n"
            for id, found, present in zip(ids, attributes, rows.present.tolist(), strict=True)
        ]
        data = "".join(lines).encode()
        self._stream.write(data if self._compressor is None else self._compressor.compress(data))

    def close(self) -> None:
        """Write what the compressor still has."""
        if self._compressor is not None:
            self._stream.write(self._compressor.flush())

    def abandon(self) -> None:
        """Do nothing: the file is discarded."""

    def _attributes(self, rows: RowBatch, columns: Sequence[Column]) -> Iterable[list[str]]:
        """Yield the members of each column for all rows: a label is the key of its probability."""
        sizes = character_counts(rows.texts).tolist()
        named = {column.name: column for column in columns}
        for column in columns:
            model, attribute = self._owner(column.name)
            if column.names is not None:
                value = named.get(column.name.replace(LABEL, PROBABILITY))
                values = repeat("1.0") if value is None or value is column else value.spelled("", False)
                own = {label for _, label in filter(None, map(label_of, named))}
                prefix = "" if value is not None and value is not column else f"{attribute}_"
                keys = ["" if label in own else self._key(model, prefix + label) for label in column.spelled("", False)]
                yield [
                    _member(key, size, value) if key and value else ""
                    for key, size, value in zip(keys, sizes, values, strict=False)
                ]
            elif not column.name.rstrip("_0123456789").endswith(PROBABILITY):
                found = label_of(column.name)
                key = self._key(model, attribute if found is None else found[1])
                yield [_member(key, size, value) for size, value in zip(sizes, column.spelled("", False), strict=True)]

    def _owner(self, column: str) -> tuple[str, str]:
        if column in NAMES:
            return "text", column
        name = next((name for name in self._models if column.startswith(f"{name}_")), "")
        return name or "model", column.removeprefix(f"{name}_") if name else column

    @staticmethod
    def _key(model: str, attribute: str) -> str:
        return json.dumps(f"foreword__{model}__{attribute}", ensure_ascii=False)


def _member(key: str, size: int, value: str) -> str:
    return f"{key}: [[0, {size}, {value}]]" if value else f"{key}: []"


def character_counts(texts: Block) -> Longs:
    """Return the number of characters of each text."""
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum((texts.data & 0xC0) != 0x80)))
    return np.asarray(ends[texts.stops] - ends[texts.starts], np.int64)
