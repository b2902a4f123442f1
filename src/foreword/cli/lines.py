"""Lines one for one: what is read line by line and answered line by line, blank lines included.

The readers in ``foreword.text`` skip what is blank. Here every line of the input has to have its answer at the same
place of the output, so that the two can be pasted together, and an answer is given as soon as its line is there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from io import BufferedReader
from typing import TYPE_CHECKING, BinaryIO, cast

from foreword.text.block import BLOCK_BYTES
from foreword.text.compression import COMPRESSIONS, decompressed
from foreword.text.files import Reader, SourceFile, find_files, opened
from foreword.text.utf8 import Errors, valid_utf8

if TYPE_CHECKING:
    from foreword.text.chunk import Chunk


@dataclass(frozen=True, slots=True)
class Batch:
    """Some lines of a file, blank ones included. first: the number of the first, counted from 1."""

    name: str
    first: int
    lines: list[str]

    def place(self, line: int) -> str:
        """Where a line of the batch stands, for messages."""
        return f"{self.name}: line {self.first + line}"


def line_batches(name: str, errors: Errors = "strict") -> Iterator[Batch]:
    """The lines of a file, a folder, a glob or standard input, as many at a time as there are."""
    # Looked for at once, so that a wrong name is told before anything is loaded.
    files = [_standard_input()] if name == "-" else find_files(name)
    return (batch for file in files for batch in _in_file(file, errors))


def _in_file(file: SourceFile, errors: Errors) -> Iterator[Batch]:
    first = 1
    with opened(file) as reader:
        for lines in split_lines(valid_utf8(_chunks(reader), file.name, errors)):
            yield Batch(file.name, first, lines)
            first += len(lines)


def split_lines(chunks: Iterable[Chunk]) -> Iterator[list[str]]:
    """Whole lines without their ends, a list for every chunk in which one ends."""
    held: list[bytes] = []  # the beginning of a line whose end has not come yet
    for chunk in chunks:
        first, *others = chunk.data.tobytes().split(b"\n")
        held.append(first)
        if others:
            yield [_text(line) for line in (b"".join(held), *others[:-1])]
            held = [others[-1]]
    if last := b"".join(held):
        yield [_text(last)]


def _text(line: bytes) -> str:
    return line.decode().removesuffix("\r")


def _chunks(reader: Reader) -> Iterator[Chunk]:
    if isinstance(reader.stream, Prompt) and not reader.stream.is_compressed():
        return _as_they_come(reader)
    return decompressed(reader, BLOCK_BYTES)


def _as_they_come(reader: Reader) -> Iterator[Chunk]:
    """Without a look for the mark of a compressed file: that waits for ten bytes, and the first line may be shorter."""
    while len(chunk := reader.read_chunk(BLOCK_BYTES)):
        yield chunk


def _standard_input() -> SourceFile:
    prompt = Prompt(cast(BufferedReader, sys.stdin.buffer))
    return SourceFile("standard input", None, lambda: nullcontext(cast(BinaryIO, prompt)))


class Prompt:
    """A stream that gives what is there, instead of waiting until all that was asked for has come."""

    def __init__(self, stream: BufferedReader) -> None:
        self.stream = stream

    def read(self, size: int) -> bytes:
        return self.stream.read1(size)

    def is_compressed(self) -> bool:
        head = self.stream.peek(1) if hasattr(self.stream, "peek") else b""
        return any(each.marked(head) for each in COMPRESSIONS)
