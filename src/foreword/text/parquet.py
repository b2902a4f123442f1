"""Rows of Parquet: a named column of text, and a column of labels beside it where one is asked for.

A row is a document, however long, and leaves whole. Rows whose text is blank are skipped, as lines are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from foreword.arrays import Bools, Bytes, Longs
from foreword.errors import InputError, MissingExtraError
from foreword.text.block import BLOCK_BYTES, Block
from foreword.text.files import Reader, SourceFile, opened
from foreword.text.jsonl import listed
from foreword.text.parquet_pages import LargePagesError, LongRowsError, WatchedPages
from foreword.text.utf8 import Errors, is_utf8
from foreword.text.whitespace import blank

MOST_ROWS = 16 << 10
"""How many rows of Parquet are decoded at once where they are short."""


FEW = 32
"""What part of a block is read at a time where rows of all sizes are passed on."""

BUFFERS = 16 << 20
LEAST_BUFFER, MOST_BUFFER = 16 << 10, 1 << 20
"""How much is read from disk at a time where a row group must not be held whole: of all columns, and of one."""


def parquet_blocks(reader: Reader, column: str, errors: Errors, block_bytes: int) -> Iterator[Block]:
    """Blocks of a Parquet file's ``column``, a batch of rows each, mostly without a copy."""
    with _parquet(reader) as file:
        _check_column(file.schema_arrow, column, reader.name)
        yield from _column_blocks(file, column, errors, block_bytes, reader)


def parquet_labelled(
    reader: Reader, choose: Callable[[list[str]], tuple[str, str]], errors: Errors, block_bytes: int
) -> Iterator[tuple[Block, list[str]]]:
    """Every row's text and label, a batch of rows at a time; ``choose`` names the two columns, given all names."""
    with _parquet(reader) as file:
        schema, rows, done = file.schema_arrow, file.metadata.num_rows, 0
        text, label = choose(schema.names)
        _check_column(schema, text, reader.name)
        _check_label(schema, label, reader.name)
        size = _rows_per_batch(file.metadata, block_bytes)
        for batch in file.iter_batches(batch_size=size, columns=[text, label]):
            labels = _batch_labels(batch.column(label), done, reader.name)
            yield _batch_texts(batch.column(text), done, reader.name, errors), labels
            done += len(batch)
            reader.taken = (reader.size or 0) * done // rows


def parquet_rows(file: SourceFile, column: str) -> Iterator[list[dict[str, Any]]]:
    """All columns of a Parquet file's rows, some rows at a time; ``column`` must hold text."""
    with opened(file) as reader, _parquet(reader) as table:
        _check_column(table.schema_arrow, column, reader.name)
        for batch in table.iter_batches(batch_size=_rows_per_batch(table.metadata, BLOCK_BYTES)):
            yield batch.to_pylist()


