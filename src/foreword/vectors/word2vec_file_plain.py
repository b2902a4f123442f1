"""Files of word vectors in plain Python: their format, line by line and entry by entry, with nothing compiled.

``word2vec_file.py`` reads the same by kernels, and leaves every unusual line to this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foreword.arrays import Floats
from foreword.errors import InputError
from foreword.text.block import BLOCK_BYTES
from foreword.text.compression import COMPRESSIONS, decompressed
from foreword.text.files import Chunk, SourceFile, find_files, opened
from foreword.vectors.kernels_text import TOO_LARGE
from foreword.vectors.wordvectors import WordVectors

MOST_DIMENSIONS = 1 << 16
HEAD = 1 << 16
"""Bytes read to detect the format: enough for two lines of any usual number of dimensions."""

UNKNOWN_NUMBER = 1 << 62
"""More words than any file has: no number was declared."""

_HEADER = re.compile(rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})[ \t]*\r?\n")
_BLANKS = re.compile(rb"[ \t]+")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_STRANGE = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Bytes that occur in no text, and in nearly every run of floats."""


# Detecting the format


@dataclass(frozen=True, slots=True)
class Shape:
    """Format and sizes of a file. header: the bytes of its first line, if that declares a number of words."""

    header: int
    words: int
    dimensions: int
    binary: bool

    @property
    def least(self) -> int:
        """Fewest bytes of a word and its vector; the last line may lack its end."""
        return 4 * self.dimensions + 1 if self.binary else 2 * self.dimensions + 1


def shape_of(path: str | Path) -> Shape | None:
    """Return format and sizes of a file, judged by its beginning; None if it is no file of vectors."""
    source = source_of(path)
    with opened(source) as reader:
        chunks = decompressed(reader, HEAD)
        head = _beginning(chunks, HEAD)
        found = _HEADER.match(head)
        if not found or not 1 <= int(found[2]) <= MOST_DIMENSIONS:
            return _headless_shape(head if b"\n" in head else head + _beginning(chunks, 32 * MOST_DIMENSIONS))
        # An entry more, however many dimensions: a number is seldom longer than 32 bytes.
        head += _beginning(chunks, found.end() + 32 * int(found[2]) + HEAD - len(head))
    shape = _headed_shape(head, found.end(), int(found[1]), int(found[2]))
    stored = plain_size(source)
    if stored is not None and shape.words * shape.least > stored + 1:
        raise InputError(
            f"{path}: line 1 declares {shape.words:,} words of {shape.dimensions:,} dimensions, "
            f"but the file has only {stored:,} bytes"
        )
    return shape


def _beginning(chunks: Iterator[Chunk], wanted: int) -> bytes:
    pieces: list[bytes] = []
    while wanted > 0 and (chunk := next(chunks, None)) is not None:
        pieces.append(chunk.data.tobytes())
        wanted -= len(pieces[-1])
    return b"".join(pieces)


def _headed_shape(head: bytes, start: int, words: int, dimensions: int) -> Shape:
    line = head[start:].split(b"\n", 1)[0]
    text = not words or _is_entry(line, dimensions) or not _STRANGE.search(head, start)
    return Shape(start, words, dimensions, binary=not text)


def _headless_shape(head: bytes) -> Shape | None:
    """Detect lines of a word and at least two numbers: with fewer, any list of words and counts would match, and with
    words that are numbers, any table.
    """
    lines = [_BLANKS.split(line.rstrip(b" \t\r")) for line in head.split(b"\n")[:8] if line.strip(b" \t\r")]
    if all(_NUMBER.fullmatch(fields[0]) for fields in lines):
        return None
    numbers = _trailing_numbers(lines[0])
    if not 2 <= numbers <= MOST_DIMENSIONS:
        return None
    return Shape(0, UNKNOWN_NUMBER, numbers, binary=False)


def _trailing_numbers(fields: list[bytes]) -> int:
    """Return how many numbers end a line; its first field is always a word."""
    found = 0
    while found < len(fields) - 1 and _NUMBER.fullmatch(fields[-1 - found]):
        found += 1
    return found


def _is_entry(line: bytes, dimensions: int) -> bool:
    try:
        parse_line(line, dimensions)
    except ValueError:
        return False
    return True


