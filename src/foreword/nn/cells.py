"""Recurrent cells in NumPy, with backpropagation through time written out: to be read, and to check the fast ones.

T steps, a batch of B texts, I inputs, H hidden units. Inputs x (T, B, I), states h and c (B, H), weights in PyTorch's
shapes: W_x (gates · H, I), W_h (gates · H, H), b (gates · H,). A cell has two methods::

    step(x, state)             -> new state, and what ``back`` needs of this step
    back(d_state, kept)        -> d_x, d_state of the step before; gradients of the weights are added to ``grads``

and ``run`` and ``run_back`` run any cell over a whole sequence. A state is a tuple of arrays, h first.

J. Elman, "Finding structure in time" (1990); S. Hochreiter and J. Schmidhuber, "Long short-term memory" (1997), with
the forget gate of F. Gers et al. (2000); K. Cho et al., "Learning phrase representations using RNN encoder-decoder"
(2014); Q. Le et al., "A simple way to initialize recurrent networks of rectified linear units" (2015); L. Feng et al.,
"Were RNNs all we needed?" (2024).
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from foreword.arrays import Ids, Reals
from foreword.errors import SettingError

State = tuple[Reals, ...]
Kept = tuple[Reals, ...]

Activation = Literal["tanh", "relu"]
Reset = Literal["before", "after"]


class Cell(Protocol):
    """The interface of a cell."""

    hidden: int
    weights: dict[str, Reals]
    grads: dict[str, Reals]

    def start(self, batch: int) -> State:
        """Return the state before the first step."""

    def step(self, x: Reals, state: State) -> tuple[State, Kept]:
        """Return the next state, and what ``back`` needs."""

    def back(self, d_state: State, kept: Kept) -> tuple[Reals, State]:
        """Add to the gradients of the weights; return those of the input and of the state before."""


def run(cell: Cell, x: Reals, state: State | None = None) -> tuple[Reals, State, list[Kept]]:
    """Run a cell over a sequence: every h (T, B, H), the last state, and what ``run_back`` needs."""
    state = cell.start(x.shape[1]) if state is None else state
    outputs, kept = [], []
    for x_t in x:
        state, saved = cell.step(x_t, state)
        outputs.append(state[0])
        kept.append(saved)
    return np.stack(outputs), state, kept


def run_back(cell: Cell, d_outputs: Reals, kept: list[Kept], d_last: State | None = None) -> tuple[Reals, State]:
    """Backpropagate through time: from the gradients of every h and the last state to those of x and the first."""
    d_state = d_last or tuple(np.zeros_like(part) for part in cell.start(d_outputs.shape[1]))
    d_x = []
    for d_h, saved in zip(d_outputs[::-1], kept[::-1], strict=True):
        d_x_t, d_state = cell.back((d_state[0] + d_h, *d_state[1:]), saved)
        d_x.append(d_x_t)
    return np.stack(d_x[::-1]), d_state


class RNNCell:
    """Elman's cell: ``h = f(W_x x + W_h h + b)``, the same as ``f(W [h, x] + b)`` with W = [W_h, W_x]; f tanh or ReLU.

    identity: initialise W_h = 1, as ReLU needs (the IRNN of Le et al.); else with normal numbers of size 1/√H.
    """

    def __init__(
        self, inputs: int, hidden: int, *, activation: Activation = "tanh", identity: bool = False, seed: int = 0
    ) -> None:
        if activation not in ("tanh", "relu"):
            raise SettingError(f"activation={activation!r}: expected 'tanh' or 'relu'")
        self.hidden = hidden
        self.activation = activation
        self.weights = _random_weights(inputs, hidden, 1, seed)
        if identity:
            self.weights["W_h"] = np.eye(hidden)
        self.grads = _zeros_like(self.weights)

    def start(self, batch: int) -> State:
        """Return a state of zeros."""
        return (np.zeros((batch, self.hidden)),)

    def step(self, x: Reals, state: State) -> tuple[State, Kept]:
        """Return the new state, and what ``back`` needs."""
        (h,) = state
        w = self.weights
        a = x @ w["W_x"].T + h @ w["W_h"].T + w["b"]
        new = np.tanh(a) if self.activation == "tanh" else np.maximum(a, 0)
        return (new,), (x, h, new)

    def slope(self, new: Reals) -> Reals:
        """Return f′ at a step, computed from its result: 1 − h² for tanh, at most 1 and near 0 where it saturates."""
        slope: Reals = 1 - new**2 if self.activation == "tanh" else (new > 0).astype(new.dtype)
        return slope

    def back(self, d_state: State, kept: Kept) -> tuple[Reals, State]:
        """Return the gradients of the input and of the state before; add those of the weights to ``grads``."""
        x, h, new = kept
        d_a = d_state[0] * self.slope(new)
        _add_linear(self.grads, d_a, x, h)
        return d_a @ self.weights["W_x"], (d_a @ self.weights["W_h"],)

    def jacobian(self, new: Reals) -> Reals:
        """Return ∂h_t/∂h_(t−1) = diag(f′) W_h for one text: (H,) → (H, H)."""
        jacobian: Reals = self.slope(new)[:, None] * self.weights["W_h"]
        return jacobian


class LSTMCell:
    """The long short-term memory: gates i (input), f (forget), o (output) and a candidate g, in PyTorch's order::

        i, f, o = σ(W_x x + W_h h + b)    g = tanh(W_x x + W_h h + b)    each with its own rows of W_x, W_h and b
        c = f·c + i·g                     h = o·tanh(c)

    The forget gate's bias is initialised to 1, so that a new cell remembers (Gers et al. 2000; Jozefowicz et al. 2015).
    """

    def __init__(self, inputs: int, hidden: int, *, forget_bias: float = 1.0, seed: int = 0) -> None:
        self.hidden = hidden
        self.weights = _random_weights(inputs, hidden, 4, seed)
        self.weights["b"][hidden : 2 * hidden] = forget_bias
        self.grads = _zeros_like(self.weights)

    def start(self, batch: int) -> State:
        """Return a state of zeros."""
        return np.zeros((batch, self.hidden)), np.zeros((batch, self.hidden))

    def gates(self, x: Reals, h: Reals) -> tuple[Reals, Reals, Reals, Reals]:
        """Return i, f, g, o of one step: what diagrams of an LSTM show."""
        w = self.weights
        i, f, g, o = np.split(x @ w["W_x"].T + h @ w["W_h"].T + w["b"], 4, axis=1)
        return sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)

    def step(self, x: Reals, state: State) -> tuple[State, Kept]:
        """Return the new state, and what ``back`` needs."""
        h, c = state
        i, f, g, o = self.gates(x, h)
        new_c = f * c + i * g
        squashed = np.tanh(new_c)
        return (o * squashed, new_c), (x, h, c, i, f, g, o, squashed)

    def back(self, d_state: State, kept: Kept) -> tuple[Reals, State]:
        """Return the gradients of the input and of the state before; add those of the weights to ``grads``."""
        d_h, d_c = d_state
        x, h, c, i, f, g, o, squashed = kept
        d_c = d_c + d_h * o * (1 - squashed**2)
        d_a = np.concatenate(
            (
                d_c * g * i * (1 - i),
                d_c * c * f * (1 - f),
                d_c * i * (1 - g**2),
                d_h * squashed * o * (1 - o),
            ),
            axis=1,
        )
        _add_linear(self.grads, d_a, x, h)
        # The highway: along c alone the gradient is multiplied by f, and by nothing else.
        return d_a @ self.weights["W_x"], (d_a @ self.weights["W_h"], d_c * f)


class GRUCell:
    """The gated recurrent unit: gates r (reset) and z (update) and a candidate n, in PyTorch's order r, z, n::

        r, z = σ(…)     n = tanh(W_x x + r·(W_h h + b_h) + b)   reset "after"  (PyTorch, cuDNN)
                        n = tanh(W_x x + W_h (r·h) + b)         reset "before" (Cho et al. 2014)
        h = (1 − z)·n + z·h                                     z_keeps: z = 1 keeps the old memory (PyTorch)
        h = z·n + (1 − z)·h                                     not z_keeps: z = 1 replaces it

    Sources disagree on the sense of z; both are here, and ``z_keeps=False`` is the same cell with z′ = 1 − z, that
    is with the weights of z negated.
    """

    def __init__(
        self, inputs: int, hidden: int, *, reset: Reset = "after", z_keeps: bool = True, seed: int = 0
    ) -> None:
        if reset not in ("before", "after"):
            raise SettingError(f"reset={reset!r}: expected 'before' or 'after'")
        self.hidden = hidden
        self.reset = reset
        self.z_keeps = z_keeps
        self.weights = _random_weights(inputs, hidden, 3, seed)
        self.weights["b_h"] = np.zeros(3 * hidden)
        self.grads = _zeros_like(self.weights)

    def start(self, batch: int) -> State:
        """Return a state of zeros."""
        return (np.zeros((batch, self.hidden)),)

    def step(self, x: Reals, state: State) -> tuple[State, Kept]:
        """Return the new state, and what ``back`` needs."""
        (h,) = state
        w, size = self.weights, self.hidden
        from_x = x @ w["W_x"].T + w["b"]
        r, z = np.split(sigmoid(from_x[:, : 2 * size] + h @ w["W_h"][: 2 * size].T + w["b_h"][: 2 * size]), 2, axis=1)
        if self.reset == "after":
            inner = h @ w["W_h"][2 * size :].T + w["b_h"][2 * size :]
            n = np.tanh(from_x[:, 2 * size :] + r * inner)
        else:
            inner = r * h
            n = np.tanh(from_x[:, 2 * size :] + inner @ w["W_h"][2 * size :].T + w["b_h"][2 * size :])
        keep = z if self.z_keeps else 1 - z
        return ((1 - keep) * n + keep * h,), (x, h, r, z, n, inner)

    def back(self, d_state: State, kept: Kept) -> tuple[Reals, State]:
        """Return the gradients of the input and of the state before; add those of the weights to ``grads``."""
        (d_new,) = d_state
        x, h, r, z, n, inner = kept
        w, size, g = self.weights, self.hidden, self.grads
        keep = z if self.z_keeps else 1 - z
        d_keep = d_new * (h - n)
        d_z = (d_keep if self.z_keeps else -d_keep) * z * (1 - z)
        d_n = d_new * (1 - keep) * (1 - n**2)
        d_h = d_new * keep
        w_n = w["W_h"][2 * size :]
        if self.reset == "after":
            d_r = d_n * inner * r * (1 - r)
            d_inner = d_n * r
            g["W_h"][2 * size :] += d_inner.T @ h
            g["b_h"][2 * size :] += d_inner.sum(0)
            d_h = d_h + d_inner @ w_n
        else:
            d_inner = d_n @ w_n
            d_r = d_inner * h * r * (1 - r)
            g["W_h"][2 * size :] += d_n.T @ inner
            g["b_h"][2 * size :] += d_n.sum(0)
            d_h = d_h + d_inner * r
        d_gates = np.concatenate((d_r, d_z), axis=1)
        d_a = np.concatenate((d_gates, d_n), axis=1)
        g["W_x"] += d_a.T @ x
        g["b"] += d_a.sum(0)
        g["W_h"][: 2 * size] += d_gates.T @ h
        g["b_h"][: 2 * size] += d_gates.sum(0)
        return d_a @ w["W_x"], (d_h + d_gates @ w["W_h"][: 2 * size],)


class MinGRUCell:
    """The minimal GRU, whose gate and candidate see only the input, so that a text is read at once (``layers.scan``)::

        z = σ(W_z x + b_z)    n = W_n x + b_n    h = (1 − z)·h + z·n

    W_x holds W_z, then W_n. There is no W_h: the gate does not see the state it acts on.
    """

    def __init__(self, inputs: int, hidden: int, *, seed: int = 0) -> None:
        self.hidden = hidden
        self.weights = _random_weights(inputs, hidden, 2, seed)
        del self.weights["W_h"]
        self.grads = _zeros_like(self.weights)

    def start(self, batch: int) -> State:
        """Return a state of zeros."""
        return (np.zeros((batch, self.hidden)),)

    def step(self, x: Reals, state: State) -> tuple[State, Kept]:
        """Return the new state, and what ``back`` needs."""
        (h,) = state
        a, n = np.split(x @ self.weights["W_x"].T + self.weights["b"], 2, axis=1)
        z = sigmoid(a)
        return ((1 - z) * h + z * n,), (x, h, z, n)

    def back(self, d_state: State, kept: Kept) -> tuple[Reals, State]:
        """Return the gradients of the input and of the state before; add those of the weights to ``grads``."""
        (d_new,) = d_state
        x, h, z, n = kept
        d_a = np.concatenate((d_new * (n - h) * z * (1 - z), d_new * z), axis=1)
        self.grads["W_x"] += d_a.T @ x
        self.grads["b"] += d_a.sum(0)
        return d_a @ self.weights["W_x"], (d_new * (1 - z),)


def run_both_ways(forward: Cell, backward: Cell, x: Reals) -> Reals:
    """Run a bidirectional layer (T, B, 2H): each step's output next to that of a second cell that reads backwards."""
    ahead, _, _ = run(forward, x)
    behind, _, _ = run(backward, x[::-1])
    return np.concatenate((ahead, behind[::-1]), axis=2)


