"""Rows of Parquet: a named column of text, with a column of labels or all columns where they are asked for.

A row is a document, however long, and is emitted whole. Rows whose text is blank are skipped where only documents are
wanted, as blank lines are.

**Memory.** The least that Arrow can decode is a page, and nothing but the page itself says how large it is. The footer
bounds it: a page is at most its row group, and writers close a page after ``PAGE_ROWS`` rows at the latest. A row group
whose pages may be larger than the limit is refused before any of it is read. Rows are decoded a few kilobytes at a
time and joined to blocks, so that long rows among many short ones are not all in memory at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from foreword.arrays import Bools, Bytes, Longs
from foreword.errors import InputError, MissingExtraError, reason_of
from foreword.text.block import Block
from foreword.text.files import Reader
from foreword.text.jsonl import listed
from foreword.text.unicode import Errors, blank, is_utf8

MOST_ROWS = 16 << 10
"""How many rows are decoded at once where they are short."""

STEP_BYTES, SHORT_STEP_BYTES = 128 << 10, 8 << 10
"""How much is decoded at a time, on average; the second where a row group is so large that many long rows one after
another could fill memory. Decoding 105 MB of rows of 1.4 KB took 0.09 s with the first and 0.26 s with the second."""

PAGE_ROWS = 1024
"""Rows after which Arrow's and parquet-rs's writers check whether a page is full: longer pages than that are rare."""

BUFFERS = 16 << 20
LEAST_BUFFER, MOST_BUFFER = 16 << 10, 1 << 20
"""How much is read from disk at a time, of all columns and of one: a row group must not be in memory whole."""


def parquet_blocks(reader: Reader, column: str, errors: Errors, block_bytes: int) -> Iterator[Block]:
    """Yield blocks of a Parquet file's ``column``, one per batch of rows, mostly without a copy."""
    with _parquet(reader) as file:
        _check_column(file.schema_arrow, column, reader.name)
        yield from _column_blocks(file, column, errors, block_bytes, reader)


def parquet_labelled(
    reader: Reader, choose: Callable[[list[str]], tuple[str, str]], errors: Errors, block_bytes: int
) -> Iterator[tuple[Block, list[str]]]:
    """Yield texts and labels, one batch of rows at a time; ``choose`` picks the two columns, given all names."""
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


@contextmanager
def _parquet(reader: Reader) -> Iterator[Any]:
    """Open the file, to be read page by page; errors inside the context become one line."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "data", f"reading {reader.name}") from None
    if not reader.stream.seekable():
        raise InputError(f"{reader.name}: Parquet can be read from a file, not from a pipe")
    try:
        metadata = parquet.read_metadata(reader.stream)
        buffer = max(LEAST_BUFFER, min(MOST_BUFFER, BUFFERS // max(1, metadata.num_columns)))
        # Without the last of these Arrow fetches whole column chunks before it decodes any of them.
        yield parquet.ParquetFile(reader.stream, metadata=metadata, buffer_size=buffer, pre_buffer=False)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:  # a name need not be UTF-8
        raise InputError(f"{reader.name}: not a Parquet file that can be read ({reason_of(error)})") from error


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
    """Return how many rows make about one block: few where they are long, many where they are short.

    Sizes are those of all columns. A footer has them column by column too, but for a damaged one Arrow 26 ends
    the process (``terminate``) when it is asked for those; its own reader raises an error.
    """
    size: int = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    rows: int = metadata.num_rows
    return max(1, min(MOST_ROWS, block_bytes * rows // max(size, 1)))


def _batch_block(array: Any, done: int, name: str, errors: Errors) -> Block:
    """Return the rows that are not blank."""
    block = _batch_texts(array, done, name, errors)
    kept = ~blank(block.data, block.starts, block.stops)
    return Block(block.data, block.starts[kept], block.stops[kept])


def _batch_texts(array: Any, done: int, name: str, errors: Errors) -> Block:
    """Return the text of every row; null is an empty text."""
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
    for row, label in enumerate(labels, done + 1):
        if label is None:
            raise InputError(f"{name}: row {row} has no label")
    return [str(label).lower() if isinstance(label, bool) else str(label) for label in labels]


def _text_buffers(array: Any) -> tuple[Bytes, Longs, Longs]:
    """Return Arrow's own bytes, and where each row starts and stops in them."""
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
    bounds = offsets.astype(np.int64)
    return data, bounds[:-1], bounds[1:]


