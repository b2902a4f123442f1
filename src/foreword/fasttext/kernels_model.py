"""fastText's classifier: the mean of a line's rows and its labels, predicted and trained; and quantisation.

fastText adds 0.00001 to a probability before it takes the logarithm, at every turn of a tree, and returns the
exponential of those logarithms' sum. Thresholds in use were chosen on such numbers, so they are reproduced; here they
are multiplied, which saves the logarithms.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from foreword.arrays import Bytes, Doubles, Floats, Ints, Longs, ULongs
from foreword.fasttext.kernels_lines import LineReader, LineWorkspace, read_lines
from foreword.native import simd
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch_far
from foreword.vectors.kernels_training import Paths, below, next_random

AHEAD = 32
"""Rows between prefetching and using them."""

MORE = 1e-5
"""fastText adds this to every probability."""


class Answers(NamedTuple):
    """How a hidden vector becomes labels.

    pools: 1 if it is the mean of the rows; 3 if their largest and smallest values follow.
    outputs: flat float32, one row per label, or per inner node of the tree; labels: how many; tree: if there is one.
    left, right: int32 (2 · labels − 1,), the children of a node, −1 for a leaf, whose number is its label's.
    softmax: whether the scores share one distribution; else each label has its own probability.
    weighted, weights: whether rows have different weights in the mean, and the weights.
    grades: float32 (labels,), for training by the squared error of the expected grade; empty otherwise.
    """

    pools: int
    outputs: Floats
    labels: int
    tree: bool
    left: Ints
    right: Ints
    softmax: bool
    weighted: bool
    weights: Floats
    grades: Floats


class Question(NamedTuple):
    """Which labels are asked for.

    k: how many of the best; least: their least probability, before fastText's 0.00001 is added.
    scored: int32, labels that share the softmax; ranked: int32, labels that can be among the best.
    wanted: int32, labels whose probabilities are written whether or not they are among the best.
    every: whether all labels are ranked. parents: int32 (2 · labels − 1,), of the nodes of the tree.
    """

    k: int
    least: float
    scored: Ints
    ranked: Ints
    wanted: Ints
    every: bool
    parents: Ints


class Best(NamedTuple):
    """The k best, and buffers for the search of the tree."""

    scores: Floats
    values: Doubles
    names: Ints
    stack: Ints
    stack_values: Doubles


def make_best(labels: int, k: int) -> Best:
    """Allocate the k best of ``labels``."""
    return Best(
        np.empty(labels + simd.LANES, np.float32),
        np.empty(k, np.float64),
        np.empty(k, np.int32),
        np.empty(2 * labels + 2, np.int32),
        np.empty(2 * labels + 2, np.float64),
    )


@inlined
def prefetch_far_row(matrix: Floats, place: int, stride: int) -> None:
    """Prefetch a row that will be used later."""
    for part in range(0, stride, 16):
        prefetch_far(matrix, place + part)


@inlined
def pool_rows(
    inputs: Floats, rows: Ints, first: int, count: int, soon: int, stride: int, answers: Answers, hidden: Floats,
    largest: Ints, smallest: Ints,
) -> np.float32:  # fmt: skip
    """Set ``hidden[:stride]`` to the mean of the rows ``rows[first:first + count]``, and with three pools the rest to
    their largest and smallest values, column by column; ``largest`` and ``smallest`` become the rows they came from.
    Rows up to ``rows[:soon]`` are prefetched. Return the divisor of the mean.
    """
    for k in range(0, stride, 16):
        simd.store(hidden, k, simd.zeros())
    last = first + count
    if answers.weighted:
        total = add_weighted(inputs, rows, first, last, soon, stride, answers.weights, hidden)
    else:
        add_rows(inputs, rows, first, last, soon, stride, hidden)
        total = np.float32(count)
    share = np.float32(1.0) / total
    for k in range(0, stride, 16):
        simd.store(hidden, k, simd.scaled(share, simd.load(hidden, k)))
    if answers.pools == 3:
        find_extremes(inputs, rows, first, last, stride, hidden, largest, smallest)
    return total


@inlined
def add_weighted(
    inputs: Floats, rows: Ints, first: int, last: int, soon: int, stride: int, weights: Floats, hidden: Floats
) -> np.float32:
    """Add the rows, each times its weight, and return the sum of the weights."""
    total = np.float32(0.0)
    for place in range(first, last):
        if place + AHEAD < soon:
            prefetch_far_row(inputs, np.int64(rows[place + AHEAD]) * stride, stride)
        weight, row = weights[rows[place]], np.int64(rows[place]) * stride
        total += weight
        for k in range(0, stride, 16):
            simd.store(hidden, k, simd.scaled_add(weight, simd.load(inputs, row + k), simd.load(hidden, k)))
    return total


@inlined
def add_rows(inputs: Floats, rows: Ints, first: int, last: int, soon: int, stride: int, hidden: Floats) -> None:
    """Add the rows."""
    place = first
    while place + 4 <= last:  # four at a time, so that the sum is loaded and stored less often
        for ahead in range(place + AHEAD, min(place + AHEAD + 4, soon)):
            prefetch_far_row(inputs, np.int64(rows[ahead]) * stride, stride)
        one, two = np.int64(rows[place]) * stride, np.int64(rows[place + 1]) * stride
        three, four = np.int64(rows[place + 2]) * stride, np.int64(rows[place + 3]) * stride
        for k in range(0, stride, 16):
            left = simd.add(simd.load(inputs, one + k), simd.load(inputs, two + k))
            right = simd.add(simd.load(inputs, three + k), simd.load(inputs, four + k))
            simd.store(hidden, k, simd.add(simd.load(hidden, k), simd.add(left, right)))
        place += 4
    while place < last:
        row = np.int64(rows[place]) * stride
        for k in range(0, stride, 16):
            simd.store(hidden, k, simd.add(simd.load(hidden, k), simd.load(inputs, row + k)))
        place += 1


@inlined
def find_extremes(
    inputs: Floats, rows: Ints, first: int, last: int, stride: int, hidden: Floats, largest: Ints, smallest: Ints
) -> None:
    """Find the largest and smallest value of each column, and their rows."""
    for place in range(first, last):
        row = np.int64(rows[place]) * stride
        for k in range(stride):
            value = inputs[row + k]
            if place == first or value > hidden[stride + k]:
                hidden[stride + k], largest[k] = value, rows[place]
            if place == first or value < hidden[2 * stride + k]:
                hidden[2 * stride + k], smallest[k] = value, rows[place]


@inlined
def row_dot(hidden: Floats, outputs: Floats, row: int, width: int) -> np.float32:
    """Return the product of the hidden vector and a row of the outputs."""
    sums = simd.zeros()
    for k in range(0, width, 16):
        sums = simd.multiply_add(simd.load(hidden, k), simd.load(outputs, row * width + k), sums)
    return simd.total(sums)


@inlined
def keep_best(best: Best, k: int, value: float, label: int) -> None:
    """Insert a label into the k best if it is one of them; equal ones stay in their order."""
    if value <= best.values[k - 1]:
        return
    place = k - 1
    while place > 0 and best.values[place - 1] < value:
        best.values[place], best.names[place] = best.values[place - 1], best.names[place - 1]
        place -= 1
    best.values[place], best.names[place] = value, label


@inlined
def stepped_sigmoid(score: np.float32) -> float:
    """Return the sigmoid as fastText does for single labels: from a table with steps of 1/32, and 0 or 1 beyond ±8. The
    steps are large enough to be visible.
    """
    if score < -8.0:
        return 0.0
    if score > 8.0:
        return 1.0
    return 1.0 / (1.0 + math.exp(-(math.floor((score + 8.0) * 32.0) / 32.0 - 8.0)))


@inlined
def label_probability(answers: Answers, best: Best, label: int, total: float) -> float:
    """Return a label's share of the softmax, or its own sigmoid."""
    return best.scores[label] / total if answers.softmax else stepped_sigmoid(best.scores[label])


