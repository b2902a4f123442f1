"""``foreword doctor``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from foreword import TextLM, WordTokenizer, save

from .conftest import TEXT, Foreword


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    from foreword.neural.recurrent import MODEST, RecurrentLM

    folder = tmp_path_factory.mktemp("doctor") / "model"
    training = replace(MODEST, epochs=2, batch=2, steps=6)
    model = TextLM(WordTokenizer(), RecurrentLM("lstm", 8, 8, 1, training=training, device="cpu"))
    save(model.fit(TEXT.split("\n")), folder)
    return folder


def test_p08_the_list_has_a_verdict_a_line(foreword: Foreword, recurrent: Path, text: Path) -> None:
    """P08: the rule list, printed on a real run."""
    result = foreword("doctor", recurrent, text)
    assert result.exit_code == 0
    for line in ("files", "weights", "loss", "gradient by lag", "saturated units", "memory", "dead units", "clipping"):
        assert any(row.split("  ")[0].strip() == line for row in result.stdout.splitlines()), line
    assert "verdict" in result.stdout.splitlines()[1]


def test_json(foreword: Foreword, recurrent: Path, text: Path) -> None:
    told = json.loads(foreword("doctor", recurrent, text, "--json").stdout)
    assert set(told) == {"verdict", "checks", "gradient_by_lag"}
    names = [check["name"] for check in told["checks"]]
    assert names[:3] == ["files", "weights", "loss"]
    assert told["gradient_by_lag"][0] == 1
    assert all(check["verdict"] in ("good", "watch", "bad", "told") for check in told["checks"])


def test_a_picture_of_the_gradients(
    foreword: Foreword, recurrent: Path, shelf: Path, text: Path, tmp_path: Path
) -> None:
    result = foreword("doctor", recurrent, text, "--picture", tmp_path / "gradients.svg", "--quiet")
    assert result.exit_code == 0
    assert "this model" in (tmp_path / "gradients.svg").read_text()
    result = foreword("doctor", shelf / "model", "--picture", tmp_path / "none.svg", "--quiet")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "no gradients to draw" in result.stderr
    assert not (tmp_path / "none.svg").exists()
    assert foreword("doctor", recurrent, text, "--picture", "-").exit_code == 2


def test_the_embedded_text_is_read_where_none_is_named(foreword: Foreword, recurrent: Path) -> None:
    assert json.loads(foreword("doctor", recurrent, "--json").stdout)["checks"][2]["loss"] > 0


def test_models_without_recurrent_layers_have_their_files_checked(foreword: Foreword, shelf: Path) -> None:
    result = foreword("doctor", shelf / "model")
    assert result.exit_code == 0
    assert "whole, every checksum right" in result.stdout
    assert "no recurrent layers" in result.stderr
    assert "no recurrent layers" not in foreword("doctor", shelf / "model", "--quiet").stderr


def test_what_is_not_there_is_one_line(foreword: Foreword, recurrent: Path, tmp_path: Path) -> None:
    result = foreword("doctor", tmp_path / "nowhere")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    empty = tmp_path / "empty.txt"
    empty.write_text("cat\n")
    result = foreword("doctor", recurrent, empty)
    assert result.exit_code == 1
    assert "expected at least 3" in result.stderr


def test_a_file_of_another_tool_has_no_checksums(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    foreword("train", "ngram", text, "-o", tmp_path / "model", "--set", "order=2")
    assert foreword("convert", tmp_path / "model", tmp_path / "x.bin", "--binary", "trie").exit_code == 0
    result = foreword("doctor", tmp_path / "x.bin")
    assert result.exit_code == 0
    assert "opened; such a file has no checksums" in result.stdout
    assert "every checksum right" not in result.stdout
