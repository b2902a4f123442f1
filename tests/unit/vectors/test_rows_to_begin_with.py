"""What a matrix of vectors begins as."""

from __future__ import annotations

import numpy as np
import pytest

from foreword.vectors.training import HUGE, LINE, random_rows, zero_rows


@pytest.mark.parametrize("rows", [1, 7, HUGE // 4 // 112 + 5])
def test_random_rows_do_not_depend_on_the_threads(rows: int) -> None:
    one, two = (random_rows(np.random.default_rng(3), rows, 100, 0.5, threads=n, zeros=2) for n in (1, 2))
    assert one.shape == (rows + 2, 112)
    np.testing.assert_array_equal(one, two)
    assert not one[:, 100:].any()
    assert not one[rows:].any()
    assert one.ctypes.data % LINE == 0


def test_random_rows_are_spread_evenly() -> None:
    drawn = random_rows(np.random.default_rng(0), 20_000, 50, 1.0)[:, :50].astype(np.float64)
    assert -1 <= drawn.min() < -0.9999
    assert 0.9999 < drawn.max() < 1
    counts, _ = np.histogram(drawn, 100, (-1, 1))
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 160  # chi-squared of 99 degrees, beyond 0.9999
    together = np.corrcoef(drawn.T) - np.eye(50)
    assert np.abs(together).max() < 0.04
    assert abs(np.corrcoef(drawn[:-1].ravel(), drawn[1:].ravel())[0, 1]) < 0.005
    other = random_rows(np.random.default_rng(1), 20_000, 50, 1.0)[:, :50]
    assert abs(np.corrcoef(drawn.ravel(), other.ravel())[0, 1]) < 0.005


def test_zeros_can_be_written_to() -> None:
    for rows in (0, 3, HUGE // 64 + 1):
        room = zero_rows(rows, 16)
        assert not room.any()
        room[:] = 1
        assert room.sum(dtype=np.float64) == rows * 16
