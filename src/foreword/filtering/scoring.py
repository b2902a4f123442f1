"""Columns of scores for blocks of documents, by any model that reads text.

A language model gives ``score`` (natural log-probability, the end included), ``tokens``, ``oov`` and ``perplexity``,
as ``foreword score`` does; a classifier gives ``label``, the likeliest, and its ``probability``, rounded to six places.

A document longer than ``piece_bytes`` is cut at white space and scored in pieces. Log-probabilities and tokens of its
pieces are added, so that its perplexity is that of the mean log-probability of all tokens, each piece's end included.
A classifier's probabilities are averaged over the pieces, weighted by their bytes, and then the best label is taken.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from foreword import kinds
from foreword.arrays import Bools, Bytes, Doubles, Ints, Longs
from foreword.errors import InputError
from foreword.filtering.columns import Column
from foreword.pipeline.scoring import DocumentScores, score_documents
from foreword.storage.folder import load
from foreword.text.block import Block
from foreword.text.whitespace import IS_ASCII_WHITE, blank, character_start

if TYPE_CHECKING:
    from foreword.classify.recurrent import RecurrentClassifier
    from foreword.fasttext.classifier import FastTextClassifier
    from foreword.pipeline.classifier import TextClassifier
    from foreword.pipeline.language import TextLM


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
    # The cores are busy with other shards; and with more threads torch adds up in another order.
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)
    kind = kinds.of(model)
    if "score" in kind.abilities:
        counting = kinds.of(model.model).name == "ngram"
        if counting:
            model.model.threads = 1
        return LanguageScorer(model, prefix, piece_bytes, counting)
    if "classify" not in kind.abilities:
        raise InputError(f"{name}: its kind is {kind.name}, which neither scores a text nor labels one")
    if kind.network:
        return NetworkClassScorer(model, prefix, piece_bytes)
    # By kind and not by class: only the modules of the model at hand are loaded, in every process.
    scorer = FastTextScorer if kind.name == "fasttext-classifier" else ClassScorer
    return scorer(model, prefix, piece_bytes)


# --- language models


@dataclass(frozen=True)
class LanguageScorer:
    """counting: whether the model remembers eight bytes of a token, so that a whole block may be read at once."""

    model: TextLM
    prefix: str
    piece_bytes: int
    counting: bool

    def columns(self, texts: Block) -> list[Column]:
        pieces, owners = cut(texts, self.piece_bytes)
        size = texts.text_bytes() if self.counting else NETWORK_BYTES
        found = [score_documents(self.model, part) for part in stretches(pieces, size)]
        logs = np.concatenate([part.logprobs for part in found])
        tokens = np.concatenate([part.tokens for part in found])
        oov = np.concatenate([part.oov for part in found])
        if owners is not None:
            logs = np.bincount(owners, np.nan_to_num(logs, nan=0.0, neginf=-np.inf), len(texts))
            tokens, oov = (np.bincount(owners, each, len(texts)).astype(np.int64) for each in (tokens, oov))
            logs[tokens == 0] = np.nan
        scores = DocumentScores(logs, tokens, oov)
        values = {"score": logs, "tokens": tokens, "oov": oov, PERPLEXITY: scores.perplexities}
        return [Column(self.prefix + name, value) for name, value in values.items()]


# --- classifiers


@dataclass(frozen=True)
class ClassScorer:
    model: TextClassifier
    prefix: str
    piece_bytes: int

    def columns(self, texts: Block) -> list[Column]:
        names = self.model.classes_
        long = texts.stops - texts.starts > self.piece_bytes
        if long.any():
            labels, shares = np.empty(len(texts), np.int32), np.empty(len(texts))
            labels[~long], shares[~long] = self.best(_some(texts, ~long))
            labels[long], shares[long] = self._best_of_pieces(_some(texts, long))
        else:
            labels, shares = self.best(texts)
        labels[blank(texts.data, texts.starts, texts.stops)] = -1
        shares = np.where(labels >= 0, np.round(shares, 6), np.nan)
        return [Column(self.prefix + LABEL, labels, names), Column(self.prefix + PROBABILITY, shares)]

    def best(self, texts: Block) -> tuple[Ints, Doubles]:
        """The likeliest label of each text and its probability; so few at a time that no matrix of them is large."""
        labels, shares = [np.empty(0, np.int32)], [np.empty(0)]
        rows = max(1, MATRIX_CELLS // len(self.model.classes_))
        for first in range(0, len(texts), rows):
            chances = np.exp(self.model.predict_log_proba([_some(texts, slice(first, first + rows))]))
            labels.append(chances.argmax(axis=1).astype(np.int32))
            shares.append(chances.max(axis=1))
        return np.concatenate(labels), np.concatenate(shares)

    def chances(self, text: Block) -> Doubles:
        """The probability of every label for one text."""
        return np.exp(np.asarray(self.model.predict_log_proba([text])[0], np.float64))

    def _best_of_pieces(self, texts: Block) -> tuple[Ints, Doubles]:
        """The same as ``best`` for long texts, one after another."""
        labels, shares = np.empty(len(texts), np.int32), np.empty(len(texts))
        for place in range(len(texts)):
            pieces, _ = cut(_some(texts, slice(place, place + 1)), self.piece_bytes)
            weights = (pieces.stops - pieces.starts) / pieces.text_bytes()
            found = [self.chances(_some(pieces, slice(piece, piece + 1))) for piece in range(len(pieces))]
            chances = weights @ np.array(found)
            labels[place], shares[place] = chances.argmax(), chances.max()
        return labels, shares


@dataclass(frozen=True)
class FastTextScorer(ClassScorer):
    """fastText reads a text's bytes up to the end of its line, and may know nothing of it."""

    model: FastTextClassifier  # type: ignore[assignment]

    def columns(self, texts: Block) -> list[Column]:
        return super().columns(one_line(texts))

    def best(self, texts: Block) -> tuple[Ints, Doubles]:
        labels, shares = self.model.model.predict(texts, 1, 0.0)
        return labels[:, 0], shares[:, 0].astype(np.float64)

    def chances(self, text: Block) -> Doubles:
        classes = len(self.model.classes_)
        labels, shares = self.model.model.predict(text, classes, 0.0)
        chances = np.zeros(classes)
        chances[labels[labels >= 0]] = shares[labels >= 0]
        return chances


