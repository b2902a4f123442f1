"""A checklist for a trained recurrent model, run on a real text: is it well, and if not, what to try.

Everything is measured on windows of the text, read from a state of zeros, with the model's own weights in float64:
what gradients do on their way back, whether units are saturated or dead, how long gates remember, how often training
would clip, how large its updates are compared with the weights. Bounds are rules of thumb; a verdict is a hint and no
proof.

Shapes: T steps, B windows, H units, V words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from foreword.arrays import Doubles, Longs, Reals
from foreword.errors import InputError
from foreword.evaluate.gates import Layers, kept_shares, layer_name
from foreword.evaluate.gradients import (
    frozen_radius,
    growth_per_step,
    input_gradient_by_lag,
    saturation,
    silent_from,
)
from foreword.measures.perplexity import finite
from foreword.nn.cells import Cell, Kept, cross_entropy, run_stack_back
from foreword.protocols import Json, Meter
from foreword.tokens.corpus import Corpus

Verdict: TypeAlias = Literal["good", "watch", "bad"]

STEPS, WARM_UP, WINDOWS, GROUP = 64, 16, 16, 8
"""Words of a window, words read before it so that the state is a usual one, windows in all, and windows in a batch when
gradients of weights are measured.
"""

SCORED = 8
"""Words of each window, its last, whose loss is reported."""

FLAT = 1e-3
"""A unit whose value varies by less than this over the whole text is dead."""

SMALL_UPDATE, LARGE_UPDATE = 1e-5, 5e-2
"""Changes of the weights by one update, as shares of their size, between which training is usually found."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the checklist. value: for people; numbers: for programs. advice: what to try, if anything."""

    name: str
    value: str
    verdict: Verdict
    advice: str = ""
    numbers: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result. gradients (T,): the gradient of one loss at the word by its lag, as a share of that at lag 0; the
    geometric mean over windows.
    """

    checks: list[Check]
    gradients: Doubles

    @property
    def worst(self) -> Verdict:
        """The worst verdict of all checks."""
        found = {check.verdict for check in self.checks}
        return "bad" if "bad" in found else "watch" if "watch" in found else "good"

    def to_json(self) -> dict[str, Json]:
        """Return the diagnosis as JSON can hold it."""
        return {
            "verdict": self.worst,
            "checks": [
                {"name": c.name, "verdict": c.verdict, "value": c.value, "advice": c.advice, **c.numbers}
                for c in self.checks
            ],
            "gradient_by_lag": [finite(share) for share in self.gradients.tolist()],
        }


@dataclass(frozen=True, slots=True)
class _Forward:
    """A forward pass over the windows: targets (T, B), and the outputs and cached steps of each layer."""

    layers: Layers
    targets: Longs
    outputs: list[Reals]
    steps: list[list[Kept]]


def examine(
    model: Any, corpus: Corpus, *, steps: int = STEPS, windows: int = WINDOWS, meter: Meter | None = None
) -> Diagnosis:
    """Run the checklist on any model whose recurrent layers ``gates.Layers`` can read."""
    layers = Layers.of(model)
    if corpus.vocab != model.vocab:
        raise InputError("the text was turned into ids with another vocabulary than the model's")
    broken = _check_finite(layers)
    if broken.verdict == "bad":  # nothing that follows could be computed
        return Diagnosis([broken], np.empty(0))
    inputs, targets = _windows(corpus, steps + WARM_UP, windows)
    report = meter or (lambda phase, done, total: None)
    report("reading windows", 0, 4)
    read = _Forward(layers, targets, *layers.read(inputs))
    report("gradients by lag", 1, 4)
    gradients = _gradients(read)[:steps]
    report("saturation and memory", 2, 4)
    training = getattr(model, "training", None)
    checks = [
        broken,
        _check_loss(read),
        *_check_gradients(gradients, training),
        _check_radius(read),
        _check_saturation(read),
        _check_memory(read),
        _check_dead(read),
    ]
    report("gradients of the weights", 3, 4)
    if training is not None:
        checks += _check_updates(read, inputs, training)
    return Diagnosis([check for check in checks if check is not None], gradients)


def _windows(corpus: Corpus, steps: int, count: int) -> tuple[Longs, Longs]:
    """Return inputs and targets (T, B), spread evenly over the text; an input is the word before its target."""
    ids = np.asarray(corpus.ids, np.int64)
    if len(ids) < 3:
        raise InputError(f"the text has {len(ids)} tokens: expected at least 3")
    steps = min(steps, len(ids) - 1)
    starts = np.unique(np.linspace(0, len(ids) - 1 - steps, count).astype(np.int64))
    positions = starts + np.arange(steps)[:, None]
    return ids[positions], ids[positions + 1]


def _gradients(read: _Forward) -> Doubles:
    scores = read.layers.scores(read.outputs[-1][-1])
    _, d_scores = cross_entropy(scores, read.targets[-1])
    norms = input_gradient_by_lag(read.layers.cells, read.steps, d_scores @ read.layers.output)
    logs = np.log(np.maximum(norms, 1e-300)).mean(axis=1)
    shares: Doubles = np.exp(logs - logs[0])
    return shares


def _check_finite(layers: Layers) -> Check:
    named = {"embedding": layers.embedding, "output": layers.output, "bias": layers.bias}
    for layer, cell in enumerate(layers.cells):
        named |= {f"{layer_name(layer)}.{name}": weight for name, weight in cell.weights.items()}
    bad = [name for name, weight in named.items() if not np.isfinite(weight).all()]
    if bad:
        return Check(
            "weights", f"{', '.join(bad)} not finite", "bad", "training exploded: a lower rate, or a smaller clip"
        )
    return Check("weights", "all finite", "good")


def _check_loss(read: _Forward) -> Check:
    words = len(read.layers.bias)
    states = read.outputs[-1][-SCORED:]
    loss, _ = cross_entropy(read.layers.scores(states.reshape(-1, states.shape[-1])), read.targets[-SCORED:].ravel())
    blind = math.log(words)
    value = f"{loss:.2f} nats, perplexity {math.exp(min(loss, 700)):,.0f}; blind choice among {words:,} has {blind:.2f}"
    numbers: dict[str, Json] = {"loss": loss, "blind": blind}
    if loss >= blind:
        return Check("loss", value, "bad", "it has learnt nothing of use for this text: is it the right one?", numbers)
    return Check("loss", value, "good", "", numbers)


def _check_gradients(gradients: Doubles, training: Any) -> list[Check]:
    growth, silent, lags = growth_per_step(gradients), silent_from(gradients), len(gradients)
    numbers: dict[str, Json] = {"growth": finite(growth), "silent_from": silent, "lags": lags}
    value = f"× {growth:.3f} a step; " + (
        f"below a thousandth from lag {silent}" if silent is not None else f"alive at lag {lags - 1}"
    )
    verdict: Verdict
    if gradients[-1] > 10:
        verdict, advice = "bad", "it explodes: a smaller clip, a lower rate, gates"
    elif silent is not None and silent < 10:
        advice = "it vanishes silently: words further back teach nothing; gates, or a forget bias of 1 or more, help"
        verdict = "watch"
    else:
        verdict, advice = "good", ""
    first = Check("gradient by lag", value, verdict, advice, numbers)
    steps = getattr(training, "steps", None)
    if steps is None:
        return [first]
    reach = silent if silent is not None else lags
    value = f"{steps} words per chunk in training, gradients reach {'at least ' * (silent is None)}{reach}"
    if silent is None and steps < lags:
        second = Check("truncation", value, "watch", f"longer chunks, steps={2 * steps}, may teach it more")
    else:
        second = Check("truncation", value, "good")
    return [first, second]


def _check_radius(read: _Forward) -> Check:
    """Check the last step of the first window, as good as any: what repeated steps like this one would do."""
    radii = [frozen_radius(cell, steps[-1]) for cell, steps in zip(read.layers.cells, read.steps, strict=True)]
    numbers: dict[str, Json] = {"radius": [finite(radius) for radius in radii]}
    verdict: Verdict = "watch" if max(radii) > 1.5 or max(radii) < 0.5 else "good"
    advice = ""
    if verdict == "watch":
        advice = "a step like this one, repeated, " + ("blows up" if max(radii) > 1.5 else "forgets within a few words")
    return Check("radius of a step", "; ".join(f"{radius:.2f}" for radius in radii), verdict, advice, numbers)


def _check_saturation(read: _Forward) -> Check | None:
    if read.layers.kind == "min-gru":  # nothing in it is squashed
        return None
    found = [saturation(cell, steps) for cell, steps in zip(read.layers.cells, read.steps, strict=True)]
    shares = [layer.saturated for layer in found]
    numbers: dict[str, Json] = {"saturated": list(shares), "mean_slope": [layer.mean for layer in found]}
    verdict: Verdict = "bad" if max(shares) > 0.9 else "watch" if max(shares) > 2 / 3 else "good"
    advice = "" if verdict == "good" else "slopes near 0 stop gradients: smaller first weights, a lower rate"
    return Check("saturated units", "; ".join(f"{share:.0%}" for share in shares), verdict, advice, numbers)


def _check_memory(read: _Forward) -> Check | None:
    """Check the half-life of units' memory, by the geometric mean of their gate over the text."""
    if read.layers.kind == "rnn":
        return None
    gates = [kept_shares(read.layers.kind, steps) for steps in read.steps]
    means = [float(gate.mean()) for gate in gates]
    lives = [_half_life(gate) for gate in gates]
    slowest = [float(np.quantile(life, 0.9)) for life in lives]
    numbers: dict[str, Json] = {
        "kept": list(means),
        "half_life_median": [float(np.median(life)) for life in lives],
        "half_life_slowest_tenth": list(slowest),
    }
    value = "; ".join(
        f"{mean:.2f} kept per step, a tenth of the units for {life:.0f} steps and more"
        for mean, life in zip(means, slowest, strict=True)
    )
    if max(slowest) < 3:
        advice = "gates forget at once: a forget bias of 1 or 2, longer chunks"
        return Check("memory", value, "watch", advice, numbers)
    return Check("memory", value, "good", "", numbers)


