"""What ``get_meter`` of ``foreword.compat.fasttext`` returns: scores of each label, precision and recall over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from foreword.arrays import Doubles

MISSED = -1.0
"""The score of a label that a line has and that was not predicted."""

Line = tuple[set[int], dict[int, float]]
"""The labels of a line, and those that were predicted with their probabilities, by their indices."""


class Meter:
    """Scores of the labels of a labelled file. label_id: returns the index of a label."""

    def __init__(self, lines: Iterable[Line], labels: int, label_id: Callable[[str], int]) -> None:
        self._label_id = label_id
        self._scores: list[list[tuple[float, float]]] = [[] for _ in range(labels)]
        self._gold = np.zeros(labels, np.int64)
        for gold, found in lines:
            for label, score in found.items():
                self._scores[label].append((min(score, 1.0), float(label in gold)))
            for label in gold:
                self._gold[label] += 1
                if label not in found:
                    self._scores[label].append((MISSED, 1.0))

    def score_vs_true(self, label: str) -> tuple[Doubles, Doubles]:
        """Return the scores of a label, sorted, and whether each line has it, 1 or 0."""
        pairs = np.array(sorted(self._pairs(label))).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def precision_recall_curve(self, label: str | None = None) -> tuple[Doubles, Doubles]:
        """Return precision and recall at every score, the highest first, up to full recall; then 1 and 0.

        Both are empty if the label was never predicted.
        """
        pairs = np.array(sorted(self._pairs(label), reverse=True)).reshape(-1, 2)
        pairs = pairs[pairs[:, 0] > MISSED]
        if not len(pairs):
            return np.empty(0), np.empty(0)
        gold = int(self._gold.sum() if label is None else self._gold[self._index(label)])
        last = np.flatnonzero(np.append(np.diff(pairs[:, 0]) != 0, True))
        right = np.cumsum(pairs[:, 1])[last]
        kept = slice(0, int(np.searchsorted(right, gold)) + 1)
        precision, recall = right / (last + 1), right / max(1, gold)
        return np.append(precision[kept], 1.0), np.append(recall[kept], 0.0)

    def precision_at_recall(self, recall: float, label: str | None = None) -> float:
        """Return the highest precision where the recall is at least so high; 0 if it never is."""
        precisions, recalls = self.precision_recall_curve(label)
        return float(np.max(precisions[recalls >= recall], initial=0.0))

    def recall_at_precision(self, precision: float, label: str | None = None) -> float:
        """Return the highest recall where the precision is at least so high; 0 if it never is."""
        precisions, recalls = self.precision_recall_curve(label)
        return float(np.max(recalls[precisions >= precision], initial=0.0))

    def _pairs(self, label: str | None) -> list[tuple[float, float]]:
        if label is None:
            return [pair for pairs in self._scores for pair in pairs]
        return self._scores[self._index(label)]

    def _index(self, label: str) -> int:
        index = self._label_id(label)
        if index < 0:
            raise ValueError(f"{label!r} is no label of the model")
        return index