@dataclass(frozen=True)
class NetworkClassScorer(ClassScorer):
    """A network reads strings, and a little text at a time."""

    model: RecurrentClassifier  # type: ignore[assignment]

    def best(self, texts: Block) -> tuple[Ints, Doubles]:
        parts = [np.exp(self.model.predict_log_proba(part.strings())) for part in stretches(texts, NETWORK_BYTES)]
        chances = np.concatenate([np.empty((0, len(self.model.classes_))), *parts])
        return chances.argmax(axis=1).astype(np.int32), chances.max(axis=1, initial=0.0)

    def chances(self, text: Block) -> Doubles:
        found: Doubles = np.exp(self.model.predict_log_proba(text.strings())[0])
        return found


# --- blocks


def one_line(texts: Block) -> Block:
    """The same texts, each on one line, as fastText wants them."""
    from foreword.filtering.kernels import on_one_line

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
    pieces: list[tuple[int, int, int]] = []
    for owner, (start, stop) in enumerate(zip(texts.starts.tolist(), texts.stops.tolist(), strict=True)):
        while stop - start > limit:
            end = _cut_before(texts.data, start, start + limit)
            pieces.append((start, end, owner))
            start = end
        pieces.append((start, stop, owner))
    starts, stops, owners = np.array(pieces, np.int64).T.copy()
    return Block(texts.data, starts, stops), owners


def _cut_before(data: Bytes, start: int, stop: int) -> int:
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


def _some(texts: Block, which: slice | Bools) -> Block:
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
