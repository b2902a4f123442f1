"""Headers of Parquet pages, read as they pass by, beside what Arrow says of the same file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foreword.errors import InputError
from foreword.text.files import find_files, opened
from foreword.text.parquet import parquet_opened
from foreword.text.parquet_pages import DICTIONARY, WatchedPages, _Column, page_header

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def table(rows: int = 3000) -> Any:
    texts = [f"row {number} " * (1 + number % 50) for number in range(rows)]
    lists = [list(range(number % 7)) for number in range(rows)]
    nulls = [None if number % 3 else number / 7 for number in range(rows)]
    return pyarrow.table({"id": range(rows), "text": texts, "lists": lists, "nulls": nulls, "sign": ["a"] * rows})


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_pages_add_up_to_the_column_chunks_of_the_footer(tmp_path: Path, version: str, codec: str) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(
        table(), path, data_page_version=version, compression=codec, data_page_size=4096, row_group_size=1700,
        write_page_checksum=True,
    )  # fmt: skip
    data, metadata = path.read_bytes(), parquet.ParquetFile(path).metadata
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            facts = metadata.row_group(group).column(place)
            start = facts.dictionary_page_offset or facts.data_page_offset
            chunk, at, unpacked, values = data[start : start + facts.total_compressed_size], 0, 0, 0
            while at < len(chunk):
                page = page_header(chunk[at:])
                at += page.header + page.packed
                unpacked += page.header + page.unpacked
                values += page.values if page.kind != DICTIONARY else 0
            assert (at, unpacked, values) == (len(chunk), facts.total_uncompressed_size, facts.num_values)
            in_pieces, column = [], _Column(start)
            for piece in range(0, len(chunk), 7):  # headers are cut anywhere
                in_pieces += list(column.pages(start + piece, chunk[piece : piece + 7]))
            assert sum(page.header + page.packed for page in in_pieces) == len(chunk)


def test_what_is_no_header_is_told_apart_from_one_that_is_cut() -> None:
    whole = bytes.fromhex("1500158c0115662c15101500150615060000")
    assert page_header(whole).header == len(whole)
    for length in range(len(whole)):
        with pytest.raises(IndexError):
            page_header(whole[:length])
    for wrong in (b"\0", b"\x1d" * 40, b"\x1c" * 40, b"\x15" + b"\xff" * 40, b"\x15\x01\x15\x02\x15\x02\0"):
        with pytest.raises((ValueError, IndexError)):
            page_header(wrong)


def rows_read(path: Path, most: int, block: int = 1 << 16) -> list[dict[str, Any]]:
    (file,) = find_files(str(path))
    with opened(file) as reader, parquet_opened(reader, "text", most) as found:
        return [row for batch, _ in found.batches("strict", block) for row in batch.to_pylist()]


def test_long_rows_among_short_ones_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """The mean of the row group promises short rows, so that it has to be read again from where they begin."""
    texts = ["x" * (90_000 if 5000 <= number < 5008 else 10) for number in range(10_000)]
    rows: list[dict[str, Any]] = [{"id": number, "text": text} for number, text in enumerate(texts)]
    path = tmp_path / "x.parquet"
    options: dict[str, Any] = {"write_batch_size": 1, "data_page_size": 20_000, "use_dictionary": False}
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, **options)
    (file,) = find_files(str(path))
    lengths: list[int] = []
    with opened(file) as reader, parquet_opened(reader, "text", 1 << 20) as found:
        for batch, block in found.batches("strict", 1 << 16):
            lengths.append(block.text_bytes())
            assert batch.nbytes < 200_000
    assert sum(lengths) == sum(map(len, texts))
    assert rows_read(path, 1 << 20) == rows


def test_all_rows_come_whatever_the_groups_and_pages(tmp_path: Path) -> None:
    tried: list[dict[str, Any]] = [
        {}, {"row_group_size": 100}, {"data_page_size": 100}, {"use_dictionary": False, "compression": "none"},
    ]  # fmt: skip
    for number, options in enumerate(tried):
        path = tmp_path / f"{number}.parquet"
        parquet.write_table(table(), path, **options)
        assert rows_read(path, 10 << 20) == table().to_pylist()


def test_pages_that_are_too_large_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    bomb = ["\0" * 1_000_000] * 8
    parquet.write_table(pyarrow.table({"id": range(8), "text": bomb}), path, use_dictionary=False, compression="zstd")
    assert path.stat().st_size < 20_000
    assert len(rows_read(path, 9_000_000)) == 8
    with pytest.raises(InputError, match=r"x.parquet: row group 0 has pages that take 8 MB .*--longest allows more"):
        rows_read(path, 7_000_000)


def test_columns_that_end_are_still_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    wide = {f"c{number}": ["\0" * 100_000] * 8 for number in range(20)} | {"text": ["a"] * 8}
    parquet.write_table(pyarrow.table(wide), path, use_dictionary=False, compression="zstd")
    with pytest.raises(InputError, match="row group 0 has pages"):
        rows_read(path, 9_000_000)


def test_a_damaged_header_is_left_to_arrow(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(table(), path, use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:8] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    with pytest.raises(InputError, match="not a Parquet file that can be read"):
        rows_read(path, 10 << 20)
    with path.open("rb") as stream:
        pages = WatchedPages(stream, 1)
        pages.begin(3000, 1, 1)
        stream.seek(4)
        assert pages.read(100) == bytes(data[4:104])
