"""The panel of recurrent cells in a real browser: its numbers are Python's, on the server and as one file (F04–F07)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foreword.evaluate.gradients import gradient_by_lag, input_gradient_by_lag
from foreword.lab.cells import UNITS, drawn_cells, inputs_of, word_input
from foreword.nn.cells import Cell, GRUCell, run

from .conftest import Running, Visit

NEAR = 1e-6
PLACES = {
    "rnn": {"h": 2},
    "lstm": {"i": 3, "f": 4, "g": 5, "o": 6, "squashed": 7},
    "gru": {"r": 2, "z": 3, "n": 4, "inner": 5},
}
"""Where the Python cells keep what the page calls by name."""


def cells_of(weights: dict[str, Any]) -> dict[str, Cell]:
    """Return cells with weights from JSON, which tests compare the page with."""
    cells = drawn_cells()
    if weights["gru"].pop("sources", False):
        cells["gru"] = GRUCell(UNITS, UNITS, reset="before", z_keeps=False)
    for kind, cell in cells.items():
        cell.weights = {name: np.array(weight, np.float64) for name, weight in weights[kind].items()}
    return cells


def found(page: Any) -> dict[str, Any]:
    told: dict[str, Any] = page.evaluate("labCells.found()")
    return told


def slide(page: Any, id: str, value: float) -> None:
    page.locator(f"#{id}").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", value
    )


def hold_to_python(told: dict[str, Any]) -> None:
    """Every state, gate and gradient of the page against nn/cells.py, from the page's weights and inputs."""
    cells = cells_of({kind: told[kind]["weights"] for kind in PLACES})
    for kind, cell in cells.items():
        inputs = np.array(told[kind]["inputs"])[:, None]
        outputs, state, kept = run(cell, inputs)
        steps = told[kind]["steps"]
        np.testing.assert_allclose([step["h"] for step in steps], outputs[:, 0], atol=NEAR, rtol=0)
        for name, place in PLACES[kind].items():
            np.testing.assert_allclose([step[name] for step in steps], [held[place][0] for held in kept], atol=NEAR)
        if kind == "lstm":
            np.testing.assert_allclose(steps[-1]["c"], state[1][0], atol=NEAR, rtol=0)
        norms = gradient_by_lag([cell], [kept], np.full((1, UNITS), UNITS**-0.5))[0, :, 0]
        np.testing.assert_allclose(told[kind]["norms"], norms, rtol=NEAR)


def test_f05_numbers_of_drawn_cells_are_pythons(running: Running, visit: Visit) -> None:
    """F05: the page computes what nn/cells.py computes."""
    page = visit.open(running.address)
    told = found(page)
    hold_to_python(told)
    for kind, cell in drawn_cells().items():
        if kind != "lstm":  # there the slider has added to the forget bias
            np.testing.assert_allclose(told[kind]["weights"]["W_h"], cell.weights["W_h"], atol=1e-12)
    np.testing.assert_allclose(told["rnn"]["inputs"], inputs_of(told["words"])[:, 0], atol=1e-12)
    assert visit.complaints == []


def test_f05_sliders_and_trained_weights_are_pythons_too(running: Running, visit: Visit) -> None:
    page = visit.open(running.address)
    page.fill("#cells-sentence", "the list ünd the file are not the same object")
    slide(page, "cells-recurrent", 1.7)
    slide(page, "cells-input", 0.4)
    slide(page, "cells-forget", 3)
    slide(page, "cells-length", 40)
    told = found(page)
    assert len(told["words"]) == 40
    hold_to_python(told)
    bias = np.array(told["lstm"]["weights"]["b"])
    assert np.allclose(bias[UNITS : 2 * UNITS], 3)
    scaled = 1.7 * drawn_cells()["gru"].weights["W_h"]
    np.testing.assert_allclose(told["gru"]["weights"]["W_h"], scaled, atol=1e-12)

    page.select_option("#cells-source", "trained")
    told = found(page)
    hold_to_python(told)
    trained: Any = running.lab.cells["trained"]
    row = trained["words"].index("the")
    assert told["gru"]["inputs"][0] == trained["gru"]["embedding"][row]
    assert told["gru"]["inputs"][2] == trained["gru"]["embedding"][0]  # a word it does not know
    assert visit.complaints == []


