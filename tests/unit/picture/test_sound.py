"""Pictures over time: runs of one shade are one rectangle, and every number has its place."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from foreword.errors import SettingError
from foreword.picture.picture import standalone
from foreword.picture.sound import SHADES, over_time, spectrogram


def painted(markup: str, rows: int, steps: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Read the grid back from the paths."""
    found = np.zeros((rows, steps))
    for path in ElementTree.fromstring(markup).iter():
        if path.tag.endswith("path"):
            for left, row, right in re.findall(r"M([\d.]+) (\d+)H([\d.]+)v1", path.attrib["d"]):
                columns = slice(round(float(left) * steps / 1000), round(float(right) * steps / 1000))
                found[int(row), columns] = float(path.attrib["fill-opacity"])
    return found


def test_every_number_is_where_it_belongs() -> None:
    shares = np.random.default_rng(0).random((4, 37))
    picture = over_time(list("abcd"), shares, 0.03, "Title", "Caption")
    np.testing.assert_allclose(painted(picture.markup, 4, 37), shares, atol=0.51 / SHADES + 0.005)
    drawn = standalone(picture)
    assert all(f">{name}</text>" in drawn for name in ("a", "d", "0.5 s", "1 s"))


def test_neighbours_of_one_shade_are_one_rectangle() -> None:
    shares = np.zeros((1, 100))
    shares[0, 20:60] = 1
    assert over_time(["x"], shares, 0.01, "Title", "Caption").markup.count("v1H") == 1


def test_a_spectrogram_has_low_bands_at_the_bottom() -> None:
    frames = np.full((50, 26), -9.0)
    frames[:, 2] = 0.0
    picture = spectrogram(frames, 0.015, 8000)
    assert painted(picture.markup, 26, 50).mean(1).argmax() == 25 - 2
    assert "1,000 Hz" in picture.markup


def test_bad_shapes_are_refused() -> None:
    with pytest.raises(SettingError, match="for 2 rows"):
        over_time(["a", "b"], np.zeros((3, 4)), 0.01, "Title", "Caption")
