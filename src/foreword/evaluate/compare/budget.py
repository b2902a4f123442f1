"""How the time of a comparison is shared, and how a network is trained within its share."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

from foreword.errors import InputError
from foreword.evaluate.compare.results import ComparisonProgress, Curve
from foreword.evaluate.compare.run_cache import Learnt, RunCache, TolerantCheckpoint
from foreword.evaluate.compare.setup import PreparedText
from foreword.protocols import Step

WARM_UP_TOKENS, CURVE_POINTS = 200, 80
"""Tokens that a model is tried on before the clock runs; points that draw how it learnt."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a comparison does with its time, and how its networks are trained.

    time_budget: seconds for all models together, about.
    closing_share: of the budget, for what comes after the models. rounds_share: for a model that learns in rounds.
    least_share: of the budget that the networks get even if the other models took it all.
    testing_share: of the first network's time that is reserved for its test; then it is known how long that takes here.
    scored_share, scores_per_second: of the budget that one network may take to read the test part, and how many scores
    of a word one thread computes.
    most_counted: tokens of a text whose n-grams are all counted for the picture of their growth.
    batch, steps, sampled: of a network's updates, and words sampled for the softmax: many small updates learn most in
    little time.
    hold, last_rate: the learning rate is constant for this share of the time, then falls to this share of itself.
    least_updates: that the smallest text gets. evaluate_after: updates between two evaluations on the tuning part, at
    least. patience: evaluations without a new best after which a network stops.
    """

    time_budget: float = 180.0
    closing_share: float = 0.01
    rounds_share: float = 0.15
    least_share: float = 0.1
    testing_share: float = 0.1
    scored_share: float = 0.02
    scores_per_second: float = 80e6
    most_counted: int = 20_000_000
    batch: int = 20
    steps: int = 20
    sampled: int = 500
    hold: float = 0.3
    last_rate: float = 0.01
    least_updates: int = 300
    evaluate_after: int = 30
    patience: int = 3

    def most_scores(self) -> float:
        """Return how many scores of words a network has time for when it reads the test part."""
        return self.scored_share * self.time_budget * self.scores_per_second

    def network_seconds(self, spent: float, sharing: int, overhead: float | None) -> float:
        """Return the seconds for which the next of ``sharing`` networks may learn.

        An even share of what is left after ``spent`` seconds, less what a network takes besides learning: to begin,
        and to be tested. overhead: what that was for the last one, None for the first.
        """
        budget = (1 - self.closing_share) * self.time_budget
        share = (budget - spent) / sharing
        overhead = self.testing_share * share if overhead is None else overhead
        return max(share - overhead, self.least_share * budget / sharing)

    def training_of(self, model: Any, seconds: float, text: PreparedText) -> Any:
        """Return the ``Training`` of a network that stops by the clock, or when the tuning part gets no better."""
        updates = max(1, len(text.train.ids) // (self.batch * self.steps))  # in one pass over the text
        return replace(
            model.training,
            batch=self.batch,
            steps=self.steps,
            sampled=self.sampled,
            hold=self.hold,
            last_rate=self.last_rate,
            epochs=max(100, self.least_updates // updates),
            evaluate_every=max(1, self.evaluate_after // updates),
            patience=0 if text.valid is None else self.patience,
            seconds=seconds,
        )

    def own_recipe(self, model: Any, seconds: float, text: PreparedText) -> Any:
        """Return the ``Training`` of a network that has a recipe of its own, until the clock stops it."""
        updates = max(1, len(text.train.ids) // (model.training.batch * model.training.steps))
        every = max(model.training.evaluate_every, self.evaluate_after // updates)
        return replace(model.training, epochs=10**6, evaluate_every=every, seconds=seconds)


POLICY = Policy()


class TrainingResult(NamedTuple):
    """How a model was trained. tokens: how many it read, those of all epochs. curve: for networks."""

    seconds: float
    tokens: int
    curve: Curve | None = None


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """Progress of one model's training, timed from when it was made."""

    phase: str
    done: int
    total: int
    model: int
    began: float = field(default_factory=time.perf_counter)

    def report(self, share: float | None = None, detail: str = "") -> ComparisonProgress:
        """Return the event for ``share`` of the training done, with the seconds that are left by it."""
        left = None if not share else (time.perf_counter() - self.began) * (1 - share) / share
        return ComparisonProgress(f"{self.phase}{detail}", self.done, self.total, self.model, share, left)


def learn(
    name: str, model: Any, text: PreparedText, cache: RunCache, progress: TrainingProgress
) -> Generator[ComparisonProgress, None, TrainingResult]:
    """Train a network, from its checkpoint if there is one; return how it learnt."""
    checkpoint, began = cache.checkpoint(name), time.perf_counter()
    steps = _steps(model, text, checkpoint)
    learnt = Learnt() if checkpoint is None else checkpoint.learnt
    earlier = learnt.seconds

    def note_best() -> None:
        perplexity = _perplexity(-model.valid_score_)
        if math.isfinite(model.valid_score_) and (not learnt.valid or perplexity < learnt.valid[-1][1]):
            learnt.valid.append((earlier + time.perf_counter() - began, perplexity))

    for step in steps:
        learnt.tokens = step.done
        learnt.train.append((earlier + time.perf_counter() - began, _perplexity(step.loss)))
        note_best()
        yield progress.report(step.done / max(1, step.total), f", loss {step.loss:.2f}")
    note_best()
    seconds = earlier + time.perf_counter() - began
    every = max(1, math.ceil(len(learnt.train) / CURVE_POINTS))
    return TrainingResult(seconds, learnt.tokens, Curve(tuple(learnt.train[::-every][::-1]), tuple(learnt.valid)))


def _steps(model: Any, text: PreparedText, checkpoint: TolerantCheckpoint | None) -> Iterator[Step]:
    """Train from the checkpoint, or from the beginning if it cannot be resumed, which deletes it."""
    steps: Iterator[Step] = model.train(text.train, valid=text.valid, checkpoint=checkpoint)
    if checkpoint is None or not checkpoint.path.exists():
        return steps
    try:
        first = next(steps, None)
    except InputError:
        checkpoint.discard()
        return iter(model.train(text.train, valid=text.valid, checkpoint=checkpoint))
    return chain([] if first is None else [first], steps)


def _perplexity(nats: float) -> float:
    return math.exp(min(nats, 700.0))