@inlined
def best_of_all(hidden: Floats, answers: Answers, width: int, question: Question, best: Best) -> float:
    """Find the k best of the ranked labels by their share of the softmax or their own sigmoid; return the divisor of
    the softmax.
    """
    highest, scored, ranked = np.float32(-np.inf), question.scored, question.ranked
    for place in range(len(scored)):
        label = np.int64(scored[place])
        best.scores[label] = row_dot(hidden, answers.outputs, label, width)
        highest = max(highest, best.scores[label])
    total = 0.0
    if answers.softmax:
        for place in range(len(scored)):
            label = np.int64(scored[place])
            best.scores[label] = np.float32(math.exp(best.scores[label] - highest))
            total += best.scores[label]
    for place in range(len(ranked)):
        label = np.int64(ranked[place])
        p = label_probability(answers, best, label, total)
        if p >= question.least:
            keep_best(best, question.k, p + MORE, label)
    return total


@inlined
def leaf_probability(hidden: Floats, answers: Answers, width: int, parents: Ints, label: int) -> float:
    """Return the probability of a leaf of the tree: the product of the turns on its path."""
    value, node, root = 1.0, label, 2 * answers.labels - 2
    while node != root:
        parent = np.int64(parents[node])
        f = 1.0 / (1.0 + math.exp(-row_dot(hidden, answers.outputs, parent - answers.labels, width)))
        value *= (f if answers.right[parent] == node else 1.0 - f) + MORE
        node = parent
    return value


