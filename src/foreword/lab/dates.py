"""Dates to be translated, which the lab makes itself: ``the 3rd of march 1998`` into ``1998-03-03``.

A language pair that needs no data, in which order changes and every sign of the answer has its place in the question:
so attention has something to show after seconds of training. Both sides are read by characters.
"""

from __future__ import annotations

import numpy as np

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
FORMS = ("{day} {month} {year}", "{month} {day}, {year}", "the {nth} of {month} {year}", "{month} the {nth}, {year}")
FIRST_YEAR, YEARS = 1900, 150


def dates(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """So many dates as people write them, and each as ISO 8601 has it; the same seed gives the same."""
    random = np.random.default_rng(seed)
    years, months, forms = (random.integers(many, size=count) for many in (YEARS, len(MONTHS), len(FORMS)))
    days = random.integers(28, size=count) + 1
    sources, targets = [], []
    for year, month, day, form in zip(*(each.tolist() for each in (years, months, days, forms)), strict=True):
        said = {"day": day, "nth": nth(day), "month": MONTHS[month], "year": FIRST_YEAR + year}
        sources.append(FORMS[form].format(**said))
        targets.append(f"{FIRST_YEAR + year}-{month + 1:02}-{day:02}")
    return sources, targets


def nth(number: int) -> str:
    ending = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
