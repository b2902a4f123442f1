"""The recursions of a hidden Markov model: plain ones to read, fast ones to use, and tests that hold them equal.

    filter      belief_n(j) ∝ Σ_i belief_(n-1)(i) A_ij · B_j(x_n),    its sum before scaling is p(x_n | x_<n)
    smoother    later_(n-1)(i) = Σ_j A_ij · B_j(x_n) later_n(j) / p(x_n | x_<n),    p(z_n | x) = belief_n · later_n
    Viterbi     best_n(j) = max_i best_(n-1)(i) + log A_ij + log B_j(x_n)

What makes the fast ones fast:

- Probabilities are scaled at every token rather than kept as logarithms: products of matrices instead of exponentials.
- The emission table is stored a row a word, (K, S), so a token reads S numbers that lie side by side.
- Documents of like length are read side by side, so a step in time is one product of matrices for all of them.
- Expected transitions are A_ij · Σ_n belief_(n-1)(i) w_n(j): A is multiplied in once, at the end of everything.
- Viterbi keeps only the best scores; which state each came from is asked afterwards, along the one path that won.

A word that no reachable state emits has probability zero and tells nothing: the belief stays as predicted. So nothing
is ever 0/0, and a document with an impossible word in it still has beliefs behind that word.

Shapes: S = states, K = words, N = tokens, n = documents read side by side. ``emission`` is (K, S) everywhere here.
L. R. Rabiner, "A tutorial on hidden Markov models", Proceedings of the IEEE 77 (1989).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foreword.kernels.jit import allocating, inlined, kernel
from foreword.protocols import Ids

Table = NDArray[np.floating[Any]]
Longs = NDArray[np.int64]


def least_belief(dtype: np.dtype[Any]) -> float:
    """Beliefs below this count as zero. The smoother divides by them: 1/belief must not overflow, with room to spare
    for the probability of a rare word. It is 3e-29 in float32 and 1e-231 in float64.
    """
    return float(np.finfo(dtype).tiny) ** 0.75


# Plain: one document, NumPy, the equations as they stand


def plain_filter(start: Table, transition: Table, emission: Table, ids: Ids) -> tuple[Table, Table]:
    """(N, S) beliefs p(z_n | x_1..x_n) and (N,) scales p(x_n | x_<n)."""
    beliefs, scales = np.empty((len(ids), len(start)), start.dtype), np.empty(len(ids), start.dtype)
    predicted = start
    for place, id in enumerate(ids):
        joint = predicted * emission[id]
        scales[place] = joint.sum()
        beliefs[place] = joint / scales[place] if scales[place] > 0 else predicted
        predicted = beliefs[place] @ transition
    return beliefs, scales


def plain_smoother(start: Table, transition: Table, emission: Table, ids: Ids) -> tuple[Table, Table]:
    """(N, S) posteriors p(z_n | x_1..x_N) and (S, S) expected transitions, Σ_n p(z_(n-1), z_n | x_1..x_N)."""
    beliefs, scales = plain_filter(start, transition, emission, ids)
    transitions = np.zeros_like(transition)
    posteriors = beliefs.copy()
    later = np.ones_like(start)
    for place in range(len(ids) - 1, 0, -1):
        posteriors[place] *= later
        seen = emission[ids[place]] / scales[place] if scales[place] > 0 else np.ones_like(start)
        weights = np.where(beliefs[place] > 0, seen * later, 0)
        transitions += transition * np.outer(beliefs[place - 1], weights)
        later = transition @ weights
    posteriors[:1] *= later
    return posteriors, transitions


def plain_viterbi(log_start: Table, log_transition: Table, log_emission: Table, ids: Ids) -> Longs:
    """(N,) the states of the likeliest path; among equals the lowest, from the last token backwards."""
    best = np.empty((len(ids), len(log_start)), log_start.dtype)
    reached = log_start
    for place, id in enumerate(ids):
        seen = reached + log_emission[id]
        best[place] = seen if np.isfinite(seen).any() else reached
        reached = (best[place][:, None] + log_transition).max(axis=0)
    path = np.empty(len(ids), np.int64)
    for place in range(len(ids) - 1, -1, -1):
        following = 0 if place == len(ids) - 1 else log_transition[:, path[place + 1]]
        path[place] = np.argmax(best[place] + following)
    return path


# Fast: documents side by side


class Batch(NamedTuple):
    """Documents laid out step by step in time: the first tokens of all of them, then the second ones of those that
    have two, and so on. The longest document comes first, so those still being read are always the first rows.

    places: int64 (N,), where each token stands in the corpus. words: int64 (N,), its id.
    steps: int64 (T + 1,); step t is tokens ``steps[t]`` to ``steps[t + 1]``.
    """

    places: Longs
    words: Longs
    steps: Longs

    @property
    def documents(self) -> int:
        return int(self.steps[1])


def pack(ids: Ids, offsets: Longs, documents: Longs) -> Batch:
    """Lay out documents, given by their numbers from the longest to the shortest, none of them empty."""
    starts = offsets[documents]
    lengths = offsets[documents + 1] - starts
    batch = Batch(*(np.empty(size, np.int64) for size in (lengths.sum(), lengths.sum(), lengths[0] + 1)))
    _pack(ids, starts, lengths, batch.places, batch.words, batch.steps)
    return batch


@kernel
def _pack(ids: Ids, starts: Longs, lengths: Longs, places: Longs, words: Longs, steps: Longs) -> None:
    reading, token = len(lengths), 0
    steps[0] = 0
    for time in range(lengths[0]):
        while lengths[reading - 1] <= time:
            reading -= 1
        for document in range(reading):
            places[token] = starts[document] + time
            words[token] = ids[starts[document] + time]
            token += 1
        steps[time + 1] = token


def scale_batch(start: Table, transition: Table, emission: Table, batch: Batch) -> Table:
    """(N,) p(x_n | x_<n) for every token of a batch, in its order. No belief is kept but the last of each document."""
    now, following = (np.empty((batch.documents, len(start)), start.dtype) for _ in range(2))
    scales = np.empty(len(batch.words), start.dtype)
    least = start.dtype.type(least_belief(start.dtype))
    _scales(start, transition, emission, batch.words, batch.steps, least, now, following, scales)
    return scales


def filter_batch(start: Table, transition: Table, emission: Table, batch: Batch) -> tuple[Table, Table]:
    """(N, S) beliefs and (N,) scales of a batch, in its order."""
    beliefs = np.empty((len(batch.words), len(start)), start.dtype)
    scales = np.empty(len(batch.words), start.dtype)
    least = start.dtype.type(least_belief(start.dtype))
    _filter(start, transition, emission, batch.words, batch.steps, least, beliefs, scales)
    return beliefs, scales


def smooth_batch(start: Table, transition: Table, emission: Table, batch: Batch) -> tuple[Table, Table, Table]:
    """(N, S) posteriors and (N,) scales of a batch, in its order, and (S, S) expected transitions, yet to be
    multiplied by A, in float64.
    """
    posteriors, scales = filter_batch(start, transition, emission, batch)
    pairs = np.zeros(transition.shape)
    product = np.empty_like(transition)
    later, weights = (np.empty((batch.documents, len(start)), start.dtype) for _ in range(2))
    backwards = np.ascontiguousarray(transition.T)
    _smooth(backwards, emission, batch.words, batch.steps, scales, posteriors, later, weights, product, pairs)
    return posteriors, scales, pairs


@allocating
def _scales(
    start: Table,
    transition: Table,
    emission: Table,
    words: Longs,
    steps: Longs,
    least: float,
    now: Table,
    following: Table,
    scales: Table,
) -> None:
    _fill(now, start)
    for step in range(len(steps) - 1):
        first, reading = steps[step], steps[step + 1] - steps[step]
        if step > 0:
            np.dot(now[:reading], transition, following[:reading])
            now, following = following, now
        _correct(now, 0, reading, emission, words, first, least, scales)


@allocating
def _filter(
    start: Table,
    transition: Table,
    emission: Table,
    words: Longs,
    steps: Longs,
    least: float,
    beliefs: Table,
    scales: Table,
) -> None:
    _fill(beliefs[: steps[1]], start)
    for step in range(len(steps) - 1):
        first, reading = steps[step], steps[step + 1] - steps[step]
        if step > 0:
            before = steps[step - 1]
            np.dot(beliefs[before : before + reading], transition, beliefs[first : first + reading])
        _correct(beliefs, first, reading, emission, words, first, least, scales)


@allocating
def _smooth(
    backwards: Table,
    emission: Table,
    words: Longs,
    steps: Longs,
    scales: Table,
    beliefs: Table,
    later: Table,
    weights: Table,
    product: Table,
    pairs: NDArray[np.float64],
) -> None:
    """Beliefs become posteriors where they stand. A document's row of ``later`` is one until its last token is read."""
    later[:] = 1
    for step in range(len(steps) - 2, 0, -1):
        first, reading, before = steps[step], steps[step + 1] - steps[step], steps[step - 1]
        _weigh(weights, later, reading, emission, words, first, scales, beliefs)
        _multiply(beliefs, first, reading, later)
        np.dot(beliefs[before : before + reading].T, weights[:reading], product)
        _add(pairs, product)
        np.dot(weights[:reading], backwards, later[:reading])
    _multiply(beliefs, 0, steps[1], later)


