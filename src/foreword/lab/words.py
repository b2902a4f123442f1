"""The panel of words: a map, an analogy, CBOW next to skip-gram, an axis, a cloud."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from foreword.errors import InputError
from foreword.lessons.bias import bias_direction, projections
from foreword.lessons.cloud import word_cloud
from foreword.lessons.keywords import count_words, is_common, keyness
from foreword.lessons.tsne import principal_components, tsne
from foreword.picture.picture import Picture
from foreword.picture.space import cbow_against_skip_gram, parallelogram
from foreword.serve.answers import known_spelling, no_word
from foreword.serve.bodies import AskAnalogy, Asked, Name, Word
from foreword.serve.routes import Service
from foreword.text.block import blocks_of
from foreword.vectors.word2vec import Word2Vec
from foreword.vectors.wordvectors import WordVectors

if TYPE_CHECKING:
    from foreword.lab.app import Lab

Listed = Annotated[list[str], Field(max_length=100)]


class AskMap(Asked):
    """A map of words. around: words to map with their neighbours; without them, the first of the vocabulary."""

    model: Name
    method: Literal["pca", "t-sne"] = "pca"
    around: Listed = Field(default_factory=list)
    count: int = Field(80, ge=4, le=300)


class AskVectors(Asked):
    """Suggestions for a model."""

    model: Name


class AskAxis(Asked):
    """Words between two poles."""

    model: Name
    one: Word
    other: Word
    words: Listed = Field(default_factory=list)


class AskWindow(Asked):
    """CBOW and skip-gram at one word of a sentence."""

    sentence: str = Field(max_length=500)
    centre: int = Field(ge=0, le=100)


class AskCloud(Asked):
    """A word cloud of a text, or of the lab's own text."""

    text: str = Field("", max_length=200_000)
    words: int = Field(80, ge=1, le=300)


