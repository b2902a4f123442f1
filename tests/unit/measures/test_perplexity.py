from __future__ import annotations

import json
import math
from typing import Any, cast

import numpy as np
import pytest

from foreword.arrays import Logs
from foreword.errors import ForewordError
from foreword.measures.perplexity import Measures, chunks, measure, perplexity, surprisal
from foreword.ngram.unigram import UnigramLM
from foreword.protocols import LanguageModel
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

VOCAB = Vocab(["<unk>", "</s>", "a", "b"])


class Told:
    """Gives the log-probabilities it was told; enough of a model to be measured."""

    vocab = VOCAB

    def __init__(self, logs: dict[int, float]) -> None:
        self.logs = logs

    def logprobs(self, corpus: Corpus) -> Logs:
        return np.array([self.logs[id] for id in corpus.ids.tolist()], np.float64)


def told(logs: dict[int, float]) -> LanguageModel[Any]:
    return cast(LanguageModel[Any], Told(logs))


def test_by_hand() -> None:
    """Six tokens: a ½, b ¼, <unk> ⅛ twice, </s> ½ twice, in 2 documents of 4 and 3 bytes with their line ends."""
    tokenizer = WordTokenizer().fit(["a b"])
    corpus = Corpus.from_texts(["a xé", "b z"], tokenizer)
    vocab = tokenizer.vocab
    logs = {vocab.id("a"): 0.5, vocab.id("b"): 0.25, vocab.id("<unk>"): 0.125, vocab.end: 0.5}
    measured = measure(told({id: math.log(p) for id, p in logs.items()}), corpus)
    bits = 1 + 3 + 1 + 2 + 3 + 1
    assert measured.logprob == pytest.approx(-bits * math.log(2), rel=1e-15)
    assert measured.perplexity == pytest.approx(2 ** (bits / 6), rel=1e-15)
    assert measured.perplexity_excluding_oov == pytest.approx(2 ** ((bits - 6) / 4), rel=1e-15)
    assert measured.bits_per_byte == pytest.approx(bits / (5 + 1 + 3 + 1), rel=1e-15)  # é is two bytes
    assert (measured.oov, measured.tokens, measured.documents) == (2, 6, 2)


def test_totals_are_added_and_averages_never_averaged() -> None:
    """A long easy document and a short hard one: the mean over tokens is far from the mean over documents."""
    model = told({1: -1.0, 2: -0.1, 3: -9.0})
    corpus = Corpus.from_ids([[2] * 997, [3]], VOCAB)
    assert perplexity(model, corpus) == pytest.approx(math.exp((997 * 0.1 + 9 + 2) / 1000), rel=1e-12)


def test_chunks_are_whole_documents_and_miss_none(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    corpus = Corpus.from_ids([rng.integers(2, 4, size=size).tolist() for size in rng.integers(0, 30, 50)], VOCAB)
    for tokens in (1, 7, 40, 10_000):
        parts = list(chunks(corpus, tokens))
        assert np.array_equal(np.concatenate([part.ids for part in parts]), corpus.ids)
        assert sum(map(len, parts)) == len(corpus)
        assert all(len(part.ids) <= tokens or len(part) == 1 for part in parts)
    model = UnigramLM().fit(corpus)
    whole = measure(model, corpus)
    monkeypatch.setattr("foreword.measures.perplexity.chunks", lambda corpus: chunks(corpus, 7))
    assert measure(model, corpus).perplexity == pytest.approx(whole.perplexity, rel=1e-13)


def test_where_only_ids_are_known_there_are_no_bits_per_byte() -> None:
    measured = measure(told({1: -1.0}), Corpus.from_ids([[]], VOCAB))
    assert math.isnan(measured.bits_per_byte)
    assert measured.to_json()["bits_per_byte"] is None


def test_an_impossible_token_makes_perplexity_infinite() -> None:
    measured = measure(told({0: -math.inf, 1: -1.0, 2: -1.0}), Corpus.from_ids([[2, 0]], VOCAB, text_bytes=9))
    assert measured.perplexity == math.inf
    assert measured.perplexity_excluding_oov == pytest.approx(math.e)
    assert measured.bits_per_byte == math.inf


def test_a_perplexity_too_large_for_a_float_is_infinite() -> None:
    assert perplexity(told({1: -2000.0}), Corpus.from_ids([[]], VOCAB)) == math.inf


def test_not_a_number_is_an_error() -> None:
    with pytest.raises(ForewordError, match="not a number"):
        measure(told({1: math.nan}), Corpus.from_ids([[]], VOCAB))


def test_an_empty_text_is_an_error() -> None:
    with pytest.raises(ForewordError, match="empty"):
        measure(told({}), Corpus.from_ids([], VOCAB))


def test_without_an_unknown_token_there_are_no_unknown_words() -> None:
    vocab = Vocab(["</s>", "a"], unknown=None)
    corpus = Corpus.from_ids([[1, 1]], vocab)
    measured = measure(UnigramLM().fit(corpus), corpus)
    assert measured.oov == 0
    assert measured.perplexity == measured.perplexity_excluding_oov


def test_json_is_valid_and_infinity_is_null() -> None:
    finite = Measures(2.0, 1.5, 1, 10, 2, 0.5, -6.9)
    assert json.loads(json.dumps(finite.to_json(), allow_nan=False)) == {
        "perplexity": 2.0,
        "perplexity_excluding_oov": 1.5,
        "oov": 1,
        "tokens": 10,
        "documents": 2,
        "bits_per_byte": 0.5,
        "logprob": -6.9,
        "infinite": False,
    }
    infinite = Measures(math.inf, 1.5, 1, 10, 2, math.inf, -math.inf).to_json()
    json.dumps(infinite, allow_nan=False)
    assert (infinite["perplexity"], infinite["bits_per_byte"], infinite["logprob"]) == (None, None, None)
    assert infinite["infinite"] is True
    assert infinite["perplexity_excluding_oov"] == 1.5


def test_surprisal_is_in_bits_and_certainty_is_plain_zero() -> None:
    bits = surprisal(told({1: 0.0, 2: math.log(0.25), 3: -math.inf}), Corpus.from_ids([[2, 3]], VOCAB))
    assert bits.tolist() == [2.0, math.inf, 0.0]
    assert not np.signbit(bits).any()
