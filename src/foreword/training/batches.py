"""Batches: which texts of different lengths go together, and their padding.

Padding always comes after a text, whatever the direction in which it is read, so that the outputs for a text do not
depend on the others in its batch. Shapes: B texts, T words of the longest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from foreword.arrays import Floats, Longs

CPU = torch.device("cpu")


def padded_ids(ids: Sequence[Longs], device: torch.device = CPU, *, fill: int = 0) -> tuple[Tensor, Tensor]:
    """Return (T, B) the words of B sentences, ``fill`` after the end of each, and their lengths (B,)."""
    lengths = np.array([len(each) for each in ids], np.int64)
    ids_of_batch = np.full((int(lengths.max(initial=0)), len(ids)), fill, np.int64)
    for column, each in enumerate(ids):
        ids_of_batch[: len(each), column] = each
    return longs(ids_of_batch, device), longs(lengths, device)


def padded_vectors(rows: Sequence[Floats], device: torch.device) -> Tensor:
    """Return (T, B, n) the vectors of B texts, each (length, n), zero after the end of each."""
    longest, width = max(len(each) for each in rows), rows[0].shape[1]
    vectors = np.zeros((longest, len(rows), width), np.float32)
    for column, each in enumerate(rows):
        vectors[: len(each), column] = each
    return torch.from_numpy(vectors).to(device)


def bucketed(lengths: Sequence[int], batch: int, random: np.random.Generator) -> list[list[int]]:
    """Return batches of sentences of similar length in random order; those without words are left out.

    Lengths are perturbed by up to a tenth and a word, so that no two epochs have the same batches.
    """
    nonempty = np.flatnonzero(np.asarray(lengths) > 0)
    count = len(nonempty)
    perturbed = np.asarray(lengths)[nonempty] * random.uniform(1, 1.1, count) + random.uniform(0, 1, count)
    order = nonempty[np.argsort(perturbed)].tolist()
    groups = [order[begin : begin + batch] for begin in range(0, len(order), batch)]
    return [groups[index] for index in random.permutation(len(groups)).tolist()]


def similar_lengths(lengths: Sequence[int], words: int) -> Iterator[list[int]]:
    """Yield batches of sentences of similar length, the longest first, of ``words`` words at most with padding."""
    order = sorted((index for index, length in enumerate(lengths) if length), key=lambda index: -lengths[index])
    begin = 0
    while begin < len(order):
        end = begin + max(1, words // lengths[order[begin]])
        yield order[begin:end]
        begin = end


def longs(values: Sequence[int] | Longs, device: torch.device) -> Tensor:
    """Return int64 values on the device."""
    return torch.from_numpy(np.asarray(values, np.int64)).to(device)
