"""A checklist for a trained recurrent model, gone through on a real text: is it well, and if not, what to try.

Everything is measured on stretches of the text, read from a state of zeros, with the model's own weights in float64:
what gradients do on their way back, whether units are saturated or dead, how long gates keep what they hold, how often
the training's clipping would cut in, how large its updates are beside the weights. Bounds are rules of thumb, named
where they stand; a verdict is a place to look at and no proof.

Shapes: T steps, B stretches, H units, V words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from foreword.arrays import Doubles, Longs, Reals
from foreword.errors import InputError
from foreword.evaluate.gates import Layers, kept_shares
from foreword.evaluate.gradients import (
    frozen_radius,
    growth_per_step,
    input_gradient_by_lag,
    saturation,
    silent_from,
)
from foreword.nn.cells import Cell, Kept, cross_entropy, run_stack_back
from foreword.protocols import Json, Meter
from foreword.tokens.corpus import Corpus

Verdict: TypeAlias = Literal["good", "watch", "bad", "told"]

STEPS, WARM_UP, STRETCHES, GROUP = 64, 16, 16, 8
"""Words of a stretch, words read before it so that the state is what it usually is, stretches in all, and how many are
read at once when weights' gradients are measured.
"""

SCORED = 8
"""Words of each stretch, its last, whose loss is told."""

FLAT = 1e-3
"""A unit whose value moves by less than this over the whole text says nothing: it is dead."""

SMALL_UPDATE, LARGE_UPDATE = 1e-5, 5e-2
"""Changes of the weights by one update, as shares of their size, between which training is usually found."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the list. value: for people; numbers: for programs. advice: what to try; empty if nothing."""

    name: str
    value: str
    verdict: Verdict
    advice: str = ""
    numbers: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """checks: the list. gradients (T,): what the word so many steps back is taught by one loss, as a share of what the
    last word is; the geometric mean over stretches.
    """

    checks: list[Check]
    gradients: Doubles

    @property
    def worst(self) -> Verdict:
        found = {check.verdict for check in self.checks}
        return "bad" if "bad" in found else "watch" if "watch" in found else "good"

    def to_json(self) -> dict[str, Json]:
        return {
            "verdict": self.worst,
            "checks": [
                {"name": c.name, "verdict": c.verdict, "value": c.value, "advice": c.advice, **c.numbers}
                for c in self.checks
            ],
            "gradient_by_lag": [_finite(share) for share in self.gradients.tolist()],
        }


@dataclass(frozen=True, slots=True)
class _Read:
    """What the model made of the stretches: targets (T, B), what each layer said and kept."""

    layers: Layers
    targets: Longs
    said: list[Reals]
    kept: list[list[Kept]]


def examine(
    model: Any, corpus: Corpus, *, steps: int = STEPS, stretches: int = STRETCHES, meter: Meter | None = None
) -> Diagnosis:
    """Go through the list. The model is any whose recurrent layers ``gates.Layers`` can take apart."""
    layers = Layers.of(model)
    if corpus.vocab != model.vocab:
        raise InputError("the text was turned into ids with another vocabulary than the model's")
    broken = _check_finite(layers)
    if broken.verdict == "bad":  # nothing that follows could be computed
        return Diagnosis([broken], np.empty(0))
    inputs, targets = _stretches(corpus, steps + WARM_UP, stretches)
    tell = meter or (lambda phase, done, total: None)
    tell("reading stretches", 0, 4)
    said, kept = layers.read(inputs)
    read = _Read(layers, targets, said, kept)
    tell("gradients by lag", 1, 4)
    gradients = _gradients(read)[:steps]
    tell("saturation and memory", 2, 4)
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
    tell("gradients of the weights", 3, 4)
    if training is not None:
        checks += _check_updates(read, inputs, training)
    return Diagnosis([check for check in checks if check is not None], gradients)


