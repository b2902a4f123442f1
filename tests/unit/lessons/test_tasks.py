"""Examples of the memory tasks: what is read holds what is wanted, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foreword.errors import SettingError
from foreword.lessons.horizon import Adding, Copying, Recall, one_hot

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
