"""The k best of many scored documents.

A heap of numbers in which the score's bits come first and then the document, counted from above. Floats that are not
negative are in the order of their bits, so one comparison of whole numbers says which document is worse, and of two
that are equally good the later one is.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Floats, Ints, Longs
from foreword.native.jit import inlined

LOW = np.int64(0xFFFFFFFF)
HALF = np.int64(32)

BLOCK = 64
"""Documents that are looked at together when all have a score."""


@inlined
def kth_best(scores: Floats, bits: Ints, listed: Ints, size: int, k: int, heap: Longs) -> float:
    select(bits, listed, size, k, heap)
    return np.float64(scores[document_of(heap[0])])


@inlined
def select(bits: Ints, listed: Ints, size: int, k: int, heap: Longs) -> int:
    """Make ``heap`` the best ``k`` of the documents listed, the worst on top; how many there are."""
    number = min(size, k)
    for at in range(number):
        heap[at] = _key(bits, listed[at])
    for top in range(number // 2 - 1, -1, -1):
        sink(heap, top, number)
    for at in range(number, size):
        key = _key(bits, listed[at])
        if key > heap[0]:
            heap[0] = key
            sink(heap, 0, number)
    return number


@inlined
def select_of_all(bits: Ints, k: int, heap: Longs) -> int:
    """The same of all documents that have a score."""
    for at in range(k):
        heap[at] = 0
    for start in range(0, len(bits), BLOCK):
        stop = min(start + BLOCK, len(bits))
        best = np.int32(0)
        for document in range(start, stop):
            best = max(best, bits[document])
        if np.int64(best) > heap[0] >> HALF:
            for document in range(start, stop):
                if np.int64(bits[document]) > heap[0] >> HALF:
                    heap[0] = _key(bits, document)
                    sink(heap, 0, k)
    number = 0
    for at in range(k):  # what is left of the zeros is no document
        heap[number] = heap[at]
        number += np.int64(heap[at] > 0)
    if number < k:
        for top in range(number // 2 - 1, -1, -1):
            sink(heap, top, number)
    return number


@inlined
def _key(bits: Ints, document: int) -> int:
    return (np.int64(bits[document]) << HALF) | (LOW - np.int64(document))


@inlined
def document_of(key: int) -> int:
    return LOW - (key & LOW)


@inlined
def sink(heap: Longs, at: int, size: int) -> None:
    """Let what stands at ``at`` sink to where nothing below it is smaller."""
    key = heap[at]
    below = 2 * at + 1
    while below < size:
        below += np.int64(below + 1 < size and heap[below + 1] < heap[below])
        if heap[below] >= key:
            break
        heap[at] = heap[below]
        at = below
        below = 2 * at + 1
    heap[at] = key
