"""The recursions of a hidden Markov model, fast; ``plain.py`` has the same ones to read, and tests hold them equal.

    filter      belief_n(j) ∝ Σ_i belief_(n-1)(i) A_ij · B_j(x_n),    its sum before scaling is p(x_n | x_<n)
    smoother    later_(n-1)(i) = Σ_j A_ij · B_j(x_n) later_n(j) / p(x_n | x_<n),    p(z_n | x) = belief_n · later_n
    Viterbi     best_n(j) = max_i best_(n-1)(i) + log A_ij + log B_j(x_n)

What makes the fast ones fast:

- Probabilities are scaled at every token rather than kept as logarithms: products of matrices instead of exponentials.
- The emission table is stored one row per word, (K, S), so that a token reads S adjacent numbers.
- Documents of similar length form a batch, so that a step in time is one product of matrices for all of them.
- Expected transitions are A_ij · Σ_n belief_(n-1)(i) w_n(j): A is multiplied in once, at the end of everything.
- Viterbi stores only the best scores; which state each came from is recomputed along the one path that won.
- Of a very long document only the beliefs at the beginning of each block are stored, and a block is computed again on
  the way back: memory does not grow with the text, except for one number per token.

A word that no reachable state emits has probability zero and carries no information: the belief stays as predicted. So
nothing is ever 0/0, and a document with an impossible word in it still has beliefs after that word.

Shapes: S = states, K = words, N = tokens, n = documents in a batch. ``emission`` is (K, S) everywhere here.
L. R. Rabiner, "A tutorial on hidden Markov models", Proceedings of the IEEE 77 (1989).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from foreword.arrays import Doubles, Ids, Ints, Longs, Reals
from foreword.native.jit import allocating, inlined, kernel
from foreword.native.parallel import cores, ordered_map

T = TypeVar("T")

BATCH_DOCUMENTS = 64
"""Documents in a batch. Products of fewer rows are slower; more rows leave the processor's nearest cache."""

PRODUCT_SIZE = 1 << 18
"""Multiplications in one product of matrices. OpenBLAS wakes its own threads above this, which would wait for ours."""

TOKENS_AT_ONCE = 1 << 16
"""Tokens whose beliefs are stored until they have been smoothed, one row of S numbers each. A longer document is a
batch of its own and is smoothed in parts of that many tokens: then its beliefs are computed twice."""

VITERBI_ROWS = 1 << 14
"""Tokens whose scores Viterbi stores, for one document at a time."""


def least_belief(dtype: np.dtype[Any]) -> float:
    """Return the smallest belief that does not count as zero: 3e-29 in float32 and 1e-231 in float64.

    The smoother divides by beliefs, so 1/belief must not overflow, even times the probability of a rare word.
    """
    return float(np.finfo(dtype).tiny) ** 0.75


class DocumentBatch(NamedTuple):
    """Documents stored step by step in time: the first tokens of all of them, then the second ones of those that
    have two, and so on. The longest document comes first, so those still being read are always the first rows.

    places: int64 (N,), the position of each token in the corpus. words: int64 (N,), its id.
    steps: int64 (T + 1,); step t is tokens ``steps[t]`` to ``steps[t + 1]``.
    """

    places: Longs
    words: Longs
    steps: Longs

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return int(self.steps[1])


