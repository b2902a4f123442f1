"""Why a gradient vanishes or explodes on its way back through time, measured.

The derivative of the state at step T by the state at step k is a product of one Jacobian per step, and a loss at step T
teaches step k by that product alone:

    ∂s_T/∂s_k = J_T J_(T−1) … J_(k+1),    J_t = ∂s_t/∂s_(t−1)        s = h, and for an LSTM h and c
    J_t = diag(f′) W_h  for  h_t = f(W_x x_t + W_h h_(t−1) + b)

``lag`` is T − k throughout. Everything here reads the cells of ``nn/cells.py`` and the steps that they cached. Shapes:
T steps, B texts in a batch, H hidden units, S = H, or 2H for an LSTM, numbers in a state.

Y. Bengio, P. Simard and P. Frasconi, "Learning long-term dependencies with gradient descent is difficult" (1994);
R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural networks" (2013).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from foreword.arrays import Doubles, Reals
from foreword.errors import SettingError
from foreword.nn.cells import Cell, GRUCell, Kept, LSTMCell, RNNCell, State

C = TypeVar("C", bound=Cell)

SILENT = 1e-3
"""A step whose gradient is below this share of the last step's learns next to nothing."""

BINS = 10
"""Bins of a histogram of slopes, from 0 to 1."""


# Jacobians and their products


def step_jacobians(cell: Cell, kept: Sequence[Kept], text: int = 0) -> Doubles:
    """Return the exact J_t of every step for one text, (T, S, S): rows of J are what ``back`` makes of unit vectors."""
    reader = _without_gradients(cell)
    parts = len(cell.start(1))
    size = parts * cell.hidden
    units = tuple(np.split(np.eye(size), parts, axis=1))
    jacobians = []
    for step in kept:
        rows = tuple(np.repeat(part[text : text + 1], size, axis=0) for part in step)
        _, before = reader.back(units, rows)
        jacobians.append(np.concatenate(before, axis=1))
    return np.array(jacobians)


def jacobian_products(jacobians: Doubles) -> Doubles:
    """Return ∂s_T/∂s_(T−lag) for lag 0, 1, … T: (T + 1, S, S); the first is the identity."""
    product = np.eye(jacobians.shape[1])
    products = [product]
    for jacobian in jacobians[::-1]:
        product = product @ jacobian
        products.append(product)
    return np.array(products)


def norms_by_lag(products: Doubles) -> Doubles:
    """Return the largest singular values: the most that a change of the state at a lag can change the last state."""
    norms: Doubles = np.linalg.norm(products, 2, axis=(1, 2))
    return norms


# The gradient of a loss at the last step


def gradient_by_lag(cells: Sequence[Cell], kept: Sequence[Sequence[Kept]], d_last: Reals) -> Doubles:
    """Return |∂L_T/∂s_(T−lag)| of stacked layers (layers, T, B), from d_last = ∂L_T/∂h_T of the top layer, (B, H).

    The loss counts the last step alone, so that what arrives at an earlier one has come all that way.
    """
    return _states_and_inputs(cells, kept, d_last)[0]


def input_gradient_by_lag(cells: Sequence[Cell], kept: Sequence[Sequence[Kept]], d_last: Reals) -> Doubles:
    """Return |∂L_T/∂x_(T−lag)| (T, B): how much one loss teaches the word at a lag, through all layers.

    A state's gradient at lag 0 has not passed a cell yet, one at lag 1 has; words are all taught through the cell that
    read them, so these are comparable at every lag.
    """
    return _states_and_inputs(cells, kept, d_last)[1]


def _states_and_inputs(cells: Sequence[Cell], kept: Sequence[Sequence[Kept]], d_last: Reals) -> tuple[Doubles, Doubles]:
    d_outputs = np.zeros((len(kept[0]), *d_last.shape), d_last.dtype)
    d_outputs[-1] = d_last
    found = []
    for cell, steps in zip(cells[::-1], kept[::-1], strict=True):
        norms, d_outputs = _walk_back(_without_gradients(cell), steps, d_outputs)
        found.append(norms)
    return np.array(found[::-1]), np.linalg.norm(d_outputs[::-1].astype(np.float64), axis=2)


def silent_from(norms: Sequence[float] | Reals, share: float = SILENT) -> int | None:
    """Return the first lag from which on every gradient is below ``share`` of that at lag 0, or None.

    An exploding gradient ends a run with NaN, and everybody sees it. A vanishing one is silent: the loss keeps falling
    by what nearby words teach.
    """
    values = np.asarray(norms, np.float64)
    loud = np.flatnonzero(~(values < share * values[0]))
    first = int(loud[-1]) + 1 if len(loud) else 0
    return first if first < len(values) else None


def growth_per_step(norms: Sequence[float] | Reals) -> float:
    """Return the factor per step by which gradients change, from a line through their logs."""
    values = np.asarray(norms, np.float64)
    lags = np.flatnonzero(np.isfinite(values) & (values > 0))
    if len(lags) < 2:
        return float("nan")
    return float(np.exp(np.polyfit(lags, np.log(values[lags]), 1)[0]))


