"""Asking word vectors against gensim: files read and written, neighbours, analogies."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from gensim.models import KeyedVectors

from benchmarks.measure import FEW_PAIRS, PAIRS, interleaved, one_core
from benchmarks.report import Row, compared
from foreword.evaluate.vectors import Question, measure_analogies, read_questions
from foreword.text.datasets import find
from foreword.vectors.rows import Stored
from foreword.vectors.word2vec_file import Form, read_vectors, write_vectors
from foreword.vectors.wordvectors import WordVectors

TITLE = "Word vectors: files and questions"
HOW = (
    "Random vectors, the same on both sides. Files hold 50,000 words of 100 dimensions. Neighbours are the ten nearest "
    "of a million words of 300 dimensions, for one word, or for 64 words, and then the time is that of all 64; gensim "
    "is asked 64 times, for it has no call for several. Ours as int8 must be as near, to 0.005 of a cosine. Analogies "
    "are every tenth of Google's questions, answered among 30,000 words, as many of them right."
)

WORDS, DIMENSIONS = 50_000, 100
MILLION, WIDE = 1_000_000, 300
QUERIES = 64
BINARY: dict[Form, dict[str, bool]] = {
    "word2vec-binary": {"binary": True},
    "word2vec": {"binary": False},
}


def run(quick: bool) -> list[Row]:
    logging.getLogger("gensim").setLevel(logging.ERROR)
    pairs = FEW_PAIRS if quick else PAIRS
    rows: list[Row] = []
    with one_core(), TemporaryDirectory(prefix="foreword-") as folder:
        for form in BINARY:
            rows += [_reading(form, Path(folder), pairs), _writing(form, Path(folder), pairs)]
        rows.append(_analogies(pairs))
        words = MILLION // 10 if quick else MILLION
        for stored in ("float32", "int8"):
            rows += [_one(words, stored, pairs), _many(words, stored, FEW_PAIRS)]
    return rows


@cache
def vectors(words: int, dimensions: int) -> WordVectors:
    matrix = np.random.default_rng(0).standard_normal((words, dimensions), np.float32)
    return WordVectors.of_words([f"word{number}" for number in range(words)], matrix)


@cache
def theirs(words: int, dimensions: int) -> Any:
    """gensim's, over the same matrix."""
    ours = vectors(words, dimensions)
    peer = KeyedVectors(dimensions)
    peer.index_to_key = ours.words
    peer.key_to_index = {word: place for place, word in enumerate(ours.words)}
    peer.vectors = ours.matrix
    peer.fill_norms()
    return peer


def _reading(form: Form, folder: Path, pairs: int) -> Row:
    path = folder / form
    write_vectors(vectors(WORDS, DIMENSIONS), path, form)
    return compared(
        f"reading {form}",
        "gensim",
        interleaved(
            f"reading {form}",
            lambda: read_vectors(path),
            lambda: KeyedVectors.load_word2vec_format(str(path), **BINARY[form]),
            lambda ours, peer: np.array_equal(ours.matrix, peer.vectors) and ours.words == peer.index_to_key,
            pairs=pairs,
        ),
        size=path.stat().st_size / 1e6,
    )


def _writing(form: Form, folder: Path, pairs: int) -> Row:
    mine, others = folder / f"{form}-ours", folder / f"{form}-theirs"

    def agree(*_: object) -> bool:
        return np.array_equal(read_vectors(mine).matrix, read_vectors(others).matrix)

    return compared(
        f"writing {form}",
        "gensim",
        interleaved(
            f"writing {form}",
            lambda: write_vectors(vectors(WORDS, DIMENSIONS), mine, form),
            lambda: theirs(WORDS, DIMENSIONS).save_word2vec_format(str(others), **BINARY[form]),
            agree,
            pairs=pairs,
        ),
    )


def _analogies(pairs: int) -> Row:
    sections = {name: asked[::10] for name, asked in read_questions(find("questions-words")).items()}
    held = related_vectors(sections)
    peer = KeyedVectors(held.dimensions)
    peer.add_vectors(held.words, held.matrix)
    with TemporaryDirectory(prefix="foreword-") as folder:
        path = Path(folder, "questions.txt")
        lines = [line for name, asked in sections.items() for line in (f": {name}", *map(" ".join, asked))]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        measured = interleaved(
            "analogies",
            lambda: measure_analogies(held, sections).accuracy,
            lambda: peer.evaluate_word_analogies(str(path), restrict_vocab=30_000)[0],
            lambda ours, other: bool(abs(ours - other) < 1e-3 and ours > 0.01),
            pairs=pairs,
        )
    return compared("analogies, 1,961 questions", "gensim", measured)


def related_vectors(sections: dict[str, list[Question]]) -> WordVectors:
    """Vectors that answer some of the questions, among words that have nothing to do with them."""
    rng = np.random.default_rng(2)
    rows: dict[str, Any] = {}
    for asked in sections.values():
        step = rng.normal(size=DIMENSIONS)
        for a, b, c, d in asked:
            for word, other in ((a, b), (c, d)):
                base = rows.setdefault(word.lower(), rng.normal(size=DIMENSIONS))
                rows.setdefault(other.lower(), base + step + rng.normal(size=DIMENSIONS))
    rows |= {f"filler{number}": rng.normal(size=DIMENSIONS) for number in range(30_000 - len(rows))}
    return WordVectors.of_words(rows, np.array(list(rows.values()), np.float32))


def ready(words: int, stored: Stored) -> WordVectors:
    """Lengths and the table of words are made beforehand, as gensim's are."""
    held = vectors(words, WIDE).stored_as(stored)
    _ = held.norms, held.places(["word7"] * 100)
    return held


def _one(words: int, stored: Stored, pairs: int) -> Row:
    held = ready(words, stored)
    return compared(
        f"nearest to one word, {words:,} × {WIDE}, {stored}",
        "gensim, float32",
        interleaved(
            f"nearest, {stored}",
            lambda: held.nearest("word7", 10),
            lambda: theirs(words, WIDE).most_similar("word7", topn=10),
            lambda ours, peer: as_near([ours], [peer]),
            pairs=pairs,
        ),
    )


def _many(words: int, stored: Stored, pairs: int) -> Row:
    held = ready(words, stored)
    asked = [f"word{number}" for number in range(QUERIES)]
    ask: Callable[[], Any] = lambda: [theirs(words, WIDE).most_similar(word, topn=10) for word in asked]  # noqa: E731
    return compared(
        f"nearest to {QUERIES} words, {words:,} × {WIDE}, {stored}",
        "gensim, float32",
        interleaved(f"{QUERIES} nearest, {stored}", lambda: held.nearest_many(asked, 10), ask, as_near, pairs=pairs),
    )


def as_near(ours: list[Any], peer: list[Any]) -> bool:
    mine, others = (np.array([[cosine for _, cosine in found] for found in side]) for side in (ours, peer))
    return bool(np.abs(mine - others).max() < 0.005)
