"""``foreword evaluate A B TEXT``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foreword.cli.side_by_side import split_models

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


def test_files_and_addresses_of_models_are_told_from_texts(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    foreword("train", "ngram", text, "-o", tmp_path / "a", "--set", "order=2")
    for binary in ("probing", "trie"):
        foreword("convert", tmp_path / "a", tmp_path / f"{binary}.bin", "--binary", binary)
        found = json.loads(foreword("evaluate", tmp_path / "a", tmp_path / f"{binary}.bin", text, "--json").stdout)
        assert found["compared_by"] == "perplexity"
        assert len(found["models"]) == 2
        assert found["models"][0]["perplexity"] == pytest.approx(found["models"][1]["perplexity"], rel=1e-4)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("hf://owner/name/en.arpa.bin", True), ("https://host/lm.arpa.gz", True), ("memory://together/saved", True),
        ("hf://owner/name/test.jsonl", False), ("https://host/test.txt", False), ("memory://together/texts", False),
    ],
)  # fmt: skip
def test_addresses_of_models(address: str, expected: bool) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe("/together/saved/model.json", b"{}")
    memory.pipe("/together/texts/a.txt", b"a")
    models, texts = split_models([address, "text.txt"])
    assert (models, texts) == (([address], ["text.txt"]) if expected else ([], [address, "text.txt"]))


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
