"""What a recurrent layer costs compared with attention: parameters, operations, time by length, paths.

    parameters of a cell     gates · H · (I + H) and its biases; gates = 1 (RNN), 3 (GRU), 4 (LSTM)
    operations of a step     2 · gates · H · (I + H), and a few more for each unit
    path from step i to j    j − i states in a recurrent layer, 1 in an attention layer: counted in autograd's graph

Time is measured, not modelled: a step cannot begin before the one before it has ended, so on any number of cores T
steps take T times one step. ``utilisation`` is the operations per second compared with those of one large matrix
product on the same machine. Shapes: T steps, B texts, I inputs, H hidden units.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreword.arrays import Doubles
from foreword.errors import MissingExtraError, SettingError
from foreword.protocols import Meter

try:
    import torch
    from torch import Tensor
    from torch.nn.functional import linear, scaled_dot_product_attention
except ImportError:
    raise MissingExtraError("torch", "neural", "measuring what recurrent layers cost") from None

from foreword.lessons.horizon import GATES, first_weights, run_layer

LAYERS = ("rnn", "gru", "lstm", "min-gru", "attention")


# Sizes


@dataclass(frozen=True, slots=True)
class CellCost:
    """One row of the table of cells.

    gates: 0, 2 or 3. matrices: of the gates and the candidate: 1, 3 or 4. parameters: without biases, with one bias
    each, with PyTorch's two. operations: multiplications and additions of the products of one step of one text.
    microseconds: measured CPU time of that step; NaN if it was not measured.
    """

    kind: str
    gates: int
    matrices: int
    states: int
    parameters: int
    with_bias: int
    with_two_biases: int
    operations: int
    microseconds: float


def cell_table(inputs: int, hidden: int, *, timed: bool = True) -> list[CellCost]:
    """Compare RNN, GRU and LSTM of one size. A GRU has three matrices, for its candidate needs one too."""
    rows = []
    for kind, states in (("rnn", 1), ("gru", 1), ("lstm", 2)):
        matrices = GATES[kind]
        plain = matrices * hidden * (inputs + hidden)
        bias = matrices * hidden
        taken = 1e6 * layer_seconds(kind, 200, hidden, batch=1, inputs=inputs, back=False) / 200 if timed else math.nan
        rows.append(
            CellCost(kind, matrices - 1, matrices, states, plain, plain + bias, plain + 2 * bias, 2 * plain, taken)
        )
    return rows


def hidden_for(kind: str, parameters: int, inputs: int) -> int:
    """Return the units H with which gates·H² + gates·I·H, a cell without biases, is nearest to ``parameters``."""
    if kind not in GATES or parameters < 1:
        raise SettingError(f"kind={kind!r}, parameters={parameters}: expected one of {', '.join(GATES)} and at least 1")
    gates = GATES[kind]
    exact = (-inputs + math.sqrt(inputs**2 + 4 * parameters / gates)) / 2
    return min(
        (math.floor(exact) or 1, math.ceil(exact)), key=lambda units: abs(gates * units * (inputs + units) - parameters)
    )


# Time against length


@dataclass(frozen=True, slots=True)
class LengthCost:
    """The cost of layers by length. seconds: (kinds, lengths), of a forward and backward pass; operations: of its
    products; peak: operations per second of one large product on the same device.
    """

    kinds: list[str]
    lengths: list[int]
    seconds: Doubles
    operations: Doubles
    peak: float

    def utilisation(self) -> Doubles:
        """Return the share of the device's peak that was reached: (kinds, lengths)."""
        return self.operations / self.seconds / self.peak


def cost_by_length(
    lengths: Sequence[int],
    kinds: Sequence[str] = LAYERS,
    *,
    hidden: int = 256,
    batch: int = 1,
    device: str = "cpu",
    repeats: int = 3,
    meter: Meter | None = None,
) -> LengthCost:
    """Time layers of one width over texts of rising length. Kinds take turns; the median of the rounds counts."""
    taken = np.empty((repeats, len(kinds), len(lengths)))
    for turn in range(repeats):
        for row, kind in enumerate(kinds):
            for column, length in enumerate(lengths):
                if meter:
                    meter(f"{kind}, {length} steps", taken[:turn].size + row * len(lengths) + column, taken.size)
                taken[turn, row, column] = layer_seconds(kind, length, hidden, batch=batch, device=device)
    operations = np.array([[operations_of(kind, length, hidden, batch) for length in lengths] for kind in kinds])
    return LengthCost(list(kinds), list(lengths), np.median(taken, axis=0), operations, peak_operations(device))


def operations_of(kind: str, steps: int, hidden: int, batch: int, inputs: int | None = None) -> float:
    """Count the multiplications and additions of a layer's products, forward and backward, which takes two times the
    forward pass.
    """
    inputs = hidden if inputs is None else inputs
    if kind == "attention":  # four products with weights, and two of length by length, half of which is masked
        once = 2 * steps * 4 * hidden * hidden + 2 * 2 * steps * steps * hidden / 2
    elif kind == "min-gru":
        once = 2 * steps * 2 * hidden * inputs
    else:
        once = 2 * steps * GATES[kind] * hidden * (inputs + hidden)
    return 3.0 * batch * once


