"""Triton kernels of a stack of layers of the cells of ``nn/gated.py``: products, and two pointwise kernels per cell.

One launch serves every layer that is active in a wave, each at a step of its own: layer l at t = wave − APART · l. A
step is a product with the state before it and a pointwise kernel; backwards it is the other way round, and waves run
from the last to the first. The launch of products also multiplies the inputs of the layers above the first: forward one
wave before the step that reads them (APART = 2), so that both products can add to the same numbers, and backward in the
wave of their step (APART = 1).

Numbers that a step leaves for the backward pass are its preactivations ``a`` (L, T, B, G·H) and the states after it
(L, T + 1, B, H), all float32 but h; a backward kernel computes the gates from them again. Gradients of states are
float32 (L, B, H) and carried from step to step in place: d_h comes in as what the later step's product gave and goes
out without it, and so does d_x (L − 1, B, H), of what the layer above has read. d_out (T, B, H): of the last layer's
output.

L layers, the first of a launch being ``lowest``, T steps, B texts, H units. Pointwise kernels work on BLOCK numbers of
(B, H); those with a mean in them on one text, BLOCK ≥ H numbers of each gate, of which the first UNITS count. MASKS,
L − 1 or 0, are between layers: ``between`` (L − 1, mask_steps, B, H), mask_steps T or 1, multiplies a layer's output on
its way to ``passed`` (L − 1, T + 1, B, H), which the next layer reads. With ``DEPENDENT`` a program starts before the
launch that it depends on has ended, and waits for it at the top.
"""

from __future__ import annotations

from foreword.nn.gpu import jit, tl
from foreword.nn.kernels_mogrifier import await_previous, tanh

phase = jit(do_not_specialize=["wave", "lowest", "count", "lowest_upper", "steps", "mask_steps"])
"""Mark the kernel of one phase of a wave: it is compiled once for all waves and lengths of texts."""


