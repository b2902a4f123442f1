"""The likeliest word of each text: argmax_v (x · w_v + b_v), on a CPU.

The products with all words are most of the work of a decoder. Where the processor multiplies bytes (VNNI), they are
made of numbers rounded to int8, six times as fast, and only the few words that may be the best by the bounds of
``nn/kernels_likeliest.py`` are multiplied out in float32: the same word, but for a tie to the last digit.
Shapes: n texts, V words, D units.
"""

from __future__ import annotations

import numpy as np
import torch
from llvmlite.binding import get_host_cpu_features
from torch import Tensor

from foreword.arrays import Array, Floats, Longs
from foreword.nn.kernels_likeliest import best_words

LIMIT = 127


class Likeliest:
    """table (V, D), bias (V,): float32. rounded: False for whole products, None for what the processor does best."""

    def __init__(self, table: Tensor, bias: Tensor, *, rounded: bool | None = None) -> None:
        self._table, self._bias = table.contiguous(), bias.contiguous()
        self.rounded = multiplies_bytes() if rounded is None else rounded
        if self.rounded:
            self._scales, self._small = _rounded(self._table)
            self._sums = self._table.abs().sum(1)
            self._small = self._small.t()

    def __call__(self, x: Tensor) -> Longs:
        """The words (n,), for x (n, D)."""
        if not self.rounded or len(x) == 0:
            whole: Floats = torch.addmm(self._bias, x, self._table.t()).numpy()
            return np.asarray(whole.argmax(1), np.int64)
        scales, small = _rounded(x)
        products = torch._int_mm(small, self._small)
        best = np.empty(len(x), np.int64)
        sums = small.abs().sum(1, dtype=torch.float32) * scales
        words, units = self._table.shape
        best_words(
            _flat(products), _flat(self._scales), _flat(self._sums), _flat(self._bias), _flat(self._table), _flat(x),
            _flat(scales), _flat(sums), len(x), words, units, best,
        )  # fmt: skip
        return best


def multiplies_bytes() -> bool:
    """Whether the processor does, and this torch knows how. ``_int_mm`` is the only product of bytes that torch has,
    and not among its public names: where it is gone, the whole products are made.
    """
    features = get_host_cpu_features()
    vnni = features.get("avx512vnni", False) or features.get("avxvnni", False)
    fused = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(vnni and fused) and hasattr(torch, "_int_mm")


def _rounded(x: Tensor) -> tuple[Tensor, Tensor]:
    """Scales (n,) and whole numbers (n, D) whose products are about x."""
    scales = x.abs().amax(1) / LIMIT
    by = torch.where(scales > 0, 1 / scales, 0.0)
    return scales, (x * by[:, None]).round_().to(torch.int8)


def _flat(part: Tensor) -> Array:
    return part.contiguous().view(-1).numpy()
