"""Smoothing: how much of what was seen is given to what was not.

Every method here is one formula over the same counts, for a context c and a word w:

    p(w | c) = (n(c w) - D(n)) / (N(c) + t T(c) + e) + b(c) p(w | shorter c)

n counts the n-gram, N(c) sums n over words, T(c) counts different words, and b(c) is whatever makes the row sum to
one. A method says which counts it uses (as seen, or in how many different contexts: Kneser-Ney's idea), what D is, and
what t and e are. Chen and Goodman (1999) compare them all: https://doi.org/10.1006/csla.1999.0128.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from foreword.errors import ForewordError, SettingError

FALLBACK = (0.0, 0.5, 1.0, 1.5)
"""KenLM's discounts where too little was seen to estimate them."""


@dataclass(frozen=True, slots=True)
class Method:
    """What one smoothing method does.

    continuations: lower orders count different words before, not occurrences (Kneser and Ney, 1995).
    discounts: how many discounts are estimated from the counts of counts: 0, 1 (absolute) or 3 (modified).
    per_type: t, 1 for Witten-Bell. per_word: e for each word of the vocabulary, Lidstone's addition.
    uniform: what a context does not know is spread evenly over the vocabulary, not as the shorter context says.
    backoff: a constant weight instead of what is left over (stupid back-off, which does not sum to one).
    """

    continuations: bool = False
    discounts: int = 0
    per_type: float = 0.0
    per_word: float = 0.0
    uniform: bool = False
    backoff: float | None = None


GIVEN = "given"
"""The smoothing of a model that was read from a file: its probabilities are given."""

METHODS: dict[str, Method] = {
    "modified-kneser-ney": Method(continuations=True, discounts=3),
    "kneser-ney": Method(continuations=True, discounts=1),
    "absolute": Method(discounts=1),
    "witten-bell": Method(per_type=1.0),
    "laplace": Method(per_word=1.0, uniform=True),
    "lidstone": Method(per_word=0.1, uniform=True),
    "maximum-likelihood": Method(),
    "stupid-backoff": Method(backoff=0.4),
    GIVEN: Method(),
}


def method(name: str, add: float | None = None) -> Method:
    """Return the method of that name; ``add`` is Lidstone's addition."""
    if name not in METHODS:
        raise SettingError(
            f"smoothing={name!r}: expected one of {', '.join(name for name in METHODS if name != GIVEN)}"
        )
    found = METHODS[name]
    if add is None:
        return found
    if name != "lidstone":
        raise SettingError(f"add={add} is for smoothing=lidstone only, not for {name}")
    if not 0 < add < math.inf:
        raise SettingError(f"add={add}: Lidstone's addition must be a positive number")
    return Method(per_word=add, uniform=True)


def estimate_discounts(
    tally: Sequence[int], number: int, *, order: int, fallback: bool
) -> tuple[float, float, float, float]:
    """Return D(0), D(1), D(2), D(3 and more) from how many n-grams have the count 1, 2, 3, 4 (tally[1:5]).

    Y = n1 / (n1 + 2 n2);  one discount: D = Y;  three: D(k) = k - (k + 1) Y n(k+1) / n(k).
    """
    if number == 0:
        return (0.0, 0.0, 0.0, 0.0)
    ones, twos = tally[1], tally[2]
    if number == 1:
        if ones == 0 or twos == 0:
            return _fall_back(order, fallback, (0.0, 0.75, 0.75, 0.75))
        share = ones / (ones + 2 * twos)
        return (0.0, share, share, share)
    if not all(tally[1:4]):
        return _fall_back(order, fallback, FALLBACK)
    share = ones / (ones + 2 * twos)
    found = [count - (count + 1) * share * tally[count + 1] / tally[count] for count in (1, 2, 3)]
    if not all(0 <= discount <= count for count, discount in enumerate(found, 1)):
        return _fall_back(order, fallback, FALLBACK)
    return (0.0, found[0], found[1], found[2])


def _fall_back(
    order: int, allowed: bool, discounts: tuple[float, float, float, float]
) -> tuple[float, float, float, float]:
    if allowed:
        return discounts
    raise ForewordError(
        f"too little text to estimate the discounts of order {order}: use discount_fallback=True, or a lower order"
    )
