"""Gated cells: the plain ones against other formulas, and the Triton kernels against autograd through the plain ones.

The kernels run in float32 in Triton's interpreter, which needs no GPU, within 1e-6 of float64; in half precision on a
GPU.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.kernels import compiled_for_hopper
from torch import Tensor

from foreword.nn import recurrent_layer
from foreword.nn.cells import GRUCell, run
from foreword.nn.gated import GATED, run_gated
from foreword.nn.gated_gpu import BACKWARD, gated_layer, gated_stack
from foreword.nn.layers import gru
from foreword.nn.recurrent_layer import run_layer

HERE = torch.cuda.is_available() and find_spec("triton") is not None
on_gpu = pytest.mark.skipif(not HERE, reason="needs a GPU and Triton, and torch finds none here")

SIZES = (3, 5, 7, 20)
"""Steps, texts, inputs, units: none of them is a multiple of a tile."""

CASES = {
    "one layer": (1, SIZES, 0),
    "whole tiles": (1, (2, 16, 10, 64), 0),
    "two layers, a mask per step": (2, SIZES, 3),
    "three layers, one mask": (3, (2, 17, 20, 20), 1),
    "three layers, one step": (3, (1, 3, 4, 9), 0),
}
"""Layers, their sizes, and the steps of the masks between them, 0 where there are none."""


def drawn(cell: str, sizes: tuple[int, int, int, int], seed: int = 0) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Return inputs, states and weights."""
    steps, texts, inputs, units = sizes
    random, facts = torch.Generator().manual_seed(units + seed), GATED[cell]

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


def drawn_stack(
    cell: str, layers: int, sizes: tuple[int, int, int, int]
) -> tuple[Tensor, list[Tensor], list[list[Tensor]]]:
    """Return inputs, the states of all layers, and the weights of each."""
    steps, texts, _, units = sizes
    x, states, weights = drawn(cell, sizes)
    stacked = [weights]
    for layer in range(1, layers):
        _, more, of_layer = drawn(cell, (steps, texts, units, units), layer)
        of_layer[0] *= units**-0.5
        states += more
        stacked.append(of_layer)
    return x, states, stacked


def test_a_peephole_lstm_that_sees_nothing_is_an_lstm() -> None:
    x, states, weights = drawn("peephole", SIZES)
    weights[4].zero_()
    ours = run_gated("peephole", x, tuple(states), weights)
    theirs = torch._VF.lstm(
        x, (states[0][None], states[1][None]), weights[:4], True, 1, 0.0, False, False, False
    )  # fmt: skip
    torch.testing.assert_close(ours, (theirs[0], theirs[1][0], theirs[2][0]))


def test_a_coupled_gate_is_an_lstm_whose_gates_sum_to_one() -> None:
    x, states, weights = drawn("cifg", SIZES)
    units = len(states[0][0])

    def with_input_gate(part: Tensor) -> Tensor:
        return torch.cat((-part[:units], part))  # 1 − σ(a) = σ(−a)

    ours = run_gated("cifg", x, tuple(states), weights)
    four = [with_input_gate(part) for part in weights]
    theirs = torch._VF.lstm(x, (states[0][None], states[1][None]), four, True, 1, 0.0, False, False, False)
    torch.testing.assert_close(ours, (theirs[0], theirs[1][0], theirs[2][0]))


def test_an_slstm_is_its_unstabilised_formula() -> None:
    x, states, weights = drawn("slstm", SIZES)
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


