"""What is measured of a trained model of the ladder: its scores and size, samples of its text, and its internals.

How far back a recurrent network is taught and what its gates do is read from its layers (``gates.py``,
``gradients.py``). Shapes: T steps, B texts in a batch, H units, V words.

Models err in different positions: one that counted knows phrases by heart, a network knows which words are alike. So
``best_pair`` looks for the two that are best together:

    p(w | h) = λ p_a(w | h) + (1 − λ) p_b(w | h)

The pair and its λ are chosen on the tuning part, from the probability each model gave each token there, and measured on
the test part.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from itertools import combinations, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from foreword.arrays import Doubles, Ids, Logs
from foreword.checks import saveable
from foreword.decode import generate
from foreword.evaluate.compare.results import Gates, Mixed, Passage
from foreword.evaluate.gates import NAMES, Layers, gate_traces
from foreword.evaluate.gradients import input_gradient_by_lag
from foreword.measures.perplexity import Measures, measure
from foreword.mix.combine import NEAR_ENOUGH, weight_steps
from foreword.nn.cells import cross_entropy
from foreword.protocols import LanguageModel, Tokenizer
from foreword.storage.folder import save
from foreword.tokens.corpus import Corpus

SHORTEST_TIMING = 0.05
"""Seconds: a test that is scored faster is scored repeatedly until the clock can be believed."""

SAMPLE_TOKENS = 60
"""Length of a sample that is read at a glance."""

LAGS, WINDOWS = 40, 32
"""Steps back that a gradient is followed, and windows of the text over which it is averaged."""

FEWEST_LAGS = 8
"""A shorter text has no picture of lags."""

GATE_TOKENS = 18
"""Tokens of the passage at which gates are shown."""


# Scores and size


class _TimedModel:
    """A model whose log-probabilities are recorded, and timed."""

    def __init__(self, model: LanguageModel[Any]) -> None:
        self.model = model
        self.logs: list[Doubles] = []
        self.tokens, self.seconds = 0, 0.0

    def logprobs(self, corpus: Corpus) -> Logs:
        """Score a corpus as the model does."""
        began = time.perf_counter()
        logs = self.model.logprobs(corpus)
        self.seconds += max(time.perf_counter() - began, 1e-9)  # a clock may be too coarse to see it
        self.tokens += len(corpus.ids)
        self.logs.append(np.asarray(logs, np.float64))
        return logs


def score_test(model: LanguageModel[Any], test: Corpus) -> tuple[Measures, Doubles, float]:
    """Return a model's measures, the log-probability of each token, and how many tokens it scores in a second."""
    timed = _TimedModel(model)
    measures = measure(timed, test)
    while timed.seconds < SHORTEST_TIMING:
        timed.logprobs(test)
    return measures, np.concatenate(timed.logs)[: len(test.ids)], timed.tokens / timed.seconds


def weigh(model: LanguageModel[Any]) -> tuple[int, int]:
    """Return how many numbers the saved model holds, and how many bytes its folder."""
    model_to_save = saveable(model, ", so its size is unknown")
    with TemporaryDirectory(prefix="foreword-") as temporary:
        folder = Path(temporary, "model")
        save(model_to_save, folder)
        disk_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return sum(array.size for array in model_to_save.to_parts().arrays.values()), disk_bytes


def draw_sample(model: LanguageModel[Any], tokenizer: Tokenizer, seed: int) -> str:
    """Generate documents, one per line, until there is enough to get an impression."""
    lines: list[str] = []
    left = SAMPLE_TOKENS
    while left > 0:
        ids = list(generate(model, max_tokens=left, seed=seed + SAMPLE_TOKENS - left))
        left -= len(ids) + 1  # an end costs one token, so that a model that only ends comes to an end here too
        lines.append(tokenizer.decode(ids))
    return "\n".join(line for line in lines if line)


# Inside a recurrent network


