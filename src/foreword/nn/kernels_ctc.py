"""Connectionist temporal classification: the chance of a text under all its alignments, and what each frame owes to it.

Between, before and behind the L labels stand blanks, so that a text is a chain of 2L + 1 symbols z. Each frame stays,
goes to the next symbol, or jumps over a blank between two different labels:

    α_t(s) = log p_t(z_s) + log [ exp α_(t−1)(s) + exp α_(t−1)(s−1) + (z_s ≠ blank, z_s ≠ z_(s−2)) exp α_(t−1)(s−2) ]

and backwards alike; log p(text) = log [ exp α_T(2L) + exp α_T(2L − 1) ], counting symbols from 0.
Shapes: T frames, B texts, V symbols with the blank, S labels of the longest text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foreword.arrays import Doubles, Logs, Longs
from foreword.native.jit import inlined, kernel


def plain_log_likelihood(logs: Logs, labels: Sequence[int], blank: int) -> float:
    """The logarithm of p(labels) under log-probabilities (T, V) of one text."""
    symbols = [blank]
    for label in labels:
        symbols += [label, blank]
    alpha = np.full(len(symbols), -np.inf)
    alpha[0] = 0  # before the first frame nothing is read
    for row in logs:
        before, alpha = alpha, np.full(len(symbols), -np.inf)
        for place, symbol in enumerate(symbols):
            origins = [before[place]]
            if place > 0:
                origins.append(before[place - 1])
            if place > 1 and symbol not in (blank, symbols[place - 2]):
                origins.append(before[place - 2])
            alpha[place] = np.logaddexp.reduce(origins) + row[symbol]
    return float(np.logaddexp.reduce(alpha[-2:]))


@inlined
def _added(a: float, b: float) -> float:
    """The logarithm of exp a + exp b."""
    high, low = (a, b) if a > b else (b, a)
    if high == -math.inf:
        return high
    return high if low < high - 40 else high + math.log(1 + math.exp(low - high))  # e^−40 is nothing beside 1


@inlined
def _symbol(labels: Longs, text: int, place: int, blank: int) -> int:
    return labels[text, place >> 1] if place & 1 else blank


@inlined
def _jumps(labels: Longs, text: int, place: int) -> bool:
    """Whether ``place`` may follow the one two before it: both are labels, and they differ."""
    return place > 1 and place & 1 and labels[text, place >> 1] != labels[text, (place >> 1) - 1]


@inlined
def _first(time: int, last: int, places: int) -> int:
    """The first place from which the end can still be reached: each frame goes two places on at most."""
    return max(places - 2 - 2 * (last - time), 0)


@inlined
def _beyond(time: int, places: int) -> int:
    """One behind the last place that can have been reached."""
    return min(2 * time + 2, places)


@kernel
def align(
    logs: Doubles,
    labels: Longs,
    frames: Longs,
    sizes: Longs,
    blank: int,
    alpha: Doubles,
    later: Doubles,
    earlier: Doubles,
    found: Doubles,
    shares: Doubles,
) -> None:
    """Fill ``found`` (B,) with log p(labels), and add p(symbol at t | labels) to ``shares`` (T, B, V), zeros before.

    logs: (T, B, V); labels: (B, S); frames, sizes: (B,), how much of both a text has; alpha: (T, 2S + 1), later and
    earlier: (2S + 1,), room. Without frames, shares of none, the way back is not gone.
    """
    for text in range(len(found)):
        last = frames[text] - 1
        places = 2 * sizes[text] + 1
        if last < 0:
            found[text] = 0.0 if places == 1 else -math.inf
            continue
        _ahead(logs, labels, text, last, places, blank, alpha)
        total = alpha[last, places - 1]
        if places > 1:
            total = _added(total, alpha[last, places - 2])
        found[text] = total
        if len(shares) and total > -math.inf:
            _back(logs, labels, text, last, places, blank, alpha, later, earlier, total, shares)


@inlined
def _ahead(logs: Doubles, labels: Longs, text: int, last: int, places: int, blank: int, alpha: Doubles) -> None:
    for place in range(places):
        alpha[0, place] = logs[0, text, _symbol(labels, text, place, blank)] if place < 2 else -math.inf
    for time in range(1, last + 1):
        alpha[time, :places] = -math.inf
        for place in range(_first(time, last, places), _beyond(time, places)):
            total = alpha[time - 1, place]
            if place > 0:
                total = _added(total, alpha[time - 1, place - 1])
            if _jumps(labels, text, place):
                total = _added(total, alpha[time - 1, place - 2])
            alpha[time, place] = total + logs[time, text, _symbol(labels, text, place, blank)]


@inlined
def _back(
    logs: Doubles, labels: Longs, text: int, last: int, places: int, blank: int,
    alpha: Doubles, later: Doubles, earlier: Doubles, total: float, shares: Doubles,
) -> None:  # fmt: skip
    """β_t(s): all ways from symbol s at frame t to the end, the frame itself not counted."""
    for place in range(places):
        later[place] = 0.0 if place >= places - 2 else -math.inf
    for time in range(last, -1, -1):
        if time < last:
            earlier[:places] = -math.inf
            for place in range(_first(time, last, places), _beyond(time, places)):
                way = later[place] + logs[time + 1, text, _symbol(labels, text, place, blank)]
                if place + 1 < places:
                    on = _symbol(labels, text, place + 1, blank)
                    way = _added(way, later[place + 1] + logs[time + 1, text, on])
                if place + 2 < places and _jumps(labels, text, place + 2):
                    on = _symbol(labels, text, place + 2, blank)
                    way = _added(way, later[place + 2] + logs[time + 1, text, on])
                earlier[place] = way
            later, earlier = earlier, later
        for place in range(_first(time, last, places), _beyond(time, places)):
            share = math.exp(alpha[time, place] + later[place] - total)
            shares[time, text, _symbol(labels, text, place, blank)] += share
