"""The language of ``--keep``, and tables of thresholds."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from foreword.errors import ForewordError, InputError, SettingError
from foreword.filtering.columns import Column
from foreword.filtering.rules import check_rule, parse_rule, separate
from foreword.filtering.tables import read_table

LABELS = ["en", "de", None, "en", "fr"]
NUMBERS = [1.0, 2.0, 3.0, float("nan"), 5.0]
TOKENS = [10, 20, 30, 40, 50]

COLUMNS = {
    "label": Column("label", np.array([0, 1, -1, 0, 2], np.int32), ["en", "de", "fr"]),
    "x": Column("x", np.array(NUMBERS)),
    "tokens": Column("tokens", np.array(TOKENS)),
}


def passing(rule: str, table: dict[str, tuple[float, ...]] | None = None) -> list[int]:
    parsed = parse_rule(rule)
    check_rule(parsed, list(COLUMNS.values()), table, "label")
    return np.flatnonzero(parsed.passes(COLUMNS, table or {}, "label")).tolist()


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("label=en", [0, 3]),
        ("label == 'en'", [0, 3]),
        ('label != "en"', [1, 4]),
        ("label in en, de", [0, 1, 3]),
        ("x<3", [0, 1]),
        ("x<=3", [0, 1, 2]),
        ("x>=2 and tokens<50", [1, 2]),
        ("x!=3", [0, 1, 4]),
        ("label=en or label=fr and x>5", [0, 3]),
        ("(label=en or label=fr) and x>=1", [0, 4]),
        ("not label=en and not (x<3)", [2, 4]),
        ("not not x=5", [4]),
        ("x>-1e3", [0, 1, 2, 4]),
        ("tokens in 10,30", [0, 2]),
    ],
)
def test_a_rule_says_which_rows_pass(rule: str, wanted: list[int]) -> None:
    assert passing(rule) == wanted


def test_a_table_gives_each_label_its_threshold() -> None:
    assert passing("x<table", {"en": (2.0,), "de": (2.0,)}) == [0]
    assert passing("x<table", {"en": (0.5,), "*": (4.0,)}) == [1, 2]


@pytest.mark.parametrize(
    "rule",
    ["", "label", "label=", "=en", "(x<1", "x<1)", "x<1 and", "and x<1", "x 1", "x<1 x<2", "label in", "x<<1", "!x",
     "x<one", "x<nan", "y<1", "label<en", "label=pt", "x<table", "x='", "not"],
)  # fmt: skip
def test_what_is_no_rule_is_told_in_one_line(rule: str) -> None:
    with pytest.raises(ForewordError, match="--keep") as told:
        passing(rule)
    assert "\n" not in str(told.value)


def test_random_rules_agree_with_python() -> None:
    """The same rule, row by row, by Python's own ``eval``."""
    rng = random.Random(3)

    def make(depth: int) -> tuple[str, str]:
        kind = rng.choice(["and", "or", "not", "leaf"]) if depth else "leaf"
        if kind == "leaf":
            name, sign = rng.choice(["tokens", "x"]), rng.choice(["<", "<=", ">", ">=", "=", "!="])
            value = rng.choice([1, 2, 3, 20, 30])
            python = f"({name} == {name} and {name} {'==' if sign == '=' else sign} {value})"  # NaN is not itself
            return f"{name}{sign}{value}", python
        if kind == "not":
            rule, python = make(depth - 1)
            return f"not ({rule})", f"(not {python})"
        (left, a), (right, b) = make(depth - 1), make(depth - 1)
        return f"({left}) {kind} ({right})", f"({a} {kind} {b})"

    for _ in range(300):
        rule, python = make(3)
        wanted = [row for row in range(5) if eval(python, {"x": NUMBERS[row], "tokens": TOKENS[row]})]
        assert passing(rule) == wanted, rule


def test_what_and_joins_is_told_apart() -> None:
    rules = separate([parse_rule("label=en and (x<3 or x>4) and tokens>5"), parse_rule("x<9")])
    assert [str(rule) for rule in rules] == ["label=en", "x<3 or x>4", "tokens>5", "x<9"]


@pytest.mark.parametrize(
    "text",
    [
        "en\t1.5\nde\t2\n",
        "label,limit\nen,1.5\nde,2\n",
        "en 1.5\n\nde 2",
        '{"en": 1.5, "de": [2]}',
        "\ufeffen;1.5\nde;2",
    ],
)
def test_tables_in_several_forms(tmp_path: Path, text: str) -> None:
    (tmp_path / "t").write_text(text, "utf-8")
    assert read_table(str(tmp_path / "t")) == {"en": (1.5,), "de": (2.0,)}


