"""The likeliest word, told from products of rounded numbers: only what may be the best is multiplied out.

A row of the table and a text's numbers are whole numbers times a scale, each off by at most half a scale. So

    | x · w − s_x s_w (q_x · q_w) |  ≤  s_x / 2 · Σ|w| + s_w / 2 · Σ|s_x q_x|

and a word whose upper bound is below another's lower bound cannot be the best. All arrays are flat but the vectors.
Shapes: n texts, V words, D units.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Floats, Ints, Longs
from foreword.native.jit import kernel


@kernel
def best_words(
    products: Ints, scales: Floats, sums: Floats, bias: Floats, table: Floats, x: Floats, x_scales: Floats,
    x_sums: Floats, texts: int, words: int, units: int, best: Longs,
) -> None:  # fmt: skip
    """``best`` (n,): the word v of the largest x · table_v + bias_v, the lowest of equals.

    products (n, V): of whole numbers. scales, sums (V,): s_w and Σ|w|. x_scales, x_sums (n,): s_x and Σ|s_x q_x|.
    """
    for text in range(texts):
        first, scale = text * words, x_scales[text]
        # A little more than half, for what the sums lose in float32.
        by_sum, by_scale = np.float32(0.501) * scale, np.float32(0.501) * x_sums[text]
        floor = np.float32(-3e38)
        for v in range(words):
            about = np.float32(products[first + v]) * scales[v] * scale + bias[v]
            floor = max(floor, about - (by_sum * sums[v] + by_scale * scales[v]))
        found, highest = 0, np.float32(-3.4e38)
        for v in range(words):
            about = np.float32(products[first + v]) * scales[v] * scale + bias[v]
            if about + (by_sum * sums[v] + by_scale * scales[v]) >= floor:
                score = np.float32(0)
                for j in range(units):
                    score += x[text * units + j] * table[v * units + j]
                score += bias[v]
                if score > highest:
                    found, highest = v, score
        best[text] = found
