"""The Triton kernels of a stack of Mogrifier LSTM layers against autograd through the plain layers.

In float32 in Triton's interpreter, which needs no GPU, within 1e-6 of float64; in half precision on a GPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import Tensor

from foreword.errors import SettingError
from foreword.nn import mogrifier_gpu
from foreword.nn.gpu import runs_per_gpu
from foreword.nn.layers import mogrifier_lstm
from foreword.nn.mogrifier_gpu import Stack, kernels_apply, run_stack

HERE = torch.cuda.is_available() and find_spec("triton") is not None
on_gpu = pytest.mark.skipif(not HERE, reason="needs a GPU and Triton, and torch finds none here")

CASES = {
    "five rounds, everything": (2, 3, 16, 64, 5, True),
    "four rounds, padded sizes": (2, 3, 5, 20, 4, True),
    "no rounds": (2, 4, 16, 64, 0, True),
    "one layer, one round, nothing dropped": (1, 3, 3, 33, 1, False),
    "three layers": (3, 2, 17, 10, 2, True),
}
"""Layers, steps, texts, units, rounds, and whether there are biases in the rounds, masks and a capped gate."""


def drawn(case: tuple[int, int, int, int, int, bool], device: str = "cpu") -> tuple[Tensor, Tensor, Tensor, Stack]:
    layers, steps, texts, units, rounds, whole = case
    random = torch.Generator().manual_seed(units + rounds)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64).to(device)

    def mask(*shape: int) -> Tensor | None:
        return (normal(*shape) > -0.5).double() * 1.5 if whole else None

    size = units**-0.5
    stack = Stack(
        normal(layers, 4 * units, units) * size,
        normal(layers, 4 * units, units) * size,
        normal(layers, 4 * units) / 2,
        normal(rounds, layers, units, units) * 2 * size if rounds else None,
        normal(rounds, layers, units) / 2 if rounds and whole else None,
        mask(layers, texts, units),
        mask(layers - 1, steps, texts, units) if layers > 1 else None,
        whole,
    )
    return normal(steps, texts, units), normal(layers, texts, units) / 2, normal(layers, texts, units), stack


def plain(x: Tensor, h: Tensor, c: Tensor, stack: Stack) -> tuple[Tensor, Tensor, Tensor]:
    """Run the stack layer by layer as ``nn/layers.py`` does."""
    outs, lasts = [], []
    for layer in range(len(stack.w_x)):
        bias = stack.bias[layer]
        rounds = [] if stack.rounds is None else list(stack.rounds[:, layer])
        biases = [] if stack.round_bias is None else list(stack.round_bias[:, layer])
        kept = None if stack.state_mask is None else stack.state_mask[layer]
        weights = [stack.w_x[layer], stack.w_h[layer], bias, torch.zeros_like(bias)]
        out, _, last = mogrifier_lstm(
            x, h[layer], c[layer], weights, rounds, biases, capped=stack.capped, state_mask=kept
        )
        outs.append(out)
        lasts.append(last)
        x = out if stack.between is None or layer == len(stack.w_x) - 1 else out * stack.between[layer]
    out = torch.stack(outs)
    return out, out[:, -1], torch.stack(lasts)


OUTPUTS = 3
"""Of the errors that are compared the first are of outputs and states, the others of gradients."""

LEARNT = ("w_x", "w_h", "bias", "rounds", "round_bias")


def leaves(x: Tensor, h: Tensor, c: Tensor, stack: Stack, kind: torch.dtype) -> tuple[list[Tensor], Stack]:
    """Return copies of everything that has a gradient, and the stack made of them."""
    states = [part.to(kind).detach().requires_grad_() for part in (x, h, c)]
    learnt = {name: getattr(stack, name) for name in LEARNT if getattr(stack, name) is not None}
    learnt = {name: part.to(kind).detach().requires_grad_() for name, part in learnt.items()}
    masks = {name: getattr(stack, name) for name in ("state_mask", "between")}
    masks = {name: None if mask is None else mask.to(kind) for name, mask in masks.items()}
    return [*states, *learnt.values()], replace(stack, **learnt, **masks)


def compared(case: tuple[int, int, int, int, int, bool], kind: torch.dtype, device: str) -> list[float]:
    """Return the relative errors of output, states and gradients, the loss weighing every number of the outputs."""
    given = drawn(case, device)
    exact, plain_stack = leaves(*given, torch.float64)
    ours, stack = leaves(*given, kind)
    wanted = plain(exact[0], exact[1], exact[2], plain_stack)
    found = run_stack(ours[0], ours[1], ours[2], stack)
    random = torch.Generator().manual_seed(0)
    weights = [torch.randn(part.shape, generator=random, dtype=part.dtype).to(device) for part in wanted]
    errors = [error(mine, theirs) for mine, theirs in zip(found, wanted, strict=True)]
    wanted_sum = torch.stack([(a * b).sum() for a, b in zip(wanted, weights, strict=True)]).sum()
    found_sum = torch.stack([(a * b.to(a.dtype)).sum() for a, b in zip(found, weights, strict=True)]).sum()
    theirs, mine = torch.autograd.grad(wanted_sum, exact), torch.autograd.grad(found_sum, ours)
    return [*errors, *(error(a, b) for a, b in zip(mine, theirs, strict=True))]


def two_windows(kind: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return c after two steps of float16 at once, and in two windows of one; kind: that of c between them."""
    x, h, c, stack = drawn((2, 2, 5, 20, 2, False))
    ours, stack = leaves(x, h, c, stack, torch.float16)
    with torch.no_grad():
        _, _, whole = run_stack(ours[0], ours[1], c.to(kind), stack)
        _, h, c = run_stack(ours[0][:1], ours[1], c.to(kind), stack)
        _, _, after = run_stack(ours[0][1:], h, c, stack)
    return whole, after


