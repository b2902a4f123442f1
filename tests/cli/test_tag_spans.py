"""``foreword tag``: spans by hand-made features, files that are not well formed, and running text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foreword.storage.folder import load

from .conftest import Foreword

SPANISH = """\
Melbourne B-LOC
( O
Australia B-LOC
) O

La O
Coruña I-LOC
, O
Banco B-ORG
de I-ORG
España I-ORG

"""
"""As in CoNLL-2002's Spanish: ``I-LOC`` where a name begins."""


@pytest.fixture
def names(tmp_path: Path) -> Path:
    path = tmp_path / "esp.train"
    path.write_text(SPANISH * 4, encoding="utf-8")
    return path


def test_a_name_that_begins_with_i_is_read_as_conlleval_does(foreword: Foreword, names: Path, tmp_path: Path) -> None:
    call = ["tag", "train", names, "-o", tmp_path / "model", "--scheme", "bio", "--valid", names, "--json"]
    result = foreword(*call)
    assert result.exit_code == 0, result.stderr
    warning = "esp.train: line 7: I-LOC is read as B-LOC in the scheme bio, as conlleval does (4 such tags)"
    assert result.stderr.count(f"foreword: warning: {names.parent / warning}") == 2
    found = json.loads(result.stdout)
    assert (found["kind"], found["column"]) == ("features", "-1")
    assert found["valid"]["spans"]["micro"]["gold"] == 16
    assert found["valid"]["spans"]["micro"]["f1"] == 1
    assert found["valid"]["accuracy"] == 1


def test_an_iob2_file_under_iob1_is_compared_in_one_scheme(foreword: Foreword, tmp_path: Path) -> None:
    path = tmp_path / "names.conll"
    path.write_text("Anna B-PER\nBauer I-PER\nsings O\n\nThe O\nIBM B-ORG\n\n" * 5)
    call = ["tag", "train", path, "-o", tmp_path / "model", "--scheme", "iob1"]
    result = foreword(*call)
    assert result.exit_code == 0, result.stderr
    assert "line 1: B-PER is read as I-PER in the scheme iob1, the tags are those of the scheme bio" in result.stderr
    found = json.loads(foreword("tag", "evaluate", tmp_path / "model", path, "--json").stdout)
    assert found["accuracy"] == found["spans"]["micro"]["f1"] == 1
    assert load(tmp_path / "model").predict([["Anna", "Bauer", "sings"]]) == [["I-PER", "I-PER", "O"]]


@pytest.mark.parametrize("kind", ["features", "hmm"])
def test_other_columns_of_conll(foreword: Foreword, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "chunks.txt"
    path.write_text("The DT O\ndog NN O\nbarks VB O\n\n" * 5)
    call = ["tag", "train", path, "-o", tmp_path / "model", "--kind", kind, "--column", "1"]
    assert foreword(*call).exit_code == 0
    tagged = foreword("tag", "predict", tmp_path / "model", path, "--input", "conll").stdout
    assert tagged == path.read_text()


def test_bytes_that_are_not_utf8_are_replaced_if_asked(foreword: Foreword, tmp_path: Path) -> None:
    path = tmp_path / "latin.conll"
    path.write_bytes("Coruña B-LOC\n\nAnna B-PER\n\n".encode("latin-1") * 3)
    call = ["tag", "train", path, "-o", tmp_path / "model", "--scheme", "bio"]
    result = foreword(*call)
    assert result.exit_code == 1
    assert "--errors replace" in result.stderr
    assert foreword(*call, "--errors", "replace").exit_code == 0
    assert foreword("tag", "evaluate", tmp_path / "model", path).exit_code == 1
    assert foreword("tag", "evaluate", tmp_path / "model", path, "--errors", "replace").exit_code == 0


def test_a_tag_that_is_no_span_is_named(foreword: Foreword, tmp_path: Path) -> None:
    path = tmp_path / "bad.conll"
    path.write_text("Anna B-PER\n\nsings VERB\n")
    result = foreword("tag", "train", path, "-o", tmp_path / "model", "--scheme", "bio")
    assert result.exit_code == 1
    assert "bad.conll: in the sentence at line 3: tag 'VERB': expected O, or B-" in result.stderr


def test_running_text(foreword: Foreword, tmp_path: Path) -> None:
    path = tmp_path / "train.conll"
    words = ["He", "did", "n't", "see", "Mr.", "Smith", "'s", "dog", ",", "did", "he", "?"]
    path.write_text("".join(f"{word} X\n" for word in words) + "\n")
    assert foreword("tag", "train", path, "-o", tmp_path / "model", "--column", "1").exit_code == 0
    text = "He didn't see Mr. Smith's dog, did he? Anna's here.\n\nHe did.\n"
    result = foreword("tag", "predict", tmp_path / "model", "--raw", "--json", input=text)
    assert result.exit_code == 0, result.stderr
    found = [json.loads(line)["words"] for line in result.stdout.splitlines()]
    assert found == [words, ["Anna", "'s", "here", "."], [], ["He", "did", "."]]
    plain = foreword("tag", "predict", tmp_path / "model", "--json", input=text)
    assert json.loads(plain.stdout.splitlines()[0])["words"] == text.splitlines()[0].split()
    assert foreword("tag", "predict", tmp_path / "model", "--raw", "--input", "conll").exit_code == 2
