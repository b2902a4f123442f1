"""Labels of texts: their names, and what no classifier can learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

from foreword.errors import InputError

Prediction: TypeAlias = list[tuple[str, float]]
"""The likeliest labels of one text, each with its probability, likeliest first."""


def names_of(labels: Sequence[Any]) -> list[str]:
    """Return every label as a string."""
    return [label if type(label) is str else str(label) for label in labels]


def check_classes(labels: Sequence[str]) -> None:
    """Raise an InputError unless there are labelled texts of at least two classes."""
    counts = Counter(labels)
    if not counts:
        raise InputError("there is nothing to learn from: no labelled text")
    if len(counts) == 1:
        raise InputError(f"all texts have the label {next(iter(counts))!r}: a classifier needs two classes at least")
