"""What every tagger needs: its arguments checked, and how many tags are right, known and unknown words apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

import numpy as np

from foreword.arrays import Bools
from foreword.errors import InputError
from foreword.protocols import Sentences, Tags


class Accuracies(NamedTuple):
    """Shares of tags that are right: of all words, of those seen in training, of those not; NaN where there are none.

    unknown_share: how many words were not seen in training.
    """

    all: float
    known: float
    unknown: float
    unknown_share: float


def accuracies_of(predicted: Tags, sentences: Sentences, tags: Tags, knows: Callable[[str], bool]) -> Accuracies:
    pairs = zip(chain.from_iterable(predicted), chain.from_iterable(tags), strict=True)
    right = np.array([ours == theirs for ours, theirs in pairs], bool)
    if len(right) == 0:
        raise InputError("the text is empty: there is nothing to score")
    known = np.array([knows(word) for word in chain.from_iterable(sentences)], bool)
    return Accuracies(_mean(right), _mean(right[known]), _mean(right[~known]), _mean(~known))


def check_pairs(sentences: Sentences, tags: Tags) -> None:
    """Every sentence needs as many tags as it has words."""
    if len(sentences) != len(tags):
        raise InputError(f"{len(sentences)} sentences but tags of {len(tags)}")
    for place, (words, names) in enumerate(zip(sentences, tags, strict=True)):
        if len(words) != len(names):
            raise InputError(f"sentence {place} has {len(words)} words but {len(names)} tags")


def _mean(right: Bools) -> float:
    return float(right.mean()) if len(right) else math.nan
