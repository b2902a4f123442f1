"""``foreword convert`` and ``foreword data``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foreword import load
from foreword.text.datasets import DATASETS

from .conftest import Foreword


def test_there_and_back_again(foreword: Foreword, shelf: Path, tmp_path: Path) -> None:
    there = foreword("convert", shelf / "tokenizer.json", tmp_path / "folder", "--json")
    assert json.loads(there.stdout)["vocabulary"] == len(load(tmp_path / "folder").vocab)
    assert foreword("convert", tmp_path / "folder", tmp_path / "back.json").exit_code == 0
    assert (tmp_path / "back.json").read_bytes() == (shelf / "tokenizer.json").read_bytes()


def test_standard_input_and_output(foreword: Foreword, shelf: Path) -> None:
    original = (shelf / "tokenizer.json").read_bytes()
    result = foreword("convert", "-", "-", input=original)
    assert (result.stdout_bytes, result.stderr) == (original, "")
    assert foreword("convert", "-", "-", "--json", input=original).exit_code == 2


def test_other_kinds_are_refused(foreword: Foreword, shelf: Path, tmp_path: Path) -> None:
    result = foreword("convert", shelf / "word", tmp_path / "out.json")
    assert result.exit_code == 1
    assert "its kind is word; tokenizer.json is written for BPE and WordPiece tokenizers" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_name_of_another_kind_of_file_is_not_made_a_folder(
    foreword: Foreword, shelf: Path, text: Path, tmp_path: Path
) -> None:
    model, out = tmp_path / "model", tmp_path / "out"
    assert foreword("train", "ngram", text, "-o", model, "--set", "order=2").exit_code == 0
    assert foreword("convert", model, tmp_path / "lm.bin", "--binary", "trie").exit_code == 0
    out.mkdir()
    for source, name in (
        (tmp_path / "lm.bin", "e.model"), (tmp_path / "lm.bin", "e.txt"), (model, "e.vec"),
        (shelf / "tokenizer.json", "t.bin"), (shelf / "tokenizer.json", "t.vec"),
    ):  # fmt: skip
        result = foreword("convert", source, out / name)
        assert (result.exit_code, "its kind is" in result.stderr) == (1, True), name
    assert list(out.iterdir()) == []


def test_the_list_of_data_sets(foreword: Foreword) -> None:
    shown = foreword("data").stdout
    listed = json.loads(foreword("data", "--json").stdout)
    assert [one["name"] for one in listed] == ["embedded", *DATASETS]
    assert all(one["name"] in shown for one in listed)


def test_one_data_set_in_full(foreword: Foreword) -> None:
    shown = " ".join(foreword("data", "ptb").stdout.split())
    told = json.loads(foreword("data", "ptb", "--json").stdout)
    assert told["citation"] in shown
    assert told["address"] in shown
    assert [one["split"] for one in told["splits"]] == ["train", "valid", "test"]
    assert "docstrings" in foreword("data", "embedded").stdout


def test_the_path_of_a_split(foreword: Foreword, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREWORD_DATA", str(tmp_path))
    place = tmp_path / "ptb" / "ptb.test.txt.xz"
    place.parent.mkdir()
    place.write_bytes(b"whatever")
    assert foreword("data", "ptb", "--path", "test").stdout == f"{place}\n"
    assert json.loads(foreword("data", "ptb", "--path", "test", "--json").stdout) == {"test": str(place)}


def test_names_and_splits_that_are_not(foreword: Foreword) -> None:
    for words, said, status in (
        (["pbt"], "no dataset named 'pbt': expected ptb", 2),
        (["ptb", "--path", "tset"], "no split 'tset' in ptb", 2),
        (["embedded", "--path", "test"], "embedded is not a file", 1),
    ):
        result = foreword("data", *words)
        assert result.exit_code == status
        assert said in result.stderr
