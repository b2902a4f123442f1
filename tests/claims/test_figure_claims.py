"""Figures and tables of the sources, made by the package: rows F09 and F12."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import torch

from foreword.errors import InputError
from foreword.evaluate.gradients import jacobian_products, norms_by_lag, step_jacobians
from foreword.lessons.cost import cell_table
from foreword.nn import attention
from foreword.nn.cells import Cell, GRUCell, LSTMCell, RNNCell, run
from foreword.picture.curves import gradients

Report = Callable[[str, object], None]

torch.set_num_threads(1)

LAGS = 60


def norms_of_cells() -> dict[str, list[float]]:
    """|∂s_T/∂s_(T−lag)| for lags 0 to 60 of new cells, 24 units each: weights N(0, 1/√H), the LSTM's forget bias 1."""
    x = np.random.default_rng(0).normal(size=(LAGS, 1, 8)) * 0.5
    cells: dict[str, Cell] = {"RNN": RNNCell(8, 24), "GRU": GRUCell(8, 24), "LSTM": LSTMCell(8, 24)}
    cells["RNN, weights doubled"] = RNNCell(8, 24, activation="relu")
    cells["RNN, weights doubled"].weights["W_h"] *= 2
    return {
        name: norms_by_lag(jacobian_products(step_jacobians(cell, run(cell, x)[2]))).tolist()
        for name, cell in cells.items()
    }


def test_f09_gradient_norm_by_lag_on_a_logarithmic_axis(record_property: Report) -> None:
    """F09: drawn for untrained cells, weights N(0, 1/√H) and a forget bias of 1. All three fall, and from lag 10 on as
    a straight line through logarithms; with ReLU and weights twice as large an RNN's grows so. How fast is a matter of
    weights, not of the cell: the GRU loses most here, the LSTM least; with weights uniform within ±1/√H it is the RNN
    that loses most (X02).
    """
    norms = norms_of_cells()
    picture = gradients(norms, range(0, LAGS, 10))
    assert "logarithmic" in picture.caption
    assert all(f">{name}" in picture.markup for name in norms)
    lags = np.arange(10, LAGS)
    for name, values in norms.items():
        straight = float(np.corrcoef(lags, np.log(values[10:LAGS]))[0, 1])
        left = f"{values[LAGS - 1] / values[0]:.2g}"
        record_property(
            f"F09 {name}: left after {LAGS - 1} steps, correlation of lag and log norm", f"{left}, {straight:.3f}"
        )
        assert straight > 0.95 if "doubled" in name else straight < -0.95
    assert norms["RNN, weights doubled"][-1] > 1e6
    assert norms["LSTM"][-1] > norms["RNN"][-1] > norms["GRU"][-1]


def test_f12_the_table_of_gates() -> None:
    """F12: gates and their roles, from the cells themselves: as many as their weights have room for."""
    rows = {row.kind: row for row in cell_table(3, 4, timed=False)}
    cells: dict[str, Cell] = {"rnn": RNNCell(3, 4), "gru": GRUCell(3, 4), "lstm": LSTMCell(3, 4)}
    for kind, cell in cells.items():
        assert cell.weights["W_h"].shape == (4 * rows[kind].matrices, 4)
    described = inspect.getdoc(LSTMCell) or ""
    assert "i, f, o = σ(" in described  # input, forget and output gate
    assert "r, z = σ(" in (inspect.getdoc(GRUCell) or "")  # reset and update gate
    assert (rows["lstm"].gates, rows["gru"].gates, rows["rnn"].gates) == (3, 2, 0)


def test_f12_the_table_of_attention_scores(record_property: Report) -> None:
    """F12: name, formula, weights of its own, and whether sizes may differ: from the functions, by calling them."""
    queries, keys, longer = torch.randn(2, 6), torch.randn(2, 5, 6), torch.randn(2, 5, 8)
    weights = {"w_query": torch.randn(7, 6), "v": torch.randn(7)}
    table = {}
    for name in ("additive", "dot", "general", "scaled"):
        score = getattr(attention, f"{name}_scores")
        own = [each for each in inspect.signature(score).parameters if each not in ("queries", "keys")]
        allowed = []
        for source in (keys, longer):
            given = {**weights, "w_key": torch.randn(7, source.shape[-1]), "w": torch.randn(6, source.shape[-1])}
            try:
                assert score(queries, source, **{each: given[each] for each in own}).shape == (2, 5)
                allowed.append(True)
            except InputError:
                allowed.append(False)
        formula = (inspect.getdoc(score) or "").split("``")[1]
        table[name] = (formula, len(own), allowed[1])
        record_property(
            f"F12 {name}", f"{formula}; {len(own)} of its own; unequal sizes {'yes' if allowed[1] else 'no'}"
        )
        assert allowed[0]
    assert table == {
        "additive": ("v · tanh(W₁ s + W₂ h)", 3, True),
        "dot": ("s · h", 0, False),
        "general": ("s · W h", 1, True),
        "scaled": ("s · h / √H", 0, False),
    }
