"""Numbers that Facebook's fastText printed for models that gensim ships (formats/EXPECTED.md, section 4)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.real_data import real

from foreword.fasttext.files import read_fasttext
from foreword.fasttext.vectors import vectors_of_file
from foreword.vectors.plain import character_ngrams

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def formats() -> Path:
    return real("formats/gensim")


PRINTED = {
    "lee_fasttext.bin": {
        "hundred": "-0.57144 -0.0085561 0.15748 -0.67855 -0.25459 -0.58077 -0.09913 1.1447 0.23418 0.060007",
        "rejection": "-0.21929 -0.53778 -0.22463 -0.41735 0.71737 -1.59758 -0.24833 0.62028 0.53203 0.77568",
    },
    "lee_fasttext_new.bin": {
        "hundred": "-0.025627 -0.11448 0.18116 -0.96779 0.2532 -0.93224 0.3929 0.12679 -0.19685 -0.13179",
        "rejection": "-0.49111 -0.13122 -0.02109 -0.88769 -0.20105 -0.91732 0.47243 0.19708 -0.17856 0.19815",
    },
    "toy-model.bin": {
        "quick": "0.023393 0.11499 0.11684 -0.13349 0.022543",
        "brown": "0.015288 0.050404 -0.041395 -0.090371 0.06441",
        "fox": "0.061692 0.082914 0.020081 -0.039159 0.03296",
        "jumps": "0.070107 0.081465 0.051763 0.012084 0.0050402",
        "over": "0.055023 0.03465 0.01648 -0.11129 0.094555",
        "lazy": "-0.022103 -0.020126 -0.033612 -0.049473 0.0054174",
        "dog": "0.084983 0.09216 0.020204 -0.13616 0.01118",
    },
    "crime-and-punishment.bin": {
        "steamtrain": "0.031988 0.022966 0.059483 0.094547 0.062693",
        "паровоз": "-0.0033987 0.056236 0.036073 0.094008 0.00085222",
        "rechtsschutzversicherungsgesellschaften": "-0.012889 0.029756 0.018020 0.099077 0.041939",
    },
}


@pytest.mark.parametrize(("name", "word"), [(name, word) for name, words in PRINTED.items() for word in words])
def test_vectors_are_those_that_fasttext_printed(formats: Path, name: str, word: str) -> None:
    """Rows E10, E11: known words and unknown ones, old format and new."""
    vectors = vectors_of_file(read_fasttext(formats / name))
    np.testing.assert_allclose(vectors[word], [float(x) for x in PRINTED[name][word].split()], atol=1e-4)


@pytest.mark.parametrize("name", ["toy-model", "crime-and-punishment"])
def test_text_and_binary_say_the_same(formats: Path, name: str) -> None:
    vectors = vectors_of_file(read_fasttext(formats / f"{name}.bin"))
    lines = (formats / f"{name}.vec").read_text(encoding="utf-8").splitlines()[1:]
    assert len(lines) == len(vectors)
    for line in lines:
        word, *numbers = line.split()
        np.testing.assert_allclose(vectors[word], [float(x) for x in numbers], atol=1e-5)


@pytest.mark.parametrize(("name", "encoding"), [("non_ascii_fasttext.bin", "utf-8"), ("cp852_fasttext.bin", "cp852")])
def test_words_in_any_encoding_are_kept_as_bytes(formats: Path, name: str, encoding: str) -> None:
    file = read_fasttext(formats / name)
    assert "který".encode(encoding) in file.words
    vectors = vectors_of_file(file)
    assert "který".encode(encoding).decode("utf-8", "surrogateescape") in vectors


def test_ngrams_are_those_that_fasttext_printed(formats: Path) -> None:
    """Row E09, in several scripts: a word, then itself and its n-grams with their vectors, between two marks."""
    printed = (formats / "fb-ngrams.txt").read_text(encoding="utf-8")
    sections = [part.split("<end>")[0].strip("\n").splitlines() for part in printed.split("<start>")[1:]]
    assert len(sections) >= 3
    for word, *lines in sections:
        parts = [line.rstrip().rsplit(" ", 5)[0] for line in lines if line.strip()]
        assert parts == [word, *character_ngrams(word, 3, 6)]
