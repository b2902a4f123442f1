"""Layers of a gated cell on a GPU: the Triton kernels of ``nn/kernels_gated.py``, all layers in one launch per phase.

What the inputs give to the first layer is one product over all steps, before; the gradients of weights are products
over all steps, after. A step is one product with the state and one pointwise kernel; a GRU whose reset gate comes
before its product has two of each. The layers of a stack run as a wavefront: layer l + 1 follows layer l two steps
behind, and its inputs are multiplied in the same launch as the states, a wave before they are needed, so that no
program sums over more than the units. Backwards one step is between them. A kernel may be launched while the one
before it still runs (programmatic dependent launch). One layer is a stack of one.

The GRU that resets after its product has a kernel for where cuDNN is switched off. Sizes that the tiles do not divide
are padded with texts and units of zero, which get no gradient. Products are in the precision of the inputs with float32
sums; all states but h and all gradients of states are float32.

Shapes: L layers, T steps, B texts, H units, G gates. ``nn/gated.py`` has the equations, and runs where there is no such
GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from foreword.nn import kernels_gated as kernels
from foreword.nn.gated import GATED, States, bias_and_extra, normalised, run_gated
from foreword.nn.gpu import launches_dependents
from foreword.nn.mogrifier_gpu import (
    MOST_TEXTS,
    POINTWISE,
    TEXTS_MULTIPLE,
    UNITS_MULTIPLE,
    kernels_apply,
    note_padding,
)

FORWARD = {
    "cifg": kernels.forward_cifg, "peephole": kernels.forward_peephole, "slstm": kernels.forward_slstm,
    "ln-lstm": kernels.forward_ln_lstm, "gru": kernels.forward_gru_after, "gru-before": kernels.forward_gru,
}  # fmt: skip
BACKWARD = {
    "cifg": kernels.backward_cifg, "peephole": kernels.backward_peephole, "slstm": kernels.backward_slstm,
    "ln-lstm": kernels.backward_ln_lstm, "gru": kernels.backward_gru_after, "gru-before": kernels.backward_gru,
}  # fmt: skip
"""The pointwise kernel of each cell that ends a step, and the one that begins its backward pass."""

SEPARATE = ("ln-lstm", "gru")
"""Cells whose W_h h is not simply added to W_x x: it is normalised or reset first."""

AHEAD, BACK = 2, 1
"""Waves between a step of one layer and the same step of the next, forward and backward."""

COLUMNS, INNER, WARPS = 32, 64, 4
"""A product's tile: units, and numbers that it sums at a time."""

Product = tuple[Tensor, Tensor, Tensor]
"""A source (layers, steps, B, K), a weight (layers, N, K), and the total (layers, steps, B, N) that they add to."""