@kernel
def _fill(rows: Table, row: Table) -> None:
    for place in range(rows.shape[0]):
        for state in range(rows.shape[1]):
            rows[place, state] = row[state]


@inlined
def _dot(left: Table, row: int, right: Table, other: int) -> float:
    """Eight partial sums, which the processor can add side by side; one sum would wait for itself."""
    states = left.shape[1]
    a = b = c = d = e = f = g = h = left[row, 0] * 0
    for state in range(0, states - states % 8, 8):
        a += left[row, state] * right[other, state]
        b += left[row, state + 1] * right[other, state + 1]
        c += left[row, state + 2] * right[other, state + 2]
        d += left[row, state + 3] * right[other, state + 3]
        e += left[row, state + 4] * right[other, state + 4]
        f += left[row, state + 5] * right[other, state + 5]
        g += left[row, state + 6] * right[other, state + 6]
        h += left[row, state + 7] * right[other, state + 7]
    for state in range(states - states % 8, states):
        a += left[row, state] * right[other, state]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@kernel
def _correct(
    beliefs: Table, row: int, rows: int, emission: Table, words: Longs, token: int, least: float, scales: Table
) -> None:
    """Weigh predicted beliefs by what was read, ``rows`` of them from ``row`` on; their words begin at ``token``."""
    for place in range(rows):
        here, word = row + place, words[token + place]
        scale = _dot(beliefs, here, emission, word)
        scales[token + place] = scale
        if scale > 0:
            for state in range(beliefs.shape[1]):
                belief = beliefs[here, state] * emission[word, state] / scale
                beliefs[here, state] = belief if belief >= least else 0


