"""Persistent kernels of an LSTM layer: one launch for all steps, with the recurrent weights in shared memory.

Each program (thread block) owns 16 units and keeps their 64 rows of W_h in shared memory. H / 16 programs form a group,
which has all units and BM texts of the batch; the other texts have groups of their own. A forward step is

    Z = X + h W_hᵀ,    X = x W_xᵀ + b, one product over all steps before the launch

Each program loads h of all units (BM, H), computes the gates and the state of its own units, stores them, and
increments the counter of its group and step. The next step begins when the counter reaches H / 16.

In the backward step, ∂h = ∂Z W_h, loading ∂Z of all gates in every program would be four times as much as h. Instead
the product is split along both dimensions: program (r, c) of 8 × H / 128 multiplies the gates of an eighth of the
units, block r, by the weights of 128 units, block c, and stores a partial sum; the owner of a unit adds up eight
partial sums. One counter signals that a block of gates is complete (H / 128 programs increment it), another that the
partial sums of a block of units are (8 programs).

Arrays, in half precision unless noted: weight (4H, H), h (T + 1, B, H), gates (T, B, 4H), c float32 (T + 1, B, H).
Gates are in the order i, f, g, o. H is a multiple of 128 and B of BM. What other programs store is loaded past the L1
cache (cp.async and ``.cg``). Written in Gluon, Triton's language with explicit layouts, for Hopper GPUs.

G. Diamos et al., "Persistent RNNs: stashing recurrent weights on-chip" (2016).
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    async_copy,
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.language import debug_barrier

from foreword.nn.persistent_gpu import COUNTER_NUMBERS, EIGHTHS, OWNED_UNITS, PROGRAM_WARPS, WIDE_UNITS

OWNED, WIDE, BLOCKS = gl.constexpr(OWNED_UNITS), gl.constexpr(WIDE_UNITS), gl.constexpr(EIGHTHS)
WARPS, APART = gl.constexpr(PROGRAM_WARPS), gl.constexpr(COUNTER_NUMBERS)


@gluon.jit
def load_acquire(counter):
    """Load a counter; what was stored before it was incremented is visible after this."""
    return gl.inline_asm_elementwise(
        "ld.acquire.gpu.global.u32 $0, [$1];", "=r,l", [counter], dtype=gl.int32, is_pure=False, pack=1
    )


@gluon.jit
def wait_until(counter, count):
    """Spin until a counter reaches ``count``."""
    seen = load_acquire(counter)
    while seen < count:
        seen = load_acquire(counter)


@gluon.jit
def increment(counter):
    """Increment a counter after all stores of this program."""
    debug_barrier()
    gl.atomic_add(counter, 1, sem="release", scope="gpu")


@gluon.jit
def sigmoid(x):
    """Return the sigmoid, using the hardware's approximate exponential and reciprocal (a few ulp)."""
    return gl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=f,f", [1 + gl.exp(-x)], dtype=gl.float32, is_pure=True, pack=1
    )


@gluon.jit
def tanh(x):
    """Return 2 σ(2x) − 1."""
    return 2 * sigmoid(2 * x) - 1


