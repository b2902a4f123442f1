"""How far a network can learn to remember: trained, lag by lag, on tasks that need memory and nothing else.

    recall   a symbol, then ``lag`` distractors, then a question mark: which symbol was it?
    copying  several symbols, ``lag`` blanks, then as many question marks: repeat the symbols in order
    adding   numbers between 0 and 1 of which two are marked, one in each half: what is their sum?

S. Hochreiter and J. Schmidhuber, "Long short-term memory" (1997) for the last two. Shapes: T steps, B examples in a
batch, I inputs, n steps at the end that are scored, H hidden units.

One layer reads a task and a linear layer answers from its last states. For each update a lag is drawn between 1 and the
full one, so that there is always something near enough to begin with; the answer is tested at the full lag. Networks of
one size get the same updates; the share of the seeds that solved a task is reported.

The kinds, all by ``nn/layers.py``: "rnn" (tanh, W_h normal of size 1/√H), "relu" (the same with ReLU, of size √(2/H)),
"irnn" (ReLU, W_h = 1; Q. Le et al. 2015), "gru", "lstm" (forget bias 1) and "min-gru".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from foreword.arrays import Array, Bools, Doubles, Floats, Ids, Longs
from foreword.errors import MissingExtraError, SettingError
from foreword.picture.heat import grid, square
from foreword.picture.picture import Picture, label, percent, svg
from foreword.protocols import Meter

try:
    import torch
    from torch import Tensor
    from torch.nn.functional import cross_entropy, linear, mse_loss
except ImportError:
    raise MissingExtraError("torch", "neural", "a network that learns to remember") from None

from foreword.nn.layers import gru, lstm, min_gru, rnn

# Tasks


@dataclass(frozen=True, slots=True)
class TaskExamples:
    """Inputs x (T, B, I), float32, and targets ``wanted`` (n, B) of the last n steps: symbols (int64) or numbers
    (float32).
    """

    x: Floats
    wanted: Array


class MemoryTask(Protocol):
    """A task. lag: steps between what is to be remembered and the question. inputs, outputs: sizes of a step."""

    @property
    def lag(self) -> int: ...
    @property
    def inputs(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    def draw(self, examples: int, random: np.random.Generator, lag: int | None = None) -> TaskExamples:
        """Draw examples, at another lag if one is given."""
        ...


@dataclass(frozen=True, slots=True)
class Recall:
    """The recall task. Distractors are drawn from as many other symbols."""

    lag: int
    symbols: int = 8

    @property
    def inputs(self) -> int:
        """Number of input features."""
        return 2 * self.symbols + 1

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.symbols

    def draw(self, examples: int, random: np.random.Generator, lag: int | None = None) -> TaskExamples:
        """Draw examples, at another lag if one is given."""
        steps = _check_lag(self.lag if lag is None else lag)
        first = random.integers(self.symbols, size=(1, examples))
        others = self.symbols + random.integers(self.symbols, size=(steps, examples))
        question = np.full((1, examples), 2 * self.symbols)
        return TaskExamples(one_hot(np.concatenate((first, others, question)), self.inputs), first)


@dataclass(frozen=True, slots=True)
class Copying:
    """The copying task. items: the number of symbols to repeat. ``lag=0`` measures the capacity of a state."""

    lag: int
    items: int = 4
    symbols: int = 8

    @property
    def inputs(self) -> int:
        """Number of input features."""
        return self.symbols + 2

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.symbols

    def draw(self, examples: int, random: np.random.Generator, lag: int | None = None) -> TaskExamples:
        """Draw examples, at another lag if one is given."""
        steps = _check_lag(self.lag if lag is None else lag)
        items = random.integers(self.symbols, size=(self.items, examples))
        blanks = np.full((steps, examples), self.symbols)
        questions = np.full((self.items, examples), self.symbols + 1)
        return TaskExamples(one_hot(np.concatenate((items, blanks, questions)), self.inputs), items)


@dataclass(frozen=True, slots=True)
class Adding:
    """The adding task: ``lag + 1`` numbers; the target is the sum of the two marked ones, less 1, so its mean is 0."""

    lag: int

    @property
    def inputs(self) -> int:
        """Number of input features."""
        return 2

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return 1

    def draw(self, examples: int, random: np.random.Generator, lag: int | None = None) -> TaskExamples:
        """Draw examples, at another lag if one is given."""
        steps = _check_lag(self.lag if lag is None else lag) + 1
        x = np.zeros((max(steps, 2), examples, 2), np.float32)
        steps, columns = len(x), np.arange(examples)
        x[:, :, 0] = random.random((steps, examples))
        first = random.integers(steps // 2, size=examples)
        second = random.integers(steps // 2, steps, size=examples)
        x[first, columns, 1] = x[second, columns, 1] = 1
        total = x[first, columns, 0] + x[second, columns, 0] - 1
        return TaskExamples(x, total[None].astype(np.float32))


def one_hot(ids: Ids, size: int) -> Floats:
    """Encode ids (…) as one-hot vectors (…, size)."""
    rows: Floats = np.eye(size, dtype=np.float32)[ids]
    return rows


def _check_lag(lag: int) -> int:
    if lag < 0:
        raise SettingError(f"lag={lag}: expected 0 or more")
    return lag


# Training

KINDS = ("rnn", "relu", "irnn", "gru", "lstm", "min-gru")

GATES = {"rnn": 1, "relu": 1, "irnn": 1, "gru": 3, "lstm": 4}

NEAR = 0.1
"""Greatest error of a number that counts as right."""


@dataclass(frozen=True, slots=True)
class MemoryTraining:
    """How a network is trained on a task.

    hidden: units. batch, updates, rate, clip: of Adam, with gradients clipped by norm. solved: the share of answers
    that must be right. check_every: updates between two tests on ``tested`` new examples; the run ends when one is
    passed. forget_bias: the initial one of an LSTM. mixed: train on lags from 1 on, not on the full one alone. window:
    steps of truncated backpropagation through time, 0 for all; the last window ends with the question. carried: the
    state before a window is that after the one before, without its gradient; else zeros, in tests too.
    """

    hidden: int = 32
    batch: int = 32
    updates: int = 800
    rate: float = 0.01
    clip: float = 1.0
    solved: float = 0.95
    check_every: int = 50
    tested: int = 256
    forget_bias: float = 1.0
    mixed: bool = True
    window: int = 0
    carried: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """right: the share of right answers at the last test. updates: until then. diverged: the loss was not finite.

    weights: of the layer, W_x, W_h, b_x and b_h, as they were then.
    """

    right: float
    updates: int
    diverged: bool
    weights: tuple[Floats, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Horizon:
    """Outcomes by kind, lag and seed. right, updates, diverged: (kinds, lags, seeds). solved: the share of right
    answers from which on a task counts as solved.
    """

    kinds: list[str]
    lags: list[int]
    right: Doubles
    updates: Longs
    diverged: Bools
    solved: float

    def success(self) -> Doubles:
        """Return the share of seeds that solved the task: (kinds, lags)."""
        shares: Doubles = (self.right >= self.solved).mean(axis=2)
        return shares

    def reach(self) -> dict[str, int]:
        """Return the longest lag up to which every lag was solved by at least half the seeds, or 0, for each kind."""
        won = self.success() >= 0.5
        steps = np.where(won.all(axis=1), won.shape[1], won.argmin(axis=1))
        return {kind: self.lags[count - 1] if count else 0 for kind, count in zip(self.kinds, steps, strict=True)}


def horizon(
    task: Callable[[int], MemoryTask],
    lags: Sequence[int],
    kinds: Sequence[str] = KINDS,
    seeds: Sequence[int] = (0, 1, 2),
    learning: MemoryTraining | None = None,
    *,
    rates: Mapping[str, float] | None = None,
    meter: Meter | None = None,
) -> Horizon:
    """Train each kind at each lag with each seed. rates: learning rates of single kinds, where they differ."""
    learning = MemoryTraining() if learning is None else learning
    total = len(kinds) * len(lags) * len(seeds)
    outcomes: list[Outcome] = []
    for kind in kinds:
        own = replace(learning, rate=(rates or {}).get(kind, learning.rate))
        for lag in lags:
            for seed in seeds:
                if meter:
                    meter(f"{kind} at lag {lag}", len(outcomes), total)
                outcomes.append(learn(task(lag), kind, own, seed))
    shape = (len(kinds), len(lags), len(seeds))
    return Horizon(
        list(kinds),
        list(lags),
        np.array([outcome.right for outcome in outcomes]).reshape(shape),
        np.array([outcome.updates for outcome in outcomes]).reshape(shape),
        np.array([outcome.diverged for outcome in outcomes]).reshape(shape),
        learning.solved,
    )


@dataclass(frozen=True, slots=True)
class Capacity:
    """right (sizes, items, seeds): the share of ``items`` random symbols that a state of ``sizes`` units repeated."""

    sizes: list[int]
    items: list[int]
    right: Doubles


def capacity(
    items: Sequence[int],
    sizes: Sequence[int],
    kind: str = "gru",
    seeds: Sequence[int] = (0,),
    learning: MemoryTraining | None = None,
    *,
    symbols: int = 8,
    meter: Meter | None = None,
) -> Capacity:
    """Measure how many symbols a state of fixed size can repeat in order."""
    learning = MemoryTraining() if learning is None else learning
    right = np.empty((len(sizes), len(items), len(seeds)))
    for row, size in enumerate(sizes):
        for column, count in enumerate(items):
            for number, seed in enumerate(seeds):
                if meter:
                    meter(f"{count} items in {size} units", right[:row].size + column * len(seeds) + number, right.size)
                outcome = learn(Copying(0, count, symbols), kind, replace(learning, hidden=size, mixed=False), seed)
                right[row, column, number] = outcome.right
    return Capacity(list(sizes), list(items), right)


def learn(task: MemoryTask, kind: str, learning: MemoryTraining | None = None, seed: int = 0) -> Outcome:
    """Train one network on one task; the seed determines everything."""
    learning = MemoryTraining() if learning is None else learning
    random, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    weights = first_weights(kind, task.inputs, learning.hidden, generator, learning.forget_bias)
    head = _normal((task.outputs, learning.hidden), learning.hidden**-0.5, generator), torch.zeros(task.outputs)
    learnt = [weight.requires_grad_() for weight in (*weights, *head)]
    optimiser = torch.optim.Adam(learnt, lr=learning.rate)
    right = 0.0
    for update in range(1, learning.updates + 1):
        lag = int(random.integers(1, task.lag + 1)) if learning.mixed and task.lag > 1 else None
        examples = task.draw(learning.batch, random, lag)
        answers, wanted = _answer(kind, weights, head, examples, learning)
        loss = (
            cross_entropy(answers.flatten(0, 1), wanted.flatten())
            if not wanted.is_floating_point()
            else mse_loss(answers[..., 0], wanted)
        )
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(learnt, learning.clip)
        if not bool(torch.isfinite(loss)) or not bool(torch.isfinite(norm)):
            return Outcome(right, update, diverged=True)
        optimiser.step()
        if update % learning.check_every == 0 or update == learning.updates:
            right = _tested(task, kind, weights, head, learning, random)
            if right >= learning.solved:
                break
    return Outcome(right, update, diverged=False, weights=tuple(weight.detach().numpy() for weight in weights))


def first_weights(
    kind: str, inputs: int, hidden: int, generator: torch.Generator, forget_bias: float = 1.0
) -> list[Tensor]:
    """Return the initial weights of a layer."""
    if kind == "min-gru":
        return [_normal((2 * hidden, inputs), inputs**-0.5, generator), torch.zeros(2 * hidden)]
    if kind not in GATES:
        raise SettingError(f"kind={kind!r}: expected one of {', '.join(KINDS)}")
    size = GATES[kind] * hidden
    w_x = _normal((size, inputs), hidden**-0.5, generator)
    w_h = _normal((size, hidden), (2 / hidden) ** 0.5 if kind == "relu" else hidden**-0.5, generator)
    b_x, b_h = torch.zeros(size), torch.zeros(size)
    if kind == "irnn":
        w_h = torch.eye(hidden)
    if kind == "lstm":
        b_x[hidden : 2 * hidden] = forget_bias
    return [w_x, w_h, b_x, b_h]


def run_layer(kind: str, x: Tensor, weights: Sequence[Tensor], start: Sequence[Tensor] = ()) -> tuple[Tensor, ...]:
    """Return every output (T, B, H) and the last state: h, and c of an LSTM. start: such a state, or of zeros."""
    if not start:
        h = x.new_zeros(x.shape[1], weights[1].shape[-1] if kind != "min-gru" else len(weights[1]) // 2)
        start = (h, torch.zeros_like(h))
    if kind == "lstm":
        return lstm(x, start[0], start[1], weights)
    if kind == "gru":
        return gru(x, start[0], weights)
    if kind == "min-gru":
        return min_gru(x, start[0], weights)
    return rnn(x, start[0], weights, "tanh" if kind == "rnn" else "relu")


def _answer(
    kind: str, weights: Sequence[Tensor], head: tuple[Tensor, Tensor], examples: TaskExamples, learning: MemoryTraining
) -> tuple[Tensor, Tensor]:
    """Return the network's answers at the scored steps (n, B, outputs), and the targets (n, B)."""
    x, start = torch.from_numpy(examples.x), list[Tensor]()
    if 0 < learning.window < len(x):
        if learning.carried:
            with torch.no_grad():
                _, *start = run_layer(kind, x[: -learning.window], weights)
        x = x[-learning.window :]
    states = run_layer(kind, x, weights, start)[0][-len(examples.wanted) :]
    return linear(states, *head), torch.from_numpy(examples.wanted)