@contextmanager
def _parquet(reader: Reader, pages: WatchedPages | None = None) -> Iterator[Any]:
    """The file; whatever goes wrong with it while inside is told in one line. pages: read a page at a time, from it."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "data", f"reading {reader.name}") from None
    if not reader.stream.seekable():
        raise InputError(f"{reader.name}: Parquet can be read from a file, not from a pipe")
    try:
        if pages is None:
            yield parquet.ParquetFile(reader.stream)
        else:
            metadata = parquet.read_metadata(reader.stream)
            buffer = max(LEAST_BUFFER, min(MOST_BUFFER, BUFFERS // max(1, metadata.num_columns)))
            # Without the last of these Arrow fetches whole column chunks before it decodes any of them.
            yield parquet.ParquetFile(pages, metadata=metadata, buffer_size=buffer, pre_buffer=False)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:  # a name need not be UTF-8
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{reader.name}: not a Parquet file that can be read ({reason})") from error


def _check_column(schema: Any, column: str, name: str) -> None:
    from pyarrow import types

    if column not in schema.names:
        raise InputError(f'{name}: no column "{column}" (it has: {listed(schema.names)})')
    kind = schema.field(column).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    # Old writers store text as bytes without saying that it is text.
    is_text = (types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary)
    if not any(test(kind) for test in is_text):
        raise InputError(f'{name}: column "{column}" holds {kind}, not text')


def _check_label(schema: Any, column: str, name: str) -> None:
    from pyarrow import types

    kind = schema.field(column).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    is_label = (types.is_string, types.is_large_string, types.is_string_view, types.is_integer, types.is_boolean)
    if not any(test(kind) for test in is_label):
        raise InputError(f'{name}: column "{column}" holds {kind}, not labels')


def _column_blocks(file: Any, column: str, errors: Errors, block_bytes: int, reader: Reader) -> Iterator[Block]:
    done, rows = 0, file.metadata.num_rows
    batch_size = _rows_per_batch(file.metadata, block_bytes)
    for batch in file.iter_batches(batch_size=batch_size, columns=[column]):
        block = _batch_block(batch.column(0), done, reader.name, errors)
        done += len(batch)
        reader.taken = (reader.size or 0) * done // rows
        if len(block):
            yield block


def _rows_per_batch(metadata: Any, block_bytes: int) -> int:
    """About a block of text: long rows must come a few at a time, short ones many.

    Sizes are those of all columns. A footer has them column by column too, but whoever asks Arrow for those of a
    damaged one is ended by it (``terminate``, Arrow 26); its own reader is not.
    """
    size: int = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    rows: int = metadata.num_rows
    return max(1, min(MOST_ROWS, block_bytes * rows // max(size, 1)))


def _batch_block(array: Any, done: int, name: str, errors: Errors) -> Block:
    """The rows that are not blank."""
    block = _batch_texts(array, done, name, errors)
    kept = ~blank(block.data, block.starts, block.stops)
    return Block(block.data, block.starts[kept], block.stops[kept])


def _batch_texts(array: Any, done: int, name: str, errors: Errors) -> Block:
    """Every row, null an empty text."""
    data, starts, stops = _text_buffers(array)
    block = Block(data, starts, np.where(_valid(array), stops, starts) if array.null_count else stops)
    flaw = _first_invalid(block)
    if flaw is None:
        return block
    if errors == "strict":
        raise InputError(f"{name}: row {done + flaw + 1} is not valid UTF-8; --errors replace reads on")
    return Block.from_texts([str(text.data, "utf-8", "replace") for text in _each(block)])


def _batch_labels(array: Any, done: int, name: str) -> list[str]:
    labels = array.to_pylist()
    for place, label in enumerate(labels, done + 1):
        if label is None:
            raise InputError(f"{name}: row {place} has no label")
    return [str(label).lower() if isinstance(label, bool) else str(label) for label in labels]


def _text_buffers(array: Any) -> tuple[Bytes, Longs, Longs]:
    """Arrow's own bytes, and where each row starts and stops in them."""
    import pyarrow
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if types.is_string_view(array.type):
        array = array.cast(pyarrow.large_string())
    wide = types.is_large_string(array.type) or types.is_large_binary(array.type)
    offset_type = np.dtype(np.int64 if wide else np.int32)
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, offset_type, len(array) + 1, array.offset * offset_type.itemsize)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer else np.empty(0, np.uint8)
    places = offsets.astype(np.int64)
    return data, places[:-1], places[1:]


def _valid(array: Any) -> Bools:
    """Which rows are not null. Arrow would tell, but imports all of pandas for it."""
    bits = np.frombuffer(array.is_valid().buffers()[1], np.uint8)
    return np.unpackbits(bits, bitorder="little")[: len(array)].astype(np.bool_)