@gluon.jit
def tile_indices(ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    """Return the row and column indices of a tile in a layout in which each thread copies 16 bytes."""
    ACROSS: gl.constexpr = COLUMNS // 8
    lanes: gl.constexpr = gl.BlockedLayout([1, 8], [32 // ACROSS, ACROSS], [WARPS, 1], [1, 0])
    row = gl.arange(0, ROWS, gl.SliceLayout(1, lanes))
    column = gl.arange(0, COLUMNS, gl.SliceLayout(0, lanes))
    return row[:, None], column[None, :]


@gluon.jit
def copy_tile(
    target, source, stride, ROWS: gl.constexpr, COLUMNS: gl.constexpr, rows: gl.constexpr, columns: gl.constexpr
):
    """Start copying a tile (rows, columns) to shared memory, padded with zeros to (ROWS, COLUMNS)."""
    row, column = tile_indices(ROWS, COLUMNS)
    at = source + row * stride + column
    if rows < ROWS:
        async_copy.async_copy_global_to_shared(target, at, mask=row < rows)
    elif columns < COLUMNS:
        async_copy.async_copy_global_to_shared(target, at, mask=column < columns)
    else:
        async_copy.async_copy_global_to_shared(target, at)


@gluon.jit
def copy_owned_weights(target, source, H: gl.constexpr, BK: gl.constexpr):
    """Start copying rows of W_h (64, BK) to shared memory, with the four gates of a unit in consecutive rows."""
    row, column = tile_indices(4 * OWNED, BK)
    async_copy.async_copy_global_to_shared(target, source + (row % 4 * H + row // 4) * H + column)


@gluon.jit
def by_gate(total, BM: gl.constexpr, owned: gl.constexpr):
    """Return i, f, g and o (16, BM) of sums (64, BM)."""
    whole: gl.constexpr = gl.BlockedLayout([BM // 2, 1], [128 // BM, BM // 4], [1, WARPS], [0, 1])
    by_unit = gl.permute(gl.reshape(gl.convert_layout(total, whole), (OWNED, 4, BM)), (0, 2, 1))
    even, odd = gl.split(gl.reshape(by_unit, (OWNED, BM, 2, 2)))
    i, g = gl.split(even)
    f, o = gl.split(odd)
    return (
        gl.convert_layout(i, owned), gl.convert_layout(f, owned), gl.convert_layout(g, owned),
        gl.convert_layout(o, owned),
    )  # fmt: skip


@gluon.jit
def forward(
    gates, weight, h, c, out, mask, counters, steps,
    CAPPED: gl.constexpr, MASK: gl.constexpr, H: gl.constexpr, B: gl.constexpr, BM: gl.constexpr, BK: gl.constexpr,
):  # fmt: skip
    """Compute all steps. gates: X, overwritten with the gates. counters int32 (groups, T + 1, 8): zeros.

    mask (B, H): dropout mask of the recurrent state. h is stored masked, ``out`` (T, B, H) is not.
    """
    CHUNKS: gl.constexpr = H // BK
    owned: gl.constexpr = gl.BlockedLayout([BM // 8, 1], [128 // BM, BM // 4], [1, WARPS], [0, 1])
    sums: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BM, 16])
    tile: gl.constexpr = gl.NVMMASharedLayout(128, 16, rank=2)
    low: gl.constexpr = h.dtype.element_ty
    member = gl.program_id(0)
    group = gl.program_id(1)
    weights = gl.allocate_shared_memory(low, [CHUNKS, 4 * OWNED, BK], tile)
    states = gl.allocate_shared_memory(low, [CHUNKS, BM, BK], tile)
    for k in gl.static_range(CHUNKS):
        copy_owned_weights(weights.index(k), weight + member * (OWNED * H) + k * BK, H, BK)
    async_copy.commit_group()
    text = group * BM + gl.arange(0, BM, gl.SliceLayout(0, owned))[None, :]
    unit = member * OWNED + gl.arange(0, OWNED, gl.SliceLayout(1, owned))[:, None]
    at = text * H + unit
    in_gates = text * (4 * H) + unit
    cell = gl.load(c + at)
    if MASK:
        kept = gl.load(mask + at).to(gl.float32)
    counters += group * (steps + 1) * APART
    for t in range(steps):
        now = gates + t * (4 * B * H) + in_gates
        x_i, x_f, x_g, x_o = gl.load(now), gl.load(now + H), gl.load(now + 2 * H), gl.load(now + 3 * H)
        if t > 0:
            wait_until(counters + t * APART, H // OWNED)
        for k in gl.static_range(CHUNKS):
            copy_tile(states.index(k), h + t * (B * H) + group * (BM * H) + k * BK, H, BM, BK, BM, BK)
            async_copy.commit_group()
        total = gl.zeros([4 * OWNED, BM], gl.float32, sums)
        for k in gl.static_range(CHUNKS):
            async_copy.wait_group(CHUNKS - 1 - k)
            fence_async_shared()  # the compiler inserts a barrier before it
            total = warpgroup_mma(weights.index(k), states.index(k).permute((1, 0)), total, is_async=True)
        total = warpgroup_mma_wait(0, [total])
        i, f, g, o = by_gate(total, BM, owned)
        i = sigmoid(i + x_i.to(gl.float32))
        f = sigmoid(f + x_f.to(gl.float32))
        g = tanh(g + x_g.to(gl.float32))
        o = sigmoid(o + x_o.to(gl.float32))
        write = i
        if CAPPED:
            write = gl.minimum(1 - f, i)
        cell = f * cell + write * g
        state = o * tanh(cell)
        carried = state
        if MASK:
            carried = state * kept
        gl.store(h + (t + 1) * (B * H) + at, carried.to(low))
        increment(counters + (t + 1) * APART)
        if MASK:
            gl.store(out + t * (B * H) + at, state.to(low))
        gl.store(c + (t + 1) * (B * H) + at, cell)
        gl.store(now, i.to(low))
        gl.store(now + H, f.to(low))
        gl.store(now + 2 * H, g.to(low))
        gl.store(now + 3 * H, o.to(low))


@gluon.jit
def backward(
    d_out, weight, c, gates, d_c, d_bias, mask, parts, gates_ready, parts_ready, steps,
    CAPPED: gl.constexpr, MASK: gl.constexpr, H: gl.constexpr, B: gl.constexpr, BM: gl.constexpr, BK: gl.constexpr,
):  # fmt: skip
    """Overwrite the gates of all steps with their pre-activation gradients. BK: H / 8, or the next power of two.

    d_c float32 (B, H): gradient of the last cells, overwritten with that of the first. d_bias float32 (groups, 4H):
    output. parts float32 (2, groups, 8, H, BM): partial sums of this step and the one before. gates_ready int32
    (groups, 8, T, 8), parts_ready (groups, H / 128, T, 8): zeros.
    """
    BLOCK: gl.constexpr = H // BLOCKS
    ACROSS: gl.constexpr = H // WIDE
    owned: gl.constexpr = gl.BlockedLayout([2, BM // (4 * WARPS)], [8, 4], [1, WARPS], [0, 1])
    added: gl.constexpr = gl.BlockedLayout([2, BM // (4 * WARPS)], [8, 4], [1, WARPS], [1, 0])
    sums: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BM, 16])
    tile: gl.constexpr = gl.NVMMASharedLayout(128 if BK >= 64 else 2 * BK, 16, rank=2)
    wide: gl.constexpr = gl.NVMMASharedLayout(128, 16, rank=2)
    low: gl.constexpr = gates.dtype.element_ty
    member = gl.program_id(0)
    group = gl.program_id(1)
    groups = gl.num_programs(1)
    eighth = member // ACROSS
    across = member % ACROSS
    weights = gl.allocate_shared_memory(low, [4, BK, WIDE], wide)
    sources = gl.allocate_shared_memory(low, [4, BM, BK], tile)
    for gate in gl.static_range(4):
        copy_tile(
            weights.index(gate), weight + (gate * H + eighth * BLOCK) * H + across * WIDE, H, BK, WIDE, BLOCK, WIDE
        )
    async_copy.commit_group()
    text = group * BM + gl.arange(0, BM, gl.SliceLayout(0, owned))[None, :]
    unit = member * OWNED + gl.arange(0, OWNED, gl.SliceLayout(1, owned))[:, None]
    at = text * H + unit
    in_gates = text * (4 * H) + unit
    added_unit = member * OWNED + gl.arange(0, OWNED, gl.SliceLayout(1, added))[:, None]
    in_parts = added_unit * BM + gl.arange(0, BM, gl.SliceLayout(0, added))[None, :]
    part_unit = across * WIDE + gl.arange(0, WIDE, gl.SliceLayout(1, sums))[:, None]
    to_parts = (eighth * H + part_unit) * BM + gl.arange(0, BM, gl.SliceLayout(0, sums))[None, :]
    d_cell = gl.load(d_c + at)
    b_i = gl.zeros([OWNED, BM], gl.float32, owned)
    b_f, b_g, b_o = b_i, b_i, b_i
    if MASK:
        kept = gl.load(mask + at).to(gl.float32)
    after = gl.load(c + steps * (B * H) + at)
    gates_ready += (group * BLOCKS + eighth) * steps * APART
    parts_raised = parts_ready + (group * ACROSS + across) * steps * APART
    parts_awaited = parts_ready + (group * ACROSS + member // (WIDE // OWNED)) * steps * APART
    for step in range(steps):
        t = steps - 1 - step
        now = gates + t * (4 * B * H) + in_gates
        i, f, g, o = gl.load(now), gl.load(now + H), gl.load(now + 2 * H), gl.load(now + 3 * H)
        before = gl.load(c + t * (B * H) + at)
        d_output = gl.load(d_out + t * (B * H) + at)
        later = gl.zeros([OWNED, BM], gl.float32, owned)
        if step > 0:
            wait_until(parts_awaited + (t + 1) * APART, BLOCKS)
            read = parts + ((t + 1) % 2 * groups + group) * (BLOCKS * H * BM) + in_parts
            total = gl.load(read, cache_modifier=".cg")
            for part in gl.static_range(1, BLOCKS):
                total += gl.load(read + part * (H * BM), cache_modifier=".cg")
            later = gl.convert_layout(total, owned)
            if MASK:
                later = later * kept
        d_state = d_output.to(gl.float32) + later
        i, f, g, o = i.to(gl.float32), f.to(gl.float32), g.to(gl.float32), o.to(gl.float32)
        squashed = tanh(after)
        d_cell += d_state * o * (1 - squashed * squashed)
        write = i
        d_f = d_cell * before
        d_i = d_cell * g
        if CAPPED:
            capped = (1 - f) < i
            write = gl.minimum(1 - f, i)
            d_f = gl.where(capped, d_f - d_i, d_f)
            d_i = gl.where(capped, 0.0, d_i)
        d_i = d_i * i * (1 - i)
        d_f = d_f * f * (1 - f)
        d_g = d_cell * write * (1 - g * g)
        d_o = d_state * squashed * o * (1 - o)
        gl.store(now, d_i.to(low))
        gl.store(now + H, d_f.to(low))
        gl.store(now + 2 * H, d_g.to(low))
        gl.store(now + 3 * H, d_o.to(low))
        increment(gates_ready + t * APART)
        b_i += d_i
        b_f += d_f
        b_g += d_g
        b_o += d_o
        d_cell = d_cell * f
        after = before
        if t > 0:
            wait_until(gates_ready + t * APART, ACROSS)
            for gate in gl.static_range(4):
                block = gates + t * (4 * B * H) + group * (BM * 4 * H) + gate * H + eighth * BLOCK
                copy_tile(sources.index(gate), block, 4 * H, BM, BK, BM, BLOCK)
                async_copy.commit_group()
            total = gl.zeros([WIDE, BM], gl.float32, sums)
            for gate in gl.static_range(4):
                async_copy.wait_group(3 - gate)
                fence_async_shared()
                total = warpgroup_mma(
                    weights.index(gate).permute((1, 0)), sources.index(gate).permute((1, 0)), total, is_async=True
                )
            total = warpgroup_mma_wait(0, [total])
            gl.store(parts + (t % 2 * groups + group) * (BLOCKS * H * BM) + to_parts, total)
            increment(parts_raised + t * APART)
    gl.store(d_c + at, d_cell)
    biases = d_bias + group * (4 * H) + member * OWNED + gl.arange(0, OWNED, gl.SliceLayout(1, owned))
    gl.store(biases, gl.sum(b_i, 1))
    gl.store(biases + H, gl.sum(b_f, 1))
    gl.store(biases + 2 * H, gl.sum(b_g, 1))
    gl.store(biases + 3 * H, gl.sum(b_o, 1))
