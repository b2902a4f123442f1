"""The rules of ``--keep``: ``label=en and probability>0.65``, ``perplexity<table``, ``not (oov>3 or tokens<20)``.

    rule       := term {"or" term}
    term       := factor {"and" factor}
    factor     := "not" factor | "(" rule ")" | column comparison value | column "in" value {"," value}
    comparison := "=" | "==" | "!=" | "<" | "<=" | ">" | ">="
    value      := a number, a word, a "quoted word", or the word table

``table`` is the threshold of the row's label in the table, or the one under ``*`` for all other labels. A comparison
with a missing value is never true, ``!=`` included.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foreword.arrays import Array, Bools, Doubles
from foreword.errors import InputError, SettingError
from foreword.filtering.scoring import Column, find_column, label_column, lower_is_better, main_column
from foreword.filtering.settings import Filtering
from foreword.filtering.summary import Tally
from foreword.text.rows import RowBatch

TABLE = "table"
OTHERS = "*"
WORDS = ("and", "or", "not", "in")

_TOKEN = re.compile(r"""\s*(?:(<=|>=|==|!=|[<>=(),])|"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s<>=!(),"']+))""")

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}

Thresholds = Mapping[str, Sequence[float]]
"""A label's threshold, or two of them where there are buckets."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with a value."""

    column: str
    sign: str
    value: str

    def passes(self, columns: Mapping[str, Column], table: Thresholds, label: str | None) -> Bools:
        """Return which rows pass."""
        column = columns[self.column]
        if column.names is not None:
            equal = column.values == _index(column.names, self.value)
            return np.asarray(equal if self.sign == "=" else ~equal & ~column.missing)
        limit: Any = float(self.value) if self.value != TABLE else limits(columns[str(label)], table)
        with np.errstate(invalid="ignore"):  # NaN is less than nothing, and is taken out for "!="
            found = _COMPARE[self.sign](column.values, limit)
        return np.asarray(found & ~column.missing & ~np.isnan(limit))

    def __str__(self) -> str:
        return f"{self.column}{self.sign}{self.value}"


@dataclass(frozen=True, slots=True)
class Joined:
    """Rules joined. how: "and", "or", or "not" with one part."""

    how: str
    parts: tuple[Expression, ...]

    def passes(self, columns: Mapping[str, Column], table: Thresholds, label: str | None) -> Bools:
        """Return which rows pass."""
        found = [part.passes(columns, table, label) for part in self.parts]
        if self.how == "not":
            return ~found[0]
        return np.asarray((np.logical_and if self.how == "and" else np.logical_or).reduce(found))

    def __str__(self) -> str:
        if self.how == "not":
            return f"not ({self.parts[0]})"
        return f" {self.how} ".join(f"({part})" if isinstance(part, Joined) else str(part) for part in self.parts)


Expression = Comparison | Joined


def parse_rule(text: str) -> Expression:
    """Parse a rule; raise a SettingError if it is malformed."""
    return _Parser(text).whole()


def separate(rules: Iterable[Expression]) -> list[Expression]:
    """Split rules at the "and" on top, so that the summary counts each condition separately."""
    return [each for rule in rules for each in _conjuncts(rule)]


def check_rule(rule: Expression, columns: Sequence[Column], table: Thresholds | None, label: str | None) -> None:
    """Refuse a rule that these columns cannot answer."""
    if isinstance(rule, Joined):
        for part in rule.parts:
            check_rule(part, columns, table, label)
        return
    column = next((column for column in columns if column.name == rule.column), None)
    if column is None:
        known = ", ".join(column.name for column in columns)
        raise SettingError(f"--keep {rule}: there is no column {rule.column!r}; the models give: {known}")
    if column.names is not None:
        if rule.sign not in ("=", "!="):
            raise SettingError(f"--keep {rule}: {rule.column} is a name and can only be = or != to another")
        if _index(column.names, rule.value) < 0:
            shown = ", ".join(column.names[:8]) + (", …" if len(column.names) > 8 else "")
            raise SettingError(f"--keep {rule}: {rule.column} is never {rule.value!r}; it is one of {shown}")
    elif rule.value == TABLE:
        if not table:
            raise SettingError(f"--keep {rule}: which table? Give it by --table")
        if label is None:
            raise SettingError(f"--keep {rule}: a table is looked up by a label, and no model here gives one")
    else:
        try:
            number = float(rule.value)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            raise SettingError(f"--keep {rule}: expected a number or {TABLE} after {rule.sign}") from None


