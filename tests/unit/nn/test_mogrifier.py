"""The Mogrifier: its formula, its gradient, and an ordinary LSTM where its gates do nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from torch import Tensor

from foreword.nn.layers import lstm, mogrifier_lstm, mogrify, round_shapes

torch.set_num_threads(1)
STEPS, TEXTS, INPUTS, UNITS = 5, 3, 4, 6


def drawn(rounds: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, list[Tensor], list[Tensor]]:
    torch.manual_seed(0)
    x, h, c = (torch.randn(*shape, dtype=dtype) for shape in ((STEPS, TEXTS, INPUTS), (TEXTS, UNITS), (TEXTS, UNITS)))
    shapes = ((4 * UNITS, INPUTS), (4 * UNITS, UNITS), (4 * UNITS,), (4 * UNITS,))
    weights = [torch.randn(*shape, dtype=dtype) / 2 for shape in shapes]
    return x, h, c, weights, [torch.randn(*shape, dtype=dtype) for shape in round_shapes(INPUTS, UNITS, rounds)]


def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-x))


def by_hand(x: Tensor, h: Tensor, c: Tensor, weights: list[Tensor], rounds: list[Tensor]) -> NDArray[np.float64]:
    """The paper's formula, text by text and step by step, in NumPy."""
    w_x, w_h, b_x, b_h = (part.numpy() for part in weights)
    out = np.empty((STEPS, TEXTS, UNITS))
    for text in range(TEXTS):
        hidden, cell = h[text].numpy(), c[text].numpy()
        for step in range(STEPS):
            word = x[step, text].numpy()
            for number, matrix in enumerate(rounds, start=1):
                if number % 2 == 1:
                    word = 2 * sigmoid(matrix.numpy() @ hidden) * word
                else:
                    hidden = 2 * sigmoid(matrix.numpy() @ word) * hidden
            i, f, g, o = np.split(w_x @ word + b_x + w_h @ hidden + b_h, 4)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            hidden = sigmoid(o) * np.tanh(cell)
            out[step, text] = hidden
    return out


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_it_is_the_formula(rounds: int) -> None:
    given = drawn(rounds)
    out, h, c = mogrifier_lstm(*given)
    assert_allclose(out.numpy(), by_hand(*given), rtol=1e-12)
    assert torch.equal(out[-1], h)
    assert c.shape == h.shape


def test_without_rounds_or_with_gates_of_one_it_is_the_lstm() -> None:
    x, h, c, weights, rounds = drawn(4, torch.float32)
    for none in ([], [torch.zeros_like(part) for part in rounds]):
        for ours, theirs in zip(mogrifier_lstm(x, h, c, weights, none), lstm(x, h, c, weights), strict=True):
            torch.testing.assert_close(ours, theirs)


def test_rounds_change_only_what_their_turn_is() -> None:
    x, h, _, _, rounds = drawn(2)
    first, same = mogrify(x[0], h, rounds[:1])
    assert torch.equal(same, h)
    assert not torch.equal(first, x[0])
    again, other = mogrify(x[0], h, rounds)
    assert torch.equal(again, first)
    assert not torch.equal(other, h)


def test_gradients_are_finite_differences() -> None:
    x, h, c, weights, rounds = drawn(3)
    parts = [part.requires_grad_() for part in (x, h, c, *weights, *rounds)]

    def whole(*given: Tensor) -> tuple[Tensor, ...]:
        return mogrifier_lstm(given[0], given[1], given[2], given[3:7], given[7:])

    assert torch.autograd.gradcheck(whole, parts)
