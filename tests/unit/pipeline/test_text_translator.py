"""Text in, text out: words or one BPE, unknown words copied, where a translation looks, two files line by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from foreword.errors import InputError
from foreword.pipeline.translator import TextTranslator, read_pairs
from foreword.storage.folder import load, save
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.words import WordTokenizer
from foreword.translate.seq2seq import Seq2Seq

SMALL: dict[str, Any] = {"units": 16, "words": 16, "epochs": 1, "batch": 60, "device": "cpu"}
SOURCES = ["der Hund bellt", "die Katze schläft", "der Hund schläft", "die Katze bellt", ""] * 4
TARGETS = ["the dog barks", "the cat sleeps", "the dog sleeps", "the cat barks", ""] * 4


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def by_words(**settings: Any) -> TextTranslator:
    return TextTranslator(WordTokenizer(), WordTokenizer(), Seq2Seq(**{**SMALL, **settings}))


def test_it_learns_and_is_saved(tmp_path: Path) -> None:
    model = by_words(epochs=60, rate=2e-2, dropout=0.0).fit(SOURCES, TARGETS)
    assert model.translate(SOURCES[:5]) == TARGETS[:5]
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.translate(SOURCES[:5]) == TARGETS[:5]
    assert again.source.vocab == model.source.vocab
    measured = again.measure(SOURCES[:4], TARGETS[:4])
    assert measured.chrf == pytest.approx(100)
    assert measured.to_json()["length_ratio"] == 1


def test_one_bpe_for_both_languages(tmp_path: Path) -> None:
    joint = BPETokenizer(300, prefix_space=True)
    model = TextTranslator(joint, joint, Seq2Seq(**SMALL)).fit(SOURCES, TARGETS)
    assert model.model.network_.shared
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.source is again.target
    assert again.translate(SOURCES[:5], width=2) == model.translate(SOURCES[:5], width=2)


def test_where_it_looks_has_a_row_for_each_word_and_the_end() -> None:
    model = by_words().fit(SOURCES, TARGETS)
    looked = model.look("der Hund bellt", "the dog barks")
    assert looked.source == ["der", "Hund", "bellt", "</s>"]
    assert looked.target == ["the", "dog", "barks", "</s>"]
    assert looked.weights.shape == (4, 4)
    assert_allclose(looked.weights.sum(1), 1, atol=1e-6)
    assert len(looked.alignment) == 3


def test_unknown_words_are_copied_from_where_the_decoder_looked() -> None:
    """A name that neither vocabulary has comes through; without copying it is <unk>."""
    names = ["Anna", "Boris", "Carla", "Dmitri", "Edda", "Frode", "Gudrun", "Haakon", "Ines", "Jonas"]
    sources = [f"hier wohnt {name} heute" for name in names] * 6
    targets = [f"{name} lives here today" for name in names] * 6
    tokenizers = [WordTokenizer(min_count=10) for _ in range(2)]
    settings = {**SMALL, "epochs": 30, "rate": 1e-2, "dropout": 0.0}
    model = TextTranslator(tokenizers[0], tokenizers[1], Seq2Seq(**settings)).fit(sources, targets)
    said = model.translate(["hier wohnt Zebedäus heute"])[0].split()
    place = said.index("lives") - 1
    weights = model.look("hier wohnt Zebedäus heute").weights
    words = ["hier", "wohnt", "Zebedäus", "heute"]
    assert said[place] == words[int(weights[place, :4].argmax())]
    model.copy = False
    assert model.translate(["hier wohnt Zebedäus heute"])[0] == "<unk> lives here today"


def test_files_of_different_length_are_refused_by_line(tmp_path: Path) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("one\n\nthree\n")
    target.write_text("eins\n")
    with pytest.raises(InputError, match=r"a\.txt: line 2 has no partner: .* has 3 lines, .*b\.txt 1"):
        read_pairs(source, target)
    target.write_text("eins\n\ndrei")
    assert read_pairs(source, target) == (["one", "", "three"], ["eins", "", "drei"])


def test_a_single_string_is_no_list() -> None:
    model = by_words().fit(SOURCES, TARGETS)
    with pytest.raises(InputError, match="put it in a list"):
        model.translate("der Hund")
    with pytest.raises(InputError, match="20 sources but 1 targets"):
        model.fit(SOURCES, TARGETS[:1])
    with pytest.raises(InputError, match="nothing to measure"):
        model.measure([], [])


def test_a_sentence_of_thousands_of_words() -> None:
    model = by_words().fit(SOURCES, TARGETS)
    assert len(model.translate([" ".join(["Hund"] * 5000)], width=1, max_tokens=5)) == 1
    assert np.isfinite(model.model.score(model.pairs([" ".join(["Hund"] * 5000)], ["the dog"])))
