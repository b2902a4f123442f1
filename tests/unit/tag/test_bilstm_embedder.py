"""The neural tagger with an embedder: what is said of a word where it stands; C01."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from foreword.errors import InputError, SettingError
from foreword.storage.folder import load, save
from foreword.tag.bilstm import BiLSTMTagger
from foreword.vectors.elmo import ELMo
from foreword.vectors.wordvectors import StaticEmbedder, WordVectors

SMALL: dict[str, Any] = {"units": 8, "words": 6, "letter_units": 4, "spelling": 8, "device": "cpu"}
NOUNS = [f"{a}{b}o" for a in "bdfglmnp" for b in ("al", "er", "in", "ut")]
VERBS = [f"{a}{b}o" for a in "cjkqrstv" for b in ("al", "er", "in", "ut")]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def sentences(count: int, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """A noun stands after an article, a verb behind it: letters do not tell, for both end in the same."""
    random = np.random.default_rng(seed)
    found, tags = [], []
    for _ in range(count):
        noun, verb = str(random.choice(NOUNS)), str(random.choice(VERBS))
        if random.random() < 0.5:
            found.append(["a", noun, verb, "here"])
            tags.append(["D", "N", "V", "A"])
        else:
            found.append(["they", verb, "a", noun])
            tags.append(["P", "V", "D", "N"])
    return found, tags


@pytest.fixture(scope="module")
def elmo() -> ELMo:
    torch.set_num_threads(1)
    return ELMo(12, 1, letter_units=6, filters=4, epochs=6, rate=0.01, batch=16, device="cpu").fit(sentences(300)[0])


def test_c01_a_tagger_gains_by_vectors_in_their_context(elmo: ELMo) -> None:
    """C01: eight labelled sentences and a network that reads a single word at a time: what stands around it is known to
    the embedder alone. The same vectors without their context are worth less.
    """
    few, tags = sentences(8, seed=1)
    words = [[word] for sentence in few for word in sentence]
    wanted = [[tag] for each in tags for tag in each]
    held, truth = sentences(100, seed=2)
    vectors = {name: _single(elmo, mix) for name, mix in (("static", [1.0, 0.0]), ("contextual", [0.0, 1.0]))}
    scores = {}
    for name, embedder in vectors.items():
        settings = {**SMALL, "both_ways": False, "crf": False, "characters": "none", "epochs": 25, "unseen": 50.0}
        tagger = BiLSTMTagger(**settings, embedder=embedder.known([*few, *held]), rate=0.02)
        tagger.fit([[place] for place in embedder.places(few)], wanted)
        said = tagger.predict([[place] for place in embedder.places(held)])
        scores[name] = np.mean(
            [one == [other] for one, other in zip(said, [t for each in truth for t in each], strict=True)]
        )
    assert len(words) == 32
    assert scores["contextual"] > scores["static"] + 0.03


class _Placed:
    """An embedder of words that are named by their places: what the model said of each where it stood."""

    def __init__(self, model: ELMo) -> None:
        self.model, self.rows = model, dict[str, Any]()

    @property
    def dimensions(self) -> int:
        return self.model.dimensions

    def known(self, sentences: list[list[str]]) -> _Placed:
        for words, rows in zip(sentences, self.model.embed(sentences), strict=True):
            for place, row in enumerate(rows):
                self.rows[f"{' '.join(words)}/{place}"] = row
        return self

    def places(self, sentences: list[list[str]]) -> list[str]:
        return [f"{' '.join(words)}/{place}" for words in sentences for place in range(len(words))]

    def embed(self, sentences: Any) -> list[Any]:
        return [np.stack([self.rows[word] for word in words]) for words in sentences]


def _single(elmo: ELMo, mix: list[float]) -> _Placed:
    model = ELMo.from_parts(elmo.to_parts())
    model.mix_ = np.array(mix)
    return _Placed(model)


def test_it_is_saved_with_its_embedder(elmo: ELMo, tmp_path: Path) -> None:
    train, tags = sentences(20)
    save(elmo, tmp_path / "elmo")
    vectors = WordVectors.of_words(["a", "they"], np.eye(2, dtype=np.float32))
    for embedder in (elmo, str(tmp_path / "elmo"), StaticEmbedder(vectors)):
        tagger = BiLSTMTagger(**SMALL, embedder=embedder, epochs=1).fit([*train, []], [*tags, []])
        save(tagger, tmp_path / "tagger")
        found = load(tmp_path / "tagger")
        for ours, theirs in zip(tagger.logits(train), found.logits(train), strict=True):
            assert_allclose(ours, theirs, rtol=0, atol=0)
        together = tagger.logits([*train, ["a"] * 40])
        for rows, words in zip(together, train, strict=False):
            assert_allclose(rows, tagger.logits([words])[0], rtol=0, atol=1e-5)


def test_what_cannot_be_is_refused(elmo: ELMo) -> None:
    nothing: Any = {}
    with pytest.raises(InputError, match="a dict, not an embedder"):
        BiLSTMTagger(**SMALL, embedder=nothing).fit([["a"]], [["D"]])
    tagger = BiLSTMTagger(**SMALL, both_ways=False, crf=False, embedder=elmo, epochs=1).fit([["a"]], [["D"]])
    with pytest.raises(SettingError, match="an embedder reads whole sentences"):
        tagger.stream(iter(["a"]))
    unsaved = BiLSTMTagger(**SMALL, embedder=_Placed(elmo).known([["a"]]), epochs=1).fit([["a/0"]], [["D"]])
    with pytest.raises(SettingError, match="a _Placed cannot be saved"):
        unsaved.to_parts()
