"""Viterbi for a linear chain: the highest path through scores of tags and of moves between them.

    best_t(j) = e_t(j) + max_i [best_(t−1)(i) + moves(i, j)],    best_1(j) = start(j) + e_1(j)

and ``end`` is added at the last word. Shapes: B sentences, T words of the longest, K tags.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foreword.kernels.jit import inlined, kernel
from foreword.kernels.simd import LANES, load, store
from foreword.kernels.simd_gates import broadcast, load_part, maximum, plus
from foreword.protocols import Logs

Floats = NDArray[np.float32]


def plain_viterbi(emissions: Logs, start: Logs, moves: Logs, end: Logs) -> tuple[list[int], float]:
    """The best tags of one sentence, emissions (T, K), and their score; of equals the lowest."""
    if len(emissions) == 0:
        return [], 0.0
    best = start + emissions[0]
    back = []
    for emission in emissions[1:]:
        through = best[:, None] + moves
        back.append(through.argmax(0))
        best = through.max(0) + emission
    best = best + end
    tags = [int(best.argmax())]
    for origins in reversed(back):
        tags.append(int(origins[tags[-1]]))
    return tags[::-1], float(best.max())


@kernel
def viterbi(
    emissions: Floats,
    lengths: NDArray[np.int64],
    longest: int,
    start: Floats,
    moves: Floats,
    end: Floats,
    best: Floats,
    tags: NDArray[np.int32],
    scores: Floats,
) -> None:
    """Fill ``tags`` (B, T) up to each sentence's length, and ``scores`` (B,).

    emissions: (B · T · K,); moves: (K · W,), K rows padded to W, a multiple of 16; best: (T · W,), room for a sentence.
    On the way up only maxima are taken, K² a word, sixteen at a time; where one came from is asked on the way back, of
    one tag a word.
    """
    kinds = len(start)
    width = len(moves) // kinds
    for sentence in range(len(lengths)):
        length = lengths[sentence]
        if length == 0:
            scores[sentence] = 0
            continue
        first = sentence * longest * kinds
        for tag in range(kinds):
            best[tag] = start[tag] + emissions[first + tag]
        for place in range(1, length):
            _step(best, place * width, width, moves, kinds, emissions, first + place * kinds)
        row = (length - 1) * width
        last, highest = 0, best[row] + end[0]
        for tag in range(1, kinds):
            score = best[row + tag] + end[tag]
            if score > highest:
                last, highest = tag, score
        scores[sentence] = highest
        for place in range(length - 1, 0, -1):
            tags[sentence, place] = last
            row -= width
            last = _origin(best, row, width, moves, kinds, last)
        tags[sentence, 0] = last


@inlined
def _step(best: Floats, row: int, width: int, moves: Floats, kinds: int, emissions: Floats, word: int) -> None:
    """One word: best[row + j] = e(j) + max_i best[row − width + i] + moves[i, j]."""
    before = row - width
    for tag in range(0, kinds, LANES):
        held = plus(broadcast(best[before]), load(moves, tag))
        for origin in range(1, kinds):
            through = plus(broadcast(best[before + origin]), load(moves, origin * width + tag))
            held = maximum(through, held)
        store(best, row + tag, plus(held, load_part(emissions, word + tag, kinds - tag)))


@inlined
def _origin(best: Floats, row: int, width: int, moves: Floats, kinds: int, tag: int) -> int:
    """The tag from which the best path came to ``tag``; of equals the lowest."""
    origin, highest = 0, best[row] + moves[tag]
    for other in range(1, kinds):
        score = best[row + other] + moves[other * width + tag]
        if score > highest:
            origin, highest = other, score
    return origin
