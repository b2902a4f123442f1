"""``foreword translate`` as a person or a script meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from .conftest import Foreword

SOURCE = "der Hund bellt\ndie Katze schläft\nder Hund schläft\ndie Katze bellt\n"
TARGET = "the dog barks\nthe cat sleeps\nthe dog sleeps\nthe cat barks\n"
SMALL = ["--set", "units=16", "--set", "words=16", "--set", "rate=0.02", "--set", "dropout=0", "--device", "cpu"]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("sides")
    (folder / "text.de").write_text(SOURCE * 4)
    (folder / "text.en").write_text(TARGET * 4)
    return folder / "text.de", folder / "text.en"


@pytest.fixture(scope="module")
def trained(
    tmp_path_factory: pytest.TempPathFactory, sides: tuple[Path, Path], foreword: Foreword
) -> tuple[Path, Any]:  # fmt: skip
    folder = tmp_path_factory.mktemp("translators") / "de-en"
    call = ["translate", "train", *sides, "-o", folder, "--tokens", "word", "--valid", *sides, "--json"]
    result = foreword(*call, *SMALL, "--set", "epochs=60", "--set", "batch=60")
    assert result.exit_code == 0, result.stderr
    return folder, json.loads(result.stdout)


def refused(result: Any, said: str, status: int = 1) -> None:
    assert result.exit_code == status, result.output
    assert said in result.stderr


def test_train_tells_what_it_made(trained: tuple[Path, Any]) -> None:
    folder, facts = trained
    assert (facts["kind"], facts["attention"], facts["pairs"]) == ("text-translator", "general", 16)
    assert facts["output"] == str(folder)
    assert facts["valid_score"] < 0
    assert not Path(f"{folder}.checkpoint").exists()


def test_predict_answers_line_by_line(trained: tuple[Path, Any], foreword: Foreword) -> None:
    result = foreword("translate", "predict", trained[0], input="der Hund bellt\n\ndie Katze schläft\n")
    assert result.stdout == "the dog barks\n\nthe cat sleeps\n"


def test_predict_as_json_with_attention(trained: tuple[Path, Any], foreword: Foreword) -> None:
    result = foreword("translate", "predict", trained[0], "--json", "--look", "--beam", "1", input="der Hund bellt\n")
    facts = json.loads(result.stdout)
    assert facts["translation"] == "the dog barks"
    assert facts["target_tokens"] == ["the", "dog", "barks", "</s>"]
    assert [round(sum(row), 3) for row in facts["attention"]] == [1.0] * 4


def test_f08_the_map_is_drawn(trained: tuple[Path, Any], foreword: Foreword, tmp_path: Path) -> None:
    """F08: target by source, in the terminal and as a file."""
    shown = foreword("translate", "predict", trained[0], "--look", input="der Hund bellt\n").stdout
    assert "1 der  2 Hund  3 bellt  4 </s>" in shown
    for name in ("map.svg", "map.html"):
        foreword("translate", "predict", trained[0], "--picture", tmp_path / name, input="der Hund bellt\n")
    drawn = ElementTree.fromstring((tmp_path / "map.svg").read_text())
    assert sum(each.tag.endswith("rect") and "fill-opacity" in each.attrib for each in drawn.iter()) == 16
    assert "barks ← bellt" in (tmp_path / "map.html").read_text()


def test_evaluate(trained: tuple[Path, Any], sides: tuple[Path, Path], foreword: Foreword) -> None:
    result = foreword("translate", "evaluate", trained[0], *sides, "--json")
    facts = json.loads(result.stdout)
    assert facts["chrf"] == pytest.approx(100)
    assert facts["sentences"] == 16
    assert facts["perplexity"] < 2
    assert "tok:13a" in facts["signature"]
    shown = foreword("translate", "evaluate", trained[0], *sides, "--normalisation", "gnmt", "--coverage", "0.2")
    assert "BLEU" in shown.stdout


def test_an_ensemble(
    trained: tuple[Path, Any], sides: tuple[Path, Path], foreword: Foreword, tmp_path: Path
) -> None:  # fmt: skip
    other, stranger = tmp_path / "other", tmp_path / "stranger"
    again = ["--set", "epochs=2", "--set", "seed=1"]
    assert foreword("translate", "train", *sides, "-o", other, "--tokens", "word", *SMALL, *again).exit_code == 0
    both = foreword("translate", "evaluate", trained[0], *sides, "--with", other, "--with", trained[0], "--json")
    assert json.loads(both.stdout)["chrf"] == pytest.approx(100)  # two good models outvote one that has hardly learnt
    alone = foreword("translate", "evaluate", other, *sides, "--json")
    assert json.loads(alone.stdout)["chrf"] < 100
    said = foreword("translate", "predict", trained[0], "--with", trained[0], input="der Hund bellt\n")
    assert said.stdout == "the dog barks\n"
    foreword("translate", "train", *reversed(sides), "-o", stranger, "--tokens", "word", *SMALL, *again)
    refused(
        foreword("translate", "predict", trained[0], "--with", stranger, input="der Hund\n"), "different vocabularies"
    )


def test_sides_by_name_and_bpe(sides: tuple[Path, Path], foreword: Foreword, tmp_path: Path) -> None:
    call = ["translate", "train", "--source", sides[0], "--target", sides[1], "-o", tmp_path / "m", "--vocab", "300"]
    result = foreword(*call, *SMALL, "--set", "epochs=1", "--attention", "additive")
    assert result.exit_code == 0, result.stderr
    assert foreword("translate", "predict", tmp_path / "m", input="der Hund\n").exit_code == 0


def test_bad_calls(trained: tuple[Path, Any], sides: tuple[Path, Path], foreword: Foreword, tmp_path: Path) -> None:
    short = tmp_path / "short.en"
    short.write_text("the dog barks\n")
    train = ["translate", "train", "-o", tmp_path / "m", *SMALL]
    refused(foreword(*train, sides[0], short), "text.de: line 2 has no partner")
    refused(foreword("translate", "evaluate", trained[0], sides[0], short), "line 2 has no partner")
    refused(foreword(*train, sides[0]), "text.de: line 1 has 1 column: expected a source and a target")
    refused(foreword(*train, *sides, "--source", sides[0]), "unexpected extra argument", 2)
    refused(foreword(*train, *sides, "--attention", "dot", "--set", "encoder=32"), "equal size, not 32 and 16", 2)
    refused(foreword(*train, *sides, "--set", "unit=3"), "no setting 'unit'", 2)
    refused(foreword("translate", "predict", sides[0].parent, input="x\n"), "model")
    assert not (tmp_path / "m").exists()


def test_pairs_in_one_table(sides: tuple[Path, Path], foreword: Foreword, tmp_path: Path) -> None:
    table, backwards = tmp_path / "pairs.tsv", tmp_path / "backwards.tsv"
    pairs = list(zip(*(side.read_text().splitlines() for side in sides), strict=True))
    table.write_text("".join(f"{source}\t{target}\tfrom a friend\n" for source, target in pairs))
    backwards.write_text("".join(f"{target}\t{source}\n" for source, target in pairs))
    call = ["translate", "train", "-o", tmp_path / "model", *SMALL, "--json", "--overwrite"]
    expected = json.loads(foreword(*call, *sides).stdout)
    for given in ([table], [backwards, "--columns", 2, 1]):
        result = foreword(*call, *given)
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert {**found, "seconds": 0} == {**expected, "seconds": 0}
    measured = foreword("translate", "evaluate", tmp_path / "model", table, "--json")
    assert json.loads(measured.stdout)["sentences"] == len(pairs)
    assert foreword(*call, table, "--columns", 1, 1).exit_code == 2
    assert "line 1 has 3 columns" in foreword(*call, table, "--columns", 1, 4).stderr
