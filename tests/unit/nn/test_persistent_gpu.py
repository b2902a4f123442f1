"""An LSTM layer in one launch, compared with the plain layer: on a GPU, and around the kernels without one."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from tests.kernels import compiled_for_hopper, masks_as
from torch import Tensor

from foreword.nn import layers, persistent_gpu, recurrent_network
from foreword.nn.dropout import NO_DROPOUT, Dropout
from foreword.nn.gpu import LARGEST_MEMORY
from foreword.nn.layers import lstm, mogrifier_lstm
from foreword.nn.network import BIAS, OUTPUT
from foreword.nn.persistent_gpu import PROGRAM_WARPS, persistent_lstm, runs_persistent, texts_of_group
from foreword.nn.recurrent_network import RecurrentNetwork, Variant

H200 = 132
"""Multiprocessors of the GPU that the kernels were written for."""

HERE = torch.cuda.is_available() and find_spec("triton") is not None and torch.cuda.get_device_capability()[0] == 9
on_gpu = pytest.mark.skipif(not HERE, reason="needs a Hopper GPU and Triton, and torch finds none here")
needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="Triton is not installed: torch brings it where there is a GPU"
)

Arguments = tuple[Tensor, Tensor, Tensor, list[Tensor], Tensor | None]


def drawn(steps: int, texts: int, inputs: int, units: int, masked: bool) -> Arguments:
    """Return inputs, states, weights and a mask of states in float64."""
    random = torch.Generator().manual_seed(units)

    def normal(*shape: int, size: float = 0.5) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64) * size

    weights = [
        normal(4 * units, inputs, size=inputs**-0.5), normal(4 * units, units, size=units**-0.5), normal(4 * units),
        normal(4 * units),
    ]  # fmt: skip
    mask = (normal(texts, units) > -0.25).double() / 0.7 if masked else None
    return normal(steps, texts, inputs), normal(texts, units), normal(texts, units), weights, mask


def gradients(run: Callable[[], tuple[Tensor, ...]], leaves: list[Tensor]) -> list[Tensor]:
    """Return outputs, states and the gradients of a sum of all of them with fixed factors."""
    found = run()
    random = torch.Generator().manual_seed(0)
    total = torch.zeros((), dtype=torch.float64, device=found[0].device)
    for part in found:
        factors = torch.randn(part.shape, generator=random, dtype=torch.float64).to(part.device)
        total = total + (part.double() * factors).sum()
    return [*(part.detach() for part in found), *torch.autograd.grad(total, leaves)]


def by_kernels(arguments: Arguments, kind: torch.dtype, device: str, *, capped: bool) -> list[Tensor]:
    """Return what ``gradients`` finds by the kernels."""
    *states, of_layer, mask = arguments
    x, h, c, *weights = leaves = [part.to(device, kind).requires_grad_() for part in (*states, *of_layer)]
    kept = None if mask is None else mask.to(device, kind)
    return gradients(lambda: persistent_lstm(x, h, c, weights, kept, capped=capped), leaves)


def plainly(arguments: Arguments, kind: torch.dtype, device: str, *, capped: bool) -> list[Tensor]:
    """Return what ``gradients`` finds by the plain layer in float64, from the same rounded numbers."""
    *states, weights, mask = arguments
    x, h, c, *of_layer = leaves = [part.to(device, kind).double().requires_grad_() for part in (*states, *weights)]
    kept = None if mask is None else mask.to(device, kind).double()
    return gradients(lambda: mogrifier_lstm(x, h, c, of_layer, [], capped=capped, state_mask=kept), leaves)


def compared(sizes: tuple[int, int, int, int], masked: bool, kind: torch.dtype, device: str, *, capped: bool) -> float:
    """Return how far the kernels are from the plain layer."""
    arguments = drawn(*sizes, masked)
    return furthest(by_kernels(arguments, kind, device, capped=capped), plainly(arguments, kind, device, capped=capped))


def furthest(ours: list[Tensor], plain: list[Tensor]) -> float:
    """Return the largest distance of two lists of tensors, relative to the second's lengths; NaN counts."""
    pairs = zip(ours, plain, strict=True)
    far = torch.stack([(mine.double() - other.double()).norm() / other.double().norm() for mine, other in pairs])
    return float(far.nan_to_num(torch.inf).max())


