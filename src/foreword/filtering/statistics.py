"""Columns that need no model: length, symbols and repetition of each text, after Gopher's rules.

``plain.py`` defines each of them. A rule names them like any other column: ``words>=50 and duplicate_lines<0.3``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from foreword.arrays import Doubles, ULongs
from foreword.filtering.columns import COUNTS, Column
from foreword.filtering.plain import STOP_WORDS
from foreword.text.block import Block

TOPS, DUPLICATES = (2, 3, 4), tuple(range(5, 11))

LINES = ("lines", "bullet_lines", "ellipsis_lines", "duplicate_lines", "duplicate_line_characters")

NAMES = (
    "characters", "words", "lines", "mean_word_length", "symbol_ratio", "alphabetic_words", "stop_words",
    "bullet_lines", "ellipsis_lines", "duplicate_lines", "duplicate_line_characters",
    *(f"top_{n}_gram" for n in TOPS), *(f"duplicate_{n}_grams" for n in DUPLICATES),
)  # fmt: skip
"""In the order of the kernel's columns."""


@dataclass(frozen=True)
class StatisticsScorer:
    """The statistics that were asked for."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, asked: Iterable[str]) -> StatisticsScorer:
        """Take the statistics among the names of columns."""
        return cls(tuple(name for name in dict.fromkeys(asked) if name in NAMES))

    @cached_property
    def _stop_words(self) -> ULongs:
        from foreword.filtering.kernels_statistics import hash_words

        block, found = Block.from_texts(STOP_WORDS), np.empty(len(STOP_WORDS), np.uint64)
        hash_words(block.data, block.starts, block.stops, found)
        return found

    def columns(self, texts: Block) -> list[Column]:
        """Return the statistics of each text: int64 counts and float64 shares, NaN where they are shares of nothing."""
        if not self.names:
            return []
        values = self._measured(texts)
        found = [(name, values[:, NAMES.index(name)]) for name in self.names]
        return [
            Column(name, column.astype(np.int64) if name in COUNTS else np.ascontiguousarray(column))
            for name, column in found
        ]

    def _measured(self, texts: Block) -> Doubles:
        from foreword.filtering.kernels_statistics import COLUMNS, Wanted, make_text_workspace, measure_texts
        from foreword.tokens.pieces import character_classes

        out = np.empty((len(texts), COLUMNS))
        wanted = Wanted(
            any(name == "stop_words" or name.endswith(("gram", "grams")) for name in self.names),
            any(name in LINES for name in self.names),
            np.array([n for n in TOPS if f"top_{n}_gram" in self.names], np.int32),
            np.array([n for n in DUPLICATES if f"duplicate_{n}_grams" in self.names], np.int32),
        )
        work = make_text_workspace(int((texts.stops - texts.starts).max(initial=0)))
        stop_words = self._stop_words if "stop_words" in self.names else np.empty(0, np.uint64)
        measure_texts(texts.data, texts.starts, texts.stops, character_classes(), stop_words, wanted, work, out)
        return out
