"""Exit status 2 for a call that makes no sense, 1 for work that fails, of every command."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import typer

from foreword.cli import app
from foreword.cli.failures import message_of
from foreword.errors import ForewordError, InputError, MissingExtraError, NoGpuError, SettingError, VocabularyError

from .conftest import Foreword
from .test_help import ALL

CALLS: dict[str, tuple[list[str], int]] = {
    "train, no such file": (["train", "unigram", "NOWHERE", "-o", "OUT"], 1),
    "train, no such kind": (["train", "nothing", "TEXT", "-o", "OUT"], 2),
    "train, no such setting": (["train", "unigram", "TEXT", "-o", "OUT", "--set", "x=1"], 2),
    "train, setting out of range": (["train", "ngram", "TEXT", "-o", "OUT", "--set", "order=0"], 2),
    "train, settings that exclude each other": (
        ["train", "ngram", "TEXT", "-o", "OUT", "--set", "smoothing=laplace", "--set", "add=0.5"], 2
    ),
    "score, no such model": (["score", "NOWHERE", "TEXT"], 1),
    "evaluate, no such model": (["evaluate", "NOWHERE", "TEXT"], 1),
    "generate, no such model": (["generate", "NOWHERE"], 1),
    "nearest, no such model": (["nearest", "NOWHERE", "cat"], 1),
    "classify, no such file": (["classify", "train", "NOWHERE", "-o", "OUT"], 1),
    "classify, setting out of range": (["classify", "train", "LABELLED", "-o", "OUT", "--set", "C=0"], 2),
    "classify, no output": (["classify", "train", "LABELLED"], 2),
    "tag, no such file": (["tag", "train", "NOWHERE", "-o", "OUT"], 1),
    "tag, setting out of range": (["tag", "train", "TAGGED", "-o", "OUT", "--column", "1", "--set", "rounds=0"], 2),
    "tokenize, no such file": (["tokenize", "train", "NOWHERE", "-o", "OUT"], 1),
    "tokenize, setting out of range": (["tokenize", "train", "TEXT", "-o", "OUT", "--set", "pattern=nothing"], 2),
    "search, no such file": (["search", "index", "NOWHERE", "-o", "OUT"], 1),
    "search, setting out of range": (["search", "index", "TEXT", "-o", "OUT", "--set", "b=7"], 2),
    "search, no such index": (["search", "query", "NOWHERE", "cat"], 1),
    "convert, no such file": (["convert", "NOWHERE", "OUT"], 1),
    "filter, no such model": (["filter", "NOWHERE", "TEXT", "OUT", "--keep", "perplexity<9"], 1),
    "data, no such data set": (["data", "nothing"], 2),
    "compare, no such text": (["compare", "NOWHERE"], 1),
}  # fmt: skip


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_an_unknown_option_is_bad_usage(foreword: Foreword, command: tuple[str, ...]) -> None:
    assert foreword(*command, "--no-such-option").exit_code == 2


def test_missing_arguments_are_bad_usage(foreword: Foreword) -> None:
    group = typer.main.get_command(app)
    for path in ALL:
        command = group
        for name in path:
            command = command.commands[name]  # type: ignore[attr-defined]
        if any(each.required for each in command.params):
            assert foreword(*path).exit_code == 2, path


@pytest.mark.parametrize(("call", "status"), CALLS.values(), ids=CALLS)
def test_a_call(foreword: Foreword, tmp_path: Path, call: list[str], status: int) -> None:
    (tmp_path / "text.txt").write_text("the cat sat\nthe dog ran\n" * 5)
    (tmp_path / "labelled.tsv").write_text("a\tthe cat sat\nb\tthe dog ran\n" * 5)
    (tmp_path / "tagged.conll").write_text("the DET\ncat NOUN\n\n")
    named = {
        "TAGGED": "tagged.conll",
        "TEXT": "text.txt",
        "LABELLED": "labelled.tsv",
        "NOWHERE": "nowhere",
        "OUT": "out",
    }
    result = foreword(*(tmp_path / named[word] if word in named else word for word in call))
    assert result.exit_code == status, result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SettingError("x"), 2),
        (NoGpuError(), 2),
        (VocabularyError(3), 1),
        (InputError("x"), 1),
        (MissingExtraError("torch", "neural", "x"), 1),
        (ForewordError("x"), 1),
        (OSError(28, "No space left"), 1),
        (MemoryError(), 1),
    ],
)
def test_the_status_of_an_error(error: Exception, status: int) -> None:
    assert message_of(error)[1] == status


def test_a_full_gpu_is_one_line_wherever_it_was_filled() -> None:
    line, status = message_of(torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."))
    assert status == 1
    assert "lower the batch" in line
    assert "unexpected" not in line
