"""Kernels of ``FeatureTagger``: finding features, summing scores, the best path, posteriors, and a training step.

    score(tags | words) = Σ_n ( moves[t_(n-1), t_n] + Σ_f weights[f, t_n] )      f over the features of word n

and p(tags | words) is the exponential of that over its sum for all sequences. ``plain.py`` does the same for one
sentence. Posteriors are computed by the forward-backward algorithm on probabilities that are scaled at every word, so
nothing underflows.

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
"""Added to the sum of squares that divides a feature's rate, which bounds the first step."""

ABSENT_KEY = np.uint64(0)
_ODD = np.uint64(1)


class FeatureFinder(NamedTuple):
    """The tables by which words become features.

    templates: int64 (M, 2 · PARTS), pairs of a distance and an attribute, -1 where there is none.
    known, new: int32 (·, A), the attributes of known words and, numbered on after them, of others.
    slots, rows: uint64 and int32, a power of two of them: the hash table of integer keys (``native/hashing.py``) from
        keys of features to their numbers, at most half full.
    """

    templates: Longs
    known: Ints
    new: Ints
    slots: ULongs
    rows: Ints


class FeatureWeights(NamedTuple):
    """The learnt weights of features and moves. weights: float32 (F, T). moves: float64 (T + 1, T)."""

    weights: Floats
    moves: Doubles


class SentenceWorkspace(NamedTuple):
    """Buffers for the longest sentence, L words. features: int32 (L, M). The rest float64: scores, forward, backward
    (L, T); moves, their exponentials, and expected, (T + 1, T); gradient (T,).
    """

    features: Ints
    scores: Doubles
    forward: Doubles
    backward: Doubles
    moves: Doubles
    expected: Doubles
    gradient: Doubles


def workspace_for(longest: int, templates: int, tags: int) -> SentenceWorkspace:
    """Allocate the buffers."""
    return SentenceWorkspace(
        np.empty((longest, templates), np.int32),
        *(np.empty((longest, tags)) for _ in range(3)),
        *(np.empty((tags + 1, tags)) for _ in range(2)),
        np.empty(tags),
    )


# Finding features


@inlined
def _key(finder: FeatureFinder, codes: Longs, first: int, stop: int, token: int, template: int) -> np.uint64:
    """Return the key of a template's feature at a word; 0 where an attribute is absent."""
    mixed = np.uint64(template + 1) * FIRST
    for part in range(PARTS):
        attribute = finder.templates[template, 2 * part + 1]
        if attribute < 0:
            break
        at = token + finder.templates[template, 2 * part]
        if at < first:
            value = BEFORE
        elif at >= stop:
            value = AFTER
        elif codes[at] < len(finder.known):
            value = np.int64(finder.known[codes[at], attribute])
        else:
            value = np.int64(finder.new[codes[at] - len(finder.known), attribute])
        if value < 0:
            return ABSENT_KEY
        mixed = (mixed ^ np.uint64(value)) * SECOND
        mixed ^= mixed >> HALF
    return mix(mixed) | _ODD


@inlined
def _slot(slots: ULongs, key: np.uint64) -> int:
    """Return the slot of the key, or the free one where it belongs. The lowest bit is always set and not used."""
    return search_from(slots, np.int64((key >> _ODD) & np.uint64(len(slots) - 1)), key, 1)


@kernel
def fill_slots(keys: ULongs, slots: ULongs, rows: Ints) -> None:
    """Insert keys into an empty table, numbered in order; of equal ones the first counts."""
    for number in range(len(keys)):
        at = _slot(slots, keys[number])
        if slots[at] == ABSENT_KEY:
            slots[at] = keys[number]
            rows[at] = number


@kernel
def number_features(
    finder: FeatureFinder, codes: Longs, offsets: Longs, keys: ULongs, counts: Longs, features: Ints, position: Longs
) -> int:
    """Number the features of sentences in order of appearance: ``features`` (N, M), -1 where there is none.

    keys, counts: of each feature, with spare capacity. position: [sentence, features so far], where to resume. Returns
    0 when all is done, or the capacity that the next sentence needs.
    """
    size = position[1]
    templates = len(finder.templates)
    for sentence in range(position[0], len(offsets) - 1):
        first, stop = offsets[sentence], offsets[sentence + 1]
        need = size + (stop - first) * templates
        if need > len(keys) or 2 * need > len(finder.slots):
            position[0], position[1] = sentence, size
            return need
        for token in range(first, stop):
            for template in range(templates):
                key = _key(finder, codes, first, stop, token, template)
                row = ABSENT
                if key != ABSENT_KEY:
                    at = _slot(finder.slots, key)
                    if finder.slots[at] == ABSENT_KEY:
                        finder.slots[at] = key
                        finder.rows[at] = size
                        keys[size] = key
                        counts[size] = 0
                        size += 1
                    row = np.int64(finder.rows[at])
                    counts[row] += 1
                features[token, template] = row
    position[0], position[1] = len(offsets) - 1, size
    return 0


