"""Columns of a classifier: the best labels, and the probability of any label that is named.

    label, probability          the likeliest label and its probability, rounded to six places
    label_2, probability_2 …    the next ones, where the k best are asked for
    p(hq)                       the probability of one label, whether or not it is among the best
    grade                       the expected grade Σ p(label) · label, where all labels are numbers

Labels may be restricted to some of all: after the softmax, where probabilities stay what they are and the best is one
of those labels, or before it, where their probabilities sum to one.

A document longer than ``piece_bytes`` is cut at white space; probabilities are averaged over its pieces, weighted by
their bytes, and then ranked. fastText's probabilities are fastText's own: 0.00001 too high.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from foreword.arrays import Doubles, Ints
from foreword.checks import grades_of
from foreword.errors import SettingError
from foreword.filtering.columns import GRADE, LABEL, PROBABILITY, Column
from foreword.filtering.pieces import batches_of, cut, one_line, some
from foreword.filtering.settings import LabelSettings
from foreword.text.block import Block
from foreword.text.unicode import blank

if TYPE_CHECKING:
    from foreword.classify.recurrent import RecurrentClassifier
    from foreword.fasttext.classifier import FastTextClassifier
    from foreword.pipeline.classifier import TextClassifier

NETWORK_BYTES = 64 << 10
"""How much text a network reads at a time: it needs kilobytes per token."""

MATRIX_CELLS = 4 << 20
"""How many probabilities of a classifier are in memory at a time: 32 MB."""


class LabelScores(NamedTuple):
    """Labels of documents.

    best: int32 (documents, k), indices of the likeliest labels, −1 for none; shares: float64, their probabilities.
    wanted: float64 (documents, named labels), NaN where the model has no answer.
    """

    best: Ints
    shares: Doubles
    wanted: Doubles


@dataclass(frozen=True)
class ClassScorer:
    """A classifier of text."""

    model: TextClassifier
    prefix: str
    piece_bytes: int
    settings: LabelSettings

    @cached_property
    def wanted(self) -> list[int]:
        """The labels that have a column of their own; then, where the grade is asked for, those that it is made of."""
        named = [self._index(label) for label in self.settings.wanted]
        return named + self._graded if self.settings.grade else named

    @cached_property
    def _graded(self) -> list[int]:
        return self.only if self.only and self.settings.before else list(range(len(self.model.classes_)))

    @cached_property
    def only(self) -> list[int] | None:
        """The labels that can be the best; None for all."""
        return None if self.settings.only is None else [self._index(label) for label in self.settings.only]

    @cached_property
    def top(self) -> int:
        """How many of the best labels have columns."""
        return min(self.settings.top, len(self.model.classes_ if self.only is None else self.only))

    def _index(self, label: str) -> int:
        names = [str(name) for name in self.model.classes_]
        if label not in names:
            near = get_close_matches(label, names, n=8) if len(names) > 8 else names
            some_names = ", ".join(near or names[:8]) + (", …" if len(names) > 8 else "")
            raise SettingError(f"{label!r} is not a label of the model; it has {some_names}")
        if self.settings.before and self.settings.only is not None and label not in self.settings.only:
            raise SettingError(f"p({label}): --restrict before leaves it out of the softmax: add it to --labels")
        return names.index(label)

    def columns(self, texts: Block) -> list[Column]:
        """Return the best labels of each text with their probabilities, and the probabilities of the named labels."""
        found = self._all_scores(texts)
        empty = blank(texts.data, texts.starts, texts.stops)
        found.best[empty], found.wanted[empty] = -1, np.nan
        shares = np.where(found.best >= 0, np.round(found.shares, 6), np.nan)
        names, columns = [str(name) for name in self.model.classes_], list[Column]()
        for rank in range(self.top):
            after = f"_{rank + 1}" if rank else ""
            columns.append(Column(f"{self.prefix}{LABEL}{after}", np.ascontiguousarray(found.best[:, rank]), names))
            columns.append(Column(f"{self.prefix}{PROBABILITY}{after}", np.ascontiguousarray(shares[:, rank])))
        for place, label in enumerate(self.settings.wanted):
            columns.append(Column(f"{self.prefix}p({label})", np.round(found.wanted[:, place], 6)))
        if self.settings.grade:
            shares = found.wanted[:, len(self.settings.wanted) :]
            grades = grades_of(names[label] for label in self._graded)
            columns.append(Column(f"{self.prefix}{GRADE}", np.round(shares @ grades / shares.sum(axis=1), 6)))
        return columns

    def _all_scores(self, texts: Block) -> LabelScores:
        long = texts.stops - texts.starts > self.piece_bytes
        if not long.any():
            return self.scores(texts)
        shape = len(texts), self.top
        found = LabelScores(np.empty(shape, np.int32), np.empty(shape), np.empty((len(texts), len(self.wanted))))
        for rows, part in ((~long, self.scores(some(texts, ~long))), (long, self._of_pieces(some(texts, long)))):
            found.best[rows], found.shares[rows], found.wanted[rows] = part
        return found

    def _of_pieces(self, texts: Block) -> LabelScores:
        """Score long texts, one after another."""
        rows = np.empty((len(texts), len(self.model.classes_)))
        for text in range(len(texts)):
            pieces, _ = cut(some(texts, slice(text, text + 1)), self.piece_bytes)
            weights = (pieces.stops - pieces.starts) / pieces.text_bytes()
            found = [self.chances(some(pieces, slice(piece, piece + 1)))[0] for piece in range(len(pieces))]
            rows[text] = weights @ np.array(found)
        return self._ranked(rows)

    def scores(self, texts: Block) -> LabelScores:
        """Score texts that are read whole, a bounded number at a time."""
        found = [self._ranked(self.chances(part)) for part in self.batches(texts)]
        return LabelScores(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def batches(self, texts: Block) -> Iterator[Block]:
        """Yield as many texts at a time as the model can read; at least one block, even if it is empty."""
        rows = max(1, MATRIX_CELLS // len(self.model.classes_))
        for first in range(0, max(1, len(texts)), rows):
            yield some(texts, slice(first, first + rows))

    def chances(self, texts: Block) -> Doubles:
        """Return the probability of every label for each text, float64 (texts, labels)."""
        return self.restricted(np.exp(self.log_chances(texts)))

    def log_chances(self, texts: Block) -> Doubles:
        """Return the logarithms of the probabilities of all labels."""
        return np.asarray(self.model.predict_log_proba([texts]), np.float64)

    def restricted(self, chances: Doubles) -> Doubles:
        """Return the same probabilities, or those of a softmax over the chosen labels alone."""
        if self.only is None or not self.settings.before:
            return chances
        found = np.zeros_like(chances)
        found[:, self.only] = chances[:, self.only] / chances[:, self.only].sum(axis=1, keepdims=True)
        return found

    def _ranked(self, chances: Doubles) -> LabelScores:
        """Rank the labels of each text by their probabilities."""
        ranked = chances
        if self.only is not None:
            ranked = np.full_like(chances, -1.0)
            ranked[:, self.only] = chances[:, self.only]
        best = ranked.argmax(axis=1)[:, None] if self.top == 1 else np.argsort(-ranked, 1, "stable")[:, : self.top]
        labels, wanted = np.asarray(best, np.int32), chances[:, self.wanted]
        unknown = chances.max(axis=1, initial=0.0) <= 0.0  # fastText, and no piece of the text has a known word
        labels[unknown], wanted[unknown] = -1, np.nan
        return LabelScores(labels, np.take_along_axis(chances, best, 1), wanted)


@dataclass(frozen=True)
class FastTextScorer(ClassScorer):
    """fastText, which reads a text up to the end of its line and may give it no label."""

    model: FastTextClassifier  # type: ignore[assignment]

    def columns(self, texts: Block) -> list[Column]:
        """Return the columns of each text, read as one line as fastText does."""
        return super().columns(one_line(texts))

    def scores(self, texts: Block) -> LabelScores:
        """Score texts by one pass over them, however many labels are named."""
        return self._asked(texts, self.wanted)

    def chances(self, texts: Block) -> Doubles:
        """Return the probability of every label for each text, 0 where the text has no known word."""
        labels = range(len(self.model.classes_)) if self.only is None or not self.settings.before else self.only
        chances = np.zeros((len(texts), len(self.model.classes_)))
        chances[:, list(labels)] = np.nan_to_num(self._asked(texts, labels).wanted, nan=0.0)
        return chances

    def _asked(self, texts: Block, wanted: Iterable[int]) -> LabelScores:
        best, shares, named = self.model.model.probabilities(
            texts, self.top, wanted=list(wanted), only=self.only, before=self.settings.before and self.only is not None
        )
        return LabelScores(best, shares.astype(np.float64), named.astype(np.float64))


@dataclass(frozen=True)
class NetworkClassScorer(ClassScorer):
    """A network, which reads strings, and a little text at a time."""

    model: RecurrentClassifier  # type: ignore[assignment]

    def batches(self, texts: Block) -> Iterator[Block]:
        """Yield some kilobytes of text at a time."""
        return batches_of(texts, NETWORK_BYTES)

    def log_chances(self, texts: Block) -> Doubles:
        """Return the logarithms of the probabilities of all labels."""
        if not len(texts):
            return np.empty((0, len(self.model.classes_)))
        return np.asarray(self.model.predict_log_proba(texts.strings()), np.float64)
