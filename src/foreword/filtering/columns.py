"""Columns of scores: named, with one value per row; how they are spelled, stored and found again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from foreword.arrays import Array, Bools, Doubles
from foreword.errors import InputError

LABEL, PROBABILITY, PERPLEXITY, CONTAMINATED = "label", "probability", "perplexity", "contaminated"
GRADE = "grade"
LOWER_IS_BETTER = ("perplexity", "oov", "contaminated")

COUNTS = ("characters", "words", "lines", "stop_words")
"""Statistics of the text that are whole numbers, and 0 for an empty text."""

SHARES = (
    "alphabetic_words", "bullet_lines", "ellipsis_lines", "duplicate_lines", "duplicate_line_characters",
    *(f"top_{n}_gram" for n in (2, 3, 4)), *(f"duplicate_{n}_grams" for n in range(5, 11)),
)  # fmt: skip
"""Statistics of the text that are shares."""

_LABEL_PROBABILITY = re.compile(r"(|.*_)p\((.*)\)", re.DOTALL)
_OF_NAMES = re.compile(r"(?:.*_)?(?:label(?:_\d+)?|bucket)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Column:
    """Values, one per row: float64, NaN if missing; int64; or with ``names`` int32 indices of them, −1 if missing.

    numbers: for a field of the rows, which may hold both names and numbers, float64, NaN where it is no number.
    """

    name: str
    values: Array
    names: Sequence[str] | None = None
    numbers: Doubles | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> Bools:
        """Return which rows have no value."""
        if self.names is not None:
            return np.asarray(self.values < 0)
        if self.values.dtype == np.float64:
            return np.asarray(np.isnan(self.values))
        return np.zeros(len(self.values), np.bool_)

    def number(self) -> Doubles:
        """Return the values as numbers, NaN if missing."""
        return np.asarray(self.values if self.numbers is None else self.numbers, np.float64)

    def at(self, rows: Array) -> Column:
        """Return the values of some rows."""
        return Column(self.name, self.values[rows], self.names)

    def spelled(self, nothing: str, quoted: bool) -> list[str]:
        """Return every value as JSON, or unquoted as plain text; missing and infinite values are ``nothing``."""
        if self.names is not None:
            words = [json.dumps(name, ensure_ascii=False) if quoted else name for name in self.names]
            words.append(nothing)  # at index −1
            return [words[index] for index in self.values.tolist()]
        spelled = list(map(repr, self.values.tolist()))
        for row in np.flatnonzero(~np.isfinite(self.values)).tolist():
            spelled[row] = nothing
        return spelled

    def to_arrow(self) -> Any:
        """Return the column as an Arrow array; missing values are null."""
        import pyarrow

        if self.names is None:
            kind = pyarrow.float64() if self.values.dtype == np.float64 else pyarrow.int64()
            return arrow_numbers(kind, self.values, self.missing)  # NaN is null
        indices = arrow_numbers(pyarrow.int32(), self.values, self.missing)
        return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(self.names, pyarrow.string())).cast("string")


def arrow_numbers(kind: Any, values: Array, missing: Bools) -> Any:
    """Return an Arrow array over these values. ``pyarrow.array`` would import all of pandas, to see whether an array is
    one of its own, which takes longer than to filter ten megabytes.
    """
    import pyarrow

    valid = arrow_bits(~missing) if missing.any() else None
    return pyarrow.Array.from_buffers(kind, len(values), [valid, pyarrow.py_buffer(np.ascontiguousarray(values))])


def arrow_mask(rows: Bools) -> Any:
    """Return an Arrow array of truth values."""
    import pyarrow

    return pyarrow.Array.from_buffers(pyarrow.bool_(), len(rows), [None, arrow_bits(rows)])


def arrow_bits(truths: Bools) -> Any:
    """Return truth values as Arrow packs them, eight to a byte."""
    import pyarrow

    return pyarrow.py_buffer(np.packbits(truths, bitorder="little"))


def find_column(columns: Iterable[Column], name: str) -> Column:
    """Return the column of that name."""
    return next(column for column in columns if column.name == name)


def main_column(columns: Sequence[Column]) -> str:
    """Return the default column of percentiles and buckets: a perplexity, else a probability; "" if there is none."""
    for wanted in (PERPLEXITY, PROBABILITY):
        for column in columns:
            if column.name.endswith(wanted):
                return column.name
    return ""


def label_column(columns: Sequence[Column]) -> str | None:
    """Return the name of the first column of labels, if there is one."""
    return next((column.name for column in columns if column.names is not None), None)


def label_of(name: str) -> tuple[str, str] | None:
    """Return the prefix and the label of a column such as ``quality_p(hq)``; None for other columns."""
    found = _LABEL_PROBABILITY.fullmatch(name)
    return None if found is None else (found[1], found[2].removeprefix("__label__"))


def holds_names(name: str) -> bool:
    """Return whether a column holds names, labels or buckets, and not numbers; a label may well be called ``1``."""
    return _OF_NAMES.fullmatch(name) is not None


def is_share(name: str) -> bool:
    """Return whether a column has values from 0 to 1."""
    return (
        name in SHARES or label_of(name) is not None or name.rstrip("_0123456789").endswith((PROBABILITY, CONTAMINATED))
    )


def lower_is_better(name: str) -> bool:
    """Return whether low values of a column are the good ones."""
    return name.endswith(LOWER_IS_BETTER)


def write_columns(file: BinaryIO, columns: Sequence[Column]) -> None:
    """Write the columns of a batch for the second pass."""
    for column in columns:
        np.save(file, column.values, allow_pickle=False)


def read_columns(file: BinaryIO, like: Sequence[Column], rows: int) -> list[Column]:
    """Read the columns of the next batch, named as those of ``like``."""
    try:
        found = [Column(each.name, np.load(file, allow_pickle=False), each.names) for each in like]
    except (ValueError, EOFError) as error:
        raise InputError("the scores of the first pass are damaged; --restart begins again") from error
    if any(len(column) != rows for column in found):
        raise InputError("the file has changed between the two passes; --restart begins again")
    return found