@inlined
def best_leaves(hidden: Floats, answers: Answers, width: int, question: Question, best: Best) -> None:
    """Find the k best of some leaves of the tree."""
    for place in range(len(question.ranked)):
        label = np.int64(question.ranked[place])
        p = leaf_probability(hidden, answers, width, question.parents, label)
        if p >= question.least + MORE:
            keep_best(best, question.k, p, label)


@inlined
def best_of_tree(hidden: Floats, answers: Answers, width: int, question: Question, best: Best) -> None:
    """Find the k best labels of the tree, the likelier child first, skipping nodes that cannot improve them."""
    size, k, least = 1, question.k, question.least
    best.stack[0], best.stack_values[0] = 2 * answers.labels - 2, 1.0
    while size:
        size -= 1
        node, value = np.int64(best.stack[size]), best.stack_values[size]
        if value < least + MORE or value <= best.values[k - 1]:
            continue
        if answers.left[node] < 0:
            keep_best(best, k, value, node)
            continue
        f = 1.0 / (1.0 + math.exp(-row_dot(hidden, answers.outputs, node - answers.labels, width)))
        left, right = value * (1.0 - f + MORE), value * (f + MORE)
        rightwards = left < right
        # The better one last, so that it is visited first.
        best.stack[size] = answers.left[node] if rightwards else answers.right[node]
        best.stack_values[size] = left if rightwards else right
        best.stack[size + 1] = answers.right[node] if rightwards else answers.left[node]
        best.stack_values[size + 1] = right if rightwards else left
        size += 2


@inlined
def answer_line(
    hidden: Floats, answers: Answers, width: int, question: Question, best: Best, shares: Floats, line: int
) -> None:
    """Find the k best labels of a hidden vector, and write the probabilities of the wanted ones to ``shares[line]``."""
    if answers.tree:
        if question.every:
            best_of_tree(hidden, answers, width, question, best)
        else:
            best_leaves(hidden, answers, width, question, best)
        for place in range(len(question.wanted)):
            label = np.int64(question.wanted[place])
            shares[line, place] = leaf_probability(hidden, answers, width, question.parents, label)
        return
    total = best_of_all(hidden, answers, width, question, best)
    for place in range(len(question.wanted)):
        shares[line, place] = label_probability(answers, best, np.int64(question.wanted[place]), total) + MORE


@kernel
def predict_lines(
    data: Bytes, begins: Longs, ends: Longs, reader: LineReader, inputs: Floats, stride: int, answers: Answers,
    question: Question, work: LineWorkspace, hidden: Floats, best: Best, labels: Ints, probabilities: Floats,
    shares: Floats,
) -> None:  # fmt: skip
    """Write the k best labels of every line, −1 where there are fewer, fastText's probabilities of them, and those of
    the wanted labels, NaN for a line without a known word.
    """
    done, k = np.int64(0), question.k
    while done < len(begins):
        lines = read_lines(reader, data, begins, ends, done, work)
        soon = work.row_ends[lines]
        for line in range(lines):
            first = work.row_ends[line]
            count = work.row_ends[line + 1] - first
            for place in range(k):
                best.values[place], best.names[place] = 0.0, -1
            if count:
                pool_rows(inputs, work.rows, first, count, soon, stride, answers, hidden, work.largest, work.smallest)
                answer_line(hidden, answers, answers.pools * stride, question, best, shares, done + line)
            else:
                for place in range(len(question.wanted)):
                    shares[done + line, place] = np.nan
            for place in range(k):
                labels[done + line, place] = best.names[place]
                probabilities[done + line, place] = best.values[place]
        done += lines


