"""Explanations of a linear classifier's predictions, term by term.

The score of class c is a sum over the terms of the text, ``s_c = b_c + Σ_j x_j w_cj``, and the posterior a softmax over
the scores. Adding a number to all scores changes no posterior, so a term's contribution to a class is what it adds to
that class beyond what it adds, on average, to the others:

    for c:   x_j (w_cj − mean of w_dj over d ≠ c)

With two classes that is the change of the log-odds, and with naive Bayes log p(term | c) / p(term | other). The bias is
treated in the same way: with naive Bayes it is the log-odds of the priors. The sum of everything is the score of the
class less the mean score of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from foreword.arrays import Doubles
from foreword.errors import SettingError
from foreword.notebook import ShownInNotebook, html_table
from foreword.protocols import Json

if TYPE_CHECKING:
    from rich.table import Table


SHOWN = 20
"""Terms shown of a long text; the contributions of the others are summed up."""

WIDTH = 80
"""Characters shown of the text."""

BAR = 24
"""Characters of the longest bar."""


class Contribution(NamedTuple):
    """A term's contribution to a class. value: its count in the text, or its weight there."""

    term: str
    value: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Explanation(ShownInNotebook):
    """A prediction, decomposed into terms.

    probabilities, bias: float64 (classes,). terms: the features of the text that the model knows; values: float64
    (terms,); weighted: float64 (classes, terms), value times weight. unknown: words that the model has no feature for.
    """

    text: str
    classes: tuple[Any, ...]
    probabilities: Doubles
    terms: tuple[str, ...]
    values: Doubles
    bias: Doubles
    weighted: Doubles
    unknown: tuple[str, ...] = ()

    @property
    def label(self) -> Any:
        """The predicted class."""
        return self.classes[int(self.probabilities.argmax())]

    def probability(self, label: Any = None) -> float:
        """Return the probability of a class, by default the predicted one."""
        return float(self.probabilities[self._index(label)])

    def prior(self, label: Any = None) -> float:
        """Return the contribution of the bias to a class, by default the predicted one."""
        return float(against_others(self.bias[:, None], self._index(label))[0])

    def contributions(self, label: Any = None) -> list[Contribution]:
        """Return each term's contribution to a class, by default the predicted one; the largest first."""
        gains = against_others(self.weighted, self._index(label))
        order = np.lexsort((np.arange(len(gains)), -np.abs(gains)))
        return [Contribution(self.terms[j], float(self.values[j]), float(gains[j])) for j in order.tolist()]

    def to_json(self) -> dict[str, Json]:
        """Return the explanation as JSON; infinity, which a model without smoothing may give, becomes null."""
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

    def _repr_html_(self) -> str:
        return html_table(self._headline(), ("term", f"for {self.label}"), self._rows(SHOWN))

    def __str__(self) -> str:
        rows = self._rows(SHOWN)
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {gain:+8.3f}  {_bar(gain, rows)}".rstrip() for name, gain in rows]
        return "\n".join([self._headline(), *lines, *self._left_out()])

    def table(self, label: Any = None, shown: int = SHOWN) -> Table:
        """Return the explanation as a Rich table."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        rows = self._rows(shown, label)
        table = Table(box=box.SIMPLE_HEAD, title=Text(self._headline(label)), title_justify="left", pad_edge=False)
        table.add_column("term", overflow="fold")
        table.add_column(f"for {self.label if label is None else label}", justify="right")
        table.add_column("")
        for name, gain in rows:
            table.add_row(Text(name), f"{gain:+.3f}", Text(_bar(gain, rows), "green" if gain > 0 else "red"))
        table.caption = Text("\n".join(self._left_out()))
        table.caption_justify = "left"
        return table

    def _headline(self, label: Any = None) -> str:
        text = " ".join(self.text.split())
        shown = text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
        return f"{self.label if label is None else label} ({self.probability(label):.4f}): {shown}"

    def _rows(self, shown: int, label: Any = None) -> list[tuple[str, float]]:
        """Return the prior, the terms with the largest contributions, and the sum of the others."""
        counted = bool((self.values == np.round(self.values)).all())  # and not weighted, as TF-IDF does
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

    def _index(self, label: Any) -> int:
        if label is None:
            return int(self.probabilities.argmax())
        if label not in self.classes:
            raise SettingError(f"no class {label!r}: expected {', '.join(map(str, self.classes))}")
        return self.classes.index(label)


def against_others(weighted: Doubles, index: int) -> Doubles:
    """Return what each column adds to class ``index`` beyond the mean of the other classes, (terms,).

    weighted: (classes, terms). A term that is impossible in every class, −∞ for all, contributes 0.
    """
    others = np.delete(weighted, index, axis=0)
    mine = weighted[index]
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
