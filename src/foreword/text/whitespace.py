"""White space in UTF-8 without decoding it: the characters for which ``str.isspace`` is true."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bools, Bytes, Longs

WHITE_CHARACTERS = [chr(code) for code in range(0x3001) if chr(code).isspace()]
"""U+3000, the ideographic space, is the last."""

_ENCODED = [character.encode() for character in WHITE_CHARACTERS]

IS_ASCII_WHITE: Bools = np.zeros(256, np.bool_)
IS_ASCII_WHITE[[each[0] for each in _ENCODED if len(each) == 1]] = True

_MAY_START_WHITE: Bools = np.zeros(256, np.bool_)
_MAY_START_WHITE[[each[0] for each in _ENCODED]] = True

_PAIRS = np.array([int.from_bytes(each) for each in _ENCODED if len(each) == 2], np.int64)
_TRIPLES = np.array([int.from_bytes(each) for each in _ENCODED if len(each) == 3], np.int64)

_VECTOR_STEPS = 32
"""How many characters into a line all lines are looked at together; deeper indentation is rare enough for a loop."""

_WINDOW = 64 << 10


def blank(data: Bytes, starts: Longs, stops: Longs) -> Bools:
    """Which of the spans are empty or white space only: bool (spans,). Each span is valid UTF-8.

    Nearly every line is settled by its first byte. The rest walk forward together, a character a step, and leave when
    they meet a letter or their end.
    """
    result: Bools = starts == stops
    if not len(data):
        return result
    look = np.flatnonzero(_MAY_START_WHITE[data[np.minimum(starts, len(data) - 1)]] & ~result)
    at = starts[look]
    for _ in range(_VECTOR_STEPS):
        if not len(look):
            return result
        width = _white_width(data, at)
        at = at + width
        ended = at >= stops[look]
        result[look[ended & (width > 0)]] = True
        going = (width > 0) & ~ended
        look, at = look[going], at[going]
    for span, start, stop in zip(look.tolist(), at.tolist(), stops[look].tolist(), strict=True):
        result[span] = first_dark(data[start:stop]) == stop - start
    return result


def first_dark(data: Bytes) -> int:
    """Where the first character starts that is not white space; the end if there is none."""
    start = 0
    while start < len(data):
        stop = start + _WINDOW
        stop = character_start(data, stop) if stop < len(data) else len(data)
        text = str(data[start:stop].data, "utf-8").lstrip()
        if text:
            return stop - len(text.encode())
        start = stop
    return start


def last_dark(data: Bytes) -> int:
    """Where the last character starts that is not white space; -1 if there is none."""
    stop = len(data)
    while stop:
        start = character_start(data, max(0, stop - _WINDOW))
        text = str(data[start:stop].data, "utf-8").rstrip()
        if text:
            return start + len(text[:-1].encode())
        stop = start
    return -1


def character_start(data: Bytes, at: int) -> int:
    """Where the character starts that byte ``at`` belongs to."""
    while at and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _white_width(data: Bytes, at: Longs) -> Longs:
    """The bytes of the white space character at each place, 0 where another character is."""
    first = data[at].astype(np.int64)
    width: Longs = IS_ASCII_WHITE[first].astype(np.int64)
    if (first < 0x80).all():
        return width
    last = len(data) - 1
    pair = first << 8 | data[np.minimum(at + 1, last)]
    triple = pair << 8 | data[np.minimum(at + 2, last)]
    width += 2 * _any_of(pair, _PAIRS) + 3 * _any_of(triple, _TRIPLES)
    return width


def _any_of(values: Longs, wanted: Longs) -> Bools:
    """``np.isin``, but the arrays here are small, and it would spend its time preparing."""
    found: Bools = (values[:, None] == wanted).any(axis=1)
    return found
