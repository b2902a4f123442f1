"""What every tagger shares: arguments checked, accuracy of known and unknown words, and strings stored as arrays.

Shapes: N words of all sentences, joined.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from foreword.arrays import Array, Bools, Bytes, Ints, Longs
from foreword.checks import check_sentences
from foreword.errors import InputError, NotFittedError, SettingError
from foreword.notebook import ShownInNotebook
from foreword.protocols import Sentences, Tags
from foreword.storage import joined
from foreword.storage.joined import check_joined, decoded, encoded
from foreword.tag.conllu import TAG_COLUMNS
from foreword.tag.running_text import Splitter


class Accuracies(NamedTuple):
    """Shares of tags that are right: of all words, of those seen in training, of those not; NaN where there are none.

    unknown_share: share of the words that were not seen in training.
    """

    all: float
    known: float
    unknown: float
    unknown_share: float


class WordTagger(ShownInNotebook, ABC):
    """The base of all taggers: ``predict`` and ``knows`` are theirs, what is measured by them is here."""

    _tags: list[str] | None = None

    @property
    def tags_(self) -> list[str]:
        """The tags, sorted."""
        if self._tags is None:
            raise NotFittedError(self, "sentences, tags")
        return self._tags

    @abstractmethod
    def predict(self, sentences: Sentences) -> list[list[str]]:
        """Return the tags of each sentence's words."""

    @abstractmethod
    def known_words(self) -> Collection[str]:
        """Return the words seen in training."""

    def knows(self, word: str) -> bool:
        """Return whether the word, in this spelling, was seen in training."""
        return word in self.known_words()

    def split(self, text: str) -> list[list[str]]:
        """Return the sentences of running text, as words in the convention of the treebank: ``running_text.py``."""
        return list(Splitter.of(self.known_words()).sentences(text))

    def score(self, sentences: Sentences, tags: Tags) -> float:
        """Return the share of tags that are right."""
        return self.accuracies(sentences, tags).all

    def accuracies(self, sentences: Sentences, tags: Tags) -> Accuracies:
        """Return the shares of tags that are right, for known and unknown words separately."""
        check_pairs(sentences, tags)
        return accuracies_of(self.predict(sentences), sentences, tags, self.knows)


def accuracies_of(predicted: Tags, sentences: Sentences, tags: Tags, knows: Callable[[str], bool]) -> Accuracies:
    """Compare predicted with true tags; knows: whether a word was seen in training."""
    pairs = zip(chain.from_iterable(predicted), chain.from_iterable(tags), strict=True)
    right = np.array([ours == theirs for ours, theirs in pairs], bool)
    if len(right) == 0:
        raise InputError("the text is empty: there is nothing to score")
    known = np.array([knows(word) for word in chain.from_iterable(sentences)], bool)
    return Accuracies(_mean(right), _mean(right[known]), _mean(right[~known]), _mean(~known))


def _mean(right: Bools) -> float:
    return float(right.mean()) if len(right) else math.nan


def check_column(column: object) -> None:
    """Raise a SettingError unless ``column`` names a column of CoNLL-U, or gives the number of one of CoNLL."""
    is_number = isinstance(column, str) and column.removeprefix("-").isdecimal() and int(column) != 0
    if not is_number and column not in TAG_COLUMNS:
        raise SettingError(
            f"column={column!r}: expected {', '.join(TAG_COLUMNS)} of CoNLL-U, or the number of a CoNLL column, such "
            "as '1' or '-1'"
        )


def check_pairs(sentences: Sentences, tags: Tags) -> None:
    """Raise unless every sentence has one tag per word."""
    check_sentences(sentences)
    check_sentences(tags)
    if len(sentences) != len(tags):
        raise InputError(f"{len(sentences)} sentences but tags of {len(tags)}")
    for number, (words, names) in enumerate(zip(sentences, tags, strict=True)):
        if len(words) != len(names):
            raise InputError(f"sentence {number} has {len(words)} words but {len(names)} tags")


def numbered_tags(sentences: Sentences, tags: Tags) -> tuple[list[str], Ints]:
    """Return the distinct tags of a training text, sorted, and the number of each word's tag (N,)."""
    check_pairs(sentences, tags)
    names = list(chain.from_iterable(tags))
    if not names:
        raise InputError("the training text is empty: a tagger needs at least one sentence with its tags")
    found = sorted(set(names))
    number = {name: tag for tag, name in enumerate(found)}
    return found, np.array([number[name] for name in names], np.int32)


def offsets_of(sentences: Sentences) -> Longs:
    """Return where each sentence begins among the joined words, and their number: (sentences + 1,)."""
    check_sentences(sentences)
    return joined.offsets_of(sentences)


def by_sentence(rows: Any, offsets: Longs) -> list[Any]:
    """Split one row per word into one list or array per sentence."""
    return [rows[start:stop] for start, stop in pairwise(offsets.tolist())]


# Saved taggers


def check_tag_names(tags: Any) -> None:
    """Raise unless ``tags`` is a list of names."""
    if not (isinstance(tags, list) and tags and all(isinstance(tag, str) for tag in tags)):
        raise ValueError("'tags' must be a list of names")


def packed(strings: Iterable[str]) -> tuple[Bytes, Longs]:
    """Return strings as two arrays: their bytes joined, and where each begins."""
    return encoded(strings, "surrogatepass")


def unpacked(data: Array, offsets: Array, name: str) -> list[str]:
    """Return the strings that ``packed`` stored; name: of the arrays, for messages."""
    check_joined(data, offsets, name)
    return decoded(data, offsets, "surrogatepass")
