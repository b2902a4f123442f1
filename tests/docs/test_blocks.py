"""What the documentation shows is run: every Python block of every page, and every command in a ``console`` block.

The blocks of a page are one story: they run in order, in one folder of their own, with one set of names. ``# →`` stands
before a line that is printed to the letter, ``# ≈`` before one whose numbers may be a tenth off (the embedded text is
the documentation of whatever Python runs). In a console block a line with ``$`` is a command, and what follows it is
printed, numbers within a tenth; ``…`` stands for lines that are left out.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")

# Why a page's blocks are not run here.
ELSEWHERE = {
    "lab.md": "asks a lab that is running, as tests/lab does",
    "serve.md": "asks a server that is running; tests/cli/test_serve.py runs it",
}


@dataclass(frozen=True)
class Block:
    kind: str
    code: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 2) for m in BLOCK.finditer(text)]


def pages() -> Iterator[Any]:
    for page in sorted(DOCS.rglob("*.md")):
        name = page.relative_to(DOCS).as_posix()
        blocks = blocks_of(page)
        if blocks and name not in ELSEWHERE:
            needs = any(re.search(r"\b(dataset|labelled|spoken_digits)\(", block.code) for block in blocks)
            yield pytest.param(page, id=name, marks=[pytest.mark.data] if needs else [])


@pytest.mark.parametrize("page", list(pages()))
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "console" in {block.kind for block in blocks_of(page)}:
        monkeypatch.setenv("PATH", f"{command_folder(tmp_path / 'bin')}{os.pathsep}{os.environ['PATH']}")
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    names: dict[str, Any] = {"__name__": page.stem}
    for block in blocks_of(page):
        (run_python if block.kind == "python" else run_commands)(page, block, names)


def run_python(page: Path, block: Block, names: dict[str, Any]) -> None:
    printed = io.StringIO()
    code = "\n" * (block.line - 1) + block.code  # so that a traceback names the page's own line
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(page), "exec"), names)
    told = iter(printed.getvalue().splitlines())
    for arrow, promised in re.findall(r"# (→|≈) (.*)", block.code):
        if not any(agrees(promised, line, exactly=arrow == "→") for line in told):
            raise AssertionError(f"{page.name}:{block.line} promises {promised!r}, printed:\n{printed.getvalue()}")


def run_commands(page: Path, block: Block, names: dict[str, Any]) -> None:
    for part in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
        command, _, promised = part.replace("\\\n", " ").partition("\n")
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"{page.name}: $ {command}\n{done.stderr}"
        told = iter(f"{done.stdout}{done.stderr}".splitlines())
        for line in promised.splitlines():
            if line.strip() not in ("", "…") and not any(agrees(line, other, exactly=False) for other in told):
                raise AssertionError(
                    f"{page.name}: $ {command}\npromises {line!r}, printed:\n{done.stdout}{done.stderr}"
                )


def agrees(promised: str, printed: str, *, exactly: bool) -> bool:
    """The same words; where ``exactly`` is not asked for, numbers within a tenth, or one in their last digit."""
    if exactly:
        return promised == printed
    if NUMBER.sub("#", promised).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(NUMBER.findall(promised), NUMBER.findall(printed), strict=True)
    return all(abs(value(one) - value(other)) <= slack(one) for one, other in pairs)


def value(number: str) -> float:
    return float(number.replace(",", "").replace("−", "-"))


def slack(number: str) -> float:
    """A tenth of it, or one in its last place where that is more; whole numbers are counts and have no such place."""
    places = len(number.partition(".")[2].partition("e")[0])
    return max(0.1 * abs(value(number)), 1.001 * 10.0**-places if places else 0.0)


def command_folder(folder: Path) -> Path:
    """A folder with the command ``foreword``, for whoever runs the tests without having installed it."""
    folder.mkdir()
    command = folder / "foreword"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m foreword "$@"\n')
    command.chmod(0o755)
    return folder


def test_every_page_about_a_model_has_code_that_is_run() -> None:
    """One page a model: an equation, a picture that the package drew, ten lines, and what was measured."""
    lacking: dict[str, list[str]] = {}
    for name in MODEL_PAGES:
        text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        missing = [what for what, pattern in PARTS.items() if not re.search(pattern, text, re.MULTILINE)]
        lacking |= {name: missing} if missing else {}
    assert lacking == {}


PARTS = {
    "an equation": r"^    \S",
    "a picture": r"!\[.+\]\(pictures/\S+\.svg\)",
    "ten lines": r"^```python",
    "a table of measurements": r"^\|.*\d",
    "a year, so a paper": r"\b(19|20)\d\d\b",
}
MODEL_PAGES = [
    *(
        "tokens",
        "bags",
        "classify",
        "lsa",
        "ngram",
        "hmm",
        "tagging",
        "vectors",
        "glove",
        "neural",
        "bengio",
        "recurrent",
    ),
    *("min_gru", "awd_lstm", "recurrent_classifier", "bilstm", "elmo", "translate", "ctc", "speech", "transformer"),
    "mixtures",
]


def test_numbers_are_compared_as_the_pages_promise() -> None:
    assert agrees("perplexity 87.9", "perplexity   88.4", exactly=False)
    assert not agrees("perplexity 87.9", "perplexity 108.4", exactly=False)
    assert not agrees("perplexity 87.9", "bits 87.9", exactly=False)
    assert agrees("0.03", "0.04", exactly=False)
    assert not agrees("3 words", "4 words", exactly=False)
    assert not agrees("87.9", "88.4", exactly=True)
