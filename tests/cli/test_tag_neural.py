"""``foreword tag`` with the neural tagger: spans in CoNLL columns, words in CoNLL-U."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foreword.storage.folder import load
from foreword.tag.conll import read_conll
from foreword.tag.conllu import write_conllu

from .conftest import Foreword

NAMES = """\
-DOCSTART- -X- O O

Anna NNP I-NP I-PER
visited VBD I-VP O
Oslo NNP I-NP I-LOC

Bob NNP I-NP I-PER
Stone NNP I-NP I-PER
saw VBD I-VP O
Rome NNP I-NP I-LOC
Oslo NNP I-NP B-LOC
. . O O

"""
SMALL = ["--set", "units=8", "--set", "words=6", "--set", "spelling=6", "--set", "rate=0.03", "--set", "device=cpu"]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("names") / "eng.train"
    path.write_text(NAMES * 4)
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, names: Path, foreword: Foreword) -> tuple[Path, Any]:
    """A tagger of names in IOB1, and what training it said."""
    folder = tmp_path_factory.mktemp("taggers") / "names"
    call = ["tag", "train", names, "-o", folder, "--kind", "bilstm", "--scheme", "iob1", "--valid", names, "--json"]
    result = foreword(*call, *SMALL, "--set", "epochs=60", "--set", "batch=2")
    assert result.exit_code == 0, result.stderr
    return folder, json.loads(result.stdout)


def refused(result: Any, said: str, status: int = 1) -> None:
    assert result.exit_code == status, result.output
    assert said in result.stderr


def test_train_tells_spans(trained: tuple[Path, Any]) -> None:
    folder, facts = trained
    assert (facts["kind"], facts["column"], facts["sentences"]) == ("bilstm", "-1", 8)
    assert facts["valid"]["spans"]["micro"]["f1"] == 1.0
    assert load(folder).scheme == "iob1"


def test_evaluate_tells_words_and_spans(trained: tuple[Path, Any], names: Path, foreword: Foreword) -> None:
    found = json.loads(foreword("tag", "evaluate", trained[0], names, "--json").stdout)
    assert found["accuracy"] == 1.0
    assert found["spans"]["kinds"]["LOC"]["gold"] == 12
    assert json.loads(foreword("evaluate", trained[0], names, "--json").stdout) == found
    told = foreword("tag", "evaluate", trained[0], names).stdout
    assert "accuracy" in told
    assert "all" in told


def test_conll_comes_out_as_it_went_in_but_for_the_column(
    trained: tuple[Path, Any], names: Path, foreword: Foreword, tmp_path: Path
) -> None:
    blank = tmp_path / "blank.conll"
    blank.write_text("\n".join(" ".join([*line.split()[:-1], "O"]) if line else "" for line in NAMES.split("\n")))
    assert foreword("tag", "predict", trained[0], blank).stdout == NAMES
    assert foreword("tag", "predict", trained[0], names, "--input", "conll").stdout == NAMES * 4
    bare = foreword("tag", "predict", trained[0], "-", "--input", "conll", input="Anna\nvisited\nOslo\n").stdout
    assert bare == "Anna I-PER\nvisited O\nOslo I-LOC\n\n"


def test_text_and_what_train_reads(trained: tuple[Path, Any], foreword: Foreword, tmp_path: Path) -> None:
    text = "Anna visited Oslo\n\nBob Stone saw Rome Oslo .\n"
    said = foreword("tag", "predict", trained[0], "-", input=text).stdout.split("\n")
    assert said[:2] == ["Anna_I-PER visited_O Oslo_I-LOC", ""]
    again = tmp_path / "again.txt"
    again.write_text(foreword("tag", "predict", trained[0], "-", "--format", "conll", input=text).stdout)
    assert read_conll(again).tags[1] == ["I-PER", "I-PER", "O", "I-LOC", "B-LOC", "O"]


def test_words_of_a_treebank(foreword: Foreword, tmp_path: Path) -> None:
    sentences, tags = [["The", "dog", "runs"], ["A", "dog"]], [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
    write_conllu(tmp_path / "train.conllu", sentences, tags)
    call = ["tag", "train", tmp_path / "train.conllu", "-o", tmp_path / "words", "--kind", "bilstm", *SMALL]
    assert foreword(*call, "--set", "epochs=30", "--set", "crf=false").exit_code == 0
    found = json.loads(foreword("tag", "evaluate", tmp_path / "words", tmp_path / "train.conllu", "--json").stdout)
    assert found["accuracy"] == 1.0
    assert "spans" not in found
    tagged = foreword("tag", "predict", tmp_path / "words", tmp_path / "train.conllu").stdout
    assert tagged == (tmp_path / "train.conllu").read_text()


@pytest.mark.parametrize(
    ("more", "said", "status"),
    [
        (["--scheme", "iobes"], "iobes", 2),
        (["--scheme", "iob1", "--column", "7"], "column=7: ", 2),
        (["--column", "ner"], "'ner' is not upos, xpos or a number", 2),
        (["--set", "units=0"], "units is 0: expected at least 1", 2),
        (["--set", "characters=bytes"], "characters cannot be 'bytes'", 2),
    ],
)
def test_what_cannot_be_learnt(
    foreword: Foreword, names: Path, tmp_path: Path, more: list[str], said: str, status: int
) -> None:
    refused(foreword("tag", "train", names, "-o", tmp_path / "out", "--kind", "bilstm", *more), said, status)
    assert not (tmp_path / "out").exists()


def test_ragged_columns_are_named_by_their_line(foreword: Foreword, trained: tuple[Path, Any], tmp_path: Path) -> None:
    path = tmp_path / "bad.conll"
    path.write_text("Anna I-PER\nvisited\n")
    refused(foreword("tag", "evaluate", trained[0], path), "bad.conll: line 2 has 1 column, not 2")
    refused(foreword("tag", "predict", trained[0], path), "bad.conll: line 2 has 1 column, not 2")


def test_spans_are_for_taggers_that_know_them(foreword: Foreword, names: Path, tmp_path: Path) -> None:
    call = ["tag", "train", names, "-o", tmp_path / "out", "--kind", "hmm", "--scheme", "bio"]
    refused(foreword(*call), "hmm has no spans", 2)