# Spectral radius and norm


@dataclass(frozen=True, slots=True)
class Regime:
    """What repeated multiplication by a matrix does.

    radius: the largest |eigenvalue|, which decides after many steps. norm: the largest singular value, which bounds one
    step. verdict: "vanishes" from the first step on (norm < 1), "vanishes in the end" (radius < 1 ≤ norm: it may grow
    before it falls), "explodes" (radius > 1), "stays" (radius = 1 to rounding).
    """

    radius: float
    norm: float
    verdict: Literal["vanishes", "vanishes in the end", "explodes", "stays"]


def regime(weight: Reals, slope: float = 1.0) -> Regime:
    """Classify ``slope · weight``, where slope stands for f′. A norm below 1 suffices for vanishing; one above 1 is
    necessary for exploding but not sufficient: the radius decides.
    """
    if weight.ndim != 2 or weight.shape[0] != weight.shape[1]:
        raise SettingError(f"a matrix of shape {weight.shape}: expected a square one")
    radius = float(slope * np.abs(np.linalg.eigvals(weight)).max())
    norm = float(slope * np.linalg.norm(weight, 2))
    if norm < 1:
        return Regime(radius, norm, "vanishes")
    if abs(radius - 1) < 1e-9:
        return Regime(radius, norm, "stays")
    return Regime(radius, norm, "explodes" if radius > 1 else "vanishes in the end")


def counter_example() -> Doubles:
    """Return a matrix (64, 64) whose norm is above 1 and whose powers vanish: N(0, 0.5²/64) with seed 0.

    It is the "small W" of a published experiment, and refutes the rule that was printed with it, that a largest
    singular value above 1 explodes: its norm is 1.0025, its radius 0.510.
    """
    return np.random.default_rng(0).normal(0, 0.5 / 8, (64, 64))


# The published experiment, run


@dataclass(frozen=True, slots=True)
class Vanishing:
    """A gradient multiplied a hundred times by slope · Wᵀ. ratios: of its last norm to its first, one for each start
    vector. printed: the published one; without_slope: the median without f′.
    """

    regime: Regime
    printed: float
    ratios: Doubles
    without_slope: float

    @property
    def median(self) -> float:
        """The median of the ratios."""
        return float(np.median(self.ratios))


def backward_norms(weight: Reals, start: Reals, steps: int, slope: float = 1.0) -> Doubles:
    """Return norms (steps + 1, n) of n gradients, the columns of ``start`` (H, n), passed back through a linear net."""
    norms = [np.linalg.norm(start, axis=0)]
    for _ in range(steps):
        start = slope * (weight.T @ start)
        norms.append(np.linalg.norm(start, axis=0))
    return np.array(norms)


def published_experiment(starts: int = 200, steps: int = 100) -> dict[str, Vanishing]:
    """Run the experiment "small W" and "large W", with its published seed, from many start vectors.

    The published ratios are 3.7e-31 and 1.4e+18. The first does not reproduce: radius · slope = 0.51 · 0.5, and its
    hundredth power is 5e-60. Without the factor 0.5 the ratio is near 1e-30, as if that factor had been left out. The
    second is some ten thousand times too small for this seed.
    """
    random = np.random.default_rng(0)  # the two matrices come from one stream, in this order
    weights = {"small W": random.normal(0, 0.5 / 8, (64, 64)), "large W": random.normal(0, 3 / 8, (64, 64))}
    printed = {"small W": 3.7e-31, "large W": 1.4e18}
    start = np.random.default_rng(1).normal(size=(64, starts))
    found = {}
    for name, weight in weights.items():
        norms, plain = backward_norms(weight, start, steps, 0.5), backward_norms(weight, start, steps)
        left_out = float(np.median(plain[-1] / plain[0]))
        found[name] = Vanishing(regime(weight, 0.5), printed[name], norms[-1] / norms[0], left_out)
    return found


# Forward: the state itself


def state_norms(
    weight: Reals, start: Reals, steps: int, activation: Literal["linear", "relu", "tanh"] = "linear"
) -> Doubles:
    """Return |h_t| of h_t = f(W h_(t−1)) without input, (steps + 1,): a radius below 1 shrinks it, one above 1 makes it
    explode, and tanh bounds it by √H whatever W is.
    """
    functions: dict[str, Callable[[Reals], Reals]] = {
        "linear": lambda a: a,
        "relu": lambda a: np.maximum(a, 0),
        "tanh": lambda a: np.tanh(a),
    }
    if activation not in functions:
        raise SettingError(f"activation={activation!r}: expected 'linear', 'relu' or 'tanh'")
    norms = [float(np.linalg.norm(start))]
    for _ in range(steps):
        start = functions[activation](weight @ start)
        norms.append(float(np.linalg.norm(start)))
    return np.array(norms)


# Saturation


