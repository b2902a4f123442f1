"""Shards, which are files, and the parts in which they are read, scored, judged and written.

A long file of plain lines is done in parts of ``PART_BYTES``, whatever the number of processes, so that the result is
the same for any number of them; every other file is one part.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import numpy as np

from foreword.arrays import Bools
from foreword.errors import InputError, SettingError
from foreword.filtering.columns import Column, find_column, label_column, read_columns, write_columns
from foreword.filtering.fields import field_column
from foreword.filtering.judge import Judge, asked_columns
from foreword.filtering.labels import ClassScorer
from foreword.filtering.models import column_in
from foreword.filtering.output import LineWriter, RowWriter, TableWriter, written
from foreword.filtering.routing import RoutedScorer
from foreword.filtering.rules import field_in
from foreword.filtering.scoring import CleanedScorer, Scorer, open_scorer
from foreword.filtering.settings import Filtering
from foreword.filtering.sidecar import SidecarLines, SidecarTable
from foreword.filtering.statistics import StatisticsScorer
from foreword.filtering.summary import VALUE, Tally
from foreword.text.block import Block
from foreword.text.cleaning import Cleaner
from foreword.text.files import ADDRESS, STANDARD_INPUT, SourceFile
from foreword.text.rows import RowBatch, rows_from
from foreword.text.segments import count_lines_before, cut_points, segment_opened

PART_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """The lines of a source that begin from ``start`` to ``stop``; ``stop`` 0 is all of it.

    shard, number: the index of the source and of the part in it. line: the number of its first line, or 1 where the
    lines before it have not been counted.
    """

    source: str
    shard: int
    number: int
    start: int = 0
    stop: int = 0
    line: int = 1


@dataclass(frozen=True, slots=True)
class Shard:
    """A file to read, the name of its result, and its parts.

    state: its size, when it was modified, and when its entry on the disk was changed, which no program can set back.
    """

    name: str
    relative: str
    size: int
    state: tuple[int, int, int]
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, number: int, file: SourceFile, source: str, filtering: Filtering) -> Shard:
        """Describe a file that was found under ``source``."""
        if file.name == STANDARD_INPUT:
            raise InputError("standard input is not a shard: foreword filter reads files")
        path = Path(file.name)
        facts = path.stat() if not ADDRESS.match(file.name) and path.is_file() else None
        changed = (facts.st_mtime_ns, facts.st_ctime_ns) if facts is not None else (0, 0)
        # A sidecar numbers lines of text, and Parquet cannot be put together from parts.
        whole = filtering.sidecar is not None or filtering.format_of(file.name) == "parquet"
        cuts = [0] if whole else cut_points(file, PART_BYTES)
        pairs = list(itertools.pairwise(cuts)) or [(0, 0)]
        parts = tuple(Part(file.name, number, index, *pair) for index, pair in enumerate(pairs))
        relative = filtering.result_name(relative_name(file.name, source))
        return cls(file.name, relative, file.size or 0, (file.size or 0, *changed), parts)

    def is_as_recorded(self, state: list[int]) -> bool:
        """Return whether the file has not changed. 0.1.0 recorded the first two numbers of its state only."""
        return len(state) >= 2 and tuple(state) == self.state[: len(state)]

    def file_of(self, part: Part, suffix: str) -> str:
        """Return the name of a file for a part, the same in every run."""
        return f"{hashlib.sha256(self.relative.encode()).hexdigest()[:24]}-{part.number}.{suffix}"


def relative_name(name: str, source: str) -> str:
    """Return the path of a file below its folder, or below the part of a glob that has no magic."""
    base = source.rstrip("/")
    if name == source:
        return PurePosixPath(name).name
    while glob.has_magic(base) and not name.startswith(base + "/"):
        base = base.rpartition("/")[0]
        if not base:
            return name.lstrip("/") if source.startswith("/") else name
    return os.path.relpath(name, base) if not ADDRESS.match(name) else name.removeprefix(base).lstrip("/")


def check_disjoint(source: str, files: Sequence[SourceFile], out: str) -> None:
    """Refuse to write into what is read, or to read what is written."""
    real = _real(out)
    if (ADDRESS.match(source) or Path(source).is_dir()) and _is_below(real, _real(source)):
        raise SettingError(f"{out} is inside {source}: the next run would read what this one writes")
    for file in files:
        if _is_below(_real(file.name), real):
            raise SettingError(f"{file.name} is inside the output folder {out}")


def _real(name: str) -> str:
    name = name.removeprefix("file://").removeprefix("local://")
    return name.rstrip("/") if ADDRESS.match(name) else os.path.realpath(name)


def _is_below(name: str, folder: str) -> bool:
    return name == folder or name.startswith(f"{folder.rstrip('/')}/")


# --- one part


class OpenFilter:
    """A ``Filtering`` whose models are open in this process."""

    def __init__(self, filtering: Filtering) -> None:
        self.filtering = filtering
        self._asked = asked_columns(filtering)
        self._scorers = [self._routed(name, path) for name, path in filtering.models]
        self._statistics = StatisticsScorer.of(self._asked)
        self._check_label_options()

    def _check_label_options(self) -> None:
        """Refuse ``--labels`` and ``--clean`` where no model takes them."""
        models = zip(self.filtering.models, self._scorers, strict=True)
        classifiers = {name for (name, _), each in models if isinstance(getattr(each, "scorer", each), ClassScorer)}
        for option, names in (
            ("--labels", [name for name, _ in self.filtering.labels]),
            ("--clean", [name for name, _ in self.filtering.clean if not name]),
        ):
            for name in names:
                if name not in classifiers if name else not classifiers:
                    raise SettingError(f"{option}: {name or 'no model here'} is {'no' if name else 'a'} classifier")

    def _routed(self, name: str, path: str) -> Scorer | RoutedScorer:
        """Open a model, or prepare the models for all labels of one before it."""
        if column_in(path) is None:
            return self._open(name, path)
        return RoutedScorer(path, partial(self._open, name))

    def _open(self, name: str, path: str) -> Scorer:
        """Open a model, with the step that cleans texts for it."""
        settings, prefix = self.filtering, f"{name}_" if name else ""
        labels = settings.labels_of(name, self._asked)
        scorer = open_scorer(path, prefix, settings.piece_bytes, labels, settings.like, settings.span)
        step = self.filtering.cleaning_of(name, isinstance(scorer, ClassScorer))
        return scorer if step == "none" else CleanedScorer(scorer, Cleaner(step))

    def rows(self, part: Part, report: Callable[[int], None]) -> Iterator[RowBatch]:
        """Yield the rows of a part; ``report`` is called with the bytes read since the last call."""
        with segment_opened(part.source, part.start, part.stop, self.filtering.longest) as (reader, offset):
            taken = 0
            for rows in rows_from(reader, self.filtering.reading, part.line, offset):
                yield rows
                report(reader.taken - taken)
                taken = reader.taken
            report(reader.taken - taken)

    def scores(self, texts: Block) -> list[Column]:
        """Score documents by all models."""
        found: list[Column] = []
        for scorer in self._scorers:
            found += scorer.columns(texts, found) if isinstance(scorer, RoutedScorer) else scorer.columns(texts)
        return found + self._statistics.columns(texts)

    def columns(self) -> list[Column]:
        """Return the columns that there will be, without a row."""
        return self.scores(Block.from_texts([]))

    def fields(self, rows: RowBatch, judge: Judge) -> list[Column]:
        """Return the rows' own fields that the rules read."""
        return [field_column(name, rows.values(str(field_in(name)))) for name in judge.fields]

    def write_scores(self, part: Part, judge: Judge, path: Path, report: Callable[[int], None]) -> Tally:
        """Do the first of two passes: write the columns of a part, and the values that percentiles are taken of."""
        tally, values = Tally(), path.with_suffix(".values")
        with written(path, str(path)) as scores, written(values, str(values)) as chosen:
            for rows in self.rows(part, report):
                columns, fields = self.scores(rows.texts), self.fields(rows, judge)
                write_columns(scores, columns)
                # Buckets are made of all documents, and a rule may ask for a bucket; a percentile is of what passes.
                passes = rows.present if judge.buckets is not None else judge.passing(columns, {}, rows.present, fields)
                _write_values(chosen, columns, find_column((*columns, *fields), judge.by), passes)
                tally.documents += int(np.count_nonzero(rows.present))
        return tally

    def write_part(
        self, part: Part, judge: Judge, path: Path, name: str, report: Callable[[int], None], scores: Path | None = None
    ) -> Tally:
        """Read, score, judge and write a part. scores: what a first pass has written; no model is asked again."""
        tally = Tally()
        with ExitStack() as stack:
            stream = stack.enter_context(written(path, name))
            earlier = stack.enter_context(scores.open("rb")) if scores else None
            writer = self._writer(stream, part.source)
            stack.callback(writer.abandon)
            like = self.columns() if earlier else []
            for rows in self.rows(part, report):
                columns = read_columns(earlier, like, len(rows)) if earlier else self.scores(rows.texts)
                writer.write(rows, *judge.apply(rows, columns, tally, self.fields(rows, judge)))
            writer.close()
        tally.bytes_out = path.stat().st_size
        return tally

    def _writer(self, stream: BinaryIO, source: str) -> RowWriter:
        if self.filtering.sidecar == "parquet":
            return SidecarTable(stream, self.filtering, self.columns())
        if self.filtering.sidecar == "dolma":
            return SidecarLines(stream, self.filtering.result_name(source), self.filtering)
        is_table = self.filtering.format_of(source) == "parquet"
        return TableWriter(stream, source) if is_table else LineWriter(stream, source)


def _write_values(file: BinaryIO, columns: Sequence[Column], by: Column, passes: Bools) -> None:
    numbers, label = by.number(), label_column(columns)
    rows = passes & ~np.isnan(numbers)
    values = np.empty(int(np.count_nonzero(rows)), VALUE)
    values["value"] = numbers[rows]
    values["label"] = -1 if label is None else find_column(columns, label).values[rows]
    file.write(values.data)


def lines_before(part: Part, longest: int) -> int:
    """Count the lines of the file before a part: needed only when an error has to name one."""
    return count_lines_before(part.source, part.start, longest)
