"""Texts of different lengths side by side, and which go together.

What pads a text always comes behind it, in either direction, so that what a network says of a text does not depend on
the others in its batch. Shapes: B texts, T words of the longest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from foreword.arrays import Floats, Longs

CPU = torch.device("cpu")


def side_by_side(ids: Sequence[Longs], device: torch.device = CPU, *, fill: int = 0) -> tuple[Tensor, Tensor]:
    """(T, B) the words of B sentences, ``fill`` behind the end of each, and their lengths (B,)."""
    lengths = np.array([len(each) for each in ids], np.int64)
    places = np.full((int(lengths.max(initial=0)), len(ids)), fill, np.int64)
    for column, each in enumerate(ids):
        places[: len(each), column] = each
    return longs(places, device), longs(lengths, device)


def beside(rows: Sequence[Floats], device: torch.device) -> Tensor:
    """(T, B, n) the vectors of B texts, each (length, n), zero behind the end of each."""
    longest, width = max(len(each) for each in rows), rows[0].shape[1]
    held = np.zeros((longest, len(rows), width), np.float32)
    for column, each in enumerate(rows):
        held[: len(each), column] = each
    return torch.from_numpy(held).to(device)


def bucketed(lengths: Sequence[int], batch: int, random: np.random.Generator) -> list[list[int]]:
    """Sentences in batches of like length, in an order drawn anew; those without words are left out.

    Lengths are blurred by up to a tenth and a word, so that no two epochs have the same batches.
    """
    there = np.flatnonzero(np.asarray(lengths) > 0)
    blurred = np.asarray(lengths)[there] * random.uniform(1, 1.1, len(there)) + random.uniform(0, 1, len(there))
    order = there[np.argsort(blurred)].tolist()
    groups = [order[begin : begin + batch] for begin in range(0, len(order), batch)]
    return [groups[place] for place in random.permutation(len(groups)).tolist()]


def like_lengths(lengths: Sequence[int], words: int) -> Iterator[list[int]]:
    """Sentences of like length, the longest first, as many as take this many words with their padding, at least one."""
    order = sorted((place for place, length in enumerate(lengths) if length), key=lambda place: -lengths[place])
    begin = 0
    while begin < len(order):
        end = begin + max(1, words // lengths[order[begin]])
        yield order[begin:end]
        begin = end


def longs(values: Sequence[int] | Longs, device: torch.device) -> Tensor:
    return torch.from_numpy(np.asarray(values, np.int64)).to(device)