@torch.no_grad()
def _tested(
    task: MemoryTask,
    kind: str,
    weights: Sequence[Tensor],
    head: tuple[Tensor, Tensor],
    learning: MemoryTraining,
    random: np.random.Generator,
) -> float:
    answers, wanted = _answer(kind, weights, head, task.draw(learning.tested, random), learning)
    right = (answers[..., 0] - wanted).abs() < NEAR if wanted.is_floating_point() else answers.argmax(-1) == wanted
    return float(right.double().mean())


def _normal(shape: tuple[int, ...], size: float, generator: torch.Generator) -> Tensor:
    return size * torch.randn(shape, generator=generator)


# The picture

ROW, TOP, FIRST = 30, 30, 0.22


def draw_horizon(
    names: Sequence[str],
    columns: Sequence[int],
    shares: Doubles,
    title: str,
    caption: str,
    *,
    over: str = "lag",
) -> Picture:
    """Draw shares (names, columns), between 0 and 1, as a grid; ``over`` names what the columns count."""
    if shares.shape != (len(names), len(columns)) or not shares.size:
        raise SettingError(f"shares of shape {shares.shape}: expected {len(names)} rows and {len(columns)} columns")
    width = (1 - FIRST) / len(columns)
    shapes = [label(over, percent(FIRST - 0.02), 14, anchor="end", colour="muted")]
    shapes += [
        label(f"{column:,}", percent(FIRST + width * (index + 0.5)), 14, anchor="middle", colour="muted")
        for index, column in enumerate(columns)
    ]
    for row, name in enumerate(names):
        top = TOP + ROW * row
        shapes.append(label(name, "0", top + 18))
        for column, share in enumerate(shares[row].tolist()):
            left = FIRST + width * column
            hint = f"{name}, {over} {columns[column]}: {share:.0%}"
            shapes.append(grid([square(share, left, top, width, ROW - 4, hint)]))
            # Letters on a full square would drown; its colour already says the same.
            if share < 0.9:
                colour, middle = "ink" if share >= 0.25 else "muted", percent(left + width / 2)
                shapes.append(label(f"{100 * share:.0f} %", middle, top + 17, anchor="middle", colour=colour))
    return Picture(svg(title, TOP + ROW * len(names), shapes), title, caption)
