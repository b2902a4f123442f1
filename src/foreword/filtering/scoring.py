"""Columns of scores for blocks of documents, by any model that reads text.

A language model gives ``score`` (natural log-probability, the end included), ``tokens``, ``oov`` and ``perplexity``,
as ``foreword score`` does; a classifier gives ``label``, the likeliest, and its ``probability``, rounded to six places.

A document longer than ``piece_bytes`` is cut at white space and scored in pieces. Log-probabilities and tokens of its
pieces are added, so that its perplexity is that of the mean log-probability of all tokens, each piece's end included.
A classifier's probabilities are averaged over the pieces, weighted by their bytes, and then the best label is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from foreword.classify.fasttext import FastTextClassifier
from foreword.classify.text import TextClassifier
from foreword.errors import InputError
from foreword.filtering.columns import Column
from foreword.io.folder import kind_of, load
from foreword.lm.ngram import NgramLM
from foreword.pipeline import TextLM
from foreword.text.block import Block
from foreword.text.whitespace import IS_ASCII_WHITE, blank, character_start
from foreword.tokens.corpus import Corpus

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

PIECE_BYTES = 1 << 20
"""Documents up to a megabyte are scored whole."""

NETWORK_BYTES = 64 << 10
"""How much text a network reads at a time: what it remembers of each token is kilobytes."""

MATRIX_CELLS = 4 << 20
"""How many probabilities of a classifier are held at a time: 32 MB."""

LABEL, PROBABILITY, PERPLEXITY = "label", "probability", "perplexity"
LOWER_IS_BETTER = ("perplexity", "oov")


class Scorer(Protocol):
    """A model and the names of its columns."""

    def columns(self, texts: Block) -> list[Column]:
        """One value for each document; a blank one has none."""
        ...


def open_scorer(path: str | Path, prefix: str = "", piece_bytes: int = PIECE_BYTES) -> Scorer:
    """Whatever is there, as long as it reads text; ``prefix`` goes before the names of its columns."""
    return scorer_of(load(path), str(path), prefix, piece_bytes)


def scorer_of(model: Any, name: str, prefix: str, piece_bytes: int) -> Scorer:
    if isinstance(model, TextLM):
        if isinstance(model.model, NgramLM):
            model.model.threads = 1  # the cores are busy with other shards
        return LanguageScorer(model, prefix, piece_bytes)
    if isinstance(model, FastTextClassifier | TextClassifier):
        return ClassScorer(model, prefix, piece_bytes)
    raise InputError(f"{name}: its kind is {kind_of(model)}, which neither scores a text nor labels one")


# --- language models


@dataclass(frozen=True)
class LanguageScorer:
    model: TextLM
    prefix: str
    piece_bytes: int

    def columns(self, texts: Block) -> list[Column]:
        pieces, owners = cut(texts, self.piece_bytes)
        # Counting models remember eight bytes of a token, so that a whole block may be read at once.
        size = texts.text_bytes() if isinstance(self.model.model, NgramLM) else NETWORK_BYTES
        found = [self._sums(part) for part in stretches(pieces, size)]
        logs, tokens, oov = (np.concatenate([part[column] for part in found]) for column in range(3))
        if owners is not None:
            logs = np.bincount(owners, logs, len(texts))
            tokens, oov = (np.bincount(owners, each, len(texts)).astype(np.int64) for each in (tokens, oov))
        empty = blank(texts.data, texts.starts, texts.stops)
        logs[empty] = np.nan
        tokens[empty] = oov[empty] = 0
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            perplexity = np.exp(-logs / tokens)
        values = {"score": logs, "tokens": tokens, "oov": oov, PERPLEXITY: perplexity}
        return [Column(self.prefix + name, value) for name, value in values.items()]

    def _sums(self, texts: Block) -> tuple[Floats, Longs, Longs]:
        """Each document's log-probability, how many tokens it has and how many of those the model does not know."""
        corpus = Corpus.from_blocks([texts], self.model.tokenizer, threads=1)
        starts, unknown = corpus.offsets[:-1], corpus.vocab.unknown
        if not len(corpus):
            return np.empty(0), starts, starts
        logs = np.add.reduceat(self.model.model.logprobs(corpus).astype(np.float64, copy=False), starts)
        if unknown is None:
            return logs, np.diff(corpus.offsets), np.zeros(len(starts), np.int64)
        places = np.flatnonzero(corpus.ids == unknown)
        oov = np.diff(np.searchsorted(places, corpus.offsets))
        return logs, np.diff(corpus.offsets), oov


# --- classifiers


