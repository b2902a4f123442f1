"""The panel of hidden units in a real browser: its states are the model's, its correlations NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foreword.lab.units import answers

from .conftest import Running, Visit

TEXT = 'He said "no, never" in 1984 (or 1985).\nShe wrote "yes" and left: "call 555-0100" was all.'


def shown(page: Any) -> list[tuple[int, float]]:
    found: list[tuple[int, float]] = page.locator("[aria-label^='Units that follow'] li").evaluate_all(
        "all => all.map(e => [Number(e.dataset.unit), Number(e.dataset.r)])"
    )
    return found


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("digits", [sign.isdigit() for sign in TEXT]),
        ("capitals", [sign.isupper() for sign in TEXT]),
        ("quotes", [TEXT[: at + 1].count('"') % 2 == 1 or sign == '"' for at, sign in enumerate(TEXT)]),
        ("line", [at - TEXT.rfind("\n", 0, at + 1) for at in range(len(TEXT))]),
    ],
)
def test_units_are_ranked_by_their_correlation_with_a_pattern(
    pattern: str, wanted: list[float], running: Running, visit: Visit
) -> None:
    reader = running.lab.units
    assert reader is not None
    page = visit.open(running.address, "units")
    asked = lambda answer: "/api/units" in answer.url and "1984" in (answer.request.post_data or "")  # noqa: E731
    with page.expect_response(asked):
        page.fill("#units-text", TEXT)
    visit.settle()
    page.select_option("#units-pattern", pattern)
    states = np.round(127 * reader.states(TEXT)) / 127
    expected = np.array([np.corrcoef(unit, np.array(wanted, float))[0, 1] for unit in states.T])
    found = shown(page)
    np.testing.assert_allclose([r for _, r in found], expected[[unit for unit, _ in found]], atol=1e-6)
    best = np.sort(np.abs(expected))[::-1][: len(found)]
    np.testing.assert_allclose(np.abs([r for _, r in found]), best, atol=1e-6)
    assert visit.complaints == []


def test_an_expression_a_marked_passage_and_units_alike(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "units")
    page.fill("#units-own", "the")
    assert page.locator(".activity .matched").count() % 3 == 0
    assert page.locator(".activity .matched").count() > 0
    page.fill("#units-own", "(")
    assert page.locator(".trouble").count() == 1
    page.fill("#units-own", "[aeiou]")
    assert page.locator(".trouble").count() == 0
    page.locator("[aria-label^='Units that react'] li button").first.click()
    assert page.locator("[aria-label^='Units that react'] li.here").count() == 0
    page.evaluate(
        """() => { const all = document.querySelectorAll('.activity span'), range = document.createRange();
             range.setStart(all[10].firstChild, 0); range.setEnd(all[19].firstChild, 1);
             document.getSelection().removeAllRanges(); document.getSelection().addRange(range); }"""
    )
    page.click("#units-mark")
    assert page.locator(".activity .matched").count() == 10
    assert page.input_value("#units-pattern") == "marked"
    assert visit.complaints == []


def test_a_trained_model_has_units_that_follow_blanks(running: Running) -> None:
    """What the panel is for: some unit reacts to the ends of words, far beyond chance."""
    reader = running.lab.units
    assert reader is not None
    states = reader.states(reader.passage)
    blanks = np.array([sign.isspace() for sign in reader.passage], float)
    assert len(states) == len(reader.passage)
    assert max(abs(np.corrcoef(unit, blanks)[0, 1]) for unit in states.T) > 0.3


def test_a_file_without_training_says_so(texts: list[str]) -> None:
    assert answers(texts, 0) == {'/api/units {"text":""}': {"text": None}}
