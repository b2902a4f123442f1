"""Training word vectors: skip-gram and CBOW steps over a corpus (Mikolov et al. 2013), a window at a time; and what
they begin with: counts, tables to draw from, random rows.

For each centre word the outputs (the word itself and its negatives, or the nodes of its path in a tree) are drawn once
and shared by the whole window: m inputs × n outputs of one small matrix product, instead of m·n single pairs (Ji et
al. 2016). With inputs H (m, d), outputs W (n, d) and labels y (n,)::

    G = rate · (y − σ(H Wᵀ))        H += G W        W += Gᵀ H         all three from the old H and W

The full softmax (``train_softmax``) predicts from one vector at a time, for every word a row of the output matrix.

Matrices are flat, one row per ``stride`` floats, a multiple of sixteen. Outputs come in groups of six: six rows and
their six changes stay in registers while the inputs of the window are read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from foreword.arrays import Bytes, Doubles, Floats, Ints, Longs, UInts, ULongs
from foreword.native import simd
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch_to_write

GROUP = 6
"""Outputs that are updated together: six rows and six changes, with one input, fit in the registers."""

OUTPUTS = 72
"""Most outputs of a centre word: 71 negatives, or a path of 72 turns."""

CONTEXTS = 512
"""Most inputs of a window: 256 words on either side."""

_MIX = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)


class AliasTable(NamedTuple):
    """Walker's alias table: draw k and a fraction u uniformly; it is k if u < accept[k] / 2³², else other[k]."""

    accept: UInts
    other: Ints


class Paths(NamedTuple):
    """Paths in a tree: word w turns ``turns[offsets[w]:offsets[w + 1]]`` at inner nodes ``nodes[...]``, root first."""

    nodes: Ints
    turns: Bytes
    offsets: Longs


class WindowWorkspace(NamedTuple):
    """Buffers of a thread, so that the kernel need not allocate: with the outputs of two words, the current and the
    next.
    """

    sentence: Ints
    rows: Longs
    targets: Longs
    wanted: Floats
    group: Longs
    labels: Floats
    scores: Floats
    hidden: Floats


def make_workspace(stride: int, sentence: int) -> WindowWorkspace:
    """Allocate the buffers of a thread."""
    scores = (CONTEXTS + 2) * GROUP + simd.LANES
    return WindowWorkspace(
        np.empty(sentence, np.int32),
        np.zeros(CONTEXTS + 1, np.int64),
        np.zeros(2 * OUTPUTS, np.int64),
        np.zeros(2 * OUTPUTS, np.float32),
        np.zeros(GROUP + 2, np.int64),
        np.zeros(scores, np.float32),
        np.zeros(scores, np.float32),
        np.zeros(2 * stride, np.float32),
    )


