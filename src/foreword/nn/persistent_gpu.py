"""An LSTM layer on a Hopper GPU in one launch for all steps, forward and backward.

cuDNN launches kernels for every step, which load the recurrent weights again. Here the weights stay in shared memory,
and a step costs the exchange of states between multiprocessors (``nn/kernels_persistent.py``). What does not depend on
the previous step is one product over all steps: the inputs' before the launch, the gradients of inputs and weights
after it.

T steps, B texts, I inputs, H units. The kernels take half precision, H a multiple of 128 from 256 to 1024, and B a
multiple of 16, as long as there is a multiprocessor for every program: 64 texts of 1,024 units on an H200, 128 of 512.
All programs have to be resident at once, so runs that share a GPU do not use the kernels. ``nn/layers.py`` runs every
other LSTM.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, cast

import torch
from torch import Tensor

from foreword.nn.gpu import RUNS, runs_kernels, take_saved, triton

HOPPER = 9
"""The compute capability whose matrix instructions the kernels are written in; later GPUs have others."""

OWNED_UNITS, WIDE_UNITS, EIGHTHS = 16, 128, 8
"""Units of a program; in the backward product, units of a column block, and the number of row blocks."""

PROGRAM_WARPS, COUNTER_NUMBERS = 4, 8
"""Warps of a program: a warpgroup, which a matrix instruction needs. Stride of counters in int32: a cache sector."""

TRITON = ("3.6.", "3.7.")
"""Versions whose Gluon the kernels are written in: the language is young, and changes from one to the next."""

SMALLEST, LARGEST, FEWEST_STEPS = 256, 1024, 8
"""Units of the smallest and the largest layer; steps below which loading the weights is expected to cost more than it
saves, which was not measured."""

GROUPS = (16, 32)
"""Texts of a group of programs. With 1,024 units and 32 texts weights and states take 192 of 227 KB shared memory."""

CHUNK = 128
"""Units that are multiplied at a time."""

MOST_NUMBERS = 1 << 31
"""Largest array that the kernels' 32-bit offsets can address."""


def texts_of_group(texts: int, units: int, multiprocessors: int) -> int:
    """Return the smallest group of texts for which all programs are resident at once; 0 if there is none."""
    for group in GROUPS:
        programs = texts // group * (units // OWNED_UNITS)
        if texts % group == 0 and 0 < programs <= multiprocessors:
            return group
    return 0


@cache
def _multiprocessors(kind: str, index: int | None) -> int:
    """Return the multiprocessors of a GPU that runs the kernels; 0 for every other device."""
    if RUNS > 1 or not runs_kernels(kind, index) or not triton.__version__.startswith(TRITON):
        return 0
    properties = torch.cuda.get_device_properties(index)
    return properties.multi_processor_count if properties.major == HOPPER else 0


def runs_persistent(x: Tensor, units: int) -> bool:
    """Return whether these kernels run a layer with inputs x (T, B, I) and a number of units."""
    if x.dim() != 3 or x.dtype not in (torch.float16, torch.bfloat16):
        return False
    steps, texts = x.shape[:2]
    wide = units % WIDE_UNITS == 0 and SMALLEST <= units <= LARGEST
    long = steps >= FEWEST_STEPS and 4 * (steps + 1) * texts * units < MOST_NUMBERS
    return wide and long and texts_of_group(texts, units, _multiprocessors(x.device.type, x.device.index)) > 0


