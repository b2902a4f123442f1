"""Attention: for each step of a target, a weighted mean over the steps of a source.

    weights(s) = softmax_j score(s, h_j),    context(s) = Σ_j weights_j · value_j

    additive   v · tanh(W₁ s + W₂ h)    D. Bahdanau, K. Cho and Y. Bengio, "Neural machine translation by jointly
                                        learning to align and translate" (2015)
    dot        s · h                    M.-T. Luong, H. Pham and C. Manning, "Effective approaches to attention-based
    general    s · W h                  neural machine translation" (2015)
    scaled     s · h / √H               A. Vaswani et al., "Attention is all you need" (2017)

Shapes: B texts, T_tgt and T_src steps, queries s (B, T_tgt, Q), keys h (B, T_src, K), scores and weights
(B, T_tgt, T_src), context (B, T_tgt, H). A query (B, Q) is one step: its weights are (B, T_src), its context (B, H).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

from foreword.errors import InputError


class Attended(NamedTuple):
    """The result of attention. context: (B, T_tgt, H); weights: (B, T_tgt, T_src)."""

    context: Tensor
    weights: Tensor


def additive_scores(queries: Tensor, keys: Tensor, w_query: Tensor, w_key: Tensor, v: Tensor) -> Tensor:
    """Return ``v · tanh(W₁ s + W₂ h)``. w_query: (A, Q), w_key: (A, K), v: (A,); A units in between."""
    _check_texts(queries, keys)
    for name, matrix, size in (("w_query", w_query, queries.shape[-1]), ("w_key", w_key, keys.shape[-1])):
        if tuple(matrix.shape) != (len(v), size):
            raise InputError(f"{name} has the shape {tuple(matrix.shape)}, not ({len(v)}, {size})")
    from_query = linear(queries, w_query)[..., None, :]
    from_key = linear(keys, w_key) if queries.dim() == 2 else linear(keys, w_key)[:, None]
    return torch.tanh(from_query + from_key) @ v


def dot_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return ``s · h``; both of one size."""
    _check_texts(queries, keys)
    if queries.shape[-1] != keys.shape[-1]:
        sizes = f"queries have {queries.shape[-1]} units and keys {keys.shape[-1]}"
        raise InputError(f"{sizes}: dot-product attention takes equal sizes, general or additive attention any")
    return _products(queries, keys)


def general_scores(queries: Tensor, keys: Tensor, w: Tensor) -> Tensor:
    """Return ``s · W h``; w: (Q, K), so that the sizes may differ."""
    _check_texts(queries, keys)
    if tuple(w.shape) != (queries.shape[-1], keys.shape[-1]):
        raise InputError(f"w has the shape {tuple(w.shape)}, not {(queries.shape[-1], keys.shape[-1])}")
    return _products(queries @ w, keys)


def scaled_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return ``s · h / √H``, which keeps the scores' variance independent of the size."""
    return dot_scores(queries, keys) / math.sqrt(keys.shape[-1])


def attend(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> Attended:
    """Return the mean of the values, (B, T_src, H), weighted by the softmax of the scores.

    mask: booleans, (B, T_src) or as the scores, True where attention is allowed. Masked weights are exactly 0, and the
    rest of a row sums to one. A row that is masked throughout has weights and context 0.
    """
    if scores.dim() not in (2, 3) or values.dim() != 3 or _source(scores) != tuple(values.shape[:2]):
        raise InputError(
            f"scores have the shape {tuple(scores.shape)}, which does not fit values {tuple(values.shape)}"
        )
    if mask is None:
        weights = torch.softmax(scores, -1)
    else:
        seen = _expanded(mask, scores)
        # The lowest number, not −∞: the softmax of a row of −∞ and its gradient would be NaN.
        low = torch.finfo(scores.dtype).min
        weights = torch.softmax(scores.masked_fill(~seen, low), -1).masked_fill(~seen, 0)
    context = (weights[:, None] @ values)[:, 0] if weights.dim() == 2 else weights @ values
    return Attended(context, weights)


def _products(queries: Tensor, keys: Tensor) -> Tensor:
    if queries.dim() == 2:
        return (keys @ queries[:, :, None])[:, :, 0]
    return queries @ keys.transpose(1, 2)


def _expanded(mask: Tensor, scores: Tensor) -> Tensor:
    if mask.dtype != torch.bool:
        raise InputError(f"the mask holds {mask.dtype}, not booleans")
    if scores.dim() == 3 and tuple(mask.shape) == _source(scores):
        return mask[:, None].expand_as(scores)
    if mask.shape != scores.shape:
        raise InputError(f"the mask has the shape {tuple(mask.shape)}, which does not fit scores {tuple(scores.shape)}")
    return mask


def _source(scores: Tensor) -> tuple[int, int]:
    return scores.shape[0], scores.shape[-1]


def _check_texts(queries: Tensor, keys: Tensor) -> None:
    if queries.dim() not in (2, 3) or keys.dim() != 3 or len(queries) != len(keys):
        shapes = f"queries have the shape {tuple(queries.shape)} and keys {tuple(keys.shape)}"
        raise InputError(f"{shapes}, not (texts, steps, units) of as many texts")
