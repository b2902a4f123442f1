"""The NumPy cells against finite differences and against PyTorch, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from foreword.errors import SettingError
from foreword.nn.cells import (
    Cell,
    GRUCell,
    LSTMCell,
    MinGRUCell,
    RNNCell,
    cross_entropy,
    parameters,
    run,
    run_back,
    run_both_ways,
    run_stack,
    run_stack_back,
    sigmoid,
)

T, B, X, H = 7, 3, 4, 5

CELLS: dict[str, Callable[[], Any]] = {
    "rnn": lambda: RNNCell(X, H),
    "relu": lambda: RNNCell(X, H, activation="relu", identity=True),
    "lstm": lambda: LSTMCell(X, H),
    "gru": lambda: GRUCell(X, H),
    "gru-before": lambda: GRUCell(X, H, reset="before"),
    "gru-replaces": lambda: GRUCell(X, H, z_keeps=False),
    "gru-before-replaces": lambda: GRUCell(X, H, reset="before", z_keeps=False),
    "min-gru": lambda: MinGRUCell(X, H),
}


def inputs(seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=(T, B, X))


def loss_of(cell: Cell, x: Any, target: Any) -> float:
    return float((run(cell, x)[0] * target).sum())


@pytest.mark.parametrize("name", CELLS)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    """Row R10: BPTT by hand, for every weight and every input."""
    cell = CELLS[name]()
    rng = np.random.default_rng(2)
    for weight in cell.weights.values():
        weight += rng.normal(size=weight.shape) * 0.1
    x, target = inputs(), rng.normal(size=(T, B, H))
    _, _, kept = run(cell, x)
    d_x, _ = run_back(cell, target, kept)
    tiny = 1e-6
    for label, array, gradient in [*((n, w, cell.grads[n]) for n, w in cell.weights.items()), ("x", x, d_x)]:
        for place in rng.choice(array.size, min(array.size, 25), replace=False):
            at = np.unravel_index(place, array.shape)
            before = array[at]
            array[at] = before + tiny
            above = loss_of(cell, x, target)
            array[at] = before - tiny
            below = loss_of(cell, x, target)
            array[at] = before
            assert gradient[at] == pytest.approx((above - below) / (2 * tiny), rel=1e-5, abs=1e-7), (label, at)


def torch_twin(torch: Any, name: str, cell: Any) -> Any:
    kinds = {"rnn": torch.nn.RNN, "relu": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
    options = {"nonlinearity": "relu"} if name == "relu" else {}
    twin = kinds[name](X, H, dtype=torch.float64, **options)
    with torch.no_grad():
        twin.weight_ih_l0.copy_(torch.tensor(cell.weights["W_x"]))
        twin.weight_hh_l0.copy_(torch.tensor(cell.weights["W_h"]))
        twin.bias_ih_l0.copy_(torch.tensor(cell.weights["b"]))
        twin.bias_hh_l0.copy_(torch.tensor(cell.weights.get("b_h", np.zeros_like(cell.weights["b"]))))
    return twin


@pytest.mark.parametrize("name", ["rnn", "relu", "lstm", "gru"])
def test_cells_are_pytorchs(name: str) -> None:
    """Rows R03, L01, L07: the same states and the same gradients, to the last digits."""
    torch = pytest.importorskip("torch")
    cell = CELLS[name]()
    rng = np.random.default_rng(3)
    for weight in cell.weights.values():
        weight += rng.normal(size=weight.shape) * 0.1
    twin = torch_twin(torch, name, cell)
    x, target = inputs(), rng.normal(size=(T, B, H))
    x_torch = torch.tensor(x, requires_grad=True)
    expected, _ = twin(x_torch)
    outputs, _, kept = run(cell, x)
    np.testing.assert_allclose(outputs, expected.detach().numpy(), atol=1e-12)
    (expected * torch.tensor(target)).sum().backward()
    d_x, _ = run_back(cell, target, kept)
    np.testing.assert_allclose(d_x, x_torch.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(cell.grads["W_x"], twin.weight_ih_l0.grad.numpy(), atol=1e-11)
    np.testing.assert_allclose(cell.grads["W_h"], twin.weight_hh_l0.grad.numpy(), atol=1e-11)
    np.testing.assert_allclose(cell.grads["b"], twin.bias_ih_l0.grad.numpy(), atol=1e-11)


def test_two_forms_of_elmans_network_agree() -> None:
    """Row R03: tanh(W [h, x] + b) = tanh(W_h h + W_x x + b)."""
    cell = RNNCell(X, H)
    whole = np.concatenate((cell.weights["W_h"], cell.weights["W_x"]), axis=1)
    h, x = np.random.default_rng(4).normal(size=(B, H)), inputs()[0]
    joined = np.tanh(np.concatenate((h, x), axis=1) @ whole.T + cell.weights["b"])
    np.testing.assert_allclose(cell.step(x, (h,))[0][0], joined, atol=1e-12)


def test_both_senses_of_the_update_gate_are_one_cell() -> None:
    """Row L07, erratum Z03: with the weights of z negated, z′ = 1 − z and everything else is the same."""
    keeps, replaces = GRUCell(X, H), GRUCell(X, H, z_keeps=False)
    for name, weight in keeps.weights.items():
        replaces.weights[name] = weight.copy()
        replaces.weights[name][H : 2 * H] *= -1
    np.testing.assert_allclose(run(keeps, inputs())[0], run(replaces, inputs())[0], atol=1e-12)


def test_parameter_counts() -> None:
    """Row L08: 256 hidden, 300 inputs: 427,008 for the GRU, 569,344 for the LSTM, without biases."""
    gru, lstm = GRUCell(300, 256), LSTMCell(300, 256)
    without = [sum(cell.weights[name].size for name in ("W_x", "W_h")) for cell in (gru, lstm)]
    assert without == [427_008, 569_344]
    assert parameters(lstm) == 569_344 + 4 * 256
    assert parameters(gru) == 427_008 + 2 * 3 * 256  # the candidate's inner bias is not the outer one's twin


def test_weights_are_shared_by_all_steps() -> None:
    """Row R05: as many parameters for one step as for ten thousand, and the same answer wherever the text begins."""
    cell = LSTMCell(X, H)
    before = parameters(cell)
    run(cell, np.zeros((10_000, 1, X)))
    assert parameters(cell) == before
    x = inputs()
    late = np.concatenate((np.zeros((3, B, X)), x))
    state = cell.start(B)
    np.testing.assert_array_equal(run(cell, late[3:], state)[0], run(cell, x)[0])


def test_along_the_cell_state_the_gradient_is_the_forget_gate() -> None:
    """Row L03, erratum Z09: exactly f on the direct path; the gates' own path is there too."""
    cell = LSTMCell(X, H)
    x = inputs()[0]
    h, c = np.random.default_rng(5).normal(size=(2, B, H))
    _, f, _, _ = cell.gates(x, h)
    _, kept = cell.step(x, (h, c))
    _, (d_h, d_c) = cell.back((np.zeros((B, H)), np.ones((B, H))), kept)
    np.testing.assert_allclose(d_c, f, atol=1e-15)
    assert np.abs(d_h).max() > 0