@inlined
def _find_features(finder: FeatureFinder, codes: Longs, first: int, stop: int, keys: ULongs, features: Ints) -> None:
    """Fill ``features`` (L, M) of one sentence; keys: (M,), workspace. Slots are prefetched before any is read."""
    templates = len(finder.templates)
    for token in range(first, stop):
        for template in range(templates):
            key = _key(finder, codes, first, stop, token, template)
            keys[template] = key
            prefetch(finder.slots, np.int64((key >> _ODD) & np.uint64(len(finder.slots) - 1)))
        for template in range(templates):
            row = ABSENT
            if keys[template] != ABSENT_KEY:
                at = _slot(finder.slots, keys[template])
                if finder.slots[at] != ABSENT_KEY:
                    row = np.int64(finder.rows[at])
            features[token - first, template] = row


@kernel
def find_features(finder: FeatureFinder, codes: Longs, offsets: Longs, keys: ULongs, features: Ints) -> None:
    """Fill ``features`` (N, M) for all sentences; keys: (M,), workspace."""
    for sentence in range(len(offsets) - 1):
        first, stop = offsets[sentence], offsets[sentence + 1]
        _find_features(finder, codes, first, stop, keys, features[first:stop])


# Scores, paths, posteriors


@inlined
def _sum_scores(features: Ints, count: int, weights: Floats, scores: Doubles) -> None:
    """Fill ``scores`` (n, T) with the sums of the features' weights."""
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
def _best_path(scores: Doubles, moves: Doubles, best: Doubles, count: int, path: Ints, first: int) -> None:
    """Fill ``path`` by Viterbi. Only scores are stored; origins are found afterwards, along the best path alone."""
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
    finder: FeatureFinder,
    model: FeatureWeights,
    codes: Longs,
    offsets: Longs,
    keys: ULongs,
    work: SentenceWorkspace,
    path: Ints,
) -> None:
    """Fill ``path`` (N,) with the best tags; keys: (M,), workspace."""
    for sentence in range(len(offsets) - 1):
        first, stop = offsets[sentence], offsets[sentence + 1]
        if first < stop:
            _find_features(finder, codes, first, stop, keys, work.features)
            _sum_scores(work.features, stop - first, model.weights, work.scores)
            _best_path(work.scores, model.moves, work.forward, stop - first, path, first)


@inlined
def _exponentiate(source: Doubles, target: Doubles) -> None:
    for row in range(source.shape[0]):
        for column in range(source.shape[1]):
            target[row, column] = np.exp(source[row, column])


@inlined
def _forward(work: SentenceWorkspace, count: int) -> float:
    """Compute p(t_n | the words up to n) (n, T); scores become their exponentials, the largest of each word 1.

    Return the log of the sum over all paths.
    """
    tags = work.scores.shape[1]
    logs = 0.0
    for token in range(count):
        highest = work.scores[token, 0]
        for tag in range(tags):
            highest = max(highest, work.scores[token, tag])
        for tag in range(tags):
            work.scores[token, tag] = np.exp(work.scores[token, tag] - highest)
            work.forward[token, tag] = work.moves[tags, tag] if token == 0 else 0.0
        if token > 0:
            for origin in range(tags):
                reached = work.forward[token - 1, origin]
                for tag in range(tags):
                    work.forward[token, tag] += reached * work.moves[origin, tag]
        total = 0.0
        for tag in range(tags):
            work.forward[token, tag] *= work.scores[token, tag]
            total += work.forward[token, tag]
        if not total > 0:  # every reachable tag underflows: then the word decides alone
            total = 0.0
            for tag in range(tags):
                work.forward[token, tag] = work.scores[token, tag]
                total += work.scores[token, tag]
        for tag in range(tags):
            work.forward[token, tag] /= total
        logs += highest + np.log(total)
    return logs


