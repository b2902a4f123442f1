"""``foreword train``, ``evaluate``, ``score`` and ``generate``."""

from __future__ import annotations

import gzip
import json
import lzma
import math
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.real_data import real

from foreword import TextLM, UnigramLM, load, read_documents
from foreword.cli.settings import fits, spelled

from .conftest import TEXT, Foreword

# Training


def test_training_saves_a_model_that_speaks_text(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    result = foreword("train", "unigram", text, "-o", tmp_path / "model", "--set", "add=0.5", "--min-count", 2)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("unigram: 38 tokens, a vocabulary of")
    model = load(tmp_path / "model")
    assert isinstance(model, TextLM)
    assert isinstance(model.model, UnigramLM)
    assert model.model.add == 0.5
    assert len(model.vocab) == 2 + sum(TEXT.split().count(word) >= 2 for word in set(TEXT.split()))


def test_training_with_a_tokenizer(foreword: Foreword, shelf: Path, text: Path, tmp_path: Path) -> None:
    call = ["train", "unigram", text, "-o", tmp_path / "model", "--tokenizer", shelf / "tokenizer.json", "--json"]
    told = json.loads(foreword(*call, "--valid", text).stdout)
    model = load(tmp_path / "model")
    assert told["vocabulary"] == len(model.vocab)
    assert told["documents"] == 4
    assert model.tokenizer.decode(model.tokenizer.encode("a cat")) == "a cat"


def test_training_from_standard_input(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    assert foreword("train", "unigram", text, "-o", tmp_path / "a").exit_code == 0
    assert foreword("train", "unigram", "-", "-o", tmp_path / "b", input=TEXT).exit_code == 0
    assert (tmp_path / "a" / "model.json").read_bytes() == (tmp_path / "b" / "model.json").read_bytes()


@pytest.mark.parametrize(
    ("value", "wanted", "right"),
    [
        (1, float, True),
        (0.5, float, True),
        (True, float, False),
        ("x", float, False),
        (3, int, True),
        (3.5, int, False),
        (True, int, False),
        ("x", str, True),
        (None, int | None, True),
        (2, int | None, True),
        ("x", int | None, False),
        ("a", Literal["a", "b"], True),
        ("c", Literal["a", "b"], False),
        ([1], list[int], True),
        (1, list[int], False),
        (object(), Any, True),
    ],
)
def test_settings_are_checked_against_their_types(value: object, wanted: object, right: bool) -> None:
    assert fits(value, wanted) is right


def test_types_are_spelled_for_people() -> None:
    assert spelled(int | None) == "a whole number or null"
    assert spelled(Literal["a", "b"]) == "a or b"


# Measuring


def test_evaluate_prints_one_object(foreword: Foreword, shelf: Path, text: Path) -> None:
    result = foreword("evaluate", shelf / "model", text, "--json")
    measures = json.loads(result.stdout)
    assert set(measures) >= {"perplexity", "perplexity_excluding_oov", "oov", "tokens", "bits_per_byte", "documents"}
    expected = load(shelf / "model").measure(read_documents(text))
    assert measures == expected.to_json()
    assert result.stdout.count("\n") == 1


def test_evaluate_for_people(foreword: Foreword, shelf: Path) -> None:
    result = foreword("evaluate", shelf / "model", "-", input="the cat sat\na zebra\n")
    shown = dict(line.rsplit("  ", 1) for line in result.stdout.splitlines())
    assert {name.strip(): value.strip() for name, value in shown.items()}["unknown words"] == "1 (14.29%)"
    assert all(line == line.rstrip() for line in result.stdout.splitlines())


# Scoring


def test_every_line_gives_one_line(foreword: Foreword, shelf: Path) -> None:
    lines = ["the cat", "", "a zebra", "   ", "sat\r"]
    scores = foreword("score", shelf / "model", input="\n".join(lines)).stdout.split("\n")
    model = load(shelf / "model")
    assert scores[1] == scores[3] == scores[5] == ""
    for place in (0, 2, 4):
        assert float(scores[place]) == pytest.approx(model.score(lines[place]))


def test_scores_as_json(foreword: Foreword, shelf: Path) -> None:
    result = foreword("score", shelf / "model", "-", "--json", input="the cat\n\n")
    first, blank = map(json.loads, result.stdout.splitlines())
    assert first["text"] == "the cat"
    assert first["tokens"] == 3
    assert first["perplexity"] == pytest.approx(math.exp(-first["score"] / 3))
    assert blank == {"text": "", "score": None, "tokens": 0, "oov": 0, "perplexity": None}


def test_rows_of_jsonl_keep_their_fields(foreword: Foreword, shelf: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl.gz"
    rows.write_bytes(gzip.compress(b'{"id": 7, "body": "the cat"}\n\n{"body": " ", "id": 8}\n'))
    result = foreword("score", shelf / "model", rows, "--field", "body", "--json")
    first, blank, white = map(json.loads, result.stdout.splitlines())
    assert (first["id"], first["body"], first["tokens"]) == (7, "the cat", 3)
    assert blank["score"] is None
    assert (white["id"], white["score"]) == (8, None)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("[]", "line 2 is not a JSON object"),
        ('{"text": 3}', 'line 2 has a field "text" that is not a string'),
        ('{"body": "a"}', 'line 2 has no field "text" (it has: body)'),
        ("{", "line 2 is not JSON"),
    ],
)
def test_rows_without_a_text_are_told_with_their_line(foreword: Foreword, shelf: Path, row: str, said: str) -> None:
    result = foreword("score", shelf / "model", "-", "--format", "jsonl", input='{"text": "a"}\n' + row)
    assert result.exit_code == 1
    assert f"standard input: {said}" in result.stderr


def test_parquet_rows_keep_their_columns(foreword: Foreword, shelf: Path, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = tmp_path / "table.parquet"
    rows = [{"id": 7, "body": "the cat"}, {"id": 8, "body": None}, {"id": 9, "body": "zzz qqq"}]
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), table)
    result = foreword("score", shelf / "model", table, "--field", "body", "--json")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["id"] for row in found] == [7, 8, 9]
    assert [row["oov"] for row in found] == [0, 0, 2]
    assert found[1]["score"] is None
    assert "no column" in foreword("score", shelf / "model", table).stderr


