"""``RecurrentNetwork`` by the Triton kernels, as the training engine runs it on a GPU, against the plain layers.

In float32 in Triton's interpreter, which needs no GPU, against the plain layers in float64: outputs, states and the
gradients of all weights.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import Mock, patch

import pytest
import torch
from tests.kernels import masks_as
from torch import Tensor

from foreword.nn import recurrent_network
from foreword.nn.dropout import NO_DROPOUT, Dropout
from foreword.nn.gated_gpu import gated_stack
from foreword.nn.mogrifier_gpu import run_stack
from foreword.nn.network import BIAS, OUTPUT
from foreword.nn.recurrent_layer import CELLS, states_of
from foreword.nn.recurrent_network import RecurrentNetwork, Variant

NETWORK = RecurrentNetwork(12, 20, 20, 2, mogrify=4)
GATED = replace(NETWORK, cell="cifg", mogrify=0)
DROPPED = Dropout(words=0.2, input=0.3, between=0.3, output=0.3, recurrent=0.0)
DROPCONNECT = replace(DROPPED, recurrent=0.3)

CASES: dict[str, tuple[RecurrentNetwork, Dropout]] = {
    "rounds": (NETWORK, NO_DROPOUT),
    "low rank": (replace(NETWORK, variant=Variant(rank=3)), NO_DROPOUT),
    "bias": (replace(NETWORK, variant=Variant(round_bias=True)), NO_DROPOUT),
    "cap": (replace(NETWORK, mogrify=0, variant=Variant(capped=True)), NO_DROPOUT),
    "sum of layers": (replace(NETWORK, variant=Variant(summed=True)), NO_DROPOUT),
    "state dropout": (replace(NETWORK, mogrify=0), replace(DROPPED, state=0.3)),
    "DropConnect": (replace(NETWORK, mogrify=1), DROPCONNECT),
    "fresh masks": (replace(NETWORK, mogrify=1), replace(DROPPED, fresh=True)),
    "one layer": (replace(NETWORK, layers=1, mogrify=3), DROPPED),
    "everything": (
        replace(NETWORK, layers=3, mogrify=3, variant=Variant(3, True, True, True, True)),
        replace(DROPPED, state=0.3, recurrent=0.3, fresh=True),
    ),
    "gated, no masks": (replace(GATED, cell="peephole"), NO_DROPOUT),
    "gated, wide embedding, DropConnect": (replace(GATED, embedding=24, last=20, tied=False), DROPCONNECT),
    "gated, fresh masks": (replace(GATED, layers=3, cell="gru-before"), replace(DROPPED, fresh=True)),
}
STEPS, TEXTS = 2, 5


def interpret(program: str, *arguments: str) -> None:
    """Run a program in Triton's interpreter, in a process of its own: Triton reads the setting when it is imported."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": path}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def compared(name: str) -> float:
    """Return the largest relative error of outputs, states and gradients, the loss weighing every number."""
    network, dropout = CASES[name]
    is_gated = network.cell != "lstm"
    random = torch.Generator().manual_seed(1)
    shapes = network.tensors()
    drawn = {name: torch.empty(shape) for name, shape in shapes.items()}
    network.initialise(drawn, random)
    drawn = {name: part + 0.2 * torch.randn(part.shape, generator=random) for name, part in drawn.items()}
    ids = torch.randint(0, network.vocab, (STEPS, TEXTS), generator=random)
    state = [torch.randn(part.shape, generator=random) / 2 for part in network.start(TEXTS, torch.empty(0))]
    masks = network.masks(dropout, TEXTS, torch.empty(0), random, steps=STEPS)
    found = []
    for kind, by_kernels in ((torch.float64, False), (torch.float32, True)):
        weights = {name: part.to(kind).requires_grad_() for name, part in drawn.items()}
        begun = tuple(part.to(kind) for part in state)
        with (
            patch.object(recurrent_network, "kernels_apply", lambda x, here=by_kernels: here),
            patch.object(recurrent_network, "run_stack", Mock(wraps=run_stack)) as launched,
            patch.object(recurrent_network, "gated_stack", Mock(wraps=gated_stack)) as gated,
        ):
            out, after = network.read(weights, ids, begun, masks_as(masks, kind))
        assert (launched.call_count, gated.call_count) == (by_kernels * (not is_gated), by_kernels * is_gated)
        results = [out, *after]
        shares = torch.Generator().manual_seed(2)
        sums = [(part * torch.randn(part.shape, generator=shares).to(kind)).sum() for part in results]
        used = [part for name, part in weights.items() if name not in (BIAS, OUTPUT)]
        found.append([*results, *torch.autograd.grad(torch.stack(sums).sum(), used)])
    exact, ours = found
    errors = [(a.double() - b).detach().norm() / b.detach().norm() for a, b in zip(ours, exact, strict=True)]
    return float(torch.stack(errors).max())  # NaN if one is


