"""The command line as people and programs use it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from typer.testing import CliRunner, Result

from foreword.cli import app

TEXT = """\
the cat sat on the mat
the dog sat on the log

a cat and a dog sat on a mat
the mat was on the log and the log was on the dog
"""


class Foreword(Protocol):
    """Call the command line within this process."""

    def __call__(self, *words: object, input: str | bytes | None = None) -> Result: ...


class Process(Protocol):
    """Call it as a process of its own."""

    def __call__(self, *words: object, **how: object) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(scope="session")
def foreword() -> Foreword:
    def call(*words: object, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, [str(word) for word in words], input=input)

    return call


@pytest.fixture(scope="session")
def process() -> Process:
    def call(*words: object, **how: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "foreword", *map(str, words)]
        settings = {"capture_output": True, "text": True, "timeout": 120, "check": False, **how}
        return subprocess.run(command, **settings)  # type: ignore[call-overload, no-any-return]

    return call


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal in which no line of a table is broken."""
    monkeypatch.setenv("COLUMNS", "250")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory, foreword: Foreword) -> Path:
    """A folder with a model and tokenizers, made once, for tests that only read them."""
    folder = tmp_path_factory.mktemp("shelf")
    source = folder / "text.txt"
    source.write_text(TEXT)
    made: list[Result] = [
        foreword("train", "unigram", source, "-o", folder / "model"),
        foreword("tokenize", "train", source, "-o", folder / "bpe", "--vocab", 280),
        foreword("tokenize", "train", source, "-o", folder / "tokenizer.json", "--vocab", 280),
        foreword("tokenize", "train", source, "-o", folder / "word", "--kind", "word"),
    ]
    assert [result.exit_code for result in made] == [0] * len(made), [result.stderr for result in made]
    return folder


@pytest.fixture
def listing() -> Callable[[Path], list[str]]:
    """Everything below a folder, hidden things included, so that nothing is left over unseen."""

    def below(folder: Path) -> list[str]:
        return sorted(os.path.relpath(path, folder) for path in folder.rglob("*"))

    return below
