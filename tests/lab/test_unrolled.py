"""The chain of a recurrent network's steps as the page draws it (F04)."""

from __future__ import annotations

import pytest

from .conftest import Running, Visit


@pytest.mark.parametrize("words", [1, 3, 9])
def test_f04_a_network_is_unrolled_for_any_number_of_steps(words: int, running: Running, visit: Visit) -> None:
    """F04: a box and an input a step, a wire between each two; for every kind of cell."""
    page = visit.open(running.address)
    page.fill("#cells-sentence", " ".join(["word"] * words))
    for kind in ("rnn", "lstm", "gru"):
        assert page.locator(f"#cell-{kind} svg.unrolled rect.state").count() == words
        assert page.locator(f"#cell-{kind} svg.unrolled line.wire").count() == words + words - 1
