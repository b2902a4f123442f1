"""The course: G12, its exercises, their solutions, the mistakes that the checker names; every lesson runs."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreword
from foreword.errors import InputError, SettingError
from foreword.lessons import check, own_text
from foreword.lessons.course import solutions
from foreword.lessons.course.checking import Exercise, all_exercises, same
from foreword.lessons.course.notebooks import SOURCES, lessons, notebook, page, read_notebook, read_source

EXERCISES = all_exercises()
LESSONS = sorted(SOURCES.glob("*.py"))
QUICK = {"03_search", "09_recurrent"}

TEXTS = {
    "persian": "سلام دنیا. گربه خوابیده است. سگ در باغ است و گربه در خانه. باغ بزرگ است و خانه کوچک. سگ گربه را دید",
    "japanese": "私は猫が好きです。猫はかわいい。犬も好きです。犬は庭にいます。",
    "one line": "the cat sat on the mat and the dog sat on the cat and then both of them ran home again",
}


def test_there_are_twelve_lessons_and_at_least_eighteen_exercises() -> None:
    """G12."""
    assert len(LESSONS) == 12
    assert len(EXERCISES) >= 18
    by_lesson = Counter(exercise.lesson for exercise in EXERCISES)
    assert all(2 <= by_lesson[lesson] <= 3 for lesson in range(1, 13))


def test_notebooks_are_those_of_the_sources() -> None:
    """Run ``python -m foreword.lessons.course.notebooks`` after changing a lesson."""
    assert [path.stem for path in lessons()] == [path.stem for path in LESSONS]
    for source, written in zip(LESSONS, lessons(), strict=True):
        assert json.loads(written.read_text(encoding="utf-8")) == notebook(read_source(source.read_text("utf-8")))
        assert read_notebook(written) == read_notebook(source)


@pytest.mark.parametrize("source", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_has_all_its_parts(source: Path) -> None:
    cells = read_source(source.read_text(encoding="utf-8"))
    code = [cell.text for cell in cells if cell.is_code]
    assert code[0].startswith('TEXT = ""')
    assert any(text.startswith("equation(") for text in code)
    assert "foreword.picture" in code[0]
    numbers = {exercise.number for exercise in EXERCISES if exercise.lesson == int(source.name[:2])}
    assert numbers == {text.partition('check("')[2].partition('"')[0] for text in code if "\ncheck(" in text}
    assert "**What to read next.**" in cells[-1].text
    assert re.search(r"^    \S", page(cells), re.MULTILINE), "the equation is on the page as well"


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.number)
def test_the_solution_is_right_and_each_mistake_is_named(exercise: Exercise) -> None:
    """G12: our own exercises, with solutions that tests run."""
    assert check(exercise.number, getattr(solutions, exercise.name)).passed
    assert exercise.mistakes
    for name, wrong in exercise.mistakes.items():
        verdict = check(exercise.number, wrong)
        assert not verdict.passed
        assert f"Likely mistake: {name}." in verdict.report


def unsmoothed_bags(counts: Any, alpha: float) -> Any:
    return np.log((counts + alpha) / counts.sum(axis=1)[:, None])


def mean_probability(logs: list[float]) -> float:
    return len(logs) / float(sum(np.exp(log) for log in logs))


def no_end_of_text(texts: list[str], before: str, word: str) -> float:
    after = []
    for text in texts:
        words = ["<s>", *text.split()]
        after += [words[i + 1] for i in range(len(words) - 1) if words[i] == before]
    return after.count(word) / len(after) if after else 0.0


def removes_blanks_first(symbols: list[int], blank: int) -> list[int]:
    out: list[int] = []
    for symbol in [each for each in symbols if each != blank]:
        if not out or out[-1] != symbol:
            out.append(symbol)
    return out


def overflowing(scores: Any) -> Any:
    e = [np.exp(score) for score in scores]
    return np.array([each / sum(e) for each in e])


def forgets_scaling(query: Any, keys: Any, values: Any) -> Any:
    scores = np.exp(query @ keys.T)
    return (scores / scores.sum(axis=1)[:, None]) @ values


@pytest.mark.parametrize(
    ("number", "wrong", "named"),
    [
        ("2.2", unsmoothed_bags, "alpha is missing in the total"),
        ("4.1", no_end_of_text, "</s>, is not counted"),
        ("4.3", mean_probability, "average the logarithms"),
        ("8.2", overflowing, "exp overflows"),
        ("11.2", removes_blanks_first, "blanks are removed before repetitions"),
        ("12.1", forgets_scaling, "not divided by √d"),
    ],
)
def test_wrong_solutions_that_students_write_are_named(number: str, wrong: Callable[..., Any], named: str) -> None:
    report = check(number, wrong).report
    assert named in report
    assert "expected" in report
    assert "got" in report


def test_a_blank_an_error_and_an_unknown_exercise() -> None:
    assert "not written yet" in check("4.3", lambda logs: ...).report
    assert "ZeroDivisionError" in check("4.3", lambda logs: 1 / 0).report
    with pytest.raises(SettingError, match="no exercise '99'"):
        check("99", print)


def test_results_are_compared_by_value() -> None:
    assert same([1, 2.0], np.array([1.0, 2.0]))
    assert same({"a": [("b", 1)]}, {"a": [("b", 1)]})
    assert not same([1, 2], [1, 2, 3])
    assert not same("1", 1)
    assert not same(ValueError(), 1)
    assert same(float("nan"), float("nan"))


def test_any_text_is_cut_into_documents() -> None:
    for text in TEXTS.values():
        train, test = own_text(text)
        assert len(train) >= 2
        assert test
        assert set(train).isdisjoint(test)
    assert "猫" in own_text(TEXTS["japanese"])[1][0].split()
    with pytest.raises(InputError, match="TEXT has 2 words"):
        own_text("too short")


def run_lesson(source: Path, text: str = "") -> None:
    """Run a lesson as a notebook would, with the last value of each cell shown, and without a network."""
    names: dict[str, Any] = {"__name__": "lesson"}
    for cell in read_source(source.read_text(encoding="utf-8")):
        if cell.is_code:
            *body, last = ast.parse(cell.text.replace('TEXT = ""', f"TEXT = {text!r}")).body
            exec(compile(ast.Module(body, []), source.name, "exec"), names)
            if isinstance(last, ast.Expr):
                shown = eval(compile(ast.Expression(last.value), source.name, "eval"), names)
                assert shown is None or repr(shown)
                assert not hasattr(shown, "markup") or shown._repr_html_().startswith("<figure>")
            else:
                exec(compile(ast.Module([last], []), source.name, "exec"), names)


@pytest.mark.parametrize(
    "source",
    [pytest.param(path, id=path.stem, marks=[] if path.stem in QUICK else [pytest.mark.long]) for path in LESSONS],
)
def test_a_lesson_runs_as_it_is(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.socket.connect", lambda *args: pytest.fail("a lesson asked the network"))
    run_lesson(source)


@pytest.mark.long
@pytest.mark.parametrize("language", TEXTS)
def test_every_lesson_runs_on_a_text_of_ones_own(language: str) -> None:
    for source in LESSONS:
        run_lesson(source, TEXTS[language])


def test_importing_the_lessons_does_not_import_torch() -> None:
    code = "import sys, foreword.lessons; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(foreword.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
