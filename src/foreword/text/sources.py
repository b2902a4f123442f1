"""Streams of documents from whatever holds text.

The stages, each a generator that pulls on the one before::

    files.py         what the user named      -> files
    compression.py   a file                   -> chunks of bytes
    unicode.py       chunks of bytes          -> chunks of valid text
    documents.py     chunks of text           -> blocks, by line, paragraph or file
    lines.py         chunks of text           -> lines
    jsonl.py         lines                    -> blocks, one document per row
    parquet.py       a file                   -> blocks, one document per row
    rows.py          a file of any format     -> rows with their fields
    labelled.py      a file of any format     -> texts with their labels

Nothing is read before it is needed, and a block is released once it has been emitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from foreword.checks import check_choice, check_numbers
from foreword.errors import InputError
from foreword.protocols import Meter
from foreword.text.block import BLOCK_BYTES, Block
from foreword.text.compression import decompressed
from foreword.text.documents import Document, text_blocks
from foreword.text.files import STANDARD_INPUT, Reader, Source, SourceFile, find_files, names_of, opened
from foreword.text.formats import DocumentFormat
from foreword.text.jsonl import jsonl_blocks
from foreword.text.lines import Lines, whole_lines
from foreword.text.parquet import parquet_blocks
from foreword.text.rows import format_of
from foreword.text.unicode import Errors, valid_utf8

__all__ = ["Reading", "Source", "SourceFile", "find_files", "read_blocks", "read_documents", "read_lines"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How documents are read.

    document: a line, a paragraph (between blank lines) or a whole file of plain text; elsewhere it is a row.
    field: the field of a JSONL file, or the column of a Parquet file, that holds the text.
    format: None takes it from the file's name: .jsonl, .ndjson or .json, .parquet; anything else is text.
    errors: whether bytes that are not UTF-8 (or are NUL) are an error, or are replaced by U+FFFD.
    block_bytes: how much text is read and emitted at a time.
    """

    document: Document = "line"
    field: str = "text"
    format: DocumentFormat | None = None
    errors: Errors = "strict"
    block_bytes: int = BLOCK_BYTES

    def __post_init__(self) -> None:
        check_choice(self, "document", get_args(Document))
        check_choice(self, "format", (None, *get_args(DocumentFormat)))
        check_choice(self, "errors", get_args(Errors))
        check_numbers(self, "block_bytes", whole=True, least=1)

    def format_of(self, name: str) -> DocumentFormat:
        """Return the format of a file: the one that was set, or the one its name stands for."""
        found = self.format or format_of(name)
        return found if found in ("jsonl", "parquet") else "text"


BY_LINE = Reading()


def read_blocks(source: Source, reading: Reading = BY_LINE, *, meter: Meter | None = None) -> Iterator[Block]:
    """Yield blocks of documents from files, folders, globs, ``-`` or addresses.

    Files are found at once, so that a wrong name is reported here; other errors are raised when reading comes to them.
    A source without any document is an error. ``meter`` is called with the bytes read, as stored, about once per block.
    """
    return not_empty(blocks_of_files(find_files(source), reading, meter), names_of(source))


def read_documents(source: Source, reading: Reading = BY_LINE, *, meter: Meter | None = None) -> Iterator[str]:
    """Yield whole documents as strings: slow and simple. A long document has to fit in memory."""
    return _joined(read_blocks(source, reading, meter=meter))


def read_lines(source: Source, errors: Errors = "strict") -> Iterator[str]:
    """Yield every line of a text, blank ones too, without its end: for formats in which a line's number matters."""
    empty = True
    for _, lines in read_line_batches(source, errors):
        empty = empty and not len(lines.without_blank())
        yield from lines.strings()
    if empty:
        raise no_text(names_of(source))


def read_line_batches(
    source: Source, errors: Errors = "strict", *, prompt: bool = False
) -> Iterator[tuple[str, Lines]]:
    """Yield the names of files and their lines, blank ones too, many at a time.

    Files are found at once. prompt: whether lines of standard input are emitted as they arrive.
    """
    files = find_files(source, prompt=prompt)

    def batches() -> Iterator[tuple[str, Lines]]:
        for file in files:
            with opened(file) as reader:
                chunks = valid_utf8(decompressed(reader, BLOCK_BYTES), file.name, errors)
                for lines in whole_lines(chunks, name=file.name):
                    yield file.name, lines

    return batches()


def blocks_of_files(files: list[SourceFile], reading: Reading, meter: Meter | None = None) -> Iterator[Block]:
    """Yield blocks of the documents of files; none if there is no text in them."""
    return gather_blocks(_file_blocks(files, reading, meter), reading.block_bytes)


def _file_blocks(files: list[SourceFile], reading: Reading, meter: Meter | None) -> Iterator[Block]:
    sizes = [file.size for file in files]
    total = None if None in sizes else sum(size for size in sizes if size)
    before = 0
    for file in files:
        with opened(file) as reader:
            for block in blocks_from(reader, reading):
                if meter:
                    meter("reading", before + reader.taken, total)
                yield block
            before += reader.taken
        if meter:
            meter("reading", before, total)


def blocks_from(reader: Reader, reading: Reading) -> Iterator[Block]:
    """Yield blocks of the documents of an open file."""
    format = reading.format_of(reader.name)
    if format == "parquet":
        return parquet_blocks(reader, reading.field, reading.errors, reading.block_bytes)
    text = valid_utf8(decompressed(reader, reading.block_bytes), reader.name, reading.errors)
    if format == "jsonl":
        return jsonl_blocks(text, reader.name, reading.field, reading.errors)
    return text_blocks(text, reading.document, reading.block_bytes)


def gather_blocks(blocks: Iterable[Block], size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Join small blocks, so that a folder of small files is read like one large file."""
    waiting: list[Block] = []
    size_waiting = 0
    for block in blocks:
        waiting.append(block)
        size_waiting += int(block.stops[-1] - block.starts[0])
        # The next block continues the last document of an open one: nothing may be joined to it.
        if block.open or size_waiting >= size // 2:
            yield _merged(waiting)
            waiting, size_waiting = [], 0
    if waiting:
        yield _merged(waiting)


def _merged(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    spans = [block.data[block.starts[0] : block.stops[-1]] for block in blocks]
    ends = np.cumsum([len(span) for span in spans])
    shifts = [end - len(span) - block.starts[0] for end, span, block in zip(ends, spans, blocks, strict=True)]
    return Block(
        np.concatenate(spans),
        np.concatenate([block.starts + shift for block, shift in zip(blocks, shifts, strict=True)]),
        np.concatenate([block.stops + shift for block, shift in zip(blocks, shifts, strict=True)]),
        blocks[-1].open,
    )


def not_empty(blocks: Iterable[Block], names: Sequence[str]) -> Iterator[Block]:
    """Yield the blocks; raise an error if there are none."""
    empty = True
    for block in blocks:
        empty = False
        yield block
    if empty:
        raise no_text(names)


def no_text(names: Sequence[str], what: str = "text") -> InputError:
    """Return the error that a source holds nothing to read."""
    named = ", ".join(STANDARD_INPUT if name == "-" else name for name in names[:3])
    return InputError(f"{named}{f' and {len(names) - 3} more' if len(names) > 3 else ''}: no {what} in it")


def _joined(blocks: Iterable[Block]) -> Iterator[str]:
    pieces: list[str] = []  # of a document that began in an earlier block
    for block in blocks:
        last = len(block) - 1
        for index, text in enumerate(block.strings()):
            pieces.append(text)
            if index < last or not block.open:
                yield "".join(pieces)
                pieces = []
