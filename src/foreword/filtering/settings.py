"""The settings of a run of ``foreword filter``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, TypeAlias

from foreword.errors import MissingExtraError, SettingError
from foreword.filtering.columns import GRADE, label_of
from foreword.text.block import BLOCK_BYTES
from foreword.text.compression import without_suffix
from foreword.text.formats import DocumentFormat
from foreword.text.rows import RowReading, format_of
from foreword.text.unicode import Errors

CleanStep: TypeAlias = Literal["openlid", "ccnet", "none"]
Like: TypeAlias = Literal["ccnet", "dclm", "data-juicer"]

LONGEST = 16 << 20
"""A row of more bytes is an error, for a process has to hold it several times."""

PIECE_BYTES = 1 << 20
"""Documents up to a megabyte are scored whole."""

SPAN = 13
"""Tokens: the length of the runs that GPT-3's authors looked for."""


@dataclass(frozen=True, slots=True)
class LabelSettings:
    """What is asked of a classifier.

    top: how many of the best labels get columns; wanted: labels whose probabilities do.
    only: labels that can be the best, None for all; before: whether all others are left out before the softmax.
    grade: whether the expected grade has a column.
    """

    top: int = 1
    wanted: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    before: bool = False
    grade: bool = False


@dataclass(frozen=True, slots=True)
class Filtering:
    """What is done to every document: the settings of a whole run, which every stage receives as they are.

    models: pairs of a name, or "", and a path; the name is the prefix of the columns, and several models need one each.
    keep: rules, see ``rules.py``; keep_percentile: the share of what passes them that is kept.
    buckets: two percentages for head and middle, or "table" for two thresholds per label from the table.
    by: the column that percentiles are computed on; each_label: whether they are computed for each label separately.
    score_only: keep all rows and write the scores; with_scores: write the scores of the rows that are kept.
    field, format, errors: how rows are read, see ``RowReading``. longest: a row of more bytes is an error.
    piece_bytes: longer documents are scored in pieces.
    columns: further columns to compute, such as ``p(hq)`` or ``words``; top: how many of a classifier's best labels.
    labels: pairs of a model's name, or "" for all classifiers, and the labels that can be the best; restrict: whether
    the others are left out before or after the softmax. clean: pairs of a model's name, or "" for all classifiers, and
    a cleaning step. like: whose way of scoring a KenLM model with its sentencepiece model is followed.
    span: tokens of the shortest run that an index counts as copied.
    sidecar: write ids and scores instead of the rows; id: the field of the ids.
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
    format: DocumentFormat | None = None
    errors: Errors = "strict"
    longest: int = LONGEST
    piece_bytes: int = PIECE_BYTES
    columns: Sequence[str] = ()
    top: int = 1
    labels: Sequence[tuple[str, Sequence[str]]] = ()
    restrict: Literal["before", "after"] = "after"
    clean: Sequence[tuple[str, CleanStep]] = ()
    like: Like | None = None
    span: int = SPAN
    sidecar: Literal["parquet", "dolma"] | None = None
    id: str = "id"

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", tuple((name, path) for name, path in self.models))  # so that it is hashable
        object.__setattr__(self, "keep", tuple(self.keep))
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "labels", tuple((name, tuple(labels)) for name, labels in self.labels))
        object.__setattr__(self, "clean", tuple((name, step) for name, step in self.clean))
        if self.sidecar == "parquet" and find_spec("pyarrow") is None:
            raise MissingExtraError("pyarrow", "data", "--sidecar parquet")
        if self.sidecar and (self.keep or self.keep_percentile is not None):
            raise SettingError("--sidecar writes the scores of all rows, so there is nothing for --keep to say")
        if self.sidecar:
            object.__setattr__(self, "score_only", True)
        self._check_models()
        self._check_keeping()
        if self.longest < BLOCK_BYTES or self.piece_bytes < 1024:
            raise SettingError(f"--longest takes {BLOCK_BYTES >> 20}M at least, --piece 1K")

    def _check_models(self) -> None:
        if not (self.models or self.columns or self.keep or self.by):
            raise SettingError("nothing to score with: no model was named")
        names = [name for name, _ in self.models]
        if len(names) > 1 and (len(set(names)) < len(names) or "" in names):
            raise SettingError("several models need different names: --model NAME=PATH for each")
        for option, pairs in (("--labels", self.labels), ("--clean", self.clean)):
            wrong = next((name for name, _ in pairs if name and name not in names), None)
            if wrong is not None:
                raise SettingError(f"{option} {wrong}=…: no model is named {wrong}")
        if self.like and not any("+" in path for _, path in self.models):
            raise SettingError(f"--like {self.like}: no model is a KenLM file with its sentencepiece file, KENLM+MODEL")
        for option, number in (("--top", self.top), ("--span", self.span)):
            if number < 1:
                raise SettingError(f"{option} {number}: expected at least 1")
        if self.restrict == "before" and not self.labels:
            raise SettingError("--restrict before: to which labels? Give them by --labels")

    def _check_keeping(self) -> None:
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

    def labels_of(self, name: str, asked: Sequence[str]) -> LabelSettings:
        """Return what is asked of the classifier of that name. asked: all columns that are asked for."""
        prefix = f"{name}_" if name else ""
        found = [label for label in map(label_of, asked) if label is not None]
        wanted = dict.fromkeys(label for its, label in found if its == prefix)
        named = [labels for its, labels in self.labels if its and its == name]
        chosen = [*named, *(labels for its, labels in self.labels if not its)]
        only = tuple(chosen[0]) if chosen else None
        return LabelSettings(self.top, tuple(wanted), only, self.restrict == "before", prefix + GRADE in asked)

    def cleaning_of(self, name: str, is_classifier: bool) -> CleanStep:
        """Return the step that cleans texts for the model of that name; one without a name is for classifiers alone."""
        named = [step for its, step in self.clean if its and its == name]
        unnamed = [step for its, step in self.clean if not its and is_classifier]
        return (*named, *unnamed, "none")[0]

    def result_name(self, name: str) -> str:
        """Return the name of the file that is written for a file: the same, unless a sidecar has another format."""
        if self.sidecar is None or (self.sidecar == "dolma" and self.format_of(name) == "jsonl"):
            return name
        stem = without_suffix(name)
        folder, _, last = stem.rpartition("/")
        last = last.rpartition(".")[0] or last
        return f"{folder}/" * bool(folder) + last + (".parquet" if self.sidecar == "parquet" else ".jsonl.gz")

    def format_of(self, name: str) -> DocumentFormat:
        """Return the format of a file: the one that was set, or the one its name stands for."""
        found = self.format or format_of(name)
        if found is None or found == "csv" or found == "tsv":
            raise SettingError(
                f"{name}: neither .jsonl, .parquet nor .txt: say what it is by --format, or name the files by a glob"
            )
        return found
