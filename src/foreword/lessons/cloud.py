"""A word cloud: every word at its size, none on another.

The size of a word is proportional to the square root of its weight, so that the ink is proportional to the weight. The
heaviest word stands in the middle, each following one as near to it as its box fits, on a grid of whole numbers; the
result is scaled to the frame. Nothing depends on the machine: ``extent`` says how much space a word takes,
``textLength`` fits the reader's font into it, and every number is a sum, a product or a square root, which have one
answer everywhere. So the same weights and seed give the same bytes.

The widths of letters are those of a common bold sans-serif, in thousandths of the font size; other fonts differ by a
tenth or so. Heights are those of the tallest letters of the usual fonts, so that a word's box holds it in any font.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import NamedTuple

import numpy as np

from foreword.arrays import Bools, Ints, Longs
from foreword.checks import check_number
from foreword.errors import SettingError
from foreword.lessons.kernels_cloud import place_boxes
from foreword.picture.picture import Picture, readable

LEAST_SHARE = 0.1
"""Size of the lightest words as a share of the heaviest one's, so that they can be read."""

LEAST_SIZE = 8.0
"""Pixels; a picture that would need smaller letters grows instead."""

LARGEST_SHARE = 0.3
"""Greatest size of the letters, as a share of the picture's height."""

CELLS_A_WORD, LEAST_CELLS, MOST_CELLS = 300, 30, 4_000_000
"""Cells of the grid per word, on average, the least of them, and cells in all, which very many words share. A finer
grid packs no better."""

GAP = 0.14
"""Free space around a word, as a share of its size."""

UNEVENNESS = 0.12
"""How much farther, as a share, the chosen position may be: none looks like brickwork, much like confetti."""

MARGIN = 0.03
"""Free space on each side, as a share of the picture."""

DESCRIBED = 100
"""Number of words, the heaviest, in the description for screen readers."""

LEAST_SIDE, MOST_SIDE = 100, 20_000

# Colours that keep a contrast of at least 4.5 : 1 with the paper, for light and for dark.
PAPERS = ("#fdfcf9", "#191817")
INKS = (
    ("#1f6f78", "#6bbcc3"),
    ("#3d3a36", "#d8d3c9"),
    ("#a34f0c", "#e0a063"),
    ("#35598a", "#92b4e3"),
    ("#84406f", "#d298c2"),
)
_FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-weight:600"

_UNSPEAKABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not allow."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A word and its box, in pixels from the upper left corner; ``size`` is the font's. Upright words read upwards."""

    word: str
    weight: float
    size: float
    left: float
    top: float
    width: float
    height: float
    upright: bool


def word_cloud(
    weights: Mapping[str, float],
    *,
    counts: Mapping[str, int] | None = None,
    width: int = 960,
    height: int = 600,
    seed: int = 0,
    max_words: int | None = None,
    upright: float = 0.0,
) -> Picture:
    """Draw every word at a size that rises with its weight, a positive number; at most the heaviest ``max_words``.

    counts: the count of each word, shown where the pointer rests on it; by default its weight is.
    width, height: pixels; where they are too few for readable letters, the picture is larger in both.
    upright: the share of words that may stand on end, by chance. seed: also decides colours and positions.
    """
    placed, size = lay_out(weights, width=width, height=height, seed=seed, max_words=max_words, upright=upright)
    inks = np.random.Generator(np.random.PCG64([seed, 1])).integers(len(INKS), size=len(placed)).tolist()
    hints = weights if counts is None else counts
    shapes = [_text(each, ink, hints.get(each.word)) for each, ink in zip(placed, inks, strict=True)]
    title = f"Word cloud of {len(placed):,} word{'s' * (len(placed) > 1)}"
    return Picture(_svg(title, size, placed, shapes), title, _caption(placed))


# Layout