def limits(labels: Column, table: Thresholds, which: int = 0) -> Doubles:
    """Return each row's threshold by its label; NaN where the table has none."""
    others = table.get(OTHERS, (math.nan,) * (which + 1))[which]
    assert labels.names is not None
    by_label = [table[name][which] if name in table else others for name in labels.names]
    return np.asarray(np.array([*by_label, others])[labels.values])  # −1, no label, is the last


def read_table(path: str) -> dict[str, tuple[float, ...]]:
    """Read labels and thresholds: a JSON object, or lines of a label and numbers with tabs, commas or blanks between.

    A first line without any number is a header.
    """
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as a table: {getattr(error, 'strerror', None) or error}") from error
    rows = _json_table(text, path) if text.lstrip().startswith("{") else list(_line_table(text, path))
    table: dict[str, tuple[float, ...]] = {}
    for place, label, values in rows:
        if label in table:
            raise InputError(f"{path}: {place}: {label!r} is there twice")
        if not 1 <= len(values) <= 2 or not all(map(math.isfinite, values)):
            raise InputError(f"{path}: {place}: expected a label and one threshold, or two for buckets")
        table[label] = values
    if len({len(values) for values in table.values()}) != 1:
        raise InputError(f"{path}: expected as many thresholds for every label, and one label at least")
    return table


def _json_table(text: str, path: str) -> list[tuple[str, str, tuple[float, ...]]]:
    try:
        found = {label: value if isinstance(value, list) else [value] for label, value in json.loads(text).items()}
        return [("its object", label, tuple(map(float, values))) for label, values in found.items()]
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # too many digits for a float overflow
        raise InputError(f"{path}: not a JSON object of labels and numbers: {error}") from error


def _line_table(text: str, path: str) -> Iterable[tuple[str, str, tuple[float, ...]]]:
    for number, line in enumerate(text.splitlines(), 1):
        label, *rest = re.split(r"[\t,; ]+", line.strip())
        if not label:
            continue
        try:
            yield f"line {number}", label, tuple(map(float, rest))
        except ValueError:
            if number > 1:
                raise InputError(f"{path}: line {number}: expected a label and numbers") from None


