"""The chain behind ``FeatureTagger``: features found, scores summed, the best path, posteriors, and a step of learning.

    score(tags | words) = Σ_n ( moves[t_(n-1), t_n] + Σ_f weights[f, t_n] )      f over the features of word n

and p(tags | words) is the exponential of that over its sum for all sequences. The plain functions come first, and the
kernels after them do the same for many sentences. Posteriors come by the forward-backward algorithm on probabilities
that are scaled at every word, so nothing underflows.

Shapes: T = tags, M = templates, F = features, N = words, A = attributes; row T of ``moves`` is for the first word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreword.arrays import Doubles, Floats, Ints, Longs, ULongs
from foreword.native.hashing import FIRST, HALF, SECOND, mix, search_from
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch

BEFORE, AFTER, ABSENT = 0, 1, -1
"""The values of every attribute beyond the ends of a sentence, and of one that a word does not have."""
FIRST_VALUE = 2

PARTS = 3
"""Attributes in a feature, at most."""

STEADY = 0.1
"""Added to the sum of squares that divides a feature's rate, so that the first step is not a leap."""

ABSENT_KEY = np.uint64(0)
_ODD = np.uint64(1)


class Sight(NamedTuple):
    """How words become features.

    templates: int64 (M, 2 · PARTS), pairs of a distance and an attribute, -1 where there is none.
    known, new: int32 (·, A), the attributes of known words and, numbered on after them, of others.
    slots: uint64, a power of two of them, more than half free: keys of features by open addressing, 0 where free.
    rows: int32, as many: the numbers of the features.
    """

    templates: Longs
    known: Ints
    new: Ints
    slots: ULongs
    rows: Ints


class Model(NamedTuple):
    """weights: float32 (F, T). moves: float64 (T + 1, T)."""

    weights: Floats
    moves: Doubles


class Room(NamedTuple):
    """For the longest sentence, L words. features: int32 (L, M). The rest float64: scores, forward, backward (L, T);
    moves, their exponentials, and expected, (T + 1, T); gradient (T,).
    """

    features: Ints
    scores: Doubles
    forward: Doubles
    backward: Doubles
    moves: Doubles
    expected: Doubles
    gradient: Doubles


def room_for(longest: int, templates: int, tags: int) -> Room:
    return Room(
        np.empty((longest, templates), np.int32),
        *(np.empty((longest, tags)) for _ in range(3)),
        *(np.empty((tags + 1, tags)) for _ in range(2)),
        np.empty(tags),
    )


# The plain road, one sentence at a time


def plain_scores(features: Ints, weights: Floats) -> Doubles:
    """(n, T) from the features (n, M) of a sentence, -1 where there is none."""
    table = weights.astype(np.float64)
    return np.array([sum((table[row] for row in word if row >= 0), np.zeros(table.shape[1])) for word in features])


def plain_path(scores: Doubles, moves: Doubles) -> list[int]:
    """Viterbi: the best way to each tag of a word is the best way to some tag of the word before, and a step."""
    best = [(moves[-1, tag] + score, [tag]) for tag, score in enumerate(scores[0])]
    for row in scores[1:]:
        steps = [[(total + moves[path[-1], tag], path) for total, path in best] for tag in range(len(row))]
        chosen = [max(ways, key=lambda way: way[0]) for ways in steps]
        best = [(total + row[tag], [*path, tag]) for tag, (total, path) in enumerate(chosen)]
    return max(best, key=lambda way: way[0])[1]


def plain_posteriors(scores: Doubles, moves: Doubles) -> tuple[float, Doubles, Doubles]:
    """The log of the sum over all paths; p(t_n) (n, T); the expected number of moves (T + 1, T)."""
    count, tags = scores.shape
    forward, backward = np.empty((count, tags)), np.zeros((count, tags))
    forward[0] = moves[-1] + scores[0]
    for n in range(1, count):
        forward[n] = np.logaddexp.reduce(forward[n - 1][:, None] + moves[:-1], axis=0) + scores[n]
    for n in range(count - 2, -1, -1):
        backward[n] = np.logaddexp.reduce(moves[:-1] + scores[n + 1] + backward[n + 1], axis=1)
    total = np.logaddexp.reduce(forward[-1])
    posteriors = np.exp(forward + backward - total)
    expected = np.zeros((tags + 1, tags))
    expected[-1] = posteriors[0]
    for n in range(1, count):
        expected[:-1] += np.exp(forward[n - 1][:, None] + moves[:-1] + scores[n] + backward[n] - total)
    return float(total), posteriors, expected


