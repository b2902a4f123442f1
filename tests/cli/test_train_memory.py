"""``foreword train``: its limit of memory, and what it tells while it works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from foreword.cli import progress
from foreword.protocols import Meter

from .conftest import Foreword


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_with_a_limit_the_model_is_the_same(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "new" / "parts"
    for options in (["-o", whole], ["-o", parts, "--memory", "64M"]):
        done = foreword("train", "ngram", text, *options, "--set", "order=3", "--quiet")
        assert done.exit_code == 0, done.output
    assert files(whole) == files(parts)
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"parts"}


def test_the_ids_of_another_tokenizer_keep_to_the_limit_too(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    tokenizer = tmp_path / "tokenizer"
    assert foreword("tokenize", "train", text, "-o", tokenizer, "--kind", "character", "-q").exit_code == 0
    for name, options in (("whole", []), ("parts", ["--memory", "64M"])):
        done = foreword("train", "ngram", text, "-o", tmp_path / name, "--tokenizer", tokenizer, "-q", *options)
        assert done.exit_code == 0, done.output
    assert files(tmp_path / "whole") == files(tmp_path / "parts")


@pytest.mark.parametrize(
    ("kind", "size", "told"),
    [("unigram", "512M", "unigram has no memory limit"), ("ngram", "1K", "64M"), ("ngram", "much", "512M")],
)
def test_a_limit_that_means_nothing_is_a_wrong_call(
    foreword: Foreword, text: Path, tmp_path: Path, kind: str, size: str, told: str
) -> None:
    done = foreword("train", kind, text, "-o", tmp_path / "model", "--memory", size)
    assert done.exit_code == 2
    assert told in done.stderr
    assert not (tmp_path / "model").exists()


def test_models_that_tell_how_far_they_are_are_heard(
    foreword: Foreword, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []

    @contextmanager
    def listening(quiet: bool = False) -> Iterator[Meter | None]:
        yield lambda phase, done, total: heard.append(phase)

    monkeypatch.setattr(progress, "progress", listening)
    for kind in ("ngram", "unigram"):  # the second has nothing to tell, and is not asked
        assert foreword("train", kind, text, "-o", tmp_path / kind).exit_code == 0
    phases = list(dict.fromkeys(phase for phase in heard if not phase.startswith("reading")))
    assert phases == ["counting", "linking", "estimating", "filling tables"]
