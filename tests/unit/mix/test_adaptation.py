"""The neural cache and dynamic evaluation: models that listen to the text they are scored on."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from foreword.arrays import Logs
from foreword.errors import ForewordError, InputError, SettingError
from foreword.mix.combine import Cached
from foreword.mix.neural_cache import NeuralCache
from foreword.neural.dynamic import EPSILON, DynamicEvaluation
from foreword.neural.recurrent import MODEST, RecurrentLM
from foreword.ngram.unigram import UnigramLM
from foreword.nn.dropout import NO_DROPOUT
from foreword.nn.network import next_logs
from foreword.protocols import LanguageModel
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

torch.set_num_threads(1)
WORDS = 30
VOCAB = Vocab(["<unk>", "</s>", *(f"w{number}" for number in range(WORDS))])


def drawn(documents: int, kept: int, seed: int) -> Corpus:
    """Texts that each have few words of their own, and say them over and over."""
    random = np.random.default_rng(seed)
    texts = [2 + random.choice(random.choice(WORDS, kept, replace=False), 120) for _ in range(documents)]
    return Corpus.from_ids(texts, VOCAB)


TRAIN, VALID, TEST = drawn(8, WORDS, 0), drawn(3, 4, 1), drawn(3, 4, 2)


@pytest.fixture(scope="module")
def model() -> RecurrentLM:
    training = replace(MODEST, epochs=2, batch=4, steps=10)
    return RecurrentLM("lstm", 6, 8, 2, training=training, dropout=NO_DROPOUT, device="cpu").fit(TRAIN)


def test_a_cache_of_no_weight_is_the_model(model: RecurrentLM) -> None:
    assert_allclose(NeuralCache(model, weight=0.0).logprobs(TEST), model.logprobs(TEST), rtol=1e-6)


def test_a_rate_of_nothing_is_the_model(model: RecurrentLM) -> None:
    assert_allclose(DynamicEvaluation(model, rate=0.0).logprobs(TEST), model.logprobs(TEST), rtol=1e-5)
    still = DynamicEvaluation(model, rate=0.0, decay=0.5).measure_gradients(TRAIN)
    assert_allclose(still.logprobs(TEST), model.logprobs(TEST), rtol=1e-5)


def test_the_cache_is_the_equation(model: RecurrentLM) -> None:
    """Grave et al. (2017), word by word in plain Python, with a cache that is too short for the text."""
    ids, size, theta, weight = TEST.ids[: TEST.offsets[1]], 20, 1.7, 0.3
    [(hidden, _)] = model.hidden_states(ids)
    h, plain = hidden.double().numpy(), model.logprobs(TEST[:1])
    found = NeuralCache(model, size=size, theta=theta, weight=weight).logprobs(TEST[:1])
    assert_allclose(found[0], plain[0], rtol=1e-6)
    for place in range(1, len(ids)):
        past = range(max(0, place - size), place)
        shares = {i: np.exp(theta * h[place] @ h[i]) for i in past}
        cache = sum(share for i, share in shares.items() if ids[i] == ids[place]) / sum(shares.values())
        assert_allclose(np.exp(found[place]), (1 - weight) * np.exp(plain[place]) + weight * cache, rtol=1e-5)


def test_a_cache_that_sees_no_likeness_counts(model: RecurrentLM) -> None:
    """θ = 0 is the older cache."""
    ours = NeuralCache(model, size=50, theta=0.0, weight=0.2).logprobs(TEST)
    assert_allclose(ours, Cached(model, size=50, weight=0.2).logprobs(TEST), rtol=1e-5)


def test_the_stretches_of_a_long_document_do_not_show(model: RecurrentLM, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = NeuralCache(model, size=33, theta=1.0, weight=0.3)
    whole = cache.logprobs(TEST.joined())
    monkeypatch.setattr("foreword.mix.neural_cache.CHUNK", 7)
    monkeypatch.setattr("foreword.neural.model.READ_AT_ONCE", 50)
    assert_allclose(cache.logprobs(TEST.joined()), whole, rtol=1e-5)


def test_both_lower_the_perplexity_of_a_text_that_repeats_itself(model: RecurrentLM) -> None:
    plain = np.exp(-model.score(TEST))
    cache = NeuralCache.tuned(model, VALID, sizes=(10, 100), thetas=(0.1, 1.0))
    assert 0.3 < cache.weight < 1
    assert np.exp(-cache.score(TEST)) < 0.5 * plain
    dynamic = DynamicEvaluation(model).measure_gradients(TRAIN).tune(VALID, rates=(0.1, 1.0), decays=(0.001, 0.01))
    assert np.exp(-dynamic.score(TEST)) < 0.6 * plain
    # and carried through the text as one, where each document is new again
    assert np.exp(-cache.score(TEST.joined())) < plain


def test_tuning_finds_what_is_best_of_what_was_tried(model: RecurrentLM) -> None:
    cache = NeuralCache.tuned(model, VALID, sizes=(10, 100), thetas=(0.1, 1.0))
    others = [
        NeuralCache(model, size=size, theta=theta, weight=weight).score(VALID)
        for size in (10, 100)
        for theta in (0.1, 1.0)
        for weight in (cache.weight - 0.1, cache.weight, min(0.99, cache.weight + 0.05))
    ]
    assert cache.score(VALID) >= max(others) - 1e-6
    dynamic = DynamicEvaluation(model).tune(VALID, rates=(0.01, 0.1), decays=(0.0, 0.01))
    for rate in (0.01, 0.1):
        assert dynamic.score(VALID) >= DynamicEvaluation(model, rate=rate, decay=0.001).score(VALID)


def test_an_update_is_the_equation(model: RecurrentLM) -> None:
    """Krause et al. (2018): two stretches, the second told with weights that the first has moved; the probabilities
    over all words sum to one.
    """
    ids, rate, decay = TEST.ids[:6], 0.7, 0.4
    dynamic = DynamicEvaluation(model, rate=rate, decay=decay, steps=3).measure_gradients(TRAIN, texts=4, updates=9)
    weights = {name: part.clone().requires_grad_() for name, part in model.weights_.items()}
    network = model.network(VOCAB)
    words = torch.tensor([VOCAB.end, *ids.tolist()])[:, None]

    def told(state: tuple[torch.Tensor, ...], begin: int) -> tuple[Logs, torch.Tensor, tuple[torch.Tensor, ...]]:
        hidden, after = network.read(weights, words[begin : begin + 3], state)
        logs = next_logs(weights, hidden[:, 0])
        assert_allclose(logs.exp().sum(1).detach(), 1)
        of_words = logs[torch.arange(3), words[begin + 1 : begin + 4, 0]]
        return of_words.detach().numpy(), -of_words.mean(), tuple(part.detach() for part in after)

    first, loss, state = told(network.start(1, weights["bias"]), 0)
    gradients = dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))
    with torch.no_grad():
        for name, weight in weights.items():
            root = dynamic.roots_[name]
            weight -= rate * gradients[name] / (root + EPSILON)
            weight += torch.minimum(torch.ones(()), decay * root) * (model.weights_[name] - weight)
    second, _, _ = told(state, 3)
    corpus = Corpus(ids, np.array([0, 6]), np.array([0, 0]), VOCAB)
    assert_allclose(dynamic.logprobs(corpus), [*first, *second], rtol=1e-4)
    assert np.abs(np.array([*first, *second]) - DynamicEvaluation(model, rate=0.0).logprobs(corpus)).max() > 1e-3


def test_gradients_are_measured_by_their_mean_square(model: RecurrentLM) -> None:
    dynamic = DynamicEvaluation(model, steps=4).measure_gradients(TRAIN, texts=1, updates=2)
    ids = torch.from_numpy(TRAIN.ids[:9].astype(np.int64))[:, None]
    weights = {name: part.clone().requires_grad_() for name, part in model.weights_.items()}
    network, squares = model.network(VOCAB), {name: torch.zeros_like(part) for name, part in weights.items()}
    state = network.start(1, weights["bias"])
    for begin in (0, 4):
        hidden, after = network.read(weights, ids[begin : begin + 4], state)
        state = tuple(part.detach() for part in after)
        loss = -next_logs(weights, hidden[:, 0])[torch.arange(4), ids[begin + 1 : begin + 5, 0]].mean()
        for name, part in zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True):
            squares[name] += part**2 / 2
    roots = {name: part.sqrt() for name, part in squares.items()}
    mean = torch.cat([part.flatten() for part in roots.values()]).mean()
    for name, root in roots.items():
        torch.testing.assert_close(dynamic.roots_[name], root / mean, rtol=1e-3, atol=1e-5)


def test_the_model_itself_is_left_as_it_was(model: RecurrentLM) -> None:
    before = {name: part.clone() for name, part in model.weights_.items()}
    DynamicEvaluation(model, rate=1.0).measure_gradients(TRAIN).logprobs(TEST)
    for name, part in model.weights_.items():
        assert torch.equal(part, before[name])
        assert not part.requires_grad


def test_documents_do_not_teach_each_other(model: RecurrentLM) -> None:
    dynamic = DynamicEvaluation(model, rate=0.5)
    alone = [dynamic.logprobs(TEST[place : place + 1]) for place in range(len(TEST))]
    assert_allclose(np.concatenate(alone), dynamic.logprobs(TEST), rtol=1e-6)


def test_a_joined_corpus_is_one_document() -> None:
    joined = TEST.joined()
    assert len(joined) == 1
    assert joined.ids is TEST.ids
    assert joined.text_bytes == TEST.text_bytes
    assert len(Corpus.from_ids([], VOCAB).joined()) == 0


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        (NeuralCache, {"size": 0}),
        (NeuralCache, {"theta": -1.0}),
        (NeuralCache, {"weight": 1.0}),
        (DynamicEvaluation, {"rate": -1.0}),
        (DynamicEvaluation, {"decay": float("nan")}),
        (DynamicEvaluation, {"steps": 0}),
    ],
)
def test_settings_that_make_no_sense(model: RecurrentLM, kind: Any, setting: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(setting))):
        kind(model, **setting)


def test_what_cannot_be_adapted_is_refused(model: RecurrentLM) -> None:
    counts: LanguageModel[Any] = UnigramLM().fit(TRAIN)
    for kind in (NeuralCache, DynamicEvaluation):
        with pytest.raises(SettingError, match="neural language model, not a UnigramLM"):
            kind(counts)  # type: ignore[arg-type]
    other = Corpus.from_ids([[0]], Vocab(["<unk>", "</s>"]))
    for use in (
        DynamicEvaluation(model).logprobs,
        DynamicEvaluation(model).measure_gradients,
        NeuralCache(model).logprobs,
    ):
        with pytest.raises(InputError, match="vocabulary"):
            use(other)
    with pytest.raises(InputError, match="expected more than 5"):
        DynamicEvaluation(model).measure_gradients(Corpus.from_ids([[2]], VOCAB))
    with pytest.raises(ForewordError, match="empty"):
        DynamicEvaluation(model).score(Corpus.from_ids([], VOCAB))
    for choose in (partial(NeuralCache.tuned, model), DynamicEvaluation(model).tune):
        with pytest.raises(InputError, match="empty"):
            choose(Corpus.from_ids([], VOCAB))
