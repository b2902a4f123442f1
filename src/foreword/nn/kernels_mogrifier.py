"""Triton kernels of a stack of (Mogrifier) LSTM layers: five, each for one phase of one wave.

In wave s layer l is at step t = s − l: all layers run in one launch, and a launch waits only for the one before it.
Backwards layer l is at step t = T − 1 − s + (L − 1 − l). A program computes a tile of BM texts and BN units: a product
over all units in blocks of BK, and in its epilogue everything pointwise that needs no other tile.

Arrays are (L, T, B, H) of half precision unless said otherwise: L layers, T steps, B texts, H units; ``layer`` is the
stride of a layer in them. B is a multiple of BM, H of BN and BK. Gates are in the order i, f, g, o.

Products of float32 take three passes of the matrix units (tf32x3), which is as exact as float32 sums are. With
``DEPENDENT`` a program starts before the launch that it depends on has ended, and waits for it at the top.
"""

from __future__ import annotations

from foreword.nn.gpu import jit, tl


@jit()
def tanh(x):
    """Return tanh by the sigmoid, which the chip computes fast; exact to float32's precision at 1, absolutely at 0."""
    return 2 * tl.sigmoid(2 * x) - 1


@jit()
def await_previous(DEPENDENT: tl.constexpr):
    """Wait for the launch before this one, and let the next one begin."""
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@jit()
def transpose(source, target, rows, columns, target_stride, BLOCK: tl.constexpr):
    """Write every matrix of ``source`` (n, rows, columns) transposed; ``target_stride`` apart in ``target``."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(2)
    read = source + first * rows * columns + row[:, None] * columns + column[None, :]
    written = target + first * target_stride + column[:, None] * rows + row[None, :]
    tl.store(written, tl.trans(tl.load(read)))


@jit(do_not_specialize=["wave"])
def forward_round(
    source, weight, bias, before, after, sigma, wave, steps, layer,
    BIAS: tl.constexpr, H: tl.constexpr, B: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute one round: after = 2 σ(source Wᵀ + b) · before. weight (L, H, H), bias (L, H); sigma: the gate."""
    await_previous(DEPENDENT)
    depth = tl.program_id(2)
    t = wave - depth
    if (t >= 0) & (t < steps):
        rows = tl.program_id(1) * BM + tl.arange(0, BM)
        units = tl.program_id(0) * BN + tl.arange(0, BN)
        inner = tl.arange(0, BK)
        offset = depth * layer + t * (B * H)
        sources = source + offset + rows[:, None] * H + inner[None, :]
        weights = weight + depth * (H * H) + units[None, :] * H + inner[:, None]
        at = offset + rows[:, None] * H + units[None, :]
        x = tl.load(before + at).to(tl.float32)
        total = tl.zeros((BM, BN), tl.float32)
        if BIAS:
            total += tl.load(bias + depth * H + units)[None, :].to(tl.float32)
        for k in range(0, H, BK):
            total = tl.dot(tl.load(sources + k), tl.load(weights + k), total, input_precision="tf32x3")
        gate = tl.sigmoid(total)
        tl.store(sigma + at, gate.to(sigma.dtype.element_ty))
        tl.store(after + at, (2 * gate * x).to(after.dtype.element_ty))