def error(ours: Tensor, exact: Tensor) -> float:
    return float((ours.detach().double() - exact.detach()).norm() / exact.norm().detach())


INTERPRETED = """
import sys, torch
from test_mogrifier_gpu import CASES, OUTPUTS, compared, two_windows
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = True  # with NaN
for name in sys.argv[1:]:
    worst = max(compared(CASES[name], torch.float32, "cpu"))
    assert worst < 1e-6, (name, worst)
    errors = compared(CASES[name], torch.float16, "cpu")
    assert max(errors[:OUTPUTS]) < 1e-3 and max(errors) < 0.06, (name, errors)
whole, windows = two_windows(torch.float32)
assert whole.dtype == windows.dtype == torch.float32
assert torch.equal(whole, windows)
assert two_windows(torch.float16)[1].dtype == torch.float16
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed: torch brings it where there is a GPU")
@pytest.mark.long
def test_every_gradient_in_triton_s_interpreter() -> None:
    """Forward and backward, in a process of its own: Triton reads the setting when it is imported."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": path}
    command = [sys.executable, "-c", INTERPRETED, *CASES]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@on_gpu
@pytest.mark.filterwarnings("ignore::UserWarning")  # sizes that are padded
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("kind", "outputs", "gradients"),
    [(torch.float32, 1e-5, 1e-5), (torch.float16, 1e-3, 0.06), (torch.bfloat16, 8e-3, 0.15)],
    ids=str,
)
def test_half_precision_on_a_gpu(name: str, kind: torch.dtype, outputs: float, gradients: float) -> None:
    """Where rounding decides which side of min(i, 1 − f) is smaller, the other gate gets the gradient: a few %."""
    errors = compared(CASES[name], kind, "cuda")
    assert max(errors[:OUTPUTS]) < outputs
    assert max(errors) < gradients


def test_without_a_gpu_the_plain_layers_run() -> None:
    assert not kernels_apply(torch.zeros(2, 3, 4))


def test_several_runs_on_one_gpu_take_fewer_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program's memory on the chip is proportional to its stages, of which there are two at least."""
    tile = mogrifier_gpu._Tile(64, 16, 128, 4, 7)
    assert tile.options()["num_stages"] == 7
    monkeypatch.setattr(mogrifier_gpu, "RUNS", 3)
    assert tile.options()["num_stages"] == 2
    assert runs_per_gpu("3") == 3
    for wrong in ("", "0", "-1", "two", "²"):
        with pytest.raises(SettingError, match="FOREWORD_RUNS_PER_GPU"):
            runs_per_gpu(wrong)
