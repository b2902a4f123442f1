"""One update of all weights as one Triton kernel: Adam, the running averages and the copy in half precision.

Operation by operation it passes over the weights a dozen times; here every number is read and written once. The same
as ``optimisers.Adam`` and what ``Trainer`` does around it, which is the plain version.
"""

from __future__ import annotations

from foreword.nn.gpu import jit, tl


@jit()
def adam(
    weights, gradient, first, second, averages, working, plan, shares, factor, size, decay, beta1, beta2, epsilon,
    FIRST: tl.constexpr, AVERAGES: tl.constexpr, WORKING: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Move one block of the weights. plan: rate, rate / (1 − β₁ᵗ), 1 / √(1 − β₂ᵗ); factor: of the gradient, 0: none.

    averages (A, size), shares (A,). FIRST: there is a mean of gradients. WORKING: there is a copy to write.
    """
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    by = tl.load(factor)
    w = tl.load(weights + at, mask=inside, other=0.0)
    g = tl.load(gradient + at, mask=inside, other=0.0)
    g = tl.where(by > 0, g * by, 0.0)
    v = tl.load(second + at, mask=inside, other=0.0)
    v = beta2 * v + (1 - beta2) * g * g
    tl.store(second + at, v, mask=inside)
    if FIRST:
        m = tl.load(first + at, mask=inside, other=0.0)
        m = m + (1 - beta1) * (g - m)
        tl.store(first + at, m, mask=inside)
        g = m
    w = w * (1 - tl.load(plan) * decay)
    w -= tl.load(plan + 1) * g / (tl.sqrt(v) * tl.load(plan + 2) + epsilon)
    tl.store(weights + at, w, mask=inside)
    for number in tl.static_range(AVERAGES):
        here = averages + number * size.to(tl.int64) + at
        average = tl.load(here, mask=inside, other=0.0)
        tl.store(here, average + tl.load(shares + number) * (w - average), mask=inside)
    if WORKING:
        tl.store(working + at, w.to(working.dtype.element_ty), mask=inside)
