"""Documents from the rows of JSONL and Parquet files: one named field of each.

A row is a document, however long, and leaves whole. Rows whose text is blank are skipped, as lines are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foreword.errors import InputError, MissingExtraError
from foreword.text.block import BLOCK_BYTES, Block, blocks_of
from foreword.text.chunk import Chunk
from foreword.text.files import Reader, SourceFile, opened
from foreword.text.utf8 import REPLACEMENT, Errors, is_utf8
from foreword.text.whitespace import blank

_SURROGATE = re.compile("[\ud800-\udfff]")

MOST_ROWS = 16 << 10
"""How many rows of Parquet are decoded at once where they are short."""


# --- JSONL


def jsonl_blocks(chunks: Iterable[Chunk], name: str, field: str, errors: Errors, block_bytes: int) -> Iterator[Block]:
    """Blocks of a JSONL file's ``field``, from chunks of valid UTF-8."""
    return blocks_of(_texts(_lines(chunks), name, field, errors), block_bytes)


def _lines(chunks: Iterable[Chunk]) -> Iterator[bytes]:
    parts: list[bytes] = []
    for chunk in chunks:
        first, *others = chunk.data.tobytes().split(b"\n")
        parts.append(first)
        if others:
            yield b"".join(parts)
            yield from others[:-1]
            parts = [others[-1]]
    yield b"".join(parts)


def _texts(lines: Iterable[bytes], name: str, field: str, errors: Errors) -> Iterator[bytes]:
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        try:
            text = _text_of(_parsed(line), field)
            encoded = _encoded(text, field, errors)
        except InputError as error:
            raise InputError(f"{name}: line {number} {error}") from error.__cause__
        if text and not text.isspace():
            yield encoded


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode())
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg} (column {error.colno})") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a thousand brackets
        raise InputError(f"cannot be read as JSON: {error}") from error


def _text_of(row: Any, field: str) -> str:
    if not isinstance(row, dict):
        raise InputError("is not a JSON object")
    if field not in row:
        raise InputError(f'has no field "{field}" (it has: {_listed(row)})')
    text = row[field]
    if not isinstance(text, str):
        raise InputError(f'has a field "{field}" that is not a string')
    return text


def _encoded(text: str, field: str, errors: Errors) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:  # JSON may escape half of a surrogate pair, which UTF-8 cannot hold
        if errors == "strict":
            half = f"\\u{ord(text[error.start]):04x}"
            raise InputError(f'has an unpaired surrogate ({half}) in "{field}"; --errors replace reads on') from error
        return _SURROGATE.sub(REPLACEMENT, text).encode()


# --- Parquet


def parquet_blocks(reader: Reader, column: str, errors: Errors, block_bytes: int) -> Iterator[Block]:
    """Blocks of a Parquet file's ``column``, a batch of rows each, mostly without a copy."""
    with _parquet(reader, column) as file:
        yield from _column_blocks(file, column, errors, block_bytes, reader)


def parquet_rows(file: SourceFile, column: str) -> Iterator[list[dict[str, Any]]]:
    """All columns of a Parquet file's rows, some rows at a time; ``column`` must hold text."""
    with opened(file) as reader, _parquet(reader, column) as table:
        for batch in table.iter_batches(batch_size=_rows_per_batch(table.metadata, column, BLOCK_BYTES)):
            yield batch.to_pylist()


@contextmanager
def _parquet(reader: Reader, column: str) -> Iterator[Any]:
    """The file with a ``column`` of text in it; whatever goes wrong with it while inside is told in one line."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "data", f"reading {reader.name}") from None
    if not reader.stream.seekable():
        raise InputError(f"{reader.name}: Parquet can be read from a file, not from a pipe")
    try:
        file = parquet.ParquetFile(reader.stream)
        _check_column(file.schema_arrow, column, reader.name)
        yield file
    except (pyarrow.ArrowException, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{reader.name}: not a Parquet file that can be read ({reason})") from error


def _check_column(schema: Any, column: str, name: str) -> None:
    from pyarrow import types

    if column not in schema.names:
        raise InputError(f'{name}: no column "{column}" (it has: {_listed(schema.names)})')
    kind = schema.field(column).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    # Old writers store text as bytes without saying that it is text.
    is_text = (types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary)
    if not any(test(kind) for test in is_text):
        raise InputError(f'{name}: column "{column}" holds {kind}, not text')


def _column_blocks(file: Any, column: str, errors: Errors, block_bytes: int, reader: Reader) -> Iterator[Block]:
    done, rows = 0, file.metadata.num_rows
    batch_size = _rows_per_batch(file.metadata, column, block_bytes)
    for batch in file.iter_batches(batch_size=batch_size, columns=[column]):
        block = _batch_block(batch.column(0), done, reader.name, errors)
        done += len(batch)
        reader.taken = (reader.size or 0) * done // rows
        if len(block):
            yield block


def _rows_per_batch(metadata: Any, column: str, block_bytes: int) -> int:
    """About a block of text: long rows must come a few at a time, short ones many."""
    # By path: a column inside another one may have the same name.
    place = next(each for each in range(metadata.num_columns) if metadata.schema.column(each).path == column)
    groups = range(metadata.num_row_groups)
    size: int = sum(metadata.row_group(group).column(place).total_uncompressed_size for group in groups)
    rows: int = metadata.num_rows
    return max(1, min(MOST_ROWS, block_bytes * rows // max(size, 1)))


def _batch_block(array: Any, done: int, name: str, errors: Errors) -> Block:
    data, starts, stops = _text_buffers(array)
    rows = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    block = Block(data, starts[rows], stops[rows])
    flaw = _first_invalid(block)
    if flaw is not None:
        if errors == "strict":
            raise InputError(f"{name}: row {done + rows[flaw] + 1} is not valid UTF-8; --errors replace reads on")
        block = Block.from_texts([str(text.data, "utf-8", "replace") for text in _each(block)])
    kept = ~blank(block.data, block.starts, block.stops)
    return Block(block.data, block.starts[kept], block.stops[kept])


def _text_buffers(array: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
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


def _first_invalid(block: Block) -> int | None:
    """The first document that is not valid UTF-8: a file may call a column text and hold anything."""
    if not len(block):
        return None
    whole = block.data[block.starts[0] : block.stops[-1]]
    filled = block.starts[block.starts < block.stops]
    if is_utf8(whole) and not (block.data[filled] & 0xC0 == 0x80).any():
        return None  # valid as a whole, and no document starts inside a character
    return next((place for place, text in enumerate(_each(block)) if not is_utf8(text)), None)


def _each(block: Block) -> Iterator[NDArray[np.uint8]]:
    for start, stop in zip(block.starts.tolist(), block.stops.tolist(), strict=True):
        yield block.data[start:stop]


def _listed(names: Iterable[str]) -> str:
    """Names on one line, not too many."""
    names = list(names)
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "") or "none"
