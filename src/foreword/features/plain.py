"""From a text to its terms and to counts, in the plainest Python: what the fast version must equal.

A term is what a column counts: a word, a few words in a row, a few characters in a row, or the whole text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal, TypeAlias

from foreword.tokens.pieces import OTHER, character_classes

Split: TypeAlias = Literal["words", "space", "punctuation", "characters", "characters in words", "whole"]

WORD = re.compile(r"\b\w\w+\b")
WHITE_RUN = re.compile(r"\s\s+")

FNV_OFFSET, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def terms_of(text: str, split: Split, lowercase: bool, ngrams: tuple[int, int]) -> list[str]:
    """Return the terms of a text, repeated ones repeatedly."""
    if lowercase:
        text = text.lower()
    if split == "characters":
        return ["".join(run) for run in _runs(WHITE_RUN.sub(" ", text), ngrams)]
    if split == "characters in words":
        return [term for word in text.split() for term in _runs_in_word(f" {word} ", ngrams)]
    return [" ".join(run) for run in _runs(_words(text, split), ngrams)]


def bag_of(text: str, split: Split, lowercase: bool, ngrams: tuple[int, int]) -> dict[str, int]:
    """Count each term."""
    return dict(Counter(terms_of(text, split, lowercase, ngrams)))


def hashed(term: str, columns: int) -> tuple[int, int]:
    """Return the column of a term where there is no vocabulary, and the sign of its counts where they are signed.

    The 64-bit hash FNV-1a of the term as UTF-8, its high half mixed into the low one, h ^= h >> 32, taken modulo the
    columns. The sign is that of the hash as a signed number.
    """
    value = FNV_OFFSET
    for byte in term.encode():
        value = (value ^ byte) * FNV_PRIME % 2**64
    return (value ^ value >> 32) % columns, -1 if value >> 63 else 1


def _words(text: str, split: Split) -> list[str]:
    if split == "words":
        return WORD.findall(text)
    if split == "space":
        return text.split()
    if split == "punctuation":
        return [piece for word in text.split() for piece in _without_punctuation(word)]
    return [text] if text else []


def _without_punctuation(word: str) -> Iterator[str]:
    """Yield runs of letters, marks and numbers; every other character alone."""
    classes = character_classes()
    for other, run in groupby(word, lambda character: classes[ord(character)] == OTHER):
        if other:
            yield from run
        else:
            yield "".join(run)


def _runs(units: Sequence[str], ngrams: tuple[int, int]) -> Iterator[Sequence[str]]:
    """Yield all runs of n1 to n2 units."""
    for n in range(ngrams[0], ngrams[1] + 1):
        for start in range(len(units) - n + 1):
            yield units[start : start + n]


def _runs_in_word(padded: str, ngrams: tuple[int, int]) -> Iterator[str]:
    """Yield the runs in a word with its two blanks; a word shorter than n is one run, but once only."""
    for n in range(ngrams[0], ngrams[1] + 1):
        for start in range(max(1, len(padded) - n + 1)):
            yield padded[start : start + n]
        if n >= len(padded):
            break
