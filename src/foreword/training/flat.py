"""Many tensors in one: all weights lie in a single vector, so that an update is a few operations for all."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import torch
from torch import Tensor

from foreword.errors import NoGpuError, SettingError

ALIGNED = 64
"""Every tensor begins at a multiple of this many numbers: cuDNN wants its weights aligned."""

Shapes = Mapping[str, tuple[int, ...]]


def flat_size(shapes: Shapes) -> int:
    return sum(_room(shape) for shape in shapes.values())


def views(flat: Tensor, shapes: Shapes) -> dict[str, Tensor]:
    """The tensors by name; they share the vector's memory."""
    return {name: flat[place].view(shapes[name]) for name, place in places(shapes).items()}


def places(shapes: Shapes) -> dict[str, slice]:
    """Where in the vector each of them lies."""
    found, start = {}, 0
    for name, shape in shapes.items():
        found[name] = slice(start, start + prod(shape))
        start += _room(shape)
    return found


def new_flat(shapes: Shapes, device: torch.device, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(flat_size(shapes), dtype=dtype, device=device)


def _room(shape: tuple[int, ...]) -> int:
    return -(-prod(shape) // ALIGNED) * ALIGNED


def choose_device(name: str | None) -> torch.device:
    """Return the device of that name, ``"cpu"`` or ``"cuda"``; None means the GPU where there is one."""
    if name not in (None, "cpu", "cuda"):
        raise SettingError(f"device is {name!r}: expected cuda or cpu")
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise NoGpuError
    return torch.device(name or ("cuda" if there else "cpu"))
