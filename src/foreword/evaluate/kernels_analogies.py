"""The best answers to analogy questions, from precomputed cosines."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Floats, Longs
from foreword.native.jit import inlined, kernel

CHUNK = 128
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
        for begin in range(0, words, CHUNK):
            stop = min(begin + CHUNK, words)
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
