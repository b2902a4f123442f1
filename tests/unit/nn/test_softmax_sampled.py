"""The sampled softmax against the full one: the mean of its sums, and its loss and gradient in the limit."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from foreword.errors import InputError, SettingError
from foreword.nn.plain import linear_cross_entropy as plain_linear_cross_entropy
from foreword.nn.sampled import Noise, log_uniform, sampled_cross_entropy, unigram

WORDS, UNITS, VOCAB = 4, 6, 40
NOISES = {"log-uniform": log_uniform(VOCAB), "unigram": unigram(torch.arange(VOCAB).flip(0), 0.75)}


def inputs() -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    random = torch.Generator().manual_seed(0)
    hidden, weight, bias = (
        torch.randn(shape, generator=random).requires_grad_() for shape in ((WORDS, UNITS), (VOCAB, UNITS), (VOCAB,))
    )
    return (hidden, weight, bias), torch.randint(VOCAB, (WORDS,), generator=random)


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_the_mean_of_the_estimated_sums_is_the_sum(noise: Noise) -> None:
    """exp(loss) is Z / exp(s_y): its mean over many draws is the full one, within five standard errors."""
    parts, targets = inputs()
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        hidden, aims = parts[0][:1], targets[:1]
        full = plain_linear_cross_entropy(hidden, *parts[1:], aims).exp().item()
        drawn = torch.tensor(
            [
                sampled_cross_entropy(hidden, *parts[1:], aims, noise, 8, generator=random).exp().item()
                for _ in range(4000)
            ]
        )
    error = (drawn.std() / math.sqrt(len(drawn))).item()
    assert error < 0.05 * full
    assert abs(drawn.mean().item() - full) < 5 * error


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_with_many_samples_loss_and_gradient_are_the_full_ones(noise: Noise) -> None:
    parts, targets = inputs()
    random = torch.Generator().manual_seed(2)
    sampled = sampled_cross_entropy(*parts, targets, noise, 400_000, generator=random)
    full = plain_linear_cross_entropy(*parts, targets)
    assert sampled.item() == pytest.approx(full.item(), abs=0.02)
    for ours, theirs in zip(torch.autograd.grad(sampled, parts), torch.autograd.grad(full, parts), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0.01)


def test_without_the_correction_it_would_be_another_loss() -> None:
    """What log q takes off matters: with the same draws and a flat q the loss is far away."""
    parts, targets = inputs()
    right = log_uniform(VOCAB)
    flat = Noise(torch.full((VOCAB,), -math.log(VOCAB)), right.cumulative)
    full = plain_linear_cross_entropy(*parts, targets).item()
    losses = [
        sampled_cross_entropy(*parts, targets, noise, 100_000, generator=torch.Generator().manual_seed(3)).item()
        for noise in (right, flat)
    ]
    assert abs(losses[0] - full) < 0.03 < 0.1 < abs(losses[1] - full)


def test_only_rows_that_were_drawn_or_wanted_get_a_gradient() -> None:
    (hidden, weight, bias), targets = inputs()
    random = torch.Generator().manual_seed(4)
    loss = sampled_cross_entropy(hidden, weight, bias, targets, NOISES["unigram"], 5, generator=random, sparse=True)
    (gradient,) = torch.autograd.grad(loss, [weight])
    assert gradient.is_sparse
    drawn = NOISES["unigram"].draw(5, torch.Generator().manual_seed(4))
    touched = set(gradient.coalesce().indices()[0].tolist())
    assert touched == set(drawn.tolist()) | set(targets.tolist())


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_draws_follow_the_noise(noise: Noise) -> None:
    found = torch.bincount(noise.draw(200_000, torch.Generator().manual_seed(5)), minlength=VOCAB) / 200_000
    expected = noise.logs.exp()
    assert expected.sum().item() == pytest.approx(1, abs=1e-6)
    torch.testing.assert_close(found, expected, rtol=0, atol=0.004)
    assert expected[0] > 1.5 * expected[20]


def test_bad_settings_are_refused() -> None:
    parts, targets = inputs()
    with pytest.raises(SettingError, match="samples is 0"):
        sampled_cross_entropy(*parts, targets, NOISES["unigram"], 0)
    with pytest.raises(SettingError, match="vocabulary of 0"):
        log_uniform(0)
    with pytest.raises(InputError, match="0 or more for each word"):
        unigram(torch.tensor([1, -1]))
