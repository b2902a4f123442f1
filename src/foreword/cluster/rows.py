"""Models as stateless maps over a Ray Dataset, for those whose documents are in one already.

    web, lid = ray.data.read_parquet("web/"), [("", "lid.176.ftz")]
    scored = web.map_batches(Scores(lid).of, batch_format="pyarrow")
    english = web.map_batches(Passing(lid, ["label=en and probability>0.65"]).of, batch_format="pyarrow")

Each maps a batch to a batch in the same order: with the columns that ``foreword filter --score-only`` adds, or only the
rows that its ``--keep`` lets pass. Neither has state; models are mapped once per process.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from foreword.errors import InputError
from foreword.filtering.columns import Column
from foreword.filtering.fields import field_column
from foreword.filtering.judge import Judge
from foreword.filtering.rules import field_in
from foreword.filtering.settings import PIECE_BYTES, Filtering
from foreword.filtering.shards import OpenFilter
from foreword.text.block import Block

Models = Sequence[tuple[str, str]]
"""As ``Filtering`` takes them: a name or "", and a path that every node sees."""


class Scores:
    """A map that adds the columns of scores to a batch, an Arrow table."""

    def __init__(self, models: Models, *, field: str = "text", piece_bytes: int = PIECE_BYTES) -> None:
        self._filtering = Filtering(models, score_only=True, field=field, piece_bytes=piece_bytes)

    def of(self, batch: Any) -> Any:
        """Return the batch with its scores."""
        for column in self.columns(batch):
            batch = batch.append_column(column.name, column.to_arrow())
        return batch

    def columns(self, batch: Any) -> list[Column]:
        """Score a batch."""
        field = self._filtering.field
        if field not in batch.column_names:
            raise InputError(f"the batch has no column {field!r}: expected one of {', '.join(batch.column_names)}")
        texts = ["" if text is None else text for text in batch.column(field).to_pylist()]
        columns: list[Column] = _opened(self._filtering).scores(Block.from_texts(texts))
        taken = next((column.name for column in columns if column.name in batch.column_names), None)
        if taken:
            raise InputError(f'the batch has a column "{taken}" already: give the model a name')
        return columns


class Passing(Scores):
    """A map that keeps the rows for which all rules hold, as they are."""

    def __init__(
        self, models: Models, keep: Sequence[str], *, field: str = "text", piece_bytes: int = PIECE_BYTES
    ) -> None:
        self._filtering = Filtering(models, keep=keep, field=field, piece_bytes=piece_bytes)

    def of(self, batch: Any) -> Any:
        """Return the rows that pass."""
        import pyarrow

        columns = self.columns(batch)
        judge = Judge(self._filtering, columns)
        fields = [field_column(name, batch.column(str(field_in(name))).to_pylist()) for name in judge.fields]
        passes = judge.passing(columns, {}, np.ones(len(batch), np.bool_), fields)
        return batch.filter(pyarrow.array(passes))


@lru_cache(maxsize=4)
def _opened(filtering: Filtering) -> OpenFilter:
    return OpenFilter(filtering)
