"""A softmax over some words in place of all: those that a batch asks for, and a few more that are drawn.

    log Z ≈ log Σ_(j drawn) exp(l_j) / π_j,    π_j = 1 − (1 − p_j)^N (1 − q_j)^S

The words of a batch are N draws from the text itself, and S more are drawn from a flatter distribution, q ∝ p^¾; π_j is
the probability that word j is among them, so that the sum estimates Z without bias (Horvitz and Thompson). Subtracting
log π from the logits is all that it takes. With ten thousand words and a thousand drawn, the last layer costs a tenth.

S. Jean et al., "On using very large target vocabulary for neural machine translation" (2015); D. Horvitz and
D. Thompson, "A generalization of sampling without replacement from a finite universe" (1952).
Shapes: V words, N targets, C candidates.
"""

from __future__ import annotations

import torch
from torch import Tensor

FLATTER = 0.75
"""The power of the frequencies that the others are drawn by, as in word2vec."""


class Candidates:
    """Draws the candidates of an update. counts (V,): how often each word is in the text; draws: S."""

    def __init__(self, counts: Tensor, draws: int, generator: torch.Generator | None = None) -> None:
        self.draws = draws
        self._generator = generator
        self._p = counts.double() / counts.sum()
        flat = (counts.double() + 1).pow(FLATTER)  # a word that is in the vocabulary but not in the text is drawn too
        self._q = flat / flat.sum()

    def choose(self, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """For targets (N,): the candidates' ids (C,), log π of each (C,), and where each target is among them (N,)."""
        drawn = torch.multinomial(self._q, self.draws, replacement=True, generator=self._generator)
        ids, places = torch.unique(torch.cat((targets, drawn)), return_inverse=True)
        return ids, self.log_chances(len(targets))[ids].float(), places[: len(targets)]

    def log_chances(self, targets: int) -> Tensor:
        """Log π (V,) of an update with so many targets."""
        none = targets * torch.log1p(-self._p) + self.draws * torch.log1p(-self._q)
        return torch.log(-torch.expm1(none))
