"""The loss of a translator: teacher forcing, scheduled sampling and label smoothing.

In training the decoder reads the true word before each (teacher forcing; R. Williams and D. Zipser, 1989). Scheduled
sampling (S. Bengio et al., 2015) now and then lets it read its own: a word at a time with feeding; without, the
decoder's answers to the truth stand in for its own, so that all steps still go at once (D. Duckworth et al., "Parallel
scheduled sampling", 2019). With label smoothing ε (C. Szegedy et al., 2016) the loss is

    (1 − ε) · (−log p_d) + ε · mean_v (−log p_v)  =  −log p_d + ε · (logit_d − mean_v logit_v)

Shapes: B sentences, S source and T target ids, N target ids of a batch, V target words, E units of a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from foreword.arrays import Array
from foreword.nn.dropout import Dropout
from foreword.nn.softmax import linear_cross_entropy
from foreword.training.engine import WHOLE_EPOCH, Trainer
from foreword.training.schedules import exponential_truth, inverse_sigmoid_truth, linear_truth
from foreword.training.task import BatchTask, Loss, Weights
from foreword.translate.network import NOTHING_DROPPED, Drop, EncoderMemory, TranslationNetwork
from foreword.translate.pairs import PairBatch, Pairs, batch_of, bucketed, documents_of, lengths_of

SCHEDULES = ("none", "linear", "exponential", "inverse-sigmoid")


@dataclass(frozen=True, slots=True)
class TranslationObjective:
    """What is minimised.

    smoothing: label smoothing. teacher: teacher forcing; if False, the decoder reads its own predictions. sampling: how
    the probability that the decoder reads the true word decays in training. truth: that probability at the end.
    """

    smoothing: float = 0.1
    teacher: bool = True
    sampling: str = "none"
    truth: float = 0.7


class TranslationTask(BatchTask):
    """The target words of a parallel text, given the source and the target words before them."""

    reseeded: ClassVar[bool] = True
    blocked_norm: ClassVar[bool] = True
    network: TranslationNetwork

    def __init__(
        self, network: TranslationNetwork, pairs: Pairs, batch: int, dropout: Dropout, objective: TranslationObjective
    ) -> None:
        self.sources, self.targets = documents_of(pairs.sources), documents_of(pairs.targets)
        super().__init__(lengths_of(self.targets), batch)
        self.source_lengths = lengths_of(self.sources)
        self.network, self.dropout, self.objective = network, dropout, objective
        self.ends = pairs.sources.vocab.end, pairs.targets.vocab.end

    def batches(self, random: np.random.Generator) -> list[list[int]]:
        """Draw batches of about ``batch`` target ids."""
        return bucketed(self.source_lengths, self.lengths, self.batch, random)

    def batch_loss(self, weights: Weights, examples: list[int], run: Trainer) -> Loss:
        """Return the mean loss of a target id."""
        sources, targets = [self.sources[k] for k in examples], [self.targets[k] for k in examples]
        return Loss(self.loss_of(weights, batch_of(sources, targets, *self.ends).to(self.device), run))

    def loss_of(self, weights: Weights, batch: PairBatch, run: Trainer) -> Tensor:
        """Return the mean loss of a batch, times ``run.scale``."""
        network, drop, smoothing = self.network, Drop(self.dropout, run.generator), self.objective.smoothing
        memory = network.encode(weights, batch.source, batch.lengths, drop)
        readout = self._readouts(weights, batch, memory, drop, run).flatten(0, 1).index_select(0, batch.places)
        hidden, table, bias = drop.output(readout), network.table(weights), weights["bias"]
        loss = linear_cross_entropy(hidden, table, bias, batch.targets, scale=run.scale)
        if not smoothing:
            return loss
        # Of the logits only two numbers are needed: the true word's, and the mean of all.
        ahead = (hidden.float() * (table.index_select(0, batch.targets).float() - table.float().mean(0))).sum(1)
        ahead = ahead + bias.index_select(0, batch.targets).float() - bias.float().mean()
        return loss + smoothing * run.scale * ahead.mean()

    def truth(self, share: float) -> float:
        """Return the probability that the decoder reads the true word when ``share`` of the training is done."""
        objective = self.objective
        return truth_after(share, objective.sampling, objective.truth) if objective.teacher else 0.0

    def _readouts(self, weights: Weights, batch: PairBatch, memory: EncoderMemory, drop: Drop, run: Trainer) -> Tensor:
        """Return (T, B, E), read out after the true words, or in part the decoder's own."""
        network, truth = self.network, self.truth(run.share())
        if truth >= 1:
            return network.decode(weights, memory, batch.inputs, memory.state, drop).readout
        shown = torch.rand(batch.inputs.shape, generator=run.generator, device=run.device) < truth
        shown[0] = True
        if network.feed or not self.objective.teacher:

            def word(step: int, before: Tensor | None) -> Tensor:
                true = batch.inputs[step]
                return true if before is None else torch.where(shown[step], true, self._likeliest(weights, before))

            return network.decode_by_steps(weights, memory, word, len(batch.inputs), memory.state, drop).readout
        with torch.no_grad():
            first = network.decode(weights, memory, batch.inputs, memory.state, NOTHING_DROPPED).readout
            said = torch.cat((batch.inputs[:1], self._likeliest(weights, first[:-1])))
        inputs = torch.where(shown, batch.inputs, said)
        return network.decode(weights, memory, inputs, memory.state, drop).readout

    def _likeliest(self, weights: Weights, readout: Tensor) -> Tensor:
        with torch.no_grad():
            return linear(readout, self.network.table(weights), weights["bias"]).argmax(-1)

    def upgrade(self, saved: dict[str, Array], like: Mapping[str, Array]) -> dict[str, Array]:
        """Convert a checkpoint of 0.1.0, which was written after an epoch."""
        if "times" not in saved:
            return saved
        epoch, step, _ = saved["where"].tolist()
        seconds, score = saved["times"].tolist()
        losses = np.full_like(like["looks"], np.nan)
        losses[: len(saved["looks"])] = -saved["looks"]
        return {
            **saved,
            "average0": saved["average"],
            "where": np.array([epoch, WHOLE_EPOCH, step, -1], np.int64),
            "looks": losses,
            "seconds": np.array([seconds]),
            "score": np.array([score]),
            "random": like["random"],
        }


def truth_after(share: float, schedule: str, last: float) -> float:
    """Return the probability of the true word when this share of the training is done: one of the curves of
    ``schedules.py``, scaled to begin at 1 and end at ``last``.
    """
    if schedule == "none" or last >= 1:
        return 1.0
    if schedule == "linear":
        return linear_truth(round(1000 * share), first=1.0, slope=(1 - last) / 1000, least=last)
    if schedule == "exponential":
        return max(last, exponential_truth(round(1000 * share), base=max(last, 1e-3) ** (1 / 1000)))
    # k = 100 after 1,000 steps has fallen to 0.0045, from 0.99: the curve between is scaled to run from 1 to the last.
    curve = [inverse_sigmoid_truth(step, speed=100) for step in (0, round(1000 * share), 1000)]
    return last + (1 - last) * (curve[1] - curve[2]) / (curve[0] - curve[2])
