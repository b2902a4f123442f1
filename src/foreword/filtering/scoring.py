"""Scores for blocks of documents, by any model that reads text.

A language model gives ``score`` (natural log-probability, the end included), ``tokens``, ``oov`` and ``perplexity``,
as ``foreword score`` does; ``labels.py`` has what a classifier gives.

A document longer than ``piece_bytes`` is cut at white space and scored in pieces. Log-probabilities and tokens of its
pieces are added, so that its perplexity is that of the mean log-probability of all tokens, each piece's end included.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from foreword import kinds
from foreword.errors import InputError, SettingError
from foreword.filtering.columns import CONTAMINATED, PERPLEXITY, Column
from foreword.filtering.labels import NETWORK_BYTES, ClassScorer, FastTextScorer, NetworkClassScorer
from foreword.filtering.models import is_pair
from foreword.filtering.pieces import batches_of, cut
from foreword.filtering.settings import PIECE_BYTES, SPAN, LabelSettings, Like
from foreword.pipeline.scoring import DocumentScores, score_documents
from foreword.storage.folder import load
from foreword.text.block import Block
from foreword.text.cleaning import Cleaner

if TYPE_CHECKING:
    from foreword.pipeline.index import TextIndex
    from foreword.pipeline.language import TextLM


class Scorer(Protocol):
    """A model that gives columns of scores."""

    def columns(self, texts: Block) -> list[Column]:
        """Score documents; a blank document has no values."""
        ...


def open_scorer(
    path: str | Path,
    prefix: str = "",
    piece_bytes: int = PIECE_BYTES,
    labels: LabelSettings | None = None,
    like: Like | None = None,
    span: int = SPAN,
) -> Scorer:
    """Load a model that reads text, or a pair; ``prefix`` is put before the names of its columns."""
    if is_pair(str(path)):
        from foreword.filtering.pairs import PairScorer

        return PairScorer.open(str(path), prefix, like)
    return scorer_of(load(path), str(path), prefix, piece_bytes, labels, span)


def scorer_of(
    model: Any, name: str, prefix: str, piece_bytes: int = PIECE_BYTES, labels: LabelSettings | None = None,
    span: int = SPAN,
) -> Scorer:  # fmt: skip
    """Wrap a model; ``name`` is its path, for messages. labels: what is asked of a classifier. span: of an index."""
    # The cores are busy with other shards, and torch adds in another order with more threads.
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)
    kind, labels = kinds.of(model), labels or LabelSettings()
    if "score" in kind.abilities:
        if labels.wanted:
            raise SettingError(f"{prefix}p({labels.wanted[0]}): {name} is a language model, which has no labels")
        if counting := kinds.of(model.model).threads:
            model.model.threads = 1
        return LanguageScorer(model, prefix, piece_bytes, counting)
    if "index" in kind.abilities:
        return IndexScorer(model, prefix, span)
    if "classify" not in kind.abilities:
        raise InputError(f"{name}: its kind is {kind.name}, which neither scores a text nor labels one")
    if kind.network:
        return NetworkClassScorer(model, prefix, piece_bytes, labels)
    # By kind and not by class: only the modules of the model at hand are loaded, in every process.
    scorer = FastTextScorer if kind.one_line else ClassScorer
    return scorer(model, prefix, piece_bytes, labels)


@dataclass(frozen=True)
class CleanedScorer:
    """A model that reads cleaned texts."""

    scorer: Scorer
    clean: Cleaner

    def columns(self, texts: Block) -> list[Column]:
        """Score the texts after cleaning."""
        return self.scorer.columns(self.clean(texts))


# --- indexes


@dataclass(frozen=True)
class IndexScorer:
    """An index of texts. span: tokens of the shortest run that counts."""

    index: TextIndex
    prefix: str
    span: int

    def columns(self, texts: Block) -> list[Column]:
        """Return the share of each text that stands verbatim in the index."""
        return [Column(self.prefix + CONTAMINATED, self.index.coverage(texts, self.span))]


# --- language models


@dataclass(frozen=True)
class LanguageScorer:
    """A language model. counting: whether it needs only eight bytes per token, so that it reads whole blocks."""

    model: TextLM
    prefix: str
    piece_bytes: int
    counting: bool

    def columns(self, texts: Block) -> list[Column]:
        """Return score, tokens, oov and perplexity of each text."""
        pieces, owners = cut(texts, self.piece_bytes)
        size = texts.text_bytes() if self.counting else NETWORK_BYTES
        found = [score_documents(self.model, part) for part in batches_of(pieces, size)]
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
