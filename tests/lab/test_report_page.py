"""The report in a real browser: from the disk, with no request and no complaint, on any screen and on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foreword.evaluate.compare.ladder import compare
from foreword.evaluate.compare.results import Comparison
from foreword.picture.report import write_report

from .conftest import Visit


@pytest.fixture(scope="session")
def page_file(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a comparison with every kind of section."""
    models = ["unigram", "5-gram", "hmm", "rnn", "gru", "lstm"]
    *_, last = compare(texts[:400], name="A report", models=models, time_budget=4)
    assert isinstance(last, Comparison)
    file = tmp_path_factory.mktemp("report") / "report.html"
    write_report(last, file)
    return file


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_it_opens_from_the_disk_and_asks_for_nothing(page_file: Path, browser: Any, width: int, theme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    visit = Visit(browser, color_scheme=theme, viewport={"width": width, "height": 900}, bypass_csp=True)
    try:
        visit.page.goto(page_file.as_uri())
        assert visit.page.locator("section[aria-labelledby]").count() >= 11
        wide = visit.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, "the page scrolls sideways"
        # Letters that leave the page at the right are lost on a telephone; what scrolls by itself is another matter.
        lost = visit.page.evaluate(
            """() => [...document.querySelectorAll('main svg text')].filter(e => !e.closest('.scroll') &&
                 e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.textContent)"""
        )
        assert lost == []
        found = axe.Axe().run(visit.page).response["violations"]
        grave = [
            (fault["id"], fault["nodes"][0]["html"][:200])
            for fault in found
            if fault["impact"] in ("serious", "critical")
        ]
        assert grave == []
        assert visit.requests == [page_file.as_uri()]
        assert visit.complaints == []
    finally:
        visit.close()


def test_contents_lead_to_sections_and_tables_scroll_by_keys(page_file: Path, visit: Visit) -> None:
    page = visit.page
    page.goto(page_file.as_uri())
    page.locator("nav a", has_text="Size and speed").click()
    assert page.url.endswith("#size-and-speed")
    top = page.locator("#size-and-speed").bounding_box()["y"]
    assert -1 < top < 900
    assert page.locator(".scroll").first.get_attribute("tabindex") == "0"
    assert visit.complaints == []


def test_the_button_saves_the_page_as_one_small_file(page_file: Path, visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    page.goto(page_file.as_uri())
    with page.expect_download() as download:
        page.locator(".share button").click()
    saved = tmp_path / "saved.html"
    download.value.save_as(saved)
    assert download.value.suggested_filename == "A-report-language-models-compared.html"
    assert saved.stat().st_size < 1_000_000
    page.goto(saved.as_uri())
    assert page.locator("section[aria-labelledby]").count() >= 13
    assert page.locator(".share button").is_visible()
    assert visit.complaints == []


def test_on_paper_it_is_black_on_white_and_nothing_is_cut_off(page_file: Path, browser: Any, tmp_path: Path) -> None:
    visit = Visit(browser, color_scheme="dark", viewport={"width": 700, "height": 900})
    try:
        page = visit.page
        page.goto(page_file.as_uri())
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(35, 33, 30)"
        assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
        assert page.evaluate("getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
        assert page.pdf(format="A4").startswith(b"%PDF")
    finally:
        visit.close()