@pytest.mark.parametrize(
    "text",
    ["", "en\n", "en 1\nen 2", "en 1\nde 1 2", "en 1 2 3", "en 1\nde x", '{"en": "x"}', "{", "en nan", '{"en": null}'],
)
def test_what_is_no_table(tmp_path: Path, text: str) -> None:
    (tmp_path / "t").write_text(text)
    with pytest.raises(InputError, match=str(tmp_path / "t")):
        read_table(str(tmp_path / "t"))


def test_columns_are_compared_with_columns() -> None:
    fields = {
        "column(lang)": Column("column(lang)", np.array([0, 1, 1, -1, 0], np.int32), ["en", "fr"], np.full(5, np.nan)),
        "column(n)": Column("column(n)", np.arange(5, dtype=np.int32), list("12345"), np.array([1.0, 9, 3, 4, 5])),
    }

    def found(rule: str) -> list[int]:
        parsed = parse_rule(rule)
        check_rule(parsed, list(COLUMNS.values()), None, "label")
        return np.flatnonzero(parsed.passes({**COLUMNS, **fields}, {}, "label")).tolist()

    assert found("label = column(lang)") == [0]
    assert found("label != column(lang)") == [1, 4]
    assert found("column(lang) = fr") == [1, 2]
    assert found("column(lang) in fr, en and x > 1") == [1, 2, 4]
    assert found("x = column(n)") == [0, 2, 4]
    assert found("column(x) < column(n)") == [1]
    assert found("column(n) >= 4 and column(tokens) > 30") == [3, 4]
    assert found("column(n) = 9 or column(n) = 1.0") == [0, 1]


@pytest.mark.parametrize("rule", ["label<column(lang)", "label=column(x)", "column(lang", "column()", "p(", "lang=en"])
def test_columns_that_cannot_be_compared(rule: str) -> None:
    with pytest.raises(ForewordError, match="--keep"):
        passing(rule)


def test_labels_are_named_with_or_without_quotes() -> None:
    rule = parse_rule("quality_p('a (b)') >= 0.5 and p(__label__hq) < p(\"lq\")")
    assert [str(part) for part in separate([rule])] == ["quality_p(a (b))>=0.5", "p(hq)<p(lq)"]


def test_ccnets_cutoffs_give_two_thresholds(tmp_path: Path) -> None:
    table = tmp_path / "cutoff.csv"
    table.write_text(",de,en\n29,1,2\n30,140,300\n60,260,800\n99,9,9\n")
    assert read_table(str(table)) == {"de": (140.0, 260.0), "en": (300.0, 800.0)}
    table.write_text(",de,en\n30,140,300\n")
    with pytest.raises(InputError, match="30th and 60th percentile"):
        read_table(str(table))


NAMED = [
    Column("a_label", np.array([0], np.int32), ["hq", "lq"]),
    Column("a_probability", np.array([0.5])),
    Column("words", np.array([3])),
]


@pytest.mark.parametrize(
    ("rule", "advice"),
    [
        ("p(hq)>0.5", r"did you mean a_p\(hq\)\?$"),
        ("probability>0.5", r"did you mean a_probability\?$"),
        ("word>0.5", r"did you mean words\?$"),
        ("lang=en", r"a field of the rows is written column\(lang\)$"),
        ("p(zz)>0.5", r"a field of the rows is written column"),
    ],
)
def test_a_column_that_does_not_exist_may_be_that_of_a_named_model(rule: str, advice: str) -> None:
    with pytest.raises(SettingError, match=advice):
        check_rule(parse_rule(rule), NAMED, None, "a_label")


def test_values_after_in_have_no_brackets() -> None:
    with pytest.raises(SettingError, match=r"values after in have no brackets: label in en, fr$"):
        parse_rule("label in (en, 'fr')")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("en abc\n", "no thresholds: its first line, 'en abc', has no numbers, and is a header"),
        ("en 1\nde abc\n", "line 2: 'abc' is not a number"),
        ("en 1\nde 1 2\n", "'en' has one threshold and 'de' two"),
    ],
)
def test_a_table_that_is_none_names_the_cell(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_table(str(tmp_path / "t.tsv"))
