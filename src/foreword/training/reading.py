"""How a text is read in training: B places at once, T words at a time, cut elsewhere in each epoch.

S. Merity, N. Keskar and R. Socher, "Regularizing and optimizing LSTM language models" (2018) for stretches of varying
length. Shapes: N tokens, B texts side by side, L words in each.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from foreword.arrays import Longs
from foreword.errors import SettingError

SHORTEST = 5
"""Words in a stretch of varying length, at least."""


class Reading:
    """A text as B rows of L words. The text is a ring: what comes before its first word is its last, an end.

    With each epoch the ring is cut at another place, and each row begins at another of its words, so that no two epochs
    have their borders at the same words. Given ``offsets``, where documents begin and end, each epoch has them in
    another order. vary: stretches of about ``steps`` words. share: which worker's of how many workers' rows this is.
    """

    def __init__(
        self,
        ids: Tensor,
        batch: int,
        steps: int,
        *,
        offsets: Longs | None = None,
        vary: bool = False,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        self.ids = ids
        self.offsets = offsets if offsets is not None and len(offsets) > 2 else None
        self.vary = vary
        self.all_rows = min(batch, len(ids))
        worker, workers = share
        if self.all_rows % workers:
            raise SettingError(f"a batch of {self.all_rows} cannot be shared by {workers} workers: expected a multiple")
        self.rows = self.all_rows // workers
        self.own = slice(worker * self.rows, (worker + 1) * self.rows)
        self.length = len(ids) // self.all_rows
        self.stretch = min(steps, self.length)
        self.steps = self.length // self.stretch
        self.words = self.length if vary else self.steps * self.stretch
        self.tokens = self.words * self.all_rows

    def epoch(self, random: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Inputs and targets, each (L, B), or a worker's columns of it; an input is the word before its target."""
        device = self.ids.device
        first = int(random.integers(len(self.ids)))
        begins = torch.from_numpy(random.integers(self.length, size=self.all_rows)[self.own]).to(device)
        within = (torch.arange(self.length, device=device)[:, None] + begins) % self.length
        rows = torch.arange(self.all_rows, device=device)[self.own]
        places = (first + rows * self.length + within) % len(self.ids)
        ids = self.ids if self.offsets is None else self.ids[_shuffled(self.offsets, random).to(device)]
        return ids[places - 1], ids[places]

    def stretches(self, random: np.random.Generator) -> list[int]:
        """How many words each update of an epoch reads."""
        if not self.vary:
            return [self.stretch] * self.steps
        lengths: list[int] = []
        left = self.length
        while left:
            usual = self.stretch if random.random() < 0.95 else self.stretch / 2
            lengths.append(min(left, max(SHORTEST, int(random.normal(usual, 5)))))
            left -= lengths[-1]
        return lengths


def _shuffled(offsets: Longs, random: np.random.Generator) -> Tensor:
    """(N,): which token comes where when the documents are in another order."""
    order = random.permutation(len(offsets) - 1)
    lengths = np.diff(offsets)[order]
    moved = offsets[:-1][order] - (np.cumsum(lengths) - lengths)
    return torch.from_numpy(np.repeat(moved, lengths) + np.arange(offsets[-1]))
