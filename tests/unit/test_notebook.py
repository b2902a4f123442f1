"""What notebooks show, and what ``repr`` prints: no markup from a text, no address of an object."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from foreword import kinds
from foreword.classify.naive_bayes import NaiveBayes
from foreword.evaluate.compare.ladder import compare
from foreword.features.bag import BagOfWords
from foreword.ngram.model import NgramLM
from foreword.notebook import ShownInNotebook, html_table
from foreword.pipeline.classifier import TextClassifier
from foreword.pipeline.language import TextLM
from foreword.tokens.words import WordTokenizer

TEXTS = ["the cat sat", "the dog ran", "a <b>cat</b> & a dog"] * 8


class Cells(HTMLParser):
    """The texts of the cells, and the tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def shown(value: Any) -> Cells:
    return Cells(value._repr_html_())


def test_measures_are_a_table_of_their_numbers() -> None:
    lm = TextLM(WordTokenizer(), NgramLM(2)).fit(TEXTS)
    measures = lm.measure(TEXTS)
    cells = shown(measures)
    assert {"perplexity", "bits per byte", f"{measures.perplexity:.5g}", "Measures"} <= set(cells.texts)


def test_models_show_their_settings() -> None:
    cells = shown(NgramLM(4))
    assert {"NgramLM", "order", "4"} <= set(cells.texts)


def test_models_of_texts_show_their_parts() -> None:
    cells = shown(TextLM(WordTokenizer(), NgramLM(2)).fit(TEXTS))
    assert any(text.startswith("NgramLM(") for text in cells.texts)
    assert any(text.startswith("WordTokenizer(") for text in cells.texts)


def test_an_explanation_shows_its_terms_escaped() -> None:
    classifier = TextClassifier(BagOfWords(), NaiveBayes()).fit(TEXTS, ["one", "two", "two"] * 8)
    cells = shown(classifier.explain("a <script>dog</script>"))
    assert "dog" in " ".join(cells.texts)
    assert "script" not in cells.tags


def test_a_comparison_shows_its_rows_and_its_conclusion() -> None:
    *_, comparison = compare(TEXTS, models=["unigram", "bigram"], wordlists=False)
    cells = shown(comparison)
    assert {"Unigram", "Bigram, Kneser-Ney", comparison.conclusion} <= set(cells.texts)  # type: ignore[union-attr]


def test_texts_in_a_table_are_escaped_and_shortened() -> None:
    cells = Cells(html_table("<t>", ("<c>",), [("<r>", "x" * 200, True, 1234567, 0.5, float("inf"))]))
    assert cells.tags == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert {"1,234,567", "0.5", "inf", "True", "x" * 79 + "…"} <= set(cells.texts)


@pytest.mark.parametrize("kind", [kind for kind in kinds.KINDS.values() if kind.names and not kind.network])
def test_no_repr_has_an_address(kind: kinds.Kind) -> None:
    model = kinds.build(kind, next(iter(kind.names.values())))
    assert not re.search(r" at 0x|object at", repr(model))
    assert isinstance(model, ShownInNotebook)
    assert "0x" not in model._repr_html_()
