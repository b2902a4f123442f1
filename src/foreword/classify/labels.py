"""Labels of documents: read from whatever holds them, numbered by class, saved and loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from foreword.arrays import Ints
from foreword.errors import InputError
from foreword.protocols import Json

Labels: TypeAlias = Any  # an array (documents,) or (classes,); the protocol, which others fill too, says Sequence[str]

Prediction: TypeAlias = list[tuple[str, float]]
"""The likeliest labels of one text, each with its probability, likeliest first."""


class DataError(InputError, ValueError):
    """A matrix or labels that nothing can be learnt from; scikit-learn's tools expect a ValueError."""


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


def check_lengths(documents: int, labels: int) -> None:
    """Raise a DataError unless there is one label per document."""
    if documents != labels:
        raise DataError(f"{documents} documents and {labels} labels: expected a label for each document")


def read_labels(y: Any, documents: int) -> tuple[Labels, Ints]:
    """Return the classes, sorted, and the number of each document's class; strings stay Python's strings."""
    if y is None or isinstance(y, str):
        raise DataError(f"y should be a 1d array of labels, got {y!r}")
    labels = list_of_labels(y)
    check_lengths(documents, len(labels))
    if documents == 0:
        raise DataError("Found array with 0 sample(s) while a minimum of 1 is required: there is nothing to learn from")
    classes = classes_of(labels)
    if len(classes) == 1:
        raise DataError(f"all documents have the label {labels[0]!r}: more than one class is needed, not 1 class")
    return classes, numbers_of(labels, classes)


def list_of_labels(y: Any) -> list[Any]:
    """Return labels as a list of Python's own types; raise a DataError unless they are classes."""
    if isinstance(y, list) and all(type(label) is str for label in y):
        return y
    flat = isinstance(y, list | tuple) and all(isinstance(label, str) or np.ndim(label) == 0 for label in y)
    array = np.array(list(y), dtype=object) if flat else np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"y should be a 1d array of labels, got an array of shape {array.shape}")
    labels = [label.item() if isinstance(label, np.generic) else label for label in array.tolist()]
    if not all(label.is_integer() for label in labels if isinstance(label, float)):
        raise DataError("Unknown label type: numbers that are not whole. Expected classes, not measurements")
    return labels


def classes_of(labels: Sequence[Any]) -> Labels:
    """Return the distinct labels, sorted."""
    found = set(labels)
    kinds = {str if isinstance(label, str) else type(label) for label in found}
    if kinds == {str}:
        return np.array(sorted(map(str, found)), dtype=object)
    if len(kinds) > 1 or not kinds <= {int, float, bool}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(f"Unknown label type: expected strings or whole numbers, got {names}")
    return np.array(sorted(found))


def numbers_of(labels: Sequence[Any], classes: Labels) -> Ints:
    """Return the index of each label among the classes."""
    number = {label: index for index, label in enumerate(classes.tolist())}
    try:
        return np.fromiter(map(number.__getitem__, labels), np.int32, len(labels))
    except KeyError as error:
        names = [str(label) for label in classes[:10].tolist()]
        few = ", ".join(names) + (" …" if len(classes) > 10 else "")
        raise DataError(f"the label {error.args[0]!r} is not among the classes {few}") from None


def saved_classes(classes: Labels) -> list[Json]:
    """Return classes as JSON."""
    labels: list[Json] = classes.tolist()
    return labels


def loaded_classes(saved: Any) -> Labels:
    """Return classes from JSON; raise a ValueError unless they are sorted and distinct."""
    if not isinstance(saved, list) or not saved:
        raise ValueError("'classes' must be a list of labels")
    classes = classes_of(saved)
    if classes.tolist() != saved:
        raise ValueError("the classes are not sorted, or one occurs twice")
    return classes
