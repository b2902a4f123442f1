"""word2vec, fastText and GloVe as in the papers, in NumPy: the plain versions of the kernels, and the full softmax.

Read this file to learn what is computed, and the kernels to learn how it is made fast. Shapes: V words, d dimensions, m
words in the window, n outputs; E (V, d) are the inputs, U (V, d) the outputs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from foreword.arrays import Array, Ids, Reals
from foreword.tokens.corpus import Corpus
from foreword.vectors.kernels_training import AliasTable, Paths

_MASK = (1 << 64) - 1


def pairs(length: int, window: int) -> Iterator[tuple[int, int]]:
    """Yield every (centre, context) of a text of that length: contexts up to ``window`` away, clipped at both ends."""
    for centre in range(length):
        for context in range(max(0, centre - window), min(length, centre + window + 1)):
            if context != centre:
                yield centre, context


def skip_gram_softmax(E: Reals, U: Reals, centre: int, contexts: Ids) -> tuple[float, Reals, Reals]:
    """Return the loss −Σ log p(c | centre) with p = softmax(U e_centre), and its gradients for E and U.

    One distribution serves every context: the position of a word in the window makes no difference.
    """
    p = softmax(U @ E[centre])
    errors = len(contexts) * p - np.bincount(contexts, minlength=len(p))
    gradient_of_e = np.zeros_like(E)
    gradient_of_e[centre] = errors @ U
    return float(-np.log(p[contexts]).sum()), gradient_of_e, np.outer(errors, E[centre])


def cbow_softmax(E: Reals, U: Reals, centre: int, contexts: Ids) -> tuple[float, Reals, Reals]:
    """Return the loss −log p(centre | contexts), p = softmax(U h), h the mean of the contexts' rows; its gradients."""
    h = E[contexts].mean(axis=0)
    p = softmax(U @ h)
    errors = p.copy()
    errors[centre] -= 1
    gradient_of_e = np.zeros_like(E)
    np.add.at(gradient_of_e, contexts, errors @ U / len(contexts))
    return float(-np.log(p[centre])), gradient_of_e, np.outer(errors, h)


def softmax(scores: Reals) -> Reals:
    """Return exp(scores) / Σ exp(scores)."""
    powers = np.exp(scores - scores.max())
    shares: Reals = powers / powers.sum()
    return shares


def window_step(E: Reals, U: Reals, rows: list[int], outputs: list[int], wanted: list[float], rate: float) -> float:
    """Make a step for m inputs against n outputs, all from the old values; return the log-likelihood before it."""
    H, W, y = E[rows].copy(), U[outputs].copy(), np.array(wanted)
    p = 1 / (1 + np.exp(-(H @ W.T)))
    G = rate * (y - p)
    np.add.at(E, rows, G @ W)
    np.add.at(U, outputs, G.T @ H)
    return float(np.log(np.where(y > 0, p, 1 - p)).sum())


def cbow_step(E: Reals, U: Reals, rows: list[int], outputs: list[int], wanted: list[float], rate: float) -> float:
    """Make a step for the mean of the inputs. Every input gets the whole change of the mean, as in word2vec."""
    h, y, total = E[rows].mean(axis=0), np.array(wanted), 0.0
    change = np.zeros_like(h)
    for first in range(0, len(outputs), 6):
        some = slice(first, first + 6)
        p = 1 / (1 + np.exp(-(U[outputs[some]] @ (h + change))))
        g = rate * (y[some] - p)
        moved = g @ U[outputs[some]]
        np.add.at(U, outputs[some], np.outer(g, h + change))
        change += moved
        total += float(np.log(np.where(y[some] > 0, p, 1 - p)).sum())
    np.add.at(E, rows, change)
    return total