def persistent_lstm(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weights: Sequence[Tensor],
    state_mask: Tensor | None = None,
    *,
    capped: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run a layer over x (T, B, I) from h and c (B, H): every h (T, B, H), and the last h and c, c as it came.

    weights: W_x (4H, I), W_h (4H, H), b_x and b_h (4H,), gates in the order i, f, g, o. state_mask (B, H): multiplies h
    on its way to the next step. capped: the input gate is at most 1 − f.
    """
    w_x, w_h, b_x, b_h = weights
    found = _Layer.apply(x, h, c.float(), w_x, w_h, b_x + b_h, state_mask, capped)  # type: ignore[no-untyped-call]
    out, last = cast(tuple[Tensor, Tensor], found)
    return out, out[-1], last.to(c.dtype)


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        h: Tensor,
        c: Tensor,
        w_x: Tensor,
        w_h: Tensor,
        bias: Tensor,
        mask: Tensor | None,
        capped: bool,
    ) -> tuple[Tensor, Tensor]:
        """Return the outputs, and the last cells in float32."""
        steps, texts, units = *x.shape[:2], h.shape[1]
        w_h, mask = w_h.contiguous(), None if mask is None else mask.contiguous()
        gates = torch.addmm(bias, x.flatten(0, 1), w_x.T).view(steps, texts, 4 * units)
        states = x.new_empty(steps + 1, texts, units)
        states[0] = h if mask is None else h * mask
        cells = x.new_empty(steps + 1, texts, units, dtype=torch.float32)
        cells[0] = c
        out = states[1:] if mask is None else torch.empty_like(states[1:])
        launch_forward(gates, w_h, states, cells, out, mask, capped)
        ctx.saved = x, w_x, w_h, states, cells, gates, mask, capped
        return out, cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """Return the gradients of the input, the first states and the weights."""
        x, w_x, w_h, states, cells, gates, mask, capped = take_saved(ctx)
        d_out, d_last = grads
        d_c = d_last.float().contiguous().clone()
        d_bias = launch_backward(d_out.to(x.dtype).contiguous(), w_h, cells, gates, d_c, mask, capped)
        words, needed = gates.flatten(0, 1), ctx.needs_input_grad
        d_x = (words @ w_x).view_as(x) if needed[0] else None
        d_h = gates[0] @ w_h if needed[1] else None
        d_h = d_h if d_h is None or mask is None else d_h * mask
        d_w_x = words.T @ x.flatten(0, 1) if needed[3] else None
        d_w_h = words.T @ states[:-1].flatten(0, 1) if needed[4] else None
        return d_x, d_h, d_c, d_w_x, d_w_h, d_bias.to(x.dtype), None, None


def launch_forward(
    gates: Tensor, weight: Tensor, states: Tensor, cells: Tensor, out: Tensor, mask: Tensor | None, capped: bool
) -> None:
    """Run all steps: fill states and cells (T + 1, B, H) and out; gates (T, B, 4H): X, overwritten with the gates."""
    from foreword.nn import kernels_persistent as kernels  # Gluon takes a tenth of a second to import

    (steps, texts, wide), group = gates.shape, _group_of(gates)
    units, groups = wide // 4, texts // group
    counters = torch.zeros(groups, steps + 1, COUNTER_NUMBERS, device=gates.device, dtype=torch.int32)
    kernels.forward[(units // OWNED_UNITS, groups)](
        gates, weight, states, cells, out, gates if mask is None else mask, counters, steps, CAPPED=capped,
        MASK=mask is not None, H=units, B=texts, BM=group, BK=CHUNK, num_warps=PROGRAM_WARPS,
        launch_cooperative_grid=True,
    )  # fmt: skip


def launch_backward(
    d_out: Tensor, weight: Tensor, cells: Tensor, gates: Tensor, d_c: Tensor, mask: Tensor | None, capped: bool
) -> Tensor:
    """Overwrite gates with their pre-activation gradients and d_c with that of the first cells; return the bias's."""
    from foreword.nn import kernels_persistent as kernels  # Gluon takes a tenth of a second to import

    (steps, texts, wide), group, device = gates.shape, _group_of(gates), gates.device
    units, groups = wide // 4, texts // group
    parts = torch.empty(2, groups, EIGHTHS, units, group, device=device)
    counters = torch.zeros(
        groups * (EIGHTHS + units // WIDE_UNITS), steps, COUNTER_NUMBERS, device=device, dtype=torch.int32
    )
    d_bias = torch.empty(groups, wide, device=device)
    block = 1 << (units // EIGHTHS - 1).bit_length()
    kernels.backward[(units // OWNED_UNITS, groups)](
        d_out, weight, cells, gates, d_c, d_bias, gates if mask is None else mask, parts, counters[: groups * EIGHTHS],
        counters[groups * EIGHTHS :], steps, CAPPED=capped, MASK=mask is not None, H=units, B=texts, BM=group, BK=block,
        num_warps=PROGRAM_WARPS, launch_cooperative_grid=True,
    )  # fmt: skip
    return d_bias.sum(0)


def _group_of(gates: Tensor) -> int:
    """Return the texts of a group for gates (T, B, 4H)."""
    _, texts, wide = gates.shape
    return texts_of_group(texts, wide // 4, _multiprocessors(gates.device.type, gates.device.index))
