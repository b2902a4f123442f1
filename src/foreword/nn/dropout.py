"""Dropout for recurrent networks: masks that are drawn once and used for a whole sequence.

Dropping different units at every step would erase a recurrent state; a mask that stays the same over time (*locked*, or
*variational*) keeps the same units from the first word to the last. DropConnect drops weights instead of units,
which regularises the recurrence without touching the state. Every mask holds 0 or 1 / (1 − p), so that expectations
stay as they are and nothing has to be rescaled when masks are left out.

Y. Gal and Z. Ghahramani, "A theoretically grounded application of dropout in recurrent neural networks" (2016);
L. Wan et al., "Regularization of neural networks using DropConnect" (2013).
Shapes: T steps, a batch of B texts, D units, V words.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from foreword.errors import SettingError


@dataclass(frozen=True, slots=True)
class Dropout:
    """Dropout rates at each point of a stacked recurrent model; the defaults are those for the Penn Treebank.

    words: whole words, everywhere in the batch. input: units of the embedding. between: units between layers. output:
    units before the softmax. recurrent: recurrent weights (DropConnect). state: units of an LSTM's recurrent state h,
    one mask per text and layer. fresh: draw new masks of input, between and output at every step, instead of one for
    all steps.
    """

    words: float = 0.12
    input: float = 0.55
    between: float = 0.3
    output: float = 0.5
    recurrent: float = 0.55
    state: float = 0.0
    fresh: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.fresh, bool):
            raise SettingError(f"dropout's fresh is {self.fresh!r}: expected true or false")
        for field in fields(self):
            share = getattr(self, field.name)
            if field.name != "fresh" and not 0 <= share < 1:
                raise SettingError(f"dropout of {field.name} is {share!r}: expected at least 0 and less than 1")

    def scaled(self, factor: float) -> Dropout:
        """Return ``factor`` times these rates."""
        shares: dict[str, Any] = {
            field.name: factor * getattr(self, field.name) for field in fields(self) if field.name != "fresh"
        }
        return replace(self, **shares)


NO_DROPOUT = Dropout(0.0, 0.0, 0.0, 0.0, 0.0)


def draw_mask(shape: tuple[int, ...], share: float, like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draw 0 with probability ``share``, else 1 / (1 − share); of the type and on the device of ``like``."""
    mask = torch.empty(shape, dtype=like.dtype, device=like.device)
    return mask.bernoulli_(1 - share, generator=generator).div_(1 - share)


def locked_mask(texts: int, units: int, share: float, like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draw (1, B, D), which multiplied with (T, B, D) drops the same units of a text at every step."""
    return draw_mask((1, texts, units), share, like, generator)
