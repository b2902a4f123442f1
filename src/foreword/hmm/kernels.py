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
- Of a very long document only what holds at the beginning of each block is kept, and a block computed again when the
  way back comes to it: memory does not grow with the text, but for a number a token.

A word that no reachable state emits has probability zero and tells nothing: the belief stays as predicted. So nothing
is ever 0/0, and a document with an impossible word in it still has beliefs behind that word.

Shapes: S = states, K = words, N = tokens, n = documents read side by side. ``emission`` is (K, S) everywhere here.
L. R. Rabiner, "A tutorial on hidden Markov models", Proceedings of the IEEE 77 (1989).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from foreword.arrays import Doubles, Ids, Ints, Longs, Reals
from foreword.native.jit import allocating, inlined, kernel

SIDE_BY_SIDE = 64
"""Documents read at once. Products of fewer rows are slower; more rows leave the processor's nearest cache."""

PRODUCT_SIZE = 1 << 18
"""Multiplications in one product of matrices. OpenBLAS wakes its own threads above this, which would wait for ours."""

TOKENS_AT_ONCE = 1 << 16
"""Beliefs of a batch are kept until it has been smoothed, which takes that many rows of S numbers. A document that is
longer makes a batch of its own, and is smoothed that many tokens at a time: then its beliefs are computed twice."""

VITERBI_ROWS = 1 << 14
"""The same for the likeliest path, where rows are kept for one document at a time."""


def least_belief(dtype: np.dtype[Any]) -> float:
    """Beliefs below this count as zero. The smoother divides by them: 1/belief must not overflow, with room to spare
    for the probability of a rare word. It is 3e-29 in float32 and 1e-231 in float64.
    """
    return float(np.finfo(dtype).tiny) ** 0.75


# Plain: one document, NumPy, the equations as they stand


def plain_filter(start: Reals, transition: Reals, emission: Reals, ids: Ids) -> tuple[Reals, Reals]:
    """(N, S) beliefs p(z_n | x_1..x_n) and (N,) scales p(x_n | x_<n)."""
    beliefs, scales = np.empty((len(ids), len(start)), start.dtype), np.empty(len(ids), start.dtype)
    predicted = start
    for place, id in enumerate(ids):
        joint = predicted * emission[id]
        scales[place] = joint.sum()
        beliefs[place] = joint / scales[place] if scales[place] > 0 else predicted
        predicted = beliefs[place] @ transition
    return beliefs, scales


def plain_smoother(start: Reals, transition: Reals, emission: Reals, ids: Ids) -> tuple[Reals, Reals]:
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


def plain_viterbi(log_start: Reals, log_transition: Reals, log_emission: Reals, ids: Ids) -> Longs:
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