def layer_seconds(
    kind: str,
    steps: int,
    hidden: int,
    *,
    batch: int = 1,
    inputs: int | None = None,
    device: str = "cpu",
    back: bool = True,
) -> float:
    """Time a pass over ``steps`` steps, with its gradient if ``back``: CPU time, or wall-clock time on a GPU."""
    inputs = hidden if inputs is None else inputs
    generator = torch.Generator().manual_seed(0)
    weights = [weight.to(device).requires_grad_(back) for weight in _weights(kind, inputs, hidden, generator)]
    x = torch.randn(steps, batch, inputs, generator=generator).to(device)

    def once() -> None:
        with torch.set_grad_enabled(back):
            out = _attend(x, weights) if kind == "attention" else run_layer(kind, x, weights)[0]
            if back:
                torch.autograd.grad(out.sum(), weights)

    return _timed(once, device)


def peak_operations(device: str = "cpu", size: int = 1024) -> float:
    """Measure operations per second of a product of two square matrices in float32, the device's peak in practice."""
    size = size if device == "cpu" else 8 * size
    a = torch.randn(size, size, device=device)

    def once() -> None:
        torch.mm(a, a)

    return 2 * size**3 / min(_timed(once, device) for _ in range(3))


# Paths, counted in autograd's graph


def path_length(kind: str, first: int, last: int, steps: int | None = None) -> int:
    """Return the number of states on the shortest path back from the output at ``last`` to the input at ``first``.

    For "rnn" the states are h_t, and the path is h_last → … → h_first; for "attention" it leads from an output straight
    to an input. Nothing is assumed: the graph of a small network is built and searched.
    """
    steps = last + 1 if steps is None else steps
    if not 0 <= first <= last < steps:
        raise SettingError(f"first={first}, last={last} of {steps} steps: expected 0 ≤ first ≤ last < steps")
    inputs, outputs = _graph(kind, steps)
    marked = {*inputs, *outputs}
    start, goal = outputs[last], outputs[first] if kind == "rnn" else inputs[first]
    if start is goal:
        return 0
    # The nodes themselves are the keys: the number of a node that Python has dropped is given to another.
    queue, seen = deque([(start, 0)]), {start: 0}
    best: int | None = None
    while queue:  # paths with fewer marked nodes are followed first
        node, passed = queue.popleft()
        if node is goal:
            best = passed
            break
        for after, _ in node.next_functions:
            if after is None:
                continue
            cost = passed + (after in marked)
            if cost < seen.get(after, cost + 1):
                seen[after] = cost
                (queue.append if cost > passed else queue.appendleft)((after, cost))
    if best is None:
        raise SettingError(f"the output at {last} does not depend on {first}")
    return best


def unrolled_depth(kind: str, steps: int) -> int:
    """Return the number of states on the longest path through the graph, the depth that a gradient passes."""
    _, outputs = _graph(kind, steps)
    layers = set(outputs)
    depths: dict[Any, int] = {}
    stack: list[tuple[Any, bool]] = [(outputs[-1], False)]
    while stack:
        node, ready = stack.pop()
        if node in depths:
            continue
        later = [after for after, _ in node.next_functions if after is not None]
        if ready:
            depths[node] = (node in layers) + max((depths[after] for after in later), default=0)
        else:
            stack += [(node, True), *((after, False) for after in later)]
    return depths[outputs[-1]]


def _graph(kind: str, steps: int) -> tuple[list[Any], list[Any]]:
    """Build a small layer; return autograd's nodes of its inputs and of its outputs, one for each step."""
    leaves = [torch.randn(1, 2, requires_grad=True) for _ in range(steps)]
    inputs = [x * 1 for x in leaves]  # a node of its own for each input
    weights = [torch.randn(2, 2, requires_grad=True) for _ in range(3)]
    outputs = []
    if kind == "rnn":
        h = torch.zeros(1, 2)
        for x in inputs:
            h = torch.tanh(linear(x, weights[0]) + linear(h, weights[1]))
            outputs.append(h)
    elif kind == "attention":
        for step in range(steps):
            before = torch.cat(inputs[: step + 1])
            query, key, value = linear(inputs[step], weights[0]), linear(before, weights[1]), linear(before, weights[2])
            outputs.append(torch.softmax(query @ key.T, -1) @ value)
    else:
        raise SettingError(f"kind={kind!r}: expected 'rnn' or 'attention'")
    return [x.grad_fn for x in inputs], [state.grad_fn for state in outputs]


def _weights(kind: str, inputs: int, hidden: int, generator: torch.Generator) -> list[Tensor]:
    if kind != "attention":
        return first_weights(kind, inputs, hidden, generator)
    return [hidden**-0.5 * torch.randn(hidden, hidden, generator=generator) for _ in range(4)]


def _attend(x: Tensor, weights: Sequence[Tensor], heads: int = 4) -> Tensor:
    """Compute causal attention with all its products: x (T, B, H) → (T, B, H)."""
    steps, batch, hidden = x.shape
    query, key, value = (
        linear(x, weight).view(steps, batch, heads, hidden // heads).permute(1, 2, 0, 3) for weight in weights[:3]
    )
    mixed = scaled_dot_product_attention(query, key, value, is_causal=True)
    return linear(mixed.permute(2, 0, 1, 3).reshape(steps, batch, hidden), weights[3])


def _timed(once: Callable[[], None], device: str) -> float:
    """Return the seconds of a call, after one that warms up; repeated until a hundredth of a second has passed."""
    on_gpu = device != "cpu"
    clock = time.perf_counter if on_gpu else time.process_time

    def finish() -> float:
        if on_gpu:
            torch.cuda.synchronize(device)
        return clock()

    once()
    start, calls = finish(), 0
    while True:
        once()
        calls += 1
        if (end := finish()) - start > 0.01:
            return (end - start) / calls