@jit(do_not_specialize=["wave"])
def forward_cell(
    x, h, w_x, w_h, bias, c, gates, out, next_h, state_mask, next_x, between, wave, steps, layer, mask_step, mask_layer,
    LAYERS: tl.constexpr, CAPPED: tl.constexpr, STATE_MASK: tl.constexpr, BETWEEN: tl.constexpr,
    H: tl.constexpr, B: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute one step's gates and state. w_x, w_h (L, 4H, H), bias (L, 4H), c float32 (L, T + 1, B, H), gates (…, 4H).

    The four gates of a unit are neighbouring columns of one product. h goes to ``out``; dropped by ``state_mask``
    (L, B, H) to the next step; dropped by ``between``, of strides ``mask_layer`` and ``mask_step``, to the next layer.
    """
    await_previous(DEPENDENT)
    depth = tl.program_id(2)
    t = wave - depth
    if (t >= 0) & (t < steps):
        rows = tl.program_id(1) * BM + tl.arange(0, BM)
        units = tl.program_id(0) * BN + tl.arange(0, BN)
        inner = tl.arange(0, BK)
        offset = depth * layer + t * (B * H)
        sources = offset + rows[:, None] * H + inner[None, :]
        columns = tl.arange(0, 4 * BN)
        gate_rows = (columns % 4) * H + tl.program_id(0) * BN + columns // 4
        weights = depth * (4 * H * H) + gate_rows[None, :] * H + inner[:, None]
        tile = rows[:, None] * H + units[None, :]
        cell = c + depth * (layer + B * H) + t * (B * H) + tile
        before = tl.load(cell)
        total = tl.zeros((BM, 4 * BN), tl.float32)
        for k in range(0, H, BK):
            total = tl.dot(tl.load(x + sources + k), tl.load(w_x + weights + k), total, input_precision="tf32x3")
        for k in range(0, H, BK):
            total = tl.dot(tl.load(h + sources + k), tl.load(w_h + weights + k), total, input_precision="tf32x3")
        even, odd = tl.split(tl.reshape(total, (BM, BN, 2, 2)))
        i, g = tl.split(even)
        f, o = tl.split(odd)
        biases = bias + depth * (4 * H) + units
        i = tl.sigmoid(i + tl.load(biases)[None, :].to(tl.float32))
        f = tl.sigmoid(f + tl.load(biases + H)[None, :].to(tl.float32))
        g = tanh(g + tl.load(biases + 2 * H)[None, :].to(tl.float32))
        o = tl.sigmoid(o + tl.load(biases + 3 * H)[None, :].to(tl.float32))
        write = i
        if CAPPED:
            write = tl.minimum(1 - f, i)
        now = f * before + write * g
        state = o * tanh(now)
        tl.store(cell + B * H, now)
        low = out.dtype.element_ty
        kept = gates + 4 * offset + rows[:, None] * (4 * H) + units[None, :]
        tl.store(kept, i.to(low))
        tl.store(kept + H, f.to(low))
        tl.store(kept + 2 * H, g.to(low))
        tl.store(kept + 3 * H, o.to(low))
        tl.store(out + offset + tile, state.to(low))
        if t + 1 < steps:
            carried = state
            if STATE_MASK:
                carried = state * tl.load(state_mask + depth * (B * H) + tile).to(tl.float32)
            tl.store(next_h + offset + B * H + tile, carried.to(low))
        if depth < LAYERS - 1:
            passed = state
            if BETWEEN:
                passed = state * tl.load(between + depth * mask_layer + t * mask_step + tile).to(tl.float32)
            tl.store(next_x + offset + layer + tile, passed.to(low))


@jit(do_not_specialize=["wave"])
def backward_cell(
    d_out, d_h, d_x, state_mask, between, gates, c, d_c, wave, steps, layer, out_layer, mask_step, mask_layer,
    LAYERS: tl.constexpr, CAPPED: tl.constexpr, STATE_MASK: tl.constexpr, BETWEEN: tl.constexpr,
    H: tl.constexpr, B: tl.constexpr, BLOCK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute the cell's pointwise gradient: gates are replaced by the gradients of their inputs.

    d_h, d_x float32: of the inputs of step t + 1 and of the layer above; d_c float32 (L, B, H): of the state, which is
    updated. d_out: of the output; a layer's stride in it is ``out_layer``, 0 where all layers have the same.
    """
    await_previous(DEPENDENT)
    depth = tl.program_id(1)
    t = steps - 1 - wave + (LAYERS - 1 - depth)
    if (t >= 0) & (t < steps):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        offset = depth * layer + t * (B * H)
        d_state = tl.load(d_out + depth * out_layer + t * (B * H) + at).to(tl.float32)
        if t < steps - 1:
            later = tl.load(d_h + offset + B * H + at)
            if STATE_MASK:
                later *= tl.load(state_mask + depth * (B * H) + at).to(tl.float32)
            d_state += later
        if depth < LAYERS - 1:
            above = tl.load(d_x + offset + layer + at)
            if BETWEEN:
                above *= tl.load(between + depth * mask_layer + t * mask_step + at).to(tl.float32)
            d_state += above
        kept = gates + 4 * offset + (at // H) * (4 * H) + at % H
        i = tl.load(kept).to(tl.float32)
        f = tl.load(kept + H).to(tl.float32)
        g = tl.load(kept + 2 * H).to(tl.float32)
        o = tl.load(kept + 3 * H).to(tl.float32)
        cell = c + depth * (layer + B * H) + t * (B * H) + at
        before = tl.load(cell)
        now = tanh(tl.load(cell + B * H))
        d_cell = tl.load(d_c + depth * (B * H) + at) + d_state * o * (1 - now * now)
        write = i
        d_f = d_cell * before
        d_i = d_cell * g
        if CAPPED:
            capped = (1 - f) < i
            write = tl.minimum(1 - f, i)
            d_f = tl.where(capped, d_f - d_i, d_f)
            d_i = tl.where(capped, 0.0, d_i)
        tl.store(d_c + depth * (B * H) + at, d_cell * f)
        low = gates.dtype.element_ty
        tl.store(kept, (d_i * i * (1 - i)).to(low))
        tl.store(kept + H, (d_f * f * (1 - f)).to(low))
        tl.store(kept + 2 * H, (d_cell * write * (1 - g * g)).to(low))
        tl.store(kept + 3 * H, (d_state * now * o * (1 - o)).to(low))


@jit(do_not_specialize=["wave"])
def backward_gates(
    gates, weight, d_x, d_h, gated, sigma, d_round, wave, steps, layer, LAST: tl.constexpr, LAYERS: tl.constexpr,
    H: tl.constexpr, B: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of x and h from those of the gates. weight (L, 2H, 4H): of x, then of h, both transposed.

    LAST: what the last round gated: 1 x, 0 h, −1 there is no round. Its gradient is taken on here: d_round, of what
    went into its sigmoid, and what is left for the round's input.
    """
    await_previous(DEPENDENT)
    depth = tl.program_id(2)
    t = steps - 1 - wave + (LAYERS - 1 - depth)
    if (t >= 0) & (t < steps):
        rows = tl.program_id(1) * BM + tl.arange(0, BM)
        first = tl.program_id(0) * BN
        units = first + tl.arange(0, BN)
        inner = tl.arange(0, BK)
        offset = depth * layer + t * (B * H)
        sources = gates + 4 * offset + rows[:, None] * (4 * H) + inner[None, :]
        weights = weight + depth * (8 * H * H) + units[None, :] * (4 * H) + inner[:, None]
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(0, 4 * H, BK):
            total = tl.dot(tl.load(sources + k), tl.load(weights + k), total, input_precision="tf32x3")
        if first < H:
            at = offset + rows[:, None] * H + units[None, :]
            if LAST == 1:
                gate = tl.load(sigma + at).to(tl.float32)
                inside = total * tl.load(gated + at).to(tl.float32) * (1 - gate)
                tl.store(d_round + at, inside.to(d_round.dtype.element_ty))
                total = total * 2 * gate
            tl.store(d_x + at, total)
        else:
            at = offset + rows[:, None] * H + (units - H)[None, :]
            if LAST == 0:
                gate = tl.load(sigma + at).to(tl.float32)
                inside = total * tl.load(gated + at).to(tl.float32) * (1 - gate)
                tl.store(d_round + at, inside.to(d_round.dtype.element_ty))
                total = total * 2 * gate
            tl.store(d_h + at, total)


@jit(do_not_specialize=["wave"])
def backward_round(
    inside, weight, d_source, gated, sigma, d_round, wave, steps, layer, MORE: tl.constexpr, LAYERS: tl.constexpr,
    H: tl.constexpr, B: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Add a round's gradient to its source's, d_source float32, from ``inside``, that of what its sigmoid read.

    weight (L, H, H), transposed. MORE: there is a round before, whose gradient is taken on as in ``backward_gates``.
    """
    await_previous(DEPENDENT)
    depth = tl.program_id(2)
    t = steps - 1 - wave + (LAYERS - 1 - depth)
    if (t >= 0) & (t < steps):
        rows = tl.program_id(1) * BM + tl.arange(0, BM)
        units = tl.program_id(0) * BN + tl.arange(0, BN)
        inner = tl.arange(0, BK)
        offset = depth * layer + t * (B * H)
        sources = inside + offset + rows[:, None] * H + inner[None, :]
        weights = weight + depth * (H * H) + units[None, :] * H + inner[:, None]
        at = offset + rows[:, None] * H + units[None, :]
        total = tl.load(d_source + at)
        if MORE:
            gate = tl.load(sigma + at).to(tl.float32)
            open_share = tl.load(gated + at).to(tl.float32) * (1 - gate)
        for k in range(0, H, BK):
            total = tl.dot(tl.load(sources + k), tl.load(weights + k), total, input_precision="tf32x3")
        if MORE:
            tl.store(d_round + at, (total * open_share).to(d_round.dtype.element_ty))
            total = total * 2 * gate
        tl.store(d_source + at, total)