def document_groups(lengths: Longs, states: int) -> Iterator[Longs]:
    """Yield the documents' numbers, from the longest to the shortest, one batch at a time; empty ones are left out.

    The batches depend on nothing but the lengths and the number of states, so that sums come out the same on any
    machine.
    """
    order = np.argsort(-lengths, kind="stable")
    order = order[: np.count_nonzero(lengths)]
    rows = min(max(PRODUCT_SIZE // states**2, 8), BATCH_DOCUMENTS)
    first = 0
    while first < len(order):
        group = order[first : first + max(1, min(rows, TOKENS_AT_ONCE // int(lengths[order[first]])))]
        yield group
        first += len(group)


def pack(ids: Ids, offsets: Longs, documents: Longs) -> DocumentBatch:
    """Make a batch of documents, given by their numbers from the longest to the shortest, none of them empty."""
    starts = offsets[documents]
    lengths = offsets[documents + 1] - starts
    batch = DocumentBatch(*(np.empty(size, np.int64) for size in (lengths.sum(), lengths.sum(), lengths[0] + 1)))
    _pack(ids, starts, lengths, batch.places, batch.words, batch.steps)
    return batch


BatchWork: TypeAlias = Callable[[Reals, Reals, Reals, DocumentBatch], T]
"""A function of start, transition, emission and a batch."""


def map_batches(
    work: BatchWork[T], parameters: tuple[Reals, Reals, Reals], ids: Ids, offsets: Longs, threads: int | None
) -> Iterator[tuple[DocumentBatch, T]]:
    """Call ``work`` on every batch of documents of similar length, on all cores, and yield its results in order."""
    groups = list(document_groups(np.diff(offsets), len(parameters[0])))

    def run(documents: Longs) -> tuple[DocumentBatch, T]:
        batch = pack(ids, offsets, documents)
        return batch, work(*parameters, batch)

    return ordered_map(run, groups, min(threads or cores(), max(len(groups), 1)))


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


def scale_batch(start: Reals, transition: Reals, emission: Reals, batch: DocumentBatch) -> Reals:
    """Return (N,) p(x_n | x_<n) of every token of a batch, storing only the latest belief of each document."""
    now, following = (np.empty((batch.documents, len(start)), start.dtype) for _ in range(2))
    scales = np.empty(len(batch.words), start.dtype)
    least = start.dtype.type(least_belief(start.dtype))
    _scales(start, transition, emission, batch.words, batch.steps, least, now, following, scales)
    return scales


def filter_batch(start: Reals, transition: Reals, emission: Reals, batch: DocumentBatch) -> tuple[Reals, Reals]:
    """Return (N, S) beliefs and (N,) scales of a batch, in its order."""
    beliefs = np.empty((len(batch.words), len(start)), start.dtype)
    scales = np.empty(len(batch.words), start.dtype)
    least = start.dtype.type(least_belief(start.dtype))
    _filter(start, transition, emission, batch.words, batch.steps, least, beliefs, scales)
    return beliefs, scales


class BatchPart(NamedTuple):
    """Results for the tokens ``first`` to ``last`` of a batch: rows (tokens, S), beliefs or posteriors; scales
    (tokens,); and after smoothing (S, S) expected transitions to them, yet to be multiplied by A, in float64.
    """

    first: int
    last: int
    rows: Reals
    scales: Reals
    pairs: Doubles | None = None


def filtered(start: Reals, transition: Reals, emission: Reals, batch: DocumentBatch) -> Iterator[BatchPart]:
    """Yield the beliefs of a batch: all at once, or those of a long document part by part."""
    predicted = start
    for first, part in _parts(batch):
        beliefs, scales = filter_batch(predicted, transition, emission, part)
        yield BatchPart(first, first + len(beliefs), beliefs, scales)
        predicted = beliefs[-1] @ transition


def smoothed(start: Reals, transition: Reals, emission: Reals, batch: DocumentBatch) -> Iterator[BatchPart]:
    """Yield the posteriors of a batch, from the last part to the first."""
    parts = list(_parts(batch))
    predicted = [start]
    for _, part in parts[:-1]:
        beliefs, _ = filter_batch(predicted[-1], transition, emission, part)
        predicted.append(beliefs[-1] @ transition)
    backwards, product = np.ascontiguousarray(transition.T), np.empty_like(transition)
    later = np.ones((batch.documents, len(start)), start.dtype)
    weights = np.empty_like(later)
    after = None  # the likelihood of the first token of the following part, for each state
    for (first, part), before in zip(reversed(parts), reversed(predicted), strict=True):
        beliefs, scales = filter_batch(before, transition, emission, part)
        pairs = np.zeros(transition.shape)
        if after is not None:
            pairs += np.outer(beliefs[-1], after)
        known = beliefs[0] > 0
        _smooth(backwards, emission, part.words, part.steps, scales, beliefs, later, weights, product, pairs)
        yield BatchPart(first, first + len(beliefs), beliefs, scales, pairs)
        if first:
            seen = emission[part.words[0]] / scales[0] if scales[0] > 0 else np.ones_like(start)
            after = np.where(known, seen * later[0], 0)
            later[0] = after @ backwards


def _parts(batch: DocumentBatch) -> Iterator[tuple[int, DocumentBatch]]:
    """Yield the batch, or the parts of one long document, and where each begins."""
    tokens = len(batch.words)
    if tokens <= TOKENS_AT_ONCE or batch.documents > 1:
        yield 0, batch
        return
    for first in range(0, tokens, TOKENS_AT_ONCE):
        part = slice(first, min(first + TOKENS_AT_ONCE, tokens))
        yield first, DocumentBatch(batch.places[part], batch.words[part], np.arange(part.stop - first + 1))


class Expected(NamedTuple):
    """What one batch adds to EM's expected counts.

    start: (S,). pairs: (S, S), yet to be multiplied by A. words, rows: (n,) and (n, S), what each of those words adds.
    scales: (N,).
    """

    start: Doubles
    pairs: Doubles
    words: Longs
    rows: Reals
    scales: Reals


def expect_batch(start: Reals, transition: Reals, emission: Reals, batch: DocumentBatch) -> Expected:
    """Return what a batch adds to EM's expected counts."""
    begun, pairs = np.zeros(len(start)), np.zeros(transition.shape)
    scales = np.empty(len(batch.words), start.dtype)
    words, rows = batch.words, np.empty((0, len(start)), start.dtype)
    numbers = words
    if len(words) > TOKENS_AT_ONCE:  # too many posteriors to return: those of the same word are added up
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
        _correct(now, np.int64(0), reading, emission, words, first, least, scales)


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
    """Turn beliefs into posteriors in place.

    later: (documents, S), the likelihood of what follows, one where nothing does; out: that of all but the first
    tokens.
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
    for index in range(rows.shape[0]):
        for state in range(rows.shape[1]):
            rows[index, state] = row[state]


@inlined
def _dot(left: Reals, row: int, right: Reals, other: int) -> float:
    """Return a dot product by eight partial sums, which are added in parallel; one sum would wait for itself."""
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
    """Multiply predicted beliefs by the emission of the words, ``rows`` of them from ``row`` on; their words begin at
    ``token``.
    """
    for index in range(rows):
        here, word = row + index, words[token + index]
        scale = _dot(beliefs, here, emission, word)
        scales[token + index] = scale
        if scale > 0:
            for state in range(beliefs.shape[1]):
                belief = beliefs[here, state] * emission[word, state] / scale
                beliefs[here, state] = belief if belief >= least else 0


@kernel
def _weigh(
    weights: Reals, later: Reals, rows: int, emission: Reals, words: Longs, token: int, scales: Reals, beliefs: Reals
) -> None:
    """Set weights_j = B_j(x) later_j / p(x), zero for unreachable states, which would grow without bound."""
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
    """Add ``rows[i]`` to ``totals[numbers[i]]`` for every i, in that order, so that sums are reproducible."""
    for index in range(len(numbers)):
        number = numbers[index]
        for column in range(rows.shape[1]):
            totals[number, column] += rows[index, column]


def likeliest_paths(
    parameters: tuple[Reals, Reals, Reals], ids: Ids, offsets: Longs, ranges: list[tuple[int, int]], threads: int | None
) -> Ints:
    """Return (N,) the states of each document's likeliest path; ranges: of documents, one piece of work each."""
    start, transition, emission = parameters
    path = np.empty(len(ids), np.int32)
    if len(ids) < len(emission):  # only the rows of these words need a logarithm
        ids, emission = np.arange(len(ids), dtype=np.int32), emission[ids]
    with np.errstate(divide="ignore"):
        logs = np.log(start), np.log(transition), np.log(emission)

    def work(documents: tuple[int, int]) -> None:
        first, last = documents
        longest = int(np.diff(offsets[first : last + 1]).max())
        best = np.empty((max(1, min(longest, VITERBI_ROWS)), len(start)), start.dtype)
        marks = np.empty((longest // len(best), len(start)), start.dtype)
        viterbi(*logs, ids, offsets, first, last, best, marks, path)

    for _ in ordered_map(work, ranges, threads):
        pass
    return path


@kernel
def viterbi(
    log_start: Reals, log_transition: Reals, log_emission: Reals, words: Ids, offsets: Longs, first: int, last: int,
    best: Reals, marks: Reals, path: Ints,
) -> None:  # fmt: skip
    """Fill ``path`` (N,) with the likeliest states of documents ``first`` to ``last``. ``words`` are rows of
    ``log_emission``.

    best: (rows, S), the scores of that many tokens. marks: (blocks, S), the scores just before each block but the first
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
    """Set best[row, j] = max_i earlier[before, i] + log A_ij, four states i at a time to fetch each j less often."""
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
    """Add the word's log-emissions, unless no reachable state emits it: then it carries no information."""
    possible = False
    for state in range(best.shape[1]):
        possible |= best[token, state] + log_emission[word, state] > -np.inf
    if possible:
        for state in range(best.shape[1]):
            best[token, state] += log_emission[word, state]


@inlined
def _likeliest(best: Reals, row: int, log_transition: Reals, following: int) -> int:
    """Return the best state of a row, given the state of the next token (-1 for none)."""
    likeliest, highest = 0, -np.inf
    for state in range(best.shape[1]):
        score = best[row, state]
        if following >= 0:
            score += log_transition[state, following]
        if score > highest:
            likeliest, highest = state, score
    return likeliest
