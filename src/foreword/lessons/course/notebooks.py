"""Lessons as notebooks and as pages: one source, plain Python with cell marks, so that they cannot drift apart.

``# %% [markdown]`` begins a cell of text, every line after ``# ``; ``# %%`` begins a cell of code. VS Code, Spyder and
Jupytext know these marks. ``python -m foreword.lessons.course.notebooks`` writes the notebooks that come with the
package from the sources in ``course/``.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foreword.errors import InputError, SettingError
from foreword.storage.atomic import atomic_file
from foreword.text.strict_json import parse_json

FOLDER = Path(__file__).with_name("notebooks")
SOURCES = Path(__file__).parents[4] / "course"
"""The sources of the lessons, in a checkout of the repository."""

MARK = re.compile(r"^# %%( \[markdown\])?\n", re.MULTILINE)


@dataclass(frozen=True)
class NotebookCell:
    """A cell of a lesson: text in Markdown, or code."""

    is_code: bool
    text: str


def read_source(source: str) -> list[NotebookCell]:
    """Return the cells of a lesson's source."""
    _, *parts = MARK.split(source)
    cells = []
    for mark, body in zip(parts[::2], parts[1::2], strict=True):
        lines = body.strip().splitlines()
        text = (
            "\n".join(lines) if mark is None else "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines)
        )
        cells.append(NotebookCell(mark is None, text))
    return cells


def read_notebook(path: Path) -> list[NotebookCell]:
    """Return the cells of a notebook or of a Python file; a file without marks is one cell."""
    try:
        if path.suffix != ".ipynb":
            text = path.read_text(encoding="utf-8")
            return read_source(text) or [NotebookCell(True, text)]
        cells = parse_json(path.read_bytes())["cells"]
        return [NotebookCell(cell["cell_type"] == "code", "".join(cell["source"])) for cell in cells]
    except FileNotFoundError:
        raise InputError(f"no such file: {path}") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: expected a notebook (.ipynb) or a Python file") from None


def notebook(cells: list[NotebookCell]) -> dict[str, Any]:
    """Return cells as a Jupyter notebook, format 4.5."""
    code: dict[str, Any] = {"cell_type": "code", "execution_count": None, "outputs": []}
    text = {"cell_type": "markdown"}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": [
            {**(code if cell.is_code else text), "id": f"cell-{number}", "metadata": {}, "source": _lines(cell.text)}
            for number, cell in enumerate(cells)
        ],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def page(cells: list[NotebookCell]) -> str:
    """Return cells as a page of the documentation; equations are set off by four blanks, as on every page."""
    return "\n\n".join(_page_cell(cell) for cell in cells) + "\n"


def _page_cell(cell: NotebookCell) -> str:
    if not cell.is_code:
        return cell.text
    if cell.text.startswith("equation("):
        [written] = [node.value for node in ast.walk(ast.parse(cell.text)) if isinstance(node, ast.Constant)]
        return "\n".join(f"    {line}" for line in str(written).splitlines())
    return f"```python\n{cell.text}\n```"


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def lessons() -> list[Path]:
    """Return the notebooks that come with the package, in order."""
    return sorted(FOLDER.glob("*.ipynb"))


def find_lesson(number: int) -> Path:
    """Return the notebook of a lesson by its number."""
    found = [path for path in lessons() if int(path.name[:2]) == number]
    if not found:
        raise SettingError(f"no lesson {number}: expected 1 to {len(lessons())}")
    return found[0]


def copy_course(folder: Path, *, solutions: bool = False) -> tuple[list[Path], list[Path]]:
    """Copy the notebooks, and the solutions where asked for; return the new files and those that were there already."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = [*lessons(), *([Path(__file__).with_name("solutions.py")] if solutions else [])]
    new, kept = [], []
    for source in sources:
        target = folder / source.name
        if target.exists():
            kept.append(target)
            continue
        with atomic_file(target) as file:
            file.write_bytes(source.read_bytes())
        new.append(target)
    return new, kept


def write_notebooks() -> None:
    """Write the notebook of every source."""
    for source in sorted(SOURCES.glob("*.py")):
        cells = read_source(source.read_text(encoding="utf-8"))
        target = FOLDER / f"{source.stem}.ipynb"
        target.write_text(
            json.dumps(notebook(cells), ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n"
        )


if __name__ == "__main__":
    write_notebooks()