@inlined
def _backward(work: SentenceWorkspace, token: int, expecting: bool) -> None:
    """Compute the backward factors of the tag before ``token``, the largest 1; if ``expecting``, add the probability of
    each move from there to ``expected``. ``gradient`` is workspace.
    """
    tags = work.scores.shape[1]
    for tag in range(tags):
        work.gradient[tag] = work.scores[token, tag] * work.backward[token, tag]
    highest, total = 0.0, 0.0
    for origin in range(tags):
        reached = 0.0
        for tag in range(tags):
            reached += work.moves[origin, tag] * work.gradient[tag]
        work.backward[token - 1, origin] = reached
        highest = max(highest, reached)
        total += reached * work.forward[token - 1, origin]
    if expecting and total > 0:
        for origin in range(tags):
            share = work.forward[token - 1, origin] / total
            for tag in range(tags):
                work.expected[origin, tag] += share * work.moves[origin, tag] * work.gradient[tag]
    for origin in range(tags):
        work.backward[token - 1, origin] = work.backward[token - 1, origin] / highest if highest > 0 else 1.0


@inlined
def _posterior(work: SentenceWorkspace, token: int) -> None:
    """Write p(t_n | the sentence) to ``gradient``."""
    total = 0.0
    for tag in range(len(work.gradient)):
        work.gradient[tag] = work.forward[token, tag] * work.backward[token, tag]
        total += work.gradient[tag]
    for tag in range(len(work.gradient)):
        work.gradient[tag] = work.gradient[tag] / total if total > 0 else work.forward[token, tag]


@kernel
def tag_posteriors(
    finder: FeatureFinder,
    model: FeatureWeights,
    codes: Longs,
    offsets: Longs,
    keys: ULongs,
    work: SentenceWorkspace,
    posteriors: Doubles,
) -> None:
    """Fill ``posteriors`` (N, T); keys: (M,), workspace."""
    _exponentiate(model.moves, work.moves)
    tags = model.weights.shape[1]
    for sentence in range(len(offsets) - 1):
        first, stop = offsets[sentence], offsets[sentence + 1]
        if first < stop:
            _find_features(finder, codes, first, stop, keys, work.features)
            _sum_scores(work.features, stop - first, model.weights, work.scores)
            _forward(work, stop - first)
            for tag in range(tags):
                work.backward[stop - first - 1, tag] = 1
            for token in range(stop - first - 1, -1, -1):
                _posterior(work, token)
                for tag in range(tags):
                    posteriors[first + token, tag] = work.gradient[tag]
                if token > 0:
                    _backward(work, token, False)


# Learning


@kernel
def learn_sentences(
    features: Ints,
    offsets: Longs,
    tags: Ints,
    order: Longs,
    model: FeatureWeights,
    squares: Doubles,
    move_squares: Doubles,
    rates: Doubles,
    chained: bool,
    work: SentenceWorkspace,
) -> float:
    """Make one training step per sentence, in this order; return the sum of the losses before the steps.

    rates: (2,), the rate falls linearly from the first to the second. chained: whether moves are learnt.
    """
    kinds = model.weights.shape[1]
    loss = 0.0
    for step in range(len(order)):
        first, stop = offsets[order[step]], offsets[order[step] + 1]
        count = stop - first
        if count == 0:
            continue
        rate = rates[0] + (rates[1] - rates[0]) * step / len(order)
        _exponentiate(model.moves, work.moves)
        for origin in range(kinds + 1):
            for tag in range(kinds):
                work.expected[origin, tag] = 0
        _sum_scores(features[first:stop], count, model.weights, work.scores)
        before = kinds
        for token in range(count):
            loss -= work.scores[token, tags[first + token]] + model.moves[before, tags[first + token]]
            before = np.int64(tags[first + token])
        loss += _forward(work, count)
        for tag in range(kinds):
            work.backward[count - 1, tag] = 1
        for token in range(count - 1, -1, -1):
            _posterior(work, token)
            if token == 0:
                for tag in range(kinds):
                    work.expected[kinds, tag] = work.gradient[tag]
            _learn_word(features, first + token, tags[first + token], model.weights, squares, rate, work.gradient)
            if token > 0:
                _backward(work, token, chained)
        if chained:
            _learn_moves(tags, first, stop, model.moves, move_squares, rate, work.expected)
    return loss


@inlined
def _learn_word(
    features: Ints, token: int, tag: int, weights: Floats, squares: Doubles, rate: float, gradient: Doubles
) -> None:
    """Update the weights of a word's features; ``gradient`` comes in as the posterior of its tag."""
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
    """Update the moves; ``expected`` comes in as the expected number of each move."""
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
