from __future__ import annotations

import math

import pytest

from foreword.errors import ForewordError, SettingError
from foreword.ngram.smoothing import FALLBACK, GIVEN, METHODS, Method, estimate_discounts, method


def test_three_discounts_are_those_of_chen_and_goodman() -> None:
    """Equation 26 by hand: 8 n-grams seen once, 4 twice, 2 three times, 1 four times; Y = 8 / 16."""
    found = estimate_discounts([0, 8, 4, 2, 1], 3, order=2, fallback=False)
    assert found == pytest.approx((0, 1 - 2 * 0.5 * 4 / 8, 2 - 3 * 0.5 * 2 / 4, 3 - 4 * 0.5 * 1 / 2), rel=1e-15)


def test_one_discount_is_the_share_of_what_was_seen_once() -> None:
    assert estimate_discounts([0, 6, 3, 0, 0], 1, order=1, fallback=False) == (0.0, 0.5, 0.5, 0.5)


def test_nothing_is_taken_where_nothing_is_discounted() -> None:
    assert estimate_discounts([0, 0, 0, 0, 0], 0, order=1, fallback=False) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("tally", [[0, 0, 4, 2, 1], [0, 8, 0, 2, 1], [0, 8, 4, 0, 1], [0, 1, 1, 1, 9]], ids=str)
def test_where_there_is_no_solution_kenlms_fixed_discounts_serve(tally: list[int]) -> None:
    """A count that nothing has, or a discount below zero or above what it is taken from."""
    assert estimate_discounts(tally, 3, order=4, fallback=True) == FALLBACK
    with pytest.raises(ForewordError, match="discounts of order 4"):
        estimate_discounts(tally, 3, order=4, fallback=False)


def test_nothing_seen_four_times_is_no_reason_to_fall_back() -> None:
    """KenLM's estimator asks for counts of one, two and three; without fours D(3) is the whole three."""
    assert estimate_discounts([0, 8, 4, 2, 0], 3, order=2, fallback=False) == pytest.approx((0, 0.5, 1.25, 3))


@pytest.mark.parametrize("tally", [[0, 0, 3, 0, 0], [0, 6, 0, 0, 0]], ids=str)
def test_one_discount_falls_back_to_three_quarters(tally: list[int]) -> None:
    assert estimate_discounts(tally, 1, order=1, fallback=True) == (0.0, 0.75, 0.75, 0.75)
    with pytest.raises(ForewordError, match="too little text"):
        estimate_discounts(tally, 1, order=1, fallback=False)


def test_every_method_has_a_name() -> None:
    assert method("modified-kneser-ney") == Method(continuations=True, discounts=3)
    assert method("lidstone").per_word == 0.1
    assert all(method(name) is how for name, how in METHODS.items())


def test_an_unknown_method_is_told_with_the_known_ones() -> None:
    with pytest.raises(SettingError, match=r"'magic': expected one of modified-kneser-ney, .*stupid-backoff$"):
        method("magic")


def test_what_is_only_for_files_is_not_offered() -> None:
    with pytest.raises(SettingError) as caught:
        method("magic")
    assert GIVEN not in str(caught.value).partition("expected")[2]


def test_lidstone_takes_its_addition() -> None:
    assert method("lidstone", 0.5) == Method(per_word=0.5, uniform=True)


@pytest.mark.parametrize("add", [0.0, -1.0, math.nan, math.inf])
def test_lidstones_addition_is_a_positive_number(add: float) -> None:
    with pytest.raises(SettingError, match="add="):
        method("lidstone", add)


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"lidstone"}))
def test_no_other_method_has_an_addition(name: str) -> None:
    with pytest.raises(SettingError, match=f"add=0.5 is for smoothing=lidstone only, not for {name}"):
        method(name, 0.5)
