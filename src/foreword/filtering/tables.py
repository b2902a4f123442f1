"""Tables of thresholds by label, which ``--table`` names: TSV, CSV or JSON, and CCNet's ``cutoff.csv``.

CCNet's table has a column for each language and a row for each percentile of its perplexities. The 30th and the 60th
are read: documents below the first are its head, those below the second its middle.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from foreword.arrays import Doubles
from foreword.errors import InputError
from foreword.filtering.columns import Column
from foreword.text.strict_json import parse_json

OTHERS = "*"
"""The label of the thresholds for all other labels."""

CUTOFFS = ("30", "60")
"""The percentiles that CCNet cuts at."""

Thresholds = Mapping[str, Sequence[float]]
"""A label's threshold, or two of them where there are buckets."""


def limits(labels: Column, table: Thresholds, which: int = 0) -> Doubles:
    """Return each row's threshold by its label; NaN where the table has none."""
    others = table.get(OTHERS, (math.nan,) * (which + 1))[which]
    assert labels.names is not None
    by_label = [table[name][which] if name in table else others for name in labels.names]
    return np.asarray(np.array([*by_label, others])[labels.values])  # −1, no label, is the last


def read_table(path: str) -> dict[str, tuple[float, ...]]:
    """Read labels and thresholds: a JSON object, or lines of a label and numbers with tabs, commas or blanks between.

    A first line without any number is a header; if it begins with a comma, the file is laid out as CCNet's cutoff.csv.
    """
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as a table: {getattr(error, 'strerror', None) or error}") from error
    if text.lstrip().startswith("{"):
        rows = _json_table(text, path)
    else:
        rows = list(_percentile_table(text, path) if text.startswith(",") else _line_table(text, path))
    table: dict[str, tuple[float, ...]] = {}
    for place, label, values in rows:
        if label in table:
            raise InputError(f"{path}: {place}: {label!r} appears twice")
        if not 1 <= len(values) <= 2 or not all(map(math.isfinite, values)):
            raise InputError(f"{path}: {place}: expected a label and one threshold, or two for buckets")
        table[label] = values
    if not table:
        first = next(iter(text.splitlines()), "")
        raise InputError(f"{path}: no thresholds: its first line, {first[:60]!r}, has no numbers, and is a header")
    by_count = {len(values): label for label, values in table.items()}
    if len(by_count) > 1:
        raise InputError(f"{path}: {by_count[1]!r} has one threshold and {by_count[2]!r} two: expected as many for all")
    return table


def _json_table(text: str, path: str) -> list[tuple[str, str, tuple[float, ...]]]:
    try:
        found = {
            label: value if isinstance(value, list) else [value] for label, value in parse_json(text.encode()).items()
        }
        return [("its object", label, tuple(map(float, values))) for label, values in found.items()]
    except (ValueError, TypeError, AttributeError, OverflowError) as error:  # too many digits for a float overflow
        raise InputError(f"{path}: not a JSON object of labels and numbers: {error}") from error


def _line_table(text: str, path: str) -> Iterable[tuple[str, str, tuple[float, ...]]]:
    for number, line in enumerate(text.splitlines(), 1):
        label, *rest = re.split(r"[\t,; ]+", line.strip())
        if not label:
            continue
        try:
            yield f"line {number}", label, tuple(map(float, rest))
        except ValueError as error:
            if number > 1:
                cell = str(error).rpartition(": ")[2]
                raise InputError(
                    f"{path}: line {number}: {cell} is not a number: expected a label and numbers"
                ) from None


def _percentile_table(text: str, path: str) -> Iterable[tuple[str, str, tuple[float, ...]]]:
    """Read a table with a column for each language and a row for each percentile."""
    header, *rows = (row for row in csv.reader(text.splitlines()) if row)
    by_percentile = {row[0].strip(): row for row in rows}
    for place, language in enumerate(header[1:], 1):
        try:
            yield f"column {place + 1}", language.strip(), tuple(float(by_percentile[row][place]) for row in CUTOFFS)
        except (KeyError, IndexError, ValueError):
            raise InputError(
                f"{path}: column {language!r}: expected a number in the rows of the {CUTOFFS[0]}th and "
                f"{CUTOFFS[1]}th percentile, as in CCNet's cutoff.csv"
            ) from None
