"""Rows of Parquet in bounded memory, whatever the row groups and pages."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from foreword.errors import InputError
from foreword.text.files import find_files, opened
from foreword.text.parquet import parquet_blocks, parquet_opened

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def table(rows: int = 3000) -> Any:
    texts = [f"row {number} " * (1 + number % 50) for number in range(rows)]
    lists = [list(range(number % 7)) for number in range(rows)]
    nulls = [None if number % 3 else number / 7 for number in range(rows)]
    return pyarrow.table({"id": range(rows), "text": texts, "lists": lists, "nulls": nulls, "sign": ["a"] * rows})


def rows_read(path: Path, limit: int | None, block: int = 1 << 16) -> list[dict[str, Any]]:
    (file,) = find_files(str(path))
    with opened(file) as reader, parquet_opened(reader, "text", limit) as found:
        return [row for batch, _ in found.batches("strict", block) for row in batch.to_pylist()]


def test_long_rows_among_short_ones_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """The mean of the row group promises short rows; so few are decoded at a time that the long ones do no harm."""
    texts = ["x" * (90_000 if 5000 <= number < 5008 else 10) for number in range(10_000)]
    rows: list[dict[str, Any]] = [{"id": number, "text": text} for number, text in enumerate(texts)]
    path = tmp_path / "x.parquet"
    options: dict[str, Any] = {"write_batch_size": 1, "data_page_size": 20_000, "use_dictionary": False}
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, **options)
    (file,) = find_files(str(path))
    lengths: list[int] = []
    with opened(file) as reader, parquet_opened(reader, "text", 4 << 20) as found:
        for batch, block in found.batches("strict", 1 << 16):
            lengths.append(block.text_bytes())
            assert batch.nbytes < 1_000_000
    assert sum(lengths) == sum(map(len, texts))
    assert rows_read(path, 4 << 20) == rows_read(path, None) == rows


def test_all_rows_come_whatever_the_groups_and_pages(tmp_path: Path) -> None:
    tried: list[dict[str, Any]] = [
        {}, {"row_group_size": 100}, {"data_page_size": 100}, {"use_dictionary": False, "compression": "none"},
    ]  # fmt: skip
    for number, options in enumerate(tried):
        path = tmp_path / f"{number}.parquet"
        parquet.write_table(table(), path, **options)
        assert rows_read(path, 10 << 20) == rows_read(path, None) == table().to_pylist()


def test_pages_that_may_be_too_large_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    bomb = ["\0" * 1_000_000] * 8
    parquet.write_table(pyarrow.table({"id": range(8), "text": bomb}), path, use_dictionary=False, compression="zstd")
    assert path.stat().st_size < 20_000
    assert len(rows_read(path, 9_000_000)) == 8
    before = pyarrow.default_memory_pool().bytes_allocated()
    with pytest.raises(InputError, match=r"x.parquet: row group 0 has pages that may take 8 MB.*--longest allows more"):
        rows_read(path, 7_000_000)
    assert pyarrow.default_memory_pool().bytes_allocated() == before


def test_a_long_row_group_of_short_rows_is_read(tmp_path: Path) -> None:
    """A row group may be any size as long as a thousand of its rows, the most that a page has, are within the limit."""
    path = tmp_path / "x.parquet"
    rows = [{"text": f"{number:0100}"} for number in range(50_000)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, use_dictionary=False)
    assert parquet.ParquetFile(path).metadata.row_group(0).total_byte_size > 5_000_000
    assert rows_read(path, 2_000_000) == rows


def test_columns_are_counted_together(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    wide = {f"c{number}": ["\0" * 100_000] * 8 for number in range(20)} | {"text": ["a"] * 8}
    parquet.write_table(pyarrow.table(wide), path, use_dictionary=False, compression="zstd")
    with pytest.raises(InputError, match="row group 0 has pages"):
        rows_read(path, 9_000_000)


def test_a_page_that_no_footer_announces_is_noticed(tmp_path: Path) -> None:
    """Ten thousand short rows hide eight long ones, and the writer has put them all into one page."""
    path = tmp_path / "x.parquet"
    texts = ["x" * 10] * 10_000 + ["x" * 1_000_000] * 8
    parquet.write_table(
        pyarrow.table({"text": texts}), path, use_dictionary=False, write_batch_size=1 << 20, data_page_size=1 << 30
    )
    with pytest.raises(InputError, match=r"row group 0 has pages that take \d+ MB, more than the 2 MB.*--longest"):
        rows_read(path, 2_000_000)


def test_a_damaged_header_is_left_to_arrow(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(table(), path, use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:8] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    with pytest.raises(InputError, match="not a Parquet file that can be read"):
        rows_read(path, 10 << 20)


def test_a_row_group_is_not_in_memory_whole(tmp_path: Path) -> None:
    """A gigabyte in one row group took a gigabyte of memory to train on, whatever ``--memory`` said."""
    path, rows = tmp_path / "x.parquet", 40_000
    parquet.write_table(pyarrow.table({"text": ["word " * 200] * rows}), path, use_dictionary=False, compression="none")
    (file,) = find_files(str(path))
    before, most, read = pyarrow.total_allocated_bytes(), 0, 0
    tracemalloc.start()
    with opened(file) as reader:
        for block in parquet_blocks(reader, "text", "strict", 1 << 20):
            most, read = max(most, pyarrow.total_allocated_bytes() - before), read + len(block)
    most += tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read == rows
    assert path.stat().st_size > 40_000_000
    assert most < 16_000_000
