"""What is written: rows in the format and compression of the input, the same bytes every time."""

from __future__ import annotations

import bz2
import importlib.util
import json
import lzma
import os
import re
import secrets
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from foreword.arrays import Bools, Bytes, Longs
from foreword.errors import InputError, MissingExtraError, explained
from foreword.filtering.columns import Column, arrow_mask
from foreword.text.jsonl import field_names
from foreword.text.lines import Lines
from foreword.text.parquet import ParquetRows
from foreword.text.rows import ArrowRows, LineRows, RowBatch

GROUP_BYTES, LONG_BYTES = 16 << 20, 6 << 20
"""Rows of about ``GROUP_BYTES`` make a row group of the output. A batch longer than ``LONG_BYTES``, because of long
rows, makes one alone."""

PAGE_ROWS = 64
"""Rows after which Arrow checks whether a page is full. With the default of 1024 a page of long rows would be huge, and
whoever reads a row has to hold its page."""

_NOTHING = np.empty(0, np.uint8), np.empty(0, np.int64)


class WriteError(InputError):
    """An error of the disk: no fault of a shard, so that nothing is gained by skipping it."""


class Compressor(Protocol):
    """What compresses a stream."""

    def compress(self, data: Any, /) -> bytes: ...
    def flush(self) -> bytes: ...


def compressor_for(name: str) -> Compressor | None:
    """Return the compressor that a file name stands for; None for a plain file."""
    match name.lower().rpartition(".")[2]:
        case "gz":
            return zlib.compressobj(6, zlib.DEFLATED, 31)  # 31: a gzip header, without a name and a time
        case "bz2":
            return bz2.BZ2Compressor()
        case "xz":
            return lzma.LZMACompressor()
        case "zst":
            try:
                import zstandard
            except ImportError:
                raise MissingExtraError("zstandard", "data", f"writing {name}") from None
            return zstandard.ZstdCompressor().compressobj()
    return None


class RowWriter(Protocol):
    """What writes rows in some format."""

    def write(self, rows: RowBatch, kept: Bools, columns: Sequence[Column]) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...


# --- lines


