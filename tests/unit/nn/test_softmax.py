"""The fused loss equals the plain one, forward and backward, and never holds all logits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from foreword.nn.softmax import linear_cross_entropy, plain_linear_cross_entropy

WORDS, UNITS, VOCAB = 23, 5, 17


def inputs() -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    random = torch.Generator().manual_seed(0)
    hidden, weight, bias = (
        torch.randn(shape, generator=random).requires_grad_() for shape in ((WORDS, UNITS), (VOCAB, UNITS), (VOCAB,))
    )
    return (hidden, weight, bias), torch.randint(VOCAB, (WORDS,), generator=random)


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The most numbers that any operation gave."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(out, Tensor):
            self.numbers = max(self.numbers, out.numel())
        return out


@pytest.mark.parametrize("rows", [1, 7, 23, 1000])
def test_fused_equals_plain_forward_and_backward(rows: int) -> None:
    parts, targets = inputs()
    plain = plain_linear_cross_entropy(*parts, targets)
    fused = linear_cross_entropy(*parts, targets, rows=rows)
    torch.testing.assert_close(fused, plain)
    for ours, theirs in zip(torch.autograd.grad(3 * fused, parts), torch.autograd.grad(3 * plain, parts), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_scale_multiplies_loss_and_gradients() -> None:
    parts, targets = inputs()
    once, scaled = (linear_cross_entropy(*parts, targets, scale=scale) for scale in (1.0, 64.0))
    torch.testing.assert_close(scaled, 64 * once)
    for small, large in zip(torch.autograd.grad(once, parts), torch.autograd.grad(scaled, parts), strict=True):
        torch.testing.assert_close(large, 64 * small)


def test_the_logits_of_a_whole_batch_are_never_held() -> None:
    parts, targets = inputs()
    with Largest() as fused:
        torch.autograd.grad(linear_cross_entropy(*parts, targets, rows=4), parts)
    with Largest() as plain:
        torch.autograd.grad(plain_linear_cross_entropy(*parts, targets), parts)
    assert plain.numbers == WORDS * VOCAB
    assert fused.numbers == max(WORDS * UNITS, VOCAB * UNITS)


def test_logits_far_apart_neither_overflow_nor_vanish() -> None:
    hidden, weight = torch.tensor([[300.0]]), torch.tensor([[1.0], [-1.0]])
    assert linear_cross_entropy(hidden, weight, torch.zeros(2), torch.tensor([1])).item() == 600
