"""``foreword course``: the notebooks of the course; ``foreword check``: what a student wrote, against the library."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from foreword.cli.options import OutputOptions, examples
from foreword.errors import ForewordError

COURSE_EXAMPLES = examples("foreword course", "foreword course my-course --no-open", "foreword course --solutions")
CHECK_EXAMPLES = examples("foreword check 4", "foreword check 9 homework/anna.ipynb", "foreword check 4 --json")


def course(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where to copy the notebooks.")] = "foreword-course",
    *,
    solutions: Annotated[bool, typer.Option("--solutions", help="Copy the solutions of the exercises too.")] = False,
    open_jupyter: Annotated[
        bool, typer.Option("--open/--no-open", help="Open Jupyter, where it is installed and this is a terminal.")
    ] = True,
    output: OutputOptions,
) -> None:
    """Copy the twelve notebooks of the course. A file that is there already is never overwritten.

    foreword check LESSON checks the exercises of one of them.
    """
    from foreword.cli.printing import print_message, write_json
    from foreword.lessons.course.notebooks import copy_course

    new, kept = copy_course(Path(folder), solutions=solutions)
    if output.as_json:
        write_json({"folder": folder, "new": [path.name for path in new], "kept": [path.name for path in kept]})
        return
    if not output.quiet:
        print_message(f"{len(new)} files copied to {folder}, {len(kept)} were there already")
    if open_jupyter and sys.stdout.isatty() and find_spec("jupyterlab"):
        subprocess.run([sys.executable, "-m", "jupyterlab", folder], check=False)


def check(
    lesson: Annotated[int, typer.Argument(metavar="LESSON", help="Number of the lesson.")],
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="Notebook or Python file of the student.", show_default="the notebook of the course"
        ),
    ] = None,
    *,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="Time limit for the whole file.")] = 120.0,
    output: OutputOptions,
) -> None:
    """Check the exercises of a lesson: the functions of a notebook or Python file against the library.

    The file runs in a process of its own. The exit status is 1 unless every exercise is right. Without FILE the
    notebook is looked for here and in foreword-course.
    """
    from dataclasses import asdict

    from foreword.cli.printing import write_json, write_text
    from foreword.lessons.course.notebooks import find_lesson
    from foreword.lessons.course.running import check_file

    name = find_lesson(lesson).name
    here = [path for path in (Path(name), Path("foreword-course") / name) if path.is_file()]
    path = Path(file) if file else (here or [Path(name)])[0]
    verdicts = check_file(lesson, path, seconds)
    if output.as_json:
        write_json([asdict(verdict) for verdict in verdicts])
    else:
        write_text("".join(f"{verdict.report}\n" for verdict in verdicts))
    wrong = [verdict.number for verdict in verdicts if not verdict.passed]
    if wrong:
        raise ForewordError(f"{len(wrong)} of {len(verdicts)} exercises are not right yet: {', '.join(wrong)}")