def document_groups(lengths: Longs, states: int) -> Iterator[Longs]:
    """Numbers of documents, from the longest to the shortest, in groups to be read side by side; empty ones left out.

    Depends on nothing but the lengths and the number of states, so that sums come out the same on any machine.
    """
    order = np.argsort(-lengths, kind="stable")
    order = order[: np.count_nonzero(lengths)]
    rows = min(max(PRODUCT_SIZE // states**2, 8), SIDE_BY_SIDE)
    first = 0
    while first < len(order):
        group = order[first : first + max(1, min(rows, TOKENS_AT_ONCE // int(lengths[order[first]])))]
        yield group
        first += len(group)


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


def scale_batch(start: Reals, transition: Reals, emission: Reals, batch: Batch) -> Reals:
    """(N,) p(x_n | x_<n) for every token of a batch, in its order. No belief is kept but the last of each document."""
    now, following = (np.empty((batch.documents, len(start)), start.dtype) for _ in range(2))
    scales = np.empty(len(batch.words), start.dtype)
    least = start.dtype.type(least_belief(start.dtype))
    _scales(start, transition, emission, batch.words, batch.steps, least, now, following, scales)
    return scales


def filter_batch(start: Reals, transition: Reals, emission: Reals, batch: Batch) -> tuple[Reals, Reals]:
    """(N, S) beliefs and (N,) scales of a batch, in its order."""
    beliefs = np.empty((len(batch.words), len(start)), start.dtype)
    scales = np.empty(len(batch.words), start.dtype)
    least = start.dtype.type(least_belief(start.dtype))
    _filter(start, transition, emission, batch.words, batch.steps, least, beliefs, scales)
    return beliefs, scales


class Part(NamedTuple):
    """What is known of the tokens ``first`` to ``last`` of a batch: rows (tokens, S), beliefs or posteriors; scales
    (tokens,); and after smoothing (S, S) expected transitions to them, yet to be multiplied by A, in float64.
    """

    first: int
    last: int
    rows: Reals
    scales: Reals
    pairs: Doubles | None = None


def filtered(start: Reals, transition: Reals, emission: Reals, batch: Batch) -> Iterator[Part]:
    """Beliefs: all of a batch at once, or those of a long document a part at a time."""
    predicted = start
    for first, part in _parts(batch):
        beliefs, scales = filter_batch(predicted, transition, emission, part)
        yield Part(first, first + len(beliefs), beliefs, scales)
        predicted = beliefs[-1] @ transition


def smoothed(start: Reals, transition: Reals, emission: Reals, batch: Batch) -> Iterator[Part]:
    """Posteriors, from the last part to the first."""
    parts = list(_parts(batch))
    predicted = [start]
    for _, part in parts[:-1]:
        beliefs, _ = filter_batch(predicted[-1], transition, emission, part)
        predicted.append(beliefs[-1] @ transition)
    backwards, product = np.ascontiguousarray(transition.T), np.empty_like(transition)
    later = np.ones((batch.documents, len(start)), start.dtype)
    weights = np.empty_like(later)
    after = None  # how much the first token of the part behind this one says of each state
    for (first, part), before in zip(reversed(parts), reversed(predicted), strict=True):
        beliefs, scales = filter_batch(before, transition, emission, part)
        pairs = np.zeros(transition.shape)
        if after is not None:
            pairs += np.outer(beliefs[-1], after)
        known = beliefs[0] > 0
        _smooth(backwards, emission, part.words, part.steps, scales, beliefs, later, weights, product, pairs)
        yield Part(first, first + len(beliefs), beliefs, scales, pairs)
        if first:
            seen = emission[part.words[0]] / scales[0] if scales[0] > 0 else np.ones_like(start)
            after = np.where(known, seen * later[0], 0)
            later[0] = after @ backwards


def _parts(batch: Batch) -> Iterator[tuple[int, Batch]]:
    """The batch, or that of one long document cut up, and where each part begins."""
    tokens = len(batch.words)
    if tokens <= TOKENS_AT_ONCE or batch.documents > 1:
        yield 0, batch
        return
    for first in range(0, tokens, TOKENS_AT_ONCE):
        part = slice(first, min(first + TOKENS_AT_ONCE, tokens))
        yield first, Batch(batch.places[part], batch.words[part], np.arange(part.stop - first + 1))


class Expected(NamedTuple):
    """What a batch adds to EM's counts.

    start: (S,). pairs: (S, S), yet to be multiplied by A. words, rows: (n,) and (n, S), what each of those words adds.
    scales: (N,), as ever.
    """

    start: Doubles
    pairs: Doubles
    words: Longs
    rows: Reals
    scales: Reals


def expect_batch(start: Reals, transition: Reals, emission: Reals, batch: Batch) -> Expected:
    begun, pairs = np.zeros(len(start)), np.zeros(transition.shape)
    scales = np.empty(len(batch.words), start.dtype)
    words, rows = batch.words, np.empty((0, len(start)), start.dtype)
    numbers = words
    if len(words) > TOKENS_AT_ONCE:  # the posteriors of all tokens are too many to hand on: those of a word are added
        words, numbers = np.unique(words, return_inverse=True)
        rows = np.zeros((len(words), len(start)))
    for part in smoothed(start, transition, emission, batch):
        scales[part.first : part.last] = part.scales
        pairs += part.pairs if part.pairs is not None else 0
        if part.first == 0:
            begun += part.rows[: batch.documents].sum(axis=0, dtype=np.float64)
        if len(rows):
            add_rows(rows, numbers[part.first : part.last], part.rows)
        else:
            rows = part.rows
    return Expected(begun, pairs, words, rows, scales)


@allocating
def _scales(
    start: Reals,
    transition: Reals,
    emission: Reals,
    words: Longs,
    steps: Longs,
    least: float,
    now: Reals,
    following: Reals,
    scales: Reals,
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
    start: Reals,
    transition: Reals,
    emission: Reals,
    words: Longs,
    steps: Longs,
    least: float,
    beliefs: Reals,
    scales: Reals,
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
    backwards: Reals,
    emission: Reals,
    words: Longs,
    steps: Longs,
    scales: Reals,
    beliefs: Reals,
    later: Reals,
    weights: Reals,
    product: Reals,
    pairs: Doubles,
) -> None:
    """Beliefs become posteriors where they stand. later: (documents, S), what comes behind says of each state,
    ones if nothing does; it ends as what all but the first tokens say.
    """
    for step in range(len(steps) - 2, 0, -1):
        first, reading, before = steps[step], steps[step + 1] - steps[step], steps[step - 1]
        _weigh(weights, later, reading, emission, words, first, scales, beliefs)
        _multiply(beliefs, first, reading, later)
        np.dot(beliefs[before : before + reading].T, weights[:reading], product)
        _add(pairs, product)
        np.dot(weights[:reading], backwards, later[:reading])
    _multiply(beliefs, 0, steps[1], later)


@kernel
def _fill(rows: Reals, row: Reals) -> None:
    for place in range(rows.shape[0]):
        for state in range(rows.shape[1]):
            rows[place, state] = row[state]


@inlined
def _dot(left: Reals, row: int, right: Reals, other: int) -> float:
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
    beliefs: Reals, row: int, rows: int, emission: Reals, words: Longs, token: int, least: float, scales: Reals
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
    weights: Reals, later: Reals, rows: int, emission: Reals, words: Longs, token: int, scales: Reals, beliefs: Reals
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
def _multiply(rows: Reals, first: int, count: int, factors: Reals) -> None:
    for row in range(count):
        for state in range(rows.shape[1]):
            rows[first + row, state] *= factors[row, state]


@kernel
def _add(total: Doubles, part: Reals) -> None:
    for row in range(total.shape[0]):
        for column in range(total.shape[1]):
            total[row, column] += part[row, column]


@kernel
def add_rows(totals: Doubles, numbers: Longs, rows: Reals) -> None:
    """``totals[numbers[i]] += rows[i]`` for every i, in that order, so that the sums are the same every time."""
    for place in range(len(numbers)):
        number = numbers[place]
        for column in range(rows.shape[1]):
            totals[number, column] += rows[place, column]


@kernel
def viterbi(
    log_start: Reals, log_transition: Reals, log_emission: Reals, words: Ids, offsets: Longs, first: int, last: int,
    best: Reals, marks: Reals, path: Ints,
) -> None:  # fmt: skip
    """Fill ``path`` (N,) with the likeliest states of documents ``first`` to ``last``. ``words`` are rows of
    ``log_emission``.

    best: (rows, S), for as many tokens at a time. marks: (blocks, S), what held just before each block but the first
    of the longest document.
    """
    rows = len(best)
    for document in range(first, last):
        begin, tokens = offsets[document], offsets[document + 1] - offsets[document]
        blocks = (tokens + rows - 1) // rows
        for block in range(blocks):
            if block > 0:
                for state in range(len(log_start)):
                    marks[block - 1, state] = best[rows - 1, state]
            _score_block(log_start, log_transition, log_emission, words, begin, tokens, block, best, marks)
        for block in range(blocks - 1, -1, -1):
            if block < blocks - 1:
                _score_block(log_start, log_transition, log_emission, words, begin, tokens, block, best, marks)
            for token in range(min(tokens, (block + 1) * rows) - 1, block * rows - 1, -1):
                following = path[begin + token + 1] if token < tokens - 1 else -1
                path[begin + token] = _likeliest(best, token - block * rows, log_transition, following)


@inlined
def _score_block(
    log_start: Reals, log_transition: Reals, log_emission: Reals, words: Ids, begin: int, tokens: int, block: int,
    best: Reals, marks: Reals,
) -> None:  # fmt: skip
    rows = len(best)
    for row in range(min(rows, tokens - block * rows)):
        if row > 0:
            _reach(best, row - 1, best, row, log_transition)
        elif block > 0:
            _reach(marks, block - 1, best, 0, log_transition)
        else:
            for state in range(len(log_start)):
                best[0, state] = log_start[state]
        _observe(best, row, log_emission, words[begin + block * rows + row])


@inlined
def _reach(earlier: Reals, before: int, best: Reals, row: int, log_transition: Reals) -> None:
    """best[row, j] = max_i earlier[before, i] + log A_ij; four states i at a time, so that each j is fetched less."""
    states = best.shape[1]
    for state in range(states):
        best[row, state] = -np.inf
    for origin in range(0, states - states % 4, 4):
        a, b = earlier[before, origin], earlier[before, origin + 1]
        c, d = earlier[before, origin + 2], earlier[before, origin + 3]
        for state in range(states):
            ab = max(a + log_transition[origin, state], b + log_transition[origin + 1, state])
            cd = max(c + log_transition[origin + 2, state], d + log_transition[origin + 3, state])
            best[row, state] = max(best[row, state], max(ab, cd))
    for origin in range(states - states % 4, states):
        a = earlier[before, origin]
        for state in range(states):
            best[row, state] = max(best[row, state], a + log_transition[origin, state])


@inlined
def _observe(best: Reals, token: int, log_emission: Reals, word: int) -> None:
    """Add the word's logarithms, unless no state that can be reached emits it: then it tells nothing."""
    possible = False
    for state in range(best.shape[1]):
        possible |= best[token, state] + log_emission[word, state] > -np.inf
    if possible:
        for state in range(best.shape[1]):
            best[token, state] += log_emission[word, state]


@inlined
def _likeliest(best: Reals, row: int, log_transition: Reals, following: int) -> int:
    """The best state here, given the next one, if any (-1)."""
    likeliest, highest = 0, -np.inf
    for state in range(best.shape[1]):
        score = best[row, state]
        if following >= 0:
            score += log_transition[state, following]
        if score > highest:
            likeliest, highest = state, score
    return likeliest


def document_ranges(offsets: Longs, threads: int) -> list[tuple[int, int]]:
    """Ranges of documents of about the same number of tokens, enough of them to keep all threads busy."""
    pieces = 1 if threads == 1 else 8 * threads
    cuts = np.searchsorted(offsets, np.linspace(0, offsets[-1], pieces + 1)[1:-1])
    cuts = np.unique(np.concatenate(([0], cuts, [len(offsets) - 1])))
    return list(itertools.pairwise(cuts.tolist()))
