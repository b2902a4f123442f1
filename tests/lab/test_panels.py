"""Every other panel in a real browser: operated by clicks and keys, its numbers held to the API and to the package."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from foreword.decode import beam_search
from foreword.evaluate.gates import NAMES
from foreword.lab.page import PANELS as LISTED
from foreword.lab.translating import MOST_TOKENS, beam_tree
from foreword.pipeline.language import TextLM
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.corpus import Corpus
from foreword.translate.network import ATTENTIONS

from .conftest import Running, Visit

PANELS = tuple(panel.name for panel in LISTED)


@pytest.mark.parametrize("panel", PANELS)
def test_loads_without_a_complaint(panel: str, running: Running, visit: Visit) -> None:
    page = visit.open(running.address, panel)
    visit.settle()
    assert page.locator(".trouble").count() == 0
    assert visit.complaints == []
    assert all(url.startswith(running.address) for url in visit.requests)


def test_next_word_is_the_models(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "next_word")
    with page.expect_response(lambda answer: "/api/next" in answer.url):
        page.fill("#next-text", "the name of the")
    visit.settle()
    for name in ("bigram", "hmm", "lstm"):
        lm: TextLM = running.lab.registry[name].language_model
        rows = page.locator(f"[data-model='{name}'] li[data-p]")
        shown = rows.evaluate_all("all => all.map(e => [e.dataset.token, Number(e.dataset.p)])")
        state = lm.model.start()
        for id in lm.tokenizer.encode("the name of the").tolist():
            state = lm.model.advance(state, np.array([id]))
        chances = np.exp(lm.model.next_logprobs(state)[0])
        best = np.sort(chances)[::-1][: len(shown)]
        np.testing.assert_allclose([p for _, p in shown], best, rtol=1e-4)
        assert shown[0][0] == lm.vocab[int(chances.argmax())]
        bits = page.locator(f"[data-model='{name}'] .read span").evaluate_all("a => a.map(e => Number(e.dataset.bits))")
        np.testing.assert_allclose(bits, [bit for _, bit in lm.surprisal("the name of the")][:-1], rtol=1e-4)


def test_temperature_sharpens_and_a_word_can_be_put_into_the_text(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "next_word")
    first = page.locator("[data-model='bigram'] li[data-p]").first
    first.wait_for()
    plain = float(first.get_attribute("data-p"))
    with page.expect_response(lambda answer: "/api/next" in answer.url):
        page.locator("#next-temperature").evaluate("e => { e.value = 0.3; e.dispatchEvent(new Event('input')); }")
    visit.settle()
    assert float(first.get_attribute("data-p")) > plain
    word = first.get_attribute("data-token")
    first.locator("button").click()
    assert page.input_value("#next-text").endswith(f" {word}")
    page.click("#next-write")
    page.locator("[data-model='bigram'] .sample", has_text=re.compile(".{20}")).wait_for()


def test_f11_merges_are_replayed_one_by_one(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "tokens")
    text = "the lowest newer widest lower newest"
    with page.expect_response(lambda answer: "/api/merges" in answer.url):
        page.fill("#tokens-text", text)
    tokenizer = BPETokenizer(len(set(text)) + 202, kind="characters", min_frequency=2).fit([text])
    steps = list(tokenizer.replay(text))
    page.locator(f".merges li:nth-child({len(steps) - 1}):last-child").wait_for(state="attached")
    for step in steps[:6]:
        shown = page.locator("#tokens-row span").all_inner_texts()
        assert [token.replace("␣", " ") for token in shown] == step["tokens"]
        page.click("#tokens-next")
    page.focus("#tokens-step")
    page.keyboard.press("End")
    assert page.locator("#tokens-row span").count() == len(steps[-1]["tokens"])


def test_words_near_a_word_and_along_an_axis(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "words")
    with page.expect_response(lambda answer: "/nearest" in answer.url and "file" in (answer.request.post_data or "")):
        page.fill("#words-word", "file")
    visit.settle()
    page.wait_for_selector("#words-near-place li")
    shown = page.locator("#words-near-place li").evaluate_all("all => all.map(e => e.dataset.word)")
    vectors = running.lab.registry["skip-gram"].vectors
    assert shown == [word for word, _ in vectors.nearest("file", 12)]
    leans = page.locator("#words-axis-place li").evaluate_all("all => all.map(e => Number(e.dataset.lean))")
    assert leans == sorted(leans, reverse=True)


def test_f02_f03_f10_t10_are_drawn_from_the_vectors(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "words")
    page.wait_for_selector("#words-map-place svg g")
    assert page.locator("#words-map-place g").count() >= 60
    page.wait_for_selector("#words-window-place svg")
    assert page.locator("#words-window-place svg text:has-text('Skip-gram')").count() == 1
    for place, word in zip("abc", ("file", "files", "object"), strict=True):
        page.fill(f"#words-analogy-{place}", word)
    page.wait_for_selector("#words-analogy-place svg[aria-label^='file is to files as object']")
    page.fill("#words-cloud", "apples and pears and plums and apples")
    page.wait_for_selector("#words-cloud-place svg text:has-text('apples')")
    with page.expect_response(lambda answer: "/map" in answer.url) as answered:
        page.select_option("#words-method", "t-sne")
    assert len(answered.value.json()["points"]) >= 60
    page.locator("#words-map-place g").first.focus()
    page.keyboard.press("Enter")
    assert visit.complaints == []


def test_tags_predict_correct_and_the_best_path(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "tags")
    page.select_option("#tags-model", "tagger")
    sentence = "The old man sees the park ."
    with page.expect_response(lambda answer: "/trellis" in answer.url and "sees" in (answer.request.post_data or "")):
        page.fill("#tags-text", sentence)
    visit.settle()
    tagger: Any = running.lab.registry["tagger"].model
    expected = tagger.predict([sentence.split()])[0]
    assert page.locator(".trellis .path td").all_inner_texts() == expected
    page.select_option("#tags-phase", "smoothed")
    logs = tagger.predict_log_proba([sentence.split()])[0]
    for cell in page.locator(".trellis td[data-p]").all()[:20]:
        row, tag = int(cell.get_attribute("data-word")), tagger.tags_.index(cell.get_attribute("data-tag"))
        assert float(cell.get_attribute("data-p")) == pytest.approx(float(np.exp(logs[row, tag])), abs=1e-9)
    page.select_option("#tags-phase", "corrected")
    page.click("#tags-next")
    assert page.input_value("#tags-phase") == "predicted"
    page.select_option("#tags-model", "hmm")
    page.locator(".trellis tbody tr:nth-child(3)").wait_for()


def test_tags_of_a_bilstm_stand_beside_those_of_the_hidden_markov_model(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "tags")
    page.select_option("#tags-model", "tagger")
    sentence = "The young dog reads a book ."
    asked = lambda answer: "/tags/predict" in answer.url and "young" in (answer.request.post_data or "")  # noqa: E731
    with page.expect_response(asked):
        page.fill("#tags-text", sentence)
    visit.settle()
    [expected] = running.lab.registry["bilstm-tagger"].model.predict([sentence.split()])
    row = page.locator("section.view tr", has=page.locator("th", has_text="BiLSTM tagger"))
    assert row.locator("td").all_inner_texts() == expected
    assert [row.locator("td").nth(n).get_attribute("title") for n in range(7)] == sentence.split()
    assert visit.complaints == []


def test_f08_attention_and_the_beam_of_a_translation(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "translate")
    with page.expect_response(
        lambda answer: "/api/translate" in answer.url and "may" in (answer.request.post_data or "")
    ):
        page.fill("#translate-text", "7 may 1987")
    visit.settle()
    translator: Any = running.lab.registry["dates"].model
    card = page.locator("[data-model='dates']")
    said = card.locator(".merge").inner_text()
    best = beam_search(condition(translator, "7 may 1987"), width=4, max_tokens=MOST_TOKENS)[0][0]
    assert said == translator.target.decode(best.ids)
    shown = card.locator(".looks td[data-share]").evaluate_all("all => all.map(e => Number(e.dataset.share))")
    weights = translator.look("7 may 1987", said).weights
    np.testing.assert_allclose(np.reshape(shown, weights.shape), weights, atol=1e-6)
    won = "".join(card.locator(".beam .best text").all_text_contents())
    assert won == said + "</s>" * best.finished
    page.focus("#translate-width")
    with page.expect_response(lambda answer: "/api/translate" in answer.url):
        page.keyboard.press("Home")
    visit.settle()
    steps = card.locator(".beam .node").count()
    assert steps == card.locator(".beam .node.best").count()  # one text a step, and no other
    assert visit.complaints == []


@pytest.mark.parametrize("width", [1, 2, 5])
def test_the_tree_is_that_of_beam_search(width: int, running: Running) -> None:
    translator: Any = running.lab.registry["dates"].model
    for text in ("1 june 2001", "december the 24th, 1999", "x"):
        tree = beam_tree(condition(translator, text), width=width, max_tokens=20)
        best = beam_search(condition(translator, text), width=width, max_tokens=20)[0][0]
        ids = [tree.nodes[place].id for place in tree.best]
        assert tuple(id for id in ids if id != translator.model.vocab.end) == best.ids
        assert tree.nodes[tree.best[-1]].logprob == pytest.approx(best.logprob, abs=1e-9)


def condition(translator: Any, text: str) -> Any:
    return translator.model.condition(Corpus.from_texts([text], translator.source))


def test_f12_x02_tables_come_from_the_registries_and_every_row_has_a_number(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "reference")
    page.wait_for_selector(".looked-up")
    shown = page.locator(".tables section").evaluate_all(
        "all => all.map(e => [...e.querySelectorAll('tbody tr')].map(r => [...r.children].map(c => c.textContent)))"
    )
    gates, scores, limits, architectures = shown
    assert [(row[0].lower(), row[1]) for row in gates] == [(kind, name) for kind in NAMES for name in NAMES[kind]]
    assert [row[0] for row in scores] == [name for name in ATTENTIONS if name != "none"]
    assert len(limits) == 4
    assert len(architectures) == 6
    for row in (*gates, *scores, *limits, *architectures[:4], architectures[5]):
        assert re.search(r"\d", row[-1]), row
    assert "199 states" in limits[1][-1]
    assert architectures[4][-1] == "not trained yet"  # there is no such model here


def test_training_is_started_watched_stopped_and_taken_up_again(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "train")
    page.select_option("#train-kind", "gru")
    page.locator("#train-seconds").evaluate("e => { e.value = 4; e.dispatchEvent(new Event('input')); }")
    page.locator("#train-units").evaluate("e => { e.value = 16; e.dispatchEvent(new Event('input')); }")
    page.click("#train-start")
    page.click("#train-start")  # a second one waits for the first
    first, second = page.locator(".job").nth(1), page.locator(".job").nth(0)
    first.wait_for()  # the newest stands first: until both are there, a place says nothing
    second.locator(".stop").click()
    page.locator(".job[data-phase='cancelled']").wait_for()
    page.locator(".job .line").first.wait_for(timeout=20_000)
    first.locator(".stop").click()
    page.locator(".job[data-phase='stopped']").wait_for(timeout=20_000)
    assert "gru" in {entry.name for entry in running.lab.registry.entries("text")}  # what it has learnt so far
    first.locator(".resume").click()
    page.locator(".job[data-phase='done']").wait_for(timeout=30_000)
    job = next(job for job in running.lab.jobs.all() if job.phase == "done")
    losses = [step.loss for step in job.curve if not math.isnan(step.loss)]
    assert losses[-1] < losses[0]
    assert visit.complaints == []


def test_longest_matches_grow_shrink_and_say_where_they_stand(running: Running, visit: Visit) -> None:
    page = visit.open(running.address, "matches")
    index = running.lab.matcher.index
    text = "the name of the zebra the name of the"
    with page.expect_response(lambda answer: "/api/matches" in answer.url):
        page.fill("#matches-text", text)
    visit.settle()
    ids, matches = index.match(text)
    shown = page.locator("#matches-strip button").evaluate_all("all => all.map(e => Number(e.dataset.length))")
    assert shown == matches.lengths.tolist()
    assert shown[3] > shown[4]  # nothing was seen together with a zebra
    found = index.index.context(ids)
    words = page.locator("#matches-next li").evaluate_all(
        "all => all.map(e => [e.dataset.word, Number(e.dataset.count)])"
    )
    assert words == [[index.vocab[id], count] for id, count in found.likeliest(8)]
    assert page.locator("#matches-strip .in").count() == found.length
    place = index.places(np.append(ids[len(ids) - found.length :], found.likeliest(1)[0][0]), 1)[0]
    assert page.locator("#matches-places li mark").first.inner_text() == place.text
    with page.expect_response(lambda answer: "/api/matches" in answer.url):
        page.locator("#matches-strip button").nth(1).click()
    visit.settle()
    assert page.locator("#matches-strip .here").inner_text().split() == [str(matches.lengths[1]), "name"]
    with page.expect_response(lambda answer: "/api/matches" in answer.url):
        page.click("#matches-add")
    assert page.input_value("#matches-text").startswith(text + " ")
