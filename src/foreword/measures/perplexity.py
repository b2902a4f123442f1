"""Perplexity: one measure for every language model.

    perplexity     = exp(−(1/N) Σ log p(w_n | w_<n))        N counts every id, ``</s>`` included
    bits per byte  = −Σ log₂ p(w_n | w_<n) / bytes of text

A model of perplexity 100 is as uncertain, at each token, as one that chooses among 100 equally likely ones. Perplexity
depends on the tokenizer; bits per byte does not, so it compares models across tokenizers, as long as neither of them
turns words into ``<unk>``.

Sums are added up over the whole text and divided once; averages are never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from foreword.arrays import Doubles, Logs
from foreword.checks import check_corpus
from foreword.errors import ForewordError, InputError
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, LanguageModel, S
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

M = TypeVar("M", bound=LanguageModel[Any])

CHUNK_TOKENS = 1 << 20
"""Log-probabilities in memory at a time (8 MB), unless one document alone is longer."""


class Scoring(Protocol):
    """A model that can be measured."""

    def logprobs(self, corpus: Corpus) -> Logs: ...


class MeanScore:
    """The ``score`` of every language model: the mean of its log-probabilities."""

    def logprobs(self, corpus: Corpus) -> Logs:
        """Return float64 (ids,): the log-probability of each id in the corpus."""
        raise NotImplementedError

    def score(self, corpus: Corpus) -> float:
        """Return the mean log-probability of an id; perplexity is exp(-score)."""
        check_corpus(corpus)
        if len(corpus.ids) == 0:
            raise InputError("the text is empty: there is nothing to score")
        return float(self.logprobs(corpus).mean())


class WrappedModel(MeanScore, Generic[M]):
    """A language model that scores with another one."""

    model: M

    @property
    def vocab(self) -> Vocab:
        """The vocabulary of the model."""
        return self.model.vocab


@dataclass(frozen=True, slots=True)
class Measures(ShownInNotebook):
    """Perplexity and related measures of a model on a text.

    perplexity: over every token; infinite where the model gave one of them no probability.
    perplexity_excluding_oov: the same over the tokens that are not ``<unk>``, as KenLM's ``query`` prints it.
    oov: how many tokens are ``<unk>``, words outside the vocabulary.
    tokens: all of them, one ``</s>`` per document included.
    bits_per_byte: a document's bytes are its UTF-8 and one for the end of its line; NaN where only ids are known.
    logprob: natural log-probability of the whole text.
    """

    perplexity: float
    perplexity_excluding_oov: float
    oov: int
    tokens: int
    documents: int
    bits_per_byte: float
    logprob: float

    def to_json(self) -> dict[str, Json]:
        """Return a JSON object: infinity and NaN become null; ``infinite``: whether the perplexity is infinite."""
        return {
            "perplexity": finite(self.perplexity),
            "perplexity_excluding_oov": finite(self.perplexity_excluding_oov),
            "oov": self.oov,
            "tokens": self.tokens,
            "documents": self.documents,
            "bits_per_byte": finite(self.bits_per_byte),
            "logprob": finite(self.logprob),
            "infinite": math.isinf(self.perplexity),
        }


def measure(model: Scoring, corpus: Corpus) -> Measures:
    """Score a text and count its tokens, its unknown words and its bytes."""
    check_corpus(corpus)
    if not hasattr(model, "logprobs"):
        raise InputError(f"expected a language model of ids, not a {type(model).__name__}: TextLM.measure takes texts")
    if len(corpus.ids) == 0:
        raise InputError("the text is empty: there is nothing to measure")
    total = known = 0.0
    oov = 0
    for part in chunks(corpus):
        logs = model.logprobs(part)
        unknown = part.ids == (-1 if corpus.vocab.unknown is None else corpus.vocab.unknown)
        total += float(logs.sum(dtype=np.float64))
        known += float(logs[~unknown].sum(dtype=np.float64))
        oov += int(np.count_nonzero(unknown))
    if math.isnan(total):
        raise ForewordError(f"{type(model).__name__} gave a token a log-probability that is not a number")
    tokens = len(corpus.ids)
    return Measures(
        perplexity=_exp(-total / tokens),
        perplexity_excluding_oov=_exp(-known / (tokens - oov)),  # never by zero: a document's </s> is known
        oov=oov,
        tokens=tokens,
        documents=len(corpus),
        bits_per_byte=-total / math.log(2) / corpus.text_bytes if corpus.text_bytes else math.nan,
        logprob=total,
    )


def perplexity(model: LanguageModel[S], corpus: Corpus) -> float:
    """Return exp(−mean log-probability) over every id, ``</s>`` included."""
    return measure(model, corpus).perplexity


def surprisal(model: LanguageModel[S], corpus: Corpus) -> Doubles:
    """Return −log₂ p of each token, in bits: float64 (ids,)."""
    return -np.asarray(model.logprobs(corpus), np.float64) / math.log(2) + 0.0  # + 0.0: certain is 0, not −0


def chunks(corpus: Corpus, tokens: int = CHUNK_TOKENS) -> Iterator[Corpus]:
    """Yield whole documents, about ``tokens`` ids at a time, so that memory is bounded."""
    start = 0
    while start < len(corpus):
        reach = corpus.offsets[start] + tokens
        stop = int(corpus.offsets.searchsorted(reach, side="right")) - 1
        stop = min(max(stop, start + 1), len(corpus))
        yield corpus[start:stop]
        start = stop


def finite(number: float) -> float | None:
    """Return the number, or None if JSON cannot hold it."""
    return number if math.isfinite(number) else None


def _exp(exponent: float) -> float:
    """Return exp(exponent), infinity instead of an overflow."""
    try:
        return math.exp(exponent)
    except OverflowError:  # a mean of more than 709 nats a token: infinite for every purpose
        return math.inf
