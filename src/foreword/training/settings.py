"""How networks are trained: one frozen value, and the names by which single fields of it may be given.

``Dropout`` is the other frozen value, in ``nn/dropout.py``. Constructors also take the fields of both by name, as in
``Seq2Seq(epochs=10, dropout=0.2)``, which ``training_from`` and ``dropout_from`` resolve.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict

from foreword.checks import check_choice, check_numbers
from foreword.errors import SettingError
from foreword.nn.dropout import NO_DROPOUT, Dropout
from foreword.protocols import Json

OPTIMISERS = ("sgd", "adam")
SCHEDULES = ("constant", "step", "cosine", "plateau", "nt-asgd", "slanted")
PRECISIONS = ("float32", "float16", "bfloat16", "auto")


@dataclass(frozen=True, slots=True)
class Training:
    """Settings of gradient descent.

    epochs: passes over the data. batch: examples per update; for a language model rows of text, read in parallel; for a
        translator target ids.
    steps: length of truncated backpropagation of a language model, in words; one update each. vary: vary ``steps``
        randomly from update to update, so that epochs are cut at different words; far slower on a GPU.
    shuffle: shuffle the documents in each epoch.
    optimiser: "sgd" or "adam". beta1: Adam's decay rate of the mean gradient; 0 for no momentum.
    rate: learning rate. warm_up: updates of linear warm-up.
    schedule: learning rate schedule. constant; step, times ``decay`` with each epoch after ``full_epochs``; cosine,
        constant for ``hold`` of the run, then cosine decay to ``last_rate`` times the rate; plateau, times ``decay``
        after ``wait`` evaluations without a new best; nt-asgd, constant, and the weights are averaged once the held-out
        loss has stalled; slanted, linear increase for a tenth of each stage, then linear decay.
    hold: fraction of the run before the decay, for cosine. last_rate: final learning rate as a fraction of the rate,
        for cosine. full_epochs: epochs before the decay, for step. decay: factor of the learning rate, for step and
        plateau. wait: evaluations without a new best before the decay, for plateau.
    clip: largest norm of the gradient; 0 for none. clip_value: largest absolute value of a gradient component; 0 for
        none.
    weight_decay: decoupled weight decay: each update multiplies the weights by 1 − learning rate · weight_decay. l2: L2
        regularisation: adds l2 times the weights to the gradient, before clipping.
    reset: probability that a row of a language model's text starts an update from the zero state.
    activation: activation regularisation: penalty on the squares of a language model's last layer. change: temporal
        activation regularisation: penalty on the squared changes of a language model's last layer from step to step.
    averages: running averages of the weights, of which held-out data choose one; the first without held-out data. Each
        is given by a number t: about the last 1 / (t + 1) of the updates count, all of them for 0. An empty list: the
        weights themselves. two_tailed: two more averages, a long and a short one, restarted by the held-out loss
        (two-tailed averaging).
    tempered: choose weights at the best softmax temperature, and keep that temperature; 1 without held-out text.
    evaluate_every: epochs between two evaluations on held-out data.
    patience: stop after this many evaluations without a new best; 0 for never.
    seconds: time limit of training in seconds, which the schedule then follows; 0 for none.
    precision: precision of matrix products; the weights themselves stay in float32. "float16" is for GPUs only;
        "bfloat16" on a CPU applies to the output layer's products, which are most of the work; "auto" is float16 on a
        GPU and float32 on a CPU.
    sampled: on a CPU, number of words of a sampled softmax; 0 for the full softmax.
    loss_scale: factor of the loss in float16, so that small gradients do not vanish.
    unknown: fraction of the words seen once that a language model reads as ``<unk>``, drawn again for each epoch, so
        that it learns to read unknown words although its vocabulary has all words (C. Dyer et al., "Transition-based
        dependency parsing with stack long short-term memory", 2015); no effect where the text contains ``<unk>``.
    """

    epochs: int = 40
    batch: int = 64
    steps: int = 35
    vary: bool = False
    shuffle: bool = False
    optimiser: str = "sgd"
    rate: float = 40.0
    warm_up: int = 0
    schedule: str = "cosine"
    hold: float = 0.6
    last_rate: float = 0.4
    full_epochs: int = 6
    decay: float = 0.5
    wait: int = 5
    clip: float = 0.25
    clip_value: float = 0.0
    weight_decay: float = 1.2e-6
    activation: float = 2.0
    change: float = 1.0
    averages: tuple[float, ...] = (8.0,)
    evaluate_every: int = 1
    patience: int = 0
    seconds: float = 0.0
    precision: str = "float32"
    sampled: int = 0
    loss_scale: float = 8192.0
    unknown: float = 0.0
    beta1: float = 0.9
    l2: float = 0.0
    reset: float = 0.0
    two_tailed: bool = False
    tempered: bool = False

    def __post_init__(self) -> None:
        check_numbers(self, "epochs", "batch", "steps", "evaluate_every", "wait", whole=True, least=1)
        check_numbers(self, "warm_up", "full_epochs", "patience", "sampled", whole=True)
        check_numbers(self, "rate", "decay", "loss_scale", above=0)
        check_numbers(self, "weight_decay", "activation", "change", "last_rate", "clip", "clip_value", "seconds", "l2")
        check_numbers(self, "hold", "reset", "unknown", most=1)
        check_numbers(self, "beta1", most=0.999)
        for name, choices in (("optimiser", OPTIMISERS), ("schedule", SCHEDULES), ("precision", PRECISIONS)):
            check_choice(self, name, choices)
        if any(not math.isfinite(tail) or tail < 0 for tail in self.averages):
            raise SettingError(f"averages are {self.averages!r}: expected numbers of 0 or more")
        if self.schedule == "nt-asgd" and not self.averages:
            raise SettingError("schedule is 'nt-asgd', which averages: expected averages=(0.0,)")

    @property
    def needs_held_out(self) -> bool:
        """Whether something here needs held-out data."""
        return self.schedule in ("plateau", "nt-asgd") or self.patience > 0 or self.two_tailed

    def precision_on(self, device: str) -> str:
        """Return the precision of products on a device, "cpu" or "cuda"."""
        if self.precision != "auto":
            return self.precision
        return "float32" if device == "cpu" else "float16"


LATER = ("unknown", "beta1", "l2", "reset", "two_tailed", "tempered", "state", "fresh")
"""Fields that 0.1.0 did not have."""


def json_of(settings: Training | Dropout) -> dict[str, Json]:
    """Return the fields for JSON."""
    values = {each.name: getattr(settings, each.name) for each in fields(settings)}
    found = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return without_later(found, {each.name: each.default for each in fields(settings)}, *LATER)


def without_later(settings: Mapping[str, Json], defaults: Mapping[str, Any], *later: str) -> dict[str, Json]:
    """Return settings without those ``later`` than 0.1.0 that are at their defaults.

    Files and the fingerprints of runs thus stay what they were in 0.1.0.
    """
    return {name: value for name, value in settings.items() if name not in later or value != defaults[name]}


def options_from(defaults: Mapping[str, Any], given: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """Return options with their defaults filled in; refuse names that are neither options nor ``others``."""
    unknown = sorted(set(given) - set(defaults) - set(others))
    if unknown:
        raise TypeError(f"unexpected argument {unknown[0]!r}: expected one of {', '.join([*defaults, *others])}")
    return {name: given.get(name, default) for name, default in defaults.items()}


class TrainingSettings(TypedDict, total=False):
    """Fields of ``Training`` that a constructor takes by name."""

    epochs: int
    batch: int
    steps: int
    vary: bool
    shuffle: bool
    optimiser: Literal["sgd", "adam"]
    rate: float
    warm_up: int
    schedule: Literal["constant", "step", "cosine", "plateau", "nt-asgd", "slanted"]
    hold: float
    last_rate: float
    full_epochs: int
    decay: float
    wait: int
    clip: float
    clip_value: float
    weight_decay: float
    averages: tuple[float, ...]
    average: float
    evaluate_every: int
    every: int
    patience: int
    seconds: float
    precision: Literal["float32", "float16", "bfloat16", "auto"]
    sampled: int
    loss_scale: float
    beta1: float
    l2: float
    reset: float
    two_tailed: bool
    tempered: bool


OTHER_NAMES = {"every": "evaluate_every", "average": "averages"}
"""Names of constructor arguments that a field of ``Training`` does not have."""


def training_from(usual: Training, training: Training | None, settings: Mapping[str, Any]) -> Training:
    """Return ``training``, or the usual settings, with single fields replaced by those given by name."""
    chosen = usual if training is None else training
    names = {each.name for each in fields(Training)}
    given = {OTHER_NAMES.get(name, name): value for name, value in settings.items()}
    given = {name: value for name, value in given.items() if name in names}
    if "averages" in given and not isinstance(given["averages"], tuple):
        given["averages"] = average_from(given["averages"])
    return replace(chosen, **given) if given else chosen


def average_from(tail: Any) -> tuple[float, ...]:
    """Return the averages that one number stands for: −1 for the weights themselves."""
    if isinstance(tail, bool) or not isinstance(tail, int | float) or not -1 <= tail < math.inf:
        raise SettingError(f"average={tail!r} must be a number of at least -1 and below inf")
    return (tail,) if tail >= 0 else ()


def average_of(training: Training) -> float:
    """Return the number that stands for the averages."""
    return training.averages[0] if training.averages else -1


PLACES = ("input", "between", "output")
"""The places of a network that one number for ``dropout`` is about."""


def dropout_from(usual: Dropout, dropout: Dropout | float | None, places: Collection[str]) -> Dropout:
    """Return the dropout given, one number being for three places; refuse it at other ``places``."""
    if isinstance(dropout, bool) or not isinstance(dropout, Dropout | int | float | None):
        raise SettingError(f"dropout={dropout!r} must be a number of at least 0 and below 1")
    if isinstance(dropout, int | float):
        if not 0 <= dropout < 1:
            raise SettingError(f"dropout={dropout!r} must be a number of at least 0 and below 1")
        shares: dict[str, Any] = {place: dropout for place in PLACES if place in places}
        dropout = replace(NO_DROPOUT, **shares)
    chosen = usual if dropout is None else dropout
    unknown = [each.name for each in fields(Dropout) if getattr(chosen, each.name) and each.name not in places]
    if unknown:
        raise SettingError(f"dropout of {unknown[0]} is not for this model, which has {', '.join(places)}: expected 0")
    return chosen


def dropout_of(dropout: Dropout, places: Collection[str]) -> Json:
    """Return dropout for JSON: one number where that says it all."""
    first = getattr(dropout, next(place for place in PLACES if place in places))
    return first if dropout == dropout_from(NO_DROPOUT, first, places) else json_of(dropout)


def settings_of(training: Training, usual: Training, names: Sequence[str]) -> dict[str, Json]:
    """Return the fields of these names for JSON, and under "training" all fields where others are not the usual."""
    found: dict[str, Json] = {}
    for name in names:
        found[name] = average_of(training) if name == "average" else getattr(training, OTHER_NAMES.get(name, name))
    if training_from(usual, None, found) != training:
        found["training"] = json_of(training)
    return found


def saved_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that were read from model.json as arguments of a constructor."""
    found = dict(settings)
    training, dropout = found.get("training"), found.get("dropout")
    if training is not None:
        if not isinstance(training, Mapping) or not isinstance(training.get("averages", []), list):
            raise ValueError("expected training settings with a list 'averages'")
        found["training"] = Training(**{**training, "averages": tuple(training.get("averages", Training().averages))})
    if isinstance(dropout, Mapping):
        found["dropout"] = Dropout(**dropout)
    return found
