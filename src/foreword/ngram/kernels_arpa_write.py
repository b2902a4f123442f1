"""ARPA entries, from n-grams to bytes: what Python's ``f"{value:.9g}"`` would write, twenty times as fast."""

from __future__ import annotations

import math

import numpy as np

from foreword.arrays import Bytes, Floats, Longs
from foreword.native.jit import inlined, kernel
from foreword.ngram.kernels_arpa import ENOUGH, FULL, ODD, POWERS, product_error

_NEWLINE, _SPACE, _TAB = 10, 32, 9
_MINUS, _POINT, _ZERO, _LITTLE_E = 45, 46, 48, 101
_LN10 = math.log(10)


@inlined
def _write_digits(number: int, count: int, out: Bytes, at: int) -> int:
    """The last ``count`` decimal digits of a number."""
    for place in range(at + count - 1, at - 1, -1):
        out[place] = _ZERO + number % 10
        number //= 10
    return at + count


@inlined
def _write_number(value: float, out: Bytes, at: int) -> int:
    """``f"{value:.9g}"``; where it ends, or -1 for one so large, small or strange that Python has to write it.

    A float64 times a power of ten up to the 22nd is exactly a sum of two float64s, so it rounds to nine digits as the
    number itself does, to the even one between two equally near.
    """
    if value < 0 or (value == 0 and math.copysign(1.0, value) < 0):
        out[at] = _MINUS
        at += 1
        value = -value
    if value == 0:
        out[at] = _ZERO
        return at + 1
    if not 1e-13 <= value < 1e8:
        return -1
    exponent = 0
    while exponent < 8 and value >= POWERS[exponent + 1]:
        exponent += 1
    while exponent > -14 and exponent <= 0 and value * POWERS[-exponent] < 1:
        exponent -= 1
    product = value * POWERS[8 - exponent]
    rest = product_error(value, POWERS[8 - exponent], product)
    if product > 1e9 or (product == 1e9 and rest >= 0):
        exponent += 1
    elif product < 1e8 or (product == 1e8 and rest < 0):
        exponent -= 1
    product = value * POWERS[8 - exponent]
    rest = product_error(value, POWERS[8 - exponent], product)
    digits = np.int64(product)
    over = (product - np.float64(digits)) - 0.5
    if over > 0 or (over == 0 and (rest > 0 or (rest == 0 and digits % 2 == 1))):
        digits += 1
    if digits == 1_000_000_000:
        digits = 100_000_000
        exponent += 1
    count = 9
    while digits % 10 == 0:
        digits //= 10
        count -= 1
    if exponent < -4:
        at = _write_digits(digits // np.int64(POWERS[count - 1]), 1, out, at)
        if count > 1:
            out[at] = _POINT
            at = _write_digits(digits, count - 1, out, at + 1)
        out[at], out[at + 1] = _LITTLE_E, _MINUS
        return _write_digits(-exponent, 2, out, at + 2)
    if exponent < 0:
        out[at], out[at + 1] = _ZERO, _POINT
        at = _write_digits(0, -exponent - 1, out, at + 2)
        return _write_digits(digits, count, out, at)
    whole = exponent + 1
    if count <= whole:
        return _write_digits(digits * np.int64(POWERS[whole - count]), whole, out, at)
    at = _write_digits(digits // np.int64(POWERS[count - whole]), whole, out, at)
    out[at] = _POINT
    return _write_digits(digits, count - whole, out, at + 1)


@kernel
def write_entries(
    ngrams: Longs, logs: Floats, weights: Floats, highest: bool, names: Bytes, offsets: Longs,
    never: float, out: Bytes, position: Longs,
) -> int:  # fmt: skip
    """Write lines for n-grams from ``position[0]`` on to ``out`` from ``position[1]`` on; why it stopped.

    never: log10 of zero. ODD: the next n-gram has a number that Python has to write. FULL: it has no room in ``out``.
    """
    order = ngrams.shape[1]
    while position[0] < len(logs):
        number, at = position[0], position[1]
        length = 64
        for word in range(order):
            length += offsets[ngrams[number, word] + 1] - offsets[ngrams[number, word]] + 1
        if at + length > len(out):
            return FULL
        log = np.float64(logs[number])
        at = _write_number(never if log == -np.inf else log / _LN10, out, at)
        if at < 0:
            return ODD
        out[at] = _TAB
        at += 1
        for word in range(order):
            for place in range(offsets[ngrams[number, word]], offsets[ngrams[number, word] + 1]):
                out[at] = names[place]
                at += 1
            out[at] = _SPACE
            at += 1
        at -= 1
        if not highest:
            out[at] = _TAB
            at = _write_number(max(np.float64(weights[number]) / _LN10, never), out, at + 1)
            if at < 0:
                return ODD
        out[at] = _NEWLINE
        position[0], position[1] = number + 1, at + 1
    return ENOUGH