class SplitMix:
    """The kernels' random numbers (Steele et al. 2014), so that both versions draw the same words."""

    def __init__(self, state: int) -> None:
        self.state = state

    def next(self) -> int:
        """Return 64 random bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self.state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return mixed ^ (mixed >> 31)

    def below(self, limit: int) -> int:
        """Return a number in [0, limit)."""
        return ((self.next() >> 32) * limit) >> 32

    def draw(self, noise: AliasTable) -> int:
        """Draw a word from the noise distribution."""
        random = self.next()
        word = ((random >> 32) * len(noise.accept)) >> 32
        return int(noise.other[word]) if random & 0xFFFFFFFF >= noise.accept[word] else word


def train_windows(
    document: list[int], keep: Array, window: int, cbow: bool, negatives: int, noise: AliasTable, paths: Paths,
    E: Reals, U: Reals, rate: float, random: SplitMix, fixed: bool = False,
) -> float:  # fmt: skip
    """Train word2vec on one document, E and U in place; return the log-likelihood of all predictions."""
    sentence = [word for word in document if random.next() & 0xFFFFFFFF < keep[word]]

    def outputs_of(word: int) -> tuple[list[int], list[float]]:
        if not negatives:
            path = slice(paths.offsets[word], paths.offsets[word + 1])
            return paths.nodes[path].tolist(), paths.turns[path].astype(float).tolist()
        drawn = [noise_word for _ in range(negatives) if (noise_word := random.draw(noise)) != word]
        return [word, *drawn], [1.0] + [0.0] * len(drawn)

    total = 0.0
    waiting = outputs_of(sentence[0]) if sentence else ([], [])
    for centre in range(len(sentence)):
        outputs, wanted = waiting
        if centre + 1 < len(sentence):
            waiting = outputs_of(sentence[centre + 1])  # the kernel draws ahead, so that rows can be fetched in time
        reach = window if fixed else 1 + random.below(window)
        around = sentence[max(0, centre - reach) : centre] + sentence[centre + 1 : centre + reach + 1]
        if around and cbow:
            total += cbow_step(E, U, around, outputs, wanted, rate)
        elif around:
            for first in range(0, len(outputs), 6):  # in groups of six, as the kernel has them
                some = slice(first, first + 6)
                total += window_step(E, U, around, outputs[some], wanted[some], rate)
    return total


def train_subwords(
    document: list[int], keep: Array, window: int, cbow: bool, negatives: int, noise: AliasTable,
    rows_of: list[list[int]], E: Reals, U: Reals, rate: float, random: SplitMix,
) -> float:  # fmt: skip
    """Train fastText on one document, E and U in place: ``rows_of[w]`` are the rows of E whose mean is the word w."""
    sentence = [word for word in document if random.next() & 0xFFFFFFFF < keep[word]]
    total = 0.0
    for centre, word in enumerate(sentence):
        reach = 1 + random.below(window)
        around = sentence[max(0, centre - reach) : centre] + sentence[centre + 1 : centre + reach + 1]
        if not around:
            continue
        rows = [row for other in around for row in rows_of[other]] if cbow else rows_of[word]
        for target in [word] if cbow else around:
            drawn = [noise_word for _ in range(negatives) if (noise_word := random.draw(noise)) != target]
            outputs, y = [target, *drawn], np.array([1.0] + [0.0] * len(drawn))
            h = E[rows].mean(axis=0)
            p = 1 / (1 + np.exp(-(U[outputs] @ h)))
            change = np.zeros_like(h)
            for output, g in zip(outputs, rate * (y - p), strict=True):
                change += g * U[output]
                U[output] += g * h
            E[rows] += change
            total += float(np.log(np.where(y > 0, p, 1 - p)).sum())
    return total


def alias_table(weights: Reals) -> AliasTable:
    """Build Walker's alias table: whatever has less than a full share is filled up from one that has more."""
    n = len(weights)
    shares = (weights * (n / weights.sum())).tolist()
    accept, other = [1.0] * n, list(range(n))
    poor = [index for index, share in enumerate(shares) if share < 1]
    rich = [index for index, share in enumerate(shares) if share >= 1]
    while poor and rich:
        taker, giver = poor.pop(), rich[-1]
        accept[taker], other[taker] = shares[taker], giver
        shares[giver] -= 1 - shares[taker]
        if shares[giver] < 1:
            poor.append(rich.pop())
    full = 1 << 32
    return AliasTable(np.minimum(np.array(accept) * full, full - 1).astype(np.uint32), np.array(other, np.int32))


def character_ngrams(word: str, least: int = 3, most: int = 6) -> list[str]:
    """Return the n-grams of ``<word>``, at each position the shorter ones first."""
    marked = f"<{word}>"
    found = []
    for first in range(len(marked)):
        for length in range(max(1, least), most + 1):
            last = first + length
            lone_mark = length == 1 and (first == 0 or last == len(marked))
            if last <= len(marked) and not lone_mark:
                found.append(marked[first:last])
    return found


# GloVe


def cooccurrence(corpus: Corpus, window: int) -> dict[tuple[int, int], Fraction]:
    """Return X_ij = Σ 1 / distance, exactly, both halves."""
    X: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for document in corpus.documents():
        words = [id for id in document.tolist() if id not in (corpus.vocab.unknown, corpus.vocab.end)]
        for p, q in pairs(len(words), window):
            X[words[p], words[q]] += Fraction(1, abs(p - q))
    return dict(X)


def pair_loss(
    w: Reals, c: Reals, b: float, k: float, x: float, x_max: float, alpha: float
) -> tuple[float, Reals, Reals, float]:
    """Return J of one pair, and its gradients for w, for w̃ (here c), and for either bias (b and k)."""
    weight = min(1.0, (x / x_max) ** alpha)
    error = float(w @ c) + b + k - math.log(x)
    return weight * error**2 / 2, weight * error * c, weight * error * w, weight * error


def glove_step(
    W: Reals, C: Reals, squares_W: Reals, squares_C: Reals, i: int, j: int, x: float, *,
    rate: float, x_max: float, alpha: float,
) -> float:  # fmt: skip
    """Make a step of AdaGrad on X_ij, in place; return J of the pair before it.

    W, C: (V, d + 1), a word's vector and, in the last column, its bias; squares: as large, the sums so far.
    """
    loss, of_w, of_c, of_bias = pair_loss(W[i, :-1], C[j, :-1], W[i, -1], C[j, -1], x, x_max, alpha)
    for row, squares, gradient in ((W[i], squares_W[i], of_w), (C[j], squares_C[j], of_c)):
        step = rate * np.append(gradient, of_bias)
        squares += step**2
        row -= step / np.sqrt(squares)
    return loss