def _first_invalid(block: Block) -> int | None:
    """The first document that is not valid UTF-8: a file may call a column text and hold anything."""
    if not len(block):
        return None
    whole = block.data[block.starts[0] : block.stops[-1]]
    filled = block.starts[block.starts < block.stops]
    if is_utf8(whole) and not (block.data[filled] & 0xC0 == 0x80).any():
        return None  # valid as a whole, and no document starts inside a character
    return next((place for place, text in enumerate(_each(block)) if not is_utf8(text)), None)


def _each(block: Block) -> Iterator[Bytes]:
    for start, stop in zip(block.starts.tolist(), block.stops.tolist(), strict=True):
        yield block.data[start:stop]


class ParquetRows:
    """All columns of a Parquet file, some rows at a time, with the texts of one: for those who pass rows on.

    Row groups are read in pages, never whole, and a few rows at a time, which are joined to about ``block_bytes``: long
    rows that stand together among many short ones are not all held at once. A page is the least that can be read.
    """

    def __init__(self, reader: Reader, file: Any, pages: WatchedPages, column: str) -> None:
        _check_column(file.schema_arrow, column, reader.name)
        self.schema = file.schema_arrow
        self.metadata = file.metadata
        self.column = column
        self._reader, self._file, self._pages = reader, file, pages

    def batches(self, errors: Errors, block_bytes: int) -> Iterator[tuple[Any, Block]]:
        """Record batches, and the text of each row; null is an empty text."""
        done, place = 0, self.schema.get_field_index(self.column)
        for batch in self._gathered(block_bytes):
            yield batch, _batch_texts(batch.column(place), done, self._reader.name, errors)
            done += len(batch)
            self._reader.taken = (self._reader.size or 0) * done // max(1, self.metadata.num_rows)

    def _gathered(self, block_bytes: int) -> Iterator[Any]:
        held: list[Any] = []
        size = 0
        for group in range(self.metadata.num_row_groups):
            for batch in self._few_rows(group, block_bytes // FEW):
                held.append(batch)
                size += batch.nbytes
                if size >= block_bytes:
                    yield _joined(held)
                    size = 0
        if held:
            yield _joined(held)

    def _few_rows(self, group: int, size: int) -> Iterator[Any]:
        """A row group, as many rows at a time as take about ``size`` bytes."""
        facts = self.metadata.row_group(group)
        rows = max(1, min(MOST_ROWS, size * int(facts.num_rows) // max(int(facts.total_byte_size), 1)))
        done = 0
        while True:
            try:
                for batch in self._rows(group, rows, size, done):
                    yield batch
                    done += len(batch)
                return
            except LongRowsError as long:  # how long could not be known; read it again from there, more carefully
                rows = long.rows
            except LargePagesError as large:
                raise InputError(
                    f"{self._reader.name}: row group {group} has pages that take {large.size / 1e6:,.0f} MB at a time, "
                    f"packed and unpacked, of {large.columns} column{'s' * (large.columns > 1)}; --longest allows more"
                ) from None

    def _rows(self, group: int, rows: int, size: int, skipped: int) -> Iterator[Any]:
        self._pages.begin(int(self.metadata.row_group(group).num_rows), rows, size)
        for batch in self._file.iter_batches(batch_size=rows, row_groups=[group], use_threads=False):
            if skipped < len(batch):
                yield batch.slice(skipped) if skipped else batch
            skipped = max(0, skipped - len(batch))


def _joined(held: list[Any]) -> Any:
    """The batches as one; the list is emptied, so that they do not stay beside it."""
    import pyarrow

    if len(held) == 1:
        return held.pop()
    joined = pyarrow.Table.from_batches(held).combine_chunks().to_batches()[0]
    held.clear()
    return joined


@contextmanager
def parquet_opened(reader: Reader, column: str, most: int) -> Iterator[ParquetRows]:
    """The file; whatever goes wrong with it while inside is told in one line. most: bytes of pages that are held."""
    pages = WatchedPages(reader.stream, most)
    with _parquet(reader, pages) as file:
        yield ParquetRows(reader, file, pages, column)
