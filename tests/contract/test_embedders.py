"""What is true of every embedder, and of every model that learns word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foreword.protocols import Embedder, Saveable
from foreword.storage.folder import load, save
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.vectors.wordvectors import StaticEmbedder, WordVectors

from .models import VECTORS, Model, built

TEXTS = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog", "the mat and the log"] * 4
SENTENCES = [["the", "cat", "sat"], [], ["a", "dog", "unseen", "the"], ["cat"]]


def corpus() -> Corpus:
    return Corpus.from_texts(TEXTS, WordTokenizer().fit(TEXTS))


# Word vectors


@pytest.fixture(scope="module", params=VECTORS, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Model:
    assert isinstance(request.param, Model)
    return request.param


@pytest.fixture(scope="module")
def trained(case: Model) -> Any:
    return case.build().fit(corpus())


def test_what_is_learnt_is_a_value(trained: Any) -> None:
    vectors = trained.vectors
    assert isinstance(trained, Saveable)
    assert isinstance(vectors, WordVectors)
    assert vectors.dimensions == 4
    assert "cat" in vectors


def test_a_word_is_nearest_to_others_by_their_cosine(trained: Any) -> None:
    vectors = trained.vectors
    (word, cosine), *rest = vectors.nearest("cat", 3)
    a, b = vectors["cat"], vectors[word]
    assert cosine == pytest.approx(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)), abs=1e-5)
    assert cosine >= max(each for _, each in rest)


def test_training_twice_gives_the_same_vectors(case: Model, trained: Any) -> None:
    again = case.build().fit(corpus())
    assert_array_equal(again.vectors["cat"], trained.vectors["cat"])


def test_saved_and_loaded_vectors_are_the_same_bits(trained: Any, tmp_path: Path) -> None:
    for model in (trained, trained.vectors):
        save(model, tmp_path / "model")
        loaded = load(tmp_path / "model")
        found = loaded if isinstance(loaded, WordVectors) else loaded.vectors
        assert_array_equal(found["cat"], trained.vectors["cat"])


# Embedders


@pytest.fixture(scope="module", params=["static-embedder", "elmo"])
def embedder(request: pytest.FixtureRequest) -> Any:
    if request.param == "elmo":
        return built("elmo", {}).fit([text.split() for text in TEXTS])
    return StaticEmbedder(built("word2vec", {}).fit(corpus()).vectors)


def test_every_word_has_a_vector_of_the_same_length(embedder: Any) -> None:
    assert isinstance(embedder, Embedder)
    assert isinstance(embedder, Saveable)
    found = embedder.embed(SENTENCES)
    assert [rows.shape for rows in found] == [(len(words), embedder.dimensions) for words in SENTENCES]
    assert all(np.isfinite(rows).all() for rows in found)


def test_sentences_do_not_know_of_each_other(embedder: Any) -> None:
    for words, together in zip(SENTENCES, embedder.embed(SENTENCES), strict=True):
        assert_allclose(together, embedder.embed([words])[0], rtol=0, atol=1e-5)


def test_saved_and_loaded_an_embedder_gives_the_same_bits(embedder: Any, tmp_path: Path) -> None:
    save(embedder, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.dimensions == embedder.dimensions
    for ours, theirs in zip(loaded.embed(SENTENCES), embedder.embed(SENTENCES), strict=True):
        assert_array_equal(ours, theirs)
