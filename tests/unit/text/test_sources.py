"""Every rule of reading, held against a few lines of plain Python that say the same."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import regex  # type: ignore[import-untyped]
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foreword.errors import InputError, MissingExtraError, SettingError
from foreword.text import documents
from foreword.text.block import Block
from foreword.text.documents import Document
from foreword.text.sources import Reading, find_files, read_blocks, read_documents

DOCUMENTS: tuple[Document, ...] = ("line", "blank-line", "file")


def blocks_from(data: bytes, **how: Any) -> list[Block]:
    """What comes of ``data`` on standard input."""
    with mock.patch("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data))):
        return list(read_blocks("-", Reading(**how)))


def documents_from(data: bytes, **how: Any) -> list[str]:
    with mock.patch("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data))):
        return list(read_documents("-", Reading(**how)))


def pieces_from(data: bytes, **how: Any) -> list[str]:
    return [text for block in blocks_from(data, **how) for text in block.strings()]


def message_from(data: bytes, **how: Any) -> str:
    with pytest.raises(InputError) as caught:
        documents_from(data, **how)
    return str(caught.value)


def message_of(source: str | Path, **how: Any) -> str:
    with pytest.raises(InputError) as caught:
        list(read_documents(source, Reading(**how)))
    return str(caught.value)


# --- documents


def plain_lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    lines = [line.removesuffix("\r") for line in lines]
    return [line for line in [*lines, last] if line.strip()]


def plain_paragraphs(text: str) -> list[str]:
    found: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    # The last line of the text has no newline after it, so a \r there is text.
    ended = ["\n".join(each).removesuffix("\r") for each in found[:-1]]
    open_end = "\n".join(found[-1])
    return [*ended, open_end] if found[-1] else ended


def plain_file(text: str) -> list[str]:
    return [text] if text.strip() else []


PLAIN: dict[Document, Callable[[str], list[str]]] = {
    "line": plain_lines,
    "blank-line": plain_paragraphs,
    "file": plain_file,
}

# Few characters of every kind, so that each meets each: letters, digits, all widths of UTF-8, white space of one, two
# and three bytes, line ends.
TEXT = st.text(
    st.sampled_from("ab1.,'\n\n\n\r\t  é中文😀\x0b\x1c\x85\xa0\u2003\u2028\u3000\u3042"),
    max_size=200,
)


@pytest.mark.parametrize("document", DOCUMENTS)
@settings(deadline=None, max_examples=300)
@given(text=TEXT, block_bytes=st.integers(1, 60))
@example(text="a\r\nb\r", block_bytes=1)
@example(text=" " * 40 + "a", block_bytes=1)
@example(text="a" + " " * 40 + "\r\n" + " " * 40 + "\nb", block_bytes=1)
@example(text="a" * 40 + "\r\n\r\n" + "é" * 40, block_bytes=1)
@example(text="\ufeff\ufeffa", block_bytes=1)
def test_documents_do_not_depend_on_where_blocks_end(text: str, block_bytes: int, document: Document) -> None:
    expected = PLAIN[document](text.removeprefix("\ufeff"))
    data = text.encode()
    if expected:
        assert documents_from(data, document=document, block_bytes=block_bytes) == expected
    else:
        assert message_from(data, document=document, block_bytes=block_bytes) == "standard input: no text in it"


@settings(deadline=None, max_examples=200)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), block_bytes=st.integers(1, 9))
def test_any_text_by_lines(text: str, block_bytes: int) -> None:
    expected = plain_lines(text.removeprefix("\ufeff"))
    if expected:
        assert documents_from(text.encode(), block_bytes=block_bytes) == expected


def test_lines_are_split_at_newlines_only() -> None:
    assert documents_from("a\vb\x85c\u2028d\re\r\n\r\n  \t\nf\r".encode()) == ["a\vb\x85c\u2028d\re", "f\r"]


def test_blank_lines_of_every_white_space_are_skipped() -> None:
    white = [chr(code) for code in range(0x3001) if chr(code).isspace() and chr(code) not in "\n"]
    lines = ["first", *white, "".join(white), "".join(white * 3), "".join(white) * 3 + "last"]
    assert documents_from("\n".join(lines).encode()) == ["first", lines[-1]]


def test_paragraphs_keep_inner_newlines() -> None:
    text = b"\n\none\r\ntwo\r\n\r\n \t\r\n  three\n\n\nfour\n"
    assert documents_from(text, document="blank-line") == ["one\r\ntwo", "  three", "four"]


def test_a_file_is_kept_as_it_is() -> None:
    assert documents_from(b"\n a\r\n\r\nb\n", document="file") == ["\n a\r\n\r\nb\n"]


def test_block_offsets_rise_and_hold_the_text() -> None:
    blocks = blocks_from(b"a b\n\n c\nd e f\n" * 50, block_bytes=64)
    assert len(blocks) > 3
    for block in blocks:
        assert block.data.dtype == np.uint8
        assert block.starts.dtype == block.stops.dtype == np.int64
        assert (block.starts <= block.stops).all()
        assert (block.stops[:-1] <= block.starts[1:]).all()


# --- long documents


def test_a_long_line_is_cut_before_a_word() -> None:
    blocks = blocks_from(b"word, " * 1000 + b"end\nnext\n", block_bytes=100)
    *opened, last = blocks
    assert opened
    assert all(block.open and len(block) == 1 for block in opened)
    assert not last.open
    assert list(last.strings())[-1] == "next"
    assert all(text.startswith(" word,") for block in opened[1:] for text in block.strings())
    assert max(block.text_bytes() for block in blocks) < 300


GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++\Z|\s+(?!\S)|\s"""
CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++\Z|\s*[\r\n]|\s+(?!\S)|\s"""
)


@pytest.mark.parametrize("pattern", [GPT2, CL100K], ids=["gpt2", "cl100k"])
@settings(deadline=None, max_examples=400)
@given(text=st.text(st.sampled_from("ab1.'  \n\r\té\u3000"), min_size=20, max_size=150))
@example(text="word\n  5" * 4)
def test_a_good_cut_does_not_change_pretokens(text: str, pattern: str) -> None:
    if not text.strip():
        return
    pieces = pieces_from(text.encode(), document="file", block_bytes=16)  # too short for any but a good cut
    assert [token for piece in pieces for token in regex.findall(pattern, piece)] == regex.findall(pattern, text)


def test_without_a_word_the_buffer_grows_and_is_cut_before_white_space() -> None:
    pieces = pieces_from(("д" * 5 + " ").encode() * 200, block_bytes=10)
    assert {len(piece.encode()) for piece in pieces[:-1]} <= set(range(130, 180))
    assert all(piece.startswith(" ") for piece in pieces[1:])


def test_without_white_space_it_is_cut_between_characters() -> None:
    pieces = pieces_from("😀".encode() * 500, block_bytes=10)
    assert len(pieces) > 10
    assert "".join(pieces) == "😀" * 500


def test_line_ends_are_not_cut() -> None:
    pieces = pieces_from("дд\r\n".encode() * 200, document="file", block_bytes=3)
    assert len(pieces) > 10
    assert not any(piece.startswith("\n") or piece.endswith("\r") for piece in pieces)


def test_no_piece_is_blank() -> None:
    text = ("x" * 50 + " " * 500 + "\r\n") * 3
    assert all(piece.strip() for piece in pieces_from(text.encode(), block_bytes=2))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_endless_white_space_is_handed_on(document: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "WHITE_LIMIT", 64)
    blocks = blocks_from(b"a" + b" " * 1000 + b"\r\n\r\nb", document=document, block_bytes=2)
    assert max(block.text_bytes() for block in blocks) < 100
    text = documents_from(b"a" + b" " * 1000 + b"\r\n\r\nb", document=document, block_bytes=2)
    assert text == {"file": ["a" + " " * 1000 + "\r\n\r\nb"]}.get(document, ["a" + " " * 1000, "b"])


class Endless(io.RawIOBase):
    """A file of ``size`` bytes, a pattern over and over, that is nowhere stored."""

    def __init__(self, pattern: bytes, size: int) -> None:
        self._pattern = pattern * (1 + (1 << 20) // len(pattern))
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, space: Any) -> int:
        length = min(len(space), self._left, len(self._pattern))
        space[:length] = self._pattern[:length]
        self._left -= length
        return length


@pytest.mark.parametrize(
    ("pattern", "document", "block_bytes", "size"),
    [
        (b"some words ", "line", 1 << 20, 200 << 20),
        (b"x", "line", 1 << 17, 64 << 20),
        (b"no blank line\n", "blank-line", 1 << 20, 64 << 20),
    ],
    ids=["words", "one-word", "paragraph"],
)
def test_memory_is_flat_on_a_long_document(pattern: bytes, document: Document, block_bytes: int, size: int) -> None:
    read = 0
    with mock.patch("sys.stdin", SimpleNamespace(buffer=Endless(pattern, size))):
        tracemalloc.start()
        try:
            for block in read_blocks("-", Reading(document=document, block_bytes=block_bytes)):
                read += block.text_bytes()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert size - 1 <= read <= size
    assert peak < 12 << 20


# --- UTF-8


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 5, 100])
def test_characters_over_boundaries(block_bytes: int) -> None:
    lines = ["é中😀" * 9, "ß", "日本語", "ab😀"]
    assert documents_from("\n".join(lines).encode(), block_bytes=block_bytes) == lines


@pytest.mark.parametrize("block_bytes", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    ("flaw", "byte"),
    [
        (b"\xff", "0xff"),
        (b"\x80", "0x80"),
        (b"\xe4\xbd\n", "0xe4"),
        (b"\xc0\x80", "0xc0"),
        (b"\xed\xa0\x80", "0xed"),
        (b"\xf4\x90\x80\x80", "0xf4"),
    ],
)
def test_invalid_utf8_is_told_with_its_place(flaw: bytes, byte: str, block_bytes: int) -> None:
    before = "\ufeffgood é\n".encode() * 5
    expected = f"standard input: invalid UTF-8 at byte {len(before)} ({byte}); --errors replace reads on"
    assert message_from(before + flaw + b" more", block_bytes=block_bytes).startswith(expected)


def test_the_place_is_that_in_the_decompressed_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt.gz"
    path.write_bytes(gzip.compress(b"a" * 12345 + b"\xff"))
    assert message_of(path, block_bytes=100).startswith(f"{path}: invalid UTF-8 at byte 12345 (0xff)")


def test_a_file_that_ends_within_a_character() -> None:
    assert "invalid UTF-8 at byte 2 (0xe4)" in message_from(b"ab\xe4\xbd")
    assert documents_from(b"ab\xe4\xbd", errors="replace") == ["ab\ufffd"]


@settings(deadline=None, max_examples=200)
@given(data=st.binary(min_size=1, max_size=60), block_bytes=st.integers(1, 20))
@example(data=b"\xf0\x9f\x98", block_bytes=1)
@example(data=b"a\0\xe4\0b", block_bytes=2)
def test_replacing_is_what_python_does(data: bytes, block_bytes: int) -> None:
    data = b"x" + data  # so that it is not compressed, has no byte order mark, is not blank
    text = data.decode("utf-8", "replace").replace("\0", "\ufffd")
    assert documents_from(data, document="file", errors="replace", block_bytes=block_bytes) == [text]


@pytest.mark.parametrize("block_bytes", [1, 2, 1000])
def test_a_byte_order_mark_is_dropped(block_bytes: int) -> None:
    data = "\ufeffa\n\ufeffb".encode()
    assert documents_from(data, block_bytes=block_bytes) == ["a", "\ufeffb"]
    assert message_from("\ufeff".encode(), block_bytes=block_bytes) == "standard input: no text in it"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf16_is_told(encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    for errors in ("strict", "replace"):
        assert "this is UTF-16" in message_from((mark + "text").encode(encoding), errors=errors)


@pytest.mark.parametrize("block_bytes", [1, 1000])
def test_nul_is_told(block_bytes: int) -> None:
    assert message_from(b"abc\0def", block_bytes=block_bytes) == (
        "standard input: NUL at byte 3; it looks like a binary file"
    )
    assert documents_from(b"abc\0def", errors="replace", block_bytes=block_bytes) == ["abc\ufffddef"]


# --- compression

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
TITLES = {".gz": "a gzip", ".xz": "an xz", ".bz2": "a bzip2", ".zst": "a Zstandard"}
STORY = [f"line {number} of the story, é" for number in range(1000)]
STORY_BYTES = "\n".join(STORY).encode()

each_compression = pytest.mark.parametrize("suffix", COMPRESS)


@each_compression
@pytest.mark.parametrize("block_bytes", [7, 1000, 4 << 20])
@pytest.mark.parametrize("named", [True, False])
def test_compressed_files(suffix: str, block_bytes: int, named: bool, tmp_path: Path) -> None:
    path = tmp_path / ("story.txt" + suffix * named)
    path.write_bytes(COMPRESS[suffix](STORY_BYTES))
    assert list(read_documents(path, Reading(block_bytes=block_bytes))) == STORY


@each_compression
@pytest.mark.parametrize("block_bytes", [7, 4 << 20])
def test_concatenated_members(suffix: str, block_bytes: int) -> None:
    compress = COMPRESS[suffix]
    data = compress(STORY_BYTES[:1000]) + compress(b"") + compress(STORY_BYTES[1000:]) + bytes(512)
    assert documents_from(data, block_bytes=block_bytes) == STORY


@each_compression
@pytest.mark.parametrize("block_bytes", [7, 4 << 20])
def test_truncated_files(suffix: str, block_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    member = COMPRESS[suffix](STORY_BYTES)
    two = member + member
    for length in (0, 1, 2, 4, 9, 11, len(member) // 2, len(member) - 1, len(member) + 3, len(two) - 1):
        path.write_bytes(two[:length])
        assert message_of(path, block_bytes=block_bytes) == f"{path}: the file is truncated", length


@each_compression
def test_corrupt_files(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    data = bytearray(COMPRESS[suffix](STORY_BYTES))
    data[len(data) // 2] ^= 0xFF
    data[-6] ^= 0xFF  # within each format's last checksum, lest the first change be harmless
    path.write_bytes(data)
    assert message_of(path).startswith(f"{path}: corrupt data (")


@each_compression
def test_what_follows_must_be_compressed_too(suffix: str) -> None:
    assert "corrupt data" in message_from(COMPRESS[suffix](b"text") + b"and this is not compressed at all")


@each_compression
def test_a_name_that_is_not_true(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"plain text")
    assert message_of(path) == f"{path} is not {TITLES[suffix]} file"
    path.write_bytes(b"hi")
    assert message_of(path) == f"{path} is not {TITLES[suffix]} file"


@each_compression
def test_nothing_inside(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(COMPRESS[suffix](b""))
    assert message_of(path) == f"{path}: no text in it"


@each_compression
def test_a_small_file_may_hold_much(suffix: str) -> None:
    size = 64_000_000
    data = COMPRESS[suffix]((b"x" * 999 + b" ") * (size // 1000))
    tracemalloc.start()
    try:
        with mock.patch("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data))):
            read = sum(block.text_bytes() for block in read_blocks("-", Reading(block_bytes=1 << 18)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read == size
    assert peak < size // 2


def test_text_that_begins_like_bzip2() -> None:
    assert documents_from(b"BZh91 is a text") == ["BZh91 is a text"]


def test_zstandard_after_a_frame_to_be_skipped() -> None:
    skipped = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"size"
    assert documents_from(skipped + COMPRESS[".zst"](b"text")) == ["text"]


def test_zstandard_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.zst"
    path.write_bytes(COMPRESS[".zst"](b"text"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"x\.zst needs zstandard: pip install"):
        list(read_blocks(path))


# --- JSONL


def jsonl(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.mark.parametrize("block_bytes", [1, 13, 4 << 20])
def test_jsonl(block_bytes: int) -> None:
    data = jsonl({"text": "one\ntwo"}, {"text": " \n"}, {"id": 3, "text": "é😀"}) + b"\r\n  \n" + b'{"text":"end"}'
    assert documents_from(data, format="jsonl", block_bytes=block_bytes) == ["one\ntwo", "é😀", "end"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.JSONL", "a.jsonl.gz", "a.ndjson.zst"])
def test_jsonl_is_told_by_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    compress = COMPRESS.get(path.suffix, bytes)
    path.write_bytes(compress(jsonl({"body": "hello"})))
    assert list(read_documents(path, Reading(field="body"))) == ["hello"]
    assert list(read_documents(path, Reading(format="text"))) == ['{"body": "hello"}']


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": 1, "body": "x"}', 'line 3 has no field "text" (it has: id, body)'),
        (b"{}", 'line 3 has no field "text" (it has: none)'),
        (b'{"text": "x"', "line 3 is not JSON: Expecting ',' delimiter (column 13)"),
        (b'["text"]', "line 3 is not a JSON object"),
        (b'{"text": 5}', 'line 3 has a field "text" that is not a string'),
        (b'{"text": null}', 'line 3 has a field "text" that is not a string'),
        (
            b'{"text": "a\\ud800b"}',
            'line 3 has an unpaired surrogate (\\ud800) in "text"; --errors replace reads on',
        ),
        (b"[" * 100_000, "line 3 cannot be read as JSON: its JSON is nested more than 64 levels deep"),
        (b"1" * 5000, "line 3 cannot be read as JSON: Exceeds the limit"),
    ],
    ids=["field", "empty", "broken", "list", "number", "null", "surrogate", "deep", "digits"],
)
def test_jsonl_errors(line: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"text": "fine"}\n\n' + line + b"\n")
    assert message_of(path).startswith(f"{path}: {message}")
    assert "\n" not in message_of(path)


def test_jsonl_surrogates_replaced() -> None:
    data = b'{"text": "a\\ud800b \\ud83d\\ude00"}'
    assert documents_from(data, format="jsonl", errors="replace") == ["a\ufffdb 😀"]


# --- Parquet

ROWS = ["one\ntwo", None, "é😀", "", " \t", "three"]
KEPT = ["one\ntwo", "é😀", "three"]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
@pytest.mark.parametrize("block_bytes", [1, 4 << 20])
def test_parquet(kind: Any, block_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = [row.encode() if row and "binary" in str(kind) else row for row in ROWS]
    column = pa.array(rows, pa.string() if pa.types.is_dictionary(kind) else kind).cast(kind)
    pq.write_table(pa.table({"id": range(6), "body": column}), path, row_group_size=2)
    assert list(read_documents(path, Reading(field="body", block_bytes=block_bytes))) == KEPT


def test_parquet_with_many_rows_and_a_name_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = [f"row {number}" for number in range(50_000)]
    table = pa.table({"meta": [{"text": 1}] * len(rows), "text": rows})
    pq.write_table(table, path)
    blocks = list(read_blocks(path))
    assert [text for block in blocks for text in block.strings()] == rows
    assert len(blocks) == 1


def test_parquet_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2], "body": ["x", "y"]}), path)
    assert message_of(path) == f'{path}: no column "text" (it has: id, body)'
    assert message_of(path, field="id") == f'{path}: column "id" holds int64, not text'
    whole = path.read_bytes()
    for broken in (b"", b"text", whole[:-10], whole[: len(whole) // 2]):
        path.write_bytes(broken)
        assert message_of(path).startswith(f"{path}: not a Parquet file that can be read (")
    page = pq.read_metadata(io.BytesIO(whole)).row_group(0).column(1).dictionary_page_offset
    path.write_bytes(whole[:page] + b"\xff" * 20 + whole[page + 20 :])
    assert message_of(path, field="body").startswith(f"{path}: not a Parquet file that can be read (")


def test_parquet_without_rows_or_text(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for rows in ([], [None], ["", " "]):
        pq.write_table(pa.table({"text": pa.array(rows, pa.string())}), path)
        assert message_of(path) == f"{path}: no text in it"


@pytest.mark.parametrize("halves", [[b"a\xe4", b"\xbd\xa0b"], [b"fine", b"\xff"]], ids=["split", "bad"])
def test_parquet_with_bytes_that_are_not_text(halves: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": pa.array([b"first", None, *halves], pa.binary())}), path)
    row = 3 if halves[0] != b"fine" else 4
    assert message_of(path) == f"{path}: row {row} is not valid UTF-8; --errors replace reads on"
    replaced = [half.decode("utf-8", "replace") for half in halves]
    assert list(read_documents(path, Reading(errors="replace"))) == ["first", *replaced]


def test_parquet_from_a_pipe() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    with (
        mock.patch("sys.stdin", SimpleNamespace(buffer=Pipe(b"PAR1"))),
        pytest.raises(InputError, match="not from a pipe"),
    ):
        list(read_blocks("-", Reading(format="parquet")))


def test_pyarrow_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="needs pyarrow"):
        list(read_blocks(path))


# --- finding files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``texts`` in the working folder, with files at two depths, some of them hidden."""
    for name in ("b.txt", "a.txt", "sub/c.txt", ".hidden", ".git/d.txt", "sub/.e"):
        path = tmp_path / "texts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"from {name}\n")
    monkeypatch.chdir(tmp_path)
    return Path("texts")