def plain_forward(
    gates: Tensor, weight: Tensor, states: Tensor, cells: Tensor, out: Tensor, mask: Tensor | None, capped: bool
) -> None:
    """Do what the forward kernel is documented to do."""
    for t in range(len(gates)):
        i, f, g, o = (gates[t] + states[t] @ weight.T).chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        cells[t + 1] = f * cells[t] + (torch.minimum(1 - f, i) if capped else i) * g
        state = o * cells[t + 1].to(o.dtype).tanh()
        states[t + 1] = state if mask is None else state * mask
        out[t] = state
        gates[t] = torch.cat([i, f, g, o], 1)


def plain_backward(
    d_out: Tensor, weight: Tensor, cells: Tensor, gates: Tensor, d_c: Tensor, mask: Tensor | None, capped: bool
) -> Tensor:
    """Do what the backward kernel is documented to do."""
    later = torch.zeros_like(d_out[0])
    for t in reversed(range(len(gates))):
        i, f, g, o = gates[t].chunk(4, 1)
        d_state = d_out[t] + (later if mask is None else later * mask)
        now = cells[t + 1].to(o.dtype).tanh()
        d_cell = d_c.to(o.dtype) + d_state * o * (1 - now**2)
        d_i, d_f, write = d_cell * g, d_cell * cells[t], i
        if capped:
            over = 1 - f < i
            d_f, d_i, write = d_f - d_i * over, d_i * ~over, torch.minimum(1 - f, i)
        d_c.copy_(d_cell * f)
        gates[t] = torch.cat(
            [d_i * i * (1 - i), d_f * f * (1 - f), d_cell * write * (1 - g**2), d_state * now * o * (1 - o)], 1
        )
        later = gates[t] @ weight
    return gates.sum((0, 1))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("capped", [False, True])
