"""How a translator is trained.

In training the decoder reads the true word before each (teacher forcing; R. Williams and D. Zipser, 1989). Scheduled
sampling (S. Bengio et al., 2015) now and then lets it read its own: a word at a time with feeding; without, the
decoder's answers to the truth stand in for its own, so that all steps still go at once (D. Duckworth et al., "Parallel
scheduled sampling", 2019). With label smoothing ε (C. Szegedy et al., 2016) the loss is

    (1 − ε) · (−log p_d) + ε · mean_v (−log p_v)  =  −log p_d + ε · (logit_d − mean_v logit_v)

With a GPU products are made in half precision, and nothing waits for it but a look at the loss now and then.
Shapes: B sentences, S source and T target ids, N target ids of a batch, V target words, E units of a word.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from foreword.arrays import Array
from foreword.errors import DivergedError
from foreword.nn.softmax import linear_cross_entropy
from foreword.protocols import Step
from foreword.training.checkpoint import Checkpoint, fingerprint
from foreword.training.flat import views
from foreword.training.gradients import norm_of
from foreword.training.loop import clip_factor
from foreword.training.optimisers import Adam
from foreword.training.schedules import (
    exponential_truth,
    hold_then_cosine,
    inverse_sigmoid_truth,
    linear_truth,
    running_share,
)
from foreword.translate.network import NOTHING_DROPPED, Drop, Memory
from foreword.translate.pairs import Batch, Pairs, bucketed, documents_of, lengths_of

if TYPE_CHECKING:
    from foreword.translate.seq2seq import Seq2Seq

LOSS_SCALE = 1024.0
"""Of gradients in half precision, which would vanish without."""

TOLD_EVERY = 20
"""Batches between two looks at the loss on a GPU, where each look waits."""

WARM_UP, HOLD, LAST_RATE = 200, 0.2, 0.02
"""Batches over which the rate rises, at most a tenth of all; the share of the training for which it stays; what it
falls to, as a share.
"""

SCHEDULES = ("none", "linear", "exponential", "inverse-sigmoid")


class Run:
    """One training: weights on their way, and the best of them in the model."""

    def __init__(
        self, model: Seq2Seq, pairs: Pairs, valid: Pairs | None, measure: Callable[[Any], float] | None
    ) -> None:
        self.model, self.pairs, self.valid, self.measure = model, pairs, valid, measure
        self.network, self.shapes = model.network_, model.network_.tensors()
        self.sources, self.targets = documents_of(pairs.sources), documents_of(pairs.targets)
        self.lengths = lengths_of(self.sources), lengths_of(self.targets)
        self.device = model._flat.device
        self.generator = torch.Generator(self.device).manual_seed(model.seed)
        self.network.initialise(model.weights_, self.generator)
        self.weights = model._flat.clone()
        self.half = self.device.type == "cuda"
        self.working = self.weights.half() if self.half else self.weights
        self.leaves = {name: part.detach().requires_grad_() for name, part in views(self.working, self.shapes).items()}
        self.collected = torch.zeros_like(self.working)
        for name, part in views(self.collected, self.shapes).items():
            self.leaves[name].grad = part
        self.gradient = torch.zeros_like(self.weights) if self.half else self.collected
        self.average = self.weights.clone()
        self.adam = Adam(self.weights)
        self.norm = torch.zeros((), device=self.device)
        self.total = model.epochs * int(self.lengths[1].sum())
        self.step, self.done, self.epoch = 0, 0, 0
        self.looks: list[float] = []
        self.seconds_before, self.began = 0.0, time.monotonic()

    # The run

    def epochs(self, checkpoint: Checkpoint | None) -> Iterator[Step]:
        model, run = self.model, ""
        if checkpoint is not None:
            ids = [part for each in (self.pairs, self.valid) if each for part in (each.sources.ids, each.targets.ids)]
            run = fingerprint(model.settings(), *ids)
            kept = checkpoint.read(self.arrays(), type(model).__name__, run)
            if kept is not None:
                self.take(kept)
        while self.epoch < model.epochs and not self.stopped():
            self.epoch += 1
            yield from self.one_epoch()
            if self.epoch % model.every == 0 or self.epoch == model.epochs or self.out_of_time():
                self.keep()
            if checkpoint is not None and (checkpoint.due() or self.epoch == model.epochs or self.stopped()):
                checkpoint.write(self.arrays(), type(model).__name__, run)

    def one_epoch(self) -> Iterator[Step]:
        """An epoch draws from seeds of its own, so that it can be begun without those before it."""
        random = np.random.default_rng([self.model.seed, self.epoch])
        self.generator.manual_seed(int(random.integers(1 << 62)))
        groups = bucketed(*self.lengths, self.model.batch, random)
        losses, since = torch.zeros((), device=self.device), 0
        every = TOLD_EVERY if self.half else 1
        for number, group in enumerate(groups):
            if self.out_of_time():
                return
            batch = self.model._batch([self.sources[k] for k in group], [self.targets[k] for k in group])
            rate = self.rate()
            losses += self.learn(batch, rate)
            since += 1
            self.done += len(batch.targets)
            if since == every or number == len(groups) - 1:
                yield Step(self.done, max(self.total, self.done), self.finite(float(losses) / since, rate), rate)
                losses.zero_()
                since = 0

    def share(self) -> float:
        """How much of the run is done."""
        by_words = self.done / self.total
        return min(1.0, max(by_words, self.seconds() / self.model.seconds) if self.model.seconds else by_words)

    def seconds(self) -> float:
        return self.seconds_before + time.monotonic() - self.began

    def out_of_time(self) -> bool:
        return 0 < self.model.seconds <= self.seconds()

    def stopped(self) -> bool:
        patience, looks = self.model.patience, self.looks
        stalled = patience > 0 and len(looks) > patience and max(looks[-patience:]) <= max(looks[:-patience])
        return stalled or self.out_of_time()

    def rate(self) -> float:
        warm = min(1.0, (self.step + 1) / min(WARM_UP, 1 + self.total // self.model.batch // 10))
        return self.model.rate * warm * hold_then_cosine(self.share(), hold=HOLD, last=LAST_RATE)

    def truth(self) -> float:
        """The chance that the decoder reads the true word; the curves end where the setting says."""
        return truth_after(self.share(), self.model.sampling, self.model.truth) if self.model.teacher else 0.0

    def finite(self, loss: float, rate: float) -> float:
        if not math.isfinite(loss):
            raise DivergedError(f"training diverged: the loss is {loss}: try a lower rate than {rate:g}")
        return loss

    def learn(self, batch: Batch, rate: float) -> Tensor:
        """One update; the mean loss, still on its device."""
        scale = LOSS_SCALE if self.half else 1.0
        loss = self.loss(batch, scale)
        self.collected.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        self.step += 1
        with torch.no_grad():
            self.move(rate, scale)
        return loss.detach() / scale

    def loss(self, batch: Batch, scale: float) -> Tensor:
        network, weights, drop = self.network, self.leaves, Drop(self.model.dropout, self.generator)
        memory = network.encode(weights, batch.source, batch.lengths, drop)
        readout = self.readouts(batch, memory, drop).flatten(0, 1).index_select(0, batch.places)
        hidden, table, bias = drop(readout), network.table(weights), weights["bias"]
        loss = linear_cross_entropy(hidden, table, bias, batch.targets, scale=scale)
        if not self.model.smoothing:
            return loss
        # Of the logits only two numbers are wanted: the true word's, and the mean of all.
        ahead = (hidden.float() * (table.index_select(0, batch.targets).float() - table.float().mean(0))).sum(1)
        ahead = ahead + bias.index_select(0, batch.targets).float() - bias.float().mean()
        return loss + self.model.smoothing * scale * ahead.mean()

    def readouts(self, batch: Batch, memory: Memory, drop: Drop) -> Tensor:
        """(T, B, E), from what the decoder was shown: the truth, or in part its own words."""
        network, weights, truth = self.network, self.leaves, self.truth()
        if truth >= 1:
            return network.decode(weights, memory, batch.inputs, memory.state, drop).readout
        shown = torch.rand(batch.inputs.shape, generator=self.generator, device=self.device) < truth
        shown[0] = True
        if network.feed or not self.model.teacher:

            def word(step: int, before: Tensor | None) -> Tensor:
                true = batch.inputs[step]
                return true if before is None else torch.where(shown[step], true, self.said(before))

            return network.decode_by_steps(weights, memory, word, len(batch.inputs), memory.state, drop).readout
        with torch.no_grad():
            first = network.decode(weights, memory, batch.inputs, memory.state, NOTHING_DROPPED).readout
            said = torch.cat((batch.inputs[:1], self.said(first[:-1])))
        inputs = torch.where(shown, batch.inputs, said)
        return network.decode(weights, memory, inputs, memory.state, drop).readout

    def said(self, readout: Tensor) -> Tensor:
        """The likeliest words."""
        with torch.no_grad():
            return linear(readout, self.network.table(self.leaves), self.leaves["bias"]).argmax(-1)

    def move(self, rate: float, scale: float) -> None:
        if self.half:
            self.gradient.copy_(self.collected)
        norm_of([self.gradient], self.norm)
        factor = clip_factor(self.norm / scale, self.model.clip) if self.model.clip else torch.ones_like(self.norm)
        factor = factor / scale
        if self.half:  # too large for it: as if the batch had not been read
            self.gradient.nan_to_num_(0.0, 0.0, 0.0)
            factor = torch.where(torch.isfinite(self.norm), factor, 0.0)
        planned = torch.tensor(self.adam.plan(rate, self.step))
        if self.half:
            planned = planned.pin_memory().to(self.device, non_blocking=True)
        self.adam.update(self.weights, self.gradient, factor, planned)
        if self.half:
            self.working.copy_(self.weights)
        share = 1.0 if self.model.average < 0 else running_share(self.step, self.model.average)
        self.average.lerp_(self.weights, min(1.0, share))

    def keep(self) -> None:
        """Take the weights over if they are better than all before."""
        model = self.model
        if self.measure is None and (self.valid is None or len(self.valid) == 0):
            model._flat.copy_(self.average)
            return
        best, model._flat = model._flat, self.average.clone()
        score = self.measure(model) if self.measure else model.score(self.valid)  # type: ignore[arg-type]
        self.looks.append(score)
        if score > model.valid_score_:
            model.valid_score_ = score
        else:
            model._flat = best

    # Stopped and gone on with

    def arrays(self) -> dict[str, Array]:
        held = {"weights": self.weights, "average": self.average, "best": self.model._flat, **self.adam.moments}
        looks = np.full(self.model.epochs, np.nan)
        looks[: len(self.looks)] = self.looks
        where = np.array([self.epoch, self.step, self.done], np.int64)
        told = {"where": where, "looks": looks, "times": np.array([self.seconds(), self.model.valid_score_])}
        return {name: part.cpu().numpy() for name, part in held.items()} | told

    def take(self, kept: dict[str, Array]) -> None:
        held = {"weights": self.weights, "average": self.average, "best": self.model._flat, **self.adam.moments}
        for name, part in held.items():
            part.copy_(torch.from_numpy(kept[name]))
        if self.half:
            self.working.copy_(self.weights)
        self.epoch, self.step, self.done = kept["where"].tolist()
        self.looks = [look for look in kept["looks"].tolist() if look == look]
        self.seconds_before, self.model.valid_score_ = kept["times"].tolist()
        self.began = time.monotonic()


def truth_after(share: float, schedule: str, last: float) -> float:
    """The chance of the true word when this share of a training is done: one of the curves of ``schedules.py``, taken
    so far that it begins at 1 and ends at ``last``.
    """
    if schedule == "none" or last >= 1:
        return 1.0
    if schedule == "linear":
        return linear_truth(round(1000 * share), first=1.0, slope=(1 - last) / 1000, least=last)
    if schedule == "exponential":
        return max(last, exponential_truth(round(1000 * share), base=max(last, 1e-3) ** (1 / 1000)))
    # k = 100 after 1,000 steps has fallen to 0.0045, from 0.99: what is between is stretched from 1 to the last.
    curve = [inverse_sigmoid_truth(step, speed=100) for step in (0, round(1000 * share), 1000)]
    return last + (1 - last) * (curve[1] - curve[2]) / (curve[0] - curve[2])
