"""The fused loss equals the plain one, forward and backward, and never holds all logits."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from foreword.nn.plain import linear_cross_entropy as plain_linear_cross_entropy
from foreword.nn.softmax import linear_cross_entropy

WORDS, UNITS, VOCAB = 23, 5, 17


def inputs(dtype: torch.dtype = torch.float32) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    random = torch.Generator().manual_seed(0)
    hidden, weight, bias = (
        torch.randn(shape, generator=random, dtype=dtype).requires_grad_()
        for shape in ((WORDS, UNITS), (VOCAB, UNITS), (VOCAB,))
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [1, 7, 23, 1000])
def test_fused_equals_plain_forward_and_backward(rows: int, dtype: torch.dtype) -> None:
    """In float32 a kernel does it, in float64 torch."""
    parts, targets = inputs(dtype)
    plain = plain_linear_cross_entropy(*parts, targets)
    fused = linear_cross_entropy(*parts, targets, rows=rows)
    torch.testing.assert_close(fused, plain)
    for ours, theirs in zip(torch.autograd.grad(3 * fused, parts), torch.autograd.grad(3 * plain, parts), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("vocab", [1, 15, 16, 31, 32, 33, 48, 1000])
def test_any_size_of_vocabulary(vocab: int) -> None:
    """What is left over beside whole registers."""
    random = torch.Generator().manual_seed(vocab)
    hidden, weight, bias = (torch.randn(shape, generator=random) * 3 for shape in ((9, 4), (vocab, 4), (vocab,)))
    parts = hidden.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()
    targets = torch.randint(vocab, (9,), generator=random)
    fused, plain = linear_cross_entropy(*parts, targets, rows=4), plain_linear_cross_entropy(*parts, targets)
    torch.testing.assert_close(fused, plain)
    for ours, theirs in zip(torch.autograd.grad(fused, parts), torch.autograd.grad(plain, parts), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_the_scale_multiplies_loss_and_gradients() -> None:
    parts, targets = inputs()
    once, scaled = (linear_cross_entropy(*parts, targets, scale=scale) for scale in (1.0, 64.0))
    torch.testing.assert_close(scaled, 64 * once)
    for small, large in zip(torch.autograd.grad(once, parts), torch.autograd.grad(scaled, parts), strict=True):
        torch.testing.assert_close(large, 64 * small)


def test_the_logits_of_a_whole_batch_are_never_held() -> None:
    parts, targets = inputs(torch.float64)
    with Largest() as fused:
        torch.autograd.grad(linear_cross_entropy(*parts, targets, rows=4), parts)
    with Largest() as plain:
        torch.autograd.grad(plain_linear_cross_entropy(*parts, targets), parts)
    assert plain.numbers == WORDS * VOCAB
    assert fused.numbers == max(WORDS * UNITS, VOCAB * UNITS)


def test_nor_are_they_by_the_kernel() -> None:
    words, vocab, rows = 512, 2000, 32
    hidden, weight, bias = torch.randn(words, 8), torch.randn(vocab, 8), torch.zeros(vocab)
    targets = torch.zeros(words, dtype=torch.int64)
    linear_cross_entropy(hidden, weight, bias, targets, rows=rows)  # compiled now, and that memory is not counted
    tracemalloc.start()
    linear_cross_entropy(hidden, weight, bias, targets, rows=rows)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    gradients = 4 * (hidden.numel() + weight.numel() + bias.numel())
    assert most < gradients + 4 * rows * vocab + 20_000 < 4 * words * vocab


def test_logits_far_apart_neither_overflow_nor_vanish() -> None:
    hidden, weight = torch.tensor([[300.0]]), torch.tensor([[1.0], [-1.0]])
    assert linear_cross_entropy(hidden, weight, torch.zeros(2), torch.tensor([1])).item() == 600


def test_a_score_that_is_no_number_shows() -> None:
    for rows in (1, 2):
        for bad in (float("nan"), float("inf")):
            hidden = torch.tensor([[1.0], [bad]])
            loss = linear_cross_entropy(hidden, torch.ones(40, 1), torch.zeros(40), torch.tensor([1, 39]), rows=rows)
            assert not torch.isfinite(loss)


def test_a_target_outside_the_vocabulary_is_refused() -> None:
    for target in (-1, 2):
        with pytest.raises(IndexError, match="outside of 0 to 1"):
            linear_cross_entropy(torch.ones(1, 1), torch.ones(2, 1), torch.zeros(2), torch.tensor([target]))