def names(source: Any) -> list[str]:
    return [file.name for file in find_files(source)]


def test_folders(folder: Path) -> None:
    expected = ["texts/a.txt", "texts/b.txt", "texts/sub/c.txt"]
    assert names("texts") == names(folder) == names("texts/") == expected
    assert names("./texts") == [f"./{name}" for name in expected]
    assert list(read_documents(folder)) == ["from a.txt", "from b.txt", "from sub/c.txt"]


def test_globs(folder: Path) -> None:
    assert names("texts/*.txt") == ["texts/a.txt", "texts/b.txt"]
    assert names("texts/**") == ["texts/a.txt", "texts/b.txt", "texts/sub/c.txt"]
    assert names(f"{folder.resolve()}/[b]*") == [f"{folder.resolve()}/b.txt"]
    assert message_of("texts/*.md") == "no file matches texts/*.md"
    (folder / "n[1].txt").write_text("there")
    assert names("texts/n[1].txt") == ["texts/n[1].txt"]


def test_several_sources_in_order(folder: Path) -> None:
    sources: list[str | Path] = [folder / "b.txt", "texts/sub", "texts/a*"]
    assert names(sources) == ["texts/b.txt", "texts/sub/c.txt", "texts/a.txt"]
    assert list(read_documents(sources)) == ["from b.txt", "from sub/c.txt", "from a.txt"]


