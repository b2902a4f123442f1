"""Learning a unigram tokenizer (Kudo, 2018), as sentencepiece does.

    pieces = all characters, and the frequent substrings of words, by count times length
    repeat:  twice: expected counts of the pieces over all ways to cut every word (EM),
                    p(piece) = exp(digamma(expected) - digamma(sum)), and pieces expected less than 0.5 times go
             drop the quarter of the pieces whose loss is smallest: what the likelihood loses when the second best
             path takes the place of a piece
    until there are 1.1 times as many as wanted; of those the most probable are kept, and all characters

Words are cut at white space, so that only distinct words are looked at, with their counts. A substring is found by
extending, at every position of every word, the one that is one character shorter: a substring is frequent only if that
one is. Of substrings that are always followed by the same character only the longest is taken, as from a suffix
array. Pieces hold characters of one script (by the first word of their Unicode names), and none reaches over a blank.

T. Kudo, "Subword regularization" (2018): https://aclanthology.org/P18-1007.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np

from foreword.arrays import Array, Bytes, Doubles, Ints, Longs
from foreword.errors import SettingError
from foreword.protocols import Meter
from foreword.tokens.characters import CODE_POINTS
from foreword.tokens.counting import Counted
from foreword.tokens.kernels_merges import symbols_of_characters
from foreword.tokens.kernels_unigram import (
    UNKNOWN_POINT,
    count_best,
    expect,
    extend,
    keep_arcs,
    losses,
    write_arcs,
)

SEEDS = 1_000_000
LONGEST_PIECE = 16
LONGEST_WORD = 100
"""Characters; longer words are cut, which keeps sums of probabilities in range."""
SHRINKING = 0.75
LEAST_EXPECTED = 0.5
EXTRA = 1.1
SCALE = 2.5
"""Log-probability per character that is about usual."""
UNKNOWN_LOG = -20.0
BYTES_A_CHARACTER = 200
"""Training's memory per character of each distinct word: substrings of up to sixteen lengths, and the arcs."""

_BLANK = 0x20


class LearntPieces(NamedTuple):
    """The pieces, each with its log-probability, the most probable first; left_out: words that did not fit in memory.

    likelihood: the log-likelihood of the words in the last round.
    """

    pieces: list[tuple[str, float]]
    left_out: int
    likelihood: float


@dataclass(slots=True)
class CountedWords:
    """Distinct words. points: int32 (positions,); begins: int64 (words + 1,); counts: int64 (words,)."""

    points: Ints
    begins: Longs
    counts: Longs


@dataclass(slots=True)
class Arcs:
    """The pieces at every position, see ``kernels_unigram.py``; firsts and sizes say where each piece stands."""

    starts: Longs
    pieces: Ints
    lengths: Bytes
    firsts: Ints
    sizes: Ints
    scores: Doubles

    def keep(self, kept: Array, scores: Doubles) -> None:
        """Keep some pieces, given by their numbers, with new scores; the last one is the unknown character."""
        renumbered = np.full(len(self.scores), -1, np.int32)
        renumbered[kept] = np.arange(len(kept))
        keep_arcs(self.starts, self.pieces, self.lengths, renumbered)
        self.firsts, self.sizes, self.scores = self.firsts[kept], self.sizes[kept], scores


def learn_pieces(
    counted: Counted, size: int, *, coverage: float, memory: int, seeds: int = SEEDS, meter: Meter | None = None
) -> LearntPieces:
    """Learn ``size`` pieces from counted words, in which a blank stands for ▁."""
    words, left_out = _words_of(counted, memory)
    alphabet = _cover(words, coverage)
    if size < len(alphabet):
        raise SettingError(f"vocab_size leaves {size} pieces for text, but there are {len(alphabet)} characters")
    arcs = _seed(words, alphabet, seeds)
    wanted = int(size * EXTRA)
    likelihood = 0.0
    while True:
        for _ in range(2):
            likelihood = _expect(words, arcs)
        left = len(arcs.scores) - 1
        if meter is not None:
            meter("pruning", wanted, left)
        if left <= wanted:
            break
        if not _prune(words, arcs, max(wanted, int(SHRINKING * left))):
            break
    return LearntPieces(_final(words, arcs, alphabet, size), left_out, likelihood)


