"""Kernels of the hidden Markov tagger: the state is a pair of tags, and each word has only a few possible tags.

A label is a tag, plus the number of tags if its word is capitalised; twice the number of tags is the outside label.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreword.arrays import Doubles, Ints, Longs
from foreword.native.jit import inlined, kernel


class TagLexicon(NamedTuple):
    """The possible tags of each entry, a word or an ending.

    rows: int64 (entries + 1,); entry e has the range ``rows[e]`` to ``rows[e + 1]`` of the other two.
    tags: int32. logs: float64, log p(tag | entry) − log p(tag), which is log p(entry | tag) but for a constant.
    """

    rows: Longs
    tags: Ints
    logs: Doubles


class Lattice(NamedTuple):
    """Workspace for one sentence, two positions before it and one after it, reused for every sentence.

    widths: int64 (positions,), the number of choices. labels: int64 and logs: float64 (positions, tags), the choices.
    pairs: float64 (positions, tags, tags), the score of each choice with each of the position before.
    """

    widths: Longs
    labels: Longs
    logs: Doubles
    pairs: Doubles


def lattice(longest: int, kinds: int) -> Lattice:
    """Allocate the workspace."""
    positions = longest + 3
    return Lattice(
        np.empty(positions, np.int64),
        np.empty((positions, kinds), np.int64),
        np.empty((positions, kinds)),
        np.empty((positions, kinds, kinds)),
    )


@inlined
def _lay_out(codes: Longs, first: int, tokens: int, lexicon: TagLexicon, kinds: int, work: Lattice) -> None:
    """Write the choices of one sentence to the work."""
    for at in range(tokens + 3):
        work.widths[at] = 1
        work.labels[at, 0] = 2 * kinds
        work.logs[at, 0] = 0
    for token in range(tokens):
        code = codes[first + token]
        row = lexicon.rows[code >> 1]
        width = lexicon.rows[(code >> 1) + 1] - row
        work.widths[token + 2] = width
        for choice in range(width):
            work.labels[token + 2, choice] = lexicon.tags[row + choice] + kinds * (code & 1)
            work.logs[token + 2, choice] = lexicon.logs[row + choice]


@kernel
def likeliest_tags(
    codes: Longs,
    offsets: Longs,
    lexicon: TagLexicon,
    moves: Doubles,
    kinds: int,
    work: Lattice,
    tags: Ints,
) -> None:
    """Fill ``tags`` (N,) for sentences of codes; ``moves`` (labels, labels, labels) is log p(third | first, second)."""
    for sentence in range(len(offsets) - 1):
        first, tokens = offsets[sentence], offsets[sentence + 1] - offsets[sentence]
        _lay_out(codes, first, tokens, lexicon, kinds, work)
        work.pairs[1, 0, 0] = 0
        for at in range(2, tokens + 3):
            for second in range(work.widths[at - 1]):
                for third in range(work.widths[at]):
                    origin = _best_origin(work, moves, at, second, third)
                    score = _through(work, moves, at, origin, second, third)
                    work.pairs[at, second, third] = score + work.logs[at, third]
        third, second = np.int64(0), np.int64(0)
        for choice in range(work.widths[tokens + 1]):
            if work.pairs[tokens + 2, choice, 0] > work.pairs[tokens + 2, second, 0]:
                second = choice
        for at in range(tokens + 2, 2, -1):
            tags[first + at - 3] = work.labels[at - 1, second] % kinds
            second, third = _best_origin(work, moves, at, second, third), second


@inlined
def _through(work: Lattice, moves: Doubles, at: int, origin: int, second: int, third: int) -> float:
    """Return the score of the choice ``third`` at ``at``, reached from ``origin`` through ``second``."""
    labels = work.labels
    move = moves[labels[at - 2, origin], labels[at - 1, second], labels[at, third]]
    return work.pairs[at - 1, origin, second] + move


@inlined
def _best_origin(work: Lattice, moves: Doubles, at: int, second: int, third: int) -> int:
    best, highest = 0, -np.inf
    for origin in range(work.widths[at - 2]):
        score = _through(work, moves, at, origin, second, third)
        if score > highest:
            best, highest = origin, score
    return best


@kernel
def tag_posteriors(
    codes: Longs,
    offsets: Longs,
    lexicon: TagLexicon,
    chances: Doubles,
    kinds: int,
    work: Lattice,
    later: Doubles,
    earlier: Doubles,
    posteriors: Doubles,
) -> None:
    """Add p(tag | sentence) to ``posteriors`` (N, kinds), which come in as zeros. ``chances`` are p(third | first,
    second); ``later`` and ``earlier``, (kinds, kinds), are workspace of the backward pass.
    """
    for sentence in range(len(offsets) - 1):
        first, tokens = offsets[sentence], offsets[sentence + 1] - offsets[sentence]
        _lay_out(codes, first, tokens, lexicon, kinds, work)
        work.pairs[1, 0, 0] = 1
        for at in range(2, tokens + 3):
            _forward(work, chances, at)
        later[0 : work.widths[tokens + 1], 0] = 1
        for at in range(tokens + 2, 2, -1):
            _backward(work, chances, at, later, earlier)
            later, earlier = earlier, later
            _gather_posterior(work, at - 1, later, kinds, posteriors, first + at - 3)


@inlined
def _forward(work: Lattice, chances: Doubles, at: int) -> None:
    """Compute pairs[at, j, k] = p(word | k) Σ_i pairs[at − 1, i, j] p(k | i, j), scaled to sum to one."""
    labels, total = work.labels, 0.0
    for second in range(work.widths[at - 1]):
        for third in range(work.widths[at]):
            chance = 0.0
            for origin in range(work.widths[at - 2]):
                move = chances[labels[at - 2, origin], labels[at - 1, second], labels[at, third]]
                chance += work.pairs[at - 1, origin, second] * move
            work.pairs[at, second, third] = chance * np.exp(work.logs[at, third])
            total += work.pairs[at, second, third]
    if total == 0:  # a model with probabilities of zero; Numba would refuse to divide
        return
    for second in range(work.widths[at - 1]):
        for third in range(work.widths[at]):
            work.pairs[at, second, third] /= total


@inlined
def _backward(work: Lattice, chances: Doubles, at: int, later: Doubles, earlier: Doubles) -> None:
    """Compute earlier[i, j] = Σ_k p(k | i, j) p(word | k) later[j, k], scaled so that its largest is one."""
    labels, largest = work.labels, 0.0
    for origin in range(work.widths[at - 2]):
        for second in range(work.widths[at - 1]):
            chance = 0.0
            for third in range(work.widths[at]):
                move = chances[labels[at - 2, origin], labels[at - 1, second], labels[at, third]]
                chance += move * np.exp(work.logs[at, third]) * later[second, third]
            earlier[origin, second] = chance
            largest = max(largest, chance)
    if largest == 0:
        return
    for origin in range(work.widths[at - 2]):
        for second in range(work.widths[at - 1]):
            earlier[origin, second] /= largest


@inlined
def _gather_posterior(work: Lattice, at: int, later: Doubles, kinds: int, posteriors: Doubles, token: int) -> None:
    """Add the posterior of one word's tags."""
    total = 0.0
    for before in range(work.widths[at - 1]):
        for choice in range(work.widths[at]):
            total += work.pairs[at, before, choice] * later[before, choice]
    if total == 0:
        return
    for before in range(work.widths[at - 1]):
        for choice in range(work.widths[at]):
            share = work.pairs[at, before, choice] * later[before, choice] / total
            posteriors[token, work.labels[at, choice] % kinds] += share
