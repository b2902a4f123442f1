"""The panel of tags: what a hidden Markov model believes before and after each word, and its best path."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import Field

from foreword.errors import InputError
from foreword.hmm.model import HMM
from foreword.pipeline.language import TextLM
from foreword.serve.registry import Entry, Shelf
from foreword.serve.routes import Asked
from foreword.tag.hmm import HMMTagger, Trellis, hmm_trellis, tagger_trellis
from foreword.tokens.words import WordTokenizer

MOST_WORDS = 40


class AskTags(Asked):
    model: str = Field(max_length=200)
    text: str = Field(min_length=1, max_length=1000)


def is_hidden_markov(entry: Entry) -> bool:
    return isinstance(entry.model, HMMTagger) or (
        isinstance(entry.model, TextLM) and isinstance(entry.model.model, HMM)
    )


def trellis_of(entry: Entry, text: str) -> tuple[list[str], Trellis]:
    model = entry.model
    if isinstance(model, HMMTagger):
        words = words_of(text)
        return words, tagger_trellis(model, words)
    if isinstance(model, TextLM) and isinstance(model.model, HMM):
        corpus = model.corpus([text])
        if not 1 < len(corpus.ids) <= MOST_WORDS + 1:
            raise InputError(f"expected a sentence of 1 to {MOST_WORDS} words")
        return [model.vocab[id] for id in corpus.ids[:-1].tolist()], hmm_trellis(model.model, corpus)
    raise InputError(f"{entry.name} is no hidden Markov model")


def words_of(text: str) -> list[str]:
    """A sentence as treebanks cut it, nearly: punctuation apart."""
    cutter = WordTokenizer(split="punctuation").fit([text])
    words = [cutter.vocab[id] for id in cutter.encode(text).tolist()]
    if not 0 < len(words) <= MOST_WORDS:
        raise InputError(f"expected a sentence of 1 to {MOST_WORDS} words")
    return words


def add_routes(app: FastAPI, shelf: Shelf) -> None:
    @app.get("/api/tags")
    def models() -> dict[str, Any]:
        hidden = [entry for entry in shelf.entries() if is_hidden_markov(entry)]
        others = [entry for entry in shelf.entries("tags") if not is_hidden_markov(entry)]
        return {kind: [{"name": entry.name, "title": entry.title} for entry in found] for kind, found in
                (("trellis", hidden), ("others", others))}  # fmt: skip

    @app.post("/api/tags/trellis")
    def trellis(asked: AskTags) -> dict[str, Any]:
        entry = shelf[asked.model]
        with entry.lock:
            words, found = trellis_of(entry, asked.text)
        return {
            "words": words,
            "names": found.names,
            "predicted": found.predicted.tolist(),
            "corrected": found.corrected.tolist(),
            "smoothed": found.smoothed.tolist(),
            "path": found.path,
        }

    @app.post("/api/tags/predict")
    def predict(asked: AskTags) -> dict[str, Any]:
        entry = shelf[asked.model]
        if entry.task != "tags":
            raise InputError(f"{entry.name} is no tagger")
        words = words_of(asked.text)
        with entry.lock:
            tags = entry.model.predict([words])[0]
        return {"words": words, "tags": list(tags)}
