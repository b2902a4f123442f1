"""Word vectors on the command line: trained, stopped and resumed, asked, measured, converted."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreword as package
from foreword.protocols import Step
from foreword.tokens.corpus import Corpus
from foreword.vectors.word2vec import Word2Vec
from foreword.vectors.wordvectors import WordVectors

from .conftest import Foreword

CORNERS: dict[str, list[float]] = {
    "man": [0, 0, 1],
    "woman": [0, 1, 1],
    "king": [1, 0, 1],
    "queen": [1, 1, 1],
    "apple": [-1, -0.5, -0.2],
}
QUESTIONS = ": royal\nman king woman queen\nMan King Woman apple\n: gram-none\nman king woman zebra\n"
PAIRS = "king queen 9\nman woman 8\nking apple 1\nzebra man 5\n"


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.vec"
    lines = [f"{word} {' '.join(map(str, numbers))}" for word, numbers in CORNERS.items()]
    path.write_text("\n".join([f"{len(lines)} 3", *lines]) + "\n")
    return path


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    """Beasts eat and rulers rule, often enough to be learnt."""
    rng = np.random.default_rng(5)
    path = tmp_path / "farm.txt"
    scenes = [["cow", "goat", "eats", "grass", "field"], ["king", "queen", "rules", "land", "throne"]]
    lines = [" ".join(rng.choice(scenes[number % 2], 10)) for number in range(400)]
    path.write_text("\n".join([*lines, "rare"]) + "\n")
    return path


def test_neighbours_of_words(foreword: Foreword, vectors: Path) -> None:
    result = foreword("nearest", vectors, "king", "-k", 2)
    assert result.exit_code == 0
    shown = result.stdout.split()
    assert shown[0] == "king"
    assert shown.index("queen") < shown.index("man")
    assert "apple" not in shown
    lines = foreword("nearest", vectors, "king", "man", "-k", 1, "--json").stdout.splitlines()
    first, second = map(json.loads, lines)
    assert first["word"] == "king"
    assert first["nearest"][0]["word"] == "queen"
    assert first["nearest"][0]["cosine"] == pytest.approx(2 / 6**0.5)
    assert second["word"] == "man"


def test_words_come_from_standard_input_too(foreword: Foreword, vectors: Path) -> None:
    result = foreword("nearest", vectors, "-", "--json", "-k", 1, input="king\n\nman\n")
    assert [json.loads(line)["word"] for line in result.stdout.splitlines()] == ["king", "man"]


def test_analogies(foreword: Foreword, vectors: Path) -> None:
    """Row E13, on the command line: the inputs left out, and not."""
    for method in ("add", "mul"):
        result = foreword("analogy", vectors, "man", "king", "woman", "--method", method)
        assert result.exit_code == 0
        assert result.stdout.splitlines()[0].strip() == "man : king = woman : ?"
        answers = json.loads(foreword("analogy", vectors, "man", "king", "woman", "--json").stdout)["answers"]
        assert answers[0]["word"] == "queen"
        assert len(answers) == 2
    with_inputs = foreword("analogy", vectors, "man", "king", "woman", "--include-inputs", "--json", "-k", 10)
    assert {each["word"] for each in json.loads(with_inputs.stdout)["answers"]} == set(CORNERS)


@pytest.mark.parametrize("call", [("nearest", "zebra"), ("analogy", "man", "king", "zebra")])
def test_a_word_without_a_vector_is_one_line(foreword: Foreword, vectors: Path, call: tuple[str, ...]) -> None:
    command, *words = call
    result = foreword(command, vectors, *words)
    assert result.exit_code == 1
    assert result.stderr == f"foreword: {vectors}: no vector for 'zebra'\n"


def test_what_has_no_vectors_is_refused(foreword: Foreword, shelf: Path) -> None:
    result = foreword("nearest", shelf / "model", "the")
    assert result.exit_code == 1
    assert "its kind is text-lm, which has no word vectors" in result.stderr


def test_measures_on_files(foreword: Foreword, vectors: Path, tmp_path: Path) -> None:
    (tmp_path / "questions.txt").write_text(QUESTIONS)
    (tmp_path / "pairs.txt").write_text(PAIRS)
    call = ("evaluate", vectors, tmp_path / "questions.txt", tmp_path / "pairs.txt")
    found = json.loads(foreword(*call, "--json").stdout)
    assert found["accuracy"] == 0.5
    asked = found["analogies"][str(tmp_path / "questions.txt")]
    assert (asked["asked"], asked["right"], asked["skipped"], asked["semantic"]) == (2, 1, 1, 0.5)
    assert [section["name"] for section in asked["sections"]] == ["royal", "gram-none"]
    (pairs,) = found["similarity"]
    assert (pairs["spearman"], pairs["pairs"], pairs["oov"]) == (pytest.approx(1), 3, 1)
    shown = foreword(*call).stdout
    assert "royal" in shown
    assert "50.0%" in shown
    assert "1.000" in shown


@pytest.mark.data
def test_measures_on_named_sets(foreword: Foreword, vectors: Path) -> None:
    found = json.loads(foreword("evaluate", vectors, "--json").stdout)
    assert found["analogies"]["questions-words"]["asked"] > 0
    assert len(found["similarity"]) == 13
    one = json.loads(foreword("evaluate", vectors, "word-sim:ws353", "--json").stdout)
    assert [each["name"] for each in one["similarity"]] == ["ws353"]
    assert one["accuracy"] is None


def test_bad_sets_are_one_line(foreword: Foreword, vectors: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "three").write_text(": x\na b c\n")
    (tmp_path / "words").write_text("king queen 9\nking queen\n")
    for name, message in (("empty", "no text in it"), ("three", "line 2: 3 words"), ("words", "line 2: expected two")):
        result = foreword("evaluate", vectors, tmp_path / name)
        assert result.exit_code == 1
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert foreword("evaluate", tmp_path / "none").exit_code == 1


def test_a_language_model_still_wants_a_text(foreword: Foreword, shelf: Path) -> None:
    result = foreword("evaluate", shelf / "model")
    assert result.exit_code == 2
    assert "name a text" in result.stderr


@pytest.mark.parametrize("name", ["out.vec", "out.bin", "out.txt", "out.vec.gz", "out.bin.gz", "folder"])
def test_converted_there_and_back(foreword: Foreword, vectors: Path, tmp_path: Path, name: str) -> None:
    result = foreword("convert", vectors, tmp_path / name, "--json")
    assert json.loads(result.stdout) | {"input": ""} == {
        "input": "", "output": str(tmp_path / name), "words": 5, "dimensions": 3,
    }  # fmt: skip
    back = package.load(tmp_path / name)
    assert back.words == list(CORNERS)
    np.testing.assert_array_equal(back.matrix, np.array(list(CORNERS.values()), np.float32))


def test_converted_into_less_room(foreword: Foreword, vectors: Path, tmp_path: Path) -> None:
    assert foreword("convert", vectors, tmp_path / "small", "--store", "int8").exit_code == 0
    assert package.load(tmp_path / "small").rows.stored == "int8"
    assert "queen" in foreword("nearest", tmp_path / "small", "king", "-k", 1).stdout
    refused = foreword("convert", vectors, tmp_path / "out.vec", "--store", "int8")
    assert refused.exit_code == 2
    assert not (tmp_path / "out.vec").exists()


def test_words_with_blanks_are_told(foreword: Foreword, tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("the 1 2\n. . . 3 4\n")
    result = foreword("convert", tmp_path / "glove.txt", tmp_path / "out.bin")
    assert "1 words hold blanks" in result.stderr
    assert package.load(tmp_path / "out.bin").words == ["the", "._._."]


@pytest.mark.parametrize("kind", ["word2vec", "fasttext", "glove"])
def test_trained_and_asked(foreword: Foreword, farm: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "vectors"
    settings = ["--set", "dimensions=12", "--set", "epochs=20"]
    if kind != "glove":
        settings += ["--set", "sample=0"]
    result = foreword("train", kind, farm, "-o", out, *settings, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["kind"], found["vocabulary"]) == (kind, 12)  # <unk> and </s> too; rare stands there once
    nearest = json.loads(foreword("nearest", out, "cow", "-k", 4, "--json").stdout)["nearest"]
    assert {each["word"] for each in nearest} == {"goat", "eats", "grass", "field"}
    unknown = foreword("nearest", out, "grassy", "-k", 1, "--json")
    assert unknown.exit_code == (0 if kind == "fasttext" else 1)
    assert foreword("convert", out, tmp_path / "out.vec").exit_code == 0
    assert len(package.load(tmp_path / "out.vec")) == 10


def test_stopped_and_resumed_it_ends_in_the_same_bits(
    foreword: Foreword, farm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ("train", "word2vec", farm, "--set", "dimensions=8", "--set", "epochs=4", "-o")
    assert foreword(*call, tmp_path / "whole").exit_code == 0
    train = Word2Vec.train

    def interrupted(self: Word2Vec, corpus: Corpus) -> Iterator[Step]:
        for number, step in enumerate(train(self, corpus)):
            if number == 3:
                signal.raise_signal(signal.SIGINT)
            yield step

    with monkeypatch.context() as patched:
        patched.setattr(Word2Vec, "train", interrupted)
        stopped = foreword(*call, tmp_path / "resumed")
    assert stopped.exit_code == 130
    assert "and saved in" in stopped.stderr
    halfway = package.load(tmp_path / "resumed")
    assert not np.array_equal(halfway.inputs_, package.load(tmp_path / "whole").inputs_)
    assert isinstance(halfway.vectors, WordVectors)
    assert foreword(*call, tmp_path / "resumed", "--resume").exit_code == 0
    ended: Any = package.load(tmp_path / "resumed")
    np.testing.assert_array_equal(ended.inputs_, package.load(tmp_path / "whole").inputs_)
    again = foreword(*call, tmp_path / "resumed", "--resume")  # nothing is left to do
    assert again.exit_code == 0
    np.testing.assert_array_equal(package.load(tmp_path / "resumed").inputs_, ended.inputs_)


def test_resume_is_held_to_what_was_begun(foreword: Foreword, farm: Path, tmp_path: Path) -> None:
    call = ("train", "word2vec", farm, "-o", tmp_path / "vectors", "--set", "epochs=1")
    assert foreword(*call, "--set", "dimensions=8", "--resume").exit_code == 0  # nothing is there: it begins
    other = foreword(*call, "--set", "dimensions=9", "--resume")
    assert other.exit_code == 1
    assert "training began with dimensions=8, and now dimensions=9 is given" in other.stderr
    kind = foreword("train", "fasttext", farm, "-o", tmp_path / "vectors", "--resume")
    assert "its kind is word2vec, not fasttext" in kind.stderr
    text = foreword(*call, "--resume", "--min-count", 1)
    assert "another vocabulary" in text.stderr
    assert foreword("train", "unigram", farm, "-o", tmp_path / "u", "--resume").exit_code == 2


def test_a_text_too_small_to_learn_from(foreword: Foreword, tmp_path: Path) -> None:
    (tmp_path / "small.txt").write_text("only once\n")
    result = foreword("train", "word2vec", tmp_path / "small.txt", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "fewer than two different words" in result.stderr
    assert not (tmp_path / "out").exists()
