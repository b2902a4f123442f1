"""The adaptive softmax: torch's own is the oracle."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from foreword.errors import SettingError
from foreword.nn.adaptive import Adaptive

SHAPE = Adaptive(50, 16, (10, 25), 2.0)


def of_torch(module: torch.nn.AdaptiveLogSoftmaxWithLoss) -> dict[str, Tensor]:
    """The same weights under our names."""
    held = dict(module.named_parameters())
    named: dict[str, Tensor] = {"head": held["head.weight"]}
    for place in range(len(module.tail)):
        named |= {f"down{place}": held[f"tail.{place}.0.weight"], f"up{place}": held[f"tail.{place}.1.weight"]}
    return named


@pytest.fixture
def peer() -> torch.nn.AdaptiveLogSoftmaxWithLoss:
    torch.manual_seed(0)
    return torch.nn.AdaptiveLogSoftmaxWithLoss(16, 50, [10, 25], div_value=2.0)


def test_loss_and_gradients_are_torchs(peer: torch.nn.AdaptiveLogSoftmaxWithLoss) -> None:
    weights = of_torch(peer)
    assert {name: tuple(part.shape) for name, part in weights.items()} == SHAPE.tensors()
    hidden, targets = torch.randn(40, 16, requires_grad=True), torch.randint(50, (40,))
    ours, theirs = SHAPE.loss(weights, hidden, targets), peer(hidden, targets).loss
    torch.testing.assert_close(ours, theirs)
    parts = [hidden, *weights.values()]
    for one, other in zip(torch.autograd.grad(ours, parts), torch.autograd.grad(theirs, parts), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_probabilities_are_torchs_and_sum_to_one(peer: torch.nn.AdaptiveLogSoftmaxWithLoss) -> None:
    hidden = torch.randn(7, 16)
    logs = SHAPE.logs(of_torch(peer), hidden)
    torch.testing.assert_close(logs, peer.log_prob(hidden))
    torch.testing.assert_close(logs.exp().sum(1), torch.ones(7))


def test_the_loss_is_that_of_the_probabilities(peer: torch.nn.AdaptiveLogSoftmaxWithLoss) -> None:
    weights, hidden = of_torch(peer), torch.randn(9, 16)
    for targets in (torch.randint(50, (9,)), torch.randint(10, (9,)), torch.full((9,), 49)):
        expected = -SHAPE.logs(weights, hidden).gather(1, targets[:, None]).mean()
        torch.testing.assert_close(SHAPE.loss(weights, hidden, targets), expected)


def test_far_fewer_numbers_are_learnt() -> None:
    shape = Adaptive(33_278, 200, (2000, 10_000))
    assert sum(rows * units for rows, units in shape.tensors().values()) < 33_278 * 200 / 5


@pytest.mark.parametrize("cutoffs", [(), (0, 5), (5, 5), (9, 4), (5, 50)])
def test_senseless_cutoffs_are_refused(cutoffs: tuple[int, ...]) -> None:
    with pytest.raises(SettingError, match="expected rising numbers between 0 and 50"):
        Adaptive(50, 16, cutoffs)


def test_a_target_outside_the_vocabulary_is_refused() -> None:
    weights = {name: torch.zeros(shape) for name, shape in SHAPE.tensors().items()}
    with pytest.raises(IndexError, match="outside of 0 to 49"):
        SHAPE.loss(weights, torch.zeros(1, 16), torch.tensor([50]))
