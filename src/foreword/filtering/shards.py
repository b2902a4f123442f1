"""One stretch of one file: read, scored, judged, written.

A long file of plain lines is done in parts of ``PART_BYTES``, however many processes there are, so that the result is
the same for any number of them; every other file is one part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import BinaryIO, Literal, cast

import numpy as np

from foreword.arrays import Bools, Doubles
from foreword.errors import InputError, SettingError
from foreword.filtering.columns import Column, find_column, read_columns, write_columns
from foreword.filtering.output import Output, compressor_for, written
from foreword.filtering.rows import LineBatch, line_batches
from foreword.filtering.rules import Expression, Thresholds, limits
from foreword.filtering.scoring import LOWER_IS_BETTER, Scorer, label_column
from foreword.filtering.summary import Tally
from foreword.filtering.tables import TableBatch, TableWriter, table_batches
from foreword.text.block import Block
from foreword.text.compression import COMPRESSIONS, without_suffix
from foreword.text.files import Reader, SourceFile, find_files, opened
from foreword.text.utf8 import Errors

Format = Literal["jsonl", "parquet", "text"]

PART_BYTES = 64 << 20

BUCKETS = ("head", "middle", "tail")
BUCKET = "bucket"

NO_TEXT = "no text"
PERCENTILE = "percentile"

_FORMATS: dict[str, Format] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".txt": "text", ".text": "text",
    "": "text",
}  # fmt: skip


def format_of(name: str) -> Format:
    """By the name; many corpora call their JSONL ``.json.gz``."""
    found = _FORMATS.get(PurePath(without_suffix(name)).suffix.lower())
    if found is None:
        raise SettingError(
            f"{name}: neither .jsonl, .parquet nor .txt: say what it is by --format, or name the files by a glob"
        )
    return found


@dataclass(frozen=True, slots=True)
class Part:
    """Some bytes of a source: all of it, or the lines that begin from ``start`` to ``stop``.

    shard, number: which source and which of its parts; parts: how many it has. line: the number of its first line, or
    1 where nobody has counted.
    """

    source: str
    shard: int
    number: int
    parts: int = 1
    start: int = 0
    stop: int = 0
    line: int = 1


@dataclass(frozen=True, slots=True)
class Judging:
    """What is done with scores.

    rules: all must hold; table: thresholds by label. by: the column of percentiles and buckets.
    keep: a threshold for each label (or ``*``) that the column must reach, from a first pass.
    buckets: two thresholds for each label. write_scores: whether the columns are written; keep_all: whether all rows.
    """

    rules: Sequence[Expression] = ()
    table: Thresholds = field(default_factory=dict)
    by: str = ""
    keep: Thresholds | None = None
    buckets: Thresholds | None = None
    write_scores: bool = False
    keep_all: bool = False

    def bucketed(self, columns: list[Column]) -> list[Column]:
        """The columns with head, middle or tail beside them, where buckets are asked for."""
        if self.buckets is None:
            return columns
        column = find_column(columns, self.by)
        first, second = (self._limits(columns, self.buckets, which) for which in (0, 1))
        better = np.less_equal if lower_is_better(self.by) else np.greater_equal
        with np.errstate(invalid="ignore"):
            places = np.where(better(column.values, first), 0, np.where(better(column.values, second), 1, 2))
        places[column.missing | np.isnan(first)] = -1
        return [*columns, Column(BUCKET, places.astype(np.int32), BUCKETS)]

    def judged(self, columns: list[Column], rejected: dict[str, int], rows: Bools) -> Bools:
        """Which rows pass; each of the others is counted under the first rule it fails."""
        named = {column.name: column for column in columns}
        label = label_column(columns)
        left: Bools = rows & ~np.logical_and.reduce([each.missing for each in columns if each.values.dtype != np.int64])
        rejected[NO_TEXT] = rejected.get(NO_TEXT, 0) + int(np.count_nonzero(rows) - np.count_nonzero(left))
        for rule in self.rules:
            left = _passing(left, rule.passes(named, self.table, label), str(rule), rejected)
        if self.keep is not None:
            better = np.less_equal if lower_is_better(self.by) else np.greater_equal
            with np.errstate(invalid="ignore"):
                passes = better(named[self.by].values, self._limits(columns, self.keep, 0))
            left = _passing(left, np.asarray(passes), PERCENTILE, rejected)
        return left

    def _limits(self, columns: Sequence[Column], table: Thresholds, which: int) -> Doubles:
        label = label_column(columns)
        if label is None:
            return np.full(len(columns[0]), table.get("*", (math.nan, math.nan))[which])
        return limits(find_column(columns, label), table, which)


def lower_is_better(name: str) -> bool:
    return name.endswith(LOWER_IS_BETTER)


def _passing(left: Bools, passes: Bools, rule: str, rejected: dict[str, int]) -> Bools:
    found: Bools = left & passes
    rejected[rule] = rejected.get(rule, 0) + int(np.count_nonzero(left) - np.count_nonzero(found))
    return found


@dataclass(frozen=True)
class ShardReader:
    """How a source's rows are read: in batches, with the scores of each."""

    field: str
    format: Format | None
    errors: Errors
    longest: int
    scorers: Sequence[Scorer]

    def batches(self, part: Part, tell: Callable[[int], None]) -> Iterator[LineBatch | TableBatch]:
        """The rows of the part; ``tell`` hears how many more bytes were read."""
        with part_opened(part, self.longest) as (reader, first):
            taken = 0
            for batch in self._batches(reader, first):
                yield batch
                tell(reader.taken - taken)
                taken = reader.taken
            tell(reader.taken - taken)

    def _batches(self, reader: Reader, first: tuple[int, int]) -> Iterator[LineBatch | TableBatch]:
        format = self.format or format_of(reader.name)
        if format == "parquet":
            return table_batches(reader, self.field, self.errors, self.longest)
        return line_batches(reader, format, self.field, self.errors, self.longest, first)

    def scores(self, texts: Block) -> list[Column]:
        return [column for scorer in self.scorers for column in scorer.columns(texts)]

    def columns(self) -> list[Column]:
        """The columns there will be, without a row."""
        return self.scores(Block.from_texts([]))


