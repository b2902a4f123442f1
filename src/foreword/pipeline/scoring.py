"""Scores of documents under a language model, once for ``TextLM``, ``foreword score``, the server and ``filter``.

    score       log p(w_1 … w_n </s>)       natural logarithm, the end of the document included
    perplexity  exp(−score / tokens)        tokens counts ``</s>``

Log-probabilities are added in double precision, whatever precision the model has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from foreword.arrays import Doubles, Longs
from foreword.measures.perplexity import Scoring, finite
from foreword.text.block import Block
from foreword.text.unicode import blank
from foreword.tokens.corpus import Corpus

if TYPE_CHECKING:
    from foreword.pipeline.language import TextLM


class ScoreRecord(TypedDict):
    """The scores of one document as JSON has them: null for what is missing or infinite."""

    score: float | None
    tokens: int
    oov: int
    perplexity: float | None


@dataclass(frozen=True, slots=True)
class DocumentScores:
    """Scores of documents, one element per document.

    logprobs: float64, NaN for a blank document; tokens: int64, ``</s>`` included; oov: int64, how many are ``<unk>``.
    """

    logprobs: Doubles
    tokens: Longs
    oov: Longs

    @property
    def perplexities(self) -> Doubles:
        """Return exp(−score / tokens): float64, infinite for an impossible document, NaN for a blank one."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found: Doubles = np.exp(-self.logprobs / self.tokens)
        return found

    def records(self) -> list[ScoreRecord]:
        """Return one JSON object per document."""
        columns = self.logprobs.tolist(), self.tokens.tolist(), self.oov.tolist()
        return [
            {"score": finite(logprob), "tokens": tokens, "oov": oov, "perplexity": _perplexity(logprob, tokens)}
            for logprob, tokens, oov in zip(*columns, strict=True)
        ]


def _perplexity(logprob: float, tokens: int) -> float | None:
    """Return what ``perplexities`` has, by the C library, which may differ from NumPy in the last bit."""
    try:
        return finite(math.exp(-logprob / tokens)) if tokens else None
    except OverflowError:
        return None


def score_documents(model: TextLM, documents: Block | Iterable[str]) -> DocumentScores:
    """Score documents given as text. A blank document has no score and no tokens."""
    texts = documents if isinstance(documents, Block) else Block.from_texts(list(documents))
    filled = ~blank(texts.data, texts.starts, texts.stops)
    if filled.all():
        return score_corpus(model.model, Corpus.from_blocks([texts], model.tokenizer, threads=1))
    some = Block(texts.data, texts.starts[filled], texts.stops[filled])
    found = score_corpus(model.model, Corpus.from_blocks([some], model.tokenizer, threads=1))
    logprobs = np.full(len(texts), np.nan)
    tokens, oov = np.zeros((2, len(texts)), np.int64)
    logprobs[filled], tokens[filled], oov[filled] = found.logprobs, found.tokens, found.oov
    return DocumentScores(logprobs, tokens, oov)


def score_corpus(model: Scoring, corpus: Corpus) -> DocumentScores:
    """Score the documents of a corpus. Documents without any text are scored by their end alone."""
    starts, tokens, unknown = corpus.offsets[:-1], np.diff(corpus.offsets), corpus.vocab.unknown
    oov = np.zeros(len(starts), np.int64)
    if not len(corpus):
        return DocumentScores(np.empty(0), tokens, oov)
    logprobs = np.add.reduceat(model.logprobs(corpus).astype(np.float64, copy=False), starts)
    if unknown is not None:
        oov = np.diff(np.searchsorted(np.flatnonzero(corpus.ids == unknown), corpus.offsets))
    return DocumentScores(logprobs, tokens, oov)
