"""The rows' own fields as columns, which rules name by ``column(lang)``.

A field may hold names in some rows and numbers in others: the column has both. Truth values are the names true and
false, lists and objects their JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from foreword.filtering.columns import Column


def field_column(name: str, values: Sequence[Any]) -> Column:
    """Return a column of one value per row; None is missing."""
    names: dict[str, int] = {}
    indices = np.full(len(values), -1, np.int32)
    numbers = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if value is None:
            continue
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            numbers[row] = value
        indices[row] = names.setdefault(value if isinstance(value, str) else _spelled(value), len(names))
    return Column(name, indices, list(names), numbers)


def _spelled(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
