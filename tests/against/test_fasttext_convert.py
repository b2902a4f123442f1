"""``foreword convert`` writes fastText's own files: fastText opens them and says what the model said."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import foreword
from foreword.cli import app
from foreword.fasttext.classifier import FastTextClassifier
from foreword.fasttext.vectors import FastText
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

fasttext = pytest.importorskip("fasttext", reason="fasttext is not installed (it needs a C++ compiler)")

SEA, LAND = ["ship", "harbour", "sail", "wave", "anchor"], ["plough", "field", "harvest", "barn", "cattle"]


def texts_and_labels() -> tuple[list[str], list[str]]:
    rng = random.Random(3)
    labels = [rng.choice(["sea", "land"]) for _ in range(300)]
    return [" ".join(rng.choices(SEA if label == "sea" else LAND, k=6)) for label in labels], labels


def convert(source: Path, out: Path) -> None:
    result = CliRunner().invoke(app, ["convert", str(source), str(out)])
    assert result.exit_code == 0, result.stderr


def answers(model: Any, texts: list[str]) -> list[tuple[str, float]]:
    """fastText's own, by the call that works under NumPy 2."""
    found = [model.f.predict(text + "\n", 1, 0.0, "strict")[0] for text in texts]
    return [(label.removeprefix("__label__"), p) for p, label in found]


def assert_same(ours: FastTextClassifier, theirs: Any, texts: list[str]) -> None:
    best = [found[0] for found in ours.predict_best(texts)]
    others = answers(theirs, texts)
    assert [label for label, _ in best] == [label for label, _ in others]
    np.testing.assert_allclose([p for _, p in best], [p for _, p in others], atol=1e-5)


@pytest.mark.parametrize("settings", [{"word_ngrams": 2}, {"min_n": 2, "max_n": 4}, {"loss": "hierarchical-softmax"}])
def test_a_classifier_becomes_a_bin_and_a_ftz(settings: dict[str, Any], tmp_path: Path) -> None:
    texts, labels = texts_and_labels()
    model = FastTextClassifier(12, buckets=500, rate=0.5, epochs=3, **settings).fit(texts, labels)
    foreword.save(model, tmp_path / "model")
    probes = [*texts[:20], "ship in a field", "unknown words", ""]
    convert(tmp_path / "model", tmp_path / "model.bin")
    assert_same(model, fasttext.load_model(str(tmp_path / "model.bin")), probes)
    convert(tmp_path / "model", tmp_path / "model.ftz")
    small = FastTextClassifier.load(tmp_path / "model.ftz")
    assert small.quantized
    assert_same(small, fasttext.load_model(str(tmp_path / "model.ftz")), probes)


@pytest.mark.parametrize("cutoff", [0, 400])
def test_a_ftz_goes_through_a_folder_and_back(cutoff: int, tmp_path: Path) -> None:
    """What fastText quantised, and pruned, is written again byte for byte but for what it leaves open."""
    texts, labels = texts_and_labels()
    FastTextClassifier(10, word_ngrams=2, buckets=2000, epochs=3).fit(texts, labels).write(tmp_path / "whole.bin")
    peer = fasttext.load_model(str(tmp_path / "whole.bin"))  # what fastText itself has trained holds NaN at times
    peer.quantize(cutoff=cutoff, retrain=False, qnorm=True)
    peer.save_model(str(tmp_path / "first.ftz"))
    convert(tmp_path / "first.ftz", tmp_path / "folder")
    convert(tmp_path / "folder", tmp_path / "second.ftz")
    assert (tmp_path / "second.ftz").stat().st_size == (tmp_path / "first.ftz").stat().st_size
    again = fasttext.load_model(str(tmp_path / "second.ftz"))
    probes = [*texts[:40], "ship in a field", ""]
    assert answers(again, probes) == answers(peer, probes)
    assert_same(foreword.load(tmp_path / "folder"), again, probes)
    refused = CliRunner().invoke(app, ["convert", str(tmp_path / "folder"), str(tmp_path / "back.bin")])
    assert refused.exit_code == 1
    assert "is quantised" in refused.stderr
    assert not (tmp_path / "back.bin").exists()


@pytest.mark.parametrize("plain", [False, True])
def test_vectors_with_subwords_become_a_bin(plain: bool, tmp_path: Path) -> None:
    """Row E10: the trained model, and also its vectors alone, as fastText has them."""
    texts = texts_and_labels()[0]
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    trained = FastText(12, buckets=3000, epochs=2).fit(corpus)
    foreword.save(trained.vectors if plain else trained, tmp_path / "model")
    convert(tmp_path / "model", tmp_path / "model.bin")
    peer = fasttext.load_model(str(tmp_path / "model.bin"))
    ours = foreword.load(tmp_path / "model.bin")
    assert set(trained.vectors.words) == set(peer.get_words()) - {"</s>"}
    for word in trained.vectors.words:
        np.testing.assert_allclose(trained.vectors[word], peer.get_word_vector(word), atol=1e-5)
    for word in ("ships", "ploughing", "ñandú"):
        np.testing.assert_allclose(ours[word], peer.get_word_vector(word), atol=1e-6)


def test_vectors_without_subwords_become_text(tmp_path: Path) -> None:
    texts = texts_and_labels()[0]
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    trained = FastText(12, buckets=3000, epochs=2).fit(corpus)
    foreword.save(trained, tmp_path / "model")
    convert(tmp_path / "model", tmp_path / "model.vec")
    again = foreword.load(tmp_path / "model.vec")
    np.testing.assert_allclose(again["ship"], trained.vectors["ship"], atol=1e-5)
