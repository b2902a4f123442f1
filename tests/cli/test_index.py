"""``foreword index`` as people and programs use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Foreword


@pytest.fixture
def index(foreword: Foreword, text: Path, tmp_path: Path) -> Path:
    made = foreword("index", "build", text, "-o", tmp_path / "index")
    assert made.exit_code == 0, made.stderr
    return tmp_path / "index"


def test_runs_of_words_are_counted_and_found(foreword: Foreword, index: Path, text: Path) -> None:
    assert json.loads(foreword("index", "count", index, "sat on", "--json").stdout) == {"text": "sat on", "count": 3}
    assert foreword("index", "count", index, "sat on").stdout == "3\n"
    assert foreword("index", "find", index, "dog sat", "-k", 1).stdout.split("\t")[:2] == [f"{text}#2", "1"]
    found = json.loads(foreword("index", "find", index, "dog sat", "--json").stdout)
    assert [place["document"] for place in found["places"]] == [1, 2]
    assert foreword("index", "document", index, "dog sat").stdout == f"{text}#2\tthe dog sat on the log\n"


def test_next_words_and_spans(foreword: Foreword, index: Path) -> None:
    found = json.loads(foreword("index", "context", index, "nobody sat on the", "--json").stdout)
    assert (found["matched"], found["length"], found["count"]) == ("sat on the", 3, 2)
    assert found["words"][0] == {"token": "mat", "count": 1, "probability": 0.5}
    spans = json.loads(foreword("index", "spans", index, "my cat sat on the mat", "--least", 2, "--json").stdout)
    assert [(span["begin"], span["end"], span["count"]) for span in spans["spans"]] == [(1, 6, 1)]
    piped = foreword("index", "spans", index, "--file", "-", input="a dog sat")
    assert piped.stdout.split("\t")[5] == "a dog sat\n"


def test_indexes_grow_and_are_asked_together(foreword: Foreword, index: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.txt"
    more.write_text("a zebra sat on the mat\n")
    other = tmp_path / "other"
    assert foreword("index", "build", more, "-o", other, "--tokenizer", index).exit_code == 0
    assert foreword("index", "count", index, "on the mat", "--with", other).stdout == "2\n"
    grown = json.loads(foreword("index", "append", index, more, "--json").stdout)
    assert (grown["documents"], grown["segments"]) == (5, 2)
    assert foreword("index", "count", index, "a zebra").stdout == "1\n"
    refused = foreword("index", "count", index, "a zebra", "--with", other)
    assert refused.exit_code == 1
    assert "share one vocabulary" in refused.stderr


def test_bad_input_is_one_line(foreword: Foreword, shelf: Path, index: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    for words, expected in [
        (("index", "build", empty, "-o", tmp_path / "x"), "empty"),
        (
            ("index", "count", shelf / "model", "a"),
            "its kind is text-lm, not text-index: foreword index build makes one",
        ),
        (("index", "count", tmp_path / "none", "a"), "no such file or folder"),
        (("index", "build", empty, "-o", shelf / "model"), "another kind of model"),
    ]:
        refused = foreword(*words)
        assert refused.exit_code in (1, 2)
        assert expected in refused.stderr.replace("\n", " ").replace("│", ""), refused.stderr
    assert not (tmp_path / "x").exists()
    arrays = index / "arrays.safetensors"
    arrays.write_bytes(arrays.read_bytes()[:-4])
    assert "damaged" in foreword("index", "count", index, "a").stderr