def test_sizes(folder: Path) -> None:
    assert [file.size for file in find_files(folder)] == [11, 11, 15]
    assert find_files("-")[0].size is None


def test_what_cannot_be_found(folder: Path) -> None:
    assert message_of("x") == "no such file: x"
    assert message_of("texts/a.txt/x").startswith("texts/a.txt/x: ")
    assert message_of("") == "no such file: ''"
    assert message_of("a\0b") == "no such file: 'a\\x00b'"
    (folder / "link").symlink_to("nowhere")
    assert message_of(folder) == "no such file: texts/link"
    with pytest.raises(InputError, match="no file was named"):
        find_files([])


def test_wrong_names_are_told_before_reading() -> None:
    with pytest.raises(InputError, match="no such file: x"):
        read_blocks("x")


def test_no_text(folder: Path) -> None:
    (folder / "empty").write_text("")
    (folder / "blank").write_text("\n \n\n")
    assert message_of("texts/empty") == "texts/empty: no text in it"
    assert message_of("texts/blank") == "texts/blank: no text in it"
    assert message_of("/dev/null") == "/dev/null: no text in it"
    assert len(list(read_documents(folder))) == 3
    with pytest.raises(InputError, match=r"^texts/empty, texts/blank: no text in it$"):
        list(read_blocks(["texts/empty", "texts/blank"]))
    (folder / "sub/c.txt").unlink()
    assert message_of("texts/sub") == "texts/sub: no text in it (a folder without files)"


