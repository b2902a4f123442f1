"""A passage read by each model, every token shaded by the surprise it was: −log₂ p, in bits."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from foreword.errors import SettingError
from foreword.picture.picture import Picture, readable

DARKEST_BITS = 16.0
"""The shade is full from here on: a word expected once in 65,536 places."""

DARKEST_OPACITY = 0.72
"""Letters must stay readable on the fullest shade."""

_SHADE = "border-radius:.2em;padding:.1em .12em;background:rgb(var(--heat,217 119 6)/{opacity})"
_DOTTED = "text-decoration:underline dotted;text-underline-offset:.2em"
_GRID = "display:grid;gap:1.5rem 2rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,17rem),1fr))"


def surprisal(tokens: Sequence[str], bits: Mapping[str, Sequence[float]], *, unknown: Collection[int] = ()) -> Picture:
    """The same passage once a model, side by side where there is room.

    tokens: the passage in pieces that spell it when joined, white space included; an empty piece belongs to the next.
    bits: model's title → one number a piece, infinite where the model gave it no probability.
    unknown: places of the pieces that the models only know as ``<unk>``.
    """
    for name, numbers in bits.items():
        if len(numbers) != len(tokens):
            raise SettingError(f"{name}: {len(tokens)} tokens but {len(numbers)} numbers of bits")
    read = {name: list(_shaded(tokens, numbers, unknown)) for name, numbers in bits.items()}
    passages = "".join(_passage(name, shaded) for name, shaded in read.items())
    title = "Where each model was surprised"
    markup = f'<div class="passages" style="{_GRID}">{passages}</div>{_legend(bool(unknown))}'
    return Picture(f'<div class="surprisal">{markup}</div>', title, _caption(read))


@dataclass(frozen=True, slots=True)
class _Shaded:
    text: str
    bits: float
    unknown: bool


def _shaded(tokens: Sequence[str], bits: Sequence[float], unknown: Collection[int]) -> Iterator[_Shaded]:
    """Tokens that can be shown: those that spell a character together are one, and by the chain rule their bits add."""
    held = 0.0
    for place, (token, number) in enumerate(zip(tokens, bits, strict=True)):
        held += number
        if token:
            yield _Shaded(token, held, place in unknown)
            held = 0.0


def _passage(name: str, tokens: Sequence[_Shaded]) -> str:
    body = "".join(map(_token, tokens))
    return f'<section><h3>{escape(name)}</h3><p class="passage" dir="auto" lang="">{body}</p></section>'


def _token(token: _Shaded) -> str:
    """White space stays outside the shade, so that lines break between tokens as they do in any text."""
    core = token.text.strip() or token.text
    before, _, after = token.text.partition(core)
    style, hint = _shade(token.bits), f"{readable(token.bits)} bits"
    if token.unknown:
        style, hint = f"{style};{_DOTTED}", f"{hint}, as <unk>"
    # What is written from left to right is set apart, so that </s> keeps its shape at the end of Arabic or Hebrew.
    tag = "bdi" if core.isascii() else "span"
    return f'{escape(before)}<{tag} title="{escape(hint)}" style="{style}">{escape(core)}</{tag}>{escape(after)}'


def _shade(bits: float) -> str:
    share = min(max(bits, 0.0) / DARKEST_BITS, 1.0)
    return _SHADE.format(opacity=f"{DARKEST_OPACITY * share:.2f}")


def _legend(unknown: bool) -> str:
    steps = "".join(f'<span style="{_shade(bits)}">{bits}</span> ' for bits in (0, 4, 8, 12))
    dotted = f' · <span style="{_DOTTED}">dotted</span>: predicted only as &lt;unk&gt;' if unknown else ""
    return f'<p class="legend">bits {steps}<span style="{_shade(16)}">16 and more</span>{dotted}</p>'


def _caption(read: Mapping[str, Sequence[_Shaded]]) -> str:
    said = "The stronger the colour behind a token, the less the model expected it"
    steps = [(token, name) for name, tokens in read.items() for token in tokens]
    if not steps:
        return f"{said}."
    token, name = max(steps, key=lambda step: step[0].bits)  # the first of the largest
    if math.isinf(token.bits):
        return f"{said}; {name} held “{token.text.strip()}” to be impossible."
    return f"{said}; {name} was most surprised at “{token.text.strip()}”, by {readable(token.bits)} bits."