def with_gradients(x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
    """Return the outputs of an sLSTM, the gradients of its inputs and weights, then its last states."""
    given = [part.detach().requires_grad_() for part in (x, *weights)]
    out, *last = run_gated("slstm", given[0], tuple(states), given[1:])
    shares = torch.randn(out.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    gradients = torch.autograd.grad((out * shares.to(out)).sum(), given)
    return [part.detach() for part in (out, *gradients, *last)]


@pytest.mark.parametrize("zero", [False, True])
def test_an_slstm_does_not_overflow(zero: bool) -> None:
    x, states, weights = drawn("slstm", SIZES)
    begun = [torch.zeros_like(part) if zero else part for part in states]
    single = 1e4 * x.float(), [part.float() for part in begun], [part.float() for part in weights]
    assert all(part.isfinite().all() for part in with_gradients(*single))


def shifted(weights: Sequence[Tensor], shift: float) -> list[Tensor]:
    """Return the weights of an sLSTM whose input gates have exponents that are higher by ``shift``."""
    w_x, w_h, b_x, b_h = (part.clone() for part in weights)
    b_x[: len(b_x) // 4] += shift
    return [w_x, w_h, b_x, b_h]


@pytest.mark.parametrize(
    ("kind", "shift", "error"), [(torch.float32, -200.0, 1e-4), (torch.float64, -2000.0, 1e-10)], ids=str
)
def test_an_slstm_that_has_seen_nothing_averages_what_it_sees(kind: torch.dtype, shift: float, error: float) -> None:
    """h is a weighted mean of what was written: a factor of all weights, which is e^shift, changes no gradient."""
    x, states, weights = drawn("slstm", SIZES)
    zeros = [torch.zeros_like(part) for part in states]
    wanted = with_gradients(x, zeros, shifted(weights, 20.0))
    cast = [[part.to(kind) for part in each] for each in ([x], zeros, shifted(weights, shift))]
    found = with_gradients(cast[0][0], cast[1], cast[2])
    for ours, theirs in zip(found[:-1], wanted[:-1], strict=True):
        torch.testing.assert_close(ours.double(), theirs, atol=error, rtol=error)
    torch.testing.assert_close(found[-1].double(), wanted[-1] + shift - 20, atol=10 * error, rtol=error)


def test_the_gradients_of_an_slstm_that_has_seen_nothing_are_finite_differences() -> None:
    x, states, weights = drawn("slstm", (3, 2, 3, 4))
    zeros = tuple(torch.zeros_like(part) for part in states)
    given = [part.requires_grad_() for part in (x, *shifted(weights, -2000.0))]
    assert torch.autograd.gradcheck(lambda x, *rest: run_gated("slstm", x, zeros, rest)[0], given)


def test_rows_of_an_slstm_that_have_seen_nothing_do_not_change_the_others() -> None:
    x, states, weights = drawn("slstm", SIZES)
    low = shifted(weights, -2000.0)
    mixed = [part.clone() for part in states]
    for part in mixed:
        part[::2] = 0
    found, full, none = (
        run_gated("slstm", x, tuple(begun), low) for begun in (mixed, states, [torch.zeros_like(p) for p in states])
    )
    for ours, seen, unseen in zip(found, full, none, strict=True):
        assert torch.equal(ours[..., 1::2, :], seen[..., 1::2, :])
        assert torch.equal(ours[..., ::2, :], unseen[..., ::2, :])


def test_l07_a_gru_that_resets_before_its_product_is_the_cell_in_numpy() -> None:
    x, states, weights = drawn("gru-before", SIZES)
    cell = GRUCell(7, 20, reset="before")
    cell.weights = dict(zip(("W_x", "W_h", "b", "b_h"), (part.numpy() for part in weights), strict=True))
    wanted, (last,), _ = run(cell, x.numpy(), (states[0].numpy(),))
    out, h = run_gated("gru-before", x, tuple(states), weights)
    np.testing.assert_allclose(out.numpy(), wanted, atol=1e-12)
    np.testing.assert_allclose(h.numpy(), last, atol=1e-12)


def test_a_gru_that_resets_after_its_product_is_torch_s() -> None:
    x, states, weights = drawn("gru", SIZES)
    wanted, last = torch._VF.gru(x, states[0][None], weights, True, 1, 0.0, False, False, False)
    torch.testing.assert_close(run_gated("gru", x, tuple(states), weights), (wanted, last[0]))


@pytest.mark.parametrize(("cudnn", "kernel"), [(True, False), (False, True)])
def test_a_gru_layer_runs_by_our_kernel_where_cudnn_is_off(
    cudnn: bool, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, states, weights = drawn("gru", SIZES)
    called: list[str] = []
    wanted = gru(x, states[0], weights)

    def gated(cell: str, *given: Any) -> tuple[Tensor, ...]:
        called.append(cell)
        return run_gated(cell, *given)

    monkeypatch.setattr(recurrent_layer, "gated_layer", gated)
    monkeypatch.setattr(recurrent_layer, "torch_runs_gru", lambda x: cudnn)
    torch.testing.assert_close(run_layer("gru", x, tuple(states), weights), wanted)
    assert called == ["gru"] * kernel


def test_normalised_products_do_not_change_with_the_size_of_weights() -> None:
    x, states, weights = drawn("ln-lstm", SIZES)
    larger = [10 * weights[0], 10 * weights[1], *weights[2:]]
    ours, theirs = (run_gated("ln-lstm", x, tuple(states), each) for each in (weights, larger))
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


# Kernels


def plain(
    cell: str, x: Tensor, states: Sequence[Tensor], layers: list[list[Tensor]], between: Tensor | None
) -> tuple[Tensor, ...]:
    """Run a stack layer by layer."""
    count, after = GATED[cell].states, list[Tensor]()
    for number, weights in enumerate(layers):
        x = x if between is None or number == 0 else x * between[number - 1]
        x, *last = run_gated(cell, x, tuple(states[count * number : count * (number + 1)]), weights)
        after += last
    return x, *after


def compared(name: str, cell: str, kind: torch.dtype, device: str, shift: float = 0.0) -> float:
    """Return the largest relative error of outputs, states and gradients, NaN if one is; the loss weighs all but m.

    shift: of the exponents of an sLSTM's input gates, of which then every second text has seen nothing.
    """
    layers, sizes, mask_steps = CASES[name]
    x, states, weights = drawn_stack(cell, layers, sizes)
    if shift:
        weights = [shifted(each, shift) for each in weights]
        for part in states:
            part[::2] = 0
    between = None
    if mask_steps:
        shape = (layers - 1, mask_steps, sizes[1], sizes[3])
        between = (torch.rand(shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64) > 0.3) / 0.5
        between = between.to(device)
    exact = [part.to(device).requires_grad_() for part in (x, *states, *(part for each in weights for part in each))]
    ours = [part.detach().to(kind).requires_grad_() for part in exact]

    def run(function: Any, given: list[Tensor], mask: Tensor | None) -> tuple[list[Tensor], tuple[Tensor, ...]]:
        end, each = 1 + len(states), len(weights[0])
        by_layer = [given[at : at + each] for at in range(end, len(given), each)]
        found = function(cell, given[0], tuple(given[1:end]), by_layer, mask)
        whole = [part for at, part in enumerate(found) if cell != "slstm" or at == 0 or at % 4]
        shares = torch.Generator().manual_seed(3)
        sums = [(part * torch.randn(part.shape, generator=shares).to(part)).sum() for part in whole]
        return whole, torch.autograd.grad(torch.stack(sums).sum(), given, allow_unused=True)

    wanted, theirs = run(plain, exact, between)
    found, mine = run(gated_stack, ours, None if between is None else between.to(kind))
    pairs = [*zip(found, wanted, strict=True), *zip(mine, theirs, strict=True)]
    errors = [(a.detach().double() - b.detach()).norm() / b.detach().norm() for a, b in pairs if b is not None]
    return float(torch.stack(errors).max())


def two_windows(cell: str, other_kind: torch.dtype) -> tuple[list[Tensor], list[Tensor]]:
    """Return states after two steps of float16 at once, and in two windows; other_kind: of all but h between them."""
    x, states, weights = drawn_stack(cell, 2, (2, 5, 7, 20))
    count, low = GATED[cell].states, x.half()
    rest = [[part.half() for part in each] for each in weights]
    begun = tuple(part.to(other_kind if at % count else torch.float16) for at, part in enumerate(states))
    _, *whole = gated_stack(cell, low, begun, rest)
    _, *between = gated_stack(cell, low[:1], begun, rest)
    _, *after = gated_stack(cell, low[1:], tuple(between), rest)
    assert all(part.dtype == first.dtype for part, first in zip(after, begun, strict=True)), cell
    return whole, after


INTERPRETED = """
import sys, torch
from test_gated import compared, two_windows
from foreword.nn.gated import GATED
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = True  # with NaN: whatever a kernel did not write shows
for cell in GATED:
    for name in sys.argv[1:]:
        worst = compared(name, cell, torch.float32, "cpu")
        assert worst < 1e-6, (cell, name, worst)
        if cell == "slstm":
            worst = compared(name, cell, torch.float32, "cpu", -200.0)
            assert worst < 1e-5, ("an sLSTM that has seen nothing", name, worst)
    whole, windows = two_windows(cell, torch.float32)
    assert all(torch.equal(a, b) for a, b in zip(whole, windows, strict=True)), cell
two_windows("cifg", torch.float16)
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed: torch brings it where there is a GPU")
@pytest.mark.long
def test_every_gradient_in_triton_s_interpreter() -> None:
    """L07 and others: forward and backward, in a process of its own: Triton reads the setting when it is imported."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": path}
    command = [sys.executable, "-c", INTERPRETED, *CASES]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


HALF = ("h", "between", "d_out", "d_a", "d_s")
"""Arguments of the backward kernels that are in half precision; the other arrays are float32."""


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed: torch brings it where there is a GPU")
@pytest.mark.parametrize("cell", GATED)
def test_what_a_backward_kernel_clears_has_been_read_by_all_threads(cell: str) -> None:
    """A load and a store of the same numbers have different threads in half precision: a barrier is between them."""
    kernel = BACKWARD[cell]
    block = {"UNITS": 20, "BLOCK": 64} if cell == "ln-lstm" else {"BLOCK": 1024}
    sizes = {"LAYERS": 2, "MASKS": 1, "APART": 1, "B": 16, "H": 64, "DEPENDENT": 0, **block}
    numbers = dict.fromkeys(("wave", "lowest", "steps", "mask_steps"), "i32")
    kinds = dict.fromkeys(kernel.arg_names, "*fp32") | dict.fromkeys(HALF, "*fp16") | numbers
    code = compiled_for_hopper(kernel, kinds, sizes).asm["ptx"]
    done = re.findall(r"\b(ld\.global|st\.global|bar\.sync)", code)
    assert done[0] == "ld.global"
    assert done.index("bar.sync") < done.index("st.global")


@on_gpu
@pytest.mark.filterwarnings("ignore::UserWarning")  # sizes that are padded
@pytest.mark.parametrize("cell", GATED)
@pytest.mark.parametrize(
    ("kind", "bound"), [(torch.float32, 1e-5), (torch.float16, 2e-2), (torch.bfloat16, 6e-2)], ids=str
)
def test_half_precision_on_a_gpu(cell: str, kind: torch.dtype, bound: float) -> None:
    assert all(compared(name, cell, kind, "cuda") < bound for name in CASES)


@on_gpu
@pytest.mark.filterwarnings("ignore::UserWarning")  # sizes that are padded
def test_an_slstm_that_has_seen_nothing_on_a_gpu() -> None:
    assert all(compared(name, "slstm", torch.float32, "cuda", -200.0) < 1e-4 for name in CASES)


def test_without_a_gpu_the_plain_layer_runs() -> None:
    x, states, weights = drawn("cifg", SIZES)
    torch.testing.assert_close(
        gated_layer("cifg", x, tuple(states), weights), run_gated("cifg", x, tuple(states), weights)
    )
