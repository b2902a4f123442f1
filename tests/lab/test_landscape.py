"""The panel of the loss landscape in a real browser: its gradient, its cliff, and what clipping does there."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Running, Visit


def loss(w: float, b: float, steps: int) -> float:
    state = 0.5
    for _ in range(steps):
        state = 1 / (1 + np.exp(-(w * state + b)))
    return float((state - 0.7) ** 2)


@pytest.mark.parametrize(("w", "b", "steps"), [(4.6, -2.36, 30), (0.5, -4, 50), (3, -1, 5), (-1.5, 1, 1)])
def test_gradients_are_differences_of_the_loss(w: float, b: float, steps: int, running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "landscape")
    told = page.evaluate("([w, b, steps]) => labLandscape.descent({ w, b }, steps)", [w, b, steps])
    small = 1e-6
    assert told["loss"] == pytest.approx(loss(w, b, steps), rel=1e-9)
    assert told["gradient"]["w"] == pytest.approx(
        (loss(w + small, b, steps) - loss(w - small, b, steps)) / (2 * small), rel=1e-4, abs=1e-9
    )
    assert told["gradient"]["b"] == pytest.approx(
        (loss(w, b + small, steps) - loss(w, b - small, steps)) / (2 * small), rel=1e-4, abs=1e-9
    )
    assert len(told["norms"]) == steps + 1


def test_the_cliff_throws_it_off_the_map_and_clipping_keeps_it(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "landscape")
    learn = "many => { for (let n = 0; n < many; n++) document.getElementById('landscape-next').click(); }"
    page.evaluate(learn, 60)
    assert "off the map" in page.locator("#landscape-told").inner_text()
    page.select_option("#landscape-place", "clipped")
    page.evaluate(learn, 150)
    point = page.evaluate("labLandscape.now.point")
    assert loss(point["w"], point["b"], 30) < 0.01
    page.select_option("#landscape-place", "vanishing")
    assert "vanishes" in page.locator("section.view").inner_text()
    page.focus("#landscape-w")
    page.keyboard.press("End")
    assert page.evaluate("labLandscape.now.point.w") == 10
    page.locator(".landscape").click(position={"x": 60, "y": 60})
    assert page.evaluate("labLandscape.now.point.w") < 1
    page.click("#landscape-back")
    assert visit.complaints == []
