"""Triton kernels of the gated cells of ``nn/gated.py``: one product, and two pointwise kernels for each cell.

Every step is a product with the state before it and a pointwise kernel; backwards it is the other way round. Numbers
that a step leaves for the backward pass are its preactivations ``a`` (B, G·H) and the states after it, all float32 but
h; a backward kernel computes the gates from them again. ``d_h`` and the gradients of other states are float32 (B, H)
and carried from step to step in place: d_h comes in as what the later step's product gave and goes out without it.

B texts, H units. Pointwise kernels work on BLOCK numbers of (B, H); those with a mean in them on one text, BLOCK ≥ H
numbers of each gate, of which the first ``units`` count.
"""

from __future__ import annotations

from foreword.nn.gpu import jit, tl
from foreword.nn.kernels_mogrifier import tanh


@jit()
def add_product(
    source, weight, total, source_row, total_row,
    K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Add source (B, K) · weightᵀ, weight (N, K), to total (B, N). source_row, total_row: row strides."""
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    sources = source + rows[:, None] * source_row + inner[None, :]
    weights = weight + columns[None, :] * K + inner[:, None]
    totals = total + rows[:, None] * total_row + columns[None, :]
    value = tl.load(totals)
    for k in range(0, K, BK):
        value = tl.dot(tl.load(sources + k), tl.load(weights + k), value, input_precision="tf32x3")
    tl.store(totals, value)


@jit()
def positions(H: tl.constexpr, GATES: tl.constexpr, BLOCK: tl.constexpr):
    """Return where a program's numbers are in (B, H), and where their first gates are in (B, G·H)."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    return at, (at // H) * (GATES * H) + at % H


@jit()
def forward_cifg(a, c, next_c, next_h, H: tl.constexpr, BLOCK: tl.constexpr):
    """Compute one step of an LSTM with coupled input and forget gates."""
    at, gate = positions(H, 3, BLOCK)
    f = tl.sigmoid(tl.load(a + gate))
    new = f * tl.load(c + at) + (1 - f) * tanh(tl.load(a + gate + H))
    tl.store(next_c + at, new)
    tl.store(next_h + at, (tl.sigmoid(tl.load(a + gate + 2 * H)) * tanh(new)).to(next_h.dtype.element_ty))


@jit()
def backward_cifg(a, c, next_c, d_out, d_h, d_c, d_a, H: tl.constexpr, BLOCK: tl.constexpr):
    """Compute the gradients of one step of an LSTM with coupled input and forget gates."""
    at, gate = positions(H, 3, BLOCK)
    f = tl.sigmoid(tl.load(a + gate))
    g = tanh(tl.load(a + gate + H))
    o = tl.sigmoid(tl.load(a + gate + 2 * H))
    squashed = tanh(tl.load(next_c + at))
    d_state = tl.load(d_out + at).to(tl.float32) + tl.load(d_h + at)
    d_cell = tl.load(d_c + at) + d_state * o * (1 - squashed * squashed)
    low = d_a.dtype.element_ty
    tl.store(d_a + gate, (d_cell * (tl.load(c + at) - g) * f * (1 - f)).to(low))
    tl.store(d_a + gate + H, (d_cell * (1 - f) * (1 - g * g)).to(low))
    tl.store(d_a + gate + 2 * H, (d_state * squashed * o * (1 - o)).to(low))
    tl.store(d_c + at, d_cell * f)
    tl.store(d_h + at, tl.zeros((BLOCK,), tl.float32))


@jit()
def forward_peephole(a, c, next_c, next_h, seen, H: tl.constexpr, BLOCK: tl.constexpr):
    """Compute one step of an LSTM with peepholes."""
    at, gate = positions(H, 4, BLOCK)
    unit = seen + at % H
    before = tl.load(c + at)
    i = tl.sigmoid(tl.load(a + gate) + tl.load(unit) * before)
    f = tl.sigmoid(tl.load(a + gate + H) + tl.load(unit + H) * before)
    new = f * before + i * tanh(tl.load(a + gate + 2 * H))
    o = tl.sigmoid(tl.load(a + gate + 3 * H) + tl.load(unit + 2 * H) * new)
    tl.store(next_c + at, new)
    tl.store(next_h + at, (o * tanh(new)).to(next_h.dtype.element_ty))


@jit()
def backward_peephole(a, c, next_c, d_out, d_h, d_c, d_a, seen, H: tl.constexpr, BLOCK: tl.constexpr):
    """Compute the gradients of one step of an LSTM with peepholes."""
    at, gate = positions(H, 4, BLOCK)
    unit = seen + at % H
    before, now = tl.load(c + at), tl.load(next_c + at)
    by_i, by_f, by_o = tl.load(unit), tl.load(unit + H), tl.load(unit + 2 * H)
    i = tl.sigmoid(tl.load(a + gate) + by_i * before)
    f = tl.sigmoid(tl.load(a + gate + H) + by_f * before)
    g = tanh(tl.load(a + gate + 2 * H))
    o = tl.sigmoid(tl.load(a + gate + 3 * H) + by_o * now)
    squashed = tanh(now)
    d_state = tl.load(d_out + at).to(tl.float32) + tl.load(d_h + at)
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
    tl.store(d_h + at, tl.zeros((BLOCK,), tl.float32))


@jit()
def exponents(a, m, gate, at, H: tl.constexpr):
    """Return an sLSTM's keep, write, forget gate and new m: e^(log f + m − m′), e^(i − m′), f and m′."""
    i = tl.load(a + gate)
    raw = tl.load(a + gate + H)
    log_f = tl.minimum(raw, 0.0) - tl.log(1 + tl.exp(-tl.abs(raw)))
    log_keep = log_f + tl.load(m + at)
    largest = tl.maximum(log_keep, i)
    return tl.exp(log_keep - largest), tl.exp(i - largest), tl.sigmoid(raw), largest


@jit()
def forward_slstm(a, c, n, m, next_c, next_n, next_m, next_h, H: tl.constexpr, BLOCK: tl.constexpr):
    """Compute one step of an sLSTM."""
    at, gate = positions(H, 4, BLOCK)
    keep, write, _, largest = exponents(a, m, gate, at, H)
    new_c = keep * tl.load(c + at) + write * tanh(tl.load(a + gate + 2 * H))
    new_n = keep * tl.load(n + at) + write
    tl.store(next_c + at, new_c)
    tl.store(next_n + at, new_n)
    tl.store(next_m + at, largest)
    h = tl.sigmoid(tl.load(a + gate + 3 * H)) * new_c / new_n
    tl.store(next_h + at, h.to(next_h.dtype.element_ty))


@jit()
def backward_slstm(
    a, c, n, m, next_c, next_n, d_out, d_h, d_c, d_n, d_a, H: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Compute the gradients of one step of an sLSTM."""
    at, gate = positions(H, 4, BLOCK)
    keep, write, f, _ = exponents(a, m, gate, at, H)
    g = tanh(tl.load(a + gate + 2 * H))
    o = tl.sigmoid(tl.load(a + gate + 3 * H))
    now = tl.load(next_n + at)
    ratio = tl.load(next_c + at) / now
    d_state = tl.load(d_out + at).to(tl.float32) + tl.load(d_h + at)
    d_cell = tl.load(d_c + at) + d_state * o / now
    d_count = tl.load(d_n + at) - d_state * o * ratio / now
    low = d_a.dtype.element_ty
    tl.store(d_a + gate, ((d_cell * g + d_count) * write).to(low))
    d_keep = d_cell * tl.load(c + at) + d_count * tl.load(n + at)
    tl.store(d_a + gate + H, (d_keep * keep * (1 - f)).to(low))
    tl.store(d_a + gate + 2 * H, (d_cell * write * (1 - g * g)).to(low))
    tl.store(d_a + gate + 3 * H, (d_state * ratio * o * (1 - o)).to(low))
    tl.store(d_c + at, d_cell * keep)
    tl.store(d_n + at, d_count * keep)
    tl.store(d_h + at, tl.zeros((BLOCK,), tl.float32))


@jit()
def reset_gru(a, h, gated, H: tl.constexpr, BLOCK: tl.constexpr):
    """Compute r·h, the input of the candidate's product."""
    at, gate = positions(H, 3, BLOCK)
    gated_h = tl.sigmoid(tl.load(a + gate)) * tl.load(h + at).to(tl.float32)
    tl.store(gated + at, gated_h.to(gated.dtype.element_ty))


@jit()
def forward_gru(a, h, next_h, H: tl.constexpr, BLOCK: tl.constexpr):
    """Compute one step of a GRU, whose candidate's product is in ``a``."""
    at, gate = positions(H, 3, BLOCK)
    z = tl.sigmoid(tl.load(a + gate + H))
    new = (1 - z) * tanh(tl.load(a + gate + 2 * H)) + z * tl.load(h + at).to(tl.float32)
    tl.store(next_h + at, new.to(next_h.dtype.element_ty))


@jit()
def backward_gru(a, h, d_out, d_h, d_a, d_gated, H: tl.constexpr, BLOCK: tl.constexpr):
    """Compute the gradients of z and n; d_gated, which the candidate's product adds to, becomes zero."""
    at, gate = positions(H, 3, BLOCK)
    z = tl.sigmoid(tl.load(a + gate + H))
    n = tanh(tl.load(a + gate + 2 * H))
    d_state = tl.load(d_out + at).to(tl.float32) + tl.load(d_h + at)
    low = d_a.dtype.element_ty
    tl.store(d_a + gate + H, (d_state * (tl.load(h + at).to(tl.float32) - n) * z * (1 - z)).to(low))
    tl.store(d_a + gate + 2 * H, (d_state * (1 - z) * (1 - n * n)).to(low))
    tl.store(d_h + at, d_state * z)
    tl.store(d_gated + at, tl.zeros((BLOCK,), tl.float32))


@jit()
def backward_reset(a, h, d_gated, d_h, d_a, H: tl.constexpr, BLOCK: tl.constexpr):
    """Compute the gradient of r, and h's through r·h, from d_gated."""
    at, gate = positions(H, 3, BLOCK)
    r = tl.sigmoid(tl.load(a + gate))
    through = tl.load(d_gated + at)
    d_r = through * tl.load(h + at).to(tl.float32) * r * (1 - r)
    tl.store(d_a + gate, d_r.to(d_a.dtype.element_ty))
    tl.store(d_h + at, tl.load(d_h + at) + through * r)


@jit()
def forward_gru_after(a, s, h, next_h, H: tl.constexpr, BLOCK: tl.constexpr):
    """Compute one step of a GRU that resets after the product: s = W_h h (B, 3H), with the candidate's bias."""
    at, gate = positions(H, 3, BLOCK)
    r = tl.sigmoid(tl.load(a + gate) + tl.load(s + gate))
    z = tl.sigmoid(tl.load(a + gate + H) + tl.load(s + gate + H))
    n = tanh(tl.load(a + gate + 2 * H) + r * tl.load(s + gate + 2 * H))
    new = (1 - z) * n + z * tl.load(h + at).to(tl.float32)
    tl.store(next_h + at, new.to(next_h.dtype.element_ty))


@jit()
def backward_gru_after(a, s, h, d_out, d_h, d_a, d_s, H: tl.constexpr, BLOCK: tl.constexpr):
    """Compute the gradients of one step: d_a of the preactivations, d_s of s; d_h without its product."""
    at, gate = positions(H, 3, BLOCK)
    inner = tl.load(s + gate + 2 * H)
    r = tl.sigmoid(tl.load(a + gate) + tl.load(s + gate))
    z = tl.sigmoid(tl.load(a + gate + H) + tl.load(s + gate + H))
    n = tanh(tl.load(a + gate + 2 * H) + r * inner)
    d_state = tl.load(d_out + at).to(tl.float32) + tl.load(d_h + at)
    d_n = d_state * (1 - z) * (1 - n * n)
    low = d_a.dtype.element_ty
    d_r = (d_n * inner * r * (1 - r)).to(low)
    d_z = (d_state * (tl.load(h + at).to(tl.float32) - n) * z * (1 - z)).to(low)
    tl.store(d_a + gate, d_r)
    tl.store(d_a + gate + H, d_z)
    tl.store(d_a + gate + 2 * H, d_n.to(low))
    tl.store(d_s + gate, d_r)
    tl.store(d_s + gate + H, d_z)
    tl.store(d_s + gate + 2 * H, (d_n * r).to(low))
    tl.store(d_h + at, d_state * z)


@jit()
def normal_row(x, there, count):
    """Return a row's numbers with mean 0 and variance 1, and what they were multiplied by; the rest is 0."""
    middle = tl.where(there, x - tl.sum(x) / count, 0.0)
    scale = 1 / tl.sqrt(tl.sum(middle * middle) / count + 1e-5)
    return middle * scale, scale


@jit()
def four_normal(s, at, there, units, H: tl.constexpr):
    """Return the four gates' parts of a row of (B, 4H), normalised together, and the scale."""
    s_i = tl.load(s + at, there, 0.0)
    s_f = tl.load(s + at + H, there, 0.0)
    s_g = tl.load(s + at + 2 * H, there, 0.0)
    s_o = tl.load(s + at + 3 * H, there, 0.0)
    mean = (tl.sum(s_i) + tl.sum(s_f) + tl.sum(s_g) + tl.sum(s_o)) / (4 * units)
    s_i = tl.where(there, s_i - mean, 0.0)
    s_f = tl.where(there, s_f - mean, 0.0)
    s_g = tl.where(there, s_g - mean, 0.0)
    s_o = tl.where(there, s_o - mean, 0.0)
    squares = tl.sum(s_i * s_i) + tl.sum(s_f * s_f) + tl.sum(s_g * s_g) + tl.sum(s_o * s_o)
    scale = 1 / tl.sqrt(squares / (4 * units) + 1e-5)
    return s_i * scale, s_f * scale, s_g * scale, s_o * scale, scale


@jit()
def forward_ln_lstm(a, s, c, next_c, next_h, norm, units, H: tl.constexpr, BLOCK: tl.constexpr):
    """Compute one step of one text: s = W_h h (B, 4H) is normalised and added to a, which stays as it is."""
    row, unit = tl.program_id(0), tl.arange(0, BLOCK)
    there = unit < units
    gate, gain = row * (4 * H) + unit, norm + 4 * H + unit
    n_i, n_f, n_g, n_o, _ = four_normal(s, gate, there, units, H)
    i = tl.sigmoid(tl.load(a + gate, there, 0.0) + n_i * tl.load(gain, there, 0.0))
    f = tl.sigmoid(tl.load(a + gate + H, there, 0.0) + n_f * tl.load(gain + H, there, 0.0))
    g = tanh(tl.load(a + gate + 2 * H, there, 0.0) + n_g * tl.load(gain + 2 * H, there, 0.0))
    o = tl.sigmoid(tl.load(a + gate + 3 * H, there, 0.0) + n_o * tl.load(gain + 3 * H, there, 0.0))
    new = f * tl.load(c + row * H + unit, there, 0.0) + i * g
    n_c, _ = normal_row(new, there, units)
    shown = n_c * tl.load(norm + 8 * H + unit, there, 0.0) + tl.load(norm + 9 * H + unit, there, 0.0)
    tl.store(next_c + row * H + unit, new, there)
    tl.store(next_h + row * H + unit, (o * tanh(shown)).to(next_h.dtype.element_ty), there)


@jit()
def backward_ln_lstm(
    a, s, c, next_c, norm, d_out, d_h, d_c, d_a, d_s, d_shown, units, H: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Compute the gradients of one text: d_a of the preactivations, d_s of W_h h, d_shown of the last tanh's input."""
    row, unit = tl.program_id(0), tl.arange(0, BLOCK)
    there = unit < units
    at, gate, gain = row * H + unit, row * (4 * H) + unit, norm + 4 * H + unit
    n_i, n_f, n_g, n_o, scale = four_normal(s, gate, there, units, H)
    g_i, g_f = tl.load(gain, there, 0.0), tl.load(gain + H, there, 0.0)
    g_g, g_o = tl.load(gain + 2 * H, there, 0.0), tl.load(gain + 3 * H, there, 0.0)
    i = tl.sigmoid(tl.load(a + gate, there, 0.0) + n_i * g_i)
    f = tl.sigmoid(tl.load(a + gate + H, there, 0.0) + n_f * g_f)
    g = tanh(tl.load(a + gate + 2 * H, there, 0.0) + n_g * g_g)
    o = tl.sigmoid(tl.load(a + gate + 3 * H, there, 0.0) + n_o * g_o)
    n_c, scale_c = normal_row(tl.load(next_c + at, there, 0.0), there, units)
    gain_c = tl.load(norm + 8 * H + unit, there, 0.0)
    shown = tanh(n_c * gain_c + tl.load(norm + 9 * H + unit, there, 0.0))
    d_state = tl.load(d_out + at, there, 0.0).to(tl.float32) + tl.load(d_h + at, there, 0.0)
    d_read = d_state * o * (1 - shown * shown)
    tl.store(d_shown + at, d_read, there)
    d_n = d_read * gain_c
    centred = d_n - tl.sum(d_n) / units - n_c * (tl.sum(d_n * n_c) / units)
    d_cell = tl.load(d_c + at, there, 0.0) + tl.where(there, scale_c * centred, 0.0)
    d_i = d_cell * g * i * (1 - i)
    d_f = d_cell * tl.load(c + at, there, 0.0) * f * (1 - f)
    d_g = d_cell * i * (1 - g * g)
    d_o = d_state * shown * o * (1 - o)
    low = d_s.dtype.element_ty
    tl.store(d_a + gate, d_i, there)
    tl.store(d_a + gate + H, d_f, there)
    tl.store(d_a + gate + 2 * H, d_g, there)
    tl.store(d_a + gate + 3 * H, d_o, there)
    d_i, d_f, d_g, d_o = d_i * g_i, d_f * g_f, d_g * g_g, d_o * g_o
    mean = (tl.sum(d_i) + tl.sum(d_f) + tl.sum(d_g) + tl.sum(d_o)) / (4 * units)
    along = (tl.sum(d_i * n_i) + tl.sum(d_f * n_f) + tl.sum(d_g * n_g) + tl.sum(d_o * n_o)) / (4 * units)
    tl.store(d_s + gate, (scale * (d_i - mean - n_i * along)).to(low), there)
    tl.store(d_s + gate + H, (scale * (d_f - mean - n_f * along)).to(low), there)
    tl.store(d_s + gate + 2 * H, (scale * (d_g - mean - n_g * along)).to(low), there)
    tl.store(d_s + gate + 3 * H, (scale * (d_o - mean - n_o * along)).to(low), there)
    tl.store(d_c + at, d_cell * f, there)
    tl.store(d_h + at, tl.zeros((BLOCK,), tl.float32), there)
