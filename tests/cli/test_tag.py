"""``foreword tag`` and what ``foreword evaluate`` makes of taggers."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foreword.storage.folder import load
from foreword.tag.conllu import read_conllu, write_conllu

from .conftest import Foreword

Listing = Callable[[Path], list[str]]

SENTENCES = [
    ["The", "dog", "runs", "."],
    ["A", "dog", "saw", "the", "saw"],
    ["Dogs", "run", "quickly", "."],
    ["the", "runs", "ended"],
    ["Anna", "saw", "Bob", "quickly"],
]
TAGS = [
    ["DET", "NOUN", "VERB", "PUNCT"],
    ["DET", "NOUN", "VERB", "DET", "NOUN"],
    ["NOUN", "VERB", "ADV", "PUNCT"],
    ["DET", "NOUN", "VERB"],
    ["PROPN", "VERB", "PROPN", "ADV"],
]
KINDS = ["hmm", "features"]

RICH = """\
# sent_id = 1
# text = The dog doesn't run.
1\tThe\tthe\tX\tDT\t_\t2\tdet\t_\t_
2\tdog\tdog\tX\tNN\tNumber=Sing\t4\tnsubj\t_\t_
3-4\tdidn't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
3\tsaw\tsee\tX\tVBD\t_\t0\troot\t_\t_
3.1\tgone\tgo\tVERB\tVBN\t_\t_\t_\t_\t_
4\tBob\tBob\tX\tNNP\t_\t3\tobj\t_\tSpaceAfter=No


# nothing but a comment

