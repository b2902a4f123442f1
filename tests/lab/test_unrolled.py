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
        assert page.locator(f"#cell-{kind} svg.unrolled rect.compact").count() == 1


def test_f04_the_compact_cell_stands_before_the_chain_and_feeds_itself(running: Running, visit: Visit) -> None:
    """F04: compact and unrolled, side by side: one box with a loop, then as many as there are words."""
    page = visit.open(running.address)
    for kind in ("rnn", "lstm", "gru"):
        compact = page.locator(f"#cell-{kind} rect.compact").bounding_box()
        first = page.locator(f"#cell-{kind} rect.state").first.bounding_box()
        assert compact["x"] + compact["width"] < first["x"]
        loop = page.locator(f"#cell-{kind} path.loop").first.bounding_box()
        assert loop["y"] < compact["y"]
        assert loop["x"] < compact["x"] + compact["width"] / 2 < loop["x"] + loop["width"]