def test_forget_bias_begins_at_one() -> None:
    """Row L02."""
    bias = LSTMCell(X, H).weights["b"]
    assert bias.tolist() == [0.0] * H + [1.0] * H + [0.0] * (2 * H)


def test_jacobian_is_the_product_of_slopes_and_weights() -> None:
    """Row R11: over k steps it equals what autograd finds."""
    torch = pytest.importorskip("torch")
    cell = RNNCell(X, H)
    x = inputs()[:, :1]
    outputs, _, _ = run(cell, x)
    product = np.eye(H)
    for new in outputs[1:, 0]:
        product = cell.jacobian(new) @ product
    w = {name: torch.tensor(weight) for name, weight in cell.weights.items()}

    def onwards(h: Any) -> Any:
        for x_t in torch.tensor(x[1:, 0]):
            h = torch.tanh(w["W_x"] @ x_t + w["W_h"] @ h + w["b"])
        return h

    expected = torch.autograd.functional.jacobian(onwards, torch.tensor(outputs[0, 0]))
    np.testing.assert_allclose(product, expected.numpy(), atol=1e-10)


def test_stacked_layers_are_pytorchs() -> None:
    """Row S01."""
    torch = pytest.importorskip("torch")
    cells: list[Cell] = [LSTMCell(X, H, seed=1), LSTMCell(H, H, seed=2)]
    twin = torch.nn.LSTM(X, H, num_layers=2, dtype=torch.float64)
    with torch.no_grad():
        for layer, cell in enumerate(cells):
            getattr(twin, f"weight_ih_l{layer}").copy_(torch.tensor(cell.weights["W_x"]))
            getattr(twin, f"weight_hh_l{layer}").copy_(torch.tensor(cell.weights["W_h"]))
            getattr(twin, f"bias_ih_l{layer}").copy_(torch.tensor(cell.weights["b"]))
            getattr(twin, f"bias_hh_l{layer}").zero_()
    x_torch = torch.tensor(inputs(), requires_grad=True)
    expected, _ = twin(x_torch)
    outputs, _, kept = run_stack(cells, inputs())
    np.testing.assert_allclose(outputs, expected.detach().numpy(), atol=1e-12)
    expected.sum().backward()
    np.testing.assert_allclose(run_stack_back(cells, np.ones((T, B, H)), kept), x_torch.grad.numpy(), atol=1e-12)