@inlined
def step_towards(hidden: Floats, outputs: Floats, row: int, width: int, gradient: np.float32, change: Floats) -> None:
    """Update one output row: ``change += g u`` and ``u += g h``, both from the old values."""
    at = row * width
    for k in range(0, width, 16):
        u = simd.load(outputs, at + k)
        simd.store(change, k, simd.scaled_add(gradient, u, simd.load(change, k)))
        simd.store(outputs, at + k, simd.scaled_add(gradient, simd.load(hidden, k), u))


@inlined
def grade_step(
    hidden: Floats, answers: Answers, width: int, target: int, rate: np.float32, change: Floats, scores: Floats,
    share: np.float32,
) -> float:  # fmt: skip
    """Make a step of the squared error of the expected grade, Σ p(label) · grade; return the negative error before it.

    scores, share: the softmax is ``scores * share``.
    """
    mean = np.float32(0.0)
    for label in range(answers.labels):
        mean += scores[label] * share * answers.grades[label]
    error = answers.grades[target] - mean
    for label in range(answers.labels):
        slope = scores[label] * share * (answers.grades[label] - mean)
        step_towards(hidden, answers.outputs, label, width, rate * error * slope, change)
    return -error * error


@inlined
def softmax_step(
    hidden: Floats, answers: Answers, width: int, target: int, rate: np.float32, change: Floats, scores: Floats
) -> float:
    """Make a step of the full softmax; return the log-likelihood of the target label before it."""
    highest = np.float32(-np.inf)
    for label in range(answers.labels):
        scores[label] = row_dot(hidden, answers.outputs, label, width)
        highest = max(highest, scores[label])
    total = 0.0
    for label in range(answers.labels):
        scores[label] = np.float32(math.exp(scores[label] - highest))
        total += scores[label]
    share = np.float32(1.0 / total)
    if len(answers.grades):
        return grade_step(hidden, answers, width, target, rate, change, scores, share)
    likelihood = math.log(max(scores[target] / total, 1e-30))
    for label in range(answers.labels):
        wanted = np.float32(1.0) if label == target else np.float32(0.0)
        step_towards(hidden, answers.outputs, label, width, rate * (wanted - scores[label] * share), change)
    return likelihood


@inlined
def logistic_step(
    hidden: Floats, outputs: Floats, row: int, width: int, wanted: bool, rate: np.float32, change: Floats
) -> float:
    """Make a step of one binary decision; return its log-likelihood before it."""
    p = 1.0 / (1.0 + math.exp(-row_dot(hidden, outputs, row, width)))
    step_towards(hidden, outputs, row, width, rate * np.float32((1.0 if wanted else 0.0) - p), change)
    return math.log(max(p if wanted else 1.0 - p, 1e-30))


@inlined
def label_step(
    hidden: Floats, answers: Answers, width: int, marks: Ints, first: int, last: int, chosen: int, paths: Paths,
    rate: np.float32, change: Floats, scores: Floats,
) -> float:  # fmt: skip
    """Make a step towards a line's labels ``marks[first:last]``: all of them if each label has its own probability,
    else the one that was chosen.
    """
    for k in range(0, width, 16):
        simd.store(change, k, simd.zeros())
    likelihood = 0.0
    if answers.tree:
        for turn in range(paths.offsets[chosen], paths.offsets[chosen + 1]):
            likelihood += logistic_step(
                hidden, answers.outputs, np.int64(paths.nodes[turn]), width, paths.turns[turn] > 0, rate, change
            )
    elif answers.softmax:
        likelihood = softmax_step(hidden, answers, width, chosen, rate, change, scores)
    else:
        for label in range(answers.labels):
            wanted = False
            for mark in range(first, last):
                wanted |= marks[mark] == label
            likelihood += logistic_step(hidden, answers.outputs, label, width, wanted, rate, change)
    return likelihood


