"""Words in the space of their vectors: an analogy as a parallelogram, a map of words, and what CBOW and skip-gram do
with a window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foreword.arrays import Doubles
from foreword.errors import InputError, SettingError
from foreword.picture.picture import Picture, label, percent, readable, svg
from foreword.vectors.word2vec import Word2Vec, window_reach
from foreword.vectors.wordvectors import WordVectors

Point = tuple[float, float]

HEIGHT = 320
LEFT, RIGHT, TOP, BOTTOM = 0.08, 0.86, 34, 290
"""The area of the points: shares of the width, which leave space for names, and pixels down."""

LETTER, GAP = 0.011, 0.014
"""Width of a letter, and distance of a name from its dot, as shares of the width."""


def parallelogram(vectors: WordVectors, a: str, b: str, c: str, d: str) -> Picture:
    """Draw a : b = c : d, the four words in the plane that the two steps of the analogy span.

    The horizontal axis is what both pairs have in common, b − a and d − c; the vertical one, at right angles to it,
    what a and c differ in.
    """
    rows = _directions(vectors, (a, b, c, d))
    plane = _plane((rows[1] - rows[0] + rows[3] - rows[2]) / 2, (rows[2] - rows[0] + rows[3] - rows[1]) / 2)
    points = rows @ plane.T
    parallel = _cosine(rows[1] - rows[0], rows[3] - rows[2])
    places = _fitted(points, alike=True)
    title = f"{a} is to {b} as {c} is to {d}"
    shapes = [
        _ARROW_HEAD,
        *(_line(places[one], places[other], "line", ' stroke-dasharray="4 5"') for one, other in ((0, 2), (1, 3))),
        *(_line(places[one], places[other], "accent", ARROW) for one, other in ((0, 1), (2, 3))),
        *(
            _corner(word, place, up=number < 2)
            for number, (word, place) in enumerate(zip((a, b, c, d), places, strict=True))
        ),
    ]
    caption = (
        f"The step from {a} to {b} and that from {c} to {d} have a cosine of {readable(parallel)}; "
        f"the plane holds {_share(rows, plane):.0%} of what the four words differ in."
    )
    return Picture(svg(title, HEIGHT, shapes), title, caption)


def word_map(vectors: WordVectors, groups: Mapping[str, Sequence[str]]) -> Picture:
    """Draw groups of words on their two principal components; the first group is in colour."""
    words = [word for group in groups.values() for word in group]
    if len(words) < 3:
        raise SettingError("a map needs three words")
    rows = _directions(vectors, words)
    centred = rows - rows.mean(axis=0)
    _, _, components = np.linalg.svd(centred, full_matrices=False)
    # Either sign of a component is as good: the first word that is not in the middle goes left, and up.
    points = centred @ (components[:2] * np.where((centred @ components[:2].T)[0] > 0, -1, 1)[:, None]).T
    places = _fitted(points)
    first = len(next(iter(groups.values())))
    colours = ["accent"] * first + ["ink"] * (len(words) - first)
    title = ", ".join(groups)
    caption = (
        f"The two directions shown hold {_share(rows, components[:2]):.0%} of what these {len(words)} words differ in."
    )
    return Picture(svg(title, HEIGHT, _named_points(words, places, colours)), title, caption)


def cbow_against_skip_gram(cbow: Word2Vec, skip_gram: Word2Vec, sentence: Sequence[str], centre: int) -> Picture:
    """Draw what either model does at one word of a sentence: the same words, and every arrow reversed."""
    if (cbow.model, skip_gram.model) != ("cbow", "skip-gram"):
        raise SettingError(f"expected a CBOW and a skip-gram model, not {cbow.model} and {skip_gram.model}")
    if not 0 <= centre < len(sentence):
        raise SettingError(f"centre={centre}: the sentence has {len(sentence)} words")
    rows = max(_window(model, sentence, centre).rows for model in (cbow, skip_gram))
    height = TOP + ROW * rows + 40
    shapes = [_ARROW_HEAD]
    for model, begin in ((cbow, 0.0), (skip_gram, 0.54)):
        shapes += _panel(model, _window(model, sentence, centre), begin, height)
    title = "CBOW and skip-gram"
    caption = (
        f"CBOW asks the mean of up to {2 * cbow.window} words for the one between them; skip-gram asks that one for "
        f"each of up to {2 * skip_gram.window} around it."
    )
    return Picture(svg(title, height, shapes), title, caption)


# Positions


def _directions(vectors: WordVectors, words: Sequence[str]) -> Doubles:
    places = vectors.places(words)
    missing = [word for word, place in zip(words, places.tolist(), strict=True) if place < 0]
    if missing:
        raise InputError(f"no vector for {missing[0]!r}")
    return vectors.directions(places).astype(np.float64)


def _plane(across: Doubles, down: Doubles) -> Doubles:
    """Return two directions of length one, the second at right angles to the first."""
    first = across / max(float(np.linalg.norm(across)), 1e-30)
    rest = down - (down @ first) * first
    return np.stack((first, rest / max(float(np.linalg.norm(rest)), 1e-30)))


def _cosine(one: Doubles, other: Doubles) -> float:
    return float(one @ other / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-30))


def _share(rows: Doubles, plane: Doubles) -> float:
    """Return the share of the rows' variance that lies in a plane."""
    centred = rows - rows.mean(axis=0)
    return float(((centred @ plane.T) ** 2).sum() / max(float((centred**2).sum()), 1e-30))