def _half_life(gate: Doubles) -> Doubles:
    """Return the steps until half is left, for each unit; at most a million."""
    per_step = np.log(np.maximum(gate, 1e-12)).mean(axis=(0, 1))
    life: Doubles = np.minimum(math.log(0.5) / np.minimum(per_step, -1e-12), 1e6)
    return life


def _check_dead(read: _Forward) -> Check:
    shares = [float((np.ptp(states, axis=(0, 1)) < FLAT).mean()) for states in read.outputs]
    verdict: Verdict = "bad" if max(shares) > 0.1 else "watch" if max(shares) > 0.01 else "good"
    advice = (
        "" if verdict == "good" else "units that never move are lost: a lower rate, smaller first weights, fewer units"
    )
    numbers: dict[str, Json] = {"dead": list(shares)}
    return Check("dead units", "; ".join(f"{share:.0%}" for share in shares), verdict, advice, numbers)


def _check_updates(read: _Forward, inputs: Longs, training: Any) -> list[Check]:
    """Compare the training's clipping and rate with gradients of the weights on this text."""
    steps = min(int(training.steps), len(inputs))
    groups = range(0, inputs.shape[1], GROUP)
    norms = np.array(
        [
            _weight_gradient(read.layers, inputs[:steps, g : g + GROUP], read.targets[:steps, g : g + GROUP])
            for g in groups
        ]
    )
    clip, rate = float(training.clip), float(training.rate)
    clipped = float((norms > clip).mean()) if clip > 0 else 0.0
    parts = [read.layers.embedding, read.layers.bias, *(w for cell in read.layers.cells for w in cell.weights.values())]
    if read.layers.output is not read.layers.embedding:
        parts.append(read.layers.output)
    size, count = math.sqrt(sum(float((w**2).sum()) for w in parts)), sum(w.size for w in parts)
    adam = getattr(training, "optimiser", "sgd") == "adam"
    moved = float(np.median(np.minimum(norms, clip) if clip > 0 else norms))
    share = rate * (math.sqrt(count) if adam else moved) / size
    one = Check(
        "clipping",
        f"norm {np.median(norms):.3g} in the middle, clip {clip:g}: {clipped:.0%} of {len(norms)} would be clipped",
        "good" if clipped < 0.9 else "watch",
        "" if clipped < 0.9 else "every update is clipped: the clip, not the rate, decides how far it goes",
        {"gradient_norm": [float(norm) for norm in norms], "clip": clip, "clipped": clipped},
    )
    fits = SMALL_UPDATE <= share <= LARGE_UPDATE
    bound = LARGE_UPDATE if share > LARGE_UPDATE else SMALL_UPDATE
    other = Check(
        "learning rate",
        f"{rate:g} moves the weights by {'at most ' * adam}{share:.2%} an update",
        "good" if fits else "watch",
        "" if fits else f"{'high' if share > LARGE_UPDATE else 'low'} as such go: try {rate * bound / share:.2g}",
        {"rate": rate, "update_share": share},
    )
    return [one, other]


def _weight_gradient(layers: Layers, inputs: Longs, targets: Longs) -> float:
    """Return the norm of the gradient of the mean loss over all steps, for all weights; tied ones count together."""
    outputs, steps = layers.read(inputs)
    cells: Sequence[Cell] = layers.cells
    for cell in cells:
        cell.grads = {name: np.zeros_like(weight) for name, weight in cell.weights.items()}
    states = outputs[-1].reshape(-1, outputs[-1].shape[-1])
    _, d_scores = cross_entropy(layers.scores(states), targets.ravel())
    d_x = run_stack_back(list(cells), (d_scores @ layers.output).reshape(outputs[-1].shape), steps)
    d_embedding = np.zeros_like(layers.embedding)
    np.add.at(d_embedding, inputs.ravel(), d_x.reshape(-1, d_x.shape[-1]))
    d_output = d_scores.T @ states
    tied = layers.output is layers.embedding
    parts = [d_embedding + d_output] if tied else [d_embedding, d_output]
    parts += [d_scores.sum(axis=0), *(grad for cell in cells for grad in cell.grads.values())]
    return math.sqrt(sum(float((part**2).sum()) for part in parts))
