"""The panel of n-grams in a real browser: its sums are the probabilities of NgramLM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foreword.lab.ngrams import shortened
from foreword.ngram.model import NgramLM

from .conftest import Running, Visit

CONTEXTS = ("", "the", "the name of the", "if the value is not a", "zzz unheard-of the", "return a new", ". . . .")
SMOOTHINGS = ("modified-kneser-ney", "witten-bell", "stupid-backoff")


def probabilities(model: NgramLM, ids: list[int]) -> Any:
    state = model.start()
    for id in ids:
        state = model.advance(state, np.array([id]))
    return np.exp(model.next_logprobs(state)[0])


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("order", [1, 2, 4, 5])
def test_the_parts_add_up_to_what_the_model_says(order: int, smoothing: str, running: Running, visit: Visit) -> None:
    text = running.lab.text
    model = NgramLM(order, smoothing).fit(shortened(text.train))
    page = visit.open(running.address, "ngrams")
    words = [*range(0, len(text.tokenizer.vocab), 97), 0, 1, 5, 11]
    for context in CONTEXTS:
        expected = probabilities(model, text.tokenizer.encode(context).tolist())[words]
        parts = page.evaluate(
            """([context, order, method, words]) => words.map(id =>
                 labNgrams.of(context, order, method, id).map(step => step.part))""",
            [context, order, smoothing, words],
        )
        np.testing.assert_allclose(np.sum(parts, axis=1), expected, rtol=2e-6, err_msg=context)


def test_a_prediction_is_built_order_by_order(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "ngrams")
    page.fill("#ngrams-text", "the name of the")
    text = running.lab.text
    models = {name: NgramLM(4, name).fit(shortened(text.train)) for name in SMOOTHINGS}
    ids = text.tokenizer.encode("the name of the").tolist()
    for name, model in models.items():
        expected = probabilities(model, ids)
        card = page.locator(f"[data-method='{name}']")
        shown = card.locator("li").evaluate_all("all => all.map(e => [e.dataset.token, Number(e.dataset.p)])")
        assert shown[0][0] == text.tokenizer.vocab[int(expected.argmax())]
        np.testing.assert_allclose(
            [p for _, p in shown], [expected[text.tokenizer.vocab.id(w)] for w, _ in shown], rtol=2e-6
        )
    page.click("#ngrams-first")
    sums = []
    for step in range(5):
        sums.append(page.locator("[data-method='modified-kneser-ney'] .sum").inner_text())
        assert f"Step {step + 1} of 5" in page.locator("#ngrams-where").inner_text()
        page.click("#ngrams-next")
    assert [float(each) for each in sums] == sorted(float(each) for each in sums)
    assert len(set(sums)) > 2
    before = page.input_value("#ngrams-text")
    page.click("#ngrams-append")
    assert page.input_value("#ngrams-text").startswith(before + " ")
    assert visit.complaints == []


def test_counts_are_those_of_the_text(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "ngrams")
    page.fill("#ngrams-text", "of the")
    page.locator("#ngrams-order").evaluate("e => { e.value = 3; e.dispatchEvent(new Event('input')); }")
    word = page.locator("[data-method='witten-bell'] li.here").get_attribute("data-token")
    seen = page.locator("td[data-seen]").evaluate_all("all => all.map(e => Number(e.dataset.seen))")
    text = running.lab.text
    documents = [document.tolist() for document in shortened(text.train).documents()]
    target = [*text.tokenizer.encode("of the").tolist(), text.tokenizer.vocab.id(word)]
    for order, shown in zip((3, 2, 1), seen, strict=True):
        gram = target[-order:]
        counted = sum(d[at : at + order] == gram for d in documents for at in range(len(d)))
        assert shown == counted
