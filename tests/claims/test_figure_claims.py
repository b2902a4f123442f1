"""Figures and tables of the sources, made by the package: rows F09, F12 and X02."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from foreword.errors import ForewordError, InputError
from foreword.evaluate.cost import cell_table, cost_by_length, path_length, unrolled_depth
from foreword.evaluate.gradients import jacobian_products, norms_by_lag, step_jacobians
from foreword.evaluate.horizon import Learning, capacity
from foreword.nn import attention
from foreword.nn.cells import Cell, GRUCell, LSTMCell, RNNCell, parameters, run
from foreword.picture.gradients import gradients
from foreword.tag.bilstm import BiLSTMTagger

Report = Callable[[str, object], None]

torch.set_num_threads(1)

LAGS = 60


def norms_of_cells() -> dict[str, list[float]]:
    """|∂h_T/∂h_(T−lag)| for lags 0 to 60 of the three cells, 24 units each, forget gates that begin open."""
    x = np.random.default_rng(0).normal(size=(LAGS, 1, 8)) * 0.5
    cells: dict[str, Cell] = {"RNN": RNNCell(8, 24), "GRU": GRUCell(8, 24), "LSTM": LSTMCell(8, 24, forget_bias=5.0)}
    cells["RNN"].weights["W_h"] *= 0.8
    return {
        name: norms_by_lag(jacobian_products(step_jacobians(cell, run(cell, x)[2]))).tolist()
        for name, cell in cells.items()
    }


def test_f09_gradient_norm_by_lag_on_a_logarithmic_axis(record_property: Report) -> None:
    """F09: drawn for RNN, GRU and LSTM. The RNN's falls exponentially: a straight line through its logarithms."""
    norms = norms_of_cells()
    picture = gradients(norms, range(0, LAGS, 10))
    assert "logarithmic" in picture.caption
    assert all(f">{name}" in picture.markup for name in norms)
    lags = np.arange(5, LAGS)
    straight = float(np.corrcoef(lags, np.log(norms["RNN"][5:LAGS]))[0, 1])
    record_property("F09 correlation of lag and log norm, RNN", round(straight, 4))
    for name, values in norms.items():
        record_property(f"F09 left after {LAGS - 1} steps, {name}", f"{values[LAGS - 1] / values[0]:.2g}")
    assert straight < -0.99
    assert norms["LSTM"][LAGS - 1] / norms["LSTM"][0] > 1000 * norms["RNN"][LAGS - 1] / norms["RNN"][0]


def test_f12_the_table_of_gates() -> None:
    """F12: gates and their roles, from the cells themselves: as many as their weights have room for."""
    rows = {row.kind: row for row in cell_table(3, 4, timed=False)}
    cells: dict[str, Cell] = {"rnn": RNNCell(3, 4), "gru": GRUCell(3, 4), "lstm": LSTMCell(3, 4)}
    for kind, cell in cells.items():
        assert cell.weights["W_h"].shape == (4 * rows[kind].matrices, 4)
    described = inspect.getdoc(LSTMCell) or ""
    assert "i, f, o = σ(…)" in described  # input, forget and output gate
    assert "r, z = σ(…)" in (inspect.getdoc(GRUCell) or "")  # reset and update gate
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


def test_x02_four_limits_each_with_a_number(record_property: Report) -> None:
    """X02: no parallelism, long paths, limited memory, slow training; a number for each and for its remedy."""
    steps = {kind: unrolled_depth(kind, 200) for kind in ("rnn", "attention")}
    paths = {kind: path_length(kind, 0, 49, steps=50) for kind in ("rnn", "attention")}
    learning = replace(Learning(updates=300), hidden=24)
    held = capacity([1, 5], [2, 24], "gru", [0], learning, symbols=4).right[..., 0]
    cost = cost_by_length([32, 1024], ["lstm", "attention"], hidden=64, repeats=1).seconds
    record_property("X02 steps that must wait for each other, 200 words, RNN and attention", str(steps))
    record_property("X02 steps from word 1 to word 50", str(paths))
    record_property("X02 share of 1 and of 5 symbols given back, 2 and 24 units", str(held.round(2).tolist()))
    record_property("X02 time of 1,024 steps over that of 32, LSTM and attention, one CPU thread", str(_ratios(cost)))
    assert steps == {"rnn": 200, "attention": 1}
    assert paths == {"rnn": 49, "attention": 1}
    assert held[0, 1] < held[0, 0]  # more than two units can hold
    assert held[0, 1] < held[1, 1] - 0.2
    assert cost[0, 1] > 5 * cost[0, 0]


def _ratios(seconds: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> list[float]:
    return [round(float(long / short), 1) for short, long in seconds]


def test_x02_four_architectures_each_with_a_number(record_property: Report) -> None:
    """X02: plain network, LSTM, GRU, both ways; encoders and decoders are in ``test_translate_claims.py``."""
    norms = norms_of_cells()
    left = {name: values[LAGS - 1] / values[0] for name, values in norms.items()}
    record_property("X02 gradient left after 59 steps", str({name: f"{share:.2g}" for name, share in left.items()}))
    assert left["RNN"] < 1e-3 < left["LSTM"]
    rows = {row.kind: row.parameters for row in cell_table(300, 256, timed=False)}
    record_property("X02 weights of a GRU beside an LSTM's", rows["gru"] / rows["lstm"])
    assert rows["gru"] / rows["lstm"] == 0.75
    one, other = (LSTMCell(3, 4, seed=seed) for seed in (0, 1))
    record_property("X02 weights both ways beside one way", (parameters(one) + parameters(other)) / parameters(one))
    both = BiLSTMTagger(4, words=4, epochs=1, device="cpu").fit([["a", "b"]], [["X", "Y"]])
    with pytest.raises(ForewordError, match="both"):
        next(iter(both.stream(iter(["a"]))))
