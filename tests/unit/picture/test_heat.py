from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from foreword.errors import SettingError
from foreword.picture.bars import reasons
from foreword.picture.heat import heat_map


def test_reasons_point_both_ways() -> None:
    drawn = reasons(["good", "bad"], [1.0, -0.5], "Why", "Two words.")
    shapes = ElementTree.fromstring(drawn.markup)
    bars = [float(bar.attrib["width"].rstrip("%")) for bar in shapes.iter() if bar.tag.endswith("rect")]
    assert bars[0] == pytest.approx(2 * bars[1], rel=1e-2)
    assert "−0.50" in drawn.markup
    with pytest.raises(SettingError, match="2 words and 1 weights"):
        reasons(["good", "bad"], [1.0], "Why", "")


def test_a_heat_map_has_a_square_for_each_pair() -> None:
    drawn = heat_map(["a", "b", "c"], ["x"], np.array([[0.0, 0.5, 1.0]]), "A map", "Three squares.")
    shapes = ElementTree.fromstring(drawn.markup)
    full = [shape.attrib["fill-opacity"] for shape in shapes.iter() if shape.tag.endswith("rect")]
    assert full == ["0.00", "0.50", "1.00"]
    with pytest.raises(SettingError, match="1 rows and 2 columns"):
        heat_map(["a", "b"], ["x"], np.zeros((2, 1)), "", "")
