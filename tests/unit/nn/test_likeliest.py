"""The likeliest word by rounded products against the whole ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from foreword.nn.kernels_softmax import best_words
from foreword.nn.softmax import Likeliest, _rounded, multiplies_bytes


def drawn(texts: int, words: int, units: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.tanh(torch.randn(texts, units, generator=generator))
    return x, torch.randn(words, units, generator=generator) * 0.1, torch.randn(words, generator=generator)


@pytest.mark.parametrize(("texts", "words", "units"), [(1, 5, 3), (7, 300, 20), (33, 1000, 64)])
def test_rounded_products_find_the_same_word(texts: int, words: int, units: int) -> None:
    x, table, bias = drawn(texts, words, units)
    expected = (x.double() @ table.double().t() + bias.double()).argmax(1).numpy()
    assert_array_equal(Likeliest(table, bias, rounded=False)(x), expected)
    scales, small = _rounded(table)
    x_scales, x_small = _rounded(x)
    products = (x_small.int() @ small.int().t()).reshape(-1).numpy()
    best = np.empty(texts, np.int64)
    x_sums = x_small.abs().sum(1).float() * x_scales
    best_words(
        products, scales.numpy(), table.abs().sum(1).numpy(), bias.numpy(), table.reshape(-1).numpy(),
        x.reshape(-1).numpy(), x_scales.numpy(), x_sums.numpy(), texts, words, units, best,
    )  # fmt: skip
    assert_array_equal(best, expected)
    if multiplies_bytes():
        assert_array_equal(Likeliest(table, bias, rounded=True)(x), expected)


def test_words_that_are_all_but_equal_are_told_apart() -> None:
    """Rounded they are the same; the one that is a little better is found all the same."""
    x, table, _ = drawn(20, 400, 32)
    table[:] = table[0]
    bias = torch.zeros(400)
    bias[123] = 1e-4
    for rounded in {False, multiplies_bytes()}:
        assert (Likeliest(table, bias, rounded=rounded)(x) == 123).all()


def test_rows_of_zeros_and_no_rows() -> None:
    x, table, bias = drawn(4, 50, 8)
    x[1], table[7] = 0, 0
    for rounded in {False, multiplies_bytes()}:
        model = Likeliest(table, bias, rounded=rounded)
        assert_array_equal(model(x), (x @ table.t() + bias).argmax(1).numpy())
        assert len(model(x[:0])) == 0
