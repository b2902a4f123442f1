"""What the report shows of the insides of models: gradients, gates, pairs, neighbours, merges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from foreword.arrays import Reals as Floats
from foreword.evaluate.compare.facts import asked_words, is_word, learn_merges, neighbourhoods
from foreword.evaluate.compare.inspection import (
    LAGS,
    WINDOWS,
    best_pair,
    cut_windows,
    gradient_norms,
    passage_gates,
)
from foreword.evaluate.compare.results import Passage
from foreword.evaluate.gates import Layers, has_layers
from foreword.mix.combine import interpolate
from foreword.ngram.model import NgramLM
from foreword.ngram.unigram import UnigramLM
from foreword.nn.cells import GRUCell, LSTMCell, RNNCell, run
from foreword.protocols import LanguageModel
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

UNITS, WORDS = 5, 11


def layers(kind: str) -> Layers:
    random = np.random.default_rng(3)
    cell = {"rnn": RNNCell, "gru": GRUCell, "lstm": LSTMCell}[kind](UNITS, UNITS, seed=1)
    return Layers(kind, random.normal(size=(WORDS, UNITS)), [cell], random.normal(size=(WORDS, UNITS)), np.zeros(WORDS))


def text(length: int) -> Corpus:
    tokenizer = WordTokenizer().fit([" ".join(f"w{place}" for place in range(WORDS - 2))])
    random = np.random.default_rng(5)
    return Corpus.from_ids([random.integers(2, WORDS, length)], tokenizer.vocab)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_f09_gradient_norms_are_those_of_finite_differences(kind: str) -> None:
    """F09: at each lag the norm of what one loss teaches the word read there, the mean over the places."""
    model, corpus = layers(kind), text(9)
    norms = gradient_norms(model, corpus)
    windows = cut_windows(corpus.ids)
    assert windows.shape == (10, 1)
    inputs, target = model.embedding[windows[:-1]], int(windows[-1, 0])

    def loss(x: Floats) -> float:
        outputs, _, _ = run(model.cells[0], x)
        scores = model.scores(outputs[-1])[0]
        return float(np.log(np.exp(scores).sum()) - scores[target])

    for lag in (0, 1, 4, 8):
        slopes = []
        for unit in range(UNITS):
            ahead, behind = inputs.copy(), inputs.copy()
            ahead[8 - lag, 0, unit] += 1e-5
            behind[8 - lag, 0, unit] -= 1e-5
            slopes.append((loss(ahead) - loss(behind)) / 2e-5)
        assert norms[lag] == pytest.approx(float(np.linalg.norm(slopes)), rel=1e-5)
    assert len(norms) == 9


def test_windows_are_spread_over_the_text_and_short_texts_have_none() -> None:
    ids = np.arange(1000)
    windows = cut_windows(ids)
    assert windows.shape == (LAGS + 2, WINDOWS)
    assert (windows[0, 0], windows[-1, -1]) == (0, 999)
    assert (np.diff(windows, axis=0) == 1).all()
    assert gradient_norms(layers("rnn"), text(3)) == ()
    assert len(gradient_norms(layers("rnn"), text(3), text(20))) == 20


def test_l05_gates_of_the_passage_are_those_after_the_first_end() -> None:
    """L05: every gate at every word, between 0 and 1, and the text's words beside them."""
    model = layers("lstm")
    passage = Passage(("one", " two", " ", " </s>"), ())
    found = passage_gates(model, passage, np.array([3, 4, 5, 1]), end=1)
    assert found is not None
    assert found.tokens == ("one", "two", "␣", "</s>")
    _, kept = model.read(np.array([[1], [3], [4], [5], [1]]))
    for name, place in (("input", 3), ("forget", 4), ("output", 6)):
        assert np.allclose(np.array(found.traces[name]), [held[place][0] for held in kept[0][1:]], atol=6e-4)
    assert passage_gates(layers("rnn"), passage, np.array([3, 4, 5, 1]), end=1) is None
    assert not has_layers(UnigramLM())


# Pairs


