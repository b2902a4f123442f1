"""Rows that are lines: JSONL and plain text, read with their texts and written out as they were.

A line's bytes are kept as they lie in the file, its end included. Scores of a JSONL row are put before its closing
brace; those of a line of text before the line, with tabs between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from foreword.arrays import Bools, Bytes, Longs
from foreword.errors import InputError
from foreword.filtering.columns import Column
from foreword.text.block import BLOCK_BYTES, Block
from foreword.text.chunk import Chunk
from foreword.text.compression import decompressed
from foreword.text.files import Reader
from foreword.text.jsonl import json_rows
from foreword.text.lines import Lines, whole_lines
from foreword.text.utf8 import Errors, valid_utf8
from foreword.text.whitespace import blank

LineFormat = Literal["jsonl", "text"]

_NEWLINE, _RETURN = 10, 13
_NOTHING = np.empty(0, np.uint8), np.empty(0, np.int64)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class LineBatch:
    """Some lines of a file.

    lines: as they are, without their ends; texts: the text of each, in other bytes, empty where a row has none.
    rows: which lines are rows and not blank. offset: where in the file ``lines.data`` begins.
    """

    lines: Lines
    texts: Block
    rows: Bools
    format: LineFormat
    name: str
    offset: int

    def __len__(self) -> int:
        return len(self.lines)

    def written(self, kept: Bools, columns: Sequence[Column]) -> memoryview:
        """The kept lines, with these columns put in; blank lines get none."""
        from foreword.filtering.kernels import copy_rows

        lines, chosen = self.lines, np.flatnonzero(kept)
        stops = _with_returns(lines)
        inserted, ends = self._members(chosen, columns) if columns else _NOTHING
        cuts = lines.starts if self.format == "text" else self._braces() if columns else stops
        room = int((stops[chosen] - lines.starts[chosen]).sum()) + len(chosen) + len(inserted)
        out = np.empty(room, np.uint8)
        copy_rows(lines.data, lines.starts, cuts, stops, chosen, inserted, ends, out)
        return out.data

    def _members(self, chosen: Longs, columns: Sequence[Column]) -> tuple[Bytes, Longs]:
        """What is put into each chosen line, one after another, and where each begins."""
        if self.format == "jsonl":
            self._check_names(columns)
            keys = [json.dumps(column.name, ensure_ascii=False) for column in columns]
            pattern = "".join(f", {key.replace('{', '{{').replace('}', '}}')}: {{}}" for key in keys)
        else:
            pattern = "{}\t" * len(columns)
        quoted = self.format == "jsonl"
        values = [column.at(chosen).spelled("null" if quoted else "", quoted) for column in columns]
        members = [member.encode() for member in map(pattern.format, *values)]
        for place in np.flatnonzero(~self.rows[chosen]).tolist():
            members[place] = b""
        ends = np.zeros(len(members) + 1, np.int64)
        np.cumsum(list(map(len, members)), out=ends[1:])
        return np.frombuffer(b"".join(members), np.uint8), ends

    def _braces(self) -> Longs:
        from foreword.filtering.kernels import closing_braces

        places = np.empty(len(self.lines), np.int64)
        if closing_braces(self.lines.data, self.lines.starts, self.lines.stops, places):
            places = np.where(places < 0, self.lines.stops, places)  # blank lines, into which nothing is put
        return places

    def _check_names(self, columns: Sequence[Column]) -> None:
        """Refuse a row that has one of the columns already: two members of one name are read by nobody alike."""
        names = {column.name for column in columns}
        pattern = re.compile("|".join(re.escape(json.dumps(name, ensure_ascii=False)) for name in names).encode())
        view = np.ascontiguousarray(self.lines.data).data
        at = 0
        while found := pattern.search(view, at):
            line = int(np.searchsorted(self.lines.starts, found.start(), "right")) - 1
            taken = names & set(json.loads(bytes(view[self.lines.starts[line] : self.lines.stops[line]])))
            if taken:
                place = f"{self.name}: line {self.lines.numbers[line]}"
                raise InputError(
                    f'{place} has a field "{min(taken)}" already: give the model a name, as in --model NAME=PATH'
                )
            at = int(self.lines.stops[line])


def line_batches(
    reader: Reader, format: LineFormat, field: str, errors: Errors, longest: int, first: tuple[int, int] = (1, 0)
) -> Iterator[LineBatch]:
    """The lines of a file, many at a time. first: the number of its first line and where that begins."""
    mark = [0]
    raw = _marked(decompressed(reader, BLOCK_BYTES), mark)
    number, offset = first
    chunks = _bounded(valid_utf8(raw, reader.name, errors), longest, reader.name, offset)
    for found in whole_lines(chunks):
        lines = Lines(found.data, found.starts, found.stops, found.numbers + (number - 1))
        begins = offset + mark[0]
        texts, rows = (_json_texts if format == "jsonl" else _plain_texts)(lines, reader.name, field, errors, begins)
        yield LineBatch(lines, texts, rows, format, reader.name, begins)
        offset += _length(lines)


def _length(lines: Lines) -> int:
    """How many bytes of the file the lines took: up to the beginning of the next."""
    end = int(_with_returns(lines)[-1])
    return end + (end < len(lines.data))


def _with_returns(lines: Lines) -> Longs:
    """Where the lines stop if a carriage return before the line feed is part of them."""
    inside = np.minimum(lines.stops, max(0, len(lines.data) - 1))
    return np.asarray(lines.stops + ((lines.stops < len(lines.data)) & (lines.data[inside] == _RETURN)), np.int64)


def _plain_texts(lines: Lines, name: str, field: str, errors: Errors, offset: int) -> tuple[Block, Bools]:
    return Block(lines.data, lines.starts, lines.stops), ~blank(lines.data, lines.starts, lines.stops)


def _json_texts(lines: Lines, name: str, field: str, errors: Errors, offset: int) -> tuple[Block, Bools]:
    """Each row's text, unescaped in a copy of the lines. What the kernel leaves is read by Python's ``json``."""
    from foreword.text.kernels_json import BLANK, LOOK, find_fields

    data = lines.data.copy()
    spans = np.zeros((len(lines), 4), np.int64)
    fate = np.empty(len(lines), np.uint8)
    wanted, nothing = np.frombuffer(field.encode(), np.uint8), np.empty(0, np.uint8)
    if find_fields(data, lines.starts, lines.stops, wanted, nothing, spans, fate):
        copied = Lines(data, lines.starts, lines.stops, lines.numbers)
        for line in np.flatnonzero(fate == LOOK).tolist():
            one = copied[np.array([line])]
            spans[line, :2] = int(one.starts[0])
            if _is_null(next(iter(one)), field):
                continue
            try:
                texts = json_rows(one, name, field, None, errors).texts
            except InputError as error:
                raise InputError(
                    f"{error} (the line begins at byte {offset + int(one.starts[0])})"
                ) from error.__cause__
            if len(texts):
                spans[line, :2] = texts.starts[0], texts.stops[0]
            else:
                fate[line] = BLANK
    blanks = fate == BLANK
    spans[blanks, 0] = spans[blanks, 1] = lines.starts[blanks]
    return Block(data, np.ascontiguousarray(spans[:, 0]), np.ascontiguousarray(spans[:, 1])), ~blanks


def _is_null(line: bytes, field: str) -> bool:
    """Whether the row says that it has no text, which is no error."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and field in row and row[field] is None