def _fitted(points: Doubles, alike: bool = False) -> list[Point]:
    """Scale points to shares of the width and pixels down. alike: with one scale for both directions."""
    low, high = points.min(axis=0), points.max(axis=0)
    spread = np.maximum(high - low, 1e-12)
    if alike:
        # Across there are about twice as many pixels as down.
        wide = max(float(spread[0]) / 2, float(spread[1]))
        grown = np.array([2 * wide, wide])
        low, spread = low - (grown - spread) / 2, grown
    shares = (points - low) / spread
    return [(LEFT + (RIGHT - LEFT) * x, TOP + (BOTTOM - TOP) * y) for x, y in shares.tolist()]


# Shapes


ARROW = ' marker-end="url(#space-arrow)"'
_ARROW_HEAD = (
    '<defs><marker id="space-arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
    'orient="auto-start-reverse"><path d="M0,1 L9,5 L0,9" fill="none" stroke="var(--p-accent)" stroke-width="1.5"/>'
    "</marker></defs>"
)


def _line(one: Point, other: Point, colour: str, more: str = "") -> str:
    return (
        f'<line x1="{percent(one[0])}" y1="{one[1]:.1f}" x2="{percent(other[0])}" y2="{other[1]:.1f}" '
        f'stroke="var(--p-{colour})" stroke-width="1.5"{more}/>'
    )


def _corner(word: str, place: Point, up: bool) -> str:
    """Draw a dot with its name above or below it, where no line goes."""
    x, y = percent(place[0]), place[1]
    dot = f'<circle cx="{x}" cy="{y:.1f}" r="3.5" fill="var(--p-ink)"/>'
    return dot + label(word, x, round(y - 12 if up else y + 22, 1), anchor="middle")


def _named_points(words: Sequence[str], places: Sequence[Point], colours: Sequence[str] | None = None) -> list[str]:
    """Draw a dot and a name for each word. A name stands right or left of its dot, or as near as possible without
    covering another name or dot.
    """
    shapes = []
    taken = [(x - 0.008, x + 0.008, y) for x, y in places]
    for number, (x, y) in enumerate(places):
        colour = colours[number] if colours else "ink"
        wide = LETTER * len(words[number])
        choices = [(side, y + down) for down in (0, -12, 12, -24, 24, -36, 36) for side in (1, -1)]
        side, foot = next((one for one in choices if _is_free(x, *one, wide, taken)), choices[0])
        taken.append(_reach(x, side, foot, wide))
        anchor = "start" if side > 0 else "end"
        shapes.append(f'<circle cx="{percent(x)}" cy="{y:.1f}" r="3.5" fill="var(--p-{colour})"/>')
        shapes.append(label(words[number], percent(x + GAP * side), round(foot + 4, 1), anchor=anchor, colour=colour))
    return shapes


def _reach(x: float, side: int, y: float, wide: float) -> tuple[float, float, float]:
    """Return where a name begins and ends, and its height."""
    near, far = x + GAP * side, x + (GAP + wide) * side
    return min(near, far), max(near, far), y


def _is_free(x: float, side: int, y: float, wide: float, taken: Sequence[tuple[float, float, float]]) -> bool:
    left, right, _ = _reach(x, side, y, wide)
    return left >= 0 and not any(left < end and begin < right and abs(y - height) < 13 for begin, end, height in taken)


# What a window is to either model


ROW = 30
BOX = 0.15
"""Width of a box, as a share of the picture's."""


@dataclass(frozen=True, slots=True)
class _Context:
    """The words around a centre, as far as a model's window goes."""

    before: tuple[str, ...]
    centre: str
    after: tuple[str, ...]

    @property
    def around(self) -> tuple[str, ...]:
        """The words of the window without its centre."""
        return (*self.before, *self.after)

    @property
    def rows(self) -> int:
        """The number of words around the centre."""
        return len(self.around)


def _window(model: Word2Vec, sentence: Sequence[str], centre: int) -> _Context:
    reach, _ = window_reach(model.window)
    before = tuple(sentence[max(0, centre - reach) : centre])
    return _Context(before, sentence[centre], tuple(sentence[centre + 1 : centre + 1 + reach]))


def _panel(model: Word2Vec, window: _Context, begin: float, height: float) -> list[str]:
    """Draw the context words on one side, the centre on the other, a vector between: input left, output right."""
    into_centre = model.model == "cbow"
    left, middle, right = begin, begin + 0.24, begin + 0.31
    ys = [TOP + ROW * row + ROW / 2 for row in range(window.rows)]
    centre_y = TOP + ROW * window.rows / 2
    around = left if into_centre else right
    shapes = [label("CBOW" if into_centre else "Skip-gram", percent(begin), 14, weight=600)]
    for word, y in zip(window.around, ys, strict=True):
        shapes.append(_box(word, around, y))
    shapes.append(_box(window.centre, right if into_centre else left, centre_y, "accent"))
    hidden = (middle, centre_y)
    if into_centre:
        shapes += [_line((left + BOX, y), hidden, "accent", ARROW) for y in ys]
        shapes.append(_line(hidden, (right, centre_y), "accent", ARROW))
    else:
        shapes.append(_line((left + BOX, centre_y), hidden, "accent", ARROW))
        shapes += [_line(hidden, (right, y), "accent", ARROW) for y in ys]
    shapes.append(f'<circle cx="{percent(middle)}" cy="{centre_y:.1f}" r="4" fill="var(--p-accent)"/>')
    note = f"mean, d = {model.dimensions}" if into_centre else f"its vector, d = {model.dimensions}"
    shapes.append(label(note, percent(begin), height - 10, colour="muted"))
    return shapes


def _box(word: str, x: float, y: float, colour: str = "line") -> str:
    return (
        f'<rect x="{percent(x)}" y="{y - 11:.1f}" width="{percent(BOX)}" height="22" rx="3" fill="none" '
        f'stroke="var(--p-{colour})"/>' + label(word, percent(x + BOX / 2), round(y + 4.5, 1), anchor="middle")
    )
