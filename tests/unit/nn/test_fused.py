"""An LSTM that only reads: by our kernels, many texts or few, it says what the plain cell says, and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from foreword.nn.cells import LSTMCell, run
from foreword.nn.fused import only_read, read_words
from foreword.nn.layers import lstm
from foreword.nn.recurrent_network import RecurrentNetwork
from foreword.training.gradients import new_flat, views

STEPS, INPUTS = 7, 5


def layer(units: int, inputs: int = INPUTS) -> list[Any]:
    generator = torch.Generator().manual_seed(units)
    shapes = ((4 * units, inputs), (4 * units, units), (4 * units,), (4 * units,))
    return [torch.randn(shape, generator=generator) * 0.3 for shape in shapes]


def start(texts: int, units: int) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(texts)
    return tuple(torch.randn(texts, units, generator=generator) for _ in range(2))  # type: ignore[return-value]


@pytest.mark.parametrize("texts", [1, 3, 4, 11])
@pytest.mark.parametrize("units", [1, 16, 37])
def test_it_says_what_the_plain_cell_says(texts: int, units: int) -> None:
    weights, (h, c) = layer(units), start(texts, units)
    words = torch.randint(0, 4, (STEPS, texts), generator=torch.Generator().manual_seed(1))
    vectors = torch.randn(4, INPUTS, generator=torch.Generator().manual_seed(2))
    cell = LSTMCell(INPUTS, units)
    cell.weights = {"W_x": weights[0].numpy(), "W_h": weights[1].numpy(), "b": (weights[2] + weights[3]).numpy()}
    plain, (last_h, last_c), _ = run(cell, vectors[words].numpy(), (h.numpy(), c.numpy()))
    before = h.clone(), c.clone()
    found = read_words(vectors, words, h, c, weights)
    for ours, theirs in zip(found, (plain, last_h, last_c), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, atol=2e-6)
    assert torch.equal(h, before[0])
    assert torch.equal(c, before[1])


@pytest.mark.parametrize("lengths", [[7, 7, 5, 2, 1], [7, 3], [7, 0, 0, 0, 0, 0]])
def test_nothing_is_read_behind_an_end(lengths: list[int]) -> None:
    units, weights = 20, layer(20)
    h, c = start(len(lengths), units)
    x = torch.randn(STEPS, len(lengths), INPUTS, generator=torch.Generator().manual_seed(3))
    out, last_h, last_c = lstm(x, h, c, weights, torch.tensor(lengths))
    for text, length in enumerate(lengths):
        column = slice(text, text + 1)
        none = torch.zeros(0, 1, units)
        alone = lstm(x[:length, column], h[column], c[column], weights) if length else (none, h[column], c[column])
        np.testing.assert_allclose(out[:length, column], alone[0], atol=2e-6)
        np.testing.assert_allclose(last_h[column], alone[1], atol=2e-6)
        np.testing.assert_allclose(last_c[column], alone[2], atol=2e-6)
        assert not out[length:, column].any()


def test_by_several_threads_it_is_the_same_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, (h, c) = layer(20), start(12, 20)
    x = torch.randn(STEPS, 12, INPUTS, generator=torch.Generator().manual_seed(3))
    lengths = torch.tensor([7] * 3 + [5] * 3 + [2] * 5 + [0])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    alone = lstm(x, h, c, weights, lengths)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    monkeypatch.setattr("foreword.nn.fused.TEXTS_PER_THREAD", 4)
    for ours, wanted in zip(lstm(x, h, c, weights, lengths), alone, strict=True):
        assert torch.equal(ours, wanted)


def test_torch_says_the_same_and_has_the_gradients() -> None:
    weights, (h, c) = layer(20), start(3, 20)
    x = torch.randn(STEPS, 3, INPUTS, generator=torch.Generator().manual_seed(4))
    assert only_read(x, h, c, weights)
    ours = lstm(x, h, c, weights)
    learning = [weight.clone().requires_grad_() for weight in weights]
    assert not only_read(x, h, c, learning)
    theirs = lstm(x, h, c, learning)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other.detach(), atol=2e-6)
    gradients = torch.autograd.grad(theirs[0].sum(), learning)
    assert all(gradient.any() for gradient in gradients)
    with torch.inference_mode():
        assert only_read(x, h, c, learning)


@pytest.mark.parametrize("texts", [2, 6])
def test_distinct_words_are_multiplied_once(texts: int) -> None:
    """A stack that looks its words up says what it says when every word's vector is given."""
    network = RecurrentNetwork(9, 6, 20, 2)
    weights = views(new_flat(network.tensors(), torch.device("cpu")), network.tensors())
    network.initialise(weights, torch.Generator().manual_seed(0))
    ids = torch.randint(0, 9, (STEPS, texts), generator=torch.Generator().manual_seed(5))
    state = network.start(texts, weights["bias"])
    quick, after = network.read(weights, ids, state)
    plain, wanted = network.read(weights, ids, state, more=torch.zeros(STEPS, texts, 6))
    np.testing.assert_allclose(quick, plain, atol=2e-6)
    assert len(after) == len(wanted) == 4
    for ours, theirs in zip(after, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-6)


def test_what_does_not_fit_is_refused() -> None:
    weights, (h, c) = layer(4), start(2, 4)
    vectors, words = torch.zeros(3, INPUTS), torch.zeros(STEPS, 2, dtype=torch.int64)
    with pytest.raises(IndexError, match="not among the 3"):
        read_words(vectors, words + 3, h, c, weights)
    with pytest.raises(IndexError, match="not among the 3"):
        read_words(vectors, words - 1, h, c, weights)
    for lengths in ([3, 7], [7], [7, 7, 7]):
        with pytest.raises(ValueError, match="2 lengths, the longest first"):
            read_words(vectors, words, h, c, weights, torch.tensor(lengths))
    assert not only_read(torch.zeros(0, 2, INPUTS), h, c, weights)
    assert not only_read(vectors.double(), h, c, weights)