def _marked(chunks: Iterator[Chunk], length: list[int]) -> Iterator[Chunk]:
    """The same chunks; ``length`` becomes that of a byte order mark at their beginning."""
    done = 0
    try:
        for chunk in chunks:
            if done == 0 and chunk.data[:3].tobytes() == _BYTE_ORDER_MARK:
                length[0] = 3
            done += len(chunk)
            yield chunk
    except InputError as error:  # a compressed file that is damaged or cut off
        raise InputError(f"{error} (after {done:,} bytes of text)") from error.__cause__


_NEAR = 64 << 10


def _bounded(chunks: Iterator[Chunk], longest: int, name: str, offset: int) -> Iterator[Chunk]:
    """The same chunks, as long as no line in them is longer than ``longest``, which is at least a chunk."""
    begun = begins = offset  # where the line began that a chunk leaves open, and where the next chunk does
    for chunk in chunks:
        data = chunk.data
        ended = _search(data, range(0, len(data), _NEAR), lambda places: int(places[0]))
        length = begins - begun + (len(data) if ended is None else ended)
        if length > longest:
            raise InputError(
                f"{name}: the line that begins at byte {begun} has more than {longest:,} bytes; --longest allows more"
            )
        if ended is not None:
            last = _search(data, range((len(data) - 1) // _NEAR * _NEAR, -1, -_NEAR), lambda places: int(places[-1]))
            assert last is not None
            begun = begins + last + 1
        begins += len(data)
        yield chunk


def _search(data: Bytes, starts: range, choose: Callable[[Longs], int]) -> int | None:
    for start in starts:
        places = np.flatnonzero(data[start : start + _NEAR] == _NEWLINE)
        if len(places):
            return start + choose(places)
    return None
