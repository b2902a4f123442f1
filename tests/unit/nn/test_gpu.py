"""What a GPU can run: tiles that fit in its memory, and one line, once, where a run is slower than it need be."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from torch import Tensor

from foreword.nn import gpu, mogrifier_gpu, recurrent_network
from foreword.nn.mogrifier_gpu import kernels_apply, note_padding
from foreword.nn.recurrent_network import RecurrentNetwork, Variant

SMALL, AMPERE, HOPPER = 99 << 10, 163 << 10, 227 << 10
"""Shared memory of a program at compute capability 8.6, 8.9 and 12.0; at 8.0; and at 9.0."""


@pytest.fixture(autouse=True)
def _nothing_said_yet() -> Iterator[None]:
    cached = (gpu.warn_once, gpu.runs_kernels, gpu.memory_per_program)
    for each in cached:
        each.cache_clear()
    yield
    for each in cached:
        each.cache_clear()


def said(work: object, times: int = 3) -> list[str]:
    """Return the warnings of several calls."""
    assert callable(work)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(times):
            work()
    return [str(each.message) for each in caught]


# Memory


@pytest.mark.parametrize("memory", [HOPPER, AMPERE])
def test_tiles_of_large_gpus_are_those_that_were_measured(memory: int) -> None:
    tiles = mogrifier_gpu._tiles(64, 896, False, memory)
    found = [(tile.texts, tile.units, tile.inner, tile.stages) for tile in (tiles.round, tiles.cell, tiles.gates)]
    assert found == [(64, 16, 128, 7), (64, 16, 128, 4), (64, 32, 128, 6)]


@pytest.mark.parametrize("memory", [SMALL, AMPERE, HOPPER])
@pytest.mark.parametrize("exact", [False, True], ids=["half", "float32"])
@pytest.mark.parametrize("units", [64, 896, 1024])
@pytest.mark.parametrize("texts", [16, 32, 64, 128])
def test_programs_fit_in_the_memory_of_a_gpu(texts: int, units: int, exact: bool, memory: int) -> None:
    """A stage holds BK numbers of each text and of each unit, four gates of a unit in the cell."""
    tiles, size = mogrifier_gpu._tiles(texts, units, exact, memory), 4 if exact else 2
    for tile, gates in ((tiles.round, 1), (tiles.cell, 4), (tiles.gates, 1)):
        assert tile.stages >= 2
        assert tile.stages * tile.inner * (tile.texts + gates * tile.units) * size < memory
        assert units % tile.inner == units % tile.units == texts % tile.texts == 0


def test_a_small_gpu_gets_shorter_tiles_with_most_of_their_stages() -> None:
    tiles = mogrifier_gpu._tiles(64, 896, False, SMALL)
    assert [(tile.inner, tile.stages) for tile in (tiles.round, tiles.cell, tiles.gates)] == [(64, 8), (64, 4), (64, 6)]
    tiles = mogrifier_gpu._tiles(64, 896, True, SMALL)
    assert [tile.stages for tile in (tiles.round, tiles.cell, tiles.gates)] == [4, 2, 3]


def test_the_memory_is_what_the_device_says(monkeypatch: pytest.MonkeyPatch) -> None:
    device = SimpleNamespace(shared_memory_per_block_optin=SMALL)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: device)
    assert gpu.memory_per_program("cuda", 0) == SMALL
    assert gpu.memory_per_program("cpu") == HOPPER
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace())
    assert gpu.memory_per_program("cuda", 1) == HOPPER


# One line, once


def on_gpu(index: int = 0) -> Tensor:
    """Return what looks like a tensor on a GPU."""
    return cast(Tensor, SimpleNamespace(dtype=torch.float16, device=torch.device("cuda", index)))


@pytest.mark.parametrize(
    ("capability", "installed", "wanted"),
    [
        ((7, 5), True, ["layers run by PyTorch, which is slower: compute capability 8.0 or more is needed"]),
        ((9, 0), False, ["layers run by PyTorch, which is slower: Triton is not installed"]),
        ((7, 0), False, ["layers run by PyTorch, which is slower: compute capability 8.0 or more is needed"]),
        ((9, 0), True, []),
    ],
    ids=["old GPU", "no Triton", "neither", "both"],
)
def test_a_gpu_that_cannot_run_kernels_is_named_once(
    capability: tuple[int, int], installed: bool, wanted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two GPUs of a machine say it once together."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: capability)
    monkeypatch.setattr(gpu, "triton", object() if installed else None)
    assert said(lambda: (kernels_apply(on_gpu()), kernels_apply(on_gpu(1)))) == wanted
    assert kernels_apply(on_gpu()) is (not wanted)


@pytest.mark.parametrize(
    ("units", "texts", "wanted"),
    [
        (896, 64, []),
        (650, 0, ["layers of 650 units take as long as 704 on a GPU: set hidden (or units) to a multiple of 64"]),
        (896, 80, ["batches of 80 take as long as 128 on a GPU: set batch to a multiple of 64"]),
        (896, 20, ["batches of 20 take as long as 32 on a GPU: set batch to a multiple of 16"]),
        (20, 5, []),
    ],
)
def test_sizes_that_tiles_do_not_take_are_named_once(units: int, texts: int, wanted: list[str]) -> None:
    assert said(lambda: note_padding(units, texts)) == wanted


UNEVEN = RecurrentNetwork(12, 8, 20, 2, mogrify=2)


@pytest.mark.parametrize(
    ("network", "kernels", "wanted"),
    [
        (
            UNEVEN,
            True,
            ["layers of 8 and 20 units run step by step, many times slower: set embedding and hidden alike"],
        ),
        (UNEVEN, False, []),
        (replace(UNEVEN, mogrify=0), True, []),
        (replace(UNEVEN, mogrify=0, variant=Variant(summed=True)), True, []),
        (replace(UNEVEN, embedding=20), True, []),
    ],
    ids=["uneven", "uneven on a CPU", "cuDNN runs it", "cuDNN and a sum", "even"],
)
def test_layers_of_several_sizes_that_run_step_by_step_are_named_once(
    network: RecurrentNetwork, kernels: bool, wanted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurrent_network, "kernels_apply", lambda x: kernels)
    x = torch.zeros(3, 4, network.embedding, dtype=torch.float16)
    assert said(lambda: network._by_kernels(x, None)) == wanted
