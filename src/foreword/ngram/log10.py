"""N-grams with log10 values, as ARPA files and KenLM's binaries have them, between reading one and writing another.

Natural logs, which models store, would cost a rounding on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from foreword.arrays import Floats
from foreword.ngram.hash_layout import Spelled
from foreword.ngram.model import NgramLM
from foreword.tokens.vocab import Vocab

NEVER = -99.0
"""The log10 of zero in ARPA files."""


@dataclass(frozen=True, slots=True)
class Log10Ngrams:
    """The n-grams of a model with log10 values in float32.

    sizes: how many there are of each order. orders: yields each order; ``<s>`` is the number after the last word.
    """

    vocab: Vocab
    sizes: list[int]
    orders: Callable[[], Iterator[Spelled]]

    def ngrams(self) -> Iterator[Spelled]:
        """Yield each order, as ``NgramLM.ngrams`` does."""
        return self.orders()


def log10_of(model: NgramLM) -> Log10Ngrams:
    """Return the n-grams of a model."""

    def orders() -> Iterator[Spelled]:
        for order, words, logs, weights in model.ngrams():
            yield order, words, _to_log10(logs), _to_log10(weights)

    return Log10Ngrams(model.vocab, model.sizes_, orders)


def _to_log10(logs: Floats) -> Floats:
    """Return log10, in float32, of natural logs; that of zero is -99, as in ARPA files."""
    return np.maximum(logs.astype(np.float64) / math.log(10), NEVER).astype(np.float32)
