"""Kernels of tries: words by their characters, in a hash table of (node, character).

Nodes are numbered in the order in which sorted words need them, the root is 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.native.hashing import find_slot
from foreword.native.jit import inlined, kernel

CODE = 21
"""Bits of a character."""


class Trie(NamedTuple):
    """Words by their characters. slots: int64, (node, character) -> node, a table of ``native.hashing``.

    ends: uint8 (nodes,), whether a word ends there; shortest: int32 (nodes,), the length of the shortest word below.
    """

    slots: Longs
    ends: Bytes
    shortest: Ints


@kernel
def count_nodes(codes: Ints, offsets: Longs) -> int:
    """Return how many nodes a trie of sorted words has, the root included."""
    nodes = 1
    for word in range(len(offsets) - 1):
        begin, stop = offsets[word], offsets[word + 1]
        shared = 0
        if word:
            before, end = offsets[word - 1], offsets[word]
            while before + shared < end and begin + shared < stop and codes[before + shared] == codes[begin + shared]:
                shared += 1
        nodes += stop - begin - shared
    return nodes


@kernel
def fill_trie(trie: Trie, codes: Ints, offsets: Longs) -> None:
    """Write the nodes of the words; slots, ends and shortest are zero."""
    nodes = 1
    for word in range(len(offsets) - 1):
        length = np.int32(offsets[word + 1] - offsets[word])
        node = 0
        if trie.shortest[0] == 0 or length < trie.shortest[0]:
            trie.shortest[0] = length
        for at in range(offsets[word], offsets[word + 1]):
            key = (np.int64(node) << CODE | codes[at]) + 1
            slot = find_slot(trie.slots, key)
            if trie.slots[slot] == 0:
                trie.slots[slot], trie.slots[slot + 1] = key, nodes
                nodes += 1
            node = trie.slots[slot + 1]
            if trie.shortest[node] == 0 or length < trie.shortest[node]:
                trie.shortest[node] = length
        trie.ends[node] = 1


@inlined
def child(trie: Trie, node: int, code: int) -> int:
    """Return the node one character further, or -1."""
    if node < 0:
        return -1
    key = (np.int64(node) << CODE | np.int64(code)) + 1
    slot = find_slot(trie.slots, key)
    return trie.slots[slot + 1] if trie.slots[slot] == key else -1


@kernel
def walk(trie: Trie, codes: Ints) -> int:
    """Return the node of a beginning of a word, or -1."""
    node = 0
    for at in range(len(codes)):
        node = child(trie, node, codes[at])
    return node
