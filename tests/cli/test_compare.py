"""``foreword compare``: the main job."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import TEXT, Foreword


@pytest.fixture
def poem(tmp_path: Path) -> Path:
    path = tmp_path / "poem.txt"
    path.write_text(TEXT * 10)
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs are kept here, and not where the user's are."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "foreword" / "compare"


COUNTED = ("--models", "unigram,bigram,5-gram,hmm")
"""Models that learn in no time."""


@pytest.mark.usefixtures("wide")
def test_the_table_is_printed_with_every_model(foreword: Foreword, poem: Path) -> None:
    result = foreword("compare", poem, "--time-budget", 3, "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"{poem.name}: 40 documents" in " ".join(result.stdout.split())
    assert str(poem.parent) not in result.stdout  # a name, no path
    assert "Tested on" in result.stdout
    assert "predicts this text best" in result.stdout
    for title in ("Unigram", "5-gram", "Bengio", "RNN", "LSTM", "GRU", "Transformer", "perplexity"):
        assert title in result.stdout


def test_without_torch_a_line_says_what_was_left_out(
    foreword: Foreword, poem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    result = foreword("compare", poem)
    assert result.exit_code == 0
    assert "5-gram" in result.stdout
    *_, last = result.stderr.splitlines()
    assert last.startswith("left out, because they need torch: bengio, rnn")


def test_without_a_terminal_a_line_is_told_for_each_model(foreword: Foreword, poem: Path) -> None:
    result = foreword("compare", poem, *COUNTED, "--json")
    first, *_, last = result.stderr.splitlines()
    assert first.startswith("1 of 4: Unigram, perplexity ")
    assert last.startswith("4 of 4: HMM, 64 states, perplexity ")
    json.loads(result.stdout)


def test_json_and_a_report(foreword: Foreword, poem: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    result = foreword("compare", poem, "--report", report, "--json", "--models", "unigram", "--seed", 1)
    assert foreword("compare", poem, "--models", "unigram", "--quiet").stderr == ""
    told = json.loads(result.stdout)
    assert [model["name"] for model in told["models"]] == ["unigram"]
    assert told["models"][0]["perplexity"] > 1
    assert told["text"]["name"] == poem.name
    assert told["conclusion"]
    assert result.stderr.splitlines()[1:] == [f"report written to {report}"]
    assert report.read_text().startswith("<!doctype html>")


def test_the_report_may_go_to_standard_output(foreword: Foreword, poem: Path) -> None:
    assert foreword("compare", poem, "--report", "-", *COUNTED).stdout.startswith("<!doctype html>")


def test_options_reach_the_comparison(foreword: Foreword, poem: Path, shelf: Path) -> None:
    small = json.loads(foreword("compare", poem, "--vocab", 5, "--min-count", 1, "--json", *COUNTED).stdout)
    assert small["text"]["vocabulary"] == 5
    lent = json.loads(foreword("compare", poem, "--tokenizer", shelf / "bpe", "--json", *COUNTED).stdout)
    assert lent["text"]["vocabulary"] > 256


@pytest.mark.long
def test_the_embedded_text_is_the_default(foreword: Foreword) -> None:
    told = json.loads(foreword("compare", "--json", "--models", "unigram,bigram").stdout)
    assert told["text"]["documents"] > 5000
    assert 100 < told["models"][0]["perplexity"] < 2000


def test_a_data_set_is_split_as_its_makers_did(
    foreword: Foreword, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from foreword.text import datasets

    parts = {"train": "a b c a\n" * 30, "valid": "a b\n", "test": "c a\n" * 2}
    for part, text in parts.items():
        path = tmp_path / "ptb" / f"ptb.{part}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("FOREWORD_DATA", str(tmp_path))
    monkeypatch.setattr(datasets, "_check_size", lambda *_: None)
    told = json.loads(foreword("compare", "ptb", "--json", *COUNTED).stdout)
    assert told["text"]["name"].startswith("Penn Treebank")
    assert [told["text"][f"{part}_tokens"] for part in parts] == [150, 3, 6]


def test_errors_leave_nothing(
    foreword: Foreword, poem: Path, tmp_path: Path, listing: Callable[[Path], list[str]]
) -> None:
    before = listing(tmp_path)
    for words, said, status in (
        (["--models", "nonsense"], "expected unigram", 2),
        ([tmp_path / "absent.txt"], "no such file", 1),
        (["--report", tmp_path], "it is not a plain file", 1),
        (["--report", poem / "report.html"], "cannot write", 1),
    ):
        result = foreword("compare", *([poem] if isinstance(words[0], str) else []), *words)
        assert result.exit_code == status
        assert said in result.stderr
        assert result.stderr.count("\n") == 1
    assert listing(tmp_path) == before
