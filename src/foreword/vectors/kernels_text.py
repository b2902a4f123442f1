"""Word vectors as text and as word2vec's binary, from bytes to rows and back.

A kernel reads only usual lines, which nearly all are. Any other, be it broken or only unusual, is left to the plain
reader in Python.
"""

from __future__ import annotations

import math

import numpy as np

from foreword.arrays import Bytes, Floats, Longs
from foreword.native.jit import inlined, kernel

MORE, ODD, FULL = range(3)
"""Why a reader stopped: it needs more bytes, a line is for Python, no row is left."""

AT, LINE, ROW, USED = range(4)
"""Indices of ``position``: the next byte, the number of lines before it, the next row, and the bytes of words written
so far."""

NUMBER_BYTES = 17
"""Most bytes of a number and the blank before it."""

_NEWLINE, _RETURN, _SPACE, _TAB = 10, 13, 32, 9
_PLUS, _MINUS, _POINT, _ZERO, _NINE, _LITTLE_E, _BIG_E = 43, 45, 46, 48, 57, 101, 69

_EXACT = 1 << 53
"""Integers up to here are exact in float64, and so are powers of ten up to the 22nd."""

_ENOUGH = 10**17
"""From here on further digits are only counted: they cannot change a float32, or the line is left to Python."""

_REACH = 290
_POWERS = np.array([10.0**power for power in range(-_REACH, _REACH + 1)])
TOO_LARGE = 2.0**128 - 2.0**103
"""From here on a number rounds to an infinite float32."""

_DIGITS = 9
"""Digits that distinguish any two float32."""


# Reading


@inlined
def _is_blank(byte: int) -> bool:
    return byte in (_SPACE, _TAB)


@inlined
def _read_number(data: Bytes, at: int, numbers: Floats, place: int) -> int:
    """Read a decimal number into ``numbers[place]``, rounded as by Python and then NumPy; return where it ends, or -1
    if it is uncertain. ``data`` must end in a line end.

    If the digits or their power of ten are not exact in float64, the product is off by a few units in its last place.
    If slightly larger and smaller numbers round to the same float32, that is right all the same.
    """
    negative = data[at] == _MINUS
    if negative or data[at] == _PLUS:
        at += 1
    digits = np.int64(0)
    exponent = np.int64(0)
    begin = at
    pointed = 0
    cut = False
    while True:
        byte = data[at]
        if _ZERO <= byte <= _NINE:
            if digits < _ENOUGH:
                digits = digits * 10 + np.int64(byte - _ZERO)
                exponent -= pointed
            else:
                cut = True
                exponent += 1 - pointed
        elif byte == _POINT and pointed == 0:
            pointed = 1
        else:
            break
        at += 1
    if at - begin == pointed:
        return -1
    if data[at] == _LITTLE_E or data[at] == _BIG_E:
        at += 1
        falling = data[at] == _MINUS
        if falling or data[at] == _PLUS:
            at += 1
        begin = at
        power = np.int64(0)
        while _ZERO <= data[at] <= _NINE and at - begin < 4:
            power = power * 10 + np.int64(data[at] - _ZERO)
            at += 1
        if at == begin:
            return -1
        exponent += -power if falling else power
    value = 0.0
    if digits > 0:
        if abs(exponent) > _REACH:
            return -1
        if not cut and digits <= _EXACT and -22 <= exponent <= 0:
            value = np.float64(digits) / _POWERS[_REACH - exponent]
        else:
            value = np.float64(digits) * _POWERS[_REACH + exponent]
            little = value * 1e-15
            if value >= TOO_LARGE or np.float32(value - little) != np.float32(value + little):
                return -1
        if value >= TOO_LARGE:
            return -1
    numbers[place] = np.float32(-value if negative else value)
    return at


@inlined
def _read_line(data: Bytes, at: int, numbers: Floats, row: int, dimensions: int) -> int:
    """Read the numbers of a line from the blank after its word on; return where the next line begins, or -1."""
    for place in range(dimensions):
        if not _is_blank(data[at]):
            return -1
        at = _read_number(data, at + 1, numbers, row * dimensions + place)
        if at < 0:
            return -1
    while _is_blank(data[at]) or data[at] == _RETURN:
        at += 1
    return at + 1 if data[at] == _NEWLINE else -1


@kernel
def read_text(data: Bytes, matrix: Floats, dimensions: int, words: Bytes, ends: Longs, position: Longs) -> int:
    """Read lines of a word and its numbers; return why it stopped.

    data: whole lines, each with its end. matrix: flat, (rows * dimensions,). words: as long as data, the words one
    after another. ends: (rows,), where each ends.
    """
    rows = len(matrix) // dimensions
    while position[AT] < len(data):
        at, row, used = position[AT], position[ROW], position[USED]
        if data[at] == _NEWLINE:
            position[AT] += 1
            position[LINE] += 1
            continue
        if row == rows:
            return FULL
        stop = at
        while not _is_blank(data[stop]) and data[stop] != _NEWLINE:
            stop += 1
        after = _read_line(data, stop, matrix, row, dimensions)
        if after < 0:
            return ODD
        for place in range(at, stop):
            words[used] = data[place]
            used += 1
        ends[row] = used
        position[AT], position[ROW], position[USED] = after, row + 1, used
        position[LINE] += 1
    return MORE


