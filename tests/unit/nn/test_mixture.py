"""A mixture of softmaxes: its formula, its gradient in blocks, one softmax where all are the same, and its rank."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from foreword.nn.mixture import mixture_cross_entropy, mixture_logs, mixture_word_logs, tempered_mixture_losses
from foreword.nn.plain import mixture_cross_entropy as plain_mixture_cross_entropy

torch.set_num_threads(1)
ROWS, MIXED, UNITS, WORDS = 11, 4, 5, 23


def drawn(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    z, weight, bias = (torch.randn(*shape, dtype=dtype) for shape in ((ROWS, MIXED, UNITS), (WORDS, UNITS), (WORDS,)))
    shares = torch.log_softmax(torch.randn(ROWS, MIXED, dtype=dtype), 1)
    return z, shares, weight, bias, torch.randint(WORDS, (ROWS,))


def test_it_is_the_formula() -> None:
    """Row by row in NumPy; rows sum to one."""
    z, shares, weight, bias, targets = drawn(torch.float64)
    found = mixture_logs(z, shares, weight, bias).numpy()
    for row in range(ROWS):
        wanted = np.zeros(WORDS)
        for k in range(MIXED):
            powers = np.exp(weight.numpy() @ z[row, k].numpy() + bias.numpy())
            wanted += np.exp(shares[row, k].item()) * powers / powers.sum()
        assert_allclose(np.exp(found[row]), wanted, rtol=1e-12)
    assert_allclose(np.exp(found).sum(1), 1, rtol=1e-12)
    given = mixture_word_logs(z.float(), shares.float(), weight.float(), bias.float(), targets)
    assert_allclose(given.numpy(), found[np.arange(ROWS), targets.numpy()], rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 3, ROWS, 100])
@pytest.mark.parametrize("scale", [1.0, 64.0])
def test_blocks_give_the_loss_and_the_gradients_of_the_plain_one(rows: int, scale: float) -> None:
    z, shares, weight, bias, targets = drawn()
    ours, theirs = ([part.clone().requires_grad_() for part in (z, shares, weight, bias)] for _ in range(2))
    loss = mixture_cross_entropy(ours[0], ours[1], ours[2], ours[3], targets, rows=rows, scale=scale)
    plain = scale * plain_mixture_cross_entropy(theirs[0], theirs[1], theirs[2], theirs[3], targets)
    torch.testing.assert_close(loss, plain)
    (2 * loss).backward()  # type: ignore[no-untyped-call]
    (2 * plain).backward()  # type: ignore[no-untyped-call]
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5 * scale)


def test_gradients_are_finite_differences() -> None:
    """Of the plain one, which the other equals."""
    z, shares, weight, bias, targets = drawn(torch.float64)
    given = [part.requires_grad_() for part in (z, shares, weight, bias)]

    def loss(one: Tensor, two: Tensor, three: Tensor, four: Tensor) -> Tensor:
        return plain_mixture_cross_entropy(one, two, three, four, targets)

    assert torch.autograd.gradcheck(loss, given)


def test_a_temperature_divides_the_logits_of_every_softmax() -> None:
    z, shares, weight, bias, targets = drawn()
    found = tempered_mixture_losses(z, shares, weight, bias, targets, torch.tensor([0.8, 1.0, 1.3]))
    for losses, at in zip(found, (0.8, 1.0, 1.3), strict=True):
        logs = mixture_logs(z / at, shares, weight, bias / at)
        torch.testing.assert_close(losses, -logs[range(ROWS), targets.tolist()])


def test_softmaxes_that_are_all_the_same_are_one() -> None:
    z, shares, weight, bias, targets = drawn()
    same = z[:, :1].expand(-1, MIXED, -1).contiguous()
    torch.testing.assert_close(
        mixture_cross_entropy(same, shares, weight, bias, targets),
        cross_entropy(linear(z[:, 0], weight, bias), targets),
    )


def test_the_rank_of_one_softmax_is_bound_and_a_mixtures_is_not() -> None:
    """Log-probabilities in many contexts: one softmax has rank D + 2 at most (units, bias, normaliser)."""
    torch.manual_seed(1)
    z, weight, bias = (
        torch.randn(40, 3, UNITS).double(),
        torch.randn(WORDS, UNITS).double(),
        torch.randn(WORDS).double(),
    )
    shares = torch.log_softmax(torch.randn(40, 3).double(), 1)
    one = torch.log_softmax(linear(z[:, 0], weight, bias), 1)
    assert int(torch.linalg.matrix_rank(one, rtol=1e-9)) <= UNITS + 2
    assert int(torch.linalg.matrix_rank(mixture_logs(z, shares, weight, bias), rtol=1e-9)) > UNITS + 2
