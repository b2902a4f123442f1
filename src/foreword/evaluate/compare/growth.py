"""How fast a table of n-grams grows with n, and how little of it any text fills.

A table of p(x1 … xN) over K words, factored by the chain rule, has for each of the K^(n-1) contexts of its n-th word
K − 1 numbers to choose, for the last follows from the rest:

    step n:  (K − 1) K^(n−1)        together:  Σ (K − 1) K^(n−1) = K^N − 1

An n-gram model shares one table over all positions and keeps only what was seen, which grows far slower, but so does
what it knows of a new text: ``ngram_growth`` counts both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foreword.arrays import Ids, Longs
from foreword.errors import SettingError
from foreword.ngram.counts import count_ngrams
from foreword.ngram.model import NgramLM
from foreword.protocols import Json
from foreword.tokens.corpus import Corpus

ORDERS = (1, 2, 3, 4, 5, 6)


def step_parameters(vocabulary: int, step: int) -> int:
    """How many numbers the table of the ``step``-th word's probability, given all words before it, leaves free."""
    if vocabulary < 1 or step < 1:
        raise SettingError(f"vocabulary={vocabulary}, step={step}: expected positive numbers")
    contexts: int = vocabulary ** (step - 1)
    return (vocabulary - 1) * contexts


def free_parameters(vocabulary: int, length: int) -> int:
    """The same for whole texts of ``length`` words: the sum over all steps, which is vocabulary ** length − 1."""
    return sum(step_parameters(vocabulary, step) for step in range(1, length + 1))


@dataclass(frozen=True, slots=True)
class Growth:
    """The n-grams of one order.

    possible: how many there could be, the vocabulary to the power of the order.
    seen: how many different ones the training text has; once: how many of those it has a single time.
    unseen_share: of the n-grams of the test text, one for each place, those that the training text does not have; NaN
    where the test text has no n-gram of that order.
    """

    order: int
    possible: int
    seen: int
    once: int
    unseen_share: float

    def to_json(self) -> dict[str, Json]:
        return {
            "order": self.order,
            "possible": self.possible,
            "seen": self.seen,
            "once": self.once,
            "unseen_share": None if math.isnan(self.unseen_share) else self.unseen_share,
        }


def ngram_growth(train: Corpus, test: Corpus, orders: Sequence[int] = ORDERS) -> list[Growth]:
    """One row for each order. ``</s>`` counts as a word; ``<s>`` is a context, as in every n-gram model here."""
    highest = max(orders)
    unigrams, counted = count_ngrams(train, highest)
    counts: list[Ids] = [unigrams[unigrams > 0], *(order.counts for order in counted)]
    known = _longest_known(train, test, highest)
    longest = _longest_possible(test)
    rows = []
    for order in orders:
        there = longest >= order
        rows.append(
            Growth(
                order,
                possible=len(train.vocab) ** order,
                seen=len(counts[order - 1]),
                once=int(np.count_nonzero(counts[order - 1] == 1)),
                unseen_share=float((known[there] < order).mean()) if there.any() else float("nan"),
            )
        )
    return rows


def _longest_known(train: Corpus, test: Corpus, highest: int) -> Longs:
    """For each id of the test text, how long the longest n-gram is that ends there and that training has: 0 if none."""
    _, matched = NgramLM(highest, "maximum-likelihood").fit(train).full_scores(test)
    new = np.bincount(train.ids, minlength=len(train.vocab))[test.ids] == 0
    return np.where(new, 0, matched)


def _longest_possible(test: Corpus) -> Longs:
    """For each id, how many words stand from the beginning of its document to it, ``<s>`` and itself included."""
    return np.arange(len(test.ids)) - np.repeat(test.offsets[:-1], np.diff(test.offsets)) + 2
