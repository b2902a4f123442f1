"""The panel of tags: what a hidden Markov model believes before and after each word, and its best path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from foreword.errors import InputError
from foreword.hmm.model import HMM
from foreword.pipeline.language import TextLM
from foreword.serve.bodies import Asked, Name
from foreword.serve.registry import Entry
from foreword.serve.routes import Service
from foreword.tag.hmm import HMMTagger, Trellis, hmm_trellis, tagger_trellis
from foreword.tokens.words import WordTokenizer

if TYPE_CHECKING:
    from foreword.lab.app import Lab

MOST_WORDS = 40


class AskTags(Asked):
    """A sentence to tag."""

    model: Name
    text: str = Field(min_length=1, max_length=1000)


def is_hidden_markov(entry: Entry) -> bool:
    """Return whether the model has a trellis."""
    return isinstance(entry.model, HMMTagger) or (
        isinstance(entry.model, TextLM) and isinstance(entry.model.model, HMM)
    )


def trellis_of(entry: Entry, text: str) -> tuple[list[str], Trellis]:
    """Return the words of a sentence and their trellis."""
    model = entry.model
    if isinstance(model, HMMTagger):
        words = words_of(text)
        return words, tagger_trellis(model, words)
    if isinstance(model, TextLM) and isinstance(model.model, HMM):
        corpus = model.corpus([text])
        if not 1 < len(corpus.ids) <= MOST_WORDS + 1:
            raise InputError(f"expected a sentence of 1 to {MOST_WORDS} words")
        return [model.vocab[id] for id in corpus.ids[:-1].tolist()], hmm_trellis(model.model, corpus)
    raise InputError(f"{entry.name} is not a hidden Markov model")


def words_of(text: str) -> list[str]:
    """Split a sentence roughly as treebanks do: punctuation marks are words."""
    cutter = WordTokenizer(split="punctuation").fit([text])
    words = [cutter.vocab[id] for id in cutter.encode(text).tolist()]
    if not 0 < len(words) <= MOST_WORDS:
        raise InputError(f"expected a sentence of 1 to {MOST_WORDS} words")
    return words


def add_routes(service: Service, lab: Lab) -> None:
    """Add the routes of the panel."""
    registry = service.registry

    def models() -> dict[str, Any]:
        hidden = [entry for entry in registry.entries() if is_hidden_markov(entry)]
        others = [entry for entry in registry.entries("tags") if not is_hidden_markov(entry)]
        groups = {"trellis": hidden, "others": others}
        return {
            group: [{"name": entry.name, "title": entry.title} for entry in entries]
            for group, entries in groups.items()
        }

    def trellis(asked: AskTags) -> dict[str, Any]:
        entry = registry[asked.model]
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

    def predict(asked: AskTags) -> dict[str, Any]:
        entry = registry[asked.model]
        if entry.task != "tags":
            raise InputError(f"{entry.name} is not a tagger")
        words = words_of(asked.text)
        with entry.lock:
            tags = entry.model.predict([words])[0]
        return {"words": words, "tags": list(tags)}

    service.get("/api/tags", models)
    service.post("/api/tags/trellis", AskTags, trellis)
    service.post("/api/tags/predict", AskTags, predict)
