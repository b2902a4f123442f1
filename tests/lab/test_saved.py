"""Every panel as one file: saved from the page, opened without a server, it shows the same and asks nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foreword.errors import SettingError
from foreword.lab.page import PANELS, answers_of

from .conftest import Running, Visit


def shown(page: Any) -> str:
    text: str = page.locator("section.view").evaluate(
        """view => [...view.querySelectorAll('h2, h3, li, td, th, .told, .strip')].map(e => e.innerText).join('|')"""
    )
    return text


@pytest.mark.parametrize("panel", [panel.name for panel in PANELS])
def test_a_panel_is_saved_as_one_file(panel: str, running: Running, visit: Visit, tmp_path: Path) -> None:
    page = visit.open(running.address, panel)
    visit.settle()
    if panel == "next_word":
        page.fill("#next-text", "the value of")
        visit.settle()
    before = shown(page)
    with page.expect_download() as download:
        page.click("#save")
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert file.name == f"foreword-{panel}.html"
    assert file.stat().st_size < 2 << 20

    page.goto("about:blank")  # what polls, stops
    visit.requests.clear()
    page.goto(file.as_uri())
    page.wait_for_selector("section.view h2")
    visit.settle()
    assert shown(page) == before
    assert page.locator("#save").is_hidden()
    assert [url for url in visit.requests if not url.startswith(("file:", "data:"))] == []
    assert visit.complaints == []


def test_a_saved_panel_says_that_it_has_no_server(running: Running, visit: Visit, tmp_path: Path) -> None:
    page = visit.open(running.address, "next_word")
    visit.settle()
    with page.expect_download() as download:
        page.click("#save")
    download.value.save_as(tmp_path / "saved.html")
    page.goto((tmp_path / "saved.html").as_uri())
    page.fill("#next-text", "nobody has asked this")
    page.locator(".trouble", has_text="foreword lab answers the rest").first.wait_for()


@pytest.mark.parametrize("panel", ["next_word", "tags", "no such panel"])
def test_what_only_the_page_can_save_is_one_line(panel: str) -> None:
    with pytest.raises(SettingError, match="panel"):
        answers_of(panel, [], 0)
