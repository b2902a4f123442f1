"""Triton where it is installed: the language of our GPU kernels, and whether a device can run them.

PyTorch for CUDA brings Triton; PyTorch for a CPU does not, and everything falls back to the plain layers. With
``TRITON_INTERPRET=1`` in the environment kernels run on a CPU without being compiled, which is how they are tested.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from foreword.errors import SettingError

__all__ = [
    "INTERPRETED", "LARGEST_MEMORY", "RUNS", "jit", "launches_dependents", "memory_per_program", "runs_kernels",
    "runs_per_gpu", "take_saved", "tl", "triton", "warn_once",
]  # fmt: skip

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def runs_per_gpu(value: str) -> int:
    """Return the number of runs that share a GPU from what the environment says."""
    if not value.isascii() or not value.isdigit() or int(value) == 0:
        raise SettingError(f"FOREWORD_RUNS_PER_GPU is {value!r}: expected a number of 1 or more")
    return int(value)


RUNS = runs_per_gpu(os.environ.get("FOREWORD_RUNS_PER_GPU", "1"))
"""Runs that share a GPU at the same time, by NVIDIA's multi-process service: the tiles of each then take less of the
chip's memory, so that those of several runs fit next to each other."""

OLDEST = (8, 0)
"""The compute capability that kernels need: matrix units for float16 and bfloat16 with float32 sums."""

LARGEST_MEMORY = 227 << 10
"""Bytes of shared memory that a program may take on a Hopper GPU, for which tiles were measured. Other GPUs that run
our kernels have 163 KB (compute capability 8.0) or 99 KB (8.6, 8.9, 12.0)."""

DEPENDENT_LAUNCH = (9, 0)
"""The compute capability from which a kernel may be launched while the one that it depends on still runs."""


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Mark a function as a Triton kernel; it stays a plain function where there is no Triton."""

    def mark(function: Callable[..., Any]) -> Any:
        return function if triton is None else triton.jit(function, **options)

    return mark


def take_saved(ctx: Any) -> Any:
    """Return ``ctx.saved``, the tensors of a forward pass, once: the backward pass overwrites them with gradients."""
    saved, ctx.saved = ctx.saved, None
    if saved is None:
        raise RuntimeError("these layers allow one backward pass: run them again instead of using retain_graph=True")
    return saved


@cache
def warn_once(message: str) -> None:
    """Warn of something that makes a run slower, once in a process."""
    warnings.warn(message, UserWarning, stacklevel=3)


@cache
def memory_per_program(kind: str, index: int | None = None) -> int:
    """Return the bytes of shared memory that a program may take on a device."""
    if kind != "cuda":
        return LARGEST_MEMORY
    return int(getattr(torch.cuda.get_device_properties(index), "shared_memory_per_block_optin", LARGEST_MEMORY))


@cache
def runs_kernels(kind: str, index: int | None = None) -> bool:
    """Return whether a device of this kind, "cuda" or "cpu", runs Triton's kernels; warn, once, if a GPU does not."""
    if kind != "cuda":
        return False
    old = torch.cuda.get_device_capability(index) < OLDEST
    if triton is None or old:
        reason = "compute capability 8.0 or more is needed" if old else "Triton is not installed"
        warn_once(f"layers run by PyTorch, which is slower: {reason}")
    return triton is not None and not old


@cache
def launches_dependents(kind: str, index: int | None = None) -> bool:
    """Return whether kernels may be launched ahead of those they wait for (programmatic dependent launch)."""
    return kind == "cuda" and not INTERPRETED and torch.cuda.get_device_capability(index) >= DEPENDENT_LAUNCH
