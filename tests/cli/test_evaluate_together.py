"""``foreword evaluate A B TEXT``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import TEXT, Foreword


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT * 10 + "a line with hapax\n")
    return path


def test_two_models_are_compared(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    for name, options in (("a", []), ("b", ["--min-count", 2])):
        foreword("train", "ngram", text, "-o", tmp_path / name, "--set", "order=2", *options)
    alone = json.loads(foreword("evaluate", tmp_path / "a", text, "--json").stdout)
    both = json.loads(foreword("evaluate", tmp_path / "a", tmp_path / "b", text, "--json").stdout)
    assert (both["compared_by"], both["normalised"]) == ("perplexity", True)
    found = {Path(model["model"]).name: model for model in both["models"]}
    assert found["a"]["perplexity"] == pytest.approx(alone["perplexity"])
    assert found["a"]["tokens"] == found["b"]["tokens"]
    shown = foreword("evaluate", tmp_path / "a", tmp_path / "b", text)
    assert "unknown" in shown.stdout
    assert "the models know different words" in shown.stderr


def test_what_cannot_be_compared_is_refused(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    foreword("train", "unigram", text, "-o", tmp_path / "a")
    twice = foreword("evaluate", tmp_path / "a", tmp_path / "a", text)
    assert (twice.exit_code, "named twice" in twice.stderr) == (1, True)
    assert foreword("evaluate", tmp_path / "a", tmp_path / "a").exit_code == 2
    assert foreword("evaluate", tmp_path / "a", tmp_path / "a", text, "--dynamic").exit_code == 2


def test_n_grams_and_networks_of_one_text_know_the_same_words(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    """By default, so that their perplexities can be compared."""
    pytest.importorskip("torch")
    foreword("train", "ngram", text, "-o", tmp_path / "ngram")
    foreword(
        "train", "lstm", text, "-o", tmp_path / "lstm", "--set", "epochs=1", "--set", "hidden=8", "--set", "embedding=8"
    )
    one, other = (
        json.loads(foreword("evaluate", tmp_path / name, text, "--json").stdout) for name in ("ngram", "lstm")
    )
    assert (one["tokens"], one["oov"]) == (other["tokens"], other["oov"])
    both = json.loads(foreword("evaluate", tmp_path / "ngram", tmp_path / "lstm", text, "--json").stdout)
    assert both["normalised"] is False
