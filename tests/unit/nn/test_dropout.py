"""Masks that hold for a whole sequence."""

from __future__ import annotations

import pytest
import torch

from foreword.errors import SettingError
from foreword.nn.dropout import Dropout, draw_mask, locked_mask


def test_p06_a_locked_mask_is_equal_over_time_and_new_for_each_sequence() -> None:
    """P06: the same units are dropped at every step, others in the next sequence; ordinary dropout differs by step."""
    random = torch.Generator().manual_seed(0)
    ones = torch.ones(9, 4, 32)
    first, second = (ones * locked_mask(4, 32, 0.5, ones, random) for _ in range(2))
    assert all(torch.equal(step, first[0]) for step in first)
    assert not torch.equal(first, second)
    assert not torch.equal(first[0, 0], first[0, 1])  # each text has its own
    ordinary = torch.nn.functional.dropout(ones, 0.5)
    assert not all(torch.equal(step, ordinary[0]) for step in ordinary)


def test_a_mask_keeps_expectations() -> None:
    mask = draw_mask((100_000,), 0.3, torch.empty(0), torch.Generator().manual_seed(0))
    assert sorted(set(mask.tolist())) == pytest.approx([0, 1 / 0.7])
    assert mask.mean().item() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5])
def test_a_share_that_is_none_is_refused_by_name(share: float) -> None:
    with pytest.raises(SettingError, match="dropout of recurrent"):
        Dropout(recurrent=share)
