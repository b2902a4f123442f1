"""Gated cells: the plain ones against other formulas, and the Triton kernels against autograd through the plain ones.

The kernels run in float32 in Triton's interpreter, which needs no GPU, within 1e-6 of float64; in half precision on a
GPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from foreword.nn import recurrent_network
from foreword.nn.cells import GRUCell, run
from foreword.nn.gated import GATED, run_gated
from foreword.nn.gated_gpu import by_kernels, gated_layer
from foreword.nn.layers import gru
from foreword.nn.recurrent_network import run_layer

HERE = torch.cuda.is_available() and find_spec("triton") is not None
on_gpu = pytest.mark.skipif(not HERE, reason="needs a GPU and Triton, and torch finds none here")

SIZES = {"padded": (3, 5, 7, 20), "whole tiles": (2, 16, 10, 64)}
"""Steps, texts, inputs, units."""


def drawn(cell: str, sizes: tuple[int, int, int, int]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Return inputs, states and weights."""
    steps, texts, inputs, units = sizes
    random, facts = torch.Generator().manual_seed(units), GATED[cell]

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    wide = facts.gates * units
    weights = [normal(wide, inputs), normal(wide, units) * units**-0.5, normal(wide) / 2, normal(wide) / 2]
    if facts.extra is not None:
        weights.append(normal(facts.extra[1], units) / 2 + 0.5)
    states = [normal(texts, units) / 2 for _ in range(facts.states)]
    if cell == "slstm":
        states[2] = states[2].abs() + 0.5
    return normal(steps, texts, inputs), states, weights


def test_a_peephole_lstm_that_sees_nothing_is_an_lstm() -> None:
    x, states, weights = drawn("peephole", SIZES["padded"])
    weights[4].zero_()
    ours = run_gated("peephole", x, tuple(states), weights)
    theirs = torch._VF.lstm(
        x, (states[0][None], states[1][None]), weights[:4], True, 1, 0.0, False, False, False
    )  # fmt: skip
    torch.testing.assert_close(ours, (theirs[0], theirs[1][0], theirs[2][0]))


def test_a_coupled_gate_is_an_lstm_whose_gates_sum_to_one() -> None:
    x, states, weights = drawn("cifg", SIZES["padded"])
    units = len(states[0][0])

    def with_input_gate(part: Tensor) -> Tensor:
        return torch.cat((-part[:units], part))  # 1 − σ(a) = σ(−a)

    ours = run_gated("cifg", x, tuple(states), weights)
    four = [with_input_gate(part) for part in weights]
    theirs = torch._VF.lstm(x, (states[0][None], states[1][None]), four, True, 1, 0.0, False, False, False)
    torch.testing.assert_close(ours, (theirs[0], theirs[1][0], theirs[2][0]))


def test_an_slstm_is_its_unstabilised_formula() -> None:
    x, states, weights = drawn("slstm", SIZES["padded"])
    h, c, n, m = states
    m.zero_()
    out, *_ = run_gated("slstm", x, (h, c, n, m), weights)
    w_x, w_h, b_x, b_h = weights
    for step, found in zip(x, out, strict=True):
        i, f, g, o = (step @ w_x.T + b_x + h @ w_h.T + b_h).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.exp(i) * torch.tanh(g)
        n = torch.sigmoid(f) * n + torch.exp(i)
        h = torch.sigmoid(o) * c / n
        torch.testing.assert_close(found, h)


def test_an_slstm_does_not_overflow() -> None:
    x, states, weights = drawn("slstm", SIZES["padded"])
    found = run_gated("slstm", 1e4 * x.float(), tuple(part.float() for part in states), [w.float() for w in weights])
    assert all(part.isfinite().all() for part in found)


def test_l07_a_gru_that_resets_before_its_product_is_the_cell_in_numpy() -> None:
    x, states, weights = drawn("gru-before", SIZES["padded"])
    cell = GRUCell(7, 20, reset="before")
    cell.weights = dict(zip(("W_x", "W_h", "b", "b_h"), (part.numpy() for part in weights), strict=True))
    wanted, (last,), _ = run(cell, x.numpy(), (states[0].numpy(),))
    out, h = run_gated("gru-before", x, tuple(states), weights)
    np.testing.assert_allclose(out.numpy(), wanted, atol=1e-12)
    np.testing.assert_allclose(h.numpy(), last, atol=1e-12)


def test_a_gru_that_resets_after_its_product_is_torch_s() -> None:
    x, states, weights = drawn("gru", SIZES["padded"])
    wanted, last = torch._VF.gru(x, states[0][None], weights, True, 1, 0.0, False, False, False)
    torch.testing.assert_close(run_gated("gru", x, tuple(states), weights), (wanted, last[0]))


