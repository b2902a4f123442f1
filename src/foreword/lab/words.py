"""The panel of words: a map (F10), neighbours, an analogy (F02), CBOW beside skip-gram (F03), an axis, a cloud."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import FastAPI
from pydantic import Field

from foreword.errors import InputError
from foreword.lessons.bias import bias_direction, projections
from foreword.lessons.cloud import word_cloud
from foreword.lessons.keywords import count_words, is_common, keyness
from foreword.lessons.tsne import principal_components, tsne
from foreword.picture.picture import Picture
from foreword.picture.space import cbow_against_skip_gram, parallelogram
from foreword.serve.registry import Shelf
from foreword.serve.routes import Asked, no_word
from foreword.text.block import blocks_of
from foreword.vectors.word2vec import Word2Vec
from foreword.vectors.wordvectors import WordVectors

Listed = Annotated[list[str], Field(max_length=100)]


class AskMap(Asked):
    model: str = Field(max_length=200)
    method: Literal["pca", "t-sne"] = "pca"
    around: Listed = Field(default_factory=list)
    count: int = Field(80, ge=4, le=300)


class AskVectors(Asked):
    model: str = Field(max_length=200)


class AskNearest(Asked):
    model: str = Field(max_length=200)
    word: str = Field(max_length=200)
    k: int = Field(10, ge=1, le=50)


class AskAnalogy(Asked):
    model: str = Field(max_length=200)
    a: str = Field(max_length=200)
    b: str = Field(max_length=200)
    c: str = Field(max_length=200)


class AskAxis(Asked):
    model: str = Field(max_length=200)
    one: str = Field(max_length=200)
    other: str = Field(max_length=200)
    words: Listed = Field(default_factory=list)


class AskWindow(Asked):
    sentence: str = Field(max_length=500)
    centre: int = Field(ge=0, le=100)


class AskCloud(Asked):
    text: str = Field("", max_length=200_000)
    words: int = Field(80, ge=1, le=300)


def map_of(vectors: WordVectors, around: Sequence[str], count: int, method: str) -> list[dict[str, Any]]:
    """Points from 0 to 1, one a word: the words asked for and their neighbours, or the first of the vocabulary that
    are words of more than grammar.
    """
    if around:
        known = [_spelled(vectors, word) for word in around]
        each = max(1, count // len(known) - 1)
        near = [word for found in vectors.nearest_many(known, each) for word, _ in found]
        chosen = list(dict.fromkeys([*known, *near]))[:count]
    else:
        known = []
        listed = (vectors.word(place) for place in range(min(len(vectors), 20 * count)))
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
    """What to ask these vectors first: of what is known to be of interest, the first that they have words for."""
    words = [point["word"] for point in map_of(vectors, [], 12, "pca")]

    def first(choices: Sequence[tuple[str, ...]], size: int) -> Sequence[str]:
        return next((choice for choice in choices if all(word in vectors for word in choice)), tuple(words[:size]))

    return {"word": words[0], "analogy": first(ANALOGIES, 3), "axis": first(AXES, 2)}


def axis_of(vectors: WordVectors, one: str, other: str, words: Sequence[str]) -> list[dict[str, Any]]:
    """How far each word leans towards ``one`` (positive) or ``other``: its cosine with the direction between them."""
    first, second = _spelled(vectors, one), _spelled(vectors, other)
    direction = bias_direction(vectors, [[first, second]])
    asked = [_spelled(vectors, word) for word in words]
    if not asked:
        both = (vectors.nearest(word, 8) for word in (first, second))
        asked = list(dict.fromkeys(word for found in both for word, _ in found))
    leaning = projections(vectors, asked, direction).tolist()
    listed = sorted(zip(asked, leaning, strict=True), key=lambda item: -item[1])
    return [{"word": word, "lean": lean} for word, lean in listed]


def analogy_of(vectors: WordVectors, a: str, b: str, c: str) -> dict[str, Any]:
    a, b, c = (_spelled(vectors, word) for word in (a, b, c))
    answers = vectors.analogy(a, b, c, 5)
    picture = parallelogram(vectors, a, b, c, answers[0][0])
    return {"answers": [{"word": word, "cosine": cosine} for word, cosine in answers], "picture": picture_json(picture)}


def cloud_of(text: str, words: int) -> Picture:
    counts = count_words(blocks_of(text.splitlines() or [text]))
    weights = {word: weight for word, weight in keyness(counts).items() if not is_common(word)} or keyness(counts)
    if not weights:
        raise InputError("there is no word in this text to draw")
    return word_cloud(weights, counts=counts, max_words=words, width=900, height=420)


def picture_json(picture: Picture) -> dict[str, str]:
    return {"markup": picture.markup, "title": picture.title, "caption": picture.caption}


def _spelled(vectors: WordVectors, word: str) -> str:
    """As it is spelled or else in small letters, which is how most vectors have it."""
    for spelling in (word.strip(), word.strip().lower()):
        if spelling in vectors:
            return spelling
    raise no_word(word.strip())


def add_routes(app: FastAPI, shelf: Shelf, texts: Callable[[], Sequence[str]]) -> None:
    @app.post("/api/words/map")
    def word_map(asked: AskMap) -> dict[str, Any]:
        return {"points": map_of(shelf[asked.model].vectors, asked.around, asked.count, asked.method)}

    @app.post("/api/words/suggested")
    def suggestions(asked: AskVectors) -> dict[str, Any]:
        return suggested(shelf[asked.model].vectors)

    @app.post("/api/words/nearest")
    def nearest(asked: AskNearest) -> dict[str, Any]:
        vectors = shelf[asked.model].vectors
        found = vectors.nearest(_spelled(vectors, asked.word), asked.k)
        return {"words": [{"word": word, "cosine": cosine} for word, cosine in found]}

    @app.post("/api/words/analogy")
    def analogy(asked: AskAnalogy) -> dict[str, Any]:
        return analogy_of(shelf[asked.model].vectors, asked.a, asked.b, asked.c)

    @app.post("/api/words/axis")
    def axis(asked: AskAxis) -> dict[str, Any]:
        return {"words": axis_of(shelf[asked.model].vectors, asked.one, asked.other, asked.words)}

    @app.post("/api/words/window")
    def window(asked: AskWindow) -> dict[str, str]:
        trained = [entry.model for entry in shelf.entries("vectors") if isinstance(entry.model, Word2Vec)]
        pair = [next((model for model in trained if model.model == kind), None) for kind in ("cbow", "skip-gram")]
        if pair[0] is None or pair[1] is None:
            raise InputError("a CBOW and a skip-gram model are needed: train both, or wait for them")
        return picture_json(cbow_against_skip_gram(pair[0], pair[1], asked.sentence.split(), asked.centre))

    @lru_cache(maxsize=1)
    def own_cloud(words: int) -> Picture:
        return cloud_of("\n".join(texts()), words)

    @app.post("/api/words/cloud")
    def cloud(asked: AskCloud) -> dict[str, str]:
        text = asked.text.strip()
        return picture_json(cloud_of(text, asked.words) if text else own_cloud(asked.words))
