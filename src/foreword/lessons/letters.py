"""How much room a word takes, without asking any font: the same answer on every machine.

Widths are those of a common bold sans-serif, in thousandths of the font size; other fonts differ by a tenth or so.
Whoever draws a word says ``textLength``, and the reader's font is fitted into the width that is promised here. Heights
are those of the tallest letters of the usual fonts, so that what is kept free for a word holds it in any of them.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from typing import NamedTuple


class Extent(NamedTuple):
    """In units of the font size: how wide, and how far above and below the line it stands on."""

    width: float
    above: float
    below: float


_WIDTHS = {
    letter: width
    for letters, width in (
        ("ijl'’`.,:;!| ", 280),
        ('Ift-()[]{}/\\"', 335),
        ("r*", 390),
        ("z", 500),
        ("aceksvxyJ0123456789$#_?", 560),
        ("bdghnopquFLTZ+<>=~^", 610),
        ("EPSVXY", 670),
        ("ABCDHKNRU&", 720),
        ("wGOQ", 780),
        ("M", 835),
        ("m%", 890),
        ("W@", 950),
    )
    for letter in letters
}

_LOWER, _UPPER, _JOINED, _THAI, _FULL, _EMOJI = 620, 740, 450, 540, 1000, 1300

_FLAT = frozenset("acemnorsuvwxz-~=+<>.:_")
"""No higher than an x, nor below the line."""

_HANGING = frozenset("gjpqyQJ,;()[]{}|/\\@$")

# First code points of stretches of like characters, up to the next one: nothing for marks set on others, little for the
# joined letters of Arabic and India, a square for Han, kana, Hangul and their signs.
_STRETCHES: list[tuple[int, int | None]] = [
    (0x0000, None), (0x0300, 0), (0x0370, None), (0x0591, 0), (0x05BE, None), (0x0600, _JOINED),
    (0x064B, 0), (0x0660, _JOINED), (0x0700, None), (0x0900, _JOINED), (0x0D80, None), (0x0E00, _THAI), (0x0E34, 0),
    (0x0E3B, None), (0x0E3F, _THAI), (0x0E47, 0), (0x0E4F, None), (0x1100, _FULL), (0x1160, 0), (0x1200, None),
    (0x1AB0, 0), (0x1B00, None), (0x1DC0, 0), (0x1E00, None), (0x200B, 0), (0x2010, None), (0x20D0, 0),
    (0x2100, None), (0x2E80, _FULL), (0xA4D0, None), (0xA960, _FULL), (0xA980, None), (0xAC00, _FULL),
    (0xD7A4, None), (0xF900, _FULL), (0xFB00, None), (0xFE00, 0), (0xFE10, None), (0xFE30, _FULL), (0xFE50, None),
    (0xFF01, _FULL), (0xFF61, None), (0xFFE0, _FULL), (0xFFE7, None), (0x1F000, _EMOJI), (0x20000, _FULL),
    (0x40000, None),
]  # fmt: skip
_FIRSTS = [first for first, _ in _STRETCHES]


def extent(word: str) -> Extent:
    """The room for a word; a letter with an accent is as wide as without."""
    plain = unicodedata.normalize("NFD", word)
    width = sum(map(_width, plain)) / 1000
    return Extent(max(width, 0.28), *_heights(plain))


def _width(letter: str) -> int:
    known = _WIDTHS.get(letter)
    if known is not None:
        return known
    special = _STRETCHES[bisect_right(_FIRSTS, ord(letter)) - 1][1]
    if special is not None:
        return special
    return _UPPER if letter.isupper() else _LOWER


def _heights(plain: str) -> tuple[float, float]:
    above, below = 0.56, 0.03
    for place, letter in enumerate(plain):
        if letter in _FLAT:
            continue
        if letter.isascii():
            above = max(above, 0.77)
            if letter in _HANGING:
                below = 0.24
        elif "\u0300" <= letter < "\u0370":  # an accent, above or below: both are kept free
            high = plain[place - 1 : place].isupper()
            above, below = max(above, 0.99 if high else 0.82), 0.26
        elif letter == "’":
            above = max(above, 0.77)
        elif "\u0370" <= letter < "\u0530":  # Greek and Cyrillic
            above, below = max(above, 0.8), 0.26
        else:
            above, below = 1.0, 0.32
    return above, below
