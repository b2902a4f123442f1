"""The PyTorch layers against the NumPy cells, forward and backward, and the scan against its plain twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from foreword.errors import SettingError
from foreword.nn.cells import GRUCell, LSTMCell, MinGRUCell, RNNCell, run, run_back
from foreword.nn.layers import gru, lstm, min_gru, rnn, scan
from foreword.nn.plain import scan as plain_scan

T, B, X, H = 7, 3, 4, 5


def cell_and_layer(name: str) -> tuple[Any, Any]:
    """A NumPy cell, and the layer as a function of x, the state's parts and the cell's weights."""
    if name == "lstm":
        return LSTMCell(X, H), lstm
    if name == "gru":
        return GRUCell(X, H), gru
    if name == "min-gru":
        return MinGRUCell(X, H), min_gru
    relu = name == "relu"
    cell = RNNCell(X, H, activation="relu" if relu else "tanh", identity=relu)
    return cell, lambda x, h, weights: rnn(x, h, weights, "relu" if relu else "tanh")


def as_torch(cell: Any) -> tuple[dict[str, Tensor], list[Tensor]]:
    """The cell's weights by name, and as the layer takes them; where the cell has one bias the other is zero."""
    named = {name: torch.tensor(weight, requires_grad=True) for name, weight in cell.weights.items()}
    if "W_h" not in named:
        return named, [named["W_x"], named["b"]]
    return named, [named["W_x"], named["W_h"], named["b"], named.get("b_h", torch.zeros_like(named["b"]))]


@pytest.mark.parametrize("name", ["rnn", "relu", "lstm", "gru", "min-gru"])
def test_layers_are_the_numpy_cells(name: str) -> None:
    """Rows R03, L01, L07: states, the last state, and the gradients of every weight, the input and the first state."""
    cell, layer = cell_and_layer(name)
    rng = np.random.default_rng(3)
    for weight in cell.weights.values():
        weight += rng.normal(size=weight.shape) * 0.1
    x, target, last_target = rng.normal(size=(T, B, X)), rng.normal(size=(T, B, H)), rng.normal(size=(B, H))
    start = tuple(rng.normal(size=(B, H)) for _ in cell.start(B))
    expected, last, kept = run(cell, x, start)
    d_last = (last_target, *(np.zeros((B, H)) for _ in start[1:]))
    d_x, d_start = run_back(cell, target, kept, d_last)
    named, weights = as_torch(cell)
    x_torch = torch.tensor(x, requires_grad=True)
    state = tuple(torch.tensor(part, requires_grad=True) for part in start)
    out, *after = layer(x_torch, *state, weights)
    np.testing.assert_allclose(out.detach(), expected, atol=1e-10)
    for ours, theirs in zip(after, last, strict=True):
        np.testing.assert_allclose(ours.detach(), theirs, atol=1e-10)
    loss = (out * torch.tensor(target)).sum() + (after[0] * torch.tensor(last_target)).sum()
    found = torch.autograd.grad(loss, [x_torch, *state, *named.values()])
    for gradient, wanted in zip(found, [d_x, *d_start, *(cell.grads[name] for name in named)], strict=True):
        np.testing.assert_allclose(gradient, wanted, atol=1e-10)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 64, 101])
def test_scan_equals_its_plain_twin(length: int) -> None:
    random = torch.Generator().manual_seed(length)
    keep, add = (torch.rand(length, 2, 3, generator=random, dtype=torch.float64).requires_grad_() for _ in range(2))
    h = torch.randn(2, 3, generator=random, dtype=torch.float64).requires_grad_()
    target = torch.randn(length, 2, 3, generator=random, dtype=torch.float64)
    fast, plain = scan(keep, add, h), plain_scan(keep, add, h)
    torch.testing.assert_close(fast, plain, rtol=1e-12, atol=1e-12)
    ours = torch.autograd.grad((fast * target).sum(), [keep, add, h])
    for one, other in zip(ours, torch.autograd.grad((plain * target).sum(), [keep, add, h]), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_scan_stays_sound_over_long_texts() -> None:
    """Ten thousand steps whose product of keeps is far below the smallest float: no division, so nothing is lost."""
    random = torch.Generator().manual_seed(0)
    keep, add = torch.rand(10_000, 4, generator=random), torch.randn(10_000, 4, generator=random)
    keep[5000:5010] = 0
    keep[7000:8000] = 1
    exact = plain_scan(keep.double(), add.double(), torch.ones(4, dtype=torch.float64))
    torch.testing.assert_close(scan(keep, add, torch.ones(4)).double(), exact, rtol=1e-5, atol=1e-4)


def test_a_text_in_two_pieces_is_the_text() -> None:
    """Row P01: what a layer remembers can be given to it again."""
    for name in ("rnn", "gru", "min-gru"):
        cell, layer = cell_and_layer(name)
        _, weights = as_torch(cell)
        x = torch.randn(T, B, X, dtype=torch.float64)
        h = torch.zeros(B, H, dtype=torch.float64)
        whole, last = layer(x, h, weights)
        first, between = layer(x[:3], h, weights)
        second, end = layer(x[3:], between, weights)
        torch.testing.assert_close(torch.cat((first, second)), whole)
        torch.testing.assert_close(end, last)


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(SettingError, match="expected 'tanh' or 'relu'"):
        rnn(torch.zeros(1, 1, 1), torch.zeros(1, 1), [torch.zeros(1, 1)] * 2 + [torch.zeros(1)] * 2, "sin")