@kernel
def read_binary(data: Bytes, rows: Bytes, size: int, words: Bytes, ends: Longs, position: Longs) -> int:
    """Read entries of a word, a blank and ``size`` bytes, as long as they are complete; return why it stopped.

    rows: the matrix as bytes, flat. Line ends before a word, which some writers put after a vector, are no part of it.
    """
    entries = len(rows) // size
    while position[ROW] < entries:
        start = position[AT]
        while start < len(data) and data[start] == _NEWLINE:
            start += 1
        stop = start
        while stop < len(data) and data[stop] != _SPACE:
            stop += 1
        if stop + 1 + size > len(data):
            return MORE
        row, used = position[ROW], position[USED]
        for place in range(start, stop):
            words[used] = data[place]
            used += 1
        for place in range(size):
            rows[row * size + place] = data[stop + 1 + place]
        ends[row] = used
        position[AT], position[ROW], position[USED] = stop + 1 + size, row + 1, used
    return FULL


# Writing


@inlined
def _shortest(value: float) -> tuple[int, int, int]:
    """Return the shortest decimal nearer to a positive float32 than half way to the next: digits as an integer, their
    number, and the power of ten of the first.
    """
    power = np.int64(math.floor(math.log10(value)))
    digits = np.int64(np.rint(value * _POWERS[_REACH + _DIGITS - 1 - power]))
    if digits >= 10**_DIGITS:
        power += 1
        digits = np.int64(np.rint(value * _POWERS[_REACH + _DIGITS - 1 - power]))
    elif digits < 10 ** (_DIGITS - 1):
        power -= 1
        digits = np.int64(np.rint(value * _POWERS[_REACH + _DIGITS - 1 - power]))
    fraction, exponent = math.frexp(value)
    # Half the distance to the next float, the nearer one below a power of two; slightly less, for our own rounding.
    near = math.ldexp(0.999 if fraction > 0.5 else 0.499, max(exponent - 25, -150))
    length, whole = np.int64(_DIGITS), np.float64(digits)
    while length > 1:
        shorter = np.int64(np.rint(whole / _POWERS[_REACH + _DIGITS + 1 - length]))
        if abs(np.float64(shorter) * _POWERS[_REACH + power - length + 2] - value) >= near:
            break
        digits = shorter
        length -= 1
    if digits == np.int64(_POWERS[_REACH + length]):  # rounded up to one digit more
        digits //= 10
        power += 1
    return digits, length, power


@inlined
def _write_digits(out: Bytes, at: int, digits: int, length: int) -> None:
    for place in range(at + length - 1, at - 1, -1):
        out[place] = _ZERO + digits % 10
        digits //= 10


@inlined
def _write_number(value: float, out: Bytes, at: int) -> int:
    """Write a number as Python does, 0.25, 12, 1e-07, and return where it ends."""
    if value < 0 or (value == 0 and math.copysign(1.0, value) < 0):
        out[at] = _MINUS
        at += 1
        value = -value
    if value == 0:
        out[at] = _ZERO
        return at + 1
    digits, length, power = _shortest(value)
    if 0 <= power < _DIGITS:
        whole = power + 1
        for _ in range(whole - length):
            digits *= 10
            length += 1
        if length == whole:
            _write_digits(out, at, digits, length)
            return at + length
        split = np.int64(_POWERS[_REACH + length - whole])
        _write_digits(out, at, digits // split, whole)
        out[at + whole] = _POINT
        _write_digits(out, at + whole + 1, digits % split, length - whole)
        return at + length + 1
    if -5 < power < 0:
        _write_digits(out, at, 0, 1 - power)
        out[at + 1] = _POINT
        _write_digits(out, at + 1 - power, digits, length)
        return at + 1 - power + length
    _write_digits(out, at + 1, digits, length)
    out[at] = out[at + 1]
    if length > 1:
        out[at + 1] = _POINT
        at += length + 1
    else:
        at += 1
    out[at] = _LITTLE_E
    out[at + 1] = _MINUS if power < 0 else _PLUS
    _write_digits(out, at + 2, abs(power), 2)
    return at + 4


@kernel
def write_text(matrix: Floats, words: Bytes, offsets: Longs, out: Bytes) -> int:
    """Write lines of a word and its numbers, each with a blank before it; return the number of bytes.

    matrix: (rows, d), finite numbers. out: large enough for the words, a line end each, and NUMBER_BYTES per number.
    """
    at = 0
    for row in range(len(matrix)):
        for place in range(offsets[row], offsets[row + 1]):
            out[at] = words[place]
            at += 1
        for place in range(matrix.shape[1]):
            out[at] = _SPACE
            at = _write_number(np.float64(matrix[row, place]), out, at + 1)
        out[at] = _NEWLINE
        at += 1
    return at
