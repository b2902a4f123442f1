"""Bengio's network beyond the contract."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from foreword.errors import SettingError
from foreword.neural.bengio import BengioLM, BengioNetwork
from foreword.nn.dropout import NO_DROPOUT, Dropout
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.gradients import new_flat, views
from foreword.training.settings import Training

torch.set_num_threads(1)
VOCAB = Vocab(["<unk>", "</s>", "a", "b", "c", "d"])
CORPUS = Corpus.from_ids([[2, 3, 4, 5] * 3 for _ in range(8)], VOCAB)
QUICK = Training(epochs=3, batch=4, steps=6, optimiser="adam", rate=0.01, averages=())


def small(order: int = 4, **settings: Any) -> BengioLM:
    return BengioLM(order, 3, 5, **{"training": QUICK, "dropout": NO_DROPOUT, "device": "cpu", **settings})


def random_weights(network: BengioNetwork) -> dict[str, Tensor]:
    weights = views(new_flat(network.tensors(), torch.device("cpu")), network.tensors())
    network.initialise(weights, torch.Generator().manual_seed(0))
    return weights


@pytest.mark.parametrize("direct", [False, True])
def test_r01_the_network_is_the_paper_s_equation(direct: bool) -> None:
    """R01: join the embeddings of the last n − 1 words, one hidden layer, softmax; by hand for one word."""
    model = small(direct=direct).fit(CORPUS)
    w = {name: weight.numpy().astype(np.float64) for name, weight in model.weights_.items()}
    words = [4, 3, 2]  # the newest first, as they are joined
    x = np.concatenate([w["embedding"][word] for word in words])
    h = np.tanh(w["hidden"] @ x + w["hidden_bias"])
    logits = w["output"][:, :5] @ h + w["bias"]
    if direct:
        logits += w["output"][:, 5:] @ x
    expected = logits - np.log(np.exp(logits).sum())
    state = model.start()
    for word in reversed(words):
        state = model.advance(state, np.array([word]))
    np.testing.assert_allclose(model.next_logprobs(state)[0], expected, rtol=1e-5)


def test_nothing_further_back_than_its_order_is_seen() -> None:
    model = small(3).fit(CORPUS)
    rows = []
    for first in (2, 5):
        state = model.start()
        for word in (first, 3, 4):
            state = model.advance(state, np.array([word]))
        rows.append(model.next_logprobs(state))
    np.testing.assert_array_equal(rows[0], rows[1])


def test_nothing_before_the_end_of_a_document_is_seen_either() -> None:
    network = BengioNetwork(6, 4, 3, 5, end=1)
    weights = random_weights(network)
    after_another, _ = network.read(weights, torch.tensor([[4], [5], [1], [2], [3]]), network.start(1, weights["bias"]))
    alone, _ = network.read(weights, torch.tensor([[1], [2], [3]]), network.start(1, weights["bias"]))
    torch.testing.assert_close(after_another[2:], alone)


def test_reading_in_two_stretches_is_reading_at_once() -> None:
    network = BengioNetwork(6, 4, 3, 5, end=1, direct=True)
    weights = random_weights(network)
    ids = torch.randint(6, (9, 2), generator=torch.Generator().manual_seed(1))
    whole, last = network.read(weights, ids, network.start(2, weights["bias"]))
    first, state = network.read(weights, ids[:2], network.start(2, weights["bias"]))
    second, end = network.read(weights, ids[2:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole)
    torch.testing.assert_close(end, last)


def test_dropout_covers_what_is_joined() -> None:
    network = BengioNetwork(6, 3, 4, 5, end=1, direct=True)
    masks = network.masks(Dropout(), 2, torch.empty(0), torch.Generator().manual_seed(0))
    assert masks.input.shape == (1, 2, 12)
    assert masks.output.shape == (1, 2, 17)
    hidden, _ = network.read(
        random_weights(network), torch.zeros(3, 2, dtype=torch.int64), network.start(2, torch.empty(0)), masks
    )
    assert hidden.shape == (3, 2, 17)


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(SettingError, match="order is 1"):
        small(1).fit(CORPUS)
    with pytest.raises(SettingError, match="tied needs"):
        small(tied=True).fit(CORPUS)
    assert small(2).fit(CORPUS).score(CORPUS) < 0
