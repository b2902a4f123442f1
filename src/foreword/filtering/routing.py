"""One model for each label: every row is scored by the model of its language.

A row whose label has no model has no score. Models are opened when the first row of their label comes; KenLM files are
mapped, so that a hundred languages take no more memory than the pages that are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from foreword.errors import SettingError
from foreword.filtering.columns import Column
from foreword.filtering.labels import ClassScorer
from foreword.filtering.models import column_in, has_model, path_for
from foreword.filtering.pieces import some
from foreword.filtering.scoring import Scorer
from foreword.text.block import Block


@dataclass
class RoutedScorer:
    """The models of all labels. path: with a column in braces. open: opens the model at a path."""

    path: str
    open: Callable[[str], Scorer]
    opened: dict[str, Scorer | None] = field(default_factory=dict)

    def columns(self, texts: Block, found: Sequence[Column]) -> list[Column]:
        """Score each text by the model of its label in ``found``, the columns of the models before this one."""
        wanted = column_in(self.path)
        labels = next((column for column in found if column.name == wanted), None)
        if labels is None or labels.names is None:
            known = ", ".join(column.name for column in found if column.names is not None) or "none"
            raise SettingError(f"{self.path}: no model before it gives the labels {wanted}; there are: {known}")
        columns = self._empty(labels.names, len(texts))
        for index in np.unique(labels.values[labels.values >= 0]).tolist():
            scorer = self._scorer(labels.names[index])
            if scorer is None:
                continue
            rows = labels.values == index
            for whole, part in zip(columns, scorer.columns(some(texts, rows)), strict=True):
                whole.values[rows] = part.values
        return columns

    def _scorer(self, label: str) -> Scorer | None:
        if label not in self.opened:
            path = path_for(self.path, label)
            self.opened[label] = self.open(path) if has_model(path) else None
        return self.opened[label]

    def _empty(self, labels: Sequence[str], rows: int) -> list[Column]:
        """Return the columns of any of the models, without a value in any row."""
        first = next((scorer for scorer in map(self._scorer, self._first(labels)) if scorer is not None), None)
        if first is None:
            raise SettingError(f"{self.path}: there is no such file for any of the {len(labels):,} labels")
        if isinstance(first, ClassScorer):
            raise SettingError(f"{self.path}: a model for each label must be a language model, whose columns are alike")
        like = first.columns(Block.from_texts([]))
        return [
            Column(each.name, np.full(rows, np.nan) if each.values.dtype == np.float64 else np.zeros(rows, np.int64))
            for each in like
        ]

    def _first(self, labels: Sequence[str]) -> list[str]:
        """Return a label whose model is open, or the first that has one."""
        opened = [label for label, scorer in self.opened.items() if scorer is not None]
        return opened[:1] or [label for label in labels if has_model(path_for(self.path, label))][:1]
