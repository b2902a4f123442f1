"""All ways to cut a text into the pieces of a unigram model: the best of them, and their entropy."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from foreword.errors import SettingError
from foreword.tokens.piece_tables import path_scores, textual
from foreword.tokens.sentencepiece import Piece, SentencePieceTokenizer
from foreword.tokens.sentencepiece_file import UNUSED


class UnigramOnlyError(SettingError, RuntimeError):
    """The model is no unigram model; sentencepiece raises a RuntimeError."""


class Arc(NamedTuple):
    """A piece of the text that begins at a position, and what it adds to the score of a path."""

    start: int
    piece: Piece
    score: Any


def arcs_into(tokenizer: SentencePieceTokenizer, text: str) -> Iterator[list[Arc]]:
    """Yield, for every position of the normalised text but the first, the pieces that end there."""
    model = tokenizer.model_
    if model.algorithm != "unigram":
        raise UnigramOnlyError("only unigram models have several ways to cut a text")
    scores, unknown_score = path_scores(model)
    ids = {model.pieces[id]: id for id in np.flatnonzero(textual(model) & (model.types != UNUSED)).tolist()}
    longest = max(map(len, ids), default=1)
    for stop in range(1, len(text) + 1):
        arcs = []
        for start in range(max(0, stop - longest), stop):
            piece = text[start:stop]
            id = ids.get(piece, model.unknown if stop == start + 1 else -1)
            if id >= 0:
                score = unknown_score if id == model.unknown else scores[id]
                arcs.append(Arc(start, Piece(id, piece), score))
        yield arcs


def nbest_paths(tokenizer: SentencePieceTokenizer, text: str, count: int) -> list[list[Piece]]:
    """Return the best paths through a normalised text, the best first: of ``count`` ways to every position."""
    ways: list[list[tuple[Any, list[Piece]]]] = [[(np.float32(0), [])]]
    for arcs in arcs_into(tokenizer, text):
        found = [(before + score, [*path, piece]) for start, piece, score in arcs for before, path in ways[start]]
        ways.append(heapq.nlargest(count, found, key=lambda way: way[0]))
    return [path for _, path in ways[-1]]


def entropy(tokenizer: SentencePieceTokenizer, text: str, alpha: float) -> float:
    """Return the entropy, in nats, of the ways to cut a normalised text, each with p ∝ exp(alpha · score).

    H = log Z − E[alpha · score], both by the forward recursion.
    """
    logs, means = [0.0], [0.0]
    for arcs in arcs_into(tokenizer, text):
        gains = np.array([alpha * float(arc.score) for arc in arcs])
        terms = np.array([logs[arc.start] for arc in arcs]) + gains
        total = float(np.logaddexp.reduce(terms))
        logs.append(total)
        means.append(float(np.exp(terms - total) @ (np.array([means[arc.start] for arc in arcs]) + gains)))
    return logs[-1] - means[-1]