@phase
def add_products(
    source, weight, total, upper_source, upper_weight, upper_total, wave, lowest, count, lowest_upper,
    source_layer, source_step, source_row, weight_layer, weight_row, total_layer, total_step, total_row,
    APART: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Add source (B, K) · weightᵀ, weight (N, K), to total (B, N), in ``count`` layers and then in upper ones.

    Upper arrays have the same strides, and begin at the second layer where the others begin at the first.
    """
    await_previous(DEPENDENT)
    job = tl.program_id(2)
    layer = lowest + job
    t = wave - APART * layer
    if job >= count:
        layer = lowest_upper + job - count
        t = wave - 1 - APART * layer
        source = upper_source
        weight = upper_weight
        total = upper_total
    layer = layer.to(tl.int64)
    t = t.to(tl.int64)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    sources = source + layer * source_layer + t * source_step + rows[:, None] * source_row + inner[None, :]
    weights = weight + layer * weight_layer + columns[None, :] * weight_row + inner[:, None]
    totals = total + layer * total_layer + t * total_step + rows[:, None] * total_row + columns[None, :]
    value = tl.load(totals)
    for k in range(0, K, BK):
        value = tl.dot(tl.load(sources + k), tl.load(weights + k), value, input_precision="tf32x3")
    tl.store(totals, value)


@jit()
def begin(wave, lowest, steps, APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr, DEPENDENT: tl.constexpr):
    """Wait for the launch before; return layer and step, and their offsets in (L, T + 1, B, H) and (L, T, B, H)."""
    await_previous(DEPENDENT)
    layer = (lowest + tl.program_id(1)).to(tl.int64)
    t = wave - APART * layer
    step = (layer * steps + t) * (B * H)
    return layer, t, step + layer * (B * H), step


@jit()
def positions(H: tl.constexpr, GATES: tl.constexpr, BLOCK: tl.constexpr):
    """Return where a program's numbers are in (B, H), and where their first gates are in (B, G·H)."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    return at, (at // H) * (GATES * H) + at % H


@jit()
def write_output(
    value, h, passed, between, at, there, layer, t, state, mask_steps,
    MASKS: tl.constexpr, B: tl.constexpr, H: tl.constexpr,
):  # fmt: skip
    """Write a step's output to h and, where there is a mask, what the next layer reads. there: of ``at``, None all."""
    low = h.dtype.element_ty
    tl.store(h + state + B * H + at, value.to(low), there)
    if layer < MASKS:
        mask = tl.load(between + (layer * mask_steps + tl.minimum(t, mask_steps - 1)) * (B * H) + at, there)
        tl.store(passed + state + at, (value * mask.to(tl.float32)).to(low), there)


@jit()
def output_gradient(
    d_out, d_h, d_x, between, at, there, layer, t, mask_steps,
    LAYERS: tl.constexpr, MASKS: tl.constexpr, B: tl.constexpr, H: tl.constexpr,
):  # fmt: skip
    """Return the gradient of a step's h: of the later step, and of the loss or the layer above. d_x becomes zero.

    A load and a store of the same numbers may belong to different threads, in half precision above all, where both have
    layouts of their own. The barrier keeps d_x, and d_h in the kernels that clear it, until all threads have read them.
    """
    own = layer * (B * H)
    total = tl.load(d_h + own + at, there)
    if layer == LAYERS - 1:
        total += tl.load(d_out + t * (B * H) + at, there).to(tl.float32)
        tl.debug_barrier()
    else:
        above = tl.load(d_x + own + at, there)
        tl.debug_barrier()
        tl.store(d_x + own + at, tl.zeros_like(above), there)
        if MASKS:
            mask = tl.load(between + (layer * mask_steps + tl.minimum(t, mask_steps - 1)) * (B * H) + at, there)
            above *= mask.to(tl.float32)
        total += above
    return total


@phase
def forward_cifg(
    a, h, c, passed, between, wave, lowest, steps, mask_steps,
    MASKS: tl.constexpr, APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr, BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute one step of an LSTM with coupled input and forget gates."""
    layer, t, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    at, gate = positions(H, 3, BLOCK)
    a += 3 * step
    c += state
    f = tl.sigmoid(tl.load(a + gate))
    new = f * tl.load(c + at) + (1 - f) * tanh(tl.load(a + gate + H))
    tl.store(c + B * H + at, new)
    value = tl.sigmoid(tl.load(a + gate + 2 * H)) * tanh(new)
    write_output(value, h, passed, between, at, None, layer, t, state, mask_steps, MASKS, B, H)


@phase
def backward_cifg(
    a, h, c, between, d_out, d_h, d_x, d_c, d_a, wave, lowest, steps, mask_steps,
    LAYERS: tl.constexpr, MASKS: tl.constexpr, APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr,
    BLOCK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of one step of an LSTM with coupled input and forget gates."""
    layer, t, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    at, gate = positions(H, 3, BLOCK)
    a += 3 * step
    d_a += 3 * step
    c += state
    d_c += layer * (B * H)
    f = tl.sigmoid(tl.load(a + gate))
    g = tanh(tl.load(a + gate + H))
    o = tl.sigmoid(tl.load(a + gate + 2 * H))
    squashed = tanh(tl.load(c + B * H + at))
    d_state = output_gradient(d_out, d_h, d_x, between, at, None, layer, t, mask_steps, LAYERS, MASKS, B, H)
    d_cell = tl.load(d_c + at) + d_state * o * (1 - squashed * squashed)
    low = d_a.dtype.element_ty
    tl.store(d_a + gate, (d_cell * (tl.load(c + at) - g) * f * (1 - f)).to(low))
    tl.store(d_a + gate + H, (d_cell * (1 - f) * (1 - g * g)).to(low))
    tl.store(d_a + gate + 2 * H, (d_state * squashed * o * (1 - o)).to(low))
    tl.store(d_c + at, d_cell * f)
    tl.store(d_h + layer * (B * H) + at, tl.zeros((BLOCK,), tl.float32))


@phase
def forward_peephole(
    a, h, c, seen, passed, between, wave, lowest, steps, mask_steps,
    MASKS: tl.constexpr, APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr, BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute one step of an LSTM with peepholes, seen (L, 3, H)."""
    layer, t, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    at, gate = positions(H, 4, BLOCK)
    a += 4 * step
    c += state
    unit = seen + layer * (3 * H) + at % H
    before = tl.load(c + at)
    i = tl.sigmoid(tl.load(a + gate) + tl.load(unit) * before)
    f = tl.sigmoid(tl.load(a + gate + H) + tl.load(unit + H) * before)
    new = f * before + i * tanh(tl.load(a + gate + 2 * H))
    o = tl.sigmoid(tl.load(a + gate + 3 * H) + tl.load(unit + 2 * H) * new)
    tl.store(c + B * H + at, new)
    write_output(o * tanh(new), h, passed, between, at, None, layer, t, state, mask_steps, MASKS, B, H)


@phase
def backward_peephole(
    a, h, c, seen, between, d_out, d_h, d_x, d_c, d_a, wave, lowest, steps, mask_steps,
    LAYERS: tl.constexpr, MASKS: tl.constexpr, APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr,
    BLOCK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of one step of an LSTM with peepholes."""
    layer, t, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    at, gate = positions(H, 4, BLOCK)
    a += 4 * step
    d_a += 4 * step
    c += state
    d_c += layer * (B * H)
    unit = seen + layer * (3 * H) + at % H
    before, now = tl.load(c + at), tl.load(c + B * H + at)
    by_i, by_f, by_o = tl.load(unit), tl.load(unit + H), tl.load(unit + 2 * H)
    i = tl.sigmoid(tl.load(a + gate) + by_i * before)
    f = tl.sigmoid(tl.load(a + gate + H) + by_f * before)
    g = tanh(tl.load(a + gate + 2 * H))
    o = tl.sigmoid(tl.load(a + gate + 3 * H) + by_o * now)
    squashed = tanh(now)
    d_state = output_gradient(d_out, d_h, d_x, between, at, None, layer, t, mask_steps, LAYERS, MASKS, B, H)
    d_o = d_state * squashed * o * (1 - o)
    d_cell = tl.load(d_c + at) + d_state * o * (1 - squashed * squashed) + d_o * by_o
    d_i = d_cell * g * i * (1 - i)
    d_f = d_cell * before * f * (1 - f)
    low = d_a.dtype.element_ty
    tl.store(d_a + gate, d_i.to(low))
    tl.store(d_a + gate + H, d_f.to(low))
    tl.store(d_a + gate + 2 * H, (d_cell * i * (1 - g * g)).to(low))
    tl.store(d_a + gate + 3 * H, d_o.to(low))
    tl.store(d_c + at, d_cell * f + d_i * by_i + d_f * by_f)
    tl.store(d_h + layer * (B * H) + at, tl.zeros((BLOCK,), tl.float32))


@jit()
def exponents(a, m, n, gate, at, H: tl.constexpr):
    """Return an sLSTM's keep, write, forget gate and new m: e^(log f + m − m′), e^(i − m′), f and m′.

    n: its values before the step. Where they are 0, nothing has been seen, and m counts as −∞.
    """
    i = tl.load(a + gate)
    raw = tl.load(a + gate + H)
    log_f = tl.minimum(raw, 0.0) - tl.log(1 + tl.exp(-tl.abs(raw)))
    log_keep = tl.where(n == 0, float("-inf"), log_f + tl.load(m + at))
    largest = tl.maximum(log_keep, i)
    return tl.exp(log_keep - largest), tl.exp(i - largest), tl.sigmoid(raw), largest


@phase
def forward_slstm(
    a, h, c, n, m, passed, between, wave, lowest, steps, mask_steps,
    MASKS: tl.constexpr, APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr, BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute one step of an sLSTM."""
    layer, t, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    at, gate = positions(H, 4, BLOCK)
    a += 4 * step
    c += state
    n += state
    m += state
    before = tl.load(n + at)
    keep, write, _, largest = exponents(a, m, before, gate, at, H)
    new_c = keep * tl.load(c + at) + write * tanh(tl.load(a + gate + 2 * H))
    new_n = keep * before + write
    tl.store(c + B * H + at, new_c)
    tl.store(n + B * H + at, new_n)
    tl.store(m + B * H + at, largest)
    value = tl.sigmoid(tl.load(a + gate + 3 * H)) * new_c / new_n
    write_output(value, h, passed, between, at, None, layer, t, state, mask_steps, MASKS, B, H)


@phase
def backward_slstm(
    a, h, c, n, m, between, d_out, d_h, d_x, d_c, d_n, d_a, wave, lowest, steps, mask_steps,
    LAYERS: tl.constexpr, MASKS: tl.constexpr, APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr,
    BLOCK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of one step of an sLSTM."""
    layer, t, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    at, gate = positions(H, 4, BLOCK)
    a += 4 * step
    d_a += 4 * step
    c += state
    n += state
    d_c += layer * (B * H)
    d_n += layer * (B * H)
    before = tl.load(n + at)
    keep, write, f, _ = exponents(a, m + state, before, gate, at, H)
    g = tanh(tl.load(a + gate + 2 * H))
    o = tl.sigmoid(tl.load(a + gate + 3 * H))
    now = tl.load(n + B * H + at)
    ratio = tl.load(c + B * H + at) / now
    d_state = output_gradient(d_out, d_h, d_x, between, at, None, layer, t, mask_steps, LAYERS, MASKS, B, H)
    d_cell = tl.load(d_c + at) + d_state * o / now
    d_count = tl.load(d_n + at) - d_state * o * ratio / now
    low = d_a.dtype.element_ty
    tl.store(d_a + gate, ((d_cell * g + d_count) * write).to(low))
    d_keep = d_cell * tl.load(c + at) + d_count * before
    tl.store(d_a + gate + H, (d_keep * keep * (1 - f)).to(low))
    tl.store(d_a + gate + 2 * H, (d_cell * write * (1 - g * g)).to(low))
    tl.store(d_a + gate + 3 * H, (d_state * ratio * o * (1 - o)).to(low))
    tl.store(d_c + at, d_cell * keep)
    tl.store(d_n + at, d_count * keep)
    tl.store(d_h + layer * (B * H) + at, tl.zeros((BLOCK,), tl.float32))


@phase
def reset_gru(
    a, h, gated, wave, lowest, steps,
    APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr, BLOCK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute r·h, the input of the candidate's product, gated (L, T + 1, B, H)."""
    _, _, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    at, gate = positions(H, 3, BLOCK)
    gated_h = tl.sigmoid(tl.load(a + 3 * step + gate)) * tl.load(h + state + at).to(tl.float32)
    tl.store(gated + state + at, gated_h.to(gated.dtype.element_ty))


@phase
def forward_gru(
    a, h, passed, between, wave, lowest, steps, mask_steps,
    MASKS: tl.constexpr, APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr, BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute one step of a GRU, whose candidate's product is in ``a``."""
    layer, t, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    at, gate = positions(H, 3, BLOCK)
    a += 3 * step
    z = tl.sigmoid(tl.load(a + gate + H))
    value = (1 - z) * tanh(tl.load(a + gate + 2 * H)) + z * tl.load(h + state + at).to(tl.float32)
    write_output(value, h, passed, between, at, None, layer, t, state, mask_steps, MASKS, B, H)


@phase
def backward_gru(
    a, h, between, d_out, d_h, d_x, d_a, d_gated, wave, lowest, steps, mask_steps,
    LAYERS: tl.constexpr, MASKS: tl.constexpr, APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr,
    BLOCK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of z and n; d_gated, which the candidate's product adds to, becomes zero."""
    layer, t, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    at, gate = positions(H, 3, BLOCK)
    a += 3 * step
    d_a += 3 * step
    z = tl.sigmoid(tl.load(a + gate + H))
    n = tanh(tl.load(a + gate + 2 * H))
    d_state = output_gradient(d_out, d_h, d_x, between, at, None, layer, t, mask_steps, LAYERS, MASKS, B, H)
    low = d_a.dtype.element_ty
    tl.store(d_a + gate + H, (d_state * (tl.load(h + state + at).to(tl.float32) - n) * z * (1 - z)).to(low))
    tl.store(d_a + gate + 2 * H, (d_state * (1 - z) * (1 - n * n)).to(low))
    tl.store(d_h + layer * (B * H) + at, d_state * z)
    tl.store(d_gated + layer * (B * H) + at, tl.zeros((BLOCK,), tl.float32))


@phase
def backward_reset(
    a, h, d_gated, d_h, d_a, wave, lowest, steps,
    APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr, BLOCK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute the gradient of r, and h's through r·h, from d_gated."""
    layer, _, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    at, gate = positions(H, 3, BLOCK)
    d_h += layer * (B * H)
    r = tl.sigmoid(tl.load(a + 3 * step + gate))
    through = tl.load(d_gated + layer * (B * H) + at)
    d_r = through * tl.load(h + state + at).to(tl.float32) * r * (1 - r)
    tl.store(d_a + 3 * step + gate, d_r.to(d_a.dtype.element_ty))
    tl.store(d_h + at, tl.load(d_h + at) + through * r)


@phase
def forward_gru_after(
    a, s, h, passed, between, wave, lowest, steps, mask_steps,
    MASKS: tl.constexpr, APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr, BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute one step of a GRU that resets after the product: s = W_h h (…, 3H), with the candidate's bias."""
    layer, t, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    at, gate = positions(H, 3, BLOCK)
    a += 3 * step
    s += 3 * step
    r = tl.sigmoid(tl.load(a + gate) + tl.load(s + gate))
    z = tl.sigmoid(tl.load(a + gate + H) + tl.load(s + gate + H))
    n = tanh(tl.load(a + gate + 2 * H) + r * tl.load(s + gate + 2 * H))
    value = (1 - z) * n + z * tl.load(h + state + at).to(tl.float32)
    write_output(value, h, passed, between, at, None, layer, t, state, mask_steps, MASKS, B, H)


@phase
def backward_gru_after(
    a, s, h, between, d_out, d_h, d_x, d_a, d_s, wave, lowest, steps, mask_steps,
    LAYERS: tl.constexpr, MASKS: tl.constexpr, APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr,
    BLOCK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of one step: d_a of the preactivations, d_s of s; d_h without its product."""
    layer, t, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    at, gate = positions(H, 3, BLOCK)
    a += 3 * step
    s += 3 * step
    d_a += 3 * step
    d_s += 3 * step
    inner = tl.load(s + gate + 2 * H)
    r = tl.sigmoid(tl.load(a + gate) + tl.load(s + gate))
    z = tl.sigmoid(tl.load(a + gate + H) + tl.load(s + gate + H))
    n = tanh(tl.load(a + gate + 2 * H) + r * inner)
    d_state = output_gradient(d_out, d_h, d_x, between, at, None, layer, t, mask_steps, LAYERS, MASKS, B, H)
    d_n = d_state * (1 - z) * (1 - n * n)
    low = d_a.dtype.element_ty
    d_r = (d_n * inner * r * (1 - r)).to(low)
    d_z = (d_state * (tl.load(h + state + at).to(tl.float32) - n) * z * (1 - z)).to(low)
    tl.store(d_a + gate, d_r)
    tl.store(d_a + gate + H, d_z)
    tl.store(d_a + gate + 2 * H, d_n.to(low))
    tl.store(d_s + gate, d_r)
    tl.store(d_s + gate + H, d_z)
    tl.store(d_s + gate + 2 * H, (d_n * r).to(low))
    tl.store(d_h + layer * (B * H) + at, d_state * z)


@jit()
def normal_row(x, there, count):
    """Return a row's numbers with mean 0 and variance 1, and what they were multiplied by; the rest is 0."""
    middle = tl.where(there, x - tl.sum(x) / count, 0.0)
    scale = 1 / tl.sqrt(tl.sum(middle * middle) / count + 1e-5)
    return middle * scale, scale


@jit()
def load_four(row, there, H: tl.constexpr):
    """Return the four gates' parts of a row of 4H numbers; 0 where there are none."""
    i, f = tl.load(row, there, 0.0), tl.load(row + H, there, 0.0)
    return i, f, tl.load(row + 2 * H, there, 0.0), tl.load(row + 3 * H, there, 0.0)


@jit()
def four_normal(row, there, units, H: tl.constexpr):
    """Return the four gates' parts of a row of 4H numbers, normalised together, and the scale."""
    i, f, g, o = load_four(row, there, H)
    mean = (tl.sum(i) + tl.sum(f) + tl.sum(g) + tl.sum(o)) / (4 * units)
    i = tl.where(there, i - mean, 0.0)
    f = tl.where(there, f - mean, 0.0)
    g = tl.where(there, g - mean, 0.0)
    o = tl.where(there, o - mean, 0.0)
    squares = tl.sum(i * i) + tl.sum(f * f) + tl.sum(g * g) + tl.sum(o * o)
    scale = 1 / tl.sqrt(squares / (4 * units) + 1e-5)
    return i * scale, f * scale, g * scale, o * scale, scale


@jit()
def four_gates(x_i, x_f, x_g, x_o, s_i, s_f, s_g, s_o, norm, there, H: tl.constexpr):
    """Return the gates from both normalised products. norm: the gains of both, after two more rows the biases."""
    g_i, g_f, g_g, g_o = load_four(norm, there, H)
    h_i, h_f, h_g, h_o = load_four(norm + 4 * H, there, H)
    b_i, b_f, b_g, b_o = load_four(norm + 10 * H, there, H)
    i = tl.sigmoid(x_i * g_i + s_i * h_i + b_i)
    f = tl.sigmoid(x_f * g_f + s_f * h_f + b_f)
    g = tanh(x_g * g_g + s_g * h_g + b_g)
    return i, f, g, tl.sigmoid(x_o * g_o + s_o * h_o + b_o)


@jit()
def through_normal(d_i, d_f, d_g, d_o, n_i, n_f, n_g, n_o, scale, gain, target, there, units, H: tl.constexpr):
    """Write the gradient of a product that was normalised to n and multiplied by gains."""
    g_i, g_f, g_g, g_o = load_four(gain, there, H)
    d_i, d_f, d_g, d_o = d_i * g_i, d_f * g_f, d_g * g_g, d_o * g_o
    mean = (tl.sum(d_i) + tl.sum(d_f) + tl.sum(d_g) + tl.sum(d_o)) / (4 * units)
    along = (tl.sum(d_i * n_i) + tl.sum(d_f * n_f) + tl.sum(d_g * n_g) + tl.sum(d_o * n_o)) / (4 * units)
    low = target.dtype.element_ty
    tl.store(target, (scale * (d_i - mean - n_i * along)).to(low), there)
    tl.store(target + H, (scale * (d_f - mean - n_f * along)).to(low), there)
    tl.store(target + 2 * H, (scale * (d_g - mean - n_g * along)).to(low), there)
    tl.store(target + 3 * H, (scale * (d_o - mean - n_o * along)).to(low), there)


@phase
def forward_ln_lstm(
    a, s, h, c, norm, passed, between, wave, lowest, steps, mask_steps,
    UNITS: tl.constexpr, MASKS: tl.constexpr, APART: tl.constexpr, B: tl.constexpr, H: tl.constexpr,
    BLOCK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute one step of one text: a = W_x x and s = W_h h (…, 4H) are normalised here. norm (L, 14, H)."""
    layer, t, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    unit = tl.arange(0, BLOCK)
    there = unit < UNITS
    at, gate = tl.program_id(0) * H + unit, 4 * step + tl.program_id(0) * (4 * H) + unit
    c += state
    norm += layer * (14 * H) + unit
    x_i, x_f, x_g, x_o, _ = four_normal(a + gate, there, UNITS, H)
    s_i, s_f, s_g, s_o, _ = four_normal(s + gate, there, UNITS, H)
    i, f, g, o = four_gates(x_i, x_f, x_g, x_o, s_i, s_f, s_g, s_o, norm, there, H)
    new = f * tl.load(c + at, there, 0.0) + i * g
    n_c, _ = normal_row(new, there, UNITS)
    shown = n_c * tl.load(norm + 8 * H, there, 0.0) + tl.load(norm + 9 * H, there, 0.0)
    tl.store(c + B * H + at, new, there)
    value = o * tanh(shown)
    write_output(value, h, passed, between, at, there, layer, t, state, mask_steps, MASKS, B, H)


@phase
def backward_ln_lstm(
    a, s, h, c, norm, between, d_out, d_h, d_x, d_c, d_a, d_s, d_gates, d_shown, wave, lowest, steps, mask_steps,
    UNITS: tl.constexpr, LAYERS: tl.constexpr, MASKS: tl.constexpr, APART: tl.constexpr, B: tl.constexpr,
    H: tl.constexpr, BLOCK: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of one text: d_a and d_s of both products, d_gates and d_shown of what σ and tanh read."""
    layer, t, state, step = begin(wave, lowest, steps, APART, B, H, DEPENDENT)
    unit = tl.arange(0, BLOCK)
    there = unit < UNITS
    at, gate = tl.program_id(0) * H + unit, 4 * step + tl.program_id(0) * (4 * H) + unit
    c += state
    norm += layer * (14 * H) + unit
    x_i, x_f, x_g, x_o, x_scale = four_normal(a + gate, there, UNITS, H)
    s_i, s_f, s_g, s_o, s_scale = four_normal(s + gate, there, UNITS, H)
    i, f, g, o = four_gates(x_i, x_f, x_g, x_o, s_i, s_f, s_g, s_o, norm, there, H)
    d_c += layer * (B * H)
    n_c, c_scale = normal_row(tl.load(c + B * H + at, there, 0.0), there, UNITS)
    gain = tl.load(norm + 8 * H, there, 0.0)
    shown = tanh(n_c * gain + tl.load(norm + 9 * H, there, 0.0))
    d_state = output_gradient(d_out, d_h, d_x, between, at, there, layer, t, mask_steps, LAYERS, MASKS, B, H)
    d_state = tl.where(there, d_state, 0.0)
    d_read = d_state * o * (1 - shown * shown)
    tl.store(d_shown + step + at, d_read, there)
    d_n = d_read * gain
    centred = d_n - tl.sum(d_n) / UNITS - n_c * (tl.sum(d_n * n_c) / UNITS)
    d_cell = tl.load(d_c + at, there, 0.0) + tl.where(there, c_scale * centred, 0.0)
    d_i = d_cell * g * i * (1 - i)
    d_f = d_cell * tl.load(c + at, there, 0.0) * f * (1 - f)
    d_g = d_cell * i * (1 - g * g)
    d_o = d_state * shown * o * (1 - o)
    d_gates += gate
    tl.store(d_gates, d_i, there)
    tl.store(d_gates + H, d_f, there)
    tl.store(d_gates + 2 * H, d_g, there)
    tl.store(d_gates + 3 * H, d_o, there)
    through_normal(d_i, d_f, d_g, d_o, x_i, x_f, x_g, x_o, x_scale, norm, d_a + gate, there, UNITS, H)
    through_normal(d_i, d_f, d_g, d_o, s_i, s_f, s_g, s_o, s_scale, norm + 4 * H, d_s + gate, there, UNITS, H)
    tl.store(d_c + at, d_cell * f, there)
    tl.store(d_h + layer * (B * H) + at, tl.zeros((BLOCK,), tl.float32), there)