1\tdogs\tdog\t_\tNNS\t_\t0\troot\t_\t_
"""


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("treebank") / "train.conllu"
    write_conllu(path, SENTENCES, TAGS)
    return path


@pytest.fixture(scope="module")
def taggers(tmp_path_factory: pytest.TempPathFactory, treebank: Path, foreword: Foreword) -> Path:
    """A folder with a tagger of each kind."""
    folder = tmp_path_factory.mktemp("taggers")
    for kind in KINDS:
        result = foreword("tag", "train", treebank, "-o", folder / kind, "--kind", kind)
        assert result.exit_code == 0, result.stderr
    return folder


def refused(result: Any, said: str, status: int = 1) -> None:
    assert result.exit_code == status, result.output
    assert result.stderr.startswith("foreword: ")
    assert result.stderr.count("\n") == 1
    assert said in result.stderr


# Training


@pytest.mark.parametrize("kind", KINDS)
def test_train_tells_what_it_did(foreword: Foreword, treebank: Path, tmp_path: Path, kind: str) -> None:
    call = ["tag", "train", treebank, "-o", tmp_path / "tagger", "--kind", kind, "--valid", treebank]
    told = foreword(*call)
    assert told.stdout == ""
    assert told.stderr.startswith(f"{kind}: 20 tokens in 5 sentences, 6 tags, ")
    assert "accuracy 100.00% on" in told.stderr
    facts = json.loads(foreword(*call, "--json").stdout)
    assert facts.pop("seconds") > 0
    assert facts.pop("valid")["accuracy"] == 1
    assert facts == {
        "kind": kind,
        "column": "upos",
        "tokens": 20,
        "sentences": 5,
        "tags": 6,
        "output": str(tmp_path / "tagger"),
    }
    assert foreword(*call, "--quiet").output == ""


def test_settings_and_the_column_reach_the_tagger(foreword: Foreword, tmp_path: Path) -> None:
    path = tmp_path / "train.conllu.gz"
    write_conllu(tmp_path / "plain.conllu", SENTENCES, TAGS, "xpos")
    path.write_bytes(gzip.compress((tmp_path / "plain.conllu").read_bytes()))
    for kind, setting in (("features", 'features=["word", "history"]'), ("hmm", "order=2")):
        call = ["tag", "train", path, "-o", tmp_path / kind, "--kind", kind, "--column", "xpos", "--set", setting]
        assert foreword(*call).exit_code == 0
    assert load(tmp_path / "features").features == ["word", "history"]
    assert load(tmp_path / "hmm").order == 2
    line = "1\tdog\tdog\tNOUN\t_\t_\t_\t_\t_\t_\n"
    assert foreword("tag", "predict", tmp_path / "hmm", input=line).stdout == line.replace("NOUN\t_", "NOUN\tNOUN")
    refused(foreword("evaluate", tmp_path / "hmm", _written(tmp_path, line)), "its column xpos is empty")


def _written(folder: Path, text: str) -> Path:
    path = folder / "written.conllu"
    path.write_text(text)
    return path


# Tagging


@pytest.mark.parametrize("kind", KINDS)
def test_text_line_by_line(foreword: Foreword, taggers: Path, kind: str) -> None:
    text = "The dog saw the saw\n\n \nBob\tran  quickly"
    result = foreword("tag", "predict", taggers / kind, input=text)
    assert result.exit_code == 0
    lines = result.stdout.split("\n")
    assert lines[:3] == ["The_DET dog_NOUN saw_VERB the_DET saw_NOUN", "", ""]
    assert lines[3].startswith("Bob_PROPN ran_")
    objects = [
        json.loads(line)
        for line in foreword("tag", "predict", taggers / kind, "--json", input=text).stdout.splitlines()
    ]
    assert objects[0] == {"words": [*SENTENCES[0][:2], "saw", "the", "saw"], "tags": TAGS[1]}
    assert objects[1] == objects[2] == {"words": [], "tags": []}


def test_a_word_a_line(foreword: Foreword, taggers: Path) -> None:
    tsv = foreword("tag", "predict", taggers / "features", "--format", "tsv", input="The dog\n\nBob\n").stdout
    assert tsv == "The\tDET\ndog\tNOUN\n\nBob\tPROPN\n\n"
    conllu = foreword("tag", "predict", taggers / "features", "--format", "conllu", input="The dog\n").stdout
    assert conllu == "1\tThe\t_\tDET\t_\t_\t_\t_\t_\t_\n2\tdog\t_\tNOUN\t_\t_\t_\t_\t_\t_\n\n"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["file", "standard input", "windows", "no last line end"])
def test_conllu_comes_out_as_it_went_in_but_for_the_column(
    foreword: Foreword, taggers: Path, tmp_path: Path, kind: str, way: str
) -> None:
    text = {"windows": RICH.replace("\n", "\r\n"), "no last line end": RICH.rstrip("\n")}.get(way, RICH)
    if way == "file":
        result = foreword("tag", "predict", taggers / kind, _written(tmp_path, text))
    else:
        result = foreword("tag", "predict", taggers / kind, input=text.encode())
    assert result.exit_code == 0, result.stderr
    before, after = (each.splitlines() for each in (RICH, result.stdout))
    words = [place for place, line in enumerate(before) if line.partition("\t")[0].isdecimal()]
    assert [after[place].split("\t")[3] for place in words[:4]] == ["DET", "NOUN", "VERB", "PROPN"]
    assert len(before) == len(after)
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        if place in words:
            old, new = ("\t".join([*line.split("\t")[:3], *line.split("\t")[4:]]) for line in (old, new))
        assert old == new


def test_conllu_as_something_else(foreword: Foreword, taggers: Path) -> None:
    text = foreword("tag", "predict", taggers / "hmm", "--format", "text", input=RICH).stdout
    assert text.splitlines() == ["The_DET dog_NOUN saw_VERB Bob_PROPN", "dogs_NOUN"]
    objects = foreword("tag", "predict", taggers / "hmm", "--json", input=RICH).stdout.splitlines()
    assert [json.loads(line)["words"] for line in objects] == [["The", "dog", "saw", "Bob"], ["dogs"]]


def test_text_that_begins_like_a_comment_is_text(foreword: Foreword, taggers: Path) -> None:
    for text in ("#dog saw Bob\n", "# The dog\n# saw\n"):
        tagged = foreword("tag", "predict", taggers / "hmm", input=text).stdout
        assert tagged.count("_") == len(text.split())
        assert tagged.startswith("#")
    said = foreword("tag", "predict", taggers / "hmm", "--input", "text", input=RICH).stdout
    assert said.startswith("#_")


def test_several_files_of_a_folder(foreword: Foreword, taggers: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("The dog")
    (tmp_path / "in" / "b.conllu").write_text(RICH)
    result = foreword("tag", "predict", taggers / "features", tmp_path / "in")
    assert result.stdout.startswith("The_DET dog_NOUN\n# sent_id = 1\n# text")


def test_each_line_is_answered_at_once(taggers: Path) -> None:
    command = [sys.executable, "-m", "foreword", "tag", "predict", str(taggers / "hmm")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for line, answer in (("The dog\n", "The_DET dog_NOUN\n"), ("\n", "\n"), ("Bob\n", "Bob_PROPN\n")):
            running.stdin.write(line)
            running.stdin.flush()
            assert running.stdout.readline() == answer
        running.stdin.close()
    assert running.returncode == 0


# Measuring


@pytest.mark.parametrize("kind", KINDS)
def test_evaluate_tells_known_from_unknown_words(foreword: Foreword, taggers: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "test.conllu"
    write_conllu(
        path,
        [["The", "dog", "saw", "Bob"], ["Dogs", "run", "slowly"]],
        [["DET", "X", "VERB", "PROPN"], ["NOUN", "VERB", "ADV"]],
    )
    measures = json.loads(foreword("evaluate", taggers / kind, path, "--json").stdout)
    assert measures["accuracy"] == pytest.approx(6 / 7)
    assert (measures["known_accuracy"], measures["unknown_accuracy"]) == (pytest.approx(5 / 6), 1)
    assert measures["unknown_share"] == pytest.approx(1 / 7)
    assert (measures["tokens"], measures["right"], measures["sentences"], measures["sentences_right"]) == (7, 6, 2, 1)
    assert measures["unseen_tags"] == {"X": 1}
    assert measures["tags"]["DET"] == {"precision": 1, "recall": 1, "f1": 1, "tokens": 1, "predicted": 1}
    told = foreword("evaluate", taggers / kind, path).stdout
    assert "85.71%" in told
    assert "83.33%" in told


def test_no_unknown_word_is_no_number(foreword: Foreword, taggers: Path, treebank: Path) -> None:
    measures = json.loads(foreword("evaluate", taggers / "features", treebank, "--json").stdout)
    assert measures["unknown_accuracy"] is None
    assert "–" in foreword("evaluate", taggers / "features", treebank).stdout


def test_ablate_compares_groups(foreword: Foreword, treebank: Path) -> None:
    call = ["tag", "ablate", treebank, treebank, "--set", 'features=["word", "history"]', "--set", "rounds=2"]
    rows = [json.loads(line) for line in foreword(*call, "--json").stdout.splitlines()]
    names = ["all", "without word", "without history", "only word", "only history", "none"]
    assert [row["name"] for row in rows] == names
    assert [row["groups"] for row in rows][:3] == [["word", "history"], ["history"], ["word"]]
    assert rows[0]["accuracy"] > rows[-1]["accuracy"]
    assert rows[0]["unknown"] is None
    table = foreword(*call).stdout
    assert all(name in table for name in names)


# Bad input


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\tdog\tNOUN\n", "bad.conllu: line 1 has 3 columns, not 10"),
        ("\n# a comment\n", "bad.conllu: no sentence in it"),
        ("1\tdog" + "\t_" * 8 + "\n", "bad.conllu: its column upos is empty"),
    ],
)
def test_a_treebank_that_cannot_be_read(
    foreword: Foreword, tmp_path: Path, listing: Listing, taggers: Path, text: str, said: str
) -> None:
    path = tmp_path / "bad.conllu"
    path.write_text(text)
    refused(foreword("tag", "train", path, "-o", tmp_path / "tagger"), said)
    refused(foreword("evaluate", taggers / "hmm", path), said)
    assert listing(tmp_path) == ["bad.conllu"]


def test_a_line_that_is_no_conllu_is_named(foreword: Foreword, taggers: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.conllu"
    path.write_text(RICH + "2\tcut\n")
    refused(
        foreword("tag", "predict", taggers / "hmm", path), f"cut.conllu: line {RICH.count(chr(10)) + 1} has 2 columns"
    )


def test_what_is_no_tagger_is_refused(foreword: Foreword, shelf: Path, taggers: Path, text: Path) -> None:
    refused(foreword("tag", "predict", shelf / "model", text), "its kind is text-lm, not a tagger")
    refused(foreword("score", taggers / "hmm", text), "its kind is hmm-tagger, not text-lm")
    refused(foreword("tag", "predict", taggers / "hmm", text.parent / "nowhere"), "nowhere")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (["tag", "train", "FILE", "-o", "OUT", "--kind", "magic"], "magic"),
        (["tag", "train", "FILE", "-o", "OUT", "--column", "form"], "form"),
        (["tag", "train", "FILE", "-o", "OUT", "--kind", "hmm", "--set", "rounds=3"], "no setting"),
        (["tag", "train", "FILE", "-o", "-"], "standard output"),
        (["tag", "predict", "OUT", "--json", "--format", "tsv"], "--json"),
    ],
)
def test_a_wrong_call_is_refused(
    foreword: Foreword, treebank: Path, tmp_path: Path, call: list[str], said: str
) -> None:
    words = [str({"FILE": treebank, "OUT": tmp_path / "out"}.get(word, word)) for word in call]
    result = foreword(*words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


def test_settings_that_make_no_sense(foreword: Foreword, treebank: Path, tmp_path: Path) -> None:
    call = ["tag", "train", treebank, "-o", tmp_path / "out", "--set", 'features=["smell"]']
    refused(foreword(*call), "must be a list of word, suffix", 2)
    assert not (tmp_path / "out").exists()


def test_what_predict_writes_is_what_train_reads(foreword: Foreword, taggers: Path, tmp_path: Path) -> None:
    path = tmp_path / "tagged.conllu"
    path.write_text(foreword("tag", "predict", taggers / "hmm", "--format", "conllu", input="The dog\nBob\n").stdout)
    assert read_conllu(path) == ([["The", "dog"], ["Bob"]], [["DET", "NOUN"], ["PROPN"]])