def source_of(path: str | Path) -> SourceFile:
    """Find the one file at a path or address."""
    files = find_files(path)
    if len(files) != 1:
        raise InputError(f"{path}: expected one file of vectors, found {len(files)} files")
    return files[0]


def plain_size(source: SourceFile) -> int | None:
    """Return the size of a file if it is known and the file is not compressed."""
    if source.size is None:
        return None
    with opened(source) as reader:
        head = reader.read(10)
    return None if any(each.marked(head) for each in COMPRESSIONS) else source.size


# Reading


def parse_line(line: bytes, dimensions: int) -> tuple[bytes, list[float]]:
    """Return the word and the numbers of a line; raise a ValueError that explains what is wrong with it.

    Everything before the numbers is the word, blanks included, unless that ends in a number too: then the line has one
    number too many.
    """
    fields = _BLANKS.split(line.rstrip(b" \t\r\n"))
    numbers = fields[len(fields) - dimensions :]
    if len(fields) <= dimensions or (len(fields) > dimensions + 1 and _NUMBER.fullmatch(fields[-dimensions - 1])):
        raise ValueError(f"{_trailing_numbers(fields)} numbers after the word, expected {dimensions}")
    for number in numbers:
        if not _NUMBER.fullmatch(number) or not abs(float(number)) < TOO_LARGE:
            raise ValueError(f"{_shown(number)} is not a number that a float32 can hold")
    return b" ".join(fields[: len(fields) - dimensions]), [float(number) for number in numbers]


def read_text_plain(path: str | Path) -> WordVectors:
    """Read a text file as ``read_vectors`` does, line by line: slower, and with nothing compiled."""
    shape = shape_of(path)
    if shape is None or shape.binary:
        raise InputError(f"{path}: no text of word vectors")
    words, rows = [], []
    with opened(source_of(path)) as reader:
        text = b"".join(chunk.data.tobytes() for chunk in decompressed(reader, BLOCK_BYTES))
    for number, line in enumerate(text[shape.header :].split(b"\n"), 2 if shape.header else 1):
        if line.strip(b" \t\r"):
            try:
                word, numbers = parse_line(line, shape.dimensions)
            except ValueError as error:
                raise InputError(f"{path}: line {number}: {error}") from error
            words.append(word)
            rows.append(numbers)
    check_count(path, shape, len(rows))
    matrix = np.array(rows, np.float64).astype(np.float32).reshape(len(rows), shape.dimensions)
    return WordVectors.of_words(words, matrix)


def read_binary_plain(path: str | Path) -> WordVectors:
    """Read a binary file as ``read_vectors`` does."""
    shape = shape_of(path)
    if shape is None or not shape.binary:
        raise InputError(f"{path}: no binary file of word vectors")
    with opened(source_of(path)) as reader:
        data = b"".join(chunk.data.tobytes() for chunk in decompressed(reader, BLOCK_BYTES))
    at, size = shape.header, 4 * shape.dimensions
    words: list[bytes] = []
    rows: list[Floats] = []
    for _ in range(shape.words):
        blank = data.find(b" ", at)
        if blank < 0 or blank + 1 + size > len(data):
            raise cut_short(path, len(rows), shape)
        words.append(data[at:blank].lstrip(b"\n"))
        rows.append(np.frombuffer(data, "<f4", shape.dimensions, blank + 1))
        at = blank + 1 + size
    matrix = np.array(rows, np.float32).reshape(len(rows), shape.dimensions)
    return WordVectors.of_words(words, matrix)


def check_count(path: str | Path, shape: Shape, found: int) -> None:
    """Raise an InputError unless a file has as many words as it declares."""
    if shape.header and found != shape.words:
        raise InputError(f"{path}: line 1 declares {shape.words:,} words, but the file holds {found:,}")


def cut_short(path: str | Path, found: int, shape: Shape) -> InputError:
    """Return the error for a file that ends too early."""
    return InputError(f"{path}: the file ends within word {found + 1:,} of the {shape.words:,} that line 1 declares")


def _shown(number: bytes) -> str:
    return repr(number[:40].decode("utf-8", "backslashreplace"))
