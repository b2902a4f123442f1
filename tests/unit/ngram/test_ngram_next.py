"""Rows of next words that are kept between steps change nothing but the time they take."""

from __future__ import annotations

import numpy as np
import pytest

from foreword.decode import generate
from foreword.ngram import model as ngram
from foreword.ngram.model import NgramLM
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

TEXTS = [f"the {word} sat on the {word} and the {word}{place}" for place, word in enumerate("abcdefgh" * 5)]
TOKENIZER = WordTokenizer().fit(TEXTS)
CORPUS = Corpus.from_texts(TEXTS, TOKENIZER)


@pytest.fixture(params=[(1, 1 << 20), (1, 0), (3, 5)], ids=["all", "one", "few"])
def keeping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of how many words are kept, and how many words in all."""
    many, most = request.param
    monkeypatch.setattr(ngram, "MANY_WORDS", many)
    monkeypatch.setattr(ngram, "MOST_CACHED", most)


@pytest.mark.usefixtures("keeping")
@pytest.mark.parametrize("layout", ["hash", "trie"])
@pytest.mark.parametrize("smoothing", ["modified-kneser-ney", "laplace"])
def test_kept_rows_are_those_of_the_tables(layout: str, smoothing: str) -> None:
    model = NgramLM(3, smoothing, layout=layout).fit(CORPUS)  # type: ignore[arg-type]
    state = model.start(2)
    for id in CORPUS.ids[:40].tolist():
        again = NgramLM.from_parts(model.to_parts())  # has kept nothing yet
        assert np.array_equal(model.next_logprobs(state), again.next_logprobs(state))
        assert np.array_equal(model.next_logprobs(state), again.next_logprobs(state))
        state = model.advance(state, np.array([id, CORPUS.ids[id]]))


@pytest.mark.usefixtures("keeping")
def test_what_was_kept_is_forgotten_when_the_model_learns_anew() -> None:
    model = NgramLM(3).fit(CORPUS)
    list(generate(model, seed=1))
    other = Corpus.from_texts(TEXTS[:7], TOKENIZER)
    model.fit(other)
    assert list(generate(model, seed=1)) == list(generate(NgramLM(3).fit(other), seed=1))


def test_no_more_is_kept_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram, "MANY_WORDS", 1)
    monkeypatch.setattr(ngram, "MOST_CACHED", 30)
    model = NgramLM(3).fit(CORPUS)
    for seed in range(10):
        list(generate(model, seed=seed))
        assert sum(len(words) for words, _ in model._cached.values()) <= 30 + len(model.vocab)
