"""Gradients by lag as lines, each a share of its own beginning."""

from __future__ import annotations

import pytest

from foreword.errors import SettingError
from foreword.picture.curves import gradients


def test_lines_are_shares_of_their_beginning_at_the_lags_asked_for() -> None:
    picture = gradients({"rnn": [4.0, 2.0, 1.0, 1e-40], "lstm": [5.0, 5.0, 4.0, 2.5]}, [0, 2, 3], accent={"lstm"})
    assert ">lstm: 0.5<" in picture.markup
    assert ">rnn: 0.25<" in picture.markup  # at lag 3 it is past drawing, and the name stands where the line ends
    assert "3 steps back there is left: rnn nothing, lstm 0.5" in picture.caption
    assert all(f">{lag}<" in picture.markup for lag in (0, 2, 3))


def test_what_cannot_be_drawn_is_named() -> None:
    with pytest.raises(SettingError, match="rnn: 2 lags but lag 5"):
        gradients({"rnn": [1.0, 0.5]}, [0, 5])
    with pytest.raises(SettingError, match="expected a positive number"):
        gradients({"rnn": [0.0, 0.5]}, [0, 1])
    with pytest.raises(SettingError, match="at least one"):
        gradients({}, [0])
