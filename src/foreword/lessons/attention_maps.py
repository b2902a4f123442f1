"""The attention of a Transformer, written out in NumPy for one text.

    a_ij = softmax_j( q_i · k_j / √d − m (i − j) ),    j ≤ i,    for each head of each layer

The plain version of ``neural/transformer.py``, which never stores these weights; a test compares their predictions.
Shapes: T words, D units, h heads, V words of the vocabulary.

A. Vaswani et al., "Attention is all you need" (2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import erf, log_softmax, softmax

from foreword.arrays import Doubles, Ids
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.neural.transformer import TransformerLM

SMALLEST = 1e-5
"""What layer normalisation adds to a variance, PyTorch's value."""


@dataclass(frozen=True, slots=True)
class AttentionMaps:
    """maps: attention weights (layers, h, T, T), rows sum to one, zero above the diagonal. logs: (T, V), the
    log-probabilities of the word after each.
    """

    maps: Doubles
    logs: Doubles


def attention_maps(model: TransformerLM, ids: Ids) -> AttentionMaps:
    """Read ids from the beginning of a text, at most as many as the model's context."""
    words = np.asarray(ids)
    if not 0 < len(words) <= model.context:
        raise InputError(f"{len(words)} words: expected 1 to {model.context}, the model's context")
    weights = {name: np.asarray(part.cpu().numpy(), np.float64) for name, part in model.weights_.items()}
    x = weights["embedding"][words]
    maps = []
    for layer in range(model.layers):
        own = {name: weights[f"layer{layer}.{name}"] for name in _LAYER}
        shares, attended = _attention(_norm(x, own["attention_norm"]), own, model.heads)
        x = x + attended
        y = _norm(x, own["forward_norm"]) @ own["up"].T + own["up_bias"]
        x = x + (y * (1 + erf(y / np.sqrt(2))) / 2) @ own["down"].T + own["down_bias"]
        maps.append(shares)
    output = weights.get("output", weights["embedding"])
    return AttentionMaps(np.array(maps), log_softmax(_norm(x, weights["norm"]) @ output.T + weights["bias"], axis=1))


_LAYER = (
    "attention_norm", "query_key_value", "attention", "forward_norm", "up", "up_bias", "down", "down_bias",
)  # fmt: skip


def _attention(x: Doubles, own: dict[str, Doubles], heads: int) -> tuple[Doubles, Doubles]:
    """Return, from x (T, D), the weights (h, T, T) and the layer's output (T, D)."""
    queries, keys, values = (_by_head(part, heads) for part in np.split(x @ own["query_key_value"].T, 3, axis=1))
    distance = np.arange(len(x))[:, None] - np.arange(len(x))
    slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    scores = queries @ keys.transpose(0, 2, 1) / np.sqrt(queries.shape[2]) - slopes[:, None, None] * distance
    shares: Doubles = softmax(np.where(distance >= 0, scores, -np.inf), axis=2)
    joined = (shares @ values).transpose(1, 0, 2).reshape(x.shape)
    return shares, joined @ own["attention"].T


def _by_head(x: Doubles, heads: int) -> Doubles:
    """Reshape (T, D) to (h, T, D / h)."""
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


def _norm(x: Doubles, scale: Doubles) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + SMALLEST) * scale