def _words_of(counted: Counted, memory: int) -> tuple[CountedWords, int]:
    """Return the words as code points, the most frequent that fit in memory, long ones cut."""
    order = counted.by_frequency(np.arange(1, len(counted)))
    costs = np.cumsum(np.diff(counted.offsets)[order] * BYTES_A_CHARACTER)
    kept = order[: int(np.searchsorted(costs, memory, side="right"))]
    data, offsets = counted.gather(kept)
    points, begins = np.empty(len(data), np.int32), np.empty(len(offsets), np.int64)
    used = symbols_of_characters(data, offsets, np.zeros(CODE_POINTS, np.int32), points, begins)
    sizes = np.diff(begins)
    parts = -(-sizes // LONGEST_WORD)
    cuts = np.repeat(begins[:-1], parts) + LONGEST_WORD * (
        np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    )
    words = CountedWords(points[:used], np.append(cuts, used).astype(np.int64), np.repeat(counted.counts[kept], parts))
    return words, len(order) - len(kept)


def _cover(words: CountedWords, coverage: float) -> dict[int, int]:
    """Return the most frequent characters that cover a share of the text, with their counts; mark all others."""
    weights = np.repeat(words.counts, np.diff(words.begins)).astype(np.float64)
    counts = np.bincount(words.points, weights) if len(words.points) else np.zeros(0)
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    if not len(order):
        raise SettingError("there is no text to learn from")
    shares = np.cumsum(counts[order]) / counts.sum()
    kept = order[: int(np.searchsorted(shares, coverage - 1e-12)) + 1]
    held = np.zeros(len(counts), np.bool_)
    held[kept] = True
    words.points[~held[words.points]] = UNKNOWN_POINT
    return {int(point): int(counts[point]) for point in kept}


def _script(point: int) -> int:
    """Return a number for the script of a character: 0 for marks, which go with any, 1 for what is no letter."""
    sign = chr(point)
    category = unicodedata.category(sign)
    if category[0] == "M":
        return 0
    if category[0] != "L":
        return 1
    name = unicodedata.name(sign, "OTHER").split()[0].split("-")[0]
    if name in ("CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH"):
        name = "CJK"
    return 2 + crc32(name.encode()) % (1 << 30)


def _seed(words: CountedWords, alphabet: dict[int, int], seeds: int) -> Arcs:
    """Find the characters and frequent substrings, and where they stand; scores are logs of count times length."""
    points, count = words.points, len(words.points)
    sizes = np.diff(words.begins)
    left = (np.repeat(words.begins[1:], sizes) - np.arange(count)).astype(np.int32)
    of_word = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    by_point = np.zeros(CODE_POINTS + 1, np.int32)
    for point in alphabet:
        by_point[point] = -1 if point == _BLANK else _script(point)
    scripts = by_point[points]
    script = np.maximum(scripts, 0)
    numbers = np.full(CODE_POINTS + 1, -1, np.int32)
    numbers[list(alphabet)] = np.arange(len(alphabet))
    before = numbers[points]
    levels, firsts = [before], [_first_places(before, len(alphabet))]
    totals, maximal = [np.array(list(alphabet.values()), np.int64)], [np.ones(len(alphabet), np.bool_)]
    for length in range(2, LONGEST_PIECE + 1):
        alive = int((levels[-1] >= 0).sum())
        table = np.zeros(2 << (2 * alive + 2).bit_length(), np.int64)
        nodes, found, parents = np.empty(count, np.int32), np.empty(alive + 1, np.int64), np.empty(alive + 1, np.int32)
        places = np.empty(alive + 1, np.int32)
        size = extend(
            length, points, left, of_word, words.counts, scripts, script, levels[-1], table, nodes, found, places,
            parents,
        )  # fmt: skip
        frequent = found[:size] >= 2
        if not frequent.any():
            break
        # A substring that is always followed by the same character is no candidate: the longer one is.
        same = found[:size] == totals[-1][parents[:size]]
        if length > 2:
            maximal[-1][parents[:size][same]] = False
        renumbered = np.where(frequent, np.cumsum(frequent) - 1, -1).astype(np.int32)
        levels.append(np.where(nodes >= 0, renumbered[nodes], -1).astype(np.int32))
        totals.append(found[:size][frequent])
        firsts.append(places[:size][frequent])
        maximal.append(np.ones(len(totals[-1]), np.bool_))
    return _arcs_of(words, levels, totals, firsts, maximal, seeds)


def _first_places(nodes: Ints, size: int) -> Ints:
    places = np.zeros(size, np.int32)
    held = np.flatnonzero(nodes >= 0)[::-1]
    places[nodes[held]] = held
    return places


def _arcs_of(
    words: CountedWords, levels: list[Ints], totals: list[Longs], firsts: list[Ints], maximal: list[Array], seeds: int
) -> Arcs:
    """Choose the seeds, all characters and the best substrings, and write the arcs; the last piece is unknown."""
    values = [np.where(keep, total * (at + 1), 0) for at, (total, keep) in enumerate(zip(totals, maximal, strict=True))]
    longer = np.concatenate([np.empty(0, np.int64), *values[1:]])
    least = np.partition(longer, len(longer) - seeds)[len(longer) - seeds] if len(longer) > seeds else 1
    chosen: list[Ints] = []
    held = 0
    for at, value in enumerate(values):
        keep = value >= (1 if at == 0 else max(1, int(least)))
        chosen.append(np.where(keep, held + np.cumsum(keep) - 1, -1).astype(np.int32))
        held += int(keep.sum())
    fills, none = np.zeros(len(words.points) + 1, np.int64), np.empty(0, np.int32)
    for at, nodes in enumerate(levels):
        write_arcs(at + 1, nodes, chosen[at], fills, none, np.empty(0, np.uint8), True)
    fills[: len(words.points)][words.points == UNKNOWN_POINT] += 1
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(fills[:-1])))
    pieces, lengths = np.empty(int(starts[-1]), np.int32), np.ones(int(starts[-1]), np.uint8)
    fills = starts[:-1].copy()
    for at, nodes in enumerate(levels):
        write_arcs(at + 1, nodes, chosen[at], fills, pieces, lengths, False)
    pieces[fills[words.points == UNKNOWN_POINT]] = held
    kept = [numbers >= 0 for numbers in chosen]
    places = [*(first[keep] for first, keep in zip(firsts, kept, strict=True)), np.zeros(1, np.int32)]
    sizes = [*(np.full(int(keep.sum()), at + 1, np.int32) for at, keep in enumerate(kept)), np.ones(1, np.int32)]
    weights = np.concatenate([value[keep] for value, keep in zip(values, kept, strict=True)]).astype(np.float64)
    scores = np.append(np.log(weights) - np.log(weights.sum()), UNKNOWN_LOG)
    return Arcs(starts, pieces, lengths, np.concatenate(places), np.concatenate(sizes), scores)


