"""Why a linear classifier said what it said.

The score of class c is a sum over the terms of the text, ``s_c = b_c + Σ_j x_j w_cj``, and the posterior a softmax over
the scores. Adding a number to all scores changes no posterior, so what a term says for a class is what it adds to that
class beyond what it adds, on average, to the others:

    for c:   x_j (w_cj − mean of w_dj over d ≠ c)

With two classes that is the log-odds that the term is worth, and with naive Bayes log p(term | c) / p(term | other).
What the bias adds is counted in the same way: with naive Bayes it is the log-odds of the priors. Everything added up
is the score of the class less the mean score of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from foreword.arrays import Doubles
from foreword.errors import SettingError
from foreword.protocols import Json

if TYPE_CHECKING:
    from rich.table import Table


SHOWN = 20
"""How many terms are shown of a long text; what the others add is summed up."""

WIDTH = 80
"""How many characters of the text are shown."""

BAR = 24
"""How many characters the longest bar has."""


class Contribution(NamedTuple):
    """What a term says for a class. value: how often it stands in the text, or its weight there."""

    term: str
    value: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """A prediction, taken apart.

    probabilities, bias: float64 (classes,). terms: the features of the text that the model knows; values: float64
    (terms,); weighted: float64 (classes, terms), value times weight. unknown: words that the model has no feature for.
    """

    text: str
    classes: tuple[str, ...]
    probabilities: Doubles
    terms: tuple[str, ...]
    values: Doubles
    bias: Doubles
    weighted: Doubles
    unknown: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What the model says."""
        return self.classes[int(self.probabilities.argmax())]

    def probability(self, label: str | None = None) -> float:
        return float(self.probabilities[self._place(label)])

    def prior(self, label: str | None = None) -> float:
        """What the model holds of a class, the predicted one if none is named, before it has read a word."""
        return float(against_others(self.bias[:, None], self._place(label))[0])

    def contributions(self, label: str | None = None) -> list[Contribution]:
        """What each term says for a class, the predicted one if none is named; the weightiest first."""
        gains = against_others(self.weighted, self._place(label))
        order = np.lexsort((np.arange(len(gains)), -np.abs(gains)))
        return [Contribution(self.terms[j], float(self.values[j]), float(gains[j])) for j in order.tolist()]

    def to_json(self) -> dict[str, Json]:
        """Infinity, which a model without smoothing may give, has no form in JSON and becomes null."""
        return {
            "text": self.text,
            "label": self.label,
            "probabilities": dict(zip(self.classes, self.probabilities.tolist(), strict=True)),
            "unknown": list(self.unknown),
            "classes": {
                label: {
                    "prior": _finite(self.prior(label)),
                    "contributions": [
                        {"term": each.term, "value": each.value, "contribution": _finite(each.contribution)}
                        for each in self.contributions(label)
                    ],
                }
                for label in self.classes
            },
        }

    def __str__(self) -> str:
        rows = self._rows(SHOWN)
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {gain:+8.3f}  {_bar(gain, rows)}".rstrip() for name, gain in rows]
        return "\n".join([self._headline(), *lines, *self._left_out()])

    def table(self, label: str | None = None, shown: int = SHOWN) -> Table:
        """The same for a terminal, with Rich."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        rows = self._rows(shown, label)
        table = Table(box=box.SIMPLE_HEAD, title=Text(self._headline(label)), title_justify="left", pad_edge=False)
        table.add_column("term", overflow="fold")
        table.add_column(f"for {label or self.label}", justify="right")
        table.add_column("")
        for name, gain in rows:
            table.add_row(Text(name), f"{gain:+.3f}", Text(_bar(gain, rows), "green" if gain > 0 else "red"))
        table.caption = Text("\n".join(self._left_out()))
        table.caption_justify = "left"
        return table

    def _headline(self, label: str | None = None) -> str:
        text = " ".join(self.text.split())
        shown = text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
        return f"{label or self.label} ({self.probability(label):.4f}): {shown}"

    def _rows(self, shown: int, label: str | None = None) -> list[tuple[str, float]]:
        """The prior, the weightiest terms, and the sum of the others."""
        counted = bool((self.values == np.round(self.values)).all())  # and not weighed, as TF-IDF does
        named = [
            (f"{each.term} ×{each.value:g}" if counted and each.value != 1 else each.term, each.contribution)
            for each in self.contributions(label)
        ]
        rest = named[shown:]
        others = [(f"{len(rest)} more", float(sum(gain for _, gain in rest)))] if rest else []
        return [("(prior)", self.prior(label)), *named[:shown], *others]

    def _left_out(self) -> list[str]:
        if not self.unknown:
            return []
        more = f" and {len(self.unknown) - SHOWN} more" if len(self.unknown) > SHOWN else ""
        return [f"not known, so without effect: {', '.join(self.unknown[:SHOWN])}{more}"]

    def _place(self, label: str | None) -> int:
        if label is None:
            return int(self.probabilities.argmax())
        if label not in self.classes:
            raise SettingError(f"no class {label!r}: expected {', '.join(self.classes)}")
        return self.classes.index(label)


def against_others(weighted: Doubles, place: int) -> Doubles:
    """What each column adds to class ``place`` beyond the mean of the other classes: (classes, terms) to (terms,).

    A term that is impossible in every class, −∞ for all, says nothing for any of them: 0.
    """
    others = np.delete(weighted, place, axis=0)
    mine = weighted[place]
    nowhere = np.isneginf(mine) & np.isneginf(others).any(axis=0)
    with np.errstate(invalid="ignore"):
        gains = mine - others.mean(axis=0)
    return np.where(nowhere, 0.0, gains)


def _bar(gain: float, rows: Sequence[tuple[str, float]]) -> str:
    longest = max(abs(each) for _, each in rows if np.isfinite(each)) if rows else 0.0
    if not np.isfinite(gain):
        return "█" * BAR
    return "█" * round(BAR * abs(gain) / longest) if longest else ""


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None
