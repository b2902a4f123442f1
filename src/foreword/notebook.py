"""How a value is shown where a notebook asks for HTML: a small table, every text in it escaped.

Jupyter calls ``_repr_html_`` of the last value of a cell. Colours and fonts are the notebook's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

MOST_LETTERS = 80
"""Length of a text in a cell of the table; longer ones end in an ellipsis."""


class ShownInNotebook:
    """A value that notebooks show as a table of its facts."""

    __slots__ = ()

    def notebook_facts(self) -> Mapping[str, object]:
        """Return what is shown: the numbers and texts of ``to_json``, or else the public settings."""
        measured = getattr(self, "to_json", None)
        facts: Mapping[str, object] = measured() if callable(measured) else getattr(self, "__dict__", {})
        return facts

    def _repr_html_(self) -> str:
        facts = {
            name.replace("_", " ").strip(): value
            for name, value in self.notebook_facts().items()
            if not name.startswith("_")
            and (isinstance(value, str | int | float) or type(value).__module__.startswith("foreword."))
        }
        return html_table(type(self).__name__, (), list(facts.items()))


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table: the first cell of a row is its heading; numbers are set flush right."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        f'<tr><th style="text-align:left">{escape(_written(first))}</th>{"".join(map(_cell, rest))}</tr>'
        for first, *rest in rows
    )
    heading = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f"<table><caption>{escape(title)}</caption>{heading}<tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    side = "right" if isinstance(value, int | float) and not isinstance(value, bool) else "left"
    return f'<td style="text-align:{side}">{escape(_written(value))}</td>'


def _written(value: object) -> str:
    """Write a number with five figures, thousands apart, and a long text shortened."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = str(value)
        return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
    if isinstance(value, int) or (math.isfinite(value) and abs(value) >= 1e5):
        return f"{value:,.0f}"
    return f"{value:.5g}"
