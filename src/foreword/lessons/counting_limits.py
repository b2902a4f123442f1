"""Three limits of counting words, each with what was done about it and a number for what that cannot do.

no meaning            bags of words, TF-IDF     the similarity of two different words, whatever they mean
near context only     n-grams                   the n-grams of a new text that the old one never had
features by hand      rules, linear models      the exceptions to a rule of spelling
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from foreword.features.bag import BagOfWords
from foreword.tag.conllu import Tagged


class CountingLimit(NamedTuple):
    """A row of the table. measured: what ``limitation`` says in words."""

    problem: str
    solution: str
    limitation: str
    measured: float


def counting_limits(
    train: Iterable[str],
    test: Iterable[str],
    tagged: Tagged,
    *,
    pair: tuple[str, str] = ("dog", "puppy"),
    order: int = 3,
) -> list[CountingLimit]:
    """Return the table. train, test: documents, for n-grams. tagged: a treebank with universal tags, for the rule that
    words in -ing are verbs.
    """
    return [
        CountingLimit(
            "no meaning", "bag of words, TF-IDF", f"similarity of {pair[0]} and {pair[1]}: 0 for any two words",
            word_similarity(*pair),
        ),
        CountingLimit(
            "near context only", "n-grams", f"share of the {order}-grams of a new text that were never seen",
            share_unseen(train, test, order),
        ),
        CountingLimit(
            "features made by hand", "rules and linear models", "share of the words in -ing that are no verbs",
            share_of_exceptions(tagged, "ing", "VERB"),
        ),
    ]  # fmt: skip


def word_similarity(one: str, other: str) -> float:
    """Return the cosine of two words' bags."""
    rows = BagOfWords().fit([one, other]).transform([one, other]).toarray()
    return float(rows[0] @ rows[1] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[1]))


def share_unseen(train: Iterable[str], test: Iterable[str], order: int) -> float:
    """Return the share of a text's n-grams, words between white space, that another text does not have."""

    def grams(texts: Iterable[str]) -> Iterator[tuple[str, ...]]:
        for text in texts:
            words = text.split()
            yield from zip(*(words[start:] for start in range(order)), strict=False)

    known = set(grams(train))
    return float(np.mean([gram not in known for gram in grams(test)]))


def share_of_exceptions(tagged: Tagged, ending: str, tag: str) -> float:
    """Return the share of the words with an ending that have another tag."""
    pairs = (pair for words, tags in zip(*tagged, strict=True) for pair in zip(words, tags, strict=True))
    return float(np.mean([found != tag for word, found in pairs if word.lower().endswith(ending)]))