def test_no_permission(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied", "texts/sub")

    with monkeypatch.context() as patch:  # root may read everything, so the refusal is played
        patch.setattr(Path, "open", refuse)
        assert message_of("texts/a.txt") == "no permission to read texts/a.txt"
    monkeypatch.setattr(os, "scandir", refuse)
    assert message_of(folder) == "no permission to read texts/sub"


def test_a_disk_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(io.RawIOBase):
        def readinto(self, space: Any) -> int:
            raise OSError(5, "Input/output error")

        def readable(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Failing()))
    assert message_of("-") == "standard input: Input/output error"


def test_a_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(COMPRESS[".gz"](STORY_BYTES),))
    writer.start()
    assert list(read_documents(path)) == STORY
    writer.join()


def test_a_stream_that_only_reads() -> None:
    stream = io.BytesIO(STORY_BYTES)
    with mock.patch("sys.stdin", SimpleNamespace(buffer=SimpleNamespace(read=stream.read))):
        assert list(read_documents("-", Reading(block_bytes=1000))) == STORY


def test_a_file_that_hides_its_size() -> None:
    # Files in /proc say that they have no bytes.
    assert len(list(read_documents("/proc/cpuinfo"))) > 1


# --- addresses


@pytest.fixture
def memory() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    for name in ("/docs/b.txt", "/docs/a.txt.gz", "/docs/sub/c.jsonl", "/docs/.hidden", "/docs/sub/.git/d"):
        text = COMPRESS[".gz"](b"one\n") if name.endswith(".gz") else jsonl({"text": name}) if "json" in name else b"b"
        system.pipe_file(name, text)
    yield system
    system.rm("/docs", recursive=True)


