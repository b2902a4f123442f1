"""Rows of Parquet, read with their texts and written with the same columns, types and compression."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from foreword.arrays import Bools
from foreword.errors import InputError
from foreword.filtering.columns import Column, arrow_mask
from foreword.text.block import BLOCK_BYTES, Block
from foreword.text.files import Reader
from foreword.text.parquet import ParquetRows, parquet_opened
from foreword.text.utf8 import Errors

GROUP_BYTES, LONG_BYTES = 16 << 20, 6 << 20
"""Rows of about so many bytes make a row group of the output. A batch that is longer than the second of these, because
of long rows, makes one alone."""

HELD_PAGES = 6
"""How many times ``longest`` the pages may be that have to be held to read a row."""

PAGE_ROWS = 64
"""After so many rows it is asked whether a page is full. By the default of 1024 one of long rows would be huge, and
whoever reads a row has to hold its page."""


def choose_allocator() -> None:
    """In a process that does nothing else, before Arrow is loaded: have it allocate by jemalloc.

    That took 50 to 70 MB less than mimalloc, the default, which keeps what is freed, and no longer. Arrow can be told
    by the environment alone, and complains where it has no jemalloc: its own wheels for Linux, with the library inside,
    have it. A choice of the user's stands.
    """
    if sys.platform != "linux" or "pyarrow" in sys.modules:
        return
    found = importlib.util.find_spec("pyarrow")
    places = found.submodule_search_locations if found else None
    if any(next(Path(place).glob("libarrow.so*"), None) for place in places or ()):
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")


@dataclass(frozen=True, slots=True)
class TableBatch:
    """Some rows: Arrow's record batch, and the text of each, empty where it is null."""

    batch: Any
    texts: Block
    table: ParquetRows

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def rows(self) -> Bools:
        return np.ones(len(self), np.bool_)


def table_batches(reader: Reader, field: str, errors: Errors, longest: int) -> Iterator[TableBatch]:
    done = 0
    with parquet_opened(reader, field, HELD_PAGES * longest) as table:
        for batch, texts in table.batches(errors, BLOCK_BYTES):
            lengths = texts.stops - texts.starts
            if lengths.max(initial=0) > longest:
                row = done + int(lengths.argmax()) + 1
                raise InputError(
                    f"{reader.name}: row {row} has a text of {lengths.max():,} bytes; --longest allows more"
                )
            yield TableBatch(batch, texts, table)
            done += len(batch)
        if not done:  # a file without rows is written as one
            empty = table.schema.empty_table().to_batches() or [_no_rows(table.schema)]
            nothing = np.empty(0, np.int64)
            yield TableBatch(empty[0], Block(np.empty(0, np.uint8), nothing, nothing), table)


def _no_rows(schema: Any) -> Any:
    import pyarrow

    return pyarrow.RecordBatch.from_arrays([pyarrow.array([], field.type) for field in schema], schema=schema)


class TableWriter:
    """A Parquet file that grows by batches; what the input's columns were compressed by, the output's are."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self._name = stream, name
        self._writer: Any = None
        self._held: list[Any] = []
        self._bytes = 0

    def write(self, batch: TableBatch, kept: Bools, columns: Sequence[Column]) -> None:
        import pyarrow

        rows = batch.batch if kept.all() else batch.batch.filter(arrow_mask(kept))
        schema = batch.table.schema
        if columns:
            taken = next((column.name for column in columns if column.name in schema.names), None)
            if taken:
                raise InputError(
                    f'{self._name} has a column "{taken}" already: give the model a name, as in --model NAME=PATH'
                )
            added = [column.at(kept).to_arrow() for column in columns]
            for column, array in zip(columns, added, strict=True):
                schema = schema.append(pyarrow.field(column.name, array.type))
            rows = pyarrow.RecordBatch.from_arrays([*rows.columns, *added], schema=schema)
        if self._writer is None:
            self._writer = _writer(self._stream, schema, batch.table)
        size = rows.nbytes
        if size > LONG_BYTES:
            self._flush()
        if len(rows):
            self._held.append(rows)
            self._bytes += size
        if self._bytes >= (LONG_BYTES if size > LONG_BYTES else GROUP_BYTES):
            self._flush()

    def close(self) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        """Close what nobody will read, for Arrow would try to as it is deleted, and complain that the file is gone."""
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()

    def _flush(self) -> None:
        import pyarrow

        if self._held:
            self._writer.write_table(pyarrow.Table.from_batches(self._held))
            self._held, self._bytes = [], 0


def _writer(stream: BinaryIO, schema: Any, table: ParquetRows) -> Any:
    from pyarrow import parquet

    metadata = table.metadata
    codec = "snappy"
    filled = next((group for group in range(metadata.num_row_groups) if metadata.row_group(group).num_rows), None)
    # Of a group that was read; of others Arrow may not be asked, as ``_rows_per_batch`` in text/parquet.py says.
    if filled is not None and metadata.num_columns:
        codec = metadata.row_group(filled).column(0).compression.lower()
    # Texts are all different: a dictionary of them is given up after a megabyte, and was work for nothing.
    repeated = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
    repeated += [name for name in schema.names if name not in table.schema.names]
    return parquet.ParquetWriter(
        stream,
        schema,
        compression="none" if codec == "uncompressed" else codec,
        use_dictionary=[path for path in repeated if path != table.column],
        write_batch_size=PAGE_ROWS,
    )