def map_of(vectors: WordVectors, around: Sequence[str], count: int, method: str) -> list[dict[str, Any]]:
    """Return one point per word, from 0 to 1: the given words and their neighbours, or the first content words of the
    vocabulary.
    """
    if around:
        known = [_spelled(vectors, word) for word in around]
        each = max(1, count // len(known) - 1)
        near = [word for found in vectors.nearest_many(known, each) for word, _ in found]
        chosen = list(dict.fromkeys([*known, *near]))[:count]
    else:
        known = []
        listed = (vectors.word(index) for index in range(min(len(vectors), 20 * count)))
        chosen = [word for word in listed if word.isalpha() and len(word) > 2 and not is_common(word)][:count]
    if len(chosen) < 4:
        raise InputError("a map needs four words or more: these vectors have fewer")
    rows = vectors.directions(vectors.places(chosen))
    points = principal_components(rows) if method == "pca" else tsne(rows)
    low, high = points.min(axis=0), points.max(axis=0)
    shares = (points - low) / np.maximum(high - low, 1e-12)
    return [
        {"word": word, "x": x, "y": y, "asked": word in known}
        for word, (x, y) in zip(chosen, shares.tolist(), strict=True)
    ]


ANALOGIES = (
    ("man", "king", "woman"),
    ("france", "paris", "italy"),
    ("start", "end", "first"),
    ("file", "files", "object"),
)
AXES = (("she", "he"), ("read", "write"), ("first", "last"))


def suggested(vectors: WordVectors) -> dict[str, Any]:
    """Return what to ask these vectors first: the first examples whose words they have."""
    words = [point["word"] for point in map_of(vectors, [], 12, "pca")]

    def first(choices: Sequence[tuple[str, ...]], size: int) -> Sequence[str]:
        return next((choice for choice in choices if all(word in vectors for word in choice)), tuple(words[:size]))

    return {"word": words[0], "analogy": first(ANALOGIES, 3), "axis": first(AXES, 2)}


def axis_of(vectors: WordVectors, one: str, other: str, words: Sequence[str]) -> list[dict[str, Any]]:
    """Return how far each word leans towards ``one`` (positive) or ``other``: its cosine with their difference."""
    first, second = _spelled(vectors, one), _spelled(vectors, other)
    direction = bias_direction(vectors, [[first, second]])
    asked = [_spelled(vectors, word) for word in words]
    if not asked:
        both = (vectors.nearest(word, 8) for word in (first, second))
        asked = list(dict.fromkeys(word for found in both for word, _ in found))
    leaning = projections(vectors, asked, direction).tolist()
    listed = sorted(zip(asked, leaning, strict=True), key=lambda item: -item[1])
    return [{"word": word, "lean": lean} for word, lean in listed]


def analogy_of(vectors: WordVectors, a: str, b: str, c: str, k: int) -> dict[str, Any]:
    """Return what is to c as b is to a, and a picture of it."""
    a, b, c = (_spelled(vectors, word) for word in (a, b, c))
    answers = vectors.analogy(a, b, c, k)
    picture = parallelogram(vectors, a, b, c, answers[0][0])
    return {"answers": [{"word": word, "cosine": cosine} for word, cosine in answers], "picture": picture_json(picture)}


def cloud_of(text: str, words: int) -> Picture:
    """Draw the words that are typical of a text."""
    counts = count_words(blocks_of(text.splitlines() or [text]))
    weights = {word: weight for word, weight in keyness(counts).items() if not is_common(word)} or keyness(counts)
    if not weights:
        raise InputError("there is no word in this text to draw")
    return word_cloud(weights, counts=counts, max_words=words, width=900, height=420)


def picture_json(picture: Picture) -> dict[str, str]:
    """Return a picture as the page reads it."""
    return {"markup": picture.markup, "title": picture.title, "caption": picture.caption}


def _spelled(vectors: WordVectors, word: str) -> str:
    """Return a word as the vectors have it; raise an InputError if they do not."""
    found = known_spelling(vectors, word.strip())
    if found not in vectors:
        raise no_word(found)
    return found


def add_routes(service: Service, lab: Lab) -> None:
    """Add the routes of the panel."""
    registry = service.registry

    def word_map(asked: AskMap) -> dict[str, Any]:
        return {"points": map_of(registry[asked.model].vectors, asked.around, asked.count, asked.method)}

    def suggestions(asked: AskVectors) -> dict[str, Any]:
        return suggested(registry[asked.model].vectors)

    def analogy(asked: AskAnalogy) -> dict[str, Any]:
        return analogy_of(registry[asked.model].vectors, asked.a, asked.b, asked.c, asked.k)

    def axis(asked: AskAxis) -> dict[str, Any]:
        return {"words": axis_of(registry[asked.model].vectors, asked.one, asked.other, asked.words)}

    def window(asked: AskWindow) -> dict[str, str]:
        trained = [entry.model for entry in registry.entries("vectors") if isinstance(entry.model, Word2Vec)]
        pair = [next((model for model in trained if model.model == kind), None) for kind in ("cbow", "skip-gram")]
        if pair[0] is None or pair[1] is None:
            raise InputError("a CBOW and a skip-gram model are needed: train both, or wait for them")
        return picture_json(cbow_against_skip_gram(pair[0], pair[1], asked.sentence.split(), asked.centre))

    @lru_cache(maxsize=1)
    def own_cloud(words: int) -> Picture:
        return cloud_of("\n".join(lab.text.documents), words)

    def cloud(asked: AskCloud) -> dict[str, str]:
        text = asked.text.strip()
        return picture_json(cloud_of(text, asked.words) if text else own_cloud(asked.words))

    service.post("/api/words/map", AskMap, word_map)
    service.post("/api/words/suggested", AskVectors, suggestions)
    service.post("/api/words/analogy", AskAnalogy, analogy)
    service.post("/api/words/axis", AskAxis, axis)
    service.post("/api/words/window", AskWindow, window)
    service.post("/api/words/cloud", AskCloud, cloud)
