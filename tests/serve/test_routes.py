"""Every kind of model gets what it can do over HTTP, and a sentence for what it cannot; answers are the library's."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foreword.fasttext.vectors import FastText
from foreword.kinds import KINDS
from foreword.serve.registry import Registry, entry_of
from foreword.speech.wav import read_wav, write_wav

from .conftest import RECORDING, Running

SENTENCE = "The old man reads the book ."


def test_a_text_is_scored_as_the_library_does(running: Running, models: dict[str, Any]) -> None:
    for name in ("ngram", "lstm"):
        texts = ["the list of names", "", "qqqq zzzz the"]
        found = running.ask("score", model=name, text=texts)["results"]
        for text, scored in zip(texts, found, strict=True):
            assert scored["score"] == pytest.approx(models[name].score(text), abs=1e-5)
            assert scored["perplexity"] == pytest.approx(math.exp(-scored["score"] / scored["tokens"]))
        assert found[2]["oov"] >= 2
        assert running.ask("score", model=name, text=texts[0])["results"][0] == pytest.approx(found[0], abs=1e-5)


def test_surprisal_and_next_words(running: Running, models: dict[str, Any]) -> None:
    told = running.ask("surprisal", model="ngram", text="the list")["tokens"]
    assert [(each["token"], each["bits"]) for each in told] == [
        (token, pytest.approx(bits)) for token, bits in models["ngram"].surprisal("the list")
    ]
    found = running.ask("next", model="lstm", text="the", k=3)
    assert len(found["tokens"]) == 3
    assert sum(each["p"] for each in found["tokens"]) + found["rest"] == pytest.approx(1)


def test_a_text_is_generated_whole_and_piece_by_piece(running: Running, models: dict[str, Any]) -> None:
    for name in ("ngram", "lstm"):
        body = {"model": name, "prompt": "the list", "max_tokens": 12, "seed": 3}
        whole = running.ask("generate", **body)["text"]
        assert whole == models[name].generate("the list", max_tokens=12, seed=3)
        with running.client.stream("POST", "/api/generate", json={**body, "stream": True}) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            told = [json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line]
        assert told[-1] == {"done": True}
        assert "".join(each["text"] for each in told[:-1]) == whole


@pytest.mark.parametrize("name", ["bayes", "fasttext-labels", "lstm-labels"])
def test_labels(name: str, running: Running, models: dict[str, Any]) -> None:
    texts = ["a good warm film", "dull and slow"]
    found = running.ask("classify", model=name, text=texts, k=2)["results"]
    for best, labelled in zip(models[name].predict_best(texts, 2), found, strict=True):
        assert [(each["label"], each["probability"]) for each in labelled["labels"]] == [
            (label, pytest.approx(min(p, 1.0), abs=1e-5)) for label, p in best
        ]
    assert len(running.ask("classify", model=name, text=texts[0])["results"][0]["labels"]) == 1
    last = str(models[name].classes_[-1])
    (named,) = running.ask("classify", model=name, text=texts[0], labels=[last])["results"]
    chances = dict(next(iter(models[name].predict_best(texts[:1], len(models[name].classes_)))))
    assert named["probabilities"] == {last: pytest.approx(min(chances[last], 1.0), abs=1e-5)}
    assert len(named["labels"]) == 1


@pytest.mark.parametrize("name", ["hmm", "bilstm"])
def test_tags(name: str, running: Running, models: dict[str, Any]) -> None:
    found = running.ask("tag", model=name, text=["The old man reads the book.", "", "She reads ."])["results"]
    assert found[0]["words"] == SENTENCE.split()
    assert found[0]["tags"] == list(models[name].predict([SENTENCE.split()])[0])
    assert found[1] == {"words": [], "tags": []}
    assert running.ask("tag", model=name, text="a b.", split="space")["results"][0]["words"] == ["a", "b."]


def test_translations(running: Running, models: dict[str, Any]) -> None:
    texts = ["3 May 1999", "", "12 July 2001"]
    found = running.ask("translate", model="dates", text=texts, width=2, max_tokens=20)["results"]
    said = models["dates"].translate([texts[0], texts[2]], width=2, max_tokens=20)
    assert [each["translation"] for each in found] == [said[0], "", said[1]]


def test_vectors_of_words_known_and_unknown(running: Running, models: dict[str, Any]) -> None:
    found = running.ask("embed", model="vectors", text="Man oxen")["results"][0]
    assert found["words"] == ["Man", "oxen"]
    assert found["vectors"] == [[1, 0, 0], None]
    mean = running.ask("embed", model="vectors", text=["man woman", "oxen"], pool="mean")["results"]
    assert mean[0]["vector"] == [0.5, 0.5, 0]
    assert mean[1]["vector"] is None


def test_fasttext_has_a_vector_for_words_it_never_saw(running: Running, models: dict[str, Any]) -> None:
    word = "unlistable"
    assert word not in models["fasttext"].vectors
    found = running.ask("embed", model="fasttext", text=word)["results"][0]["vectors"][0]
    assert found == pytest.approx(models["fasttext"].vectors[word].tolist())


def test_elmo_tells_a_word_by_its_sentence(running: Running, models: dict[str, Any]) -> None:
    found = running.ask("embed", model="elmo", text=["the bank of a river", "the bank"])["results"]
    wanted = models["elmo"].embed([["the", "bank", "of", "a", "river"], ["the", "bank"]])
    for each, rows in zip(found, wanted, strict=True):
        np.testing.assert_allclose(each["vectors"], rows, atol=1e-5)
    assert found[0]["vectors"][1] != found[1]["vectors"][1]


def test_word_vectors_are_built_once_for_all_requests(registry: Registry) -> None:
    """A trained fastText model computed the vectors of all its words again for each request, on the event loop."""
    trained = FastText(4, epochs=1, buckets=50).fit(registry["ngram"].model.corpus(["a b c"]))
    entry = entry_of("trained", trained)
    assert entry.vectors is entry.vectors


def test_nearest_words_and_analogies(running: Running, models: dict[str, Any]) -> None:
    for name, word in (("vectors", "king"), ("fasttext", "list")):
        vectors = models[name] if name == "vectors" else models[name].vectors
        found = running.ask("nearest", model=name, word=word, k=3)["results"][0]["words"]
        assert [(each["word"], each["cosine"]) for each in found] == [
            (near, pytest.approx(cosine, abs=1e-5)) for near, cosine in vectors.nearest(word, 3)
        ]
    assert running.ask("analogy", model="vectors", a="man", b="king", c="woman")["results"][0]["words"][0][
        "word"
    ] == "queen"  # fmt: skip
    assert "oxen" in running.refused("nearest", 400, model="vectors", word=["man", "oxen"])
    assert "oxen" in running.refused("analogy", 400, model="vectors", a="man", b="oxen", c="woman")


def test_search_and_tokens(running: Running, models: dict[str, Any]) -> None:
    hits = running.ask("search", model="search", text="the list", k=2)["results"][0]["hits"]
    assert [hit["document"] for hit in hits] == [hit.document for hit in models["search"].query("the list", 2)]
    cut = running.ask("tokenize", model="words", text="the list")["results"][0]
    assert cut["ids"] == models["words"].encode("the list").tolist()
    assert running.ask("tokenize", model="ngram", text="the list")["results"][0] == cut


def test_recordings(running: Running, models: dict[str, Any], tmp_path: Path) -> None:
    write_wav(RECORDING.sound, tmp_path / "noise.wav")
    content = (tmp_path / "noise.wav").read_bytes()
    wav = b64encode(content).decode()
    found = running.ask("transcribe", model="tones", wav=[wav, wav], width=4)["results"]
    said = models["tones"].transcribe([read_wav(content)], width=4)[0]
    assert found == [{"text": said, "seconds": 0.5}] * 2
    assert "cut short" in running.refused("transcribe", 400, model="tones", wav=b64encode(content[:-9]).decode())
    assert "not base64" in running.refused("transcribe", 400, model="tones", wav="?")


def test_what_a_model_cannot_do(running: Running, models: dict[str, Any]) -> None:
    paths = running.client.get("/openapi.json").json()["paths"]
    abilities = {ability for kind in KINDS.values() for ability in kind.abilities if f"/api/{ability}" in paths}
    assert len(abilities) >= 12
    facts = {each["name"]: each for each in running.client.get("/api/models").json()}
    assert set(facts) == set(models)
    assert {ability for each in facts.values() for ability in each["can"]} == abilities
    body = {"word": {"word": "a"}, "abc": {"a": "a", "b": "a", "c": "a"}, "prompt": {"prompt": "a"}, "text": {}}
    for ability in abilities:
        asked = {
            "nearest": body["word"], "analogy": body["abc"], "generate": body["prompt"], "transcribe": {"wav": "a"}
        }.get(ability, {"text": "a"})  # fmt: skip
        for name, each in facts.items():
            if ability not in each["can"]:
                sentence = running.refused(ability, 400, model=name, **asked)
                assert f"{name} cannot be asked to {ability}" in sentence


@pytest.mark.parametrize("name", ["nothing", "../../etc/passwd", "/etc/passwd", "", "\x00"])
def test_models_are_named_by_the_operator_and_never_by_a_path(name: str, running: Running) -> None:
    for path in ("score", "classify", "nearest"):
        field = {"word": "a"} if path == "nearest" else {"text": "a"}
        assert running.refused(path, 404, model=name, **field).startswith("there is no model")


def test_the_page_and_the_schema_need_no_network(running: Running) -> None:
    page = running.client.get("/docs")
    assert page.status_code == 200
    assert "http://" not in page.text
    assert "https://" not in page.text
    schema = running.client.get("/openapi.json").json()
    assert {"/api/score", "/api/generate", "/health", "/ready", "/metrics"} <= set(schema["paths"])
    assert schema["components"]["schemas"]["AskScore"]["properties"]["model"]["enum"] == ["ngram", "lstm"]
