"""Words and those nearest to them, as a list to read."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from foreword.errors import SettingError
from foreword.picture.picture import Picture

_GRID = "display:grid;gap:1.1rem 2rem;margin:0;grid-template-columns:repeat(auto-fit,minmax(min(100%,15rem),1fr))"


def neighbours(words: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> Picture:
    """(a word, its nearest words with their cosines) for each."""
    told = [(word, near) for word, near in words if near]
    if not told:
        raise SettingError("neighbours need at least one word that has some")
    rows = "".join(
        f'<div><dt><bdi lang="">{escape(word)}</bdi></dt><dd>{", ".join(_near(*each) for each in near)}</dd></div>'
        for word, near in told
    )
    word, near = max(told, key=lambda each: each[1][0][1])
    caption = (
        "Words that stand in like company get like vectors: for each word the nearest by the cosine of small skip-gram "
        f"vectors, learnt from this text alone; “{word}” and “{near[0][0]}” are nearest of all, at {near[0][1]:.2f}."
    )
    return Picture(f'<dl class="neighbours" style="{_GRID}">{rows}</dl>', "Nearest words", caption)


def _near(word: str, cosine: float) -> str:
    return f'<bdi lang="" title="cosine {cosine:.2f}">{escape(word)}</bdi>'