@pytest.mark.usefixtures("memory")
def test_addresses() -> None:
    assert list(read_documents("memory://docs/b.txt")) == ["b"]
    assert names("memory://docs") == ["memory://docs/a.txt.gz", "memory://docs/b.txt", "memory://docs/sub/c.jsonl"]
    assert list(read_documents("memory://docs/")) == ["one", "b", "/docs/sub/c.jsonl"]
    assert list(read_documents("memory://docs/*.txt*")) == ["one", "b"]
    assert [file.size for file in find_files("memory://docs/b.txt")] == [1]


def test_parquet_at_an_address(memory: Any) -> None:
    with memory.open("/docs/x.parquet", "wb") as file:
        pq.write_table(pa.table({"text": ["from afar"]}), file)
    assert list(read_documents("memory://docs/x.parquet")) == ["from afar"]


@pytest.mark.usefixtures("memory")
def test_wrong_addresses() -> None:
    assert message_of("memory://docs/x") == "no such file: memory://docs/x"
    assert message_of("memory://docs/*.md") == "memory://docs/*.md: no file there"
    assert message_of("nonsense://x") == "nonsense://x: Protocol not known: nonsense"


def test_an_address_whose_network_fails(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class ServerError(Exception):
        pass

    def fail(*_: Any, **__: Any) -> Any:
        raise ServerError("the server went away\nwith many details")

    monkeypatch.setattr(type(memory), "_open", fail)
    assert message_of("memory://docs/b.txt") == "memory://docs/b.txt: the server went away"


def test_fsspec_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtraError, match=r"reading s3://bucket/x needs fsspec: pip install"):
        find_files("s3://bucket/x")