def gradient_norms(layers: Layers, *texts: Corpus) -> tuple[float, ...]:
    """Return the mean of |∂L_T/∂x_(T−lag)| for lag 0, 1, …; L_T is the loss of predicting the word after step T alone.

    The first of the texts that is long enough is read, as one stream; () where none is.
    """
    long_enough = (text for text in texts if len(text.ids) >= FEWEST_LAGS + 2)
    text = next(long_enough, None)
    if text is None:
        return ()
    windows = cut_windows(text.ids)
    inputs, targets = windows[:-1], windows[-1]
    outputs, cache = layers.read(inputs)
    _, d_scores = cross_entropy(layers.scores(outputs[-1][-1]), targets)
    d_last = len(targets) * (d_scores @ layers.output)  # of each text's own loss, not of their mean
    norms: Doubles = input_gradient_by_lag(layers.cells, cache, d_last)
    return tuple(norms.mean(axis=1).tolist())


def cut_windows(ids: Ids) -> Ids:
    """Cut windows at even distances, (T + 1, B): as long as LAGS asks for, or as the text is."""
    length = min(LAGS + 2, len(ids))
    starts = np.unique(np.linspace(0, len(ids) - length, WINDOWS).astype(np.int64))
    windows: Ids = np.asarray(ids, np.int64)[starts + np.arange(length)[:, None]]
    return windows


def passage_gates(layers: Layers, passage: Passage, ids: Ids, end: int) -> Gates | None:
    """Return the gates of the last layer at the first words of the passage, read after ``</s>`` as every text is."""
    if not NAMES[layers.kind]:
        return None
    shown = min(GATE_TOKENS, len(passage.pieces))
    tokens = [piece.strip() or "␣" for piece in passage.pieces[:shown]]
    traces = gate_traces(layers, np.append(end, np.asarray(ids[:shown], np.int64)), ["", *tokens])
    return Gates(
        tuple(tokens),
        {name: tuple(map(tuple, np.round(values[1:], 3).tolist())) for name, values in traces.gates.items()},
    )


# Two models mixed

WEIGHTS = (0.0, 0.005, 0.01, 0.02, 0.03, *(step / 20 for step in range(1, 20)), 0.97, 0.98, 0.99, 0.995, 1.0)
"""The weights whose perplexity is drawn, closer where a little of a second model helps most."""

MOST_STEPS = 200
"""Steps of EM for a pair; a few are enough."""

LEAST_GAIN = 1e-3
"""Nats per token of the tuning part that a pair must gain over the better one alone to be worth reporting."""

MOST_TOKENS = 20_000
"""Tokens of the tuning part that pairs are tried on; the winner's weight is learnt from all of it."""


def best_pair(valid: Mapping[str, Doubles], test: Mapping[str, Doubles]) -> Mixed | None:
    """Find the best pair from natural log-probabilities, (tokens,) for each model, of the tuning and the test part.

    None where no pair is better than the better one of the two, or none gives every token of the tuning part some
    probability.
    """
    found: tuple[float, tuple[str, str]] | None = None
    for pair in combinations(valid, 2):
        logs = np.stack([valid[name][:MOST_TOKENS] for name in pair])
        if logs.size == 0 or not np.isfinite(logs.max(axis=0)).all():
            continue
        score = _learn_weight(logs)[1]
        if found is None or score > found[0]:
            found = score, pair
    if found is None:
        return None
    one, other = names = found[1]
    weight, score = _learn_weight(np.stack([valid[name] for name in names]))
    if score < max(float(logs.mean()) for logs in valid.values()) + LEAST_GAIN:
        return None
    curve = tuple(_mixed_perplexity(test[one], test[other], each) for each in WEIGHTS)
    mixed = _mixed_perplexity(test[one], test[other], weight)
    return Mixed(names, weight, mixed, (curve[-1], curve[0]), WEIGHTS, curve)


def _learn_weight(logs: Doubles) -> tuple[float, float]:
    """Return the first model's weight, and the mean log-probability of the mixture."""
    for step in islice(weight_steps(logs), MOST_STEPS):
        weight, score = float(step.weights[0]), step.score
        if step.gain_left < NEAR_ENOUGH:
            break
    return weight, score


def _mixed_perplexity(one: Doubles, other: Doubles, weight: float) -> float:
    with np.errstate(divide="ignore"):
        mixed = np.logaddexp(one + np.log(weight), other + np.log1p(-weight)) if 0 < weight < 1 else None
    logs = mixed if mixed is not None else one if weight == 1 else other
    mean = float(logs.mean()) if len(logs) else -math.inf
    return math.exp(-mean) if mean > -700 else math.inf