def _stretches(corpus: Corpus, steps: int, count: int) -> tuple[Longs, Longs]:
    """Inputs and targets (T, B), spread evenly over the text; an input is the word before its target."""
    ids = np.asarray(corpus.ids, np.int64)
    if len(ids) < 3:
        raise InputError(f"the text has {len(ids)} tokens: expected at least 3")
    steps = min(steps, len(ids) - 1)
    starts = np.unique(np.linspace(0, len(ids) - 1 - steps, count).astype(np.int64))
    places = starts + np.arange(steps)[:, None]
    return ids[places], ids[places + 1]


def _gradients(read: _Read) -> Doubles:
    scores = read.layers.scores(read.said[-1][-1])
    _, d_scores = cross_entropy(scores, read.targets[-1])
    norms = input_gradient_by_lag(read.layers.cells, read.kept, d_scores @ read.layers.output)
    logs = np.log(np.maximum(norms, 1e-300)).mean(axis=1)
    shares: Doubles = np.exp(logs - logs[0])
    return shares


def _check_finite(layers: Layers) -> Check:
    named = {"embedding": layers.embedding, "output": layers.output, "bias": layers.bias}
    for place, cell in enumerate(layers.cells):
        named |= {f"layer{place}.{name}": weight for name, weight in cell.weights.items()}
    bad = [name for name, weight in named.items() if not np.isfinite(weight).all()]
    if bad:
        return Check(
            "weights", f"{', '.join(bad)} not finite", "bad", "training exploded: a lower rate, or a smaller clip"
        )
    return Check("weights", "all finite", "good")


def _check_loss(read: _Read) -> Check:
    words = len(read.layers.bias)
    states = read.said[-1][-SCORED:]
    loss, _ = cross_entropy(read.layers.scores(states.reshape(-1, states.shape[-1])), read.targets[-SCORED:].ravel())
    blind = math.log(words)
    told = f"{loss:.2f} nats, perplexity {math.exp(min(loss, 700)):,.0f}; blind choice among {words:,} has {blind:.2f}"
    numbers: dict[str, Json] = {"loss": loss, "blind": blind}
    if loss >= blind:
        return Check("loss", told, "bad", "it has learnt nothing of use for this text: is it the right one?", numbers)
    return Check("loss", told, "good", "", numbers)


def _check_gradients(gradients: Doubles, training: Any) -> list[Check]:
    growth, silent, lags = growth_per_step(gradients), silent_from(gradients), len(gradients)
    numbers: dict[str, Json] = {"growth": _finite(growth), "silent_from": silent, "lags": lags}
    value = f"× {growth:.3f} a step; " + (
        f"below a thousandth from lag {silent}" if silent is not None else f"alive at lag {lags - 1}"
    )
    if gradients[-1] > 10:
        first = Check("gradient by lag", value, "bad", "it explodes: a smaller clip, a lower rate, gates", numbers)
    elif silent is not None and silent < 10:
        first = Check(
            "gradient by lag",
            value,
            "watch",
            "it vanishes silently: words further back teach nothing; "
            "gates, or a forget bias of 1 or more, keep it alive",
            numbers,
        )
    else:
        first = Check("gradient by lag", value, "good", "", numbers)
    steps = getattr(training, "steps", None)
    if steps is None:
        return [first]
    reach = silent if silent is not None else lags
    told = f"{steps} words a stretch in training, gradients reach {'at least ' * (silent is None)}{reach}"
    if silent is None and steps < lags:
        second = Check("truncation", told, "watch", f"longer stretches, steps={2 * steps}, may teach it more")
    else:
        second = Check("truncation", told, "good")
    return [first, second]


def _check_radius(read: _Read) -> Check:
    """At the last step of the first stretch, as good as any: what repeated steps like this one would do."""
    radii = [frozen_radius(cell, held[-1]) for cell, held in zip(read.layers.cells, read.kept, strict=True)]
    numbers: dict[str, Json] = {"radius": [_finite(radius) for radius in radii]}
    verdict: Verdict = "watch" if max(radii) > 1.5 or max(radii) < 0.5 else "good"
    advice = ""
    if verdict == "watch":
        advice = "a step like this one, repeated, " + ("blows up" if max(radii) > 1.5 else "forgets within a few words")
    return Check("radius of a step", _by_layer(f"{radius:.2f}" for radius in radii), verdict, advice, numbers)


