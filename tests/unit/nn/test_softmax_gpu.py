"""The Triton kernel of the last layer, against the plain loss: on a GPU, or in Triton's interpreter where that is."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch
from tests.kernels import compiled_for_hopper

from foreword.nn.mixture import mixture_cross_entropy
from foreword.nn.plain import linear_cross_entropy as plain_linear_cross_entropy
from foreword.nn.plain import mixture_cross_entropy as plain_mixture_cross_entropy
from foreword.nn.softmax import linear_cross_entropy, tempered_losses
from foreword.nn.softmax_gpu import (
    BLOCK,
    WORDS,
    _gradient_at_level,
    _level_of_row,
    can_fuse,
    loss_and_gradients,
)

HERE = torch.cuda.is_available() and find_spec("triton") is not None
on_gpu = pytest.mark.skipif(not HERE, reason="needs a GPU and Triton, and torch finds none here")

SIZES = [(1, 8, 3), (7, 16, 64), (130, 64, 1_000), (300, 32, BLOCK + WORDS + 5)]
"""Words, units, vocabulary: one below, at and past what the kernel pads to and holds at once."""


def drawn(words: int, units: int, vocab: int, device: str) -> tuple[torch.Tensor, ...]:
    random = torch.Generator().manual_seed(vocab)
    hidden, weight = (torch.randn(rows, units, generator=random) for rows in (words, vocab))
    bias, targets = torch.randn(vocab, generator=random), torch.randint(vocab, (words,), generator=random)
    return tuple(part.to(device) for part in (hidden, weight * units**-0.5, bias, targets))


@on_gpu
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16], ids=str)
def test_the_fused_loss_is_the_plain_one(size: tuple[int, int, int], kind: torch.dtype) -> None:
    """Loss and gradients against float32 from the same rounded numbers, in blocks that do not come out even."""
    *parts, targets = drawn(*size, "cuda")
    hidden, weight, bias = (part.to(kind) for part in parts)
    assert can_fuse(hidden)
    h, w, b = (part.double().requires_grad_() for part in (hidden, weight, bias))
    wanted = torch.nn.functional.cross_entropy(torch.nn.functional.linear(h, w, b), targets)
    gradients = torch.autograd.grad(1024 * wanted, [h, w, b])
    loss, *found = loss_and_gradients(hidden, weight, bias, targets, 128, 1024.0)
    step = 2.0**-10 if kind == torch.float16 else 2.0**-7
    torch.testing.assert_close(loss.double(), 1024 * wanted.detach(), rtol=2 * step, atol=0)
    for ours, theirs in zip(found, gradients, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=0.0, atol=8 * step * float(theirs.abs().max()))


@on_gpu
def test_training_takes_it_by_itself() -> None:
    *parts, targets = drawn(200, 32, 500, "cuda")
    h, w, b = (part.half().requires_grad_() for part in parts)
    ours = torch.autograd.grad(linear_cross_entropy(h, w, b, targets, scale=512.0), [h, w, b])
    theirs = torch.autograd.grad(512.0 * plain_linear_cross_entropy(h, w, b, targets), [h, w, b])
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.float(), other.float(), rtol=0.0, atol=0.01 * float(other.abs().max()))


@on_gpu
@pytest.mark.parametrize("mixed", [2, 3])
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16], ids=str)
def test_the_fused_loss_of_a_mixture_is_the_plain_one(mixed: int, kind: torch.dtype) -> None:
    """Through the loss that training calls, in blocks that do not come out even."""
    words, units, vocab = 130, 32, BLOCK + WORDS + 5
    hidden, weight, bias, targets = drawn(words * mixed, units, vocab, "cuda")
    z, aims = hidden.view(words, mixed, units).to(kind), targets[:words]
    shares = torch.log_softmax(hidden[:, 0].view(words, mixed), 1)
    given = (z, shares, weight.to(kind), bias.to(kind))
    a, b, c, d = (part.double().requires_grad_() for part in given)
    wanted = plain_mixture_cross_entropy(a, b, c, d, aims)
    theirs = torch.autograd.grad(1024 * wanted, [a, b, c, d])
    e, f, g, h = (part.detach().requires_grad_() for part in given)
    loss = mixture_cross_entropy(e, f, g, h, aims, rows=48, scale=1024.0)
    ours = torch.autograd.grad(loss, [e, f, g, h])
    step = 2.0**-10 if kind == torch.float16 else 2.0**-7
    torch.testing.assert_close(loss.double(), 1024 * wanted.detach(), rtol=2 * step, atol=0)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=0.0, atol=8 * step * float(other.abs().max()))


MIXED = """
import torch
from tests.kernels import compiled_for_hopper
from foreword.nn.plain import mixture_cross_entropy
from foreword.nn.softmax_gpu import mixture_loss_and_gradients
random = torch.Generator().manual_seed(0)
z, weight, bias = (torch.randn(*shape, generator=random) for shape in ((5, 3, 4), (5000, 4), (5000,)))
shares = torch.log_softmax(torch.randn(5, 3, generator=random), 1)
targets = torch.tensor([0, 4999, 77, 4096, 4095])
exact = [part.double().requires_grad_() for part in (z, shares, weight, bias)]
wanted = 3 * mixture_cross_entropy(*exact, targets)
theirs = torch.autograd.grad(wanted, exact)
loss, *ours = mixture_loss_and_gradients(z, shares, weight, bias, targets, 2, 3.0)
torch.testing.assert_close(loss.double(), wanted.detach(), rtol=1e-5, atol=0)
for one, other in zip(ours, theirs):
    torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-6)