def plain_step(
    features: Ints, tags: Ints, model: Model, squares: Doubles, move_squares: Doubles, rate: float, chained: bool
) -> float:
    """A step up the gradient of log p(tags | words) for one sentence; the loss, −log p, before the step.

    The gradient of a weight is how often its feature met its tag, less how often it should have. A row's rate falls
    with the squares of the gradients it has seen (J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for
    online learning", JMLR 12, 2011; there every weight has a rate of its own).
    """
    weights, moves = model
    scores = plain_scores(features, weights)
    total, posteriors, expected = plain_posteriors(scores, moves)
    before = np.concatenate(([len(moves) - 1], tags[:-1]))
    loss = total - scores[np.arange(len(tags)), tags].sum() - moves[before, tags].sum()
    for n in range(len(tags) - 1, -1, -1):
        gradient = np.eye(len(moves) - 1)[tags[n]] - posteriors[n]
        for row in features[n]:
            if row >= 0:
                squares[row] += gradient @ gradient
                weights[row] += rate / np.sqrt(squares[row] + STEADY) * gradient
    if chained:
        gradients = -expected
        np.add.at(gradients, (before, tags), 1)
        move_squares += (gradients**2).sum(axis=1)
        moves += (rate / np.sqrt(move_squares + STEADY))[:, None] * gradients
    return float(loss)


# Finding features


@inlined
def _key(sight: Sight, codes: Longs, first: int, stop: int, token: int, template: int) -> np.uint64:
    """What the feature of a template at a word is known by; 0 where an attribute is absent."""
    mixed = np.uint64(template + 1) * FIRST
    for part in range(PARTS):
        attribute = sight.templates[template, 2 * part + 1]
        if attribute < 0:
            break
        place = token + sight.templates[template, 2 * part]
        if place < first:
            value = BEFORE
        elif place >= stop:
            value = AFTER
        elif codes[place] < len(sight.known):
            value = np.int64(sight.known[codes[place], attribute])
        else:
            value = np.int64(sight.new[codes[place] - len(sight.known), attribute])
        if value < 0:
            return ABSENT_KEY
        mixed = (mixed ^ np.uint64(value)) * SECOND
        mixed ^= mixed >> HALF
    return mix(mixed) | _ODD


@inlined
def _slot(slots: ULongs, key: np.uint64) -> int:
    """Where the key is, or the free slot where it belongs. Its lowest bit is always set and decides nothing."""
    return search_from(slots, np.int64((key >> _ODD) & np.uint64(len(slots) - 1)), key, 1)


@kernel
def fill_slots(keys: ULongs, slots: ULongs, rows: Ints) -> None:
    """Enter keys into a free table, numbered as they come; of equal ones the first counts."""
    for number in range(len(keys)):
        at = _slot(slots, keys[number])
        if slots[at] == ABSENT_KEY:
            slots[at] = keys[number]
            rows[at] = number


@kernel
def number_features(
    sight: Sight, codes: Longs, offsets: Longs, keys: ULongs, counts: Longs, features: Ints, position: Longs
) -> int:
    """Number the features of sentences as they turn up: ``features`` (N, M), -1 where there is none.

    keys, counts: of each feature, with room for more. position: [sentence, features so far], where to go on. Returns 0
    when all is done, or how many features need room before the next sentence can be read.
    """
    size = position[1]
    templates = len(sight.templates)
    for sentence in range(position[0], len(offsets) - 1):
        first, stop = offsets[sentence], offsets[sentence + 1]
        need = size + (stop - first) * templates
        if need > len(keys) or 2 * need > len(sight.slots):
            position[0], position[1] = sentence, size
            return need
        for token in range(first, stop):
            for template in range(templates):
                key = _key(sight, codes, first, stop, token, template)
                row = ABSENT
                if key != ABSENT_KEY:
                    at = _slot(sight.slots, key)
                    if sight.slots[at] == ABSENT_KEY:
                        sight.slots[at] = key
                        sight.rows[at] = size
                        keys[size] = key
                        counts[size] = 0
                        size += 1
                    row = np.int64(sight.rows[at])
                    counts[row] += 1
                features[token, template] = row
    position[0], position[1] = len(offsets) - 1, size
    return 0


@inlined
def _find_features(sight: Sight, codes: Longs, first: int, stop: int, keys: ULongs, features: Ints) -> None:
    """``features`` (L, M) of one sentence; keys: (M,), scratch. A word's slots are asked for before any is read."""
    templates = len(sight.templates)
    for token in range(first, stop):
        for template in range(templates):
            key = _key(sight, codes, first, stop, token, template)
            keys[template] = key
            prefetch(sight.slots, np.int64((key >> _ODD) & np.uint64(len(sight.slots) - 1)))
        for template in range(templates):
            row = ABSENT
            if keys[template] != ABSENT_KEY:
                at = _slot(sight.slots, keys[template])
                if sight.slots[at] != ABSENT_KEY:
                    row = np.int64(sight.rows[at])
            features[token - first, template] = row


