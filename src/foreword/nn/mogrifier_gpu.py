"""A stack of (Mogrifier) LSTM layers on a GPU: fused Triton kernels, all layers in one launch per phase.

    x ← 2 σ(W₁ h + b₁) · x,    h ← 2 σ(W₂ x + b₂) · h,    …        R rounds
    i, f, g, o = σ, σ, tanh, σ of W_x x + W_h h + b,    c = f·c + i·g  (capped: min(1 − f, i)·g),    h = o·tanh(c)

cuDNN has no kernel for rounds, a capped gate or a dropped state, and a step waits for the one before it, so what counts
is the number of launches and what they wait for:

1. a matrix of low rank is multiplied out once per update, so that a round is one product instead of two;
2. layer l at step t and layer l + 1 at step t − 1 run in one launch, as a wavefront;
3. what is pointwise happens in the epilogue of the product before it;
4. every matrix is stored twice, each contiguous along the dimension that a product sums over;
5. a kernel may be launched while the one before it still runs (programmatic dependent launch);
6. the gradients of all weights are computed after the last step, as products over all steps.

Sizes that the tiles do not divide are padded with texts, inputs and units of zero, which stay zero at every step and
get no gradient. Products are in the precision of the inputs with float32 sums; c and the gradients of states are
float32. ``RecurrentNetwork`` runs the same layers by ``nn/layers.py`` where there is no such GPU.

Shapes: L layers, T steps, B texts, H units, R rounds. G. Melis, T. Kočiský and P. Blunsom, "Mogrifier LSTM" (2020).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from foreword.nn.gpu import (
    LARGEST_MEMORY,
    RUNS,
    launches_dependents,
    memory_per_program,
    runs_kernels,
    take_saved,
    warn_once,
)
from foreword.nn.kernels_mogrifier import (
    backward_cell,
    backward_gates,
    backward_round,
    forward_cell,
    forward_round,
    transpose,
)

UNITS_MULTIPLE, TEXTS_MULTIPLE = 64, 16
"""What units and texts are padded to: the smallest tiles."""

MOST_TEXTS, POINTWISE = 64, 1024
"""Texts of a tile, at most, and numbers of a pointwise one."""

RESERVED = 4 << 10
"""Bytes of shared memory that are left to the compiler."""

NOTED_UNITS, NOTED_TEXTS = 256, 16
"""Sizes above which padding is worth a note: below, a step takes as long as its launches do."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The weights of a stack of layers of one width, each stacked along its first dimension.

    w_x, w_h (L, 4H, H), bias (L, 4H). rounds (R, L, H, H), their product W h or W x; round_bias (R, L, H) or None.
    state_mask (L, B, H): multiplies h on its way to the next step. between (L − 1, T or 1, B, H): multiplies the output
    of a layer on its way to the next. capped: the input gate is at most 1 − f.
    """

    w_x: Tensor
    w_h: Tensor
    bias: Tensor
    rounds: Tensor | None = None
    round_bias: Tensor | None = None
    state_mask: Tensor | None = None
    between: Tensor | None = None
    capped: bool = False

    def padded(self, texts: int, units: int) -> Stack:
        """Return the same layers with more units and texts, all of zero."""
        layers, width = self.bias.shape[0], self.w_h.shape[2]
        more = units - width
        if more == 0 and texts == 0:
            return self

        def wide(weight: Tensor) -> Tensor:
            four = weight.view(layers, 4, width, -1)
            return pad(four, (0, units - four.shape[3], 0, more)).flatten(1, 2)

        def maybe(part: Tensor | None, *sizes: int) -> Tensor | None:
            return None if part is None else pad(part, sizes)

        return Stack(
            wide(self.w_x),
            wide(self.w_h),
            pad(self.bias.view(layers, 4, width), (0, more)).flatten(1, 2),
            maybe(self.rounds, 0, more, 0, more),
            maybe(self.round_bias, 0, more),
            maybe(self.state_mask, 0, more, 0, texts),
            maybe(self.between, 0, more, 0, texts),
            self.capped,
        )


def kernels_apply(x: Tensor) -> bool:
    """Return whether the kernels run on the device of a tensor, and at its precision."""
    low = x.dtype in (torch.float16, torch.bfloat16, torch.float32)
    return low and runs_kernels(x.device.type, x.device.index)


def run_stack(x: Tensor, h: Tensor, c: Tensor, stack: Stack) -> tuple[Tensor, Tensor, Tensor]:
    """Run x (T, B, H) from states h, c (L, B, H): the output of every layer (L, T, B, H), and the last h and c.

    c goes out in the precision in which it came: float32 loses nothing from window to window.
    """
    texts, units = x.shape[1:]
    more_texts, more = -texts % TEXTS_MULTIPLE, -units % UNITS_MULTIPLE
    if texts > MOST_TEXTS:
        more_texts = -texts % MOST_TEXTS
    wide = stack.padded(more_texts, units + more)
    narrow = more or more_texts
    if narrow:
        note_padding(units, texts if torch.is_grad_enabled() else 0)
        x, h, c = (pad(part, (0, more, 0, more_texts)) for part in (x, h, c))
    given = (wide.w_x, wide.w_h, wide.bias, wide.rounds, wide.round_bias, wide.state_mask, wide.between, wide.capped)
    out, last = cast(tuple[Tensor, Tensor], _Stack.apply(x, h, c.float(), *given))  # type: ignore[no-untyped-call]
    if narrow:
        out, last = out[:, :, :texts, :units], last[:, :texts, :units]
    return out, out[:, -1], last.to(c.dtype)


def note_padding(units: int, texts: int = 0) -> None:
    """Warn, once, that layers of this size, or batches, are padded; texts: 0 where their number is nobody's setting."""
    if units % UNITS_MULTIPLE and units > NOTED_UNITS:
        wide = units + -units % UNITS_MULTIPLE
        warn_once(f"layers of {units} units take as long as {wide} on a GPU: set hidden (or units) to a multiple of 64")
    multiple = MOST_TEXTS if texts > MOST_TEXTS else TEXTS_MULTIPLE
    if texts % multiple and texts > NOTED_TEXTS:
        wide = texts + -texts % multiple
        warn_once(f"batches of {texts} take as long as {wide} on a GPU: set batch to a multiple of {multiple}")


