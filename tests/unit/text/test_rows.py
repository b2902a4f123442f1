"""One stream of rows for every format: the same texts and fields, whatever holds them."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from foreword.errors import InputError, SettingError
from foreword.text.files import parse_size
from foreword.text.rows import RowReading, format_of, read_rows

ROWS = [{"id": "1", "text": "the cat"}, {"id": "2", "text": 'a "quoted" dog, 猫'}, {"id": "3", "text": "\tä\n b"}]


def put(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / name
    match format_of(name):
        case "jsonl":
            data = "".join(json.dumps(row) + "\n" for row in rows)
        case "csv":
            import csv

            into = io.StringIO()
            writer = csv.DictWriter(into, rows[0])
            writer.writeheader()
            writer.writerows(rows)
            data = into.getvalue()
        case "tsv":
            data = "id\ttext\n" + "".join(f"{row['id']}\t{row['text']}\n" for row in rows)
        case "parquet":
            pyarrow = pytest.importorskip("pyarrow")
            pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), path)
            return path
        case _:
            data = "".join(row["text"] + "\n" for row in rows)
    path.write_bytes(gzip.compress(data.encode()) if name.endswith(".gz") else data.encode())
    return path


def read(source: Path | str, **how: Any) -> tuple[list[str], list[dict[str, Any]]]:
    batches = list(read_rows(str(source), RowReading(**how)))
    texts = [text for rows in batches for text in rows.texts.strings()]
    assert sum(map(len, batches)) == len(texts) == sum(len(rows.present) for rows in batches)
    return texts, [fields for rows in batches for fields in rows.fields()]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json.gz", "a.ndjson", "a.csv", "a.csv.gz", "a.parquet"])
def test_rows_are_the_same_in_every_format(tmp_path: Path, name: str) -> None:
    assert read(put(tmp_path, name, ROWS)) == ([row["text"] for row in ROWS], ROWS)


@pytest.mark.parametrize("name", ["a.tsv", "a.tab"])
def test_rows_of_tsv(tmp_path: Path, name: str) -> None:
    assert read(put(tmp_path, name, ROWS[:2])) == ([row["text"] for row in ROWS[:2]], ROWS[:2])


def test_lines_of_text_are_rows_and_blank_ones_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("one\r\n\n \nтри\n".encode())
    [rows] = read_rows(tmp_path / "a.txt", RowReading())
    assert list(rows.texts.strings()) == ["one", "", " ", "три"]
    assert rows.present.tolist() == [True, False, False, True]
    assert rows.fields() == [{"text": "one"}, {"text": ""}, {"text": " "}, {"text": "три"}]


def test_blank_lines_and_nulls_of_jsonl_have_an_empty_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n\n{"text": null}\n\u3000\n{"text": ""}\n')
    [rows] = read_rows(tmp_path / "a.jsonl", RowReading())
    assert list(rows.texts.strings()) == ["a", "", "", "", ""]
    assert rows.present.tolist() == [True, False, True, False, True]
    assert rows.fields() == [{"text": "a"}, {}, {"text": None}, {}, {"text": ""}]


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a", "text"), ("web/a.TXT", "text"), ("a.jsonl", "jsonl"), ("a.json.zst", "jsonl"), ("a.ndjson.bz2", "jsonl"),
        ("a.csv.xz", "csv"), ("a.tab", "tsv"), ("a.parquet", "parquet"), ("standard input", "text"), ("a.md", None),
    ],
)  # fmt: skip
def test_one_table_of_suffixes(name: str, format: str | None) -> None:
    assert format_of(name) == format


def test_tables_may_be_lines(tmp_path: Path) -> None:
    assert read(put(tmp_path, "a.csv", ROWS[:1]), tables=False)[0] == ["id,text", "1,the cat"]


def test_columns_are_named_or_numbered(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", ROWS)
    assert read(path, field="id")[0] == ["1", "2", "3"]
    assert read(path, field=1, header=True)[0] == ["1", "2", "3"]
    assert read(path, field=1, header=False)[1][0] == {"1": "id", "2": "text"}
    with pytest.raises(InputError, match=r'a\.csv: no column "body"'):
        read(path, field="body")


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt", "a.parquet"])
def test_a_row_that_is_too_long_is_an_error(tmp_path: Path, name: str) -> None:
    rows = [{"text": "short"}, {"text": "long " * 2_000_000}, {"text": "short"}]
    path = put(tmp_path, name, rows)
    assert len(read(path)[0]) == 3
    assert len(read(path, longest=11_000_000)[0]) == 3
    with pytest.raises(InputError, match=r"--longest allows more"):
        read(path, longest=5_000_000)


def test_what_is_wrong_names_line_and_byte(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"text": "a"}\r\n{"text": 3}\n')
    with pytest.raises(InputError, match=r'a.jsonl: line 2 has a field "text" that is not a string .* at byte 18\)'):
        read(tmp_path / "a.jsonl")


def test_standard_input_is_read_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(io.RawIOBase):
        """Gives a few bytes at a time, and notes how often it was asked."""

        def __init__(self) -> None:
            self.left, self.reads = [b"a\nb", b"c\nd\n"], 0

        def readable(self) -> bool:
            return True

        def readinto(self, into: Any) -> int:
            self.reads += 1
            data = self.left.pop(0) if self.left else b""
            into[: len(data)] = data
            return len(data)

    slow = Slow()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(slow)))
    batches = read_rows("-", RowReading())
    assert (list(next(batches).texts.strings()), slow.reads) == (["a"], 1)
    assert (list(next(batches).texts.strings()), slow.reads) == (["bc", "d"], 2)


@pytest.mark.parametrize(
    ("text", "size"),
    [("512", 512), ("1K", 1024), ("1.5g", 3 << 29), ("16MiB", 16 << 20), ("2TB", 2 << 40), (" 3m ", 3 << 20)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "M", "x", "1X", "inf", "1e400G", "1 2"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(SettingError, match="is not a size such as 512M"):
        parse_size(text)
