"""The rows of a large matrix that score highest with a query: products in blocks, of which only the best are retained.

A matrix of a million rows is read once for up to 64 queries, so that its transfer from memory is paid once. Scores of a
block are compared with the least of the best so far; nearly all are below it, and nothing is ever sorted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Array, Floats, Ints, Longs, Shorts, SignedBytes
from foreword.native.jit import inlined, kernel
from foreword.native.simd import (
    LANES,
    WIDTH,
    add,
    add_products,
    load_bytes,
    load_floats,
    load_shorts,
    multiply_add,
    no_totals,
    store,
    store_sums,
    total,
    zeros,
)

QUERIES = 64
"""Queries at once: their int16 rows of 300 dimensions just fill the first-level cache."""

GROUP = 4
"""Queries of int16 come in fours."""

BLOCK = 1024
"""Rows scored between two updates of the best."""


@inlined
def _enter(score: np.float32, row: int, best: Floats, places: Longs, first: int, k: int) -> None:
    """Insert a score into the k best, which are sorted, after equal ones."""
    at = k - 1
    while at > 0 and best[first + at - 1] < score:
        best[first + at] = best[first + at - 1]
        places[first + at] = places[first + at - 1]
        at -= 1
    best[first + at] = score
    places[first + at] = row


@kernel
def keep_best(scores: Floats, factors: Floats, begin: int, least: Floats, best: Floats, places: Longs) -> None:
    """Update the best with the scores of the rows from ``begin`` on, each times its row's factor.

    scores: (rows, queries); factors: (all rows,); least: (queries,), the worst of each query's best.
    best, places: (queries, k), the best so far and their rows, sorted; all three change.
    """
    rows, queries = scores.shape
    k = best.shape[1]
    flat_best, flat_places = best.reshape(-1), places.reshape(-1)
    for row in range(rows):
        factor = factors[begin + row]
        found = False
        for query in range(queries):
            found |= scores[row, query] * factor > least[query]
        if found:
            for query in range(queries):
                score = scores[row, query] * factor
                if score > least[query]:
                    _enter(score, begin + row, flat_best, flat_places, query * k, k)
                    least[query] = best[query, k - 1]


@kernel
def scan_bytes(
    matrix: SignedBytes, dimensions: int, factors: Floats, queries: Shorts, padding: SignedBytes,
    sums: Ints, scores: Floats, least: Floats, best: Floats, places: Longs,
) -> None:  # fmt: skip
    """Apply ``keep_best`` to a whole matrix of int8.

    matrix: flat, (n * dimensions,). queries: int16 (one or a multiple of four, a multiple of 32), zeros beyond the
    dimensions. padding: (4 * width,) of zeros; sums: ((BLOCK + 4) * queries,); scores: (BLOCK, queries): scratch.
    """
    count, width = queries.shape
    flat = queries.reshape(-1)
    rows = len(factors)
    together = 4 if count == 1 else 2
    for begin in range(0, rows, BLOCK):
        stop = min(begin + BLOCK, rows)
        row = begin
        while row < stop:
            if row + together <= stop and (row + together - 1) * dimensions + width <= len(matrix):
                at, out = row * dimensions, (row - begin) * count
                if count == 1:
                    _four_rows(matrix, at, dimensions, flat, width, sums, out)
                else:
                    _two_rows(matrix, at, dimensions, flat, count, width, sums, out)
                row += together
                continue
            for place in range(dimensions):  # the last rows are copied: nothing is read beyond the matrix
                padding[place] = matrix[row * dimensions + place]
            if count == 1:
                _four_rows(padding, 0, width, flat, width, sums, BLOCK)
            else:
                _two_rows(padding, 0, width, flat, count, width, sums, BLOCK * count)
            for query in range(count):
                sums[(row - begin) * count + query] = sums[BLOCK * count + query]
            row += 1
        for place in range(stop - begin):
            for query in range(count):
                scores[place, query] = np.float32(sums[place * count + query])
        keep_best(scores[: stop - begin], factors, begin, least, best, places)


@inlined
def _four_rows(
    matrix: SignedBytes, at: int, stride: int, query: Shorts, width: int, sums: Ints,
    out: int,
) -> None:  # fmt: skip
    """Write the products of four rows with one query to ``sums[out:out + 4]``."""
    a, b, c, d = no_totals(), no_totals(), no_totals(), no_totals()
    for place in range(0, width, WIDTH):
        asked = load_shorts(query, place)
        a = add_products(load_bytes(matrix, at + place), asked, a)
        b = add_products(load_bytes(matrix, at + stride + place), asked, b)
        c = add_products(load_bytes(matrix, at + 2 * stride + place), asked, c)
        d = add_products(load_bytes(matrix, at + 3 * stride + place), asked, d)
    store_sums(sums, out, a, b, c, d)


@inlined
def _two_rows(
    matrix: SignedBytes, at: int, stride: int, queries: Shorts, count: int, width: int,
    sums: Ints, out: int,
) -> None:  # fmt: skip
    """Write the products of two rows with all queries to ``sums[out:]`` and ``sums[out + count:]``."""
    for query in range(0, count, GROUP):
        a0, a1, a2, a3 = no_totals(), no_totals(), no_totals(), no_totals()
        b0, b1, b2, b3 = no_totals(), no_totals(), no_totals(), no_totals()
        first = query * width
        for place in range(0, width, WIDTH):
            one, other = load_bytes(matrix, at + place), load_bytes(matrix, at + stride + place)
            asked = load_shorts(queries, first + place)
            a0, b0 = add_products(one, asked, a0), add_products(other, asked, b0)
            asked = load_shorts(queries, first + width + place)
            a1, b1 = add_products(one, asked, a1), add_products(other, asked, b1)
            asked = load_shorts(queries, first + 2 * width + place)
            a2, b2 = add_products(one, asked, a2), add_products(other, asked, b2)
            asked = load_shorts(queries, first + 3 * width + place)
            a3, b3 = add_products(one, asked, a3), add_products(other, asked, b3)
        store_sums(sums, out + query, a0, a1, a2, a3)
        store_sums(sums, out + count + query, b0, b1, b2, b3)


@kernel
def scan_floats(
    matrix: Array, dimensions: int, factors: Floats, query: Floats, padding: Array, scores: Floats,
    least: Floats, best: Floats, places: Longs,
) -> None:  # fmt: skip
    """Apply ``keep_best`` to a whole matrix for one query.

    matrix: flat, float32 or the bits of float16. query: (a multiple of 16,), zeros beyond the dimensions. padding: as
    long, of the matrix's kind, zeros; scores: (BLOCK, 1): scratch.
    """
    width = len(query)
    rows = len(factors)
    for begin in range(0, rows, BLOCK):
        stop = min(begin + BLOCK, rows)
        for row in range(begin, stop):
            at = row * dimensions
            if at + width <= len(matrix):
                scores[row - begin, 0] = _product(matrix, at, query)
            else:  # nothing is read beyond the matrix
                for place in range(dimensions):
                    padding[place] = matrix[at + place]
                scores[row - begin, 0] = _product(padding, 0, query)
        keep_best(scores[: stop - begin], factors, begin, least, best, places)


@inlined
def _product(matrix: Array, at: int, query: Floats) -> np.float32:
    one, other = zeros(), zeros()
    both = len(query) // (2 * LANES) * (2 * LANES)
    for place in range(0, both, 2 * LANES):
        one = multiply_add(load_floats(matrix, at + place), load_floats(query, place), one)
        other = multiply_add(load_floats(matrix, at + place + LANES), load_floats(query, place + LANES), other)
    if both < len(query):
        one = multiply_add(load_floats(matrix, at + both), load_floats(query, both), one)
    return total(add(one, other))


@kernel
def widen_halves(halves: NDArray[np.uint16], out: Floats) -> None:
    """Convert float16, as its bits, to float32."""
    whole = len(halves) // LANES * LANES
    for place in range(0, whole, LANES):
        store(out, place, load_floats(halves, place))
    # The rest uses the same sixteen lanes, shifted back over converted numbers; a short array goes number by number.
    if whole < len(halves) and len(halves) >= LANES:
        store(out, len(halves) - LANES, load_floats(halves, len(halves) - LANES))
    elif whole < len(halves):
        for place in range(len(halves)):
            bits = np.int64(halves[place])
            exponent, fraction = (bits >> 10) & 31, bits & 1023
            size = fraction * 2.0**-24 if exponent == 0 else (1024 + fraction) * 2.0 ** (exponent - 25)
            out[place] = np.float32(-size if bits >> 15 else size)


# The best answers to analogy questions, from precomputed cosines

WORDS_AT_ONCE = 128
"""Words whose scores are compared with the best so far at a time; nearly always none is better."""


@inlined
def _score(cosines: Floats, a: int, b: int, c: int, word: int, product: bool, epsilon: np.float32) -> np.float32:
    if product:
        return cosines[b, word] * cosines[c, word] / (cosines[a, word] + epsilon)
    return cosines[b, word] - cosines[a, word] + cosines[c, word]


@kernel
def best_answers(
    cosines: Floats, first: int, questions: Longs, groups: Longs, product: bool, epsilon: np.float32, exclude: bool,
    best: Floats, answers: Longs,
) -> None:  # fmt: skip
    """Find, for each question a : b = c : ?, the word with the largest score.

    cosines: (words asked about, words of this block), the first of which is word ``first``; for a product scaled to
    0 … 1. questions: (q, 3), rows of ``cosines``, and (q, 6) with the groups of a, b and c after them.
    groups: of every word; words that differ only in case are one group, and are excluded together.
    best, answers: (q,), the best score so far and its word; both are updated.
    """
    words = cosines.shape[1]
    for question in range(len(questions)):
        a, b, c = questions[question, 0], questions[question, 1], questions[question, 2]
        for begin in range(0, words, WORDS_AT_ONCE):
            stop = min(begin + WORDS_AT_ONCE, words)
            least = best[question]
            found = False
            if product:
                least *= np.float32(1 - 1e-6)  # a product instead of the quotient, which is slower, may round otherwise
                for word in range(begin, stop):
                    found |= cosines[b, word] * cosines[c, word] > least * (cosines[a, word] + epsilon)
            else:
                for word in range(begin, stop):
                    found |= cosines[b, word] - cosines[a, word] + cosines[c, word] > least
            if not found:
                continue
            for word in range(begin, stop):
                score = _score(cosines, a, b, c, word, product, epsilon)
                if score > best[question]:
                    group = groups[first + word]
                    left_out = exclude and (
                        group == questions[question, 3] or group == questions[question, 4]
                        or group == questions[question, 5]
                    )  # fmt: skip
                    if not left_out:
                        best[question] = score
                        answers[question] = first + word