def lay_out(
    weights: Mapping[str, float],
    *,
    width: int = 960,
    height: int = 600,
    seed: int = 0,
    max_words: int | None = None,
    upright: float = 0.0,
) -> tuple[list[Placed], tuple[float, float]]:
    """Return the placed words, heaviest first and ties in alphabetical order, and the size of the picture."""
    _check(width, height, seed, max_words, upright)
    ranked = heaviest(weights, max_words)
    random = np.random.Generator(np.random.PCG64(seed))
    extents = [extent(word) for word, _ in ranked]
    shares = np.maximum(np.sqrt(np.array([weight / ranked[0][1] for _, weight in ranked])), LEAST_SHARE)
    stands = _upright(extents, random, upright)
    across = shares * [each.width + GAP for each in extents]
    down = shares * [each.above + each.below + GAP for each in extents]
    across, down = np.where(stands, down, across), np.where(stands, across, down)
    # One em of the heaviest word in cells, such that the words have their cells on average.
    cells = max(LEAST_CELLS, min(CELLS_A_WORD, MOST_CELLS // len(ranked)))
    em = math.sqrt(cells * len(ranked) / math.fsum((across * down).tolist()))  # exact, in whatever order
    boxes = np.ceil(np.stack((across, down)) * em).astype(np.int64)
    lefts, tops = _pack(boxes, width / height, random)
    columns = (shares * em, lefts, tops, *boxes, stands)
    placed = [
        Placed(*word, *numbers) for word, *numbers in zip(ranked, *(each.tolist() for each in columns), strict=True)
    ]
    return _fitted(placed, width, height)


def heaviest(weights: Mapping[str, float], max_words: int | None) -> list[tuple[str, float]]:
    """Return the words with the largest weights, largest first; ties by code points."""
    if not weights:
        raise SettingError("a word cloud needs at least one word")
    for word, weight in weights.items():
        if not word.strip():
            raise SettingError(f"a word cloud cannot draw the word {word!r}")
        if not (math.isfinite(weight) and weight > 0):
            raise SettingError(f"the weight of {word!r} is {weight}: expected a positive number")
    ranked = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    return [(word, float(weight)) for word, weight in ranked[:max_words]]


def _upright(extents: Sequence[Extent], random: np.random.Generator, share: float) -> Bools:
    """Choose the words that stand on end: never the heaviest, nor one that gains nothing, such as a single letter."""
    stands: Bools = random.random(len(extents)) < share
    stands &= np.array([each.width > each.above + each.below for each in extents])
    stands[0] = False
    return stands


def _pack(boxes: Longs, shape: float, random: np.random.Generator) -> tuple[Longs, Longs]:
    """Return the left and the upper edge of each box in cells; the grid is enlarged until all boxes fit."""
    least = np.minimum.accumulate(boxes[:, ::-1], axis=1)[:, ::-1].T.copy()
    lefts, tops = np.empty_like(boxes)
    area = 1.6 * float((boxes[0] * boxes[1]).sum())
    while True:
        columns = max(math.ceil(math.sqrt(area * shape)), int(boxes[0].max()))
        rows = max(math.ceil(math.sqrt(area / shape)), int(boxes[1].max()))
        cells = _from_the_middle(columns, rows, random)
        found = place_boxes(
            boxes[0], boxes[1], least, cells, np.empty(len(cells) + 1, np.int32),
            np.zeros((boxes[1].max() + 1, boxes[0].max() + 1), np.int32), np.zeros((rows, columns), np.uint8),
            lefts, tops,
        )  # fmt: skip
        if found == len(lefts):
            return lefts, tops
        area *= 1.5


def _from_the_middle(columns: int, rows: int, random: np.random.Generator) -> Ints:
    """Return all cells of a grid, y · columns + x, from the middle outwards, a little out of order.

    Distance is the sum of cubes: circles of that measure are rounded rectangles, which fill a frame better than
    ellipses do.
    """
    across = np.abs(2 * np.arange(columns) + 1 - columns) * 1000 // columns
    down = np.abs(2 * np.arange(rows) + 1 - rows) * 1000 // rows
    distances = (down**3)[:, None] + (across**3)[None, :]
    noise = random.integers(1000, 1000 + int(3 * 1000 * UNEVENNESS), size=(rows, columns))
    return np.argsort((distances * noise).ravel(), kind="stable").astype(np.int32)


def _fitted(placed: Sequence[Placed], width: float, height: float) -> tuple[list[Placed], tuple[float, float]]:
    """Scale cells to pixels: the cloud fills the frame's width or height, and is centred."""
    left, right = min(each.left for each in placed), max(each.left + each.width for each in placed)
    top, bottom = min(each.top for each in placed), max(each.top + each.height for each in placed)
    inside = 1 - 2 * MARGIN
    scale = min(
        inside * width / (right - left), inside * height / (bottom - top), LARGEST_SHARE * height / placed[0].size
    )
    grown = max(1.0, LEAST_SIZE / (scale * placed[-1].size))
    scale, width, height = scale * grown, width * grown, height * grown
    x, y = (width - scale * (left + right)) / 2, (height - scale * (top + bottom)) / 2
    return [
        replace(
            each,
            size=scale * each.size,
            left=x + scale * each.left,
            top=y + scale * each.top,
            width=scale * each.width,
            height=scale * each.height,
        )
        for each in placed
    ], (width, height)


# Drawing


def _text(placed: Placed, ink: int, number: float | None) -> str:
    """Draw a word in the middle of its box, at the width that was reserved for it, whatever the font."""
    space = extent(placed.word)
    thickness = (space.above + space.below) * placed.size
    if placed.upright:
        x = placed.left + (placed.width - thickness) / 2 + space.above * placed.size
        at = f'transform="translate({x:.1f} {placed.top + placed.height / 2:.1f}) rotate(-90)"'
    else:
        y = placed.top + (placed.height - thickness) / 2 + space.above * placed.size
        at = f'x="{placed.left + placed.width / 2:.1f}" y="{y:.1f}"'
    word = _speakable(placed.word)
    hint = "" if number is None else f"<title>{word}: {_number(number)}</title>"
    length = f'textLength="{space.width * placed.size:.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text class="ink{ink}" {at} font-size="{placed.size:.1f}" {length}>{hint}{word}</text>\n'


def _speakable(text: str) -> str:
    return escape(_UNSPEAKABLE.sub("\ufffd", text))


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else readable(value)


def _svg(title: str, size: tuple[float, float], placed: Sequence[Placed], shapes: Sequence[str]) -> str:
    width, height = (f"{side:.0f}" for side in size)
    words = " ".join(_speakable(each.word) for each in placed[:DESCRIBED])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="picture cloud" role="img" aria-label="{title}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"<title>{title}</title><desc>{words}</desc><style>{_style()}</style>"
        f'<rect class="paper" width="100%" height="100%"/>\n{"".join(shapes)}</svg>'
    )


def _style() -> str:
    """Return the style: background and inks change together, so that a cloud can be read on any page."""

    def colours(side: int) -> str:
        inks = "".join(f".cloud .ink{number}{{fill:{pair[side]}}}" for number, pair in enumerate(INKS))
        return f".cloud .paper{{fill:{PAPERS[side]}}}{inks}"

    return (
        f".cloud{{max-width:100%;height:auto}}.cloud text{{{_FONT};text-anchor:middle}}{colours(0)}"
        f"@media screen and (prefers-color-scheme:dark){{{colours(1)}}}"
    )


def _caption(placed: Sequence[Placed]) -> str:
    first = f"“{placed[0].word}”"
    if len(placed) == 1:
        return f"The only word is {first}."
    return f"{len(placed):,} words, the larger the heavier: {first} weighs most."


def _check(width: int, height: int, seed: int, max_words: int | None, upright: float) -> None:
    check_number("width", width, least=LEAST_SIDE, most=MOST_SIDE)
    check_number("height", height, least=LEAST_SIDE, most=MOST_SIDE)
    if max_words is not None:
        check_number("max_words", max_words, whole=True, least=1)
    check_number("upright", upright, most=1)
    check_number("seed", seed, whole=True)


# The space of a word


class Extent(NamedTuple):
    """The space of a word in units of the font size: its width, and its height above and below the baseline."""

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
"""Letters no higher than an x, nor below the baseline."""

_HANGING = frozenset("gjpqyQJ,;()[]{}|/\\@$")

# First code points of ranges of like characters, up to the next one: nothing for marks set on others, little for the
# joined letters of Arabic and India, a square for Han, kana, Hangul and their signs.
_RANGES: list[tuple[int, int | None]] = [
    (0x0000, None), (0x0300, 0), (0x0370, None), (0x0591, 0), (0x05BE, None), (0x0600, _JOINED),
    (0x064B, 0), (0x0660, _JOINED), (0x0700, None), (0x0900, _JOINED), (0x0D80, None), (0x0E00, _THAI), (0x0E34, 0),
    (0x0E3B, None), (0x0E3F, _THAI), (0x0E47, 0), (0x0E4F, None), (0x1100, _FULL), (0x1160, 0), (0x1200, None),
    (0x1AB0, 0), (0x1B00, None), (0x1DC0, 0), (0x1E00, None), (0x200B, 0), (0x2010, None), (0x20D0, 0),
    (0x2100, None), (0x2E80, _FULL), (0xA4D0, None), (0xA960, _FULL), (0xA980, None), (0xAC00, _FULL),
    (0xD7A4, None), (0xF900, _FULL), (0xFB00, None), (0xFE00, 0), (0xFE10, None), (0xFE30, _FULL), (0xFE50, None),
    (0xFF01, _FULL), (0xFF61, None), (0xFFE0, _FULL), (0xFFE7, None), (0x1F000, _EMOJI), (0x20000, _FULL),
    (0x40000, None),
]  # fmt: skip
_FIRSTS = [first for first, _ in _RANGES]


def extent(word: str) -> Extent:
    """Return the space of a word; a letter with an accent is as wide as without."""
    plain = unicodedata.normalize("NFD", word)
    width = sum(map(_width, plain)) / 1000
    return Extent(max(width, 0.28), *_heights(plain))


def _width(letter: str) -> int:
    known = _WIDTHS.get(letter)
    if known is not None:
        return known
    special = _RANGES[bisect_right(_FIRSTS, ord(letter)) - 1][1]
    if special is not None:
        return special
    return _UPPER if letter.isupper() else _LOWER


def _heights(plain: str) -> tuple[float, float]:
    above, below = 0.56, 0.03
    for index, letter in enumerate(plain):
        if letter in _FLAT:
            continue
        if letter.isascii():
            above = max(above, 0.77)
            if letter in _HANGING:
                below = 0.24
        elif "\u0300" <= letter < "\u0370":  # an accent, above or below: both are left free
            high = plain[index - 1 : index].isupper()
            above, below = max(above, 0.99 if high else 0.82), 0.26
        elif letter == "’":
            above = max(above, 0.77)
        elif "\u0370" <= letter < "\u0530":  # Greek and Cyrillic
            above, below = max(above, 0.8), 0.26
        else:
            above, below = 1.0, 0.32
    return above, below
