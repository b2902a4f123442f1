"""The recursions of a hidden Markov tagger: the state is a pair of tags, and a word has only the few that it can have.

A label is a tag, plus the number of tags if its word is capitalised; twice the number of tags stands beyond the ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreword.arrays import Doubles, Ints, Longs
from foreword.native.jit import inlined, kernel


class Lexicon(NamedTuple):
    """The tags that each entry, a word or an ending, can have.

    rows: int64 (entries + 1,); entry e has the places ``rows[e]`` to ``rows[e + 1]`` of the other two.
    tags: int32. logs: float64, log p(tag | entry) − log p(tag), which is log p(entry | tag) but for a constant.
    """

    rows: Longs
    tags: Ints
    logs: Doubles


def plain_tags(codes: Longs, lexicon: Lexicon, moves: Doubles, kinds: int) -> list[int]:
    """The likeliest tags of one sentence. A code is twice the entry's number, and one more if the word is capitalised;
    a label is a tag, plus ``kinds`` (the number of tags) if capitalised; ``2 · kinds`` stands beyond the ends.
    """
    outside = 2 * kinds
    paths: dict[tuple[int, int], tuple[float, list[int]]] = {(outside, outside): (0.0, [])}
    for code in [*codes.tolist(), None]:
        if code is None:
            choices = [(outside, 0.0)]
        else:
            row = slice(lexicon.rows[code >> 1], lexicon.rows[(code >> 1) + 1])
            labels = lexicon.tags[row] + kinds * (code & 1)
            choices = list(zip(labels.tolist(), lexicon.logs[row].tolist(), strict=True))
        longer: dict[tuple[int, int], tuple[float, list[int]]] = {}
        for (first, second), (score, path) in paths.items():
            for third, log in choices:
                better = score + moves[first, second, third] + log
                if (second, third) not in longer or better > longer[second, third][0]:
                    longer[second, third] = better, [*path, third % kinds]
        paths = longer
    return max(paths.values())[1][:-1]


class Lattice(NamedTuple):
    """Room for one sentence, two places before it and one behind it, reused for every sentence.

    widths: int64 (places,), how many choices there are. labels: int64 and logs: float64 (places, tags), what they are.
    pairs: float64 (places, tags, tags), the score of each choice together with each of the place before.
    """

    widths: Longs
    labels: Longs
    logs: Doubles
    pairs: Doubles


def lattice(longest: int, kinds: int) -> Lattice:
    places = longest + 3
    return Lattice(
        np.empty(places, np.int64),
        np.empty((places, kinds), np.int64),
        np.empty((places, kinds)),
        np.empty((places, kinds, kinds)),
    )


@inlined
def _lay_out(codes: Longs, first: int, tokens: int, lexicon: Lexicon, kinds: int, room: Lattice) -> None:
    for place in range(tokens + 3):
        room.widths[place] = 1
        room.labels[place, 0] = 2 * kinds
        room.logs[place, 0] = 0
    for token in range(tokens):
        code = codes[first + token]
        row = lexicon.rows[code >> 1]
        width = lexicon.rows[(code >> 1) + 1] - row
        room.widths[token + 2] = width
        for choice in range(width):
            room.labels[token + 2, choice] = lexicon.tags[row + choice] + kinds * (code & 1)
            room.logs[token + 2, choice] = lexicon.logs[row + choice]


@kernel
def likeliest_tags(
    codes: Longs,
    offsets: Longs,
    lexicon: Lexicon,
    moves: Doubles,
    kinds: int,
    room: Lattice,
    tags: Ints,
) -> None:
    """Fill ``tags`` (N,) for sentences of codes; ``moves`` (labels, labels, labels) is log p(third | first, second)."""
    for sentence in range(len(offsets) - 1):
        first, tokens = offsets[sentence], offsets[sentence + 1] - offsets[sentence]
        _lay_out(codes, first, tokens, lexicon, kinds, room)
        room.pairs[1, 0, 0] = 0
        for place in range(2, tokens + 3):
            for second in range(room.widths[place - 1]):
                for third in range(room.widths[place]):
                    origin = _best_origin(room, moves, place, second, third)
                    score = _through(room, moves, place, origin, second, third)
                    room.pairs[place, second, third] = score + room.logs[place, third]
        third, second = 0, 0
        for choice in range(room.widths[tokens + 1]):
            if room.pairs[tokens + 2, choice, 0] > room.pairs[tokens + 2, second, 0]:
                second = choice
        for place in range(tokens + 2, 2, -1):
            tags[first + place - 3] = room.labels[place - 1, second] % kinds
            second, third = _best_origin(room, moves, place, second, third), second


@inlined
def _through(room: Lattice, moves: Doubles, place: int, origin: int, second: int, third: int) -> float:
    """The score of the choice ``third`` at ``place``, reached from ``origin`` through ``second``."""
    labels = room.labels
    move = moves[labels[place - 2, origin], labels[place - 1, second], labels[place, third]]
    return room.pairs[place - 1, origin, second] + move


@inlined
def _best_origin(room: Lattice, moves: Doubles, place: int, second: int, third: int) -> int:
    best, highest = 0, _through(room, moves, place, 0, second, third)
    for origin in range(1, room.widths[place - 2]):
        score = _through(room, moves, place, origin, second, third)
        if score > highest:
            best, highest = origin, score
    return best


@kernel
def tag_posteriors(
    codes: Longs,
    offsets: Longs,
    lexicon: Lexicon,
    chances: Doubles,
    kinds: int,
    room: Lattice,
    later: Doubles,
    earlier: Doubles,
    posteriors: Doubles,
) -> None:
    """Add p(tag | sentence) to ``posteriors`` (N, kinds), which come in as zeros. ``chances`` are p(third | first,
    second); ``later`` and ``earlier``, (kinds, kinds), are room for two steps of the backward pass.
    """
    for sentence in range(len(offsets) - 1):
        first, tokens = offsets[sentence], offsets[sentence + 1] - offsets[sentence]
        _lay_out(codes, first, tokens, lexicon, kinds, room)
        room.pairs[1, 0, 0] = 1
        for place in range(2, tokens + 3):
            _forward(room, chances, place)
        later[0 : room.widths[tokens + 1], 0] = 1
        for place in range(tokens + 2, 2, -1):
            _backward(room, chances, place, later, earlier)
            later, earlier = earlier, later
            _gather_posterior(room, place - 1, later, kinds, posteriors, first + place - 3)


@inlined
def _forward(room: Lattice, chances: Doubles, place: int) -> None:
    """pairs[place, j, k] = p(word | k) Σ_i pairs[place − 1, i, j] p(k | i, j), scaled to sum to one."""
    labels, total = room.labels, 0.0
    for second in range(room.widths[place - 1]):
        for third in range(room.widths[place]):
            chance = 0.0
            for origin in range(room.widths[place - 2]):
                move = chances[labels[place - 2, origin], labels[place - 1, second], labels[place, third]]
                chance += room.pairs[place - 1, origin, second] * move
            room.pairs[place, second, third] = chance * np.exp(room.logs[place, third])
            total += room.pairs[place, second, third]
    if total == 0:  # a model with chances of zero; Numba would refuse to divide
        return
    for second in range(room.widths[place - 1]):
        for third in range(room.widths[place]):
            room.pairs[place, second, third] /= total


@inlined
def _backward(room: Lattice, chances: Doubles, place: int, later: Doubles, earlier: Doubles) -> None:
    """earlier[i, j] = Σ_k p(k | i, j) p(word | k) later[j, k], scaled so that its largest is one."""
    labels, largest = room.labels, 0.0
    for origin in range(room.widths[place - 2]):
        for second in range(room.widths[place - 1]):
            chance = 0.0
            for third in range(room.widths[place]):
                move = chances[labels[place - 2, origin], labels[place - 1, second], labels[place, third]]
                chance += move * np.exp(room.logs[place, third]) * later[second, third]
            earlier[origin, second] = chance
            largest = max(largest, chance)
    if largest == 0:
        return
    for origin in range(room.widths[place - 2]):
        for second in range(room.widths[place - 1]):
            earlier[origin, second] /= largest


@inlined
def _gather_posterior(room: Lattice, place: int, later: Doubles, kinds: int, posteriors: Doubles, token: int) -> None:
    total = 0.0
    for before in range(room.widths[place - 1]):
        for choice in range(room.widths[place]):
            total += room.pairs[place, before, choice] * later[before, choice]
    if total == 0:
        return
    for before in range(room.widths[place - 1]):
        for choice in range(room.widths[place]):
            share = room.pairs[place, before, choice] * later[before, choice] / total
            posteriors[token, room.labels[place, choice] % kinds] += share
