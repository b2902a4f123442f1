"""How often each kind of network learns to remember over so many steps: a row a network, a column a lag (row L10)."""

from __future__ import annotations

from collections.abc import Sequence

from foreword.arrays import Doubles
from foreword.errors import SettingError
from foreword.picture.heat import grid, square
from foreword.picture.picture import Picture, label, percent, svg

ROW, TOP, FIRST = 30, 30, 0.22


def horizon(
    names: Sequence[str],
    columns: Sequence[int],
    shares: Doubles,
    title: str,
    caption: str,
    *,
    over: str = "lag",
) -> Picture:
    """Shares are (names, columns), between 0 and 1; ``over`` says what the columns count."""
    if shares.shape != (len(names), len(columns)) or not shares.size:
        raise SettingError(f"shares of shape {shares.shape}: expected {len(names)} rows and {len(columns)} columns")
    width = (1 - FIRST) / len(columns)
    shapes = [label(over, percent(FIRST - 0.02), 14, anchor="end", colour="muted")]
    shapes += [
        label(f"{column:,}", percent(FIRST + width * (place + 0.5)), 14, anchor="middle", colour="muted")
        for place, column in enumerate(columns)
    ]
    for row, name in enumerate(names):
        top = TOP + ROW * row
        shapes.append(label(name, "0", top + 18))
        for place, share in enumerate(shares[row].tolist()):
            left = FIRST + width * place
            hint = f"{name}, {over} {columns[place]}: {share:.0%}"
            shapes.append(grid([square(share, left, top, width, ROW - 4, hint)]))
            # Letters on a full square would drown; its colour already says the same.
            if share < 0.9:
                colour, middle = "ink" if share >= 0.25 else "muted", percent(left + width / 2)
                shapes.append(label(f"{100 * share:.0f} %", middle, top + 17, anchor="middle", colour=colour))
    return Picture(svg(title, TOP + ROW * len(names), shapes), title, caption)
