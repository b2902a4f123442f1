"""A recurrent classifier that reads with an embedder: aligned, used, saved, refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from foreword.classify.recurrent import RecurrentClassifier
from foreword.errors import InputError, SettingError
from foreword.protocols import Parts, Sentences
from foreword.storage.folder import load, save
from foreword.vectors.elmo import ELMo
from foreword.vectors.wordvectors import StaticEmbedder, WordVectors

torch.set_num_threads(1)
GOOD, BAD = ("fine", "lovely", "grand", "sweet"), ("poor", "dull", "awful", "sour")
SMALL: dict[str, Any] = {
    "embedding": 8,
    "hidden": 8,
    "units": 6,
    "epochs": 12,
    "batch": 4,
    "rate": 0.02,
    "device": "cpu",
}


def reviews(count: int, known: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Each says one thing of a film, with one of the first so many words that mean it."""
    random, texts, labels = np.random.default_rng(seed), [], []
    for number in range(count):
        words = GOOD if number % 2 else BAD
        texts.append(f"the film is {words[random.integers(known)]} .")
        labels.append("good" if number % 2 else "bad")
    return texts, labels


class Sides:
    """Knows of every word whether it praises; counts what it was asked."""

    dimensions = 2

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed(self, sentences: Sentences) -> list[NDArray[np.float32]]:
        self.asked += [list(words) for words in sentences]
        return [
            np.array([[word in GOOD, word in BAD] for word in words], np.float32).reshape(-1, 2) for words in sentences
        ]


def test_words_never_seen_are_told_by_the_embedder() -> None:
    """Two of four words are learnt from; of the others only the embedder knows anything."""
    texts, labels = reviews(24, 2)
    unseen = [f"the film is {word} ." for word in (*GOOD[2:], *BAD[2:])]
    wanted = ["good", "good", "bad", "bad"]
    with_it = RecurrentClassifier(embedder=Sides(), **SMALL).fit(texts, labels)
    without = RecurrentClassifier(**SMALL).fit(texts, labels)
    assert with_it.predict(unseen) == wanted
    assert len(set(without.predict(unseen))) == 1  # one unknown word is like the other


def test_the_embedder_reads_the_words_that_the_classifier_reads() -> None:
    """Lower case, marks apart; each vector stands beside its word, also from the end and with the middle left out."""
    sides = Sides()
    texts, labels = reviews(8, 2)
    model = RecurrentClassifier(embedder=sides, words=4, from_end=True, **{**SMALL, "epochs": 1}).fit(texts, labels)
    assert sides.asked[0][:3] == ["the", "film", "is"]
    text = "Fine THE film, dull; is it SOUR"
    ids, context = model._reader.ids([text])[0], model._reader.context([text], model.weights_)
    assert context is not None
    assert len(ids) == len(context[0]) == 2 + 4
    centre, scale = (model.weights_[name].numpy() for name in ("context_centre", "context_scale"))
    inner = np.array([[0, 1], [0, 0], [0, 0], [1, 0]], np.float32)  # sour it | the fine, in reverse
    assert_allclose(context[0][1:-1], (inner - centre) * scale, rtol=1e-5)
    assert_array_equal(context[0][[0, -1]], np.zeros((2, 2)))


def test_what_it_says_is_brought_to_one_size() -> None:
    """Numbers that are nearly the same for all words are as good as others."""

    class Nearly(Sides):
        def embed(self, sentences: Sentences) -> list[NDArray[np.float32]]:
            return [np.float32(7) + each / np.float32(100) for each in super().embed(sentences)]

    texts, labels = reviews(24, 2)
    model = RecurrentClassifier(embedder=Nearly(), **SMALL).fit(texts, labels)
    assert model.predict(["the film is sweet .", "the film is sour ."]) == ["good", "bad"]
    context = np.concatenate([each[1:-1] for each in model._reader.context(texts, model.weights_) or []])
    assert_allclose(context.mean(0), 0, atol=1e-2)
    assert (context.std(0) > 0.5 * 2**-0.5).all()


def test_one_text_or_many_give_the_same_scores() -> None:
    texts, labels = reviews(16, 4)
    model = RecurrentClassifier(embedder=Sides(), **{**SMALL, "epochs": 2}).fit(texts, labels)
    texts = [*texts, "", "fine", "the film " * 20]
    together = model.predict_log_proba(texts)
    apart = np.concatenate([model.predict_log_proba([text]) for text in texts])
    assert_allclose(together, apart, rtol=1e-4, atol=1e-5)


def test_gradients_reach_the_vectors_within_reach_and_no_others() -> None:
    """The last word, an end, has a vector of zero."""
    texts, labels = reviews(8, 2)
    for reach, moves in ((1, False), (400, True)):
        once, thrice = (
            RecurrentClassifier(embedder=Sides(), reach=reach, **{**SMALL, "epochs": epochs}).fit(texts, labels)
            for epochs in (1, 3)
        )
        assert bool((once.weights_["context"] != thrice.weights_["context"]).any()) == moves


def test_it_is_saved_with_its_embedder(tmp_path: Path) -> None:
    texts, labels = reviews(12, 4)
    elmo = ELMo(units=6, letter_units=4, filters=8, epochs=1, words=50, device="cpu").fit([t.split() for t in texts])
    words = ["fine", "poor", "film"]
    static = StaticEmbedder(WordVectors.of_words(words, np.eye(3, dtype=np.float32)))
    for name, embedder in (("elmo", elmo), ("static", static)):
        model = RecurrentClassifier(embedder=embedder, **{**SMALL, "epochs": 2}).fit(texts, labels)
        save(model, tmp_path / name)
        loaded: Any = load(tmp_path / name)
        assert_allclose(loaded.predict_log_proba(texts), model.predict_log_proba(texts), rtol=1e-6)
        assert type(loaded.embedder) is type(embedder)
    parts = RecurrentClassifier(embedder=elmo, **{**SMALL, "epochs": 1}).fit(texts, labels).to_parts()
    for change in ({"embedder_words_offsets": np.array([0, 3], np.int64)}, {"embedder_words": np.zeros(3)}):
        with pytest.raises(ValueError, match="embedder_words"):
            RecurrentClassifier.from_parts(Parts(parts.settings, {**parts.arrays, **change}, parts.vocab))
    save(elmo, tmp_path / "embedder")
    from_folder = RecurrentClassifier(embedder=str(tmp_path / "embedder"), **{**SMALL, "epochs": 1}).fit(texts, labels)
    assert from_folder._network.context == elmo.dimensions


def test_what_cannot_be_is_said_in_one_line(tmp_path: Path) -> None:
    texts, labels = reviews(8, 2)
    with pytest.raises(SettingError, match="embedder and language_model are both given"):
        RecurrentClassifier("folder", embedder=Sides())
    with pytest.raises(InputError, match="nowhere"):
        RecurrentClassifier(embedder=str(tmp_path / "nowhere"), **SMALL).fit(texts, labels)
    with pytest.raises(InputError, match="a dict, not an embedder"):
        RecurrentClassifier(embedder={}, **SMALL).fit(texts, labels)  # type: ignore[arg-type]
    model = RecurrentClassifier(embedder=Sides(), **{**SMALL, "epochs": 1}).fit(texts, labels)
    with pytest.raises(SettingError, match="a Sides cannot be saved"):
        save(model, tmp_path / "model")