# --- standard input, small files, progress, settings


def test_standard_input_is_left_open() -> None:
    stream = io.BytesIO(b"text")
    with mock.patch("sys.stdin", SimpleNamespace(buffer=stream)):
        list(read_blocks("-"))
    assert not stream.closed


def test_small_files_flow_like_a_large_one(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number:03}").write_text(f"file {number}\nits end")
    blocks = list(read_blocks(tmp_path, Reading(block_bytes=2000)))
    assert len(blocks) < 6
    texts = [text for block in blocks for text in block.strings()]
    assert texts == [text for number in range(300) for text in (f"file {number}", "its end")]


def test_nothing_is_joined_to_an_open_block(tmp_path: Path) -> None:
    texts = ["short", "a long one, " * 100 + "end", "short again", "x" * 5000, "last"]
    for number, text in enumerate(texts):
        (tmp_path / str(number)).write_text(text)
    for block_bytes in (1, 10, 100, 1000):
        assert list(read_documents(tmp_path, Reading(block_bytes=block_bytes))) == texts


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_meter_counts_stored_bytes(suffix: str, tmp_path: Path) -> None:
    heard: list[tuple[str, int, int | None]] = []
    for name in ("a", "b"):
        (tmp_path / f"{name}{suffix}").write_bytes(COMPRESS.get(suffix, bytes)(STORY_BYTES))
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    blocks = read_blocks(tmp_path, Reading(block_bytes=10_000), meter=lambda *said: heard.append(said))
    count = sum(1 for _ in blocks)
    done = [each[1] for each in heard]
    assert {(phase, known) for phase, _, known in heard} == {("reading", total)}
    assert done == sorted(done)
    assert done[-1] == total
    assert count <= len(heard) <= 3 * count


