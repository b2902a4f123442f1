"""From counts to what training draws: which words are read, and which stand as noise beside them."""

from __future__ import annotations

import heapq

import numpy as np

from foreword.arrays import Doubles, Longs, Reals, UInts
from foreword.vectors.kernels_counts import fill_aliases
from foreword.vectors.kernels_skipgram import AliasTable, Paths

_FULL = 1 << 32


def alias_table(weights: Reals) -> AliasTable:
    """A table from which one random number draws a place in proportion to its weight, in constant time.

    A. Walker, "An efficient method for generating discrete random variables with general distributions" (1977).
    """
    n = len(weights)
    shares = np.asarray(weights, np.float64) * (n / weights.sum())
    accept, other = np.empty(n), np.empty(n, np.int32)
    fill_aliases(shares, accept, other, np.empty(n, np.int32), np.empty(n, np.int32))
    return AliasTable(_of_full(accept), other)


def plain_alias_table(weights: Reals) -> AliasTable:
    """The same, slow: whoever has less than a full share is filled up by one who has more."""
    n = len(weights)
    shares = (weights * (n / weights.sum())).tolist()
    accept, other = [1.0] * n, list(range(n))
    poor = [place for place, share in enumerate(shares) if share < 1]
    rich = [place for place, share in enumerate(shares) if share >= 1]
    while poor and rich:
        taker, giver = poor.pop(), rich[-1]
        accept[taker], other[taker] = shares[taker], giver
        shares[giver] -= 1 - shares[taker]
        if shares[giver] < 1:
            poor.append(rich.pop())
    return AliasTable(_of_full(np.array(accept)), np.array(other, np.int32))


def keep_shares(counts: Longs, sample: float) -> UInts:
    """How often each word is read, of 2³²: with a share f of the text, ``√(t/f) + t/f`` of the times.

    A word that was never counted is never read; ``sample=0`` reads all others always.
    """
    shares = counts / max(1, counts.sum())
    kept = (counts > 0).astype(np.float64)
    if sample > 0:
        seen = shares > 0
        kept[seen] = np.minimum(1, np.sqrt(sample / shares[seen]) + sample / shares[seen])
    return _of_full(kept)


def _of_full(shares: Doubles) -> UInts:
    return np.minimum(shares * _FULL, _FULL - 1).astype(np.uint32)


def huffman_paths(counts: Longs) -> Paths:
    """The Huffman tree over the words that were counted: n words have n − 1 inner nodes, the root being n − 2.

    A turn is 1 where word2vec's code has a 0, that is, where the score's sigmoid should be high.
    """
    words = np.flatnonzero(counts)
    parent, right = _tree(counts[words].tolist())
    steps: list[list[tuple[int, int]]] = [[] for _ in counts]
    leaves = len(words)
    for leaf, word in enumerate(words.tolist()):
        node = leaf
        while parent[node] >= 0:
            steps[word].append((parent[node] - leaves, 0 if right[node] else 1))
            node = parent[node]
        steps[word].reverse()
    flat = [step for path in steps for step in path]
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(path) for path in steps], dtype=np.int64)))
    nodes = np.array([node for node, _ in flat], np.int32)
    return Paths(nodes, np.array([turn for _, turn in flat], np.uint8), offsets)


def _tree(counts: list[int]) -> tuple[list[int], list[bool]]:
    """Parents of leaves and inner nodes (−1 for the root), and which are the right, heavier child."""
    heap = [(count, place) for place, count in enumerate(counts)]
    heapq.heapify(heap)
    size = max(1, 2 * len(counts) - 1)
    parent, right = [-1] * size, [False] * size
    for node in range(len(counts), size):
        light, lightest = heapq.heappop(heap)
        heavy, heavier = heapq.heappop(heap)
        parent[lightest] = parent[heavier] = node
        right[heavier] = True
        heapq.heappush(heap, (light + heavy, node))
    return parent, right
