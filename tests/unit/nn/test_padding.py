"""A layer padded to other sizes computes the same, and so do its gradients."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from foreword.nn.layers import (  # noqa: E402
    is_worth_padding,
    lstm,
    padded,
)


@pytest.mark.parametrize(
    ("inputs", "units", "wide"), [(30, 50, (128, 128)), (650, 650, (768, 768)), (40, 1030, (64, 1088))]
)
def test_a_padded_layer_is_the_same_layer(inputs: int, units: int, wide: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(0)
    texts, steps = 3, 4
    x = torch.randn(steps, texts, inputs, generator=generator, dtype=torch.float64, requires_grad=True)
    h, c = (torch.randn(texts, units, generator=generator, dtype=torch.float64) for _ in "hc")
    shapes = [(4 * units, inputs), (4 * units, units), (4 * units,), (4 * units,)]
    weights = [
        (0.1 * torch.randn(*shape, generator=generator, dtype=torch.float64)).requires_grad_() for shape in shapes
    ]
    more_x, more_h, more_c, more_weights = padded(x, h, c, weights)
    assert more_x.shape == (steps, 8, wide[0])
    assert more_h.shape == more_c.shape == (8, wide[1])
    out, last_h, last_c = lstm(x, h, c, weights)
    more_out, more_last_h, more_last_c = lstm(more_x, more_h, more_c, more_weights)
    for mine, more in ((out, more_out), (last_h[None], more_last_h[None]), (last_c[None], more_last_c[None])):
        torch.testing.assert_close(more[:, :texts, :units], mine, rtol=0, atol=1e-12)
        assert not more[:, :texts, units:].any()
    wanted = torch.autograd.grad(out.square().sum(), [x, *weights])
    found = torch.autograd.grad(more_out[:, :texts, :units].square().sum(), [x, *weights])
    for mine, more in zip(wanted, found, strict=True):
        torch.testing.assert_close(more, mine, rtol=1e-9, atol=1e-12)


def test_only_half_precision_on_a_gpu_is_padded() -> None:
    assert not is_worth_padding(torch.zeros(2, 3, 5), torch.zeros(3, 7))
    assert not is_worth_padding(torch.zeros(2, 3, 5, dtype=torch.float16), torch.zeros(3, 7, dtype=torch.float16))