@inlined
def next_random(state: ULongs) -> np.uint64:
    """Return 64 random bits: SplitMix64 (Steele et al. 2014)."""
    state[0] += _MIX
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@inlined
def below(random: np.uint64, limit: int) -> int:
    """Return a number in [0, limit) from the upper 32 bits."""
    return np.int64(((random >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


@inlined
def draw(state: ULongs, noise: AliasTable) -> int:
    """Draw a word from the noise distribution by its alias table (Walker 1977): exact, and it fits into the cache."""
    random = next_random(state)
    word = below(random, len(noise.accept))
    if (random & _LOW) >= np.uint64(noise.accept[word]):
        return np.int64(noise.other[word])
    return word


@inlined
def prefetch_row(matrix: Floats, place: int, stride: int) -> None:
    """Prefetch a row that will be written."""
    for part in range(0, stride, 16):
        prefetch_to_write(matrix, place + part)


@inlined
def scores_of(
    inputs: Floats, rows: Longs, m: int, outputs: Floats, targets: Longs, stride: int, scores: Floats
) -> None:
    """Set ``scores[i * 6 + j] = H[i] · W[j]``, two inputs at a time."""
    t0, t1, t2, t3, t4, t5 = targets[0], targets[1], targets[2], targets[3], targets[4], targets[5]
    for i in range(0, m, 2):
        one, two = rows[i], rows[min(i + 1, m - 1)]
        a0, a1, a2, a3, a4, a5 = simd.zeros(), simd.zeros(), simd.zeros(), simd.zeros(), simd.zeros(), simd.zeros()
        b0, b1, b2, b3, b4, b5 = simd.zeros(), simd.zeros(), simd.zeros(), simd.zeros(), simd.zeros(), simd.zeros()
        for k in range(0, stride, 16):
            h, g = simd.load(inputs, one + k), simd.load(inputs, two + k)
            w = simd.load(outputs, t0 + k)
            a0, b0 = simd.multiply_add(h, w, a0), simd.multiply_add(g, w, b0)
            w = simd.load(outputs, t1 + k)
            a1, b1 = simd.multiply_add(h, w, a1), simd.multiply_add(g, w, b1)
            w = simd.load(outputs, t2 + k)
            a2, b2 = simd.multiply_add(h, w, a2), simd.multiply_add(g, w, b2)
            w = simd.load(outputs, t3 + k)
            a3, b3 = simd.multiply_add(h, w, a3), simd.multiply_add(g, w, b3)
            w = simd.load(outputs, t4 + k)
            a4, b4 = simd.multiply_add(h, w, a4), simd.multiply_add(g, w, b4)
            w = simd.load(outputs, t5 + k)
            a5, b5 = simd.multiply_add(h, w, a5), simd.multiply_add(g, w, b5)
        at = i * GROUP
        scores[at], scores[at + 1], scores[at + 2] = simd.total(a0), simd.total(a1), simd.total(a2)
        scores[at + 3], scores[at + 4], scores[at + 5] = simd.total(a3), simd.total(a4), simd.total(a5)
        scores[at + 6], scores[at + 7], scores[at + 8] = simd.total(b0), simd.total(b1), simd.total(b2)
        scores[at + 9], scores[at + 10], scores[at + 11] = simd.total(b3), simd.total(b4), simd.total(b5)


@inlined
def update(
    inputs: Floats, rows: Longs, m: int, outputs: Floats, targets: Longs, stride: int, gradients: Floats
) -> None:
    """Compute ``H += G W`` and ``W += Gᵀ H``, sixteen columns at a time, all inputs against six outputs."""
    t0, t1, t2, t3, t4, t5 = targets[0], targets[1], targets[2], targets[3], targets[4], targets[5]
    for k in range(0, stride, 16):
        w0, w1, w2 = simd.load(outputs, t0 + k), simd.load(outputs, t1 + k), simd.load(outputs, t2 + k)
        w3, w4, w5 = simd.load(outputs, t3 + k), simd.load(outputs, t4 + k), simd.load(outputs, t5 + k)
        c0, c1, c2, c3, c4, c5 = simd.zeros(), simd.zeros(), simd.zeros(), simd.zeros(), simd.zeros(), simd.zeros()
        for i in range(m):
            at = i * GROUP
            place = rows[i] + k
            h = simd.load(inputs, place)
            g0, g1, g2 = gradients[at], gradients[at + 1], gradients[at + 2]
            g3, g4, g5 = gradients[at + 3], gradients[at + 4], gradients[at + 5]
            c0, c1, c2 = simd.scaled_add(g0, h, c0), simd.scaled_add(g1, h, c1), simd.scaled_add(g2, h, c2)
            c3, c4, c5 = simd.scaled_add(g3, h, c3), simd.scaled_add(g4, h, c4), simd.scaled_add(g5, h, c5)
            h = simd.scaled_add(g0, w0, simd.scaled_add(g1, w1, simd.scaled_add(g2, w2, h)))
            h = simd.scaled_add(g3, w3, simd.scaled_add(g4, w4, simd.scaled_add(g5, w5, h)))
            simd.store(inputs, place, h)
        # Read again before adding: two of the six may be the same word.
        simd.store(outputs, t0 + k, simd.add(simd.load(outputs, t0 + k), c0))
        simd.store(outputs, t1 + k, simd.add(simd.load(outputs, t1 + k), c1))
        simd.store(outputs, t2 + k, simd.add(simd.load(outputs, t2 + k), c2))
        simd.store(outputs, t3 + k, simd.add(simd.load(outputs, t3 + k), c3))
        simd.store(outputs, t4 + k, simd.add(simd.load(outputs, t4 + k), c4))
        simd.store(outputs, t5 + k, simd.add(simd.load(outputs, t5 + k), c5))


@inlined
def window_step(
    inputs: Floats, rows: Longs, m: int, outputs: Floats, targets: Longs, labels: Floats, n: int, stride: int,
    rate: np.float32, scores: Floats,
) -> float:  # fmt: skip
    """Make a step of gradient ascent for m inputs and n ≤ 6 outputs; return the log-likelihood before it.

    labels: y for each score, input by input. Padding is given a certain, correct answer and adds nothing.
    """
    scores_of(inputs, rows, m, outputs, targets, stride, scores)
    likelihood = simd.zeros()
    size = m * GROUP
    for at in range(size, (size + 15) // 16 * 16):
        labels[at], scores[at] = np.float32(1.0), np.float32(80.0)
    for j in range(n, GROUP):
        for i in range(m):
            labels[i * GROUP + j], scores[i * GROUP + j] = np.float32(1.0), np.float32(80.0)
    for at in range(0, size, 16):
        error = simd.subtract(simd.load(labels, at), simd.sigmoid(simd.load(scores, at)))
        likelihood = simd.add(likelihood, simd.logarithm(simd.one_minus_size(error)))
        simd.store(scores, at, simd.scaled(rate, error))
    update(inputs, rows, m, outputs, targets, stride, scores)
    return np.float64(simd.total(likelihood))


@inlined
def list_outputs(
    word: int, outputs: Floats, stride: int, negatives: int, noise: AliasTable, paths: Paths,
    random: ULongs, targets: Longs, wanted: Floats, begin: int,
) -> int:  # fmt: skip
    """List the output rows of a centre word and the label of each, prefetch them, and return how many they are.

    With negatives: the word, and words drawn as noise, except the word itself. Without: the inner nodes on the word's
    path in the tree, and where the path turns.
    """
    count = 0
    if negatives:
        targets[begin], wanted[begin] = word * stride, np.float32(1.0)
        count = 1
        for _ in range(negatives):
            drawn = draw(random, noise)
            if drawn != word:
                targets[begin + count], wanted[begin + count] = drawn * stride, np.float32(0.0)
                count += 1
    else:
        for place in range(paths.offsets[word], paths.offsets[word + 1]):
            targets[begin + count], wanted[begin + count] = (
                np.int64(paths.nodes[place]) * stride,
                np.float32(paths.turns[place]),
            )
            count += 1
    for place in range(begin, begin + count):
        prefetch_row(outputs, targets[place], stride)
    return count


@inlined
def fill_group(targets: Longs, wanted: Floats, begin: int, n: int, m: int, group: Longs, labels: Floats) -> None:
    """Select six of the outputs; if fewer are left the first is repeated, and ``window_step`` leaves it unchanged."""
    for j in range(GROUP):
        group[j] = targets[begin + (j if j < n else 0)]
    for i in range(m):
        for j in range(n):
            labels[i * GROUP + j] = wanted[begin + j]


@inlined
def read_sentence(
    ids: Any, at: int, stop: int, end: int, keep: UInts, random: ULongs,
    sentence: Ints, length: Longs,
) -> int:  # fmt: skip
    """Read the sampled words of a document, or as many as fit into ``sentence``; return where to continue."""
    kept = 0
    while at < stop and kept < len(sentence):
        word = np.int64(ids[at])
        at += 1
        if word == end:
            break
        if (next_random(random) & _LOW) < np.uint64(keep[word]):
            sentence[kept] = word
            kept += 1
    length[0] = kept
    return at


@inlined
def window_rows(
    sentence: Ints, length: int, centre: int, window: int, fixed: bool, stride: int, random: ULongs,
    rows: Longs,
) -> int:  # fmt: skip
    """List the rows of the words around ``centre``, up to ``window`` away, or a distance drawn from 1 to ``window`` if
    it is not fixed; return how many.
    """
    reach = window if fixed else 1 + below(next_random(random), window)
    m = 0
    for place in range(max(0, centre - reach), min(length, centre + reach + 1)):
        if place != centre:
            rows[m] = np.int64(sentence[place]) * stride
            m += 1
    return m


@inlined
def mean_row(inputs: Floats, rows: Longs, m: int, stride: int, hidden: Floats) -> None:
    """Set ``hidden[:stride]``, and the copy behind it, to the mean of the rows."""
    share = np.float32(1.0) / np.float32(m)
    for k in range(0, stride, 16):
        mean = simd.zeros()
        for i in range(m):
            mean = simd.add(mean, simd.load(inputs, rows[i] + k))
        mean = simd.scaled(share, mean)
        simd.store(hidden, k, mean)
        simd.store(hidden, stride + k, mean)


@inlined
def pass_back(inputs: Floats, rows: Longs, m: int, stride: int, hidden: Floats) -> None:
    """Add the change of ``hidden[:stride]`` to every row."""
    for k in range(0, stride, 16):
        change = simd.subtract(simd.load(hidden, k), simd.load(hidden, stride + k))
        for i in range(m):
            simd.store(inputs, rows[i] + k, simd.add(simd.load(inputs, rows[i] + k), change))


@kernel
def train_windows(
    ids: Any, begin: int, stop: int, end: int, keep: UInts, window: int, fixed: bool, cbow: bool,
    negatives: int, noise: AliasTable, paths: Paths, inputs: Floats, outputs: Floats, stride: int, rate: np.float32,
    random: ULongs, work: WindowWorkspace, report: Doubles,
) -> None:  # fmt: skip
    """Train on ``ids[begin:stop]``; add log-likelihood, pairs and centre words to ``report``.

    keep: for each id how often it is read, of 2³²: subsampling, and 0 for ids that are no words.
    negatives: the number of noise words, or 0 for the paths of a tree.
    """
    sentence, rows, targets, wanted = work.sentence, work.rows, work.targets, work.wanted
    group, labels, scores, hidden = work.group, work.labels, work.scores, work.hidden
    alone, one = rows[CONTEXTS:], np.int64(1)  # where the row is in an array of one row
    at = begin
    while at < stop:
        at = read_sentence(ids, at, stop, end, keep, random, sentence, group)
        length = group[0]
        half = 0
        count = 0
        for centre in range(-1, length):
            size, now = count, half
            half = OUTPUTS - half
            if centre + 1 < length:
                # The next word's rows are prefetched now.
                word = np.int64(sentence[centre + 1])
                count = list_outputs(
                    word, outputs, stride, negatives, noise, paths, random, targets, wanted, half
                )  # fmt: skip
            if centre < 0:
                continue
            if centre + window + 1 < length:
                prefetch_row(inputs, np.int64(sentence[centre + window + 1]) * stride, stride)
            m = window_rows(sentence, length, centre, window, fixed, stride, random, rows)
            if m == 0:
                continue
            if cbow:
                mean_row(inputs, rows, m, stride, hidden)
            for first in range(now, now + size, GROUP):
                n = min(GROUP, now + size - first)
                if cbow:
                    fill_group(targets, wanted, first, n, 1, group, labels)
                    report[0] += window_step(hidden, alone, one, outputs, group, labels, n, stride, rate, scores)
                    report[1] += n
                else:
                    fill_group(targets, wanted, first, n, m, group, labels)
                    report[0] += window_step(inputs, rows, m, outputs, group, labels, n, stride, rate, scores)
                    report[1] += m * n
            if cbow:
                pass_back(inputs, rows, m, stride, hidden)
            report[2] += 1


@inlined
def dot_row(matrix: Floats, place: int, vector: Floats, stride: int) -> np.float32:
    """Return the product of a row and a vector."""
    sums = simd.zeros()
    for k in range(0, stride, 16):
        sums = simd.multiply_add(simd.load(matrix, place + k), simd.load(vector, k), sums)
    return simd.total(sums)


@inlined
def softmax_step(
    outputs: Floats, keep: UInts, stride: int, hidden: Floats, targets: Longs, n: int, rate: np.float32, scores: Floats
) -> float:
    """Make a step of ``outputs`` for n words, each predicted from ``hidden[:stride]`` by a softmax over all; leave the
    gradient for hidden in ``hidden[stride:]`` and return the log-likelihood before the step.
    """
    greatest = np.float32(-np.inf)
    for word in range(len(keep)):
        if keep[word]:
            scores[word] = dot_row(outputs, word * stride, hidden, stride)
            greatest = max(greatest, scores[word])
    total, likelihood = 0.0, 0.0
    for word in range(len(keep)):
        if keep[word]:
            total += np.exp(np.float64(scores[word] - greatest))
    for i in range(n):
        likelihood += np.float64(scores[targets[i] // stride] - greatest) - np.log(total)
    for word in range(len(keep)):
        scores[word] = np.float32(n * np.exp(np.float64(scores[word] - greatest)) / total) if keep[word] else 0
    for i in range(n):
        scores[targets[i] // stride] -= np.float32(1)
    for k in range(0, stride, 16):
        simd.store(hidden, stride + k, simd.zeros())
    for word in range(len(keep)):
        if keep[word]:
            error, down = scores[word], -rate * scores[word]
            for k in range(0, stride, 16):
                row = simd.load(outputs, word * stride + k)
                simd.store(hidden, stride + k, simd.scaled_add(error, row, simd.load(hidden, stride + k)))
                simd.store(outputs, word * stride + k, simd.scaled_add(down, simd.load(hidden, k), row))
    return likelihood


@inlined
def add_scaled(inputs: Floats, rows: Longs, m: int, stride: int, hidden: Floats, scale: np.float32) -> None:
    """Add ``hidden[stride:]``, scaled, to every row."""
    for i in range(m):
        for k in range(0, stride, 16):
            row = simd.load(inputs, rows[i] + k)
            simd.store(inputs, rows[i] + k, simd.scaled_add(scale, simd.load(hidden, stride + k), row))


@kernel
def train_softmax(
    ids: Any, begin: int, stop: int, end: int, keep: UInts, window: int, fixed: bool, cbow: bool, inputs: Floats,
    outputs: Floats, stride: int, rate: np.float32, random: ULongs, work: WindowWorkspace, scores: Floats,
    report: Doubles,
) -> None:  # fmt: skip
    """Train on ``ids[begin:stop]`` with the softmax over all words that are read; scores: a buffer (V,).

    CBOW: the mean of the window predicts the centre. Skip-gram: the centre predicts each word of the window.
    """
    sentence, rows, group, hidden = work.sentence, work.rows, work.group, work.hidden
    at = begin
    while at < stop:
        at = read_sentence(ids, at, stop, end, keep, random, sentence, group)
        length = group[0]
        for centre in range(length):
            m = window_rows(sentence, length, centre, window, fixed, stride, random, rows)
            if m == 0:
                continue
            group[0] = np.int64(sentence[centre]) * stride
            if cbow:
                mean_row(inputs, rows, m, stride, hidden)
                report[0] += softmax_step(outputs, keep, stride, hidden, group, np.int64(1), rate, scores)
                report[1] += 1
                add_scaled(inputs, rows, m, stride, hidden, -rate / np.float32(m))
            else:
                mean_row(inputs, group, 1, stride, hidden)
                report[0] += softmax_step(outputs, keep, stride, hidden, rows, m, rate, scores)
                report[1] += m
                add_scaled(inputs, group, 1, stride, hidden, -rate)
            report[2] += 1


# Counts and tables to draw from

COUNT_LANES = 4
"""Neighbouring ids are counted separately: if the same comes twice, the second count would wait for the first."""


@kernel
def count_ids(ids: Any, begin: int, stop: int, counts: Longs) -> None:
    """Add the counts of ids in ``ids[begin:stop]`` to ``counts`` (COUNT_LANES, V); no id may be V or more."""
    for place in range(begin, stop):
        counts[place & (COUNT_LANES - 1), np.int64(ids[place])] += 1


@kernel
def fill_aliases(
    shares: Doubles, accept: Doubles, other: Ints, poor: Ints,
    rich: Ints,
) -> None:  # fmt: skip
    """Build Walker's table of shares whose mean is 1 with Vose's two stacks, poor and rich; overwrites ``shares``."""
    few, many = 0, 0
    for place in range(len(shares)):
        accept[place], other[place] = 1.0, place
        if shares[place] < 1.0:
            poor[few] = place
            few += 1
        else:
            rich[many] = place
            many += 1
    while few and many:
        few -= 1
        taker, giver = poor[few], rich[many - 1]
        accept[taker], other[taker] = shares[taker], giver
        shares[giver] -= 1.0 - shares[taker]
        if shares[giver] < 1.0:
            poor[few] = giver
            few += 1
            many -= 1


# Random rows. A number is a function of the seed, its row and its column, so threads may fill rows in any order and get
# the same: SplitMix64 (Steele et al. 2014) of the row, then Wellons' 32-bit mix ("lowbias32") of the column, sixteen at
# a time.

_ROW = np.uint64(0x9E3779B97F4A7C15)
_COLUMN = np.uint32(0x9E3779B9)
_ONE_OF = np.float32(1 / (1 << 23))


@inlined
def mixed_column(word: np.uint32) -> np.uint32:
    """Mix 32 bits."""
    word = np.uint32(word ^ np.uint32(word >> np.uint32(16)))
    word = np.uint32(word * np.uint32(0x7FEB352D))
    word = np.uint32(word ^ np.uint32(word >> np.uint32(15)))
    word = np.uint32(word * np.uint32(0x846CA68B))
    return np.uint32(word ^ np.uint32(word >> np.uint32(16)))


@kernel
def fill_rows(
    matrix: Floats, stride: int, first: int, last: int, dimensions: int, reach: np.float32, seed: np.uint64
) -> None:
    """Fill rows ``first`` to ``last`` of a flat matrix with numbers from −reach to reach; padding is left unchanged."""
    for row in range(first, last):
        mixed = seed + np.uint64(row + 1) * _ROW
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        low, high = np.uint32(mixed), np.uint32(mixed >> np.uint64(32))
        for column in range(dimensions):
            bits = np.uint32(mixed_column(np.uint32(low + np.uint32(column) * _COLUMN)) ^ high)
            number = np.float32(np.int32(bits >> np.uint32(8))) * _ONE_OF - np.float32(1.0)
            matrix[row * stride + column] = number * reach
