"""Run a student's file in a process of its own, with a time limit, and check the functions it defines.

The process prints one verdict per line as soon as it has it: what was checked before a function hangs is not lost.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foreword.errors import InputError
from foreword.lessons.course.checking import Exercise, Verdict, all_exercises, check
from foreword.lessons.course.notebooks import NotebookCell, read_notebook

SECONDS = 120.0
"""Time limit of a file by default: every lesson takes a small part of it."""


def check_file(lesson: int, path: Path, seconds: float = SECONDS) -> list[Verdict]:
    """Return a verdict on every exercise of a lesson, for the functions that the file defines."""
    exercises = [exercise for exercise in all_exercises() if exercise.lesson == lesson]
    read_notebook(path)  # a file that cannot be read is an error here, not in the other process
    command = [sys.executable, "-m", "foreword.lessons.course.running", str(lesson), path.name]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    folder = path.resolve().parent
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, check=False, env=environment, cwd=folder)
    except subprocess.TimeoutExpired as late:
        verdicts = _verdicts(late.stdout)
        return [*verdicts, *(_late(exercise, path, seconds) for exercise in exercises[len(verdicts) :])]
    verdicts = _verdicts(done.stdout)
    if len(verdicts) < len(exercises):
        raise InputError(f"{path}: the program ended with status {done.returncode}: {_last_line(done.stderr.decode())}")
    return verdicts


def _verdicts(printed: bytes | None) -> list[Verdict]:
    return [Verdict(**json.loads(line)) for line in (printed or b"").splitlines()]


def _late(exercise: Exercise, path: Path, seconds: float) -> Verdict:
    return Verdict(exercise.number, False, f"{exercise.number} {exercise.name}: {path} still ran after {seconds:g} s")


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]


def run_cells(cells: list[NotebookCell]) -> tuple[dict[str, Any], str]:
    """Run the cells of code one after another; return the names they define, and the first error if there was one."""
    names: dict[str, Any] = {"__name__": "__main__"}
    failed = ""
    for cell in cells:
        code = "\n".join("pass" if line.startswith(("%", "!")) else line for line in cell.text.splitlines())
        if not cell.is_code:
            continue
        try:
            exec(compile(code, "<cell>", "exec"), names)
        except Exception as error:  # a broken cell must not hide the functions of the others
            failed = failed or f"{type(error).__name__}: {error}"
    return names, failed


def verdicts_of(lesson: int, path: Path) -> Iterator[Verdict]:
    """Run a file here and yield the verdict on each exercise."""
    names, failed = run_cells(read_notebook(path))
    for exercise in all_exercises():
        if exercise.lesson != lesson:
            continue
        if callable(names.get(exercise.name)):
            yield check(exercise.number, names[exercise.name])
        else:
            reason = f" ({failed})" if failed else ""
            yield Verdict(
                exercise.number, False, f"{exercise.number} {exercise.name}: {path} defines no such function{reason}"
            )


if __name__ == "__main__":
    report = sys.stdout  # for verdicts alone; whatever the student prints goes elsewhere
    with Path(os.devnull).open("w", encoding="utf-8") as nothing, contextlib.redirect_stdout(nothing):
        for verdict in verdicts_of(int(sys.argv[1]), Path(sys.argv[2])):
            report.write(f"{json.dumps(asdict(verdict))}\n")
            report.flush()