def test_l07_the_gru_of_the_sources_is_pythons(running: Running, visit: Visit) -> None:
    """L07, F05: reset before the product, z replaces; with random weights, which the trained GRU has not."""
    page = visit.open(running.address)
    slide(page, "cells-recurrent", 2)
    one = found(page)["gru"]["norms"]
    page.select_option("#cells-gru", "sources")
    told = found(page)
    assert told["gru"]["weights"]["sources"]
    assert told["gru"]["norms"] != one
    hold_to_python(told)
    assert page.locator("#cell-gru math").get_attribute("alttext") == "h = (1 − z)·h + z·n"
    page.select_option("#cells-source", "trained")
    assert page.locator("#cells-gru").is_disabled()
    hold_to_python(found(page))
    assert visit.complaints == []


def test_f05_forget_bias_opens_the_highway(running: Running, visit: Visit) -> None:
    page = visit.open(running.address)
    slide(page, "cells-length", 30)
    slide(page, "cells-forget", -3)
    shut = found(page)["lstm"]["norms"][-1]
    slide(page, "cells-forget", 5)
    opened = found(page)["lstm"]["norms"][-1]
    assert opened > 1e4 * shut


def test_weights_can_be_set_by_hand(running: Running, visit: Visit) -> None:
    page = visit.open(running.address)
    page.click("text=Set the weights by hand")
    page.select_option("#cells-edited", "gru")
    page.fill("[data-at='0,0']", "2.5")
    page.keyboard.press("Enter")
    told = found(page)
    assert told["gru"]["weights"]["W_h"][0][0] == 2.5
    assert page.input_value("#cells-source") == "hand"
    hold_to_python(told)


def test_f06_the_pulse_goes_from_left_to_right_and_no_word_sees_a_later_one(running: Running, visit: Visit) -> None:
    """F06: step by step, from the first word on."""
    page = visit.open(running.address)
    page.fill("#cells-sentence", "one two three four five")
    before = found(page)
    places = []
    for _ in range(5):
        places.append(float(page.get_attribute("#cell-rnn .pulse", "cx")))
        page.click("#cells-next")
    assert places == sorted(places)
    assert len(set(places)) == 5
    page.fill("#cells-sentence", "one two other four five")
    after = found(page)
    for kind in PLACES:
        pairs = zip(before[kind]["steps"], after[kind]["steps"], strict=True)
        same = [mine["h"] == other["h"] for mine, other in pairs]
        assert same == [True, True, False, False, False]


def test_f07_four_operations_each_shows_what_was_computed(running: Running, visit: Visit) -> None:
    page = visit.open(running.address)
    page.click(".chip:nth-of-type(4)")
    page.check("#cells-slow")
    step = found(page)["lstm"]["steps"][3]
    for operation, names in enumerate((("f", "kept"), ("i", "g", "written"), ("c",), ("o", "h")), 1):
        lit = page.locator("#cell-lstm .operation.now")
        assert lit.get_attribute("data-operation") == str(operation)
        for name in names:
            shown = lit.locator(f"[data-name='{name}'] button").evaluate_all(
                "all => all.map(e => Number(e.dataset.value))"
            )
            np.testing.assert_allclose(shown, step[name], atol=1e-12)
        ahead = page.locator("#cell-lstm .operation.ahead .strip span").all_inner_texts()
        assert set(ahead) <= {"·"}
        page.click("#cells-next")
    assert page.locator("#cell-lstm .operation.now").get_attribute("data-operation") == "1"
    assert page.locator(".chip.here").inner_text() == found(page)["words"][4]


def test_every_number_is_the_sum_that_is_shown_for_it(running: Running, visit: Visit) -> None:
    page = visit.open(running.address)
    slide(page, "cells-recurrent", 1.6)
    differences = """() => { const found = labCells.found(), worst = [];
      for (const kind of ["rnn", "lstm", "gru"]) found[kind].steps.forEach((step, t) => {
        const back = found[kind].gradients[t];
        for (const [name, values] of [...Object.entries(step), ...Object.entries(back)]) {
          if (["x", "before", "inner", "keep", "squashed"].includes(name)) continue; // not shown
          if (name === "d_a" && kind !== "rnn") continue;
          values.forEach((value, unit) => worst.push([kind, name,
            Math.abs(labCells.value(labCells.made(kind, found[kind].weights, step, back, name, unit)) - value)]));
        } });
      return worst; }"""
    for convention in ("torch", "sources"):
        page.select_option("#cells-gru", convention)
        found_ones = page.evaluate(differences)
        assert len({(kind, name) for kind, name, _ in found_ones}) > 30
        assert max(difference for *_, difference in found_ones) < 1e-12