def run_stack(cells: list[Cell], x: Reals) -> tuple[Reals, list[State], list[list[Kept]]]:
    """Run a stack of layers: the states of one are the inputs of the next."""
    states, kept = [], []
    for cell in cells:
        x, state, saved = run(cell, x)
        states.append(state)
        kept.append(saved)
    return x, states, kept


def run_stack_back(cells: list[Cell], d_outputs: Reals, kept: list[list[Kept]]) -> Reals:
    """Backpropagate through a stack: the gradient of its inputs."""
    for cell, saved in zip(cells[::-1], kept[::-1], strict=True):
        d_outputs, _ = run_back(cell, d_outputs, saved)
    return d_outputs


def parameters(cell: Cell) -> int:
    """Count the weights of a cell."""
    return sum(weight.size for weight in cell.weights.values())


def sigmoid(x: Reals) -> Reals:
    """Return 1 / (1 + e⁻ˣ) without overflow on either side."""
    small = np.exp(-np.abs(x))
    shares: Reals = np.where(x >= 0, 1, small) / (1 + small)
    return shares


def cross_entropy(scores: Reals, targets: Ids) -> tuple[float, Reals]:
    """Return the mean of −log p(target) under a softmax of scores (n, V), and its gradient, (p − y) / n."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(targets))
    gradient = np.exp(logs)
    gradient[rows, targets] -= 1
    return float(-logs[rows, targets].mean()), gradient / len(targets)


def _random_weights(inputs: int, hidden: int, gates: int, seed: int) -> dict[str, Reals]:
    if inputs < 1 or hidden < 1:
        raise SettingError(f"a cell of {inputs} inputs and {hidden} hidden units: expected at least one of each")
    rng = np.random.default_rng(seed)
    size = 1 / np.sqrt(hidden)
    return {
        "W_x": rng.normal(0, size, (gates * hidden, inputs)),
        "W_h": rng.normal(0, size, (gates * hidden, hidden)),
        "b": np.zeros(gates * hidden),
    }


def _zeros_like(weights: dict[str, Reals]) -> dict[str, Reals]:
    return {name: np.zeros_like(weight) for name, weight in weights.items()}


def _add_linear(grads: dict[str, Reals], d_a: Reals, x: Reals, h: Reals) -> None:
    """Add the gradients of ``a = W_x x + W_h h + b``."""
    grads["W_x"] += d_a.T @ x
    grads["W_h"] += d_a.T @ h
    grads["b"] += d_a.sum(0)
