"""Which two models are best together, and with what weights.

    p(w | h) = λ p_a(w | h) + (1 − λ) p_b(w | h)

Models err in different places: one that counted knows phrases by heart, a network knows which words are alike. The pair
and its λ are chosen on the tuning part, from what each model gave each token there, and measured on the test part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from foreword.arrays import Doubles
from foreword.measures.perplexity import finite
from foreword.mix.combine import NEAR_ENOUGH, weight_steps
from foreword.protocols import Json

WEIGHTS = (0.0, 0.005, 0.01, 0.02, 0.03, *(place / 20 for place in range(1, 20)), 0.97, 0.98, 0.99, 0.995, 1.0)
"""The weights whose perplexity is drawn, closer where a little of a second model helps most."""

MOST_STEPS = 200
"""Of EM, for a pair; a few are enough."""

LEAST_GAIN = 1e-3
"""Nats a token of the tuning part that a pair must gain over the better one alone to be worth telling."""

MOST_TOKENS = 20_000
"""Of the tuning part that pairs are tried on; the winner's weight is learnt from all of it."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """Two models and the weight of the first. perplexity: of the mixture on the test part; alone: of each of the two.

    weights, curve: the test perplexity at weights from 0, the second model alone, to 1, the first.
    """

    names: tuple[str, str]
    weight: float
    perplexity: float
    alone: tuple[float, float]
    weights: tuple[float, ...]
    curve: tuple[float, ...]

    def to_json(self) -> dict[str, Json]:
        return {
            "models": list(self.names),
            "weights": [self.weight, 1 - self.weight],
            "perplexity": finite(self.perplexity),
            "alone": [finite(each) for each in self.alone],
            "curve": [[weight, finite(each)] for weight, each in zip(self.weights, self.curve, strict=True)],
        }


def best_pair(valid: Mapping[str, Doubles], test: Mapping[str, Doubles]) -> Mixed | None:
    """From natural log-probabilities, (tokens,) for each model, of the tuning and the test part. None where no pair is
    better than the better one of the two, or none gives every token of the tuning part some probability.
    """
    found: tuple[float, tuple[str, str]] | None = None
    for pair in combinations(valid, 2):
        logs = np.stack([valid[name][:MOST_TOKENS] for name in pair])
        if logs.size == 0 or not np.isfinite(logs.max(axis=0)).all():
            continue
        score = _learn(logs)[1]
        if found is None or score > found[0]:
            found = score, pair
    if found is None:
        return None
    one, other = names = found[1]
    weight, score = _learn(np.stack([valid[name] for name in names]))
    if score < max(float(logs.mean()) for logs in valid.values()) + LEAST_GAIN:
        return None
    curve = tuple(_perplexity(test[one], test[other], each) for each in WEIGHTS)
    mixed = _perplexity(test[one], test[other], weight)
    return Mixed(names, weight, mixed, (curve[-1], curve[0]), WEIGHTS, curve)


def _learn(logs: Doubles) -> tuple[float, float]:
    """The first model's weight, and the mean log-probability that it brings."""
    for step in islice(weight_steps(logs), MOST_STEPS):
        weight, score = float(step.weights[0]), step.score
        if step.gain_left < NEAR_ENOUGH:
            break
    return weight, score


def _perplexity(one: Doubles, other: Doubles, weight: float) -> float:
    with np.errstate(divide="ignore"):
        mixed = np.logaddexp(one + np.log(weight), other + np.log1p(-weight)) if 0 < weight < 1 else None
    logs = mixed if mixed is not None else one if weight == 1 else other
    mean = float(logs.mean()) if len(logs) else -math.inf
    return math.exp(-mean) if mean > -700 else math.inf
