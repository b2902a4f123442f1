"""What the instruments of evaluate/gradients.py read, against autograd, finite differences and the equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foreword.errors import SettingError
from foreword.evaluate.gradients import (
    backward_norms,
    counter_example,
    forget_products,
    frozen_radius,
    gradient_by_lag,
    growth_per_step,
    highway,
    input_gradient_by_lag,
    jacobian_products,
    norms_by_lag,
    published_experiment,
    regime,
    saturation,
    silent_from,
    state_norms,
    step_jacobians,
)
from foreword.nn.cells import GRUCell, LSTMCell, RNNCell, run, run_stack, run_stack_back

T, B, X, H = 6, 3, 4, 5

CELLS: dict[str, Callable[[], Any]] = {
    "rnn": lambda: RNNCell(X, H),
    "relu": lambda: RNNCell(X, H, activation="relu", identity=True),
    "lstm": lambda: LSTMCell(X, H),
    "gru": lambda: GRUCell(X, H),
    "gru-before": lambda: GRUCell(X, H, reset="before", z_keeps=False),
}


def inputs(steps: int = T, seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=(steps, B, X))


def final_state(cell: Any, x: Any, state: Any) -> Any:
    """The last state as one vector (S,), from the first as one vector, for the first text."""
    parts = len(cell.start(1))
    first = tuple(part[None] for part in np.split(state, parts))
    return np.concatenate([part[0] for part in run(cell, x[:, :1], first)[1]])


@pytest.mark.parametrize("name", CELLS)
def test_r11_products_of_jacobians_are_the_whole_derivative(name: str) -> None:
    """R11: the product over steps k+1 … T, against finite differences of a run from step k on."""
    cell, x = CELLS[name](), inputs()
    _, _, kept = run(cell, x)
    products = jacobian_products(step_jacobians(cell, kept))
    tiny = 1e-6
    for lag in (1, 3, T):
        state = np.concatenate([part[0] for part in _state_at(cell, x, T - lag)])
        columns = [
            (final_state(cell, x[T - lag :], state + e) - final_state(cell, x[T - lag :], state - e)) / (2 * tiny)
            for e in tiny * np.eye(len(state))
        ]
        assert_allclose(products[lag], np.array(columns).T, atol=1e-8)


def _state_at(cell: Any, x: Any, step: int) -> Any:
    return run(cell, x[:step])[1] if step else cell.start(x.shape[1])


@pytest.mark.parametrize("name", ["rnn", "relu", "lstm", "gru"])
def test_r11_products_of_jacobians_equal_autograd(name: str) -> None:
    """R11: to 1e-10, for every lag, by torch's own cells in float64."""
    torch = pytest.importorskip("torch")
    cell, x = CELLS[name](), inputs()
    products = jacobian_products(step_jacobians(cell, run(cell, x)[2]))
    kind = {"rnn": "RNNCell", "relu": "RNNCell", "lstm": "LSTMCell", "gru": "GRUCell"}[name]
    options = {"nonlinearity": "relu"} if name == "relu" else {}
    twin = getattr(torch.nn, kind)(X, H, dtype=torch.float64, **options)
    with torch.no_grad():
        for theirs, ours in (("weight_ih", "W_x"), ("weight_hh", "W_h"), ("bias_ih", "b")):
            getattr(twin, theirs).copy_(torch.tensor(cell.weights[ours]))
        twin.bias_hh.copy_(torch.tensor(cell.weights.get("b_h", np.zeros_like(cell.weights["b"]))))

    def from_step(step: int, state: Any) -> Any:
        parts: Any = tuple(part[None] for part in state.chunk(len(cell.start(1))))
        for x_t in torch.tensor(x[step:, :1]):
            parts = twin(x_t, parts if name == "lstm" else parts[0])
            parts = parts if name == "lstm" else (parts,)
        return torch.cat([part[0] for part in parts])

    for lag in range(1, T + 1):
        state = torch.tensor(np.concatenate([part[0] for part in _state_at(cell, x, T - lag)]))
        theirs = torch.autograd.functional.jacobian(lambda s, step=T - lag: from_step(step, s), state)
        assert_allclose(products[lag], theirs.numpy(), atol=1e-10)


def test_r11_an_rnn_s_step_is_its_slope_times_its_weights() -> None:
    """R11: J = diag(f′) W_h, as the equation has it."""
    cell, x = RNNCell(X, H), inputs()
    outputs, _, kept = run(cell, x)
    assert_allclose(step_jacobians(cell, kept, text=1), [cell.jacobian(h[1]) for h in outputs], atol=1e-15)


