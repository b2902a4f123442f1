"""torch.nn.RNN, GRU and LSTM as the oracle of our layers: states and every gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from foreword.nn.fused import fused_lstm
from foreword.nn.layers import LARGE, both_ways, gru, lstm, rnn

SIZES = [(1, 1, 3, 1), (7, 1, 4, 5), (5, 3, 16, 16), (4, 2, 9, 40), (6, 5, 7, 33), (3, 21, 40, 200), (30, 1, 20, 130)]
"""T, B, I, H: fewer units than a register holds, just as many, and more; few texts and many."""

Peer = torch.nn.RNN | torch.nn.GRU | torch.nn.LSTM


def peer_and_ours(name: str, inputs: int, hidden: int, dtype: torch.dtype) -> tuple[Any, Any]:
    if name == "gru":
        return torch.nn.GRU(inputs, hidden, dtype=dtype), gru
    if name == "lstm":
        return torch.nn.LSTM(inputs, hidden, dtype=dtype), lstm
    if name == "fused lstm":
        return torch.nn.LSTM(inputs, hidden, dtype=dtype), our_lstm
    peer = torch.nn.RNN(inputs, hidden, dtype=dtype, nonlinearity=name)
    return peer, lambda x, h, weights: rnn(x, h, weights, name)


def our_lstm(x: Tensor, h: Tensor, c: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """By our kernels, whatever its size."""
    out, last_c = fused_lstm(x, h, c, *weights)
    return out, out[-1], last_c


def both(
    name: str, size: tuple[int, int, int, int], dtype: torch.dtype = torch.float32
) -> tuple[list[Tensor], list[Tensor]]:
    """Outputs, last states and all gradients: ours, and theirs."""
    steps, texts, inputs, hidden = size
    torch.manual_seed(sum(size))
    peer, ours = peer_and_ours(name, inputs, hidden, dtype)
    weights = list(peer.parameters())
    x = torch.randn(steps, texts, inputs, dtype=dtype, requires_grad=True)
    parts = 2 if "lstm" in name else 1
    state = [torch.randn(texts, hidden, dtype=dtype, requires_grad=True) for _ in range(parts)]
    targets = torch.randn(steps, texts, hidden, dtype=dtype), torch.randn(texts, hidden, dtype=dtype)

    def gradients(out: Tensor, last: Tensor) -> tuple[Tensor, ...]:
        """last: of an LSTM the cell, which is not among the outputs."""
        return torch.autograd.grad((out * targets[0]).sum() + (last * targets[1]).sum(), [x, *state, *weights])

    out, *last = ours(x, *state, weights)
    given = (state[0][None], state[1][None]) if parts == 2 else state[0][None]
    expected, after = peer(x, given)
    kept = [part[0] for part in after] if parts == 2 else [after[0]]
    return (
        [out, *last, *gradients(out, last[-1])],
        [expected, *kept, *gradients(expected, kept[-1])],
    )


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", ["tanh", "relu", "gru", "lstm", "fused lstm"])
def test_layers_are_torchs(name: str, size: tuple[int, int, int, int]) -> None:
    """Rows R03, L01, L07 in float32, the type that our own kernels take."""
    for ours, theirs in zip(*both(name, size), strict=True):
        scale = max(1.0, float(theirs.detach().abs().max()))
        torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-6 * scale)


@pytest.mark.parametrize("name", ["tanh", "relu", "gru", "lstm"])
def test_layers_are_torchs_in_float64(name: str) -> None:
    for ours, theirs in zip(*both(name, (6, 3, 5, 7), torch.float64), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["tanh", "gru"])
def test_long_texts_stay_with_torch(name: str) -> None:
    ours, theirs = both(name, (300, 1, 8, 24))
    torch.testing.assert_close(ours[0], theirs[0], rtol=0, atol=2e-6)


@pytest.mark.parametrize("texts", [2, 6])
@pytest.mark.parametrize("name", ["tanh", "relu", "gru"])
def test_any_strides_and_missing_gradients(name: str, texts: int) -> None:
    """Inputs that lie otherwise, a loss that asks for the last state only, weights that are held fast; twice over."""
    torch.manual_seed(0)
    peer, ours = peer_and_ours(name, 6, 10, torch.float32)
    weights = list(peer.parameters())
    weights[0].requires_grad_(False)
    x = torch.randn(texts, 5, 12)[..., ::2].transpose(0, 1)
    h = torch.zeros(1, 10).expand(texts, 10)
    turned = [weights[0], weights[1].t().contiguous().t(), *weights[2:]]
    out, last = ours(x, h, turned)
    loss = last.sum()
    first = torch.autograd.grad(loss, weights[1:], retain_graph=True)
    again = torch.autograd.grad(loss, weights[1:])
    expected, theirs = peer(x, h[None])
    torch.testing.assert_close(out, expected)
    for one, other, wanted in zip(first, again, torch.autograd.grad(theirs.sum(), weights[1:]), strict=True):
        torch.testing.assert_close(one, wanted)
        torch.testing.assert_close(other, wanted)


def test_a_large_lstm_is_ours_in_training_twice_over_and_with_any_strides() -> None:
    """The first time through the graph puts gradients where the gates were; the second makes the gates anew."""
    torch.manual_seed(0)
    peer = torch.nn.LSTM(6, LARGE)
    weights = list(peer.parameters())
    x = torch.randn(3, 5, 12)[..., ::2].transpose(0, 1).requires_grad_()
    h = torch.zeros(1, LARGE).expand(3, LARGE)
    turned = [weights[0], weights[1].t().contiguous().t(), *weights[2:]]
    out, _, last = lstm(x, h, h, turned)
    assert "_LSTM" in type(last.grad_fn).__name__
    first = torch.autograd.grad(last.sum(), [x, *weights], retain_graph=True)
    again = torch.autograd.grad(last.sum(), [x, *weights])
    expected, (_, theirs) = peer(x)
    torch.testing.assert_close(out, expected)
    for one, other, wanted in zip(first, again, torch.autograd.grad(theirs.sum(), [x, *weights]), strict=True):
        torch.testing.assert_close(one, wanted, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(other, wanted, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(lstm(x, h, h, weights)[0], expected)


def test_large_and_bad_numbers_are_torchs_in_the_fused_lstm() -> None:
    torch.manual_seed(0)
    peer = torch.nn.LSTM(1, 3)
    for value in (0.0, 1e-6, 30.0, -1e4, float("inf"), float("-inf"), float("nan")):
        x, zeros = torch.full((2, 1, 1), value), torch.zeros(1, 3)
        with torch.no_grad():
            out, _, _ = our_lstm(x, zeros, zeros, list(peer.parameters()))
            expected, _ = peer(x)
        torch.testing.assert_close(out, expected, equal_nan=True, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["tanh", "relu", "gru"])
def test_large_and_bad_numbers_are_torchs(name: str) -> None:
    """Gates that are saturated to the last digit, infinities, and a number that is none."""
    torch.manual_seed(0)
    peer, ours = peer_and_ours(name, 1, 3, torch.float32)
    for value in (0.0, 1e-6, 30.0, -1e4, float("inf"), float("-inf"), float("nan")):
        x = torch.full((2, 1, 1), value)
        with torch.no_grad():
            out, _ = ours(x, torch.zeros(1, 3), list(peer.parameters()))
            expected, _ = peer(x)
        torch.testing.assert_close(out, expected, equal_nan=True, rtol=1e-5, atol=1e-6)


def test_both_ways_are_torchs() -> None:
    """Row S02."""
    torch.manual_seed(0)
    peer = torch.nn.GRU(4, 6, bidirectional=True)
    weights = list(peer.parameters())
    x = torch.randn(9, 3, 4, requires_grad=True)

    def one_way(own: Sequence[Tensor]) -> Any:
        return lambda inputs: gru(inputs, torch.zeros(3, 6), own)[0]

    out, (expected, _) = both_ways(one_way(weights[:4]), one_way(weights[4:]), x), peer(x)
    torch.testing.assert_close(out, expected, rtol=0, atol=2e-6)
    found = torch.autograd.grad(out.square().sum(), [x, *weights])
    for ours, theirs in zip(found, torch.autograd.grad(expected.square().sum(), [x, *weights]), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