def _valid(array: Any) -> Bools:
    """Return which rows are not null. Arrow's own conversion imports all of pandas."""
    bits = np.frombuffer(array.is_valid().buffers()[1], np.uint8)
    return np.unpackbits(bits, bitorder="little")[: len(array)].astype(np.bool_)


def _first_invalid(block: Block) -> int | None:
    """Find the first document that is not valid UTF-8: a file may call a column text and hold anything."""
    if not len(block):
        return None
    whole = block.data[block.starts[0] : block.stops[-1]]
    filled = block.starts[block.starts < block.stops]
    if is_utf8(whole) and not (block.data[filled] & 0xC0 == 0x80).any():
        return None  # valid as a whole, and no document starts inside a character
    return next((row for row, text in enumerate(_each(block)) if not is_utf8(text)), None)


def _each(block: Block) -> Iterator[Bytes]:
    for start, stop in zip(block.starts.tolist(), block.stops.tolist(), strict=True):
        yield block.data[start:stop]


class ParquetRows:
    """All columns of a Parquet file, some rows at a time, with the texts of one column.

    limit: bytes that a page may take; None is no limit.
    """

    def __init__(self, reader: Reader, file: Any, column: str, limit: int | None) -> None:
        _check_column(file.schema_arrow, column, reader.name)
        self.schema = file.schema_arrow
        self.metadata = file.metadata
        self.name, self.column = reader.name, column
        self._reader, self._file, self._limit = reader, file, limit

    def batches(self, errors: Errors, block_bytes: int) -> Iterator[tuple[Any, Block]]:
        """Yield record batches of about ``block_bytes``, and the text of each row; null is an empty text."""
        done, index = 0, self.schema.get_field_index(self.column)
        for batch in self._joined(block_bytes):
            yield batch, _batch_texts(batch.column(index), done, self._reader.name, errors)
            done += len(batch)
            self._reader.taken = (self._reader.size or 0) * done // max(1, self.metadata.num_rows)

    def _joined(self, block_bytes: int) -> Iterator[Any]:
        """Yield batches of about ``block_bytes``."""
        buffered: list[Any] = []
        size = 0
        for group in range(self.metadata.num_row_groups):
            for batch in self._few_rows(group):
                buffered.append(batch)
                size += batch.get_total_buffer_size()  # ``nbytes`` takes ten times as long, as long as decoding
                if size >= block_bytes:
                    yield _combine(buffered)
                    size = 0
        if buffered:
            yield _combine(buffered)

    def _few_rows(self, group: int) -> Iterator[Any]:
        """Yield the rows of a row group, a few at a time."""
        import pyarrow

        facts = self.metadata.row_group(group)
        rows, size = int(facts.num_rows), int(facts.total_byte_size)
        is_large = self._limit is not None and size > self._limit
        if is_large:
            self._check(group, size * min(rows, PAGE_ROWS) // max(1, rows), "may take")
        step = SHORT_STEP_BYTES if is_large else STEP_BYTES
        few = max(1, min(MOST_ROWS, step * rows // max(size, 1)))
        before = pyarrow.total_allocated_bytes()
        for batch in self._file.iter_batches(batch_size=few, row_groups=[group], use_threads=False):
            if is_large:  # a writer may have made longer pages than any we know; they are packed, unpacked and decoded
                self._check(group, (pyarrow.total_allocated_bytes() - before) // 4, "take")
            yield batch

    def _check(self, group: int, size: int, verb: str) -> None:
        if self._limit is not None and size > self._limit:
            raise InputError(
                f"{self._reader.name}: row group {group} has pages that {verb} {size / 1e6:,.0f} MB, more than the "
                f"{self._limit / 1e6:,.0f} MB that are read at a time; --longest allows more"
            )


def _combine(batches: list[Any]) -> Any:
    """Join the batches into one. The list is emptied, so that they do not stay in memory alongside it."""
    import pyarrow

    if len(batches) == 1:
        return batches.pop()
    joined = pyarrow.Table.from_batches(batches).combine_chunks().to_batches()[0]
    batches.clear()
    return joined


@contextmanager
def parquet_opened(reader: Reader, column: str, limit: int | None) -> Iterator[ParquetRows]:
    """Open the rows of a Parquet file; errors inside the context become one line."""
    with _parquet(reader) as file:
        yield ParquetRows(reader, file, column, limit)