def keep_scores(reading: ShardReader, part: Part, judging: Judging, path: Path, tell: Callable[[int], None]) -> Tally:
    """The first of two passes: every batch's columns to ``path``, and the values that percentiles are taken of."""
    tally = Tally()
    values = path.with_suffix(".values")
    with written(path, str(path)) as kept, written(values, str(values)) as chosen:
        for batch in reading.batches(part, tell):
            columns = reading.scores(batch.texts)
            write_columns(kept, columns)
            # Buckets are made of all documents, and a rule may ask for a bucket; a percentile is one of what passes.
            passes = batch.rows if judging.buckets is not None else judging.judged(columns, {}, batch.rows)
            _write_values(chosen, columns, judging.by, passes)
            tally.documents += int(np.count_nonzero(batch.rows))
    return tally


VALUE = np.dtype([("value", "<f8"), ("label", "<i4")])
"""A document's score and its label's place, −1 where there is none."""


def _write_values(file: BinaryIO, columns: Sequence[Column], by: str, passes: Bools) -> None:
    column, label = find_column(columns, by), label_column(columns)
    rows = passes & ~column.missing
    values = np.empty(int(np.count_nonzero(rows)), VALUE)
    values["value"] = column.values[rows]
    values["label"] = -1 if label is None else find_column(columns, label).values[rows]
    file.write(values.data)