def test_an_impossible_line_scores_minus_infinity(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    foreword("train", "unigram", text, "-o", tmp_path / "model", "--set", "add=0")
    call = ["score", tmp_path / "model", "-"]
    assert foreword(*call, input="zebra").stdout == "-inf\n"
    assert json.loads(foreword(*call, "--json", input="zebra").stdout)["score"] is None


# Writing


def test_generation_is_the_models_own(foreword: Foreword, shelf: Path) -> None:
    settings = ["--prompt", "the cat", "--seed", 3, "--max-tokens", 8, "--temperature", 0.8, "--top-k", 5]
    expected = load(shelf / "model").generate("the cat", seed=3, max_tokens=8, temperature=0.8, top_k=5)
    assert foreword("generate", shelf / "model", *settings).stdout == f"the cat{expected}\n"
    told = json.loads(foreword("generate", shelf / "model", *settings, "--json").stdout)
    assert told == {"prompt": "the cat", "text": expected, "seed": 3}


def test_several_texts_have_several_seeds(foreword: Foreword, shelf: Path) -> None:
    result = foreword("generate", shelf / "model", "-n", 3, "--seed", 5, "--json")
    assert [json.loads(line)["seed"] for line in result.stdout.splitlines()] == [5, 6, 7]


@pytest.mark.data
def test_a_model_that_cannot_write_prints_no_prompt(foreword: Foreword, tmp_path: Path) -> None:
    """A KenLM binary without words scores text and cannot generate any: one line, and nothing before it."""
    (tmp_path / "a.bin").write_bytes(lzma.decompress(real("formats/kenlm/probing_novocab.bin.xz").read_bytes()))
    result = foreword("generate", tmp_path / "a.bin", "--prompt", "the")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "holds no words" in result.stderr


def test_the_prompt_may_come_from_standard_input(foreword: Foreword, shelf: Path) -> None:
    told = foreword("generate", shelf / "model", "--prompt", "-", "--json", input="a dog\n").stdout
    assert json.loads(told)["prompt"] == "a dog"
    bad = foreword("generate", shelf / "model", "--prompt", "-", input=b"a \xff")
    assert (bad.exit_code, bad.stderr) == (1, "foreword: standard input: invalid UTF-8 at byte 2\n")