@pytest.mark.parametrize("name", CELLS)
def test_the_gradient_by_lag_is_that_of_the_products(name: str) -> None:
    cell, x = CELLS[name](), inputs()
    _, _, kept = run(cell, x)
    d_last = np.random.default_rng(3).normal(size=(B, H))
    norms = gradient_by_lag([cell], [kept], d_last)
    assert norms.shape == (1, T, B)
    for text in range(B):
        products = jacobian_products(step_jacobians(cell, kept, text))
        rows = np.concatenate([d_last[text], np.zeros(products.shape[1] - H)])
        expected = [np.linalg.norm(rows @ product) for product in products[:T]]
        assert_allclose(norms[0, :, text], expected, rtol=1e-10)
    assert all(not gradient.any() for gradient in cell.grads.values())  # a training run's gradients are left alone


def test_the_gradient_of_a_lower_layer_comes_through_the_upper_one_at_every_step() -> None:
    cells: list[Any] = [LSTMCell(X, H, seed=1), GRUCell(H, H, seed=2)]
    x = inputs()
    _, _, kept = run_stack(cells, x)
    d_outputs = np.zeros((T, B, H))
    d_outputs[-1] = 1
    norms = gradient_by_lag(cells, kept, d_outputs[-1])
    d_x = run_stack_back(cells, d_outputs, kept)
    assert norms.shape == (2, T, B)
    assert (norms[0] > 0).all()
    taught = input_gradient_by_lag(cells, kept, d_outputs[-1])
    assert_allclose(taught, np.linalg.norm(d_x[::-1], axis=2))
    tiny = 1e-6
    x[0, 0, 0] += tiny
    above = run_stack(cells, x)[0][-1].sum()
    x[0, 0, 0] -= 2 * tiny
    assert (above - run_stack(cells, x)[0][-1].sum()) / (2 * tiny) == pytest.approx(d_x[0, 0, 0], rel=1e-5)


def test_r14_norm_above_one_and_radius_below_vanishes() -> None:
    """R14, Z02: the shipped counter-example; both numbers are told, and its powers do fall."""
    found = regime(counter_example())
    assert found.norm == pytest.approx(1.0025, abs=5e-5)
    assert found.radius == pytest.approx(0.510, abs=5e-4)
    assert found.verdict == "vanishes in the end"
    start = np.random.default_rng(0).normal(size=(64, 5))
    norms = backward_norms(counter_example(), start, 200)
    assert (norms[-1] < 1e-50 * norms[0]).all()


@pytest.mark.parametrize(
    ("weight", "verdict"),
    [
        (0.9 * np.eye(3), "vanishes"),
        (np.array([[0.5, 10.0], [0.0, 0.5]]), "vanishes in the end"),
        (1.1 * np.eye(3), "explodes"),
        (np.array([[0.0, 1.0], [-1.0, 0.0]]), "stays"),
    ],
)
def test_r14_regimes(weight: Any, verdict: str) -> None:
    assert regime(weight).verdict == verdict


def test_r14_a_slope_below_one_turns_the_verdict() -> None:
    assert regime(1.5 * np.eye(2)).verdict == "explodes"
    assert regime(1.5 * np.eye(2), slope=0.5).verdict == "vanishes"
    with pytest.raises(SettingError, match="square"):
        regime(np.ones((2, 3)))


def test_r13_the_published_ratios_do_not_come_out() -> None:
    """R13, Z01: true numbers of the printed code with its seed, from 200 start vectors."""
    found = published_experiment()
    small, large = found["small W"], found["large W"]
    assert 1e-61 < small.ratios.min() < small.ratios.max() < 1e-59
    assert 1e20 < large.ratios.min() < large.ratios.max() < 1e24
    assert not small.ratios.min() <= small.printed <= small.ratios.max()
    assert not large.ratios.min() <= large.printed <= large.ratios.max()
    assert small.printed < small.without_slope < 10 * small.printed  # the factor that seems to have been left out
    assert small.median == pytest.approx(small.without_slope * 0.5**100, rel=1e-9)
    assert small.regime.verdict == "vanishes"
    assert large.regime.verdict == "explodes"


