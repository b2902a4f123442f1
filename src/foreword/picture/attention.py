"""Where a translation looks: a row a target word, a column a source word, as in the papers (rows Q14 and F08).

Bahdanau et al. (2015), figure 3. As a drawing, or as letters for a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import east_asian_width

from foreword.arrays import Reals
from foreword.picture.heat import check_shares, heat_map
from foreword.picture.picture import Picture

SHADES = " ░▒▓█"


def attention(source: Sequence[str], target: Sequence[str], weights: Reals) -> Picture:
    """weights: (target, source), each row summing to one."""
    title = "Where each word of the translation looks"
    check_shares(source, target, weights)
    return heat_map(source, target, weights, title, _caption(source, target, weights))


def attention_text(source: Sequence[str], target: Sequence[str], weights: Reals) -> str:
    """The same for a terminal: source words numbered below, and for each target word the one it looked at most."""
    check_shares(source, target, weights)
    wide = max(_width(word) for word in target)
    lines = []
    for word, row in zip(target, weights, strict=True):
        shades = "".join(2 * SHADES[min(len(SHADES) - 1, round(float(share) * (len(SHADES) - 1)))] for share in row)
        best = int(row.argmax())
        lines.append(f"{' ' * (wide - _width(word))}{word} │{shades}│ {source[best]} {row[best]:.2f}")
    numbers = "".join(f"{place % 100:<2}" for place in range(1, len(source) + 1))
    lines.append(f"{' ' * wide}  {numbers}")
    lines.append(f"{' ' * wide}  " + "  ".join(f"{place} {word}" for place, word in enumerate(source, 1)))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _width(word: str) -> int:
    """Columns of a terminal."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in word)


def _caption(source: Sequence[str], target: Sequence[str], weights: Reals) -> str:
    row, column = divmod(int(weights.argmax()), len(source))
    return (
        f"Full colour is all of the attention: a row is a word of the translation, and sums to one. “{target[row]}” "
        f"looks at “{source[column]}” with {weights[row, column]:.2f}, the most of all."
    )
