"""Kernel of connectionist temporal classification: log p(labels) over all alignments, and each frame's posteriors.

Blanks stand between, before and after the L labels, so that a text is a chain of 2L + 1 symbols z. Each frame stays,
moves to the next symbol, or skips a blank between two different labels:

    α_t(s) = log p_t(z_s) + log [ exp α_(t−1)(s) + exp α_(t−1)(s−1) + (z_s ≠ blank, z_s ≠ z_(s−2)) exp α_(t−1)(s−2) ]

and the backward pass alike; log p(text) = log [ exp α_T(2L) + exp α_T(2L − 1) ], counting symbols from 0.
Shapes: T frames, B texts, V symbols with the blank, S labels of the longest text.
"""

from __future__ import annotations

import math

from foreword.arrays import Doubles, Longs
from foreword.native.jit import inlined, kernel


@inlined
def _log_add(a: float, b: float) -> float:
    """Return log(exp a + exp b)."""
    high, low = (a, b) if a > b else (b, a)
    if high == -math.inf:
        return high
    return high if low < high - 40 else high + math.log(1 + math.exp(low - high))  # e^−40 is below the precision of 1


@inlined
def _symbol(labels: Longs, text: int, at: int, blank: int) -> int:
    return labels[text, at >> 1] if at & 1 else blank


@inlined
def _jumps(labels: Longs, text: int, at: int) -> bool:
    """Return whether symbol ``at`` may follow the one two before it: both are labels, and they differ."""
    return at > 1 and at & 1 and labels[text, at >> 1] != labels[text, (at >> 1) - 1]


@inlined
def _first(time: int, last: int, symbols: int) -> int:
    """Return the first symbol from which the end can be reached: each frame advances by at most two."""
    return max(symbols - 2 - 2 * (last - time), 0)


@inlined
def _beyond(time: int, symbols: int) -> int:
    """Return one more than the last symbol that can have been reached."""
    return min(2 * time + 2, symbols)


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

    logs: (T, B, V); labels: (B, S); frames, sizes: (B,), lengths of both; alpha: (T, 2S + 1), later and earlier:
    (2S + 1,), workspace. With empty ``shares`` the backward pass is skipped.
    """
    for text in range(len(found)):
        last = frames[text] - 1
        symbols = 2 * sizes[text] + 1
        if last < 0:
            found[text] = 0.0 if symbols == 1 else -math.inf
            continue
        _forward(logs, labels, text, last, symbols, blank, alpha)
        total = alpha[last, symbols - 1]
        if symbols > 1:
            total = _log_add(total, alpha[last, symbols - 2])
        found[text] = total
        if len(shares) and total > -math.inf:
            _add_posteriors(logs, labels, text, last, symbols, blank, alpha, later, earlier, total, shares)


@inlined
def _forward(logs: Doubles, labels: Longs, text: int, last: int, symbols: int, blank: int, alpha: Doubles) -> None:
    """Fill ``alpha``."""
    for at in range(symbols):
        alpha[0, at] = logs[0, text, _symbol(labels, text, at, blank)] if at < 2 else -math.inf
    for time in range(1, last + 1):
        alpha[time, :symbols] = -math.inf
        for at in range(_first(time, last, symbols), _beyond(time, symbols)):
            total = alpha[time - 1, at]
            if at > 0:
                total = _log_add(total, alpha[time - 1, at - 1])
            if _jumps(labels, text, at):
                total = _log_add(total, alpha[time - 1, at - 2])
            alpha[time, at] = total + logs[time, text, _symbol(labels, text, at, blank)]


@inlined
def _add_posteriors(
    logs: Doubles, labels: Longs, text: int, last: int, symbols: int, blank: int,
    alpha: Doubles, later: Doubles, earlier: Doubles, total: float, shares: Doubles,
) -> None:  # fmt: skip
    """Add posteriors by β_t(s): the log-sum over all ways from symbol s at frame t to the end, that frame excluded."""
    for at in range(symbols):
        later[at] = 0.0 if at >= symbols - 2 else -math.inf
    for time in range(last, -1, -1):
        if time < last:
            earlier[:symbols] = -math.inf
            for at in range(_first(time, last, symbols), _beyond(time, symbols)):
                way = later[at] + logs[time + 1, text, _symbol(labels, text, at, blank)]
                if at + 1 < symbols:
                    on = _symbol(labels, text, at + 1, blank)
                    way = _log_add(way, later[at + 1] + logs[time + 1, text, on])
                if at + 2 < symbols and _jumps(labels, text, at + 2):
                    on = _symbol(labels, text, at + 2, blank)
                    way = _log_add(way, later[at + 2] + logs[time + 1, text, on])
                earlier[at] = way
            later, earlier = earlier, later
        for at in range(_first(time, last, symbols), _beyond(time, symbols)):
            share = math.exp(alpha[time, at] + later[at] - total)
            shares[time, text, _symbol(labels, text, at, blank)] += share
