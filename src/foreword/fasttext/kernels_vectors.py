"""fastText's skip-gram and CBOW: a word is the mean of its own row and the rows of its character n-grams.

The rows of the centre's n-grams (skip-gram), or of all words around it (CBOW), are gathered once per window into h, all
outputs of the window take their steps against it, and its change is added to every row at the end. That is the same as
gathering again for every output, as long as no row comes twice, because every row gets the whole change::

    h = mean of the rows        g = rate · (y − σ(u·h))        u += g h        h += g u (old u)

P. Bojanowski et al., "Enriching word vectors with subword information" (2017). Rows are flat, ``stride`` floats each,
as in ``vectors/kernels_training.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from foreword.arrays import Doubles, Floats, Ints, Longs, UInts, ULongs
from foreword.native import simd
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch
from foreword.vectors.kernels_training import AliasTable, below, draw, next_random, prefetch_row, read_sentence

INPUTS = 1 << 15
"""Most rows of a window: the n-grams of all its words."""

TARGETS = 128
"""Most outputs: a word to predict and its negatives."""


class Subwords(NamedTuple):
    """Rows of words: word w has ``rows[offsets[w]:offsets[w + 1]]``, its own among them."""

    rows: Ints
    offsets: Longs


class SubwordWorkspace(NamedTuple):
    """Buffers of a thread."""

    sentence: Ints
    rows: Longs
    targets: Longs
    labels: Floats
    scores: Floats
    hidden: Floats
    length: Longs


def make_subword_workspace(stride: int, sentence: int) -> SubwordWorkspace:
    """Allocate the buffers of a thread."""
    return SubwordWorkspace(
        np.empty(sentence, np.int32),
        np.empty(INPUTS, np.int64),
        np.zeros(2 * TARGETS, np.int64),
        np.zeros(TARGETS + simd.LANES, np.float32),
        np.zeros(TARGETS + simd.LANES, np.float32),
        np.zeros(2 * stride, np.float32),
        np.zeros(1, np.int64),
    )


@inlined
def add_rows(subwords: Subwords, word: int, stride: int, rows: Longs, count: int) -> int:
    """Append the rows of a word, as many as fit, and return how many there are now."""
    for place in range(subwords.offsets[word], subwords.offsets[word + 1]):
        if count < len(rows):
            rows[count] = np.int64(subwords.rows[place]) * stride
            count += 1
    return count


@inlined
def gather_mean(inputs: Floats, rows: Longs, count: int, stride: int, hidden: Floats) -> None:
    """Set ``hidden[:stride]``, and the copy behind it, to the mean of the rows, prefetching eight rows ahead."""
    for k in range(0, stride, 16):
        simd.store(hidden, k, simd.zeros())
    for place in range(count):
        if place + 8 < count:
            prefetch_row(inputs, rows[place + 8], stride)
        row = rows[place]
        for k in range(0, stride, 16):
            simd.store(hidden, k, simd.add(simd.load(hidden, k), simd.load(inputs, row + k)))
    share = np.float32(1.0) / np.float32(count)
    for k in range(0, stride, 16):
        mean = simd.scaled(share, simd.load(hidden, k))
        simd.store(hidden, k, mean)
        simd.store(hidden, stride + k, mean)


@inlined
def dots(hidden: Floats, outputs: Floats, targets: Longs, at: int, n: int, stride: int, scores: Floats) -> None:
    """Set ``scores[j] = h · u_j``, three outputs at a time; padding repeats the last."""
    for j in range(0, n, 3):
        t0, t1, t2 = targets[at + j], targets[at + min(j + 1, n - 1)], targets[at + min(j + 2, n - 1)]
        a0, a1, a2 = simd.zeros(), simd.zeros(), simd.zeros()
        for k in range(0, stride, 16):
            h = simd.load(hidden, k)
            a0 = simd.multiply_add(h, simd.load(outputs, t0 + k), a0)
            a1 = simd.multiply_add(h, simd.load(outputs, t1 + k), a1)
            a2 = simd.multiply_add(h, simd.load(outputs, t2 + k), a2)
        scores[j], scores[j + 1], scores[j + 2] = simd.total(a0), simd.total(a1), simd.total(a2)


@inlined
def gradients_of(labels: Floats, n: int, rate: np.float32, scores: Floats) -> float:
    """Turn scores into gradients and return the log-likelihood. Padding is given a certain answer and adds nothing."""
    for j in range(n, (n + 15) // 16 * 16):
        labels[j], scores[j] = np.float32(1.0), np.float32(80.0)
    likelihood = simd.zeros()
    for j in range(0, n, 16):
        error = simd.subtract(simd.load(labels, j), simd.sigmoid(simd.load(scores, j)))
        likelihood = simd.add(likelihood, simd.logarithm(simd.one_minus_size(error)))
        simd.store(scores, j, simd.scaled(rate, error))
    return np.float64(simd.total(likelihood))


@inlined
def update_outputs(
    hidden: Floats, outputs: Floats, targets: Longs, at: int, n: int, stride: int, gradients: Floats
) -> None:
    """Compute ``u_j += g_j h`` and ``h += Σ g_j u_j``, both from the old values."""
    for k in range(0, stride, 16):
        h = simd.load(hidden, k)
        moved = h
        for j in range(n):
            place = targets[at + j] + k
            u = simd.load(outputs, place)
            moved = simd.scaled_add(gradients[j], u, moved)
            simd.store(outputs, place, simd.scaled_add(gradients[j], h, u))
        simd.store(hidden, k, moved)


@inlined
def update_rows(inputs: Floats, rows: Longs, count: int, stride: int, hidden: Floats) -> None:
    """Add the change of ``hidden[:stride]`` to every row."""
    for k in range(0, stride, 16):
        simd.store(hidden, stride + k, simd.subtract(simd.load(hidden, k), simd.load(hidden, stride + k)))
    for place in range(count):
        row = rows[place]
        for k in range(0, stride, 16):
            simd.store(inputs, row + k, simd.add(simd.load(inputs, row + k), simd.load(hidden, stride + k)))


@inlined
def list_targets(
    word: int, outputs: Floats, stride: int, negatives: int, noise: AliasTable, random: ULongs,
    targets: Longs, at: int,
) -> int:  # fmt: skip
    """List and prefetch the rows of the word to predict and of words drawn as noise; return how many they are."""
    targets[at] = word * stride
    prefetch_row(outputs, targets[at], stride)
    count = 1
    for _ in range(negatives):
        drawn = draw(random, noise)
        if drawn != word:
            targets[at + count] = drawn * stride
            prefetch_row(outputs, targets[at + count], stride)
            count += 1
    return count


@inlined
def predict_step(
    hidden: Floats, outputs: Floats, targets: Longs, at: int, n: int, stride: int, rate: np.float32,
    labels: Floats, scores: Floats,
) -> float:  # fmt: skip
    """Make a step for one word to predict and n − 1 noise words; return the log-likelihood before it."""
    dots(hidden, outputs, targets, at, n, stride, scores)
    labels[0] = np.float32(1.0)
    for j in range(1, n):
        labels[j] = np.float32(0.0)
    likelihood = gradients_of(labels, n, rate, scores)
    update_outputs(hidden, outputs, targets, at, n, stride, scores)
    return likelihood


@kernel
def train_subwords(
    ids: Any, begin: int, stop: int, end: int, keep: UInts, window: int, cbow: bool, negatives: int,
    noise: AliasTable, subwords: Subwords, inputs: Floats, outputs: Floats, stride: int, rate: np.float32,
    random: ULongs, work: SubwordWorkspace, report: Doubles,
) -> None:  # fmt: skip
    """Train on ``ids[begin:stop]``; add log-likelihood, pairs and centre words to ``report``."""
    sentence, rows, targets, labels = work.sentence, work.rows, work.targets, work.labels
    scores, hidden = work.scores, work.hidden
    at = begin
    while at < stop:
        at = read_sentence(ids, at, stop, end, keep, random, sentence, work.length)
        length = work.length[0]
        for centre in range(length):
            if centre + 1 < length:
                ahead = np.int64(sentence[centre + 1])
                for place in range(subwords.offsets[ahead], subwords.offsets[ahead + 1]):
                    prefetch(inputs, np.int64(subwords.rows[place]) * stride)
            reach = 1 + below(next_random(random), window)
            first, last = max(0, centre - reach), min(length, centre + reach + 1)
            if last - first < 2:
                continue
            word = np.int64(sentence[centre])
            count = 0
            if cbow:
                n = list_targets(word, outputs, stride, negatives, noise, random, targets, 0)
                for place in range(first, last):
                    if place != centre:
                        count = add_rows(subwords, np.int64(sentence[place]), stride, rows, count)
                gather_mean(inputs, rows, count, stride, hidden)
                report[0] += predict_step(hidden, outputs, targets, 0, n, stride, rate, labels, scores)
                report[1] += n
            else:
                place = first + 1 if first == centre else first
                waiting = list_targets(np.int64(sentence[place]), outputs, stride, negatives, noise, random, targets, 0)
                count = add_rows(subwords, word, stride, rows, count)
                gather_mean(inputs, rows, count, stride, hidden)
                half = 0
                while place < last:
                    n, now = waiting, half
                    place += 2 if place + 1 == centre else 1
                    half = TARGETS - half
                    if place < last:
                        # The next context's rows are prefetched meanwhile.
                        waiting = list_targets(
                            np.int64(sentence[place]), outputs, stride, negatives, noise, random, targets, half
                        )
                    report[0] += predict_step(hidden, outputs, targets, now, n, stride, rate, labels, scores)
                    report[1] += n
            update_rows(inputs, rows, count, stride, hidden)
            report[2] += 1