def two_windows(network: RecurrentNetwork, kind: torch.dtype) -> tuple[list[Tensor], list[Tensor]]:
    """Return outputs and states of four steps at once, and in two windows, from the network's own start."""
    random = torch.Generator().manual_seed(1)
    weights = {name: torch.randn(shape, generator=random).to(kind) for name, shape in network.tensors().items()}
    ids = torch.randint(0, network.vocab, (2 * STEPS, TEXTS), generator=random)
    begun = network.start(TEXTS, weights[BIAS])
    out, last = network.read(weights, ids, begun)
    first, between = network.read(weights, ids[:STEPS], begun)
    second, after = network.read(weights, ids[STEPS:], between)
    assert [part.dtype for part in (*last, *after)] == 2 * [part.dtype for part in begun]
    assert out.dtype == kind
    return [out, *last], [torch.cat((first, second)), *after]


WITHOUT_KERNELS = {cell: replace(NETWORK, cell=cell, mogrify=0) for cell in CELLS if states_of(cell) > 1}
WITHOUT_KERNELS |= {"rounds": NETWORK, "cap": replace(NETWORK, variant=Variant(capped=True))}


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", WITHOUT_KERNELS)
def test_all_states_but_h_are_carried_in_float32_at_least(name: str, kind: torch.dtype) -> None:
    network = WITHOUT_KERNELS[name]
    wide = torch.float64 if kind == torch.float64 else torch.float32
    of_layer = [kind, *[wide] * (states_of(network.cell) - 1)]
    assert [part.dtype for part in network.start(TEXTS, torch.empty(0, dtype=kind))] == network.layers * of_layer
    for ours, theirs in zip(*two_windows(network, kind), strict=True):
        torch.testing.assert_close(ours, theirs)


WINDOWS = """
import torch
from unittest.mock import patch
from test_recurrent_network_gpu import GATED, NETWORK, replace, two_windows
from foreword.nn import recurrent_network
torch.set_num_threads(1)
for network in (NETWORK, GATED, replace(GATED, cell="slstm")):
    with patch.object(recurrent_network, "kernels_apply", lambda x: True):
        whole, windows = two_windows(network, torch.float16)
    assert all(torch.equal(a, b) for a, b in zip(whole, windows, strict=True)), network
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed: torch brings it where there is a GPU")
def test_nothing_is_rounded_from_window_to_window_in_half_precision() -> None:
    """What the kernels carry from step to step, they carry from window to window: both give the same numbers."""
    interpret(WINDOWS)


INTERPRETED = """
import sys, torch
from test_recurrent_network_gpu import compared
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = True  # with NaN
for name in sys.argv[1:]:
    worst = compared(name)
    assert worst < 2e-6, (name, worst)
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed: torch brings it where there is a GPU")
@pytest.mark.long
def test_the_engine_s_path_in_triton_s_interpreter() -> None:
    interpret(INTERPRETED, *CASES)


@pytest.mark.parametrize(
    ("network", "kind", "wanted"),
    [
        (NETWORK, torch.float16, True),
        (replace(NETWORK, mogrify=0), torch.float16, False),
        (replace(NETWORK, mogrify=0), torch.bfloat16, True),
        (replace(NETWORK, mogrify=0, layers=1), torch.bfloat16, False),
        (replace(NETWORK, mogrify=0, cell="gru"), torch.bfloat16, False),
    ],
    ids=["rounds", "plain", "plain bfloat16", "one layer", "GRU"],
)
def test_which_networks_run_by_the_kernels(
    network: RecurrentNetwork, kind: torch.dtype, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cuDNN keeps what it runs as fast."""
    monkeypatch.setattr(recurrent_network, "kernels_apply", lambda x: True)
    assert network._by_kernels(torch.zeros(STEPS, TEXTS, 20, dtype=kind), None) is wanted


@pytest.mark.parametrize(
    ("network", "wanted"),
    [
        (GATED, True),
        (replace(GATED, embedding=24, last=20, tied=False), True),
        (replace(GATED, layers=1), False),
        (replace(GATED, hidden=24), False),
        (replace(GATED, cell="gru"), False),
        (replace(GATED, cell="lstm"), False),
        (replace(GATED, variant=Variant(summed=True)), False),
    ],
    ids=["cifg", "wide embedding", "one layer", "two widths", "cuDNN's GRU", "LSTM", "sum of layers"],
)
def test_which_gated_layers_run_as_a_wavefront(
    network: RecurrentNetwork, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layers of other sizes run one after the other."""
    x = torch.zeros(STEPS, TEXTS, network.embedding)
    assert not network._stacks_gated(x, None)
    monkeypatch.setattr(recurrent_network, "kernels_apply", lambda x: True)
    assert network._stacks_gated(x, None) is wanted
    assert not network._stacks_gated(x[:0], None)