def test_hover_focus_and_tap_show_the_products_of_a_number(running: Running, visit: Visit) -> None:
    page = visit.open(running.address)
    box = page.locator("#cells-made")
    assert box.is_hidden()
    number = page.locator("#cell-lstm [data-name='f'] button").nth(2)
    number.hover()
    assert "row 11 of Wₓ, times x" in box.inner_text()
    assert box.locator(".products span").count() == 16
    assert float(box.locator("[data-made]").get_attribute("data-made")) == pytest.approx(
        float(number.get_attribute("data-value"))
    )
    page.locator("h2").hover()
    assert box.is_hidden()
    page.locator("#cell-rnn [data-name='h'] button").first.focus()
    page.keyboard.press("ArrowRight")
    assert "h, number 2" in box.inner_text()
    assert "tanh" in page.locator("#said").inner_text()
    page.keyboard.press("Escape")
    assert box.is_hidden()
    number.click()
    page.locator("h2").hover()
    assert box.is_visible()  # a tap keeps it
    page.click("h2")
    assert box.is_hidden()
    assert visit.complaints == []


@pytest.mark.parametrize("source", ["drawn", "trained"])
def test_the_way_back_is_stepped_and_reaches_each_word(source: str, running: Running, visit: Visit) -> None:
    page = visit.open(running.address)
    page.select_option("#cells-source", source)
    page.fill("#cells-sentence", "one two three four five")
    page.check("#cells-way")
    told = found(page)
    cells = cells_of({kind: told[kind]["weights"] for kind in PLACES})
    for kind, cell in cells.items():
        kept = run(cell, np.array(told[kind]["inputs"])[:, None])[2]
        norms = input_gradient_by_lag([cell], [kept], np.full((1, UNITS), UNITS**-0.5))[::-1, 0]
        np.testing.assert_allclose(told[kind]["taught"], norms, rtol=NEAR)
    for back in range(5):
        assert page.locator(".chip.here").inner_text() == told["words"][4 - back]
        shown = page.locator("#cell-gru [data-name='d_x'] button").evaluate_all(
            "all => all.map(e => Number(e.dataset.value))"
        )
        np.testing.assert_allclose(np.linalg.norm(shown), told["gru"]["taught"][4 - back], rtol=NEAR)
        assert page.locator("#cell-gru [data-taught]").count() == back + 1
        page.click("#cells-next")
    assert page.locator(".chip.here").inner_text() == "five"  # and from the end again
    assert visit.complaints == []


def test_f05_exported_page_is_one_file_without_network(exported_page: Path, running: Running, visit: Visit) -> None:
    assert exported_page.stat().st_size < 2 << 20
    page = visit.open(exported_page.as_uri())
    hold_to_python(found(page))
    page.select_option("#cells-source", "trained")
    hold_to_python(found(page))
    page.click("#cells-next")
    assert page.locator(".chip.here").inner_text() == found(page)["words"][1]
    asked = [url for url in visit.requests if not url.startswith(("file:", "data:"))]
    assert asked == []
    assert visit.complaints == []


def test_keys_alone_step_and_change_panels(running: Running, visit: Visit) -> None:
    page = visit.open(running.address)
    page.focus("#tab-cells_panel")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#next-text")
    assert page.evaluate("document.activeElement.id") == "tab-next_word"
    page.keyboard.press("Home")
    page.wait_for_selector("#cells-next")
    page.focus("#cells-next")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowRight")
    assert page.locator(".chip.here").inner_text() == "that"
    page.keyboard.press("ArrowLeft")
    assert page.locator(".chip.here").inner_text() == "cat"


@pytest.mark.parametrize("word", ["the", "", "naïve", "語", "a" * 300])
def test_words_are_numbers_between_minus_one_and_one(word: str) -> None:
    numbers = word_input(word)
    assert numbers.shape == (UNITS,)
    assert (np.abs(numbers) <= 1).all()
    assert len(set(numbers.tolist())) == UNITS