"""


ONE = """
import torch
from tests.kernels import compiled_for_hopper
from foreword.nn.softmax_gpu import _to_gradient
random = torch.Generator().manual_seed(0)
logits = torch.randn(3, 5000, generator=random)
targets, losses = torch.tensor([0, 4999, 77]), torch.empty(3)
exact = logits.double().requires_grad_()
wanted = torch.nn.functional.cross_entropy(exact, targets, reduction="none")
(gradient,) = torch.autograd.grad(wanted.sum(), exact)
_to_gradient(logits, targets, losses, 2.0)
torch.testing.assert_close(losses.double(), wanted.detach(), rtol=1e-5, atol=0)
torch.testing.assert_close(logits.double(), 2 * gradient, rtol=1e-4, atol=1e-7)
"""


TEMPERED = """
import torch
from tests.kernels import compiled_for_hopper
from foreword.nn.softmax_gpu import losses_at
random = torch.Generator().manual_seed(0)
logits, targets, temperatures = torch.randn(3, 20_000, generator=random), torch.tensor([0, 19_999, 77]), [0.9, 1.0, 1.2]
found = losses_at(logits, targets, torch.tensor(temperatures))
for row, t in zip(found, temperatures):
    exact = torch.nn.functional.cross_entropy(logits.double() / t, targets, reduction="none")
    torch.testing.assert_close(row.double(), exact, rtol=1e-5, atol=0)
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed: torch brings it where there is a GPU")
def test_the_kernels_in_triton_s_interpreter() -> None:
    """The same programs without a GPU, in float32 against float64, in a process of their own: Triton reads the setting
    when it is imported.
    """
    env = os.environ | {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", TEMPERED + ONE + MIXED]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if "only 0-dimensional arrays can be converted" in done.stderr:
        pytest.skip("the interpreter of this Triton (3.6 and before) cannot run a loop up to an argument")
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed: torch brings it where there is a GPU")
def test_the_kernels_of_a_mixture_compile_for_a_gpu() -> None:
    for kernel, fourth in ((_level_of_row, "logs"), (_gradient_at_level, "factors")):
        kinds = {"logits": "*fp16", "targets": "*i64", "levels": "*fp32", fourth: "*fp32", "width": "i32"}
        assert compiled_for_hopper(kernel, kinds, {"BLOCK": BLOCK}).asm["ptx"]


def test_tempered_losses_are_cross_entropies() -> None:
    h, w, b, targets = drawn(9, 5, 30, "cpu")
    found = tempered_losses(h, w, b, targets, torch.tensor([0.8, 1.0]))
    logits = torch.nn.functional.linear(h, w, b)
    for row, temperature in zip(found, (0.8, 1.0), strict=True):
        wanted = torch.nn.functional.cross_entropy(logits / temperature, targets, reduction="none")
        torch.testing.assert_close(row, wanted)


def test_without_a_gpu_nothing_is_fused() -> None:
    assert not can_fuse(torch.zeros(2, 3, dtype=torch.float16))