@kernel
def find_features(sight: Sight, codes: Longs, offsets: Longs, keys: ULongs, features: Ints) -> None:
    """Fill ``features`` (N, M) for all sentences; keys: (M,), scratch."""
    for sentence in range(len(offsets) - 1):
        first, stop = offsets[sentence], offsets[sentence + 1]
        _find_features(sight, codes, first, stop, keys, features[first:stop])


# Scores, paths, posteriors


@inlined
def _sum_scores(features: Ints, count: int, weights: Floats, scores: Doubles) -> None:
    tags = weights.shape[1]
    for token in range(count):
        for tag in range(tags):
            scores[token, tag] = 0
        for template in range(features.shape[1]):
            row = features[token, template]
            if row >= 0:
                for tag in range(tags):
                    scores[token, tag] += weights[row, tag]


@inlined
def _best_tag(scores: Doubles, moves: Doubles, best: Doubles, count: int, path: Ints, first: int) -> None:
    """Only scores are kept; where each came from is asked afterwards, along the one path that won."""
    tags = scores.shape[1]
    for tag in range(tags):
        best[0, tag] = moves[tags, tag] + scores[0, tag]
    for token in range(1, count):
        for tag in range(tags):
            best[token, tag] = -np.inf
        for origin in range(tags):
            reached = best[token - 1, origin]
            for tag in range(tags):
                best[token, tag] = max(best[token, tag], reached + moves[origin, tag])
        for tag in range(tags):
            best[token, tag] += scores[token, tag]
    after = -1
    for token in range(count - 1, -1, -1):
        chosen, highest = 0, -np.inf
        for tag in range(tags):
            score = best[token, tag] + (moves[tag, after] if after >= 0 else 0.0)
            if score > highest:
                chosen, highest = tag, score
        path[first + token] = chosen
        after = chosen


@kernel
def tag_sentences(
    sight: Sight, model: Model, codes: Longs, offsets: Longs, keys: ULongs, room: Room, path: Ints
) -> None:
    """Fill ``path`` (N,) with the best tags; keys: (M,), scratch."""
    for sentence in range(len(offsets) - 1):
        first, stop = offsets[sentence], offsets[sentence + 1]
        if first < stop:
            _find_features(sight, codes, first, stop, keys, room.features)
            _sum_scores(room.features, stop - first, model.weights, room.scores)
            _best_tag(room.scores, model.moves, room.forward, stop - first, path, first)


@inlined
def _exponentiate(source: Doubles, target: Doubles) -> None:
    for row in range(source.shape[0]):
        for column in range(source.shape[1]):
            target[row, column] = np.exp(source[row, column])


@inlined
def _forward(room: Room, count: int) -> float:
    """p(t_n | the words up to n) (n, T) from the scores, which become their exponentials, the largest of each word 1.

    Returns the log of the sum over all paths.
    """
    tags = room.scores.shape[1]
    logs = 0.0
    for token in range(count):
        highest = room.scores[token, 0]
        for tag in range(tags):
            highest = max(highest, room.scores[token, tag])
        for tag in range(tags):
            room.scores[token, tag] = np.exp(room.scores[token, tag] - highest)
            room.forward[token, tag] = room.moves[tags, tag] if token == 0 else 0.0
        if token > 0:
            for origin in range(tags):
                reached = room.forward[token - 1, origin]
                for tag in range(tags):
                    room.forward[token, tag] += reached * room.moves[origin, tag]
        total = 0.0
        for tag in range(tags):
            room.forward[token, tag] *= room.scores[token, tag]
            total += room.forward[token, tag]
        if not total > 0:  # nothing that can be reached has any score: then the word decides alone
            total = 0.0
            for tag in range(tags):
                room.forward[token, tag] = room.scores[token, tag]
                total += room.scores[token, tag]
        for tag in range(tags):
            room.forward[token, tag] /= total
        logs += highest + np.log(total)
    return logs


@inlined
def _backward(room: Room, token: int, expecting: bool) -> None:
    """What the words from ``token`` on say of the tag before it, the largest 1; and, if wanted, add to ``expected`` how
    likely each move from there is. ``gradient`` is scratch.
    """
    tags = room.scores.shape[1]
    for tag in range(tags):
        room.gradient[tag] = room.scores[token, tag] * room.backward[token, tag]
    highest, total = 0.0, 0.0
    for origin in range(tags):
        reached = 0.0
        for tag in range(tags):
            reached += room.moves[origin, tag] * room.gradient[tag]
        room.backward[token - 1, origin] = reached
        highest = max(highest, reached)
        total += reached * room.forward[token - 1, origin]
    if expecting and total > 0:
        for origin in range(tags):
            share = room.forward[token - 1, origin] / total
            for tag in range(tags):
                room.expected[origin, tag] += share * room.moves[origin, tag] * room.gradient[tag]
    for origin in range(tags):
        room.backward[token - 1, origin] = room.backward[token - 1, origin] / highest if highest > 0 else 1.0


