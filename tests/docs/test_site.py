"""The site builds without a warning, every link in it leads somewhere, and nothing in it asks the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import foreword

pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install 'foreword[docs]'")
pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed: pip install 'foreword[docs]'")

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """The ids of a page, what it links to, what a browser loads with it, and the tags it is made of."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.tags: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: text or "" for name, text in attrs}
        self.tags.add(tag)
        self.ids |= {told[name] for name in ("id", "name") if name in told}
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        if tag in ("script", "img", "iframe", "source") and "src" in told:
            self.loaded.append(told["src"])
        if tag == "link" and told.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(told["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "WARNING" not in built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_page_is_there(pages: dict[Path, Page], site: Path) -> None:
    written = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert written <= {path.relative_to(site) for path in pages}
    assert len(written) > 35
    assert len(pages) > 60  # with the reference


def test_every_internal_link_leads_somewhere(pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":  # served for any address, so its links begin at the root
            continue
        for link in {*page.links, *page.loaded}:
            target = urlsplit(link)
            if target.scheme or target.netloc:
                continue
            file = (path.parent / unquote(target.path)).resolve() if target.path else path
            file = file / "index.html" if file.is_dir() else file
            anchor = unquote(target.fragment)
            if not file.is_file() or (anchor and file in pages and anchor not in pages[file].ids):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page], site: Path) -> None:
    outside = [(path.name, link) for path, page in pages.items() for link in page.loaded if "//" in link]
    assert outside == []
    for style in site.rglob("*.css"):
        assert not re.findall(r"url\(['\"]?https?:[^)]*", style.read_text(encoding="utf-8")), style


def test_no_text_was_taken_for_markup(pages: dict[Path, Page]) -> None:
    """``<s>`` or ``<unk>`` that a docstring or a page forgot to put between backticks would vanish here."""
    known = re.compile(
        r"html|head|meta|link|title|style|script|body|header|footer|main|nav|article|aside|div|span|p|a|ul|ol|li|h[1-6]"
        r"|table|thead|tbody|tr|th|td|pre|code|em|strong|img|hr|br|input|label|form|button|svg|path|dialog|noscript"
        r"|blockquote|details|summary|dl|dt|dd|sup|sub|small|mark|abbr|rect|circle|g|line|text|wbr|kbd|figure|figcaption"
        r"|math|mrow|mi|mn|mo|mspace|msub|msup|msubsup|munder|mover|munderover|mfrac|msqrt"
    )
    strange = {tag for page in pages.values() for tag in page.tags if not known.fullmatch(tag)}
    assert strange == set()


def test_the_reference_has_every_public_name(pages: dict[Path, Page], site: Path) -> None:
    """Each name in the index leads to its own entry, and every folder of the package has its page."""
    index = pages[site / "reference" / "index.html"]
    anchors = {link.rpartition(".")[2]: link for link in index.links if ".html#foreword." in link}
    assert set(foreword.__all__) <= set(anchors)
    for name in foreword.__all__:
        file, _, anchor = anchors[name].partition("#")
        assert anchor in pages[site / "reference" / file].ids, name


def test_every_public_name_has_a_docstring() -> None:
    assert [name for name in foreword.__all__ if not (getattr(foreword, name).__doc__ or "").strip()] == []


def test_search_finds_its_words(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    for word in ("Kneser", "perplexity", "BPETokenizer", "forget gate"):
        assert word in index


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *told: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_reader_searches_and_finds(browser: Any, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.fill("[data-md-component=search-query]", "Kneser-Ney")
    page.wait_for_selector(".md-search-result__link")
    assert "N-gram models" in page.inner_text(".md-search-result__list")
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    page.close()


@pytest.mark.parametrize("name", ["index", "tutorial", "ngram", "classify", "reference/ngram"])
def test_a_page_fits_a_telephone_and_complains_of_nothing(browser: Any, address: str, name: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
    complaints: list[str] = []
    page.on("console", lambda told: complaints.append(told.text) if told.type in ("error", "warning") else None)
    page.goto(f"{address}{name}.html")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.get_attribute("body", "data-md-color-scheme") == "slate"
    assert complaints == []
    page.close()
