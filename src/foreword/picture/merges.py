"""Byte-pair encoding at work on a text: the first pairs that became one, and a sentence as it is put together (F11)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from foreword.errors import SettingError
from foreword.picture.picture import Picture

BLANK = "␣"
_PAIR = "white-space:nowrap;border:1px solid var(--line,#e0dcd3);border-radius:.35em;padding:.15em .5em"
_LIST = "display:flex;flex-wrap:wrap;gap:.45rem .5rem;margin:0 0 1.6rem;padding:0;list-style:none;font-size:.875rem"
_PIECE = "border-radius:.2em;padding:.1em .15em;margin:0 1px;background:rgb(var(--heat,217 119 6)/{opacity})"
_SHADES = ("0.16", "0.34")
"""Neighbours must look different, or nobody sees where one ends."""


def merges(first: Sequence[tuple[str, str, int]], learnt: int, stages: Sequence[tuple[int, Sequence[str]]]) -> Picture:
    """first: (left, right, how often they stood side by side), in their order; stages: (merges, the sentence's tokens)
    with more and more of the ``learnt`` ones.
    """
    if not first or not stages:
        raise SettingError("merges need at least one pair and one sentence")
    pairs = "".join(
        f'<li style="{_PAIR}">{_shown(left)} + {_shown(right)} <small>{count:,}</small></li>'
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
        _caption(first, learnt, stages),
    )


def _merges(count: int) -> str:
    return "Characters alone" if count == 0 else "After one merge" if count == 1 else f"After {count:,} merges"


def _shown(token: str) -> str:
    return f"<bdi>{escape(_blanks(token))}</bdi>"


def _piece(place: int, token: str) -> str:
    return f'<span style="{_PIECE.format(opacity=_SHADES[place % 2])}">{escape(_blanks(token))}</span><wbr>'


def _blanks(token: str) -> str:
    return "".join(BLANK if letter.isspace() else letter for letter in token)


def _caption(first: Sequence[tuple[str, str, int]], learnt: int, stages: Sequence[tuple[int, Sequence[str]]]) -> str:
    left, right, count = first[0]
    return (
        f"Again and again the two tokens that stand side by side most often become one: first “{_blanks(left)}” and "
        f"“{_blanks(right)}”, {count:,} times in this text. With {learnt:,} merges the sentence takes "
        f"{len(stages[-1][1])} tokens instead of {len(stages[0][1])}."
    )
