"""Models as stateless maps over a Ray Dataset, for those whose documents are in one already.

    web, lid = ray.data.read_parquet("web/"), [("", "lid.176.ftz")]
    scored = web.map_batches(Scores(lid).of, batch_format="pyarrow")
    english = web.map_batches(Passing(lid, ["label=en and probability>0.65"]).of, batch_format="pyarrow")

A batch in, a batch out, in the same order: the columns that ``foreword filter --score-only`` adds, or the rows that its
``--keep`` lets pass. Neither remembers anything of a batch; models are mapped once by each process.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from foreword.errors import InputError
from foreword.filtering.columns import Column
from foreword.filtering.rules import check_rule, parse_rule, separate
from foreword.filtering.scoring import PIECE_BYTES, label_column
from foreword.filtering.shards import Judging
from foreword.filtering.worker import Reading
from foreword.text.block import Block

Models = Sequence[tuple[str, str]]
"""As ``Filtering`` takes them: a name or "", and a path that every node sees."""


class Scores:
    """Adds the columns of scores to a batch, an Arrow table."""

    def __init__(self, models: Models, *, field: str = "text", piece_bytes: int = PIECE_BYTES) -> None:
        prefixed = len(models) > 1
        named = tuple((path, f"{name}_" if name or prefixed else "") for name, path in models)
        self._reading = Reading(named, field, "parquet", "strict", 1 << 62, piece_bytes)

    def of(self, batch: Any) -> Any:
        for column in self.columns(batch):
            batch = batch.append_column(column.name, column.to_arrow())
        return batch

    def columns(self, batch: Any) -> list[Column]:
        """The scores of a batch."""
        field = self._reading.field
        if field not in batch.column_names:
            raise InputError(f"the batch has no column {field!r}: expected one of {', '.join(batch.column_names)}")
        texts = ["" if text is None else text for text in batch.column(field).to_pylist()]
        columns: list[Column] = _opened(self._reading).scores(Block.from_texts(texts))
        taken = next((column.name for column in columns if column.name in batch.column_names), None)
        if taken:
            raise InputError(f'the batch has a column "{taken}" already: give the model a name')
        return columns


class Passing(Scores):
    """Keeps the rows for which all rules hold, as they are."""

    def __init__(
        self, models: Models, keep: Sequence[str], *, field: str = "text", piece_bytes: int = PIECE_BYTES
    ) -> None:
        super().__init__(models, field=field, piece_bytes=piece_bytes)
        self._judging = Judging(separate(parse_rule(rule) for rule in keep))

    def of(self, batch: Any) -> Any:
        import pyarrow

        columns = self.columns(batch)
        for rule in self._judging.rules:
            check_rule(rule, columns, {}, label_column(columns))
        passes = self._judging.judged(columns, {}, np.ones(len(batch), np.bool_))
        return batch.filter(pyarrow.array(passes))


@lru_cache(maxsize=4)
def _opened(reading: Reading) -> Any:
    return reading.opened()
