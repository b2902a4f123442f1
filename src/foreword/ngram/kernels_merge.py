"""Kernels that merge counts: sorted windows of texts, and the tables of n-grams made of them (``merge.py``)."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Ints, Longs
from foreword.native.jit import kernel
from foreword.ngram.kernels_count import COUNT, PARENT, WORD, first_from


@kernel
def list_windows(
    unigrams: Longs, grams: Ints, begins: Longs, fingers: Longs, nodes: Longs, seen: Longs, path: Ints,
    rows: Ints, counts: Longs,
) -> int:  # fmt: skip
    """Return the windows of a text from its n-grams, sorted; how many there are.

    unigrams: int64 (words + 1,), how often each word was seen, ``<s>`` last. grams: int32 (n, 4), tables of orders from
    two on one after another, that of order k from ``begins[k - 2]`` to ``begins[k - 1]``. fingers: a copy of begins.
    nodes, seen: int64 (order + 1,), path: int32 (order,), scratch. rows: int32 (room, order), counts: int64 (room,),
    out.

    The n-grams that extend a context follow each other, and contexts come in their order: so one cursor in each table
    is enough to visit all n-grams in the order of a dictionary.
    """
    order, size = len(path), 0
    for word in range(len(unigrams)):
        if unigrams[word] == 0:
            continue
        depth, is_new = 1, True
        path[0], nodes[1], seen[1] = word + 1, word, unigrams[word]
        while depth > 0:
            if is_new:
                left = seen[depth]
                if depth < order:
                    at = fingers[depth - 1]
                    while at < begins[depth] and grams[at, PARENT] == nodes[depth]:
                        left -= grams[at, COUNT]
                        at += 1
                if left > 0:
                    for column in range(order):
                        rows[size, column] = path[column] if column < depth else 0
                    counts[size] = left
                    size += 1
            at = fingers[depth - 1] if depth < order else np.int64(0)
            is_new = depth < order and at < begins[depth] and grams[at, PARENT] == nodes[depth]
            if is_new:
                fingers[depth - 1] = at + 1
                path[depth] = grams[at, WORD] + 1
                nodes[depth + 1], seen[depth + 1] = at - begins[depth - 1], grams[at, COUNT]
                depth += 1
            else:
                depth -= 1
    return size


@kernel
def merge_rows(one: Ints, its: Longs, other: Ints, others: Longs, rows: Ints, counts: Longs) -> int:
    """Merge two sorted lists of distinct rows, adding the counts of equal rows; return the length.

    one, other: int32 (n, order), (m, order), with counts int64; rows: int32 (n + m, order) and counts, out.
    """
    i, j, size, order = 0, 0, 0, rows.shape[1]
    while i < len(one) or j < len(other):
        which = 0  # below zero where the next row of ``one`` is the smaller
        if j == len(other):
            which = -1
        elif i == len(one):
            which = 1
        else:
            for column in range(order):
                left, right = one[i, column], other[j, column]
                if left != right:
                    which = -1 if left < right else 1
                    break
        count = np.int64(0)
        if which >= 0:
            count += others[j]
            for column in range(order):
                rows[size, column] = other[j, column]
            j += 1
        if which <= 0:
            count += its[i]
            for column in range(order):
                rows[size, column] = one[i, column]
            i += 1
        counts[size] = count
        size += 1
    return size


@kernel
def table_sizes(rows: Ints, sizes: Longs) -> None:
    """Count the n-grams of each order that sorted rows begin with: sizes, int64 (order + 1,), zero at first."""
    order = rows.shape[1]
    for index in range(len(rows)):
        is_new = index == 0
        for column in range(order):
            word = rows[index, column]
            if word == 0:
                break
            is_new = is_new or word != rows[index - 1, column]
            sizes[column + 1] += is_new


@kernel
def fill_tables(
    rows: Ints, counts: Longs, begins: Longs, latest: Longs, unigrams: Longs, grams: Ints, most: int
) -> bool:  # fmt: skip
    """Return the n-grams of sorted rows; whether every count was at most ``most``.

    latest: int64 (order + 1,), -1 at first. unigrams: int64 (words + 1,), zero at first; grams: int32 (n, 4), zero at
    first, the tables of orders from two on, that of order k from ``begins[k - 2]`` on.
    """
    order = rows.shape[1]
    for index in range(len(rows)):
        count = counts[index]
        first = np.int64(rows[index, 0]) - 1
        unigrams[first] += count
        is_new = index == 0 or rows[index, 0] != rows[index - 1, 0]
        parent = first
        for column in range(1, order):
            word = np.int64(rows[index, column])
            if word == 0:
                break
            is_new = is_new or word != rows[index - 1, column]
            latest[column + 1] += is_new
            at = begins[column - 1] + latest[column + 1]
            if is_new:
                grams[at, WORD], grams[at, PARENT] = word - 1, parent
            total = np.int64(grams[at, COUNT]) + count
            if total > most:
                return False
            grams[at, COUNT] = total
            parent = latest[column + 1]
    return True


@kernel
def find_suffixes(grams: Ints, of_parents: Ints, shorter: Ints, children: Longs, suffixes: Ints) -> None:
    """Find the number of each n-gram without its first word.

    That of ``a b c d`` is the one among the extensions of ``b c``, the suffix of ``a b c``, that ends in ``d``.
    grams: int32 (n, 4); of_parents: the suffixes of the order below; shorter: the table of the order below, in which
    n-gram g is extended by ``children[g]`` to ``children[g + 1]``. suffixes: int32 (n,), out.
    """
    for index in range(len(grams)):
        context, word = np.int64(of_parents[grams[index, PARENT]]), grams[index, WORD]
        suffixes[index] = first_from(shorter, WORD, word, children[context], children[context + 1])