def _check_saturation(read: _Read) -> Check | None:
    if read.layers.kind == "min-gru":  # nothing in it is squashed
        return None
    found = [saturation(cell, held) for cell, held in zip(read.layers.cells, read.kept, strict=True)]
    shares = [layer.saturated for layer in found]
    numbers: dict[str, Json] = {"saturated": list(shares), "mean_slope": [layer.mean for layer in found]}
    verdict: Verdict = "bad" if max(shares) > 0.9 else "watch" if max(shares) > 2 / 3 else "good"
    advice = "" if verdict == "good" else "slopes near 0 stop gradients: smaller first weights, a lower rate"
    return Check("saturated units", _by_layer(f"{share:.0%}" for share in shares), verdict, advice, numbers)


def _check_memory(read: _Read) -> Check | None:
    """How long units keep half of what they hold, by the geometric mean of their gate over the text."""
    if read.layers.kind == "rnn":
        return None
    gates = [kept_shares(read.layers.kind, held) for held in read.kept]
    means = [float(gate.mean()) for gate in gates]
    lives = [_half_life(gate) for gate in gates]
    slowest = [float(np.quantile(life, 0.9)) for life in lives]
    numbers: dict[str, Json] = {
        "kept": list(means),
        "half_life_median": [float(np.median(life)) for life in lives],
        "half_life_slowest_tenth": list(slowest),
    }
    told = _by_layer(
        f"{mean:.2f} kept a step, a tenth of the units for {life:.0f} steps and more"
        for mean, life in zip(means, slowest, strict=True)
    )
    if max(slowest) < 3:
        return Check(
            "memory", told, "watch", "gates let go at once: a forget bias of 1 or 2, longer stretches", numbers
        )
    return Check("memory", told, "good", "", numbers)


def _half_life(gate: Doubles) -> Doubles:
    """Steps until half is left, for each unit; at most a million."""
    per_step = np.log(np.maximum(gate, 1e-12)).mean(axis=(0, 1))
    life: Doubles = np.minimum(math.log(0.5) / np.minimum(per_step, -1e-12), 1e6)
    return life


def _check_dead(read: _Read) -> Check:
    shares = [float((np.ptp(states, axis=(0, 1)) < FLAT).mean()) for states in read.said]
    verdict: Verdict = "bad" if max(shares) > 0.1 else "watch" if max(shares) > 0.01 else "good"
    advice = (
        "" if verdict == "good" else "units that never move are lost: a lower rate, smaller first weights, fewer units"
    )
    numbers: dict[str, Json] = {"dead": list(shares)}
    return Check("dead units", _by_layer(f"{share:.0%}" for share in shares), verdict, advice, numbers)


def _check_updates(read: _Read, inputs: Longs, training: Any) -> list[Check]:
    """Clipping and rate, as the training has them, against gradients of the weights on this text."""
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
    """The norm of the gradient of the mean loss over all steps, for all weights; tied ones count together."""
    said, kept = layers.read(inputs)
    cells: Sequence[Cell] = layers.cells
    for cell in cells:
        cell.grads = {name: np.zeros_like(weight) for name, weight in cell.weights.items()}
    states = said[-1].reshape(-1, said[-1].shape[-1])
    _, d_scores = cross_entropy(layers.scores(states), targets.ravel())
    d_x = run_stack_back(list(cells), (d_scores @ layers.output).reshape(said[-1].shape), kept)
    d_embedding = np.zeros_like(layers.embedding)
    np.add.at(d_embedding, inputs.ravel(), d_x.reshape(-1, d_x.shape[-1]))
    d_output = d_scores.T @ states
    tied = layers.output is layers.embedding
    parts = [d_embedding + d_output] if tied else [d_embedding, d_output]
    parts += [d_scores.sum(axis=0), *(grad for cell in cells for grad in cell.grads.values())]
    return math.sqrt(sum(float((part**2).sum()) for part in parts))


def _by_layer(told: Any) -> str:
    return "; ".join(told)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
