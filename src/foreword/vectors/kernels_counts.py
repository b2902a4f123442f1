"""From ids to counts, and from counts to a table that draws by them: what training vectors begins with."""

from __future__ import annotations

from typing import Any

import numpy as np

from foreword.arrays import Doubles, Ints, Longs
from foreword.native.jit import kernel

COUNT_LANES = 4
"""Neighbouring ids are counted apart: where the same comes twice, the second count would wait for the first."""


@kernel
def count_ids(ids: Any, begin: int, stop: int, counts: Longs) -> None:
    """Add how often each id stands in ``ids[begin:stop]`` to ``counts`` (COUNT_LANES, V); no id may be V or more."""
    for place in range(begin, stop):
        counts[place & (COUNT_LANES - 1), np.int64(ids[place])] += 1


@kernel
def fill_aliases(
    shares: Doubles, accept: Doubles, other: Ints, poor: Ints,
    rich: Ints,
) -> None:  # fmt: skip
    """Walker's table of shares whose mean is 1, by Vose's two stacks; ``shares`` is used up. poor, rich: room."""
    few, many = 0, 0
    for place in range(len(shares)):
        accept[place], other[place] = 1.0, place
        if shares[place] < 1.0:
            poor[few] = place
            few += 1
        else:
            rich[many] = place
            many += 1
    while few and many:
        few -= 1
        taker, giver = poor[few], rich[many - 1]
        accept[taker], other[taker] = shares[taker], giver
        shares[giver] -= 1.0 - shares[taker]
        if shares[giver] < 1.0:
            poor[few] = giver
            few += 1
            many -= 1