def test_both_ways() -> None:
    """Row S02: (32, 50, 300) becomes (32, 50, 512); the forward half knows nothing of the future."""
    x = np.random.default_rng(6).normal(size=(50, 32, 300))
    forward, backward = LSTMCell(300, 256, seed=1), LSTMCell(300, 256, seed=2)
    outputs = run_both_ways(forward, backward, x)
    assert outputs.transpose(1, 0, 2).shape == (32, 50, 512)
    assert parameters(forward) + parameters(backward) == 2 * parameters(forward)
    changed = x.copy()
    changed[30:] = 0
    again = run_both_ways(forward, backward, changed)
    np.testing.assert_array_equal(again[:30, :, :256], outputs[:30, :, :256])
    assert not np.allclose(again[:30, :, 256:], outputs[:30, :, 256:])


def test_cross_entropy_and_its_gradient() -> None:
    """Row R09: −log y, and p − y."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(7)
    scores, targets = rng.normal(size=(6, 9)) * 30, rng.integers(0, 9, 6)
    s = torch.tensor(scores, requires_grad=True)
    expected = torch.nn.functional.cross_entropy(s, torch.tensor(targets))
    expected.backward()
    loss, gradient = cross_entropy(scores, targets)
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    np.testing.assert_allclose(gradient, s.grad.numpy(), atol=1e-12)


def test_powers() -> None:
    """Row R12: what fifty and a hundred steps make of a factor."""
    assert pytest.approx(0.005154, rel=1e-3) == 0.9**50
    assert pytest.approx(2.656e-05, rel=1e-3) == 0.9**100
    assert pytest.approx(13780.6, rel=1e-5) == 1.1**100


def test_sigmoid_does_not_overflow() -> None:
    np.testing.assert_allclose(sigmoid(np.array([-1000.0, 0.0, 1000.0])), [0, 0.5, 1])


@pytest.mark.parametrize(
    "make",
    [
        lambda: RNNCell(0, 3),
        lambda: LSTMCell(3, 0),
        lambda: RNNCell(2, 2, activation="sin"),  # type: ignore[arg-type]
        lambda: GRUCell(2, 2, reset="never"),  # type: ignore[arg-type]
    ],
)
def test_senseless_cells_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(SettingError):
        make()
