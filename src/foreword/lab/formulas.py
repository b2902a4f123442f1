"""Formulas of the panels, typeset ahead as MathML: the page draws them without a script."""

from __future__ import annotations

from functools import cache

from foreword.picture import mathml

TEXTS = (
    # n-grams
    "p(w | c) = (n(c w) − D(n)) / (N(c)) + b(c) p(w | c′)",
    "p(w | c) = (n(c w)) / (N(c) + T(c)) + b(c) p(w | c′)",
    "S(w | c) = (n(c w)) / (N(c)) or 0.4 S(w | c′)",
)
"""As they are written in ``static/*.js``, where ``maths(text)`` draws them."""


@cache
def typeset() -> dict[str, str]:
    """Return the markup of every formula by its text."""
    return {text: mathml.formula(text) for text in TEXTS}
