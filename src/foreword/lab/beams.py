"""A beam search with its books kept open: every text that was ever in the beam, and what it was continued from.

The rule is that of ``decode.beam_search``, for one text at a time; a test holds the two to the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from foreword.decode import Goal, Hypothesis, likeliest
from foreword.protocols import NextToken


@dataclass(frozen=True, slots=True)
class Node:
    """A text in the beam. parent: the place of the one it continues, −1 for the empty text. step: how long it is.

    id: its last token. logprob: of the whole text. score: by which finished texts are compared; None while it goes on.
    """

    parent: int
    step: int
    id: int
    logprob: float
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    """nodes: parents first. best: places of the nodes of the text that won, from its first token on."""

    nodes: list[Node]
    best: list[int]


def beam_tree(model: NextToken[Any], *, width: int = 4, max_tokens: int = 60, length_penalty: float = 1.0) -> Tree:
    """The search for one text: ``model.start()`` has one row."""
    goal = Goal(width, 1, max_tokens, length_penalty, model.vocab.end)
    nodes: list[Node] = []
    live, totals = [-1], np.zeros(1)
    finished: list[int] = []
    state = model.start()
    for step in range(1, max_tokens + 1):
        logprobs = np.asarray(model.next_logprobs(state), np.float64)
        sums = totals[:, None] + logprobs
        rows, ids = likeliest(sums, logprobs, 2 * width)
        ends = ids == goal.end
        for row in rows[:width][ends[:width]].tolist():
            total = float(sums[row, goal.end])
            told: Hypothesis = goal.hypothesis([0] * (step - 1), total, finished=True)
            finished.append(len(nodes))
            nodes.append(Node(live[row], step, goal.end, total, told.score))
        on = np.flatnonzero(~ends)[:width]
        rows, ids = rows[on], ids[on]
        scores = [nodes[place].score or 0.0 for place in finished]
        if len(rows) == 0 or goal.is_decided(scores, float(sums[rows, ids].max(initial=-np.inf))):
            live = []
            break
        first = len(nodes)
        totals = sums[rows, ids]
        for row, id, total in zip(rows.tolist(), ids.tolist(), totals.tolist(), strict=True):
            nodes.append(Node(live[row], step, id, total))
        live = list(range(first, len(nodes)))
        if step < max_tokens:
            state = model.advance(state[rows], ids)
    return Tree(nodes, _path(nodes, _best(nodes, finished, live)))


def _best(nodes: list[Node], finished: list[int], live: list[int]) -> int:
    """The best that was finished, the first of equals; where nothing was, the likeliest."""
    if finished:
        return max(finished, key=lambda place: nodes[place].score or 0.0)
    return live[0]


def _path(nodes: list[Node], place: int) -> list[int]:
    path = []
    while place >= 0:
        path.append(place)
        place = nodes[place].parent
    return path[::-1]