class LineWriter:
    """A file of lines, plain or compressed as its name says."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self._compressor = stream, compressor_for(name)

    def write(self, rows: RowBatch, kept: Bools, columns: Sequence[Column]) -> None:
        """Write the kept rows with these columns."""
        assert isinstance(rows, LineRows)
        data = line_bytes(rows, kept, columns)
        self._stream.write(data if self._compressor is None else self._compressor.compress(data))

    def close(self) -> None:
        """Write what the compressor still has."""
        if self._compressor is not None:
            self._stream.write(self._compressor.flush())

    def abandon(self) -> None:
        """Do nothing: the file is discarded."""


def line_bytes(rows: LineRows, kept: Bools, columns: Sequence[Column]) -> memoryview:
    """Return the kept lines as they are in the file, with these columns inserted; blank lines get none.

    Scores of a JSONL row are put before its closing brace; those of a line of text before the line, with tabs between.
    """
    from foreword.text.kernels import copy_rows

    lines, chosen = rows.lines, np.flatnonzero(kept)
    stops = lines.raw_stops()
    inserted, ends = _members(rows, chosen, columns) if columns else _NOTHING
    cuts = lines.starts if rows.format == "text" else _closing_braces(lines) if columns else stops
    size = int((stops[chosen] - lines.starts[chosen]).sum()) + len(chosen) + len(inserted)
    out = np.empty(size, np.uint8)
    copy_rows(lines.data, lines.starts, cuts, stops, chosen, inserted, ends, out)
    return out.data


def _members(rows: LineRows, chosen: Longs, columns: Sequence[Column]) -> tuple[Bytes, Longs]:
    """Return what is inserted into each chosen line, one after another, and where each begins."""
    quoted = rows.format == "jsonl"
    if quoted:
        _check_names(rows, columns)
        keys = [json.dumps(column.name, ensure_ascii=False) for column in columns]
        pattern = "".join(f", {key.replace('{', '{{').replace('}', '}}')}: {{}}" for key in keys)
    else:
        pattern = "{}\t" * len(columns)
    values = [column.at(chosen).spelled("null" if quoted else "", quoted) for column in columns]
    members = [member.encode() for member in map(pattern.format, *values)]
    for row in np.flatnonzero(~rows.present[chosen]).tolist():
        members[row] = b""
    ends = np.zeros(len(members) + 1, np.int64)
    np.cumsum(list(map(len, members)), out=ends[1:])
    return np.frombuffer(b"".join(members), np.uint8), ends


def _closing_braces(lines: Lines) -> Longs:
    from foreword.text.kernels import closing_braces

    offsets = np.empty(len(lines), np.int64)
    if closing_braces(lines.data, lines.starts, lines.stops, offsets):
        offsets = np.where(offsets < 0, lines.stops, offsets)  # blank lines, into which nothing is put
    return offsets


def _check_names(rows: LineRows, columns: Sequence[Column]) -> None:
    """Refuse a row that has one of the columns already: readers differ on objects with two members of one name."""
    names = {column.name for column in columns}
    pattern = re.compile("|".join(re.escape(json.dumps(name, ensure_ascii=False)) for name in names).encode())
    lines, at = rows.lines, 0
    view = np.ascontiguousarray(lines.data).data
    while found := pattern.search(view, at):
        line = int(np.searchsorted(lines.starts, found.start(), "right")) - 1
        place = f"{rows.name}: line {lines.numbers[line]}"
        if taken := names & set(field_names(bytes(view[lines.starts[line] : lines.stops[line]]), place)):
            raise _taken(f'{place} has a field "{min(taken)}"')
        at = int(lines.stops[line])


def _taken(what: str) -> InputError:
    return InputError(f"{what} already: give the model a name, as in --model NAME=PATH")


# --- Parquet


def choose_allocator() -> None:
    """Have Arrow allocate by jemalloc: for a process that does nothing else, before Arrow is loaded.

    That took 50 to 70 MB less than mimalloc, the default, which retains what is freed, and no more time. Arrow reads
    the choice from the environment only, and complains where it has no jemalloc: its own wheels for Linux, with the
    library inside, have it. A choice of the user's stands.
    """
    if sys.platform != "linux" or "pyarrow" in sys.modules:
        return
    found = importlib.util.find_spec("pyarrow")
    folders = found.submodule_search_locations if found else None
    if any(next(Path(folder).glob("libarrow.so*"), None) for folder in folders or ()):
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")


class TableWriter:
    """A Parquet file that grows by batches, compressed as the input is."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self._name = stream, name
        self._writer: Any = None
        self._buffered: list[Any] = []
        self._bytes = 0

    def write(self, rows: RowBatch, kept: Bools, columns: Sequence[Column]) -> None:
        """Write the kept rows with these columns."""
        import pyarrow

        assert isinstance(rows, ArrowRows)
        batch = rows.batch if kept.all() else rows.batch.filter(arrow_mask(kept))
        schema = rows.table.schema
        if columns:
            taken = next((column.name for column in columns if column.name in schema.names), None)
            if taken:
                raise _taken(f'{self._name} has a column "{taken}"')
            added = [column.at(kept).to_arrow() for column in columns]
            for column, array in zip(columns, added, strict=True):
                schema = schema.append(pyarrow.field(column.name, array.type))
            batch = pyarrow.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)
        if self._writer is None:
            self._writer = _open_writer(self._stream, schema, rows.table)
        size = batch.nbytes
        if size > LONG_BYTES:
            self._flush()
        if len(batch):
            self._buffered.append(batch)
            self._bytes += size
        if self._bytes >= (LONG_BYTES if size > LONG_BYTES else GROUP_BYTES):
            self._flush()

    def close(self) -> None:
        """Write what is buffered, and the footer."""
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        """Close a discarded file: Arrow would do so on deletion, and complain that the file is gone."""
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()

    def _flush(self) -> None:
        import pyarrow

        if self._buffered:
            self._writer.write_table(pyarrow.Table.from_batches(self._buffered))
            self._buffered, self._bytes = [], 0


def _open_writer(stream: BinaryIO, schema: Any, table: ParquetRows) -> Any:
    from pyarrow import parquet

    metadata = table.metadata
    codec = "snappy"
    filled = next((group for group in range(metadata.num_row_groups) if metadata.row_group(group).num_rows), None)
    # Of a group that was read; Arrow must not be asked of others, see ``_rows_per_batch`` in text/parquet.py.
    if filled is not None and metadata.num_columns:
        codec = metadata.row_group(filled).column(0).compression.lower()
    # Texts are all different: a dictionary of them is abandoned after a megabyte, for nothing, and
    # no reader needs the smallest and the largest of them.
    repeated = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    repeated += [name for name in schema.names if name not in table.schema.names]
    others = [path for path in repeated if path != table.column]
    return parquet.ParquetWriter(
        stream,
        schema,
        compression="none" if codec == "uncompressed" else codec,
        use_dictionary=others,
        write_statistics=others,
        write_batch_size=PAGE_ROWS,
    )


# --- files


@contextmanager
def written(path: Path, name: str) -> Iterator[BinaryIO]:
    """Write ``path`` by way of a sibling: it appears complete and on the disk, or not at all. name: for messages."""
    # A unique name: on a cluster a task may be repeated elsewhere while the first one, cut off, still writes.
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    with explained(f"cannot write {name}", raises=WriteError):
        try:
            with new.open("wb", buffering=1 << 20) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)


def concatenate(parts: list[Path], into: BinaryIO) -> None:
    """Copy files one after another, with sendfile where there is one."""
    into.flush()
    for part in parts:
        with part.open("rb") as source:
            left = os.fstat(source.fileno()).st_size
            while left:
                left -= _copy(source.fileno(), into.fileno(), left)


def _copy(source: int, into: int, left: int) -> int:
    if hasattr(os, "sendfile"):
        return os.sendfile(into, source, None, min(left, 1 << 30))
    data = os.read(source, 1 << 20)
    os.write(into, data)
    return len(data)
