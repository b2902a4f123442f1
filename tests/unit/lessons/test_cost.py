"""Sizes by the equations and by PyTorch, paths in the graph, time that rises with length."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from foreword.errors import SettingError
from foreword.lessons.cost import (
    LengthCost,
    cell_table,
    cost_by_length,
    hidden_for,
    layer_seconds,
    operations_of,
    path_length,
    peak_operations,
    unrolled_depth,
)

torch.set_num_threads(1)


def test_l12_the_table_of_cells() -> None:
    """L12, Z04: gates 0, 2, 3; matrices 1, 3, 4 (a GRU has three); parameters as PyTorch counts them."""
    rows = {row.kind: row for row in cell_table(300, 256)}
    assert [(row.kind, row.gates, row.matrices, row.states) for row in rows.values()] == [
        ("rnn", 0, 1, 1),
        ("gru", 2, 3, 1),
        ("lstm", 3, 4, 2),
    ]
    assert rows["gru"].parameters == 427_008
    assert rows["lstm"].parameters == 569_344
    for kind, layer in (("rnn", torch.nn.RNN), ("gru", torch.nn.GRU), ("lstm", torch.nn.LSTM)):
        twin = layer(300, 256)
        assert rows[kind].with_two_biases == sum(part.numel() for part in twin.parameters())
        assert rows[kind].with_bias == rows[kind].parameters + rows[kind].matrices * 256
        assert rows[kind].microseconds > 0
    assert np.isnan(cell_table(3, 4, timed=False)[0].microseconds)


def test_l12_operations_are_those_that_torch_counts() -> None:
    """L12: products of a step done one by one under PyTorch's own counter."""
    from torch.utils.flop_counter import FlopCounterMode

    for row in cell_table(30, 16, timed=False):
        with FlopCounterMode(display=False) as counter:
            torch.randn(1, 30) @ torch.randn(30, row.matrices * 16)
            torch.randn(1, 16) @ torch.randn(16, row.matrices * 16)
        assert row.operations == counter.get_total_flops()
    assert operations_of("lstm", 10, 16, 2, inputs=30) == 3 * 2 * 10 * cell_table(30, 16, timed=False)[2].operations


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_l09_units_for_an_equal_number_of_parameters(kind: str) -> None:
    """L09: a GRU may have more units than an LSTM of as many parameters."""
    wanted = 569_344
    units = hidden_for(kind, wanted, 300)
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[kind]
    assert abs(gates * units * (300 + units) / wanted - 1) < 0.01
    assert hidden_for("lstm", wanted, 300) == 256
    with pytest.raises(SettingError, match="kind='elman'"):
        hidden_for("elman", 100, 3)


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 1), (2, 7), (0, 9)])
def test_m03_path_lengths_counted_in_the_graph(first: int, last: int) -> None:
    """M03: j − i states in a recurrent layer; 1 in an attention layer, however far."""
    assert path_length("rnn", first, last, steps=10) == last - first
    assert path_length("attention", first, last, steps=10) == 1


def test_p09_fifty_words_are_fifty_layers() -> None:
    """P09: the longest way a gradient goes; attention over as many words is one layer deep."""
    assert unrolled_depth("rnn", 50) == 50
    assert unrolled_depth("rnn", 1) == 1
    assert unrolled_depth("attention", 50) == 1


def test_paths_that_are_none_are_refused() -> None:
    with pytest.raises(SettingError, match="first=3, last=2"):
        path_length("rnn", 3, 2)
    with pytest.raises(SettingError, match="expected 'rnn' or 'attention'"):
        unrolled_depth("lstm", 3)


def test_m04_time_rises_with_length() -> None:
    """M04: many steps take many times the time of a few; utilisation is a share of what the machine can do."""
    said: list[str] = []
    found = cost_by_length(
        [32, 2048], ["lstm", "attention"], hidden=64, repeats=1, meter=lambda phase, done, total: said.append(phase)
    )
    assert found.seconds.shape == (2, 2)
    assert found.seconds[0, 1] > 5 * found.seconds[0, 0]
    shares = found.utilisation()
    assert ((shares > 0) & (shares < 1)).all()
    assert said == ["lstm, 32 steps", "lstm, 2048 steps", "attention, 32 steps", "attention, 2048 steps"]


def test_utilisation_is_operations_a_second_over_the_peak() -> None:
    found = LengthCost(["a"], [1], np.array([[2.0]]), np.array([[100.0]]), 200.0)
    assert_allclose(found.utilisation(), 0.25)
    assert peak_operations(size=128) > 1e8
    assert layer_seconds("min-gru", 32, 16) > 0
