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


# Tagging: the state is a pair of tags, and a word has only the few tags that it can have


class Lexicon(NamedTuple):
    """The tags that each entry, a word or an ending, can have.

    rows: int64 (entries + 1,); entry e has the places ``rows[e]`` to ``rows[e + 1]`` of the other two.
    tags: int32. logs: float64, log p(tag | entry) − log p(tag), which is log p(entry | tag) but for a constant.
    """

    rows: Longs
    tags: NDArray[np.int32]
    logs: NDArray[np.float64]


def plain_tags(codes: Longs, lexicon: Lexicon, moves: NDArray[np.float64], kinds: int) -> list[int]:
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
    labels: NDArray[np.int64]
    logs: NDArray[np.float64]
    pairs: NDArray[np.float64]


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
    moves: NDArray[np.float64],
    kinds: int,
    room: Lattice,
    tags: NDArray[np.int32],
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
def _through(room: Lattice, moves: NDArray[np.float64], place: int, origin: int, second: int, third: int) -> float:
    """The score of the choice ``third`` at ``place``, reached from ``origin`` through ``second``."""
    labels = room.labels
    move = moves[labels[place - 2, origin], labels[place - 1, second], labels[place, third]]
    return room.pairs[place - 1, origin, second] + move


@inlined
def _best_origin(room: Lattice, moves: NDArray[np.float64], place: int, second: int, third: int) -> int:
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
    chances: NDArray[np.float64],
    kinds: int,
    room: Lattice,
    later: NDArray[np.float64],
    earlier: NDArray[np.float64],
    posteriors: NDArray[np.float64],
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
def _forward(room: Lattice, chances: NDArray[np.float64], place: int) -> None:
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
    for second in range(room.widths[place - 1]):
        for third in range(room.widths[place]):
            room.pairs[place, second, third] /= total


@inlined
def _backward(
    room: Lattice, chances: NDArray[np.float64], place: int, later: NDArray[np.float64], earlier: NDArray[np.float64]
) -> None:
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
    for origin in range(room.widths[place - 2]):
        for second in range(room.widths[place - 1]):
            earlier[origin, second] /= largest


@inlined
def _gather_posterior(
    room: Lattice, place: int, later: NDArray[np.float64], kinds: int, posteriors: NDArray[np.float64], token: int
) -> None:
    total = 0.0
    for before in range(room.widths[place - 1]):
        for choice in range(room.widths[place]):
            total += room.pairs[place, before, choice] * later[before, choice]
    for before in range(room.widths[place - 1]):
        for choice in range(room.widths[place]):
            share = room.pairs[place, before, choice] * later[before, choice] / total
            posteriors[token, room.labels[place, choice] % kinds] += share
