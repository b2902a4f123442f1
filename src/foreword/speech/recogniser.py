"""Speech to symbols: an LSTM that reads frames both ways, and CTC, which finds out by itself where each symbol lies.

    p_t = softmax(W [LSTM→(x)_t; LSTM←(x)_t] + b),    loss: ``nn/ctc.py``,    search: ``speech/search.py``

A. Graves, A. Mohamed and G. Hinton, "Speech recognition with deep recurrent neural networks" (2013).
Shapes: T frames, B sounds, M bands, V symbols and the blank behind them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear, log_softmax

from foreword.arrays import Doubles, Floats
from foreword.errors import InputError
from foreword.nn.ctc import ctc_loss
from foreword.nn.dropout import locked_mask
from foreword.nn.layers import lstm, reversing, turned
from foreword.protocols import NextToken, Step
from foreword.speech.search import greedy, prefix_search
from foreword.training.batches import beside, bucketed, longs, side_by_side
from foreword.training.gradients import new_flat, views
from foreword.training.optimisers import Adam
from foreword.training.schedules import hold_then_cosine

PARTS = ("input", "recurrent", "input_bias", "recurrent_bias")
CPU = torch.device("cpu")


class Recogniser:
    """symbols: that can be heard, a vocabulary's ids. units: of each direction. bands: of a frame."""

    def __init__(
        self, symbols: int, *, bands: int = 26, units: int = 48, layers: int = 1, dropout: float = 0.1, seed: int = 0
    ) -> None:
        self.symbols, self.bands, self.units, self.layers = symbols, bands, units, layers
        self.dropout, self.seed = dropout, seed
        self._shapes = self._tensors()
        self._flat = new_flat(self._shapes, CPU)
        generator = torch.Generator().manual_seed(seed)
        for name, part in views(self._flat, self._shapes).items():
            reach = units**-0.5 if part.dim() > 1 else 0.0
            part.uniform_(-reach, reach, generator=generator)
            if name.endswith("input_bias"):
                part[units : 2 * units] = 1.0

    @property
    def blank(self) -> int:
        return self.symbols

    def _tensors(self) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        for layer in range(self.layers):
            read = 2 * self.units if layer else self.bands
            sizes = [(4 * self.units, read), (4 * self.units, self.units), (4 * self.units,), (4 * self.units,)]
            for way in ("ahead", "behind"):
                shapes |= {f"layer{layer}.{way}.{part}": size for part, size in zip(PARTS, sizes, strict=True)}
        return {**shapes, "output": (self.symbols + 1, 2 * self.units), "bias": (self.symbols + 1,)}

    def train(
        self,
        sounds: Sequence[Floats],
        labels: Sequence[Sequence[int]],
        *,
        epochs: int = 15,
        batch: int = 8,
        rate: float = 5e-3,
    ) -> Iterator[Step]:
        """Learn from frames (length, M) and what is said in them, telling after each batch how far it is."""
        if len(sounds) != len(labels) or not len(sounds):
            raise InputError(
                f"{len(sounds)} sounds and {len(labels)} texts: expected a text for each, and at least one"
            )
        self._check(sounds)
        generator, random = torch.Generator().manual_seed(self.seed), np.random.default_rng(self.seed)
        leaves = {name: part.detach().requires_grad_() for name, part in views(self._flat, self._shapes).items()}
        gradient, moves = torch.zeros_like(self._flat), Adam(self._flat)
        slopes = views(gradient, self._shapes)
        total, done, step = epochs * len(sounds), 0, 0
        for _ in range(epochs):
            for group in bucketed([len(each) for each in sounds], batch, random):
                now = rate * hold_then_cosine(done / total, hold=0.5, last=0.05)
                wanted, sizes = side_by_side([np.asarray(labels[k], np.int64) for k in group], CPU)
                logs, frames = self._logs(leaves, [sounds[k] for k in group], generator)
                loss = (ctc_loss(logs, wanted.t(), frames, sizes, blank=self.blank) / sizes.clamp(min=1)).mean()
                for name, slope in zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True):
                    slopes[name].copy_(slope)
                norm = torch.linalg.vector_norm(gradient)
                step += 1
                factor = (1 / (norm + 1e-12)).clamp(max=1.0)
                moves.update(self._flat, gradient, factor, torch.tensor(moves.plan(now, step)))
                done += len(group)
                yield Step(done, total, loss.item(), now)

    def logs(self, sounds: Sequence[Floats]) -> list[Doubles]:
        """(length, V + 1) for each sound: log-probabilities of the symbols at every frame, the blank last."""
        self._check(sounds)
        found = []
        for sound in sounds:
            with torch.inference_mode():
                found.append(self._logs(views(self._flat, self._shapes), [sound])[0][:, 0].double().numpy())
        return found

    def hear(
        self, sounds: Sequence[Floats], *, width: int = 0, model: NextToken[Any] | None = None, weight: float = 1.0
    ) -> list[list[int]]:
        """What is said: the likeliest symbol of each frame, or, with a width, by a beam of that many texts."""
        if not width:
            return [greedy(logs, blank=self.blank) for logs in self.logs(sounds)]
        found = []
        for logs in self.logs(sounds):
            best = prefix_search(logs, blank=self.blank, width=width, model=model, weight=weight)[0]
            found.append(list(best.ids))
        return found

    def _check(self, sounds: Sequence[Floats]) -> None:
        for place, sound in enumerate(sounds):
            if sound.ndim != 2 or sound.shape[1] != self.bands or not len(sound):
                raise InputError(f"sound {place} is {sound.shape}: expected frames of {self.bands} bands")

    def _logs(
        self, weights: Any, sounds: Sequence[Floats], generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """(T, B, V + 1) and how many frames each sound has."""
        lengths = longs([len(each) for each in sounds], CPU)
        x = beside(sounds, CPU)
        back = reversing(lengths, len(x))
        zero = x.new_zeros(len(sounds), self.units)
        for layer in range(self.layers):
            ahead, behind = ([weights[f"layer{layer}.{way}.{part}"] for part in PARTS] for way in ("ahead", "behind"))
            x = torch.cat(
                (lstm(x, zero, zero, ahead)[0], turned(lstm(turned(x, back), zero, zero, behind)[0], back)), 2
            )
            if generator is not None and self.dropout:
                x = x * locked_mask(len(sounds), x.shape[2], self.dropout, x, generator)
        return log_softmax(linear(x, weights["output"], weights["bias"]), 2), lengths


def error_rate(said: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]]) -> float:
    """Symbols that must be put in, taken out or exchanged, per symbol that was said."""
    return sum(map(_distance, said, wanted)) / max(1, sum(map(len, wanted)))


def _distance(one: Sequence[int], other: Sequence[int]) -> int:
    row = list(range(len(other) + 1))
    for place, symbol in enumerate(one, 1):
        before, row = row, [place]
        for column, wanted in enumerate(other, 1):
            row.append(min(row[-1] + 1, before[column] + 1, before[column - 1] + (symbol != wanted)))
    return row[-1]
