"""Formulas of the panels, typeset ahead as MathML: the page draws them without a script."""

from __future__ import annotations

from functools import cache

from foreword.picture import mathml

TEXTS = (
    # n-grams
    "p(w | c) = (n(c w) − D(n)) / (N(c)) + b(c) p(w | c′)",
    "p(w | c) = (n(c w)) / (N(c) + T(c)) + b(c) p(w | c′)",
    "S(w | c) = (n(c w)) / (N(c)) or 0.4 S(w | c′)",
    # attention scores
    "v · tanh(W₁s + W₂h)",
    "s · h",
    "s · Wh",
    "s · h / √d",
    # a network of two weights
    "h_t = σ(w h_(t−1) + b),   L = (h_T − 0.7)²",
    # cells
    "h = tanh(Wₓx + Wₕh + b)",
    "c = f·c + i·g,   h = o·tanh(c)",
    "h = z·h + (1 − z)·n",
    "h = (1 − z)·h + z·n",
)
"""As they are written in ``static/*.js``, where ``maths(text)`` draws them."""


@cache
def typeset() -> dict[str, str]:
    """Return the markup of every formula by its text."""
    return {text: mathml.line(text) for text in TEXTS}
