"""A trie of byte strings as a double array (Aoe, 1989), and its kernels.

Four int32 per node, in one cache line: where its children are, its parent, the value of the key that ends here or
-1, and one to spare. The child by byte b of node i is node ``base + b``, if that one's parent is i. Node 0 is the root.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.native.jit import inlined, kernel

UNIT = 4
"""Numbers per node."""
CROWDED = 64
"""Offsets tried in vain after which the nodes before are left as they are: filling every gap takes quadratic time."""
FREE, ROOT = -1, -2
"""Parents of a node that is not in use, and of the root."""


@inlined
def child_of(trie: Ints, node: int, byte: int) -> int:
    """Return the child of a node by a byte, -1 if there is none."""
    child = np.int64(trie[node * UNIT]) + byte
    if child * UNIT >= len(trie) or trie[child * UNIT + 1] != node:
        return -1
    return child


@inlined
def longest_match(trie: Ints, data: Bytes, index: int, stop: int) -> tuple[int, int]:
    """Return the length of the longest key at ``index``, 0 for none, and its value."""
    longest, value = 0, -1
    node = np.int64(0)
    for end in range(index, stop):
        node = child_of(trie, node, np.int64(data[end]))
        if node < 0:
            break
        if trie[node * UNIT + 2] >= 0:
            longest = end + 1 - index
            value = trie[node * UNIT + 2]
    return longest, value


@inlined
def list_labels(
    keys: Bytes, offsets: Longs, first: int, last: int, depth: int, labels: Longs, children: int
) -> int:  # fmt: skip
    """List the bytes at ``depth`` of sorted keys, each with the first key that has it, after ``children`` labels that
    are there, and then ``last``; return how many labels there are.
    """
    previous = np.int64(-1)
    for key in range(first, last):
        byte = np.int64(keys[offsets[key] + depth])
        if byte != previous:
            labels[2 * children], labels[2 * children + 1] = byte, key
            children += 1
            previous = byte
    labels[2 * children + 1] = last
    return children


@kernel
def build(keys: Bytes, offsets: Longs, values: Ints, trie: Ints, stack: Longs, labels: Longs) -> int:
    """Build a trie of sorted, distinct keys; return how many nodes are in use, -1 if ``trie`` is too short.

    trie: (nodes * UNIT,), every number FREE. stack: (4 * (keys + 2),), labels: (2 * 257,), scratch.
    """
    nodes = len(trie) // UNIT
    top = 0
    stack[0], stack[1], stack[2], stack[3] = 0, len(values), 0, 0  # first key, last key, depth, node
    trie[0], trie[1] = 0, ROOT
    used, first_free = 1, 1
    while top >= 0:
        at = 4 * top
        first, last, depth, node = stack[at], stack[at + 1], stack[at + 2], stack[at + 3]
        top -= 1
        if offsets[first] + depth == offsets[first + 1]:
            trie[node * UNIT + 2] = values[first]
            first += 1
        if first == last:
            continue
        children = list_labels(keys, offsets, first, last, depth, labels, 0)
        while first_free < nodes and trie[first_free * UNIT + 1] != FREE:
            first_free += 1
        base = max(first_free - labels[0], 1)
        tried = base
        free = False
        while not free:
            if base + 256 >= nodes:
                return -1
            free = True
            for child in range(children):
                if trie[(base + labels[2 * child]) * UNIT + 1] != FREE:
                    free = False
                    base += 1
                    break
        if base - tried > CROWDED:
            first_free = base
        trie[node * UNIT] = base
        for child in range(children):
            place = base + labels[2 * child]
            trie[place * UNIT], trie[place * UNIT + 1] = 0, node
            used = max(used, place + 1)
            top += 1
            at = 4 * top
            stack[at], stack[at + 1] = labels[2 * child + 1], labels[2 * child + 3]
            stack[at + 2], stack[at + 3] = depth + 1, place
    return used


def build_trie(keys: Mapping[bytes, int]) -> Ints:
    """Return the trie of some keys with their values, which are not negative."""
    ordered = sorted(keys)
    offsets = np.zeros(len(ordered) + 1, np.int64)
    np.cumsum([len(key) for key in ordered], out=offsets[1:])
    values = np.array([keys[key] for key in ordered], np.int32)
    data = np.frombuffer(b"".join(ordered), np.uint8).copy()
    stack, labels = np.empty(4 * (len(ordered) + 2), np.int64), np.empty(2 * 257, np.int64)
    nodes = 512 + int(offsets[-1]) // 2
    while True:
        trie = np.full(nodes * UNIT, FREE, np.int32)
        trie[:2] = 0, ROOT
        used = build(data, offsets, values, trie, stack, labels) if ordered else 1
        if used >= 0:
            return trie[: used * UNIT].copy()
        nodes *= 2
