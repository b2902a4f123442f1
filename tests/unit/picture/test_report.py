from __future__ import annotations

import base64
import dataclasses
import hashlib
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from foreword.errors import InputError
from foreword.evaluate.compare.ladder import compare
from foreword.evaluate.compare.results import Comparison
from foreword.picture.picture import brief, duration, size
from foreword.picture.report import report, write_report

VOID = {"meta", "link", "br", "hr", "img", "input"}
NASTY = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


class Page(HTMLParser):
    """Collects tags, attributes and text, and insists that every tag is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


def comparison_of(texts: list[str], name: str = "A text") -> Comparison:
    models = ["unigram", "bigram", "trigram", "5-gram", "hmm"]
    *_, last = compare(texts, name=name, models=models, wordlists=False)
    assert isinstance(last, Comparison)
    return last


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return comparison_of([f"the cat saw the number {place % 7}" for place in range(60)])


def test_it_is_one_well_formed_page_with_its_parts(comparison: Comparison) -> None:
    page = Page(report(comparison))
    assert page.tags.count("h1") == 1
    assert {"header", "main", "footer", "table", "figure", "figcaption", "blockquote", "dl", "svg"} <= set(page.tags)
    ids = [value for key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    assert {value for key, value in page.attributes if key == "aria-labelledby"} == set(ids)


def test_it_tells_the_numbers(comparison: Comparison) -> None:
    text = Page(report(comparison)).text
    row = comparison.rows[0]
    assert f"{row.measures.perplexity:.2f}" in text
    assert f"{row.measures.bits_per_byte:.3g}" in text
    assert "360" in text  # words
    assert row.title in text
    assert row.sample.split("\n")[0] in text


def test_it_fetches_nothing_and_runs_nothing(comparison: Comparison) -> None:
    html = report(comparison)
    page = Page(html)
    assert not {"link", "img", "iframe", "object", "base"} & set(page.tags)
    assert not {key for key, _ in page.attributes if key in ("src", "srcset") or key.startswith("on")}
    ids = {value for key, value in page.attributes if key == "id"}
    assert {value for key, value in page.attributes if key == "href"} == {f"#{id}" for id in ids}
    assert re.findall(r"https?://[^\s\"'<]*", html) == ["http://www.w3.org/2000/svg"] * html.count("<svg")
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_the_one_script_is_named_by_its_digest(comparison: Comparison) -> None:
    html = report(comparison)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html
    assert "fetch(" not in script


def test_it_says_what_was_tested_and_of_which_text(comparison: Comparison) -> None:
    text = Page(report(comparison)).text
    facts = comparison.text
    assert f"Tested on {facts.test_tokens:,} tokens (words between spaces) in {facts.test_documents} documents" in text
    assert facts.digest in text
    assert comparison.conclusion in text
    low, high = comparison.rows[0].interval
    assert f"{low:.3g}–{high:.3g}"[:4] in text


def test_many_unknown_words_are_warned_of(comparison: Comparison) -> None:
    few = dataclasses.replace(comparison.text, test_unknown=1, test_tokens=100)
    many = dataclasses.replace(comparison.text, test_unknown=6, test_tokens=100)
    assert "look better than they are" not in report(Comparison(few, comparison.rows))
    assert "6.0% of the test tokens are unknown words" in report(Comparison(many, comparison.rows))


def test_whatever_the_text_holds_stays_text() -> None:
    page = Page(report(comparison_of([f"{NASTY} {place} {NASTY}" for place in range(30)], name=NASTY)))
    assert "img" not in page.tags
    assert page.tags.count("script") == 1  # the page's own
    assert "alert(1)" in page.text


def test_light_dark_print_and_telephones_are_thought_of(comparison: Comparison) -> None:
    html = report(comparison)
    for rule in ("prefers-color-scheme: dark", "@media print", "max-width: 34rem", "width=device-width"):
        assert rule in html


def test_the_same_comparison_gives_the_same_bytes(comparison: Comparison) -> None:
    assert report(comparison) == report(comparison)


def test_infinite_numbers_and_many_models(comparison: Comparison) -> None:
    row = comparison.rows[0]
    endless = dataclasses.replace(row.measures, perplexity=math.inf, bits_per_byte=math.inf)
    rows = (row, dataclasses.replace(row, title="Broken", measures=endless, sample=""))
    text = Page(report(Comparison(comparison.text, rows))).text
    assert "∞" in text
    assert "Two models" in text
    assert "it ended every document at once" in text
    only_broken = Page(report(Comparison(comparison.text, rows[1:]))).text
    assert "as unsure at each" not in only_broken


def test_a_short_test_is_called_short(comparison: Comparison) -> None:
    assert "So short a test" in report(comparison)
    long = dataclasses.replace(comparison.text, test_tokens=100_000)
    assert "So short a test" not in report(Comparison(long, comparison.rows))


@pytest.mark.parametrize("text", ["one two three", "人人生而自由,在尊严和权利上一律平等。" * 3, "a " * 50])
def test_texts_of_any_kind_make_a_page(text: str) -> None:
    Page(report(comparison_of([text])))


def test_it_is_written_whole_or_not_at_all(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    write_report(comparison, path)
    assert path.read_text(encoding="utf-8") == report(comparison)
    before = path.read_bytes()

    def fails(self: Path, *_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fails)
    with pytest.raises((InputError, OSError)):
        write_report(comparison, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (640, "640 bytes"), (1234, "1.23 kB"), (1_650_000, "1.65 MB")]
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.5, "0.5"), (640, "640"), (999.9, "1 k"), (12_345, "12.3 k"), (4.5e8, "450 M"), (2e12, "2 T")],
)
def test_brief_numbers(number: float, text: str) -> None:
    assert brief(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1e-5, "< 0.01 s"),
        (0.25, "0.25 s"),
        (12.4, "12 s"),
        (59.9, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_n08_the_growth_of_n_grams_is_shown_with_its_numbers(comparison: Comparison) -> None:
    """N08, on the text that is compared: the training part's n-grams, counted by hand, and the share that is new."""
    page = Page(report(comparison)).text
    bigrams = comparison.growth[1]
    whatever_the_number = ["<s> the", "the cat", "cat saw", "saw the", "the number"]
    assert (bigrams.order, bigrams.seen) == (2, len(whatever_the_number) + 2 * 7)
    assert "Why longer n-grams run out of text" in page
    assert "Why longer" not in Page(report(Comparison(comparison.text, comparison.rows))).text
