"""Networks that learn to remember and some that cannot; examples of the memory tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from foreword.errors import SettingError
from foreword.lessons.horizon import (
    KINDS,
    Adding,
    Copying,
    Horizon,
    MemoryTraining,
    Recall,
    capacity,
    draw_horizon,
    first_weights,
    horizon,
    learn,
    one_hot,
    run_layer,
)
from foreword.nn.cells import GRUCell, LSTMCell, RNNCell, run

torch.set_num_threads(1)
TINY = MemoryTraining(hidden=16, updates=300)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_learns_a_short_recall(kind: str) -> None:
    learning = MemoryTraining(hidden=16, updates=200, rate=0.003 if kind == "irnn" else 0.01)
    assert learn(Recall(4, symbols=4), kind, learning).right >= 0.95


def test_the_seed_decides() -> None:
    learning = MemoryTraining(hidden=8, updates=30)
    outcome = learn(Recall(4, symbols=4), "gru", learning, seed=1)
    assert outcome == learn(Recall(4, symbols=4), "gru", learning, seed=1)
    assert outcome != learn(Recall(4, symbols=4), "gru", learning, seed=2)


@pytest.mark.parametrize("kind", ["rnn", "irnn", "gru", "lstm"])
def test_layers_read_as_the_plain_cells_do(kind: str) -> None:
    weights = first_weights(kind, 3, 5, torch.Generator().manual_seed(0))
    x = np.random.default_rng(0).normal(size=(6, 2, 3))
    cell: Any = {
        "rnn": RNNCell(3, 5),
        "irnn": RNNCell(3, 5, activation="relu"),
        "gru": GRUCell(3, 5),
        "lstm": LSTMCell(3, 5),
    }[kind]
    w_x, w_h, b_x, _ = (weight.double() for weight in weights)
    cell.weights |= {"W_x": w_x.numpy(), "W_h": w_h.numpy(), "b": b_x.numpy()}
    states = run_layer(kind, torch.tensor(x, dtype=torch.float32), weights)[0]
    assert_allclose(states.numpy(), run(cell, x)[0], atol=1e-5)


def test_l06_a_forget_gate_that_begins_open() -> None:
    """L06: what ``forget_bias`` sets is the forget gate, and nothing else."""
    one, none = (first_weights("lstm", 3, 5, torch.Generator().manual_seed(0), bias) for bias in (1.0, 0.0))
    assert_array_equal(one[2].numpy() - none[2].numpy(), np.repeat([0, 1, 0, 0], 5))
    assert all(torch.equal(a, b) for a, b in zip((one[0], one[1], one[3]), (none[0], none[1], none[3]), strict=True))


@pytest.mark.long
def test_l10_the_horizon_of_a_network_that_cannot_remember_is_short() -> None:
    """L10: the same updates; a GRU reaches the longer lag, a plain RNN of that size does not."""
    lags = []
    found = horizon(
        lambda lag: Recall(lag, symbols=4),
        [3, 60],
        ["rnn", "gru"],
        [0, 1],
        MemoryTraining(hidden=16, updates=250),
        meter=lambda phase, done, total: lags.append((phase, done, total)),
    )
    assert found.right.shape == found.updates.shape == (2, 2, 2)
    assert found.reach() == {"rnn": 3, "gru": 60}
    assert_array_equal(found.success(), [[1, 0], [1, 1]])
    assert (found.updates[0, 1] == 250).all()
    assert not found.diverged.any()
    assert lags[0] == ("rnn at lag 3", 0, 8)
    assert lags[-1] == ("gru at lag 60", 7, 8)


def test_reach_stops_at_the_first_lag_that_was_not_solved() -> None:
    right = np.array([[[1, 1], [0, 1], [1, 1]], [[1, 0], [0, 0], [1, 1]], [[0, 0], [1, 1], [1, 1]]], float)
    shape = right.shape
    found = Horizon(["a", "b", "c"], [5, 10, 20], right, np.zeros(shape, int), np.zeros(shape, bool), 0.95)
    assert found.reach() == {"a": 20, "b": 5, "c": 0}


def test_other_tasks_are_learnt_too() -> None:
    assert learn(Copying(2, items=2, symbols=4), "gru", TINY).right >= 0.95
    assert learn(Adding(4), "gru", MemoryTraining(hidden=16, updates=800)).right >= 0.95


@pytest.mark.long
def test_l11_a_larger_state_holds_more_items() -> None:
    """L11: symbols given back in order; few units hold few."""
    found = capacity([1, 5], [2, 24], "gru", [0], MemoryTraining(updates=300), symbols=4)
    assert found.right.shape == (2, 2, 1)
    small, large = found.right[..., 0]
    assert large[1] > small[1] + 0.2
    assert small[1] < 0.75
    assert large[0] >= 0.95


@pytest.mark.long
def test_r17_random_relu_weights_fail_where_the_identity_learns(
    record_property: Callable[[str, object], None],
) -> None:
    """R17: recall over 40 steps, five seeds: with ReLU all learn from W_h = 1 and none from random weights."""
    task, learning = Recall(40, symbols=4), MemoryTraining(hidden=16, updates=400, rate=0.003)
    identity, random = ([learn(task, kind, learning, seed) for seed in range(5)] for kind in ("irnn", "relu"))
    for name, found in (("identity", identity), ("random", random)):
        told = ", ".join("diverged" if each.diverged else f"{each.right:.2f}" for each in found)
        record_property(f"R17 right answers of five seeds, {name}", told)
    assert min(each.right for each in identity) >= 0.95
    assert all(each.diverged or each.right < 0.65 for each in random)


def test_unknown_kinds_are_named() -> None:
    with pytest.raises(SettingError, match="kind='elman': expected one of rnn, relu"):
        learn(Recall(1), "elman")


def test_the_picture_says_what_was_solved() -> None:
    shares = np.array([[1.0, 0.0], [1.0, 0.25]])
    picture = draw_horizon(["rnn", "<gru>"], [10, 1000], shares, "Recall", "Said.")
    tree = ElementTree.fromstring(picture.markup)
    fills = [rect.attrib["fill-opacity"] for rect in tree.iter("{http://www.w3.org/2000/svg}rect")]
    assert fills == ["1.00", "0.00", "1.00", "0.25"]
    texts = ["".join(text.itertext()) for text in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["lag", "10", "1,000", "rnn", "0 %", "<gru>", "25 %"]
    with pytest.raises(SettingError, match="expected 1 rows and 2 columns"):
        draw_horizon(["rnn"], [1, 2], shares, "", "")


RANDOM_SEED = 3


def random() -> np.random.Generator:
    return np.random.default_rng(RANDOM_SEED)


@pytest.mark.parametrize("lag", [0, 1, 7])
def test_recall_asks_for_the_first_symbol(lag: int) -> None:
    task = Recall(lag, symbols=5)
    examples = task.draw(64, random())
    ids = examples.x.argmax(axis=2)
    assert examples.x.shape == (lag + 2, 64, task.inputs)
    assert_array_equal(examples.x.sum(axis=2), 1)
    assert_array_equal(ids[:1], examples.wanted)
    assert ((ids[1:-1] >= 5) & (ids[1:-1] < 10)).all()  # a distractor is never one of the symbols
    assert (ids[-1] == 10).all()
    assert set(examples.wanted.ravel().tolist()) == set(range(5))


def test_copying_asks_for_all_symbols_in_order() -> None:
    task = Copying(lag=3, items=4, symbols=6)
    examples = task.draw(10, random())
    ids = examples.x.argmax(axis=2)
    assert examples.x.shape == (4 + 3 + 4, 10, 8)
    assert_array_equal(ids[:4], examples.wanted)
    assert (ids[4:7] == 6).all()
    assert (ids[7:] == 7).all()


@pytest.mark.parametrize("lag", [0, 1, 10])
def test_adding_marks_one_number_in_each_half(lag: int) -> None:
    examples = Adding(lag).draw(200, random())
    numbers, marks = examples.x[..., 0], examples.x[..., 1]
    half = len(numbers) // 2
    assert_array_equal(marks[:half].sum(axis=0), 1)
    assert_array_equal(marks[half:].sum(axis=0), 1)
    assert_allclose((numbers * marks).sum(axis=0) - 1, examples.wanted[0], atol=1e-6)


def test_a_lag_can_be_asked_for_and_the_seed_decides() -> None:
    for task in (Recall(9), Copying(9), Adding(9)):
        assert len(task.draw(2, random(), 3).x) == len(type(task)(3).draw(2, random()).x)
        assert_array_equal(task.draw(5, random()).x, task.draw(5, random()).x)
        with pytest.raises(SettingError, match="lag=-1"):
            task.draw(1, random(), -1)


def test_one_hot() -> None:
    assert_array_equal(one_hot(np.array([[2, 0]]), 3), [[[0, 0, 1], [1, 0, 0]]])


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm", "min-gru"])
def test_a_layer_that_goes_on_from_a_state_reads_the_same(kind: str) -> None:
    generator = torch.Generator().manual_seed(0)
    weights, x = first_weights(kind, 3, 5, generator), torch.randn((9, 2, 3), generator=generator)
    whole, *_ = run_layer(kind, x, weights)
    first, *state = run_layer(kind, x[:4], weights)
    second, *_ = run_layer(kind, x[4:], weights, state)
    assert_allclose(torch.cat((first, second)).numpy(), whole.numpy(), atol=1e-6)