@dataclass(frozen=True)
class ClassScorer:
    model: FastTextClassifier | TextClassifier
    prefix: str
    piece_bytes: int

    def columns(self, texts: Block) -> list[Column]:
        texts = one_line(texts) if isinstance(self.model, FastTextClassifier) else texts
        names = self.model.classes_
        long = texts.stops - texts.starts > self.piece_bytes
        if long.any():
            labels, shares = np.empty(len(texts), np.int32), np.empty(len(texts))
            labels[~long], shares[~long] = self._best(_some(texts, ~long))
            labels[long], shares[long] = self._best_of_pieces(_some(texts, long))
        else:
            labels, shares = self._best(texts)
        labels[blank(texts.data, texts.starts, texts.stops)] = -1
        shares = np.where(labels >= 0, np.round(shares, 6), np.nan)
        return [Column(self.prefix + LABEL, labels, names), Column(self.prefix + PROBABILITY, shares)]

    def _best(self, texts: Block) -> tuple[NDArray[np.int32], Floats]:
        """The likeliest label of each text, −1 where fastText knows nothing of it, and its probability."""
        if isinstance(self.model, FastTextClassifier):
            best, chance = self.model.model.predict(texts, 1, 0.0)
            return best[:, 0], chance[:, 0].astype(np.float64)
        labels, shares = [], []
        for part in self._parts(texts):
            chances = np.exp(self.model.predict_log_proba([part]))
            best = chances.argmax(axis=1) if len(chances) else np.empty(0, np.int64)
            labels.append(best.astype(np.int32))
            shares.append(chances[np.arange(len(best)), best])
        return np.concatenate(labels), np.concatenate(shares)

    def _best_of_pieces(self, texts: Block) -> tuple[NDArray[np.int32], Floats]:
        """The same for long texts, one after another."""
        labels, shares = np.empty(len(texts), np.int32), np.empty(len(texts))
        for place in range(len(texts)):
            pieces, _ = cut(_some(texts, slice(place, place + 1)), self.piece_bytes)
            weights = (pieces.stops - pieces.starts).astype(np.float64)
            chances = (
                sum(
                    weight * self._chances(_some(pieces, slice(piece, piece + 1)))
                    for piece, weight in enumerate(weights)
                )
                / weights.sum()
            )
            labels[place], shares[place] = chances.argmax(), chances.max()
        return labels, shares

    def _chances(self, text: Block) -> Floats:
        """The probability of every label for one text."""
        if not isinstance(self.model, FastTextClassifier):
            return np.exp(np.asarray(self.model.predict_log_proba([text])[0], np.float64))
        classes = len(self.model.classes_)
        labels, shares = self.model.model.predict(text, classes, 0.0)
        chances = np.zeros(classes)
        chances[labels[labels >= 0]] = shares[labels >= 0]
        return chances

    def _parts(self, texts: Block) -> Iterator[Block]:
        """So few documents at a time that the probabilities of all labels are no large matrix."""
        rows = max(1, MATRIX_CELLS // len(self.model.classes_))
        for first in range(0, max(1, len(texts)), rows):
            yield _some(texts, slice(first, first + rows))


# --- blocks


def one_line(texts: Block) -> Block:
    """The same texts, each on one line, as fastText wants them."""
    from foreword.kernels.row_bytes import on_one_line

    if not len(texts):
        return texts
    first, last = int(texts.starts[0]), int(texts.stops.max())
    data = texts.data[first:last].copy()
    on_one_line(data)
    return Block(data, texts.starts - first, texts.stops - first)


def cut(texts: Block, limit: int) -> tuple[Block, Longs | None]:
    """Documents longer than ``limit`` bytes in pieces, and whose each piece is; None where nothing was cut."""
    if not len(texts) or int((texts.stops - texts.starts).max()) <= limit:
        return texts, None
    starts: list[int] = []
    stops: list[int] = []
    owners: list[int] = []
    for owner, (start, stop) in enumerate(zip(texts.starts.tolist(), texts.stops.tolist(), strict=True)):
        while stop - start > limit:
            end = _cut_before(texts.data, start, start + limit)
            starts.append(start), stops.append(end), owners.append(owner)  # type: ignore[func-returns-value]
            start = end
        starts.append(start), stops.append(stop), owners.append(owner)  # type: ignore[func-returns-value]
    return Block(texts.data, np.array(starts, np.int64), np.array(stops, np.int64)), np.array(owners, np.int64)


def _cut_before(data: NDArray[np.uint8], start: int, stop: int) -> int:
    """After the last ASCII white space of the stretch, or before its last character where there is none."""
    white = np.flatnonzero(IS_ASCII_WHITE[data[start:stop]])
    if len(white):
        return start + int(white[-1]) + 1
    end = character_start(data, stop)
    return end if end > start else stop


def stretches(texts: Block, size: int) -> Iterator[Block]:
    """Neighbouring documents of about so many bytes together; at least one block, be it empty."""
    ends = np.cumsum(texts.stops - texts.starts)
    first = 0
    while True:
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + size, "right")))
        yield _some(texts, slice(first, last))
        first = last
        if first >= len(texts):
            return


def _some(texts: Block, which: slice | NDArray[np.bool_]) -> Block:
    return Block(texts.data, texts.starts[which], texts.stops[which])


def main_column(columns: Sequence[Column]) -> str:
    """The column that percentiles and buckets are about where nobody says: a perplexity, else a probability."""
    for wanted in (PERPLEXITY, PROBABILITY):
        for column in columns:
            if column.name.endswith(wanted):
                return column.name
    raise AssertionError("every scorer has one of the two")


def label_column(columns: Sequence[Column]) -> str | None:
    return next((column.name for column in columns if column.names is not None), None)