@pytest.mark.parametrize(("cudnn", "kernel"), [(True, False), (False, True)])
def test_a_gru_layer_runs_by_our_kernel_where_cudnn_is_off(
    cudnn: bool, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, states, weights = drawn("gru", SIZES["padded"])
    called: list[str] = []
    wanted = gru(x, states[0], weights)

    def gated(cell: str, *given: Any) -> tuple[Tensor, ...]:
        called.append(cell)
        return run_gated(cell, *given)

    monkeypatch.setattr(recurrent_network, "gated_layer", gated)
    monkeypatch.setattr(recurrent_network, "torch_runs_gru", lambda x: cudnn)
    torch.testing.assert_close(run_layer("gru", x, tuple(states), weights), wanted)
    assert called == ["gru"] * kernel


def test_normalised_products_do_not_change_with_the_size_of_weights() -> None:
    x, states, weights = drawn("ln-lstm", SIZES["padded"])
    larger = [10 * weights[0], 10 * weights[1], *weights[2:]]
    ours, theirs = (run_gated("ln-lstm", x, tuple(states), each) for each in (weights, larger))
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


# Kernels


def compared(cell: str, sizes: tuple[int, int, int, int], kind: torch.dtype, device: str) -> float:
    """Return the largest relative error of outputs, states and gradients; the loss weighs all outputs but m."""
    x, states, weights = drawn(cell, sizes)
    exact = [part.to(device).requires_grad_() for part in (x, *states, *weights)]
    ours = [part.detach().to(kind).requires_grad_() for part in exact]
    count = len(states)
    wanted = run_gated(cell, exact[0], tuple(exact[1 : count + 1]), exact[count + 1 :])[: 4 if cell == "slstm" else 9]
    found = by_kernels(cell, ours[0], tuple(ours[1 : count + 1]), ours[count + 1 :])[: len(wanted)]
    shares = [torch.randn_like(part) for part in wanted]
    wanted_sum = torch.stack([(a * b).sum() for a, b in zip(wanted, shares, strict=True)]).sum()
    found_sum = torch.stack([(a * b.to(a.dtype)).sum() for a, b in zip(found, shares, strict=True)]).sum()
    theirs = torch.autograd.grad(wanted_sum, exact, allow_unused=True)
    mine = torch.autograd.grad(found_sum, ours, allow_unused=True)
    pairs = [*zip(found, wanted, strict=True), *zip(mine, theirs, strict=True)]
    return max(float((a.detach().double() - b.detach()).norm() / b.detach().norm()) for a, b in pairs if b is not None)


def two_windows(cell: str, other_kind: torch.dtype) -> tuple[list[Tensor], list[Tensor]]:
    """Return states but h after four steps of float16 at once, and in two windows; other_kind: theirs between."""
    x, states, weights = drawn(cell, (4, 5, 7, 20))
    low, *rest = (part.half() for part in (x, *weights))
    begun = (states[0].half(), *(part.to(other_kind) for part in states[1:]))
    whole = by_kernels(cell, low, begun, rest)
    _, *between = by_kernels(cell, low[:2], begun, rest)
    _, *after = by_kernels(cell, low[2:], tuple(between), rest)
    return list(whole[2:]), after[1:]


INTERPRETED = """
import torch
from test_gated import SIZES, compared, two_windows
from foreword.nn.gated import GATED
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = True  # with NaN: whatever a kernel did not write shows
for cell in GATED:
    for name, sizes in SIZES.items():
        worst = compared(cell, sizes, torch.float32, "cpu")
        assert worst < 1e-6, (cell, name, worst)
for cell in ("cifg", "peephole", "ln-lstm", "slstm"):
    whole, windows = two_windows(cell, torch.float32)
    assert all(part.dtype == torch.float32 for part in windows), cell
    assert all(torch.equal(a, b) for a, b in zip(whole, windows, strict=True)), cell
    assert all(part.dtype == torch.float16 for part in two_windows(cell, torch.float16)[1]), cell
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed: torch brings it where there is a GPU")
def test_every_gradient_in_triton_s_interpreter() -> None:
    """L07 and others: forward and backward, in a process of its own: Triton reads the setting when it is imported."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", INTERPRETED], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@on_gpu
@pytest.mark.filterwarnings("ignore::UserWarning")  # sizes that are padded
@pytest.mark.parametrize("cell", GATED)
@pytest.mark.parametrize(
    ("kind", "bound"), [(torch.float32, 1e-5), (torch.float16, 2e-2), (torch.bfloat16, 6e-2)], ids=str
)
def test_half_precision_on_a_gpu(cell: str, kind: torch.dtype, bound: float) -> None:
    assert max(compared(cell, sizes, kind, "cuda") for sizes in SIZES.values()) < bound


def test_without_a_gpu_the_plain_layer_runs() -> None:
    x, states, weights = drawn("cifg", SIZES["padded"])
    torch.testing.assert_close(
        gated_layer("cifg", x, tuple(states), weights), run_gated("cifg", x, tuple(states), weights)
    )
