"""The scanner of JSON rows against Python's ``json``: the same text and label, or the same complaint."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foreword.errors import InputError
from foreword.text import jsonl
from foreword.text.files import Chunk, chunk_of
from foreword.text.jsonl import json_rows
from foreword.text.kernels import BLANK, FOUND, LOOK, find_fields
from foreword.text.lines import Lines, whole_lines

NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ROWS = st.fixed_dictionaries(
    {"text": TEXTS, "label": TEXTS | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)},
    optional={"id": NESTED, "more": NESTED, "é": NESTED},
)


def scanned(line: bytes, text: str = "text", label: str | None = "label") -> tuple[bytes, bytes] | str | None:
    """What the reader makes of a line: text and label, None for a blank one, or its complaint."""
    data = np.frombuffer(b"before\n" + line + b"\nafter", np.uint8).copy()
    lines = Lines(data, np.array([7]), np.array([7 + len(line)]), np.array([1]))
    try:
        rows = json_rows(lines, "file", text, label, "strict")
    except InputError as error:
        return str(error)
    assert data[:7].tobytes() == b"before\n"  # nothing is written outside the line
    assert data[-6:].tobytes() == b"\nafter"
    if not rows.present[0]:
        return None
    start, stop = int(rows.label_starts[0]), int(rows.label_stops[0])
    [found] = list(rows.texts.strings())
    return found.encode(), data[start:stop].tobytes() if label else b""


def plain(line: bytes, text: str = "text", label: str | None = "label") -> tuple[bytes, bytes] | str | None:
    try:
        return jsonl._parse_fields(line, text, label, "strict")
    except InputError as error:
        return f"file: line 1 {error}"


def fate_of(line: str) -> int:
    data = np.frombuffer(line.encode(), np.uint8).copy()
    fate = np.zeros(1, np.uint8)
    text, label = (np.frombuffer(name, np.uint8) for name in (b"text", b"label"))
    find_fields(data, np.array([0]), np.array([len(data)]), text, label, np.zeros((1, 4), np.int64), fate)
    return int(fate[0])


@settings(max_examples=300, deadline=None)
@given(row=ROWS, ascii_only=st.booleans(), indent=st.sampled_from([(", ", ": "), (",", ":"), (" ,\t", " : ")]))
def test_rows_are_read_as_json_reads_them(row: dict[str, Any], ascii_only: bool, indent: tuple[str, str]) -> None:
    line = json.dumps(row, ensure_ascii=ascii_only, separators=indent).encode()
    assert scanned(line) == plain(line)
    assert scanned(line, label=None) == plain(line, label=None)
    found = scanned(line)
    assert isinstance(found, tuple)
    assert found[0].decode() == row["text"]


@settings(max_examples=250, deadline=None)
@given(row=ROWS, cut=st.integers(0, 200), swap=st.binary(max_size=2), width=st.integers(0, 3))
@example({"text": "", "label": 0}, 0, b"", 0)
def test_broken_rows_are_refused_as_json_refuses_them(row: dict[str, Any], cut: int, swap: bytes, width: int) -> None:
    line = json.dumps(row).encode()
    line = line[: cut % len(line)] + swap + line[cut % len(line) + width :]
    line = line.decode(errors="replace").replace("\n", " ").encode()
    assert scanned(line) == plain(line)


@pytest.mark.parametrize(
    "line",
    [
        '{"text": "a", "label": "b"}',
        '  {"text":"a","label":-0.5e+3 }\t',
        '{"id": {"a": [1, {"b": []}, {}, "x\\""]}, "text": "\\u00e9\\ud83d\\ude00\\n", "label": true}',
        '{"text": "first", "text": "last", "label": 1, "label": 2}',
    ],
)
def test_what_is_common_is_taken_by_the_scanner(line: str) -> None:
    assert fate_of(line) == FOUND
    assert scanned(line.encode()) == plain(line.encode())


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{}",
        '{"text": "a"}',
        '{"text": 1, "label": 1}',
        '{"text": "a", "label": null}',
        '{"text": "a", "label": []}',
        '{"text": "a", "label": {}}',
        '{"text": "a", "label": NaN}',
        '{"text": "a", "label": -Infinity}',
        '{"text": "\\ud800", "label": 1}',
        '{"te\\u0078t": "a", "label": 1}',
        '{"text": "a", "label": 01}',
        '{"text": "a", "label": 1.}',
        '{"text": "a", "label": 1,}',
        '{"text": "a", "label": 1} x',
        '{"text": "a\tb", "label": 1}',
        '{"text": "\\x", "label": 1}',
        '{"text": "a", "label": 1' + "0" * 5000 + "}",
        '{"text": "a", "label": 1, "deep": ' + "[" * 61 + "]" * 61 + "}",
        '{"text": "a", "label": tru}',
        '{"text": "a", "label": truex}',
        '{"text" "a"}',
        '{"text": "a" "label": 1}',
        "{'text': 'a'}",
        '{"text": "a", "x": [1 2], "label": 1}',
        '{"text": "a", "x": {"a" 1}, "label": 1}',
        '{"text": "a", "x": [1}, "label": 1}',
        '{"text": "a", "x": {"a": 1, }, "label": 1}',
        '{"text": "a',
        '{"text": "a\\',
        '{"text": "a\\u12',
    ],
)
def test_what_is_odd_is_left_to_python(line: str) -> None:
    assert fate_of(line) == LOOK
    assert scanned(line.encode()) == plain(line.encode())


def test_blank_lines() -> None:
    assert fate_of("") == fate_of(" \t") == BLANK
    assert scanned(b"\x0b\x0c") is None  # white space to Python, though not to JSON


def test_labels_are_spelled_as_the_file_spells_them() -> None:
    for label in ("1", "1.0", "-0", "1e5", "true", "false", '"1.0"', '"\\u0031"', "12345678901234567890"):
        expected = json.loads(label) if label.startswith('"') else label
        for odd in ("", ', "\\u0061": 1'):  # an escaped key sends the row the plain road
            assert scanned(f'{{"text": "x", "label": {label}{odd}}}'.encode()) == (b"x", expected.encode())


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from("ab\n\r"), max_size=40), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_whole_lines_whatever_the_chunks(text: str, sizes: list[int]) -> None:
    chunks: list[Chunk] = []
    place = 0
    while place < len(text):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(chunk_of(text[place : place + size].encode(), headroom=2))
        place += size
    found = [(number, line) for lines in whole_lines(chunks) for number, line in zip(lines.numbers, lines, strict=True)]
    *lines, last = text.split("\n")
    expected = [line.removesuffix("\r") for line in lines] + ([last] if last else [])
    assert found == [(number, line.encode()) for number, line in enumerate(expected, 1)]