def _index(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else -1


def _conjuncts(rule: Expression) -> list[Expression]:
    if isinstance(rule, Joined) and rule.how == "and":
        return [each for part in rule.parts for each in _conjuncts(part)]
    return [rule]


class _Parser:
    """Recursive descent with one token of lookahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, bool]] = []  # each, and whether it was quoted
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if not found:
                raise self._wrong(f"{text[at:].strip()[:20]!r} cannot be read")
            quoted = found[2] if found[2] is not None else found[3]
            plain = found[1] or found[4]
            self.tokens.append((plain, False) if quoted is None else (re.sub(r"\\(.)", r"\1", quoted), True))
            at = found.end()

    def whole(self) -> Expression:
        rule = self._joined("or", lambda: self._joined("and", self._factor))
        if self.tokens:
            raise self._wrong(f"nothing was expected before {self.tokens[0][0]!r}")
        return rule

    def _joined(self, word: str, part: Callable[[], Expression]) -> Expression:
        parts = [part()]
        while self._takes(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def _factor(self) -> Expression:
        if self._takes("not"):
            return Joined("not", (self._factor(),))
        if self._takes("("):
            rule = self._joined("or", lambda: self._joined("and", self._factor))
            if not self._takes(")"):
                raise self._wrong("a bracket is not closed")
            return rule
        column = self._word("a column")
        if self._takes("in"):
            values = [self._word("a value")]
            while self._takes(","):
                values.append(self._word("a value"))
            parts = tuple(Comparison(column, "=", value) for value in values)
            return parts[0] if len(parts) == 1 else Joined("or", parts)
        sign = next((sign for sign in (*_COMPARE, "==") if self._takes(sign)), None)
        if sign is None:
            raise self._wrong(f"expected =, !=, <, <=, >, >= or in after {column!r}")
        return Comparison(column, "=" if sign == "==" else sign, self._word("a value"))

    def _takes(self, wanted: str) -> bool:
        if self.tokens and self.tokens[0] == (wanted, False):
            self.tokens.pop(0)
            return True
        return False

    def _word(self, what: str) -> str:
        if not self.tokens or (not self.tokens[0][1] and self.tokens[0][0] in (*WORDS, *_COMPARE, *"(),")):
            raise self._wrong(f"expected {what}" + (f", not {self.tokens[0][0]!r}" if self.tokens else " at the end"))
        return self.tokens.pop(0)[0]

    def _wrong(self, why: str) -> SettingError:
        return SettingError(f"--keep {self.text!r}: {why}")


# --- which rows pass

BUCKETS = ("head", "middle", "tail")
BUCKET = "bucket"

NO_TEXT = "no text"
PERCENTILE = "percentile"


class Judge:
    """The rules of a run, checked against the columns that its models give.

    thresholds: by label, or ``*`` for all, found by the first of two passes: one, or two for buckets.
    """

    def __init__(self, filtering: Filtering, columns: Sequence[Column], thresholds: Thresholds | None = None) -> None:
        self.table: Thresholds = read_table(filtering.table) if filtering.table else {}
        self.rules = separate(parse_rule(text) for text in filtering.keep)
        known = [*columns, Column(BUCKET, np.empty(0, np.int32), BUCKETS)] if filtering.buckets else columns
        label = label_column(columns)
        for rule in self.rules:
            check_rule(rule, known, self.table, label)
        self.by = filtering.by or main_column(columns)
        if not any(column.name == self.by and column.names is None for column in columns):
            numbers = ", ".join(column.name for column in columns if column.names is None)
            raise SettingError(f"--by {self.by}: expected one of {numbers}")
        if (filtering.each_label or filtering.buckets == TABLE) and label is None:
            raise SettingError("--each-label, and a table, need a model that gives labels")
        if filtering.buckets == TABLE and any(len(values) != 2 for values in self.table.values()):
            raise SettingError(f"{filtering.table}: buckets take two thresholds for every label")
        self.keep_all = filtering.score_only or (bool(filtering.buckets) and not self.rules)
        self.write_scores = self.keep_all or filtering.with_scores
        self.keep = None if filtering.buckets else thresholds
        self.buckets: Thresholds | None = None
        if filtering.buckets:
            self.buckets = self.table if filtering.buckets == TABLE else thresholds or {}

    def apply(self, rows: RowBatch, columns: list[Column], tally: Tally) -> tuple[Bools, list[Column]]:
        """Return which rows are written, and which columns are added to them; add both to the tally."""
        columns = self._with_buckets(columns)
        passes = self.passing(columns, {} if self.keep_all else tally.rejected, rows.present)
        tally.documents += int(np.count_nonzero(rows.present))
        tally.kept += int(np.count_nonzero(rows.present if self.keep_all else passes))
        tally.count([column.at(rows.present) for column in columns])
        if self.keep_all:
            passes = np.ones(len(rows), np.bool_)
        return passes, columns if self.write_scores else []

    def passing(self, columns: Sequence[Column], rejected: dict[str, int], present: Bools) -> Bools:
        """Return which rows pass; count each of the others under the first rule it fails."""
        named = {column.name: column for column in columns}
        label = label_column(columns)
        missing = np.logical_and.reduce([each.missing for each in columns if each.values.dtype != np.int64])
        left: Bools = _count_rejected(present, ~missing, NO_TEXT, rejected)
        for rule in self.rules:
            left = _count_rejected(left, rule.passes(named, self.table, label), str(rule), rejected)
        if self.keep is not None:
            with np.errstate(invalid="ignore"):
                passes = self._no_worse(named[self.by].values, self._limits(columns, self.keep, 0))
            left = _count_rejected(left, passes, PERCENTILE, rejected)
        return left

    def _with_buckets(self, columns: list[Column]) -> list[Column]:
        """Add head, middle or tail to the columns, where buckets are asked for."""
        if self.buckets is None:
            return columns
        column = find_column(columns, self.by)
        first, second = (self._limits(columns, self.buckets, which) for which in (0, 1))
        with np.errstate(invalid="ignore"):
            head, middle = self._no_worse(column.values, first), self._no_worse(column.values, second)
        found = np.where(head, 0, np.where(middle, 1, 2)).astype(np.int32)
        found[column.missing | np.isnan(first)] = -1
        return [*columns, Column(BUCKET, found, BUCKETS)]

    def _no_worse(self, values: Array, limits: Doubles) -> Bools:
        return np.asarray(values <= limits if lower_is_better(self.by) else values >= limits)

    def _limits(self, columns: Sequence[Column], table: Thresholds, which: int) -> Doubles:
        label = label_column(columns)
        if label is None:
            return np.full(len(columns[0]), table.get(OTHERS, (math.nan, math.nan))[which])
        return limits(find_column(columns, label), table, which)


def _count_rejected(left: Bools, passes: Bools, rule: str, rejected: dict[str, int]) -> Bools:
    found: Bools = left & passes
    rejected[rule] = rejected.get(rule, 0) + int(np.count_nonzero(left) - np.count_nonzero(found))
    return found
