"""Between the tags of a file and those that a tagger computes with.

A tagger does better with more letters: a name of one word, S-PER, and the last of a longer one, E-PER, look different.
So tags of ``bio`` and ``iob1`` are learnt as ``bioes`` and given back as they were. Every kind of span gets all its
letters, seen or not, and there is always O, so that whatever the length of a sentence some path is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from foreword.arrays import Doubles, Longs
from foreword.errors import SettingError
from foreword.protocols import Tags
from foreword.tag.schemes import (
    OUTSIDE,
    Allowed,
    allowed_moves,
    convert_all,
    converted,
    letters_of,
    parsed,
    read_spans,
    tags_of,
    whole_spans,
)


class Scheme:
    """How tags are written outside, and inside; None for tags that are no spans, which are left as they are.

    outer, inner: all tags, sorted. allowed: what may follow what inside, None where everything may.
    """

    def __init__(self, outside: str | None, inside: str, tags: Iterable[str]) -> None:
        self.outside, self.inside = outside, inside
        self.allowed: Allowed | None = None
        if outside is None:
            self.outer = self.inner = sorted(set(tags))
            return
        kinds = sorted({parsed(tag)[1] for tag in tags} - {""})
        self.outer, self.inner = (_all_tags(scheme, kinds) for scheme in (outside, inside))
        self.allowed = allowed_moves(self.inner, inside)

    @classmethod
    def learnt(cls, outside: str | None, inside: str, tags: Tags) -> Scheme:
        return cls(outside, inside, chain.from_iterable(tags))

    def numbers(self, tags: Tags) -> list[Longs]:
        """Tags of a file as places among those inside; what is not well formed is refused, by its sentence.

        But in IOB1 a B- may stand where an I- would do, for nothing else can be meant: the names of CoNLL-2003 have
        such a place.
        """
        number = {tag: place for place, tag in enumerate(self.inner)}
        if self.outside == "iob1":
            tags = [tags_of(whole_spans(sentence, "iob1"), len(sentence), self.inside) for sentence in tags]
        elif self.outside is not None:
            tags = convert_all(tags, self.outside, self.inside)
        return [np.array([number[tag] for tag in sentence], np.int64) for sentence in tags]

    def names(self, numbers: Sequence[int]) -> list[str]:
        """The tags of a sentence as a file has them."""
        if self.outside is None or self.outside == self.inside:
            return [self.inner[number] for number in numbers]
        if self.outside == "bio":
            return [_as_bio(self.inner[number]) for number in numbers]
        return converted([self.inner[number] for number in numbers], self.inside, self.outside)

    def gathering(self) -> Doubles | None:
        """(inner, outer) ones where a tag inside is one outside, for probabilities to be summed; None: they are the
        same. In IOB1 B- is written only behind a span of its kind, so there one tag tells nothing.
        """
        if self.outside is None or self.outside == self.inside:
            return None
        if self.outside != "bio":
            raise SettingError(
                f"scheme={self.outside!r}: how a tag is written depends on the one before it, so that it has no "
                "probability of its own; scheme='bio' has"
            )
        place = {tag: number for number, tag in enumerate(self.outer)}
        table = np.zeros((len(self.inner), len(self.outer)))
        for number, tag in enumerate(self.inner):
            table[number, place[_as_bio(tag)]] = 1
        return table


def span_f1(predicted: Tags, gold: Tags) -> float:
    """Of all spans together, for a training to choose by; ``evaluate/tagging.py`` tells more."""
    right = found = 0
    for ours, theirs in zip(predicted, gold, strict=True):
        said, true = set(read_spans(ours)), set(read_spans(theirs))
        right, found = right + len(said & true), found + len(said) + len(true)
    return 2 * right / found if found else 0.0


def _all_tags(scheme: str, kinds: Sequence[str]) -> list[str]:
    letters = [letter for letter in letters_of(scheme) if letter != OUTSIDE]
    return sorted([OUTSIDE, *(f"{letter}-{kind}" for letter in letters for kind in kinds)])


def _as_bio(tag: str) -> str:
    """From BIOES."""
    return {"S": "B", "E": "I"}.get(tag[0], tag[0]) + tag[1:]