@kernel
def _weigh(
    weights: Table, later: Table, rows: int, emission: Table, words: Longs, token: int, scales: Table, beliefs: Table
) -> None:
    """weights_j = B_j(x) later_j / p(x). States that cannot be reached are left out: they would grow without bound."""
    for row in range(rows):
        here, word, scale = token + row, words[token + row], scales[token + row]
        if scale > 0:
            for state in range(weights.shape[1]):
                weight = emission[word, state] * later[row, state] / scale
                weights[row, state] = weight if beliefs[here, state] > 0 else 0
        else:
            for state in range(weights.shape[1]):
                weights[row, state] = later[row, state] if beliefs[here, state] > 0 else 0


@kernel
def _multiply(rows: Table, first: int, count: int, factors: Table) -> None:
    for row in range(count):
        for state in range(rows.shape[1]):
            rows[first + row, state] *= factors[row, state]


@kernel
def _add(total: NDArray[np.float64], part: Table) -> None:
    for row in range(total.shape[0]):
        for column in range(total.shape[1]):
            total[row, column] += part[row, column]


@kernel
def add_rows(totals: NDArray[np.float64], numbers: Longs, rows: Table) -> None:
    """``totals[numbers[i]] += rows[i]`` for every i, in that order, so that the sums are the same every time."""
    for place in range(len(numbers)):
        number = numbers[place]
        for column in range(rows.shape[1]):
            totals[number, column] += rows[place, column]


@kernel
def viterbi(
    log_start: Table,
    log_transition: Table,
    log_emission: Table,
    words: Ids,
    offsets: Longs,
    best: Table,
    path: NDArray[np.int32],
) -> None:
    """Fill ``path`` (N,) with the likeliest states of each document; ``best`` has a row for each token of the longest
    one. ``words`` are rows of ``log_emission``.
    """
    for document in range(len(offsets) - 1):
        first, tokens = offsets[document], offsets[document + 1] - offsets[document]
        for token in range(tokens):
            if token == 0:
                for state in range(len(log_start)):
                    best[0, state] = log_start[state]
            else:
                _reach(best, token, log_transition)
            _observe(best, token, log_emission, words[first + token])
        _trace_back(best, tokens, log_transition, path, first)


@inlined
def _reach(best: Table, token: int, log_transition: Table) -> None:
    """best[token, j] = max_i best[token − 1, i] + log A_ij; four states i at a time, so that each j is fetched less."""
    states = best.shape[1]
    for state in range(states):
        best[token, state] = -np.inf
    for origin in range(0, states - states % 4, 4):
        a, b = best[token - 1, origin], best[token - 1, origin + 1]
        c, d = best[token - 1, origin + 2], best[token - 1, origin + 3]
        for state in range(states):
            ab = max(a + log_transition[origin, state], b + log_transition[origin + 1, state])
            cd = max(c + log_transition[origin + 2, state], d + log_transition[origin + 3, state])
            best[token, state] = max(best[token, state], max(ab, cd))
    for origin in range(states - states % 4, states):
        a = best[token - 1, origin]
        for state in range(states):
            best[token, state] = max(best[token, state], a + log_transition[origin, state])


@inlined
def _observe(best: Table, token: int, log_emission: Table, word: int) -> None:
    """Add the word's logarithms, unless no state that can be reached emits it: then it tells nothing."""
    possible = False
    for state in range(best.shape[1]):
        possible |= best[token, state] + log_emission[word, state] > -np.inf
    if possible:
        for state in range(best.shape[1]):
            best[token, state] += log_emission[word, state]


@inlined
def _trace_back(best: Table, tokens: int, log_transition: Table, path: NDArray[np.int32], first: int) -> None:
    for token in range(tokens - 1, -1, -1):
        likeliest, highest = 0, -np.inf
        for state in range(best.shape[1]):
            score = best[token, state]
            if token < tokens - 1:
                score += log_transition[state, path[first + token + 1]]
            if score > highest:
                likeliest, highest = state, score
        path[first + token] = likeliest
