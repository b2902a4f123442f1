"""Each kind of attention against its formula, written out in NumPy one number at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from foreword.errors import InputError
from foreword.nn.attention import additive_scores, attend, dot_scores, general_scores, scaled_scores

B, T_TGT, T_SRC, Q, K, A = 3, 4, 5, 6, 7, 8
Score = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()


def by_formula(queries: Tensor, keys: Tensor, score: Score) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights and context, one pair of steps at a time; values are the keys."""
    s, h = queries.detach().numpy(), keys.detach().numpy()
    weights = np.empty((B, T_TGT, T_SRC))
    context = np.zeros((B, T_TGT, h.shape[2]))
    for text in range(B):
        for step in range(T_TGT):
            powers = [math.exp(score(s[text, step], h[text, place])) for place in range(T_SRC)]
            for place in range(T_SRC):
                weights[text, step, place] = powers[place] / sum(powers)
                context[text, step] += weights[text, step, place] * h[text, place]
    return weights, context


def check(queries: Tensor, keys: Tensor, scores: Callable[[Tensor], Tensor], formula: Score) -> None:
    weights, context = by_formula(queries, keys, formula)
    found = attend(scores(queries), keys)
    assert found.weights.shape == (B, T_TGT, T_SRC)
    assert found.context.shape == (B, T_TGT, keys.shape[2])
    np.testing.assert_allclose(found.weights.detach(), weights, atol=1e-12)
    np.testing.assert_allclose(found.context.detach(), context, atol=1e-12)
    np.testing.assert_allclose(found.weights.detach().sum(-1), 1, atol=1e-12)
    one = attend(scores(queries[:, 1]), keys)  # one step: (B, T) and (B, H)
    assert one.weights.shape == (B, T_SRC)
    assert one.context.shape == (B, keys.shape[2])
    torch.testing.assert_close(one.weights, found.weights[:, 1])
    torch.testing.assert_close(one.context, found.context[:, 1])


def test_q10_additive() -> None:
    """Q10: v · tanh(W₁ s + W₂ h), weights (B, T) that sum to one, context (B, H)."""
    queries, keys = drawn(B, T_TGT, Q), drawn(B, T_SRC, K, seed=1)
    w1, w2, v = drawn(A, Q, seed=2), drawn(A, K, seed=3), drawn(A, seed=4)
    tables = [part.detach().numpy() for part in (w1, w2, v)]

    def formula(s: Any, h: Any) -> float:
        return float(sum(tables[2][unit] * math.tanh(tables[0][unit] @ s + tables[1][unit] @ h) for unit in range(A)))

    check(queries, keys, lambda each: additive_scores(each, keys, w1, w2, v), formula)


def test_q11_dot() -> None:
    """Q11: s · h, and unequal sizes are refused with what to take instead."""
    queries, keys = drawn(B, T_TGT, K), drawn(B, T_SRC, K, seed=1)
    check(queries, keys, lambda each: dot_scores(each, keys), lambda s, h: float(s @ h))
    for scores in (dot_scores, scaled_scores):
        with pytest.raises(InputError, match=r"queries have 6 units and keys 7: .* general or additive"):
            scores(drawn(B, T_TGT, Q), keys)


def test_q12_general() -> None:
    """Q12: s · W h, of unequal sizes."""
    queries, keys, w = drawn(B, T_TGT, Q), drawn(B, T_SRC, K, seed=1), drawn(Q, K, seed=2)
    table = w.detach().numpy()
    check(queries, keys, lambda each: general_scores(each, keys, w), lambda s, h: float(s @ table @ h))


def test_q13_scaled() -> None:
    """Q13: s · h / √H."""
    queries, keys = drawn(B, T_TGT, K), drawn(B, T_SRC, K, seed=1)
    check(queries, keys, lambda each: scaled_scores(each, keys), lambda s, h: float(s @ h) / math.sqrt(K))


@pytest.mark.parametrize("masked", ["not", "by source", "by step"])
def test_q13_scaled_is_torchs_own(masked: str) -> None:
    """Q13: context and gradients of torch's scaled_dot_product_attention, masked or not, values of another size."""
    inputs = [drawn(B, T_TGT, K), drawn(B, T_SRC, K, seed=1), drawn(B, T_SRC, Q, seed=2)]
    mask = None
    if masked != "not":
        shape = (B, T_SRC) if masked == "by source" else (B, T_TGT, T_SRC)
        mask = torch.rand(shape, generator=torch.Generator().manual_seed(5)) < 0.6
        mask[..., 0] = True
    queries, keys, values = inputs
    ours = attend(scaled_scores(queries, keys), values, mask).context
    whole = mask[:, None] if mask is not None and mask.dim() == 2 else mask
    theirs = scaled_dot_product_attention(queries, keys, values, attn_mask=whole)
    torch.testing.assert_close(ours, theirs)
    target = drawn(B, T_TGT, Q, seed=6)
    for mine, other in zip(
        torch.autograd.grad((ours * target).sum(), inputs),
        torch.autograd.grad((theirs * target).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_q10_what_is_masked_has_the_weight_zero_exactly(dtype: torch.dtype) -> None:
    """Q10: and the rest sums to one, whatever the masked scores are; nothing to look at gives 0 and no NaN."""
    scores = (drawn(B, T_TGT, T_SRC) * 20).detach().to(dtype)
    scores[0, :, 2] = 1e4
    scores.requires_grad_()
    values = drawn(B, T_SRC, K, seed=1).detach().to(dtype)
    mask = torch.tensor([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], dtype=torch.bool)
    context, weights = attend(scores, values, mask)
    assert (weights[0, :, 2:] == 0).all()
    assert (weights[2] == 0).all()
    assert (context[2] == 0).all()
    torch.testing.assert_close(weights[:2].sum(-1), torch.ones(2, T_TGT, dtype=dtype))
    (gradient,) = torch.autograd.grad(context.float().sum(), scores)
    assert torch.isfinite(gradient).all()
    assert (gradient[0, :, 2:] == 0).all()
    short = attend(scores[:1, :, :2], values[:1, :2])  # as if what is masked had never been there
    torch.testing.assert_close(context[:1], short.context)


def test_wrong_shapes_are_refused_in_one_line() -> None:
    queries, keys = drawn(B, T_TGT, Q), drawn(B, T_SRC, K)
    scores = drawn(B, T_TGT, T_SRC)
    calls: dict[str, Callable[[], Any]] = {
        r"w has the shape \(7, 6\), not \(6, 7\)": lambda: general_scores(queries, keys, drawn(K, Q)),
        r"w_key has the shape \(8, 6\), not \(8, 7\)": lambda: additive_scores(
            queries, keys, drawn(A, Q), drawn(A, Q), drawn(A)
        ),
        "of as many texts": lambda: general_scores(queries[:2], keys, drawn(Q, K)),
        "does not fit values": lambda: attend(scores, keys[:, :2]),
        "does not fit scores": lambda: attend(scores, keys, torch.ones(B, T_TGT, dtype=torch.bool)),
        "not booleans": lambda: attend(scores, keys, torch.ones(B, T_SRC)),
    }
    for message, call in calls.items():
        with pytest.raises(InputError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
