"""``foreword classify --kind lstm``: trained, tested, asked, from nothing or from a language model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foreword.classify.recurrent import RecurrentClassifier
from foreword.storage.folder import load

from .conftest import Foreword

ROWS = [*(["fine film", "pos"], ["a great plot", "pos"], ["dull film", "neg"], ["an awful plot", "neg"]) * 10]
SMALL = ["--set", "hidden=12", "--set", "embedding=12", "--set", "rate=0.02", "--set", "device=cpu"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "reviews.tsv"
    path.write_text("\n".join(f"{text}\t{label}" for text, label in ROWS) + "\n")
    return path


def test_it_is_trained_tested_and_asked(foreword: Foreword, data: Path, tmp_path: Path) -> None:
    call = ["classify", "train", data, "-o", tmp_path / "model", "--kind", "lstm", *SMALL]
    result = foreword(*call, "--test", data, "--json", "--label-column", "2", "--text-column", "1", "--no-header")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert (facts["kind"], facts["texts"], facts["test"]["accuracy"]) == ("lstm", 40, 1.0)
    assert isinstance(load(tmp_path / "model"), RecurrentClassifier)
    result = foreword("classify", "predict", tmp_path / "model", "-", input="a dull plot\n\na great film\n")
    assert result.stdout.splitlines() == ["neg", "", "pos"]


def test_it_begins_with_a_language_model(foreword: Foreword, data: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{row[0]}\n" for row in ROWS))
    sizes = ["--set", "embedding=8", "--set", "hidden=8", "--set", "layers=1", "--set", "epochs=1", "--device", "cpu"]
    result = foreword("train", "lstm", text, "-o", tmp_path / "lm", *sizes)
    assert result.exit_code == 0, result.stderr
    call = ["classify", "train", data, "-o", tmp_path / "model", "--kind", "lstm", "--set", "device=cpu"]
    result = foreword(*call, "--set", f"language_model={tmp_path / 'lm'}", "--set", "epochs=1")
    assert result.exit_code == 0, result.stderr
    assert load(tmp_path / "model").embedding == 8


def test_bad_calls_are_one_line(foreword: Foreword, data: Path, tmp_path: Path) -> None:
    call = ["classify", "train", data, "-o", tmp_path / "model", "--kind", "lstm"]
    for more, told, status in (
        (["--set", "pooling=median"], "pooling cannot be 'median'", 2),
        (["--set", "epochs=0"], "epochs is 0: expected at least 1", 2),
        (["--features", "tf-idf"], "means nothing to lstm", 2),
        (["--set", f"language_model={data.parent / 'nowhere'}"], "nowhere", 1),
    ):
        result = foreword(*call, *more)
        assert result.exit_code == status, result.stderr
        assert told in result.stderr
        assert not (tmp_path / "model").exists()