def test_gradients_around_the_kernels(masked: bool, capped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernels' work done plainly, products before and after it give the plain layer's gradients."""
    monkeypatch.setattr(persistent_gpu, "launch_forward", plain_forward)
    monkeypatch.setattr(persistent_gpu, "launch_backward", plain_backward)
    assert compared((4, 3, 5, 6), masked, torch.float64, "cpu", capped=capped) < 1e-6  # cells are float32


def test_a_second_backward_pass_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one writes gradients over the gates."""
    monkeypatch.setattr(persistent_gpu, "launch_forward", plain_forward)
    monkeypatch.setattr(persistent_gpu, "launch_backward", plain_backward)
    x, h, c, weights, _ = drawn(2, 3, 4, 6, False)
    out, _, _ = persistent_lstm(x.requires_grad_(), h, c, weights)
    torch.autograd.grad(out.sum(), x, retain_graph=True)
    with pytest.raises(RuntimeError, match="one backward pass"):
        torch.autograd.grad(out.sum(), x)


def read_network(sizes: tuple[int, int, int], kind: torch.dtype, device: str, dropout: Dropout) -> list[Tensor]:
    """Return outputs, states and gradients of a network with a capped gate, whose softmax reads the sum of layers."""
    steps, texts, units = sizes
    network = RecurrentNetwork(12, units, units, 2, variant=Variant(capped=dropout.state > 0, summed=True))
    random = torch.Generator().manual_seed(1)
    drawn = {name: torch.empty(shape) for name, shape in network.tensors().items()}
    network.initialise(drawn, random)
    weights = {name: part.to(device, kind).requires_grad_() for name, part in drawn.items()}
    ids = torch.randint(0, network.vocab, (steps, texts), generator=random).to(device)
    masks = masks_as(network.masks(dropout, texts, torch.empty(0), random, steps=steps), kind, device)
    start = network.start(texts, weights[BIAS])

    def run() -> tuple[Tensor, ...]:
        out, after = network.read(weights, ids, start, masks)
        return out, *after

    return gradients(run, [part for name, part in weights.items() if name not in (BIAS, OUTPUT)])


DROPOUTS = {"plain": NO_DROPOUT, "capped, states dropped": Dropout(0.2, 0.3, 0.3, 0.3, 0.0, state=0.3, fresh=True)}


@pytest.mark.parametrize("dropout", DROPOUTS.values(), ids=DROPOUTS)
def test_networks_around_the_kernels(dropout: Dropout, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network whose layers stay on the chip, with the kernels' work done plainly, is the network."""
    plain = read_network((4, 3, 6), torch.float64, "cpu", dropout)
    launched = Mock(wraps=plain_forward)
    monkeypatch.setattr(persistent_gpu, "launch_forward", launched)
    monkeypatch.setattr(persistent_gpu, "launch_backward", plain_backward)
    for module in (layers, recurrent_network):
        monkeypatch.setattr(module, "runs_persistent", lambda *_: True)
    assert furthest(read_network((4, 3, 6), torch.float64, "cpu", dropout), plain) < 1e-6
    assert launched.call_count == 2


@on_gpu
@pytest.mark.parametrize("dropout", DROPOUTS.values(), ids=DROPOUTS)
def test_networks_on_a_gpu(dropout: Dropout, monkeypatch: pytest.MonkeyPatch) -> None:
    launched = Mock(wraps=persistent_gpu.launch_forward)
    monkeypatch.setattr(persistent_gpu, "launch_forward", launched)
    ours = read_network((20, 32, 256), torch.float16, "cuda", dropout)
    assert launched.call_count == 2
    assert furthest(ours, read_network((20, 32, 256), torch.float64, "cuda", dropout)) < 2e-2
    assert launched.call_count == 2


@pytest.mark.parametrize(
    ("texts", "units", "expected"),
    [(64, 1024, 32), (32, 1024, 16), (16, 1024, 16), (128, 1024, 0), (64, 512, 16), (128, 512, 32), (64, 896, 32),
     (20, 512, 0), (0, 512, 0), (256, 512, 0), (96, 640, 32)],
)  # fmt: skip
def test_texts_are_shared_out_so_that_all_programs_run_at_once(texts: int, units: int, expected: int) -> None:
    found = texts_of_group(texts, units, H200)
    assert found == expected
    assert found == 0 or texts // found * units // 16 <= H200


def test_which_layers_run_in_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistent_gpu, "_multiprocessors", lambda *_: H200)
    x = torch.empty(70, 64, 400, dtype=torch.bfloat16)
    assert runs_persistent(x, 1024)
    assert not runs_persistent(x.float(), 1024)
    assert not runs_persistent(x[:4], 1024)  # few steps
    assert not runs_persistent(x, 1000)
    assert not runs_persistent(x, 1152)  # its weights do not fit
    assert not runs_persistent(x[:, :60], 1024)
    assert not runs_persistent(x[0], 1024)
    assert not runs_persistent(torch.empty(1, dtype=torch.bfloat16).expand(9_000, 64, 400), 1024)  # 32-bit numbers


@needs_triton
@pytest.mark.parametrize(
    ("capability", "version", "runs", "expected"),
    [(9, "3.6.0", 1, H200), (9, "3.7.1+git12", 1, H200), (9, "3.5.0", 1, 0), (9, "3.60.0", 1, 0), (10, "3.6.0", 1, 0),
     (8, "3.6.0", 1, 0), (9, "3.6.0", 2, 0)],
)  # fmt: skip
def test_which_machines_run_a_layer_in_one_launch(
    capability: int, version: str, runs: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hopper GPUs, with a Triton whose Gluon is the kernels', and a run that has the GPU for itself."""
    found = SimpleNamespace(major=capability, multi_processor_count=H200)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: found)
    monkeypatch.setattr(persistent_gpu, "runs_kernels", lambda *_: True)
    monkeypatch.setattr(persistent_gpu, "triton", SimpleNamespace(__version__=version))
    monkeypatch.setattr(persistent_gpu, "RUNS", runs)
    assert persistent_gpu._multiprocessors.__wrapped__("cuda", 0) == expected


def test_without_a_hopper_gpu_no_layer_runs_in_one_launch() -> None:
    assert not runs_persistent(torch.empty(70, 64, 400, dtype=torch.bfloat16), 1024)


@needs_triton
@pytest.mark.parametrize("name", ["forward", "backward"])
@pytest.mark.parametrize(
    ("units", "texts", "masked"), [(1024, 64, False), (896, 64, True), (256, 16, True), (512, 128, False)]
)
def test_kernels_compile_for_hopper(name: str, units: int, texts: int, masked: bool) -> None:
    """They fit in shared memory, multiply by the matrix units, and all threads wait for each other where they have to:
    before a counter is incremented, and between what each of them copied and the product of all of it.
    """
    from foreword.nn import kernels_persistent

    block = 128 if name == "forward" else 1 << (units // 8 - 1).bit_length()
    group = texts_of_group(texts, units, H200)
    sizes = {"CAPPED": masked, "MASK": masked, "H": units, "B": texts, "BM": group, "BK": block}
    kernel = getattr(kernels_persistent, name)
    kinds = dict.fromkeys(kernel.arg_names, "*bf16") | dict.fromkeys(("c", "d_c", "d_bias", "parts"), "*fp32")
    kinds |= dict.fromkeys(("counters", "gates_ready", "parts_ready"), "*i32") | {"steps": "i32"}
    made = compiled_for_hopper(kernel, kinds, sizes, num_warps=PROGRAM_WARPS, launch_cooperative_grid=True)
    assert made.metadata.shared <= LARGEST_MEMORY
    code = [line.strip() for line in made.asm["ptx"].splitlines()]
    assert any(line.startswith("wgmma.mma_async") for line in code)
    acts = re.findall(r"bar\.sync|st\.global|release|cp\.async\.wait_group|fence\.proxy\.async", "\n".join(code))
    before = [(act, acts[at - 1]) for at, act in enumerate(acts) if act in ("release", "fence.proxy.async")]
    assert [act for act, _ in before].count("release") == (1 if name == "forward" else 2)
    assert {last for _, last in before} == {"bar.sync"}
    copied = [acts[at + 1] for at, act in enumerate(acts) if act == "cp.async.wait_group"]
    assert set(copied) == {"bar.sync"}


SIZES = {"1,024 units": (12, 64, 1024, 1024), "few texts": (9, 16, 200, 512), "a block that is no power of two": (
    8, 64, 896, 896), "small": (70, 48, 320, 256), "long": (130, 32, 64, 768)}  # fmt: skip


@on_gpu
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("kind", "bound"), [(torch.float16, 2e-3), (torch.bfloat16, 1e-2)], ids=str)
def test_half_precision_on_a_gpu(
    sizes: tuple[int, int, int, int], masked: bool, kind: torch.dtype, bound: float
) -> None:
    assert compared(sizes, masked, kind, "cuda", capped=False) < bound


@on_gpu
@pytest.mark.parametrize(("kind", "bound"), [(torch.float16, 2e-2), (torch.bfloat16, 6e-2)], ids=str)
def test_a_capped_gate_on_a_gpu(kind: torch.dtype, bound: float) -> None:
    """Which of i and 1 − f is smaller can change when gates are rounded, so the bound is wider."""
    assert compared((9, 64, 896, 896), True, kind, "cuda", capped=True) < bound


@on_gpu
def test_sums_do_not_depend_on_who_comes_first() -> None:
    """Twenty runs give the same bits: no part of a sum is read before it is written, and their order is fixed."""
    arguments = drawn(40, 64, 1024, 1024, False)
    first = by_kernels(arguments, torch.bfloat16, "cuda", capped=False)
    for _ in range(20):
        again = by_kernels(arguments, torch.bfloat16, "cuda", capped=False)
        assert all(torch.equal(mine, other) for mine, other in zip(again, first, strict=True))


@on_gpu
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16], ids=str)
def test_the_lstm_of_a_network_runs_in_one_launch_on_a_gpu(kind: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    x, h, c, weights, _ = drawn(20, 64, 512, 1024, False)
    low = [part.to("cuda", kind) for part in (x, h, c, *weights)]
    ours = lstm(low[0], low[1], low[2], low[3:])
    assert runs_persistent(low[0], 1024)
    monkeypatch.setattr(persistent_gpu, "_multiprocessors", lambda *_: 0)
    theirs = lstm(low[0], low[1], low[2], low[3:])
    assert furthest([*ours], [*theirs]) < (2e-3 if kind == torch.float16 else 1e-2)
