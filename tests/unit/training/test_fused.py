"""The update in one Triton kernel against the operations it stands for: on a GPU, or in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from foreword.training.fused import can_fuse, fused_adam
from foreword.training.optimisers import Adam

HERE = torch.cuda.is_available() and find_spec("triton") is not None


def compared(device: str, beta1: float, decay: float) -> None:
    """Three updates, the second of which has a gradient that overflowed, with two averages and a float16 copy."""
    random = torch.Generator().manual_seed(0)
    start = torch.randn(5000, generator=random).to(device)
    ours, theirs = start.clone(), start.clone()
    mine, peer = Adam(ours, beta1), Adam(theirs, beta1)
    averages, expected = ours.repeat(2, 1), [theirs.clone(), theirs.clone()]
    copy, shares = torch.zeros(5000, dtype=torch.float16, device=device), torch.tensor([1.0, 0.25], device=device)
    update = fused_adam(ours, averages, copy, mine, decay)
    for step in range(1, 4):
        gradient = torch.randn(5000, generator=random).to(device)
        if step == 2:
            gradient[7] = torch.inf
        factor = torch.tensor(0.0 if step == 2 else 0.5, device=device)
        plan = torch.tensor([0.01, *mine.plan(0.01, step)], device=device)
        update(gradient.clone(), factor, plan, shares)
        theirs.mul_(1 - plan[0] * decay)
        peer.update(theirs, gradient.nan_to_num_(0.0, 0.0, 0.0), factor, plan[1:])
        for average, share in zip(expected, shares, strict=True):
            average.lerp_(theirs, share)
        torch.testing.assert_close(ours, theirs, rtol=2e-6, atol=2e-6)
        torch.testing.assert_close(averages, torch.stack(expected), rtol=2e-6, atol=2e-6)
        assert torch.equal(copy, ours.half())
    for name, moment in peer.moments.items():
        torch.testing.assert_close(mine.moments[name], moment, rtol=2e-6, atol=1e-7)


@pytest.mark.skipif(not HERE, reason="needs a GPU and Triton, and torch finds none here")
def test_on_a_gpu() -> None:
    for beta1, decay in ((0.0, 0.0), (0.9, 0.1)):
        compared("cuda", beta1, decay)


INTERPRETED = """
from test_fused import compared
for beta1, decay in ((0.0, 0.0), (0.9, 0.1)):
    compared("cpu", beta1, decay)
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed: torch brings it where there is a GPU")
def test_in_triton_s_interpreter() -> None:
    """In a process of its own: Triton reads the setting when it is imported."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", INTERPRETED], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_a_gpu_nothing_is_fused() -> None:
    assert not can_fuse(torch.zeros(3))
