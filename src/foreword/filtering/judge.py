"""Which rows pass: the rules of a run, its percentages and its buckets, applied to batches of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foreword.arrays import Array, Bools, Doubles
from foreword.errors import SettingError
from foreword.filtering.columns import (
    LABEL,
    PERPLEXITY,
    PROBABILITY,
    Column,
    find_column,
    label_column,
    lower_is_better,
    main_column,
)
from foreword.filtering.models import column_in
from foreword.filtering.rules import TABLE, bare, check_rule, columns_in, field_in, parse_column, parse_rule, separate
from foreword.filtering.settings import Filtering
from foreword.filtering.statistics import NAMES
from foreword.filtering.summary import Tally
from foreword.filtering.tables import OTHERS, Thresholds, limits, read_table
from foreword.text.rows import RowBatch

BUCKETS = ("head", "middle", "tail")
BUCKET = "bucket"

NO_TEXT = "no text"
PERCENTILE = "percentile"


def asked_columns(filtering: Filtering) -> list[str]:
    """Return the columns that rules, ``--by`` and ``--column`` name, each once and without ``column(…)`` around it."""
    names = [name for text in filtering.keep for name in columns_in(parse_rule(text))]
    names += [parse_column(filtering.by, "--by")] if filtering.by else []
    names += [parse_column(text, "--column") for text in filtering.columns]
    return list(dict.fromkeys(field_in(name) or name for name in names))


def model_columns(filtering: Filtering) -> list[str]:
    """Return the columns that are named without ``column(…)`` and are no statistics of the text: a model gives them."""
    names = [name for text in filtering.keep for name in columns_in(parse_rule(text))]
    names += [parse_column(filtering.by, "--by")] if filtering.by else []
    return [name for name in names if field_in(name) is None and name not in NAMES]


class Judge:
    """The rules of a run, checked against the columns that its models give.

    thresholds: by label, or ``*`` for all, found by the first of two passes: one, or two for buckets.
    fields: the fields of the rows that the rules read.
    """

    def __init__(self, filtering: Filtering, columns: Sequence[Column], thresholds: Thresholds | None = None) -> None:
        self.table: Thresholds = read_table(filtering.table) if filtering.table else {}
        self.rules = separate(parse_rule(text) for text in filtering.keep)
        known = [*columns, Column(BUCKET, np.empty(0, np.int32), BUCKETS)] if filtering.buckets else columns
        label = label_column(columns)
        for rule in self.rules:
            check_rule(rule, known, self.table, label)
        names = [column.name for column in known]
        self.by = self._by(filtering, columns, names)
        read = [name for rule in self.rules for name in columns_in(rule)] + ([self.by] if self.by else [])
        self.fields = list(dict.fromkeys(name for name in read if bare(name, names) not in names))
        if (filtering.each_label or filtering.buckets == TABLE) and label is None:
            raise SettingError("--each-label, and a table, need a model that gives labels")
        if filtering.buckets == TABLE and any(len(values) != 2 for values in self.table.values()):
            raise SettingError(f"{filtering.table}: buckets take two thresholds for every label")
        self.routes = _routes(filtering)
        self.keep_all = filtering.score_only or (bool(filtering.buckets) and not self.rules)
        self.write_scores = self.keep_all or filtering.with_scores
        self.keep = None if filtering.buckets else thresholds
        self.below = filtering.buckets == TABLE  # CCNet's head is below its threshold; a percentile includes it
        self.buckets: Thresholds | None = None
        if filtering.buckets:
            self.buckets = self.table if filtering.buckets == TABLE else thresholds or {}

    @staticmethod
    def _by(filtering: Filtering, columns: Sequence[Column], names: Sequence[str]) -> str:
        """Return the column that percentages and buckets are taken of; "" where there is none and none is needed."""
        if not filtering.two_passes and not filtering.buckets:
            return ""
        by = bare(parse_column(filtering.by, "--by"), names) if filtering.by else main_column(columns)
        if field_in(by) is None and not any(column.name == by and column.names is None for column in columns):
            numbers = ", ".join(column.name for column in columns if column.names is None)
            raise SettingError(f"--by {by or 'COLUMN'}: expected one of {numbers or 'column(FIELD)'}")
        if by.endswith(PROBABILITY) and filtering.two_passes and not filtering.each_label:
            _refuse_probability(by, filtering, columns)
        return by

    def apply(
        self, rows: RowBatch, columns: list[Column], tally: Tally, fields: Sequence[Column] = ()
    ) -> tuple[Bools, list[Column]]:
        """Return which rows are written, and which columns are added to them; add both to the tally."""
        columns = self._with_buckets(columns, fields)
        passes = self.passing(columns, {} if self.keep_all else tally.rejected, rows.present, fields)
        tally.documents += int(np.count_nonzero(rows.present))
        tally.kept += int(np.count_nonzero(rows.present if self.keep_all else passes))
        scored = {column.name: column.at(rows.present) for column in columns}
        tally.count(list(scored.values()))
        tally.count_fields(fields, rows.present)
        for name, label_name in self.routes.items():
            tally.count_unscored(scored[name], scored[label_name])
        if self.keep_all:
            passes = np.ones(len(rows), np.bool_)
        return passes, columns if self.write_scores else []

    def passing(
        self, columns: Sequence[Column], rejected: dict[str, int], present: Bools, fields: Sequence[Column] = ()
    ) -> Bools:
        """Return which rows pass; count each of the others under the first rule it fails."""
        named = {column.name: column for column in (*columns, *fields)}
        label = label_column(columns)
        scores = [each.missing for each in columns if each.values.dtype != np.int64]
        left: Bools = present
        if scores:
            left = _count_rejected(left, ~np.logical_and.reduce(scores), NO_TEXT, rejected)
        for rule in self.rules:
            left = _count_rejected(left, rule.passes(named, self.table, label), str(rule), rejected)
        if self.keep is not None:
            with np.errstate(invalid="ignore"):
                passes = self._no_worse(named[self.by].number(), self._limits(columns, self.keep, 0, len(present)))
            left = _count_rejected(left, passes, PERCENTILE, rejected)
        return left

    def _with_buckets(self, columns: list[Column], fields: Sequence[Column]) -> list[Column]:
        """Add head, middle or tail to the columns, where buckets are asked for."""
        if self.buckets is None:
            return columns
        values = find_column((*columns, *fields), self.by).number()
        first, second = (self._limits(columns, self.buckets, which, len(values)) for which in (0, 1))
        with np.errstate(invalid="ignore"):
            head, middle = self._no_worse(values, first), self._no_worse(values, second)
        found = np.where(head, 0, np.where(middle, 1, 2)).astype(np.int32)
        found[np.isnan(values) | np.isnan(first)] = -1
        return [*columns, Column(BUCKET, found, BUCKETS)]

    def _no_worse(self, values: Array, limits: Doubles) -> Bools:
        if lower_is_better(self.by):
            return np.asarray(values < limits if self.below else values <= limits)
        return np.asarray(values >= limits)

    def _limits(self, columns: Sequence[Column], table: Thresholds, which: int, rows: int) -> Doubles:
        label = label_column(columns)
        if label is None:
            return np.full(rows, table.get(OTHERS, (math.nan, math.nan))[which])
        return limits(find_column(columns, label), table, which)


def _routes(filtering: Filtering) -> dict[str, str]:
    """Return the perplexities of models that are chosen by a label, each with the column of that label."""
    found = {f"{name}_{PERPLEXITY}" if name else PERPLEXITY: column_in(path) for name, path in filtering.models}
    return {name: label for name, label in found.items() if label is not None}


def _refuse_probability(by: str, filtering: Filtering, columns: Sequence[Column]) -> None:
    """Refuse a percentage of ``probability``: it is that of the best label, and so is high for good and bad alike."""
    prefix = by.removesuffix(PROBABILITY)
    labels = list(find_column(columns, prefix + LABEL).names or ())
    option = (
        f"--keep-percentile {filtering.keep_percentile:g}"
        if filtering.keep_percentile is not None
        else f"--buckets {','.join(f'{percent:g}' for percent in filtering.percents)}"
    )
    ways = " or ".join(f'{option} --by "{prefix}p({label})"' for label in labels[:2])
    raise SettingError(
        f"{option}: {by} is that of each row's own label, whichever that is; name the label to rank by: {ways}"
    )


def _count_rejected(left: Bools, passes: Bools, rule: str, rejected: dict[str, int]) -> Bools:
    found: Bools = left & passes
    rejected[rule] = rejected.get(rule, 0) + int(np.count_nonzero(left) - np.count_nonzero(found))
    return found
