"""What models say of a batch of documents: named columns, a value a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from foreword.arrays import Array, Bools
from foreword.errors import InputError


@dataclass(frozen=True, slots=True)
class Column:
    """values: float64, NaN where there is none; int64; or, where there are names, int32 places among them, −1 none."""

    name: str
    values: Array
    names: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> Bools:
        if self.names is not None:
            return np.asarray(self.values < 0)
        if self.values.dtype == np.float64:
            return np.asarray(np.isnan(self.values))
        return np.zeros(len(self.values), np.bool_)

    def at(self, rows: Array) -> Column:
        return Column(self.name, self.values[rows], self.names)

    def spelled(self, nothing: str, quoted: bool) -> list[str]:
        """Every value as JSON, or with ``quoted`` off as plain text; what JSON has no number for is ``nothing``."""
        if self.names is not None:
            words = [json.dumps(name, ensure_ascii=False) if quoted else name for name in self.names]
            words.append(nothing)  # which −1 finds
            return [words[place] for place in self.values.tolist()]
        spelled = list(map(repr, self.values.tolist()))
        for place in np.flatnonzero(~np.isfinite(self.values)).tolist():
            spelled[place] = nothing
        return spelled

    def to_arrow(self) -> Any:
        import pyarrow

        if self.names is None:
            kind = pyarrow.float64() if self.values.dtype == np.float64 else pyarrow.int64()
            return arrow_numbers(kind, self.values, self.missing)  # NaN is null
        places = arrow_numbers(pyarrow.int32(), self.values, self.missing)
        return pyarrow.DictionaryArray.from_arrays(places, pyarrow.array(self.names, pyarrow.string())).cast("string")


def arrow_numbers(kind: Any, values: Array, missing: Bools) -> Any:
    """An Arrow array over these values. ``pyarrow.array`` would do, but imports all of pandas to see whether an array
    is one of its own, which takes longer than to filter ten megabytes.
    """
    import pyarrow

    valid = arrow_bits(~missing) if missing.any() else None
    return pyarrow.Array.from_buffers(kind, len(values), [valid, pyarrow.py_buffer(np.ascontiguousarray(values))])


def arrow_mask(rows: Bools) -> Any:
    """The same of truth values."""
    import pyarrow

    return pyarrow.Array.from_buffers(pyarrow.bool_(), len(rows), [None, arrow_bits(rows)])


def arrow_bits(truths: Bools) -> Any:
    import pyarrow

    return pyarrow.py_buffer(np.packbits(truths, bitorder="little"))


def find_column(columns: Iterable[Column], name: str) -> Column:
    return next(column for column in columns if column.name == name)


def write_columns(file: BinaryIO, columns: Sequence[Column]) -> None:
    """Keep a batch's columns for a second pass."""
    for column in columns:
        np.save(file, column.values, allow_pickle=False)


def read_columns(file: BinaryIO, like: Sequence[Column], rows: int) -> list[Column]:
    """The columns of the next batch, named as ``like``."""
    try:
        found = [Column(each.name, np.load(file, allow_pickle=False), each.names) for each in like]
    except (ValueError, EOFError) as error:
        raise InputError("the scores that the first pass kept are damaged; --restart begins anew") from error
    if any(len(column) != rows for column in found):
        raise InputError("the file has changed between the two passes; --restart begins anew")
    return found
