"""A layer of a gated cell on a GPU: the Triton kernels of ``nn/kernels_gated.py``, launched step after step.

What the inputs give is one product over all steps, before; the gradients of weights are products over all steps, after.
A step is one product with the state and one pointwise kernel; a GRU whose reset gate comes before its product has two
of each. The GRU that resets after it has a kernel for where cuDNN is switched off. Sizes that the tiles do not divide
are padded with texts and units of zero, which get no gradient. Products are in the precision of the inputs with float32
sums; all states but h and all gradients of states are float32.

Shapes: T steps, B texts, H units, G gates. ``nn/gated.py`` has the equations, and runs where there is no such GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from foreword.nn import kernels_gated as kernels
from foreword.nn.gated import GATED, States, from_inputs, normalised, run_gated
from foreword.nn.mogrifier_gpu import (
    MOST_TEXTS,
    POINTWISE,
    TEXTS_MULTIPLE,
    UNITS_MULTIPLE,
    kernels_apply,
    note_padding,
)

FORWARD = {"cifg": "forward_cifg", "peephole": "forward_peephole", "slstm": "forward_slstm"}
BACKWARD = {"cifg": "backward_cifg", "peephole": "backward_peephole", "slstm": "backward_slstm"}
"""Cells of which a step is one product and one pointwise kernel, with the kernels' names."""

COLUMNS, INNER, WARPS = 32, 64, 4
"""A product's tile: units, and numbers that it sums at a time."""


