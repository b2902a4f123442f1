"""Streams of documents from whatever holds text.

The stages, each a generator that pulls on the one before::

    files.py         what the user named      -> files
    compression.py   a file                   -> chunks of bytes
    utf8.py          chunks of bytes          -> chunks of valid text
    documents.py     chunks of text           -> blocks, by line, paragraph or file
    jsonl.py         chunks of text           -> blocks, a row a document
    parquet.py       a file                   -> blocks, a row a document

Nothing is read before it is needed, and a block is forgotten once it is handed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal, TypeAlias, get_args

import numpy as np

from foreword.errors import InputError, SettingError
from foreword.protocols import Meter
from foreword.text.block import BLOCK_BYTES, Block
from foreword.text.compression import decompressed, without_suffix
from foreword.text.documents import Document, text_blocks
from foreword.text.files import Reader, Source, SourceFile, find_files, names_of, opened
from foreword.text.jsonl import jsonl_blocks
from foreword.text.parquet import parquet_blocks
from foreword.text.utf8 import Errors, valid_utf8

__all__ = ["Reading", "Source", "SourceFile", "find_files", "read_blocks", "read_documents"]

Format: TypeAlias = Literal["text", "jsonl", "parquet"]

_FORMATS: dict[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def _check_choice(name: str, value: str | None, choices: tuple[str | None, ...]) -> None:
    if value not in choices:
        raise SettingError(f"{name} must be one of {', '.join(filter(None, choices))}, not {value}")


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read.

    document: what one is in plain text: a line; a paragraph, between blank lines; a whole file. Elsewhere it is a row.
    field: the field of a JSONL file, or the column of a Parquet file, that holds the text.
    format: None tells it by the name: .jsonl or .ndjson, .parquet, anything else is text.
    errors: what is not UTF-8 (or a NUL) is an error, or replaced by U+FFFD.
    block_bytes: how much text is read and handed on at a time.
    """

    document: Document = "line"
    field: str = "text"
    format: Format | None = None
    errors: Errors = "strict"
    block_bytes: int = BLOCK_BYTES

    def __post_init__(self) -> None:
        _check_choice("document", self.document, get_args(Document))
        _check_choice("format", self.format, (None, *get_args(Format)))
        _check_choice("errors", self.errors, get_args(Errors))
        if self.block_bytes < 1:
            raise SettingError(f"block_bytes must be at least 1, not {self.block_bytes}")


BY_LINE = Reading()


def read_blocks(source: Source, reading: Reading = BY_LINE, *, meter: Meter | None = None) -> Iterator[Block]:
    """Blocks of documents from files, folders, globs, ``-`` or addresses.

    Files are found at once, so a wrong name is told here; everything else is told when reading comes to it. A source
    without any document is an error. ``meter`` hears the bytes read, as they are stored, about once a block.
    """
    blocks = _gathered(_file_blocks(find_files(source), reading, meter), reading.block_bytes)
    return _with_text(blocks, names_of(source))


def read_documents(source: Source, reading: Reading = BY_LINE, *, meter: Meter | None = None) -> Iterator[str]:
    """Whole documents as strings, the slow and simple road; a long one has to fit in memory."""
    return _joined(read_blocks(source, reading, meter=meter))


def read_lines(source: Source, reading: Reading = BY_LINE) -> Iterator[str]:
    """Every line of a text, blank ones too, without its end: for formats in which a line's number matters."""
    rest = ""
    for block in read_blocks(source, replace(reading, document="file", format="text")):
        for place, text in enumerate(block.strings(), 1):
            *lines, rest = (rest + text).split("\n")
            yield from (line.removesuffix("\r") for line in lines)
            if rest and (place < len(block) or not block.open):
                yield rest.removesuffix("\r")
                rest = ""


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
    """The documents of an open file."""
    format = reading.format or format_by_name(reader.name)
    if format == "parquet":
        return parquet_blocks(reader, reading.field, reading.errors, reading.block_bytes)
    text = valid_utf8(decompressed(reader, reading.block_bytes), reader.name, reading.errors)
    if format == "jsonl":
        return jsonl_blocks(text, reader.name, reading.field, reading.errors)
    return text_blocks(text, reading.document, reading.block_bytes)


def format_by_name(name: str) -> Format:
    return _FORMATS.get(PurePath(without_suffix(name)).suffix.lower(), "text")


def _gathered(blocks: Iterable[Block], size: int) -> Iterator[Block]:
    """Small blocks joined, so that a folder of small files flows like one large file."""
    waiting: list[Block] = []
    held = 0
    for block in blocks:
        waiting.append(block)
        held += int(block.stops[-1] - block.starts[0])
        # What follows an open block goes on with its last document: nothing may be joined to it.
        if block.open or held >= size // 2:
            yield _merged(waiting)
            waiting, held = [], 0
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


def _with_text(blocks: Iterator[Block], names: list[str]) -> Iterator[Block]:
    empty = True
    for block in blocks:
        empty = False
        yield block
    if empty:
        raise no_text(names)


def no_text(names: list[str]) -> InputError:
    named = ", ".join("standard input" if name == "-" else name for name in names[:3])
    return InputError(f"{named}{f' and {len(names) - 3} more' if len(names) > 3 else ''}: no text in it")


def _joined(blocks: Iterable[Block]) -> Iterator[str]:
    pieces: list[str] = []  # of a document that has begun in an earlier block
    for block in blocks:
        last = len(block) - 1
        for place, text in enumerate(block.strings()):
            pieces.append(text)
            if place < last or not block.open:
                yield "".join(pieces)
                pieces = []
