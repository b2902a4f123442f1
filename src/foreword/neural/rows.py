"""Reading many rows of text with one set of weights: losses at several temperatures, with dropout or without.

On a GPU a chunk of all rows is one CUDA graph, in half precision, so that a pass over the held-out text takes a tenth
of a second. Two uses: choosing weights and the softmax's temperature on held-out text during training, and Monte Carlo
dropout, where every row is a sample of the same text with masks of its own,

    p(w_(t+1) | w_≤t) ≈ 1/S Σ_s p(w_(t+1) | w_≤t, masks_s),

which is what a network trained with dropout was trained to be, and better than dropping nothing (Y. Gal and
Z. Ghahramani, "A theoretically grounded application of dropout in recurrent neural networks", 2016; G. Melis,
T. Kočiský and P. Blunsom, "Mogrifier LSTM", 2020).

Shapes: n words to predict, R rows, K temperatures, T words of a chunk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from foreword.arrays import Ids
from foreword.checks import check_number
from foreword.errors import SettingError
from foreword.nn.dropout import Dropout
from foreword.nn.mixture import tempered_mixture_losses
from foreword.nn.network import BIAS, Network, mixed, mixture_of, output_weight
from foreword.nn.recurrent_network import RecurrentNetwork, latent_mask
from foreword.nn.softmax import tempered_losses
from foreword.protocols import Meter
from foreword.tokens.corpus import Corpus
from foreword.training.gradients import new_flat, views
from foreword.training.graphs import Graphed
from foreword.training.model import gpu_memory

if TYPE_CHECKING:
    from foreword.neural.model import NeuralLM

TEMPERATURES = tuple(round(1 + 0.02 * step, 2) for step in range(-2, 14))
"""Temperatures that are tried on held-out text: 0.96, 0.98, … 1.26."""

ROWS, CHUNK, CONTEXT = 64, 70, 140
"""Rows of a pass, words that they read at a time, and words that a row reads before its own in a held-out text."""


class RowReader:
    """Reads rows of text. dropout: masks are drawn for each row and chunk; None for none.

    ``use`` sets the weights. precision: of products, "float32" or on a GPU "float16" or "bfloat16".
    """

    def __init__(
        self,
        network: Network,
        device: torch.device,
        *,
        rows: int = ROWS,
        temperatures: Sequence[float] = (1.0,),
        precision: str = "float32",
        dropout: Dropout | None = None,
        seed: int = 0,
    ) -> None:
        self.network, self.device, self.dropout = network, device, dropout
        self.shapes = network.tensors()
        self._flat = new_flat(self.shapes, device, getattr(torch, precision))
        self._weights = views(self._flat, self.shapes)
        self.temperatures = torch.tensor(temperatures, dtype=torch.float32, device=device)
        self._ids = torch.zeros(CHUNK + 1, rows, dtype=torch.int64, device=device)
        self._length = CHUNK  # words of a chunk; on a GPU a graph has one shape, and what stands behind the end is read
        self._state = tuple(part.clone() for part in network.start(rows, self._flat))
        self._losses = torch.zeros(len(temperatures), CHUNK * rows, device=device)
        self._generator = torch.Generator(device).manual_seed(seed)
        self._step = self._chunk if device.type == "cpu" else Graphed(self._chunk, self._generator)

    def use(self, flat: Tensor) -> None:
        """Read with these weights from now on."""
        self._flat.copy_(flat)

    @torch.no_grad()
    def losses(self, ids: Tensor) -> Tensor:
        """Read (n + 1, R) words from an empty state; return (K, n, R) minus the logs of all but the first."""
        found = torch.empty(len(self.temperatures), len(ids) - 1, ids.shape[1], device=self.device)
        for begin, losses in self.chunks(ids):
            found[:, begin : begin + CHUNK] = losses
        return found

    def chunks(self, ids: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Read as ``losses`` does; yield the index of each chunk's first word and (K, T, R), valid until the next."""
        rows = ids.shape[1]
        for part in self._state:
            part.zero_()
        for begin in range(0, len(ids) - 1, CHUNK):
            here = ids[begin : begin + CHUNK + 1]
            count = len(here) - 1
            self._ids[: count + 1].copy_(here)
            self._length = count if self.device.type == "cpu" else CHUNK
            self._step()
            yield begin, self._losses.view(-1, CHUNK, rows)[:, :count]

    @torch.no_grad()
    def _chunk(self) -> None:
        weights, network, length = self._weights, self.network, self._length
        inputs, targets = self._ids[:length], self._ids[1 : length + 1].reshape(-1)
        masks = None
        if self.dropout is not None and isinstance(network, RecurrentNetwork):
            masks = network.masks(
                self.dropout, inputs.shape[1], self._flat[:0], self._generator, steps=length, per_text=True
            )
        hidden, state = network.read(weights, inputs, self._state, masks)
        hidden = hidden if masks is None else hidden * masks.output
        layer, flat = (output_weight(weights), weights[BIAS], targets, self.temperatures), hidden.flatten(0, 1)
        if mixed(weights):
            each = None if masks is None else latent_mask(masks, length)
            losses = tempered_mixture_losses(*mixture_of(weights, flat, each), *layer)
        else:
            losses = tempered_losses(flat, *layer)
        self._losses[:, : len(targets)].copy_(losses)
        for kept, new in zip(self._state, state, strict=True):
            kept.copy_(new)