def _expect(words: CountedWords, arcs: Arcs) -> float:
    """Run one step of EM; pieces that are hardly expected go, but no character. Return the log-likelihood."""
    from scipy.special import digamma  # imported here: a tokenizer that is loaded does without, and saves 0.3 s

    expected = np.zeros(len(arcs.scores))
    forward, backward = (np.empty(LONGEST_WORD + 1) for _ in range(2))
    weights = np.exp(arcs.scores + SCALE * arcs.sizes)
    likelihood = expect(
        words.begins, words.counts, arcs.starts, arcs.pieces, arcs.lengths, weights, SCALE, forward, backward, expected
    )
    expected[-1] = 0
    kept = np.flatnonzero((expected >= LEAST_EXPECTED) | (arcs.sizes == 1))
    counts = np.maximum(expected[kept[:-1]], LEAST_EXPECTED)
    arcs.keep(kept, np.append(digamma(counts) - digamma(counts.sum()), UNKNOWN_LOG))
    return likelihood


def _prune(words: CountedWords, arcs: Arcs, size: int) -> bool:
    """Keep the ``size`` pieces whose loss is largest; return whether any has gone."""
    found, loss = np.zeros(len(arcs.scores)), np.empty(len(arcs.scores) - 1)
    best, ways = np.empty(LONGEST_WORD + 1), np.empty(2 * (LONGEST_WORD + 1), np.int64)
    count_best(words.begins, words.counts, arcs.starts, arcs.pieces, arcs.lengths, arcs.scores, best, ways, found)
    losses(
        arcs.firsts[:-1], arcs.sizes[:-1], arcs.starts, arcs.pieces, arcs.lengths, arcs.scores, found, best, ways, loss
    )
    order = np.argsort(-loss, kind="stable")[:size]
    kept = np.sort(order[loss[order] > -np.inf])
    if len(kept) == len(loss):
        return False
    arcs.keep(np.append(kept, len(loss)), np.append(arcs.scores[kept], UNKNOWN_LOG))
    return True


def _final(words: CountedWords, arcs: Arcs, alphabet: dict[int, int], size: int) -> list[tuple[str, float]]:
    """Return all characters and the most probable pieces, ``size`` together, the most probable first."""
    scores: dict[str, float] = {}
    for first, length, score in zip(
        arcs.firsts[:-1].tolist(), arcs.sizes[:-1].tolist(), arcs.scores[:-1].tolist(), strict=True
    ):
        scores["".join(map(chr, words.points[first : first + length].tolist()))] = score
    least = min(scores.values())
    letters = {chr(point) for point in alphabet}
    for number, letter in enumerate(sorted(letters - scores.keys())):
        scores[letter] = least - 1e-4 * (number + 1)
    longer = sorted((piece for piece in scores if piece not in letters), key=lambda piece: (-scores[piece], piece))
    kept = [*letters, *longer[: size - len(letters)]]
    return sorted(((piece, scores[piece]) for piece in kept), key=lambda pair: (-pair[1], pair[0]))