def write_part(
    reading: ShardReader,
    part: Part,
    judging: Judging,
    path: Path,
    name: str,
    tell: Callable[[int], None],
    scores: Path | None = None,
) -> Tally:
    """Read, score, judge and write a part. scores: what a first pass has kept, so that no model is asked again."""
    tally = Tally()
    with ExitStack() as stack:
        stream = stack.enter_context(written(path, name))
        kept = stack.enter_context(scores.open("rb")) if scores else None
        is_table = (reading.format or format_of(part.source)) == "parquet"
        output = TableWriter(stream, part.source) if is_table else None
        if output is not None:
            stack.callback(output.abandon)
        lines = Output(stream, name, compressor_for(part.source))
        like = reading.columns() if kept else []
        for batch in reading.batches(part, tell):
            columns = read_columns(kept, like, len(batch)) if kept else reading.scores(batch.texts)
            passes, added = judged_batch(batch, columns, judging, tally)
            if isinstance(batch, TableBatch):
                assert output is not None
                output.write(batch, passes, added)
            else:
                lines.write(batch.written(passes, added))
        if output is not None:
            output.close()
        else:
            lines.finish()
    tally.bytes_out = path.stat().st_size
    return tally


def judged_batch(
    batch: LineBatch | TableBatch, columns: list[Column], judging: Judging, tally: Tally
) -> tuple[Bools, list[Column]]:
    """Which rows are written, and what is added to them; the tally is told."""
    columns = judging.bucketed(columns)
    passes = judging.judged(columns, {} if judging.keep_all else tally.rejected, batch.rows)
    tally.documents += int(np.count_nonzero(batch.rows))
    tally.kept += int(np.count_nonzero(batch.rows if judging.keep_all else passes))
    tally.count([column.at(batch.rows) for column in columns])
    if judging.keep_all:
        passes = np.ones(len(batch), np.bool_)
    return passes, columns if judging.write_scores else []


# --- parts of files


def parts_of(file: SourceFile, shard: int, format: Format) -> list[Part]:
    """A long file of plain lines on this disk in parts; anything else whole."""
    size = file.size or 0
    if format == "parquet" or size <= PART_BYTES or not Path(file.name).is_file() or is_compressed(file):
        return [Part(file.name, shard, 0)]
    cuts = [*range(0, size, PART_BYTES), size]
    pairs = list(itertools.pairwise(cuts))
    return [Part(file.name, shard, number, len(pairs), *pair) for number, pair in enumerate(pairs)]


def is_compressed(file: SourceFile) -> bool:
    with opened(file) as reader:
        head = reader.read(16)
    return any(each.marked(head) for each in COMPRESSIONS) or without_suffix(file.name) != file.name


@contextmanager
def part_opened(part: Part, longest: int) -> Iterator[tuple[Reader, tuple[int, int]]]:
    """The part's bytes, the number of its first line and where that begins."""
    (file,) = find_files(part.source)
    with opened(file) as reader:
        if part.parts == 1:
            yield reader, (1, 0)
            return
        start, stop = (line_start(reader, place, longest) for place in (part.start, part.stop))
        window = cast(BinaryIO, Window(reader.stream, start, stop))
        yield Reader(SourceFile(part.source, stop - start, lambda: nullcontext(window)), window), (part.line, start)


def lines_before(part: Part, longest: int) -> int:
    """How many lines the file has before the part: asked only when an error has to name one."""
    (file,) = find_files(part.source)
    with opened(file) as reader:
        left, lines = line_start(reader, part.start, longest), 0
        reader.stream.seek(0)
        while left and (data := reader.read(min(left, 1 << 20))):
            lines += data.count(b"\n")
            left -= len(data)
    return lines


def line_start(reader: Reader, place: int, longest: int) -> int:
    """Where the first line begins that begins at ``place`` or later; the end of the file if there is none."""
    if place == 0:
        return 0
    reader.stream.seek(place - 1)
    at = place - 1
    while data := reader.read(64 << 10):
        found = data.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(data)
        if at - place > longest:
            raise InputError(
                f"{reader.name}: the line around byte {place} has more than {longest:,} bytes; --longest allows more"
            )
    return at


class Window:
    """A stretch of an open file as a stream of its own."""

    def __init__(self, stream: BinaryIO, start: int, stop: int) -> None:
        self._stream, self._left = stream, max(0, stop - start)
        stream.seek(start)

    def read(self, size: int) -> bytes:
        data = self._stream.read(min(size, self._left))
        self._left -= len(data)
        return data

    def readinto(self, into: memoryview) -> int:
        length: int = self._stream.readinto(into[: self._left])  # type: ignore[attr-defined]
        self._left -= length
        return length