def gated_layer(cell: str, x: Tensor, states: States, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Run one layer, by our kernels where they run: every h (T, B, H), then the states after the last step."""
    if x.numel() and kernels_apply(x):
        return gated_stack(cell, x, states, [weights])
    return run_gated(cell, x, states, weights)


def gated_stack(
    cell: str, x: Tensor, states: States, layers: Sequence[Sequence[Tensor]], between: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Run layers of one width by the kernels: every h of the last one (T, B, H), then the states after the last step.

    states: the first layer's, then the second's, …, and so they are returned; those that come in as float32 go out as
    float32, whatever the precision of x. layers: the weights of each. between (L − 1, T or 1, B, H): multiplies the
    output of a layer on its way to the next.
    """
    count, gates, (texts, units) = GATED[cell].states, GATED[cell].gates, states[0].shape
    more, more_texts = -units % UNITS_MULTIPLE, -texts % (MOST_TEXTS if texts > MOST_TEXTS else TEXTS_MULTIPLE)
    note_padding(units)
    from_x, w_x, bias, w_h, extra = _stacked(cell, x, layers)

    def wide(weight: Tensor) -> Tensor:
        return _padded(weight.view(len(weight), gates, units, units), 0, more, 0, more).flatten(1, 2)

    def of_texts(part: Tensor) -> Tensor:
        return _padded(part, 0, more, 0, more_texts)

    given = (
        _padded(from_x.view(*from_x.shape[:2], gates, units), 0, more, 0, 0, 0, more_texts).flatten(2),
        wide(w_x),
        _padded(bias.view(len(bias), gates, units), 0, more).flatten(1),
        wide(w_h),
        None if extra is None else _padded(extra, 0, more),
        None if between is None else of_texts(between),
        *(of_texts(torch.stack(states[at::count])) for at in range(count)),
    )
    out, *last = cast(tuple[Tensor, ...], _GatedStack.apply(cell, units, *given))  # type: ignore[no-untyped-call]
    kinds = out.dtype, *(part.dtype for part in states[1:count])
    narrow = [part[:, :texts, :units].to(kind) for part, kind in zip(last, kinds, strict=True)]
    return out[:, :texts, :units], *(part[layer] for layer in range(len(layers)) for part in narrow)


def _stacked(
    cell: str, x: Tensor, layers: Sequence[Sequence[Tensor]]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """Return what the inputs give to the first layer, W_x and its bias of the others, and W_h and extra of all.

    A normalised cell's products come without a bias, which is four more rows of its extra weight.
    """
    w_h = torch.stack([weights[1] for weights in layers])
    biases, extras = [], []
    for weights in layers:
        bias, extra = bias_and_extra(cell, weights)
        if cell == "ln-lstm" and extra is not None:
            bias, extra = torch.zeros_like(bias), torch.cat((extra, bias.view(4, -1)))
        biases.append(bias)
        extras += [] if extra is None else [extra]
    upper = [weights[0] for weights in layers[1:]]
    w_x = torch.stack(upper) if upper else w_h.new_empty(0, *w_h.shape[1:])
    bias = torch.stack(biases)[1:]
    return linear(x, layers[0][0], biases[0]), w_x, bias, w_h, torch.stack(extras) if extras else None


def _padded(part: Tensor, *sizes: int) -> Tensor:
    """Return a tensor with zeros around it as ``pad`` does, itself where there are none."""
    return pad(part, sizes) if any(sizes) else part


def active(wave: int, apart: int, layers: int, steps: int) -> tuple[int, int]:
    """Return the first layer that has a step in a wave, and how many have one."""
    found = [layer for layer in range(layers) if 0 <= wave - apart * layer < steps]
    return (found[0] if found else 0), len(found)


def add_products(wave: int, apart: int, own: Product, upper: Product | None = None) -> None:
    """Launch the products of one wave: those with states and, of the layers above the first, those with inputs.

    upper: arrays that begin at the second layer, with the strides of the others.
    """
    source, weight, total = own
    layers, steps, texts, columns = total.shape
    lowest, count = active(wave, apart, layers, steps)
    lowest_upper, more = active(wave - 1, apart, layers - 1 if upper else 0, steps)
    if count + more == 0:
        return
    tall = next(size for size in (MOST_TEXTS, 32, 16) if texts % size == 0)
    kernels.add_products[columns // COLUMNS, texts // tall, count + more](
        *own, *(upper or own), wave, lowest, count, lowest_upper, *source.stride()[:3], *weight.stride()[:2],
        *total.stride()[:3], APART=apart, K=weight.shape[2], BM=tall, BN=COLUMNS, BK=INNER, num_warps=WARPS,
        num_stages=3, **_dependent(source),
    )  # fmt: skip


def _dependent(x: Tensor) -> dict[str, bool]:
    """Return the options of a launch: whether it may begin while the one before it still runs."""
    dependent = launches_dependents(x.device.type, x.device.index)
    return {"DEPENDENT": dependent, "launch_pdl": True} if dependent else {"DEPENDENT": False}


@dataclass(frozen=True, slots=True)
class _Gradients:
    """What the backward pass of a stack fills.

    a, product (L, T, B, G·H): of W_x x and W_h h, one array unless they are separate. gates (L, T, B, 4H) and shown
    (L, T, B, H): of what σ and the last tanh read, in a normalised cell. states: of h and others, (L, B, H).
    """

    a: Tensor
    product: Tensor
    states: list[Tensor]
    gates: Tensor
    shown: Tensor


class GatedLauncher:
    """Launches of a stack, and what they leave for its backward pass.

    a (L, T, B, G·H): preactivations. states[k] (L, T + 1, B, H). gated (L, T + 1, B, H): r·h of a GRU. products
    (L, T, B, G·H): W_h h where it is separate, else a. inputs (L − 1, T, B, H): what the upper layers read.
    """

    def __init__(
        self,
        cell: str,
        units: int,
        from_x: Tensor,
        w_x: Tensor,
        bias: Tensor,
        w_h: Tensor,
        extra: Tensor | None,
        between: Tensor | None,
        states: Sequence[Tensor],
    ) -> None:
        self.cell, self.units, self.w_x, self.w_h = cell, units, w_x.contiguous(), w_h.contiguous()
        self.extra = None if extra is None else extra.float().contiguous()
        self.layers, self.width = len(w_h), w_h.shape[2]
        self.steps, self.texts = from_x.shape[:2]
        self.a = from_x.new_empty(self.layers, *from_x.shape, dtype=torch.float32)
        self.a[0].copy_(from_x)
        self.a[1:] = bias[:, None, None]
        self.low = from_x.dtype
        self.states = [self._buffer(torch.float32 if at else self.low) for at in range(len(states))]
        for buffer, first in zip(self.states, states, strict=True):
            buffer[:, 0].copy_(first)
        self.gated = self._buffer(self.low) if cell == "gru-before" else self.states[0]
        self.products = torch.zeros_like(self.a) if cell in SEPARATE else self.a
        if cell == "gru":
            self.products[..., 2 * self.width :] = cast(Tensor, self.extra)[:, None]
        self._pass_through(between)
        self.programs, self.options = self._sizes()

    def _pass_through(self, between: Tensor | None) -> None:
        """Set what upper layers read: the states themselves, or ``passed``, to which masked ones are written."""
        self.passed = self.between = self.states[0]
        self.inputs, self.masks = self.states[0][:-1, 1:], {"mask_steps": 1, "MASKS": 0}
        if between is not None:
            self.passed, self.between = self._buffer(self.low, self.layers - 1), between.contiguous()
            self.inputs = self.passed[:, :-1]
            self.masks = {"mask_steps": between.shape[1], "MASKS": self.layers - 1}

    def _sizes(self) -> tuple[int, dict[str, Any]]:
        """Return the programs of a pointwise launch in one layer, and its constants; rows with means are one each."""
        shared = {"B": self.texts, "H": self.width, **_dependent(self.a)}
        if self.cell == "ln-lstm":
            wide = 1 << (self.width - 1).bit_length()
            return self.texts, {**shared, "BLOCK": wide, "num_warps": 2 * WARPS, "UNITS": self.units}
        numbers = self.texts * self.width
        block = min(POINTWISE, numbers & -numbers)
        return numbers // block, {**shared, "BLOCK": block, "num_warps": WARPS}

    def _buffer(self, kind: torch.dtype, layers: int | None = None) -> Tensor:
        """Return space for a state of every layer, or of ``layers`` of them."""
        return self._empty((layers or self.layers, self.steps + 1, self.texts, self.width), kind)

    def _empty(self, shape: Sequence[int], kind: torch.dtype) -> Tensor:
        """Return space; zeros where a kernel leaves padded units alone that a product reads."""
        partial = self.cell == "ln-lstm" and self.units < self.width
        return (self.a.new_zeros if partial else self.a.new_empty)(shape, dtype=kind)

    @property
    def saved(self) -> list[Tensor]:
        """Return the first arguments of the pointwise kernels, of both directions."""
        separate = [self.products] if self.cell in SEPARATE else []
        extra = [] if self.extra is None or self.cell == "gru" else [self.extra]
        return [self.a, *separate, *self.states, *extra]

    def _launch(self, kernel: Any, wave: int, apart: int, arrays: Sequence[Tensor], **more: Any) -> None:
        """Launch a pointwise kernel over all layers that have a step in a wave."""
        lowest, count = active(wave, apart, self.layers, self.steps)
        if count:
            kernel[self.programs, count](*arrays, wave, lowest, self.steps, APART=apart, **more, **self.options)

    def forward(self) -> None:
        """Fill the states."""
        h, ends = self.states[0], [*self.saved, self.passed, self.between]
        for wave in range(self.steps + AHEAD * (self.layers - 1)):
            if self.cell == "gru-before":
                rest, candidate = self._gates()
                self._products(wave, h, rest)
                self._launch(kernels.reset_gru, wave, AHEAD, [self.a, h, self.gated])
                self._products(wave, self.gated, candidate)
            else:
                self._products(wave, h, slice(None))
            self._launch(FORWARD[self.cell], wave, AHEAD, ends, **self.masks)

    def _gates(self) -> tuple[slice, slice]:
        """Return the rows of r and z, and those of the candidate, whose product with r·h comes after them."""
        return slice(2 * self.width), slice(2 * self.width, 3 * self.width)

    def _products(self, wave: int, source: Tensor, rows: slice) -> None:
        """Add W_h times a source to the products, and W_x times the inputs of upper layers to a, in rows of gates."""
        own = source, self.w_h[:, rows], self.products[..., rows]
        add_products(wave, AHEAD, own, (self.inputs, self.w_x[:, rows], self.a[1:, ..., rows]))

    def backward(self, d_out: Tensor, d_states: list[Tensor]) -> _Gradients:
        """Return all gradients but those of weights.

        d_out (T, B, H): of the last layer's output. d_states: of the last states, float32, which become those of the
        first.
        """
        made = self._gradients(d_states)
        d_h, d_x = made.states[0], torch.zeros_like(made.states[0][1:])
        d_gated = torch.empty_like(d_h)
        others = {"gru": [made.product], "gru-before": [d_gated]}
        others["ln-lstm"] = [made.product, made.gates, made.shown]
        arrays = [*self.saved, self.between, d_out, d_h, d_x, *made.states[1:], made.a, *others.get(self.cell, [])]
        back_h, back_x = (weight.transpose(1, 2).contiguous() for weight in (self.w_h, self.w_x))

        def at_every_step(part: Tensor) -> Tensor:
            return part[:, None].expand(-1, self.steps, -1, -1)

        def products(target: Tensor, rows: slice) -> None:
            own = made.product[..., rows], back_h[..., rows], at_every_step(target)
            add_products(wave, BACK, own, (made.a[1:, ..., rows], back_x[..., rows], at_every_step(d_x)))

        for wave in reversed(range(self.steps + BACK * (self.layers - 1))):
            self._launch(BACKWARD[self.cell], wave, BACK, arrays, LAYERS=self.layers, **self.masks)
            if self.cell == "gru-before":
                rest, candidate = self._gates()
                products(d_gated, candidate)
                self._launch(kernels.backward_reset, wave, BACK, [self.a, self.states[0], d_gated, d_h, made.a])
                products(d_h, rest)
            else:
                products(d_h, slice(None))
        return made

    def _gradients(self, d_states: list[Tensor]) -> _Gradients:
        """Return space for the gradients."""
        low, normal = self.low, self.cell == "ln-lstm"
        d_a = self._empty(self.a.shape, low)
        d_product = self._empty(self.a.shape, low) if self.cell in SEPARATE else d_a
        d_gates = self._empty(self.a.shape, torch.float32) if normal else d_a
        d_shown = self._empty(self.states[0][:, 1:].shape, torch.float32) if normal else d_a
        return _Gradients(d_a, d_product, d_states, d_gates, d_shown)

    def weight_gradients(self, made: _Gradients) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Return the gradients of W_x and the bias of upper layers, of W_h and of the further weight of all."""
        d_upper, d_product = made.a[1:].flatten(1, 2), made.product.flatten(1, 2)
        d_w_x = d_upper.transpose(1, 2) @ self.inputs.flatten(1, 2)
        d_bias = d_upper.sum(1, dtype=torch.float32)
        h, gated = (part[:, :-1].flatten(1, 2) for part in (self.states[0], self.gated))
        sources = zip(self._gates(), (h, gated), strict=True) if self.cell == "gru-before" else [(slice(None), h)]
        d_w_h = torch.cat([d_product[..., rows].transpose(1, 2) @ source for rows, source in sources], 1)
        return d_w_x, d_bias, d_w_h, None if self.extra is None else self._extra_gradient(made)

    def _extra_gradient(self, made: _Gradients) -> Tensor:
        """Return the gradient of a cell's further weight (L, rows, H)."""
        if self.cell == "gru":
            return made.product[..., 2 * self.width :].sum((1, 2), dtype=torch.float32)[:, None]
        by_gate = (self.layers, self.steps, self.texts, 4, self.width)
        if self.cell == "peephole":
            d_gates, c, new = made.a.float().view(by_gate), self.states[1][:, :-1], self.states[1][:, 1:]
            pairs = (0, c), (1, c), (3, new)
            return torch.stack([(d_gates[:, :, :, gate] * seen).sum((1, 2)) for gate, seen in pairs], 1)
        d_gates, own = made.gates.view(by_gate)[..., : self.units], slice(self.units)
        rows = []
        for products in (self.a, self.products):
            shown = normalised(products.view(by_gate)[..., own].flatten(3)).view_as(d_gates)
            rows.append((d_gates * shown).sum((1, 2)))
        d_shown = made.shown[..., own]
        d_gain = (d_shown * normalised(self.states[1][:, 1:, :, own])).sum((1, 2))
        ends = torch.stack((d_gain, d_shown.sum((1, 2))), 1)
        return pad(torch.cat((*rows, ends, d_gates.sum((1, 2))), 1), (0, self.width - self.units))


class _GatedStack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        cell: str,
        units: int,
        from_x: Tensor,
        w_x: Tensor,
        bias: Tensor,
        w_h: Tensor,
        extra: Tensor | None,
        between: Tensor | None,
        *states: Tensor,
    ) -> tuple[Tensor, ...]:
        """Return every output of the last layer, and the last states of all."""
        launcher = GatedLauncher(cell, units, from_x, w_x, bias, w_h, extra, between, states)
        launcher.forward()
        ctx.launcher, ctx.kinds = launcher, [None if part is None else part.dtype for part in (w_x, bias, w_h, extra)]
        return launcher.states[0][-1, 1:].clone(), *(part[:, -1].clone() for part in launcher.states)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """Return the gradients of the inputs, the weights and the first states."""
        d_out, *d_last = grads
        launcher = cast(GatedLauncher, ctx.launcher)
        low, carried = launcher.low, d_last[:3]  # what follows h, c and n of an sLSTM, m, has no gradient
        d_states = [part.float().contiguous().clone() for part in carried]
        made = launcher.backward(d_out.to(low).contiguous(), d_states)
        found = zip(launcher.weight_gradients(made), ctx.kinds, strict=True)
        weights = [None if part is None else part.to(kind) for part, kind in found]
        d_h, *d_others = made.states
        rest = [None] * (len(d_last) - len(carried))
        return None, None, made.a[0], *weights, None, d_h.to(low), *d_others, *rest