@dataclass(frozen=True, slots=True)
class _Tile:
    """The tile of a product: texts, units, and the numbers it sums at a time; warps and stages of its program."""

    texts: int
    units: int
    inner: int
    warps: int
    stages: int

    def options(self) -> dict[str, int]:
        """Return the constants of a program with this tile; fewer stages where several runs share the GPU."""
        return {
            "BM": self.texts, "BN": self.units, "BK": self.inner,
            "num_warps": self.warps, "num_stages": max(2, self.stages // RUNS),
        }  # fmt: skip

    def memory(self, size: int, gates: int = 1) -> int:
        """Return the bytes of shared memory of a program whose numbers have ``size`` bytes, RESERVED included."""
        return self.stages * self.inner * (self.texts + gates * self.units) * size + RESERVED

    def fitted(self, memory: int, size: int, gates: int = 1) -> _Tile:
        """Return the tile with as many stages as fit in shared memory; two at least."""
        found = self
        while found.memory(size, gates) > memory and found.stages > 2:
            found = replace(found, stages=found.stages - 1)
        return found


@dataclass(slots=True)
class _Tiles:
    """Measured on an H200 at 64 texts and 896 units; narrower blocks where sizes, precision or the GPU ask for it."""

    round: _Tile
    cell: _Tile
    gates: _Tile

    def fit(self, memory: int, size: int) -> bool:
        """Return whether programs fit in shared memory with all their stages."""
        parts = self.round.memory(size), self.cell.memory(size, 4), self.gates.memory(size)
        return max(parts) <= memory

    def fitted(self, memory: int, size: int) -> _Tiles:
        """Return the tiles with as many stages as fit in shared memory."""
        return _Tiles(
            self.round.fitted(memory, size), self.cell.fitted(memory, size, 4), self.gates.fitted(memory, size)
        )


def _tiles(texts: int, units: int, exact: bool, memory: int = LARGEST_MEMORY) -> _Tiles:
    """Return the tiles of all products. memory: bytes of shared memory that a program may take."""
    rows = next(size for size in (MOST_TEXTS, 32, 16) if texts % size == 0)
    if exact:  # float32 takes twice the memory on the chip
        tiles = _Tiles(_Tile(rows, 16, 64, 4, 4), _Tile(rows, 16, 64, 4, 3), _Tile(rows, 32, 64, 4, 3))
        return tiles.fitted(memory, 4)
    wide = _Tiles(_Tile(rows, 16, 128, 4, 7), _Tile(rows, 16, 128, 4, 4), _Tile(rows, 32, 128, 4, 6))
    if units % 128 == 0 and wide.fit(memory, 2):
        return wide
    narrow = _Tiles(_Tile(rows, 16, 64, 4, 8), _Tile(rows, 16, 64, 4, 4), _Tile(rows, 32, 64, 4, 6))
    return narrow.fitted(memory, 2)


class Buffers:
    """What a run leaves for its backward pass.

    x[n], h[n] (L, T, B, H): input and state after n rounds on them. sigma (R, …): the rounds' gates. gates (…, 4H).
    c float32 (L, T + 1, B, H). The output is not here: autograd's node of it holds these.
    """

    def __init__(self, x: Tensor, layers: int, rounds: int) -> None:
        steps, texts, units = x.shape
        shape = (layers, steps, texts, units)
        self.x = [x.new_empty(shape) for _ in range((rounds + 1) // 2 + 1)]
        self.h = [x.new_empty(shape) for _ in range(rounds // 2 + 1)]
        self.sigma = x.new_empty(rounds, *shape)
        self.gates = x.new_empty(*shape[:-1], 4 * units)
        self.c = x.new_empty(layers, steps + 1, texts, units, dtype=torch.float32)

    def source(self, number: int) -> Tensor:
        """Return what round ``number``, counted from 1, multiplies by its matrix."""
        return self.h[number // 2] if number % 2 else self.x[number // 2]

    def gated(self, number: int) -> Tensor:
        """Return what a round wrote; number 0 stands for the first h, number −1 for the first x."""
        return self.x[number // 2 + 1] if number % 2 else self.h[number // 2]


class StackLauncher:
    """Launches of one run: sizes, strides and options that all of them share."""

    def __init__(self, buffers: Buffers, stack: Stack) -> None:
        self.buffers, self.stack = buffers, stack
        self.layers, self.steps, self.texts, self.units = buffers.x[0].shape
        self.rounds = len(buffers.sigma)
        self.layer = self.steps * self.texts * self.units
        device, kind = buffers.gates.device, buffers.gates.dtype
        memory = memory_per_program(device.type, device.index)
        self.tiles = _tiles(self.texts, self.units, kind == torch.float32, memory)
        dependent = launches_dependents(device.type, device.index)
        self.sizes: dict[str, Any] = {"H": self.units, "B": self.texts, "DEPENDENT": dependent}
        if dependent:
            self.sizes["launch_pdl"] = True
        between = stack.between
        per_step = between is not None and between.shape[1] > 1
        self.mask_step = self.texts * self.units if per_step else 0
        self.mask_layer = 0 if between is None else between.stride(0)
        self.cell = {
            "LAYERS": self.layers, "CAPPED": stack.capped,
            "STATE_MASK": stack.state_mask is not None, "BETWEEN": between is not None,
        }  # fmt: skip
        self.waves = range(self.steps + self.layers - 1)

    def grid(self, tile: _Tile, units: int) -> tuple[int, int, int]:
        """Return the programs of a product: tiles of units, tiles of texts, layers."""
        return units // tile.units, self.texts // tile.texts, self.layers

    def mask(self, mask: Tensor | None) -> Tensor:
        """Return a mask, or anything where it is not read."""
        return self.buffers.gates if mask is None else mask

    def forward(self, out: Tensor) -> None:
        """Fill the buffers and the output from the inputs and the states before the first step."""
        made, stack, steps, layer, tiles = self.buffers, self.stack, self.steps, self.layer, self.tiles
        biased = stack.round_bias is not None
        on_round, on_cell = self.grid(tiles.round, self.units), self.grid(tiles.cell, self.units)
        for wave in self.waves:
            for number in range(1, self.rounds + 1):
                weight = cast(Tensor, stack.rounds)[number - 1]
                bias = weight if stack.round_bias is None else stack.round_bias[number - 1]
                forward_round[on_round](
                    made.source(number), weight, bias, made.gated(number - 2), made.gated(number),
                    made.sigma[number - 1], wave, steps, layer, BIAS=biased, **tiles.round.options(), **self.sizes,
                )  # fmt: skip
            forward_cell[on_cell](
                made.x[-1], made.h[-1], stack.w_x, stack.w_h, stack.bias, made.c, made.gates, out, made.h[0],
                self.mask(stack.state_mask), made.x[0], self.mask(stack.between), wave, steps, layer, self.mask_step,
                self.mask_layer, **self.cell, **tiles.cell.options(), **self.sizes,
            )  # fmt: skip

    def backward(self, d_out: Tensor, d_c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Turn ``gates`` into their gradients; return those of x, of h (both before the rounds, float32) and of what
        each round's sigmoid read (R, L, T, B, H).
        """
        made, stack, steps, layer, tiles = self.buffers, self.stack, self.steps, self.layer, self.tiles
        d_x, d_h = (torch.empty_like(made.x[0], dtype=torch.float32) for _ in range(2))
        inside = torch.empty_like(made.sigma)
        back = stack.w_x.new_empty(self.layers, 2 * self.units, 4 * self.units)
        _transpose(stack.w_x, back[:, : self.units])
        _transpose(stack.w_h, back[:, self.units :])
        turned = None if stack.rounds is None else torch.empty_like(stack.rounds)
        if stack.rounds is not None and turned is not None:
            _transpose(stack.rounds.flatten(0, 1), turned.flatten(0, 1))
        out_layer = d_out.stride(0)
        last = self.rounds
        on_gates, on_round = self.grid(tiles.gates, 2 * self.units), self.grid(tiles.round, self.units)
        block = min(POINTWISE, self.texts * self.units & -(self.texts * self.units))
        pointwise = (self.texts * self.units // block, self.layers)
        unread = made.gates
        for wave in self.waves:
            backward_cell[pointwise](
                d_out, d_h, d_x, self.mask(stack.state_mask), self.mask(stack.between), made.gates, made.c, d_c, wave,
                steps, layer, out_layer, self.mask_step, self.mask_layer, BLOCK=block, num_warps=4, **self.cell,
                **self.sizes,
            )  # fmt: skip
            backward_gates[on_gates](
                made.gates, back, d_x, d_h, made.gated(last) if last else unread, made.sigma[last - 1] if last
                else unread, inside[last - 1] if last else unread, wave, steps, layer, LAST=last % 2 if last else -1,
                LAYERS=self.layers, **tiles.gates.options(), **self.sizes,
            )  # fmt: skip
            for number in range(last, 0, -1):
                more, before = number > 1, max(number - 2, 0)
                backward_round[on_round](
                    inside[number - 1], cast(Tensor, turned)[number - 1], d_h if number % 2 else d_x,
                    made.gated(number - 1) if more else unread, made.sigma[before], inside[before], wave, steps, layer,
                    MORE=more, LAYERS=self.layers, **tiles.round.options(), **self.sizes,
                )  # fmt: skip
        return d_x, d_h, inside


class _Stack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        h: Tensor,
        c: Tensor,
        w_x: Tensor,
        w_h: Tensor,
        bias: Tensor,
        rounds: Tensor | None,
        round_bias: Tensor | None,
        state_mask: Tensor | None,
        between: Tensor | None,
        capped: bool,
    ) -> tuple[Tensor, Tensor]:
        """Return the outputs of all layers, and their last cells."""
        learnt = w_x.contiguous(), w_h.contiguous(), bias.contiguous()
        others = [None if part is None else part.contiguous() for part in (rounds, round_bias, state_mask, between)]
        stack = Stack(*learnt, others[0], others[1], others[2], others[3], capped)
        buffers = Buffers(x, len(w_x), 0 if rounds is None else len(rounds))
        buffers.x[0][0].copy_(x)
        buffers.h[0][:, 0].copy_(h if state_mask is None else h * state_mask)
        buffers.c[:, 0].copy_(c)
        out = torch.empty_like(buffers.x[0])
        StackLauncher(buffers, stack).forward(out)
        ctx.saved = buffers, stack
        return out, buffers.c[:, -1].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """Return the gradients of the input, the first states and the weights."""
        d_out, d_last = grads
        buffers, stack = cast(tuple[Buffers, Stack], take_saved(ctx))
        d_c = d_last.float().contiguous().clone()
        low = buffers.gates.dtype
        shared = d_out.stride(0) == 0 and d_out[0].is_contiguous()  # of a sum of layers
        d_out = d_out.to(low) if shared and d_out.dtype == low else d_out.to(low).contiguous()
        d_x, d_h, inside = StackLauncher(buffers, stack).backward(d_out, d_c)
        weights = _weight_gradients(buffers, inside, stack)
        d_before = d_h[:, 0] if stack.state_mask is None else d_h[:, 0] * stack.state_mask
        return d_x[0].to(low), d_before.to(low), d_c, *weights, None, None, None


def _transpose(source: Tensor, target: Tensor) -> None:
    """Write matrices (n, rows, columns) transposed to ``target``, whose matrices are contiguous; multiples of 64."""
    matrices, rows, columns = source.shape
    grid = (rows // UNITS_MULTIPLE, columns // UNITS_MULTIPLE, matrices)
    transpose[grid](source, target, rows, columns, target.stride(0), BLOCK=UNITS_MULTIPLE, num_warps=4)


def _weight_gradients(buffers: Buffers, inside: Tensor, stack: Stack) -> tuple[Tensor | None, ...]:
    """Return the gradients of w_x, w_h, bias, rounds and round_bias: products over all steps."""
    layers, steps, texts, _ = buffers.x[0].shape
    words = steps * texts

    def flat(part: Tensor) -> Tensor:
        return part.view(layers, words, -1)

    d_gates = flat(buffers.gates).transpose(1, 2)
    d_w_x, d_w_h = (torch.bmm(d_gates, flat(part)) for part in (buffers.x[-1], buffers.h[-1]))
    ones = buffers.gates.new_ones(layers, words, 1)
    d_bias = torch.bmm(d_gates, ones)[:, :, 0]
    if stack.rounds is None:
        return d_w_x, d_w_h, d_bias, None, None
    d_rounds = torch.empty_like(stack.rounds)
    d_round_bias = None if stack.round_bias is None else torch.empty_like(stack.round_bias)
    for number in range(1, len(stack.rounds) + 1):
        read = flat(inside[number - 1]).transpose(1, 2)
        torch.bmm(read, flat(buffers.source(number)), out=d_rounds[number - 1])
        if d_round_bias is not None:
            d_round_bias[number - 1] = torch.bmm(read, ones)[:, :, 0]
    return d_w_x, d_w_h, d_bias, d_rounds, d_round_bias
