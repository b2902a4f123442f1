"""Rows of JSONL: the text of each, and its label where one is asked for, as spans of the bytes that were read.

``kernels.py`` scans the lines and finds the fields of nearly all of them. A line that it leaves is parsed by
Python's ``json``, below, which either reads it too or says what is wrong with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreword.arrays import Bools, Bytes, Longs
from foreword.errors import InputError
from foreword.text.block import Block
from foreword.text.files import Chunk
from foreword.text.lines import Lines, whole_lines
from foreword.text.strict_json import parse_json
from foreword.text.unicode import REPLACEMENT, Errors, blank

SPELLED_BYTES = 112
"""Memory of a number in a list, as ``_Spelled``."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class JsonRows:
    """One element per line: the text, the span of the label in the same bytes, and whether the line is not blank.

    A blank line has an empty text.
    """

    texts: Block
    label_starts: Longs
    label_stops: Longs
    present: Bools


def jsonl_blocks(chunks: Iterable[Chunk], name: str, field: str, errors: Errors) -> Iterator[Block]:
    """Yield blocks of a JSONL file's ``field``, from chunks of valid UTF-8. Rows whose text is blank are skipped."""
    for lines in whole_lines(chunks, name=name):
        texts = json_rows(lines, name, field, None, errors).texts
        filled = ~blank(texts.data, texts.starts, texts.stops)
        if filled.any():
            yield Block(texts.data, texts.starts[filled], texts.stops[filled])


def json_rows(
    lines: Lines, name: str, text: str, label: str | None, errors: Errors, *, offset: int | None = None
) -> JsonRows:
    """Find the fields ``text`` and ``label`` of some lines, whose bytes are overwritten.

    offset: where ``lines.data`` begins in the file, for messages. With it a text may be null, which is an empty one.
    """
    from foreword.text.kernels import BLANK, LOOK, find_fields

    spans = np.zeros((len(lines), 4), np.int64)
    fate = np.empty(len(lines), np.uint8)
    text_name, label_name = (np.frombuffer((field or "").encode(), np.uint8) for field in (text, label))
    if find_fields(lines.data, lines.starts, lines.stops, text_name, label_name, spans, fate):
        left = np.flatnonzero(fate == LOOK)
        odd = lines[left]
        for line, row, start, number in zip(left, odd, odd.starts.tolist(), odd.numbers.tolist(), strict=True):
            try:
                found = _parse_fields(row, text, label, errors, nullable=offset is not None)
            except InputError as error:
                begins = "" if offset is None else f" (the line begins at byte {offset + start})"
                raise InputError(f"{name}: line {number} {error}{begins}") from error.__cause__
            if found is None:
                fate[line] = BLANK
            else:
                spans[line] = _overwrite(found, lines.data, start)
    blanks = fate == BLANK
    spans[blanks] = lines.starts[blanks, None]
    text_start, text_stop, label_start, label_stop = np.ascontiguousarray(spans.T)
    return JsonRows(Block(lines.data, text_start, text_stop), label_start, label_stop, ~blanks)


def field_names(line: bytes, place: str) -> list[str]:
    """Return the names of a row's fields. place: file and line, for messages."""
    try:
        row = _parse(line)
    except InputError as error:
        raise InputError(f"{place} {error}") from error.__cause__
    if not isinstance(row, dict):
        raise InputError(f"{place} is not a JSON object")
    return list(row)


# --- by Python's json


class _Spelled(str):
    """A number as the file spells it: a label is a name, and 1.0 is another name than 1."""

    __slots__ = ()


def _parse_fields(
    line: bytes, text: str, label: str | None, errors: Errors, nullable: bool = False
) -> tuple[bytes, bytes] | None:
    """Return a row's text and label (b"" where none is asked for); None for a blank line."""
    if not line or line.decode().isspace():
        return None
    row = _parse(line)
    found = "" if nullable and _field(row, text) is None else _text_of(row, text)
    return _encode(found, text, errors), b"" if label is None else _encode(_label_of(row, label), label, errors)


def _parse(line: bytes) -> Any:
    try:
        return parse_json(line, object_bytes=SPELLED_BYTES, parse_int=_whole_number, parse_float=_Spelled)
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg} (column {error.colno})") from error
    except ValueError as error:  # a number of thousands of digits, a thousand brackets
        raise InputError(f"cannot be read as JSON: {error}") from error


def _whole_number(digits: str) -> _Spelled:
    int(digits)  # which refuses one of thousands of digits
    return _Spelled(digits)


def _text_of(row: Any, field: str) -> str:
    text = _field(row, field)
    if not isinstance(text, str) or isinstance(text, _Spelled):
        raise InputError(f'has a field "{field}" that is not a string')
    return text


def _label_of(row: Any, field: str) -> str:
    label = _field(row, field)
    if isinstance(label, bool):
        return "true" if label else "false"
    if label is None:
        raise InputError(f'has no label: its field "{field}" is null')
    if not isinstance(label, str):  # a list or an object; NaN, which is no JSON, is a float
        raise InputError(f'has a field "{field}" that is neither a string nor a number')
    return label


def _field(row: Any, field: str) -> Any:
    if not isinstance(row, dict):
        raise InputError("is not a JSON object")
    if field not in row:
        raise InputError(f'has no field "{field}" (it has: {listed(row)})')
    return row[field]


def _encode(text: str, field: str, errors: Errors) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:  # JSON may escape half of a surrogate pair, which UTF-8 cannot hold
        if errors == "strict":
            half = f"\\u{ord(text[error.start]):04x}"
            raise InputError(f'has an unpaired surrogate ({half}) in "{field}"; --errors replace reads on') from error
        return _SURROGATE.sub(REPLACEMENT, text).encode()


def _overwrite(fields: tuple[bytes, bytes], data: Bytes, start: int) -> tuple[int, int, int, int]:
    """Write text and label over their line and return their spans: a JSON string is never shorter than its text."""
    text, label = fields
    middle, stop = start + len(text), start + len(text) + len(label)
    data[start:stop] = np.frombuffer(text + label, np.uint8)
    return start, middle, middle, stop


def listed(names: Iterable[str]) -> str:
    """Join names for a message: at most twenty, with unprintable characters escaped."""
    names = ["".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in name) for name in names]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "") or "none"