@inlined
def pass_to_rows(
    inputs: Floats, rows: Ints, first: int, count: int, stride: int, answers: Answers, total: np.float32,
    change: Floats, largest: Ints, smallest: Ints,
) -> None:  # fmt: skip
    """Add to every row its share of the mean's change, and the changes of the extremes to the rows they came from."""
    share = np.float32(1.0) / total
    for k in range(0, stride, 16):
        simd.store(change, k, simd.scaled(share, simd.load(change, k)))
    for place in range(first, first + count):
        row = np.int64(rows[place]) * stride
        weight = answers.weights[rows[place]] if answers.weighted else np.float32(1.0)
        for k in range(0, stride, 16):
            simd.store(inputs, row + k, simd.scaled_add(weight, simd.load(change, k), simd.load(inputs, row + k)))
    if answers.pools == 3:
        for k in range(stride):
            inputs[np.int64(largest[k]) * stride + k] += change[stride + k]
            inputs[np.int64(smallest[k]) * stride + k] += change[2 * stride + k]


@kernel
def train_lines(
    rows: Ints, row_ends: Longs, marks: Ints, mark_ends: Longs, first: int, last: int,
    inputs: Floats, stride: int, answers: Answers, paths: Paths, first_rate: float, last_rate: float,
    random: ULongs, work: LineWorkspace, hidden: Floats, change: Floats, scores: Floats,
    report: Doubles,
) -> None:  # fmt: skip
    """Train on lines ``first`` to ``last``, the rate falling from line to line.

    Line i has the rows ``rows[row_ends[i]:row_ends[i + 1]]`` and the labels ``marks[mark_ends[i]:mark_ends[i + 1]]``.
    The log-likelihood and the number of lines that have both are added to ``report``.
    """
    width = answers.pools * stride
    for line in range(first, last):
        some = mark_ends[line + 1] - mark_ends[line]
        begin = row_ends[line]
        count = row_ends[line + 1] - begin
        if count == 0 or some == 0:
            continue
        rate = np.float32(first_rate + (last_rate - first_rate) * (line - first) / (last - first))
        chosen = np.int64(marks[mark_ends[line] + below(next_random(random), some)])
        total = pool_rows(
            inputs, rows, begin, count, begin + count, stride, answers, hidden, work.largest, work.smallest
        )
        report[0] += label_step(
            hidden, answers, width, marks, mark_ends[line], mark_ends[line + 1], chosen, paths, rate, change, scores
        )
        for ahead in range(begin + count, min(begin + count + AHEAD, len(rows))):
            prefetch_far_row(inputs, np.int64(rows[ahead]) * stride, stride)
        pass_to_rows(inputs, rows, begin, count, stride, answers, total, change, work.largest, work.smallest)
        report[1] += 1


@kernel
def read_rows(
    data: Bytes,
    begins: Longs,
    ends: Longs,
    line: int,
    reader: LineReader,
    work: LineWorkspace,
    rows: Ints,
    row_ends: Longs,
) -> int:
    """Write the rows of the lines from ``line`` on one after another; those of line i stop at ``row_ends[i + 1]``.
    Return the first line that did not fit.
    """
    while line < len(begins):
        lines = read_lines(reader, data, begins, ends, line, work)
        at = row_ends[line]
        if at + work.row_ends[lines] > len(rows):
            return line
        for place in range(work.row_ends[lines]):
            rows[at + place] = work.rows[place]
        for number in range(1, lines + 1):
            row_ends[line + number] = at + work.row_ends[number]
        line += lines
    return line


# Quantisation


@kernel
def assign(points: Floats, first: int, width: int, table: Floats, codes: Bytes, distances: Floats) -> float:
    """Set ``codes[i]`` to the centroid nearest to ``points[i, first:first + width]``; return the sum of squared
    distances.

    table: (width, centroids), one column per centroid, so that the distances to all of them are computed together.
    distances: scratch.
    """
    total = 0.0
    centroids = table.shape[1]
    for point in range(len(points)):
        distances[:] = 0
        for k in range(width):
            value = points[point, first + k]
            for centroid in range(centroids):
                distances[centroid] += (value - table[k, centroid]) * (value - table[k, centroid])
        best = 0
        for centroid in range(1, centroids):
            if distances[centroid] < distances[best]:
                best = centroid
        codes[point] = best
        total += distances[best]
    return total