def test_the_meter_with_parquet_and_with_standard_input(tmp_path: Path) -> None:
    heard: list[Any] = []
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": STORY}), path)
    size = path.stat().st_size
    list(read_blocks(path, meter=lambda *said: heard.append(said)))
    assert heard[-1] == ("reading", size, size)
    with mock.patch("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"text"))):
        list(read_blocks(["-", path], meter=lambda *said: heard.append(said)))
    assert heard[-1] == ("reading", 4 + size, None)


def test_leaving_early_closes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(STORY_BYTES)
    documents = read_documents(path, Reading(block_bytes=100))
    assert next(documents) == STORY[0]
    del documents  # an open file left behind would warn, and warnings are errors here


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"document": "word"}, "document is 'word': expected line or blank-line or file"),
        ({"format": "csv"}, "format is 'csv': expected text or jsonl or parquet"),
        ({"errors": "ignore"}, "errors is 'ignore': expected strict or replace"),
        ({"block_bytes": 0}, "block_bytes is 0: expected at least 1"),
    ],
)
def test_wrong_settings(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=f"^{message}$"):
        Reading(**wrong)


@pytest.mark.parametrize(("name", "package"), [("b.zst", "zstandard"), ("b.parquet", "pyarrow")])
def test_a_missing_package_is_reported_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    (tmp_path / "a.txt").write_text("text\n")
    (tmp_path / name).write_bytes(b"")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=f"{name} needs {package}"):
        find_files([tmp_path / "a.txt", tmp_path / name])
