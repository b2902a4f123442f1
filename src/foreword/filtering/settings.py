"""The settings of a run of ``foreword filter``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from foreword.errors import SettingError
from foreword.text.block import BLOCK_BYTES
from foreword.text.rows import RowReading, format_of
from foreword.text.unicode import Errors

RowFormat: TypeAlias = Literal["jsonl", "parquet", "text"]

LONGEST = 16 << 20
"""A row of more bytes is an error, for a process has to hold it several times."""

PIECE_BYTES = 1 << 20
"""Documents up to a megabyte are scored whole."""


@dataclass(frozen=True, slots=True)
class Filtering:
    """What is done to every document: the settings of a whole run, which every stage receives as they are.

    models: pairs of a name, or "", and a path; the name is the prefix of the columns, and several models need one each.
    keep: rules, see ``rules.py``; keep_percentile: the share of what passes them that is kept.
    buckets: two percentages for head and middle, or "table" for two thresholds per label from the table.
    by: the column that percentages are taken of; each_label: whether they are taken label by label.
    score_only: keep all rows and write the scores; with_scores: write the scores of the rows that are kept.
    field, format, errors: how rows are read, see ``RowReading``. longest: a row of more bytes is an error.
    piece_bytes: longer documents are scored in pieces.
    """

    models: Sequence[tuple[str, str]]
    keep: Sequence[str] = ()
    keep_percentile: float | None = None
    buckets: tuple[float, float] | Literal["table"] | None = None
    by: str | None = None
    each_label: bool = False
    table: str | None = None
    score_only: bool = False
    with_scores: bool = False
    field: str = "text"
    format: RowFormat | None = None
    errors: Errors = "strict"
    longest: int = LONGEST
    piece_bytes: int = PIECE_BYTES

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", tuple((name, path) for name, path in self.models))  # so that it is hashable
        object.__setattr__(self, "keep", tuple(self.keep))
        if not self.models:
            raise SettingError("nothing to score with: no model was named")
        names = [name for name, _ in self.models]
        if len(names) > 1 and (len(set(names)) < len(names) or "" in names):
            raise SettingError("several models need different names: --model NAME=PATH for each")
        if self.score_only and (self.keep or self.keep_percentile is not None):
            raise SettingError("--score-only keeps all rows, so there is nothing for --keep to say")
        if not (self.score_only or self.keep or self.keep_percentile is not None or self.buckets):
            raise SettingError("what is to be done? Give --keep, --keep-percentile, --buckets or --score-only")
        if self.keep_percentile is not None and not 0 < self.keep_percentile <= 100:
            raise SettingError(f"--keep-percentile {self.keep_percentile:g}: expected more than 0 and at most 100")
        if self.keep_percentile is not None and self.buckets:
            raise SettingError("--keep-percentile and --buckets exclude each other: --keep bucket=head keeps a bucket")
        if isinstance(self.buckets, tuple) and not 0 < self.buckets[0] < self.buckets[1] < 100:
            raise SettingError("--buckets: expected two percentages, the smaller first, such as 30,60")
        if self.buckets == "table" and self.table is None:
            raise SettingError("--buckets table: which table? Give it by --table")
        if self.longest < BLOCK_BYTES or self.piece_bytes < 1024:
            raise SettingError(f"--longest takes {BLOCK_BYTES >> 20}M at least, --piece 1K")

    @property
    def two_passes(self) -> bool:
        """Return whether all documents must be scored before the first can be kept."""
        return self.keep_percentile is not None or isinstance(self.buckets, tuple)

    @property
    def percents(self) -> tuple[float, ...]:
        """Return the percentages that thresholds are needed for."""
        return self.buckets if isinstance(self.buckets, tuple) else (self.keep_percentile or 100.0,)

    @property
    def reading(self) -> RowReading:
        """Return how rows are read."""
        return RowReading(self.field, self.format, self.errors, longest=self.longest)

    def format_of(self, name: str) -> RowFormat:
        """Return the format of a file: the one that was set, or the one its name stands for."""
        found = self.format or format_of(name)
        if found is None or found == "csv" or found == "tsv":
            raise SettingError(
                f"{name}: neither .jsonl, .parquet nor .txt: say what it is by --format, or name the files by a glob"
            )
        return found
