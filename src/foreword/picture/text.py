"""Pictures of a text: ``surprisal``, ``merges``, ``neighbours`` and ``zipf``.

A passage as each model read it, every token shaded by its surprisal, −log₂ p in bits; the first merges of byte-pair
encoding and a sentence tokenized with more and more of them; words and those nearest to them; and the frequency of
words by rank.

Zipf's law says count(rank) ≈ count(1) / rank, a straight line of slope −1 when both axes are logarithmic.
G. K. Zipf, "Human Behavior and the Principle of Least Effort" (1949).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from foreword.errors import SettingError
from foreword.picture.axes import Axes, Scale
from foreword.picture.picture import Picture, label, readable, shorten, svg

DARKEST_BITS = 16.0
"""Bits at which the shade is full: a word expected once in 65,536 positions."""

DARKEST_OPACITY = 0.72
"""Letters must stay readable on the fullest shade."""

_SHADE = "border-radius:.2em;padding:.1em .12em;background:rgb(var(--heat,217 119 6)/{opacity})"
_DOTTED = "text-decoration:underline dotted;text-underline-offset:.2em"
_PASSAGES = "display:grid;gap:1.5rem 2rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,17rem),1fr))"


def surprisal(tokens: Sequence[str], bits: Mapping[str, Sequence[float]], *, unknown: Collection[int] = ()) -> Picture:
    """Show the same passage once per model, side by side on a wide page.

    tokens: the passage in pieces that spell it when joined, white space included; an empty piece belongs to the next.
    bits: model's title → one number per piece, infinite where the model gave it no probability.
    unknown: indices of the pieces that the models only know as ``<unk>``.
    """
    for name, numbers in bits.items():
        if len(numbers) != len(tokens):
            raise SettingError(f"{name}: {len(tokens)} tokens but {len(numbers)} numbers of bits")
    read = {name: list(_shaded(tokens, numbers, unknown)) for name, numbers in bits.items()}
    passages = "".join(_passage(name, shaded) for name, shaded in read.items())
    title = "Where each model was surprised"
    markup = f'<div class="passages" style="{_PASSAGES}">{passages}</div>{_legend(bool(unknown))}'
    return Picture(f'<div class="surprisal">{markup}</div>', title, _surprisal_caption(read))


@dataclass(frozen=True, slots=True)
class _Shaded:
    text: str
    bits: float
    unknown: bool


def _shaded(tokens: Sequence[str], bits: Sequence[float], unknown: Collection[int]) -> Iterator[_Shaded]:
    """Join tokens that spell a character together; by the chain rule their bits add."""
    total = 0.0
    for index, (token, number) in enumerate(zip(tokens, bits, strict=True)):
        total += number
        if token:
            yield _Shaded(token, total, index in unknown)
            total = 0.0


def _passage(name: str, tokens: Sequence[_Shaded]) -> str:
    body = "".join(map(_shaded_token, tokens))
    return f'<section><h3>{escape(name)}</h3><p class="passage" dir="auto" lang="">{body}</p></section>'


def _shaded_token(token: _Shaded) -> str:
    """Shade a token, its white space left out, so that lines break between tokens as they do in any text."""
    core = token.text.strip() or token.text
    before, _, after = token.text.partition(core)
    style, hint = _shade(token.bits), f"{readable(token.bits)} bits"
    if token.unknown:
        style, hint = f"{style};{_DOTTED}", f"{hint}, as <unk>"
    # Text from left to right is isolated, so that </s> keeps its shape at the end of Arabic or Hebrew.
    tag = "bdi" if core.isascii() else "span"
    return f'{escape(before)}<{tag} title="{escape(hint)}" style="{style}">{escape(core)}</{tag}>{escape(after)}'


def _shade(bits: float) -> str:
    share = min(max(bits, 0.0) / DARKEST_BITS, 1.0)
    return _SHADE.format(opacity=f"{DARKEST_OPACITY * share:.2f}")


def _legend(unknown: bool) -> str:
    steps = "".join(f'<span style="{_shade(bits)}">{bits}</span> ' for bits in (0, 4, 8, 12))
    dotted = f' · <span style="{_DOTTED}">dotted</span>: predicted only as &lt;unk&gt;' if unknown else ""
    return f'<p class="legend">bits {steps}<span style="{_shade(16)}">16 and more</span>{dotted}</p>'


def _surprisal_caption(read: Mapping[str, Sequence[_Shaded]]) -> str:
    caption = "The stronger the colour behind a token, the less the model expected it"
    steps = [(token, name) for name, tokens in read.items() for token in tokens]
    if not steps:
        return f"{caption}."
    token, name = max(steps, key=lambda step: step[0].bits)  # the first of the largest
    if math.isinf(token.bits):
        return f"{caption}; {name} held “{token.text.strip()}” to be impossible."
    return f"{caption}; {name} was most surprised at “{token.text.strip()}”, by {readable(token.bits)} bits."


# Byte-pair merges

BLANK = "␣"
_PAIR = "white-space:nowrap;border:1px solid var(--line,#e0dcd3);border-radius:.35em;padding:.15em .5em"
_LIST = "display:flex;flex-wrap:wrap;gap:.45rem .5rem;margin:0 0 1.6rem;padding:0;list-style:none;font-size:.875rem"
_PIECE = "border-radius:.2em;padding:.1em .15em;margin:0 1px;background:rgb(var(--heat,217 119 6)/{opacity})"
_SHADES = ("0.16", "0.34")
"""Neighbours must look different, or nobody sees where one ends."""


def merges(first: Sequence[tuple[str, str, int]], learnt: int, stages: Sequence[tuple[int, Sequence[str]]]) -> Picture:
    """Show how byte-pair encoding puts words together.

    first: (left, right, count of the pair), in their order; stages: (merges, the sentence's tokens) with more and more
    of the ``learnt`` ones.
    """
    if not first or not stages:
        raise SettingError("merges need at least one pair and one sentence")
    pairs = "".join(
        f'<li style="{_PAIR}"><bdi>{escape(_blanks(left))}</bdi> + <bdi>{escape(_blanks(right))}</bdi> '
        f"<small>{count:,}</small></li>"
        for left, right, count in first
    )
    rows = "".join(
        f"<h3>{_merges(count)}: {len(tokens)} tokens</h3>"
        f'<p class="pieces" dir="auto" lang="">{"".join(map(_piece, range(len(tokens)), tokens))}</p>'
        for count, tokens in stages
    )
    return Picture(
        f'<div class="merges"><ol style="{_LIST}">{pairs}</ol>{rows}</div>',
        "How byte-pair encoding puts words together",
        _merges_caption(first, learnt, stages),
    )


def _merges(count: int) -> str:
    return "Characters alone" if count == 0 else "After one merge" if count == 1 else f"After {count:,} merges"


def _piece(index: int, token: str) -> str:
    return f'<span style="{_PIECE.format(opacity=_SHADES[index % 2])}">{escape(_blanks(token))}</span><wbr>'


def _blanks(token: str) -> str:
    """Make white space visible."""
    return "".join(BLANK if letter.isspace() else letter for letter in token)


def _merges_caption(
    first: Sequence[tuple[str, str, int]], learnt: int, stages: Sequence[tuple[int, Sequence[str]]]
) -> str:
    left, right, count = first[0]
    return (
        f"Again and again the two adjacent tokens that are most frequent become one: first “{_blanks(left)}” and "
        f"“{_blanks(right)}”, {count:,} times in this text. With {learnt:,} merges the sentence takes "
        f"{len(stages[-1][1])} tokens instead of {len(stages[0][1])}."
    )


# Words that are alike

_NEIGHBOURS = "display:grid;gap:1.1rem 2rem;margin:0;grid-template-columns:repeat(auto-fit,minmax(min(100%,15rem),1fr))"


def neighbours(words: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> Picture:
    """List words, each with its nearest words and their cosines."""
    listed = [(word, near) for word, near in words if near]
    if not listed:
        raise SettingError("neighbours need at least one word that has some")
    rows = "".join(
        f'<div><dt><bdi lang="">{escape(word)}</bdi></dt><dd>{", ".join(_near(*each) for each in near)}</dd></div>'
        for word, near in listed
    )
    word, near = max(listed, key=lambda each: each[1][0][1])
    caption = (
        "Words that stand in like company get like vectors: for each word the nearest by the cosine of small skip-gram "
        f"vectors, learnt from this text alone; “{word}” and “{near[0][0]}” are nearest of all, at {near[0][1]:.2f}."
    )
    return Picture(f'<dl class="neighbours" style="{_NEIGHBOURS}">{rows}</dl>', "Nearest words", caption)


def _near(word: str, cosine: float) -> str:
    return f'<bdi lang="" title="cosine {cosine:.2f}">{escape(word)}</bdi>'


# Zipf's law

HEIGHT = 320
TOP = 22  # leaves space for a label above the highest grid line
BOTTOM = 292  # the axis of ranks; their labels stand below

NEAR_EDGE = 0.7
"""Share of the width from which on there is no space to the right of a point."""


def zipf(
    ranks: Sequence[int],
    counts: Sequence[int],
    *,
    once: int,
    words: Sequence[tuple[int, str]] = (),
    unit: str = "word",
) -> Picture:
    """Draw count against rank, both logarithmic, with Zipf's line dashed.

    ranks, counts: rising ranks from 1, falling counts; a few hundred points are plenty.
    once: the number of words that occur a single time. words: (rank, word) of points to name, if they occur twice.
    """
    if not ranks or len(ranks) != len(counts) or ranks[0] != 1 or counts[-1] < 1:
        raise SettingError("zipf needs a positive count for each rank, and the ranks to begin at 1")
    span = 10**0.5  # half a power of ten at least
    axes = Axes(Scale(1, max(ranks[-1], span), 0, 1), Scale(1, max(counts[0], span), BOTTOM, TOP))
    points = list(zip(ranks, counts, strict=True))
    at = dict(points)
    shapes = [
        *(_count_line(axes, count) for count in _powers(counts[0])),
        *(_rank_label(axes, rank) for rank in _powers(ranks[-1])),
        _law(axes, counts[0]),
        *(
            f'<circle cx="{axes.x(rank)}" cy="{axes.y(count):g}" r="2.6" fill="var(--p-accent)"/>'
            for rank, count in points
        ),
        *(_name(axes, rank, at[rank], word) for rank, word in words if at.get(rank, 0) > 1),
    ]
    title = f"How often each {unit} occurs"
    return Picture(svg(title, HEIGHT, shapes), title, _zipf_caption(ranks[-1], once, unit))


def _powers(limit: int) -> Iterator[int]:
    return (10**power for power in range(len(str(limit))))


def _count_line(axes: Axes, count: int) -> str:
    """Draw a grid line with its label at the end where the curve, which falls from the top left, is not."""
    y = axes.y(count)
    name = (
        label("once", "0", y - 5, colour="muted")
        if count == 1
        else label(f"{count:,} times", "100%", y - 5, anchor="end", colour="muted")
    )
    return f'<line x1="0" x2="100%" y1="{y:g}" y2="{y:g}" stroke="var(--p-line)"/>{name}'


def _rank_label(axes: Axes, rank: int) -> str:
    if rank == 1:
        return label("rank 1", "0", BOTTOM + 18, colour="muted")
    anchor = "end" if axes.across.share(rank) > 0.95 else "middle"
    return label(f"{rank:,}", axes.x(rank), BOTTOM + 18, anchor=anchor, colour="muted")


def _law(axes: Axes, commonest: int) -> str:
    """Draw Zipf's line, from the commonest word to where it meets the bottom or the right edge."""
    last = min(float(commonest), axes.across.high)
    ends = f'x1="0" y1="{axes.y(commonest):g}" x2="{axes.x(last)}" y2="{axes.y(commonest / last):g}"'
    return f'<line {ends} stroke="var(--p-muted)" stroke-dasharray="4 4"/>'


def _name(axes: Axes, rank: int, count: int, word: str) -> str:
    """Write the word above and to the right of its point, or below and to the left: off a falling curve."""
    y = axes.y(count)
    left = axes.across.share(rank) > NEAR_EDGE
    below = left and y < BOTTOM - 20  # on the bottom line only the space above is free
    text = label(shorten(word), axes.x(rank), y + 16 if below else y - 8, anchor="end" if left else "start", weight=600)
    return f'<g transform="translate({-6 if left else 6},0)">{text}</g>'


def _zipf_caption(types: int, once: int, unit: str) -> str:
    law = "The dashed line is Zipf’s law, half as often at twice the rank"
    return f"{law}; {once / types:.0%} of the text’s {types:,} different {unit}s occur only once."