def test_r15_states_explode_unless_they_are_squashed() -> None:
    """R15: linear and ReLU states follow the radius; tanh stays within (−1, 1)."""
    weight = np.random.default_rng(0).normal(0, 1 / 8, (64, 64))
    start = np.random.default_rng(1).normal(size=64)
    radius = regime(weight).radius
    shrinking = state_norms(0.8 / radius * weight, start, 200)
    exploding = state_norms(1.2 / radius * weight, start, 200)
    assert shrinking[-1] < 1e-15 * start.size
    assert exploding[-1] > 1e14
    assert state_norms(3 / radius * weight, np.abs(start), 200, "relu")[-1] > 1e14
    assert state_norms(0.8 / radius * weight, np.abs(start), 200, "relu")[-1] < 1e-15 * start.size
    assert state_norms(100 * weight, start, 200, "tanh")[1:].max() <= 8
    with pytest.raises(SettingError, match="activation"):
        state_norms(weight, start, 1, "softplus")  # type: ignore[arg-type]


def test_r16_slopes_of_a_saturated_layer_lie_in_the_first_bar() -> None:
    """R16: a histogram of tanh′ for every step; each sums to one, and large weights push it to zero."""
    for name, build in CELLS.items():
        if name == "relu":
            continue
        calm, wild = build(), build()
        for weight in wild.weights.values():
            weight *= 50
        x = inputs()
        found, pushed = (saturation(cell, run(cell, x)[2]) for cell in (calm, wild))
        assert found.shares.shape == (T, 10)
        assert_allclose(found.shares.sum(axis=1), 1)
        assert pushed.saturated > 0.7 > found.saturated
        assert pushed.mean < found.mean <= 1


def test_l03_along_c_alone_the_factor_is_the_forget_gate() -> None:
    """L03, L04: Π f by lag, from the gates themselves; exact when the gates do not see the state."""
    cell, x = LSTMCell(X, H), inputs(steps=20)
    cell.weights["W_h"][:] = 0  # gates that do not depend on h: now the direct path is all there is
    _, _, kept = run(cell, x)
    found = highway(cell, kept, text=1)
    products = forget_products(kept)
    assert products.shape == (21, B, H)
    assert_allclose(found.direct, products[:, 1].mean(axis=1))
    assert_allclose(found.full, found.direct, rtol=1e-12)
    assert_allclose(found.full_norm, found.direct_norm, rtol=1e-12)
    assert (np.diff(found.direct) < 0).all()


def test_z09_gates_that_see_the_state_change_the_jacobian() -> None:
    """Z09: ∂c_t/∂c_(t−1) is f_t only with the gates held fixed; the whole derivative is another number."""
    cell, x = LSTMCell(X, H), inputs(steps=8)
    cell.weights["W_h"] *= 3
    _, _, kept = run(cell, x)
    found = highway(cell, kept)
    whole = jacobian_products(step_jacobians(cell, kept))[1][H:, H:]
    forget = kept[-1][4][0]
    # With h_(t−1) held fixed the step's c-to-c block is diag(f) exactly; two steps on, the gates have seen it.
    assert_allclose(whole, np.diag(forget), atol=1e-12)
    assert np.abs(found.full[2:] / found.direct[2:] - 1).max() > 0.05
    assert (found.full_norm >= found.full - 1e-12).all()


def test_r18_silence_is_reported_from_the_lag_where_it_begins() -> None:
    """R18: the report that a vanishing gradient, which no guard sees, needs."""
    assert silent_from([1, 0.1, 1e-4, 1e-5]) == 2
    assert silent_from([1, 1e-4, 0.5, 1e-5]) == 3
    assert silent_from([1, 0.5, 0.25]) is None
    assert silent_from([1, 0.5, np.nan]) is None
    assert growth_per_step(0.9 ** np.arange(30)) == pytest.approx(0.9)
    assert np.isnan(growth_per_step([0.0, 0.0]))


def test_the_radius_found_by_walking_is_that_of_the_matrix() -> None:
    for build in (CELLS["rnn"], CELLS["lstm"], CELLS["gru"]):
        cell = build()
        _, _, kept = run(cell, inputs())
        expected = np.abs(np.linalg.eigvals(step_jacobians(cell, kept)[-1])).max()
        assert frozen_radius(cell, kept[-1], rounds=2000) == pytest.approx(expected, rel=0.01)


def test_norms_are_largest_singular_values() -> None:
    products = jacobian_products(np.array([np.diag([0.5, 2.0]), np.diag([0.5, 3.0])]))
    assert_array_equal(norms_by_lag(products), [1, 3, 6])
