"""Many states of a text become one vector, each state looked at once. All arrays are flat float32."""

from __future__ import annotations

from foreword.arrays import Floats, Longs
from foreword.native.jit import kernel
from foreword.native.simd import LANES, load_part, maximum, plus, store_part, zeros


@kernel
def last_sum_max(states: Floats, lengths: Longs, texts: int, units: int, out: Floats) -> None:
    """Into out (B, 3H): the last state of each text, the sum of its states, and the largest number of each unit.

    states (T, B, H); lengths (B,), from 1 to T.
    """
    step = texts * units
    for text in range(texts):
        length, to = lengths[text], 3 * text * units
        for j in range(0, units, LANES):
            few, at = units - j, text * units + j
            state = load_part(states, at, few)
            top, sums = state, zeros()
            for _ in range(length):
                state = load_part(states, at, few)
                top, sums = maximum(state, top), plus(sums, state)
                at += step
            store_part(out, to + j, state, few)
            store_part(out, to + units + j, sums, few)
            store_part(out, to + 2 * units + j, top, few)
