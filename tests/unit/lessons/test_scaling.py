"""Power laws fitted to numbers whose law is known."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose

from foreword.errors import SettingError
from foreword.lessons.scaling import draw_scaling, exponent_interval, fit_power_law
from foreword.picture.axes import even_ticks

SIZES = [1e4, 4e4, 1.6e5, 6.4e5, 2.56e6, 1e7]


@pytest.mark.parametrize(("scale", "exponent"), [(10.0, 0.076), (3.0, 0.5), (800.0, 1.0)])
def test_x04_a_pure_power_law_is_found(scale: float, exponent: float) -> None:
    """X04: a and b come back, and R² is one."""
    found = fit_power_law(SIZES, [scale * n**-exponent for n in SIZES])
    assert found.scale == pytest.approx(scale)
    assert found.exponent == pytest.approx(exponent)
    assert found.floor == 0
    assert found.r2 == pytest.approx(1)
    assert_allclose(found.at(SIZES), [scale * n**-exponent for n in SIZES])


@pytest.mark.parametrize(("exponent", "floor"), [(0.2, 1.5), (0.5, 4.0), (0.3, 0.0)])
def test_x04_a_floor_is_found(exponent: float, floor: float) -> None:
    """X04: with c; the same numbers without c are explained less well."""
    losses = [50 * n**-exponent + floor for n in SIZES]
    found = fit_power_law(SIZES, losses, floor=True)
    assert found.exponent == pytest.approx(exponent, rel=1e-4)
    assert found.floor == pytest.approx(floor, abs=1e-4)
    assert found.scale == pytest.approx(50, rel=1e-3)
    assert found.r2 == pytest.approx(1)
    if floor:
        assert fit_power_law(SIZES, losses).r2 < 0.999


def test_x04_noise_lowers_r2_and_a_floor_is_never_negative() -> None:
    random = np.random.default_rng(0)
    noisy = [5 * n**-0.1 * float(np.exp(0.1 * random.normal())) for n in SIZES]
    found = fit_power_law(SIZES, noisy, floor=True)
    assert found.floor >= 0
    assert 0 < found.r2 < 0.999
    straight = [20 - np.log(n) for n in SIZES]  # falls faster than any power law with a floor above zero allows
    assert fit_power_law(SIZES, straight, floor=True).floor == 0


@pytest.mark.parametrize(
    ("sizes", "losses", "floor"), [([1.0], [2.0], False), ([1.0, 2.0], [2.0, 1.0], True), ([1, 2, 3], [1, 2], False)]
)
def test_too_few_sizes_are_refused(sizes: list[float], losses: list[float], floor: bool) -> None:
    with pytest.raises(SettingError, match="expected as many"):
        fit_power_law(sizes, losses, floor=floor)


def test_numbers_that_have_no_logarithm_are_refused() -> None:
    with pytest.raises(SettingError, match="positive"):
        fit_power_law([1, 2], [1, float("nan")])
    with pytest.raises(SettingError, match="positive"):
        fit_power_law([0, 2], [1, 1])


def test_round_numbers_between_two_that_are_close() -> None:
    assert even_ticks(1.73, 2.59) == [1.8, 2.0, 2.2, 2.4]
    assert even_ticks(0.011, 0.049) == [0.02, 0.03, 0.04]
    assert even_ticks(3, 3) == [3]


def test_the_picture_has_a_dot_for_each_size_and_a_line_for_the_law() -> None:
    points = {"lstm": [(1e4, 3.0), (1e5, 2.0), (1e6, 1.5)], "<other>": [(2e4, 2.5)]}
    picture = draw_scaling(points, {"lstm": lambda size: 30 * size**-0.25}, "Said.", accent={"lstm"})
    tree = ElementTree.fromstring(picture.markup)
    dots = list(tree.iter("{http://www.w3.org/2000/svg}circle"))
    assert [dot.attrib["cx"] for dot in dots[:3]] == ["10%", "42%", "74%"]
    assert [float(dot.attrib["cy"]) for dot in dots[:3]] == sorted(float(dot.attrib["cy"]) for dot in dots[:3])
    lines = list(tree.iter("{http://www.w3.org/2000/svg}line"))
    assert sum(line.attrib["stroke"] == "var(--p-accent)" for line in lines) == 24
    texts = ["".join(text.itertext()) for text in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"lstm: 1.50", "<other>: 2.50"} <= set(texts)
    with pytest.raises(SettingError, match="was not measured"):
        draw_scaling(points, {"gru": lambda size: size}, "")
    with pytest.raises(SettingError, match="positive"):
        draw_scaling({"a": [(0, 1)]}, {}, "")
    with pytest.raises(SettingError, match="at least one point"):
        draw_scaling({}, {}, "")


def test_the_interval_of_an_exponent() -> None:
    sizes = [1e3, 1e4, 1e5, 1e6, 1e7]
    exact = [5 * size**-0.1 for size in sizes]
    assert exponent_interval(sizes, exact) == pytest.approx((0.1, 0.1))
    low, high = exponent_interval(sizes, [loss * 1.05 ** (-1) ** place for place, loss in enumerate(exact)])
    assert low < 0.1 < high
    assert high - low > 0.01
    with pytest.raises(SettingError, match="at least 3"):
        exponent_interval(sizes[:2], exact[:2])
