"""The matrices of a Mogrifier's rounds, by which a layer's input and state gate each other; see ``nn/layers.py``.

    x ← 2 σ(W₁ h + b₁) · x,    h ← 2 σ(W₂ x + b₂) · h,    …        W = A B with two thin matrices where there is a rank

G. Melis, T. Kočiský and P. Blunsom, "Mogrifier LSTM" (2020). Shapes: R rounds, L layers, H units of a layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from foreword.nn.layers import Round, round_shapes
from foreword.nn.network import Weights


@dataclass(frozen=True, slots=True)
class GatingRounds:
    """The rounds of every layer. number: R. rank: of their matrices, 0 for full ones. bias: whether they have one."""

    number: int
    rank: int
    bias: bool

    def shapes(self, layer: int, read: int, written: int) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of a layer's matrices, or of two thin ones for each, and of their biases."""
        shapes: dict[str, tuple[int, ...]] = {}
        rank = self.rank
        for name, (rows, columns) in zip(self.names(layer), round_shapes(read, written, self.number), strict=True):
            shapes |= (
                {f"{name}.left": (rows, rank), f"{name}.right": (rank, columns)} if rank else {name: (rows, columns)}
            )
            if self.bias:
                shapes[f"{name}_bias"] = (rows,)
        return shapes

    def names(self, layer: int) -> list[str]:
        """Return the names of a layer's matrices."""
        return [f"layer{layer}.mogrify{number + 1}" for number in range(self.number)]

    def of_layer(self, weights: Weights, layer: int, *, thin: bool) -> tuple[list[Round], list[Tensor]]:
        """Return a layer's matrices and biases. thin: two thin matrices are not multiplied out."""
        names = self.names(layer)
        biases = [weights[f"{name}_bias"] for name in names] if self.bias else []
        if not self.rank:
            return [weights[name] for name in names], biases
        pairs = [(weights[f"{name}.left"], weights[f"{name}.right"]) for name in names]
        return list(pairs) if thin else [left @ right for left, right in pairs], biases

    def stacked(self, weights: Weights, layers: int) -> tuple[Tensor | None, Tensor | None]:
        """Return all layers' matrices (R, L, H, H), multiplied out, and their biases (R, L, H)."""
        names = [self.names(layer)[number] for number in range(self.number) for layer in range(layers)]
        if not names:
            return None, None

        def together(ending: str) -> Tensor:
            return torch.stack([weights[f"{name}{ending}"] for name in names])

        matrices = torch.bmm(together(".left"), together(".right")) if self.rank else together("")
        biases = together("_bias") if self.bias else None
        shape = (self.number, layers)
        return matrices.view(*shape, *matrices.shape[1:]), None if biases is None else biases.view(*shape, -1)
