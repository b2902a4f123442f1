"""Labels of documents: read from whatever holds them, numbered by class, saved and loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from foreword.arrays import Doubles, Ints
from foreword.errors import InputError, SettingError
from foreword.protocols import Json

Labels: TypeAlias = Any  # an array (documents,) or (classes,); the protocol, which others fill too, says Sequence[str]

Prediction: TypeAlias = list[tuple[Any, float]]
"""The likeliest labels of one text, each with its probability, likeliest first."""


class DataError(InputError, ValueError):
    """A matrix or labels that nothing can be learnt from; scikit-learn's tools expect a ValueError."""


ClassWeight: TypeAlias = Literal["balanced"] | Mapping[Any, float] | None
"""Weights of the classes: equal, inversely proportional to their frequency, or given by label."""


def check_classes(labels: Sequence[Any]) -> None:
    """Raise an InputError unless there are labelled texts of at least two classes."""
    found = set(labels)
    if not found:
        raise InputError("there is nothing to learn from: no labelled text")
    if len(found) == 1:
        raise InputError(f"all texts have the label {next(iter(found))!r}: a classifier needs two classes at least")


def weights_of_classes(given: ClassWeight, classes: Labels, numbers: Ints) -> Doubles:
    """Return the weight of each class, float64 (classes,). numbers: the class of each document."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str):
        if given != "balanced":
            raise SettingError(f"class_weight is {given!r}: expected balanced, or weights by label")
        return len(numbers) / (len(classes) * np.bincount(numbers, minlength=len(classes)).astype(np.float64))
    if not isinstance(given, Mapping):
        raise SettingError(f"class_weight is {given!r}: expected balanced, or weights by label")
    known = classes.tolist()
    for label, weight in given.items():
        if label not in known:
            raise SettingError(f"class_weight has {label!r}, which is not among the classes {_few(classes)}")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < np.inf:
            raise SettingError(f"class_weight of {label!r} is {weight!r}: expected a number above 0")
    return np.array([float(given.get(label, 1.0)) for label in known])


def saved_class_weight(given: ClassWeight) -> Json:
    """Return weights of classes as JSON: pairs, for labels need not be strings."""
    if given is None or isinstance(given, str):
        return given
    pairs: list[Json] = [[label, float(weight)] for label, weight in given.items()]
    return pairs


def loaded_class_weight(saved: Any) -> ClassWeight:
    """Return weights of classes from JSON."""
    if isinstance(saved, list):
        return dict(saved)
    if saved is not None and saved != "balanced":
        raise ValueError(f"class_weight is {saved!r}")
    return saved  # type: ignore[no-any-return]


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
    if isinstance(y, list | tuple) and any(map(_has_several, y)):
        raise DataError("some documents have several labels, or none: OneVsRest(model) learns from those")
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


def _has_several(label: Any) -> bool:
    """Return whether a label is a collection of labels; one label in a list is a column of labels."""
    return isinstance(label, set | frozenset) or (isinstance(label, list | tuple) and len(label) != 1)


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
        raise DataError(f"the label {error.args[0]!r} is not among the classes {_few(classes)}") from None


def _few(classes: Labels) -> str:
    return ", ".join(str(label) for label in classes[:10].tolist()) + (" …" if len(classes) > 10 else "")


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