def test_the_best_pair_is_the_one_and_its_weight_what_the_mixture_learns() -> None:
    one_kind = [f"the {animal} saw a {thing}" for animal in ("cat", "dog", "owl") for thing in ("mat", "hat", "cap")]
    other_kind = [f"a {tool} hid the {thing}" for tool in ("saw", "awl", "axe") for thing in ("nail", "bolt", "cap")]
    tokenizer = WordTokenizer().fit([*one_kind, *other_kind])
    ones, others, valid, test = (
        Corpus.from_texts(part, tokenizer)
        for part in (one_kind[:6], other_kind[:6], [*one_kind[6:8], other_kind[6]], [one_kind[8], *other_kind[7:]])
    )
    models: dict[str, LanguageModel[Any]] = {
        "ones": NgramLM(2).fit(ones),
        "others": NgramLM(2).fit(others),
        "unigram": UnigramLM().fit(ones),
    }
    valid_logs, test_logs = (
        {name: np.asarray(model.logprobs(part), np.float64) for name, model in models.items()} for part in (valid, test)
    )
    found = best_pair(valid_logs, test_logs)
    assert found is not None
    mixtures = {
        (one, other): interpolate([models[one], models[other]]).learn_weights(valid)
        for one in models
        for other in models
        if one < other
    }
    best = max(mixtures, key=lambda pair: mixtures[pair].score(valid))
    assert set(found.names) == set(best)
    mixture = interpolate([models[name] for name in found.names]).learn_weights(valid)
    assert found.weight == pytest.approx(mixture.weights_[0], abs=1e-6)
    assert found.perplexity == pytest.approx(math.exp(-mixture.score(test)), rel=1e-9)
    alone = [math.exp(-models[name].score(test)) for name in found.names]
    assert found.alone == pytest.approx(alone)
    assert (found.curve[-1], found.curve[0]) == pytest.approx(tuple(alone))


def test_a_pair_that_gains_nothing_is_not_told() -> None:
    better, worse = np.log(np.full(50, 0.5)), np.log(np.full(50, 0.1))
    assert best_pair({"a": better, "b": worse}, {"a": better, "b": worse}) is None
    assert best_pair({"a": better}, {"a": better}) is None
    assert best_pair({"a": better[:0], "b": worse[:0]}, {"a": better, "b": worse}) is None
    never = np.full(50, -np.inf)
    assert best_pair({"a": never, "b": never}, {"a": never, "b": never}) is None


# Words


def test_words_of_one_kind_are_each_other_s_neighbours() -> None:
    """In this text animals stand where animals stand, and numbers where numbers do."""
    random = np.random.default_rng(0)
    animals, numbers = ["lion", "tiger", "horse", "camel"], ["three", "seven", "eight", "eleven"]
    fillers = [f"filler{letter}" for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"]
    texts = [" ".join(random.choice(fillers, 6)) for _ in range(2000)]
    texts += [f"feed the {random.choice(animals)} some hay and water today" for _ in range(600)]
    texts += [f"add {random.choice(numbers)} plus one to the whole sum" for _ in range(600)]
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    asked = asked_words(corpus)
    assert asked
    found = {each.word: [word for word, _ in each.nearest] for each in neighbourhoods(corpus)}
    assert list(found) == asked
    kinds = [animals, numbers]
    told = [(word, near) for word, near in found.items() for kind in kinds if word in kind]
    assert told
    for word, near in told:
        kind = next(kind for kind in kinds if word in kind)
        assert near[0] in kind, f"{word}: {near}"


def test_a_small_text_has_no_neighbours() -> None:
    corpus = Corpus.from_texts(["the cat sat"], WordTokenizer().fit(["the cat sat"]))
    assert neighbourhoods(corpus) == ()


@pytest.mark.parametrize(("token", "answer"), [("name", True), ("name.", False), ("กำลัง", True), ("x2", False)])
def test_what_a_word_is(token: str, answer: bool) -> None:
    assert is_word(token) is answer


def test_f11_merges_are_in_order_and_the_sentence_gets_shorter() -> None:
    """F11: pairs by how often they stand together, and the same sentence with more and more of them."""
    found = learn_merges(["low low low lower newest newest"] * 4, "the newest low")
    assert found is not None
    left, right, count = found.first[0]
    assert ("low low low lower newest newest".count(left + right) * 4) == count
    lengths = [len(tokens) for _, tokens in found.stages]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == len("the newest low")
    assert lengths[-1] < lengths[0]
    assert found.stages[-1][0] == found.learnt
    assert learn_merges(["abc"], "abc") is None


def test_a_long_sentence_is_cut_at_a_word() -> None:
    found = learn_merges(["ab ab ab"], "word " * 40)
    assert found is not None
    assert len(found.stages[0][1]) == len(("word " * 13)[:-1][:64].rpartition(" ")[0])
