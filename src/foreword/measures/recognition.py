"""Word error rate: how many words of a text have to be changed to make of it what was said.

    WER = (substitutions + deletions + insertions) / words that were said

by the alignment with the fewest changes; of equal alignments the one with most substitutions. The interval is that of
the bootstrap over texts.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from foreword.errors import InputError
from foreword.measures.bootstrap import interval, resampled_sums
from foreword.notebook import ShownInNotebook


@dataclass(frozen=True, slots=True)
class WordErrors(ShownInNotebook):
    """Errors of recognised texts. words: that were said; right: texts without an error; low, high: 95 % of the rate."""

    rate: float
    low: float
    high: float
    substitutions: int
    deletions: int
    insertions: int
    words: int
    texts: int
    right: int

    def to_json(self) -> dict[str, Any]:
        """Return the measures for JSON."""
        found: dict[str, Any] = {
            "wer": self.rate,
            "interval": [self.low, self.high],
            "accuracy": self.right / self.texts,
        }
        return found | {name: value for name, value in asdict(self).items() if name not in ("rate", "low", "high")}


def word_errors(
    recognised: Sequence[Sequence[Hashable]], said: Sequence[Sequence[Hashable]], *, seed: int = 0
) -> WordErrors:
    """Compare recognised texts with what was said, both as words, symbols or ids."""
    if len(recognised) != len(said) or not any(map(len, said)):
        raise InputError(f"{len(recognised)} texts recognised of {len(said)}: expected as many, and at least one word")
    counts = np.array([edits(*pair) for pair in zip(recognised, said, strict=True)], np.float64)
    rows = np.column_stack((counts.sum(1), [len(each) for each in said]))
    drawn = [errors / words for errors, words in resampled_sums(rows, seed=seed) if words]
    substitutions, deletions, insertions = (int(count) for count in counts.sum(0))
    errors, words = rows.sum(0)
    right = int((rows[:, 0] == 0).sum())
    return WordErrors(
        float(errors / words), *interval(drawn), substitutions, deletions, insertions, int(words), len(said), right
    )


def fewer_errors(
    recognised: Sequence[Sequence[Hashable]],
    other: Sequence[Sequence[Hashable]],
    said: Sequence[Sequence[Hashable]],
    *,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Return by how much the word error rate of ``recognised`` is below that of ``other``, and its 95 % interval.

    Both are compared on the same draws of texts, so that what a hard text adds to both cancels.
    """
    errors = [sum(edits(mine, text)) for mine, text in zip(recognised, said, strict=True)]
    others = [sum(edits(its, text)) for its, text in zip(other, said, strict=True)]
    rows = np.column_stack((np.subtract(others, errors), [len(each) for each in said])).astype(np.float64)
    drawn = [less / words for less, words in resampled_sums(rows, seed=seed) if words]
    less, words = rows.sum(0)
    return float(less / words), *interval(drawn)


def edits(recognised: Sequence[Hashable], said: Sequence[Hashable]) -> tuple[int, int, int]:
    """Return the fewest substitutions, deletions and insertions that turn what was said into what was recognised."""
    # Of each end of ``said``: the number of changes, of which deletions and insertions.
    row = [(place, place, 0) for place in range(len(said) + 1)]
    for count, word in enumerate(recognised, 1):
        before, row = row, [(count, 0, count)]
        for place, wanted in enumerate(said):
            total, deleted, inserted = before[place]
            kept = (total + (word != wanted), deleted, inserted)
            total, deleted, inserted = row[-1]
            left_out = (total + 1, deleted + 1, inserted)
            total, deleted, inserted = before[place + 1]
            row.append(min(kept, left_out, (total + 1, deleted, inserted + 1)))
    total, deleted, inserted = row[-1]
    return total - deleted - inserted, deleted, inserted
