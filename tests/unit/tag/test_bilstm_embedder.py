"""The neural tagger with an embedder: what is said of a word where it stands; C01."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from foreword.errors import InputError, SettingError
from foreword.storage.folder import load, save
from foreword.tag.bilstm import BiLSTMTagger
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.vectors.elmo import ELMo
from foreword.vectors.word2vec import Word2Vec
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


@pytest.mark.long
def test_c01_a_tagger_gains_by_vectors_in_their_context(
    elmo: ELMo, record_property: Callable[[str, object], None]
) -> None:
    """C01: eight labelled sentences and a tagger that reads one word at a time, so that only an embedder knows what
    stands around it: without one, with static vectors and with ELMo, both learnt from the same 300 sentences; three
    seeds, on sentences that none of them has read.
    """
    texts, (few, tags) = sentences(300)[0], sentences(8, seed=1)
    read = {" ".join(words) for words in (*texts, *few)}
    held = [pair for pair in zip(*sentences(150, seed=2), strict=True) if " ".join(pair[0]) not in read]
    asked, truth = [words for words, _ in held], [tag for _, each in held for tag in each]
    lines = [" ".join(words) for words in texts]
    vectors = Word2Vec(24, sample=0, epochs=20).fit(Corpus.from_texts(lines, WordTokenizer().fit(lines))).vectors
    placed = _Placed(elmo).known([*few, *asked])
    settings = {**SMALL, "both_ways": False, "crf": False, "characters": "none", "epochs": 25, "unseen": 50.0}
    scores: dict[str, list[float]] = {}
    for name, embedder in (("nothing", None), ("static", StaticEmbedder(vectors)), ("contextual", placed)):
        named = placed.places if name == "contextual" else _words
        for seed in range(3):
            tagger = BiLSTMTagger(**settings, embedder=embedder, rate=0.02, seed=seed)
            tagger.fit([[word] for word in named(few)], [[tag] for each in tags for tag in each])
            said = [each[0] for each in tagger.predict([[word] for word in named(asked)])]
            scores.setdefault(name, []).append(
                float(np.mean([one == two for one, two in zip(said, truth, strict=True)]))
            )
    told = ", ".join(f"{name} {np.mean(each):.1%}" for name, each in scores.items())
    record_property("C01 tags right in a generated language, mean of three seeds", told)
    assert len(held) > 100
    assert min(scores["contextual"]) > max(*scores["static"], *scores["nothing"]) + 0.03


def _words(sentences: list[list[str]]) -> list[str]:
    return [word for words in sentences for word in words]


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
