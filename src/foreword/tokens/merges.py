"""Learning merges from counted words: the plain way, and the fast way beside it.

    merges = []
    repeat:  (a, b) = the most frequent adjacent pair; on a tie the one with the smaller ids
             merges.append((a, b)); in every word replace a b by ab
    until the vocabulary is full

Words are sequences of first symbols (bytes or characters); pairs never reach over a word's end. Gage (1994) had the
idea for compression, Sennrich, Haddow and Birch (2016) for words: https://aclanthology.org/P16-1162.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from foreword.arrays import Bytes, Ints, Longs, ULongs
from foreword.protocols import Meter
from foreword.tokens.kernels_bpe import initial_pairs, learn_merges
from foreword.tokens.strings import add_strings, empty_rows


@dataclass(frozen=True, slots=True)
class Merge:
    """One step of the training: the two ids, the id of the token they make, and how often the pair stood there."""

    left: int
    right: int
    merged: int
    count: int


def plain_merges(
    words: Sequence[Sequence[int]],
    counts: Sequence[int],
    spellings: list[bytes],
    size: int,
    *,
    least: int = 1,
    reserved: int = 0,
) -> Iterator[Merge]:
    """Learn merges until there are ``size`` tokens, as the docstring above says it. Slow, and easy to check.

    ``spellings`` holds what each id stands for; the new tokens are added to it. Pairs seen less than ``least`` times
    are left alone, and so are pairs that spell one of the first ``reserved`` tokens, which no text may reach.
    """
    held = [list(word) for word in words]
    while len(spellings) < size:
        pairs: Counter[tuple[int, int]] = Counter()
        for word, count in zip(held, counts, strict=True):
            for pair in itertools.pairwise(word):
                if spellings[pair[0]] + spellings[pair[1]] not in spellings[:reserved]:
                    pairs[pair] += count
        if not pairs:
            return
        (left, right), count = min(pairs.items(), key=lambda item: (-item[1], item[0]))
        if count < least:
            return
        spelling = spellings[left] + spellings[right]
        if spelling not in spellings:
            spellings.append(spelling)
        merged = spellings.index(spelling)
        held = [_replace(word, left, right, merged) for word in held]
        yield Merge(left, right, merged, count)


def _replace(word: list[int], left: int, right: int, merged: int) -> list[int]:
    rewritten: list[int] = []
    place = 0
    while place < len(word):
        if word[place : place + 2] == [left, right]:
            rewritten.append(merged)
            place += 2
        else:
            rewritten.append(word[place])
            place += 1
    return rewritten


MERGES_A_CALL = 500
"""Merges between two looks at the clock, the meter and Ctrl-C."""


def fast_merges(
    symbols: Ints,
    begins: Longs,
    counts: Longs,
    spellings: list[bytes],
    size: int,
    *,
    least: int = 1,
    reserved: int = 0,
    meter: Meter | None = None,
) -> Iterator[Merge]:
    """The same merges as ``plain_merges``, thousands of times faster.

    symbols: int32 (symbols,), all words one after another; they are rewritten in place.
    begins: int64 (words + 1,), where each word starts; counts: int64 (words,).
    """
    lengths = np.diff(begins).astype(np.int32)
    least = max(1, least)
    pairs, heap, entries, sizes, pool = initial_pairs(symbols, begins, lengths, counts)
    slots, arena, starts = _spelling_table(spellings, size)
    tokens = len(spellings)
    found = np.empty((MERGES_A_CALL, 4), np.int64)
    made = 0
    while tokens < size and made >= 0:
        pairs, heap, entries, pool, arena, tokens, made = learn_merges(
            size, MERGES_A_CALL, least, reserved, symbols, begins, lengths, counts,
            pairs, heap, entries, sizes, pool, slots, arena, starts, tokens, found,
        )  # fmt: skip
        for left, right, merged, count in found[: made if made >= 0 else -1 - made].tolist():
            if merged == len(spellings):
                spellings.append(arena[starts[merged] : starts[merged + 1]].tobytes())
            yield Merge(left, right, merged, count)
        if meter is not None:
            meter("merging", tokens, size)


def _spelling_table(spellings: list[bytes], size: int) -> tuple[ULongs, Bytes, Longs]:
    """A string table whose ids are the token ids, with rows for ``size`` tokens."""
    rows = 1 << (2 * max(size, len(spellings)) + 2).bit_length()
    slots = empty_rows(rows)
    arena = np.empty(sum(map(len, spellings)) + 16 * size, np.uint8)
    starts = np.zeros(max(size, len(spellings)) + 2, np.int64)
    add_strings(spellings, slots, arena, starts, 0)
    return slots, arena, starts
