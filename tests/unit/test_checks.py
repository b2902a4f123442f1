"""Checks that many modules share."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from foreword.checks import (
    check_choice,
    check_ids,
    check_not_string,
    check_numbers,
    check_weights,
    list_of_texts,
    saveable,
)
from foreword.errors import InputError, NotSaveableError, SettingError, VocabularyError


def test_one_string_is_not_a_list_of_texts() -> None:
    with pytest.raises(InputError, match="expected a list of texts, one document each, but got a single string"):
        check_not_string("a text")
    with pytest.raises(InputError, match="single string"):
        list_of_texts("a text")
    assert list_of_texts(iter(["a", "b"])) == ["a", "b"]


@pytest.mark.parametrize("ids", [[0, 3], [-1], [5, 0]])
def test_ids_outside_the_vocabulary(ids: list[int]) -> None:
    with pytest.raises(VocabularyError, match="not in the vocabulary of 3 tokens"):
        check_ids(np.array(ids), 3)


def test_ids_of_the_vocabulary_and_none_at_all() -> None:
    check_ids(np.array([0, 2]), 3)
    check_ids(np.array([], np.int64), 3)


def test_what_cannot_be_saved() -> None:
    with pytest.raises(NotSaveableError, match="a dict cannot be saved"):
        saveable({})


def test_weights_of_another_shape_type_or_value() -> None:
    shapes = {"w": (2, 3)}
    check_weights({"x.w": np.zeros((2, 3), np.float32)}, shapes, "x.")
    for array in (np.zeros((3, 2), np.float32), np.zeros((2, 3))):
        with pytest.raises(ValueError, match=r"w is .* not float32 \(2, 3\)"):
            check_weights({"w": array}, shapes)
    infinite = {"w": np.full((2, 3), np.inf, np.float32)}
    with pytest.raises(ValueError, match="a number of w is not finite"):
        check_weights(infinite, shapes)
    check_weights(infinite, shapes, finite=False)


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        (0, {"least": 1}, "n is 0: expected at least 1"),
        (-0.5, {}, "n is -0.5: expected at least 0"),
        (0, {"above": 0}, "n is 0: expected more than 0"),
        (2, {"most": 1}, "n is 2: expected at least 0 and at most 1"),
        (1.0, {"whole": True}, "n is 1.0: expected a whole number"),
        (True, {"whole": True}, "n is True: expected a whole number"),
        (math.nan, {}, "n is nan"),
        (math.inf, {}, "n is inf"),
    ],
)
def test_numbers_outside_their_range(value: float, limits: dict[str, float], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        check_numbers(SimpleNamespace(n=value), "n", **limits)  # type: ignore[arg-type]


def test_numbers_inside_their_range_and_choices() -> None:
    check_numbers(SimpleNamespace(n=1, m=3), "n", "m", least=1, most=3, whole=True)
    check_choice(SimpleNamespace(kind="a"), "kind", ("a", "b"))
    with pytest.raises(SettingError, match="kind is 'c': expected a or b"):
        check_choice(SimpleNamespace(kind="c"), "kind", ("a", "b"))


@pytest.mark.parametrize("value", [1 << 63, -(1 << 63), 10**400])
def test_an_integer_that_numpy_cannot_hold_is_no_number(value: int) -> None:
    """The strength of a saved ∞-gram was 2⁶³, and an OverflowError came when it was used: found by broken files."""
    with pytest.raises(SettingError, match="strength is too large: expected a number below 9"):
        check_numbers(SimpleNamespace(strength=value), "strength", least=-math.inf)
    check_numbers(SimpleNamespace(strength=1e30), "strength")