class TemperedScore:
    """Scores weights on a held-out text at their best temperature.

    The text is read in rows, each of which begins with some words of context that do not count.
    """

    def __init__(self, network: Network, valid: Corpus, device: torch.device, precision: str) -> None:
        ids = torch.from_numpy(np.asarray(valid.ids, np.int64)).to(device)
        rows = max(1, min(ROWS, len(ids) // CONTEXT))
        length = -(-len(ids) // rows)
        steps = torch.arange(-CONTEXT, length, device=device)[:, None]
        at = steps + torch.arange(rows, device=device) * length  # of the words to predict
        self._counts = (steps >= 0) & (at < len(ids))
        inputs = torch.cat((at - 1, at[-1:])).clamp(-1, len(ids) - 1)  # before the first word stands the last, an end
        self._words = ids[inputs]
        self._reader = RowReader(network, device, rows=rows, temperatures=TEMPERATURES, precision=precision)
        self._found: dict[float, float] = {}

    def score(self, weights: Tensor) -> float:
        """Return the mean log-probability of a word at the best temperature."""
        self._reader.use(weights)
        losses = self._reader.losses(self._words)
        means = ((losses * self._counts).sum((1, 2), dtype=torch.float64) / self._counts.sum()).tolist()
        best = min(range(len(means)), key=means.__getitem__)
        self._found[-means[best]] = TEMPERATURES[best]
        return -means[best] if math.isfinite(means[best]) else -math.inf

    def temperature(self, weights: Tensor, score: float) -> float:
        """Return the temperature that gave these weights their score."""
        if score not in self._found:  # they come from a checkpoint
            score = self.score(weights)
        return self._found.get(score, 1.0)


SCALE = 0.7
"""Factor of the dropout rates where no held-out text chooses it: Penn Treebank and WikiText-2 chose 0.6 or 0.75."""


class DropoutSamples:
    """Networks with dropout that read the same document: its words' probabilities are the mean over them.

    samples: how many networks; they are rows of a batch, 64 at most at a time. scale: factor of the dropout rates with
    which the model was trained. temperatures: None for the model's own. On a GPU products are in float16. DropConnect
    masks are left out, since the rows of a batch share their weights.
    """

    def __init__(
        self, model: NeuralLM, *, samples: int, scale: float, temperatures: Sequence[float] | None, seed: int
    ) -> None:
        check_number("samples", samples, whole=True, least=1)
        check_number("scale", scale)
        network = check_samples(model)
        self._passes = -(-samples // ROWS)
        self._rows, self._samples = -(-samples // self._passes), samples
        self._end = model.vocab.end
        flat = model.flat_weights()
        with self._memory():
            self._reader = RowReader(
                network,
                flat.device,
                rows=self._rows,
                temperatures=(model.temperature_,) if temperatures is None else temperatures,
                precision="float32" if flat.device.type == "cpu" else "float16",
                dropout=model.dropout.scaled(scale),
                seed=seed,
            )
            self._reader.use(flat)

    def losses(self, ids: Ids, meter: Meter | None = None) -> Tensor:
        """Read a document from an empty state; return (K, n): minus the log of each word's mean probability."""
        device, kinds = self._reader.device, len(self._reader.temperatures)
        words = torch.from_numpy(np.append(self._end, np.asarray(ids, np.int64))).to(device)
        total = torch.zeros(kinds, len(ids), dtype=torch.float64, device=device)
        with self._memory(), torch.no_grad():
            for number in range(self._passes):
                counted = min(self._rows, self._samples - number * self._rows)  # the last pass may need fewer rows
                for begin, losses in self._reader.chunks(words[:, None].expand(-1, self._rows)):
                    total[:, begin : begin + CHUNK] += torch.exp(-losses[..., :counted]).double().sum(2)
                    if meter is not None:
                        meter("sampling networks", number * len(ids) + begin, self._passes * len(ids))
        return -torch.log(total / self._samples)

    def _memory(self) -> AbstractContextManager[None]:
        """Say which setting to lower where the GPU's memory does not suffice."""
        return gpu_memory("Monte Carlo dropout", f"fewer samples than {self._rows} or a smaller model")


def check_samples(model: NeuralLM) -> RecurrentNetwork:
    """Return the network of a model of which dropout samples can be drawn; refuse others."""
    network = model.network(model.vocab)
    name = type(model).__name__
    if not isinstance(network, RecurrentNetwork):
        raise SettingError(f"Monte Carlo dropout is for recurrent language models, not for a {name}")
    rates = model.dropout
    if not (rates.words or rates.input or rates.between or rates.output or rates.state):
        raise SettingError(f"this {name} was trained without dropout of words or units: there is nothing to sample")
    return network


def monte_carlo_losses(
    model: NeuralLM,
    ids: Ids,
    *,
    samples: int = 192,
    scale: float = SCALE,
    temperatures: Sequence[float] | None = None,
    seed: int = 0,
) -> Tensor:
    """Return (K, n): minus the log of each word's probability, the mean over ``samples`` networks with dropout.

    The document is read from its first word to its last, the state carried. temperatures: None for the model's own.
    """
    return DropoutSamples(model, samples=samples, scale=scale, temperatures=temperatures, seed=seed).losses(ids)
