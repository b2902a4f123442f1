"""The Transformer beyond the contract: its mask, its memory, its equation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, softmax

from foreword.errors import SettingError
from foreword.neural.transformer import TransformerLM, TransformerNetwork
from foreword.nn.dropout import NO_DROPOUT
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.gradients import new_flat, views

torch.set_num_threads(1)
VOCAB = Vocab(["<unk>", "</s>", "a", "b", "c", "d"])
CORPUS = Corpus.from_ids([[2, 3, 4, 5] * 4 for _ in range(12)], VOCAB)
QUICK = replace(TransformerLM.TRAINING, epochs=15, batch=4, steps=6, rate=0.01, warm_up=5)


def small(**settings: Any) -> TransformerLM:
    return TransformerLM(8, 2, 2, 5, **{"training": QUICK, "dropout": NO_DROPOUT, "device": "cpu", **settings})


def random_weights(network: TransformerNetwork) -> dict[str, Tensor]:
    weights = views(new_flat(network.tensors(), torch.device("cpu")), network.tensors())
    network.initialise(weights, torch.Generator().manual_seed(0))
    return weights


def ids_of(steps: int, texts: int) -> Tensor:
    return torch.randint(6, (steps, texts), generator=torch.Generator().manual_seed(1))


def plainly(network: TransformerNetwork, weights: dict[str, Tensor], ids: Tensor) -> Tensor:
    """One text (T,), one word and one head at a time, as it is written in the papers."""
    x, size = weights["embedding"][ids], network.units // network.heads
    for layer in range(network.layers):
        own = {name: weights[f"layer{layer}.{name}"] for name in network._layer_tensors()}
        y = layer_norm(x, (network.units,), own["attention_norm"])
        query, key, value = (y @ own["query_key_value"].T).chunk(3, -1)
        attended = torch.zeros_like(x)
        for head in range(network.heads):
            part = slice(head * size, (head + 1) * size)
            slope = 2 ** (-8 * (head + 1) / network.heads)
            for i in range(len(ids)):
                seen = range(max(0, i - network.context + 1), i + 1)
                scores = torch.stack([query[i, part] @ key[j, part] / math.sqrt(size) - slope * (i - j) for j in seen])
                attended[i, part] = softmax(scores, 0) @ value[seen.start : seen.stop, part]
        x = x + attended @ own["attention"].T
        y = layer_norm(x, (network.units,), own["forward_norm"])
        x = x + gelu(y @ own["up"].T + own["up_bias"]) @ own["down"].T + own["down_bias"]
    return layer_norm(x, (network.units,), weights["norm"])


@pytest.mark.parametrize("context", [1, 3, 20])
def test_x01_the_network_is_the_equation_written_out(context: int) -> None:
    """X01: a small Transformer, by its fast road and word by word."""
    network = TransformerNetwork(6, 8, 2, 2, context)
    weights, ids = random_weights(network), ids_of(9, 2)
    ours, _ = network.read(weights, ids, network.start(2, weights["bias"]))
    for text in range(2):
        torch.testing.assert_close(ours[:, text], plainly(network, weights, ids[:, text]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cut", [1, 4, 8])
def test_p01_reading_in_two_stretches_is_reading_at_once(cut: int) -> None:
    """P01: what is carried, keys and values, equals the full forward."""
    network = TransformerNetwork(6, 8, 2, 2, 4)
    weights, ids = random_weights(network), ids_of(9, 3)
    whole, last = network.read(weights, ids, network.start(3, weights["bias"]))
    first, state = network.read(weights, ids[:cut], network.start(3, weights["bias"]))
    second, end = network.read(weights, ids[cut:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(end, last, rtol=1e-4, atol=1e-5)


def test_a_word_out_of_reach_changes_nothing() -> None:
    """Each layer looks context − 1 words back, so two layers reach twice as far and no further."""
    network = TransformerNetwork(6, 8, 2, 2, 3)
    weights, ids = random_weights(network), ids_of(8, 1)
    other = ids.clone()
    other[0] = (ids[0] + 1) % 6
    one, two = (network.read(weights, each, network.start(1, weights["bias"]))[0] for each in (ids, other))
    reached = [not torch.equal(a, b) for a, b in zip(one, two, strict=True)]
    assert reached == [True] * 5 + [False] * 3


def test_texts_of_different_lengths_side_by_side_do_not_look_into_the_void() -> None:
    model = small().fit(CORPUS)
    long = model.start(1)
    for word in (2, 3, 4):
        long = model.advance(long, np.array([word]))
    fresh = model.start(1)
    both = type(long)(
        np.concatenate((long.hidden, fresh.hidden)),
        tuple(np.concatenate(pair) for pair in zip(long.parts, fresh.parts, strict=True)),
    )
    together = model.next_logprobs(model.advance(both, np.array([5, 2])))
    np.testing.assert_allclose(together[0], model.next_logprobs(model.advance(long, np.array([5])))[0], rtol=1e-5)
    np.testing.assert_allclose(together[1], model.next_logprobs(model.advance(fresh, np.array([2])))[0], rtol=1e-5)


def test_it_learns_a_text_that_repeats_itself() -> None:
    model = small().fit(CORPUS, valid=CORPUS[:3])
    assert math.exp(-model.score(CORPUS)) < 2


def test_heads_must_share_the_units() -> None:
    with pytest.raises(SettingError, match="8 hidden units cannot be shared evenly by 3 heads"):
        TransformerLM(8, 1, 3).fit(CORPUS)
