"""Log-probabilities of words without the scores of all others: by the kernel as written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from foreword.nn.plain import linear_word_logs as plain_word_logs
from foreword.nn.softmax import linear_word_logs


def softmax(states: int, words: int, units: int, size: float = 1.0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(states + words)
    hidden, weight = (torch.randn(rows, units, generator=generator) for rows in (states, words))
    bias, targets = torch.randn(words, generator=generator), torch.randint(words, (states,), generator=generator)
    return hidden * size, weight * size, bias * size, targets


@pytest.mark.parametrize("states", [1, 16, 32, 33, 64, 65, 130])
@pytest.mark.parametrize(("words", "units"), [(1, 3), (7, 20), (64, 16), (205, 33)])
def test_the_kernel_is_what_is_written_out(states: int, words: int, units: int) -> None:
    hidden, weight, bias, targets = softmax(states, words, units)
    found = linear_word_logs(hidden, weight, bias, targets)
    exact = plain_word_logs(hidden.double(), weight.double(), bias.double(), targets)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)
    assert found.max() <= 0


def test_scores_far_apart_neither_overflow_nor_vanish() -> None:
    hidden, weight, bias, targets = softmax(40, 300, 8, size=9.0)
    found = linear_word_logs(hidden, weight, bias, targets)
    assert torch.isfinite(found).all()
    exact = plain_word_logs(hidden.double(), weight.double(), bias.double(), targets)
    assert exact.min() < -500
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-4)
    bias[:200] = -torch.inf  # words that cannot come
    allowed = linear_word_logs(hidden, weight, bias, targets.clamp(min=200))
    wanted = plain_word_logs(hidden, weight, bias, targets.clamp(min=200))
    np.testing.assert_allclose(allowed, wanted, rtol=1e-5, atol=1e-4)
    assert torch.isneginf(linear_word_logs(hidden, weight, bias, torch.zeros_like(targets))).all()


def test_what_is_no_number_shows() -> None:
    hidden, weight, bias, targets = softmax(5, 70, 8)
    hidden[2, 3] = torch.nan
    found = linear_word_logs(hidden, weight, bias, targets)
    assert torch.isnan(found).tolist() == [False, False, True, False, False]


def test_by_several_threads_it_is_the_same_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    given = softmax(300, 90, 12)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    alone = linear_word_logs(*given)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    monkeypatch.setattr("foreword.nn.softmax.SCORES_PER_THREAD", 1)
    assert torch.equal(linear_word_logs(*given), alone)


def test_gradients_and_doubles_go_the_plain_way() -> None:
    hidden, weight, bias, targets = softmax(4, 9, 5)
    weight.requires_grad_()
    logs = linear_word_logs(hidden, weight, bias, targets)
    assert torch.autograd.grad(logs.sum(), [weight])[0].any()
    doubles = linear_word_logs(hidden.double(), weight.detach().double(), bias.double(), targets)
    assert doubles.dtype == torch.float64
    assert linear_word_logs(hidden[:0], weight, bias, targets[:0]).shape == (0,)
    with pytest.raises(IndexError):
        linear_word_logs(hidden, weight.detach(), bias, targets + 9)
