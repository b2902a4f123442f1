"""How a neural language model reads a text in training, and its loss.

The text is read at B positions at once, T words at a time, and cut at other words in each epoch. With Training's
``vary`` chunks have varying lengths (S. Merity, N. Keskar and R. Socher, "Regularizing and optimizing LSTM language
models", 2018). What the network remembers is carried from chunk to chunk, and no gradient flows through it.
Shapes: N tokens, B rows of the text, L words in each, T words of a chunk, V words of the vocabulary.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from foreword.arrays import Longs
from foreword.errors import SettingError
from foreword.neural.rows import TemperedScore
from foreword.nn.dropout import Dropout
from foreword.nn.mixture import mixture_cross_entropy
from foreword.nn.network import (
    BIAS,
    EMBEDDING,
    OUTPUT,
    Network,
    State,
    Weights,
    mixed,
    mixture_of,
    output_weight,
    word_logs,
)
from foreword.nn.recurrent_network import RecurrentNetwork, latent_mask
from foreword.nn.sampled import Noise, sampled_cross_entropy, unigram
from foreword.nn.softmax import linear_cross_entropy, takes_gradient_buffer
from foreword.tokens.corpus import Corpus
from foreword.training.engine import Trainer
from foreword.training.gradients import views
from foreword.training.settings import Training
from foreword.training.task import Loss, Task
from foreword.training.workers import WorkerGroup

SHORTEST = 5
"""Words in a chunk of varying length, at least."""

HELD_OUT_ROWS, HELD_OUT_WORDS, HELD_OUT_CHUNK = 32, 100, 8192
"""Rows in which the held-out text is read during training, at most, words in each, at least, and words read at a time;
the final scores read it from end to end."""

NOISE_POWER = 0.75
"""Words of a sampled softmax are drawn by their frequencies to this power, as in word2vec."""


class UnknownWords:
    """Words seen once, of which a share is read as ``<unk>`` in each epoch.

    positions: their indices in the text. id: that of ``<unk>``.
    """

    def __init__(self, positions: Longs, id: int, share: float) -> None:
        self.positions, self.id, self.share = positions, id, share

    @classmethod
    def of(cls, corpus: Corpus, share: float) -> UnknownWords | None:
        """Return the words seen once in a corpus; None where ``<unk>`` is learnt from the text itself."""
        unknown, ids = corpus.vocab.unknown, np.asarray(corpus.ids)
        counts = np.bincount(ids, minlength=len(corpus.vocab))
        if not share or unknown is None or counts[unknown]:
            return None
        positions = np.flatnonzero((counts == 1)[ids] & (ids != corpus.vocab.end))
        return cls(positions, unknown, share) if len(positions) else None

    def replaced(self, ids: Tensor, random: np.random.Generator) -> Tensor:
        """Return the text with the words that are unknown in this epoch."""
        chosen = self.positions[random.random(len(self.positions)) < self.share]
        return ids.index_fill(0, torch.from_numpy(chosen).to(ids.device), self.id)


class TextRing:
    """A text as B rows of L words. The text is a ring: what comes before its first word is its last, an end.

    In each epoch the ring is cut at another word, and each row begins at another of its words, so that no two epochs
    have the same boundaries. Given ``offsets``, where documents begin and end, each epoch has them in another order.
    vary: chunks of about ``steps`` words. share: the rank of this worker, which reads its share of the rows, and the
    number of workers. unknown: words that are read as another id, drawn again in each epoch.
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
        unknown: UnknownWords | None = None,
    ) -> None:
        self.ids, self.unknown = ids, unknown
        self.offsets = offsets if offsets is not None and len(offsets) > 2 else None
        self.vary = vary
        self.all_rows = min(batch, len(ids))
        worker, workers = share
        if self.all_rows % workers:
            raise SettingError(f"a batch of {self.all_rows} cannot be shared by {workers} workers: expected a multiple")
        self.rows = self.all_rows // workers
        self.own = slice(worker * self.rows, (worker + 1) * self.rows)
        self.length = len(ids) // self.all_rows
        self.chunk = min(steps, self.length)
        self.steps = self.length // self.chunk
        self.words = self.length if vary else self.steps * self.chunk
        self.tokens = self.words * self.all_rows

    def epoch(self, random: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Return inputs and targets, each (L, B) or a worker's columns; an input is the word before its target."""
        device = self.ids.device
        first = int(random.integers(len(self.ids)))
        begins = torch.from_numpy(random.integers(self.length, size=self.all_rows)[self.own]).to(device)
        within = (torch.arange(self.length, device=device)[:, None] + begins) % self.length
        rows = torch.arange(self.all_rows, device=device)[self.own]
        positions = (first + rows * self.length + within) % len(self.ids)
        ids = self.ids if self.unknown is None else self.unknown.replaced(self.ids, random)
        ids = ids if self.offsets is None else ids[_shuffled(self.offsets, random).to(device)]
        return ids[positions - 1], ids[positions]

    def chunks(self, random: np.random.Generator) -> list[int]:
        """Return how many words each update of an epoch reads."""
        if not self.vary:
            return [self.chunk] * self.steps
        lengths: list[int] = []
        left = self.length
        while left:
            usual = self.chunk if random.random() < 0.95 else self.chunk / 2
            lengths.append(min(left, max(SHORTEST, int(random.normal(usual, 5)))))
            left -= lengths[-1]
        return lengths


def _shuffled(offsets: Longs, random: np.random.Generator) -> Tensor:
    """Return (N,) indices of the tokens with the documents in another order."""
    order = random.permutation(len(offsets) - 1)
    lengths = np.diff(offsets)[order]
    moved = offsets[:-1][order] - (np.cumsum(lengths) - lengths)
    return torch.from_numpy(np.repeat(moved, lengths) + np.arange(offsets[-1]))


class LanguageModelTask(Task):
    """The next word at every position of a text.

    counted_bias: whether the biases of words begin as the logs of their frequencies.
    """

    reseeded: ClassVar[bool] = True
    sparse: ClassVar[bool] = True
    blocked_norm: ClassVar[bool] = True
    limit: ClassVar[float] = 1000.0  # nats per word
    network: Network

    def __init__(
        self,
        network: Network,
        corpus: Corpus,
        valid: Corpus | None,
        training: Training,
        dropout: Dropout,
        *,
        counted_bias: bool = True,
    ) -> None:
        self.network, self.corpus, self.valid = network, corpus, valid
        self.training, self.dropout, self.counted_bias = training, dropout, counted_bias
        self.tempered: TemperedScore | None = None

    def check_workers(self, workers: int) -> None:
        """Refuse a number of workers that does not divide the batch."""
        if min(self.training.batch, len(self.corpus.ids)) % workers:
            batch = self.training.batch
            raise SettingError(f"batch={batch} cannot be shared by {workers} workers: expected a multiple")

    def bind(self, device: torch.device, group: WorkerGroup) -> None:
        """Move the text to the device."""
        training, vocab = self.training, len(self.corpus.vocab)
        ids = torch.from_numpy(np.asarray(self.corpus.ids, np.int64)).to(device)
        offsets = np.asarray(self.corpus.offsets) if training.shuffle else None
        share = group.rank, group.size
        unknown = UnknownWords.of(self.corpus, training.unknown)
        self.reading = TextRing(
            ids, training.batch, training.steps, offsets=offsets, vary=training.vary, share=share, unknown=unknown
        )
        self.inputs = torch.zeros(self.reading.length, self.reading.rows, dtype=torch.int64, device=device)
        self.targets = torch.zeros_like(self.inputs)
        self._position = torch.zeros((), dtype=torch.int64, device=device)
        self._window = torch.arange(self.reading.chunk, device=device)
        self._chunks: list[int] = []
        self._low = getattr(torch, training.precision_on(device.type))
        self._like = torch.empty(0, device=device, dtype=torch.float32 if device.type == "cpu" else self._low)
        self._noise: Noise | None = None
        if 0 < training.sampled < vocab and device.type == "cpu":
            self._noise = unigram(torch.bincount(ids, minlength=vocab), NOISE_POWER)
        if self.valid is not None and training.tempered:
            self.tempered = TemperedScore(self.network, self.valid, device, training.precision_on(device.type))
            self.evaluate = self.tempered.score
        elif self.valid is not None:
            self._held_out = _held_out(self.valid, device)
            self.evaluate = self._held_out_score

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Draw the network's weights."""
        self.network.initialise(weights, generator)
        if self.counted_bias:
            size = len(self.corpus.vocab)
            counts = np.bincount(self.corpus.ids, minlength=size) + 1.0  # one more: some words may not occur
            if (unknown := self.reading.unknown) is not None:
                counts[unknown.id] += unknown.share * len(unknown.positions)
                counts[self.corpus.ids[unknown.positions]] -= unknown.share
            weights[BIAS].copy_(torch.from_numpy(np.log(counts / counts.sum()).astype(np.float32)))

    def state(self, like: Tensor) -> State:
        """Return the state of rows of which nothing has been read."""
        return self.network.start(self.reading.rows, like)

    def begin_epoch(self, random: np.random.Generator) -> list[int]:
        """Cut the text at other words."""
        inputs, targets = self.reading.epoch(random)
        self.inputs.copy_(inputs)
        self.targets.copy_(targets)
        self._chunks = self.reading.chunks(random)
        self._position.zero_()
        return [length * self.reading.all_rows for length in self._chunks]

    def seek(self, update: int) -> None:
        """Seek to the chunk of an update."""
        self._position.fill_(sum(self._chunks[:update]))

    def rate_factor(self, update: int) -> float:
        """Scale the rate with the length of a chunk."""
        return self._chunks[update] / self.reading.chunk if self.reading.vary else 1.0

    def updates_per_step(self, device: torch.device) -> int | None:
        """Go by the clock: updates are short."""
        return None

    def recordable(self) -> bool:
        """Return whether all chunks have one length."""
        return not self.reading.vary

    def loss(self, weights: Weights, run: Trainer) -> Loss:
        """Return the mean loss of a chunk and its penalties."""
        length = self._chunks[run.update]
        if length != len(self._window):
            self._window = torch.arange(length, device=run.device)
        rows = self._position + self._window
        self._position += length
        x, y = self.inputs.index_select(0, rows), self.targets.index_select(0, rows).flatten()
        masks = self._masks(x, run.generator)
        raw, state = self.network.read(weights, x, self._forgetful(run.state, run.generator), masks)
        dropped = raw * masks.output
        nats = self._word_loss(weights, dropped, y, masks, run)
        return Loss(nats + run.scale * self._penalty(raw, dropped), nats.detach() / run.scale, state)

    def _masks(self, x: Tensor, generator: torch.Generator) -> Any:
        if self.dropout.fresh and isinstance(self.network, RecurrentNetwork):
            return self.network.masks(self.dropout, x.shape[1], self._like, generator, steps=len(x))
        return self.network.masks(self.dropout, x.shape[1], self._like, generator)

    def _forgetful(self, state: State, generator: torch.Generator) -> State:
        """Return the state with some texts' set to zero, so that the network learns to begin from nothing."""
        if not self.training.reset:
            return state
        keeps = torch.rand(len(state[0]), 1, device=state[0].device, generator=generator) >= self.training.reset
        return tuple(part * keeps for part in state)

    def _word_loss(self, weights: Weights, dropped: Tensor, y: Tensor, masks: Any, run: Trainer) -> Tensor:
        low = self._low
        layer = (dropped.flatten(0, 1).to(low), output_weight(weights).to(low), weights[BIAS].to(low))
        if mixed(weights):
            z, log_shares = mixture_of(weights, dropped.flatten(0, 1), latent_mask(masks, len(dropped)))
            return mixture_cross_entropy(z.to(low), log_shares, *layer[1:], y, scale=run.scale)
        if self._noise is not None:
            drawn, generator = self.training.sampled, run.generator
            return sampled_cross_entropy(*layer, y, self._noise, drawn, generator=generator, sparse=True)
        buffer = (
            run.gradient_buffer(OUTPUT if OUTPUT in weights else EMBEDDING) if takes_gradient_buffer(*layer) else None
        )
        return linear_cross_entropy(*layer, y, scale=run.scale, weight_gradient=buffer)

    def _penalty(self, raw: Tensor, dropped: Tensor) -> Tensor:
        """Return the activation regularisation: of large values, and of changes from one step to the next."""
        penalty = torch.zeros((), device=raw.device)
        if self.training.activation:
            penalty = self.training.activation * dropped.float().square().mean()
        if self.training.change and len(raw) > 1:
            penalty = penalty + self.training.change * (raw[1:] - raw[:-1]).float().square().mean()
        return penalty

    def _held_out_score(self, weights: Tensor) -> float:
        """Return the mean log-probability of a held-out word."""
        return _rows_score(views(weights, self.tensors()), self.network, *self._held_out)


def _held_out(valid: Corpus, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return inputs and targets in a few rows, (L, rows): quick to read, and close enough to choose by."""
    ids = torch.from_numpy(np.asarray(valid.ids, np.int64)).to(device)
    rows = max(1, min(HELD_OUT_ROWS, len(ids) // HELD_OUT_WORDS))
    length = len(ids) // rows
    positions = torch.arange(length, device=device)[:, None] + torch.arange(rows, device=device) * length
    return ids[positions - 1], ids[positions]


@torch.inference_mode()
def _rows_score(weights: Weights, network: Network, inputs: Tensor, targets: Tensor) -> float:
    state = network.start(inputs.shape[1], weights[BIAS])
    total = torch.zeros((), dtype=torch.float64, device=inputs.device)
    chunk = max(1, HELD_OUT_CHUNK // inputs.shape[1])
    for begin in range(0, len(inputs), chunk):
        hidden, state = network.read(weights, inputs[begin : begin + chunk], state)
        total += word_logs(weights, hidden, targets[begin : begin + chunk]).sum(dtype=torch.float64)
    return total.item() / targets.numel()