@dataclass(frozen=True, slots=True)
class Saturation:
    """The slopes f′ that gradients are multiplied with. shares (T, bins): their histogram at every step, from 0
    (saturated) to 1; edges (bins + 1,). mean: over everything. saturated: the share below 0.1.
    """

    edges: Doubles
    shares: Doubles
    mean: float
    saturated: float


def saturation(cell: Cell, kept: Sequence[Kept], bins: int = BINS) -> Saturation:
    """Measure the slopes of a layer's activations: tanh′ = 1 − tanh² of h in an RNN, of g in an LSTM, of n in a GRU."""
    slopes = np.array([_slopes(cell, step).ravel() for step in kept])
    edges = np.linspace(0, 1, bins + 1)
    shares = np.array([np.histogram(row, edges)[0] / row.size for row in slopes])
    return Saturation(edges, shares, float(slopes.mean()), float((slopes < 0.1).mean()))


# The highway of an LSTM


@dataclass(frozen=True, slots=True)
class Highway:
    """How much of c_(T−lag) is left in c_T, for lag 0, 1, … T; (T + 1,) each.

    direct: the mean over units of Π f_t, the path along c alone, with fixed gates; direct_norm: the largest of them.
    full: the mean of |∂c_T/∂c_(T−lag)| on the diagonal, the gates' own dependence on h included; full_norm: the largest
    singular value of that whole matrix.
    """

    direct: Doubles
    direct_norm: Doubles
    full: Doubles
    full_norm: Doubles


def forget_products(kept: Sequence[Kept]) -> Doubles:
    """Return Π f_t over the last ``lag`` steps of an LSTM, for lag 0, 1, … T: (T + 1, B, H)."""
    forget = np.array([step[4] for step in kept])
    products: Doubles = np.concatenate((np.ones_like(forget[:1]), np.cumprod(forget[::-1], axis=0)))
    return products


def highway(cell: LSTMCell, kept: Sequence[Kept], text: int = 0) -> Highway:
    """Measure the path along an LSTM's cell. ∂c_t/∂c_(t−1) is "simply f_t" with fixed gates; they depend on h_(t−1),
    hence on c_(t−1), and the whole Jacobian says what that adds.
    """
    direct = forget_products(kept)[:, text]
    size = cell.hidden
    of_c = jacobian_products(step_jacobians(cell, kept, text))[:, size:, size:]
    diagonals = np.abs(np.diagonal(of_c, axis1=1, axis2=2))
    return Highway(direct.mean(axis=1), direct.max(axis=1), diagonals.mean(axis=1), norms_by_lag(of_c))


def frozen_radius(cell: Cell, held: Kept, rounds: int = 200, seed: int = 0) -> float:
    """Return the spectral radius of J_t at one step, by power iteration, for cells whose Jacobian is too large.

    The largest eigenvalues come in conjugate pairs, which make single ratios oscillate; their geometric mean converges.
    """
    reader = _without_gradients(cell)
    one = tuple(part[:1] for part in held)
    random = np.random.default_rng(seed)
    state: State = tuple(random.normal(size=part.shape) for part in cell.start(1))
    logs = []
    for _ in range(rounds):
        size = np.sqrt(sum(float((part**2).sum()) for part in state))
        if size == 0:
            return 0.0
        _, state = reader.back(tuple(part / size for part in state), one)
        logs.append(np.log(max(np.sqrt(sum(float((part**2).sum()) for part in state)), 1e-300)))
    return float(np.exp(np.mean(logs[rounds // 2 :])))


def _walk_back(reader: Cell, held: Sequence[Kept], d_outputs: Reals) -> tuple[Doubles, Reals]:
    """Return norms of the state's gradient by lag (T, B), and the gradient of the layer's inputs (T, B, I)."""
    d_state: State = tuple(np.zeros_like(d_outputs[0]) for _ in reader.start(1))
    norms, d_x = [], []
    for d_h, step in zip(d_outputs[::-1], held[::-1], strict=True):
        d_state = (d_state[0] + d_h, *d_state[1:])
        norms.append(np.sqrt(sum((part.astype(np.float64) ** 2).sum(axis=1) for part in d_state)))
        d_x_t, d_state = reader.back(d_state, step)
        d_x.append(d_x_t)
    return np.array(norms), np.array(d_x[::-1])


def _without_gradients(cell: C) -> C:
    """Return a copy of the cell with gradients of its own, so that those of a training run are left alone."""
    reader = copy.copy(cell)
    reader.grads = {name: np.zeros_like(weight) for name, weight in cell.weights.items()}
    return reader


def _slopes(cell: Any, held: Kept) -> Reals:
    if isinstance(cell, RNNCell):
        return cell.slope(held[2])
    if isinstance(cell, LSTMCell):
        return 1 - held[5] ** 2
    if isinstance(cell, GRUCell):
        return 1 - held[4] ** 2
    raise SettingError(f"{type(cell).__name__}: its slopes are not known, expected an RNN, an LSTM or a GRU")
