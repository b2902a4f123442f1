"""``foreword course`` and ``foreword check``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from foreword.cli import app
from foreword.lessons.course.notebooks import find_lesson

run = CliRunner().invoke


def test_course_copies_every_notebook_and_overwrites_none(tmp_path: Path) -> None:
    folder = tmp_path / "course"
    folder.mkdir()
    own = folder / find_lesson(4).name
    own.write_text("mine")
    copied = json.loads(run(app, ["course", str(folder), "--solutions", "--json"]).stdout)
    assert copied["kept"] == [own.name]
    assert len(copied["new"]) == 12  # eleven notebooks and the solutions
    assert own.read_text() == "mine"
    assert not json.loads(run(app, ["course", str(folder), "--solutions", "--json"]).stdout)["new"]


STUDENT = """
%matplotlib inline
from math import exp

def perplexity(logs):
    print("this is not a verdict")
    return exp(-sum(logs) / len(logs))

def bigram(texts, before, word):
    return 0.5

def witten_bell(texts, before, word, lower):
    return
"""


def test_check_reports_on_every_exercise(tmp_path: Path) -> None:
    file = tmp_path / "student.py"
    file.write_text(STUDENT)
    done = run(app, ["check", "4", str(file), "--json"])
    verdicts = {verdict["number"]: verdict for verdict in json.loads(done.stdout)}
    assert [verdict["passed"] for verdict in verdicts.values()] == [False, False, True]
    assert "expected  0.5999" in verdicts["4.1"]["report"]
    assert "not written yet" in verdicts["4.2"]["report"]
    assert done.exit_code == 1


def test_check_stops_a_file_that_does_not_end(tmp_path: Path) -> None:
    file = tmp_path / "endless.ipynb"
    cell = {"cell_type": "code", "source": ["while True:\n", "    pass"]}
    file.write_text(json.dumps({"cells": [cell]}))
    done = run(app, ["check", "1", str(file), "--seconds", "1"])
    assert "still ran after 1 s" in done.stdout
    assert done.exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "99"], "no lesson 99: expected 1 to 12"),
        (["check", "4", "absent.ipynb"], "no such file: absent.ipynb"),
        (["check", "4", "broken.ipynb"], "broken.ipynb: expected a notebook"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.ipynb").write_text("{")
    done = run(app, arguments)
    assert message in done.stderr
    assert done.exit_code in (1, 2)
