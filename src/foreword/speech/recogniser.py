"""Speech to symbols: a bidirectional LSTM over frames, and CTC, which finds the alignment of symbols and frames.

    p_t = softmax(W [LSTM→(x)_t; LSTM←(x)_t] + b),    loss: ``nn/ctc.py``,    search: ``speech/search.py``

A. Graves, A. Mohamed and G. Hinton, "Speech recognition with deep recurrent neural networks" (2013).
The network reads ``stack`` neighbouring frames at a time, which costs no information and divides the work.
Shapes: T steps, each of ``stack`` frames, B recordings, M bands, V symbols and the blank after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from foreword.errors import InputError, MissingExtraError

try:
    import torch
    from torch import Tensor
    from torch.nn.functional import linear, log_softmax, pad
except ImportError:
    raise MissingExtraError("torch", "neural", "a speech recogniser") from None

from foreword.arrays import Array, Doubles, Floats
from foreword.checks import check_numbers
from foreword.nn.ctc import ctc_loss
from foreword.nn.dropout import NO_DROPOUT, Dropout, locked_mask
from foreword.nn.layers import lstm, reversing, turned
from foreword.nn.network import Weights
from foreword.nn.weights import PARTS
from foreword.protocols import Json, NextToken, Parts
from foreword.speech.features import augmented
from foreword.speech.search import greedy, prefix_search
from foreword.training.batches import bucketed, longs, padded_ids, padded_vectors
from foreword.training.engine import Trainer
from foreword.training.gradients import Shapes, new_flat
from foreword.training.model import NeuralModel, exact
from foreword.training.settings import Training, TrainingSettings, dropout_of, options_from, saved_settings, settings_of
from foreword.training.task import BatchTask, Loss

SIZES = ("bands", "units", "layers", "stack")
OPTIONS: dict[str, Any] = {"augment": True, "stack": 2}
TRAINED = ("epochs", "batch", "rate", "clip")

Recordings = tuple[Sequence[Floats], Sequence[Sequence[int]]]
"""Frames (length, M) of each recording, and the symbols said in it."""


class RecogniserOptions(TrainingSettings, total=False):
    """Options of ``Recogniser``, and training settings that may be given by name."""

    augment: bool
    stack: int


class Recogniser(NeuralModel[Recordings]):
    """A speech recogniser: frames in, symbols out.

    symbols: size of the vocabulary; None to set it before training, by ``set_symbols``. bands: mel bands per frame.
    units: LSTM units per direction. dropout: dropout rate of each layer's outputs. training: its ``batch`` is in
    recordings; fields may also be given by name, as in ``epochs=6``. device: "cpu" or "cuda"; None for the GPU, where
    there is one. augment: augment the recordings in training, differently each time. stack: number of consecutive
    frames read at each step.
    """

    TRAINING: ClassVar[Training] = Training(
        epochs=24, batch=16, optimiser="adam", rate=4e-3, hold=0.5, last_rate=0.05, clip=1.0, weight_decay=0.0,
        averages=(),
    )  # fmt: skip
    DROPOUT: ClassVar[Dropout] = Dropout(words=0.0, input=0.0, between=0.2, output=0.2, recurrent=0.0)
    PLACES: ClassVar[tuple[str, ...]] = ("between", "output")
    DROPOUT_PLACES = PLACES
    NEEDS: ClassVar[str] = "(sounds, labels)"

    def __init__(
        self,
        symbols: int | None = None,
        *,
        bands: int = 26,
        units: int = 96,
        layers: int = 1,
        dropout: Dropout | float | None = None,
        training: Training | None = None,
        seed: int = 0,
        device: str | None = "cpu",
        **settings: Unpack[RecogniserOptions],
    ) -> None:
        options = options_from(OPTIONS, settings, *TrainingSettings.__annotations__)
        self.augment: bool = options["augment"]
        self.stack: int = options["stack"]
        super().__init__(training, dropout, seed, device, settings)
        self.symbols, self.bands, self.units, self.layers = 0, bands, units, layers
        check_numbers(self, *SIZES, whole=True, least=1)
        if symbols is not None:
            self.set_symbols(symbols)

    def set_symbols(self, symbols: int) -> None:
        """Set the size of the vocabulary and draw the weights."""
        self.symbols = symbols
        check_numbers(self, "symbols", whole=True, least=1)
        self._flat = new_flat(self.shapes(), self.torch_device())
        generator = torch.Generator(self._flat.device).manual_seed(self.seed)
        for name, part in self.weights_.items():
            reach = self.units**-0.5 if part.dim() > 1 else 0.0
            part.uniform_(-reach, reach, generator=generator)
            if name.endswith("input_bias"):
                part[self.units : 2 * self.units] = 1.0

    @property
    def blank(self) -> int:
        """The id of CTC's blank, after all symbols."""
        return self.symbols

    def step_count(self, sound: Floats) -> int:
        """Return the number of steps in which a recording is read."""
        return -(-len(sound) // self.stack)

    def shapes(self) -> Shapes:
        """Return the names and shapes of the weights."""
        shapes: dict[str, tuple[int, ...]] = {}
        for layer in range(self.layers):
            read = 2 * self.units if layer else self.stack * self.bands
            sizes = [(4 * self.units, read), (4 * self.units, self.units), (4 * self.units,), (4 * self.units,)]
            for way in ("ahead", "behind"):
                shapes |= {f"layer{layer}.{way}.{part}": size for part, size in zip(PARTS, sizes, strict=True)}
        return {**shapes, "output": (self.symbols + 1, 2 * self.units), "bias": (self.symbols + 1,)}

    def settings(self) -> dict[str, Json]:
        """Return all settings but the device."""
        found: dict[str, Json] = {name: getattr(self, name) for name in ("symbols", *SIZES, "augment", "seed")}
        found["dropout"] = dropout_of(self.dropout, self.PLACES)
        return found | settings_of(self.training, self.TRAINING, TRAINED)

    # Learning

    def task(self, data: Recordings, valid: Recordings | None) -> RecogniserTask:
        """Check the recordings and begin a run from the present weights."""
        for sounds, labels in (data,) if valid is None else (data, valid):
            if len(sounds) != len(labels) or not len(sounds):
                raise InputError(
                    f"{len(sounds)} sounds and {len(labels)} texts: expected a text for each, and at least one"
                )
            self._check(sounds)
            for index, (sound, text) in enumerate(zip(sounds, labels, strict=True)):
                needed = len(text) + sum(one == other for one, other in pairwise(text))
                if self.step_count(sound) < needed:
                    raise InputError(
                        f"sound {index} has {self.step_count(sound)} steps of {self.stack} frames: its text needs "
                        f"{needed} or more, as with a lower stack"
                    )
        if not self.symbols:
            self.set_symbols(1 + max((max(labels, default=0) for labels in data[1]), default=0))
        task = RecogniserTask(self, *data)
        if valid is not None:
            task.evaluate = self.evaluator(lambda: self.log_likelihood(*valid))
        return task

    def fingerprinted(self, data: Recordings) -> list[Array]:
        """Return the frames and symbols."""
        return [*data[0], *(np.asarray(labels, np.int64) for labels in data[1])]

    # Recognising

    def logs(self, sounds: Sequence[Floats]) -> list[Doubles]:
        """Return (steps, V + 1) for each recording: log-probabilities of symbols at every step, the blank last."""
        self._check(sounds)
        found = []
        for sound in sounds:
            with exact():
                found.append(self.frame_logs(self.weights_, [sound])[0][:, 0].double().cpu().numpy())
        return found

    def log_likelihood(self, sounds: Sequence[Floats], labels: Sequence[Sequence[int]]) -> float:
        """Return the mean log-probability of the texts per symbol, which tells epochs apart that err equally often."""
        total = 0.0
        for logs, text in zip(self.logs(sounds), labels, strict=True):
            steps, size = torch.tensor([len(logs)]), torch.tensor([len(text)])
            wanted = torch.tensor([[*text]], dtype=torch.int64)
            loss = ctc_loss(torch.from_numpy(logs).float()[:, None], wanted, steps, size, blank=self.blank)
            total -= float(loss) / max(1, len(text))
        return total / len(sounds)

    def hear(
        self, sounds: Sequence[Floats], *, width: int = 0, model: NextToken[Any] | None = None, weight: float = 1.0
    ) -> list[list[int]]:
        """Return the symbols said: the likeliest of each frame, or, with a width, by a beam of that many texts."""
        if not width:
            return [greedy(logs, blank=self.blank) for logs in self.logs(sounds)]
        found = []
        for logs in self.logs(sounds):
            best = prefix_search(logs, blank=self.blank, width=width, model=model, weight=weight)[0]
            found.append(list(best.ids))
        return found

    # Saving

    def to_parts(self) -> Parts:
        """Return settings and weights to be saved."""
        return Parts(self.settings(), dict(self.weight_arrays()))

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a recogniser from saved parts, all of them checked."""
        parts.check_counts("layers")
        parts.check_flags("augment")
        settings = saved_settings(parts.settings)
        symbols = settings.pop("symbols")
        model = cls(**settings)
        model.symbols = symbols
        check_numbers(model, "symbols", whole=True, least=1)
        model.load_weights(model.shapes(), parts.arrays)
        return model

    def _check(self, sounds: Sequence[Floats]) -> None:
        for index, sound in enumerate(sounds):
            if sound.ndim != 2 or sound.shape[1] != self.bands or not len(sound):
                raise InputError(f"sound {index} is {sound.shape}: expected frames of {self.bands} bands")

    def frame_logs(
        self,
        weights: Weights,
        sounds: Sequence[Floats],
        dropout: Dropout = NO_DROPOUT,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return log-probabilities (T, B, V + 1) of a batch, and the number of steps of each recording."""
        device = weights["bias"].device
        lengths = longs([self.step_count(each) for each in sounds], device)
        x = padded_vectors(sounds, device)
        if self.stack > 1:
            x = pad(x, (0, 0, 0, 0, 0, -len(x) % self.stack))
            x = x.view(-1, self.stack, *x.shape[1:]).transpose(1, 2).flatten(2)
        back = reversing(lengths, len(x))
        zero = x.new_zeros(len(sounds), self.units)
        for layer in range(self.layers):
            ahead, behind = ([weights[f"layer{layer}.{way}.{part}"] for part in PARTS] for way in ("ahead", "behind"))
            x = torch.cat(
                (lstm(x, zero, zero, ahead)[0], turned(lstm(turned(x, back), zero, zero, behind)[0], back)), 2
            )
            share = dropout.between if layer < self.layers - 1 else dropout.output
            if share:
                x = x * locked_mask(len(sounds), x.shape[2], share, x, generator)
        return log_softmax(linear(x, weights["output"], weights["bias"]), 2), lengths


class RecogniserTask(BatchTask):
    """The symbols said in each recording, wherever they lie in it."""

    def __init__(self, model: Recogniser, sounds: Sequence[Floats], labels: Sequence[Sequence[int]]) -> None:
        super().__init__([1] * len(sounds), model.training.batch)
        self.model, self.sounds, self.labels = model, sounds, labels

    def tensors(self) -> Shapes:
        """Return the model's weights."""
        return self.model.shapes()

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Copy the model's present weights."""
        for name, part in self.model.weights_.items():
            weights[name].copy_(part)

    def batches(self, random: np.random.Generator) -> list[list[int]]:
        """Draw batches of recordings of similar length, and the seed of the epoch's distortions."""
        self.seed = int(random.integers(1 << 31)) if self.model.augment else 0
        return bucketed([len(each) for each in self.sounds], self.batch, random)

    def batch_loss(self, weights: Weights, examples: list[int], run: Trainer) -> Loss:
        """Return the mean loss of a recording, each divided by the number of its symbols."""
        wanted, sizes = padded_ids([np.asarray(self.labels[k], np.int64) for k in examples], self.device)
        sounds = [self.sounds[k] for k in examples]
        if self.model.augment:
            sounds = [augmented(self.sounds[k], np.random.default_rng((self.seed, k))) for k in examples]
        logs, frames = self.model.frame_logs(weights, sounds, self.model.dropout, run.generator)
        losses = ctc_loss(logs, wanted.t(), frames, sizes, blank=self.model.blank)
        losses = losses.where(losses.isfinite(), 0)  # a distorted recording may be too short for its text
        return Loss((losses / sizes.clamp(min=1)).mean() * run.scale)
