"""The rules of ``--keep``: ``label=en and probability>0.65``, ``p(hq)>=0.018``, ``not (oov>3 or tokens<20)``.

    rule       := term {"or" term}
    term       := factor {"and" factor}
    factor     := "not" factor | "(" rule ")" | column comparison value | column "in" value {"," value}
    comparison := "=" | "==" | "!=" | "<" | "<=" | ">" | ">="
    column     := a word | "p(" label ")" | NAME"_p(" label ")" | "column(" column ")"
    value      := a number, a word, a "quoted word", the word table, or p(…) or column(…)

``p(hq)`` is the probability of one label. ``column(lang)`` is a column of scores or, if there is none of that name, a
field of the rows: ``label = column(lang)`` compares the two, where ``label = lang`` compares with the word "lang".
``table`` is the threshold of the row's label in the table, or the one under ``*`` for all other labels. A comparison
with a missing value is never true, ``!=`` included.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from foreword.arrays import Array, Bools, Doubles
from foreword.errors import SettingError
from foreword.filtering.columns import LABEL, Column, label_of
from foreword.filtering.statistics import NAMES
from foreword.filtering.tables import Thresholds, limits

TABLE = "table"
COLUMN = "column"
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


@dataclass(frozen=True, slots=True)
class Condition:
    """A column compared with a value, or with another column."""

    column: str
    sign: str
    value: str
    of_column: bool = False

    def passes(self, columns: Mapping[str, Column], table: Thresholds, label: str | None) -> Bools:
        """Return which rows pass."""
        column = columns[bare(self.column, columns)]
        if self.of_column:
            other = columns[bare(self.value, columns)]
            if self.sign in ("=", "!=") and (column.names is not None or other.names is not None):
                return self._equals(_same(column, other), column.missing | other.missing)
            return self._compared(column, other.number())
        if column.names is not None and self.sign in ("=", "!="):
            equal = column.values == _index(column.names, self.value)
            if column.numbers is not None and _is_number(self.value):
                equal |= column.numbers == float(self.value)
            return self._equals(np.asarray(equal), column.missing)
        limit: Any = float(self.value) if self.value != TABLE else limits(columns[str(label)], table)
        return self._compared(column, limit)

    def _equals(self, equal: Bools, missing: Bools) -> Bools:
        return np.asarray((equal if self.sign == "=" else ~equal) & ~missing)

    def _compared(self, column: Column, limit: Any) -> Bools:
        values: Doubles = column.number()
        with np.errstate(invalid="ignore"):  # NaN is less than nothing, and is taken out for "!="
            found = _COMPARE[self.sign](values, limit)
        return np.asarray(found & ~np.isnan(values) & ~np.isnan(limit))

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


Expression = Condition | Joined


def parse_rule(text: str) -> Expression:
    """Parse a rule; raise a SettingError if it is malformed."""
    return _Parser(text, "--keep").whole()


def parse_column(text: str, option: str) -> str:
    """Parse the name of a column, such as ``p("hq")``; raise a SettingError that names the option."""
    return _Parser(text, option).only_column()


def separate(rules: Iterable[Expression]) -> list[Expression]:
    """Split rules at the "and" on top, so that the summary counts each condition separately."""
    return [each for rule in rules for each in _conjuncts(rule)]


def columns_in(rule: Expression) -> Iterator[str]:
    """Yield the columns that a rule reads, as they are written: ``label``, ``p(hq)``, ``column(lang)``."""
    if isinstance(rule, Joined):
        for part in rule.parts:
            yield from columns_in(part)
    else:
        yield rule.column
        if rule.of_column:
            yield rule.value


def bare(name: str, known: Iterable[str]) -> str:
    """Return ``lang`` for ``column(lang)`` if it is a known column; other names as they are: they may be fields."""
    inner = field_in(name)
    return inner if inner is not None and inner in known else name


def field_in(name: str) -> str | None:
    """Return ``lang`` for ``column(lang)``, None for other names."""
    return name[len(COLUMN) + 1 : -1] if name.startswith(f"{COLUMN}(") else None


def check_rule(rule: Expression, columns: Sequence[Column], table: Thresholds | None, label: str | None) -> None:
    """Refuse a rule that these columns cannot answer. ``column(x)`` that is none of them is a field of the rows."""
    if isinstance(rule, Joined):
        for part in rule.parts:
            check_rule(part, columns, table, label)
        return
    column = _column(rule, rule.column, columns)
    if rule.of_column:
        _check_columns(rule, column, _column(rule, rule.value, columns))
    elif column is not None and column.names is not None:
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
    elif not _is_number(rule.value) and (column is not None or rule.sign not in ("=", "!=")):
        raise SettingError(f"--keep {rule}: expected a number or {TABLE} after {rule.sign}")


def _column(rule: Condition, name: str, columns: Sequence[Column]) -> Column | None:
    """Return the column of that name, or None for a field of the rows."""
    wanted = bare(name, [column.name for column in columns])
    column = next((column for column in columns if column.name == wanted), None)
    if column is None and field_in(name) is None:
        known = ", ".join(column.name for column in columns)
        advice = " or ".join(_meant(name, columns)) or f"a field of the rows is written column({name})"
        raise SettingError(f"--keep {rule}: there is no column {name!r}; the models give: {known}; {advice}")
    return column


def _meant(name: str, columns: Sequence[Column]) -> Iterator[str]:
    """Yield columns that may be meant by the name of one that does not exist: that of a named model, or a statistic."""
    found = label_of(name)
    if found is not None:
        prefixes = [each.name.removesuffix(LABEL) for each in columns if found[1] in (each.names or ())]
        yield from (f"did you mean {prefix}p({found[1]})?" for prefix in prefixes)
    else:
        named = [each.name for each in columns if each.name.endswith(f"_{name}")]
        yield from (f"did you mean {each}?" for each in named or get_close_matches(name, NAMES, 1))


def _check_columns(rule: Condition, one: Column | None, other: Column | None) -> None:
    names = [column.names is not None for column in (one, other) if column is not None]
    if any(names) and rule.sign not in ("=", "!="):
        raise SettingError(f"--keep {rule}: a name can only be = or != to another")
    if len(set(names)) > 1:
        raise SettingError(f"--keep {rule}: one of them is a name, and the other a number")


def _same(one: Column, other: Column) -> Bools:
    """Return in which rows two columns have the same name, or the same number where both are fields of the rows."""
    if one.names is None or other.names is None:
        with np.errstate(invalid="ignore"):
            return np.asarray(one.number() == other.number())
    indices = {name: index for index, name in enumerate(one.names)}
    matching = np.array([*(indices.get(name, -2) for name in other.names), -3], np.int64)  # −1, missing, is the last
    equal: Array = one.values == matching[other.values]
    if one.numbers is not None and other.numbers is not None:
        equal |= one.numbers == other.numbers
    return np.asarray(equal)


def _is_number(word: str) -> bool:
    try:
        return not math.isnan(float(word))
    except ValueError:
        return False


def _index(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else -1


def _conjuncts(rule: Expression) -> list[Expression]:
    if isinstance(rule, Joined) and rule.how == "and":
        return [each for part in rule.parts for each in _conjuncts(part)]
    return [rule]


class _Parser:
    """Recursive descent with one token of lookahead."""

    def __init__(self, text: str, option: str) -> None:
        self.text, self.option = text, option
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
        """Parse the whole rule."""
        rule = self._joined("or", lambda: self._joined("and", self._factor))
        if self.tokens:
            raise self._wrong(f"nothing was expected before {self.tokens[0][0]!r}")
        return rule

    def only_column(self) -> str:
        """Parse the name of a column, and nothing after it."""
        column = self._column()
        if self.tokens:
            raise self._wrong(f"nothing was expected before {self.tokens[0][0]!r}")
        return column

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
        column = self._column()
        if self._takes("in"):
            self._refuse_bracket(column)
            values = [self._word("a value")]
            while self._takes(","):
                values.append(self._word("a value"))
            parts = tuple(Condition(column, "=", value) for value in values)
            return parts[0] if len(parts) == 1 else Joined("or", parts)
        sign = next((sign for sign in (*_COMPARE, "==") if self._takes(sign)), None)
        if sign is None:
            raise self._wrong(f"expected =, !=, <, <=, >, >= or in after {column!r}")
        sign = "=" if sign == "==" else sign
        if self._applies():
            return Condition(column, sign, self._column(), of_column=True)
        return Condition(column, sign, self._word("a value"))

    def _refuse_bracket(self, column: str) -> None:
        """Refuse the brackets of SQL after ``in``."""
        if self.tokens and self.tokens[0] == ("(", False):
            values = [word for word, quoted in self.tokens if quoted or word not in "(),"]
            raise self._wrong(f"values after in have no brackets: {column} in {', '.join(values) or 'A, B'}")

    def _applies(self) -> bool:
        """Return whether p(…) or column(…) follows."""
        if len(self.tokens) < 2 or self.tokens[0][1] or self.tokens[1] != ("(", False):
            return False
        word = self.tokens[0][0]
        return word in (COLUMN, "p") or word.endswith("_p")

    def _column(self) -> str:
        if not self._applies():
            return self._word("a column")
        word = self._word("a column")
        self._takes("(")
        inner = self._column() if word == COLUMN else self._word("a label").removeprefix("__label__")
        if not self._takes(")"):
            raise self._wrong(f"a bracket is not closed after {word}({inner}")
        return f"{word}({inner})"

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
        return SettingError(f"{self.option} {self.text!r}: {why}")
