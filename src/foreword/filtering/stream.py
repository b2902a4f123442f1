"""Filtering from and to a stream: rows come in at one end of a pipe and leave at the other, in one process.

Nothing is remembered, so that nothing can be resumed, and what has been written cannot be taken back.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Protocol

from foreword.errors import InputError, SettingError
from foreword.filtering.rows import LineBatch
from foreword.filtering.run import Filtering, Report, judging_of
from foreword.filtering.shards import Part, format_of, judged_batch
from foreword.filtering.summary import Tally
from foreword.filtering.worker import Reading
from foreword.protocols import Meter
from foreword.text.files import find_files

STREAM = "-"


class Sink(Protocol):
    def write(self, data: Any, /) -> int: ...
    def flush(self) -> None: ...


def filter_stream(source: str, out: Sink, filtering: Filtering, *, meter: Meter | None = None) -> Report:
    """Filter ``source``, ``-`` for standard input or whatever ``filter_files`` reads, into an open stream.

    Rows are JSONL unless their files' names or the format say otherwise. They leave in order and not compressed.
    """
    if filtering.two_passes:
        raise SettingError("percentages are known when all has been read: a stream passes by once")
    if source == STREAM and filtering.format is None:
        filtering = replace(filtering, format="jsonl")
    files = find_files(source)
    for file in files:
        if (filtering.format or format_of(file.name)) == "parquet":
            raise SettingError(f"{file.name}: Parquet is written by its end, which a stream has none of; name a folder")
    began, tally = time.perf_counter(), Tally()
    reading = Reading(
        tuple((path, f"{name}_" if name else "") for name, path in filtering.models),
        filtering.field, filtering.format, filtering.errors, filtering.longest, filtering.piece_bytes,
    ).opened()  # fmt: skip
    judging = judging_of(filtering, reading.columns())
    total = None if any(file.size is None for file in files) else sum(file.size or 0 for file in files)

    def tell(size: int) -> None:
        tally.bytes_in += size
        if meter:
            meter("reading", tally.bytes_in, total)

    for number, file in enumerate(files):
        part = Part(source if source == STREAM else file.name, number, 0)
        for batch in reading.batches(part, tell):
            assert isinstance(batch, LineBatch)
            passes, added = judged_batch(batch, reading.scores(batch.texts), judging, tally)
            tally.bytes_out += _write(out, batch.written(passes, added))
    return Report(tally, len(files), [], time.perf_counter() - began, 0)


def _write(out: Sink, data: memoryview) -> int:
    """All of it, handed on at once: whoever reads may be waiting."""
    try:
        rest = data
        while rest:  # where nothing is buffered a pipe takes what it has room for
            rest = rest[out.write(rest) :]
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write standard output: {error.strerror or error}") from error
    return len(data)