@inlined
def _posterior(room: Room, token: int) -> None:
    """Put p(t_n | the sentence) into ``gradient``."""
    total = 0.0
    for tag in range(len(room.gradient)):
        room.gradient[tag] = room.forward[token, tag] * room.backward[token, tag]
        total += room.gradient[tag]
    for tag in range(len(room.gradient)):
        room.gradient[tag] = room.gradient[tag] / total if total > 0 else room.forward[token, tag]


@kernel
def tag_posteriors(
    sight: Sight, model: Model, codes: Longs, offsets: Longs, keys: ULongs, room: Room, posteriors: Doubles
) -> None:
    """Fill ``posteriors`` (N, T); keys: (M,), scratch."""
    _exponentiate(model.moves, room.moves)
    tags = model.weights.shape[1]
    for sentence in range(len(offsets) - 1):
        first, stop = offsets[sentence], offsets[sentence + 1]
        if first < stop:
            _find_features(sight, codes, first, stop, keys, room.features)
            _sum_scores(room.features, stop - first, model.weights, room.scores)
            _forward(room, stop - first)
            for tag in range(tags):
                room.backward[stop - first - 1, tag] = 1
            for token in range(stop - first - 1, -1, -1):
                _posterior(room, token)
                for tag in range(tags):
                    posteriors[first + token, tag] = room.gradient[tag]
                if token > 0:
                    _backward(room, token, False)


# Learning


@kernel
def learn_sentences(
    features: Ints,
    offsets: Longs,
    tags: Ints,
    order: Longs,
    model: Model,
    squares: Doubles,
    move_squares: Doubles,
    rates: Doubles,
    chained: bool,
    room: Room,
) -> float:
    """A step for each sentence that ``order`` names; the sum of the losses before the steps.

    rates: (2,), the rate falls in equal steps from the first to the second. chained: whether moves are learnt.
    """
    kinds = model.weights.shape[1]
    loss = 0.0
    for step in range(len(order)):
        first, stop = offsets[order[step]], offsets[order[step] + 1]
        count = stop - first
        if count == 0:
            continue
        rate = rates[0] + (rates[1] - rates[0]) * step / len(order)
        _exponentiate(model.moves, room.moves)
        for origin in range(kinds + 1):
            for tag in range(kinds):
                room.expected[origin, tag] = 0
        _sum_scores(features[first:stop], count, model.weights, room.scores)
        before = kinds
        for token in range(count):
            loss -= room.scores[token, tags[first + token]] + model.moves[before, tags[first + token]]
            before = np.int64(tags[first + token])
        loss += _forward(room, count)
        for tag in range(kinds):
            room.backward[count - 1, tag] = 1
        for token in range(count - 1, -1, -1):
            _posterior(room, token)
            if token == 0:
                for tag in range(kinds):
                    room.expected[kinds, tag] = room.gradient[tag]
            _learn_word(features, first + token, tags[first + token], model.weights, squares, rate, room.gradient)
            if token > 0:
                _backward(room, token, chained)
        if chained:
            _learn_moves(tags, first, stop, model.moves, move_squares, rate, room.expected)
    return loss


@inlined
def _learn_word(
    features: Ints, token: int, tag: int, weights: Floats, squares: Doubles, rate: float, gradient: Doubles
) -> None:
    """``gradient`` comes in as the posterior of the word's tag."""
    length = 0.0
    for kind in range(len(gradient)):
        gradient[kind] = -gradient[kind]
    gradient[tag] += 1
    for kind in range(len(gradient)):
        length += gradient[kind] * gradient[kind]
    for template in range(features.shape[1]):
        row = features[token, template]
        if row >= 0:
            squares[row] += length
            step = rate / np.sqrt(squares[row] + STEADY)
            for kind in range(len(gradient)):
                weights[row, kind] += step * gradient[kind]


@inlined
def _learn_moves(
    tags: Ints, first: int, stop: int, moves: Doubles, move_squares: Doubles, rate: float, expected: Doubles
) -> None:
    """``expected`` comes in as the expected number of each move."""
    kinds = moves.shape[1]
    before = kinds
    for token in range(first, stop):
        expected[before, tags[token]] -= 1
        before = np.int64(tags[token])
    for origin in range(kinds + 1):
        length = 0.0
        for tag in range(kinds):
            length += expected[origin, tag] * expected[origin, tag]
        move_squares[origin] += length
        step = rate / np.sqrt(move_squares[origin] + STEADY)
        for tag in range(kinds):
            moves[origin, tag] -= step * expected[origin, tag]
