"""The unigram model: a language model that remembers nothing.

    p(w_1 … w_N) = Π p(w_n),    p(w) = (count(w) + add) / (N + add · V)

With ``add=0`` the table is maximum likelihood, each word's share of the training text; a word that never occurred has
probability zero, and so has any text that holds it. ``add=1`` is Laplace's rule of succession, anything between
Lidstone's. Because a product does not care about order, every shuffling of a text is equally likely: the language
model that belongs to the bag of words, and the floor that every other model has to beat.

G. J. Lidstone, "Note on the general case of the Bayes-Laplace formula", Transactions of the Faculty of Actuaries 8
(1920). Shapes: V = tokens in the vocabulary, n = texts in a batch.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from foreword.arrays import Doubles, Ids, Logs, Longs
from foreword.checks import check_corpus
from foreword.errors import InputError, SettingError
from foreword.measures.perplexity import MeanScore
from foreword.notebook import ShownInNotebook
from foreword.protocols import Parts
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import LearntVocab, Vocab


class UnigramLM(ShownInNotebook, LearntVocab, MeanScore):
    """A unigram model: one probability per word, whatever came before it.

    add: added to the count of each word.
    counts_: int64 (V,), how often each token occurred in the training text.
    log_probabilities_: float64 (V,), the natural logarithms of the table above; read-only.
    """

    def __init__(self, add: float = 1.0) -> None:
        self.add = add

    def __repr__(self) -> str:
        return f"UnigramLM(add={self.add!r})"

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None) -> Self:
        """Count the words; ``valid`` is not used, for nothing is tuned."""
        check_corpus(corpus)
        if len(corpus.ids) == 0:
            raise InputError("the training text is empty: a unigram model needs at least one document")
        return self._learn(np.bincount(corpus.ids, minlength=len(corpus.vocab)), corpus.vocab)

    def logprobs(self, corpus: Corpus) -> Logs:
        """Return float64 (ids,): the log-probability of each id in the corpus."""
        check_corpus(corpus, self.vocab)
        return self.log_probabilities_[corpus.ids]

    def start(self, n: int = 1) -> Doubles:
        """Return (n, 0): nothing is remembered of n texts."""
        return np.empty((n, 0))

    def next_logprobs(self, state: Doubles) -> Logs:
        """Return (n, V), the same row n times: a read-only view, so that it costs nothing however large n is."""
        vocab = self.vocab
        return np.broadcast_to(self.log_probabilities_, (len(state), len(vocab)))

    def advance(self, state: Doubles, ids: Ids) -> Doubles:
        """Return the same empty states: nothing is remembered."""
        if len(ids) != len(state):
            raise ValueError(f"{len(state)} texts but {len(ids)} next tokens")
        return self.start(len(state))

    def to_parts(self) -> Parts:
        """Return settings, counts and vocabulary for saving."""
        vocab = self.vocab
        return Parts({"add": float(self.add)}, {"counts": self.counts_}, vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a saved model; the table is made of the same counts, so that it is the same to the last bit."""
        add, counts, vocab = parts.settings.get("add"), parts.arrays.get("counts"), parts.vocab
        if vocab is None or counts is None or isinstance(add, bool) or not isinstance(add, int | float):
            raise ValueError("expected the number 'add', the array 'counts' and a vocabulary")
        if counts.dtype != np.int64 or counts.shape != (len(vocab),):
            raise ValueError(f"counts are {counts.dtype} {counts.shape}, not int64 ({len(vocab)},)")
        if counts.min(initial=0) < 0 or not counts.any():
            raise ValueError("a count is negative, or all are zero")
        return cls(float(add))._learn(counts, vocab)

    def _learn(self, counts: Longs, vocab: Vocab) -> Self:
        self.log_probabilities_ = log_shares(counts, self.add)
        self.counts_ = counts
        self._vocab = vocab
        return self


def log_shares(counts: Longs, add: float) -> Doubles:
    """Return (V,): log((count + add) / (N + add · V)), minus infinity where that is zero."""
    if not (math.isfinite(add) and add >= 0):
        raise SettingError(f"add={add} must be zero (maximum likelihood) or a positive number")
    with np.errstate(divide="ignore"):
        table: Doubles = np.log((counts + add) / (counts.sum() + add * len(counts)))
    table.flags.writeable = False
    return table