def gated_layer(cell: str, x: Tensor, states: States, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Run one layer, by our kernels where they run: every h (T, B, H), then the states after the last step."""
    if x.numel() and kernels_apply(x):
        return by_kernels(cell, x, states, weights)
    return run_gated(cell, x, states, weights)


def by_kernels(cell: str, x: Tensor, states: States, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Run one layer by the kernels; states that come in as float32 go out as float32, whatever the precision of x."""
    from_x, w_h, extra = from_inputs(cell, x, weights)
    (texts, units), gates = states[0].shape, GATED[cell].gates
    more, more_texts = -units % UNITS_MULTIPLE, -texts % (MOST_TEXTS if texts > MOST_TEXTS else TEXTS_MULTIPLE)
    note_padding(units)
    by_gate = from_x.view(*from_x.shape[:2], gates, units)
    given = (
        pad(by_gate, (0, more, 0, 0, 0, more_texts)).flatten(2),
        pad(w_h.view(gates, units, units), (0, more, 0, more)).flatten(0, 1),
        None if extra is w_h else pad(extra, (0, more)),
        *(pad(part, (0, more, 0, more_texts)) for part in states),
    )
    out, *others = cast(tuple[Tensor, ...], _GatedLayer.apply(cell, units, *given))  # type: ignore[no-untyped-call]
    out = out[:, :texts, :units]
    narrow = (part[:texts, :units].to(first.dtype) for part, first in zip(others, states[1:], strict=True))
    return out, out[-1], *narrow


class LayerLauncher:
    """Launches of one layer, and what they leave for its backward pass.

    a (T, B, G·H): preactivations. states[k] (T + 1, B, H). gated (T, B, H): r·h of a GRU. products (T, B, G·H): W_h h
    where it is normalised or, in a GRU, reset.
    """

    def __init__(self, cell: str, units: int, from_x: Tensor, w_h: Tensor, extra: Tensor | None, states: States):
        self.cell, self.units, self.w_h = cell, units, w_h.contiguous()
        self.extra = None if extra is None else extra.float().contiguous()
        self.a = from_x.float().clone(memory_format=torch.contiguous_format)
        self.steps, self.texts = from_x.shape[:2]
        self.width = states[0].shape[1]
        self.states = [self._room(torch.float32 if at else from_x.dtype, 1) for at in range(len(states))]
        for room, first in zip(self.states, states, strict=True):
            if cell == "ln-lstm" and units < self.width:
                room.zero_()  # its kernel leaves padded units alone, and a product would read what was there before
            room[0].copy_(first)
        self.gated = self._room(from_x.dtype) if cell == "gru-before" else self.states[0]
        self.products = torch.zeros_like(self.a) if cell in ("ln-lstm", "gru") else self.a
        if cell == "gru":
            self.products[..., 2 * self.width :] = cast(Tensor, self.extra)
        numbers = self.texts * self.width
        block = min(POINTWISE, numbers & -numbers)
        self.grid, self.pointwise = (numbers // block,), {"H": self.width, "BLOCK": block, "num_warps": WARPS}
        wide = 1 << (self.width - 1).bit_length()
        self.rows = {"H": self.width, "BLOCK": wide, "num_warps": 2 * WARPS}

    def _room(self, kind: torch.dtype, more: int = 0) -> Tensor:
        return self.a.new_empty(self.steps + more, self.texts, self.width, dtype=kind)

    def product(self, source: Tensor, weight: Tensor, total: Tensor) -> None:
        """Add source (B, K) · weightᵀ, weight (N, K), to total (B, N)."""
        tall = next(size for size in (MOST_TEXTS, 32, 16) if self.texts % size == 0)
        grid = weight.shape[0] // COLUMNS, self.texts // tall
        kernels.add_product[grid](
            source, weight, total, source.stride(0), total.stride(0), K=weight.shape[1], BM=tall, BN=COLUMNS, BK=INNER,
            num_warps=WARPS, num_stages=3,
        )  # fmt: skip

    def forward(self) -> None:
        """Fill the states."""
        h, *others = self.states
        twice = 2 * self.width
        for t in range(self.steps):
            a = self.a[t]
            if self.cell == "gru-before":
                self.product(h[t], self.w_h[:twice], a[:, :twice])
                kernels.reset_gru[self.grid](a, h[t], self.gated[t], **self.pointwise)
                self.product(self.gated[t], self.w_h[twice:], a[:, twice:])
                kernels.forward_gru[self.grid](a, h[t], h[t + 1], **self.pointwise)
                continue
            self.product(h[t], self.w_h, self.products[t])
            before, after = [part[t] for part in others], [part[t + 1] for part in others]
            if self.cell == "gru":
                kernels.forward_gru_after[self.grid](a, self.products[t], h[t], h[t + 1], **self.pointwise)
            elif self.cell == "ln-lstm":
                kernels.forward_ln_lstm[(self.texts,)](
                    a, self.products[t], *before, *after, h[t + 1], self.extra, self.units, **self.rows
                )
            else:
                more = () if self.extra is None else (self.extra,)
                getattr(kernels, FORWARD[self.cell])[self.grid](a, *before, *after, h[t + 1], *more, **self.pointwise)

    def backward(self, d_out: Tensor, d_others: list[Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the gradients of what came of the inputs and of W_h h, of the first h, and of N(c)'s product.

        d_others: of the last states but h, which become those of the first.
        """
        low = self.states[0].dtype
        d_a = torch.empty_like(self.a, dtype=torch.float32 if self.cell == "ln-lstm" else low)
        d_product = torch.empty_like(self.a, dtype=low) if self.cell in ("ln-lstm", "gru") else d_a
        d_shown = self._room(torch.float32) if self.cell == "ln-lstm" else d_out
        if self.cell == "ln-lstm" and self.units < self.width:
            for part in (d_a, d_product, d_shown):
                part.zero_()
        d_h, d_gated = torch.zeros_like(d_out[0], dtype=torch.float32), torch.empty_like(self.a[0, :, : self.width])
        back, (h, *others), twice = self.w_h.t().contiguous(), self.states, 2 * self.width
        back_n, back_rz = self.w_h[twice:].t().contiguous(), self.w_h[:twice].t().contiguous()
        for t in reversed(range(self.steps)):
            a = self.a[t]
            if self.cell == "gru-before":
                kernels.backward_gru[self.grid](a, h[t], d_out[t], d_h, d_a[t], d_gated, **self.pointwise)
                self.product(d_a[t][:, twice:], back_n, d_gated)
                kernels.backward_reset[self.grid](a, h[t], d_gated, d_h, d_a[t], **self.pointwise)
                self.product(d_a[t][:, :twice], back_rz, d_h)
                continue
            before, after = [part[t] for part in others], [part[t + 1] for part in others[: len(d_others)]]
            if self.cell == "gru":
                kernels.backward_gru_after[self.grid](
                    a, self.products[t], h[t], d_out[t], d_h, d_a[t], d_product[t], **self.pointwise
                )
            elif self.cell == "ln-lstm":
                kernels.backward_ln_lstm[(self.texts,)](
                    a, self.products[t], *before, *after, self.extra, d_out[t], d_h, *d_others, d_a[t], d_product[t],
                    d_shown[t], self.units, **self.rows,
                )  # fmt: skip
            else:
                more = () if self.extra is None else (self.extra,)
                getattr(kernels, BACKWARD[self.cell])[self.grid](
                    a, *before, *after, d_out[t], d_h, *d_others, d_a[t], *more, **self.pointwise
                )
            self.product(d_product[t], back, d_h)
        return d_a, d_product, d_h, d_shown

    def weight_gradients(self, d_a: Tensor, d_product: Tensor, d_shown: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the gradients of W_h and of the cell's further weight: sums over all steps."""
        twice, before = 2 * self.width, self.states[0][:-1].flatten(0, 1)
        by_gate = d_product.flatten(0, 1)
        if self.cell == "gru-before":
            d_w_h = torch.cat((by_gate[:, :twice].T @ before, by_gate[:, twice:].T @ self.gated.flatten(0, 1)))
        else:
            d_w_h = by_gate.T @ before
        if self.extra is None:
            return d_w_h, None
        d_extra = torch.zeros_like(self.extra)
        if self.cell == "gru":
            d_extra[0] = by_gate[:, twice:].sum(0, dtype=torch.float32)
            return d_w_h, d_extra
        gates = d_a.float().view(self.steps, self.texts, 4, self.width)
        c, new = self.states[1][:-1], self.states[1][1:]
        if self.cell == "peephole":
            for row, (gate, seen) in enumerate(((0, c), (1, c), (3, new))):
                d_extra[row] = (gates[:, :, gate] * seen).sum((0, 1))
            return d_w_h, d_extra
        own = slice(self.units)
        shown = normalised(self.products.view_as(gates)[..., own].flatten(2))
        d_extra[4:8, own] = (gates[..., own] * shown.view(*gates.shape[:3], self.units)).sum((0, 1))
        d_extra[8, own] = (d_shown[..., own] * normalised(new[..., own])).sum((0, 1))
        d_extra[9] = d_shown.sum((0, 1))
        return d_w_h, d_extra


class _GatedLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, cell: str, units: int, from_x: Tensor, w_h: Tensor, extra: Tensor | None, *states: Tensor
    ) -> tuple[Tensor, ...]:
        """Return every output, and the last of the other states."""
        launcher = LayerLauncher(cell, units, from_x, w_h, extra, states)
        launcher.forward()
        ctx.launcher, ctx.kinds = launcher, (w_h.dtype, None if extra is None else extra.dtype)
        return launcher.states[0][1:].clone(), *(part[-1].clone() for part in launcher.states[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """Return the gradients of the inputs, the weights and the first states."""
        d_out, *d_last = grads
        launcher = cast(LayerLauncher, ctx.launcher)
        low, carried = launcher.states[0].dtype, d_last[:2]  # what follows c and n of an sLSTM, m, has no gradient
        d_others = [part.float().contiguous().clone() for part in carried]
        d_a, d_product, d_h, d_shown = launcher.backward(d_out.to(low).contiguous(), d_others)
        d_w_h, d_extra = launcher.weight_gradients(d_a, d_product, d_shown)
        kind, extra_kind = ctx.kinds
        d_extra = None if d_extra is None or extra_kind is None else d_extra.to(extra_kind)
        rest = [None] * (len(d_last) - len(carried))
        return None, None, d_a.to(low), d_w_h.to(kind), d_extra, d_h.to(low), *d_others, *rest
