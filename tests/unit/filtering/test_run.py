"""Runs of filter over many files."""

from __future__ import annotations

from pathlib import Path

import pytest

from foreword.filtering import Filtering, filter_files
from foreword.filtering.shards import Shard
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.storage.folder import save
from foreword.tokens.words import WordTokenizer


def test_files_are_not_compared_with_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand tiny files: comparing each with all others took ten minutes before the first was read."""
    save(TextLM(WordTokenizer(), NgramLM(2, "witten-bell")).fit(["the cat sat"]), tmp_path / "lm")
    (tmp_path / "in").mkdir()
    for number in range(20):
        (tmp_path / "in" / f"{number}.txt").write_text("the cat\n")

    def compared(one: Shard, other: object) -> bool:
        raise AssertionError("two files were compared")

    monkeypatch.setattr(Shard, "__eq__", compared)
    rules = Filtering([("", str(tmp_path / "lm"))], keep=["perplexity<1000"])
    for _ in range(2):  # the second finds everything done
        report = filter_files(str(tmp_path / "in"), tmp_path / "out", rules, processes=1)
        assert report.tally.kept == 20
